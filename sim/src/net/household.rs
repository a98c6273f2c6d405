//! Users, a provider with accounts, and players of HLS against the whole server.

use std::rc::Rc;
use std::time::Duration;

use holdfast_core::config::{Account, Channel, Config, Endpoint, Live, Provider, User};
use holdfast_core::input::{EndReason, UserId};
use holdfast_core::playback::Place;
use holdfast_io::origin::Origin as Url;
use holdfast_io::providers::{Credentials, Dialect, Guide, Location, Output, ProviderSettings, Reach};
use holdfast_io::server::{Limits, Recording, Settings};
use holdfast_io::users::{Login, Password, Status};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use super::origin::Mood;
use super::panel::{self, Panel};
use super::peer::{AUDIO_VIDEO, Peer, WhenClosed};
use super::player::{Kept, Player, Sockets};
use super::{Broken, Stage, now_ms, play};
use crate::world::oracle::shows;
use crate::{Figures, Scenario};

macro_rules! scenario {
    ($name:literal, $script:ident, $shows:literal) => {
        Scenario { name: $name, shows: $shows, play: |seed, trace| play($script, seed, trace) }
    };
}

/// Every scenario of users and what they play.
pub(crate) const SCENARIOS: &[Scenario] = &[
    scenario!(
        "net-shared-socket",
        shared_socket,
        "one socket carries requests of two users in turn: each counts for itself, and its end ends neither"
    ),
    scenario!("net-hls", hls, "each playlist and each segment over a socket of its own: one viewer, a whole stream"),
    scenario!(
        "net-zap",
        zap,
        "who zaps at a provider with one connection is served each time, others are refused, it never sees two"
    ),
    scenario!(
        "net-drain-all",
        drain_all,
        "the program ends with publisher, viewers, HLS, channel, provider and a held POST: all told, nothing left in 5 s"
    ),
];

pub const USERS: [&str; 3] = ["anna", "ben", "carl"];

/// What an edge has that serves users.
pub struct Household {
    /// Playbacks at once of each of [`USERS`].
    pub places: u32,
    /// Accounts of the provider, each with one connection.
    pub accounts: u32,
    /// How long a connection may stand idle.
    pub idle: Duration,
}

impl Stage {
    /// An edge with an endpoint, a channel of the origins `one` and `two`, a provider, and users.
    pub fn household(&mut self, own: &Household) -> Result<(), Broken> {
        let broken = |what: String| Broken { id: "script", what };
        let user = |name: &&str| User { name: (*name).into(), max_connections: own.places, ..User::default() };
        let login = |name: &&str| {
            let password = Password::parse("x").map_err(|error| broken(format!("{error:?}")))?;
            let (expires, groups, status) = (None, Vec::new(), Status::Active);
            Ok(Login { name: (*name).to_owned(), password, expires, groups, status })
        };
        let credentials = |account: u32| Some(Credentials { username: format!("c{account}"), password: "p".into() });
        let provider = ProviderSettings {
            name: "tv".into(),
            location: Location::parse("http://panel/x.m3u").map_err(|error| broken(format!("{error:?}")))?,
            dialect: Dialect::Auto,
            guide: Guide::None,
            refresh: Duration::from_secs(3600),
            user_agent: "VLC/3".into(),
            output: Output::Ts,
            groups: Vec::new(),
            reach: Reach::Machine,
            via: false,
            entries: 1000,
            bytes: 1 << 20,
            accounts: (0..own.accounts).map(credentials).collect(),
        };
        let urls = ["http://one/live.ts", "http://two/live.ts"].map(Url::parse);
        let urls: Result<Vec<Url>, _> = urls.into_iter().collect();
        let urls = urls.map_err(|error| broken(error.to_string()))?;
        let accounts = vec![Account { max_connections: 1, ..Account::default() }; own.accounts as usize];
        let short = Channel { idle_timeout: Duration::from_secs(5), ..Channel::default() };
        let live = Live {
            buffer: 256 << 10,
            idle: Duration::from_secs(10),
            progress_timeout: Duration::from_secs(10),
            ..Live::default()
        };
        let config = Config {
            endpoints: vec![Endpoint { tokens: vec!["secret".into()], ..Endpoint::default() }],
            channels: vec![Channel { name: "ch".into(), sources: urls.len() as u32, ..short.clone() }],
            live,
            users: USERS.iter().map(user).collect(),
            // What the end of a connection takes to come to the provider's ears, and a little more.
            providers: vec![Provider { name: "tv".into(), accounts, cooling: COOLING, live: short }],
            ..Config::default()
        };
        let settings = Settings {
            recording: Recording::Whole,
            epoch: 1_795_982_400,
            instance: 7,
            origins: vec![urls],
            users: USERS.iter().map(login).collect::<Result<_, _>>()?,
            providers: vec![provider],
            limits: Limits { idle_timeout: own.idle, ..Limits::default() },
            ..Settings::default()
        };
        let shared = self.shared.clone();
        *shared.panel.borrow_mut() = Panel { limit: 1, ..Panel::default() };
        self.sim.host("panel", move || {
            let serve = panel::serve(shared.clone());
            async move { Ok(serve.await?) }
        });
        self.origin("one", Mood::Good);
        self.origin("two", Mood::Good);
        self.edge("edge", config, settings);
        Ok(())
    }

