//! Which pieces is a journal made of, and are they whole?
//!
//! A frame is 16 bytes of head (kind, 3 bytes that check kind and length, length, checksum) and then its content. The checksum is
//! looked at before anything is decoded. It protects from accidents, not from malice.

use alloc::vec::Vec;

use super::{Digest, JournalFault};

/// The length of a frame's head.
pub const HEAD: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Of which run the journal is.
    Head = 1,
    /// Everything that an edge keeps.
    Snapshot = 2,
    /// Calls and what was answered to them.
    Calls = 3,
}

/// One piece of a journal.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'b> {
    pub kind: Kind,
    pub content: &'b [u8],
    /// Where its content begins in the journal.
    pub at: usize,
    /// Whether its end is there. Of one that is cut off nothing was checked.
    pub whole: bool,
}

/// Begins a frame at the end of `bytes`; [`close`] it with the place that this returns.
pub fn open(bytes: &mut Vec<u8>) -> usize {
    bytes.extend_from_slice(&[0; HEAD]);
    bytes.len() - HEAD
}

/// Ends the frame that begins at `from`.
pub fn close(bytes: &mut [u8], from: usize, kind: Kind) {
    let Some((head, content)) = bytes.get_mut(from..).and_then(<[u8]>::split_first_chunk_mut::<HEAD>) else { return };
    // No frame comes near 4 GiB; one that did would be found broken.
    *head = self::head(kind, content.len() as u32, checksum(content));
}

fn head(kind: Kind, length: u32, checksum: u64) -> [u8; HEAD] {
    let (mut head, mut check) = ([0; HEAD], Digest::default());
    check.word(u64::from(length) << 8 | kind as u64);
    head[..4].copy_from_slice(&check.value().to_le_bytes()[..4]);
    head[0] = kind as u8;
    head[4..8].copy_from_slice(&length.to_le_bytes());
    head[8..].copy_from_slice(&checksum.to_le_bytes());
    head
}

fn checksum(content: &[u8]) -> u64 {
    let mut digest = Digest::default();
    digest.update(content);
    digest.value()
}

/// Whether a whole frame begins anywhere behind `at`.
pub fn any_behind(bytes: &[u8], at: usize) -> bool {
    let whole = |from| matches!(next(bytes, from, 0), Ok(Some(Frame { whole: true, .. })));
    (at.saturating_add(1)..bytes.len()).any(whole)
}

/// The frame that begins at `at`; `None` at the end.
pub fn next(bytes: &[u8], at: usize, call: u64) -> Result<Option<Frame<'_>>, JournalFault> {
    let rest = bytes.get(at..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(None);
    }
    let Some((own, content)) = rest.split_first_chunk::<HEAD>() else {
        return Err(JournalFault::Truncated { at, call });
    };
    let kind = match own[0] {
        1 => Kind::Head,
        2 => Kind::Snapshot,
        3 => Kind::Calls,
        _ => return Err(JournalFault::Broken { at }),
    };
    let length = u32::from_le_bytes([own[4], own[5], own[6], own[7]]);
    if own[..8] != head(kind, length, 0)[..8] {
        return Err(JournalFault::Broken { at });
    }
    let at = at + HEAD;
    let Some(content) = content.get(..length as usize) else {
        return Ok(Some(Frame { kind, content, at, whole: false }));
    };
    if own[8..] != checksum(content).to_le_bytes() {
        return Err(JournalFault::Broken { at: at - HEAD });
    }
    Ok(Some(Frame { kind, content, at, whole: true }))
}
