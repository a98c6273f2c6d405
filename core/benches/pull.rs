//! What pulling costs the core when every origin falls silent at once, and how often origins are asked then.
//!
//! Each channel has two sources and one viewer. All play, and at one moment all media ends: the connections stand, and whatever
//! is opened from then on agrees after 10 ms and sends nothing, which is what costs an edge most. The viewers stay. Each channel
//! does the same in every size, so what an input costs must not grow with how many there are, but for the way to memory.
//!
//! *Growing*: pauses between rounds grow to `retry_backoff_max` (30 s). *Fixed*: `retry_backoff_max` = `no_input_timeout`. Counted
//! and timed from the moment of silence on, in simulated time: the first minute, and the nine after it.

use std::collections::VecDeque;
use std::hint::black_box;
use std::mem;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast_core::config::{Channel, Config, Live};
use holdfast_core::edge::Edge;
use holdfast_core::input::{ChannelId, Env, Evidence, Input, Note, Output, RequestId, SessionId, SourceId, Writer};
use holdfast_core::pull::Phase;
use holdfast_core::time::Time;

const SIZES: [u32; 3] = [100, 1000, 10_000];
/// So many runs of each; the sizes take turns, so that what else the machine does falls on all of them.
const ROUNDS: usize = 5;
const CHUNK: &[u8] = &[0x47; 7 * 188];
const MS: u64 = 1000;
const SECOND: u64 = 1000 * MS;
const MINUTE: u64 = 60 * SECOND;
/// How long an origin takes to agree.
const HANDSHAKE: u64 = 10 * MS;
/// The minutes after the first.
const STEADY: u64 = 9;

#[derive(Clone, Copy)]
struct Policy {
    name: &'static str,
    retry_backoff_max: Duration,
}

const POLICIES: [Policy; 2] = [
    Policy { name: "growing pauses (the default)", retry_backoff_max: Duration::from_secs(30) },
    Policy { name: "a fixed cadence", retry_backoff_max: Duration::from_secs(3) },
];

/// Entropy that differs from call to call, so that pauses do; nobody publishes.
struct Outside(u64);

impl Env for Outside {
    fn activity(&mut self, _session: SessionId) -> Evidence {
        Evidence::default()
    }

    fn entropy(&mut self) -> [u8; 16] {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u128::from(self.0 >> 32).to_le_bytes()
    }
}

/// What happened in a span of simulated time.
#[derive(Clone, Copy, Default)]
struct Span {
    inputs: u64,
    opens: u64,
    busy: Duration,
    /// The most deadlines of pulling at once.
    timers: usize,
}

struct Stage {
    edge: Edge,
    outside: Outside,
    now: u64,
    /// Sources that were opened and have not agreed yet, the oldest first.
    opening: VecDeque<(u64, SourceId)>,
    span: Span,
    silences: u64,
}

impl Stage {
    /// Channels that all play, at the moment of their last media.
    fn new(size: u32, policy: Policy) -> Self {
        let channel = |index| Channel {
            name: format!("c{index}"),
            sources: 2,
            retry_backoff_max: policy.retry_backoff_max,
            ..Channel::default()
        };
        let live = Live { idle: Duration::from_secs(3600), buffer: 16 * CHUNK.len(), ..Live::default() };
        let edge = Edge::new(Config { channels: (0..size).map(channel).collect(), live, ..Config::default() });
        let mut stage =
            Stage { edge, outside: Outside(1), now: 0, opening: VecDeque::new(), span: Span::default(), silences: 0 };
        let feeds: Vec<_> = (0..size).filter_map(|index| stage.edge.pull().feed_of(ChannelId(index))).collect();
        for (request, feed) in feeds.iter().enumerate() {
            stage.input(Input::Join { request: RequestId(request as u64), feed: *feed });
        }
        let sources: Vec<SourceId> = stage.opening.drain(..).map(|(_, source)| source).collect();
        // Each plays for longer than `stable_after`: what breaks off was a success.
        for second in 0..=8 {
            stage.now = HANDSHAKE + second * SECOND;
            for (feed, source) in feeds.iter().zip(&sources) {
                // One after another, as sockets are read: else one tick would be about all of them.
                stage.now += 1;
                let (data, from) = (Bytes::from_static(CHUNK), Writer::Source(*source));
                stage.input(Input::Media { feed: *feed, from, data, random_access: Some(second * 90_000) });
            }
        }
        let playing = stage.playing();
        assert_eq!((playing, stage.edge.feeds().viewer_count()), (size as usize, size as usize), "all play");
        stage.span = Span::default();
        stage
    }

