use proptest::prelude::*;

use super::*;

const BASE: &str = "http://cdn.example/live/u/p/index.m3u8?token=t";

/// What came of it, and every address that was asked for.
fn rewrite_as(text: &[u8], low_latency: LowLatency) -> Result<(String, Vec<(Kind, String)>), Fault> {
    let (base, mut found) = (Url::parse(BASE).unwrap(), Vec::new());
    let imported = &imported();
    let rewriter = Rewriter { base: &base, imported, low_latency, limits: Limits::default() };
    let out = rewriter.rewrite(text, &mut |_, kind, url| {
        found.push((kind, url.to_string()));
        (url.host_str() != Some("10.0.0.1")).then(|| format!("/hls/{}", found.len()))
    });
    out.map(|out| (out.text, found))
}

fn imported() -> Variables {
    let mut imported = Variables::default();
    imported.set("host", "http://other.example").unwrap();
    imported
}

fn rewrite(text: &str) -> Result<(String, Vec<(Kind, String)>), Fault> {
    rewrite_as(text.as_bytes(), LowLatency::Passed)
}

/// What becomes of one line, and of the addresses in it.
fn line(line: &str) -> (String, Vec<(Kind, String)>) {
    let (text, found) = rewrite(&format!("#EXTM3U\n{line}\n")).unwrap();
    (text.strip_prefix("#EXTM3U\n").unwrap().to_owned(), found)
}

#[test]
fn every_tag_that_bears_an_address() {
    for (tag, expected, kind, url) in [
        (
            "#EXT-X-KEY:METHOD=AES-128,URI=\"k?a=1\",IV=0x1",
            "#EXT-X-KEY:METHOD=AES-128,URI=\"/hls/1\",IV=0x1",
            Kind::Key,
            "http://cdn.example/live/u/p/k?a=1",
        ),
        (
            "#EXT-X-SESSION-KEY:METHOD=AES-128,URI=\"/k\"",
            "#EXT-X-SESSION-KEY:METHOD=AES-128,URI=\"/hls/1\"",
            Kind::SessionKey,
            "http://cdn.example/k",
        ),
        (
            "#EXT-X-MAP:URI=\"../init.mp4\",BYTERANGE=\"7@0\"",
            "#EXT-X-MAP:URI=\"/hls/1\",BYTERANGE=\"7@0\"",
            Kind::Map,
            "http://cdn.example/live/u/init.mp4",
        ),
        (
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a,URI=b\",NAME=\"ä\",URI=\"//a.example/a.m3u8\",DEFAULT=YES",
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a,URI=b\",NAME=\"ä\",URI=\"/hls/1\",DEFAULT=YES",
            Kind::Rendition,
            "http://a.example/a.m3u8",
        ),
        (
            "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI=\"https://a.example/i\"",
            "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI=\"/hls/1\"",
            Kind::IFrames,
            "https://a.example/i",
        ),
        (
            "#EXT-X-IMAGE-STREAM-INF:BANDWIDTH=1,URI=\"i\"",
            "#EXT-X-IMAGE-STREAM-INF:BANDWIDTH=1,URI=\"/hls/1\"",
            Kind::Images,
            "http://cdn.example/live/u/p/i",
        ),
        (
            "#EXT-X-SESSION-DATA:DATA-ID=\"x\",URI=\"d\"",
            "#EXT-X-SESSION-DATA:DATA-ID=\"x\",URI=\"/hls/1\"",
            Kind::SessionData,
            "http://cdn.example/live/u/p/d",
        ),
        (
            "#EXT-X-TILES:LAYOUT=2x2,URI=\"d\"",
            "#EXT-X-TILES:LAYOUT=2x2,URI=\"/hls/1\"",
            Kind::SessionData,
            "http://cdn.example/live/u/p/d",
        ),
        (
            "#EXT-X-PART:DURATION=1,URI=\"p\",BYTERANGE=\"1@2\"",
            "#EXT-X-PART:DURATION=1,URI=\"/hls/1\",BYTERANGE=\"1@2\"",
            Kind::Part,
            "http://cdn.example/live/u/p/p",
        ),
        (
            "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"p\",BYTERANGE-START=1",
            "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"/hls/1\",BYTERANGE-START=1",
            Kind::Hint,
            "http://cdn.example/live/u/p/p",
        ),
        ("#EXT-X-PREFETCH:http://a.example/p", "#EXT-X-PREFETCH:/hls/1", Kind::Hint, "http://a.example/p"),
        (
            "#EXT-X-RENDITION-REPORT:URI=\"../1M/x.m3u8\",LAST-MSN=1",
            "#EXT-X-RENDITION-REPORT:URI=\"/hls/1\",LAST-MSN=1",
            Kind::Report,
            "http://cdn.example/live/u/1M/x.m3u8",
        ),
        (
            "#EXT-X-CONTENT-STEERING:SERVER-URI=\"/s\",PATHWAY-ID=\"a\"",
            "#EXT-X-CONTENT-STEERING:SERVER-URI=\"/hls/1\",PATHWAY-ID=\"a\"",
            Kind::Steering,
            "http://cdn.example/s",
        ),
        (
            "#EXT-X-DATERANGE:ID=\"a\",X-ASSET-URI=\"/a\",X-URI=\"no\"",
            "#EXT-X-DATERANGE:ID=\"a\",X-ASSET-URI=\"/hls/1\",X-URI=\"no\"",
            Kind::Asset,
            "http://cdn.example/a",
        ),
        (
            "#EXT-X-DATERANGE:ID=\"a\",X-ASSET-LIST=\"/a\"",
            "#EXT-X-DATERANGE:ID=\"a\",X-ASSET-LIST=\"/hls/1\"",
            Kind::AssetList,
            "http://cdn.example/a",
        ),
        ("#EXTINF:2,\ns.ts", "#EXTINF:2,\n/hls/1", Kind::Segment, "http://cdn.example/live/u/p/s.ts"),
        (
            "#EXTINF:2,\n#EXT-X-BYTERANGE:5@0\n?s",
            "#EXTINF:2,\n#EXT-X-BYTERANGE:5@0\n/hls/1",
            Kind::Segment,
            "http://cdn.example/live/u/p/index.m3u8?s",
        ),
        (
            "#EXT-X-STREAM-INF:BANDWIDTH=1\n\n#x\nv.m3u8",
            "#EXT-X-STREAM-INF:BANDWIDTH=1\n\n#x\n/hls/1",
            Kind::Variant,
            "http://cdn.example/live/u/p/v.m3u8",
        ),
    ] {
        let (text, found) = line(tag);
        assert_eq!((text.as_str(), &found[..]), (&*format!("{expected}\n"), &[(kind, url.to_owned())][..]));
    }
}

