//! Time as the core sees it, and the table of everything that waits for it.
//!
//! The core never reads a clock: a driver passes [`Time`] in with every call. Whole microseconds, no floats, so that the
//! same inputs give the same outputs on every machine.

use alloc::collections::BTreeSet;
use core::fmt;
use core::num::NonZeroU64;
use core::ops::{Add, Sub};
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// Microseconds since an epoch that the driver chose (usually its own start). Monotonic, never wall-clock time.
///
/// Kept as one more than it is: `Option<Time>` takes 8 bytes, which is what makes the rows that hold most of the core's times
/// short enough to share a cache line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct Time(NonZeroU64);

impl Time {
    /// The driver's epoch.
    pub const ZERO: Time = Time(NonZeroU64::MIN);
    /// Later than anything that happens.
    pub const NEVER: Time = Time(NonZeroU64::MAX);

    /// The time `micros` µs after the epoch; [`Time::NEVER`] from 2⁶⁴ − 2 on.
    pub const fn from_micros(micros: u64) -> Self {
        Time(NonZeroU64::MIN.saturating_add(micros))
    }

    /// µs since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0.get() - 1
    }

    /// How long ago `earlier` was; zero where it lies in the future.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.as_micros().saturating_sub(earlier.as_micros()))
    }
}

/// A moment that is known by its date: µs by the wall clock since the driver's epoch, less than nothing for one that lay before it.
/// When that clock is set it comes sooner or later, so one that has passed is kept as exactly as one that has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Date(i64);

impl Date {
    /// The date `micros` µs after the epoch, or before it.
    pub const fn from_micros(micros: i64) -> Self {
        Date(micros)
    }

    /// Its moment; the epoch for all that lie before it.
    pub const fn time(self) -> Time {
        Time::from_micros(if self.0 > 0 { self.0.unsigned_abs() } else { 0 })
    }

    /// Whether it has come.
    pub fn has_come(self, now: Time) -> bool {
        self.time() <= now
    }

    /// What it is after the wall clock was set by so many µs.
    pub const fn when_set(self, by: i64) -> Date {
        Date(self.0.saturating_sub(by))
    }
}

impl Default for Time {
    fn default() -> Self {
        Time::ZERO
    }
}

impl From<u64> for Time {
    fn from(micros: u64) -> Self {
        Time::from_micros(micros)
    }
}

impl From<Time> for u64 {
    fn from(time: Time) -> Self {
        time.as_micros()
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
        Time::from_micros(self.as_micros().saturating_sub(micros))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.as_micros() / 1_000_000, self.as_micros() % 1_000_000)
    }
}

/// The earlier of two deadlines, of which there may be one or none.
pub(crate) fn earliest(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Deadlines by key, earliest first; keys of one deadline come out in key order, so that runs repeat.
///
/// An owner that keeps the deadline it set (and so can name it again) needs no search: [`Timers::set`] takes the old one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "K: Serialize", deserialize = "K: Deserialize<'de> + Ord"))]
pub struct Timers<K> {
    queue: BTreeSet<(Time, K)>,
    /// The earliest deadline, `NEVER` if there is none: every input asks whether it has passed.
    next: Time,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Timers { queue: BTreeSet::new(), next: Time::NEVER }
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
        self.look_up_next();
    }

    /// The earliest deadline.
    pub fn deadline(&self) -> Option<Time> {
        Some(self.next).filter(|next| *next != Time::NEVER)
    }

    /// Takes out one key whose deadline is `now` or earlier; its owner's `armed` must be reset to `NEVER`.
    pub fn expired(&mut self, now: Time) -> Option<K> {
        if self.next > now {
            return None;
        }
        let (_, key) = self.queue.pop_first()?;
        self.look_up_next();
        Some(key)
    }

    fn look_up_next(&mut self) {
        self.next = self.queue.first().map_or(Time::NEVER, |(at, _)| *at);
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
        assert_eq!((timers.len(), timers.is_empty()), (1, false));
        assert_eq!(timers.expired(at(15)), None);
        timers.set(1, &mut armed, Time::NEVER);
        assert_eq!((timers.len(), timers.is_empty(), timers.deadline()), (0, true, None));
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::NEVER + Duration::from_secs(1), Time::NEVER);
        assert_eq!(Time::ZERO - Duration::from_secs(1), Time::ZERO);
        assert_eq!(Time::ZERO.since(at(5)), Duration::ZERO);
        assert_eq!(Time::from_micros(u64::MAX), Time::NEVER);
        assert_eq!((at(7) - Duration::from_millis(2), at(7).since(at(2))), (at(5), Duration::from_millis(5)));
    }

    #[test]
    fn is_written_as_seconds_and_counted_in_microseconds() {
        assert_eq!(alloc::format!("{:?}", Time::from_micros(12_000_034)), "12.000034s");
        assert_eq!((u64::from(at(7)), Time::from(7_000)), (7_000, at(7)));
    }

    #[test]
    fn an_option_of_a_time_costs_nothing() {
        assert_eq!(size_of::<Option<Time>>(), size_of::<u64>());
        assert_eq!((Time::from_micros(7).as_micros(), Time::ZERO.as_micros()), (7, 0));
        assert!(Some(Time::ZERO) > None && Time::ZERO < Time::from_micros(1));
    }
}
