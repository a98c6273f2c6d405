//! What a client is told of what a provider answers (RFC 9110 §14, §15; spec: playback §8, protocols §4.3).

use holdfast_core::input::Failure;

use super::{Size, What};
use crate::http::client::ResponseHead;
use crate::http::field::{ACCEPT_RANGES, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, ETAG, FieldName, LAST_MODIFIED};
use crate::http::range::{ContentRange, Span};
use crate::http::{Body, FieldValue, Response, Status};

/// How many bytes are read and thrown away for whoever asks a provider that knows no ranges for what lies behind them.
const SKIP: u64 = 8 * 1024 * 1024;

/// Fields of an answer that are the client's as well. The others say something of the connection, or of the provider.
const KEPT: [FieldName; 4] = [CONTENT_TYPE, ETAG, LAST_MODIFIED, CACHE_CONTROL];

/// What was asked of a provider.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub what: What,
    pub span: Option<Span>,
    /// The version of which alone a part was asked for (`If-Range`).
    pub version: Option<&'a str>,
}

/// What comes of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is passed on.
    Pass(Box<Pass>),
    /// It is a playlist, as it was to be.
    Document,
    /// It says what was to be known.
    Known(Size),
    /// What was asked for is not there; the answer says how much is.
    Unsatisfiable(Option<ContentRange>),
    /// It is of another version than the part was asked for, which the provider did not mind: all of it is to be fetched.
    Changed,
    /// It is of no use.
    Failed(Failure, String),
}

/// An answer that is passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    pub status: Status,
    pub fields: Vec<(FieldName, FieldValue)>,
    /// So many bytes of it are not wanted.
    pub skip: u64,
    /// How many bytes follow these; `None` = all that come.
    pub length: Option<u64>,
    /// What it says of the title as a whole.
    pub size: Size,
}

impl Pass {
    pub fn response(&self) -> Response {
        let response = Response::new(self.status).body(self.length.map_or(Body::Stream, Body::Sized));
        self.fields.iter().fold(response, |response, (name, value)| response.header(*name, value.clone()))
    }
}

/// What comes of an answer that is no redirect.
pub(super) fn judge(asked: Asked<'_>, head: &ResponseHead) -> Verdict {
    match (head.status, asked.what) {
        (200 | 206, What::Playlist) => Verdict::Document,
        (200, What::Look) => Verdict::Known(Size { length: length(head), fields: with_ranges(kept(head), "none") }),
        (206, What::Look) => match content_range(head) {
            Some(ContentRange::Part { length, .. }) => {
                Verdict::Known(Size { length, fields: with_ranges(kept(head), "bytes") })
            }
            _ => unusable("the provider answers 206 and does not say which part that is"),
        },
        (200, _) => whole(asked, head),
        (206, _) => part(asked, head),
        (416, What::Media | What::Aside) if asked.span.is_some() && asked.version.is_some() => Verdict::Changed,
        (416, What::Media | What::Aside) if asked.span.is_some() => {
            let range = content_range(head).filter(|range| matches!(range, ContentRange::Unsatisfied { .. }));
            Verdict::Unsatisfiable(range)
        }
        (508, _) => {
            let why = "the provider answers 508: what is there leads back to this server, in a circle";
            Verdict::Failed(Failure::Status(508), why.to_owned())
        }
        (status @ 400..=599, _) => Verdict::Failed(Failure::Status(status), format!("the provider answers {status}")),
        (status, _) => unusable(&format!("the provider answers {status}")),
    }
}

/// All of it, whatever was asked for. Who asked for what lies behind its beginning gets that, if it is not too far.
fn whole(asked: Asked<'_>, head: &ResponseHead) -> Verdict {
    let (length, fields) = (length(head), kept(head));
    let mut size = Size { length, fields: with_ranges(fields.clone(), "none") };
    let accepted = head.headers.get("Accept-Ranges").map(str::trim);
    if accepted.is_some_and(|unit| unit.eq_ignore_ascii_case("bytes")) {
        size.fields = with_ranges(fields.clone(), "bytes");
    }
    let pass = |status, fields, skip, length| {
        Verdict::Pass(Box::new(Pass { status, fields, skip, length, size: size.clone() }))
    };
    let from_start = matches!(asked.span, None | Some(Span::From(0)));
    match (asked.span, length) {
        _ if from_start || asked.version.is_some() => pass(Status::OK, size.fields.clone(), 0, length),
        (Some(span), Some(length)) => match span.within(length) {
            Some((first, _)) if first > SKIP => {
                unusable("the provider knows no ranges, and what was asked for lies too far behind the beginning")
            }
            Some((first, last)) => {
                let range = ContentRange::Part { first, last, length: Some(length) };
                let mut fields = fields;
                fields.push((CONTENT_RANGE, range.into()));
                pass(Status::PARTIAL_CONTENT, fields, first, Some(last - first + 1))
            }
            None => Verdict::Unsatisfiable(Some(ContentRange::Unsatisfied { length })),
        },
        (Some(Span::Between(0, _)), None) => pass(Status::OK, size.fields.clone(), 0, None),
        _ => unusable("the provider knows no ranges and does not say how long this is"),
    }
}

