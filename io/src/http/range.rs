//! Which part of something is asked for, and whether it is to be sent at all (RFC 9110 §13, §14).
//!
//! One part is sent, never `multipart/byteranges`: no player asks for that.

use std::fmt;
use std::time::UNIX_EPOCH;

use holdfast_core::input::Want;

use super::field::{FieldValue, Headers};
use super::head::{Method, Request};

/// How many ranges one request may name, and how many of them may overlap another (RFC 9110 §17.15).
const RANGES: usize = 16;
const OVERLAPS: usize = 2;

/// Some of the bytes of something whose length need not be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// `a-b`: from the first to the last, both counted from 0 and included; never in reverse.
    Between(u64, u64),
    /// `a-`: from there to the end.
    From(u64),
    /// `-n`: so many at the end.
    Last(u64),
}

/// What the `Range` of a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Everything: there is no range, or none that counts.
    Whole,
    /// One part.
    One(Span),
    /// Several parts, two at least.
    Several(Vec<Span>),
    /// More parts than anybody needs, or parts that lie upon each other: 416.
    Abuse,
}

/// What is sent to whoever asks for several parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Several {
    /// Everything.
    Whole,
    /// The first of the parts that is there.
    First,
}

/// What is known of something that may be sent.
#[derive(Clone, Copy, Debug)]
pub struct Representation<'a> {
    /// How many bytes it has.
    pub length: u64,
    /// Its entity tag, as it is written: `"…"`, with `W/` before it where it is weak.
    pub etag: Option<&'a str>,
    /// When it was modified last, in seconds since 1970.
    pub modified: Option<u64>,
    /// What time it is, in the same way: a date that is not past by a second yet does not tell two versions apart (§8.8.2.2).
    pub now: u64,
}

/// What comes of a request for something that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// 200: all of it.
    Full,
    /// 206: the bytes from the first to the last, both included.
    Part {
        /// Counted from 0.
        first: u64,
        /// Less than the length.
        last: u64,
    },
    /// 416 with [`ContentRange::Unsatisfied`].
    Unsatisfiable,
    /// 304.
    NotModified,
    /// 412.
    PreconditionFailed,
}

/// The value of a `Content-Range` (RFC 9110 §14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentRange {
    /// `bytes a-b/length`, or `bytes a-b/*`.
    Part {
        /// Counted from 0.
        first: u64,
        /// Included; less than the length.
        last: u64,
        /// Of the whole; `None` where the server does not know it.
        length: Option<u64>,
    },
    /// `bytes */length`: what a 416 says.
    Unsatisfied {
        /// Of the whole.
        length: u64,
    },
}

impl Span {
    /// The first and the last byte of it in something of this length; `None` where there are none.
    pub fn within(self, length: u64) -> Option<(u64, u64)> {
        let end = length.checked_sub(1)?;
        match self {
            Span::Between(first, last) if first <= end => Some((first, last.min(end))),
            Span::From(first) if first <= end => Some((first, end)),
            Span::Last(count @ 1..) => Some((length.saturating_sub(count), end)),
            _ => None,
        }
    }

    /// Whether it goes to the end, however far that is.
    pub fn is_open(self) -> bool {
        !matches!(self, Span::Between(..))
    }

    fn parse(text: &str) -> Option<Span> {
        let (first, last) = text.split_once('-')?;
        match (first.is_empty(), last.is_empty()) {
            (true, true) => None,
            (true, false) => number(last).map(Span::Last),
            (false, true) => number(first).map(Span::From),
            (false, false) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Span::Between(first, last))
            }
        }
    }

    /// As if nothing had an end, for telling whether two overlap.
    fn bounds(self) -> (u64, u64) {
        match self {
            Span::Between(first, last) => (first, last),
            Span::From(first) => (first, u64::MAX),
            Span::Last(count) => (u64::MAX - count, u64::MAX),
        }
    }
}

/// The value of a `Range` field that asks for this alone.
impl From<Span> for FieldValue {
    fn from(span: Span) -> Self {
        let value = match span {
            Span::Between(first, last) => format!("bytes={first}-{last}"),
            Span::From(first) => format!("bytes={first}-"),
            Span::Last(count) => format!("bytes=-{count}"),
        };
        FieldValue::new(value).expect("digits and dashes are a field value")
    }
}

