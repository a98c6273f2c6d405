//! The newest bytes of a stream, addressed by how many came before them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use serde::{Deserialize, Serialize, Serializer};

use crate::journal::code::{take_varint, varint};
use crate::journal::media;
use crate::time::Time;

/// The newest chunks of a stream.
///
/// Bytes keep the offset at which they came in, from 0 with the first byte ever pushed. Whole chunks leave at the tail, so a
/// tail lies where a chunk began.
#[derive(Debug, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub(super) struct Ring {
    #[serde(skip)]
    chunks: VecDeque<Chunk>,
    /// As they are written: an edge has hundreds of thousands, and stands still meanwhile.
    lengths: Lengths,
    /// The offset of the oldest byte kept. Said here although the oldest chunk knows it: a push need not look at that.
    tail: u64,
    head: u64,
    /// Older points are of no use to anybody: nobody starts further back than at the newest.
    random_access: Option<RandomAccess>,
}

#[derive(Debug)]
struct Chunk {
    at: u64,
    data: Bytes,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.at + self.data.len() as u64
    }
}

/// So many of the newest chunks are looked at before the others are searched.
const NEWEST: usize = 4;

/// There is room for so many chunks when the first comes in.
const BEGINS: usize = 64;

/// Where a player can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RandomAccess {
    /// The offset of its first byte.
    pub at: u64,
    /// When it came in.
    pub came: Time,
}

impl RandomAccess {
    pub(super) fn age(&self, now: Time) -> Duration {
        now.since(self.came)
    }
}

/// The lengths of chunks, as [`media::packets`] of each, one after another.
#[derive(Debug, Default)]
struct Lengths(VecDeque<u8>);

impl Lengths {
    fn push(&mut self, length: usize) {
        varint(&mut self.0, media::packets(length));
    }

    fn pop(&mut self) {
        while self.0.pop_front().is_some_and(|byte| byte & 0x80 != 0) {}
    }
}

impl Serialize for Lengths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (one, other) = self.0.as_slices();
        serializer.serialize_bytes(&[one, other].concat())
    }
}

/// A ring without its media, as it is written: the same values in the same order.
#[derive(Deserialize)]
struct Saved {
    lengths: Vec<u8>,
    tail: u64,
    head: u64,
    random_access: Option<RandomAccess>,
}

impl TryFrom<Saved> for Ring {
    type Error = &'static str;

    fn try_from(saved: Saved) -> Result<Ring, &'static str> {
        let Saved { lengths, tail, head, random_access } = saved;
        let (mut zeros, mut at, mut rest) = (media::Zeros::default(), tail, &lengths[..]);
        let mut chunks = VecDeque::new();
        while !rest.is_empty() {
            let length = take_varint(&mut rest).map_err(|_| "no length")?;
            let data = zeros.get(media::length(length)).ok_or("a chunk longer than any")?;
            let end = at.checked_add(data.len() as u64).ok_or("a stream longer than any")?;
            chunks.push_back(Chunk { at, data });
            at = end;
        }
        let lengths = Lengths(lengths.into());
        if at == head {
            Ok(Ring { chunks, lengths, tail, head, random_access })
        } else {
            Err("chunks that do not follow")
        }
    }
}

impl Ring {
    pub(super) fn new() -> Self {
        Ring { chunks: VecDeque::new(), lengths: Lengths::default(), tail: 0, head: 0, random_access: None }
    }

    /// Appends a chunk, which is not empty; before it whole chunks leave at the tail, until no more than `capacity` bytes are kept
    /// with it or it is alone. So the place of a chunk that leaves can be used again at once.
    pub(super) fn push(&mut self, now: Time, data: Bytes, random_access: bool, capacity: usize) {
        debug_assert!(!data.is_empty(), "an empty chunk has no place of its own");
        let (at, head) = (self.head, self.head + data.len() as u64);
        while head - self.tail > capacity as u64
            && let Some(oldest) = self.chunks.pop_front()
        {
            self.tail = oldest.end();
            self.lengths.pop();
        }
        if self.chunks.capacity() == 0 {
            // A stream that begins goes on: it need not grow by way of every smaller one.
            self.chunks.reserve(BEGINS);
            self.lengths.0.reserve(BEGINS);
        }
        self.lengths.push(data.len());
        self.chunks.push_back(Chunk { at, data });
        self.head = head;
        if random_access {
            self.random_access = Some(RandomAccess { at, came: now });
        } else if self.random_access.is_some_and(|point| point.at < self.tail) {
            self.random_access = None;
        }
    }

    /// Lets go of all chunks. Offsets go on.
    pub(super) fn clear(&mut self) {
        self.chunks = VecDeque::new();
        self.lengths = Lengths::default();
        self.tail = self.head;
        self.random_access = None;
    }

    /// The offset behind the newest byte; also how many bytes ever came in.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// The offset of the oldest byte kept; the head if there is none.
    pub(super) fn tail(&self) -> u64 {
        self.tail
    }

    /// How many bytes are kept.
    pub(super) fn span(&self) -> u64 {
        self.head - self.tail
    }

    /// The newest point to start at, if it is still kept.
    pub(super) fn random_access(&self) -> Option<RandomAccess> {
        self.random_access
    }

