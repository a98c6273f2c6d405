//! Judges a run that nobody acts in: it knows what went in, what the core was answered and what came out, and no more.
//!
//! What a publisher sent is what the core was told of it when it looked. How late a driver comes is what it was late by for
//! the core's own deadlines, and how late evidence is seen is by how much a look missed what a later one found: so the
//! faults of a run excuse the core here as they do where they are known.

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_core::config::Config;
use holdfast_core::edge::Edge;
use holdfast_core::input::{ChannelId, Env, Evidence, Input, Output, SessionId, UserId};
use holdfast_core::journal::{Answer, Snapshot};
use holdfast_core::time::Time;

use super::Witness;
use super::chance::CLOCK_BACK;
use super::court::Court;
use super::oracle::{Allowance, Broken, Verdict};
use super::pull::truth::Channel;
use super::titles::truth::CLOSING;
use super::truth::{Truth, media};
use super::{CALLS_A_SECOND, JUDGE_ALL};

/// What the driver and the media side of a run are excused for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lag {
    /// How late deadlines were served.
    pub slack: Duration,
    /// How late evidence was seen.
    pub unseen: Duration,
}

/// What there may be so many of in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    Calls,
    /// Calls because something was due.
    Deadlines,
}

/// Who is told what the core was answered, what came out, and how it stands then.
pub(crate) type Heard<'a> = dyn FnMut(&[Answer], &[Output], &Edge) + 'a;

/// One run that is judged.
pub(crate) struct Hearing {
    edge: Edge,
    truth: Truth,
    pub witness: Witness,
    /// What is excused.
    lag: Lag,
    /// What there was to excuse so far.
    pub measured: Lag,
    counts: Counts,
    now: Time,
    serial: u64,
    pub calls: u64,
    this_second: (u64, u64),
}

impl Hearing {
    /// `rules` are what the judges go by, which is what the edge was configured with; users in `of_titles` play titles.
    pub fn new(config: &Config, rules: &Config, of_titles: &BTreeSet<UserId>, lag: Lag) -> Self {
        let edge = Edge::new(config.clone());
        let feed = |place: usize| edge.pull().feed_of(ChannelId(place as u32));
        let numbered = rules.channels.iter().enumerate();
        let channels = numbered.filter_map(|(place, settings)| Some(Channel::new(settings, feed(place)?)));
        let mut channels: Vec<Channel> = channels.collect();
        // Nobody knows here which origin is well.
        channels.iter_mut().for_each(|channel| channel.healthy.fill(None));
        let mut truth = Truth::new(rules, of_titles, edge.feeds().feeds(), channels);
        truth.titles.slack = lag.slack + CLOCK_BACK;
        let (measured, witness) = (Lag::default(), Witness::default());
        let counts = Counts::Calls;
        Hearing {
            edge,
            truth,
            witness,
            lag,
            measured,
            counts,
            now: Time::ZERO,
            serial: 0,
            calls: 0,
            this_second: (0, 0),
        }
    }

    /// The run begins with what the edge kept by then; `None` if that is of another configuration.
    pub fn begin(&mut self, snapshot: &Snapshot) -> Option<()> {
        self.edge = snapshot.restore(self.edge.config())?;
        self.now = snapshot.now;
        self.truth.adopt(&self.edge, snapshot.now);
        Some(())
    }

    /// The run was a real one: so many may ask something at once that only the core's own deadlines tell a live-lock.
    pub fn real(&mut self) {
        self.counts = Counts::Deadlines;
    }

