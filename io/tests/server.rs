//! The server without sockets: bytes in, bytes out, simulated time, a media side that is played by the test.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::config::{Config, Endpoint};
use holdfast_core::id::Id;
use holdfast_core::input::{Note, SessionId};
use holdfast_core::time::Time;
use holdfast_io::media::{Activity, Codec, MediaCommand, MediaEvent, Packet, Unit};
use holdfast_io::server::{Action, ConnId, IceServer, Limits, Server, Settings, Transmit};

/// An offer as browsers send it, cut down to what matters here.
const OFFER: &str = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\na=msid-semantic: WMS *\r\n\
m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=sendonly\r\na=rtcp-mux\r\na=ice-ufrag:abcd\r\n\
a=ice-pwd:0123456789abcdef012345\r\na=fingerprint:sha-256 \
00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F\r\n\
a=setup:actpass\r\na=rtpmap:111 opus/48000/2\r\n\
m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\na=sendonly\r\na=rtcp-mux\r\na=ice-ufrag:abcd\r\n\
a=ice-pwd:0123456789abcdef012345\r\na=fingerprint:sha-256 \
00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F\r\n\
a=setup:actpass\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1;profile-level-id=42e01f\r\n";

const ANSWER: &str = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n\
m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=ice-ufrag:wxyz\r\na=ice-pwd:9876543210abcdef012345\r\n\
a=candidate:1 1 UDP 2015363327 127.0.0.1 40000 typ host\r\n";

/// A server, its clients' sockets, and the media side.
struct Desk {
    server: Server,
    now: u64,
    /// What the server wrote to each connection that is not yet read.
    written: BTreeMap<ConnId, Vec<u8>>,
    closed: Vec<ConnId>,
    sessions: BTreeMap<SessionId, Arc<Activity>>,
    finished: Vec<SessionId>,
    commands: Vec<MediaCommand>,
    notes: Vec<Note>,
    /// Whether sockets take anything.
    writable: bool,
}

impl Desk {
    fn new(endpoint: Endpoint, settings: Settings) -> Self {
        let mut entropy = 0u8;
        let next = move || {
            entropy += 1;
            [entropy; 16]
        };
        Desk {
            server: Server::new(Config { endpoints: vec![endpoint], ..Config::default() }, settings, Box::new(next)),
            now: 0,
            written: BTreeMap::new(),
            closed: Vec::new(),
            sessions: BTreeMap::new(),
            finished: Vec::new(),
            commands: Vec::new(),
            notes: Vec::new(),
            writable: true,
        }
    }

    fn simple() -> Self {
        Desk::new(Endpoint::default(), Settings::default())
    }

    fn time(&self) -> Time {
        Time::from_micros(self.now * 1000)
    }

    fn connect(&mut self) -> ConnId {
        let id = self.server.accepted(self.time(), "127.0.0.1:50000".parse().unwrap()).expect("room");
        self.turn();
        id
    }

    fn send(&mut self, id: ConnId, data: impl AsRef<[u8]>) {
        self.server.received(self.time(), id, data.as_ref());
        self.turn();
    }

    fn turn(&mut self) {
        while let Some(action) = self.server.poll() {
            match action {
                Action::Write(id) if self.writable => {
                    let (now, written) = (self.time(), self.written.entry(id).or_default());
                    let result = self.server.transmit(now, id, &mut |pieces| {
                        pieces.iter().for_each(|piece| written.extend_from_slice(piece));
                        Ok(pieces.iter().map(|piece| piece.len()).sum())
                    });
                    assert_eq!(result.unwrap(), Transmit::Idle);
                }
                Action::Write(id) => {
                    let now = self.time();
                    let result = self.server.transmit(now, id, &mut |_| Err(ErrorKind::WouldBlock.into()));
                    assert_eq!(result.unwrap(), Transmit::Blocked);
                }
                Action::Close(id) => self.closed.push(id),
                Action::Media(MediaCommand::Start { session, activity, .. }) => {
                    self.sessions.insert(session, activity);
                    let answer = ANSWER.to_owned();
                    self.server.media(self.time(), MediaEvent::Answered { session, answer });
                }
                Action::Media(MediaCommand::Finish { session }) => {
                    self.finished.push(session);
                    self.server.media(self.time(), MediaEvent::Gone { session });
                }
                Action::Media(command) => self.commands.push(command),
                Action::Note(note) => self.notes.push(note),
            }
        }
    }

