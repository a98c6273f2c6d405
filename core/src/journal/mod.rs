//! The list of core calls: what a run is, what its hash is taken of, what replays it.
//!
//! | file | question it answers |
//! |---|---|
//! | `record` | what was the run? |
//! | `replay` | does it repeat? |
//! | `log` | which calls were there, and what without some of them? |
//! | `head` | of which program and which run is it? |
//! | `digest` | are two runs the same? |
//! | `fault` | what is wrong with a journal? |
//! | `media` | how is media kept? |
//!
//! A journal holds a [`Head`] with the configuration (without secrets), then each call: time, input, and what the outside
//! answered. No media, only its lengths and marks.

mod digest;
mod fault;
mod head;
mod log;
pub(crate) mod media;
mod record;
mod replay;

pub use digest::Digest;
pub use fault::JournalFault;
pub use head::Head;
pub use log::{Call, Log, Snapshot};
pub use record::Recorded;
pub use replay::{Step, replay};
use serde::{Deserialize, Serialize};

use crate::input::{Evidence, SessionId};

/// The version of the format; one of another version is refused.
pub const VERSION: u8 = 2;

/// The first bytes of every journal; the last one is [`VERSION`].
pub const MAGIC: [u8; 8] = *b"HOLDFST\x02";

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
