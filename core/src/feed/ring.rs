//! The newest bytes of a stream, addressed by how many came before them.

use alloc::collections::VecDeque;
use core::time::Duration;

use bytes::Bytes;

use crate::time::Time;

/// The newest chunks of a stream, at most `capacity` bytes of them but always the newest one.
///
/// Bytes keep the offset at which they came in, from 0 with the first byte ever pushed. Whole chunks leave at the tail, so a
/// tail lies where a chunk began.
#[derive(Debug)]
pub(super) struct Ring {
    chunks: VecDeque<Chunk>,
    capacity: usize,
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

/// Where a player can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Ring {
    pub(super) fn new(capacity: usize) -> Self {
        Ring { chunks: VecDeque::new(), capacity, head: 0, random_access: None }
    }

    /// Appends a chunk, which is not empty; drops from the tail what no longer fits.
    pub(super) fn push(&mut self, now: Time, data: Bytes, random_access: bool) {
        debug_assert!(!data.is_empty(), "an empty chunk has no place of its own");
        if random_access {
            self.random_access = Some(RandomAccess { at: self.head, came: now });
        }
        let chunk = Chunk { at: self.head, data };
        self.head = chunk.end();
        self.chunks.push_back(chunk);
        while self.span() > self.capacity as u64 && self.chunks.len() > 1 {
            self.chunks.pop_front();
        }
        let tail = self.tail();
        self.random_access = self.random_access.filter(|point| point.at >= tail);
    }

    /// The offset behind the newest byte; also how many bytes ever came in.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// The offset of the oldest byte kept; the head if there is none.
    pub(super) fn tail(&self) -> u64 {
        self.chunks.front().map_or(self.head, |chunk| chunk.at)
    }

    /// How many bytes are kept.
    pub(super) fn span(&self) -> u64 {
        self.head - self.tail()
    }

    /// The newest point to start at, if it is still kept.
    pub(super) fn random_access(&self) -> Option<RandomAccess> {
        self.random_access
    }

    /// Everything from `at` to the head; nothing if `at` is no longer kept or not there yet.
    pub(super) fn slices(&self, at: u64) -> impl Iterator<Item = &[u8]> {
        let first =
            if at < self.tail() { self.chunks.len() } else { self.chunks.partition_point(|chunk| chunk.end() <= at) };
        self.chunks.range(first..).map(move |chunk| &chunk.data[at.saturating_sub(chunk.at) as usize..])
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn ring(capacity: usize, chunks: &[&'static str]) -> Ring {
        let mut ring = Ring::new(capacity);
        for chunk in chunks {
            ring.push(Time::ZERO, Bytes::from_static(chunk.as_bytes()), false);
        }
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
        ring.push(Time::ZERO, Bytes::from_static(b"g"), false);
        assert_eq!((ring.tail(), ring.head()), (6, 7));
    }

    #[test]
    fn the_newest_point_to_start_at_leaves_with_its_chunk() {
        let mut ring = ring(3, &["a"]);
        ring.push(Time::from_micros(7), Bytes::from_static(b"b"), true);
        let point = ring.random_access();
        assert_eq!(point, Some(RandomAccess { at: 1, came: Time::from_micros(7) }));
        assert_eq!(point.map(|point| point.age(Time::from_micros(10))), Some(Duration::from_micros(3)));
        ring.push(Time::ZERO, Bytes::from_static(b"cd"), false);
        assert_eq!(ring.random_access(), point);
        ring.push(Time::ZERO, Bytes::from_static(b"e"), false);
        assert_eq!(ring.random_access(), None);
    }
}