impl Asked {
    /// Reads a request's `Range`. It means something with GET alone, in bytes, and only if every part of it is right (§14.2).
    pub fn of(request: &Request) -> Asked {
        let mut lines = request.headers.get_all("Range");
        match (request.method, lines.next(), lines.next()) {
            (Method::Get, Some(value), None) => Asked::parse(value),
            _ => Asked::Whole,
        }
    }

    /// Reads the value of a `Range` field.
    pub fn parse(value: &str) -> Asked {
        let Some((unit, set)) = value.split_once('=') else { return Asked::Whole };
        if !unit.eq_ignore_ascii_case("bytes") {
            return Asked::Whole;
        }
        let mut spans = Vec::new();
        for text in set.split(',').map(|text| text.trim_matches([' ', '\t'])).filter(|text| !text.is_empty()) {
            let Some(span) = Span::parse(text) else { return Asked::Whole };
            if spans.len() == RANGES {
                return Asked::Abuse;
            }
            spans.push(span);
        }
        match spans[..] {
            [] => Asked::Whole,
            [one] => Asked::One(one),
            _ if overlaps(&spans) > OVERLAPS => Asked::Abuse,
            _ => Asked::Several(spans),
        }
    }

    /// The one part to ask somebody else for who knows how long the whole is; `None` = everything.
    pub fn span(&self, several: Several) -> Option<Span> {
        match (self, several) {
            (Asked::One(span), _) => Some(*span),
            (Asked::Several(spans), Several::First) => spans.first().copied(),
            _ => None,
        }
    }

    /// Whether what is asked for goes to the end or has an end of its own.
    pub fn want(&self, several: Several) -> Want {
        if self.span(several).is_none_or(Span::is_open) { Want::Rest } else { Want::Part }
    }

    fn within(&self, length: u64, several: Several) -> Outcome {
        let part = |(first, last)| Outcome::Part { first, last };
        match self {
            Asked::Whole => Outcome::Full,
            Asked::Abuse => Outcome::Unsatisfiable,
            // All of nothing is no part that could be named.
            Asked::One(Span::Last(1..)) if length == 0 => Outcome::Full,
            Asked::One(span) => span.within(length).map_or(Outcome::Unsatisfiable, part),
            Asked::Several(spans) => match spans.iter().find_map(|span| span.within(length)) {
                None => Outcome::Unsatisfiable,
                Some(there) if several == Several::First => part(there),
                Some(_) => Outcome::Full,
            },
        }
    }
}

/// How many of these lie upon one before them.
fn overlaps(spans: &[Span]) -> usize {
    let meets = |a: Span, b: Span| {
        let ((a, a_end), (b, b_end)) = (a.bounds(), b.bounds());
        a <= b_end && b <= a_end
    };
    let later = |place: usize| spans[..place].iter().any(|earlier| meets(*earlier, spans[place]));
    (0..spans.len()).filter(|place| later(*place)).count()
}

/// Digits alone. What is more than a `u64` holds lies behind the end of everything.
fn number(digits: &str) -> Option<u64> {
    let right = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    right.then(|| digits.parse().unwrap_or(u64::MAX))
}

impl Representation<'_> {
    /// What a request gets of it: the conditions in their order (§13.2.2), then its range.
    pub fn outcome(&self, request: &Request, several: Several) -> Outcome {
        let headers = &request.headers;
        let looks = matches!(request.method, Method::Get | Method::Head);
        if headers.get("If-Match").is_some() {
            if !self.is_among(headers, "If-Match", Comparison::Strong) {
                return Outcome::PreconditionFailed;
            }
        } else if let (Some(date), Some(modified)) = (date(headers, "If-Unmodified-Since"), self.modified)
            && modified > date
        {
            return Outcome::PreconditionFailed;
        }
        if headers.get("If-None-Match").is_some() {
            if self.is_among(headers, "If-None-Match", Comparison::Weak) {
                return if looks { Outcome::NotModified } else { Outcome::PreconditionFailed };
            }
        } else if let (Some(date), Some(modified), true) = (date(headers, "If-Modified-Since"), self.modified, looks)
            && modified <= date
        {
            return Outcome::NotModified;
        }
        if !self.is_still(headers) {
            return Outcome::Full;
        }
        Asked::of(request).within(self.length, several)
    }

    /// Whether a condition names it.
    fn is_among(&self, headers: &Headers, name: &str, comparison: Comparison) -> bool {
        headers
            .get_all(name)
            .any(|value| value == "*" || self.etag.is_some_and(|own| tags(value).any(|tag| comparison.holds(tag, own))))
    }

    /// Whether the range is of what it is now (`If-Range`, §13.1.5).
    fn is_still(&self, headers: &Headers) -> bool {
        let mut lines = headers.get_all("If-Range");
        match (lines.next(), lines.next()) {
            (None, _) => true,
            (Some(value), None) if value.starts_with('"') || value.starts_with("W/") => {
                let mut tags = tags(value);
                let (tag, more) = (tags.next(), tags.next());
                more.is_none()
                    && tag
                        .zip(self.etag)
                        .is_some_and(|(tag, own)| tag.len() == value.len() && Comparison::Strong.holds(tag, own))
            }
            (Some(_), None) => {
                let date = date(headers, "If-Range");
                date.is_some() && date == self.modified && date.is_some_and(|date| date < self.now)
            }
            _ => false,
        }
    }
}

