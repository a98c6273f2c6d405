//! What stands in a journal, one thing after another?

use alloc::vec::Vec;

use super::code::{Coder, Piece, Unreadable};
use super::frame::{self, Frame, Kind};
use super::record::CALLS;
use super::{Call, Digest, Head, JournalFault, MAGIC, Snapshot, VERSION};
use crate::time::Time;

/// A journal that is being read. It never holds more than one call and one snapshot of it.
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    /// Where the next frame begins.
    at: usize,
    calls: Option<Calls<'b>>,
    coder: Coder,
    pub head: Head,
    /// Which call was read last, from 1.
    pub call: u64,
}

/// A frame of calls that is being read.
struct Calls<'b> {
    frame: Frame<'b>,
    rest: &'b [u8],
    count: u32,
}

pub(super) enum Entry {
    Call(Call),
    /// What the digest was here.
    Digest(Digest),
    /// What the edge kept here.
    Snapshot(Snapshot),
}

impl<'b> Reader<'b> {
    pub fn new(bytes: &'b [u8]) -> Result<Self, JournalFault> {
        let (magic, _) = bytes.split_first_chunk::<8>().ok_or(JournalFault::NotAJournal)?;
        if magic[..7] != MAGIC[..7] {
            return Err(JournalFault::NotAJournal);
        }
        if magic[7] != VERSION {
            return Err(JournalFault::OtherVersion { has: magic[7] });
        }
        let at = MAGIC.len();
        let cut = JournalFault::Truncated { at, call: 0 };
        let frame = frame::next(bytes, at, 0)?.filter(|frame| frame.whole).ok_or(cut)?;
        let head = match postcard::take_from_bytes(frame.content) {
            Ok((head, [])) if frame.kind == Kind::Head => head,
            _ => return Err(JournalFault::Broken { at }),
        };
        let at = frame.at + frame.content.len();
        Ok(Reader { bytes, at, calls: None, coder: Coder::new(Time::ZERO), head, call: 0 })
    }

    /// The next entry; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Entry>, JournalFault> {
        loop {
            match &mut self.calls {
                Some(calls) if !calls.rest.is_empty() => return self.piece().map(Some),
                Some(Calls { frame: Frame { whole: false, .. }, .. }) => {
                    return Err(JournalFault::Truncated { at: self.bytes.len(), call: self.call });
                }
                _ => {}
            }
            let begin = self.at;
            let Some(frame) = frame::next(self.bytes, begin, self.call)? else { return Ok(None) };
            self.at = frame.at + frame.content.len();
            match frame.kind {
                Kind::Calls => self.calls = Some(Calls { frame, rest: frame.content, count: 0 }),
                _ if !frame.whole => return Err(JournalFault::Truncated { at: begin, call: self.call }),
                Kind::Snapshot => {
                    let snapshot = Snapshot::read(frame.content).filter(|own| self.call == 0 || own.calls == self.call);
                    let snapshot = snapshot.ok_or(JournalFault::Broken { at: begin })?;
                    (self.call, self.coder) = (snapshot.calls, Coder::new(snapshot.now));
                    return Ok(Some(Entry::Snapshot(snapshot)));
                }
                Kind::Head => return Err(JournalFault::Broken { at: begin }),
            }
        }
    }

    /// The next call, or digest, of the frame.
    fn piece(&mut self) -> Result<Entry, JournalFault> {
        let Some(calls) = &mut self.calls else { return Err(JournalFault::Broken { at: self.at }) };
        let at = calls.frame.at + calls.frame.content.len() - calls.rest.len();
        let (whole, call) = (calls.frame.whole, self.call);
        let cut = JournalFault::Truncated { at, call };
        let fault = |unreadable| match unreadable {
            Unreadable::End if !whole => JournalFault::Truncated { at, call },
            _ => JournalFault::Broken { at },
        };
        let input = match self.coder.read(&mut calls.rest).map_err(fault)? {
            Piece::Call(input) => input,
            Piece::Digest(digest) => return Ok(Entry::Digest(digest)),
            Piece::Answer(_) => return Err(JournalFault::Broken { at }),
        };
        calls.count += 1;
        if calls.count > CALLS {
            return Err(JournalFault::Broken { at });
        }
        let mut answers = Vec::new();
        while Coder::is_answer(calls.rest) {
            if let Piece::Answer(answer) = self.coder.read(&mut calls.rest).map_err(fault)? {
                answers.push(answer);
            }
        }
        if calls.rest.is_empty() && !whole {
            // Nobody knows whether there was another answer.
            return Err(cut);
        }
        self.call += 1;
        Ok(Entry::Call(Call { now: self.coder.now(), input, answers }))
    }
}
