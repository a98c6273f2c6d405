//! Does it repeat?

use alloc::vec::Vec;

use super::log::{Entry, Reader};
use super::{Answer, Digest, JournalFault};
use crate::edge::Edge;
use crate::input::{Env, Evidence, Input, Output, SessionId};
use crate::time::Time;

/// One replayed call, for whoever watches.
#[derive(Debug)]
pub struct Step<'a> {
    /// Which call, from 1.
    pub call: u64,
    /// When.
    pub now: Time,
    /// What went in.
    pub input: &'a Input,
    /// What the outside answered, in order.
    pub answers: &'a [Answer],
    /// What came out.
    pub outputs: &'a [Output],
    /// The edge after it.
    pub edge: &'a Edge,
}

/// Runs a journal through a new edge, shows each step to `watch`, and checks every digest in it.
pub fn replay(bytes: &[u8], mut watch: impl FnMut(Step<'_>)) -> Result<Digest, JournalFault> {
    let mut reader = Reader::new(bytes)?;
    let mut digest = Digest::default();
    digest.update(&postcard::to_allocvec(&reader.head.config).unwrap_or_default());
    let mut edge = Edge::new(reader.head.config.clone());
    let (mut outputs, mut scratch) = (Vec::new(), Vec::new());
    while let Some(entry) = reader.next()? {
        let (call, now) = (reader.call, reader.now);
        match entry {
            Entry::Call { input, answers, .. } => {
                let mut env = Answering { answers: answers.iter(), diverged: false };
                edge.handle(now, input.clone(), &mut env);
                if env.diverged || env.answers.next().is_some() {
                    return Err(JournalFault::Diverged { call });
                }
                digest.word(now.as_micros());
                outputs.clear();
                while let Some(output) = edge.poll() {
                    scratch.clear();
                    super::record::append(&output, &mut scratch);
                    digest.update(&scratch);
                    outputs.push(output);
                }
                watch(Step { call, now, input: &input, answers: &answers, outputs: &outputs, edge: &edge });
            }
            Entry::Digest(recorded) if recorded == digest.value() => {}
            Entry::Digest(_) => return Err(JournalFault::OtherDigest { call }),
        }
    }
    Ok(digest)
}

struct Answering<'a> {
    answers: core::slice::Iter<'a, Answer>,
    diverged: bool,
}

impl Env for Answering<'_> {
    fn activity(&mut self, session: SessionId) -> Evidence {
        match self.answers.next() {
            Some(Answer::Activity { session: own, evidence }) if *own == session => *evidence,
            _ => {
                self.diverged = true;
                Evidence::default()
            }
        }
    }

    fn entropy(&mut self) -> [u8; 16] {
        match self.answers.next() {
            Some(Answer::Entropy(bytes)) => *bytes,
            _ => {
                self.diverged = true;
                [0; 16]
            }
        }
    }
}