    /// Where each chunk begins, and how many bytes it has, oldest first.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (u64, u64)> {
        self.chunks.iter().map(|chunk| (chunk.at, chunk.data.len() as u64))
    }

    /// Everything from `at` to the head; nothing if `at` is no longer kept or not there yet.
    pub(super) fn slices(&self, at: u64) -> impl Iterator<Item = &[u8]> {
        // Nearly everybody reads what came in last.
        let newest = self.chunks.iter().rev().take(NEWEST).position(|chunk| chunk.at <= at);
        let first = match newest {
            _ if at < self.tail || at >= self.head => self.chunks.len(),
            Some(before) => self.chunks.len() - 1 - before,
            None => self.chunks.partition_point(|chunk| chunk.end() <= at),
        };
        self.chunks.range(first..).map(move |chunk| &chunk.data[at.saturating_sub(chunk.at) as usize..])
    }
}

impl Ring {
    /// Everything from `at` to `end`; `None` if that is not kept any more, or not there yet.
    pub(super) fn range(&self, at: u64, end: u64) -> Option<impl Iterator<Item = &[u8]>> {
        let mut left = end.checked_sub(at)?;
        (at >= self.tail && end <= self.head).then(|| {
            self.slices(at).map_while(move |slice| {
                let taken = left.min(slice.len() as u64);
                left -= taken;
                (taken > 0).then(|| &slice[..taken as usize])
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn push(ring: &mut Ring, chunk: &'static str, capacity: usize) {
        ring.push(Time::ZERO, Bytes::from_static(chunk.as_bytes()), false, capacity);
    }

    fn ring(capacity: usize, chunks: &[&'static str]) -> Ring {
        let mut ring = Ring::new();
        chunks.iter().for_each(|chunk| push(&mut ring, chunk, capacity));
        ring
    }

    fn read(ring: &Ring, at: u64) -> Vec<&[u8]> {
        ring.slices(at).collect()
    }

    #[test]
    fn reads_from_any_offset_that_is_kept() {
        let ring = ring(100, &["abc", "d", "ef"]);
        assert_eq!(read(&ring, 0), [&b"abc"[..], b"d", b"ef"]);
        assert_eq!(read(&ring, 2), [&b"c"[..], b"d", b"ef"]);
        assert_eq!(read(&ring, 3), [&b"d"[..], b"ef"]);
        assert_eq!(read(&ring, 5), [&b"f"[..]]);
        assert!(read(&ring, 6).is_empty());
        assert!(read(&ring, u64::MAX).is_empty());
    }

    #[test]
    fn a_range_is_whole_or_not_there() {
        let ring = ring(5, &["abc", "d", "ef"]);
        let range = |at, end| ring.range(at, end).map(|slices| slices.collect::<Vec<_>>().concat());
        assert_eq!(range(3, 6).as_deref(), Some(&b"def"[..]));
        assert_eq!(range(4, 5).as_deref(), Some(&b"e"[..]));
        assert_eq!(range(4, 4).as_deref(), Some(&b""[..]));
        assert_eq!((range(2, 6), range(4, 7), range(5, 4)), (None, None, None));
        assert_eq!(ring.range(3, 4).map(Iterator::count), Some(1), "and nothing of what follows");
    }

    #[test]
    fn whole_chunks_leave_at_the_tail() {
        let ring = ring(5, &["abc", "d", "ef"]);
        assert_eq!((ring.tail(), ring.head(), ring.span()), (3, 6, 3));
        assert_eq!(read(&ring, 3), [&b"d"[..], b"ef"]);
        assert!(read(&ring, 2).is_empty(), "half a chunk that left must not be read from its middle on");
    }

    #[test]
    fn a_chunk_larger_than_the_ring_is_kept_alone() {
        let mut ring = ring(2, &["a", "bcdef"]);
        assert_eq!((ring.tail(), ring.head()), (1, 6));
        assert_eq!(read(&ring, 1), [&b"bcdef"[..]]);
        push(&mut ring, "g", 2);
        assert_eq!((ring.tail(), ring.head()), (6, 7));
    }

    #[test]
    fn the_newest_point_to_start_at_leaves_with_its_chunk() {
        let mut ring = ring(3, &["a"]);
        ring.push(Time::from_micros(7), Bytes::from_static(b"b"), true, 3);
        let point = ring.random_access();
        assert_eq!(point, Some(RandomAccess { at: 1, came: Time::from_micros(7) }));
        assert_eq!(point.map(|point| point.age(Time::from_micros(10))), Some(Duration::from_micros(3)));
        push(&mut ring, "cd", 3);
        assert_eq!(ring.random_access(), point);
        push(&mut ring, "e", 3);
        assert_eq!(ring.random_access(), None);
    }

    #[test]
    fn what_has_left_is_not_saved() {
        // Lengths that take one byte and several.
        let mut ring = Ring::new();
        for length in [188, 188 * 300, 7, 188 * 300, 188, 188] {
            ring.push(Time::ZERO, Bytes::from(alloc::vec![0; length]), false, 188 * 310);
        }
        assert!(ring.tail() > 188 * 300 && ring.chunks().count() > 2);
        let again: Ring = postcard::from_bytes(&postcard::to_allocvec(&ring).unwrap()).unwrap();
        assert_eq!(again.chunks().collect::<Vec<_>>(), ring.chunks().collect::<Vec<_>>());
    }
}
