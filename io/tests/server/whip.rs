//! How publishers are let in, kept, displaced and refused.

use holdfast_core::config::Endpoint;
use holdfast_core::id::Id;
use holdfast_core::input::{EndpointId, Note};
use holdfast_io::media::{MediaCommand, MediaEvent};
use holdfast_io::server::{Action, ConnId, IceServer, Settings};

use crate::desk::{ANSWER, Desk, MediaSide, OFFER, header, post_request};

#[test]
fn a_post_is_answered_with_a_session() {
    let settings = Settings {
        ice_servers: vec![IceServer {
            url: "turn:turn.example:3478?transport=udp".into(),
            username: Some("u\"ser".into()),
            credential: Some("pass".into()),
        }],
        ..Settings::default()
    };
    let mut desk = Desk::new(Endpoint::default(), settings);
    let id = desk.post();
    let answer = desk.read(id);
    assert!(answer.starts_with("HTTP/1.1 201 Created\r\n"), "{answer}");
    assert_eq!(header(&answer, "Content-Type").as_deref(), Some("application/sdp"));
    assert_eq!(header(&answer, "ETag").as_deref(), Some("\"1\""));
    let location = header(&answer, "Location").unwrap();
    assert_eq!(location.len(), "/whip/live/".len() + 32);
    assert_eq!(
        header(&answer, "Link").as_deref(),
        Some(
            "<turn:turn.example:3478?transport=udp>; rel=\"ice-server\"; username=\"u\\\"ser\"; credential=\"pass\"; \
             credential-type=\"password\""
        )
    );
    assert_eq!(
        header(&answer, "Access-Control-Expose-Headers").as_deref(),
        Some("Location, Link, ETag, Retry-After, Content-Length, Content-Range")
    );
    assert!(answer.ends_with(ANSWER));
}

#[test]
fn what_the_core_draws_for_a_session_is_not_its_address() {
    let mut desk = Desk::simple();
    let (_, location) = desk.publish();
    let whip = |method: &str, path: &str| format!("{method} {path} HTTP/1.1\r\nHost: h\r\n\r\n");
    // What may have been drawn, as addresses have it.
    for drawn in 0..=32_u8 {
        let path = format!("/whip/live/{}", format!("{drawn:02x}").repeat(16));
        assert!(desk.ask(&whip("DELETE", &path)).starts_with("HTTP/1.1 404 "), "{path}");
        desk.now += 200;
    }
    assert!(desk.ask(&whip("GET", &location)).starts_with("HTTP/1.1 204 "));
}

#[test]
fn w3_a_live_publisher_is_kept_and_the_other_told_why() {
    let mut desk = Desk::simple();
    let (a, location) = desk.publish();
    desk.run_alive(&[a], 1_000);
    let b = desk.post();
    assert_eq!(desk.read(b), "");
    desk.run_alive(&[a], 1_120);
    let answer = desk.read(b);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\"reason\":\"holder-live\""), "{answer}");
    assert!(header(&answer, "Retry-After").is_some());
    assert!(desk.ask(&format!("GET {location} HTTP/1.1\r\nHost: h\r\n\r\n")).starts_with("HTTP/1.1 204 "));
}

#[test]
fn w1_w7_a_dead_publisher_is_displaced_and_its_url_is_gone() {
    let mut desk = Desk::simple();
    let (a, location) = desk.publish();
    desk.run_alive(&[a], 1_000);
    let b = desk.post();
    desk.run(2_979);
    assert_eq!(desk.read(b), "");
    desk.run(3_000);
    let answer = desk.read(b);
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert_eq!(desk.finished, [a]);
    let delete = |location: &str| format!("DELETE {location} HTTP/1.1\r\nHost: h\r\nIf-Match: \"9\"\r\n\r\n");
    let gone = desk.ask(&delete(&location));
    assert!(gone.starts_with("HTTP/1.1 404 ") && gone.contains("\"reason\":\"displaced\""), "{gone}");
    assert_eq!(desk.finished, [a], "the new one lives on");
    assert!(desk.ask(&delete(&header(&answer, "Location").unwrap())).starts_with("HTTP/1.1 200 "));
    assert_eq!(desk.finished.len(), 2);
    desk.publish();
}

