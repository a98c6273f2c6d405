//! HTTP over real sockets: bad input of every kind, connections by the thousand, metrics, the end.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_tests::edge::Edge;
use holdfast_tests::http::{Connection, NoAnswer, Request, Response};
use holdfast_tests::offer::{self, Credentials, Tracks};
use holdfast_tests::publisher::Aiortc;
use holdfast_tests::viewer::Viewer;
use holdfast_tests::{AT_ONCE, eventually, prepared, turn};

/// What comes back for these bytes on a connection of their own.
fn raw(edge: &Edge, bytes: &[u8]) -> Result<Response, NoAnswer> {
    let mut connection = Connection::open(edge.address());
    connection.raw(bytes);
    connection.response(false)
}

/// Refused with a 4xx that says why, and not one byte behind it is taken for another request.
fn refused_and_closed(edge: &Edge, what: &str, bytes: &[u8]) {
    let mut connection = Connection::open(edge.address());
    connection.raw(bytes);
    let answer = connection.response(false).unwrap_or_else(|error| panic!("{what}: {error}"));
    // RFC 9112 §6.1 wants 501 for a coding that is not understood.
    let wanted = if what == "an unknown coding" { 501..502 } else { 400..500 };
    assert!(wanted.contains(&answer.status), "{what}: {} {}", answer.status, answer.text());
    assert_eq!(answer.field("content-type"), Some("application/problem+json"), "{what}: {answer:?}");
    assert!(connection.closed_within(Duration::from_secs(5)).is_some(), "{what}: the connection stays open");
}

