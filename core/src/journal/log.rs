//! Which calls were there, and what without some of them?

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::record::append;
use super::{Answer, Head, JournalFault, MAGIC, Step, VERSION};
use crate::edge::Edge;
use crate::input::{Env, Evidence, Input, SessionId};
use crate::time::Time;

#[derive(Serialize, Deserialize)]
pub(super) enum Entry {
    /// One call; time in µs since the call before.
    Call { after: u64, input: Input, answers: Vec<Answer> },
    /// What the digest was here.
    Digest(u64),
}

/// A journal taken apart: whoever shrinks a run changes `calls` and plays what is left.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Log {
    /// Of which run.
    pub head: Head,
    /// What the run begins with, where its beginning is not there any more; `None`: with nothing.
    pub snapshot: Option<Snapshot>,
    /// Every call, in order.
    pub calls: Vec<Call>,
}

/// Everything that an edge keeps, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// How many calls there had been.
    pub calls: u64,
    state: Vec<u8>,
}

/// One call of the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When.
    pub now: Time,
    /// What went in; media as zeros.
    pub input: Input,
    /// What the outside answered, in order.
    pub answers: Vec<Answer>,
}

impl Log {
    /// Takes a journal apart. Digests are not looked at, for nothing is run ([`replay`](super::replay)).
    pub fn read(bytes: &[u8]) -> Result<Log, JournalFault> {
        let (log, fault) = Log::salvage(bytes)?;
        fault.map_or(Ok(log), Err)
    }

    /// The same, and of one that is cut off or broken what is whole, and what is wrong with the rest. An error where there is not
    /// even a head.
    pub fn salvage(bytes: &[u8]) -> Result<(Log, Option<JournalFault>), JournalFault> {
        let mut reader = Reader::new(bytes)?;
        let mut log = Log { head: reader.head.clone(), ..Log::default() };
        loop {
            match reader.next() {
                Ok(Some(Entry::Call { input, answers, .. })) => {
                    log.calls.push(Call { now: reader.now, input, answers });
                }
                Ok(Some(Entry::Digest(_))) => {}
                Ok(None) => return Ok((log, None)),
                Err(fault) => return Ok((log, Some(fault))),
            }
        }
    }

    /// As a journal, which [`replay`](super::replay) runs where the answers fit. There are no digests in it: of a changed run they are
    /// not known before it is played.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        append(&self.head, &mut bytes);
        let mut last = Time::ZERO;
        for call in &self.calls {
            let after = call.now.since(last).as_micros() as u64;
            last = last.max(call.now);
            append(&Entry::Call { after, input: call.input.clone(), answers: call.answers.clone() }, &mut bytes);
        }
        bytes
    }

    /// Runs the calls through an edge and shows each step to `watch`, as far as they go: recorded answers are used in order while they
    /// are what the core asks for. Where it asks for something else, or for more, a session's evidence is the last that the
    /// log had of it, and entropy is a number of its own. [`Step::answers`] is what was answered.
    pub fn play(&self, mut watch: impl FnMut(Step<'_>)) {
        let mut edge = Edge::new(self.head.config.clone());
        let mut guess = Guess::default();
        let mut outputs = Vec::new();
        for (call, own) in (1..).zip(&self.calls) {
            let mut env = Lenient { recorded: own.answers.iter(), given: Vec::new(), guess: &mut guess };
            edge.handle(own.now, own.input.clone(), &mut env);
            let given = env.given;
            guess.learn(&own.answers);
            outputs.clear();
            outputs.extend(core::iter::from_fn(|| edge.poll()));
            let (now, input) = (own.now, &own.input);
            watch(Step { call, now, input, answers: &given, outputs: &outputs, edge: &edge });
        }
    }
}

/// What is answered where nothing was recorded.
#[derive(Default)]
struct Guess {
    evidence: BTreeMap<SessionId, Evidence>,
    entropy: u64,
}

impl Guess {
    fn learn(&mut self, answers: &[Answer]) {
        for answer in answers {
            if let Answer::Activity { session, evidence } = answer {
                self.evidence.insert(*session, *evidence);
            }
        }
    }
}

struct Lenient<'a> {
    recorded: core::slice::Iter<'a, Answer>,
    given: Vec<Answer>,
    guess: &'a mut Guess,
}

impl Env for Lenient<'_> {
    fn activity(&mut self, session: SessionId) -> Evidence {
        let mut rest = self.recorded.clone();
        let evidence = match rest.next() {
            Some(Answer::Activity { session: own, evidence }) if *own == session => {
                self.recorded = rest;
                *evidence
            }
            _ => self.guess.evidence.get(&session).copied().unwrap_or_default(),
        };
        self.given.push(Answer::Activity { session, evidence });
        evidence
    }

    fn entropy(&mut self) -> [u8; 16] {
        let mut rest = self.recorded.clone();
        let bytes = match rest.next() {
            Some(Answer::Entropy(bytes)) => {
                self.recorded = rest;
                *bytes
            }
            _ => {
                self.guess.entropy += 1;
                let mut bytes = *b"a guess.\0\0\0\0\0\0\0\0";
                bytes[8..].copy_from_slice(&self.guess.entropy.to_be_bytes());
                bytes
            }
        };
        self.given.push(Answer::Entropy(bytes));
        bytes
    }
}

/// The entries of a journal, one by one.
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    rest: &'b [u8],
    pub head: Head,
    /// When the last call was, and which.
    pub now: Time,
    pub call: u64,
}

impl<'b> Reader<'b> {
    pub fn new(bytes: &'b [u8]) -> Result<Self, JournalFault> {
        let (magic, body) = bytes.split_at_checked(MAGIC.len()).ok_or(JournalFault::NotAJournal)?;
        if magic[..7] != MAGIC[..7] {
            return Err(JournalFault::NotAJournal);
        }
        if magic[7] != VERSION {
            return Err(JournalFault::OtherVersion { has: magic[7] });
        }
        let at = MAGIC.len();
        let (head, rest) = postcard::take_from_bytes(body).map_err(|error| fault(error, at, 0))?;
        Ok(Reader { bytes, rest, head, now: Time::ZERO, call: 0 })
    }

    pub fn next(&mut self) -> Result<Option<Entry>, JournalFault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let at = self.bytes.len() - self.rest.len();
        let (entry, rest) = postcard::take_from_bytes(self.rest).map_err(|error| fault(error, at, self.call))?;
        if let Entry::Call { after, .. } = &entry {
            self.now = self.now + Duration::from_micros(*after);
            self.call += 1;
        }
        self.rest = rest;
        Ok(Some(entry))
    }
}

fn fault(error: postcard::Error, at: usize, call: u64) -> JournalFault {
    match error {
        postcard::Error::DeserializeUnexpectedEnd => JournalFault::Truncated { at, call },
        _ => JournalFault::Broken { at },
    }
}
