//! SDP as lines: split, bounded, grouped by section. Nothing is interpreted, so nothing is lost.

use std::fmt;

/// The longest text looked at, in bytes: 5000 candidates and a browser's whole offer fit.
pub const MAX_BODY: usize = 256 * 1024;
/// The longest line, in bytes without its end: parameter sets in an `fmtp` line fit many times over.
pub const MAX_LINE: usize = 4096;
/// The most lines of a text, candidates not counted (all but [`MAX_CANDIDATES`](super::MAX_CANDIDATES) are dropped
/// anyway). A browser's offer has about 150.
pub const MAX_LINES: usize = 4096;

/// Why bytes are not a text of SDP lines (RFC 8866 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFault {
    /// No bytes, or nothing but line ends.
    Empty,
    /// More than [`MAX_BODY`] bytes.
    TooLong,
    /// Not UTF-8.
    NotUtf8,
    /// More than [`MAX_LINES`] lines.
    TooManyLines,
    /// The line with this number (from 1) has more than [`MAX_LINE`] bytes.
    LineTooLong(usize),
    /// The line with this number (from 1) holds a NUL or another control character.
    ControlCharacter(usize),
    /// The line with this number (from 1) is not `<letter>=<value>`.
    NotALine(usize),
}

impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextFault::Empty => write!(f, "the body is empty, it has to hold SDP"),
            TextFault::TooLong => write!(f, "the body has more than {MAX_BODY} bytes"),
            TextFault::NotUtf8 => write!(f, "the body is not UTF-8"),
            TextFault::TooManyLines => write!(f, "the body has more than {MAX_LINES} lines besides candidates"),
            TextFault::LineTooLong(line) => write!(f, "line {line} has more than {MAX_LINE} bytes"),
            TextFault::ControlCharacter(line) => write!(f, "line {line} holds a control character"),
            TextFault::NotALine(line) => write!(f, "line {line} is not of the form <letter>=<value>"),
        }
    }
}

impl std::error::Error for TextFault {}

/// What is wrong with one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeFault {
    /// Its value has the wrong form.
    Grammar {
        /// Its name.
        attribute: &'static str,
        /// Its value, clipped.
        value: String,
        /// The right form.
        form: &'static str,
    },
    /// One section holds it twice with different values.
    Contradiction {
        /// Its name.
        attribute: &'static str,
    },
}

impl fmt::Display for AttributeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeFault::Grammar { attribute, value, form } => {
                write!(f, "a={attribute} is \"{value}\", it has to be {form}")
            }
            AttributeFault::Contradiction { attribute } => {
                write!(f, "a={attribute} stands twice in one section with different values")
            }
        }
    }
}

impl std::error::Error for AttributeFault {}

/// A value as it may stand in a message: what a peer sends must not decide how long our answers and logs get, nor on how many
/// lines and in which direction they are shown. U+2028, U+202E and whatever else cannot be seen is written by its number.
pub(super) fn clipped(value: &str) -> String {
    let mut text = String::new();
    for character in value.chars().take(64) {
        match character {
            '"' | '\'' | '\\' => text.push(character),
            _ => text.extend(character.escape_debug()),
        }
    }
    text
}

/// Whether this is a token of RFC 8866 §9.
pub(super) fn is_token(value: &str) -> bool {
    !value.is_empty()
        && value.bytes().all(|byte| matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'^'..=b'~'))
}

/// A text cut into its session part and its media sections.
#[derive(Debug)]
pub(super) struct Text<'a> {
    /// What stands before the first `m=` line.
    pub session: Block<'a>,
    /// The media sections in order, each beginning with its `m=` line.
    pub media: Vec<Block<'a>>,
}

