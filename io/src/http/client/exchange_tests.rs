use proptest::prelude::*;

use super::super::head::FIELDS;
use super::*;

fn get(url: &str) -> Get {
    Get::new(url.parse().unwrap()).unwrap()
}

/// An origin's side of one exchange: what it sends, and what came of it.
struct Origin {
    exchange: Exchange,
    /// Content is one event, however many pieces it came in.
    events: Vec<Event>,
}

impl Origin {
    fn new(get: Get) -> Self {
        let mut exchange = Exchange::new(&get);
        exchange.wrote(exchange.output().len());
        Origin { exchange, events: Vec::new() }
    }

    fn run(&mut self) {
        while let Some(event) = self.exchange.poll() {
            assert!(!self.is_over(), "an event after the last");
            match (&event, self.events.last_mut()) {
                (Event::Body(data), _) if data.is_empty() => panic!("an event for nothing"),
                (Event::Body(data), Some(Event::Body(before))) => *before = [&before[..], data].concat().into(),
                _ => self.events.push(event),
            }
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.events.last(), Some(Event::End | Event::Fault(_)))
    }

    fn sends(mut self, data: impl AsRef<[u8]>) -> Self {
        self.exchange.receive(data.as_ref());
        self.run();
        self
    }

    fn ends(mut self) -> Self {
        self.exchange.eof();
        self.run();
        self
    }

    fn status(&self) -> Option<u16> {
        self.events.iter().find_map(|event| if let Event::Head(head) = event { Some(head.status) } else { None })
    }

    fn content(&self) -> &[u8] {
        self.events
            .iter()
            .find_map(|event| if let Event::Body(data) = event { Some(&**data) } else { None })
            .unwrap_or(b"")
    }

    fn fault(&self) -> Option<&Fault> {
        if let Some(Event::Fault(fault)) = self.events.last() { Some(fault) } else { None }
    }

    fn is_complete(&self) -> bool {
        self.events.last() == Some(&Event::End)
    }
}

fn origin() -> Origin {
    Origin::new(get("http://a/"))
}

fn kept() -> Origin {
    Origin::new(get("http://a/").keep_alive())
}

/// What comes of an answer that begins with these lines and goes on with `abcdef`, after which the origin ends.
fn answer(lines: &str) -> Origin {
    origin().sends(format!("HTTP/1.1 {lines}\r\n\r\nabcdef")).ends()
}

#[test]
fn what_is_sent_can_be_taken_in_pieces() {
    let request = get("http://a/");
    let mut exchange = Exchange::new(&request);
    let mut sent = Vec::new();
    while !exchange.output().is_empty() {
        let count = exchange.output().len().min(7);
        sent.extend_from_slice(&exchange.output()[..count]);
        exchange.wrote(count);
    }
    assert_eq!(sent, request.to_bytes());
}

#[test]
fn content_ends_where_its_framing_says() {
    for (lines, content, complete) in [
        ("200 OK\r\nContent-Length: 6", "abcdef", true),
        ("200 OK\r\nContent-Length: 4", "abcd", true),
        ("200 OK\r\nContent-Length: 0", "", true),
        ("200 OK\r\nContent-Length: 7", "abcdef", false),
        ("200 OK\r\nContent-Length: 18446744073709551615", "abcdef", false),
        ("200 OK\r\nContent-Length: 4\r\nContent-Length: 4", "abcd", true),
        ("200 OK\r\nContent-Length: 4, 4", "abcd", true),
        ("200 OK", "abcdef", true),
        ("204 No Content", "", true),
        ("304 Not Modified\r\nContent-Length: 9", "", true),
        ("206 Partial Content\r\nContent-Length : 3", "abc", true),
        ("200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2;x=y\r\nAB\r\n1 \t;\r\nC\r\n0\r\nX: y", "ABC", true),
        ("200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nAB", "AB\r\n\r\nabc", false),
    ] {
        let origin = answer(lines);
        assert_eq!(origin.content(), content.as_bytes(), "{lines}");
        assert_eq!(origin.is_complete(), complete, "{lines}: {:?}", origin.fault());
    }
}

#[test]
fn content_that_ends_early_is_told_from_content_that_ends() {
    for lines in ["200 OK\r\nContent-Length: 7", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n"] {
        assert_eq!(answer(lines).fault(), Some(&Fault::EndedEarly), "{lines}");
    }
    assert_eq!(origin().ends().fault(), Some(&Fault::Unanswered));
    assert_eq!(origin().sends("HTTP/1.1 200 OK\r\nA: b\r\n").ends().fault(), Some(&Fault::EndedEarly));
    assert_eq!(origin().sends("HTTP/1.1 100 Continue\r\n\r\n").ends().fault(), Some(&Fault::EndedEarly));
}

