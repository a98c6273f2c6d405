//! What was the run?

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::iter;

use bytes::Bytes;

use super::code::{Coder, append};
use super::frame::{self, Kind};
use super::kept::{Kept, Limit};
use super::{Answer, Digest, Fresh, Head, MAGIC, Mark, snapshot};
use crate::config::Config;
use crate::edge::Edge;
use crate::input::{Env, Evidence, Input, Output, SessionId};
use crate::time::Time;

/// After so many calls there is a digest.
pub(super) const CALLS: u32 = 4096;

/// An [`Edge`] whose calls may be written down.
#[derive(Debug)]
pub struct Recorded {
    edge: Edge,
    journal: Option<Box<Journal>>,
}

/// The calls of one run so far.
#[derive(Debug)]
struct Journal {
    /// Magic and head.
    head: Bytes,
    kept: Kept,
    /// The frame that is being written.
    open: Open,
    digest: Digest,
    calls: u64,
    /// For one output; kept for its memory.
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    coder: Coder,
    bytes: Vec<u8>,
    calls: u32,
}

impl Recorded {
    /// An edge that keeps no journal.
    pub fn off(config: Config) -> Self {
        Recorded { edge: Edge::new(config), journal: None }
    }

    /// An edge that keeps a journal of everything from its first call on. A [`Config`] alone will do as a head.
    pub fn on(head: impl Into<Head>) -> Self {
        Self::new(head.into(), Limit::Nothing)
    }

    /// The same with snapshots in it, one in about `each` bytes, or in four times what one takes, where that is more.
    pub fn marked(head: impl Into<Head>, each: usize) -> Self {
        Self::new(head.into(), Limit::Marked(each))
    }

    /// An edge that keeps the last `size` bytes of its journal, or what eight snapshots of it take, where that is more.
    pub fn ring(head: impl Into<Head>, size: usize) -> Self {
        Self::new(head.into(), Limit::Bytes(size))
    }

    fn new(head: Head, limit: Limit) -> Self {
        let journal = Journal {
            head: begin(&head).into(),
            kept: Kept::new(limit),
            open: Open::new(Time::ZERO),
            digest: first_digest(&head.config),
            calls: 0,
            scratch: Vec::new(),
        };
        Recorded { edge: Edge::new(head.config), journal: Some(Box::new(journal)) }
    }

    /// As [`Edge::handle`].
    // Inline, or the input is moved once more than there is need to.
    #[inline]
    pub fn handle(&mut self, now: Time, input: Input, env: &mut dyn Env) {
        let Some(journal) = &mut self.journal else {
            return self.edge.handle(now, input, env);
        };
        // Before it is done: if that panics, it is the one call that whoever reads the journal wants to see.
        journal.call(now, &input, &self.edge);
        let before = self.edge.pending().len();
        self.edge.handle(now, input, &mut Listening { env, open: &mut journal.open });
        if self.edge.pending().len() > before {
            journal.said(self.edge.pending().range(before..));
        }
    }

    /// As [`Edge::poll`].
    pub fn poll(&mut self) -> Option<Output> {
        self.edge.poll()
    }

    /// The edge itself, to look at.
    pub fn edge(&self) -> &Edge {
        &self.edge
    }

    /// The digest of the run so far; `None` where no journal is kept.
    pub fn digest(&self) -> Option<Digest> {
        self.journal.as_ref().map(|journal| journal.digest)
    }

    /// The journal so far, closed by its digest; `None` where none is kept.
    pub fn journal(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write_journal(|piece| bytes.extend_from_slice(piece)).then_some(bytes)
    }

    /// Hands the journal to `sink` piece by piece, so that no second one is made of it. Whether one is kept.
    pub fn write_journal(&self, mut sink: impl FnMut(&[u8])) -> bool {
        let pieces = self.pieces();
        pieces.iter().flatten().for_each(|piece| sink(piece));
        pieces.is_some()
    }

    /// The journal in pieces that share its memory, closed by its digest; `None` where none is kept.
    pub fn pieces(&self) -> Option<Vec<Bytes>> {
        let journal = self.journal.as_ref()?;
        let frames = journal.kept.frames().cloned();
        Some(iter::once(journal.head.clone()).chain(frames).chain([journal.last()]).collect())
    }

