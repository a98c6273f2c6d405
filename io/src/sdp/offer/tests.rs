use proptest::prelude::*;

use super::*;
use crate::sdp::text::TextFault;

macro_rules! offers {
    ($($name:ident = $file:literal;)*) => {
        $(const $name: &str = include_str!(concat!("../../../../tests/fuzz/seeds/sdp_offer/", $file));)*
        const ALL: &[(&str, &str)] = &[$(($file, $name)),*];
    };
}
offers! {
    MINIMAL = "minimal.sdp";
    CHROMIUM = "chromium.sdp";
    MAX_BUNDLE = "chromium-max-bundle-data.sdp";
    FIREFOX = "firefox.sdp";
    OBS = "obs.sdp";
    WHIPSINK = "whipsink.sdp";
    FFMPEG = "ffmpeg.sdp";
    FFMPEG_AUDIO = "ffmpeg-audio.sdp";
    AIORTC = "aiortc.sdp";
}

fn check(text: &str) -> Result<Offer, OfferFault> {
    Offer::check(text.as_bytes(), Media::AudioVideo)
}

/// The minimal offer with every occurrence of something replaced, which must be there.
fn with(from: &str, to: &str) -> String {
    assert!(MINIMAL.contains(from), "{from}");
    MINIMAL.replace(from, to)
}

/// As [`with`], in one of its two sections only.
fn with_in(section: usize, from: &str, to: &str) -> String {
    let mut parts: Vec<String> = MINIMAL.split("m=").map(str::to_owned).collect();
    assert!(parts[section + 1].contains(from), "{from}");
    parts[section + 1] = parts[section + 1].replace(from, to);
    parts.join("m=")
}

