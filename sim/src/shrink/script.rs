//! A run as a list of calls of which some may be left out, played and judged with what is left.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::config::Config;
use holdfast_core::edge::Edge;
use holdfast_core::input::{Env, Evidence, Input, SessionId, UserId};
use holdfast_core::journal::{Answer, Call, Log};
use holdfast_core::time::Time;

use super::names::Names;
use super::quiet::quietly;
use crate::sides::Sides;
use crate::world::Witness;
use crate::world::hearing::{Hearing, Lag};
use crate::world::oracle::Broken;

/// How often a run is judged again because there was more to excuse in it than was thought.
pub(crate) const HEARINGS: usize = 40;

/// A run that can be played without some of its calls.
pub(crate) struct Script {
    log: Log,
    /// What the judges go by.
    pub rules: Config,
    names: Names,
    /// What the core was told of each session when it looked.
    evidence: BTreeMap<SessionId, Vec<(Time, Evidence)>>,
    /// The users that play titles.
    of_titles: BTreeSet<UserId>,
    /// Those of them that watch feeds, too.
    mixed: BTreeSet<UserId>,
}

/// What became of what was played.
pub(crate) struct Played {
    /// The calls as they were made, with what was answered.
    pub calls: Vec<Call>,
    /// Which calls of the run these were.
    pub kept: Vec<usize>,
    /// What broke, and when; it is the last call that broke it.
    pub broken: Option<(Time, Broken)>,
    pub witness: Witness,
    measured: Lag,
}

impl Script {
    pub fn new(log: Log) -> Self {
        let (rules, (of_titles, mixed)) = (log.head.config.clone(), users(&log));
        let (names, evidence) = (Names::default(), BTreeMap::new());
        let mut script = Script { log, rules, names, evidence, of_titles, mixed };
        let mut evidence = BTreeMap::<_, Vec<_>>::new();
        let names = RefCell::new(Names::default());
        let mut edge = Edge::new(script.log.head.config.clone());
        // A run that ends with a panic is known up to there.
        let _ = quietly(|| {
            for call in &script.log.calls {
                let mut env = Answers::new(&script, call, None, 0);
                edge.handle(call.now, call.input.clone(), &mut env);
                for answer in &env.given {
                    if let Answer::Activity { session, evidence: told } = answer {
                        evidence.entry(*session).or_default().push((call.now, *told));
                    }
                }
                let outputs: Vec<_> = std::iter::from_fn(|| edge.poll()).collect();
                names.borrow_mut().learn(&call.input, &outputs, &edge);
            }
        });
        (script.names, script.evidence) = (names.into_inner(), evidence);
        script
    }

    pub fn len(&self) -> usize {
        self.log.calls.len()
    }

    /// The users that watch feeds and play titles, too.
    pub fn mixed(&self) -> BTreeSet<UserId> {
        self.mixed.clone()
    }

    pub fn input(&self, call: usize) -> &Input {
        &self.log.calls[call].input
    }

    /// The same run with these calls instead of its own.
    pub fn with(&self, calls: Vec<Call>) -> Log {
        Log { head: self.log.head.clone(), calls, ..Log::default() }
    }

    /// Plays and judges these of its calls.
    pub fn play(&self, calls: &[usize]) -> Played {
        let mut lag = Lag::default();
        for _ in 1..HEARINGS {
            let played = self.play_with(calls, lag);
            let more =
                Lag { slack: lag.slack.max(played.measured.slack), unseen: lag.unseen.max(played.measured.unseen) };
            if played.broken.is_none() || more == lag {
                return played;
            }
            lag = more;
        }
        self.play_with(calls, lag)
    }

    fn play_with(&self, calls: &[usize], lag: Lag) -> Played {
        let config = &self.log.head.config;
        let mut hearing = Hearing::new(config, &self.rules, &self.of_titles, lag);
        let names = RefCell::new(Names::default());
        let (mut played, mut kept) = (Vec::<Call>::new(), Vec::new());
        let judged = quietly(|| -> Result<(), Broken> {
            for index in calls {
                let call = &self.log.calls[*index];
                let Some(input) = self.names.translate(&names.borrow(), &call.input) else { continue };
                kept.push(*index);
                played.push(Call { now: call.now, input: input.clone(), answers: Vec::new() });
                let mut env = Answers::new(self, call, Some(&names), played.len() as u64);
                let verdict = hearing.call(call.now, input.clone(), &mut env, &mut |answers, outputs, edge| {
                    if let Some(last) = played.last_mut() {
                        last.answers = answers.to_vec();
                    }
                    names.borrow_mut().learn(&input, outputs, edge);
                });
                verdict?;
            }
            hearing.all()
        });
        let at = played.last().map_or(Time::ZERO, |call| call.now);
        let broken = judged.unwrap_or_else(|text| Err(Broken { id: "panic", what: text })).err();
        let (broken, measured, witness) = (broken.map(|broken| (at, broken)), hearing.measured, hearing.witness);
        Played { calls: played, kept, broken, witness, measured }
    }
}

/// The users that play titles, and those of them that also watch feeds.
fn users(log: &Log) -> (BTreeSet<UserId>, BTreeSet<UserId>) {
    let mut sides = Sides::new(&log.head.config);
    let _ = quietly(|| log.play(|step| sides.step(&step)));
    sides.of_titles()
}

/// What the core is answered: what it was answered in this call, as long as it asks for that; else of a session what was last
/// told of it by then, and bytes like no others.
struct Answers<'a> {
    script: &'a Script,
    call: &'a Call,
    next: usize,
    /// What everything is called in this run; `None`: what it is called in the script's.
    names: Option<&'a RefCell<Names>>,
    unlike: u64,
    given: Vec<Answer>,
}

impl<'a> Answers<'a> {
    fn new(script: &'a Script, call: &'a Call, names: Option<&'a RefCell<Names>>, unlike: u64) -> Self {
        Answers { script, call, next: 0, names, unlike: unlike << 16, given: Vec::new() }
    }
}

impl Env for Answers<'_> {
    fn activity(&mut self, session: SessionId) -> Evidence {
        let own = match self.names {
            Some(names) => names.borrow().session_in(&self.script.names, session),
            None => Some(session),
        };
        let rest = self.call.answers.get(self.next..).unwrap_or_default();
        let recorded =
            rest.iter().position(|answer| matches!(answer, Answer::Activity { session, .. } if Some(*session) == own));
        let evidence = match recorded.map(|place| (place, &rest[place])) {
            Some((place, Answer::Activity { evidence, .. })) => {
                self.next += place + 1;
                *evidence
            }
            _ => {
                let told = own.and_then(|own| self.script.evidence.get(&own));
                let last = told.and_then(|told| told.iter().rev().find(|(at, _)| *at <= self.call.now));
                last.map(|(_, evidence)| *evidence).unwrap_or_default()
            }
        };
        self.given.push(Answer::Activity { session, evidence });
        evidence
    }

    fn entropy(&mut self) -> [u8; 16] {
        let rest = self.call.answers.get(self.next..).unwrap_or_default();
        let bytes = match rest.first() {
            Some(Answer::Entropy(bytes)) => {
                self.next += 1;
                *bytes
            }
            _ => {
                self.unlike += 1;
                let mut bytes = *b"unlike..\0\0\0\0\0\0\0\0";
                bytes[8..].copy_from_slice(&self.unlike.to_be_bytes());
                bytes
            }
        };
        self.given.push(Answer::Entropy(bytes));
        bytes
    }
}