impl<'a> Text<'a> {
    /// Takes CRLF and bare LF as line ends, mixed too, and empty lines at the end only.
    pub fn parse(body: &'a [u8]) -> Result<Self, TextFault> {
        if body.len() > MAX_BODY {
            return Err(TextFault::TooLong);
        }
        let body = std::str::from_utf8(body).map_err(|_| TextFault::NotUtf8)?;
        let body = body.trim_end_matches(['\r', '\n']);
        if body.is_empty() {
            return Err(TextFault::Empty);
        }
        let mut text = Text { session: Block::default(), media: Vec::new() };
        let mut counted = 0;
        for (index, line) in body.split('\n').enumerate() {
            let line = line.strip_suffix('\r').unwrap_or(line);
            let number = index + 1;
            if line.len() > MAX_LINE {
                return Err(TextFault::LineTooLong(number));
            }
            if line.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
                return Err(TextFault::ControlCharacter(number));
            }
            if !matches!(line.as_bytes(), [b'a'..=b'z', b'=', ..]) {
                return Err(TextFault::NotALine(number));
            }
            if !line.starts_with("a=candidate:") {
                counted += 1;
                if counted > MAX_LINES {
                    return Err(TextFault::TooManyLines);
                }
            }
            if line.starts_with("m=") {
                text.media.push(Block::default());
            }
            text.media.last_mut().unwrap_or(&mut text.session).lines.push(line);
        }
        Ok(text)
    }
}

/// The lines of the session part or of one media section, without line ends.
#[derive(Debug, Default)]
pub(super) struct Block<'a> {
    /// Each is `<letter>=<value>`.
    pub lines: Vec<&'a str>,
}

impl<'a> Block<'a> {
    /// The values of every attribute of this name, `""` for one without a value.
    pub fn attributes<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'_, 'a, 'n> {
        self.lines.iter().filter_map(move |line| match attribute(line) {
            Some((found, value)) if found == name => Some(value),
            _ => None,
        })
    }

    /// Whether there is an attribute of this name.
    pub fn has(&self, name: &str) -> bool {
        self.attributes(name).next().is_some()
    }

    /// The value of an attribute that has one value only.
    pub fn single(&self, name: &'static str) -> Result<Option<&'a str>, AttributeFault> {
        let mut values = self.attributes(name);
        let first = values.next();
        match values.all(|value| Some(value) == first) {
            true => Ok(first),
            false => Err(AttributeFault::Contradiction { attribute: name }),
        }
    }

    /// The `m=` line, if the block begins with a right one.
    pub fn media_line(&self) -> Option<MediaLine<'a>> {
        self.lines.first().and_then(|line| MediaLine::parse(line))
    }
}

/// The name and value of an attribute line; the value is `""` where there is none.
pub(super) fn attribute(line: &str) -> Option<(&str, &str)> {
    let attribute = line.strip_prefix("a=")?;
    Some(attribute.split_once(':').unwrap_or((attribute, "")))
}

/// `m=<media> <port>[/<count>] <proto> <fmt> …` (RFC 8866 §5.14).
#[derive(Debug)]
pub(super) struct MediaLine<'a> {
    /// `audio`, `video`, `application`, …
    pub media: &'a str,
    /// 0 = refused, unless the section is `bundle-only`.
    pub port: u16,
    /// Such as `UDP/TLS/RTP/SAVPF`.
    pub protocol: &'a str,
    /// Payload types for RTP, at least one.
    pub formats: Vec<&'a str>,
}

impl<'a> MediaLine<'a> {
    /// Reads a whole line, `m=` included.
    pub fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.strip_prefix("m=")?.split(' ');
        let media = fields.next().filter(|media| is_token(media))?;
        let (port, count) = fields.next().map(|field| field.split_once('/').unwrap_or((field, "1")))?;
        let protocol = fields.next().filter(|protocol| protocol.split('/').all(is_token))?;
        let formats: Vec<_> = fields.collect();
        if count.parse::<u16>().is_err() || formats.is_empty() || !formats.iter().all(|format| is_token(format)) {
            return None;
        }
        Some(MediaLine { media, port: number(port)?, protocol, formats })
    }
}