    fn input(&mut self, input: Input) {
        self.span.inputs += 1;
        self.edge.handle(Time::from_micros(self.now), input, &mut self.outside);
        while let Some(output) = self.edge.poll() {
            match output {
                Output::Open { source, .. } => {
                    self.span.opens += 1;
                    self.opening.push_back((self.now + HANDSHAKE, source));
                }
                Output::Note(Note::ChannelSilent { .. }) => self.silences += 1,
                output => drop(black_box(output)),
            }
        }
    }

    /// What happens in so much time.
    fn run(&mut self, micros: u64) -> Span {
        let (until, start) = (self.now + micros, Instant::now());
        loop {
            let agreed = self.opening.front().map_or(u64::MAX, |(at, _)| *at);
            let deadline = self.edge.deadline().map_or(u64::MAX, Time::as_micros);
            let next = agreed.min(deadline);
            if next > until {
                break;
            }
            self.now = next;
            match self.opening.pop_front_if(|_| agreed <= deadline) {
                Some((_, source)) => self.input(Input::Opened { source }),
                None => self.input(Input::Tick),
            }
            self.span.timers = self.span.timers.max(self.edge.pull().timer_count());
        }
        (self.now, self.span.busy) = (until, start.elapsed());
        mem::take(&mut self.span)
    }

    fn playing(&self) -> usize {
        self.edge.pull().states().filter(|state| state.phase == Phase::Live).count()
    }
}

/// One size under one policy: the first minute and those after it, in each round.
struct Case {
    size: u32,
    policy: Policy,
    first: Vec<Span>,
    steady: Vec<Span>,
    /// Deadlines of viewers, and of what feeds keep.
    feed_timers: usize,
}

impl Case {
    fn round(&mut self) {
        let mut stage = Stage::new(self.size, self.policy);
        self.first.push(stage.run(MINUTE));
        self.steady.push(stage.run(STEADY * MINUTE));
        self.feed_timers = stage.edge.feeds().timer_count();
        let (size, viewers) = (self.size as usize, stage.edge.feeds().viewer_count());
        assert_eq!((stage.silences, viewers), (u64::from(self.size), size), "each is said once, and all stay");
        assert_eq!(stage.playing(), 0, "the mix is as it says");
        assert!(
            (size..=2 * size).contains(&stage.edge.pull().source_count()),
            "what stood stands, one may be beside it"
        );
    }

    /// ns an input, the median of all rounds.
    fn ns(&self) -> f64 {
        let mut costs: Vec<f64> =
            self.steady.iter().map(|span| span.busy.as_nanos() as f64 / span.inputs as f64).collect();
        costs.sort_unstable_by(f64::total_cmp);
        costs[costs.len() / 2]
    }

    fn print(&self, baseline: f64) {
        let (ns, first, steady) = (self.ns(), self.first[0], self.steady[0]);
        let inputs = steady.inputs as f64 / STEADY as f64;
        let opens = steady.opens as f64 / STEADY as f64;
        print!("| {} | {} ", self.policy.name, self.size);
        print!("| {ns:.0} | {:.1} | {:.2} ", ns / baseline, ns * inputs / 1e6);
        print!("| {} + {} ", first.timers.max(steady.timers), self.feed_timers);
        println!(
            "| {:.1} | {:.1} | {opens:.0} |",
            first.opens as f64 / f64::from(self.size),
            opens / f64::from(self.size)
        );
    }
}

fn main() {
    let case = |policy| SIZES.map(|size| Case { size, policy, first: Vec::new(), steady: Vec::new(), feed_timers: 0 });
    let mut policies = POLICIES.map(case);
    for _ in 0..ROUNDS {
        policies.iter_mut().flatten().for_each(Case::round);
    }
    println!(
        "| policy | channels | ns an input | growth | core ms a minute | timers: channels + viewers | opens a channel in the \
         first minute | in each after it | all opens in each |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for cases in &policies {
        cases.iter().for_each(|case| case.print(cases[0].ns()));
    }
}
