//! What of a journal is new to whoever has the rest?

use bytes::Bytes;

/// How far somebody has got with a journal; by default nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Which segment of the run, from 0.
    pub(super) segment: u64,
    /// How many of its frames.
    pub(super) frames: usize,
    /// Whether that segment was begun at all.
    pub(super) begun: bool,
}

/// A part of a journal, in order ([`Recorded::since`](super::Recorded::since)). Shares memory with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// A segment begins: what follows can be read without what came before, behind `head`.
    Segment {
        /// What every journal of the run begins with.
        head: Bytes,
        /// Whether frames before it had gone before they were asked for. What follows cannot stand behind what came before then.
        gap: bool,
    },
    /// The next bytes.
    Frame(Bytes),
    /// The next bytes as they are so far. Whatever comes next takes their place, and is longer.
    Open(Bytes),
}
