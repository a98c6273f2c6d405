//! JSON as OvenMediaEngine writes it: no whitespace, ASCII alone, doubles with 17 significant digits. Keys come sorted from
//! the types that are written.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Writes `value`. Its keys are strings and its numbers finite, so nothing can fail.
pub(super) fn write(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    value
        .serialize(&mut Serializer::with_formatter(&mut out, Compact))
        .expect("keys are strings, and a Vec takes everything");
    out
}

struct Compact;

impl Formatter for Compact {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(double(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        for c in fragment.chars() {
            if c.is_ascii() {
                writer.write_all(&[c as u8])?;
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}

/// C's `%.17g`, with `.0` behind a whole number.
fn double(value: f64) -> String {
    const DIGITS: i32 = 17;
    let scientific = format!("{value:.16e}");
    let exponent = scientific.rsplit_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        let text = format!("{value:.decimals$}");
        let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        return if text.contains('.') { text.to_owned() } else { format!("{text}.0") };
    }
    let mantissa = scientific.split('e').next().unwrap_or_default().trim_end_matches('0').trim_end_matches('.');
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_have_seventeen_digits_at_most() {
        for (value, text) in [
            (0.0, "0.0"),
            (25.0, "25.0"),
            (29.97, "29.969999999999999"),
            (46.85942173479561, "46.85942173479561"),
            (30000.0 / 1001.0, "29.970029970029969"),
            (1e16, "10000000000000000.0"),
            (1e17, "1e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (-2.5, "-2.5"),
        ] {
            assert_eq!(double(value), text);
        }
    }

    #[test]
    fn strings_are_ascii() {
        assert_eq!(write(&"a/b\"\\\n\u{1}é😀"), br#""a/b\"\\\n\u0001\u00e9\ud83d\ude00""#);
    }
}
