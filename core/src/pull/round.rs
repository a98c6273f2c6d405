//! Which origin is tried next, and when.

use alloc::vec;
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::Channel;
use crate::time::Time;

/// One attempt at each origin of a channel, and the pauses between such rounds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Round {
    /// Where in the list it began.
    from: usize,
    /// Which origins had their turn.
    tried: Vec<bool>,
    /// When each was last opened: no origin is asked twice within `no_input_timeout`.
    opened: Vec<Option<Time>>,
    /// How many rounds in a row came to nothing since somebody wanted the channel.
    failed: u32,
    /// How many pauses were made in a row.
    pauses: u32,
    /// An origin that had been a success broke off: where no other can be had, it is asked again without a pause, once.
    spare: bool,
    /// When the next attempt may be made.
    pub(super) next: Time,
}

/// What the media was worth that no longer flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fallen {
    /// It was too short to be a success.
    Short,
    /// It was a success, and its connection stands.
    Silent,
    /// It was a success, and its connection is over.
    Broken,
    /// Its connection had to be given up: that says nothing of the others.
    Taken,
}

/// What a round has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Try this origin now.
    Open(usize),
    /// Not before then.
    At(Time),
    /// Every origin had its turn.
    Over,
}

impl Round {
    pub fn new(sources: usize) -> Self {
        Round {
            from: 0,
            tried: vec![false; sources],
            opened: vec![None; sources],
            failed: 0,
            pauses: 0,
            spare: false,
            next: Time::ZERO,
        }
    }

    /// Whether it is over as many origins.
    pub fn is_like(&self, other: &Round) -> bool {
        let count = other.tried.len();
        self.tried.len() == count && self.opened.len() == count && self.from < count
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = Round::new(self.tried.len());
    }

    /// Somebody wants a channel that had come to its end: origins are tried anew, but no more often for that.
    pub fn restart(&mut self) {
        self.again(0);
        self.failed = 0;
    }

    /// The origin at `lost` is out: the others have their turn at once.
    pub fn after(&mut self, now: Time, lost: usize, fallen: Fallen) {
        if fallen != Fallen::Short {
            self.again(lost);
        }
        if matches!(fallen, Fallen::Silent | Fallen::Broken) {
            (self.failed, self.pauses) = (0, 0);
        }
        self.spare = fallen == Fallen::Broken;
        self.from = (lost + 1) % self.tried.len();
        self.tried[lost] = true;
        self.next = now;
    }

    pub fn next(&self, now: Time, spacing: Duration) -> Next {
        if now < self.next {
            return Next::At(self.next);
        }
        let count = self.tried.len();
        let untried = (0..count).map(|step| (self.from + step) % count).filter(|index| !self.tried[*index]);
        let ready = |index: usize| (now.max(self.ready(index, spacing)), index);
        match untried.map(ready).min_by_key(|(ready, _)| *ready) {
            None => Next::Over,
            Some((ready, index)) if ready <= now => Next::Open(index),
            Some((ready, _)) => Next::At(ready),
        }
    }

    /// When this origin may be asked again.
    pub fn ready(&self, index: usize, spacing: Duration) -> Time {
        self.opened[index].map_or(Time::ZERO, |opened| opened + spacing)
    }

    /// The origin is asked now.
    pub fn open(&mut self, now: Time, index: usize) {
        self.tried[index] = true;
        self.opened[index] = Some(now);
    }

    /// An origin was left for an earlier one while it worked: it has its turn before any pause.
    pub fn left(&mut self, index: usize) {
        self.tried[index] = false;
    }

    /// Whose turn it is now, the next first: those that had none in this round and may be asked again.
    pub fn candidates(&self, now: Time, spacing: Duration) -> impl Iterator<Item = usize> {
        let count = self.tried.len();
        let untried = (0..count).map(move |step| (self.from + step) % count).filter(|index| !self.tried[*index]);
        untried.filter(move |index| self.ready(*index, spacing) <= now)
    }

    /// The origin is asked again then, before any other.
    pub fn retry(&mut self, index: usize, at: Time) {
        (self.tried[index], self.opened[index]) = (false, None);
        (self.from, self.next) = (index, at);
    }

    /// The origin had its turn, but was not asked.
    pub fn passed(&mut self, index: usize) {
        self.tried[index] = true;
    }

    /// When each was last asked.
    pub fn opened(&self) -> &[Option<Time>] {
        &self.opened
    }

    /// When any origin was last asked.
    pub fn last_open(&self) -> Option<Time> {
        self.opened.iter().copied().max().flatten()
    }

    /// Every origin had its turn in vain: pauses, then begins again at `from`. Whether it may.
    pub fn over(&mut self, now: Time, from: usize, settings: &Channel, chance: u32) -> bool {
        self.again(from);
        self.failed = self.failed.saturating_add(1);
        if mem::take(&mut self.spare) {
            self.next = now;
        } else {
            self.next = now + pause(settings.no_input_timeout, settings.retry_backoff_max, self.pauses, chance);
            self.pauses = self.pauses.saturating_add(1);
        }
        settings.retries.is_none_or(|retries| self.failed <= retries)
    }

    fn again(&mut self, from: usize) {
        self.from = from;
        self.tried.fill(false);
    }
}

/// `first`, doubled `times` times up to `longest`, give or take a fifth by `chance`; where both are equal, exactly that.
pub(super) fn pause(first: Duration, longest: Duration, times: u32, chance: u32) -> Duration {
    if longest <= first {
        return first;
    }
    let pause = first.saturating_mul(1_u32.checked_shl(times.min(31)).unwrap_or(u32::MAX)).min(longest);
    pause.saturating_mul(800 + chance % 401) / 1000
}