/// A part, which has to be the one that was asked for.
fn part(asked: Asked<'_>, head: &ResponseHead) -> Verdict {
    let Some(span) = asked.span else { return unusable("the provider answers with a part, which was not asked for") };
    let Some(range @ ContentRange::Part { first, last, length: all }) = content_range(head) else {
        return unusable("the provider answers with a part and does not say with which");
    };
    if !range.answers(span) {
        return unusable("the provider answers with another part than was asked for");
    }
    if asked.version.is_some_and(|version| is_other(version, head)) {
        return Verdict::Changed;
    }
    let count = last - first + 1;
    if length(head).is_some_and(|length| length != count) {
        return unusable("the provider contradicts itself: Content-Range and Content-Length of its answer differ");
    }
    let size = Size { length: all, fields: with_ranges(kept(head), "bytes") };
    let mut fields = size.fields.clone();
    fields.push((CONTENT_RANGE, range.into()));
    Verdict::Pass(Box::new(Pass { status: Status::PARTIAL_CONTENT, fields, skip: 0, length: Some(count), size }))
}

/// Whether a part says that it is of another version than this (RFC 9110 §13.1.5). A provider that says nothing of versions is taken
/// to have looked itself.
fn is_other(version: &str, head: &ResponseHead) -> bool {
    let version = version.trim();
    let name = if version.starts_with('"') || version.starts_with("W/") { ETAG } else { LAST_MODIFIED };
    // Weak ones do not tell whether bytes fit together.
    head.headers.get(name.as_str()).is_some_and(|own| own.trim() != version || version.starts_with("W/"))
}

fn unusable(why: &str) -> Verdict {
    Verdict::Failed(Failure::Unusable, why.to_owned())
}

/// How many bytes follow, if the head says so. That it says one thing was looked at where its framing is.
fn length(head: &ResponseHead) -> Option<u64> {
    head.headers.get("Content-Length")?.split(',').next()?.trim().parse().ok()
}

fn content_range(head: &ResponseHead) -> Option<ContentRange> {
    let mut all = head.headers.get_all("Content-Range");
    let (Some(value), None) = (all.next(), all.next()) else { return None };
    ContentRange::parse(value)
}

fn kept(head: &ResponseHead) -> Vec<(FieldName, FieldValue)> {
    let field = |name: FieldName| {
        let said = head.headers.get(name.as_str())?;
        if name == CONTENT_TYPE && is_page(said) {
            return Some((name, FieldValue::from_static("application/octet-stream")));
        }
        Some((name, FieldValue::new(said).ok()?))
    };
    KEPT.into_iter().filter_map(field).collect()
}

/// Whether a browser would show it as a page of this server's, with scripts that may do here what the viewer may.
fn is_page(content_type: &str) -> bool {
    let kind = content_type.split([';', ',']).next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(
        kind.as_str(),
        "text/html" | "application/xhtml+xml" | "image/svg+xml" | "text/xml" | "application/xml" | "text/xsl"
    )
}

/// Whether it is called a page, or what programs tell one another, where all of a title was to come: how panels answer whom they do
/// not let in. It may be media all the same, since that is what scripts call everything that they send (PHP, where nothing is said):
/// [`is_text`] decides, where something of it comes. A part of something is no page.
pub(super) fn may_be_page(asked: Asked<'_>, head: &ResponseHead) -> bool {
    let said = head.headers.get("Content-Type").unwrap_or_default();
    let json = said.trim_start().to_ascii_lowercase().starts_with("application/json");
    head.status == 200 && matches!(asked.what, What::Media | What::Look) && (is_page(said) || json)
}

/// Whether something begins as pages do, and no media: with a tag or a bracket, behind blank space at most. Nothing is no media either.
pub(in crate::server) fn is_text(beginning: &[u8]) -> bool {
    let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
    matches!(beginning.first(), None | Some(b'<' | b'{' | b'['))
}

fn with_ranges(mut fields: Vec<(FieldName, FieldValue)>, unit: &'static str) -> Vec<(FieldName, FieldValue)> {
    fields.push((ACCEPT_RANGES, FieldValue::from_static(unit)));
    fields
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
