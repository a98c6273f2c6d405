//! The cases people reported of playing, on the bare core: each a script, what it must show, and what it measured.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use holdfast_core::config::{Account, Channel, Config, Endpoint, Live, Playback, Provider, Strategy, User};
use holdfast_core::input::{Client, FeedId, Input, RefuseReason, RequestId, UserId, ViewerEnd, ViewerId, Viewing};
use holdfast_core::playback::{Item, Place};
use holdfast_core::time::Time;
use rand::Rng;

use super::super::World;
use super::super::chance::Plan;
use super::super::oracle::{Broken, shows};
use super::super::truth::Truth;
use super::truth::Stage;
use crate::{Figures, Report, Scenario};

macro_rules! script {
    ($id:literal, $strategies:expr, $script:ident, $shows:literal) => {
        Scenario { name: $id, shows: $shows, play: |seed, trace| play(&$strategies, |_| (), $script, seed, trace) }
    };
    ($id:literal, $strategies:expr, $change:expr, $script:ident, $shows:literal) => {
        Scenario { name: $id, shows: $shows, play: |seed, trace| play(&$strategies, $change, $script, seed, trace) }
    };
}

/// Every scenario of users.
pub(crate) const SCENARIOS: &[Scenario] = &[
    script!("v02-limit", [], v2, "two channels by one user with one place: the user's limit is the answer, at once"),
    script!("v03-refused", [Strategy::GraceHold], v3, "two players, one place: the second is refused after its grace"),
    script!("v05-block", [], v5, "kicked with a block of 10 s, it asks each second: refused for 10 s, then let in"),
    script!("v08-two-users", [], v8, "user A, then B, by one player: A's end leaves B untouched"),
    script!("v09-crowd", [], many_places, v9, "100 joins and leaves of one channel: one connection, and none is left"),
    script!(
        "v11-pause",
        [Strategy::EvictOldest],
        v11,
        "a poller pauses for 16 s, then asks 5 times at once: nobody is evicted"
    ),
    script!(
        "v12-replace",
        [Strategy::GraceHold],
        v12,
        "30 requests, each closes the one before: never more than one counts"
    ),
    script!(
        "v15-aborts",
        [Strategy::GraceHold],
        few_places,
        v15,
        "200 random aborts: at each quiet moment nothing is left"
    ),
    script!(
        "v17-zap",
        [Strategy::GraceHold],
        v17,
        "close A, open B at once, 20 times: each is let in within its grace"
    ),
    script!("v18-shared", [], two_users, v18, "one channel by two users: one connection to its origin"),
    script!("v19-four-at-once", [], v19, "four equal requests within 30 ms: one decision, four equal answers"),
    script!(
        "evening",
        [Strategy::GraceHold],
        evening_config,
        evening,
        "1000 viewers of 400 users, of channels and of titles of 10 providers, for 8 h: nothing is left"
    ),
];

/// How many users of an evening watch channels; as many play titles.
const FEED_USERS: usize = 200;
/// How many viewers of each there are.
const EACH: usize = 500;

