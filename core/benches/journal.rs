//! What it costs to write a journal: ns a call above an edge that keeps none, and bytes a call.
//!
//! The mix is that of an edge which takes 10 000 calls a second: 20 publishers of 2.6 Mbit/s, each in 250 chunks of 7 packets a second;
//! 4 viewers of each, whose sockets take what there is each 20 ms; the ticks at which it is there; and each second a POST for
//! which the evidence of all 20 is looked at until it is refused. Rings of feeds are full. Publishers' chunks come when they
//! come, each at a time of its own; the viewers of a feed are written to at one time.
//!
//! Both edges get the same minute of calls in the same batches. A batch counts as what it took the quickest of its rounds, so
//! that what else the machine does falls on none.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use divan::Bencher;
use divan::counter::ItemsCount;
use holdfast_core::config::{Config, Endpoint, Takeover};
use holdfast_core::input::{
    Arrivals, EndpointId, Env, Evidence, FeedId, Input, Output, RequestId, SessionId, ViewerId, Writer,
};
use holdfast_core::journal::Recorded;
use holdfast_core::time::Time;

const PUBLISHERS: usize = 20;
const VIEWERS: u64 = 4;
/// Between two chunks of a publisher.
const CHUNK_EVERY: u64 = 4_000;
const CHUNK: &[u8] = &[0x47; 7 * 188];
const SECOND: u64 = 1_000_000;
/// Long enough that the rings of the feeds are full and there was a snapshot: it then is as large as it gets.
const BEFORE: u64 = 120 * SECOND;
const MEASURED: u64 = 60 * SECOND;
const BATCH: usize = 2_000;
const ROUNDS: usize = 9;
const RING: usize = 64 << 20;
/// As much as goes into a connection's buffer at a time.
const PIECE: usize = 32 << 10;

fn main() {
    report();
    report_dump();
    divan::main();
}

/// Publishers with audio each 20 ms, video each 33 ms in packets of which some come at once, and RTCP each second.
struct Peers {
    now: u64,
    entropy: u64,
}

impl Env for Peers {
    fn activity(&mut self, session: SessionId) -> Evidence {
        let now = self.now + session.index() as u64 * 1_237;
        let every = |span: u64, packets: u64| {
            let last = now / span * span;
            let last = Some(Time::from_micros(last.saturating_sub(session.index() as u64 * 1_237)));
            Arrivals { count: now / span * packets, last }
        };
        Evidence { audio: every(20_000, 1), video: every(33_333, 9), control: every(SECOND, 1) }
    }

    fn entropy(&mut self) -> [u8; 16] {
        self.entropy += 1;
        let mixed = self.entropy.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        [mixed.to_le_bytes(), (!mixed).to_le_bytes()].as_flattened().try_into().expect("16 bytes")
    }
}

struct Stage {
    edge: Recorded,
    peers: Peers,
    feeds: Vec<(FeedId, Writer)>,
    /// When each publisher's next chunk comes.
    next: Vec<u64>,
    viewers: Vec<Vec<ViewerId>>,
    ready: Vec<usize>,
    /// What came into each feed since its viewers were written to.
    unsent: Vec<u64>,
    chance: u64,
    requests: u64,
    posted: u64,
    chunks: u64,
    calls: usize,
}

fn config() -> Config {
    let slots = PUBLISHERS as u32;
    let endpoint = Endpoint { slots, takeover: Takeover::DisplaceDead, ..Endpoint::default() };
    Config { endpoints: vec![endpoint], ..Config::default() }
}

impl Stage {
    fn new(edge: Recorded) -> Self {
        let mut stage = Stage {
            edge,
            peers: Peers { now: SECOND, entropy: 0 },
            feeds: Vec::new(),
            next: Vec::new(),
            viewers: vec![Vec::new(); PUBLISHERS],
            ready: Vec::new(),
            unsent: vec![0; PUBLISHERS],
            chance: 1,
            requests: 0,
            posted: SECOND,
            chunks: 0,
            calls: 0,
        };
        for _ in 0..PUBLISHERS {
            stage.requests += 1;
            stage.call(Input::Offer { request: RequestId(stage.requests), endpoint: EndpointId(0) });
        }
        assert_eq!(stage.feeds.len(), PUBLISHERS);
        for feed in 0..PUBLISHERS * VIEWERS as usize {
            stage.requests += 1;
            let (request, feed) = (RequestId(stage.requests), stage.feeds[feed % PUBLISHERS].0);
            stage.call(Input::Join { request, feed });
        }
        stage.next = (0..PUBLISHERS as u64).map(|place| SECOND + place * CHUNK_EVERY / PUBLISHERS as u64).collect();
        while stage.peers.now < BEFORE {
            stage.step();
        }
        stage
    }

    fn call(&mut self, input: Input) {
        self.calls += 1;
        self.edge.handle(Time::from_micros(self.peers.now), input, &mut self.peers);
        while let Some(output) = self.edge.poll() {
            match output {
                Output::Start { session, feed, .. } => {
                    self.feeds.push((feed, Writer::Session(session)));
                    self.edge.handle(Time::from_micros(self.peers.now), Input::Answered { session }, &mut self.peers);
                }
                Output::Joined { viewer, .. } => {
                    let place = self.edge.edge().feeds().feed_of(viewer).map_or(0, |feed| feed.index());
                    self.viewers[place].push(viewer);
                }
                Output::Ready { feed } => self.ready.push(feed.index()),
                _ => {}
            }
        }
    }

