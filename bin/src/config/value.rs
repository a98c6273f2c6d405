//! How a value is written: one [`Kind`] for each way, with the bounds it keeps.
//!
//! The same kinds read a file and the environment, and write the sample and what is effective.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use holdfast_io::origin::{Origin, shown_path};
use holdfast_io::ovt::Generation;
use toml::Spanned;
use toml::de::DeValue;
use url::Url;

use super::Ports;
use super::fault::printable;

/// A value as it was written.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    /// In a file.
    Toml(&'a Spanned<DeValue<'a>>),
    /// In an environment variable: texts and numbers as they are, lists with commas.
    Variable(&'a str),
}

/// Why a value cannot be used.
pub(super) struct Wrong {
    /// Which element of a list it is about.
    pub(super) element: Option<usize>,
    /// Where in the file that element stands, in bytes.
    pub(super) offset: Option<usize>,
    pub(super) wrong: String,
    pub(super) right: String,
}

impl Wrong {
    pub(super) fn new(wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Wrong { element: None, offset: None, wrong: wrong.into(), right: right.into() }
    }
}

impl<'a> Value<'a> {
    fn text(self, right: &str) -> Result<&'a str, Wrong> {
        match self {
            Value::Variable(text) => Ok(text),
            Value::Toml(value) => value.get_ref().as_str().ok_or_else(|| self.is_a("text", right)),
        }
    }

    fn integer(self, right: &str) -> Result<u64, Wrong> {
        let (digits, radix) = match self {
            Value::Variable(text) => (text, 10),
            Value::Toml(value) => match value.get_ref() {
                DeValue::Integer(integer) => (integer.as_str(), integer.radix()),
                _ => return Err(self.is_a("a whole number", right)),
            },
        };
        u64::from_str_radix(digits, radix)
            .map_err(|_| Wrong::new(format!("`{}` is not a number from 0 up", printable(digits)), right))
    }

    fn list(self, right: &str) -> Result<Vec<Value<'a>>, Wrong> {
        match self {
            Value::Variable(text) => {
                Ok(text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Value::Variable).collect())
            }
            Value::Toml(value) => match value.get_ref().as_array() {
                Some(array) => Ok(array.iter().map(Value::Toml).collect()),
                None => Err(self.is_a("a list", right)),
            },
        }
    }

    /// The elements of a list in a file, and where they stand, in bytes.
    pub(super) fn element_offsets(self) -> impl Iterator<Item = usize> {
        let array = match self {
            Value::Toml(value) => value.get_ref().as_array(),
            Value::Variable(_) => None,
        };
        array.into_iter().flat_map(|array| array.iter().map(|element| element.span().start))
    }

    fn offset(self) -> Option<usize> {
        match self {
            Value::Toml(value) => Some(value.span().start),
            Value::Variable(_) => None,
        }
    }

    fn is_a(self, wanted: &str, right: &str) -> Wrong {
        let found = match self {
            Value::Toml(value) => value.get_ref().type_str(),
            Value::Variable(_) => "text",
        };
        Wrong::new(format!("is of type {found} where {wanted} is wanted"), right)
    }
}

