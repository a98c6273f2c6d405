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
    /// Where the frame begins that was read from last.
    begin: usize,
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
        Ok(Reader { bytes, begin: at, at, calls: None, coder: Coder::new(Time::ZERO), head, call: 0 })
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
            let frame = frame::next(self.bytes, begin, self.call).map_err(|fault| self.breaks_off(fault))?;
            let Some(frame) = frame else { return Ok(None) };
            (self.begin, self.at) = (begin, frame.at + frame.content.len());
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

    /// Whether what was read last stands in a frame that is whole, so that it is what was written.
    pub fn is_checked(&self) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls.frame.whole)
    }

    /// Up to where every frame is whole; of the one that is read from only where it was read to its end.
    pub fn checked(&self) -> usize {
        match &self.calls {
            Some(calls) if !calls.frame.whole || !calls.rest.is_empty() => self.begin,
            _ => self.at,
        }
    }

    /// What is not as it was written and has nothing whole behind it is what the disk had when power was lost.
    fn breaks_off(&self, fault: JournalFault) -> JournalFault {
        match fault {
            JournalFault::Broken { at } if !frame::any_behind(self.bytes, at) => {
                JournalFault::Truncated { at, call: self.call }
            }
            fault => fault,
        }
    }

    /// The next call, or digest, of the frame.
    fn piece(&mut self) -> Result<Entry, JournalFault> {
        let Some(calls) = &mut self.calls else { return Err(JournalFault::Broken { at: self.at }) };
        let at = calls.frame.at + calls.frame.content.len() - calls.rest.len();
        let (whole, call) = (calls.frame.whole, self.call);
        let cut = JournalFault::Truncated { at, call };
        // What was not checked may be anything.
        let broken = if whole { JournalFault::Broken { at } } else { cut.clone() };
        let fault = |_: Unreadable| broken.clone();
        let input = match self.coder.read(&mut calls.rest).map_err(fault)? {
            Piece::Call(input) => input,
            Piece::Digest(digest) => return Ok(Entry::Digest(digest)),
            Piece::Answer(_) => return Err(broken),
        };
        calls.count += 1;
        if calls.count > CALLS {
            return Err(broken);
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
        self.call = self.call.checked_add(1).ok_or(broken)?;
        Ok(Entry::Call(Call { now: self.coder.now(), input, answers }))
    }
}