#[test]
fn what_is_not_known_passes_as_it_came() {
    for kept in [
        "#EXT-X-VERSION:7",
        "#EXT-X-NEW:URI=\"http://a.example/\",B=1",
        "#EXT-X-CUE-OUT:30",
        "# URI=\"x\"",
        "#comment {$a}",
        "#EXTINF:-1 tvg-id=\"a\",A, \"B\" é",
        "#EXT-X-KEY:METHOD=NONE",
        "#EXT-X-KEY",
        "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://a\",KEYFORMAT=\"com.apple.streamingkeydelivery\"",
        "#EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI=\"data:text/plain;base64,AAAA\",KEYFORMAT=\"urn:uuid:edef8ba9\"",
        "#EXT-X-KEY:METHOD=X,URI=\"URN:a\"",
        "#EXT-X-KEY:METHOD=NONE,URI=\"\"",
        "data:video/mp2t;base64,AAAA",
        "#EXT-X-PROGRAM-DATE-TIME:2026-11-30T10:00:00Z",
        "#EXT-X-DATERANGE:ID=\"a\",SCTE35-OUT=0xFC",
        "#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,INSTREAM-ID=\"CC1\"",
        "",
    ] {
        assert_eq!(line(kept), (format!("{kept}\n"), vec![]), "{kept}");
    }
}

