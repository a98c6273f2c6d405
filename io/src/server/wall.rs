//! What date is it? By the wall clock, which may be set while the server runs: a box without a battery asks for the time when its
//! network is there.

use std::time::Duration;

use holdfast_core::input::Input;
use holdfast_core::time::Time;

use super::{Call, Server};

/// What a clock may be off that is disciplined (NTP slews up to 0.5 s, adjtimex(2)), and the part of a second of
/// [`Settings::epoch`](super::Settings::epoch).
const OFF: Duration = Duration::from_secs(2);

impl Server {
    /// The time since 1970-01-01T00:00:00Z.
    pub(crate) fn wall(&self, now: Time) -> Duration {
        self.zero + now.since(Time::ZERO)
    }

    /// What the wall clock of the machine has now, since 1970-01-01T00:00:00Z.
    pub fn set_clock(&mut self, now: Time, wall: Duration) {
        let by = wall.abs_diff(self.wall(now));
        if by < OFF {
            return;
        }
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        let by = if wall < self.wall(now) { -micros } else { micros };
        self.zero = wall.saturating_sub(now.since(Time::ZERO));
        self.be_punctual(now);
        self.decide(now, Input::ClockSet { by });
        self.pump(now);
    }
}

impl Call<'_> {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub fn wall(&self) -> u64 {
        self.server.wall(self.now).as_secs()
    }
}