#[test]
fn content_comes_as_it_arrives() {
    let stream = origin().sends("HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n\r\nab");
    assert_eq!(stream.content(), b"ab");
    let stream = stream.sends("cd");
    assert_eq!((stream.content(), stream.is_over()), (&b"abcd"[..], false));
    assert!(origin().sends("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab").is_complete());
    assert!(origin().sends("HTTP/1.1 204 No Content\r\n\r\n").is_complete());
}

#[test]
fn framing_that_is_not_clear_is_a_fault() {
    for lines in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 6",
        "Content-Length: +5",
        "Content-Length: -5",
        "Content-Length: 5 5",
        "Content-Length: 5,",
        "Content-Length:",
        "Content-Length: 18446744073709551616",
        "Content-Length: 6\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked\r\n\r\nxyz",
        "Transfer-Encoding: chunked\r\n\r\n10000000000000000",
    ] {
        let origin = answer(&format!("200 OK\r\n{lines}"));
        assert!(matches!(origin.fault(), Some(Fault::Framing(_))), "{lines}: {:?}", origin.events);
    }
    let old = origin().sends("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert!(matches!(old.fault(), Some(Fault::Framing(_))));
}

#[test]
fn coded_content_is_a_fault_that_names_the_coding() {
    for (lines, named) in [
        ("200 OK\r\nContent-Encoding: GZIP", "gzip"),
        ("206 Partial Content\r\nContent-Encoding: identity, br", "br"),
        ("200 OK\r\nContent-Encoding: <script>", "something unknown"),
    ] {
        assert_eq!(answer(lines).fault(), Some(&Fault::ContentCoding(named.into())), "{lines}");
    }
    for lines in ["200 OK\r\nContent-Encoding: identity", "404 Not Found\r\nContent-Encoding: gzip", "200 OK"] {
        assert!(answer(lines).is_complete(), "{lines}");
    }
}

#[test]
fn heads_as_they_occur_in_the_field() {
    for (bytes, status) in [
        ("ICY 200 OK\r\nicy-name: x\r\n\r\nabc", 200),
        ("HTTP/1.0 200 OK\r\n\r\nabc", 200),
        ("HTTP/1.1 200 OK\nContent-Type: video/mp2t\n\nabc", 200),
        ("HTTP/1.1 200\r\n\r\nabc", 200),
        ("HTTP/1.1 404 \u{e9}\r\nX: caf\u{e9}\r\n\r\nabc", 404),
        ("HTTP/1.1 999 x\r\n\r\nabc", 999),
    ] {
        let origin = origin().sends(bytes).ends();
        assert_eq!((origin.status(), origin.content()), (Some(status), &b"abc"[..]), "{bytes:?}");
        assert!(origin.is_complete());
    }
}

#[test]
fn a_folded_field_is_one_line() {
    let origin = origin().sends("HTTP/1.1 200 OK\r\nA: b\r\n\tc\r\nD: e\r\n\r\n");
    let Event::Head(head) = &origin.events[0] else { panic!("no head") };
    assert_eq!(head.headers.iter().collect::<Vec<_>>(), [("A", "b  \tc"), ("D", "e")]);
}

#[test]
fn other_protocols_are_known_by_their_first_bytes() {
    for (bytes, fault) in [
        (&b"\x15\x03\x01\x00\x02\x02\x46"[..], Fault::Tls),
        (b"\x16\x03\x03", Fault::Tls),
        (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", Fault::Http2),
        (b"HTTP/2 200\r\n", Fault::Http2),
        (b"SSH-2.0-OpenSSH\r\n", Fault::NotHttp),
        (b"RTSP/1.0 400 Bad Request\r\n\r\n", Fault::NotHttp),
        (b"<html>", Fault::NotHttp),
        (b"G@\x00\x10", Fault::NotHttp),
        (b"\r\nHTTP/1.1 200 OK\r\n\r\n", Fault::NotHttp),
        (b"ICE ", Fault::NotHttp),
        (b"http/1.1 200 OK\r\n\r\n", Fault::NotHttp),
        (b"HTTP/1.2 200 OK\r\n\r\n", Fault::NotHttp),
    ] {
        assert_eq!(origin().sends(bytes).fault(), Some(&fault), "{bytes:?}");
    }
}

#[test]
fn heads_that_are_not_right_are_faults() {
    for lines in ["20 OK", "2000 OK", "abc OK", "099 x", "101 Switching Protocols", "200 OK\r\nA b: c", "200 OK\r\n: c"]
    {
        assert!(matches!(answer(lines).fault(), Some(Fault::Head(_))), "{lines}: {:?}", answer(lines).events);
    }
}

#[test]
fn heads_are_bounded_in_bytes_and_fields() {
    let head = |filler: usize| format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(filler));
    let most = HEAD - head(0).len();
    assert_eq!(origin().sends(head(most)).status(), Some(200));
    assert_eq!(origin().sends(head(most + 1)).fault(), Some(&Fault::HeadTooLarge));
    let fields = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(count));
    assert_eq!(origin().sends(fields(FIELDS)).status(), Some(200));
    assert_eq!(origin().sends(fields(FIELDS + 1)).fault(), Some(&Fault::HeadTooLarge));
    // One that never ends is not waited for, nor kept.
    let endless = origin().sends("HTTP/1.1 200 OK\r\n").sends("X: y\r\n".repeat(HEAD / 6));
    assert_eq!((endless.fault(), endless.exchange.input.len()), (Some(&Fault::HeadTooLarge), 0));
}