/// One way of writing a `V`.
pub(super) trait Kind<V> {
    /// Reads and checks a value.
    fn read(&self, value: Value<'_>) -> Result<V, Wrong>;
    /// The value in TOML, so that reading it gives the same again (but for [`Secret`]s, which are never shown).
    fn show(&self, value: &V) -> String;
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A whole number within these bounds.
pub(super) struct Count(pub(super) u64, pub(super) u64);

impl<V> Kind<V> for Count
where
    V: Copy + TryFrom<u64>,
    u64: TryFrom<V>,
{
    fn read(&self, value: Value<'_>) -> Result<V, Wrong> {
        let Count(least, most) = self;
        let right = format!("write a whole number from {least} to {most}");
        let count = value.integer(&right)?;
        if count < *least || count > *most {
            return Err(Wrong::new(format!("{count} is out of bounds"), right));
        }
        V::try_from(count).map_err(|_| Wrong::new(format!("{count} is out of bounds"), right))
    }

    fn show(&self, value: &V) -> String {
        u64::try_from(*value).unwrap_or(u64::MAX).to_string()
    }
}

/// A length of time within these bounds, such as "2s", "100ms" or "1m30s".
pub(super) struct Span(pub(super) Duration, pub(super) Duration);

const SPAN_UNITS: [(&str, u64); 5] =
    [("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1000), ("us", 1)];
const SPAN_RIGHT: &str = r#"write numbers with h, m, s, ms or us, such as "2s", "100ms" or "1m30s""#;

impl Kind<Duration> for Span {
    fn read(&self, value: Value<'_>) -> Result<Duration, Wrong> {
        let text = value.text(SPAN_RIGHT)?;
        let span = parse_span(text)
            .ok_or_else(|| Wrong::new(format!("\"{}\" is not a length of time", printable(text)), SPAN_RIGHT))?;
        let Span(least, most) = self;
        if span < *least || span > *most {
            let wrong = format!("{} is too {}", show_span(span), if span < *least { "short" } else { "long" });
            return Err(Wrong::new(wrong, format!("write {} to {}", show_span(*least), show_span(*most))));
        }
        Ok(span)
    }

    fn show(&self, value: &Duration) -> String {
        quoted(&show_span(*value))
    }
}

/// This word, or a length of time.
pub(super) struct SpanOr(pub(super) &'static str, pub(super) Span);

impl Kind<Option<Duration>> for SpanOr {
    fn read(&self, value: Value<'_>) -> Result<Option<Duration>, Wrong> {
        let SpanOr(word, span) = self;
        if value.text(SPAN_RIGHT).is_ok_and(|text| text == *word) {
            return Ok(None);
        }
        let or = |wrong: Wrong| Wrong { right: format!("{}; or \"{word}\"", wrong.right), ..wrong };
        span.read(value).map(Some).map_err(or)
    }

    fn show(&self, value: &Option<Duration>) -> String {
        value.map_or_else(|| quoted(self.0), |span| self.1.show(&span))
    }
}

fn parse_span(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut micros: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = leading_number(rest)?;
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        let (_, scale) = SPAN_UNITS.iter().find(|(name, _)| *name == unit)?;
        micros = micros.checked_add(number.checked_mul(*scale)?)?;
        rest = next.trim_start();
    }
    Some(Duration::from_micros(micros))
}

/// `span` as people write it; whole microseconds.
pub(super) fn show_span(span: Duration) -> String {
    let mut micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    if micros == 0 {
        return String::from("0s");
    }
    let mut text = String::new();
    for (unit, scale) in SPAN_UNITS {
        if micros >= scale {
            text.push_str(&format!("{}{unit}", micros / scale));
            micros %= scale;
        }
    }
    text
}

/// A number and what stands behind it.
fn leading_number(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, after) = text.split_at(digits);
    Some((number.parse().ok()?, after.trim_start()))
}

fn parse_scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = leading_number(text.trim())?;
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*scale)
}

/// The number with the first unit that leaves a whole number; units stand with the largest of each value first.
fn show_scaled(value: u64, units: &[(&str, u64)]) -> String {
    let (unit, scale) =
        units.iter().find(|(_, scale)| value >= *scale && value.is_multiple_of(*scale)).unwrap_or(&("", 1));
    format!("{} {unit}", value / scale).trim_end().to_owned()
}

/// A number of bytes within these bounds, such as "16 MiB".
pub(super) struct Size(pub(super) u64, pub(super) u64);

const SIZE_UNITS: [(&str, u64); 9] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1000),
    ("KB", 1000),
    ("", 1),
];

impl<V> Kind<V> for Size
where
    V: Copy + TryFrom<u64>,
    u64: TryFrom<V>,
{
    fn read(&self, value: Value<'_>) -> Result<V, Wrong> {
        let Size(least, most) = self;
        let right = format!(
            r#"write {} to {} with a unit, such as "16 KiB" or "4 MiB""#,
            show_scaled(*least, &SIZE_UNITS),
            show_scaled(*most, &SIZE_UNITS)
        );
        read_scaled(value, "size", &right, *least..=*most, &SIZE_UNITS)
    }

    fn show(&self, value: &V) -> String {
        quoted(&show_scaled(u64::try_from(*value).unwrap_or(u64::MAX), &SIZE_UNITS))
    }
}

/// A number of bits per second within these bounds, such as "4M" or "4 Mbit/s".
pub(super) struct Rate(pub(super) u64, pub(super) u64);

