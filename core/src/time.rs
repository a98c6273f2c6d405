//! Time as the core sees it, and the table of everything that waits for it.
//!
//! The core never reads a clock: a driver passes [`Time`] in with every call. Whole microseconds, no floats, so that the
//! same inputs give the same outputs on every machine.

use alloc::collections::BTreeSet;
use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// Microseconds since an epoch that the driver chose (usually its own start). Monotonic, never wall-clock time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Time(u64);

impl Time {
    /// The driver's epoch.
    pub const ZERO: Time = Time(0);
    /// Later than anything that happens.
    pub const NEVER: Time = Time(u64::MAX);

    /// The time `micros` µs after the epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Time(micros)
    }

    /// µs since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero where it lies in the future.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, span: Duration) -> Time {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(micros))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    fn sub(self, span: Duration) -> Time {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Time(self.0.saturating_sub(micros))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// Deadlines by key, earliest first; keys of one deadline come out in key order, so that runs repeat.
///
/// An owner that keeps the deadline it set (and so can name it again) needs no search: [`Timers::set`] takes the old one.
#[derive(Debug)]
pub struct Timers<K> {
    queue: BTreeSet<(Time, K)>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Timers { queue: BTreeSet::new() }
    }
}

impl<K: Ord + Copy> Timers<K> {
    /// Moves `key` from the deadline `*armed` (`NEVER` = not armed) to `at`, and remembers that in `armed`.
    pub fn set(&mut self, key: K, armed: &mut Time, at: Time) {
        if *armed == at {
            return;
        }
        if *armed != Time::NEVER {
            self.queue.remove(&(*armed, key));
        }
        if at != Time::NEVER {
            self.queue.insert((at, key));
        }
        *armed = at;
    }

    /// The earliest deadline.
    pub fn deadline(&self) -> Option<Time> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Takes out one key whose deadline is `now` or earlier; its owner's `armed` must be reset to `NEVER`.
    pub fn expired(&mut self, now: Time) -> Option<K> {
        if self.deadline()? > now {
            return None;
        }
        self.queue.pop_first().map(|(_, key)| key)
    }

    /// How many keys wait.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1000)
    }

    #[test]
    fn expires_in_order_of_time_then_key_and_only_when_due() {
        let mut timers = Timers::default();
        let (mut a, mut b, mut c) = (Time::NEVER, Time::NEVER, Time::NEVER);
        timers.set(3, &mut c, at(10));
        timers.set(1, &mut a, at(10));
        timers.set(2, &mut b, at(5));
        assert_eq!(timers.expired(at(4)), None);
        assert_eq!(timers.deadline(), Some(at(5)));
        assert_eq!(timers.expired(at(10)), Some(2));
        assert_eq!(timers.expired(at(10)), Some(1));
        assert_eq!(timers.expired(at(10)), Some(3));
        assert_eq!(timers.expired(at(10)), None);
    }

    #[test]
    fn a_key_that_moves_leaves_no_old_deadline_behind() {
        let mut timers = Timers::default();
        let mut armed = Time::NEVER;
        timers.set(1, &mut armed, at(10));
        timers.set(1, &mut armed, at(20));
        assert_eq!(timers.expired(at(15)), None);
        timers.set(1, &mut armed, Time::NEVER);
        assert_eq!((timers.len(), timers.deadline()), (0, None));
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::NEVER + Duration::from_secs(1), Time::NEVER);
        assert_eq!(Time::ZERO - Duration::from_secs(1), Time::ZERO);
        assert_eq!(Time::ZERO.since(at(5)), Duration::ZERO);
    }
}
