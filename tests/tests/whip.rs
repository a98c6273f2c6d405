//! RFC 9725 box by box, with a session that is negotiated and stands.

use std::time::Duration;

use holdfast_tests::edge::Edge;
use holdfast_tests::http::{Request, Response};
use holdfast_tests::offer::{self, Credentials, Tracks};
use holdfast_tests::publisher::Aiortc;
use holdfast_tests::turn;

/// A session nobody stands behind, which goes on being there for `setup_timeout`.
struct Session<'a> {
    edge: &'a Edge,
    path: String,
    etag: String,
    answer: Response,
    credentials: Credentials,
}

impl Session<'_> {
    fn open(edge: &Edge) -> Session<'_> {
        let credentials = Credentials::numbered(1);
        let sdp = offer::with(Tracks::Both, &credentials);
        let answer = Request::offer("/whip/live", &sdp).send(edge.address());
        assert_eq!(answer.status, 201, "{}", answer.text());
        let (path, etag) = (answer.must("Location").to_owned(), answer.must("ETag").to_owned());
        Session { edge, path, etag, answer, credentials }
    }

    fn patch(&self, if_match: &str, credentials: &Credentials) -> Response {
        let text = offer::fragment(credentials, &["1 1 udp 2113937151 127.0.0.1 50000 typ host"]);
        Request::fragment(&self.path, if_match, &text).send(self.edge.address())
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            Request::new("DELETE", &self.path).send(self.edge.address());
        }
    }
}

/// §4.2: the 201 and what is in its answer.
#[test]
fn the_answer_is_what_the_rfc_wants() {
    let _turn = turn();
    let edge = Edge::plain();
    let session = Session::open(&edge);
    let answer = &session.answer;
    assert_eq!(answer.field("Content-Type"), Some("application/sdp"));
    assert!(session.path.starts_with("/whip/live/"), "{}", session.path);
    assert!(session.path.len() >= "/whip/live/".len() + 20, "a session's URL cannot be guessed: {}", session.path);
    assert!(session.etag.starts_with('"') && session.etag.ends_with('"'), "a strong entity tag: {}", session.etag);
    let sdp = answer.text();
    let count = |line: &str| sdp.lines().filter(|text| text.trim_end() == line).count();
    assert_eq!(count("a=recvonly"), 2, "{sdp}");
    assert_eq!(count("a=rtcp-mux"), 2, "{sdp}");
    assert_eq!(count("a=rtcp-mux-only"), 2, "{sdp}");
    assert_eq!(count("a=group:BUNDLE 0 1"), 1, "{sdp}");
    assert_eq!(count("a=end-of-candidates"), 1, "{sdp}");
    assert!(sdp.contains("a=candidate:"), "{sdp}");
    assert!(!sdp.contains("m=audio 0 ") && !sdp.contains("m=video 0 "), "no section is refused: {sdp}");
    assert!(!sdp.contains("actpass"), "an answer decides who begins: {sdp}");
}

/// §4.2: media types are compared without case and parameters.
#[test]
fn a_media_type_may_have_parameters() {
    let _turn = turn();
    let edge = Edge::plain();
    for media_type in ["Application/SDP", "application/sdp; charset=utf-8", "application/sdp ;x=y"] {
        let request = Request::new("POST", "/whip/live").field("Content-Type", media_type).body(offer::plain());
        let answer = request.send(edge.address());
        assert_eq!(answer.status, 201, "{media_type}: {}", answer.text());
        assert_eq!(Request::new("DELETE", answer.must("Location")).send(edge.address()).status, 200);
    }
}