#[test]
fn interim_answers_are_skipped_but_not_for_ever() {
    let interim =
        |count| ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"].repeat(count).concat();
    let most = usize::from(INTERIM) / 2;
    let origin = || Origin::new(get("http://a/"));
    assert_eq!(origin().sends(interim(most) + "HTTP/1.1 200 OK\r\n\r\n").status(), Some(200));
    assert_eq!(origin().sends(interim(most)).sends("HTTP/1.1 102 x\r\n\r\n").fault(), Some(&Fault::EndlessInterim));
}

#[test]
fn each_chunk_has_its_own_bound_for_what_is_not_content() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = |extension: usize| format!("1;{}\r\na\r\n", "x".repeat(extension));
    assert_eq!(origin().sends(head.to_owned() + &chunk(HEAD / 2).repeat(5)).content(), b"aaaaa");
    assert!(matches!(origin().sends(head).sends(chunk(HEAD)).fault(), Some(Fault::Framing(_))));
}

#[test]
fn a_connection_is_used_again_if_nothing_speaks_against_it() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
    assert!(kept().sends(OK).exchange.is_reusable());
    assert!(kept().sends("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").exchange.is_reusable());
    assert!(
        kept().sends("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n").exchange.is_reusable()
    );
    for (why, origin) in [
        ("it was not asked for", origin().sends(OK)),
        ("not complete", kept().sends(&OK[..OK.len() - 1])),
        ("more came at once", kept().sends(format!("{OK}c"))),
        ("more came later", kept().sends(OK).sends("c")),
        ("it ended", kept().sends(OK).ends()),
        ("the origin says so", kept().sends("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")),
        ("HTTP/1.0", kept().sends("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")),
        ("the end is the end of the connection", kept().sends("HTTP/1.1 200 OK\r\n\r\n").ends()),
        ("a fault", kept().sends("x")),
    ] {
        assert!(!origin.exchange.is_reusable(), "{why}");
    }
    let mut unwritten = Exchange::new(&get("http://a/").keep_alive());
    unwritten.receive(OK.as_bytes());
    while unwritten.poll().is_some() {}
    assert!(!unwritten.is_reusable(), "the request is not written");
}

#[test]
fn nothing_follows_the_end_and_nothing_is_kept() {
    let over =
        origin().sends("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\n\r\n").sends("x").ends();
    assert_eq!((over.content(), over.is_complete(), over.exchange.input.len()), (&b"ab"[..], true, 0));
    let failed = origin().sends("x").sends("HTTP/1.1 200 OK\r\n\r\n").ends();
    assert_eq!((failed.fault(), failed.exchange.input.len()), (Some(&Fault::NotHttp), 0));
}

/// Answers, right and wrong, and bits of them.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let known = [
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.0 302 Found\r\nLocation: /x\r\n",
        "ICY 200 OK\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/2 200\r\n",
        "Content-Length: 5\r\n",
        "Content-Encoding: gzip\r\n",
        "Connection: close\r\n",
        "X: y\n",
        " folded\r\n",
        "5;a=b\r\nhello\r\n",
        "0\r\nTrailer: x\r\n\r\n",
        "0\r\n\r\n",
        "\r\n",
        "\n",
        "G@",
    ];
    prop_oneof![
        8 => proptest::sample::select(known.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
        1 => Just(vec![b'x'; 3000]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn how_bytes_are_cut_changes_nothing(
        pieces in proptest::collection::vec(pieces(), 0..16),
        flip in proptest::option::weighted(0.3, (any::<proptest::sample::Index>(), any::<u8>())),
        cuts in proptest::collection::vec(1usize..40, 1..20),
    ) {
        let mut bytes = pieces.concat();
        if let Some((index, byte)) = flip && !bytes.is_empty() {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let whole = kept().sends(&bytes);
        let mut cut = kept();
        let mut rest = &bytes[..];
        for size in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at(rest.len().min(*size));
            cut = cut.sends(piece);
            rest = after;
        }
        prop_assert_eq!(&whole.events, &cut.events);
        prop_assert_eq!(whole.exchange.is_reusable(), cut.exchange.is_reusable());
        let (whole, cut) = (whole.ends(), cut.ends());
        prop_assert!(whole.is_over());
        prop_assert_eq!(whole.events, cut.events);
    }
}
