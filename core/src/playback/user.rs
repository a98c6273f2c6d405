//! What a user's playbacks may use (spec: playback §3.2).

use alloc::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::config;
use crate::input::{PlaybackId, RefuseReason, ViewerEnd};
use crate::time::{Date, Time};

/// Which of its user's places a playback uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Place {
    /// One of `max_connections`.
    Normal,
    /// One of `soft_connections`.
    Soft,
    /// One that is not there, until its grace is over.
    Grace,
}

impl Place {
    /// The word for it in status, metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Place::Normal => "normal",
            Place::Soft => "soft",
            Place::Grace => "grace",
        }
    }
}

/// What happened to a user's playbacks so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserCounts {
    /// That were seen.
    pub started: u64,
    /// That were refused, by [`RefuseReason`].
    pub refused: [u64; RefuseReason::ALL.len()],
    /// That were seen and ended, by [`ViewerEnd`].
    pub ended: [u64; ViewerEnd::ALL.len()],
}

/// One user's places and whoever uses them or waits for one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct User {
    normal: u32,
    soft: u32,
    grace: u32,
    /// All of its playbacks, counted or not.
    pub playbacks: BTreeSet<PlaybackId>,
    /// Playbacks that wait for a place, in the order in which they came.
    pub held: BTreeSet<(u64, PlaybackId)>,
    /// From when on it may not play; `None`: it always may.
    pub until: Option<Date>,
    /// No grace is given before.
    pub cooldown: Option<Time>,
    /// Counts places that became free: what was refused before that may be let in now.
    pub freed: u64,
    pub counts: UserCounts,
}

impl User {
    pub fn new(limits: &config::User) -> Self {
        User {
            normal: 0,
            soft: 0,
            grace: 0,
            playbacks: BTreeSet::new(),
            held: BTreeSet::new(),
            until: limits.until,
            cooldown: None,
            freed: 0,
            counts: UserCounts::default(),
        }
    }

    /// A place that is free, taken.
    pub fn take(&mut self, limits: &config::User) -> Option<Place> {
        let place = self.next(limits)?;
        *self.used_mut(place) += 1;
        Some(place)
    }

    /// A place that is free.
    pub fn next(&self, limits: &config::User) -> Option<Place> {
        if limits.max_connections == 0 || self.normal < limits.max_connections {
            Some(Place::Normal)
        } else {
            (self.soft < limits.soft_connections).then_some(Place::Soft)
        }
    }

    /// A place that is not there, unless one is given already.
    pub fn take_grace(&mut self) -> Option<Place> {
        (self.grace == 0).then(|| {
            self.grace += 1;
            Place::Grace
        })
    }

    pub fn release(&mut self, place: Place) {
        let used = self.used_mut(place);
        debug_assert!(*used > 0, "a place is released once");
        *used = used.saturating_sub(1);
        self.freed += 1;
    }

    /// How many places of this kind are used.
    pub fn used(&self, place: Place) -> u32 {
        match place {
            Place::Normal => self.normal,
            Place::Soft => self.soft,
            Place::Grace => self.grace,
        }
    }

    fn used_mut(&mut self, place: Place) -> &mut u32 {
        match place {
            Place::Normal => &mut self.normal,
            Place::Soft => &mut self.soft,
            Place::Grace => &mut self.grace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn each_place_has_its_word() {
        assert_eq!([Place::Normal, Place::Soft, Place::Grace].map(Place::as_str), ["normal", "soft", "grace"]);
    }
}
