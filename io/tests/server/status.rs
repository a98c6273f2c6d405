//! What operators see and may end.

use holdfast_core::config::Endpoint;
use holdfast_io::server::Settings;

use crate::desk::{Desk, header};

#[test]
fn the_status_shows_every_session_and_a_session_can_be_kicked() {
    let mut desk = Desk::simple();
    let (a, _) = desk.publish();
    desk.run_alive(&[a], 500);
    let status = desk.status();
    let slot = &status["endpoints"][0]["slots"][0];
    assert_eq!((&slot["state"], &slot["session"]["state"]), (&"held".into(), &"live".into()));
    assert_eq!(slot["feed"], "/live/live.ts");
    assert_eq!(slot["session"]["audio"]["packets"], 25);
    let id = slot["session"]["id"].as_str().unwrap().to_owned();
    assert!(desk.ask(&format!("DELETE /api/sessions/{id} HTTP/1.1\r\nHost: h\r\n\r\n")).starts_with("HTTP/1.1 204 "));
    assert_eq!(desk.finished, [a]);
    assert!(desk.ask(&format!("DELETE /api/sessions/{id} HTTP/1.1\r\nHost: h\r\n\r\n")).starts_with("HTTP/1.1 404 "));
    assert_eq!(desk.status()["endpoints"][0]["ended"]["kicked"], 1);
}

#[test]
fn only_this_machine_or_a_token_may_kick() {
    let tokens = Settings { api_tokens: vec!["key".into()], ..Settings::default() };
    for (settings, peer, field, status) in [
        (Settings::default(), "192.0.2.1:5", "", "403"),
        (tokens.clone(), "127.0.0.1:5", "", "401"),
        (tokens.clone(), "192.0.2.1:5", "Authorization: Bearer key\r\n", "204"),
    ] {
        let mut desk = Desk::new(Endpoint::default(), settings);
        let (session, _) = desk.publish();
        let id = desk.server.accepted(desk.time(), peer.parse().unwrap()).unwrap();
        desk.send(id, format!("DELETE /api/sessions/{session} HTTP/1.1\r\nHost: h\r\n{field}\r\n"));
        let answer = desk.read(id);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    let mut desk = Desk::new(Endpoint::default(), tokens);
    assert!(desk.ask("GET /api/status HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 401 "));
    assert!(desk.ask("GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 401 "));
    assert!(desk.ask("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

#[test]
fn the_ingest_page_of_an_unknown_endpoint_says_so_and_names_those_there_are() {
    let tokens = Settings { api_tokens: vec!["key".into()], ..Settings::default() };
    for (settings, listed) in [(Settings::default(), true), (tokens, false)] {
        let mut desk = Desk::new(Endpoint::default(), settings);
        let answer = desk.ask("GET /publish/%3Cnobody%3E HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        assert_eq!(header(&answer, "Content-Type").as_deref(), Some("text/html; charset=utf-8"));
        assert!(header(&answer, "Content-Security-Policy").is_some());
        assert!(answer.contains("no endpoint “&lt;nobody&gt;”"), "{answer}");
        assert_eq!(answer.contains("href=\"/publish/live\""), listed, "their names are as secret as the status");
        assert!(desk.ask("GET /publish/live HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 200 "));
    }
}
