//! The list of core calls: what a run is, what its hash is taken of, what replays it.
//!
//! | file | question it answers |
//! |---|---|
//! | `record` | what was the run? |
//! | `kept` | how much of a run is kept, and what makes room? |
//! | `fresh` | what of it is new to whoever has the rest? |
//! | `replay` | does it repeat? |
//! | `extent` | how far does it go? |
//! | `rest` | what can be gone on from behind what is broken? |
//! | `log` | which calls were there, and what without some of them? |
//! | `head` | of which program and which run is it? |
//! | `snapshot` | what did an edge keep, at one moment? |
//! | `frame` | which pieces is a journal made of, and are they whole? |
//! | `code` | how is a call written? |
//! | `read` | what stands in a journal, one thing after another? |
//! | `digest` | are two runs the same? |
//! | `fault` | what is wrong with a journal? |
//! | `media` | how is media kept? |
//!
//! A journal is [`MAGIC`], then frames: a [`Head`] with the configuration (without secrets), then calls, each with its time, its input
//! and what the outside answered. No media, only its lengths and marks. After each 4096 calls there is a digest of everything
//! that came out. A journal that is a ring ([`Recorded::ring`]) consists of segments, each of which begins with a snapshot of
//! the edge, so that the oldest can go.

pub(crate) mod code;
mod digest;
mod extent;
mod fault;
mod frame;
mod fresh;
mod head;
mod kept;
mod log;
pub(crate) mod media;
mod read;
mod record;
mod replay;
mod rest;
mod snapshot;
#[cfg(test)]
mod tests;

pub use digest::Digest;
pub use extent::Extent;
pub use fault::JournalFault;
pub use fresh::{Fresh, Mark};
pub use head::Head;
pub use log::{Call, Log};
pub use record::Recorded;
pub use replay::{Step, replay};
pub use rest::Rest;
use serde::{Deserialize, Serialize};
pub use snapshot::Snapshot;

use crate::input::{Evidence, SessionId};

/// The version of the format; one of another version is refused.
pub const VERSION: u8 = 5;

/// The first bytes of every journal; the last one is [`VERSION`].
pub const MAGIC: [u8; 8] = [b'H', b'O', b'L', b'D', b'F', b'S', b'T', VERSION];

/// What the outside answered to the core during one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// To a look at the evidence of a session.
    Activity {
        /// Of which.
        session: SessionId,
        /// What there was.
        evidence: Evidence,
    },
    /// Unpredictable bytes.
    Entropy([u8; 16]),
}
