//! Header fields: those that came, and values that may go out.

use std::borrow::Cow;
use std::fmt;

/// The header fields of a message, in their order. Names compare without case (RFC 9110 §5.1).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    fields: Vec<(Box<str>, Box<str>)>,
}

impl Headers {
    /// The value of the first field of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_all(name).next()
    }

    /// The values of all fields of this name, in their order.
    pub fn get_all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    /// The elements of a list-valued field over all its lines, trimmed, without empty ones (RFC 9110 §5.6.1).
    ///
    /// Splits at every comma: for lists of tokens, not for lists that may quote a comma.
    pub fn list<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.get_all(name).flat_map(|value| value.split(',')).map(str::trim).filter(|element| !element.is_empty())
    }

    /// All fields, names as they came.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (&**name, &**value))
    }

    pub(super) fn push(&mut self, name: &str, value: &[u8]) {
        let value = String::from_utf8_lossy(value);
        self.fields.push((name.into(), value.trim_matches([' ', '\t']).into()));
    }
}

/// Secrets never get into a log by way of `{:?}`.
impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Where providers redirect to, the path holds what gives access.
        const SECRET: [&str; 5] = ["Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "Location"];
        f.debug_map()
            .entries(self.iter().map(|(name, value)| {
                let secret = SECRET.iter().any(|secret| secret.eq_ignore_ascii_case(name));
                (name, if secret { "(redacted)" } else { value })
            }))
            .finish()
    }
}

/// The name of a field that may go out. Made in constants only, so that a wrong one does not compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldName(&'static str);

impl FieldName {
    /// A token (RFC 9110 §5.1) that is none of the fields which the connection itself writes: `Connection`,
    /// `Content-Length`, `Date`, `Transfer-Encoding`.
    ///
    /// # Panics
    /// For any other; call it in a `const`.
    pub const fn new(name: &'static str) -> Self {
        assert!(is_token(name.as_bytes()), "a field name is a token");
        let framing = same(name, "Connection")
            || same(name, "Content-Length")
            || same(name, "Date")
            || same(name, "Transfer-Encoding");
        assert!(!framing, "the connection writes this field");
        FieldName(name)
    }

    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

const fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

const fn is_token(bytes: &[u8]) -> bool {
    let mut i = 0;
    while i < bytes.len() {
        if !bytes[i].is_ascii_alphanumeric()
            && !matches!(
                bytes[i],
                b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
            )
        {
            return false;
        }
        i += 1;
    }
    !bytes.is_empty()
}

macro_rules! names {
    ($($constant:ident = $name:literal;)*) => {
        $(#[doc = concat!("`", $name, "`")] pub const $constant: FieldName = FieldName::new($name);)*
    };
}

names! {
    ACCEPT = "Accept";
    ACCEPT_ENCODING = "Accept-Encoding";
    ACCEPT_PATCH = "Accept-Patch";
    ACCEPT_POST = "Accept-Post";
    ACCEPT_RANGES = "Accept-Ranges";
    ACCESS_CONTROL_ALLOW_HEADERS = "Access-Control-Allow-Headers";
    ACCESS_CONTROL_ALLOW_METHODS = "Access-Control-Allow-Methods";
    ACCESS_CONTROL_ALLOW_ORIGIN = "Access-Control-Allow-Origin";
    ACCESS_CONTROL_EXPOSE_HEADERS = "Access-Control-Expose-Headers";
    ACCESS_CONTROL_MAX_AGE = "Access-Control-Max-Age";
    ALLOW = "Allow";
    AUTHORIZATION = "Authorization";
    CACHE_CONTROL = "Cache-Control";
    CONTENT_DISPOSITION = "Content-Disposition";
    CONTENT_RANGE = "Content-Range";
    CONTENT_SECURITY_POLICY = "Content-Security-Policy";
    CONTENT_TYPE = "Content-Type";
    COOKIE = "Cookie";
    ETAG = "ETag";
    HOST = "Host";
    IF_RANGE = "If-Range";
    LAST_MODIFIED = "Last-Modified";
    LINK = "Link";
    LOCATION = "Location";
    RANGE = "Range";
    REFERER = "Referer";
    REFERRER_POLICY = "Referrer-Policy";
    RETRY_AFTER = "Retry-After";
    USER_AGENT = "User-Agent";
    VARY = "Vary";
    VIA = "Via";
    WWW_AUTHENTICATE = "WWW-Authenticate";
    X_CONTENT_TYPE_OPTIONS = "X-Content-Type-Options";
}

/// The value of a field that may go out: no CR, LF, NUL or other control character can be in it, so that nothing a peer
/// sent can add fields to a head or end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldValue(Cow<'static, str>);

/// A field value with a control character, or with whitespace at an end (RFC 9110 §5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidFieldValue;

impl fmt::Display for InvalidFieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field value has no control characters and no whitespace at its ends")
    }
}