#[test]
fn lists_that_are_not_right_hide_no_address() {
    for (tag, expected) in [
        ("#EXT-X-KEY:METHOD=AES-128,URI=k", "#EXT-X-KEY:METHOD=AES-128,URI=\"/hls/1\""),
        ("#EXT-X-KEY:METHOD=AES-128,uri=\"k\"", "#EXT-X-KEY:METHOD=AES-128,uri=\"/hls/1\""),
        ("#EXT-X-KEY:METHOD=AES-128, URI = \"k\"", "#EXT-X-KEY:METHOD=AES-128, URI =\"/hls/1\""),
        ("#EXT-X-KEY:URI=\"k", "#EXT-X-KEY:URI=\"/hls/1\""),
        ("#EXT-X-KEY:URI=\"k\"x,IV=1", "#EXT-X-KEY:URI=\"/hls/1\"x,IV=1"),
        ("#EXT-X-KEY:URI=\"k\",URI=\"l\"", "#EXT-X-KEY:URI=\"/hls/1\",URI=\"/hls/2\""),
        ("  #EXT-X-KEY:URI=\"k\" ", "#EXT-X-KEY:URI=\"/hls/1\""),
        (" s.ts\t", "/hls/1"),
    ] {
        assert_eq!(line(tag).0, format!("{expected}\n"), "{tag}");
    }
}

#[test]
fn line_ends_and_byte_order_mark() {
    let text = "\u{feff}#EXTM3U\r\n#EXTINF:1,\r\na\rb\r\n\r\n#EXT-X-ENDLIST";
    let (text, found) = rewrite(text).unwrap();
    assert_eq!(text, "#EXTM3U\n#EXTINF:1,\n/hls/1\n/hls/2\n\n#EXT-X-ENDLIST\n");
    assert_eq!(found.len(), 2);
}

#[test]
fn other_encodings() {
    let (text, found) = rewrite_as(b"#EXTM3U\n#EXTINF:1,caf\xe9\ncaf\xe9.ts?a=%20\n", LowLatency::Passed).unwrap();
    assert_eq!(text, "#EXTM3U\n#EXTINF:1,caf\u{fffd}\n/hls/1\n");
    assert_eq!(found[0].1, "http://cdn.example/live/u/p/caf%E9.ts?a=%20");
}

#[test]
fn only_playlists_are() {
    for other in ["", "#EXTM3", "#EXTM3U8\n", "<html>", "a\n#EXTM3U\n", "#EXTINF:1,\na\n"] {
        assert_eq!(rewrite(other), Err(Fault::NotAPlaylist), "{other:?}");
    }
    assert!(rewrite("#EXTM3U").is_ok());
    assert_eq!(rewrite("\r\n \n#EXTM3U\n#EXTINF:1,\na\n").unwrap().0, "#EXTM3U\n#EXTINF:1,\n/hls/1\n");
    assert!(rewrite("#EXTM3U url-tvg=\"\"\r\n").is_ok());
}

#[test]
fn what_is_refused_goes_and_takes_all_with_it_where_nothing_is_left() {
    for address in ["http://10.0.0.1/", "file:///etc/passwd", "ftp://a.example/", "http://", "javascript:1", "about:a"]
    {
        for (tag, kind) in [
            ("#EXT-X-KEY:METHOD=AES-128,URI=\"@\"\na", Kind::Key),
            ("#EXT-X-MAP:URI=\"@\"\na", Kind::Map),
            ("@", Kind::Segment),
        ] {
            let refused = rewrite(&format!("#EXTM3U\n{}\n", tag.replace('@', address)));
            assert_eq!(refused, Err(Fault::Refused { line: 2, kind }), "{tag} {address}");
        }
        assert_eq!(
            rewrite(&format!("#EXTM3U\n#EXT-X-STREAM-INF:A=1\n{address}")),
            Err(Fault::Refused { line: 3, kind: Kind::Variant })
        );
        // One among others is missed, and the others are not.
        let (text, _) = rewrite(&format!("#EXTM3U\n#EXTINF:1,\na\n#EXTINF:2,\n{address}\n#EXTINF:3,\nb\n")).unwrap();
        let gap = "#EXTM3U\n#EXTINF:1,\n/hls/1\n#EXTINF:2,\n#EXT-X-GAP\ndata:,\n#EXTINF:3,\n/hls/";
        assert!(text.starts_with(gap) && text.lines().count() == 8, "{text}");
        let variants = format!("#EXT-X-STREAM-INF:A=1\n#x\n{address}\n#EXT-X-STREAM-INF:A=2\nb\n");
        let (text, _) = rewrite(&format!("#EXTM3U\n#EXT-X-A\n{variants}")).unwrap();
        let other = "#EXTM3U\n#EXT-X-A\n#EXT-X-STREAM-INF:A=2\n/hls/";
        assert!(text.starts_with(other) && text.lines().count() == 4, "{text}");
        for tag in [
            "#EXT-X-KEY:METHOD=AES-128,URI=\"@\"",
            "#EXT-X-MAP:URI=\"@\"",
            "#EXT-X-PART:URI=\"@\"",
            "#EXT-X-MEDIA:URI=\"@\"",
            "#EXT-X-SESSION-KEY:URI=\"@\"",
            "#EXT-X-I-FRAME-STREAM-INF:URI=\"@\"",
            "#EXT-X-SESSION-DATA:URI=\"@\"",
            "#EXT-X-CONTENT-STEERING:SERVER-URI=\"@\"",
            "#EXT-X-PRELOAD-HINT:URI=\"@\"",
            "#EXT-X-PREFETCH:@",
            "#EXT-X-RENDITION-REPORT:URI=\"@\"",
            "#EXT-X-DATERANGE:X-ASSET-LIST=\"a\",X-ASSET-URI=\"@\"",
        ] {
            let (text, _) = line(&tag.replace('@', address));
            assert_eq!(text, "", "{tag} {address}");
        }
    }
}

