//! Numbers, and what they are counted in.

use std::time::Duration;

use super::super::fault::printable;
use super::{Kind, Value, Wrong, quoted};

/// A whole number within these bounds.
pub(in crate::config) struct Count(pub(in crate::config) u64, pub(in crate::config) u64);

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

/// Who gives way to whom: lower is stronger.
pub(in crate::config) struct Priority;

impl Kind<i8> for Priority {
    fn read(&self, value: Value<'_>) -> Result<i8, Wrong> {
        let right = "write a whole number from -128 to 127; lower is stronger";
        let (digits, radix) = value.digits(right)?;
        i64::from_str_radix(digits, radix)
            .ok()
            .and_then(|number| i8::try_from(number).ok())
            .ok_or_else(|| Wrong::new(format!("`{}` is out of bounds", printable(digits)), right))
    }

    fn show(&self, value: &i8) -> String {
        value.to_string()
    }
}

/// A length of time within these bounds, such as "2s", "100ms" or "1m30s".
pub(in crate::config) struct Span(pub(in crate::config) Duration, pub(in crate::config) Duration);

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
pub(in crate::config) struct SpanOr(pub(in crate::config) &'static str, pub(in crate::config) Span);

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

/// A length of time as people write it.
pub(crate) fn parse_span(text: &str) -> Option<Duration> {
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
pub(in crate::config) fn show_span(span: Duration) -> String {
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

pub(super) fn parse_scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = leading_number(text.trim())?;
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*scale)
}

/// The number with the first unit that leaves a whole number; units stand with the largest of each value first.
pub(super) fn show_scaled(value: u64, units: &[(&str, u64)]) -> String {
    let (unit, scale) =
        units.iter().find(|(_, scale)| value >= *scale && value.is_multiple_of(*scale)).unwrap_or(&("", 1));
    format!("{} {unit}", value / scale).trim_end().to_owned()
}

/// A number of bytes within these bounds, such as "16 MiB".
pub(in crate::config) struct Size(pub(in crate::config) u64, pub(in crate::config) u64);

pub(super) const SIZE_UNITS: [(&str, u64); 9] = [
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

/// This word, or a size; 0 is the word, too.
pub(in crate::config) struct SizeOr(pub(in crate::config) &'static str, pub(in crate::config) Size);

impl Kind<Option<usize>> for SizeOr {
    fn read(&self, value: Value<'_>) -> Result<Option<usize>, Wrong> {
        let SizeOr(word, size) = self;
        let none = match value.text("") {
            Ok(text) => text.trim() == *word || parse_scaled(text, &SIZE_UNITS) == Some(0),
            Err(_) => value.integer("").is_ok_and(|count| count == 0),
        };
        if none {
            return Ok(None);
        }
        size.read(value).map(Some).map_err(|wrong| Wrong { right: format!("{}; or \"{word}\"", wrong.right), ..wrong })
    }

    fn show(&self, value: &Option<usize>) -> String {
        value.map_or_else(|| quoted(self.0), |size| self.1.show(&size))
    }
}

/// A number of bits per second within these bounds, such as "4M" or "4 Mbit/s".
pub(in crate::config) struct Rate(pub(in crate::config) u64, pub(in crate::config) u64);

pub(super) const RATE_UNITS: [(&str, u64); 8] = [
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

/// A whole number, or "forever".
pub(in crate::config) struct Retries;

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
