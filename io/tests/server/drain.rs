//! How everybody ends when the program does.

use holdfast_core::input::Note;

use crate::desk::{Desk, MediaSide, OFFER, post_request};

#[test]
fn drain_ends_everybody_and_waits_for_no_rest_of_a_request() {
    let mut desk = Desk::simple();
    let (a, _) = desk.publish();
    desk.run_alive(&[a], 1_000);
    let viewer = desk.connect();
    desk.send(viewer, "GET /live/live.ts HTTP/1.1\r\nHost: h\r\n\r\n");
    let held = desk.post();
    let reading = desk.connect();
    desk.send(reading, &post_request("", OFFER)[..300]);
    let idle = desk.connect();
    let half = desk.connect();
    desk.send(half, "GET /healthz HT");
    desk.server.drain(desk.time());
    desk.turn();
    let refused = desk.read(held);
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("draining"), "{refused}");
    assert_eq!(desk.finished, [a]);
    assert!([viewer, held, idle].iter().all(|id| desk.closed.contains(id)));
    for id in [reading, half] {
        let refused = desk.read(id);
        assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("draining"), "{refused}");
        assert!(desk.closed.contains(&id), "who has not sent all of a request may never do it");
    }
    assert!(desk.server.is_drained());
    assert_eq!(desk.server.accepted(desk.time(), "127.0.0.1:1".parse().unwrap()), None);
    assert!(desk.notes.iter().any(|note| matches!(note, Note::Draining { sessions: 1, viewers: 1 })));
}

#[test]
fn a_session_that_is_never_taken_down_is_given_up_after_three_seconds() {
    let mut desk = Desk::simple();
    let (a, _) = desk.publish();
    desk.run_alive(&[a], 1_000);
    desk.media = MediaSide::Hangs;
    desk.server.drain(desk.time());
    desk.turn();
    assert_eq!(desk.finished, [a]);
    desk.run(3_999);
    assert!(!desk.server.is_drained(), "it may still be told goodbye");
    desk.run(4_000);
    assert!(desk.server.is_drained());
    assert_eq!(desk.server.counts().stuck, 1);
}

#[test]
fn refusals_that_were_not_told_yet_are_told_at_the_end() {
    let mut desk = Desk::simple();
    for _ in 0..3 {
        desk.ask(&post_request("", ""));
    }
    desk.server.drain(desk.time());
    desk.turn();
    let last =
        |note: &Note| matches!(note, Note::RequestRefused { why, .. } if why.ends_with("(the last of 2 refusals)"));
    assert!(desk.notes.iter().any(last), "{:?}", desk.notes);
}

#[test]
fn half_a_request_behind_an_answer_holds_nobody_up() {
    let get = "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n";
    for half in ["GET /healthz HT", &post_request("", OFFER)[..300]] {
        let mut desk = Desk::simple();
        desk.writable = false;
        let id = desk.connect();
        desk.send(id, format!("{get}{half}"));
        desk.server.drain(desk.time());
        desk.turn();
        assert!(!desk.closed.contains(&id), "its answer is still to be written");
        desk.writable = true;
        desk.server.tick(desk.time());
        desk.flush(id);
        let answers = desk.read(id);
        assert!(answers.starts_with("HTTP/1.1 200 ") && answers.contains("HTTP/1.1 503 "), "{answers}");
        assert!(desk.closed.contains(&id) && desk.server.is_drained());
    }
}
