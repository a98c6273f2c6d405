//! What operators see and may end.

use holdfast_core::config::{Channel, Config, Endpoint, Media};
use holdfast_io::origin::Origin;
use holdfast_io::ovt;
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
    let mut desk = Desk::simple();
    let answer = desk.ask("GET /publish/%3Cnobody%3E HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert_eq!(header(&answer, "Content-Type").as_deref(), Some("text/html; charset=utf-8"));
    assert!(header(&answer, "Content-Security-Policy").is_some());
    assert!(answer.contains("no endpoint “&lt;nobody&gt;”") && answer.contains("href=\"/publish/live\""), "{answer}");
    assert!(desk.ask("GET /publish/live HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

#[test]
fn pages_learn_what_is_configured_without_a_token_and_nothing_of_what_happens() {
    let settings = Settings { api_tokens: vec!["key".into()], ..Settings::default() };
    let tokens = vec![String::from("secret")];
    let endpoint = Endpoint { name: "stage".into(), slots: 2, media: Media::Video, tokens, ..Endpoint::default() };
    let mut desk = Desk::new(endpoint, settings);
    assert!(desk.ask("GET /api/status HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 401 "));
    let answer = desk.ask("GET /api/endpoints HTTP/1.1\r\nHost: h\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let told: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let expected = serde_json::json!({ "endpoints": [{
        "name": "stage",
        "publish": "/whip/stage",
        "media": "video",
        "open": false,
        "slots": [{ "slot": 1, "feed": "/live/stage.ts" }, { "slot": 2, "feed": "/live/stage/2.ts" }],
    }] });
    assert_eq!(told, expected);
    assert!(desk.ask("POST /api/endpoints HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 405 "));
}

/// A server with one channel of these sources.
fn with_channel(sources: &[&str]) -> Desk {
    let channel = Channel { name: "news".into(), sources: sources.len() as u32, ..Channel::default() };
    let config = Config { endpoints: vec![Endpoint::default()], channels: vec![channel], ..Config::default() };
    let origins = vec![sources.iter().map(|source| Origin::parse(source).unwrap()).collect()];
    Desk::open(config, Settings { origins, ..Settings::default() })
}

/// What the one origin that is connected says.
fn says(desk: &mut Desk, media: &[u8]) {
    let (link, _) = desk.links[0];
    desk.server.link_received(desk.time(), link, media);
    desk.turn();
}