    /// The next chunk, and whatever is due before it.
    fn step(&mut self) {
        let (at, place) = self.next.iter().copied().zip(0..).min().expect("a publisher");
        while let Some(due) = self.edge.edge().deadline().map(Time::as_micros).filter(|due| *due <= at) {
            self.peers.now = self.peers.now.max(due);
            self.call(Input::Tick);
            self.write();
        }
        if self.posted <= at {
            self.posted += SECOND;
            self.requests += 1;
            self.call(Input::Offer { request: RequestId(self.requests), endpoint: EndpointId(0) });
        }
        self.peers.now = self.peers.now.max(at);
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.next[place] = at + CHUNK_EVERY / 2 + (self.chance >> 33) % CHUNK_EVERY;
        self.chunks += 1;
        let (feed, from) = self.feeds[place];
        let random_access = self.chunks.is_multiple_of(500).then_some(at * 9 / 100);
        self.unsent[place] += CHUNK.len() as u64;
        self.call(Input::Media { feed, from, data: Bytes::from_static(CHUNK), random_access });
        self.write();
    }

    /// Sockets take all there is.
    fn write(&mut self) {
        while let Some(place) = self.ready.pop() {
            let bytes = std::mem::take(&mut self.unsent[place]);
            for viewer in 0..self.viewers[place].len() {
                let viewer = self.viewers[place][viewer];
                self.call(Input::Sent { viewer, bytes });
            }
        }
    }

    /// So many calls; how long they took.
    fn batch(&mut self) -> Duration {
        let (from, before) = (Instant::now(), self.calls);
        while self.calls < before + BATCH {
            self.step();
        }
        from.elapsed()
    }

    fn length(&self) -> usize {
        let mut length = 0;
        self.edge.write_journal(|piece| length += piece.len());
        length
    }
}

/// How many calls a minute has, and what each batch of it takes.
fn minute(edge: Recorded, quickest: &mut Vec<Duration>) -> (usize, Stage) {
    let mut stage = Stage::new(edge);
    let before = stage.calls;
    for batch in 0.. {
        if stage.peers.now >= BEFORE + MEASURED {
            break;
        }
        let took = stage.batch();
        match quickest.get_mut(batch) {
            Some(best) => *best = took.min(*best),
            None => quickest.push(took),
        }
    }
    (stage.calls - before, stage)
}

/// A ring that has room for all.
fn ring() -> Recorded {
    Recorded::ring(config(), RING)
}

fn report() {
    let (mut off, mut on, mut calls) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        calls = minute(Recorded::off(config()), &mut off).0;
        minute(ring(), &mut on);
    }
    let each = |all: &[Duration]| all.iter().sum::<Duration>().as_nanos() as f64 / calls as f64;
    // The batch with the snapshot in it is that much longer than its neighbours.
    let (mut sorted, whole) = (on.clone(), each(&on));
    sorted.sort();
    let snapshot = sorted[sorted.len() - 1] - sorted[sorted.len() / 2];
    println!("{calls} calls in a minute of {} calls/s", calls as u64 / (MEASURED / SECOND));
    println!("without a journal {:6.1} ns/call", each(&off));
    println!("with one          {whole:6.1} ns/call, {:.1} more", whole - each(&off));
    let share = snapshot.as_nanos() as f64 / calls as f64;
    println!(
        "of which {share:.1} for the snapshot each minute: its batch of {BATCH} takes {snapshot:?} longer than the median"
    );

    let mut stage = Stage::new(ring());
    let (before, from) = (stage.calls, stage.length());
    while stage.peers.now < BEFORE + MEASURED {
        stage.step();
    }
    let bytes = (stage.length() - from) as f64 / (stage.calls - before) as f64;
    println!(
        "{bytes:.2} bytes/call with snapshots; 64 MiB hold {:.1} min at 10 000 calls/s",
        RING as f64 / bytes / 6e5
    );
}

/// How long the loop stands still for somebody who is sent a full ring: once to name its pieces, then for as much of them as a
/// socket takes.
fn report_dump() {
    let mut stage = Stage::new(ring());
    while stage.length() < RING * 3 / 4 {
        (0..500).for_each(|_| _ = stage.batch());
    }
    let (mut named, mut copied) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let from = Instant::now();
        let pieces = black_box(stage.edge.pieces()).expect("one is kept");
        named.push((from.elapsed(), pieces.len()));
        let mut bytes: Vec<u8> = Vec::new();
        for mut piece in pieces {
            while !piece.is_empty() {
                let from = Instant::now();
                bytes.extend_from_slice(&piece.split_to(piece.len().min(PIECE)));
                copied.push(from.elapsed());
                bytes.clear();
            }
        }
    }
    let (longest, pieces) = named.iter().max().expect("rounds");
    let length = stage.length() as f64 / f64::from(1 << 20);
    println!("a dump of {length:.0} MiB in {pieces} pieces: {longest:?} at most to name them");
    println!(
        "then {:?} at most for each {} KiB that are copied to be sent",
        copied.iter().max().expect("rounds"),
        PIECE >> 10
    );
}

fn bench(bencher: Bencher, edge: fn() -> Recorded) {
    let mut stage = Stage::new(edge());
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| black_box(stage.batch()));
}

#[divan::bench]
fn without_a_journal(bencher: Bencher) {
    bench(bencher, || Recorded::off(config()));
}

#[divan::bench]
fn with_a_ring(bencher: Bencher) {
    bench(bencher, ring);
}
