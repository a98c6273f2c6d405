//! Lies to Holdfast: worlds in which everything goes wrong on purpose, each repeatable from its seed.
//!
//! | room | question it answers |
//! |---|---|
//! | `world` | does the bare core decide right when everything around it goes wrong? |
//! | `net` | does the whole server, over a network that drops, holds and cuts? |
//! | [`story`] | what happened, so that somebody can see it? |
//! | [`judge`](mod@judge) | does a journal, whatever it is of, break an invariant? |
//! | [`shrink`](mod@shrink) | what of a failure does it take? |
#![forbid(unsafe_code)]

pub mod judge;
#[cfg(feature = "net")]
mod net;
mod plain;
pub mod shrink;
mod sides;
pub mod story;
mod tape;
mod watch;
mod world;

use std::fmt;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::sync::LazyLock;
use std::time::Duration;

use holdfast_core::time::Time;

pub use judge::judge;
use story::{Story, Wording};
pub use tape::Tape;
pub use watch::{lose_patience_after, when_stuck};
pub use world::Witness;
pub use world::chance::{Fault, Mark, Name, Tally};
pub use world::crowd::{Crowd, Journal};
pub use world::options::{Actor, Faults, Options, near};
use world::oracle::Broken;

/// One scenario: a name, what it must show, and how it is run.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it must show.
    pub shows: &'static str,
    play: Play,
}

type Play = fn(u64, Option<&mut dyn Write>) -> Result<Report, (Time, Broken)>;

/// What a run was that broke nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The digest of its journal: equal for equal runs, on every machine.
    pub hash: u64,
    /// What it measured.
    pub figures: Figures,
    /// How many calls the core was given.
    pub events: u64,
    /// How much its actors did of themselves; 0 where nobody counts it.
    pub steps: u64,
    /// How much time passed in it.
    pub simulated: Duration,
    /// Which faults bit and which branches were taken.
    pub witness: Witness,
}

/// What a run measured, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures(Vec<(&'static str, u64)>);

impl Figures {
    /// One more.
    pub fn add(&mut self, name: &'static str, value: u64) {
        self.0.push((name, value));
    }

    /// The figure of this name.
    pub fn of(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(each, _)| *each == name).map(|(_, value)| *value)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "figures:")?;
        self.0.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

/// Why a run has no report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no scenario of this name.
    Unknown {
        /// The name.
        name: String,
    },
    /// A scenario is a script: nothing of it can be chosen by hand.
    Script {
        /// Its name.
        name: &'static str,
    },
    /// An invariant does not hold.
    Broken {
        /// In which scenario.
        scenario: &'static str,
        /// Of which seed.
        seed: u64,
        /// What of it was chosen by hand.
        options: Box<Options>,
        /// When; `NEVER` where that is not known.
        at: Time,
        /// The invariant's id.
        id: &'static str,
        /// What was found.
        what: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unknown { name } => {
                let near = near(name, scenarios().iter().map(|scenario| scenario.name));
                write!(f, "there is no scenario {name}{near}; `holdfast sim --list` shows them")
            }
            Failure::Script { name } => {
                write!(f, "{name} is a script: its faults, actors and time cannot be chosen, as those of random can")
            }
            Failure::Broken { scenario, seed, options, at, id, what } => {
                match *at {
                    Time::NEVER => write!(f, "{id} in seed {seed}: {what}; again: ")?,
                    at => write!(f, "{id} is broken at {at:?} of seed {seed}: {what}; again: ")?,
                }
                write!(f, "holdfast sim --scenario {scenario} --seed {seed}{options}")
            }
        }
    }
}

impl std::error::Error for Failure {}

/// Every scenario.
pub fn scenarios() -> &'static [Scenario] {
    static ALL: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
        [
            world::SCENARIOS,
            world::PULL_SCENARIOS,
            world::PLAYBACK_SCENARIOS,
            world::EDGES_SCENARIOS,
            world::TITLES_SCENARIOS,
            #[cfg(feature = "net")]
            net::SCENARIOS,
            #[cfg(feature = "net")]
            net::PULLED_SCENARIOS,
            #[cfg(feature = "net")]
            net::HOUSEHOLD_SCENARIOS,
            #[cfg(feature = "net")]
            net::SOAK_SCENARIOS,
        ]
        .concat()
    });
    &ALL
}

/// Runs one scenario with one seed; each event is written to `trace`, a line each, if there is one.
pub fn run(name: &str, seed: u64, trace: Option<&mut dyn Write>) -> Result<Report, Failure> {
    run_with(name, seed, &Options::default(), trace)
}

/// The same, with something chosen by hand.
pub fn run_with(name: &str, seed: u64, options: &Options, trace: Option<&mut dyn Write>) -> Result<Report, Failure> {
    let scenario = scenarios().iter().find(|scenario| scenario.name == name);
    let scenario = scenario.ok_or_else(|| Failure::Unknown { name: name.to_owned() })?;
    let chosen = *options != Options::default();
    if chosen && scenario.name != world::RANDOM {
        return Err(Failure::Script { name: scenario.name });
    }
    let play = || match chosen {
        true => world::random::play_with(seed, options, trace),
        false => (scenario.play)(seed, trace),
    };
    let caught = || panic::catch_unwind(AssertUnwindSafe(play));
    let played = watch::watched(scenario.name, seed, options, caught);
    let (at, Broken { id, what }) = match played {
        Ok(Ok(report)) => return Ok(report),
        Ok(Err((at, Broken { id, what }))) => (at, Broken { id, what: plain::plain(&what) }),
        // The core is total: a panic is a broken invariant like any other, and needs its seed as much.
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
            (Time::NEVER, Broken { id: "panic", what: text.to_owned() })
        }
    };
    Err(Failure::Broken { scenario: scenario.name, seed, options: Box::new(options.clone()), at, id, what })
}

/// As [`run_with`], and what happened in it as a story in these words, up to where it broke if it did.
///
/// # Errors
/// There is no such scenario, or no edge in it kept a journal.
pub fn record(
    name: &str,
    seed: u64,
    options: &Options,
    trace: Option<&mut dyn Write>,
    wording: Wording<'_>,
) -> Result<(Result<Report, Failure>, Story), Untold> {
    let (played, tapes) = tape::record(|| run_with(name, seed, options, trace));
    if let Err(Failure::Unknown { name }) = played {
        return Err(Untold::Unknown { name });
    }
    let story = story::of_tapes(&tapes, wording).ok_or(Untold::NoJournal)?;
    let story = story.titled(format!("Holdfast: {name}, seed {seed}"));
    Ok(match &played {
        Err(Failure::Broken { at, id, what, .. }) => {
            let story = story.broken(*at, *id, what.clone());
            (played, story)
        }
        _ => (played, story),
    })
}

/// Why a run has no story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untold {
    /// There is no scenario of this name.
    Unknown {
        /// The name.
        name: String,
    },
    /// No edge of the scenario kept a journal.
    NoJournal,
}

impl fmt::Display for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Untold::Unknown { name } => write!(f, "{}", Failure::Unknown { name: name.clone() }),
            Untold::NoJournal => write!(f, "no edge of this scenario kept a journal, and only a journal can be drawn"),
        }
    }
}

impl std::error::Error for Untold {}
