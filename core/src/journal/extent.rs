//! How far does a journal go?

use super::JournalFault;
use super::read::{Entry, Reader};
use crate::time::Time;

/// How much of a journal stands, as far as that can be told without running it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Up to which byte all is as it was written. So much of it is a journal by itself.
    pub checked: usize,
    /// The last call in there, from 1; 0 if there is none.
    pub calls: u64,
    /// Why there is no more that is whole.
    pub fault: Option<JournalFault>,
}

impl Extent {
    /// Reads a journal, and shows `watch` the number and the time of each call, also of those that were not checked.
    ///
    /// # Errors
    /// There is not even a head.
    pub fn of(bytes: &[u8], mut watch: impl FnMut(u64, Time)) -> Result<Extent, JournalFault> {
        let mut reader = Reader::new(bytes)?;
        let (mut calls, mut fault) = (0, None);
        loop {
            match reader.next() {
                Ok(Some(Entry::Call(call))) => {
                    watch(reader.call, call.now);
                    if reader.is_checked() {
                        calls = reader.call;
                    }
                }
                Ok(Some(Entry::Snapshot(_) | Entry::Digest(_))) => {}
                Ok(None) => break,
                Err(found) => {
                    fault = Some(found);
                    break;
                }
            }
        }
        // What is found broken may be a frame of which everything was read.
        let checked = match fault {
            Some(JournalFault::Broken { at } | JournalFault::Truncated { at, .. }) => reader.checked().min(at),
            _ => reader.checked(),
        };
        Ok(Extent { checked, calls, fault })
    }
}
