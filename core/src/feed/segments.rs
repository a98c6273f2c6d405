//! Where a stream is cut for viewers that poll (RFC 8216 §3).
//!
//! A segment is a range of the ring and a duration: nothing is copied, and a segment is gone when the ring has let go of its
//! first byte. Segments follow one another without a gap. They begin at random access points, but for where these lie further
//! apart than the target duration: what has to be cut then begins with whatever comes next.

use alloc::collections::VecDeque;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::Hls;
use crate::input::Writer;
use crate::time::Time;

/// A clock of 90 kHz with 33 bits.
const WRAP: u64 = 1 << 33;

/// RFC 8216 has no word against a segment without duration, players have.
const SHORTEST: Duration = Duration::from_millis(1);

/// One segment of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Its media sequence number (RFC 8216 §3).
    pub sequence: u64,
    /// The offset in the feed of its first byte.
    pub at: u64,
    /// The offset behind its last byte.
    pub end: u64,
    /// How long it plays; when rounded to seconds, never more than the target duration.
    pub duration: Duration,
    /// Whether its times do not go on from those of the segment before it.
    pub discontinuity: bool,
}

/// A playlist without words (RFC 8216 §4.3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Playlist<Segments> {
    /// The target duration in seconds; always the same.
    pub target: u64,
    /// The discontinuity sequence number before the first segment.
    pub discontinuities: u64,
    /// The segments, oldest first.
    pub segments: Segments,
}

/// A random access point that comes in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub at: u64,
    pub pts: u64,
    pub now: Time,
    pub writer: Writer,
    /// When the chunk before it came in.
    pub last: Option<Time>,
    /// The oldest byte that is kept.
    pub tail: u64,
    pub watched: Watched,
}

/// Whether anybody polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    Yes,
    /// Nobody asks for random access points either, so that they may come as rarely as they like.
    No,
}

/// The segments of one feed, in two lines of cache.
#[derive(Debug, Default, Serialize, Deserialize)]
#[repr(align(64))]
pub(super) struct Segments {
    closed: VecDeque<Segment>,
    open: Option<Open>,
    /// The sequence number of the open segment, or the one that is opened next.
    next: u64,
    /// Discontinuities of segments that are gone.
    passed: u64,
    /// New viewers begin no earlier: what lies before it is from before a pause.
    floor: u64,
    /// Whether the next one that is opened follows on nothing.
    broken: bool,
}

/// The segment that is coming in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Open {
    at: u64,
    discontinuity: bool,
    begins: Begins,
    /// When its first byte came.
    came: Time,
    /// The time of the random access point at which it, or what it was cut off from, began.
    pts: u64,
    /// What was cut off since then.
    given: Duration,
    writer: Writer,
    /// When media that belongs to it last came, once that is over.
    stopped: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Begins {
    AtRandomAccess,
    Anywhere,
}

impl Segments {
    /// A random access point comes in. Whether a segment ended before it.
    pub fn point(&mut self, point: Point, settings: &Hls) -> bool {
        self.trim(point.tail);
        let Some(open) = self.open else {
            self.open(&point, self.broken);
            return false;
        };
        let last = open.stopped.or(point.last).unwrap_or(open.came).max(open.came);
        let (arrived, paused) = (last.since(open.came), point.now.since(last) > Duration::from_secs(settings.target()));
        let rest = (open.writer == point.writer).then(|| open.rest(point.pts, arrived, settings)).flatten();
        let short = rest.is_some_and(|rest| rest < settings.segment());
        if short && !paused && open.begins == Begins::AtRandomAccess {
            return false;
        }
        if point.watched == Watched::No && rest.is_none() && arrived > settings.longest() {
            // Too long for the playlist; nobody had it yet, and a player that comes gets what is cut for it.
            self.clear();
            self.open(&point, true);
            return false;
        }
        self.close(open, point.at, rest.unwrap_or(arrived), settings);
        self.open(&point, rest.is_none());
        if paused {
            self.floor = self.next;
        }
        true
    }

    /// Ends the segment that is coming in at the head of the ring, since no random access point comes. Whether it did.
    pub fn cut(&mut self, head: u64, last: Option<Time>, settings: &Hls) -> bool {
        let Some(open) = self.open.filter(|open| open.stopped.is_none() && open.at < head) else { return false };
        let Some(last) = last.filter(|last| *last > open.came) else { return false };
        let duration = self.close(open, head, last.since(open.came), settings);
        let given = open.given + duration;
        let (begins, discontinuity) = (Begins::Anywhere, false);
        self.open = Some(Open { at: head, discontinuity, begins, came: last, given, ..open });
        true
    }

