//! What one input costs the core at 100, 10 000 and 100 000 sessions. It must not grow more than twofold.
//!
//! Each session is one slot of its own endpoint and does the same in every size: a chunk of media a second, every other one
//! with a key frame, a deadline each five seconds, a POST that is refused each ten, and each thirty its publisher leaves and
//! another comes.
//!
//! *Warm*: nothing but the core runs. 100 sessions then stay in the innermost cache and 100 000 fit into none, which is most of
//! what this column's growth shows. *Cold*: before each batch of inputs all caches are filled with something else, as moving
//! media fills them, so that every size pays for its memory; this is what must not grow more than twofold. *Shuffled*: cold, and
//! sessions act in an order that has nothing to do with where they lie in memory.

use std::hint::black_box;
use std::time::Instant;

use bytes::Bytes;
use holdfast_core::config::{Config, Endpoint, Live};
use holdfast_core::edge::Edge;
use holdfast_core::input::{
    Arrivals, EndReason, EndpointId, Env, Evidence, FeedId, Input, Output, RequestId, SessionId, Writer,
};
use holdfast_core::time::Time;

const SIZES: [u32; 3] = [100, 10_000, 100_000];
/// So many endpoints act in one batch.
const BATCH: usize = 50;
/// So many batches are measured in a round.
const WARM_BATCHES: usize = 1_000;
const COLD_BATCHES: usize = 40;
/// So many rounds; the sizes take turns, so that what else the machine does falls on all of them.
const ROUNDS: usize = 9;
/// As much as the outermost cache holds.
const SWEEP: usize = 256 << 20;
const SECOND: u64 = 1_000_000;
const CHUNK: &[u8] = &[0x47; 7 * 188];

/// Publishers that all live: audio came 20 ms ago at the most, so evidence costs the core what it costs and no more here.
#[derive(Default)]
struct Peers {
    now: u64,
    entropy: u8,
}

impl Env for Peers {
    fn activity(&mut self, _session: SessionId) -> Evidence {
        let count = self.now / 20_000 + 1;
        let last = Some(Time::from_micros((count - 1) * 20_000));
        Evidence { audio: Arrivals { count, last }, ..Evidence::default() }
    }

