//! An edge and one that was made of a snapshot of it, which must decide alike.

use alloc::vec::Vec;
use core::ops::Deref;

use crate::account::Strength;
use crate::config::Config;
use crate::edge::Edge;
use crate::input::{Env, Evidence, FeedId, Input, Output, SessionId};
use crate::journal::Answer;
use crate::time::Time;

/// An edge as the stages of all rooms use it. At calls by chance it is saved and another one is made of that, which is told the same
/// from there on and must say the same and keep the same, until the next one is made.
pub(crate) struct Twins {
    edge: Edge,
    twin: Edge,
    chance: u32,
}

impl Deref for Twins {
    type Target = Edge;

    fn deref(&self) -> &Edge {
        &self.edge
    }
}

fn saved(edge: &Edge) -> Vec<u8> {
    edge.save(Vec::new()).unwrap()
}

impl Twins {
    pub fn new(config: Config) -> Self {
        Twins { edge: Edge::new(config.clone()), twin: Edge::new(config), chance: 1 }
    }

    pub fn handle(&mut self, now: Time, input: Input, env: &mut dyn Env) {
        let copy = input.clone();
        self.both(env, |edge, env| edge.handle(now, input, env), |edge, env| edge.handle(now, copy, env));
    }

    pub fn set_strength(&mut self, now: Time, feed: FeedId, strength: Option<Strength>, env: &mut dyn Env) {
        let set = |edge: &mut Edge, env: &mut dyn Env| edge.set_strength(now, feed, strength, env);
        self.both(env, set, set);
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.edge.poll()
    }

    fn both(
        &mut self,
        env: &mut dyn Env,
        one: impl FnOnce(&mut Edge, &mut dyn Env),
        other: impl FnOnce(&mut Edge, &mut dyn Env),
    ) {
        self.chance = self.chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if self.chance >> 29 == 0 && self.edge.pending().is_empty() {
            let state = saved(&self.edge);
            assert!(state == saved(&self.twin), "both keep the same");
            self.twin = Edge::restore(self.edge.config().clone(), &state).expect("it can be restored");
            assert!(state == saved(&self.twin), "what is restored is the same");
        }
        let before = self.edge.pending().len();
        let mut heard = Heard { env, answers: Vec::new() };
        one(&mut self.edge, &mut heard);
        let mut said = Said(heard.answers.into_iter());
        other(&mut self.twin, &mut said);
        assert_eq!(said.0.next(), None, "both ask for the same");
        let outputs = self.edge.pending().range(before..);
        for output in outputs {
            assert_eq!(self.twin.poll().as_ref(), Some(output));
        }
        assert_eq!(self.twin.poll(), None);
        assert_eq!(self.twin.deadline(), self.edge.deadline());
    }
}

struct Heard<'e> {
    env: &'e mut dyn Env,
    answers: Vec<Answer>,
}

impl Env for Heard<'_> {
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

struct Said(alloc::vec::IntoIter<Answer>);

impl Env for Said {
    fn activity(&mut self, session: SessionId) -> Evidence {
        match self.0.next() {
            Some(Answer::Activity { session: own, evidence }) if own == session => evidence,
            other => panic!("asks for the evidence of {session} instead of {other:?}"),
        }
    }

    fn entropy(&mut self) -> [u8; 16] {
        match self.0.next() {
            Some(Answer::Entropy(bytes)) => bytes,
            other => panic!("asks for entropy instead of {other:?}"),
        }
    }
}
