//! A network in which everybody and every fault is drawn from the seed; then peace, and nobody may be counted who is not there.

use std::rc::Rc;
use std::time::Duration;

use holdfast_core::input::EndReason;
use rand::Rng;
use tokio::time::{sleep, timeout};

use super::household::{Household, USERS};
use super::origin::Mood;
use super::panel;
use super::peer::{PUBLISHERS, Peer, Sends, WhenClosed};
use super::player::{Player, Sockets};
use super::{Broken, Stage, now_ms, play};
use crate::world::oracle::shows;
use crate::{Figures, Scenario};

/// The network drawn from the seed.
pub(crate) const SCENARIOS: &[Scenario] = &[Scenario {
    name: "net-random",
    shows: "whatever the network does, in peace those are counted who are there, and at the end nobody",
    play: |seed, trace| play(random, seed, trace),
}];

/// Until when things go wrong.
const STORM: u64 = 25_000;
/// Until when everybody comes to rest who was hurt.
const CALM: u64 = STORM + 35_000;
/// Until when everybody is there who will be.
const THERE: u64 = CALM + 10_000;
/// Until when the last is gone.
const GONE: u64 = THERE + 45_000;

const PUBLISHING: [&str; 3] = ["p1", "p2", "p3"];
const WATCHING: [&str; 4] = ["v1", "v2", "v3", "v4"];

fn random(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let accounts = stage.dice.random_range(1..=2);
    let places = stage.dice.random_range(0..=2);
    stage.household(&Household { places, accounts, idle: Duration::from_secs(10) })?;
    PUBLISHING.into_iter().for_each(|name| stage.comes_and_goes(name));
    WATCHING.into_iter().for_each(|name| stage.watches(name));
    let faults = stage.draw_faults();
    stage.play(STORM)?;
    stage.heal();
    stage.play(THERE)?;
    stage.those_there()?;
    let present: usize = stage.shared.present.borrow().values().sum();
    stage.play(GONE)?;
    let left = stage.shared.present.borrow().clone();
    shows!(left.values().all(|count| *count == 0), "in truth there are still {left:?}");
    stage.all_gone()?;
    let watched = WATCHING.map(|name| stage.watch(name));
    let torn: u64 = watched.iter().map(|watch| watch.faults).sum();
    shows!(torn == 0, "{torn} packets don't follow the ones before");
    // A provider that hears late of the end of a connection counts it for longer than the edge does.
    let refused = stage.shared.panel.borrow().refused;
    shows!(refused == 0 || faults.panel_held, "the provider refused {refused}");
    figures.add("faults", faults.count);
    figures.add("refused", refused);
    figures.add("posts", stage.shared.posts.borrow().len() as u64);
    figures.add("displaced", stage.ended(EndReason::Displaced));
    figures.add("streams", stage.shared.streams.borrow().len() as u64);
    figures.add("begun", watched.iter().map(|watch| watch.begun).sum());
    figures.add("there", present as u64);
    Ok(())
}

/// What was drawn.
struct Faults {
    count: u64,
    panel_held: bool,
}

impl Stage {
    /// A publisher that comes again and again, and leaves in every way; once it is calm the first of them stays.
    fn comes_and_goes(&mut self, name: &'static str) {
        self.peer(name, move |peer: Rc<Peer>| async move {
            while now_ms() < STORM {
                sleep(Duration::from_millis(peer.between(0, 4_000))).await;
                let Ok(post) = peer.post().await else { continue };
                if post.status != 201 {
                    continue;
                }
                let audio = if peer.between(0, 3) == 0 { 0 } else { 20 };
                let sends = Sends { audio, video: 40, control: 1000 };
                let until = now_ms() + peer.between(500, 12_000);
                let (closed, deletes) = match peer.between(0, 2) {
                    0 => (WhenClosed::Ignore, true),
                    1 => (WhenClosed::Ignore, false),
                    _ => (WhenClosed::Stop, false),
                };
                let _ = peer.publish(&post, sends, until.min(STORM), closed).await;
                if deletes {
                    let _ = peer.delete(&post).await;
                }
            }
            if name != PUBLISHING[0] {
                return Ok(());
            }
            peer.at(CALM).await;
            let post = peer.post().await?;
            let sends = Sends { audio: 20, video: 40, control: 1000 };
            peer.publish(&post, sends, THERE + 1_000, WhenClosed::Stop).await.map(drop)
        });
    }

