//! Answers.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::Serialize;

use super::fault::Fault;
use super::field::{self, FieldName, FieldValue};

/// A status code (RFC 9110 §15) that Holdfast answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u16);

macro_rules! statuses {
    ($($constant:ident = $code:literal $reason:literal;)*) => {
        impl Status {
            $(#[doc = concat!("`", stringify!($code), " ", $reason, "`")] pub const $constant: Status = Status($code);)*

            /// The reason phrase.
            pub fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)*
                    _ => "",
                }
            }
        }
    };
}

statuses! {
    OK = 200 "OK";
    CREATED = 201 "Created";
    NO_CONTENT = 204 "No Content";
    PARTIAL_CONTENT = 206 "Partial Content";
    FOUND = 302 "Found";
    NOT_MODIFIED = 304 "Not Modified";
    TEMPORARY_REDIRECT = 307 "Temporary Redirect";
    BAD_REQUEST = 400 "Bad Request";
    UNAUTHORIZED = 401 "Unauthorized";
    FORBIDDEN = 403 "Forbidden";
    NOT_FOUND = 404 "Not Found";
    METHOD_NOT_ALLOWED = 405 "Method Not Allowed";
    REQUEST_TIMEOUT = 408 "Request Timeout";
    CONFLICT = 409 "Conflict";
    GONE = 410 "Gone";
    PRECONDITION_FAILED = 412 "Precondition Failed";
    CONTENT_TOO_LARGE = 413 "Content Too Large";
    URI_TOO_LONG = 414 "URI Too Long";
    UNSUPPORTED_MEDIA_TYPE = 415 "Unsupported Media Type";
    RANGE_NOT_SATISFIABLE = 416 "Range Not Satisfiable";
    EXPECTATION_FAILED = 417 "Expectation Failed";
    UNPROCESSABLE_CONTENT = 422 "Unprocessable Content";
    PRECONDITION_REQUIRED = 428 "Precondition Required";
    TOO_MANY_REQUESTS = 429 "Too Many Requests";
    REQUEST_HEADER_FIELDS_TOO_LARGE = 431 "Request Header Fields Too Large";
    INTERNAL_SERVER_ERROR = 500 "Internal Server Error";
    NOT_IMPLEMENTED = 501 "Not Implemented";
    BAD_GATEWAY = 502 "Bad Gateway";
    SERVICE_UNAVAILABLE = 503 "Service Unavailable";
    GATEWAY_TIMEOUT = 504 "Gateway Timeout";
    LOOP_DETECTED = 508 "Loop Detected";
    HTTP_VERSION_NOT_SUPPORTED = 505 "HTTP Version Not Supported";
}

impl Status {
    /// That of another server's answer which is passed on, known here or not; `None` unless it says that something is wrong.
    pub fn of_error(code: u16) -> Option<Status> {
        (400..=599).contains(&code).then_some(Status(code))
    }

    /// The three digits.
    pub fn code(self) -> u16 {
        self.0
    }

    /// Whether an answer with this status can have content (RFC 9110 §6.4.1).
    pub fn has_content(self) -> bool {
        !matches!(self, Status::NO_CONTENT | Status::NOT_MODIFIED)
    }
}

/// What follows the head of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing; `Content-Length: 0`.
    Empty,
    /// These bytes.
    Full(Bytes),
    /// So many bytes, which the server writes by itself behind the head ([`Connection::wrote_own`](super::Connection::wrote_own)).
    Sized(u64),
    /// Whatever the server writes by itself behind the head, until the connection ends: no `Content-Length`.
    Stream,
    /// The same, in chunks (RFC 9112 §7.1) where the client knows those ([`Connection::chunk`](super::Connection::chunk)): it can tell
    /// the end from a connection that broke.
    Chunks,
}

/// An answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub(super) status: Status,
    pub(super) fields: Vec<(FieldName, FieldValue)>,
    pub(super) body: Body,
    pub(super) close: bool,
}

impl Response {
    /// An answer without content.
    pub fn new(status: Status) -> Self {
        Response { status, fields: Vec::new(), body: Body::Empty, close: false }
    }

    /// An answer that describes what went wrong (RFC 9457). `kind` is the word for it, which clients may rely on: the
    /// member `reason`, and the last part of `type`.
    pub fn problem(status: Status, kind: &str, title: &str, detail: &str) -> Self {
        #[derive(Serialize)]
        struct Problem<'a> {
            r#type: String,
            title: &'a str,
            status: u16,
            reason: &'a str,
            detail: &'a str,
        }
        let problem =
            Problem { r#type: format!("/problems/{kind}"), title, status: status.code(), reason: kind, detail };
        let json = serde_json::to_vec(&problem).expect("a map of strings and a number is JSON");
        Response::new(status)
            .header(field::CONTENT_TYPE, FieldValue::from_static("application/problem+json"))
            .body(Body::Full(json.into()))
    }

    /// Adds a field behind those already there.
    #[must_use]
    pub fn header(mut self, name: FieldName, value: FieldValue) -> Self {
        self.fields.push((name, value));
        self
    }

    /// Sets the content.
    #[must_use]
    pub fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    /// Ends the connection after this answer.
    #[must_use]
    pub fn close(mut self) -> Self {
        self.close = true;
        self
    }

    /// Its status.
    pub fn status(&self) -> Status {
        self.status
    }
}

impl From<&Fault> for Response {
    fn from(fault: &Fault) -> Self {
        Response::problem(fault.status, "request", fault.status.reason(), &fault.detail)
    }
}

/// The value of a `Date` field: 29 bytes, whole seconds (RFC 9110 §5.6.7). The caller has the clock; one can serve all
/// answers of its second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Date(String);

impl Date {
    /// `seconds` after 1970-01-01T00:00:00Z; what lies beyond the year 9999 is written as its last second.
    pub fn from_unix(seconds: u64) -> Self {
        const LAST: u64 = 253_402_300_799;
        Date(httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.min(LAST))))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_imf_fixdate_at_any_time() {
        assert_eq!(Date::from_unix(784_111_777).as_str(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(Date::from_unix(u64::MAX).as_str(), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn a_problem_is_json_whatever_its_words() {
        let problem = Response::problem(Status::SERVICE_UNAVAILABLE, "holder-live", "Slot \"1\"\r\n", "taken");
        let Body::Full(json) = &problem.body else { panic!("no body") };
        let value: serde_json::Value = serde_json::from_slice(json).unwrap();
        assert_eq!(
            value,
            serde_json::json!({
                "type": "/problems/holder-live", "title": "Slot \"1\"\r\n", "status": 503,
                "reason": "holder-live", "detail": "taken"
            })
        );
        assert_eq!(problem.fields[0].1.as_str(), "application/problem+json");
    }
}