#[test]
fn broken_framing_is_refused() {
    let _turn = turn();
    let edge = Edge::plain();
    let post = "POST /whip/live HTTP/1.1\r\nHost: edge\r\nContent-Type: application/sdp\r\n";
    let cases: &[(&str, String)] = &[
        ("two lengths", format!("{post}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")),
        ("two lengths in one field", format!("{post}Content-Length: 3, 4\r\n\r\nabcd")),
        ("length and chunks", format!("{post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")),
        ("a length that is no number", format!("{post}Content-Length: +3\r\n\r\nabc")),
        ("a length beyond all numbers", format!("{post}Content-Length: 99999999999999999999999\r\n\r\n")),
        (
            "a chunk size beyond all numbers",
            format!("{post}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc"),
        ),
        ("a chunk size that is no number", format!("{post}Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n")),
        ("a chunk longer than its size", format!("{post}Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n")),
        ("an unknown coding", format!("{post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")),
        ("chunked not last", format!("{post}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n")),
        ("bare line feeds", "GET /healthz HTTP/1.1\nHost: edge\n\n".to_owned()),
        ("a bare carriage return", "GET /healthz HTTP/1.1\r\nHost: edge\r\nX: a\rb\r\n\r\n".to_owned()),
        ("a folded field", "GET /healthz HTTP/1.1\r\nHost: edge\r\nX: a\r\n b\r\n\r\n".to_owned()),
        ("a space before the colon", "GET /healthz HTTP/1.1\r\nHost : edge\r\n\r\n".to_owned()),
        ("no host", "GET /healthz HTTP/1.1\r\n\r\n".to_owned()),
        ("two hosts", "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned()),
        ("no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n".to_owned()),
    ];
    for (what, bytes) in cases {
        refused_and_closed(&edge, what, bytes.as_bytes());
    }
    assert_eq!(edge.get("/healthz").status, 200);
    assert!(edge.session("live").is_null(), "no slot was touched");
}

#[test]
fn a_head_of_64_kib_is_closed_at_its_limit() {
    let _turn = turn();
    let edge = Edge::plain();
    let one = format!("GET /healthz HTTP/1.1\r\nHost: edge\r\nX: {}\r\n\r\n", "x".repeat(64 << 10));
    let many = format!("GET /healthz HTTP/1.1\r\nHost: edge\r\n{}\r\n", "X: y\r\n".repeat(11_000));
    let target = format!("GET /{} HTTP/1.1\r\nHost: edge\r\n\r\n", "x".repeat(64 << 10));
    for bytes in [one, many, target] {
        let answer = raw(&edge, bytes.as_bytes());
        assert!(matches!(&answer, Ok(answer) if matches!(answer.status, 414 | 431)), "{answer:?}");
    }
    assert_eq!(edge.get("/healthz").status, 200);
}

#[test]
fn one_byte_a_second_is_closed_at_its_limit() {
    let _turn = turn();
    let edge = Edge::start(
        "[http]\nlisten = [\"127.0.0.1:0\"]\n[http.limits]\nhead_timeout = \"3s\"\nbody_timeout = \"3s\"\n",
    );
    let body = "POST /whip/live HTTP/1.1\r\nHost: edge\r\nContent-Type: application/sdp\r\nContent-Length: 100\r\n\r\n";
    for start in ["G", body] {
        let mut connection = Connection::open(edge.address());
        connection.raw(start.as_bytes());
        let begun = Instant::now();
        let closed = (0..10).find_map(|_| {
            let closed = connection.closed_within(Duration::from_secs(1));
            connection.raw(b"x");
            closed
        });
        assert!(closed.is_some(), "{start:?}: still open after ten bytes");
        let took = begun.elapsed();
        assert!(
            took > Duration::from_millis(2500) && took < Duration::from_secs(6),
            "{start:?}: closed after {took:?}"
        );
    }
}

#[test]
fn ten_thousand_idle_connections_keep_nobody_out() {
    let _turn = turn();
    prepared::allow_descriptors(10_500);
    let edge = Edge::start(
        "[http]\nlisten = [\"127.0.0.1:0\"]\n[http.limits]\nidle_timeout = \"120s\"\nconnections = 11000\n\
         connections_per_address = 0\n\
         [[endpoint]]\nname = \"live\"\n",
    );
    let before = edge.holdings();
    let start = Instant::now();
    let idle: Vec<Connection> = (0..10_000).map(|_| Connection::open(edge.address())).collect();
    eventually("ten thousand connections", Duration::from_secs(10), || {
        (edge.holdings().descriptors >= before.descriptors + 10_000).then_some(())
    });
    println!("10 000 connections in {:?}: {:?} before, {:?} now", start.elapsed(), before, edge.holdings());
    let publisher = Aiortc::to(&edge.url("/whip/live")).start();
    assert_eq!(publisher.posted().status, 201);
    publisher.connected();
    let viewer = Viewer::open(edge.address(), "live");
    viewer.gets(30_000, Duration::from_secs(10));
    let answer = edge.post("live");
    assert_eq!(answer.reason(), "holder-live");
    assert!(answer.took < AT_ONCE, "{:?}", answer.took);
    drop(idle);
    eventually("their end", Duration::from_secs(20), || {
        (edge.holdings().descriptors < before.descriptors + 100).then_some(())
    });
    viewer.gets(30_000, Duration::from_secs(10));
}

#[test]
fn the_idle_are_closed_and_viewers_are_not_idle() {
    let _turn = turn();
    let edge = Edge::start(
        "[http]\nlisten = [\"127.0.0.1:0\"]\n[http.limits]\nhead_timeout = \"2s\"\nidle_timeout = \"2s\"\n[[endpoint]]\nname = \"live\"\n",
    );
    let viewer = Viewer::open(edge.address(), "live");
    let mut fresh = Connection::open(edge.address());
    let mut used = Connection::open(edge.address());
    used.send(&Request::new("GET", "/healthz"));
    assert_eq!(used.response(false).map(|answer| answer.status), Ok(200));
    let start = Instant::now();
    for (what, connection) in [("never used", &mut fresh), ("used once", &mut used)] {
        assert!(connection.closed_within(Duration::from_secs(6)).is_some(), "{what}: still open");
    }
    assert!(start.elapsed() > Duration::from_millis(1500), "{:?}", start.elapsed());
    assert!(!viewer.seen().ended, "a viewer of a slot without a publisher waits for as long as the feed lets it");
}

/// W10 and the rest of what is no offer, all while the holder of the slot is dead.
#[test]
fn junk_offers_do_not_touch_a_dead_holder() {
    let _turn = turn();
    let edge = Edge::plain();
    let mut a = Aiortc::to(&edge.url("/whip/live")).start();
    let posted = a.posted();
    a.connected();
    edge.delivers("live", Tracks::Both);
    a.kill();
    std::thread::sleep(Duration::from_millis(2500));

    let plain = offer::plain();
    let without =
        |line: &str| -> String { plain.split_inclusive("\r\n").filter(|text| !text.contains(line)).collect() };
    let head = plain.split("m=").next().unwrap_or_default();
    let video = offer::with(Tracks::Video, &Credentials::numbered(2));
    let video = video.split("m=video").nth(1).unwrap_or_default();
    let second =
        format!("{}m=video{}", plain.replace("BUNDLE 0 1", "BUNDLE 0 1 2"), video.replace("a=mid:0", "a=mid:2"));
    let data = format!(
        "{}m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\n\
         a=ice-pwd:0123456789abcdef01234567\r\na=fingerprint:sha-256 {}\r\na=setup:actpass\r\na=mid:0\r\na=sctp-port:5000\r\n",
        head.replace("BUNDLE 0 1", "BUNDLE 0"),
        vec!["AB"; 32].join(":"),
    );
    let cases: Vec<(&str, &str, Vec<u8>, &[u16])> = vec![
        ("a wrong type", "text/plain", plain.clone().into(), &[415]),
        ("an empty body", "application/sdp", Vec::new(), &[400]),
        ("2 MiB", "application/sdp", vec![b'v'; 2 << 20], &[413]),
        ("no SDP", "application/sdp", b"hello".to_vec(), &[400]),
        ("nothing but line ends", "application/sdp", b"\r\n\r\n\r\n\r\n".to_vec(), &[400]),
        ("v=0 alone", "application/sdp", b"v=0\r\n".to_vec(), &[400, 422]),
        ("no media", "application/sdp", head.as_bytes().to_vec(), &[400, 422]),
        ("bytes that are no text", "application/sdp", vec![0xff; 500], &[400]),
        ("no fingerprint", "application/sdp", without("fingerprint").into(), &[400, 422]),
        ("no credentials", "application/sdp", without("ice-pwd").into(), &[400, 422]),
        ("a weak fingerprint", "application/sdp", plain.replace("sha-256 7B", "sha-1 7B").into(), &[400, 422]),
        ("two video sections", "application/sdp", second.into(), &[400, 422]),
        ("an unknown codec", "application/sdp", plain.replace("H264/", "H999/").into(), &[422]),
        ("a data channel only", "application/sdp", data.into(), &[422]),
        ("nobody sends", "application/sdp", plain.replace("sendonly", "recvonly").into(), &[400, 422]),
        ("inactive", "application/sdp", plain.replace("sendonly", "inactive").into(), &[400, 422]),
        ("cut off", "application/sdp", plain.as_bytes()[..plain.len() / 3].to_vec(), &[400, 422]),
    ];
    for (what, media_type, body, wanted) in cases {
        let answer =
            Request::new("POST", "/whip/live").field("Content-Type", media_type).body(body).send(edge.address());
        assert!(wanted.contains(&answer.status), "{what}: {} {}", answer.status, answer.text());
        assert_eq!(answer.field("content-type"), Some("application/problem+json"), "{what}");
        let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(!detail.is_empty(), "{what}: {}", answer.text());
    }
    let path = posted.location.expect("a granted POST has a Location");
    assert_eq!(Request::new("GET", &path).send(edge.address()).status, 204, "A still holds its slot");
    assert_eq!(edge.status()["endpoints"][0]["offers"], 1, "none of it was put before the core");
    assert_eq!(edge.post("live").status, 201, "a good offer displaces it");
}

/// W4 and W13: a session whose client never sends anything keeps others out no longer than its set-up may take.
#[test]
fn a_session_that_never_sends_is_ended_by_its_deadline() {
    let _turn = turn();
    let edge = Edge::start("[[endpoint]]\nname = \"live\"\nsetup_timeout = \"2s\"\n");
    let first = edge.post("live");
    assert_eq!(first.status, 201);
    let second = edge.post("live");
    assert_eq!((second.status, second.reason().as_str()), (503, "holder-negotiating"));
    assert!(second.took < AT_ONCE);
    let start = Instant::now();
    eventually("the end of the set-up", Duration::from_secs(5), || edge.session("live").is_null().then_some(()));
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    assert_eq!(Request::new("GET", first.must("Location")).send(edge.address()).status, 404);
    assert_eq!(edge.post("live").status, 201);
}

/// W11 and W12: two clients at once, and a third that hangs up, while the holder is dead.
#[test]
fn one_of_two_waiting_clients_wins_and_one_that_hangs_up_leaves_nothing() {
    let _turn = turn();
    let edge = Edge::plain();
    let mut a = Aiortc::to(&edge.url("/whip/live")).start();
    a.connected();
    edge.delivers("live", Tracks::Both);
    a.kill();
    let mut gone = Connection::open(edge.address());
    gone.send(&Request::offer("/whip/live", &offer::plain()));
    eventually("a waiting POST", AT_ONCE, || (edge.status()["endpoints"][0]["waiting"] == 1).then_some(()));
    gone.hang_up();
    eventually("nobody waiting", AT_ONCE, || (edge.status()["endpoints"][0]["waiting"] == 0).then_some(()));
    let address = edge.address();
    let both = [1, 2].map(|number| {
        let sdp = offer::with(Tracks::Both, &Credentials::numbered(number));
        std::thread::spawn(move || Request::offer("/whip/live", &sdp).send(address))
    });
    let mut answers = both.map(|thread| thread.join().expect("an answer for each"));
    answers.sort_by_key(|answer| answer.status);
    let [winner, loser] = answers;
    assert_eq!((winner.status, loser.status), (201, 503), "{winner:?} {loser:?}");
    assert_eq!(Request::new("GET", winner.must("Location")).send(address).status, 204, "the winner is not displaced");
    assert_eq!(edge.status()["endpoints"][0]["waiting"], 0);
}

/// One address cannot take every place, and is told nothing: its connections beyond the limit just close.
#[test]
fn connections_are_limited_by_address() {
    let _turn = turn();
    let edge = Edge::start("[http.limits]\nconnections_per_address = 3\n[[endpoint]]\nname = \"live\"\n");
    let mut held: Vec<Connection> = (0..3).map(|_| Connection::open(edge.address())).collect();
    for connection in &mut held {
        connection.send(&Request::new("GET", "/healthz"));
        assert_eq!(connection.response(false).map(|answer| answer.status), Ok(200));
    }
    let mut beyond = Connection::open(edge.address());
    assert!(beyond.closed_within(Duration::from_secs(5)).is_some());
    held[0].send(&Request::new("GET", "/metrics"));
    let metrics = held[0].response(false).expect("metrics").text();
    let series = "holdfast_http_connections_turned_away_total{limit=\"connections_per_address\"}";
    let counted = metrics.lines().find_map(|line| line.strip_prefix(series)?.trim().parse::<u64>().ok());
    assert!(counted >= Some(1), "{metrics}");
}

/// The ingest page of an endpoint that is not there says so when it is opened.
#[test]
fn the_page_of_an_unknown_endpoint_is_not_there() {
    let _turn = turn();
    let edge = Edge::plain();
    assert_eq!(edge.get("/publish/live").status, 200);
    let answer = edge.get("/publish/nobody");
    assert_eq!((answer.status, answer.must("Content-Type")), (404, "text/html; charset=utf-8"));
    assert!(
        answer.text().contains("“nobody”") && answer.text().contains("href=\"/publish/live\""),
        "{}",
        answer.text()
    );
}

/// What `promtool` says of the metrics while there is something to measure.
#[test]
fn metrics_are_as_prometheus_wants_them() {
    let _turn = turn();
    let edge = Edge::plain();
    let publisher = Aiortc::to(&edge.url("/whip/live")).start();
    publisher.connected();
    edge.delivers("live", Tracks::Both);
    assert_eq!(edge.post("live").status, 503);
    let metrics = edge.get("/metrics");
    assert_eq!(metrics.status, 200);
    let text = metrics.text();
    assert!(
        text.lines().any(|line| line.starts_with("holdfast_publish_refused_total") && line.contains("holder-live")),
        "{text}"
    );

    let mut promtool = std::process::Command::new(prepared::promtool())
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool runs");
    promtool.stdin.take().expect("piped").write_all(text.as_bytes()).expect("promtool reads");
    let output = promtool.wait_with_output().expect("promtool ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.trim().is_empty(), "promtool: {said}\n{text}");
}

/// SIGTERM: streams are ended, publishers told, nobody new let in, nobody who is slow waited for, and it is over within five
/// seconds.
#[test]
fn it_drains_within_five_seconds() {
    let _turn = turn();
    let mut edge = Edge::start("[[endpoint]]\nname = \"live\"\n[[endpoint]]\nname = \"other\"\n");
    let publisher = Aiortc::to(&edge.url("/whip/live")).start();
    publisher.connected();
    let viewer = Viewer::open(edge.address(), "live");
    viewer.gets(30_000, Duration::from_secs(10));
    let mut newcomer = Connection::open(edge.address());
    newcomer.send(&Request::new("GET", "/healthz"));
    assert_eq!(newcomer.response(false).map(|answer| answer.status), Ok(200));
    let mut slow = Connection::open(edge.address());
    slow.raw(
        b"POST /whip/other HTTP/1.1\r\nHost: edge\r\nContent-Type: application/sdp\r\nContent-Length: 100\r\n\
          Expect: 100-continue\r\n\r\n",
    );
    assert_eq!(slow.head().map(|answer| answer.status), Ok(100));

    let start = Instant::now();
    edge.ask_to_end();
    newcomer.send(&Request::offer("/whip/other", &offer::plain()));
    match newcomer.response(false) {
        Ok(answer) => assert_eq!((answer.status, answer.reason().as_str()), (503, "draining"), "{answer:?}"),
        Err(error) => assert_eq!(error, NoAnswer::Closed),
    }
    let refused = slow.response(false).expect("an answer in place of the rest of the request");
    assert_eq!((refused.status, refused.reason().as_str()), (503, "draining"), "{refused:?}");
    let status = edge.wait(Duration::from_secs(10));
    let took = start.elapsed();
    assert!(status.success(), "{status}");
    assert!(took < Duration::from_secs(5), "it took {took:?}");
    publisher.told(AT_ONCE);
    eventually("the end of the viewer's body", AT_ONCE, || viewer.seen().ended.then_some(()));
    assert_eq!(viewer.seen().fault, None);
}

/// The program under this limit of open files, soft and hard.
fn with_open_files(soft: u32, hard: u32, configuration: &str) -> Edge {
    Edge::start_by(configuration, |program| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -Sn {soft}; ulimit -Hn {hard}; exec \"$0\" \"$@\"")]).arg(program);
        // Whatever the libraries have to say must not break the log's lines.
        command.env("GST_DEBUG", "webrtcbin:4").env("G_MESSAGES_DEBUG", "all");
        command
    })
}

