//! What one client, or all of them, may take.

use std::time::Duration;

use holdfast_core::config::Endpoint;
use holdfast_core::input::Note;
use holdfast_io::server::Limits;

use crate::desk::{Desk, MediaSide, OFFER, SAME, fragment, header, limited, patch_request, post_request};

#[test]
fn time_is_limited_for_heads_bodies_and_idleness() {
    let mut desk = Desk::simple();
    let silent = desk.connect();
    let idle = desk.connect();
    desk.send(idle, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
    desk.read(idle);
    let slow_head = desk.connect();
    let slow_body = desk.connect();
    desk.send(slow_head, "GET / HT");
    desk.send(slow_body, &post_request("", OFFER)[..300]);
    for second in 1..10 {
        desk.run(second * 1000);
        desk.send(slow_head, "T");
    }
    assert_eq!(desk.read(slow_head), "");
    desk.run(10_100);
    assert!(desk.read(slow_head).starts_with("HTTP/1.1 408 "));
    assert!(desk.closed.contains(&slow_head));
    assert!(desk.closed.contains(&silent), "who connects has something to say");
    assert_eq!(desk.read(silent), "");
    desk.run(30_100);
    assert!(desk.read(slow_body).starts_with("HTTP/1.1 408 "));
    assert!(!desk.closed.contains(&idle));
    desk.run(75_100);
    assert!(desk.closed.contains(&idle));
    assert_eq!(desk.read(idle), "");
    assert_eq!((desk.server.connection_count(), desk.server.counts().timed_out), (0, 4));
}

#[test]
fn every_setting_of_time_is_used() {
    // One value of its own for each limit shows which one ended what.
    let settings = limited(Limits {
        head_timeout: Duration::from_secs(1),
        body_timeout: Duration::from_secs(2),
        idle_timeout: Duration::from_secs(3),
        ..Limits::default()
    });
    let mut desk = Desk::new(Endpoint::default(), settings);
    let idle = desk.connect();
    desk.send(idle, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
    let head = desk.connect();
    let body = desk.connect();
    desk.send(head, "G");
    desk.send(body, &post_request("", OFFER)[..300]);
    for (at, id, before) in [(1_000, head, 999), (2_000, body, 1_999), (3_000, idle, 2_999)] {
        desk.run(before);
        assert!(!desk.closed.contains(&id));
        desk.run(at);
        assert!(desk.closed.contains(&id));
    }
}

#[test]
fn a_client_that_takes_nothing_is_dropped() {
    let mut desk = Desk::simple();
    desk.writable = false;
    let id = desk.connect();
    desk.send(id, "GET /api/status HTTP/1.1\r\nHost: h\r\n\r\n");
    desk.run(29_000);
    assert!(!desk.closed.contains(&id));
    desk.run(30_100);
    assert!(desk.closed.contains(&id));
}

#[test]
fn requests_on_one_connection_are_answered_in_order() {
    let mut desk = Desk::simple();
    let id = desk.connect();
    desk.send(id, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\nGET /nothing HTTP/1.1\r\nHost: h\r\n\r\nGET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let answers = desk.read(id);
    let codes: Vec<_> = answers.match_indices("HTTP/1.1 ").map(|(at, _)| &answers[at + 9..at + 12]).collect();
    assert_eq!(codes, ["200", "404", "200"]);
    assert!(desk.closed.contains(&id));
}

#[test]
fn connections_are_limited() {
    let mut desk = Desk::new(Endpoint::default(), limited(Limits { connections: 2, ..Limits::default() }));
    desk.connect();
    let second = desk.connect();
    let peer = "127.0.0.1:50001".parse().unwrap();
    assert_eq!(desk.server.accepted(desk.time(), peer), None);
    desk.server.closed(desk.time(), second);
    assert!(desk.server.accepted(desk.time(), peer).is_some());
}

#[test]
fn one_address_cannot_take_every_place() {
    let mut desk = Desk::new(Endpoint::default(), limited(Limits { connections_per_address: 2, ..Limits::default() }));
    let first = desk.connect();
    desk.connect();
    let [same, other] = ["127.0.0.1:50001", "192.0.2.1:50001"].map(|peer| peer.parse().unwrap());
    assert_eq!(desk.server.accepted(desk.time(), same), None);
    assert!(desk.server.accepted(desk.time(), other).is_some());
    desk.send(first, "GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let series = "holdfast_http_connections_turned_away_total{limit=\"connections_per_address\"} 1\n";
    assert!(desk.read(first).contains(series));
    assert!(desk.closed.contains(&first));
    assert!(desk.server.accepted(desk.time(), same).is_some(), "a place that is given back is free");
    let mut desk = Desk::new(Endpoint::default(), limited(Limits { connections_per_address: 0, ..Limits::default() }));
    for _ in 0..1000 {
        desk.connect();
    }
}

#[test]
fn an_address_that_asks_too_much_is_told_to_wait() {
    let mut desk = Desk::new(Endpoint::default(), limited(Limits { whip_rate: 1, ..Limits::default() }));
    let (_, location) = desk.publish();
    let mut told = String::new();
    for _ in 0..10 {
        told = desk.ask(&patch_request(&location, "\"0\"", &fragment(SAME[0], SAME[1])));
    }
    assert!(told.starts_with("HTTP/1.1 429 ") && header(&told, "Retry-After").is_some(), "{told}");
    assert!(desk.ask(&format!("DELETE {location} HTTP/1.1\r\nHost: h\r\n\r\n")).starts_with("HTTP/1.1 429 "));
    assert!(desk.ask(&post_request("", OFFER)).starts_with("HTTP/1.1 429 "));
    assert!(desk.ask("GET /api/status HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 200 "));
    assert_eq!(desk.finished, []);
    let limited = |note: &Note| matches!(note, Note::RateLimited { peer, refused: 1 } if peer == "127.0.0.1");
    assert_eq!(desk.notes.iter().filter(|note| limited(note)).count(), 1, "{:?}", desk.notes);
    assert_eq!(desk.metric("holdfast_whip_rate_limited_total"), Some(3));
    desk.run(2_000);
    assert!(desk.ask(&format!("DELETE {location} HTTP/1.1\r\nHost: h\r\n\r\n")).starts_with("HTTP/1.1 200 "));
}

#[test]
fn an_empty_line_before_the_first_request_is_ignored() {
    let mut desk = Desk::simple();
    let get = "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n";
    assert!(desk.ask(&format!("\r\n{get}")).starts_with("HTTP/1.1 200 "));
    let slow = desk.connect();
    for piece in ["\r", "\n", get] {
        desk.send(slow, piece);
    }
    assert!(desk.read(slow).starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_session_without_descriptors_is_not_begun() {
    let endpoint = Endpoint { slots: 5, ..Endpoint::default() };
    let mut desk = Desk::new(endpoint, limited(Limits { sessions: 2, ..Limits::default() }));
    let (first, location) = desk.publish();
    let (second, _) = desk.publish();
    let told = desk.ask(&post_request("", OFFER));
    assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("no-room"), "{told}");
    assert!(header(&told, "Retry-After").is_some());
    assert!(told.contains("as many sessions") && !told.contains("files"), "{told}");
    let why =
        desk.notes.iter().find_map(|note| if let Note::RequestRefused { why, .. } = note { Some(why) } else { None });
    assert!(why.is_some_and(|why| why.starts_with("2 sessions ")), "{:?}", desk.notes);
    assert_eq!((desk.finished.len(), desk.sessions.len()), (0, 2), "nobody is touched");
    desk.run_alive(&[first, second], 1_000);
    desk.media = MediaSide::Hangs;
    desk.ask(&format!("DELETE {location} HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert!(desk.ask(&post_request("", OFFER)).contains("no-room"), "one that is taken down still has its descriptors");
    desk.run_alive(&[second], 5_000);
    desk.media = MediaSide::Works;
    desk.publish();
}
