use holdfast_core::config::Media;

use super::*;
use crate::sdp::{Fragment, restart_fragment};

const AUDIO_VIDEO: &str = include_str!("../../../tests/fuzz/seeds/sdp_offer/minimal.sdp");
const WITH_DATA: &str = include_str!("../../../tests/fuzz/seeds/sdp_offer/chromium-max-bundle-data.sdp");

/// What webrtcbin answers, by its shape: the same candidate in each section, no bandwidth, no rtcp-mux-only.
fn local(video_mid: &str, video_type: u8) -> String {
    format!(
        "v=0\r\no=- 2466135211 0 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=ice-options:trickle\r\na=group:BUNDLE 0 {video_mid}\r\n\
         m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:HoldfAst\r\na=ice-pwd:0123456789abcdefghijklmn\r\n\
         a=mid:0\r\na=rtcp-mux\r\na=setup:active\r\na=rtpmap:111 OPUS/48000/2\r\na=recvonly\r\n\
         a=fingerprint:sha-256 AA\r\na=candidate:1 1 UDP 2015363327 198.51.100.1 40000 typ host\r\na=end-of-candidates\r\n\
         m=video 9 UDP/TLS/RTP/SAVPF {video_type}\r\nc=IN IP4 0.0.0.0\r\nb=AS:1\r\na=ice-ufrag:HoldfAst\r\n\
         a=ice-pwd:0123456789abcdefghijklmn\r\na=mid:{video_mid}\r\na=rtcp-mux\r\na=setup:active\r\n\
         a=rtpmap:{video_type} H264/90000\r\na=recvonly\r\na=fingerprint:sha-256 AA\r\n\
         a=candidate:1 1 UDP 2015363327 198.51.100.1 40000 typ host\r\n\
         a=candidate:2 1 TCP 1015021823 198.51.100.1 40000 typ host tcptype passive\r\n"
    )
}

fn offer(text: &str) -> Offer {
    Offer::check(text.as_bytes(), Media::AudioVideo).unwrap()
}

fn sections(answer: &str) -> Vec<Vec<&str>> {
    answer.split("m=").skip(1).map(|section| section.lines().collect()).collect()
}

#[test]
fn the_whole_answer() {
    let answer = offer(AUDIO_VIDEO).answer(&local("1", 96), 2_500_500).unwrap();
    assert_eq!(
        answer,
        "v=0\r\no=- 2466135211 0 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=ice-options:trickle\r\na=group:BUNDLE 0 1\r\n\
         m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:HoldfAst\r\na=ice-pwd:0123456789abcdefghijklmn\r\n\
         a=mid:0\r\na=setup:active\r\na=rtpmap:111 OPUS/48000/2\r\na=recvonly\r\na=fingerprint:sha-256 AA\r\n\
         a=rtcp-mux\r\na=rtcp-mux-only\r\n\
         a=candidate:1 1 UDP 2015363327 198.51.100.1 40000 typ host\r\na=end-of-candidates\r\n\
         m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\nb=AS:2501\r\nb=TIAS:2500500\r\na=ice-ufrag:HoldfAst\r\n\
         a=ice-pwd:0123456789abcdefghijklmn\r\na=mid:1\r\na=setup:active\r\na=rtpmap:96 H264/90000\r\na=recvonly\r\n\
         a=fingerprint:sha-256 AA\r\na=rtcp-mux\r\na=rtcp-mux-only\r\n"
    );
}

