use super::*;
use crate::http::client::{Event, Exchange, Get};

fn head(answer: &str) -> ResponseHead {
    let mut exchange = Exchange::new(&Get::new("http://a/".parse().unwrap()).unwrap());
    exchange.receive(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes());
    match exchange.poll() {
        Some(Event::Head(head)) => head,
        other => panic!("{other:?}"),
    }
}

fn asked(span: Option<Span>) -> Asked<'static> {
    Asked { what: What::Media, span, version: None }
}

/// Status, `Content-Range`, `Accept-Ranges`, how much is thrown away, how much follows.
fn passed(asked: Asked<'_>, answer: &str) -> (u16, Option<String>, Option<String>, u64, Option<u64>) {
    let Verdict::Pass(pass) = judge(asked, &head(answer)) else { panic!("{answer}") };
    let field = |name: FieldName| {
        let mut all = pass.fields.iter().filter(|(own, _)| *own == name).map(|(_, value)| value.as_str().to_owned());
        let first = all.next();
        assert_eq!(all.next(), None, "{name:?} twice");
        first
    };
    (pass.status.code(), field(CONTENT_RANGE), field(ACCEPT_RANGES), pass.skip, pass.length)
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn what_was_asked_for_is_passed_on() {
    let whole = "200 OK\r\nContent-Length: 100\r\nAccept-Ranges: bytes";
    assert_eq!(passed(asked(None), whole), (200, None, text("bytes"), 0, Some(100)));
    assert_eq!(passed(asked(None), "200 OK"), (200, None, text("none"), 0, None));
    let chunked = "200 OK\r\nTransfer-Encoding: chunked";
    assert_eq!(passed(asked(None), chunked), (200, None, text("none"), 0, None));
    for (span, range, count) in [
        (Span::From(10), "bytes 10-99/100", 90),
        (Span::Between(10, 19), "bytes 10-19/100", 10),
        (Span::Between(90, 200), "bytes 90-99/100", 10),
        (Span::Last(5), "bytes 95-99/100", 5),
        (Span::From(0), "bytes 0-99/*", 100),
    ] {
        let answer = format!("206 Partial Content\r\nContent-Range: {range}\r\nContent-Length: {count}");
        assert_eq!(passed(asked(Some(span)), &answer), (206, text(range), text("bytes"), 0, Some(count)));
        let chunked = format!("206 Partial Content\r\nContent-Range: {range}\r\nTransfer-Encoding: chunked");
        assert_eq!(passed(asked(Some(span)), &chunked).4, Some(count), "the range says how much it is");
    }
}

#[test]
fn what_a_browser_would_show_as_a_page_is_passed_on_as_bytes() {
    for (said, passed) in [
        ("text/html", "application/octet-stream"),
        ("Text/HTML; charset=utf-8", "application/octet-stream"),
        ("image/svg+xml", "application/octet-stream"),
        ("video/mp4", "video/mp4"),
        ("application/dash+xml", "application/dash+xml"),
        ("application/ttml+xml", "application/ttml+xml"),
    ] {
        let head = head(&format!("200 OK\r\nContent-Length: 9\r\nContent-Type: {said}"));
        let Verdict::Pass(pass) = judge(asked(None), &head) else { panic!("{said}") };
        let kinds: Vec<_> = pass.fields.iter().filter(|(name, _)| *name == CONTENT_TYPE).collect();
        assert!(matches!(&kinds[..], [(_, value)] if value.as_str() == passed), "{said}: {kinds:?}");
    }
}

#[test]
fn a_provider_without_ranges_is_read_up_to_where_it_begins() {
    let whole = "200 OK\r\nContent-Length: 100";
    for (span, expected) in [
        (Span::From(0), (200, None, text("none"), 0, Some(100))),
        (Span::From(10), (206, text("bytes 10-99/100"), None, 10, Some(90))),
        (Span::Between(0, 9), (206, text("bytes 0-9/100"), None, 0, Some(10))),
        (Span::Between(10, 19), (206, text("bytes 10-19/100"), None, 10, Some(10))),
        (Span::Last(10), (206, text("bytes 90-99/100"), None, 90, Some(10))),
    ] {
        assert_eq!(passed(asked(Some(span)), whole), expected, "{span:?}");
    }
    assert_eq!(passed(asked(Some(Span::Between(0, 9))), "200 OK").0, 200);
    let range = ContentRange::Unsatisfied { length: 100 };
    assert_eq!(judge(asked(Some(Span::From(100))), &head(whole)), Verdict::Unsatisfiable(Some(range)));
    let far = format!("200 OK\r\nContent-Length: {}", SKIP + 100);
    assert_eq!(passed(asked(Some(Span::From(SKIP))), &far).3, SKIP);
    for (span, answer) in [
        (Span::From(SKIP + 1), far.as_str()),
        (Span::Last(5), &far),
        (Span::From(1), "200 OK"),
        (Span::Last(5), "200 OK"),
    ] {
        assert!(matches!(judge(asked(Some(span)), &head(answer)), Verdict::Failed(Failure::Unusable, _)), "{span:?}");
    }
}

#[test]
fn another_version_than_the_one_that_was_meant_comes_whole() {
    let asked = Asked { version: Some("\"a\""), ..asked(Some(Span::From(50))) };
    assert_eq!(passed(asked, "200 OK\r\nContent-Length: 100").0, 200);
    assert_eq!(passed(asked, "200 OK\r\nContent-Length: 100").3, 0);
}

#[test]
fn a_part_that_was_not_asked_for_is_of_no_use() {
    for (span, fields) in [
        (None, "Content-Range: bytes 0-9/100"),
        (Some(Span::From(10)), "Content-Range: bytes 0-99/100"),
        (Some(Span::From(10)), "Content-Range: bytes 11-99/100"),
        (Some(Span::Between(10, 19)), "Content-Range: bytes 10-20/100"),
        (Some(Span::Last(5)), "Content-Range: bytes 90-99/100"),
        (Some(Span::From(10)), "Content-Range: bytes 10-99/50"),
        (Some(Span::From(10)), "Content-Range: bytes 99-10/100"),
        (Some(Span::From(10)), "Content-Range: octets 10-99/100"),
        (Some(Span::From(10)), "Content-Range: bytes */100"),
        (Some(Span::From(10)), "Content-Range: bytes 10-99/100\r\nContent-Range: bytes 10-98/100"),
        (Some(Span::From(10)), "Content-Range: bytes 10-99/100\r\nContent-Length: 91"),
        (Some(Span::From(10)), "Content-Type: multipart/byteranges; boundary=x"),
    ] {
        let verdict = judge(asked(span), &head(&format!("206 Partial Content\r\n{fields}")));
        assert!(matches!(verdict, Verdict::Failed(Failure::Unusable, _)), "{fields}: {verdict:?}");
    }
}

#[test]
fn errors_are_told_by_their_status() {
    let verdict = |answer: &str, span| judge(asked(span), &head(answer));
    for status in [400, 401, 403, 404, 410, 416, 429, 456, 500, 503, 508, 599] {
        let failed = verdict(&format!("{status} x"), None);
        assert!(matches!(failed, Verdict::Failed(Failure::Status(own), _) if own == status), "{failed:?}");
    }
    let Verdict::Failed(_, why) = verdict("508 Loop Detected", None) else { panic!("508") };
    assert!(why.contains("leads back to this server"), "{why}");
    for answer in ["204 No Content", "201 Created", "203 x", "304 Not Modified", "300 x", "600 x", "999 x"] {
        assert!(matches!(verdict(answer, None), Verdict::Failed(Failure::Unusable, _)), "{answer}");
    }
    let unsatisfied = "416 x\r\nContent-Range: bytes */100";
    let range = ContentRange::Unsatisfied { length: 100 };
    assert_eq!(verdict(unsatisfied, Some(Span::From(100))), Verdict::Unsatisfiable(Some(range)));
    assert_eq!(verdict("416 x\r\nContent-Range: rubbish", Some(Span::From(100))), Verdict::Unsatisfiable(None));
}

#[test]
fn fields_of_the_connection_and_of_the_provider_stay_behind() {
    let answer = "200 OK\r\nContent-Type: video/mp4\r\nETag: \"a\"\r\nLast-Modified: x\r\nCache-Control: max-age=1\r\nServer: nginx\r\n\
                  Set-Cookie: a=b\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nLocation: http://x/";
    let Verdict::Pass(pass) = judge(asked(None), &head(answer)) else { panic!() };
    let names: Vec<&str> = pass.fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Content-Type", "ETag", "Last-Modified", "Cache-Control", "Accept-Ranges"]);
}

#[test]
fn a_look_says_how_much_there_is() {
    let look = Asked { what: What::Look, span: None, version: None };
    let known = |answer: &str| match judge(look, &head(answer)) {
        Verdict::Known(size) => Some((size.length, size.fields.last().map(|(_, value)| value.as_str().to_owned()))),
        _ => None,
    };
    assert_eq!(known("206 x\r\nContent-Range: bytes 0-0/100\r\nContent-Length: 1"), Some((Some(100), text("bytes"))));
    assert_eq!(known("206 x\r\nContent-Range: bytes 0-0/*"), Some((None, text("bytes"))));
    assert_eq!(known("200 OK\r\nContent-Length: 100"), Some((Some(100), text("none"))));
    assert_eq!(known("206 x"), None);
    assert_eq!(known("404 x"), None);
}

#[test]
fn a_part_of_another_version_is_not_passed_on() {
    let judged = |version, said: &str| {
        let asked = Asked { version: Some(version), ..asked(Some(Span::From(5))) };
        let answer = format!("206 x\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5{said}");
        judge(asked, &head(&answer)) == Verdict::Changed
    };
    const DATE: &str = "Mon, 30 Nov 2026 12:00:00 GMT";
    for (version, said, other) in [
        ("\"a\"", "\r\nETag: \"a\"", false),
        ("\"a\"", "\r\nETag: \"b\"", true),
        ("\"a\"", "", false),
        ("\"a\"", "\r\nETag: W/\"a\"", true),
        ("W/\"a\"", "\r\nETag: W/\"a\"", true),
        (DATE, "\r\nLast-Modified: Mon, 30 Nov 2026 12:00:00 GMT", false),
        (DATE, "\r\nLast-Modified: Mon, 30 Nov 2026 12:00:01 GMT\r\nETag: \"a\"", true),
    ] {
        assert_eq!(judged(version, said), other, "{version} {said}");
    }
    let asked = Asked { version: Some("\"a\""), ..asked(Some(Span::From(50))) };
    let shorter = head("416 x\r\nContent-Range: bytes */10");
    assert_eq!(judge(asked, &shorter), Verdict::Changed, "what was there once may be shorter now");
}
