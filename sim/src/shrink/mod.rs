//! What of a failure is needed for it, and no more. What must stay the same is the id of the invariant that is broken.
//!
//! | file | question it answers |
//! |---|---|
//! | `plan` | which faults, which actors and how long a storm does it take? |
//! | `script` | what does a run become without some of its calls? |
//! | `names` | what is meant by an id in a run in which everything is called otherwise? |
//! | `less` | what of a list can be left out? |
//! | `tape` | which calls were there, in a run that failed? |
//! | `quiet` | how is a panic a finding like any other? |
//!
//! A failure is shrunk in two steps. First the world is run again, with fewer faults, fewer actors and a shorter storm: that
//! works for every invariant, also for what should have happened and did not. Then calls are left out of the journal of
//! that run, which is judged without any world ([`judge`](crate::judge)): that ends at a handful of inputs.

mod less;
mod names;
mod plan;
pub(crate) mod quiet;
pub(crate) mod script;

use std::fmt;
use std::mem::discriminant;
use std::time::{Duration, Instant};

use holdfast_core::config::Config;
use holdfast_core::edge::Edge;
use holdfast_core::input::{Env, Evidence, Output, SessionId};
use holdfast_core::journal::{Answer, JournalFault, Log};
use holdfast_core::time::Time;

use crate::plain::plain;
use crate::tape::{self, Tape};
use crate::world::brief;
use crate::world::options::Options;
use crate::{Failure, Report, run_with};
use less::{Tried, less, less_coarse};
use script::{Played, Script};

/// A failure and what is left of it.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The failure of the smallest run of the world, which its text reproduces.
    pub failure: Failure,
    /// What the run had at first, and what is left of it; `None` for a scenario that is a script.
    pub plan: Option<(Size, Size)>,
    /// What is left of its calls; `None` where the calls alone do not show the failure, as where the actors know more than the core.
    pub calls: Option<Calls>,
    /// Whether there was no time to find out whether all that is left is needed.
    pub cut_short: bool,
}

/// How long somebody waits for less; what was reached by then is what there is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    until: Option<Instant>,
}

impl Patience {
    /// Until it is done.
    pub const ENDLESS: Patience = Patience { until: None };

    /// So long from now on. What was begun is ended: a run of many calls may take longer by itself.
    #[must_use]
    pub fn within(span: Duration) -> Self {
        Patience { until: Instant::now().checked_add(span) }
    }

