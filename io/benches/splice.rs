//! What scanning and splicing cost: a source of 8 Mbit/s, beside a bare copy of the same bytes.

use std::collections::VecDeque;
use std::hint::black_box;

use bytes::Bytes;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use holdfast_core::id::Id;
use holdfast_core::input::Writer;
use holdfast_io::codec::Codec;
use holdfast_io::media::Unit;
use holdfast_io::ts::{Muxer, PACKET, Scanner, Segment, Splicer, Tracks};

/// What a socket gives at a time.
const READ: usize = 64 << 10;
/// Bytes of a picture at 8 Mbit/s and 25 pictures a second, and of a key frame.
const PICTURE: usize = 36_000;
const KEY_FRAME: usize = 120_000;
const PICTURES: i64 = 250;

fn main() {
    divan::main();
}

/// Ten seconds of video and audio with a key frame a second.
fn source() -> Vec<u8> {
    let from = Writer::Source(Id::from_parts(0, 0));
    let mut muxer = Muxer::new();
    muxer.session(from, Tracks { audio: Some(Codec::Aac), video: Some(Codec::H264) });
    let mut out = Vec::new();
    for picture in 0..PICTURES {
        let (time, key) = (picture * 40_000, picture % 25 == 0);
        let mut data = vec![0, 0, 0, 1, if key { 0x65 } else { 0x41 }, 0x9a];
        data.resize(if key { KEY_FRAME } else { PICTURE }, 0x5a);
        let audio = vec![0x21; 340];
        for (codec, data) in [(Codec::H264, data), (Codec::Aac, audio.clone()), (Codec::Aac, audio)] {
            let unit = Unit { from, codec, pts: time, dts: time, key, data: Bytes::from(data) };
            out.extend(muxer.push(&unit).into_iter().flat_map(|chunk| chunk.data));
        }
    }
    out
}

fn measured<'a, 'b>(bencher: Bencher<'a, 'b>, data: &[u8]) -> Bencher<'a, 'b> {
    bencher.counter(BytesCount::new(data.len())).counter(ItemsCount::new(data.len() / PACKET))
}

fn scan(data: &[u8], mut each: impl FnMut(Segment)) {
    let (mut scanner, mut out) = (Scanner::default(), VecDeque::new());
    for read in data.chunks(READ) {
        scanner.read(black_box(read), &mut out).expect("a stream");
        out.drain(..).for_each(&mut each);
    }
}

#[divan::bench]
fn copy(bencher: Bencher) {
    let data = source();
    measured(bencher, &data).bench_local(|| {
        for read in data.chunks(READ) {
            black_box(Bytes::copy_from_slice(black_box(read)));
        }
    });
}

#[divan::bench]
fn scan_only(bencher: Bencher) {
    let data = source();
    measured(bencher, &data).bench_local(|| scan(&data, |segment| drop(black_box(segment))));
}

#[divan::bench]
fn scan_and_splice(bencher: Bencher) {
    let data = source();
    measured(bencher, &data).bench_local(|| {
        let mut splicer = Splicer::new();
        scan(&data, |segment| drop(black_box(splicer.pass(segment))));
    });
}