    /// Hands what came since `mark` to `sink`, and returns the mark for the next time. Whoever asks each second or so has all of it.
    pub fn since(&self, mark: Mark, mut sink: impl FnMut(Fresh)) -> Mark {
        let Some(journal) = &self.journal else { return mark };
        let mark = journal.kept.since(mark, &journal.head, &mut sink);
        sink(Fresh::Open(journal.last()));
        mark
    }

    /// How many calls there were since the journal was begun, whether or not it still holds them.
    pub fn calls(&self) -> u64 {
        self.journal.as_ref().map_or(0, |journal| journal.calls)
    }
}

impl Journal {
    /// The frame that is being written, as it is so far.
    fn last(&self) -> Bytes {
        let mut bytes = self.open.bytes.clone();
        close(&mut bytes, self.digest);
        bytes.into()
    }

    /// Writes a call down before `edge` does it.
    fn call(&mut self, now: Time, input: &Input, edge: &Edge) {
        self.make_room(now, edge);
        self.calls += 1;
        self.open.calls += 1;
        self.open.coder.call(&mut self.open.bytes, now, input);
        self.digest.word(self.open.coder.now().as_micros());
    }

    /// Takes in what came of it.
    fn said<'o>(&mut self, outputs: impl Iterator<Item = &'o Output>) {
        outputs.for_each(|output| digest_output(&mut self.digest, &mut self.scratch, output));
    }

    /// Ends the frame where it is full, and the segment where a snapshot is due.
    fn make_room(&mut self, now: Time, edge: &Edge) {
        // What was not polled yet was said by calls before the snapshot, and is in nobody's way for long.
        let snapshot_due = self.kept.is_due(now, self.open.bytes.len() - frame::HEAD) && edge.pending().is_empty();
        if self.open.calls >= CALLS || snapshot_due {
            close(&mut self.open.bytes, self.digest);
            self.kept.push(&self.open.bytes);
            self.open.clear();
        }
        if snapshot_due {
            let last = self.open.coder.now();
            let mut bytes = Vec::new();
            snapshot::take(edge, &mut bytes, self.calls, last, self.digest);
            self.kept.begin(now, &bytes);
            self.open.coder = Coder::new(last);
        }
    }
}

impl Open {
    fn new(now: Time) -> Self {
        let mut open = Open { coder: Coder::new(now), bytes: Vec::new(), calls: 0 };
        open.clear();
        open
    }

    fn clear(&mut self) {
        self.bytes.clear();
        frame::open(&mut self.bytes);
        self.calls = 0;
    }
}

/// Magic and head of a journal.
pub(super) fn begin(head: &Head) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let from = frame::open(&mut bytes);
    append(head, &mut bytes);
    frame::close(&mut bytes, from, Kind::Head);
    bytes
}

fn close(bytes: &mut Vec<u8>, digest: Digest) {
    Coder::digest(bytes, digest);
    frame::close(bytes, 0, Kind::Calls);
}

/// The digest of a run in which nothing happened yet.
pub(super) fn first_digest(config: &Config) -> Digest {
    let mut digest = Digest::default();
    let mut bytes = Vec::new();
    append(config, &mut bytes);
    digest.update(&bytes);
    digest
}

pub(super) fn digest_output(digest: &mut Digest, scratch: &mut Vec<u8>, output: &Output) {
    if let Output::Ready { feed } = output {
        // Nearly all outputs are this one.
        return digest.word(((feed.index() as u64) << 32) | u64::from(feed.generation()));
    }
    scratch.clear();
    append(output, scratch);
    digest.update(scratch);
}

struct Listening<'a> {
    env: &'a mut dyn Env,
    open: &'a mut Open,
}

impl Listening<'_> {
    fn heard(&mut self, answer: Answer) {
        self.open.coder.answer(&mut self.open.bytes, &answer);
    }
}

impl Env for Listening<'_> {
    fn activity(&mut self, session: SessionId) -> Evidence {
        let evidence = self.env.activity(session);
        self.heard(Answer::Activity { session, evidence });
        evidence
    }

    fn entropy(&mut self) -> [u8; 16] {
        let bytes = self.env.entropy();
        self.heard(Answer::Entropy(bytes));
        bytes
    }
}
