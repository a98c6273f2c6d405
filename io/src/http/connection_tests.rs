use proptest::prelude::*;

use super::*;
use crate::http::{FieldValue, Method, field};

const GET: &str = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";

fn date() -> Date {
    Date::from_unix(0)
}

fn connection() -> Connection {
    Connection::new(Limits::default())
}

/// A server that takes bodies up to 20 bytes and answers each request with its path and body.
struct Echo {
    connection: Connection,
    path: String,
    body: Vec<u8>,
    /// Bodies are one event, however many pieces they came in.
    events: Vec<Event>,
    sent: Vec<u8>,
}

impl Echo {
    fn new() -> Self {
        Echo { connection: connection(), path: String::new(), body: Vec::new(), events: Vec::new(), sent: Vec::new() }
    }

    fn run(&mut self) {
        loop {
            while let Some(event) = self.connection.poll() {
                self.take(event);
            }
            let output = self.connection.output();
            if output.is_empty() {
                return;
            }
            // An odd number, so that writes end within heads and bodies.
            let count = output.len().min(7);
            self.sent.extend_from_slice(&output[..count]);
            self.connection.wrote(count);
        }
    }

    fn take(&mut self, event: Event) {
        match &event {
            Event::Request(request) => {
                self.path = request.path.clone();
                self.body.clear();
                self.connection.accept_body(20);
            }
            Event::Body(data) => {
                assert!(!data.is_empty());
                self.body.extend_from_slice(data);
                if let Some(Event::Body(before)) = self.events.last_mut() {
                    *before = [&before[..], data].concat().into();
                    return;
                }
            }
            Event::BodyEnd => {
                let content = [self.path.as_bytes(), b" ", &self.body].concat();
                self.connection.respond(Response::new(Status::OK).body(Body::Full(content.into())), &date());
            }
            Event::Fault(fault) => self.connection.respond(fault.into(), &date()),
        }
        self.events.push(event);
    }

    fn receive(&mut self, data: &[u8]) {
        self.connection.receive(data);
        self.run();
    }

    fn sent(&self) -> &str {
        std::str::from_utf8(&self.sent).unwrap()
    }

    /// The status codes of what was sent.
    fn statuses(&self) -> Vec<&str> {
        let lines = self.sent().split("HTTP/1.1 ").skip(1);
        lines.map(|line| &line[..3]).filter(|code| code.parse::<u16>().is_ok()).collect()
    }
}

fn echo(input: &str) -> Echo {
    let mut echo = Echo::new();
    echo.receive(input.as_bytes());
    echo
}

