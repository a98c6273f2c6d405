use std::borrow::Cow;

use super::fault::Fault;
use crate::http::field::Headers;
use crate::http::head::{Version, keeps_alive};

/// Bytes of a head, its empty line included.
pub(super) const HEAD: usize = 32 * 1024;
/// Header fields of an answer.
pub(super) const FIELDS: usize = 100;

/// What an origin answers, before its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code, 200 to 999. What is not known counts as the x00 of its class (RFC 9110 §15).
    pub status: u16,
    /// The fields. A folded one is one line, with spaces.
    pub headers: Headers,
}

/// Where the content ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    UntilEnd,
}

/// An answer's head and what follows from it.
pub(super) struct Answer {
    pub head: ResponseHead,
    pub framing: Framing,
    /// Whether the origin means to take another request on this connection.
    pub keep_alive: bool,
}

pub(super) enum Parsed {
    /// A 1xx: the answer proper comes behind it.
    Interim,
    Final(Answer),
}

impl Answer {
    /// Reads a whole head, as [`Scan`] found it.
    pub(super) fn parse(head: &[u8]) -> Result<Parsed, Fault> {
        // Shoutcast answers as HTTP/1.0 does, but for the name of the protocol.
        let head: Cow<'_, [u8]> = match head.strip_prefix(ICY) {
            Some(rest) => [b"HTTP/1.0 ", rest].concat().into(),
            None => head.into(),
        };
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut parsed = httparse::Response::new(&mut fields);
        let mut config = httparse::ParserConfig::default();
        // RFC 9112 §5.1 and §5.2: a proxy removes such whitespace and replaces folding, in answers.
        config.allow_spaces_after_header_name_in_responses(true).allow_obsolete_multiline_headers_in_responses(true);
        match config.parse_response(&mut parsed, &head) {
            Ok(httparse::Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => return Err(Fault::HeadTooLarge),
            Err(httparse::Error::Version) => return Err(Fault::NotHttp),
            Err(httparse::Error::HeaderName | httparse::Error::HeaderValue) => {
                return Err(Fault::Head("a header field of the answer is not a name, a colon and a value"));
            }
            _ => return Err(Fault::Head("the status line of the answer is not HTTP/1.1, a space and three digits")),
        }
        let (Some(status @ 100..), Some(minor)) = (parsed.code, parsed.version) else {
            return Err(Fault::Head("the status of the answer is less than 100"));
        };
        match status {
            101 => return Err(Fault::Head("the origin switches to a protocol that was not asked for")),
            100..200 => return Ok(Parsed::Interim),
            _ => {}
        }
        let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
        let mut headers = Headers::default();
        for field in &*parsed.headers {
            headers.push(field.name, &unfold(field.value));
        }
        if (200..300).contains(&status) {
            refuse_coding(&headers)?;
        }
        let framing = framing(status, version, &headers)?;
        let keep_alive = keeps_alive(&headers, version);
        Ok(Parsed::Final(Answer { head: ResponseHead { status, headers }, framing, keep_alive }))
    }
}

fn unfold(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        return value.into();
    }
    value.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect()
}

/// Content that is not as it was asked for. With other statuses it is nothing that anybody plays.
fn refuse_coding(headers: &Headers) -> Result<(), Fault> {
    let Some(coding) = headers.list("Content-Encoding").find(|coding| !coding.eq_ignore_ascii_case("identity")) else {
        return Ok(());
    };
    let is_name = coding.len() <= 32 && coding.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    Err(Fault::ContentCoding(if is_name { coding.to_ascii_lowercase() } else { "something unknown".into() }))
}

/// RFC 9112 §6.3, for the answer to a GET.
fn framing(status: u16, version: Version, headers: &Headers) -> Result<Framing, Fault> {
    if matches!(status, 204 | 304) {
        return Ok(Framing::Length(0));
    }
    let length = length(headers)?;
    let mut codings = headers.list("Transfer-Encoding");
    let Some(coding) = codings.next() else {
        return Ok(length.map_or(Framing::UntilEnd, Framing::Length));
    };
    let fault = |why: &'static str| Err(Fault::Framing(why.into()));
    if length.is_some() {
        return fault("an answer has Content-Length or Transfer-Encoding, not both");
    }
    if version == Version::Http10 {
        return fault("an HTTP/1.0 answer has no Transfer-Encoding");
    }
    if !coding.eq_ignore_ascii_case("chunked") || codings.next().is_some() {
        return fault("the only transfer coding that is understood is chunked, once");
    }
    Ok(Framing::Chunked)
}

/// Several of the same value count as one (RFC 9110 §8.6).
fn length(headers: &Headers) -> Result<Option<u64>, Fault> {
    let mut lengths = headers.get_all("Content-Length").flat_map(|value| value.split(',')).map(|value| {
        let value = value.trim();
        // `u64::from_str` would take a plus sign.
        if value.bytes().all(|byte| byte.is_ascii_digit()) { value.parse().ok() } else { None }
    });
    let Some(first) = lengths.next() else { return Ok(None) };
    match first {
        Some(_) if lengths.all(|other| other == first) => Ok(first),
        _ => Err(Fault::Framing("Content-Length of an answer is one decimal number".into())),
    }
}

const HTTP: &[u8] = b"HTTP/1.";
const ICY: &[u8] = b"ICY ";

/// Looks for the end of a head, each byte once, and gives up at the first that cannot belong to one.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// How many bytes were looked at.
    at: usize,
    /// Where the present line begins.
    line: usize,
}

impl Scan {
    /// The length of the head with its empty line, once it is there. `input` is all that came of it.
    pub(super) fn advance(&mut self, input: &[u8]) -> Result<Option<usize>, Fault> {
        while let Some(&byte) = input.get(self.at) {
            if self.at == HEAD {
                return Err(Fault::HeadTooLarge);
            }
            self.at += 1;
            let begun = &input[..self.at];
            let fits = |name: &[u8]| begun.starts_with(name) || name.starts_with(begun);
            if self.at <= HTTP.len() && !fits(HTTP) && !fits(ICY) {
                return Err(foreign(begun));
            }
            if byte != b'\n' {
                continue;
            }
            if matches!(&input[self.line..self.at], b"\n" | b"\r\n") {
                return Ok(Some(self.at));
            }
            self.line = self.at;
        }
        Ok(None)
    }
}

/// What speaks like this, told by no more than it takes to know that it is not HTTP/1.
fn foreign(begun: &[u8]) -> Fault {
    match begun {
        // A record of TLS: an alert, or a handshake (RFC 8446 §5.1).
        [0x14..=0x17] => Fault::Tls,
        // The length of a SETTINGS frame begins with 0 (RFC 9113 §4.1); so does nothing that is text.
        [0] | b"HTTP/2" => Fault::Http2,
        _ => Fault::NotHttp,
    }
}

#[cfg(test)]
impl ResponseHead {
    pub(super) fn of(status: u16, fields: &[(&str, &str)]) -> Self {
        let mut headers = Headers::default();
        for (name, value) in fields {
            headers.push(name, value.as_bytes());
        }
        ResponseHead { status, headers }
    }
}
