//! Attribute lists (RFC 8216 §4.2), as they are written: by the letter or not.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Everything that is not ASCII, and nothing that is.
pub(super) const BEYOND_ASCII: &AsciiSet = &AsciiSet::EMPTY;
/// What no quoted string can hold.
const UNQUOTABLE: &AsciiSet = &CONTROLS.add(b'"');

/// One attribute, and where it is written in its list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Attribute<'a> {
    pub name: &'a str,
    /// Without its quotes.
    pub value: &'a str,
    /// Where its name begins.
    pub begin: usize,
    /// Where its value does, with the quotes.
    pub written: usize,
    /// Where its value ends, with the quotes.
    pub end: usize,
}

impl Attribute<'_> {
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// The attributes of a list, up to what is none. A quote that does not end takes in what is left.
pub(super) fn list(list: &str) -> impl Iterator<Item = Attribute<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = list[at..].trim_start_matches([' ', '\t', ',']);
        let begin = list.len() - rest.len();
        let (name, rest) = rest.split_once('=')?;
        let written = list.len() - rest.len();
        let (value, end) = match rest.strip_prefix('"') {
            Some(quoted) => match quoted.find('"') {
                Some(length) => (&quoted[..length], written + length + 2),
                None => (quoted, list.len()),
            },
            None => {
                let value = &rest[..rest.find(',').unwrap_or(rest.len())];
                (value.trim(), written + value.len())
            }
        };
        // Whatever stands behind a closing quote is nothing.
        at = list[end..].find(',').map_or(list.len(), |comma| end + comma);
        Some(Attribute { name: name.trim(), value, begin, written, end })
    })
}

/// As it can stand in a quoted string, and on a line of its own.
pub(super) fn quotable(value: &str) -> Cow<'_, str> {
    utf8_percent_encode(value, UNQUOTABLE).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_however_they_are_written() {
        let names = |text| list(text).map(|own| (own.name, own.value)).collect::<Vec<_>>();
        assert_eq!(names("A=1,B=\"x,URI=y\",URI=\"z\""), [("A", "1"), ("B", "x,URI=y"), ("URI", "z")]);
        assert_eq!(names(" A = 1 , B=\"x\" junk,C=\"\""), [("A", "1"), ("B", "x"), ("C", "")]);
        assert_eq!(names("A=\"x,B=1"), [("A", "x,B=1")]);
        assert_eq!(names("A"), []);
        assert_eq!(names(",,A=,B=2"), [("A", ""), ("B", "2")]);
        let text = "A=1, URI=\"ä\",B";
        let uri = list(text).nth(1).unwrap();
        assert_eq!((&text[uri.begin..uri.end], &text[uri.written..uri.end]), ("URI=\"ä\"", "\"ä\""));
    }

    #[test]
    fn nothing_ends_a_quoted_string_or_a_line() {
        assert_eq!(quotable("/hls/a\"b\r\nc"), "/hls/a%22b%0D%0Ac");
    }
}
