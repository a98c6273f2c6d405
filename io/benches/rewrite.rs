//! What rewriting other servers' playlists costs: one of a day-long archive, and one that is asked for every few seconds.

use std::fmt::Write;
use std::hint::black_box;

use divan::Bencher;
use divan::counter::BytesCount;
use holdfast_core::input::{AccountId, TitleId, Token, UserId};
use holdfast_core::playback::Item;
use holdfast_io::hls::rewrite::{Kind, Limits, LowLatency, Rewriter, Variables};
use holdfast_io::hls::sealed::{Seal, Sealed};
use url::Url;

fn main() {
    divan::main();
}

const BASE: &str = "http://provider.example:8080/live/name/secret/index.m3u8";

/// So many segments of six seconds, with a date each and a key for every ten.
fn playlist(segments: usize) -> String {
    let mut text = String::from("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:6\n#EXT-X-MEDIA-SEQUENCE:1234567\n");
    for segment in 0..segments {
        if segment % 10 == 0 {
            let _ =
                writeln!(text, "#EXT-X-KEY:METHOD=AES-128,URI=\"/keys/{segment}.key?token=0123456789abcdef\",IV=0x1");
        }
        let _ = write!(
            text,
            "#EXT-X-PROGRAM-DATE-TIME:2026-11-30T10:00:00.000Z\n#EXTINF:6.000,\n/hlsr/0123456789abcdef0123456789abcdef/name/secret/4711/{segment}.ts\n"
        );
    }
    text
}

fn rewritten<'b>(
    bencher: Bencher<'_, 'b>,
    segments: usize,
    mut replace: impl FnMut(usize, Kind, &Url) -> Option<String>,
) {
    let (text, base, imported) = (playlist(segments), Url::parse(BASE).expect("a URL"), Variables::default());
    let (low_latency, limits) = (LowLatency::Stripped, Limits::default());
    let rewriter = Rewriter { base: &base, imported: &imported, low_latency, limits };
    bencher
        .counter(BytesCount::new(text.len()))
        .bench_local(|| rewriter.rewrite(black_box(text.as_bytes()), &mut replace).expect("a playlist").text.len());
}

/// The addresses are resolved and replaced by something short.
#[divan::bench(args = [6, 10_000])]
fn rewrite(bencher: Bencher, segments: usize) {
    rewritten(bencher, segments, |_, _, url| Some(url.path().to_owned()));
}

/// Each address is sealed, too.
#[divan::bench(args = [6, 10_000])]
fn rewrite_and_seal(bencher: Bencher, segments: usize) {
    let seal = Seal::new(b"secret", b"");
    rewritten(bencher, segments, |_, kind, url| {
        seal.seal(&Sealed {
            kind: kind.served(),
            token: Token([7; 16]),
            user: UserId(1),
            item: Item::Hls(TitleId(1 << 40)),
            index: 0,
            account: AccountId(0),
            until: 1_800_000_000,
            url: url.clone(),
            variables: Variables::default(),
        })
    });
}

/// One address is opened.
#[divan::bench]
fn open(bencher: Bencher) {
    let seal = Seal::new(b"secret", b"");
    let sealed = Sealed {
        kind: Kind::Segment.served(),
        token: Token([7; 16]),
        user: UserId(1),
        item: Item::Hls(TitleId(1 << 40)),
        index: 0,
        account: AccountId(0),
        until: 1_800_000_000,
        url: Url::parse(BASE).expect("a URL"),
        variables: Variables::default(),
    };
    let text = seal.seal(&sealed).expect("a short one");
    bencher.bench_local(|| seal.open(black_box(&text)));
}