const RATE_UNITS: [(&str, u64); 8] = [
    ("Gbit/s", 1_000_000_000),
    ("Mbit/s", 1_000_000),
    ("kbit/s", 1000),
    ("bit/s", 1),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("k", 1000),
    ("", 1),
];

impl Kind<u64> for Rate {
    fn read(&self, value: Value<'_>) -> Result<u64, Wrong> {
        let Rate(least, most) = self;
        let right = format!(
            r#"write {} to {}, such as "4M" or "800 kbit/s""#,
            show_scaled(*least, &RATE_UNITS),
            show_scaled(*most, &RATE_UNITS)
        );
        read_scaled(value, "bit rate", &right, *least..=*most, &RATE_UNITS)
    }

    fn show(&self, value: &u64) -> String {
        quoted(&show_scaled(*value, &RATE_UNITS))
    }
}

fn read_scaled<V: TryFrom<u64>>(
    value: Value<'_>,
    what: &str,
    right: &str,
    bounds: std::ops::RangeInclusive<u64>,
    units: &[(&str, u64)],
) -> Result<V, Wrong> {
    let text = value.text(right)?;
    let number = parse_scaled(text, units)
        .ok_or_else(|| Wrong::new(format!("\"{}\" is not a {what}", printable(text)), right))?;
    let out = || Wrong::new(format!("\"{}\" is out of bounds", printable(text)), right);
    if !bounds.contains(&number) {
        return Err(out());
    }
    V::try_from(number).map_err(|_| out())
}