#[test]
fn segments_whose_key_or_map_is_refused_are_gaps_and_the_others_play() {
    let (bad, gap) = ("http://10.0.0.1/", "#EXT-X-GAP\ndata:,");
    let key = |uri: &str, more: &str| format!("#EXT-X-KEY:METHOD=AES-128,URI=\"{uri}\"{more}");
    let cases = [
        // From there to the next of its kind.
        vec!["a", "KEY bad", "b!", "c!", "KEY k", "d"],
        vec!["KEY bad", "a!", "#EXT-X-KEY:METHOD=NONE", "b"],
        vec!["a", "#EXT-X-MAP:URI=\"http://10.0.0.1/\"", "b!", "c!", "#EXT-X-MAP:URI=\"m\"", "d"],
        vec!["a", "#EXT-X-MAP:URI=\"http://10.0.0.1/\"", "KEY k", "b!", "c!"],
        // A player takes whichever of several it can; of them all none is left over for what follows the next.
        vec!["KEY bad", "KEY k", "a", "KEY bad", "b!", "KEY k", "c"],
        vec!["KEY k", "KEY bad", "a", "b"],
        // So it is where there is no address at all.
        vec!["a", "#EXT-X-KEY:METHOD=AES-128,IV=0x1 bad", "b!", "c!", "#EXT-X-KEY:METHOD=none", "d"],
        vec!["#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"\" bad", "a!", "KEY k", "b"],
        vec!["#EXT-X-KEY:METHOD=AES-128 bad", "KEY k", "a"],
        vec!["a", "#EXT-X-MAP:BYTERANGE=\"1@0\",bad=1", "b!", "#EXT-X-MAP:URI=\"m\"", "c"],
        vec!["a", "#EXT-X-MAP:bad", "b!", "#EXT-X-MAP:URI=\"m\"", "c"],
    ];
    for lines in cases {
        let text = |line: &&str| match *line {
            "KEY bad" => key(bad, ""),
            "KEY k" => key("k", ",KEYFORMAT=\"x\""),
            line => line.trim_end_matches('!').to_owned(),
        };
        let playlist = format!("#EXTM3U\n{}\n", lines.iter().map(text).collect::<Vec<_>>().join("\n"));
        let (base, imported) = (Url::parse(BASE).unwrap(), imported());
        let limits = Limits::default();
        let rewriter = Rewriter { base: &base, imported: &imported, low_latency: LowLatency::Stripped, limits };
        let out = rewriter.rewrite(playlist.as_bytes(), &mut |_, _, url| {
            (url.host_str() != Some("10.0.0.1")).then(|| url.path().rsplit('/').next().unwrap().to_owned())
        });
        let out = out.unwrap();
        let kept = |line: &&str| match *line {
            line if line.contains("bad") || line.contains(bad) => None,
            line if line.ends_with('!') => Some(gap.to_owned()),
            line => Some(text(&line)),
        };
        let expected = lines.iter().filter_map(kept).collect::<Vec<_>>().join("\n");
        assert_eq!(out.text, format!("#EXTM3U\n{expected}\n"), "{lines:?}");
        let missed = out.missed.unwrap_or_else(|| panic!("{lines:?}"));
        assert!(
            matches!(
                missed,
                Fault::Refused { kind: Kind::Key | Kind::Map, .. } | Fault::Nowhere { kind: Kind::Key | Kind::Map, .. }
            ),
            "{lines:?}: {missed:?}"
        );
    }
}

