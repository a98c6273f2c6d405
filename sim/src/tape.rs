//! What a run gave its cores, and which faults bit when, for whoever asks before it: also of a run that fails, or panics.
//!
//! Such a run ends wherever it is; so what is kept of it is handed over when its core is dropped. Runs happen on the thread that asks
//! for them, which is where whoever wants to know waits.

use std::cell::RefCell;
use std::mem;
use std::ops::{Deref, DerefMut};

use holdfast_core::input::{Env, Input, Output};
use holdfast_core::journal::{Call, Fresh, Head, Log, Mark, Recorded};
use holdfast_core::time::Time;

use crate::watch;
use crate::world::chance::{Fault, Tally};

/// In so many bytes of a run's journal there is a snapshot: in so few that nearly every run has some.
const MARKED: usize = 4 << 10;

thread_local! {
    /// What ran on this thread, while somebody wants it.
    static KEPT: RefCell<Option<Vec<Tape>>> = const { RefCell::new(None) };
}

/// The calls of one core.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// What its edge is called, where there are several.
    pub(crate) name: String,
    /// Its journal, without the call in which it panicked.
    pub(crate) whole: Vec<u8>,
    /// When each fault bit, and behind which call.
    pub(crate) faults: Vec<(Time, u64, &'static str)>,
    /// The call in which it panicked, which is not in its journal.
    pub(crate) present: Option<(Time, Input)>,
}

impl Tape {
    /// The calls, taken apart.
    pub fn log(&self) -> Log {
        let mut log = Log::read(&self.whole).unwrap_or_default();
        let last = log.calls.last().map_or(Time::ZERO, |call| call.now);
        let present = self.present.clone();
        log.calls.extend(present.map(|(now, input)| Call { now: now.max(last), input, answers: Vec::new() }));
        log
    }

    /// As a journal, with a digest at its end unless the run ended with a panic.
    pub fn journal(&self) -> Vec<u8> {
        if self.present.is_some() { self.log().write() } else { self.whole.clone() }
    }
}

/// Does what `run` does, and returns the calls of each core that was in it, in the order in which they ended.
pub(crate) fn record<R>(run: impl FnOnce() -> R) -> (R, Vec<Tape>) {
    KEPT.set(Some(Vec::new()));
    let result = run();
    (result, KEPT.take().unwrap_or_default())
}

/// Whether anybody wants to know.
fn is_on() -> bool {
    KEPT.with_borrow(Option::is_some)
}

/// Hands out what one core was given.
pub(crate) fn keep(tape: impl FnOnce() -> Option<Tape>) {
    if let Some(tape) = is_on().then(tape).flatten() {
        KEPT.with_borrow_mut(|kept| kept.iter_mut().for_each(|kept| kept.push(tape.clone())));
    }
}

/// A core in a world, whose calls are kept for [`record`].
#[derive(Debug)]
pub(crate) struct Taped {
    edge: Recorded,
    on: bool,
    seen: Tally<Fault>,
    tape: Tape,
}

impl Taped {
    pub fn on(head: impl Into<Head>) -> Self {
        Taped { edge: Recorded::marked(head, MARKED), on: is_on(), seen: Tally::default(), tape: Tape::default() }
    }

    pub fn handle(&mut self, now: Time, input: Input, env: &mut dyn Env) {
        self.tape.present = self.on.then(|| (now, input.clone()));
        watch::call(now, input == Input::Tick, || self.edge.handle(now, input, env));
        self.tape.present = None;
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.edge.poll()
    }

    /// The end of the journal on its own, from a snapshot on where there is one; `None` where none is kept.
    pub fn end(&self) -> Option<Vec<u8>> {
        let (mut before, mut last) = (Vec::new(), Vec::new());
        self.edge.since(Mark::default(), |fresh| match fresh {
            Fresh::Segment { head, .. } if last.is_empty() => last.push(head),
            Fresh::Segment { head, .. } => before = mem::replace(&mut last, vec![head]),
            Fresh::Frame(bytes) | Fresh::Open(bytes) => last.push(bytes),
        });
        // Of the segments that are left the last may have only just begun.
        let last = if before.is_empty() { &last[..] } else { last.get(1..)? };
        (!last.is_empty()).then(|| before.iter().chain(last).flatten().copied().collect())
    }

    /// Notes which faults bit since it was called last.
    pub fn note(&mut self, now: Time, faults: &Tally<Fault>) {
        if !self.on || self.seen == *faults {
            return;
        }
        let calls = self.edge.calls();
        let more = faults.iter().zip(self.seen.iter()).filter(|((_, now), (_, before))| now > before);
        self.tape.faults.extend(more.map(|((name, _), _)| (now, calls, name)));
        self.seen = faults.clone();
    }
}

impl Deref for Taped {
    type Target = Recorded;

    fn deref(&self) -> &Recorded {
        &self.edge
    }
}

impl DerefMut for Taped {
    fn deref_mut(&mut self) -> &mut Recorded {
        &mut self.edge
    }
}

impl Drop for Taped {
    fn drop(&mut self) {
        if self.on {
            let tape = mem::take(&mut self.tape);
            keep(|| Some(Tape { whole: self.edge.journal()?, ..tape }));
        }
    }
}