/// One of these words.
pub(super) struct Words<V: 'static>(pub(super) &'static [(&'static str, V)]);

impl<V: Copy + PartialEq> Kind<V> for Words<V> {
    fn read(&self, value: Value<'_>) -> Result<V, Wrong> {
        let words: Vec<String> = self.0.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let right = format!("write {}", words.join(" or "));
        let text = value.text(&right)?;
        let known = self.0.iter().find(|(word, _)| *word == text);
        known
            .map(|(_, value)| *value)
            .ok_or_else(|| Wrong::new(format!("\"{}\" is not known here", printable(text)), right))
    }

    fn show(&self, value: &V) -> String {
        quoted(self.0.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word))
    }
}

/// `true` or `false`.
pub(super) struct Flag;

impl Kind<bool> for Flag {
    fn read(&self, value: Value<'_>) -> Result<bool, Wrong> {
        let right = "write true or false";
        match value {
            Value::Variable("true") => Ok(true),
            Value::Variable("false") => Ok(false),
            Value::Variable(text) => {
                Err(Wrong::new(format!("\"{}\" is neither true nor false", printable(text)), right))
            }
            Value::Toml(toml) => toml.get_ref().as_bool().ok_or_else(|| value.is_a("true or false", right)),
        }
    }

    fn show(&self, value: &bool) -> String {
        value.to_string()
    }
}

/// A whole number, or "forever".
pub(super) struct Retries;

impl Kind<Option<u32>> for Retries {
    fn read(&self, value: Value<'_>) -> Result<Option<u32>, Wrong> {
        let right = format!("write \"forever\", or a whole number from 0 to {}", u32::MAX);
        match value {
            Value::Variable(text) if text != "forever" => {}
            Value::Toml(toml) if toml.get_ref().as_str().is_none() => {}
            text => {
                return match text.text(&right)? {
                    "forever" => Ok(None),
                    other => Err(Wrong::new(format!("\"{}\" is not known here", printable(other)), right)),
                };
            }
        }
        let count = value.integer(&right)?;
        let count = u32::try_from(count).map_err(|_| Wrong::new(format!("{count} is out of bounds"), right))?;
        Ok(Some(count))
    }

    fn show(&self, value: &Option<u32>) -> String {
        value.map_or_else(|| quoted("forever"), |count| count.to_string())
    }
}

/// The URL of a source. What may be a secret in it is neither shown nor repeated in messages.
pub(super) struct Source;

impl Kind<Origin> for Source {
    fn read(&self, value: Value<'_>) -> Result<Origin, Wrong> {
        let right = "write the URL of a source, such as \"http://origin.example/live.ts\"";
        let text = value.text(right)?;
        if text.len() > 2048 {
            return Err(Wrong::new(format!("has {} bytes", text.len()), "a URL has at most 2048"));
        }
        Origin::parse(text).map_err(|unusable| Wrong::new(unusable.to_string(), right))
    }

    fn show(&self, value: &Origin) -> String {
        let starred = |url: &Url| {
            let mut url = url.clone();
            if !url.username().is_empty() || url.password().is_some() {
                // A URL that has them can have others.
                let _ = url.set_password(None).and_then(|()| url.set_username("***"));
            }
            if url.query().is_some() {
                url.set_query(Some("***"));
            }
            url.set_fragment(None);
            let path = shown_path(&url, "***");
            url.set_path(&path);
            String::from(url)
        };
        quoted(&match value {
            Origin::Http(url) | Origin::Rtsp(url) | Origin::Srt(url) => starred(url),
            Origin::Ovt { target, generation, .. } => {
                let target = Url::parse(target).map_or_else(|_| String::from("ovt:***"), |url| starred(&url));
                match generation {
                    Generation::Auto => target,
                    Generation::V18 => target + "?generation=0.18",
                    Generation::V19 => target + "?generation=0.19",
                    Generation::V20 => target + "?generation=0.20",
                    Generation::V21 => target + "?generation=0.21",
                }
            }
            Origin::File(path) => Url::from_file_path(path).map_or_else(|()| value.label(), String::from),
            Origin::Test | Origin::Slot { .. } => value.label(),
        })
    }
}

/// A list of at least and at most so many of one kind.
pub(super) struct List<K>(pub(super) K, pub(super) usize, pub(super) usize);

impl<V, K: Kind<V>> Kind<Vec<V>> for List<K> {
    fn read(&self, value: Value<'_>) -> Result<Vec<V>, Wrong> {
        let List(kind, least, most) = self;
        let right = format!("write a list of {least} to {most}, in brackets");
        let elements = value.list(&right)?;
        if elements.len() < *least || elements.len() > *most {
            return Err(Wrong::new(format!("has {} elements", elements.len()), right));
        }
        let read = |(n, element): (usize, Value<'_>)| {
            kind.read(element).map_err(|wrong| Wrong { element: Some(n), offset: element.offset(), ..wrong })
        };
        elements.into_iter().enumerate().map(read).collect()
    }

    fn show(&self, value: &Vec<V>) -> String {
        let elements: Vec<String> = value.iter().map(|element| self.0.show(element)).collect();
        format!("[{}]", elements.join(", "))
    }
}

/// An IP address with a port.
pub(super) struct Listener;

impl Kind<SocketAddr> for Listener {
    fn read(&self, value: Value<'_>) -> Result<SocketAddr, Wrong> {
        let right = r#"write "ADDRESS:PORT", such as "127.0.0.1:8080" or "[::]:8080""#;
        let text = value.text(right)?;
        text.parse().map_err(|_| Wrong::new(format!("\"{}\" is not an IP address with a port", printable(text)), right))
    }

    fn show(&self, value: &SocketAddr) -> String {
        quoted(&value.to_string())
    }
}

/// An IP address.
pub(super) struct Address;

impl Kind<IpAddr> for Address {
    fn read(&self, value: Value<'_>) -> Result<IpAddr, Wrong> {
        let right = r#"write one such as "192.0.2.7" or "2001:db8::7""#;
        let text = value.text(right)?;
        text.parse().map_err(|_| Wrong::new(format!("\"{}\" is not an IP address", printable(text)), right))
    }

    fn show(&self, value: &IpAddr) -> String {
        quoted(&value.to_string())
    }
}

/// "FIRST-LAST", or "" for whatever the system gives.
pub(super) struct PortRange;

impl Kind<Option<Ports>> for PortRange {
    fn read(&self, value: Value<'_>) -> Result<Option<Ports>, Wrong> {
        let right = r#"write "FIRST-LAST" with ports from 1024 to 65535, such as "20000-20100", or "" for any"#;
        let text = value.text(right)?;
        if text.is_empty() {
            return Ok(None);
        }
        let port = |part: &str| part.trim().parse().ok().filter(|port| *port >= 1024);
        let ports =
            text.split_once('-').and_then(|(first, last)| Some(Ports { first: port(first)?, last: port(last)? }));
        match ports {
            None => Err(Wrong::new(format!("\"{}\" is not a range of ports", printable(text)), right)),
            Some(Ports { first, last }) if first > last => {
                Err(Wrong::new(format!("{first} is greater than {last}"), right))
            }
            ports => Ok(ports),
        }
    }

    fn show(&self, value: &Option<Ports>) -> String {
        quoted(&value.map_or_else(String::new, |ports| format!("{}-{}", ports.first, ports.last)))
    }
}

/// The path of a file, or "" for none.
pub(super) struct File;

impl Kind<PathBuf> for File {
    fn read(&self, value: Value<'_>) -> Result<PathBuf, Wrong> {
        let right = r#"write the path of a file, such as "/etc/holdfast/cert.pem""#;
        let text = value.text(right)?;
        if text.contains('\0') {
            return Err(Wrong::new("holds a zero byte", right));
        }
        Ok(PathBuf::from(text))
    }

    fn show(&self, value: &PathBuf) -> String {
        quoted(&value.to_string_lossy())
    }
}

/// The last part of the path of an endpoint or a channel.
pub(super) struct Name;

impl Kind<String> for Name {
    fn read(&self, value: Value<'_>) -> Result<String, Wrong> {
        let right = "write 1 to 64 of A–Z a–z 0–9 - _ . , not starting with a dot";
        let text = value.text(right)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        // A name that starts with a dot could be `.` or `..`, which clients resolve away (RFC 3986 §5.2.4).
        if text.is_empty() || text.len() > 64 || text.starts_with('.') || !text.chars().all(fits) {
            return Err(Wrong::new(format!("\"{}\" cannot be a part of a URL's path", printable(text)), right));
        }
        Ok(text.to_owned())
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }
}

/// Something that is neither shown nor repeated in messages. Fit for a bearer token (RFC 6750 §2.1, `b64token`).
pub(super) struct Secret;

impl Kind<String> for Secret {
    fn read(&self, value: Value<'_>) -> Result<String, Wrong> {
        let right = "write 1 to 256 of A–Z a–z 0–9 - . _ ~ + / and = at the end";
        let text = value.text(right)?;
        let body = text.trim_end_matches('=');
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~' | '+' | '/');
        if body.is_empty() || text.len() > 256 || !body.chars().all(fits) {
            return Err(Wrong::new("cannot be sent as a bearer token", right));
        }
        Ok(text.to_owned())
    }

    fn show(&self, _: &String) -> String {
        quoted("***")
    }
}

/// Printable text that goes into a quoted string of a header.
pub(super) struct Text;

impl Kind<String> for Text {
    fn read(&self, value: Value<'_>) -> Result<String, Wrong> {
        let right = "write up to 256 printable ASCII characters, without \" and \\";
        let text = value.text(right)?;
        let fits = |c: char| (' '..='~').contains(&c) && !matches!(c, '"' | '\\');
        if text.len() > 256 || !text.chars().all(fits) {
            return Err(Wrong::new("cannot stand in a header", right));
        }
        Ok(text.to_owned())
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }
}

/// A text that is not shown.
pub(super) struct Password;

impl Kind<String> for Password {
    fn read(&self, value: Value<'_>) -> Result<String, Wrong> {
        Text.read(value)
    }

    fn show(&self, value: &String) -> String {
        quoted(if value.is_empty() { "" } else { "***" })
    }
}

/// A STUN or TURN server (RFC 7064, RFC 7065).
pub(super) struct IceUrl;

impl Kind<String> for IceUrl {
    fn read(&self, value: Value<'_>) -> Result<String, Wrong> {
        let right = r#"write such as "stun:192.0.2.7:3478" or "turn:turn.example.org:3478?transport=udp""#;
        let text = value.text(right)?;
        let wrong = || Wrong::new(format!("\"{}\" is not the URL of a STUN or TURN server", printable(text)), right);
        let (scheme, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (authority, transport) = match rest.split_once("?transport=") {
            Some((authority, transport)) => (authority, Some(transport)),
            None => (rest, None),
        };
        let may = match transport {
            None => matches!(scheme, "stun" | "stuns" | "turn" | "turns"),
            Some(transport) => matches!(scheme, "turn" | "turns") && matches!(transport, "udp" | "tcp"),
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        // The `url` crate knows no host in a `stun:` URL, but it knows what a host is.
        let hosted = url::Url::parse(&format!("http://{authority}/")).is_ok_and(|url| url.has_host());
        if !may || text.len() > 256 || !authority.chars().all(fits) || !hosted {
            return Err(wrong());
        }
        Ok(text.to_owned())
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }
}

#[cfg(test)]
mod tests;
