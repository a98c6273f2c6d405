//! Which parts of a journal can be read, and what is lost between them?

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use holdfast_core::journal::{Extent, JournalFault, Rest};
use holdfast_core::time::Time;

use super::told;

/// A journal in parts, of which there is more than one where bytes of it are not those that were written.
#[derive(Debug)]
pub(super) struct Parts<'b> {
    pub parts: Vec<Part<'b>>,
    /// The last call that is told of.
    pub ends: u64,
    /// When the first call was that can be read.
    pub first: Option<Time>,
}

/// What can be replayed by itself.
#[derive(Debug)]
pub(super) struct Part<'b> {
    /// A journal.
    pub bytes: Cow<'b, [u8]>,
    pub extent: Extent,
    /// How many bytes of the file stand before it that are not in front of it here.
    pub before: usize,
    /// What is lost between the part before it and this one.
    pub lost: Option<Lost>,
    /// What is lost behind it, where there is no other.
    pub behind: Option<Lost>,
}

/// Calls that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    /// The byte of the file at which they begin, or before.
    pub at: usize,
    /// The last call before them, from 1, and how long after the first one that was; `None` where they are the first.
    pub after: Option<(u64, Duration)>,
    /// The last one of them, and when that was.
    pub until: Option<(u64, Option<Duration>)>,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken at byte {}, for which ", self.at)?;
        match (self.after, self.until) {
            (Some((after, at)), Some((until, end))) => {
                write!(f, "calls {} to {until} are lost, from {}", after + 1, told::since(at))?;
                end.map_or(Ok(()), |end| write!(f, " to {}", told::since(end)))
            }
            (None, Some((until, _))) => write!(f, "calls up to {until} are lost, before all that is told"),
            (Some((after, at)), None) => write!(
                f,
                "all behind call {after} at {} is lost: no snapshot that is whole follows, and without one later calls cannot be read",
                told::since(at)
            ),
            (None, None) => {
                write!(
                    f,
                    "no call can be read: no snapshot that is whole follows, and without one later calls cannot be read"
                )
            }
        }
    }
}

/// Takes a journal apart. All that happened no later than `until` behind the first call that can be read is told.
pub(super) fn of(bytes: &[u8], until: Option<Duration>) -> Result<Parts<'_>, JournalFault> {
    let (mut parts, mut first, mut ends) = (Vec::new(), None, 0);
    let (mut rest, mut lost) = (Cow::Borrowed(bytes), None);
    let mut before = 0;
    loop {
        let mut last = None;
        let extent = Extent::of(&rest, |call, now| {
            let since = now.since(*first.get_or_insert(now));
            last = Some((call, since));
            if until.is_none_or(|until| since <= until) {
                ends = call;
            }
        })?;
        let Some(JournalFault::Broken { at }) = extent.fault else {
            parts.push(Part { bytes: rest, extent, before, lost, behind: None });
            return Ok(Parts { parts, ends, first });
        };
        // A part without a call is between two that are lost.
        let after = last.or_else(|| {
            let (call, at) = lost.as_ref().and_then(|lost: &Lost| lost.until)?;
            Some((call, at?))
        });
        let broken = Lost { at: at + before, after, until: None };
        let Some(Rest { at: from, calls, now, journal }) = Rest::behind(&rest, at) else {
            parts.push(Part { bytes: rest, extent, before, lost, behind: Some(broken) });
            return Ok(Parts { parts, ends, first });
        };
        let head = journal.len() - (rest.len() - from);
        parts.push(Part { bytes: rest, extent, before, lost, behind: None });
        before += from - head;
        lost = Some(Lost { until: Some((calls, first.map(|first| now.since(first)))), ..broken });
        rest = Cow::Owned(journal);
    }
}