type Script = fn(&mut World<'_>, &mut Figures) -> Result<(), Broken>;

fn play(
    strategies: &[Strategy],
    change: fn(&mut Config),
    script: Script,
    seed: u64,
    trace: Option<&mut dyn Write>,
) -> Result<Report, (Time, Broken)> {
    let endpoints = ["one", "two", "three"].map(|name| Endpoint { name: name.into(), ..Endpoint::default() });
    let one = User { max_connections: 1, ..User::default() };
    let mut config = Config {
        endpoints: endpoints.into(),
        channels: vec![Channel { idle_timeout: Duration::from_secs(3), ..Channel::default() }],
        live: Live {
            idle: Duration::from_secs(3600),
            progress_timeout: Duration::from_secs(24 * 3600),
            ..Live::default()
        },
        users: vec![one.clone(), User { name: "other".into(), ..one }],
        playback: Playback { strategies: strategies.to_vec(), ..Playback::default() },
        providers: Vec::new(),
    };
    change(&mut config);
    // Where there are providers, all but the first of the users play their titles.
    let first = if config.providers.is_empty() { config.users.len() } else { FEED_USERS };
    let mut world = World::with_titles(config, first, seed, Plan::calm(), trace);
    let mut figures = Figures::default();
    let played = script(&mut world, &mut figures);
    let now = world.now;
    played.and_then(|()| world.close(figures)).map_err(|broken| (now, broken))
}

fn many_places(config: &mut Config) {
    config.users[0].max_connections = 0;
}

fn few_places(config: &mut Config) {
    config.users[0].max_connections = 3;
    config.users[0].soft_connections = 1;
    config.playback.cleanup_capacity = 6;
}

fn two_users(config: &mut Config) {
    config.users[0].max_connections = 1;
}

/// Channels that send a little each few seconds, for viewers by the hundred that are not read for.
fn evening_config(config: &mut Config) {
    let channel = |index| Channel {
        name: format!("c{index}"),
        no_input_timeout: Duration::from_secs(60),
        retry_backoff_max: Duration::from_secs(60),
        idle_timeout: Duration::from_secs(60),
        start_timeout: Duration::from_secs(40),
        ..Channel::default()
    };
    config.channels = (0..20).map(channel).collect();
    config.live.idle = Duration::from_secs(9 * 3600);
    let user = |index: u32| User { name: format!("u{index}"), max_connections: 1 + index % 3, ..User::default() };
    config.users = (0..2 * FEED_USERS as u32).map(user).collect();
    // Players do something each minute or so, and what is kept for them is kept accordingly.
    config.playback.hls_session_ttl = Duration::from_secs(300);
    config.playback.catchup_session_ttl = Duration::from_secs(600);
    let account = |limit| Account { max_connections: limit, ..Account::default() };
    let live = config.channels[0].clone();
    let provider = |index: u32| Provider {
        name: format!("p{index}"),
        accounts: vec![account(1), account(2), account(2 + index % 4)],
        live: live.clone(),
        ..Provider::default()
    };
    config.providers = (0..10).map(provider).collect();
}

impl World<'_> {
    fn slot(&self, endpoint: u32) -> Result<FeedId, Broken> {
        let none = || Broken { id: "script", what: format!("there is no endpoint {endpoint}") };
        self.edge.edge().feed_of(holdfast_core::input::EndpointId(endpoint), 0).ok_or_else(none)
    }

    fn ask_ts(&mut self, user: u32, feed: FeedId, address: u8) -> Result<RequestId, Broken> {
        let client = Client { address: IpAddr::from([10, 0, 0, address]), agent: 0 };
        self.ask_to_play(Viewing { user: UserId(user), item: Item::LiveTs(feed), client })
    }

    fn plays_ts(&mut self, user: u32, feed: FeedId, address: u8) -> Result<ViewerId, Broken> {
        let request = self.ask_ts(user, feed, address)?;
        self.seen(request)
    }

    fn seen(&self, request: RequestId) -> Result<ViewerId, Broken> {
        match self.let_in(request) {
            Some(viewer) => Ok(viewer),
            None => Err(Broken {
                id: "script",
                what: format!("{request:?} should play: {:?}", self.truth.users.plays.get(&request)),
            }),
        }
    }

    /// How many ms after it asked somebody was refused for this reason.
    fn denied(&self, request: RequestId, reason: RefuseReason) -> Result<u64, Broken> {
        let asked = self.truth.users.plays[&request].asked;
        match self.truth.answers.get(&request) {
            Some((Err(answer), at)) if *answer == reason => Ok(at.since(asked).as_millis() as u64),
            answer => Err(Broken { id: "script", what: format!("{request:?} should be refused: {answer:?}") }),
        }
    }

    fn close_player(&mut self, viewer: ViewerId) -> Result<(), Broken> {
        self.call(Input::Leave { viewer })
    }

    fn end_of_viewer(&self, viewer: ViewerId) -> Option<ViewerEnd> {
        self.truth.viewers.get(&viewer).and_then(|row| row.ended)
    }

    /// Nothing is left of any playback.
    fn nobody_plays(&self) -> Result<(), Broken> {
        self.bench().play_all(self.edge.edge())?;
        self.bench().play_rest(self.edge.edge())
    }
}

fn counted(truth: &Truth, user: u32) -> u32 {
    [Place::Normal, Place::Soft, Place::Grace].map(|place| truth.users.used(user as usize, place)).iter().sum()
}

fn v2(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let channel = world.feed(0);
    let first = world.ask_ts(0, channel, 1)?;
    world.while_away(5_000)?;
    let second = world.ask_ts(0, world.slot(0)?, 1)?;
    let took = world.denied(second, RefuseReason::UserLimit)?;
    world.wait(5_000)?;
    let viewer = world.seen(first)?;
    world.close_player(viewer)?;
    figures.add("refused_after_ms", took);
    world.nobody_plays()
}

fn v3(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let first = world.plays_ts(0, world.slot(0)?, 1)?;
    world.while_away(5_000)?;
    let second = world.ask_ts(0, world.slot(1)?, 2)?;
    world.wait(5_000)?;
    let took = world.denied(second, RefuseReason::UserLimit)?;
    shows!(took == 2_000, "it is refused after {took} ms");
    shows!(world.end_of_viewer(first).is_none(), "the first ended");
    figures.add("refused_after_ms", took);
    Ok(())
}