#[test]
fn a_key_without_an_address_that_all_need_is_why_nothing_can_be_played() {
    let all = |tag: &str| rewrite(&format!("#EXTM3U\n{tag}\n#EXTINF:1,\na\n#EXTINF:1,\nb\n"));
    for (tag, kind) in [("#EXT-X-KEY:METHOD=AES-128", Kind::Key), ("#EXT-X-MAP:URI=\"\"", Kind::Map)] {
        let fault = all(tag).unwrap_err();
        assert_eq!(fault, Fault::Nowhere { line: 2, kind });
        assert!(fault.to_string().starts_with(&format!("line 2 of the playlist has a {kind:?} without an address")));
    }
    for tag in
        ["#EXT-X-KEY:METHOD=NONE", "#EXT-X-KEY:", "#EXT-X-KEY:IV=0x1", "#EXT-X-KEY:METHOD=AES-128,URI=\"data:,k\""]
    {
        assert_eq!(all(tag).unwrap().1.len(), 2, "{tag}");
    }
}

#[test]
fn variables_are_put_in_and_their_definitions_dropped() {
    let (text, found) = rewrite(
        "#EXTM3U\n#EXT-X-DEFINE:NAME=\"path\",VALUE=\"/a/b\"\n#EXT-X-DEFINE:IMPORT=\"host\"\n#EXT-X-DEFINE:QUERYPARAM=\"token\"\n\
         #EXT-X-KEY:METHOD=AES-128,URI=\"{$path}/key\"\n#EXT-X-NEW:A=\"{$path}\"\n#EXTINF:1,\n{$host}{$path}?{$token}\n",
    )
    .unwrap();
    assert_eq!(text, "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"/hls/1\"\n#EXT-X-NEW:A=\"/a/b\"\n#EXTINF:1,\n/hls/2\n");
    assert_eq!(found[0].1, "http://cdn.example/a/b/key");
    assert_eq!(found[1].1, "http://other.example/a/b?t");
    let define = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"1\"\n";
    assert_eq!(rewrite(&format!("{define}{{$b}}")), Err(Fault::Variable(3)));
    // Whoever does not use what cannot be had misses nothing, and no more than what uses it is missed.
    for odd in ["IMPORT=\"b\"", "QUERYPARAM=\"b\"", "", "\u{fffd}"] {
        let (text, _) = rewrite(&format!("{define}#EXT-X-DEFINE:{odd}\n#EXT-X-A:{{$b}}\n{{$b}}\n{{$a}}\n")).unwrap();
        assert_eq!(text, "#EXTM3U\n#EXT-X-A:{$b}\n#EXT-X-GAP\ndata:,\n/hls/1\n", "{odd}");
        let key = format!("{define}#EXT-X-DEFINE:{odd}\n#EXT-X-KEY:METHOD=AES-128,URI=\"{{$b}}\"\na\n");
        assert_eq!(rewrite(&key), Err(Fault::Variable(4)), "{odd}");
    }
    assert_eq!(rewrite("#EXTM3U\n#EXT-X-DEFINE:IMPORT=\"b\"\n{$b}/1.ts"), Err(Fault::Variable(3)));
    // None is defined: it is an address like any.
    assert_eq!(rewrite("#EXTM3U\n{$b}").unwrap().1[0].1, "http://cdn.example/live/u/p/%7B$b%7D");
    let base = Url::parse(BASE).unwrap();
    let imported = &imported();
    let (low_latency, limits) = (LowLatency::Passed, Limits::default());
    let rewriter = Rewriter { base: &base, imported, low_latency, limits };
    let all = defined(format!("{define}#EXT-X-DEFINE:IMPORT=\"host\"\n").as_bytes(), &rewriter).unwrap();
    assert_eq!((all.get("a"), all.get("host")), (Some("1"), Some("http://other.example")));
}

