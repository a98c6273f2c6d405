//! How much of a run is kept, and what makes room?

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::{Fresh, Mark};
use crate::time::Time;

/// The shortest time between two snapshots that were not forced by the size of the ring.
const MINUTE: Duration = Duration::from_secs(60);

/// The frames of a journal in segments. A segment begins with a snapshot (the first one of a run with nothing): what is before it can
/// go.
///
/// After a snapshot of n bytes there is no other before 3n bytes of calls: snapshots are a quarter of what is written at the most,
/// however little happens. An edge with a thousand viewers has one of a hundred kilobytes, which it would else write each minute
/// of a quiet night, until nothing but snapshots was left. And a segment is no longer than a quarter of the ring if it can,
/// so that what makes room is never much more than it has to be.
#[derive(Debug)]
pub struct Kept {
    limit: Limit,
    segments: VecDeque<Segment>,
    /// Of all segments.
    bytes: usize,
    /// How many segments have gone.
    gone: u64,
    due: Due,
}

/// When a snapshot is: at the time, or when the frame that is being written has `most` bytes; never when it has less than `least`.
#[derive(Debug)]
struct Due {
    least: usize,
    most: usize,
    minute: Time,
}

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Everything, without a snapshot.
    Nothing,
    /// Everything, with a snapshot each so many bytes, and each minute.
    Marked(usize),
    /// The last so many bytes, or what eight snapshots take, where that is more: less would not hold two segments.
    Bytes(usize),
}

#[derive(Debug, Default)]
struct Segment {
    frames: Vec<Bytes>,
    begun: Time,
    /// How long its snapshot is.
    snapshot: usize,
    bytes: usize,
}

impl Kept {
    pub fn new(limit: Limit) -> Self {
        let due = Due { least: usize::MAX, most: usize::MAX, minute: Time::NEVER };
        let mut kept = Kept { limit, segments: VecDeque::from([Segment::default()]), bytes: 0, gone: 0, due };
        kept.look();
        kept
    }

    /// Whether a snapshot is to be taken now, when the frame that is being written has so many bytes.
    pub fn is_due(&self, now: Time, open: usize) -> bool {
        open >= self.due.least && (open >= self.due.most || now >= self.due.minute)
    }

    /// A snapshot was taken: what comes from here on needs nothing of what was before.
    pub fn begin(&mut self, now: Time, snapshot: &[u8]) {
        self.segments.push_back(Segment { begun: now, snapshot: snapshot.len(), ..Segment::default() });
        self.push(snapshot);
    }

    /// A frame is full.
    pub fn push(&mut self, frame: &[u8]) {
        self.bytes += frame.len();
        if let Some(segment) = self.segments.back_mut() {
            segment.bytes += frame.len();
            segment.frames.push(Bytes::copy_from_slice(frame));
        }
        self.make_room();
        self.look();
    }

    fn make_room(&mut self) {
        let (Limit::Bytes(size), Some(last)) = (self.limit, self.segments.back()) else { return };
        let size = size.max(8 * last.snapshot);
        while self.bytes > size && self.segments.len() > 1 {
            self.gone += 1;
            self.bytes -= self.segments.pop_front().map_or(0, |oldest| oldest.bytes);
        }
    }

    /// Says when the next snapshot is due: it is asked with each call.
    fn look(&mut self) {
        let Some(segment) = self.segments.back() else { return };
        let each = match self.limit {
            Limit::Nothing => return,
            Limit::Marked(each) => each,
            Limit::Bytes(size) => size / 4,
        };
        let left = |bytes: usize| bytes.saturating_sub(segment.bytes);
        let (least, most) = (left(4 * segment.snapshot).max(1), left(each));
        self.due = Due { least, most, minute: segment.begun + MINUTE };
    }

    /// All frames, in order.
    pub fn frames(&self) -> impl Iterator<Item = &Bytes> {
        self.segments.iter().flat_map(|segment| &segment.frames)
    }

    /// The frames behind `mark`, and where they end.
    pub fn since(&self, mut mark: Mark, head: &Bytes, sink: &mut impl FnMut(Fresh)) -> Mark {
        let had = mark.segment;
        for (number, segment) in (self.gone..).zip(&self.segments).skip_while(|(number, _)| *number < had) {
            if number > mark.segment || !mark.begun {
                // Of a segment that has gone nobody knows whether all was asked for.
                let gap = mark.begun && mark.segment < self.gone;
                sink(Fresh::Segment { head: head.clone(), gap });
                mark = Mark { segment: number, frames: 0, begun: true };
            }
            segment.frames.iter().skip(mark.frames).for_each(|frame| sink(Fresh::Frame(frame.clone())));
            mark.frames = segment.frames.len();
        }
        mark
    }
}
