//! What did an edge keep, at one moment?

use alloc::vec::Vec;
use core::mem;

use serde::{Deserialize, Serialize};

use super::{Digest, frame};
use crate::config::Config;
use crate::edge::Edge;
use crate::time::Time;

/// Everything that an edge keeps, at one moment between two calls. Its layout is that of the core that wrote it: when something kept
/// by the core changes, the version of the format ([`VERSION`](super::VERSION)) does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// How many calls there had been.
    pub calls: u64,
    /// When the last of them was.
    pub now: Time,
    pub(super) digest: Digest,
    pub(super) state: Vec<u8>,
}

/// What stands before the state.
#[derive(Serialize, Deserialize)]
struct Mark {
    calls: u64,
    now: Time,
    digest: u64,
}

impl Snapshot {
    /// The edge as it was; `None` if it is of another configuration.
    pub fn restore(&self, config: &Config) -> Option<Edge> {
        Edge::restore(config.clone(), &self.state)
    }

    /// Whether that is what the edge keeps now.
    pub(super) fn is_of(&self, edge: &Edge) -> bool {
        edge.save(Vec::new()).is_ok_and(|state| state == self.state)
    }

    pub(super) fn read(content: &[u8]) -> Option<Snapshot> {
        let (Mark { calls, now, digest }, state) = postcard::take_from_bytes(content).ok()?;
        Some(Snapshot { calls, now, digest: Digest::of_value(digest), state: state.into() })
    }

    /// Appends it as a frame.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let from = begin(bytes, self.calls, self.now, self.digest);
        bytes.extend_from_slice(&self.state);
        frame::close(bytes, from, frame::Kind::Snapshot);
    }
}

/// Appends a frame with what the edge keeps now.
pub(super) fn take(edge: &Edge, bytes: &mut Vec<u8>, calls: u64, now: Time, digest: Digest) {
    let from = begin(bytes, calls, now, digest);
    // A growing vector takes everything, and none of our types refuses to be serialized.
    *bytes = edge.save(mem::take(bytes)).unwrap_or_default();
    frame::close(bytes, from, frame::Kind::Snapshot);
}

fn begin(bytes: &mut Vec<u8>, calls: u64, now: Time, digest: Digest) -> usize {
    let from = frame::open(bytes);
    super::code::append(&Mark { calls, now, digest: digest.value() }, bytes);
    from
}
