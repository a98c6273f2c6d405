//! A call of the core that never returns. Nothing in a run can say so, hence a thread beside all of them, which names the seed and ends
//! the process: what is stuck cannot be ended otherwise.

use std::cell::RefCell;
use std::io::{self, Write};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

use holdfast_core::time::Time;

use crate::{Failure, Options};

/// How often it looks.
const LOOK: Duration = Duration::from_millis(500);
/// It must see the same call so often; by looks, not by a clock, so that a process that was stopped for an hour is not stuck. Calls take
/// microseconds, and milliseconds where a thousand actors are at it.
static PATIENCE: AtomicU32 = AtomicU32::new(60);

/// Says what else is to be said before the process ends.
type LastWords = Box<dyn FnOnce() -> String + Send>;

static LAST_WORDS: Mutex<Option<LastWords>> = Mutex::new(None);

static RUNS: Mutex<Vec<Arc<Run>>> = Mutex::new(Vec::new());

thread_local! {
    /// The run on this thread.
    static PRESENT: RefCell<Option<Arc<Run>>> = const { RefCell::new(None) };
}

/// A run, as it is seen from outside.
#[derive(Debug)]
struct Run {
    scenario: &'static str,
    seed: u64,
    options: Options,
    /// How often a call began or ended: odd while the core is at one.
    turns: AtomicU64,
    /// When it began, in simulated µs, and whether it is no more than a tick.
    at: AtomicU64,
    tick: AtomicBool,
}

/// After how many looks, two a second, at the same call the process ends; 60 unless told otherwise.
pub fn lose_patience_after(looks: u32) {
    PATIENCE.store(looks, Ordering::Relaxed);
}

/// Before the process ends for a call that never returns, `last` is done, and what it returns is said behind the failure.
pub fn when_stuck(last: impl FnOnce() -> String + Send + 'static) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(last));
}

/// Does what `play` does, which is watched meanwhile.
pub(crate) fn watched<R>(scenario: &'static str, seed: u64, options: &Options, play: impl FnOnce() -> R) -> R {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        thread::spawn(watch);
    });
    let (options, turns, at) = (options.clone(), AtomicU64::new(0), AtomicU64::new(0));
    let run = Arc::new(Run { scenario, seed, options, turns, at, tick: AtomicBool::new(false) });
    runs(|runs| runs.push(run.clone()));
    let before = PRESENT.replace(Some(run.clone()));
    let result = play();
    PRESENT.set(before);
    runs(|runs| runs.retain(|own| !Arc::ptr_eq(own, &run)));
    result
}

/// Does what `call` does, which gives the core one input, a tick or another.
pub(crate) fn call<R>(now: Time, tick: bool, call: impl FnOnce() -> R) -> R {
    let turn = |of: &dyn Fn(&Run)| PRESENT.with_borrow(|run| run.iter().for_each(|run| of(run)));
    turn(&|run| {
        run.at.store(now.as_micros(), Ordering::Relaxed);
        run.tick.store(tick, Ordering::Relaxed);
        run.turns.fetch_add(1, Ordering::Relaxed);
    });
    let result = call();
    turn(&|run| _ = run.turns.fetch_add(1, Ordering::Relaxed));
    result
}

fn runs<R>(of: impl FnOnce(&mut Vec<Arc<Run>>) -> R) -> R {
    of(&mut RUNS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn watch() {
    let mut seen: Vec<(Arc<Run>, u64, u32)> = Vec::new();
    loop {
        thread::sleep(LOOK);
        let now = runs(|runs| runs.clone()).into_iter().map(|run| {
            let turns = run.turns.load(Ordering::Relaxed);
            let same = seen.iter().find(|(own, before, _)| Arc::ptr_eq(own, &run) && *before == turns);
            (run, turns, same.filter(|_| turns % 2 == 1).map_or(0, |(_, _, looks)| looks + 1))
        });
        seen = now.collect();
        let stuck = seen.iter().find(|(_, _, looks)| *looks >= PATIENCE.load(Ordering::Relaxed));
        if let Some((run, turns, looks)) = stuck {
            let what = if run.tick.load(Ordering::Relaxed) { ", a tick," } else { "" };
            let failure = Failure::Broken {
                scenario: run.scenario,
                seed: run.seed,
                options: Box::new(run.options.clone()),
                at: Time::from_micros(run.at.load(Ordering::Relaxed)),
                id: "live-lock",
                what: format!("call {}{what} has not returned for {:?}", turns / 2 + 1, LOOK * *looks),
            };
            let last = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).take();
            let last = last.map(|last| last()).filter(|last| !last.is_empty());
            // Past whatever catches what tests print: nobody will show that any more.
            let _ = writeln!(io::stderr(), "{failure}");
            let _ = last.map(|last| writeln!(io::stderr(), "{last}"));
            process::exit(1);
        }
    }
}