/// §4.1, §4.2: GET and OPTIONS of endpoint and session; §4.7: a preflight needs no credentials.
#[test]
fn get_and_options_tell_what_they_must() {
    let _turn = turn();
    let edge = Edge::start("[[endpoint]]\nname = \"live\"\ntokens = [\"secret-token\"]\n");
    let bearer = "Bearer secret-token";
    let posted = Request::offer("/whip/live", &offer::plain()).field("Authorization", bearer).send(edge.address());
    assert_eq!(posted.status, 201, "{}", posted.text());
    let session = posted.must("Location").to_owned();
    for path in ["/whip/live", &session] {
        let get = Request::new("GET", path).field("Authorization", bearer).send(edge.address());
        assert!((200..300).contains(&get.status) && get.body.is_empty(), "GET {path}: {get:?}");
        let preflight = Request::new("OPTIONS", path)
            .field("Origin", "http://elsewhere.example")
            .field("Access-Control-Request-Method", "PATCH")
            .field("Access-Control-Request-Headers", "content-type,if-match,authorization")
            .send(edge.address());
        assert!(matches!(preflight.status, 200 | 204), "OPTIONS {path}: {preflight:?}");
        assert_eq!(preflight.field("Access-Control-Allow-Origin"), Some("*"));
        let methods = preflight.must("Access-Control-Allow-Methods");
        assert!(["POST", "PATCH", "DELETE"].iter().all(|method| methods.contains(method)), "{methods}");
        let fields = preflight.must("Access-Control-Allow-Headers").to_ascii_lowercase();
        assert!(["authorization", "content-type", "if-match"].iter().all(|field| fields.contains(field)), "{fields}");
    }
    assert_eq!(
        Request::new("OPTIONS", "/whip/live").send(edge.address()).field("Accept-Post"),
        Some("application/sdp")
    );
    let exposed = posted.must("Access-Control-Expose-Headers").to_ascii_lowercase();
    assert!(["location", "link", "etag"].iter().all(|field| exposed.contains(field)), "{exposed}");
    // Everything but the preflight wants the token.
    for method in ["GET", "DELETE", "PATCH"] {
        let answer = Request::new(method, &session).send(edge.address());
        assert_eq!(answer.status, 401, "{method}: {answer:?}");
        assert!(answer.must("WWW-Authenticate").starts_with("Bearer"));
    }
    assert_eq!(Request::new("DELETE", &session).field("Authorization", bearer).send(edge.address()).status, 200);
}

/// §4.2: DELETE frees the slot, whatever If-Match it carries, and the session is gone.
#[test]
fn delete_ignores_if_match() {
    let _turn = turn();
    let edge = Edge::plain();
    let session = Session::open(&edge);
    let delete = Request::new("DELETE", &session.path).field("If-Match", "\"something else\"");
    assert_eq!(delete.send(edge.address()).status, 200);
    for method in ["GET", "DELETE"] {
        assert_eq!(Request::new(method, &session.path).send(edge.address()).status, 404, "{method}");
    }
    assert_eq!(session.patch(&session.etag, &session.credentials).status, 404);
    assert_eq!(Request::new("GET", "/whip/live/no-such-session").send(edge.address()).status, 404);
    assert_eq!(Request::new("GET", "/whip/nowhere").send(edge.address()).status, 404);
    assert_eq!(Request::offer("/whip/nowhere", &offer::plain()).send(edge.address()).status, 404);
}

/// §4.3.1, §4.3.2: trickled candidates.
#[test]
fn patch_trickles() {
    let _turn = turn();
    let edge = Edge::plain();
    let session = Session::open(&edge);
    let same = &session.credentials;
    for if_match in [session.etag.clone(), "*".into(), "\"*\"".into(), format!("\"another\", {}", session.etag)] {
        let answer = session.patch(&if_match, same);
        assert_eq!(answer.status, 204, "If-Match {if_match}: {}", answer.text());
        assert_eq!(answer.field("ETag"), None, "If-Match {if_match}");
        assert!(answer.body.is_empty());
    }
    for if_match in ["\"another\"".to_owned(), format!("W/{}", session.etag)] {
        assert_eq!(session.patch(&if_match, same).status, 412, "If-Match {if_match}");
    }
    let fragment = offer::fragment(same, &["1 1 udp 2113937151 127.0.0.1 50000 typ host"]);
    let kind = "application/trickle-ice-sdpfrag";
    let without = Request::new("PATCH", &session.path).field("Content-Type", kind).body(&fragment);
    assert_eq!(without.send(edge.address()).status, 428);
    let wrong =
        Request::new("PATCH", &session.path).field("Content-Type", "application/sdp").field("If-Match", &session.etag);
    assert_eq!(wrong.body(&fragment).send(edge.address()).status, 415);
    let port_zero = fragment.replace("m=audio 9 ", "m=audio 0 ") + "a=end-of-candidates\r\n";
    assert_eq!(Request::fragment(&session.path, &session.etag, &port_zero).send(edge.address()).status, 204);
    let pwd = format!("a=ice-pwd:{}\r\n", same.password);
    let malformed = [
        ("a ufrag without its password", fragment.replace(&pwd, "")),
        ("a candidate that is none", fragment.replace("2113937151 127.0.0.1 50000 typ host", "what")),
        ("candidates of no section", fragment.replace("m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n", "")),
        ("no text", "\u{0}\u{1}\u{2}".to_owned()),
    ];
    for (what, text) in malformed {
        let answer = Request::fragment(&session.path, &session.etag, &text).send(edge.address());
        assert_eq!(answer.status, 400, "{what}: {}", answer.text());
    }
    assert_eq!(Request::new("GET", &session.path).send(edge.address()).status, 204, "the session stands");
}

