//! What was the run?

use alloc::vec::Vec;
use core::mem;

use serde::Serialize;

use super::log::Entry;
use super::{Answer, Digest, Head, MAGIC};
use crate::edge::Edge;
use crate::input::{Env, Evidence, Input, Output, SessionId};
use crate::time::Time;

/// An [`Edge`] whose calls may be written down.
#[derive(Debug)]
pub struct Recorded {
    edge: Edge,
    journal: Option<Journal>,
}

/// The calls of one run so far.
#[derive(Debug)]
struct Journal {
    bytes: Vec<u8>,
    digest: Digest,
    last: Time,
    calls: u64,
    scratch: Vec<u8>,
}

impl Recorded {
    /// An edge that keeps no journal.
    pub fn off(config: crate::config::Config) -> Self {
        Recorded { edge: Edge::new(config), journal: None }
    }

    /// An edge that keeps a journal of everything from its first call on. A [`Config`](crate::config::Config) alone will do as
    /// a head.
    pub fn on(head: impl Into<Head>) -> Self {
        let head = head.into();
        let mut bytes = MAGIC.to_vec();
        append(&head, &mut bytes);
        let mut digest = Digest::default();
        digest.update(&postcard::to_allocvec(&head.config).unwrap_or_default());
        let journal = Journal { bytes, digest, last: Time::ZERO, calls: 0, scratch: Vec::new() };
        Recorded { edge: Edge::new(head.config), journal: Some(journal) }
    }

    /// As [`Edge::handle`].
    pub fn handle(&mut self, now: Time, input: Input, env: &mut dyn Env) {
        let Some(journal) = &mut self.journal else {
            return self.edge.handle(now, input, env);
        };
        let mut env = Listening { env, answers: Vec::new() };
        let copy = input.clone();
        let before = self.edge.pending().len();
        self.edge.handle(now, input, &mut env);
        let after = now.since(journal.last).as_micros() as u64;
        journal.last = journal.last.max(now);
        journal.calls += 1;
        append(&Entry::Call { after, input: copy, answers: env.answers }, &mut journal.bytes);
        journal.digest.word(journal.last.as_micros());
        for output in self.edge.pending().range(before..) {
            journal.digest_of(output);
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
        let journal = self.journal.as_ref()?;
        let mut bytes = journal.bytes.clone();
        append(&Entry::Digest(journal.digest.value()), &mut bytes);
        Some(bytes)
    }

    /// How many calls there were since the journal was begun, whether or not it still holds them.
    pub fn calls(&self) -> u64 {
        self.journal.as_ref().map_or(0, |journal| journal.calls)
    }
}

impl Journal {
    fn digest_of(&mut self, value: &impl Serialize) {
        self.scratch.clear();
        append(value, &mut self.scratch);
        self.digest.update(&self.scratch);
    }
}

pub(super) fn append(value: &impl Serialize, bytes: &mut Vec<u8>) {
    // A growing vector takes everything, and none of our types refuses to be serialized.
    *bytes = postcard::to_extend(value, mem::take(bytes)).unwrap_or_default();
}

struct Listening<'a> {
    env: &'a mut dyn Env,
    answers: Vec<Answer>,
}

impl Env for Listening<'_> {
    fn activity(&mut self, session: SessionId) -> Evidence {
        let evidence = self.env.activity(session);
        self.answers.push(Answer::Activity { session, evidence });
        evidence
    }

    fn entropy(&mut self) -> [u8; 16] {
        let bytes = self.env.entropy();
        self.answers.push(Answer::Entropy(bytes));
        bytes
    }
}