#[test]
fn low_latency_is_passed_or_nothing_is_said_of_it() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n\
                #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.0,CAN-SKIP-UNTIL=12.0,HOLD-BACK=12.0\n\
                #EXT-X-PART-INF:PART-TARGET=0.33\n#EXT-X-PART:DURATION=0.33,URI=\"p\"\n#EXTINF:4,\na.ts\n\
                #EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"p\"\n#EXT-X-PREFETCH:b.ts\n\
                #EXT-X-RENDITION-REPORT:URI=\"r\",LAST-MSN=1\n";
    let (stripped, found) = rewrite_as(text.as_bytes(), LowLatency::Stripped).unwrap();
    assert_eq!(
        stripped,
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-SERVER-CONTROL:HOLD-BACK=12.0\n#EXTINF:4,\n/hls/1\n"
    );
    assert_eq!(found.len(), 1);
    let (passed, found) = rewrite(text).unwrap();
    assert!(passed.contains("CAN-BLOCK-RELOAD=YES") && passed.lines().count() == text.lines().count());
    assert_eq!(found.len(), 5);
    let only = b"#EXTM3U\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES\n";
    assert_eq!(rewrite_as(only, LowLatency::Stripped).unwrap().0, "#EXTM3U\n");
    let delta = b"#EXTM3U\n#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n";
    assert_eq!(rewrite_as(delta, LowLatency::Stripped), Err(Fault::Delta(2)));
    assert!(rewrite_as(delta, LowLatency::Passed).is_ok());
}

#[test]
fn what_it_is_is_said() {
    let base = Url::parse(BASE).unwrap();
    let imported = &Variables::default();
    let (low_latency, limits) = (LowLatency::Passed, Limits::default());
    let rewriter = Rewriter { base: &base, imported, low_latency, limits };
    let facts = |text: &str| {
        let out = rewriter.rewrite(format!("#EXTM3U\n{text}").as_bytes(), &mut |_, _, _| Some("/".into())).unwrap();
        (out.multivariant, out.ended, out.target.as_millis())
    };
    assert_eq!(facts("#EXT-X-STREAM-INF:A=1\na"), (true, false, 0));
    assert_eq!(facts("#EXT-X-MEDIA:TYPE=AUDIO,URI=\"a\""), (true, false, 0));
    assert_eq!(facts("#EXT-X-TARGETDURATION:6\n#EXTINF:6,\na\n#EXT-X-ENDLIST"), (false, true, 6000));
    for (written, ms) in
        [("4.5", 4500), (" 7 ", 7000), ("-1", 0), ("NaN", 0), ("inf", 86_400_000), ("x", 0), ("1e300", 86_400_000)]
    {
        assert_eq!(facts(&format!("#EXT-X-TARGETDURATION:{written}")), (false, false, ms), "{written}");
    }
}

#[test]
fn sizes_have_limits() {
    let base = Url::parse(BASE).unwrap();
    let imported = &Variables::default();
    let limits = Limits { bytes: 200, line: 50, output: 300 };
    let rewriter = Rewriter { base: &base, imported, low_latency: LowLatency::Passed, limits };
    let go = |text: &str, name: &str| rewriter.rewrite(text.as_bytes(), &mut |_, _, _| Some(name.into())).map(|_| ());
    let lines = |count: usize| format!("#EXTM3U\n{}", "a\n".repeat(count));
    assert_eq!(go(&lines(96), "a"), Ok(()));
    assert_eq!(go(&lines(97), "a"), Err(Fault::TooLarge));
    assert_eq!(go(&lines(96), "aaaaaa"), Err(Fault::TooLarge));
    assert_eq!(go(&format!("#EXTM3U\n{}\n", "a".repeat(50)), "a"), Ok(()));
    assert_eq!(go(&format!("#EXTM3U\n\n{}\n", "a".repeat(51)), "a"), Err(Fault::LineTooLong(3)));
    let long = "x".repeat(60);
    for (odd, same) in [
        (format!("#{long}"), true),
        (format!("#EXT-X-{long}"), true),
        (format!("#EXTINF:1,{long}"), true),
        (format!("#EXT-X-SESSION-DATA:A=\"{long}\",URI=\"a\""), false),
        (format!("#EXT-X-PREFETCH:{long}"), false),
    ] {
        let text = format!("#EXTM3U\n{odd}\na\n");
        let out = rewriter.rewrite(text.as_bytes(), &mut |_, _, _| Some("a".into())).unwrap();
        assert_eq!(out.text, if same { text } else { String::from("#EXTM3U\na\n") });
    }
    let key = format!("#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"{long}\"\na\n");
    assert_eq!(go(&key, "a"), Err(Fault::LineTooLong(2)));
    let grown = format!("#EXTM3U\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"{}\"\n{}", "b".repeat(10), "{$a}".repeat(6));
    assert_eq!(go(&grown, "a"), Err(Fault::Variable(3)));
}