/// §4.3.3: an ICE restart, and what is late after it.
#[test]
fn patch_restarts() {
    let _turn = turn();
    let edge = Edge::plain();
    let session = Session::open(&edge);
    let mut etag = session.etag.clone();
    for (number, if_match) in [(2, "*"), (3, "\"*\"")] {
        let before = offer::attribute(&session.answer.text(), "ice-ufrag").expect("an answer has a ufrag");
        let answer = session.patch(if_match, &Credentials::numbered(number));
        assert_eq!(answer.status, 200, "If-Match {if_match}: {}", answer.text());
        assert_eq!(answer.field("Content-Type"), Some("application/trickle-ice-sdpfrag"));
        let now = answer.must("ETag").to_owned();
        assert_ne!(now, etag, "a new entity tag for a new ICE session");
        let text = answer.text();
        let ufrag = offer::attribute(&text, "ice-ufrag").expect("new credentials");
        assert_ne!(ufrag, before);
        assert!(offer::attribute(&text, "ice-pwd").is_some() && text.contains("a=candidate:"), "{text}");
        assert_eq!(session.patch(&etag, &session.credentials).status, 412, "a trickle for the ICE session before");
        assert_eq!(session.patch(&now, &Credentials::numbered(number)).status, 204, "one for the new ICE session");
        etag = now;
    }
}

/// §4.3.3 with a peer behind it: what cannot be restarted leaves the old ICE session as it was.
#[test]
fn a_wrong_patch_does_not_disturb_what_flows() {
    let _turn = turn();
    let edge = Edge::plain();
    let publisher = Aiortc::to(&edge.url("/whip/live")).start();
    let path = publisher.posted().location.expect("a granted POST has a Location");
    publisher.connected();
    edge.delivers("live", Tracks::Both);
    for (if_match, text) in [
        ("\"old\"", offer::fragment(&Credentials::numbered(7), &[])),
        ("*", "a=ice-ufrag:abcd\r\n".to_owned()),
        ("*", String::new()),
    ] {
        let answer = Request::fragment(&path, if_match, &text).send(edge.address());
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    let before = edge.session("live")["audio"]["packets"].as_u64();
    std::thread::sleep(Duration::from_millis(500));
    assert!(edge.session("live")["audio"]["packets"].as_u64() > before);
}

/// What passes for an offer here and not for webrtcbin is refused with its words, and its slot is free again.
#[test]
fn an_offer_that_cannot_be_negotiated_is_refused() {
    let _turn = turn();
    let edge = Edge::plain();
    let odd = offer::plain().replacen("a=mid:1", "a=mid:1\r\na=mid:1", 1);
    let answer = Request::offer("/whip/live", &odd).send(edge.address());
    assert_eq!((answer.status, answer.reason().as_str()), (422, "negotiation-failed"), "{}", answer.text());
    assert!(answer.text().contains("refuses section"), "{}", answer.text());
    drop(Session::open(&edge));
}