    /// Runs every deadline up to `until` ms.
    fn run(&mut self, until: u64) {
        while let Some(at) = self.server.deadline().map(|at| at.as_micros().div_ceil(1000)).filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.server.tick(self.time());
            self.turn();
        }
        self.now = until;
    }

    /// Publishers that live from now to `until`, in steps of 20 ms.
    fn run_alive(&mut self, sessions: &[SessionId], until: u64) {
        while self.now < until {
            for session in sessions {
                self.sessions[session].stamp(Packet::Audio, self.time());
            }
            self.run(self.now + 20);
        }
    }

    fn read(&mut self, id: ConnId) -> String {
        String::from_utf8_lossy(&self.written.remove(&id).unwrap_or_default()).into_owned()
    }

    /// One request on a connection of its own; the answer, empty if there is none yet.
    fn ask(&mut self, request: &str) -> String {
        let id = self.connect();
        self.send(id, request);
        self.read(id)
    }

    fn post(&mut self) -> ConnId {
        let id = self.connect();
        self.send(id, post_request("", OFFER));
        id
    }

    /// A publisher that is let in.
    fn publish(&mut self) -> (SessionId, String) {
        let id = self.post();
        let answer = self.read(id);
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
        (*self.sessions.last_key_value().expect("a session").0, header(&answer, "Location").expect("Location"))
    }

    fn status(&mut self) -> serde_json::Value {
        let answer = self.ask("GET /api/status HTTP/1.1\r\nHost: h\r\n\r\n");
        serde_json::from_str(answer.split_once("\r\n\r\n").expect("a body").1).expect("JSON")
    }

    fn video(&mut self, session: SessionId, at: i64) {
        // An access unit delimiter, then an IDR slice.
        let data = Bytes::from_static(&[0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x65, 1, 2, 3]);
        let unit = Unit { session, codec: Codec::H264, pts: at, dts: at, key: true, data };
        self.server.media(self.time(), MediaEvent::Unit(unit));
        self.turn();
    }
}

fn limited(limits: Limits) -> Settings {
    Settings { limits, ..Settings::default() }
}

fn post_request(fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /whip/live HTTP/1.1\r\nHost: h\r\nContent-Type: application/sdp\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
    )
}

fn patch_request(location: &str, if_match: &str, body: &str) -> String {
    let if_match = if if_match.is_empty() { String::new() } else { format!("If-Match: {if_match}\r\n") };
    let length = body.len();
    format!(
        "PATCH {location} HTTP/1.1\r\nHost: h\r\nContent-Type: application/trickle-ice-sdpfrag\r\n{if_match}\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

fn header(answer: &str, name: &str) -> Option<String> {
    let head = answer.split("\r\n\r\n").next()?;
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
}

fn fragment(ufrag: &str, pwd: &str) -> String {
    format!(
        "a=ice-ufrag:{ufrag}\r\na=ice-pwd:{pwd}\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n\
         a=candidate:1 1 UDP 2113937151 192.0.2.1 50000 typ host\r\na=end-of-candidates\r\n"
    )
}

const SAME: [&str; 2] = ["abcd", "0123456789abcdef012345"];
const NEW: [&str; 2] = ["efgh", "abcdef0123456789abcdef"];

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
    assert_eq!(header(&answer, "Access-Control-Expose-Headers").as_deref(), Some("Location, Link, ETag, Retry-After"));
    assert!(answer.ends_with(ANSWER));
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
            desk.server.eof(desk.time(), b);
        } else {
            desk.server.closed(desk.time(), b);
        }
        desk.turn();
        desk.run(5_000);
        assert_eq!(desk.finished, [], "nobody waits, so nobody is displaced");
        assert_eq!(desk.server.edge().publish().unanswered(), 0);
        desk.run(30_000);
        assert_eq!(desk.finished, [a]);
    }
}

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
    desk.run(2_000);
    assert!(desk.ask(&format!("DELETE {location} HTTP/1.1\r\nHost: h\r\n\r\n")).starts_with("HTTP/1.1 200 "));
}

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