impl std::error::Error for InvalidFieldValue {}

impl FieldValue {
    /// A value made at run time.
    ///
    /// # Errors
    /// For control characters other than a tab, and for whitespace at an end.
    pub fn new(value: impl Into<String>) -> Result<Self, InvalidFieldValue> {
        let value = value.into();
        if is_value(value.as_bytes()) { Ok(FieldValue(Cow::Owned(value))) } else { Err(InvalidFieldValue) }
    }

    /// A value known when compiling.
    ///
    /// # Panics
    /// Where [`FieldValue::new`] gives an error; call it with literals only.
    pub const fn from_static(value: &'static str) -> Self {
        assert!(is_value(value.as_bytes()), "a field value has no control characters and no whitespace at its ends");
        FieldValue(Cow::Borrowed(value))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<u64> for FieldValue {
    fn from(number: u64) -> Self {
        FieldValue(Cow::Owned(number.to_string()))
    }
}

const fn is_value(bytes: &[u8]) -> bool {
    let mut i = 0;
    while i < bytes.len() {
        if (bytes[i] < b' ' && bytes[i] != b'\t') || bytes[i] == 0x7f {
            return false;
        }
        i += 1;
    }
    bytes.is_empty() || (is_visible(bytes[0]) && is_visible(bytes[bytes.len() - 1]))
}

const fn is_visible(byte: u8) -> bool {
    byte != b' ' && byte != b'\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_compare_without_case_and_all_lines_count() {
        let mut headers = Headers::default();
        headers.push("If-Match", b"\"a\"");
        headers.push("IF-MATCH", b" \"b\" , ,\"c\"\t");
        assert_eq!(headers.get("if-match"), Some("\"a\""));
        assert_eq!(headers.get_all("if-match").collect::<Vec<_>>(), ["\"a\"", "\"b\" , ,\"c\""]);
        assert_eq!(headers.list("If-Match").collect::<Vec<_>>(), ["\"a\"", "\"b\"", "\"c\""]);
        assert_eq!(headers.get("If-None-Match"), None);
    }

    #[test]
    fn a_response_cannot_be_split_by_a_value() {
        for bad in ["a\r\nSet-Cookie: b", "a\nb", "a\rb", "a\0b", "\x7f", " a", "a\t"] {
            assert_eq!(FieldValue::new(bad), Err(InvalidFieldValue), "{bad:?}");
        }
        assert_eq!(FieldValue::new("<turn:a>; rel=\"ice-server\"").map(|v| v.as_str().len()), Ok(26));
        assert_eq!(FieldValue::from(u64::MAX).as_str(), "18446744073709551615");
    }

    #[test]
    fn names_that_would_break_framing_are_refused() {
        for name in ["content-length", "Transfer-Encoding", "Connection", "Date", "a b", "a:", "", "a\r"] {
            assert!(std::panic::catch_unwind(|| FieldName::new(name)).is_err(), "{name:?}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let mut headers = Headers::default();
        headers.push("authorization", b"Bearer hunter2");
        headers.push("Cookie", b"hunter2");
        assert!(!format!("{headers:?}").contains("hunter2"));
    }
}