#[test]
fn cut_sections_stand_refused_at_their_place() {
    let answer = offer(WITH_DATA).answer(&local("2", 103), 4_000_000).unwrap();
    let sections = sections(&answer);
    assert_eq!(sections.len(), 3);
    assert_eq!(
        sections[1],
        [
            "application 0 UDP/DTLS/SCTP webrtc-datachannel",
            "c=IN IP4 0.0.0.0",
            "a=mid:1",
            "a=ice-ufrag:HoldfAst",
            "a=ice-pwd:0123456789abcdefghijklmn",
            "a=setup:active",
            "a=fingerprint:sha-256 AA"
        ]
    );
    assert!(sections[2].contains(&"a=mid:2"));
    assert!(answer.contains("a=group:BUNDLE 0 2\r\n"), "a refused section leaves the group");

    let data = "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\na=mid:d\nm=text 0 RTP/AVP 98\n";
    let first = AUDIO_VIDEO.replacen("m=audio", &format!("{data}m=audio"), 1);
    let (answer_first, last) = (offer(&first), offer(&format!("{AUDIO_VIDEO}{data}")));
    let answer = answer_first.answer(&local("1", 96), 1).unwrap();
    let kinds = |answer: &str| -> Vec<String> {
        self::sections(answer).iter().map(|section| section[0].split(' ').next().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&answer), ["application", "text", "audio", "video"]);
    let text = &self::sections(&answer)[1];
    assert_eq!((text[0], text.last()), ("text 0 RTP/AVP 98", Some(&"a=inactive")));
    assert_eq!(kinds(&last.answer(&local("1", 96), 1).unwrap()), ["audio", "video", "application", "text"]);
}

#[test]
fn each_section_has_a_connection_line_or_the_session_has() {
    let bare = local("1", 96).replace("c=IN IP4 0.0.0.0\r\n", "");
    let answer = offer(AUDIO_VIDEO).answer(&bare, 1).unwrap();
    assert!(sections(&answer).iter().all(|section| section[1] == "c=IN IP4 0.0.0.0"));
    let session = bare.replace("t=0 0", "c=IN IP4 198.51.100.1\r\nt=0 0");
    assert_eq!(offer(AUDIO_VIDEO).answer(&session, 1).unwrap().matches("c=IN").count(), 1);
}

#[test]
fn candidates_stand_where_the_transport_is() {
    let swapped = AUDIO_VIDEO.replace("BUNDLE 0 1", "BUNDLE 1 0");
    let answer = offer(&swapped).answer(&local("1", 96), 1).unwrap();
    let sections = sections(&answer);
    assert!(!sections[0].iter().any(|line| line.contains("candidate")));
    assert_eq!(sections[1].iter().filter(|line| line.starts_with("a=candidate:")).count(), 1);
}

#[test]
fn an_answer_that_is_none() {
    let offer = offer(AUDIO_VIDEO);
    let good = local("1", 96);
    let fault = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        offer.answer(&good.replace(from, to), 1).unwrap_err()
    };
    assert_eq!(offer.answer("", 1), Err(AnswerFault::Text(TextFault::Empty)));
    assert_eq!(offer.answer(good.split("m=video").next().unwrap(), 1), Err(AnswerFault::Sections));
    assert_eq!(fault("m=video 9", "m=video 0"), AnswerFault::Refused("1".into()));
    assert_eq!(fault("m=video 9", "m=audio 9"), AnswerFault::Refused("1".into()));
    assert_eq!(fault("a=mid:1", "a=mid:2"), AnswerFault::Refused("1".into()));
    assert_eq!(fault("SAVPF 96", "SAVPF 97"), AnswerFault::PayloadType("1".into()));
    assert_eq!(fault("a=recvonly", "a=inactive"), AnswerFault::NotReceiving("0".into()));
    assert_eq!(fault("a=recvonly\r\n", ""), AnswerFault::NotReceiving("0".into()));
    assert_eq!(fault("a=recvonly", "a=recvonly\r\na=sendrecv"), AnswerFault::NotReceiving("0".into()));
    assert_eq!(fault("198.51.100.1", "edge.local"), AnswerFault::NoCandidate);
}

#[test]
fn a_restart_repeats_the_candidate_of_the_answer() {
    let answer = offer(AUDIO_VIDEO).answer(&local("1", 96), 1).unwrap();
    let body = restart_fragment(&answer, "FreshOne", "abcdefghijklmnopqrstuvwx");
    let fragment = Fragment::parse(body.as_bytes()).unwrap();
    assert_eq!(fragment.candidates.len(), 1);
    assert!(answer.contains(&format!("a={}\r\n", fragment.candidates[0])));
    assert!(
        body.starts_with(
            "a=ice-options:trickle\r\na=group:BUNDLE 0 1\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n"
        )
    );
}