    /// A viewer that zaps, stops reading, polls; once it is calm it watches one thing as one user.
    fn watches(&mut self, name: &'static str) {
        let own = WATCHING.iter().position(|other| *other == name).unwrap_or(0);
        self.peer(name, move |peer: Rc<Peer>| async move {
            while now_ms() < STORM {
                sleep(Duration::from_millis(peer.between(0, 2_000))).await;
                let user = USERS[peer.between(0, 2) as usize];
                let stream = match peer.between(0, 3) {
                    0 => String::from("live"),
                    1 => String::from("ch"),
                    _ => panel::name(peer.between(0, u64::from(panel::STREAMS) - 1) as u32),
                };
                let lasts = Duration::from_millis(peer.between(100, 8_000).min(STORM.saturating_sub(now_ms()) + 1));
                let stops = (peer.between(0, 4) == 0).then(|| now_ms() + peer.between(0, 3_000));
                let watched = async {
                    if peer.between(0, 3) > 0 {
                        let address = peer.address(user, &stream, "ts").await?;
                        return peer.watch_path("edge", user, &address, stops).await;
                    }
                    let sockets = if peer.between(0, 1) == 0 { Sockets::One } else { Sockets::Many };
                    let address = peer.address(user, &stream, "m3u8").await?;
                    let status = Player::new(&peer, user, sockets).play(&address, u64::MAX).await?;
                    peer.stream_answered(status);
                    Ok(())
                };
                // Whoever goes on asking after it was refused waits a moment.
                let _ = timeout(lasts, watched).await;
            }
            peer.let_go();
            peer.at(CALM + 2_000).await;
            // One watches the publisher, one the channel, one the provider; the last polls as nobody does else.
            let (user, stream) = [("anna", "live"), ("ben", "ch"), ("carl", "S1"), ("", "")][own];
            if user.is_empty() {
                return Ok(());
            }
            let address = peer.address(user, stream, "ts").await?;
            let watched = peer.watch_path("edge", user, &address, None);
            let _ = timeout(Duration::from_millis(THERE + 1_000 - now_ms()), watched).await;
            Ok(())
        });
    }

    /// What goes wrong until the storm is over.
    fn draw_faults(&mut self) -> Faults {
        let hosts = [PUBLISHING.as_slice(), WATCHING.as_slice()].concat();
        let count = self.dice.random_range(4..=12);
        let mut panel_held = false;
        for _ in 0..count {
            let at = self.dice.random_range(2_000..STORM - 4_000);
            let back = at + self.dice.random_range(200..4_000);
            let host = hosts[self.dice.random_range(0..hosts.len())];
            let origin = ["one", "two", "panel"][self.dice.random_range(0..3)];
            match self.dice.random_range(0..6) {
                // A silent end, and one whose FIN comes late; the same host comes back.
                0 | 1 => {
                    self.at(at, move |sim, _| {
                        sim.partition(host, "edge");
                        sim.crash(host);
                    });
                    self.at(back, move |sim, _| {
                        sim.repair(host, "edge");
                        sim.bounce(host);
                    });
                }
                2 => {
                    self.at(at, move |sim, _| {
                        sim.hold(host, "edge");
                        sim.crash(host);
                    });
                    self.at(back, move |sim, _| {
                        sim.release(host, "edge");
                        sim.bounce(host);
                    });
                }
                // What a network survives.
                3 => {
                    let between = if self.dice.random_bool(0.5) { host } else { origin };
                    panel_held |= between == "panel";
                    self.at(at, move |sim, _| sim.hold(between, "edge"));
                    self.at(back, move |sim, _| sim.release(between, "edge"));
                }
                4 => {
                    self.at(at, |_, shared| shared.panel.borrow_mut().silent = true);
                    self.at(back, |_, shared| shared.panel.borrow_mut().silent = false);
                }
                _ => {
                    let origin = ["one", "two"][self.dice.random_range(0..2)];
                    let moods = [Mood::Silent, Mood::Dripping, Mood::ClosesAtPlay, Mood::ResetsAtPlay];
                    let mood = moods[self.dice.random_range(0..moods.len())];
                    self.mood_at(at, origin, mood);
                    self.mood_at(back, origin, Mood::Good);
                }
            }
        }
        Faults { count, panel_held }
    }

    fn heal(&mut self) {
        for host in [PUBLISHING.as_slice(), WATCHING.as_slice(), &["one", "two", "panel"]].concat() {
            self.sim.release(host, "edge");
        }
        self.shared.panel.borrow_mut().silent = false;
        self.shared.origins.borrow_mut().values_mut().for_each(|origin| origin.mood = Mood::Good);
    }

    /// What the edge counts is what there is.
    fn those_there(&self) -> Result<(), Broken> {
        let sessions = (self.left().0, self.shared.present(PUBLISHERS));
        shows!(sessions == (1, 1), "sessions, by the edge and in truth: {sessions:?}");
        shows!(self.left().1 == 0, "{} POSTs wait", self.left().1);
        for user in USERS {
            let places = (self.places_of(user), self.shared.present(user));
            shows!(places == (1, 1), "places of {user}, by the edge and in truth: {places:?}");
        }
        shows!(self.viewers() == USERS.len(), "{} viewers", self.viewers());
        let accounts = self.accounts();
        shows!(accounts == (1, 1), "connections to the provider, by the edge and in truth: {accounts:?}");
        for name in &WATCHING[..USERS.len()] {
            let late = self.elapsed - self.watch(name).last;
            shows!(late < 1_000, "{name} has seen nothing for {late} ms");
        }
        Ok(())
    }
}