/// How two entity tags are compared (§8.8.3.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Strong,
    Weak,
}

impl Comparison {
    fn holds(self, a: &str, b: &str) -> bool {
        match self {
            Comparison::Strong => a == b && !a.starts_with("W/"),
            Comparison::Weak => a.trim_start_matches("W/") == b.trim_start_matches("W/"),
        }
    }
}

/// The entity tags of a list, up to the first that is none. A comma may be within one.
fn tags(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        text = text.trim_start_matches([' ', '\t', ',']);
        let quoted = text.strip_prefix("W/").unwrap_or(text).strip_prefix('"')?;
        let end = quoted.find('"')?;
        // RFC 9110 §8.8.3; what lies beyond ASCII is not told apart here.
        if quoted[..end].bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return None;
        }
        let (tag, rest) = text.split_at(text.len() - quoted.len() + end + 1);
        let rest = rest.trim_start_matches([' ', '\t']);
        text = if rest.is_empty() || rest.starts_with(',') { rest } else { "" };
        Some(tag)
    })
}

/// A date in seconds since 1970; one that cannot be read is as good as none.
fn date(headers: &Headers, name: &str) -> Option<u64> {
    let mut lines = headers.get_all(name);
    let (Some(value), None) = (lines.next(), lines.next()) else { return None };
    Some(httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

impl ContentRange {
    /// Reads a value; `None` for what is none, contradicts itself or counts something else than bytes.
    pub fn parse(value: &str) -> Option<ContentRange> {
        let (unit, rest) = value.split_once(' ')?;
        let (range, length) = rest.split_once('/')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        if range == "*" {
            return Some(ContentRange::Unsatisfied { length: number(length)? });
        }
        let (first, last) = range.split_once('-')?;
        let (first, last) = (number(first)?, number(last)?);
        let length = if length == "*" { None } else { Some(number(length)?) };
        let right = first <= last && last < length.unwrap_or(u64::MAX);
        right.then_some(ContentRange::Part { first, last, length })
    }

    /// Whether that can be the answer to whoever asked for this: it begins where it was to begin, and does not go beyond.
    /// A part may be shorter than it was asked for (§15.3.7).
    pub fn answers(&self, span: Span) -> bool {
        let ContentRange::Part { first, last, length } = *self else { return false };
        match (span, length) {
            (Span::Between(from, to), _) => first == from && last <= to,
            (Span::From(from), _) => first == from,
            (Span::Last(_), Some(length)) => span.within(length).is_some_and(|(from, to)| first == from && last <= to),
            (Span::Last(count), None) => last - first < count,
        }
    }
}

impl fmt::Display for ContentRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContentRange::Part { first, last, length: Some(length) } => write!(f, "bytes {first}-{last}/{length}"),
            ContentRange::Part { first, last, length: None } => write!(f, "bytes {first}-{last}/*"),
            ContentRange::Unsatisfied { length } => write!(f, "bytes */{length}"),
        }
    }
}

impl From<ContentRange> for FieldValue {
    fn from(range: ContentRange) -> Self {
        FieldValue::new(range.to_string()).expect("digits, dashes and slashes are a field value")
    }
}

#[cfg(test)]
#[path = "range_tests.rs"]
mod tests;
