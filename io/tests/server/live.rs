//! What viewers get while publishers come and go.

use std::collections::BTreeMap;

use crate::desk::{Desk, header};

#[test]
fn a_viewer_stays_while_publishers_come_and_go() {
    let mut desk = Desk::simple();
    let viewer = desk.connect();
    desk.send(viewer, "GET /live/live.ts HTTP/1.1\r\nHost: h\r\nRange: bytes=0-\r\n\r\n");
    let head = desk.read(viewer);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert_eq!(header(&head, "Content-Type").as_deref(), Some("video/mp2t"));
    assert_eq!((header(&head, "Content-Length"), header(&head, "Content-Range")), (None, None));
    let (a, location) = desk.publish();
    desk.run(1_000);
    desk.video(a, 1_000_000);
    desk.run(1_100);
    let first = desk.written.remove(&viewer).unwrap();
    assert_eq!((first.len() % 188, first[0]), (0, 0x47));
    desk.ask(&format!("DELETE {location} HTTP/1.1\r\nHost: h\r\n\r\n"));
    desk.video(a, 1_100_000);
    desk.run(40_000);
    assert_eq!(desk.written.remove(&viewer), None, "W8: nothing of one that is over");
    let (b, _) = desk.publish();
    desk.video(b, 40_000_000);
    desk.run(40_100);
    let second = desk.written.remove(&viewer).unwrap();
    assert_eq!((second.len() % 188, second[0]), (0, 0x47));
    assert!(!desk.closed.contains(&viewer));
    desk.run(101_000);
    assert!(desk.closed.contains(&viewer), "nothing came in for `idle`");
    assert_eq!(desk.server.edge().feeds().viewer_count(), 0);
}

#[test]
fn media_at_the_very_end_of_a_session_leaves_no_gap_in_the_stream() {
    let mut desk = Desk::simple();
    let viewer = desk.connect();
    desk.send(viewer, "GET /live/live.ts HTTP/1.1\r\nHost: h\r\n\r\n");
    desk.read(viewer);
    let (a, _) = desk.publish();
    desk.video(a, 0);
    // The loop comes late: media lies in its queue at the moment at which the session's set-up time is over.
    desk.now = 15_000;
    desk.video(a, 15_000_000);
    let (b, _) = desk.publish();
    desk.video(b, 15_100_000);
    desk.run(15_200);
    let stream = desk.written.remove(&viewer).unwrap();
    let mut counters = BTreeMap::new();
    for packet in stream.chunks(188) {
        let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
        let (has_payload, counter) = (packet[3] & 0x10 != 0, packet[3] & 0x0f);
        let before = counters.insert(pid, counter);
        assert!(!has_payload || before.is_none_or(|before| (before + 1) & 0x0f == counter), "a gap on PID {pid}");
    }
    assert_eq!(desk.finished, [a]);
}

#[test]
fn a_viewer_that_leaves_is_forgotten() {
    let mut desk = Desk::simple();
    let viewer = desk.connect();
    desk.send(viewer, "GET /live/live.ts HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(desk.server.edge().feeds().viewer_count(), 1);
    desk.server.closed(desk.time(), viewer);
    assert_eq!(desk.server.edge().feeds().viewer_count(), 0);
    assert!(desk.ask("GET /live/live/2.ts HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(desk.ask("GET /live/live/0.ts HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 404 "));
    let head = desk.ask("HEAD /live/live/1.ts HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(desk.server.edge().feeds().viewer_count(), 0);
}