#[test]
fn w9_w10_what_fails_its_checks_touches_nobody() {
    let endpoint = Endpoint { tokens: vec!["secret".into()], ..Endpoint::default() };
    let mut desk = Desk::new(endpoint, Settings::default());
    let first = desk.connect();
    desk.send(first, post_request("Authorization: Bearer secret\r\n", OFFER));
    let a = *desk.sessions.first_key_value().unwrap().0;
    desk.run_alive(&[a], 1_000);
    desk.run(9_000);
    let good = "Authorization: Bearer secret\r\n";
    let no_media = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n";
    let of_type = |content_type: &str| {
        post_request(good, OFFER).replace("Content-Type: application/sdp", &format!("Content-Type: {content_type}"))
    };
    for (request, status) in [
        (post_request("", OFFER), "401"),
        (post_request("Authorization: Bearer wrong\r\n", OFFER), "401"),
        (post_request("Authorization: Basic c2VjcmV0\r\n", OFFER), "401"),
        (post_request(good, OFFER).replace("/whip/live", "/whip/other"), "404"),
        (of_type("text/plain"), "415"),
        (of_type(""), "415"),
        (post_request(good, ""), "400"),
        (post_request(good, "\r\n\r\n\r\n"), "400"),
        (post_request(good, "hello"), "400"),
        (post_request(good, &"a".repeat(2 << 20)), "413"),
        (post_request(good, &OFFER.replace("a=fingerprint", "a=nofingerprint")), "4"),
        (post_request(good, &OFFER.replace("H264", "VP8")), "422"),
        (post_request(good, no_media), "4"),
        (post_request(good, &OFFER.replace("m=audio 9", "m=audio 0").replace("m=video 9", "m=video 0")), "422"),
        (
            post_request(good, &OFFER.replace(" 9 UDP", " 0 UDP").replace("a=rtcp-mux", "a=rtcp-mux\r\na=bundle-only")),
            "422",
        ),
        (post_request(good, &OFFER.replace("sendonly", "recvonly")), "422"),
        ("PUT /whip/live HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n".into(), "405"),
    ] {
        let answer = desk.ask(&request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{}\n{answer}", &request[..request.len().min(400)]);
        assert!(answer.contains("application/problem+json"), "{answer}");
    }
    assert_eq!(desk.finished, []);
    assert_eq!(desk.sessions.len(), 1);
    // The dead one is displaced by the first request that is right.
    let b = desk.connect();
    desk.send(b, post_request(good, OFFER));
    assert!(desk.read(b).starts_with("HTTP/1.1 201 "));
}

#[test]
fn w12_a_client_that_hangs_up_while_it_waits_leaves_nothing() {
    for half_close in [false, true] {
        let mut desk = Desk::simple();
        let (a, _) = desk.publish();
        desk.run_alive(&[a], 1_000);
        let b = desk.post();
        desk.run(1_500);
        if half_close {
            // Its kernel answers what is written to it with a reset.
            desk.server.eof(desk.time(), b);
            desk.turn();
            assert_eq!(desk.read(b), "HTTP/1.1 100 Continue\r\n\r\n");
        }
        desk.server.closed(desk.time(), b);
        desk.turn();
        desk.run(5_000);
        assert_eq!(desk.finished, [], "nobody waits, so nobody is displaced");
        assert_eq!(desk.server.edge().publish().unanswered(), 0);
        desk.run(30_000);
        assert_eq!(desk.finished, [a]);
    }
}

#[test]
fn other_methods_of_whip() {
    let mut desk = Desk::simple();
    assert!(desk.ask("GET /whip/live HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 204 "));
    assert!(desk.ask("GET /whip/nobody HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 404 "));
    let preflight =
        "OPTIONS /whip/live HTTP/1.1\r\nHost: h\r\nOrigin: https://x\r\nAccess-Control-Request-Method: POST\r\n\r\n";
    let answer = desk.ask(preflight);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(header(&answer, "Accept-Post").as_deref(), Some("application/sdp"));
    assert_eq!(
        header(&answer, "Access-Control-Allow-Headers").as_deref(),
        Some("Authorization, Content-Type, If-Match")
    );
    let (_, location) = desk.publish();
    assert!(desk.ask(&format!("OPTIONS {location} HTTP/1.1\r\nHost: h\r\n\r\n")).starts_with("HTTP/1.1 200 "));
    assert!(
        desk.ask(&format!("POST {location} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"))
            .starts_with("HTTP/1.1 405 ")
    );
    // A session is found under its own endpoint only.
    let elsewhere = location.replace("/live/", "/nobody/");
    assert!(desk.ask(&format!("DELETE {elsewhere} HTTP/1.1\r\nHost: h\r\n\r\n")).starts_with("HTTP/1.1 404 "));
}

#[test]
fn an_offer_that_the_media_side_cannot_take_is_answered_with_its_words() {
    let mut desk = Desk::simple();
    let id = desk.connect();
    desk.server.received(desk.time(), id, post_request("", OFFER).as_bytes());
    let session = loop {
        match desk.server.poll().expect("a start") {
            Action::Media(MediaCommand::Start { session, .. }) => break session,
            _ => continue,
        }
    };
    desk.server.media(desk.time(), MediaEvent::Failed { session, why: "no decoder for it".into() });
    desk.turn();
    let answer = desk.read(id);
    assert!(answer.starts_with("HTTP/1.1 422 ") && answer.contains("no decoder for it"), "{answer}");
    let (endpoint, from) = (EndpointId(0), Some(String::from("127.0.0.1")));
    let told = Note::RequestRefused { endpoint, status: 422, from, why: "no decoder for it".into() };
    assert!(desk.notes.contains(&told), "{:?}", desk.notes);
    desk.publish();
}

#[test]
fn media_of_what_never_was_changes_nothing() {
    let mut desk = Desk::simple();
    let session = Id::from_parts(42, 7);
    for event in [
        MediaEvent::Gone { session },
        MediaEvent::Answered { session, answer: String::new() },
        MediaEvent::Failed { session, why: String::new() },
        MediaEvent::Restarted { session, ufrag: String::new(), pwd: String::new() },
        MediaEvent::RestartFailed { session, why: String::new() },
    ] {
        desk.server.media(desk.time(), event);
        desk.turn();
    }
    desk.video(session, 5);
    let nobody: ConnId = Id::from_parts(9, 9);
    desk.server.received(desk.time(), nobody, b"GET");
    desk.server.eof(desk.time(), nobody);
    desk.server.closed(desk.time(), nobody);
    desk.turn();
    desk.publish();
}

#[test]
fn an_offer_that_the_media_side_never_answers_leaves_nothing() {
    let mut desk = Desk::simple();
    desk.media = MediaSide::Hangs;
    let id = desk.post();
    let session = *desk.sessions.last_key_value().unwrap().0;
    desk.run(15_000);
    let answer = desk.read(id);
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("\"reason\":\"ended\""), "{answer}");
    assert_eq!(desk.finished, [session]);
    assert!(!desk.server.publishers().is_empty());
    desk.run(18_000);
    assert!(desk.server.publishers().is_empty());
    assert_eq!(desk.metric("holdfast_publish_stuck_total"), Some(1));
    // What comes late is of nobody.
    desk.server.media(desk.time(), MediaEvent::Gone { session });
    desk.media = MediaSide::Works;
    let (_, location) = desk.publish();
    desk.ask(&format!("DELETE {location} HTTP/1.1\r\nHost: h\r\n\r\n"));
    desk.run(30_000);
    assert_eq!(desk.metric("holdfast_publish_stuck_total"), Some(1), "one that went away in time is not stuck");
}

