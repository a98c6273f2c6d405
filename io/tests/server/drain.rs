//! How everybody ends when the program does.

use holdfast_core::input::Note;

use crate::desk::{Desk, OFFER, post_request};

#[test]
fn drain_ends_everybody_and_finishes_what_was_begun() {
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
    assert!(!desk.server.is_drained(), "a body and a head are still on their way");
    desk.send(half, "TP/1.1\r\nHost: h\r\n\r\n");
    assert!(desk.read(half).contains("Connection: close"));
    desk.send(reading, &post_request("", OFFER)[300..]);
    assert!(desk.read(reading).contains("draining"));
    assert!(desk.server.is_drained());
    assert_eq!(desk.server.accepted(desk.time(), "127.0.0.1:1".parse().unwrap()), None);
    assert!(desk.notes.iter().any(|note| matches!(note, Note::Draining { sessions: 1, viewers: 1 })));
}
