//! What it costs to put a chunk into a feed and to walk all its viewers over it, without any socket.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use divan::Bencher;
use divan::counter::ItemsCount;
use holdfast_core::config::Live;
use holdfast_core::feed::{Chunk, Feeds};
use holdfast_core::id::Id;
use holdfast_core::input::{FeedId, Output, RequestId, ViewerId, Writer};
use holdfast_core::time::Time;

/// 20 ms of 2 Mbit/s, in whole packets.
const CHUNK: usize = 27 * 188;
const WRITER: Writer = Writer::Session(Id::from_parts(0, 0));
const INTERVAL: Duration = Duration::from_millis(20);

fn main() {
    divan::main();
}

struct Stage {
    feeds: Feeds,
    feed: FeedId,
    out: VecDeque<Output>,
    ready: Vec<ViewerId>,
    chunk: Bytes,
    now: Time,
}

impl Stage {
    /// With a ring that is full already, so that every push drops a chunk.
    fn new(viewers: u64) -> Stage {
        let mut feeds = Feeds::new(Live { buffer: 200 * CHUNK, ..Live::default() });
        let feed = feeds.open();
        feeds.assign(feed, Some(WRITER));
        let (out, ready, chunk) = (VecDeque::new(), Vec::new(), Bytes::from(vec![0; CHUNK]));
        let mut stage = Stage { feeds, feed, out, ready, chunk, now: Time::ZERO };
        stage.push(true);
        for request in 0..viewers {
            stage.feeds.join(stage.now, RequestId(request), feed, &mut stage.out);
        }
        for _ in 0..200 {
            stage.push(false);
            stage.flush();
        }
        stage
    }

    fn push(&mut self, random_access: bool) {
        let chunk = Chunk { from: WRITER, data: self.chunk.clone(), random_access: random_access.then_some(0) };
        self.feeds.push(self.now, self.feed, chunk, &mut self.out);
        self.now = self.now + INTERVAL;
        self.feeds.tick(self.now, &mut self.out);
    }

    fn flush(&mut self) {
        self.out.clear();
        self.ready.clear();
        self.ready.extend(self.feeds.viewers(self.feed));
        for viewer in &self.ready {
            let bytes = self.feeds.unsent(*viewer).map(|slice| black_box(slice).len() as u64).sum();
            self.feeds.sent(*viewer, bytes);
        }
    }
}

/// One chunk in, read by everybody. An item is one viewer's read.
#[divan::bench(args = [1, 100, 1000])]
fn push_and_read(bencher: Bencher, viewers: u64) {
    let mut stage = Stage::new(viewers);
    bencher.counter(ItemsCount::new(viewers)).bench_local(|| {
        stage.push(false);
        stage.flush();
    });
    assert_eq!(stage.ready.len() as u64, viewers);
}

/// One chunk in, while nobody is ready to read: what a push costs by itself.
#[divan::bench(args = [1, 100, 1000])]
fn push_alone(bencher: Bencher, viewers: u64) {
    let mut stage = Stage::new(viewers);
    let mut since_read = 0;
    bencher.bench_local(|| {
        stage.push(false);
        // Before the ring overtakes them.
        since_read += 1;
        if since_read == 150 {
            stage.flush();
            since_read = 0;
        }
        stage.out.clear();
    });
}