    /// What comes from here on does not belong to what came before, the last of it at `last`: another writes, or there was a
    /// pause.
    pub fn stop(&mut self, last: Option<Time>) {
        if let Some(open) = &mut self.open
            && open.stopped.is_none()
        {
            open.stopped = Some(last.unwrap_or(open.came));
        }
    }

    /// Nothing that came so far is kept.
    pub fn clear(&mut self) {
        self.passed += self.closed.iter().filter(|segment| segment.discontinuity).count() as u64;
        self.closed.clear();
        self.broken = self.broken || self.open.is_some();
        self.drop_open();
    }

    /// When the segment that is coming in began to.
    pub fn began(&self) -> Option<Time> {
        self.open.map(|open| open.came)
    }

    /// With which segment somebody begins who comes now.
    pub fn first(&self, flow: Flow) -> u64 {
        match flow {
            Flow::Runs => self.floor,
            Flow::Pauses => self.next + u64::from(self.open.is_some()),
        }
    }

    /// The segment of this number, if the ring, whose oldest byte is at `tail`, still keeps it.
    pub fn get(&self, sequence: u64, tail: u64) -> Option<Segment> {
        let place = self.closed.partition_point(|segment| segment.sequence < sequence);
        self.closed.get(place).copied().filter(|segment| segment.sequence == sequence && segment.at >= tail)
    }

    /// What somebody who began with segment `from` is shown.
    pub fn playlist(&self, from: u64, tail: u64, settings: &Hls) -> Playlist<impl Iterator<Item = Segment>> {
        let kept = self.closed.partition_point(|segment| segment.sequence < from || segment.at < tail);
        let least = Duration::from_secs(settings.target() * 3);
        let (mut first, mut length) = (self.closed.len(), Duration::ZERO);
        while first > kept && (self.closed.len() - first < settings.window || length < least) {
            first -= 1;
            length += self.closed[first].duration;
        }
        let before = self.closed.range(..first).filter(|segment| segment.discontinuity).count();
        let discontinuities = self.passed + before as u64;
        Playlist { target: settings.target(), discontinuities, segments: self.closed.range(first..).copied() }
    }

    fn open(&mut self, point: &Point, discontinuity: bool) {
        let Point { at, pts, now, writer, .. } = *point;
        let (begins, given) = (Begins::AtRandomAccess, Duration::ZERO);
        self.broken = false;
        self.open = Some(Open { at, discontinuity, begins, came: now, pts, given, writer, stopped: None });
    }

    /// Puts the open segment among the others. How long it counts.
    fn close(&mut self, open: Open, end: u64, duration: Duration, settings: &Hls) -> Duration {
        let duration = duration.clamp(SHORTEST, settings.longest());
        let Open { at, discontinuity, .. } = open;
        self.closed.push_back(Segment { sequence: self.next, at, end, duration, discontinuity });
        self.next += 1;
        // A segment stays after it has left the playlist for as long as that is (RFC 8216 §6.2.2), which short ones may make
        // longer than the window: that is bounded, too.
        while self.closed.len() > settings.window.saturating_mul(2).saturating_add(SPARE) {
            self.pop();
        }
        duration
    }

    /// Forgets what the ring has let go of.
    fn trim(&mut self, tail: u64) {
        while self.closed.front().is_some_and(|segment| segment.at < tail) {
            self.pop();
        }
        if self.open.is_some_and(|open| open.at < tail) {
            self.drop_open();
            self.broken = true;
        }
    }

    /// Somebody may have been told to begin behind it: its number is not given again. None is listed before it any more.
    fn drop_open(&mut self) {
        self.next += u64::from(self.open.take().is_some());
    }

    fn pop(&mut self) {
        if let Some(segment) = self.closed.pop_front() {
            self.passed += u64::from(segment.discontinuity);
        }
    }
}

impl Open {
    /// How long it plays if the random access point at `pts` ends it and its times go on there; `None` if they don't.
    fn rest(&self, pts: u64, arrived: Duration, settings: &Hls) -> Option<Duration> {
        let length = forward(self.pts, pts);
        let fits = |rest: &Duration| !rest.is_zero() && *rest <= settings.longest();
        let rest = length.checked_sub(self.given).filter(fits);
        match self.begins {
            Begins::AtRandomAccess => rest,
            // What was cut off before it was measured by when it came, which is not quite when it plays.
            Begins::Anywhere if length.abs_diff(self.given + arrived) <= settings.longest() => {
                Some(rest.unwrap_or(arrived))
            }
            Begins::Anywhere => None,
        }
    }
}

/// Segments kept beyond twice the window.
const SPARE: usize = 8;

/// Whether media comes into a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Runs,
    Pauses,
}

/// How far `to` lies behind `from` on a clock that wraps; hours, if it lies before it.
fn forward(from: u64, to: u64) -> Duration {
    let ticks = to.wrapping_sub(from) % WRAP;
    Duration::from_micros(ticks * 100 / 9)
}