#[test]
fn nothing_that_replaces_an_address_ends_its_line() {
    let base = Url::parse(BASE).unwrap();
    let imported = &Variables::default();
    let (low_latency, limits) = (LowLatency::Passed, Limits::default());
    let rewriter = Rewriter { base: &base, imported, low_latency, limits };
    let text = b"#EXTM3U\na\n#EXT-X-MAP:URI=\"a\"\n";
    let out = rewriter.rewrite(text, &mut |_, _, _| Some("x\"\r\ny".into())).unwrap();
    assert_eq!(out.text, "#EXTM3U\nx%22%0D%0Ay\n#EXT-X-MAP:URI=\"x%22%0D%0Ay\"\n");
}

/// A media playlist, as m3u8-rs writes one.
fn media() -> impl Strategy<Value = m3u8_rs::MediaPlaylist> {
    use m3u8_rs::{ByteRange, Key, KeyMethod, Map, MediaPlaylist, MediaSegment};
    let uri = "[a-z]{1,8}(/[a-z0-9]{1,8}){0,2}[.](ts|m4s|mp4)([?][a-z]=[a-z0-9%]{0,3})?";
    let key = uri.prop_map(|uri| Key {
        method: KeyMethod::AES128,
        uri: Some(uri),
        iv: Some("0x1".into()),
        ..Default::default()
    });
    let range =
        (1..1000u64, proptest::option::of(0..1000u64)).prop_map(|(length, offset)| ByteRange { length, offset });
    let map = (uri, proptest::option::of(range.clone()));
    let map = map.prop_map(|(uri, byte_range)| Map { uri, byte_range, ..Default::default() });
    let segment = (
        uri,
        1..100u8,
        // What is behind a comma in a title m3u8-rs takes for the address.
        proptest::option::of("[a-z]([a-z ]{0,8}[a-z])?"),
        proptest::option::of(range),
        any::<bool>(),
        proptest::option::weighted(0.2, key),
        proptest::option::weighted(0.2, map),
    )
        .prop_map(|(uri, duration, title, byte_range, discontinuity, key, map)| MediaSegment {
            uri,
            duration: f32::from(duration) / 10.0,
            title,
            byte_range,
            discontinuity,
            key,
            map,
            ..Default::default()
        });
    (proptest::collection::vec(segment, 0..12), any::<u32>(), any::<bool>()).prop_map(
        |(segments, sequence, end_list)| MediaPlaylist {
            version: Some(7),
            target_duration: 10,
            media_sequence: u64::from(sequence),
            segments,
            end_list,
            ..Default::default()
        },
    )
}

/// A multivariant playlist, as m3u8-rs writes one.
fn multivariant() -> impl Strategy<Value = m3u8_rs::MasterPlaylist> {
    use m3u8_rs::{AlternativeMedia, AlternativeMediaType, MasterPlaylist, VariantStream};
    let uri = "[a-z]{1,8}(/[a-z0-9]{1,8}){0,2}[.]m3u8([?][a-z]=[a-z0-9%]{0,3})?";
    let variant = (uri, any::<u32>(), any::<bool>(), proptest::option::of("[a-z0-9.,]{1,10}")).prop_map(
        |(uri, bandwidth, is_i_frame, codecs)| VariantStream {
            uri,
            bandwidth: u64::from(bandwidth),
            is_i_frame,
            codecs,
            ..Default::default()
        },
    );
    let rendition = (proptest::option::of(uri), "[a-z ,=]{1,10}").prop_map(|(uri, name)| AlternativeMedia {
        media_type: AlternativeMediaType::Audio,
        uri,
        group_id: "a,URI=".into(),
        name,
        ..Default::default()
    });
    (proptest::collection::vec(variant, 1..8), proptest::collection::vec(rendition, 0..4))
        .prop_map(|(variants, alternatives)| MasterPlaylist { variants, alternatives, ..Default::default() })
}