    pub(super) fn is_over(self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Of more calls than that each try takes seconds: large pieces are left out first.
const MANY: usize = 20_000;

/// How much there is in a run of the random world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// How many faults may happen.
    pub faults: usize,
    /// How many actors take part.
    pub actors: usize,
}

/// The calls that a failure takes.
#[derive(Clone, Debug)]
pub struct Calls {
    /// How many there were at first.
    pub before: usize,
    /// What is left, to be written ([`Log::write`]) or played.
    pub log: Log,
    /// When it breaks.
    pub at: Time,
    /// The id of the invariant.
    pub id: &'static str,
    /// What was found.
    pub what: String,
}

/// Runs one seed and, where something breaks, finds out what it takes. `Ok(None)`: nothing breaks.
///
/// # Errors
/// There is no such scenario, or it leaves nothing to choose by hand.
pub fn shrink(
    name: &str,
    seed: u64,
    options: &Options,
    patience: Patience,
    mut progress: impl FnMut(fmt::Arguments<'_>),
) -> Result<Option<Shrunk>, Failure> {
    progress(format_args!("seed {seed} of {name} is run"));
    let (result, tapes) = run_taped(name, seed, options);
    let failure = match result {
        Ok(_) => return Ok(None),
        Err(failure @ Failure::Broken { .. }) => failure,
        Err(other) => return Err(other),
    };
    let Failure::Broken { id, .. } = failure else { return Ok(None) };
    progress(format_args!("{failure}"));
    let (mut failure, mut plan, mut all) = (failure, None, tapes);
    let before = all.first().map_or(0, |tape| tape.log().calls.len());
    if name == crate::world::RANDOM {
        let least = plan::least(seed, options, id, patience, &mut progress);
        plan = Some((least.before, least.after));
        let (again, tapes) = run_taped(name, seed, &least.options);
        if let Err(again @ Failure::Broken { .. }) = again {
            failure = again;
            all.splice(0..0, tapes);
        }
    }
    // Where the calls of the smaller run do not show it, those of the first one may.
    let calls = all.iter().find_map(|tape| shrink_script(&Script::new(tape.log()), id, patience, &mut progress));
    let calls = calls.map(|calls| Calls { before, ..calls });
    Ok(Some(Shrunk { failure, plan, calls, cut_short: patience.is_over() }))
}

/// Runs one seed and returns the calls of each core in it, whether it breaks something or not.
pub fn run_taped(name: &str, seed: u64, options: &Options) -> (Result<Report, Failure>, Vec<Tape>) {
    tape::record(|| run_with(name, seed, options, None))
}

/// Shrinks a journal that breaks something when it is judged, by its own configuration or by other `rules`. `Ok(None)`: it breaks
/// nothing.
///
/// # Errors
/// The journal cannot be read.
pub fn shrink_journal(
    bytes: &[u8],
    rules: Option<&Config>,
    mut progress: impl FnMut(fmt::Arguments<'_>),
) -> Result<Option<Calls>, JournalFault> {
    let mut script = Script::new(Log::read(bytes)?);
    if let Some(rules) = rules {
        script.rules = rules.clone();
    }
    let broken = script.play(&(0..script.len()).collect::<Vec<_>>()).broken;
    Ok(broken.and_then(|(_, broken)| shrink_script(&script, broken.id, Patience::ENDLESS, &mut progress)))
}

/// Leaves out of a run whatever it breaks `id` without. `None`: it does not break that as it is.
fn shrink_script(
    script: &Script,
    id: &'static str,
    patience: Patience,
    progress: &mut impl FnMut(fmt::Arguments<'_>),
) -> Option<Calls> {
    let before = script.len();
    progress(format_args!("{before} calls are judged without their actors"));
    let breaks = |calls: &[usize]| -> Option<Played> {
        let played = script.play(calls);
        played.broken.as_ref().is_some_and(|(_, broken)| broken.id == id).then_some(played)
    };
    let mut best = breaks(&(0..before).collect::<Vec<_>>())?;
    let mut kept = best.kept.clone();
    let mut attempt = |rest: &[usize]| {
        if patience.is_over() {
            return Tried::NoTime;
        }
        match breaks(rest) {
            Some(played) => {
                best = played;
                Tried::Fails(best.kept.clone())
            }
            None => Tried::Holds,
        }
    };
    if kept.len() > MANY {
        let least = kept.len() / 16;
        kept = less_coarse(kept, least, |rest| {
            let tried = attempt(rest);
            if let Tried::Fails(enough) = &tried {
                progress(format_args!("{} of {before} calls are left", enough.len()));
            }
            tried
        });
    }
    // What comes in most often first: whole kinds of inputs are seldom needed.
    let mut kinds: Vec<usize> = Vec::new();
    for call in &kept {
        if !kinds.iter().any(|known| discriminant(script.input(*known)) == discriminant(script.input(*call))) {
            kinds.push(*call);
        }
    }
    for kind in kinds {
        let other = |call: &usize| discriminant(script.input(*call)) != discriminant(script.input(kind));
        let rest: Vec<usize> = kept.iter().copied().filter(other).collect();
        if rest.len() < kept.len()
            && let Tried::Fails(enough) = attempt(&rest)
        {
            kept = enough;
        }
    }
    progress(format_args!("{} of {before} calls are left", kept.len()));
    let mut least = kept.len();
    less(kept, |rest| {
        let tried = attempt(rest);
        if let Tried::Fails(enough) = &tried
            && enough.len() * 2 < least
        {
            least = enough.len();
            progress(format_args!("{least} of {before} calls are left"));
        }
        tried
    });
    let (at, broken) = best.broken?;
    Some(Calls { before, log: script.with(best.calls), at, id: broken.id, what: plain(&broken.what) })
}

impl fmt::Display for Calls {
    /// A line for each call, what was answered in it and what came of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = lines(&self.log);
        lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        write!(f, "{} is broken at {:?}: {}", self.id, self.at, self.what)
    }
}

/// Each call of a run in a line, and each answer and output in a line below.
pub fn lines(log: &Log) -> Vec<String> {
    let mut lines = Vec::new();
    let mut edge = Edge::new(log.head.config.clone());
    for call in &log.calls {
        lines.push(format!("{:?} → {}", call.now, brief(&call.input)));
        lines.extend(call.answers.iter().map(|answer| match answer {
            // They say nothing to anybody.
            Answer::Entropy(_) => String::from("             · 16 bytes that nobody can guess"),
            answer => format!("             · {answer:?}"),
        }));
        let mut env = Again(call.answers.iter());
        let outputs = quiet::quietly(|| {
            edge.handle(call.now, call.input.clone(), &mut env);
            std::iter::from_fn(|| edge.poll()).collect::<Vec<Output>>()
        });
        match outputs {
            Ok(outputs) => lines.extend(outputs.iter().map(|output| format!("             ← {output:?}"))),
            Err(text) => {
                lines.push(format!("             panics: {text}"));
                break;
            }
        }
    }
    lines
}

/// The answers of a call as they were.
pub(crate) struct Again<'a>(pub(crate) std::slice::Iter<'a, Answer>);

impl Env for Again<'_> {
    fn activity(&mut self, _session: SessionId) -> Evidence {
        match self.0.next() {
            Some(Answer::Activity { evidence, .. }) => *evidence,
            _ => Evidence::default(),
        }
    }

    fn entropy(&mut self) -> [u8; 16] {
        match self.0.next() {
            Some(Answer::Entropy(bytes)) => *bytes,
            _ => [0; 16],
        }
    }
}