#[test]
fn no_key_of_an_origin_is_shown_logged_or_told() {
    const KEYS: [&str; 5] = ["tom", "geheim", "8f3a90c1d2e4b577", "x1y2z3", "secretapp"];
    let mut desk = with_channel(&[
        "http://origin.example/live/tom/geheim/123.ts",
        "http://tom:geheim@origin.example/8f3a90c1d2e4b577?key=x1y2z3",
        "ovt://origin.example/secretapp/stream",
    ]);
    let viewer = desk.connect();
    desk.send(viewer, "GET /live/news.ts HTTP/1.1\r\nHost: h\r\n\r\n");
    says(&mut desk, b"HTTP/1.1 200 OK\r\nContent-Encoding: geheim\r\n\r\n");
    says(&mut desk, b"HTTP/1.1 200 OK\r\nContent-Encoding: 8f3a90c1d2e4b577\r\n\r\n");
    let (link, _) = desk.links[0];
    desk.link_opens(link);
    let mut origin = ovt::Origin::new(ovt::OriginSettings::default(), ovt::UnixMillis(0));
    origin.receive(&desk.asked[&link]);
    let Some(ovt::OriginEvent::Request(request)) = origin.poll() else { panic!("nothing is asked") };
    origin.refuse(request.id, 404, "no ovt://origin.example/secretapp/stream here");
    says(&mut desk, origin.output());
    let status = desk.ask("GET /api/status HTTP/1.1\r\nHost: h\r\n\r\n");
    let sources = desk.status()["channels"][0]["sources"].clone();
    let labels = ["http://origin.example/…/123.ts", "http://origin.example/…?…", "ovt://origin.example/…/stream"];
    for (source, label) in sources.as_array().unwrap().iter().zip(labels) {
        assert_eq!(source["label"], label);
        assert!(source["last_fault"].as_str().unwrap().contains('…'), "it repeats a key: {source}");
    }
    let metrics = desk.ask("GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
    let refused = desk.ask("GET /live/news.ts HTTP/1.1\r\nHost: h\r\n\r\n");
    let page = desk.ask("GET /api/endpoints HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(refused.contains("application/problem+json"), "{refused}");
    let notes = format!("{:?}", desk.notes);
    for key in KEYS {
        for text in [&status, &metrics, &refused, &page, &notes] {
            assert!(!text.contains(key), "{key}: {text}");
        }
    }
}

#[test]
fn the_status_shows_where_each_channel_stands() {
    let mut desk = with_channel(&["http://user:secret@a.example/x.ts?key=secret", "http://b.example/y.ts"]);
    let channel = desk.status()["channels"][0].clone();
    assert_eq!((&channel["name"], &channel["feed"]), (&"news".into(), &"/live/news.ts".into()));
    assert_eq!((&channel["state"], &channel["opens"]), (&"off".into(), &0.into()));
    assert_eq!(channel["sources"][0]["label"], "http://a.example/x.ts?…");

    let viewer = desk.connect();
    desk.send(viewer, "GET /live/news.ts HTTP/1.1\r\nHost: h\r\n\r\n");
    let channel = desk.status()["channels"][0].clone();
    assert_eq!((&channel["state"], &channel["held"], &channel["viewers"]), (&"opening".into(), &1.into(), &0.into()));
    assert_eq!((&channel["beside"]["index"], &channel["beside"]["state"]), (&0.into(), &"opening".into()));

    says(&mut desk, b"HTTP/1.1 404 Not Found\r\n\r\n");
    let channel = desk.status()["channels"][0].clone();
    assert_eq!(channel["sources"][0]["last_fault"], "the origin answers 404");
    assert!(channel["sources"][1]["last_fault"].is_null());
    assert_eq!(channel["lost"], serde_json::json!({ "not-found": 1 }));
    assert_eq!(channel["last_loss"], serde_json::json!({ "index": 0, "reason": "not-found" }));
    assert_eq!(channel["beside"]["label"], "http://b.example/y.ts");

    says(&mut desk, b"HTTP/1.1 200 OK\r\n\r\n");
    says(&mut desk, &crate::channels::media(10));
    desk.run(500);
    let channel = desk.status()["channels"][0].clone();
    assert_eq!((&channel["state"], &channel["held"], &channel["viewers"]), (&"live".into(), &0.into(), &1.into()));
    assert_eq!((&channel["kept"]["index"], &channel["kept"]["state"]), (&1.into(), &"live".into()));
    assert_eq!((&channel["last_media_ms"], &channel["opens"]), (&500.into(), &2.into()));
    assert!(channel["beside"].is_null() && channel["next_attempt_ms"].is_null());
    assert!(channel["bytes_in"].as_u64() > Some(0) && channel["bytes_in"] == channel["bytes_out"], "{channel}");

    desk.run(3_100);
    let channel = desk.status()["channels"][0].clone();
    assert_eq!((&channel["state"], &channel["silences"]), (&"silent".into(), &1.into()));
    assert_eq!((&channel["kept"]["state"], &channel["last_media_ms"]), (&"silent".into(), &3_100.into()));
    assert!(!desk.ask("GET /api/status HTTP/1.1\r\nHost: h\r\n\r\n").contains("secret"));
}

#[test]
fn a_channel_that_waits_says_until_when() {
    let mut desk = with_channel(&["http://a.example/x.ts"]);
    let viewer = desk.connect();
    desk.send(viewer, "GET /live/news.ts HTTP/1.1\r\nHost: h\r\n\r\n");
    says(&mut desk, b"HTTP/1.1 404 Not Found\r\n\r\n");
    assert!(desk.read(viewer).starts_with("HTTP/1.1 502 "));
    let channel = desk.status()["channels"][0].clone();
    assert_eq!(channel["state"], "waiting");
    // The first pause is `no_input_timeout`, ± 20 %.
    assert!((2_400..=3_600).contains(&channel["next_attempt_ms"].as_u64().unwrap()), "{channel}");
    desk.now = 4_000;
    assert!(desk.status()["channels"][0]["next_attempt_ms"].is_null(), "nobody wants it any more");
}

#[test]
fn the_metrics_count_what_channels_do() {
    let mut desk = with_channel(&["http://a.example/x.ts"]);
    assert_eq!(desk.metric("holdfast_channel_state{channel=\"news\",state=\"off\"}"), Some(1));
    let viewer = desk.connect();
    desk.send(viewer, "GET /live/news.ts HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(desk.metric("holdfast_channel_held{channel=\"news\"}"), Some(1));
    says(&mut desk, b"HTTP/1.1 200 OK\r\n\r\n");
    says(&mut desk, &crate::channels::media(10));
    desk.run(3_100);
    for (series, value) in [
        ("opens_total{channel=\"news\"}", 1),
        ("silences_total{channel=\"news\"}", 1),
        ("switches_total{channel=\"news\"}", 0),
        ("viewers{channel=\"news\"}", 1),
        ("lost_total{channel=\"news\",reason=\"silent\"}", 0),
        ("state{channel=\"news\",state=\"silent\"}", 1),
        ("state{channel=\"news\",state=\"live\"}", 0),
        ("viewers_ended_total{channel=\"news\",reason=\"left\"}", 0),
    ] {
        assert_eq!(desk.metric(&format!("holdfast_channel_{series}")), Some(value), "{series}");
    }
    assert!(desk.metric("holdfast_channel_received_bytes_total{channel=\"news\"}") > Some(0));
    desk.server.closed(desk.time(), viewer);
    assert_eq!(desk.metric("holdfast_channel_viewers_ended_total{channel=\"news\",reason=\"left\"}"), Some(1));
}