#[test]
fn pipelined_requests_are_answered_one_by_one_and_in_order() {
    let mut connection = connection();
    connection.receive(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(matches!(connection.poll(), Some(Event::Request(request)) if request.path == "/1"));
    assert_eq!(connection.poll(), None);
    connection.respond(Response::new(Status::OK), &date());
    assert_eq!(connection.poll(), None, "the first answer is not written yet");
    connection.wrote(connection.output().len() - 1);
    assert_eq!(connection.poll(), None);
    connection.wrote(1);
    assert!(matches!(connection.poll(), Some(Event::Request(request)) if request.path == "/2"));

    let echo = echo(&format!("{GET}POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi{GET}"));
    assert_eq!(echo.statuses(), ["200"; 3]);
    assert!(echo.sent().contains("/b hi"));
    assert_eq!(echo.connection.phase(), Phase::Idle);
    assert!(!echo.connection.is_finished());
}

#[test]
fn an_answer_is_framed_by_its_length_and_has_a_date() {
    let echo = echo(GET);
    assert_eq!(echo.sent(), "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 3\r\n\r\n/a ");
}

#[test]
fn large_content_is_not_copied_and_follows_its_head() {
    let mut connection = connection();
    connection.receive(GET.as_bytes());
    connection.poll();
    let content = Bytes::from(vec![7; COPIED + 1]);
    connection.respond(Response::new(Status::OK).body(Body::Full(content.clone())), &date());
    let head = connection.output().len();
    assert!(connection.output().ends_with(b"\r\n\r\n"));
    connection.wrote(head);
    assert_eq!(connection.output().as_ptr(), content.as_ptr());
    connection.wrote(COPIED);
    assert_eq!(connection.output(), [7]);
    connection.wrote(1);
    assert_eq!(connection.phase(), Phase::Idle);
}

#[test]
fn http_1_0_closes_unless_it_asked_not_to() {
    let closed = echo("GET / HTTP/1.0\r\n\r\n");
    assert!(closed.sent().contains("Connection: close\r\n"));
    assert!(closed.connection.is_finished());
    let kept = echo("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(kept.sent().contains("Connection: keep-alive\r\n"));
    assert!(!kept.connection.is_finished());
}

#[test]
fn a_client_that_says_close_gets_one_answer() {
    let echo = echo(&format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n{GET}"));
    assert_eq!(echo.statuses(), ["200"]);
    assert!(echo.sent().contains("Connection: close\r\n"));
    assert!(echo.connection.is_finished());
}

#[test]
fn head_gets_the_same_head_and_nothing_else() {
    let get = echo("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = echo(&format!("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n{GET}"));
    let (first, _) = get.sent().split_once("/a ").unwrap();
    assert!(head.sent().starts_with(&format!("{first}HTTP/1.1 200")));
    let refused = echo("HEAD /a HTTP/1.1\r\n\r\n");
    assert!(refused.sent().starts_with("HTTP/1.1 400") && refused.sent().ends_with("\r\n\r\n"));
    assert!(echo("HEAD /a HTTP/1.1\n").sent().ends_with("\r\n\r\n"));
}

#[test]
fn statuses_without_content_have_neither_content_nor_length() {
    for status in [Status::NO_CONTENT, Status::NOT_MODIFIED] {
        let mut connection = connection();
        connection.receive(GET.as_bytes());
        connection.poll();
        connection.respond(Response::new(status).body(Body::Full(Bytes::from_static(b"x"))), &date());
        let sent = String::from_utf8(connection.output().to_vec()).unwrap();
        assert!(sent.ends_with("GMT\r\n\r\n"), "{sent}");
    }
    let mut connection = connection();
    connection.receive(GET.as_bytes());
    connection.poll();
    connection.respond(Response::new(Status::OK), &date());
    assert!(connection.output().ends_with(b"Content-Length: 0\r\n\r\n"));
}

#[test]
fn fields_are_written_in_their_order() {
    let mut connection = connection();
    connection.receive(GET.as_bytes());
    connection.poll();
    let response = Response::new(Status::SERVICE_UNAVAILABLE)
        .header(field::RETRY_AFTER, FieldValue::from(3))
        .header(field::ETAG, FieldValue::from_static("\"a\""));
    connection.respond(response, &date());
    let sent = String::from_utf8(connection.output().to_vec()).unwrap();
    assert!(sent.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
    assert!(sent.contains("GMT\r\nRetry-After: 3\r\nETag: \"a\"\r\nContent-Length: 0\r\n"));
}

#[test]
fn a_stream_has_no_length_and_ends_with_its_connection() {
    let mut connection = connection();
    connection.receive(format!("{GET}{GET}").as_bytes());
    connection.poll();
    connection.respond(Response::new(Status::OK).body(Body::Stream), &date());
    assert!(connection.output().ends_with(b"GMT\r\nConnection: close\r\n\r\n"));
    connection.wrote(connection.output().len());
    assert_eq!((connection.phase(), connection.poll()), (Phase::Streaming, None));
    assert!(connection.wants_read(), "a viewer that goes away is noticed by reading");
    assert!(!connection.is_finished());
    connection.end_stream();
    assert!(connection.is_finished());
}

#[test]
fn head_of_a_stream_does_not_stream() {
    let mut connection = connection();
    connection.receive(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    connection.poll();
    connection.respond(Response::new(Status::OK).body(Body::Stream), &date());
    assert_eq!(connection.phase(), Phase::Closing);
}

#[test]
fn continue_is_sent_when_the_content_is_accepted_and_not_before() {
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    let mut connection = connection();
    connection.receive(head);
    connection.poll();
    assert_eq!(connection.output(), b"");
    connection.accept_body(2);
    assert_eq!(connection.output(), b"HTTP/1.1 100 Continue\r\n\r\n");
    connection.wrote(connection.output().len());
    assert_eq!((connection.poll(), connection.phase()), (None, Phase::Body));
    connection.receive(b"hi");
    assert_eq!(connection.poll(), Some(Event::Body(Bytes::from_static(b"hi"))));
    assert_eq!(connection.poll(), Some(Event::BodyEnd));

    let mut connection = Connection::new(Limits::default());
    connection.receive(head);
    connection.poll();
    connection.accept_body(1);
    assert_eq!(connection.output(), b"", "what will be refused is not asked for");
    assert!(matches!(connection.poll(), Some(Event::Fault(fault)) if fault.status == Status::CONTENT_TOO_LARGE));
}

#[test]
fn an_answer_before_the_content_was_read_closes_the_connection() {
    let mut connection = connection();
    connection.receive(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\nGET / HTTP/1.1\r\n");
    connection.poll();
    connection.respond(Response::new(Status::UNAUTHORIZED), &date());
    assert!(connection.output().ends_with(b"Connection: close\r\n\r\n"));
    assert_eq!((connection.poll(), connection.phase()), (None, Phase::Closing));
    connection.receive(&[b'x'; DISCARDED - 1]);
    assert!(connection.wants_read());
    connection.receive(b"x");
    assert!(!connection.wants_read(), "what is thrown away is bounded too");
    assert!(connection.input.is_empty());
    connection.wrote(connection.output().len());
    assert!(connection.is_finished());
}

#[test]
fn an_answer_while_the_content_comes_closes_the_connection() {
    let mut connection = connection();
    connection.receive(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
    connection.poll();
    connection.accept_body(9);
    connection.poll();
    connection.respond(Response::new(Status::OK), &date());
    assert!(connection.output().ends_with(b"Connection: close\r\n\r\n"));
}

#[test]
fn content_beyond_its_limit_is_refused_however_it_is_framed() {
    for framing in [
        "Content-Length: 21\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\nb\r\n0123456789a",
        // By their own words, before any of it came.
        "Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\nb\r\n",
        "Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n",
    ] {
        let echo = echo(&format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}"));
        assert_eq!(echo.statuses(), ["413"], "{framing}");
        assert!(echo.connection.is_finished());
    }
    let echo =
        echo("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n01234567890123456789\r\n0\r\n\r\n");
    assert_eq!(echo.statuses(), ["200"]);
}

#[test]
fn long_heads_are_refused_by_what_is_too_long_about_them() {
    let target = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(8 * 1024));
    assert_eq!(echo(&target).statuses(), ["414"]);
    let value = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "a".repeat(16 * 1024));
    assert_eq!(echo(&value).statuses(), ["431"]);
    let fields = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: a\r\n".repeat(64));
    assert_eq!(echo(&fields).statuses(), ["431"]);
    let most = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: a\r\n".repeat(63));
    assert_eq!(echo(&most).statuses(), ["200"]);
}

#[test]
fn nothing_is_served_after_a_fault() {
    let echo = echo(&format!("GET / HTTP/1.1\r\n\r\n{GET}"));
    assert_eq!(echo.statuses(), ["400"]);
    assert!(echo.sent().contains("Connection: close\r\n"));
    assert!(echo.sent().contains("Content-Type: application/problem+json\r\n"));
    assert!(echo.connection.is_finished());
}

#[test]
fn one_empty_line_before_a_request_is_skipped() {
    assert_eq!(echo(&format!("\r\n{GET}\r\n{GET}")).statuses(), ["200", "200"]);
    assert_eq!(echo(&format!("\r\n\r\n{GET}")).statuses(), ["400"]);
}

#[test]
fn a_half_closed_client_gets_its_answers_and_then_the_end() {
    let mut echo = Echo::new();
    echo.connection.receive(format!("{GET}{GET}").as_bytes());
    echo.connection.eof();
    assert!(!echo.connection.wants_read());
    echo.run();
    assert_eq!(echo.statuses(), ["200", "200"]);
    assert!(echo.connection.is_finished());
}

#[test]
fn a_client_that_ends_within_a_head_gets_nothing_and_within_content_a_fault() {
    let mut half = echo("GET / HTTP/1.1\r\nHo");
    assert_eq!(half.connection.phase(), Phase::Head);
    half.connection.eof();
    half.run();
    assert!(half.sent.is_empty() && half.connection.is_finished());
    let mut half = echo("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
    half.connection.eof();
    half.run();
    assert_eq!(half.statuses(), ["400"]);
    assert!(half.connection.is_finished());
}

#[test]
fn reading_stops_at_the_limit_and_goes_on_below_it() {
    let mut connection = connection();
    connection.receive(GET.as_bytes());
    connection.poll();
    assert!(connection.wants_read(), "else a client that hangs up while it waits is not noticed");
    connection.receive(&vec![b'x'; 64 * 1024 - 1]);
    assert!(connection.wants_read());
    connection.receive(b"x");
    assert!(!connection.wants_read());
    connection.respond(Response::new(Status::OK).close(), &date());
    assert!(connection.wants_read());
}

#[test]
fn draining_ends_idle_connections_now_and_others_after_their_answer() {
    let mut idle = connection();
    idle.drain();
    assert!(idle.is_finished());

    let mut busy = connection();
    busy.receive(GET.as_bytes());
    busy.poll();
    busy.drain();
    assert!(!busy.is_finished());
    busy.respond(Response::new(Status::OK), &date());
    assert!(busy.output().ends_with(b"Connection: close\r\n\r\n"));

    let mut writing = connection();
    writing.receive(GET.as_bytes());
    writing.poll();
    writing.respond(Response::new(Status::OK), &date());
    writing.drain();
    writing.wrote(writing.output().len());
    assert_eq!(writing.poll(), None);
    assert!(writing.is_finished());
}

#[test]
fn answers_that_nobody_waits_for_change_nothing() {
    let mut connection = connection();
    connection.respond(Response::new(Status::OK), &date());
    connection.end_stream();
    connection.accept_body(1);
    connection.wrote(5);
    assert_eq!((connection.output(), connection.phase()), (&b""[..], Phase::Idle));
    connection.receive(GET.as_bytes());
    connection.poll();
    connection.respond(Response::new(Status::OK), &date());
    let length = connection.output().len();
    connection.respond(Response::new(Status::OK), &date());
    assert_eq!(connection.output().len(), length);
}

#[test]
fn phases_follow_a_request() {
    let mut connection = connection();
    assert_eq!(connection.phase(), Phase::Idle);
    connection.receive(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n");
    assert_eq!(connection.phase(), Phase::Head);
    assert!(matches!(connection.poll(), Some(Event::Request(request)) if request.method == Method::Post));
    assert_eq!(connection.phase(), Phase::Responding);
    connection.accept_body(1);
    assert_eq!(connection.phase(), Phase::Body);
    connection.receive(b"x");
    while connection.poll().is_some() {}
    assert_eq!(connection.phase(), Phase::Responding);
    connection.respond(Response::new(Status::OK), &date());
    assert_eq!(connection.phase(), Phase::Responding);
    connection.wrote(connection.output().len());
    assert_eq!(connection.phase(), Phase::Idle);
}

/// Requests, right and wrong, and bits of them.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let known = [
        GET,
        "GET /b%20c?d HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 21\r\n\r\n",
        "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
        "5;a=b\r\nhello\r\n",
        "0\r\nTrailer: x\r\n\r\n",
        "0\r\n\r\n",
        "Content-Length: 3\r\n",
        "Connection: close\r\n",
        "\r\n",
        "\n",
        " ",
    ];
    prop_oneof![
        8 => proptest::sample::select(known.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn how_bytes_are_cut_changes_nothing(
        pieces in proptest::collection::vec(pieces(), 0..8),
        flip in proptest::option::weighted(0.3, (any::<proptest::sample::Index>(), any::<u8>())),
        cuts in proptest::collection::vec(1usize..40, 1..20),
    ) {
        let mut bytes = pieces.concat();
        if let Some((index, byte)) = flip && !bytes.is_empty() {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let mut whole = Echo::new();
        whole.receive(&bytes);
        let mut cut = Echo::new();
        let mut rest = &bytes[..];
        for size in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at(rest.len().min(*size));
            cut.receive(piece);
            rest = after;
        }
        for echo in [&mut whole, &mut cut] {
            echo.connection.eof();
            echo.run();
            prop_assert!(echo.connection.is_finished());
        }
        prop_assert_eq!(&whole.events, &cut.events);
        prop_assert_eq!(whole.sent, cut.sent);
    }
}