    fn court(&mut self) -> Court<'_> {
        // What belongs to one moment may have times that are a few ms apart.
        let slack = self.lag.slack + CLOCK_BACK;
        let allowance = Allowance { slack, unseen: self.lag.unseen, early: Duration::ZERO };
        let (truth, witness) = (&mut self.truth, &mut self.witness);
        Court { now: self.now, edge: &self.edge, truth, witness, allowance }
    }

    /// Gives the core one input and judges what comes of it. `heard` is told what was answered and what came out, also where
    /// that is not right.
    pub fn call(&mut self, now: Time, mut input: Input, env: &mut dyn Env, heard: &mut Heard<'_>) -> Verdict {
        self.now = self.now.max(now);
        let due = self.edge.deadline().filter(|due| *due <= self.now);
        if let Some(due) = due {
            self.measured.slack = self.measured.slack.max(self.now.since(due));
        }
        self.closing();
        self.budget(&input)?;
        if let Input::Media { data, .. } = &mut input {
            self.serial += 1;
            *data = media(self.serial, data.len());
        }
        self.driven(&input)?;
        let stale = due.is_none() && self.truth.titles.is_stale(&input);
        let now = self.now;
        self.court().before(now, &input);
        let mut env = Listening { env, answers: Vec::new() };
        self.edge.handle(now, input.clone(), &mut env);
        let answers = env.answers;
        let outputs: Vec<Output> = std::iter::from_fn(|| self.edge.poll()).collect();
        heard(&answers, &outputs, &self.edge);
        answers.iter().for_each(|answer| self.told(answer));
        self.court().after(&input, &outputs, stale)?;
        if let Input::Tune { title, providers } = input {
            let pull = self.edge.pull();
            if let Some((channel, feed)) = pull.tuned(title).and_then(|id| Some((id, pull.feed_of(id)?))) {
                self.truth.tune(now, channel, feed, title, providers);
            }
        }
        if self.calls.is_multiple_of(JUDGE_ALL) { self.court().all() } else { Ok(()) }
    }

    /// Judges everything as it stands.
    pub fn all(&mut self) -> Verdict {
        self.court().all()
    }

    /// A driver that stands still closes late, too, and of a run without some of its calls perhaps never.
    fn closing(&mut self) {
        let titles = &self.truth.titles;
        let leaving = titles.leaving.iter().filter_map(|id| titles.allocations.get(id));
        let wanted = leaving.filter_map(|row| row.dropped.max(row.let_go));
        let late = wanted.map(|wanted| self.now.since(wanted + CLOSING)).max();
        self.measured.slack = self.measured.slack.max(late.unwrap_or_default());
    }

    /// What an input says of what the driver did before.
    fn driven(&mut self, input: &Input) -> Verdict {
        let titles = &mut self.truth.titles;
        match input {
            Input::Sent { viewer, bytes } => {
                let reads = |row: &super::truth::Viewer| row.ended.is_none() && row.polled.is_none();
                if self.truth.viewers.get(viewer).is_some_and(reads) {
                    self.court().check_bytes(*viewer, *bytes)?;
                }
            }
            // Nothing comes of its connection any more, which is closed.
            Input::Failed { request, .. } | Input::Finished { request, .. } => {
                if let Some(allocation) = titles.requests.get(request).and_then(|row| row.allocation) {
                    titles.let_go(self.now, allocation);
                }
            }
            Input::Lost { source, .. } => {
                if let Some(allocation) = titles.sources.get(source).map(|row| row.allocation) {
                    titles.let_go(self.now, allocation);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn told(&mut self, answer: &Answer) {
        let Answer::Activity { session, evidence } = answer else { return };
        let Some(row) = self.truth.sessions.get_mut(session) else { return };
        if let Some((at, before)) = row.stream.told() {
            let looked = at + self.lag.unseen;
            let kinds =
                [(before.audio, evidence.audio), (before.video, evidence.video), (before.control, evidence.control)];
            let came = kinds.iter().filter(|(before, now)| now != before).filter_map(|(_, now)| now.last);
            // What was there at the last look and was not found.
            let missed = came.filter(|last| *last < looked).map(|last| looked.since(last)).max();
            self.measured.unseen = self.measured.unseen.max(missed.unwrap_or_default());
        }
        row.stream.tell(self.now - self.lag.unseen, *evidence);
    }

    fn budget(&mut self, input: &Input) -> Verdict {
        self.calls += 1;
        if self.counts == Counts::Deadlines && *input != Input::Tick {
            return Ok(());
        }
        let second = self.now.as_micros() / 1_000_000;
        self.this_second = (second, if second == self.this_second.0 { self.this_second.1 + 1 } else { 1 });
        if self.this_second.1 <= CALLS_A_SECOND {
            return Ok(());
        }
        let what = format!("more than {CALLS_A_SECOND} calls within one second; due at {:?}", self.edge.deadline());
        Err(Broken { id: "live-lock", what })
    }
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