    /// Places of a user that are taken.
    pub fn places_of(&self, user: &str) -> usize {
        let Some(edge) = self.shared.edge("edge") else { return 0 };
        let server = edge.server.borrow();
        let Some(index) = USERS.iter().position(|own| *own == user) else { return 0 };
        let used = |place| server.edge().playback().used(UserId(index as u32), place) as usize;
        [Place::Normal, Place::Soft, Place::Grace].into_iter().map(used).sum()
    }

    /// Connections of the provider's accounts that are not closed, as the edge counts them, and as the provider does.
    pub fn accounts(&self) -> (u32, u32) {
        let Some(edge) = self.shared.edge("edge") else { return (0, 0) };
        let used = edge.server.borrow().edge().accounts().accounts().map(|account| account.used).sum();
        (used, self.shared.panel.borrow().open.values().sum())
    }

    pub fn viewers(&self) -> usize {
        self.shared.edge("edge").map_or(0, |edge| edge.server.borrow().edge().feeds().viewer_count())
    }

    /// Nothing is left of anybody.
    pub fn all_gone(&self) -> Result<(), Broken> {
        let Some(edge) = self.shared.edge("edge") else { return Ok(()) };
        let server = edge.server.borrow();
        let (publish, playback, accounts) =
            (server.edge().publish(), server.edge().playback(), server.edge().accounts());
        let left = (publish.session_count(), publish.unanswered(), publish.timer_count());
        shows!(left == (0, 0, 0), "sessions, POSTs and deadlines left: {left:?}");
        let left = (server.edge().feeds().viewer_count(), playback.playbacks().count(), playback.permits());
        shows!(left == (0, 0, 0), "viewers, playbacks and permits left: {left:?}");
        let left = (accounts.allocations().count(), accounts.leases().count(), accounts.waiting());
        shows!(left == (0, 0, 0), "connections, leases and wishes of accounts left: {left:?}");
        let left = (server.edge().pull().source_count(), server.connection_count());
        shows!(left == (0, 0), "sources and connections left: {left:?}");
        drop(server);
        let open = self.accounts();
        shows!(open == (0, 0), "connections to the provider, by the edge and in truth: {open:?}");
        Ok(())
    }
}

const COOLING: Duration = Duration::from_millis(20);
const CALM: Household = Household { places: 1, accounts: 1, idle: Duration::from_secs(10) };

