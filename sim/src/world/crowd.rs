//! A calm crowd of any size: publishers that come and go, each at an endpoint of its own, and viewers. For measuring.

use std::time::Duration;

use holdfast_core::config::{Config, Endpoint, Live};
use holdfast_core::input::FeedId;
use holdfast_core::journal::Recorded;
use holdfast_core::time::Time;

use super::chance::{Plan, span};
use super::oracle::Broken;
use super::{World, generator};
use crate::{Failure, Figures, Report};

/// How many calls one actor may lead to within a second, if all act at once.
const CALLS_OF_AN_ACTOR: u64 = 50;

/// Whether the calls of the core are written down, and replayed at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// They are.
    Kept,
    /// They are not; the report has no hash.
    None,
}

/// Who is there, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// Publishers, each at an endpoint of its own.
    pub publishers: u32,
    /// Viewers, spread over these.
    pub viewers: u32,
    /// How long it goes on, in simulated time.
    pub lasts: Duration,
    /// Whether its calls are written down.
    pub journal: Journal,
}

impl Crowd {
    /// Lets it live. Everything that is judged elsewhere is judged here.
    ///
    /// # Errors
    /// The invariant that does not hold.
    pub fn run(self, seed: u64) -> Result<Report, Failure> {
        self.live(seed).map_err(|(at, Broken { id, what })| Failure::Broken {
            scenario: "crowd",
            seed,
            options: Box::default(),
            at,
            id,
            what,
        })
    }

    fn live(self, seed: u64) -> Result<Report, (Time, Broken)> {
        let mut dice = generator(seed, 0);
        let endpoint = |index: u32| Endpoint { name: format!("e{index}"), ..Endpoint::default() };
        let live = Live { buffer: 16_384, ..Live::default() };
        let config = Config { endpoints: (0..self.publishers).map(endpoint).collect(), live, ..Config::default() };
        let mut world = World::new(config.clone(), seed, Plan::calm(), None);
        if self.journal == Journal::None {
            *world.edge = Recorded::off(config);
        }
        let actors = u64::from(self.publishers + self.viewers);
        world.most_a_second = world.most_a_second.max(actors * CALLS_OF_AN_ACTOR);
        // As often for each actor, however many there are.
        world.judge_all = world.judge_all.max(actors * 10);
        for endpoint in 0..self.publishers {
            world.add_publisher(endpoint as usize, span(&mut dice, 0, 3_000));
        }
        let feeds: Vec<FeedId> = world.truth.feeds.keys().copied().collect();
        for viewer in 0..self.viewers {
            world.add_viewer(feeds[viewer as usize % feeds.len()], span(&mut dice, 0, 3_000));
        }
        let lived = world.run(Time::ZERO + self.lasts);
        let now = world.now;
        lived.and_then(|()| world.close(Figures::default())).map_err(|broken| (now, broken))
    }
}
