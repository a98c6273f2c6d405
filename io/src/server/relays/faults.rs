//! Why a title was not to be had just now, in words: whoever asks again at once is told the same, and nobody is asked for it.

use std::time::Duration;

use holdfast_core::input::{Failure, Viewing};
use holdfast_core::memory::Memory;
use holdfast_core::time::Time;

/// So many players are remembered.
const PLAYERS: usize = 4096;
/// For longer than the core refuses the same without asking anybody.
const LASTS: Duration = Duration::from_secs(2);

/// What the provider that was asked last said, by player.
pub(super) struct Faults(Memory<Viewing, (Failure, String)>);

impl Default for Faults {
    fn default() -> Self {
        Faults(Memory::new(PLAYERS))
    }
}

impl Faults {
    pub fn learn(&mut self, now: Time, viewing: Viewing, fault: (Failure, String)) {
        self.0.remember(now, viewing, now + LASTS, fault);
    }

    pub fn get(&self, now: Time, viewing: &Viewing) -> Option<&(Failure, String)> {
        self.0.recall(now, viewing)
    }
}