fn shared_socket(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.household(&CALM)?;
    stage.peer("a", |peer: Rc<Peer>| async move {
        let post = peer.post().await?;
        peer.publish(&post, AUDIO_VIDEO, u64::MAX, WhenClosed::Stop).await.map(drop)
    });
    let ends = stage.about(20_000, 1_000);
    stage.peer("proxy", move |peer: Rc<Peer>| async move {
        peer.at(5_000).await;
        let addresses = [peer.address("anna", "live", "m3u8").await?, peer.address("ben", "live", "m3u8").await?];
        let mut players = ["anna", "ben"].map(|user| Player::new(&peer, user, Sockets::One));
        let mut kept = Kept::open().await?;
        while now_ms() < ends {
            for (player, address) in players.iter_mut().zip(&addresses) {
                let mut own = std::mem::replace(player, Player::new(&peer, "nobody", Sockets::One)).on(kept);
                let status = own.step(address).await?;
                peer.stream_answered(status);
                let Some(back) = own.lend() else { return Err(std::io::ErrorKind::NotConnected.into()) };
                (kept, *player) = (back, own);
            }
            sleep(Duration::from_millis(700)).await;
        }
        drop(kept);
        peer.say(format_args!("closes the socket of both"));
        Ok(())
    });
    stage.peer("other", move |peer: Rc<Peer>| async move {
        peer.at(15_000).await;
        let address = peer.address("anna", "ch", "ts").await?;
        peer.watch_path("edge", "anna", &address, None).await
    });
    stage.play(14_000)?;
    let both = (stage.places_of("anna"), stage.places_of("ben"), stage.viewers());
    shows!(both == (1, 1, 2), "places of Anna and Ben, and viewers: {both:?}");
    stage.play(ends + 1_000)?;
    let both = (stage.places_of("anna"), stage.places_of("ben"));
    shows!(both == (1, 1), "places a second after their socket was closed: {both:?}");
    stage.play(ends + 40_000)?;
    let both = (stage.places_of("anna"), stage.places_of("ben"), stage.viewers());
    shows!(both == (0, 0, 0), "places and viewers long after: {both:?}");
    let streams = stage.shared.streams.borrow().clone();
    let (other, proxy): (Vec<_>, Vec<_>) = streams.iter().partition(|(who, _)| *who == "other");
    shows!(matches!(other[..], [(_, 503)]), "Anna's second playback was answered {other:?}");
    let failed = proxy.iter().filter(|(_, status)| *status != 200).count();
    shows!(failed == 0, "{failed} of the proxy's steps failed");
    figures.add("steps", proxy.len() as u64);
    Ok(())
}

fn hls(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.publishing();
    stage.peer("a", |peer: Rc<Peer>| async move {
        let post = peer.post().await?;
        peer.publish(&post, AUDIO_VIDEO, u64::MAX, WhenClosed::Stop).await.map(drop)
    });
    let ends = stage.about(30_000, 1_000);
    for (name, sockets) in [("many", Sockets::Many), ("one", Sockets::One)] {
        stage.peer(name, move |peer: Rc<Peer>| async move {
            peer.at(1_000).await;
            let mut player = Player::new(&peer, "live", sockets);
            let status = player.play("/live/live/index.m3u8", ends).await?;
            peer.stream_answered(status);
            Ok(())
        });
    }
    stage.play(ends - 1_000)?;
    shows!(stage.viewers() == 2, "{} viewers", stage.viewers());
    stage.play(ends + 40_000)?;
    shows!(stage.viewers() == 0, "{} viewers long after", stage.viewers());
    for name in ["many", "one"] {
        let watch = stage.watch(name);
        shows!(watch.faults == 0, "{name} got {} packets that don't follow the ones before", watch.faults);
        shows!(watch.packets > 1_000, "{name} got {} packets", watch.packets);
        shows!(watch.sessions.len() == 1, "{name} saw {:?}", watch.sessions);
    }
    let streams = stage.shared.streams.borrow().clone();
    shows!(streams.iter().all(|(_, status)| *status == 200) && streams.len() == 2, "{streams:?}");
    figures.add("packets", stage.watch("many").packets);
    Ok(())
}

