//! What of a journal can be gone on from behind what is broken?

use alloc::vec::Vec;

use super::Snapshot;
use super::frame::{self, Frame, Kind};
use super::read::Reader;
use crate::time::Time;

/// What stands behind a place at which a journal is broken: from the next snapshot on nothing of what was before is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Where its snapshot begins in the journal, from 0.
    pub at: usize,
    /// How many calls there had been by then, with those that are lost.
    pub calls: u64,
    /// When the last of them was.
    pub now: Time,
    /// A journal by itself: the head of the whole one, then all that stands from the snapshot on.
    pub journal: Vec<u8>,
}

impl Rest {
    /// From the first snapshot that is whole at this byte or behind it; `None` where there is none, so that the calls behind it, if there
    /// are any, cannot be read: each is written by what is known of those before.
    pub fn behind(bytes: &[u8], broken: usize) -> Option<Rest> {
        let head = Reader::new(bytes).ok()?.checked();
        let snapshot = |at| match frame::next(bytes, at, 0) {
            Ok(Some(Frame { kind: Kind::Snapshot, content, whole: true, .. })) => Some((at, Snapshot::read(content)?)),
            _ => None,
        };
        let (at, Snapshot { calls, now, .. }) = (broken.max(head)..bytes.len()).find_map(snapshot)?;
        Some(Rest { at, calls, now, journal: [&bytes[..head], &bytes[at..]].concat() })
    }
}
