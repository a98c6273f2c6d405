//! Lies to Holdfast: worlds in which everything goes wrong on purpose, each repeatable from its seed.
//!
//! | room | question it answers |
//! |---|---|
//! | `world` | does the bare core decide right when everything around it goes wrong? |
//! | `net` | does the whole server, over a network that drops, holds and cuts? |
#![forbid(unsafe_code)]

#[cfg(feature = "net")]
mod net;
mod world;

use std::fmt;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::sync::LazyLock;
use std::time::Duration;

use holdfast_core::time::Time;

pub use world::Witness;
pub use world::chance::{Fault, Mark, Name, Tally};
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
    /// An invariant does not hold.
    Broken {
        /// In which scenario.
        scenario: &'static str,
        /// Of which seed.
        seed: u64,
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
            Failure::Unknown { name } => write!(f, "there is no scenario {name}; `holdfast sim --list` shows them"),
            Failure::Broken { scenario, seed, at, id, what } => {
                match *at {
                    Time::NEVER => write!(f, "{id} in seed {seed}: {what}; again: ")?,
                    at => write!(f, "{id} is broken at {at:?} of seed {seed}: {what}; again: ")?,
                }
                write!(f, "holdfast sim --scenario {scenario} --seed {seed}")
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
        ]
        .concat()
    });
    &ALL
}

/// Runs one scenario with one seed; each event is written to `trace`, a line each, if there is one.
pub fn run(name: &str, seed: u64, trace: Option<&mut dyn Write>) -> Result<Report, Failure> {
    let scenario = scenarios().iter().find(|scenario| scenario.name == name);
    let scenario = scenario.ok_or_else(|| Failure::Unknown { name: name.to_owned() })?;
    let played = panic::catch_unwind(AssertUnwindSafe(|| (scenario.play)(seed, trace)));
    let (at, Broken { id, what }) = match played {
        Ok(Ok(report)) => return Ok(report),
        Ok(Err(broken)) => broken,
        // The core is total: a panic is a broken invariant like any other, and needs its seed as much.
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
            (Time::NEVER, Broken { id: "panic", what: text.to_owned() })
        }
    };
    Err(Failure::Broken { scenario: scenario.name, seed, at, id, what })
}
