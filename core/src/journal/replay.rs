//! Does it repeat?

use alloc::vec::Vec;

use super::read::{Entry, Reader};
use super::record::{digest_output, first_digest};
use super::{Answer, Call, Digest, JournalFault};
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

/// Runs a journal through a new edge, or one that is as its first snapshot says, shows each step to `watch`, and checks every digest
/// and every later snapshot in it. Returns the digest of the run.
///
/// A well-formed journal that makes no sense may make the core panic: whoever runs one of unknown origin catches that.
pub fn replay(bytes: &[u8], mut watch: impl FnMut(Step<'_>)) -> Result<Digest, JournalFault> {
    let mut reader = Reader::new(bytes)?;
    let config = reader.head.config.clone();
    let mut digest = first_digest(&config);
    let mut edge = Edge::new(config);
    let (mut outputs, mut scratch, mut begun) = (Vec::new(), Vec::new(), false);
    while let Some(entry) = reader.next()? {
        let call = reader.call;
        // Of what was not checked nothing can be said but that the recording breaks off.
        let strays = |fault, call| match reader.is_checked() {
            true => fault,
            false => JournalFault::Truncated { at: reader.checked(), call },
        };
        match entry {
            Entry::Call(Call { now, input, answers }) => {
                let mut env = Answering { answers: answers.iter(), diverged: false };
                edge.handle(now, input.clone(), &mut env);
                if env.diverged || env.answers.next().is_some() {
                    return Err(strays(JournalFault::Diverged { call }, call - 1));
                }
                digest.word(now.as_micros());
                outputs.clear();
                while let Some(output) = edge.poll() {
                    digest_output(&mut digest, &mut scratch, &output);
                    outputs.push(output);
                }
                watch(Step { call, now, input: &input, answers: &answers, outputs: &outputs, edge: &edge });
            }
            Entry::Snapshot(snapshot) if !begun => {
                edge = snapshot.restore(edge.config()).ok_or(JournalFault::OtherConfig)?;
                digest = snapshot.digest;
            }
            Entry::Snapshot(snapshot) if !snapshot.is_of(&edge) => return Err(JournalFault::OtherState { call }),
            Entry::Digest(recorded) if recorded != digest => {
                return Err(strays(JournalFault::OtherDigest { call }, call));
            }
            Entry::Snapshot(_) | Entry::Digest(_) => {}
        }
        begun = true;
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
