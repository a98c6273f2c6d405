//! What a run gave the core, for whoever asks for it before: also of a run that fails, or panics.

use std::cell::RefCell;
use std::ops::Deref;

use holdfast_core::input::{Env, Input, Output};
use holdfast_core::journal::{Call, Head, Log, Recorded};
use holdfast_core::time::Time;

thread_local! {
    /// The journals of what ran on this thread, while somebody wants them.
    static KEPT: RefCell<Option<Vec<Tape>>> = const { RefCell::new(None) };
}

/// The calls of one core.
#[derive(Clone, Debug)]
pub struct Tape {
    journal: Vec<u8>,
    /// The call in which it panicked, which is not in the journal.
    present: Option<(Time, Input)>,
}

impl Tape {
    /// The calls, taken apart.
    pub fn log(&self) -> Log {
        let mut log = Log::read(&self.journal).unwrap_or_default();
        let last = log.calls.last().map_or(Time::ZERO, |call| call.now);
        let present = self.present.clone();
        log.calls.extend(present.map(|(now, input)| Call { now: now.max(last), input, answers: Vec::new() }));
        log
    }

    /// As a journal, with a digest at its end unless the run ended with a panic.
    pub fn journal(&self) -> Vec<u8> {
        if self.present.is_some() { self.log().write() } else { self.journal.clone() }
    }
}

/// Does what `run` does, and returns the calls of each core that was in it, in the order in which they ended.
pub(crate) fn record<R>(run: impl FnOnce() -> R) -> (R, Vec<Tape>) {
    KEPT.set(Some(Vec::new()));
    let result = run();
    (result, KEPT.take().unwrap_or_default())
}

/// A core whose calls are kept for [`record`].
#[derive(Debug)]
pub(crate) struct Taped {
    edge: Recorded,
    /// The call that the core is at: the one that a panic leaves behind.
    present: Option<(Time, Input)>,
    on: bool,
}

impl Taped {
    pub fn on(head: impl Into<Head>) -> Self {
        let on = KEPT.with_borrow(Option::is_some);
        Taped { edge: Recorded::on(head), present: None, on }
    }

    pub fn handle(&mut self, now: Time, input: Input, env: &mut dyn Env) {
        self.present = self.on.then(|| (now, input.clone()));
        self.edge.handle(now, input, env);
        self.present = None;
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.edge.poll()
    }
}

impl Deref for Taped {
    type Target = Recorded;

    fn deref(&self) -> &Recorded {
        &self.edge
    }
}

impl Drop for Taped {
    fn drop(&mut self) {
        if !self.on {
            return;
        }
        let Some(journal) = self.edge.journal() else { return };
        let tape = Tape { journal, present: self.present.take() };
        KEPT.with_borrow_mut(|kept| kept.iter_mut().for_each(|kept| kept.push(tape.clone())));
    }
}
