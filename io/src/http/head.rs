//! Request heads: where one ends, what it says, and how its message is framed.

use std::borrow::Cow;

use url::form_urlencoded;

use super::connection::Limits;
use super::fault::Fault;
use super::field::Headers;
use super::response::Status;
use super::target::{Target, is_authority};

/// Request methods (RFC 9110 §9). A method is case-sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
    /// `OPTIONS`
    Options,
    /// `TRACE`
    Trace,
    /// Any other but CONNECT, which is a [`Fault`]: 501 fits (RFC 9110 §9.1).
    Other,
}

impl Method {
    fn parse(token: &str) -> Result<Self, Fault> {
        Ok(match token {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "PATCH" => Method::Patch,
            "DELETE" => Method::Delete,
            "OPTIONS" => Method::Options,
            "TRACE" => Method::Trace,
            "CONNECT" => return Err(Fault::new(Status::NOT_IMPLEMENTED, "there are no tunnels here")),
            _ => Method::Other,
        })
    }
}

/// Protocol versions that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// Whether content follows a head, and how its end is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// No content.
    None,
    /// This many bytes.
    Length(u64),
    /// Chunks (RFC 9112 §7.1).
    Chunked,
}

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it wants done.
    pub method: Method,
    /// The path as it was sent; `*` for the server as a whole. May hold credentials: not for logs.
    pub path: String,
    /// The path's segments, percent-decoded after they were split at `/`: a segment may hold a `/`. Of `/a/` the last is
    /// empty; `*` has none. None of them is `.` or `..`, none holds a NUL.
    pub segments: Vec<String>,
    /// What followed the first `?`, as it was sent.
    pub query: Option<String>,
    /// Host and port that the client means, from an absolute target or else from `Host`; empty if it named none.
    pub authority: String,
    /// Its fields.
    pub headers: Headers,
    /// Whether content follows.
    pub body: RequestBody,
    /// The protocol version.
    pub version: Version,
    /// Whether the client means to send another request on this connection (RFC 9112 §9.3).
    pub keep_alive: bool,
    pub(super) expects_continue: bool,
}

impl Request {
    /// The decoded value of the first query parameter of this name (`application/x-www-form-urlencoded`).
    pub fn query_value(&self, name: &str) -> Option<Cow<'_, str>> {
        let query = self.query.as_deref()?;
        form_urlencoded::parse(query.as_bytes()).find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// Reads a whole head, as [`HeadScan`] found it.
    pub(super) fn parse(head: &[u8], limits: &Limits) -> Result<Self, Fault> {
        let mut fields = vec![httparse::EMPTY_HEADER; limits.headers];
        let mut parsed = httparse::Request::new(&mut fields);
        match parsed.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(Fault::bad("a head ends with its first empty line")),
            Err(error) => return Err(syntax(error, limits)),
        }
        let (Some(method), Some(target), Some(minor)) = (parsed.method, parsed.path, parsed.version) else {
            return Err(syntax(httparse::Error::Token, limits));
        };
        let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
        let mut headers = Headers::default();
        for field in &*parsed.headers {
            headers.push(field.name, field.value);
        }
        let method = Method::parse(method)?;
        let target = Target::parse(target, method)?;
        let host = host(&headers, version)?;
        let body = framing(&headers, version)?;
        Ok(Request {
            method,
            path: target.path,
            segments: target.segments,
            query: target.query,
            // RFC 9112 §3.2.2: what an absolute target names counts, whatever Host says.
            authority: target.authority.unwrap_or(host),
            body,
            version,
            keep_alive: keeps_alive(&headers, version),
            expects_continue: expects_continue(&headers, version)?,
            headers,
        })
    }
}

fn syntax(error: httparse::Error, limits: &Limits) -> Fault {
    match error {
        httparse::Error::TooManyHeaders => Fault::new(
            Status::REQUEST_HEADER_FIELDS_TOO_LARGE,
            format!("a request has at most {} header fields", limits.headers),
        ),
        httparse::Error::Version => {
            Fault::new(Status::HTTP_VERSION_NOT_SUPPORTED, "the version is HTTP/1.1 or HTTP/1.0")
        }
        httparse::Error::HeaderName | httparse::Error::HeaderValue => {
            Fault::bad("a header field is one line: its name, a colon without whitespace before it, its value")
        }
        _ => Fault::bad("a request line is a method, one space, a target, one space, HTTP/1.1"),
    }
}

