//! How a simulated run hands out what it was: its journals, and which faults bit when.
//!
//! A run that fails, or panics, ends wherever it is; so what is kept of it is handed over when its edge is dropped. Runs happen on
//! the thread that asks for them, which is where whoever wants to know waits.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use holdfast_core::config::Config;
use holdfast_core::journal::Recorded;
use holdfast_core::time::Time;

use crate::world::chance::{Fault, Tally};

/// What one edge was given.
#[derive(Debug)]
pub(crate) struct Recording {
    /// What the edge is called, where there are several.
    pub name: String,
    pub journal: Vec<u8>,
    /// When each fault bit, and behind which call.
    pub faults: Vec<(Time, u64, &'static str)>,
}

thread_local! {
    static KEPT: RefCell<Option<Vec<Recording>>> = const { RefCell::new(None) };
}

/// Does what `run` does, and returns what was recorded in it.
pub(crate) fn record<R>(run: impl FnOnce() -> R) -> (R, Vec<Recording>) {
    KEPT.set(Some(Vec::new()));
    let result = run();
    (result, KEPT.take().unwrap_or_default())
}

/// Whether anybody wants to know.
pub(crate) fn is_on() -> bool {
    KEPT.with_borrow(Option::is_some)
}

/// Hands out a recording.
pub(crate) fn keep(recording: impl FnOnce() -> Option<Recording>) {
    if let Some(recording) = is_on().then(recording).flatten() {
        KEPT.with_borrow_mut(|kept| {
            if let Some(kept) = kept {
                kept.push(recording);
            }
        });
    }
}

/// An edge in a world.
#[derive(Debug)]
pub(crate) struct Taped {
    edge: Recorded,
    on: bool,
    seen: Tally<Fault>,
    faults: Vec<(Time, u64, &'static str)>,
}

impl Taped {
    pub fn on(config: Config) -> Self {
        Taped { edge: Recorded::on(config), on: is_on(), seen: Tally::default(), faults: Vec::new() }
    }

    /// Notes which faults bit since it was called last.
    pub fn note(&mut self, now: Time, faults: &Tally<Fault>) {
        if !self.on || self.seen == *faults {
            return;
        }
        let calls = self.edge.calls();
        let more = faults.iter().zip(self.seen.iter()).filter(|((_, now), (_, before))| now > before);
        self.faults.extend(more.map(|((name, _), _)| (now, calls, name)));
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
            let faults = std::mem::take(&mut self.faults);
            keep(|| Some(Recording { name: String::new(), journal: self.edge.journal()?, faults }));
        }
    }
}