/// A decimal number without sign (which `parse` alone would let through).
pub(super) fn number<T: std::str::FromStr>(digits: &str) -> Option<T> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Appends one line with its CRLF.
pub(super) fn push_line(text: &mut String, line: impl fmt::Display) {
    use fmt::Write;
    // Writing into a string cannot fail.
    let _ = write!(text, "{line}\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(body: impl AsRef<[u8]>) -> TextFault {
        Text::parse(body.as_ref()).unwrap_err()
    }

    #[test]
    fn what_is_no_text_of_lines_is_refused_with_its_place() {
        assert_eq!(fault(""), TextFault::Empty);
        assert_eq!(fault("\r\n\n\r\n"), TextFault::Empty);
        assert_eq!(fault("hello"), TextFault::NotALine(1));
        assert_eq!(fault("v=0\r\nhello\r\n"), TextFault::NotALine(2));
        assert_eq!(fault("v=0\r\n\r\ns=-\r\n"), TextFault::NotALine(2));
        assert_eq!(fault("V=0\r\n"), TextFault::NotALine(1));
        assert_eq!(fault("v=0\r\ns=a\0b\r\n"), TextFault::ControlCharacter(2));
        assert_eq!(fault("v=0\rs=-\r\n"), TextFault::ControlCharacter(1));
        assert_eq!(fault(b"v=0\r\ns=\xff\r\n"), TextFault::NotUtf8);
        assert_eq!(fault(format!("v=0\r\ns={}\r\n", "x".repeat(MAX_LINE - 1))), TextFault::LineTooLong(2));
        assert!(Text::parse(format!("v=0\r\ns={}\r\n", "x".repeat(MAX_LINE - 2)).as_bytes()).is_ok());
    }

    #[test]
    fn what_cannot_be_seen_is_written_by_its_number() {
        assert_eq!(clipped("ä \"b\\'"), "ä \"b\\'");
        assert_eq!(clipped("a\u{202e}b\u{2028}c\u{85}\u{200b}\t"), "a\\u{202e}b\\u{2028}c\\u{85}\\u{200b}\\t");
        assert_eq!(clipped(&"\u{202e}".repeat(1000)).len(), 64 * 8);
    }

    #[test]
    fn lines_are_bounded_and_candidates_do_not_count() {
        let lines = "a=x\r\n".repeat(MAX_LINES);
        assert!(Text::parse(lines.as_bytes()).is_ok());
        assert_eq!(fault(format!("{lines}a=x\r\n")), TextFault::TooManyLines);
        let candidates = "a=candidate:1 1 udp 1 192.0.2.1 5000 typ host\r\n".repeat(5000);
        assert!(Text::parse(format!("v=0\r\n{candidates}").as_bytes()).is_ok());
        assert_eq!(fault("a=candidate:\n".repeat(MAX_BODY / 13 + 1)), TextFault::TooLong);
    }

    #[test]
    fn line_ends_may_be_mixed_and_sections_begin_at_m() {
        let text = Text::parse(b"v=0\ns=-\r\nm=audio 9 RTP/AVP 0\na=mid:0\r\nm=video 9 RTP/AVP 96\n\n").unwrap();
        assert_eq!(text.session.lines, ["v=0", "s=-"]);
        assert_eq!(text.media.len(), 2);
        assert_eq!(text.media[0].lines, ["m=audio 9 RTP/AVP 0", "a=mid:0"]);
    }

    #[test]
    fn attributes_are_found_by_their_whole_name() {
        let text =
            Text::parse(b"a=rtcp-mux-only\r\na=mid:0\r\na=mid:0\r\na=setup:active\r\na=setup:passive\r\n").unwrap();
        let block = text.session;
        assert!(!block.has("rtcp-mux"));
        assert!(block.has("rtcp-mux-only"));
        assert_eq!(block.single("mid"), Ok(Some("0")));
        assert_eq!(block.single("ice-pwd"), Ok(None));
        assert_eq!(block.single("setup"), Err(AttributeFault::Contradiction { attribute: "setup" }));
    }

    #[test]
    fn media_lines() {
        let line = MediaLine::parse("m=video 49170/2 UDP/TLS/RTP/SAVPF 96 97").unwrap();
        assert_eq!((line.media, line.port, line.protocol), ("video", 49170, "UDP/TLS/RTP/SAVPF"));
        assert_eq!(line.formats, ["96", "97"]);
        for bad in [
            "m=",
            "m=audio",
            "m=audio 9",
            "m=audio 9 RTP/AVP",
            "m=audio 65536 RTP/AVP 0",
            "m=audio +9 RTP/AVP 0",
            "m=audio x RTP/AVP 0",
            "m=audio 9 RTP/ 0",
            "m=audio  9 RTP/AVP 0",
            "m=audio 9 RTP/AVP 0 ",
        ] {
            assert!(MediaLine::parse(bad).is_none(), "{bad}");
        }
    }
}
