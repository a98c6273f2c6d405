//! PATCH: trickle and ICE restart.

use holdfast_io::media::{MediaCommand, MediaEvent};

use crate::desk::{Desk, NEW, SAME, fragment, header, patch_request};

#[test]
fn a_patch_is_judged_by_its_if_match_and_its_credentials() {
    let mut desk = Desk::simple();
    let (_, location) = desk.publish();
    let same = fragment(SAME[0], SAME[1]);
    for (if_match, body, status) in [
        ("", same.as_str(), "428"),
        ("\"1\"", same.as_str(), "204"),
        ("\"0\"", same.as_str(), "412"),
        ("W/\"1\"", same.as_str(), "412"),
        ("\"0\", \"1\"", same.as_str(), "204"),
        ("*", same.as_str(), "204"),
        ("\"*\"", same.as_str(), "204"),
        ("\"1\"", "a=ice-ufrag:abcd\r\nm=audio 9 RTP/AVP 0\r\na=mid:0\r\n", "400"),
        ("\"1\"", "nonsense", "400"),
    ] {
        let answer = desk.ask(&patch_request(&location, if_match, body));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{if_match} {body}\n{answer}");
        assert_eq!(header(&answer, "ETag"), None);
    }
    let candidates = desk.commands.iter().filter(|command| matches!(command, MediaCommand::Candidates { .. })).count();
    assert_eq!(candidates, 4);
    let wrong_type = patch_request(&location, "\"1\"", &same).replace("trickle-ice-sdpfrag", "sdp");
    assert!(desk.ask(&wrong_type).starts_with("HTTP/1.1 415 "));
    assert!(desk.ask(&patch_request("/whip/live/0000", "\"1\"", &same)).starts_with("HTTP/1.1 404 "));
    assert!(desk.ask(&patch_request(&location, "*", &"a".repeat(300_000))).starts_with("HTTP/1.1 413 "));
}

#[test]
fn an_ice_restart_brings_a_new_entity_tag() {
    for if_match in ["*", "\"*\"", "\"1\""] {
        let mut desk = Desk::simple();
        let (a, location) = desk.publish();
        let id = desk.connect();
        desk.send(id, patch_request(&location, if_match, &fragment(NEW[0], NEW[1])));
        assert_eq!(desk.read(id), "", "the media side has the word");
        assert!(
            matches!(&desk.commands[..], [MediaCommand::Restart { ufrag, candidates, .. }] if ufrag == NEW[0] && candidates.len() == 1)
        );
        let (ufrag, pwd) = ("new1".to_owned(), "n".repeat(22));
        desk.server.media(desk.time(), MediaEvent::Restarted { session: a, ufrag, pwd });
        desk.turn();
        let answer = desk.read(id);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert_eq!(header(&answer, "ETag").as_deref(), Some("\"2\""));
        assert_eq!(header(&answer, "Content-Type").as_deref(), Some("application/trickle-ice-sdpfrag"));
        assert!(answer.contains("a=ice-ufrag:new1\r\n") && answer.contains("a=candidate:1 1 UDP 2015363327 127.0.0.1"));
        // A trickle of the ICE session that was replaced comes too late.
        assert!(desk.ask(&patch_request(&location, "\"1\"", &fragment(SAME[0], SAME[1]))).starts_with("HTTP/1.1 412 "));
        assert!(desk.ask(&patch_request(&location, "\"2\"", &fragment(NEW[0], NEW[1]))).starts_with("HTTP/1.1 204 "));
    }
}

#[test]
fn a_restart_that_fails_or_whose_session_ends_is_answered() {
    let mut desk = Desk::simple();
    let (a, location) = desk.publish();
    let restart = patch_request(&location, "*", &fragment(NEW[0], NEW[1]));
    let id = desk.connect();
    desk.send(id, &restart);
    assert!(desk.ask(&restart).starts_with("HTTP/1.1 409 "), "one at a time");
    desk.server.media(desk.time(), MediaEvent::RestartFailed { session: a, why: "no agent".into() });
    desk.turn();
    assert!(desk.read(id).starts_with("HTTP/1.1 409 "));
    let id = desk.connect();
    desk.send(id, &restart);
    desk.ask(&format!("DELETE {location} HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert!(desk.read(id).starts_with("HTTP/1.1 404 "));
    // Nobody answers: the client is told in time, and may try again.
    let (b, location) = desk.publish();
    let restart = patch_request(&location, "*", &fragment(NEW[0], NEW[1]));
    let id = desk.connect();
    desk.send(id, &restart);
    desk.run_alive(&[b], 30_100);
    assert!(desk.read(id).starts_with("HTTP/1.1 504 "));
}
