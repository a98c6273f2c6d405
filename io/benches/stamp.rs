//! What the evidence costs per packet: one clock read and two relaxed stores, beside the bare clock read.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use divan::Bencher;
use holdfast_core::time::Time;
use holdfast_io::media::{Activity, Packet};

fn main() {
    divan::main();
}

fn now(epoch: Instant) -> Time {
    let elapsed = epoch.elapsed();
    Time::from_micros(elapsed.as_secs() * 1_000_000 + u64::from(elapsed.subsec_micros()))
}

#[divan::bench]
fn clock_read(bencher: Bencher) {
    let epoch = Instant::now();
    bencher.bench_local(|| black_box(now(black_box(epoch))));
}

#[divan::bench]
fn stamp(bencher: Bencher) {
    let epoch = Instant::now();
    let activity = Activity::default();
    bencher.bench_local(|| black_box(&activity).stamp(black_box(Packet::Audio), now(black_box(epoch))));
}

#[divan::bench]
fn stamp_while_the_loop_reads(bencher: Bencher) {
    let epoch = Instant::now();
    let activity = Activity::default();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                black_box(activity.evidence());
            }
        });
        bencher.bench_local(|| black_box(&activity).stamp(black_box(Packet::Audio), now(black_box(epoch))));
        done.store(true, Relaxed);
    });
}