fn v5(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let feed = world.slot(0)?;
    let first = world.ask_ts(0, feed, 1)?;
    world.while_away(5_000)?;
    let Some(playback) = world.truth.users.name_of(first) else {
        return Err(Broken { id: "script", what: "it has no name".into() });
    };
    world.call(Input::Kick { playback, block: 10_000_000 })?;
    let other = world.plays_ts(0, feed, 2)?;
    world.close_player(other)?;
    let mut refused = 0;
    for _ in 0..9 {
        world.wait(1_000)?;
        let again = world.ask_ts(0, feed, 1)?;
        world.denied(again, RefuseReason::Kicked)?;
        refused += 1;
    }
    world.wait(1_000)?;
    let viewer = world.plays_ts(0, feed, 1)?;
    world.close_player(viewer)?;
    figures.add("refused", refused);
    world.nobody_plays()
}

fn v8(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let feed = world.slot(0)?;
    let (a, b) = (world.plays_ts(0, feed, 1)?, world.plays_ts(1, feed, 1)?);
    world.while_away(5_000)?;
    world.close_player(a)?;
    let used = (counted(&world.truth, 0), counted(&world.truth, 1));
    shows!(used == (0, 1) && world.end_of_viewer(b).is_none(), "A and B count {used:?}");
    world.close_player(b)?;
    figures.add("a", 0);
    figures.add("b", 1);
    world.nobody_plays()
}

fn v9(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let channel = world.feed(0);
    let requests = (0..100).map(|index| world.ask_ts(0, channel, index)).collect::<Result<Vec<_>, _>>()?;
    world.while_away(2_000)?;
    for request in requests {
        match world.let_in(request) {
            Some(viewer) => world.close_player(viewer)?,
            None => world.call(Input::Hangup { request })?,
        }
    }
    let opens = world.opens(0);
    shows!(opens <= 1, "{opens} connections for one channel");
    world.wait(5_000)?;
    let open = world.truth.channels[0].open.len() as u64;
    shows!(open == 0, "{open} connections are left");
    figures.add("opens", opens);
    figures.add("left", open);
    world.nobody_plays()
}

fn v11(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let feed = world.slot(0)?;
    let client = Client { address: IpAddr::from([10, 0, 0, 1]), agent: 0 };
    let viewing = Viewing { user: UserId(0), item: Item::LiveHls(feed), client };
    let mut token = None;
    let mut evicted = 0;
    for round in 0..3 {
        let request = world.ask_to_play(viewing)?;
        let viewer = world.seen(request)?;
        let request = world.request(None);
        world.call(Input::Poll { request, viewer, token })?;
        let known = world.edge.edge().feeds().playlist(viewer).map(|(token, _)| token);
        shows!(known.is_some() && (round == 0 || known == token), "it is known by {known:?}, not by {token:?}");
        token = known;
        for _ in 0..5 {
            world.call(Input::Polled { viewer, bytes: 188 })?;
        }
        world.wait(16_000)?;
        let end = world.end_of_viewer(viewer);
        shows!(end == Some(ViewerEnd::Left), "who asks for nothing for 16 s is {end:?}");
        evicted += u64::from(end == Some(ViewerEnd::Evicted));
    }
    figures.add("evicted", evicted);
    world.nobody_plays()
}

fn v12(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let feed = world.slot(0)?;
    let (mut current, mut most) = (world.plays_ts(0, feed, 1)?, 0);
    for _ in 0..30 {
        let next = world.ask_ts(0, feed, 1)?;
        most = most.max(counted(&world.truth, 0));
        world.while_away(100)?;
        world.close_player(current)?;
        current = world.seen(next)?;
        most = most.max(counted(&world.truth, 0));
    }
    world.close_player(current)?;
    shows!(most == 1, "{most} counted at once");
    figures.add("most", most.into());
    world.nobody_plays()
}

fn v15(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let feeds = [world.feed(0), world.slot(0)?, world.slot(1)?];
    let mut requests = Vec::new();
    for round in 1..=200 {
        let feed = feeds[world.dice.random_range(0..feeds.len())];
        let address = world.dice.random_range(1..=3);
        let user = world.dice.random_range(0..2);
        requests.push(world.ask_ts(user, feed, address)?);
        world.while_away(300)?;
        if world.dice.random_bool(0.8) {
            let request = requests.swap_remove(world.dice.random_range(0..requests.len()));
            world.abort(request)?;
        }
        if round % 20 == 0 {
            for request in std::mem::take(&mut requests) {
                world.abort(request)?;
            }
            world.nobody_plays()?;
        }
    }
    world.wait(5_000)?;
    let open = world.truth.channels[0].open.len() as u64;
    shows!(open == 0, "{open} connections are left");
    figures.add("left", open);
    Ok(())
}