/// As a player resolves and as `rewrite_marked` marks an address.
fn marked(uri: &mut String) {
    *uri = format!("/hls/{}", Url::parse(BASE).unwrap().join(uri).unwrap());
}

fn rewrite_marked(text: &[u8]) -> String {
    let (base, imported) = (Url::parse(BASE).unwrap(), Variables::default());
    let (low_latency, limits) = (LowLatency::Passed, Limits::default());
    let rewriter = Rewriter { base: &base, imported: &imported, low_latency, limits };
    rewriter.rewrite(text, &mut |_, _, url| Some(format!("/hls/{url}"))).unwrap().text
}

/// Pieces that playlists are made of, right ones and wrong ones.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("#EXT-X-KEY:METHOD=AES-128,URI=\"".to_owned()),
        Just("#EXT-X-DEFINE:NAME=\"a\",VALUE=\"".to_owned()),
        Just("#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=".to_owned()),
        Just("#EXT-X-DATERANGE:X-ASSET-URI=\"".to_owned()),
        Just("#EXT-X-STREAM-INF:".to_owned()),
        Just("{$a}".to_owned()),
        Just("http://".to_owned()),
        Just("#EXT".to_owned()),
        Just("URI=".to_owned()),
        "[\"=,\r\n#:{}$/@%\\x00 é]{1,4}",
        "[a-zA-Z0-9]{1,6}",
        any::<char>().prop_map(String::from),
    ]
}

proptest! {
    #[test]
    fn a_media_playlist_says_the_same_to_m3u8_rs(playlist in media()) {
        let mut written = Vec::new();
        playlist.write_to(&mut written).unwrap();
        let text = rewrite_marked(&written);
        let (_, read) = m3u8_rs::parse_media_playlist(text.as_bytes()).unwrap();
        let (_, mut before) = m3u8_rs::parse_media_playlist(&written).unwrap();
        for segment in &mut before.segments {
            marked(&mut segment.uri);
            if let Some(uri) = segment.key.as_mut().and_then(|key| key.uri.as_mut()) {
                marked(uri);
            }
            if let Some(map) = &mut segment.map {
                marked(&mut map.uri);
            }
        }
        prop_assert_eq!(read, before);
    }

    #[test]
    fn a_multivariant_playlist_says_the_same_to_m3u8_rs(playlist in multivariant()) {
        let mut written = Vec::new();
        playlist.write_to(&mut written).unwrap();
        let text = rewrite_marked(&written);
        let (_, read) = m3u8_rs::parse_master_playlist(text.as_bytes()).unwrap();
        let (_, mut before) = m3u8_rs::parse_master_playlist(&written).unwrap();
        for variant in &mut before.variants {
            marked(&mut variant.uri);
        }
        for uri in before.alternatives.iter_mut().filter_map(|rendition| rendition.uri.as_mut()) {
            marked(uri);
        }
        prop_assert_eq!(read, before);
    }

    #[test]
    fn any_text_is_rewritten_or_refused(pieces in proptest::collection::vec(piece(), 0..40), stripped: bool) {
        let low_latency = if stripped { LowLatency::Stripped } else { LowLatency::Passed };
        let text = format!("#EXTM3U\n{}", pieces.concat());
        if let Ok((out, found)) = rewrite_as(text.as_bytes(), low_latency) {
            prop_assert!(!out.contains('\r') && out.ends_with('\n'));
            // Whatever was asked for is gone, and what is there now is ours: rewritten again, it asks for nothing else.
            let again = rewrite_as(out.as_bytes(), low_latency);
            if let Ok((_, ours)) = again {
                prop_assert!(ours.iter().all(|(_, url)| url.starts_with("http://cdn.example/hls/")), "{:?} {:?}", found, ours);
            }
        }
    }

    #[test]
    fn any_bytes_are_rewritten_or_refused(bytes: Vec<u8>) {
        let _ = rewrite_as(&[b"#EXTM3U\n", &bytes[..]].concat(), LowLatency::Passed);
        let _ = rewrite_as(&bytes, LowLatency::Stripped);
    }
}