/// RFC 9112 §3.2: one `Host` in HTTP/1.1, at most one before.
fn host(headers: &Headers, version: Version) -> Result<String, Fault> {
    let mut lines = headers.get_all("Host");
    let host = match (lines.next(), lines.next()) {
        (Some(host), None) => host,
        (None, _) if version == Version::Http10 => "",
        _ => return Err(Fault::bad("an HTTP/1.1 request has one Host field")),
    };
    if is_authority(host) { Ok(host.into()) } else { Err(Fault::bad("a Host field is host or host:port")) }
}

/// RFC 9112 §6.3, at its strictest: whatever two recipients could read in two ways is refused.
fn framing(headers: &Headers, version: Version) -> Result<RequestBody, Fault> {
    let mut lengths = headers.get_all("Content-Length");
    let length = lengths.next();
    if headers.get("Transfer-Encoding").is_some() {
        if version == Version::Http10 {
            return Err(Fault::bad("an HTTP/1.0 request has no Transfer-Encoding"));
        }
        if length.is_some() {
            return Err(Fault::bad("a request has Content-Length or Transfer-Encoding, not both"));
        }
        return transfer_coding(headers);
    }
    let Some(length) = length else {
        return Ok(RequestBody::None);
    };
    if lengths.next().is_some() {
        return Err(Fault::bad("a request has one Content-Length field"));
    }
    // `u64::from_str` would take a plus sign.
    if length.is_empty() || !length.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::bad("Content-Length is one decimal number"));
    }
    match length.parse() {
        Ok(length) => Ok(RequestBody::Length(length)),
        Err(_) => Err(Fault::bad("Content-Length is at most 18446744073709551615")),
    }
}

/// RFC 9112 §6.1: `chunked`, once, and last. Other codings before it are not supported.
fn transfer_coding(headers: &Headers) -> Result<RequestBody, Fault> {
    let is_chunked = |coding: &&str| coding.eq_ignore_ascii_case("chunked");
    let codings: Vec<&str> = headers.list("Transfer-Encoding").collect();
    let chunked = codings.iter().filter(|coding| is_chunked(coding)).count();
    if chunked != 1 || !codings.last().is_some_and(is_chunked) {
        return Err(Fault::bad("the last transfer coding of a request, and only that, is chunked"));
    }
    if codings.len() > 1 || headers.get_all("Transfer-Encoding").count() > 1 {
        return Err(Fault::new(Status::NOT_IMPLEMENTED, "the only transfer coding supported is chunked"));
    }
    Ok(RequestBody::Chunked)
}

/// Whether the sender of a head means the connection to go on (RFC 9112 §9.3).
pub(super) fn keeps_alive(headers: &Headers, version: Version) -> bool {
    let says = |option: &str| headers.list("Connection").any(|own| own.eq_ignore_ascii_case(option));
    !says("close") && (version == Version::Http11 || says("keep-alive"))
}

/// RFC 9110 §10.1.1: an expectation in an HTTP/1.0 request is ignored.
fn expects_continue(headers: &Headers, version: Version) -> Result<bool, Fault> {
    if version == Version::Http10 {
        return Ok(false);
    }
    let mut expects = false;
    for expectation in headers.list("Expect") {
        if !expectation.eq_ignore_ascii_case("100-continue") {
            return Err(Fault::new(Status::EXPECTATION_FAILED, "the only expectation supported is 100-continue"));
        }
        expects = true;
    }
    Ok(expects)
}

/// Looks for the end of a head, each byte once however few come at a time, and refuses on the way what httparse would
/// let pass or what would make it wait: bare LF, bare CR, control characters, too many bytes.
#[derive(Debug, Default)]
pub(super) struct HeadScan {
    /// How many bytes were looked at.
    at: usize,
    /// Where the present line begins.
    line: usize,
    after_cr: bool,
}