fn refused(text: impl AsRef<str>, status: u16) -> OfferFault {
    let fault = check(text.as_ref()).unwrap_err();
    assert_eq!(fault.status(), status, "{fault}");
    fault
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

fn types(offer: &Offer) -> Vec<(Kind, &str, u8, Option<u8>)> {
    offer.sections.iter().map(|s| (s.kind, s.mid.as_str(), s.payload_type, s.rtx)).collect()
}

#[test]
fn sources_that_cannot_be_are_left_out() {
    let good = "a=ssrc:1 cname:a\r\na=ssrc:4294967295 msid:a b\r\na=ssrc-group:FID 1 4294967295\r\n";
    let bad = "a=ssrc:0 cname:a\r\na=ssrc:4294967296 cname:a\r\na=ssrc:-1 cname:a\r\na=ssrc: cname:a\r\na=ssrc\r\n\
               a=ssrc:x cname:a\r\na=ssrc-group:FID 1 0\r\na=ssrc-group:FID 1 x\r\n";
    let offer = check(&with("a=mid:1", &format!("{good}{bad}a=mid:1"))).unwrap();
    assert!(offer.text.contains(good), "{}", offer.text);
    assert_eq!(count(&offer.text, "a=ssrc"), 3);
}

#[test]
fn publishers_in_use_are_taken_with_the_right_payload_types() {
    use Kind::{Audio, Video};
    for (offer, expected) in [
        (MINIMAL, vec![(Audio, "0", 111, None), (Video, "1", 96, Some(97))]),
        (CHROMIUM, vec![(Audio, "0", 111, None), (Video, "1", 107, Some(108))]),
        (MAX_BUNDLE, vec![(Audio, "0", 111, None), (Video, "2", 103, None)]),
        (FIREFOX, vec![(Audio, "0", 109, None), (Video, "1", 126, Some(127))]),
        (OBS, vec![(Audio, "0", 111, None), (Video, "1", 96, None)]),
        (WHIPSINK, vec![(Video, "video0", 96, None), (Audio, "audio1", 97, None)]),
        (FFMPEG, vec![(Audio, "0", 111, None), (Video, "1", 106, None)]),
        (FFMPEG_AUDIO, vec![(Audio, "0", 111, None)]),
        (AIORTC, vec![(Audio, "0", 96, None), (Video, "1", 99, Some(100))]),
    ] {
        assert_eq!(types(&check(offer).unwrap()), expected);
    }
}

#[test]
fn every_taken_offer_comes_in_one_shape() {
    for (file, offer) in ALL {
        let offer = check(offer).unwrap();
        let sections = offer.sections.len();
        for line in ["a=ice-ufrag:", "a=ice-pwd:", "a=fingerprint:sha-256 ", "a=setup:", "a=sendonly\r\n"] {
            assert_eq!(count(&offer.text, line), sections, "{line} in {file}");
        }
        assert_eq!(count(&offer.text, "a=rtcp-mux\r\n"), sections, "{file}");
        assert_eq!(count(&offer.text, " 9 UDP/TLS/RTP/SAVPF "), sections, "{file}");
        assert_eq!(count(&offer.text, "\n"), count(&offer.text, "\r\n"), "{file}");
        for absent in ["bundle-only", ".local", "m=application", "tcptype"] {
            assert!(!offer.text.contains(absent), "{absent} in {file}");
        }
        let again = check(&offer.text).unwrap();
        assert_eq!(again, Offer { refused: Vec::new(), ..offer }, "{file}");
    }
}

#[test]
fn line_ends_are_taken_as_they_come() {
    assert_eq!(check(&MINIMAL.replace('\n', "\r\n")), check(MINIMAL));
}

#[test]
fn what_is_no_sdp_is_malformed() {
    assert_eq!(refused("", 400), OfferFault::Text(TextFault::Empty));
    assert_eq!(refused("\r\n\r\n", 400), OfferFault::Text(TextFault::Empty));
    assert_eq!(refused("hello", 400), OfferFault::Text(TextFault::NotALine(1)));
    assert_eq!(refused(with("s=-", "s=\0"), 400), OfferFault::Text(TextFault::ControlCharacter(3)));
    assert_eq!(refused("v=0\r\n", 400), OfferFault::MissingLine('o'));
    assert_eq!(refused(with("v=0", "v=1"), 400), OfferFault::MissingLine('v'));
    assert_eq!(refused(with("s=-\n", ""), 400), OfferFault::MissingLine('s'));
    assert_eq!(refused(with("t=0 0\n", ""), 400), OfferFault::MissingLine('t'));
    assert_eq!(refused(format!("a=x\n{MINIMAL}"), 400), OfferFault::MissingLine('v'));
    assert_eq!(
        refused(with("m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=audio 9"), 400),
        OfferFault::MediaLine("m=audio 9".into())
    );
    let fault = Offer::check(b"v=0\r\ns=\xff\r\n", Media::AudioVideo).unwrap_err();
    assert_eq!((fault.status(), fault), (400, OfferFault::Text(TextFault::NotUtf8)));
}

#[test]
fn there_has_to_be_media() {
    assert_eq!(refused("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n", 422), OfferFault::NoMedia);
    let data = "v=0\no=- 1 1 IN IP4 0.0.0.0\ns=-\nt=0 0\na=group:BUNDLE 0\n\
                m=application 9 UDP/DTLS/SCTP webrtc-datachannel\na=mid:0\na=setup:actpass\n";
    assert_eq!(refused(data, 422), OfferFault::NoMedia);
    let none = with("m=audio 9", "m=audio 0").replace("m=video 9", "m=video 0");
    assert_eq!(refused(none, 422), OfferFault::NoMedia);
    let many = format!("{MINIMAL}{}", "m=application 0 X 0\n".repeat(MAX_SECTIONS - 1));
    assert_eq!(refused(many, 422), OfferFault::ManySections);
}

#[test]
fn kinds_are_held_against_the_endpoint() {
    let checked = |media| Offer::check(MINIMAL.as_bytes(), media).unwrap_err();
    assert_eq!(checked(Media::Audio), OfferFault::KindNotTaken(Kind::Video));
    assert_eq!(checked(Media::Video), OfferFault::KindNotTaken(Kind::Audio));
    assert_eq!(checked(Media::Video).status(), 422);
    assert!(checked(Media::Audio).to_string().contains("audio only"));
    assert!(Offer::check(FFMPEG_AUDIO.as_bytes(), Media::Audio).is_ok());
    assert_eq!(refused(with("m=video", "m=text"), 422), OfferFault::UnknownKind("text".into()));
    let second = MINIMAL.split("m=").nth(1).unwrap().replace("mid:0", "mid:2").replace("111", "112");
    let two = with("BUNDLE 0 1", "BUNDLE 0 1 2") + "m=" + &second;
    assert_eq!(refused(two, 422), OfferFault::ManyTracks(Kind::Audio));
}

#[test]
fn a_publisher_sends() {
    for direction in ["recvonly", "inactive"] {
        let text = with_in(1, "a=sendonly", &format!("a={direction}"));
        assert_eq!(refused(text, 422), OfferFault::NotSending(direction));
        let session = with("a=sendonly\n", "").replacen("m=audio", &format!("a={direction}\nm=audio"), 1);
        assert_eq!(refused(session, 422), OfferFault::NotSending(direction));
    }
    assert_eq!(count(&check(&with("a=sendonly", "a=sendrecv")).unwrap().text, "a=sendrecv\r\n"), 2);
    // Without an attribute a section is sendrecv (RFC 8866 §6.7).
    assert_eq!(count(&check(&with("a=sendonly\n", "")).unwrap().text, "a=sendrecv\r\n"), 2);
    assert!(matches!(refused(with("a=sendonly", "a=sendonly\na=sendrecv"), 400), OfferFault::Attribute(_)));
}

#[test]
fn ice_credentials() {
    let (ufrag, pwd) = ("a=ice-ufrag:EsAw\n", "a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\n");
    assert_eq!(refused(with(ufrag, "").replace(pwd, ""), 422), OfferFault::NoCredentials);
    assert_eq!(refused(with(ufrag, ""), 422), OfferFault::NoCredentials);
    assert_eq!(refused(with(pwd, ""), 422), OfferFault::NoCredentials);
    for bad in ["EsA", "Es-w", &"u".repeat(257)] {
        assert!(matches!(refused(with("EsAw", bad), 400), OfferFault::Attribute(_)));
    }
    for bad in ["tooshort", "P2uYro0UCOQ4zxjKXaWCB=i1", &"p".repeat(257)] {
        assert!(matches!(refused(with("P2uYro0UCOQ4zxjKXaWCBui1", bad), 400), OfferFault::Attribute(_)));
    }
    let offer = check(MINIMAL).unwrap();
    assert_eq!(offer.credentials, Credentials::parse("EsAw", "P2uYro0UCOQ4zxjKXaWCBui1").unwrap());
    let session = with(ufrag, "").replace(pwd, "").replacen("m=audio", &format!("{ufrag}{pwd}m=audio"), 1);
    assert_eq!(check(&session), Ok(offer));
}

#[test]
fn fingerprints() {
    let whole = MINIMAL.lines().find(|line| line.starts_with("a=fingerprint")).unwrap();
    assert_eq!(refused(with(&format!("{whole}\n"), ""), 422), OfferFault::NoFingerprint);
    let weak = format!("a=fingerprint:sha-1 {}", ["AB"; 20].join(":"));
    assert_eq!(refused(with(whole, &weak), 422), OfferFault::WeakFingerprint);
    // Beside a strong one it counts for nothing, and the media side does not see it.
    assert_eq!(check(&with(whole, &format!("{weak}\n{whole}"))), check(MINIMAL));
    for bad in ["sha-256", "sha-256 ", "sha-256 9C", "sha-256 9C:0G", "sha-1 9C::", "sha-256  9C:0E", "sha 256 9C"] {
        assert!(
            matches!(refused(with(whole, &format!("a=fingerprint:{bad}")), 400), OfferFault::Attribute(_)),
            "{bad}"
        );
    }
    let session = with(&format!("{whole}\n"), "").replacen("m=audio", &format!("{whole}\nm=audio"), 1);
    assert_eq!(check(&session), check(MINIMAL));
}

#[test]
fn dtls_roles() {
    for setup in ["active", "passive"] {
        let offer = check(&with("a=setup:actpass", &format!("a=setup:{setup}"))).unwrap();
        assert_eq!(count(&offer.text, &format!("a=setup:{setup}\r\n")), 2);
    }
    assert_eq!(refused(with("a=setup:actpass", "a=setup:holdconn"), 422), OfferFault::NoSetup);
    assert_eq!(refused(with("a=setup:actpass\n", ""), 422), OfferFault::NoSetup);
    assert!(matches!(refused(with("a=setup:actpass", "a=setup:both"), 400), OfferFault::Attribute(_)));
}

#[test]
fn rtcp_shares_the_transport() {
    assert_eq!(refused(with("a=rtcp-mux\n", ""), 422), OfferFault::NoRtcpMux);
    assert!(check(&with("a=rtcp-mux\n", "a=rtcp-mux\na=rtcp-mux-only\n")).is_ok());
    assert_eq!(refused(with("UDP/TLS/RTP/SAVPF", "RTP/AVP"), 422).status(), 422);
}

#[test]
fn names_and_bundle() {
    assert_eq!(refused(with("a=mid:1\n", "a=mid:0\n"), 400), OfferFault::DuplicateMid("0".into()));
    assert_eq!(refused(with("BUNDLE 0 1", "BUNDLE 0 1 0"), 400), OfferFault::DuplicateMid("0".into()));
    assert!(matches!(refused(with("a=mid:1\n", "a=mid:\n"), 400), OfferFault::Attribute(_)));
    assert_eq!(refused(with("a=mid:1\n", ""), 422), OfferFault::NoMid(Kind::Video));
    assert_eq!(refused(with("a=group:BUNDLE 0 1\n", ""), 422), OfferFault::NotBundled { mid: "0".into() });
    assert_eq!(refused(with("BUNDLE 0 1", "BUNDLE 0"), 422), OfferFault::NotBundled { mid: "1".into() });
    assert_eq!(refused(with("a=group:BUNDLE 0 1", "a=group:BUNDLE 0\na=group:BUNDLE 1"), 422), OfferFault::ManyBundles);
    // The bundle of one section goes without saying.
    let single = FFMPEG_AUDIO.replace("a=group:BUNDLE 0 1\n", "");
    assert!(!check(&single).unwrap().text.contains("a=group"));
    assert!(check(FFMPEG_AUDIO).unwrap().text.contains("a=group:BUNDLE 0\r\n"));
}

#[test]
fn the_transport_is_that_of_the_first_section_in_the_group() {
    // Firefox gives each section a transport of its own until the answer bundles them.
    let offer = check(FIREFOX).unwrap();
    assert_eq!((offer.credentials.ufrag.as_str(), offer.transport), ("8b3e61f4", 0));
    assert!(!offer.text.contains("d52c07ea"));
    let offer = check(&FIREFOX.replace("BUNDLE 0 1", "BUNDLE 1 0")).unwrap();
    assert_eq!((offer.credentials.ufrag.as_str(), offer.transport), ("d52c07ea", 1));
    assert!(!offer.text.contains("8b3e61f4"));
    assert!(offer.text.contains("a=group:BUNDLE 1 0\r\n"));
}

#[test]
fn a_data_channel_is_cut_and_may_have_carried_the_transport() {
    let data = "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\na=mid:data\na=ice-ufrag:Data\n\
                a=ice-pwd:DataDataDataDataDataData\na=candidate:1 1 udp 7 192.0.2.9 5000 typ host\n";
    let last = with("BUNDLE 0 1", "BUNDLE data 0 1") + data;
    let offer = check(&last).unwrap();
    assert_eq!(offer.text, check(MINIMAL).unwrap().text);
    assert_eq!(
        offer.refused,
        [Refused {
            index: 2,
            line: "m=application 0 UDP/DTLS/SCTP webrtc-datachannel".into(),
            mid: Some("data".into())
        }]
    );
    // A bundle-only section has no transport: then the data channel's it is.
    let bare = MAX_BUNDLE
        .replace("BUNDLE 0 1 2", "BUNDLE 1 0 2")
        .replace("m=application 0", "m=application 46154")
        .replace("a=sctp-port", "a=ice-ufrag:Data\na=ice-pwd:DataDataDataDataDataData\na=rtcp-mux\na=setup:active\na=fingerprint:sha-256 00\na=sctp-port")
        .replace("m=audio 9", "m=audio 0")
        .replace("a=mid:0", "a=bundle-only\na=mid:0");
    let fingerprint = MINIMAL.lines().find(|line| line.starts_with("a=fingerprint")).unwrap();
    let offer = check(&bare.replace("a=fingerprint:sha-256 00", fingerprint)).unwrap();
    assert_eq!((offer.credentials.ufrag.as_str(), offer.transport), ("Data", 0));
    assert_eq!(count(&offer.text, "a=setup:active\r\n"), 2);
}

#[test]
fn port_zero_refuses_a_section_unless_it_is_bundle_only() {
    let without_video = with("m=video 9", "m=video 0");
    let offer = check(&without_video).unwrap();
    assert_eq!(types(&offer), [(Kind::Audio, "0", 111, None)]);
    assert!(offer.text.contains("a=group:BUNDLE 0\r\n"));
    assert_eq!(offer.refused.len(), 1);
    let transport = MAX_BUNDLE.split("m=").nth(1).unwrap();
    assert!(transport.contains("a=ice-ufrag:q7Lk"));
    let video = check(MAX_BUNDLE).unwrap().text.split("m=").nth(2).unwrap().to_owned();
    for copied in
        ["video 9 ", "a=ice-ufrag:q7Lk\r\n", "a=fingerprint:sha-256 ", "a=setup:actpass\r\n", "a=rtcp-mux\r\n"]
    {
        assert!(video.contains(copied), "{copied}");
    }
    // With everything refused, or nothing there to be bundled with, no media could ever come.
    let none = with("m=audio 9", "m=audio 0").replace("m=video 9", "m=video 0");
    assert_eq!(refused(&none, 422), OfferFault::NoMedia);
    let all_bundled = none.replace("a=rtcp-mux", "a=rtcp-mux\na=bundle-only");
    assert_eq!(refused(&all_bundled, 422), OfferFault::NoPort);
    assert!(check(&all_bundled.replace("m=video 0", "m=video 9")).is_ok());
    // Outside the group it has nothing to be bundled with.
    assert_eq!(types(&check(&MAX_BUNDLE.replace("BUNDLE 0 1 2", "BUNDLE 0 1")).unwrap()).len(), 1);
}

#[test]
fn codecs() {
    let fault = refused(with("H264/90000", "VP8/90000"), 422);
    assert_eq!(fault.to_string(), "the video section offers VP8/90000, rtx/90000; it has to offer H264/90000");
    let fault = refused(with("opus/48000/2", "H999/48000/2"), 422);
    assert!(fault.to_string().ends_with("it has to offer opus/48000/2"), "{fault}");
    assert!(matches!(refused(with("a=rtpmap:111 opus/48000/2\n", ""), 422), OfferFault::NoCodec { .. }));
    // Payload types that look like RTCP on the wire cannot be told apart from it.
    assert!(matches!(refused(with("111", "72"), 422), OfferFault::NoCodec { .. }));
    assert!(matches!(refused(with("111", "128"), 422), OfferFault::NoCodec { .. }));
    assert_eq!(refused(with("111", "96"), 400), OfferFault::SharedPayloadType(96));
    let twice = with("a=rtpmap:111 opus/48000/2", "a=rtpmap:111 opus/48000/2\na=rtpmap:111 PCMU/8000");
    assert!(matches!(refused(twice, 400), OfferFault::Attribute(AttributeFault::Contradiction { .. })));
    // Without the packetization mode that is preferred, single NAL units are better than nothing.
    let single = check(&with("packetization-mode=1;", "")).unwrap();
    assert_eq!(single.sections[1].payload_type, 96);
}

#[test]
fn candidates_that_lead_nowhere_never_fail_an_offer() {
    let candidates = |offer: &Offer| offer.text.matches("a=candidate:").count();
    let offer = check(CHROMIUM).unwrap();
    assert_eq!(candidates(&offer), 2);
    assert!(offer.text.contains("a=candidate:842163049 1 UDP 1685987071 198.51.100.44 46154 typ srflx raddr"));
    assert!(!offer.text.contains(" 57842 "), "a candidate of a transport that the bundle does not use");
    let junk = "a=candidate:1 1 udp 5 x.local 5 typ host\na=candidate:\na=candidate\na=candidate:\u{fffd} \u{1F600}\n\
                a=candidate:1 1 tcp 5 192.0.2.1 5 typ host\na=candidate:1 1 udp 5 publisher.example 5 typ host\n";
    let offer = check(&with("a=mid:0\n", &format!("a=mid:0\n{junk}"))).unwrap();
    assert_eq!(Ok(offer), check(MINIMAL));
    let many: String = (1..=5000).map(|port| format!("a=candidate:1 1 udp 1 192.0.2.1 {port} typ host\n")).collect();
    let offer = check(&with("a=mid:0\n", &format!("a=mid:0\n{junk}{many}"))).unwrap();
    assert_eq!(candidates(&offer), crate::sdp::MAX_CANDIDATES);
    let video = check(&with("BUNDLE 0 1", "BUNDLE 1 0").replace("a=mid:1\n", &format!("a=mid:1\n{many}"))).unwrap();
    assert!(video.text.split("m=video").nth(1).unwrap().contains("a=candidate:"));
}

#[test]
fn a_restarted_offer_has_new_credentials_and_no_candidates() {
    let offer = check(CHROMIUM).unwrap();
    let pwd = "vw5LmwG4y/e6dPP/zAP9Gp5k";
    let restarted = offer.restarted("ysXw", pwd);
    assert_eq!(restarted.credentials, Credentials::parse("ysXw", pwd).unwrap());
    assert_eq!(check(&restarted.text), Ok(restarted.clone()));
    assert!(!restarted.text.contains("a=candidate"));
    assert!(!restarted.text.contains("q7Lk"));
    let rest = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("a=ice-") && !line.starts_with("a=candidate"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(rest(&restarted.text), rest(&offer.text));
}

#[test]
fn what_a_peer_sends_does_not_decide_how_long_a_message_gets() {
    let long = "x".repeat(4000);
    for text in [
        with("m=video", &format!("m={long}")),
        with("UDP/TLS/RTP/SAVPF", &long),
        with("opus/48000/2", &long),
        with("EsAw", &long),
        with("BUNDLE 0 1", &format!("BUNDLE {long}")).replace("mid:0", &format!("mid:{long}")),
    ] {
        assert!(check(&text).unwrap_err().to_string().len() < 300);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Lines dropped, doubled and swapped: whatever is still taken has one shape, which is taken again unchanged.
    #[test]
    fn taken_offers_are_fixed_points(
        (file, edits) in (0..ALL.len(), prop::collection::vec((0..3u8, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..6))
    ) {
        let mut lines: Vec<&str> = ALL[file].1.lines().collect();
        for (edit, at, to) in edits {
            let (at, to) = (at.index(lines.len()), to.index(lines.len()));
            match edit {
                0 if lines.len() > 1 => { lines.remove(at); }
                1 => lines.insert(to, lines[at]),
                _ => lines.swap(at, to),
            }
        }
        if let Ok(offer) = check(&lines.join("\n")) {
            prop_assert_eq!(check(&offer.text), Ok(Offer { refused: Vec::new(), ..offer }));
        }
    }
}
