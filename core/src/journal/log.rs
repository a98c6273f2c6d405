//! Which calls were there, and what without some of them?

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::{iter, slice};

use super::code::Coder;
use super::frame::{self, Kind};
use super::read::{Entry, Reader};
use super::record::{self, CALLS};
use super::{Answer, Head, JournalFault, Recorded, Snapshot, Step};
use crate::edge::Edge;
use crate::input::{Env, Evidence, Input, SessionId};
use crate::time::Time;

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

    /// What a journal is of and what it begins with, without its calls.
    pub fn opening(bytes: &[u8]) -> Result<Log, JournalFault> {
        let mut reader = Reader::new(bytes)?;
        let snapshot = match reader.next() {
            Ok(Some(Entry::Snapshot(snapshot))) => Some(snapshot),
            // What is wrong with its calls is nobody's business here.
            Ok(Some(Entry::Call(_) | Entry::Digest(_)) | None) | Err(_) => None,
        };
        Ok(Log { head: reader.head, snapshot, calls: Vec::new() })
    }

    /// As [`Log::read`], and of one that is cut off or broken what stands before that, and what is wrong there; what stands behind it is
    /// a log of its own ([`Rest`](super::Rest)). An error where there is not even a head.
    pub fn salvage(bytes: &[u8]) -> Result<(Log, Option<JournalFault>), JournalFault> {
        let mut reader = Reader::new(bytes)?;
        let mut log = Log { head: reader.head.clone(), ..Log::default() };
        loop {
            match reader.next() {
                Ok(Some(Entry::Call(call))) => log.calls.push(call),
                Ok(Some(Entry::Snapshot(first))) if log.snapshot.is_none() && log.calls.is_empty() => {
                    log.snapshot = Some(first);
                }
                Ok(Some(Entry::Snapshot(_) | Entry::Digest(_))) => {}
                Ok(None) => return Ok((log, None)),
                Err(fault) => return Ok((log, Some(fault))),
            }
        }
    }

    /// As a journal, which [`replay`](super::replay) runs where the answers fit. There are no digests in it: of a changed run they are
    /// not known before it is played.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = record::begin(&self.head);
        self.snapshot.iter().for_each(|snapshot| snapshot.write(&mut bytes));
        let mut coder = Coder::new(self.snapshot.as_ref().map_or(Time::ZERO, |snapshot| snapshot.now));
        for calls in self.calls.chunks(CALLS as usize) {
            let from = frame::open(&mut bytes);
            for call in calls {
                coder.call(&mut bytes, call.now, &call.input);
                call.answers.iter().for_each(|answer| coder.answer(&mut bytes, answer));
            }
            frame::close(&mut bytes, from, Kind::Calls);
        }
        bytes
    }

    /// Runs the calls through an edge and shows each step to `watch`, as far as they go: recorded answers are used in order while they
    /// are what the core asks for. Where it asks for something else, or for more, a session's evidence is the last that the
    /// log had of it, and entropy is a number of its own. [`Step::answers`] is what was answered.
    ///
    /// # Errors
    /// [`JournalFault::OtherConfig`] if the snapshot does not fit the configuration, as where that was changed.
    pub fn play(&self, mut watch: impl FnMut(Step<'_>)) -> Result<(), JournalFault> {
        let mut edge = match &self.snapshot {
            Some(snapshot) => snapshot.restore(&self.head.config).ok_or(JournalFault::OtherConfig)?,
            None => Edge::new(self.head.config.clone()),
        };
        let first = self.snapshot.as_ref().map_or(1, |snapshot| snapshot.calls.saturating_add(1));
        let mut guess = Guess::default();
        let mut outputs = Vec::new();
        for (call, own) in (first..).zip(&self.calls) {
            let answers = own.answered(&mut guess, |env| edge.handle(own.now, own.input.clone(), env));
            outputs.clear();
            outputs.extend(iter::from_fn(|| edge.poll()));
            let (now, input) = (own.now, &own.input);
            watch(Step { call, now, input, answers: &answers, outputs: &outputs, edge: &edge });
        }
        Ok(())
    }

    /// Runs the calls as [`Log::play`] does, through an edge that records them: what comes of that is a journal with digests. A snapshot
    /// is left out of account, for whoever hands in an edge says what it begins with.
    pub fn record(&self, edge: &mut Recorded) {
        let mut guess = Guess::default();
        for own in &self.calls {
            own.answered(&mut guess, |env| edge.handle(own.now, own.input.clone(), env));
            while edge.poll().is_some() {}
        }
    }
}

impl Call {
    /// Answers what `run` asks for; what was answered.
    fn answered(&self, guess: &mut Guess, run: impl FnOnce(&mut dyn Env)) -> Vec<Answer> {
        let mut env = Lenient { recorded: self.answers.iter(), given: Vec::new(), guess };
        run(&mut env);
        let given = env.given;
        guess.learn(&self.answers);
        given
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
    recorded: slice::Iter<'a, Answer>,
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