/// What [`HeadScan::advance`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scanned {
    /// The end is not there yet.
    Partial,
    /// An empty line, 2 bytes long, in front of the head.
    EmptyLine,
    /// The head is this long, with its empty line.
    Complete(usize),
}

impl HeadScan {
    /// `input` is all that came of the head, the part that was looked at before included.
    pub(super) fn advance(&mut self, input: &[u8], limits: &Limits) -> Result<Scanned, Fault> {
        while let Some(&byte) = input.get(self.at) {
            if self.line == 0 && self.at >= limits.request_line {
                let detail = format!("a request line has at most {} bytes", limits.request_line);
                return Err(Fault::new(Status::URI_TOO_LONG, detail));
            }
            if self.at >= limits.head {
                let detail = format!("a head has at most {} bytes", limits.head);
                return Err(Fault::new(Status::REQUEST_HEADER_FIELDS_TOO_LARGE, detail));
            }
            match (self.after_cr, byte) {
                (true, b'\n') if self.at == 1 => return Ok(Scanned::EmptyLine),
                (true, b'\n') if self.at == self.line + 1 => return Ok(Scanned::Complete(self.at + 1)),
                (true, b'\n') => self.line = self.at + 1,
                (true, _) | (false, b'\n') => return Err(Fault::bad("a line of a head ends with CRLF")),
                (false, b'\r' | b'\t' | b' '..=b'~' | 0x80..) => {}
                (false, _) => return Err(Fault::bad("a head has no control characters")),
            }
            self.after_cr = byte == b'\r';
            self.at += 1;
        }
        Ok(Scanned::Partial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(head: &str) -> Result<Request, u16> {
        Request::parse(head.as_bytes(), &Limits::default()).map_err(|fault| fault.status.code())
    }

    /// The framing of a POST with these further lines, or the status it is refused with.
    fn body(lines: &str) -> Result<RequestBody, u16> {
        parse(&format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")).map(|request| request.body)
    }

    #[test]
    fn framing_that_is_clear() {
        assert_eq!(body(""), Ok(RequestBody::None));
        assert_eq!(body("content-length: 007\r\n"), Ok(RequestBody::Length(7)));
        assert_eq!(body("Content-Length: 18446744073709551615\r\n"), Ok(RequestBody::Length(u64::MAX)));
        assert_eq!(body("Transfer-Encoding: Chunked\r\n"), Ok(RequestBody::Chunked));
    }

    #[test]
    fn framing_that_two_could_read_in_two_ways_is_refused() {
        for (lines, status) in [
            ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400),
            ("Content-Length: 5\r\nTransfer-Encoding: identity\r\n", 400),
            ("Content-Length: 5\r\nContent-Length: 6\r\n", 400),
            ("Content-Length: 5\r\nContent-Length: 5\r\n", 400),
            ("Content-Length: 5, 5\r\n", 400),
            ("Content-Length: +5\r\n", 400),
            ("Content-Length: -5\r\n", 400),
            ("Content-Length: 0x5\r\n", 400),
            ("Content-Length: 5 5\r\n", 400),
            ("Content-Length:\r\n", 400),
            ("Content-Length: 18446744073709551616\r\n", 400),
            ("Transfer-Encoding:\r\n", 400),
            ("Transfer-Encoding: gzip\r\n", 400),
            ("Transfer-Encoding: chunked, gzip\r\n", 400),
            ("Transfer-Encoding: chunked, chunked\r\n", 400),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
            ("Transfer-Encoding: xchunked\r\n", 400),
            ("Transfer-Encoding: \"chunked\"\r\n", 400),
            ("Transfer-Encoding: chunked;q=1\r\n", 400),
            ("Transfer-Encoding: gzip, chunked\r\n", 501),
            ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", 501),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n", 501),
            ("Transfer-Encoding : chunked\r\n", 400),
            (" Transfer-Encoding: chunked\r\n", 400),
            ("X: a\r\n b\r\n", 400),
            (": a\r\n", 400),
            ("X\r\n", 400),
            ("X Y: a\r\n", 400),
        ] {
            assert_eq!(body(lines), Err(status), "{lines:?}");
        }
        assert_eq!(parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), Err(400));
    }