#[test]
fn connections_do_not_take_what_sessions_need() {
    let _turn = turn();
    let edge = with_open_files(
        200,
        512,
        "[http]\nlisten = [\"127.0.0.1:0\"]\n[http.limits]\nconnections_per_address = 0\nwhip_rate = 0\n\
         [log]\nlevel = \"debug\"\nformat = \"json\"\n[[endpoint]]\nname = \"live\"\nslots = 50\n",
    );
    let mut connections: Vec<Connection> = (0..500).map(|_| Connection::open(edge.address())).collect();
    let taken = eventually("as many connections as there may be", Duration::from_secs(5), || {
        let open = edge.holdings().descriptors;
        (open > 200).then_some(open)
    });
    assert!(taken < 400, "{taken} descriptors are taken by connections alone");
    let mut statuses = Vec::new();
    for connection in connections.iter_mut().take(40) {
        connection.send(&Request::offer("/whip/live", &offer::plain()));
        let answer = connection.response(false).expect("every offer is answered");
        if answer.status == 503 {
            assert!(answer.field("retry-after").is_some() && answer.text().contains("no-room"), "{answer:?}");
        }
        statuses.push(answer.status);
    }
    let count = |status| statuses.iter().filter(|own| **own == status).count();
    assert!(count(201) >= 10 && count(503) >= 1 && count(201) + count(503) == 40, "{statuses:?}");
    edge.says("webrtcbin");
    let log = edge.log();
    for line in log.lines().filter(|line| line.contains("webrtcbin") || line.contains("connections are taken")) {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    }
    assert!(log.contains("webrtcbin") && log.contains("connections are taken at once: "), "{log}");
    assert!(edge.terminate().0.success());
}

#[test]
fn a_publisher_that_said_its_end_is_answered_and_a_hang_up_of_the_terminal_drains() {
    let _turn = turn();
    let edge = Edge::plain();
    let mut connection = Connection::open(edge.address());
    connection.send(&Request::offer("/whip/live", &offer::plain()));
    connection.shut_down();
    let answer = connection.response(false).expect("an answer");
    assert_eq!(answer.status, 201, "{answer:?}");
    assert!(edge.hang_up().success());
}

#[test]
fn memory_is_kept_flat_however_the_program_is_started() {
    let _turn = turn();
    assert_eq!(Edge::plain().variable("MALLOC_ARENA_MAX").as_deref(), Some("2"));
    let text = "[http]\nlisten = [\"127.0.0.1:0\"]\n";
    let as_told = Edge::start_by(text, |program| {
        let mut command = Command::new("env");
        command.arg("MALLOC_ARENA_MAX=5").arg(program);
        command
    });
    assert_eq!(as_told.variable("MALLOC_ARENA_MAX").as_deref(), Some("5"));
}