#[test]
fn a_flood_of_refusals_is_told_once_a_second() {
    let endpoint = Endpoint { tokens: vec!["secret".into()], ..Endpoint::default() };
    let mut desk = Desk::new(endpoint, Settings::default());
    for _ in 0..10 {
        assert!(desk.ask(&post_request("", OFFER)).starts_with("HTTP/1.1 401 "));
    }
    desk.run(5_000);
    let told: Vec<&str> = desk
        .notes
        .iter()
        .filter_map(|note| if let Note::RequestRefused { why, .. } = note { Some(why.as_str()) } else { None })
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[1], format!("{} (the last of 9 refusals)", told[0]));
    let denied = "holdfast_publish_denied_total{endpoint=\"live\",status=\"401\"}";
    assert_eq!(desk.metric(denied), Some(10), "all are counted");
}

#[test]
fn a_client_that_waits_to_be_told_to_send_its_body_is_told() {
    let mut desk = Desk::simple();
    let request = post_request("Expect: 100-continue\r\n", OFFER);
    let (head, body) = request.split_at(request.find("\r\n\r\n").unwrap() + 4);
    let id = desk.connect();
    desk.send(id, head);
    assert_eq!(desk.read(id), "HTTP/1.1 100 Continue\r\n\r\n");
    desk.send(id, body);
    assert!(desk.read(id).starts_with("HTTP/1.1 201 "));
}

#[test]
fn a_client_that_sends_no_more_but_reads_is_answered() {
    let mut desk = Desk::simple();
    let (a, _) = desk.publish();
    desk.run_alive(&[a], 1_000);
    let (whole, half) = (desk.post(), desk.connect());
    desk.send(half, &post_request("", OFFER)[..300]);
    let viewer = desk.connect();
    desk.send(viewer, "GET /live/live.ts HTTP/1.1\r\nHost: h\r\n\r\n");
    for id in [whole, half, viewer] {
        desk.server.eof(desk.time(), id);
        desk.turn();
    }
    assert!(desk.read(half).starts_with("HTTP/1.1 400 ") && desk.closed.contains(&viewer));
    desk.run(5_000);
    let answer = desk.read(whole);
    assert!(answer.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 "), "{answer}");
    assert_eq!(desk.finished, [a], "the dead one is displaced");
    assert!(desk.closed.contains(&whole), "after its answer nothing can follow");
}

#[test]
fn an_old_client_that_sends_no_more_gets_no_interim_answer() {
    let mut desk = Desk::simple();
    let (a, _) = desk.publish();
    desk.run_alive(&[a], 1_000);
    let id = desk.connect();
    desk.send(id, post_request("", OFFER).replace("HTTP/1.1", "HTTP/1.0"));
    desk.server.eof(desk.time(), id);
    desk.run(5_000);
    let answer = desk.read(id);
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
}

#[test]
fn a_client_may_take_its_time_to_read_that_it_is_to_go_on() {
    let mut desk = Desk::simple();
    desk.run(60_000);
    desk.writable = false;
    let id = desk.connect();
    let request = post_request("Expect: 100-continue\r\n", OFFER);
    let (head, body) = request.split_at(request.find("\r\n\r\n").unwrap() + 4);
    desk.send(id, head);
    desk.run(89_000);
    assert!(!desk.closed.contains(&id));
    desk.writable = true;
    desk.send(id, body);
    assert!(desk.read(id).contains("HTTP/1.1 201 "), "what waits to be written is written with the answer");
}