    fn entropy(&mut self) -> [u8; 16] {
        self.entropy = self.entropy.wrapping_add(1);
        [self.entropy; 16]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turns {
    InOrder,
    Shuffled,
}

struct Stage {
    edge: Edge,
    peers: Peers,
    /// The session at each endpoint and the feed of its slot.
    holders: Vec<(SessionId, FeedId)>,
    /// The order in which endpoints act.
    order: Vec<u32>,
    turns: u64,
    requests: u64,
    inputs: u64,
    refused: u64,
    granted: u64,
    ticks: u64,
}

impl Stage {
    fn new(size: u32, turns: Turns) -> Self {
        let endpoint = |index| Endpoint { name: format!("e{index}"), ..Endpoint::default() };
        let live = Live { buffer: 8 * CHUNK.len(), ..Live::default() };
        let edge = Edge::new(Config { endpoints: (0..size).map(endpoint).collect(), live, ..Config::default() });
        let mut order: Vec<u32> = (0..size).collect();
        if turns == Turns::Shuffled {
            let mut state = 0x9e37_79b9_7f4a_7c15_u64;
            for index in (1..order.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                order.swap(index, (state >> 33) as usize % (index + 1));
            }
        }
        let holders = Vec::with_capacity(size as usize);
        let (turns, requests, inputs, refused, granted, ticks) = (0, 0, 0, 0, 0, 0);
        let mut stage =
            Stage { edge, peers: Peers::default(), holders, order, turns, requests, inputs, refused, granted, ticks };
        for endpoint in 0..size {
            stage.peers.now = u64::from(endpoint) * SECOND / u64::from(size);
            let session = stage.post(endpoint);
            stage.holders.extend(session.zip(stage.edge.feed_of(EndpointId(endpoint), 0)));
        }
        stage
    }

    fn input(&mut self, input: Input) -> Option<SessionId> {
        self.inputs += 1;
        self.edge.handle(Time::from_micros(self.peers.now), input, &mut self.peers);
        let mut started = None;
        while let Some(output) = self.edge.poll() {
            match output {
                Output::Start { session, .. } => started = Some(session),
                Output::Refuse { .. } => self.refused += 1,
                output => drop(black_box(output)),
            }
        }
        started
    }

    fn post(&mut self, endpoint: u32) -> Option<SessionId> {
        self.requests += 1;
        let request = RequestId(self.requests);
        let session = self.input(Input::Offer { request, endpoint: EndpointId(endpoint) })?;
        self.granted += 1;
        self.input(Input::Answered { session });
        Some(session)
    }

    /// The next session acts.
    fn act(&mut self) {
        let size = self.order.len();
        let (second, turn) = (self.turns / size as u64, (self.turns % size as u64) as usize);
        self.turns += 1;
        self.peers.now = (second + 1) * SECOND + turn as u64 * SECOND / size as u64;
        while self.edge.deadline().is_some_and(|at| at.as_micros() <= self.peers.now) {
            self.ticks += 1;
            self.input(Input::Tick);
        }
        let endpoint = self.order[turn];
        let (session, feed) = self.holders[endpoint as usize];
        let phase = second + u64::from(endpoint);
        self.input(Input::Media {
            feed,
            from: Writer::Session(session),
            data: Bytes::from_static(CHUNK),
            random_access: phase.is_multiple_of(2).then_some(self.peers.now * 9 / 100),
        });
        if phase.is_multiple_of(10) {
            self.post(endpoint);
        }
        if phase % 30 == 7 {
            self.input(Input::End { session, reason: EndReason::Deleted });
            self.input(Input::Released { session });
            if let Some(session) = self.post(endpoint) {
                self.holders[endpoint as usize].0 = session;
            }
        }
    }

    /// ns an input in each of so many batches.
    fn run(&mut self, batches: usize, mut between: impl FnMut()) -> Vec<f64> {
        let batch = |_| {
            between();
            let (from, start) = (self.inputs, Instant::now());
            (0..BATCH).for_each(|_| self.act());
            start.elapsed().as_nanos() as f64 / (self.inputs - from) as f64
        };
        (0..batches).map(batch).collect()
    }
}

/// Batches at one size, ns an input.
struct Costs {
    size: u32,
    in_order: Stage,
    shuffled: Stage,
    /// Warm, cold, and cold and shuffled.
    costs: [Vec<f64>; 3],
}

impl Costs {
    fn new(size: u32) -> Self {
        let mut stages = [Turns::InOrder, Turns::Shuffled].map(|turns| Stage::new(size, turns));
        for stage in &mut stages {
            // Every deadline has moved and every endpoint has changed its publisher before anything is measured.
            while stage.turns < 31 * u64::from(size) {
                stage.act();
            }
        }
        let [in_order, shuffled] = stages;
        Costs { size, in_order, shuffled, costs: Default::default() }
    }

    fn round(&mut self, sweep: &mut [u8]) {
        let mut cool = || {
            sweep.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
            black_box(&mut *sweep);
        };
        // What the others left in the caches is not this one's.
        self.in_order.run(WARM_BATCHES, || ());
        self.costs[0].extend(self.in_order.run(WARM_BATCHES, || ()));
        self.costs[1].extend(self.in_order.run(COLD_BATCHES, &mut cool));
        self.costs[2].extend(self.shuffled.run(COLD_BATCHES, &mut cool));
    }

    /// The medians.
    fn medians(&mut self) -> [f64; 3] {
        for stage in [&self.in_order, &self.shuffled] {
            assert_eq!(stage.edge.publish().session_count(), self.size as usize, "every slot is held");
            assert!(
                stage.refused > 0 && stage.granted > u64::from(self.size) && stage.ticks > 0,
                "the mix is as it says"
            );
        }
        self.costs.each_mut().map(|costs| {
            let middle = costs.len() / 2;
            *costs.select_nth_unstable_by(middle, f64::total_cmp).1
        })
    }
}

fn main() {
    let mut sweep = vec![1; SWEEP];
    let mut sizes = SIZES.map(Costs::new);
    for _ in 0..ROUNDS {
        sizes.iter_mut().for_each(|costs| costs.round(&mut sweep));
    }
    println!("| sessions | inputs/s warm | ns warm | growth | ns cold | growth | ns cold, shuffled | growth |");
    println!("|---|---|---|---|---|---|---|---|");
    let first = sizes[0].medians();
    for costs in &mut sizes {
        let all = costs.medians();
        print!("| {} | {:.0}", costs.size, 1e9 / all[0]);
        all.iter().zip(first).for_each(|(ns, first)| print!(" | {ns:.0} | {:.1}", ns / first));
        println!(" |");
    }
}