fn zap(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.household(&Household { places: 0, ..CALM })?;
    let first = stage.about(3_000, 1_000);
    let ends = first + 30_000;
    stage.peer("anna", move |peer: Rc<Peer>| async move {
        peer.at(first).await;
        for turn in 0.. {
            let left = ends.saturating_sub(now_ms());
            if left == 0 {
                return Ok(());
            }
            let address = peer.address("anna", &panel::name(turn % panel::STREAMS), "ts").await?;
            // She leaves one and asks for the next in the same millisecond.
            let watched = peer.watch_path("edge", "anna", &address, None);
            let _ = timeout(Duration::from_millis(left.min(2_500)), watched).await;
        }
        Ok(())
    });
    stage.peer("ben", move |peer: Rc<Peer>| async move {
        peer.at(first + 1_000).await;
        while now_ms() < ends {
            let address = peer.address("ben", &panel::name(5), "ts").await?;
            let _ = timeout(Duration::from_millis(300), peer.watch_path("edge", "ben", &address, None)).await;
            sleep(Duration::from_millis(1_700)).await;
        }
        Ok(())
    });
    let mut most = (0, 0);
    for at in (first..ends).step_by(50) {
        stage.play(at)?;
        let now = stage.accounts();
        most = (most.0.max(now.0), most.1.max(now.1));
    }
    stage.play(ends + 40_000)?;
    let panel = stage.shared.panel.borrow();
    shows!(most.0 <= 1 && panel.refused == 0, "{most:?} connections at once, {} refused", panel.refused);
    let streams = stage.shared.streams.borrow().clone();
    let of = |who: &str, wanted: u16| streams.iter().filter(|(own, status)| *own == who && *status == wanted).count();
    shows!(of("anna", 200) >= 10, "Anna was served {} times: {streams:?}", of("anna", 200));
    shows!(
        of("anna", 200) == streams.iter().filter(|(own, _)| *own == "anna").count(),
        "Anna was refused: {streams:?}"
    );
    let watch = stage.watch("anna");
    shows!(watch.faults == 0, "Anna got {} packets that don't follow the ones before", watch.faults);
    figures.add("served", of("anna", 200) as u64);
    figures.add("others_refused", of("ben", 503) as u64);
    figures.add("opens", panel.opens);
    drop(panel);
    stage.all_gone()
}

fn drain_all(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.household(&CALM)?;
    let dies = stage.about(20_000, 1_000);
    let ends = stage.about(dies + 200, 1_500);
    stage.peer("a", |peer: Rc<Peer>| async move {
        let post = peer.post().await?;
        peer.publish(&post, AUDIO_VIDEO, u64::MAX, WhenClosed::Stop).await.map(drop)
    });
    for (host, user, stream) in [("anna", "anna", "ch"), ("ben", "ben", "S1")] {
        stage.peer(host, move |peer: Rc<Peer>| async move {
            peer.at(4_000).await;
            let address = peer.address(user, stream, "ts").await?;
            peer.watch_path("edge", user, &address, None).await
        });
    }
    stage.peer("carl", |peer: Rc<Peer>| async move {
        peer.at(4_000).await;
        let address = peer.address("carl", "live", "m3u8").await?;
        let mut player = Player::new(&peer, "carl", Sockets::Many);
        let status = player.play(&address, u64::MAX).await?;
        peer.stream_answered(status);
        Ok(())
    });
    // A's packets are lost, but it hears that the edge goes; B waits for A's slot.
    stage.at(dies, |sim, _| sim.partition_oneway("a", "edge"));
    stage.peer("b", move |peer: Rc<Peer>| async move {
        peer.at(dies).await;
        spawn_local(async move { peer.post().await });
        Ok(())
    });
    stage.play(ends)?;
    let before = (USERS.map(|user| stage.places_of(user)), stage.accounts(), stage.left().0, stage.left().1);
    shows!(before == ([1; 3], (1, 1), 1, 1), "places, accounts, sessions and waiting POSTs before: {before:?}");
    stage.at(ends, |_, shared| shared.drain.notify_one());
    stage.play(ends + 5_000)?;
    let held = stage.posts("b");
    let so = matches!(&held[..], [post] if post.status == 503 && post.reason == "draining");
    shows!(so, "B was told {held:?}");
    shows!(stage.ended(EndReason::Shutdown) == 1, "{} sessions ended by the end", stage.ended(EndReason::Shutdown));
    for viewer in ["anna", "ben"] {
        let watch = stage.watch(viewer);
        shows!(watch.ended.is_some() && watch.faults == 0, "the stream of {viewer} did not end well: {watch:?}");
    }
    shows!(stage.watch("carl").faults == 0, "Carl's stream broke");
    let drained = stage.shared.edge("edge").is_some_and(|edge| edge.server.borrow().is_drained());
    shows!(drained, "not everything has ended");
    stage.all_gone()?;
    figures.add("viewer_ended_after_ms", stage.watch("anna").ended.unwrap_or(ends).saturating_sub(ends));
    Ok(())
}
