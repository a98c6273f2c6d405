//! What is wrong with a journal?

use core::fmt;

use super::VERSION;

/// What is wrong with a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalFault {
    /// It does not begin as journals do.
    NotAJournal,
    /// It is of another version of the format.
    OtherVersion {
        /// Which.
        has: u8,
    },
    /// It makes no sense at this byte.
    Broken {
        /// Where, from 0.
        at: usize,
    },
    /// It breaks off: its end is missing or is not what was written, as where whoever wrote it was stopped, or power was lost.
    Truncated {
        /// Where the piece begins that is not whole, from 0.
        at: usize,
        /// The last call that is whole, from 1; 0 if none is.
        call: u64,
    },
    /// Its snapshot is not of this configuration, or of another build of the core.
    OtherConfig,
    /// The core asked for something else than it did in the recorded run.
    Diverged {
        /// In which call, from 1.
        call: u64,
    },
    /// The outputs differ from the recorded run's.
    OtherDigest {
        /// After which call, from 1.
        call: u64,
    },
    /// The outputs are the recorded run's, but what the core keeps is not.
    OtherState {
        /// After which call, from 1.
        call: u64,
    },
}

impl fmt::Display for JournalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalFault::NotAJournal => write!(f, "no journal: it does not begin with HOLDFST"),
            JournalFault::OtherVersion { has } => {
                write!(f, "a journal of format version {has}; this program reads version {VERSION}")
            }
            JournalFault::Broken { at } => write!(f, "broken at byte {at}"),
            JournalFault::Truncated { at, call: 0 } => {
                write!(f, "the recording breaks off at byte {at}, before its first call")
            }
            JournalFault::Truncated { at, call } => {
                write!(
                    f,
                    "the recording breaks off here: what begins at byte {at} is not whole; call {call} is the last that is"
                )
            }
            JournalFault::OtherConfig => {
                write!(f, "the state that it begins with does not fit its configuration, or is of another build")
            }
            JournalFault::Diverged { call } => {
                write!(f, "call {call} asks for something else than the recorded run did")
            }
            JournalFault::OtherDigest { call } => write!(f, "outputs up to call {call} differ from the recorded run's"),
            JournalFault::OtherState { call } => {
                write!(f, "after call {call} the core keeps something else than in the recorded run")
            }
        }
    }
}

impl core::error::Error for JournalFault {}