    #[test]
    fn one_host() {
        for (head, expected) in [
            ("GET / HTTP/1.1\r\nHost: a:80\r\n\r\n", Ok("a:80")),
            ("GET / HTTP/1.1\r\nHost:\r\n\r\n", Ok("")),
            ("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", Ok("b")),
            ("GET / HTTP/1.0\r\n\r\n", Ok("")),
            ("GET / HTTP/1.1\r\n\r\n", Err(400)),
            ("GET http://b/ HTTP/1.1\r\n\r\n", Err(400)),
            ("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", Err(400)),
            ("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", Err(400)),
            ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", Err(400)),
            ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", Err(400)),
        ] {
            assert_eq!(parse(head).map(|request| request.authority).as_deref(), expected.as_deref(), "{head:?}");
        }
    }

    #[test]
    fn request_lines() {
        for (line, status) in [
            ("GET  / HTTP/1.1", 400),
            ("GET / HTTP/1.1 ", 400),
            ("GET / HTTP/1.1x", 400),
            (" GET / HTTP/1.1", 400),
            ("G(T / HTTP/1.1", 400),
            ("GET /", 400),
            ("GET", 400),
            ("GET /a b HTTP/1.1", 505),
            ("PRI * HTTP/2.0", 505),
            ("GET / HTTP/1.2", 505),
            ("CONNECT a:443 HTTP/1.1", 501),
            ("GET * HTTP/1.1", 400),
        ] {
            assert_eq!(parse(&format!("{line}\r\nHost: a\r\n\r\n")), Err(status), "{line}");
        }
        assert_eq!(parse("get / HTTP/1.1\r\nHost: a\r\n\r\n").map(|request| request.method), Ok(Method::Other));
    }

    #[test]
    fn connections_persist_by_version_and_option() {
        for (head, expected) in [
            ("HTTP/1.1\r\nHost: a\r\n", true),
            ("HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n", false),
            ("HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n", false),
            ("HTTP/1.0\r\n", false),
            ("HTTP/1.0\r\nConnection: Keep-Alive\r\n", true),
        ] {
            assert_eq!(parse(&format!("GET / {head}\r\n")).map(|request| request.keep_alive), Ok(expected), "{head:?}");
        }
    }

    #[test]
    fn expectations() {
        for (head, expected) in [
            ("HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n", Ok(true)),
            ("HTTP/1.1\r\nHost: a\r\nExpect: 100-continue, x\r\n", Err(417)),
            ("HTTP/1.0\r\nExpect: 100-continue\r\n", Ok(false)),
        ] {
            assert_eq!(parse(&format!("PUT / {head}\r\n")).map(|r| r.expects_continue), expected, "{head:?}");
        }
    }

    #[test]
    fn query_values_are_decoded() {
        let request =
            parse("GET /get.php?username=a%20b&type=m3u+plus&username=c HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert_eq!(request.query_value("username").as_deref(), Some("a b"));
        assert_eq!(request.query_value("type").as_deref(), Some("m3u plus"));
        assert_eq!(request.query_value("password"), None);
    }

    #[test]
    fn a_scan_looks_at_each_byte_once() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let mut scan = HeadScan::default();
        for end in 1..head.len() {
            assert_eq!(scan.advance(&head[..end], &Limits::default()), Ok(Scanned::Partial));
            assert_eq!(scan.at, end);
        }
        assert_eq!(scan.advance(head, &Limits::default()), Ok(Scanned::Complete(head.len())));
    }

    #[test]
    fn a_scan_refuses_lines_that_do_not_end_with_crlf_and_control_characters() {
        for bad in ["GET / HTTP/1.1\n", "GET /\rx", "A\r\r", "\n", "a\0", "a\x0b", "a\x7f", "\x16\x03\x01"] {
            let scanned = HeadScan::default().advance(bad.as_bytes(), &Limits::default());
            assert_eq!(scanned.map_err(|fault| fault.status), Err(Status::BAD_REQUEST), "{bad:?}");
        }
    }
}
