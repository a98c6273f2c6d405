//! Any playlist: rewritten or refused, never with an address that nobody was asked about. The first byte of an input is what is
//! told of low latency.
#![no_main]

use holdfast_io::hls::rewrite::{Limits, LowLatency, Rewriter, Variables, defined};
use libfuzzer_sys::fuzz_target;
use url::Url;

fuzz_target!(|input: &[u8]| {
    let Some((mode, playlist)) = input.split_first() else { return };
    let base = Url::parse("http://provider.example/live/name/secret/index.m3u8?token=t").expect("this is a URL");
    let mut imported = Variables::default();
    let _ = imported.set("host", "http://other.example");
    let low_latency = if mode % 2 == 0 { LowLatency::Passed } else { LowLatency::Stripped };
    let limits = Limits { bytes: 1 << 16, line: 1 << 12, output: 1 << 18 };
    let rewriter = Rewriter { base: &base, imported: &imported, low_latency, limits };
    let _ = defined(playlist, &rewriter);
    let mut asked = 0;
    let Ok(out) = rewriter.rewrite(playlist, &mut |_, kind, url| {
        asked += 1;
        let _ = kind.served();
        assert!(matches!(url.scheme(), "http" | "https"));
        (url.path().len() % 7 != 3).then(|| format!("/hls/{asked}"))
    }) else {
        return;
    };
    assert!(out.text.starts_with("#EXTM3U") && out.text.ends_with('\n') && !out.text.contains('\r'));
    assert!(out.text.len() <= limits.output);
    // A player that reads it asks for nothing but what is ours, or what nobody fetches.
    let plain = Variables::default();
    let rewriter = Rewriter { imported: &plain, ..rewriter };
    let _ = rewriter.rewrite(out.text.as_bytes(), &mut |_, _, url| {
        assert!(url.as_str().starts_with("http://provider.example/hls/"), "{url} is left");
        Some(String::from("/"))
    });
});