impl World<'_> {
    fn abort(&mut self, request: RequestId) -> Result<(), Broken> {
        match self.truth.users.plays[&request].stage {
            Stage::Over => Ok(()),
            Stage::Seen(viewer) => self.close_player(viewer),
            _ => self.call(Input::Hangup { request }),
        }
    }
}

fn v17(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let mut current = world.plays_ts(0, world.slot(0)?, 1)?;
    let mut slowest = 0;
    for round in 0..20 {
        let asked = world.now;
        let next = world.ask_ts(0, world.slot(round % 3)?, 1)?;
        world.while_away(1_000)?;
        world.close_player(current)?;
        current = world.seen(next)?;
        slowest = slowest.max(world.now.since(asked).as_millis() as u64);
        world.while_away(200)?;
    }
    world.close_player(current)?;
    figures.add("slowest_ms", slowest);
    world.nobody_plays()
}

fn v18(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let channel = world.feed(0);
    let a = world.ask_ts(0, channel, 1)?;
    world.while_away(5_000)?;
    let b = world.ask_ts(1, channel, 2)?;
    world.wait(5_000)?;
    let (a, b) = (world.seen(a)?, world.seen(b)?);
    shows!(world.opens(0) == 1, "{} connections for one channel", world.opens(0));
    world.close_player(a)?;
    world.close_player(b)?;
    figures.add("opens", world.opens(0));
    world.nobody_plays()
}

fn v19(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let first = world.plays_ts(0, world.slot(0)?, 1)?;
    world.while_away(1_000)?;
    let channel = world.feed(0);
    let mut told = 0;
    for _ in 0..4 {
        let request = world.ask_ts(0, channel, 1)?;
        world.denied(request, RefuseReason::UserLimit)?;
        told += u64::from(world.truth.users.was_told(world.now));
        world.while_away(10)?;
    }
    shows!(told == 1 && world.opens(0) == 0, "{told} decisions, {} connections", world.opens(0));
    world.close_player(first)?;
    let request = world.ask_ts(0, channel, 1)?;
    world.wait(5_000)?;
    let viewer = world.seen(request)?;
    world.close_player(viewer)?;
    figures.add("decisions", told);
    world.nobody_plays()
}

fn evening(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    for origins in &mut world.origins {
        for origin in origins {
            (origin.every, origin.group) = (Duration::from_secs(10), Duration::from_secs(10));
        }
    }
    world.note_arrivals();
    world.invite(EACH);
    let (mut watching, mut refused): (Vec<Option<RequestId>>, u64) = (vec![None; EACH], 0);
    let until = world.now + Duration::from_secs(8 * 3600);
    let mut asked = 0;
    while world.now < until {
        let index = world.dice.random_range(0..watching.len());
        match watching[index].take() {
            Some(request) => {
                refused += u64::from(matches!(world.truth.answers.get(&request), Some((Err(_), _))));
                world.abort(request)?;
            }
            None => {
                let channel = world.dice.random_range(0..20);
                let feed = world.feed(channel);
                watching[index] = Some(world.ask_ts((index % FEED_USERS) as u32, feed, (index % 250) as u8)?);
                asked += 1;
            }
        }
        world.while_away(4_000)?;
    }
    for request in watching.into_iter().flatten() {
        world.abort(request)?;
    }
    world.everybody_stops()?;
    let titles = &world.truth.titles;
    let connections: usize = titles.accounts.iter().map(|account| account.open.len()).sum();
    let left = world.truth.users.alive
        + world.truth.watching
        + titles.open.len()
        + titles.watching()
        + connections
        + world.counts.iter().map(|count| count.open as usize).sum::<usize>()
        + world.truth.channels.iter().map(|row| row.open.len()).sum::<usize>();
    world.bench().channels_rest(world.edge.edge())?;
    figures.add("asked", asked);
    figures.add("refused", refused);
    figures.add("titles", world.truth.titles.asked_so_far());
    figures.add("granted", world.truth.titles.accounts.iter().map(|account| account.grants).sum());
    figures.add("left", left as u64);
    shows!(left == 0, "{left} are left");
    world.bench().titles_rest(world.edge.edge())?;
    world.nobody_plays()
}
