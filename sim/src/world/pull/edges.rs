//! Several edges at one origin: what it sees of all of them together.

use std::io::Write;
use std::time::Duration;

use holdfast_core::config::{self, Config, Live};
use holdfast_core::journal::Digest;
use holdfast_core::time::Time;

use super::super::chance::Plan;
use super::super::oracle::{Broken, shows};
use super::super::{Witness, World};
use super::origin::Mood;
use crate::{Figures, Report, Scenario};

/// Every scenario of several edges.
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "silent-origin-3-edges",
        shows: "an origin falls silent for 20 s: at most 9 opens of 3 edges, at most 6 a minute of each for long, and it is back in 100 ms",
        play: |seed, trace| play(Cadence::Growing, seed, trace),
    },
    Scenario {
        name: "silent-origin-3-edges-fixed",
        shows: "the same where each pause is as long as the first: what growing pauses save",
        play: |seed, trace| play(Cadence::Fixed, seed, trace),
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cadence {
    Growing,
    Fixed,
}

/// What the origin sees of one edge.
struct Seen {
    /// Opens in 20 s of silence.
    opens: u64,
    /// How long after the origin sends again media comes, in ms.
    back: u64,
    /// Opens in each minute of an endless silence, at most.
    a_minute: u64,
}

const EDGES: u64 = 3;

fn play(cadence: Cadence, seed: u64, mut trace: Option<&mut dyn Write>) -> Result<Report, (Time, Broken)> {
    let mut channel = config::Channel::default();
    if cadence == Cadence::Fixed {
        channel.retry_backoff_max = channel.no_input_timeout;
    }
    // Viewers that wait as long as it takes.
    let hour = Duration::from_secs(3600);
    let live = Live { idle: hour, progress_timeout: hour, ..Live::default() };
    let config = Config { channels: vec![channel], live, ..Config::default() };
    let mut digest = Digest::default();
    let (mut events, mut simulated, mut witness) = (0, Duration::ZERO, Witness::default());
    let (mut opens, mut back, mut a_minute) = (0, 0, 0);
    // The origin does the same to all of them, and what it does depends on none: they may come one after the other.
    for edge in 0..EDGES {
        let seed = seed.wrapping_mul(EDGES).wrapping_add(edge);
        let trace = trace.as_mut().map(|trace| &mut **trace as &mut dyn Write);
        let mut world = World::new(config.clone(), seed, Plan::calm(), trace);
        let seen = silence(&mut world);
        let now = world.now;
        let report = seen.and_then(|seen| {
            opens += seen.opens;
            back = seen.back.max(back);
            a_minute = seen.a_minute.max(a_minute);
            world.close(Figures::default())
        });
        let report = report.map_err(|broken| (now, broken))?;
        digest.update(&report.hash.to_le_bytes());
        (events, simulated) = (events + report.events, simulated + report.simulated);
        witness.merge(&report.witness);
    }
    let judged = || {
        shows!(back < 100, "media comes {back} ms after the origin sends again");
        if cadence == Cadence::Growing {
            shows!(opens <= 9, "{opens} opens of {EDGES} edges in 20 s of silence");
            shows!(a_minute <= 6, "{a_minute} opens of one edge within a minute");
        }
        Ok(())
    };
    judged().map_err(|broken| (Time::NEVER, broken))?;
    let mut figures = Figures::default();
    figures.add("opens", opens);
    figures.add("opens_a_minute", a_minute);
    figures.add("back_after_ms", back);
    Ok(Report { hash: digest.value(), figures, events, steps: 0, simulated, witness })
}

fn silence(world: &mut World<'_>) -> Result<Seen, Broken> {
    world.tune_in(5_000)?;
    world.wait(5_000)?;
    world.while_away(1_000)?;
    let before = world.opens(0);
    world.set_mood(0, 0, Mood::Silent);
    world.wait(20_000)?;
    let opens = world.opens(0) - before;
    world.set_mood(0, 0, Mood::Good);
    let from = world.now;
    let feed = world.feed(0);
    let back = |world: &World<'_>| world.truth.feeds[&feed].last_push.is_some_and(|last| last > from);
    while !back(world) && world.now < from + Duration::from_secs(60) {
        world.wait(1)?;
    }
    let back = world.now.since(from).as_millis() as u64;
    shows!(world.opens(0) == before + opens, "it was asked again while it was back");
    world.wait(10_000)?;
    world.set_mood(0, 0, Mood::Silent);
    // The first minutes' pauses are short on purpose.
    world.wait(60_000)?;
    let mut a_minute = 0;
    for _ in 0..5 {
        let before = world.opens(0);
        world.wait(60_000)?;
        a_minute = a_minute.max(world.opens(0) - before);
    }
    Ok(Seen { opens, back, a_minute })
}
