//! How a value is written: one [`Kind`] for each way, with the bounds it keeps.
//!
//! The same kinds read a file and the environment, and write the sample and what is effective.

mod access;
mod place;
mod provider;
mod quantity;

use toml::Spanned;
use toml::de::DeValue;

use super::fault::printable;
pub(super) use access::{Moment, Network, Passphrase, UserName};
pub(super) use place::{Address, Directory, File, IceUrl, Listener, PortRange, Source};
pub(super) use provider::{Credential, Group, GuideAt, ProviderAt};
pub(crate) use quantity::parse_span;
pub(super) use quantity::{Count, Priority, Rate, Retries, Size, SizeOr, Span, SpanOr, show_span};

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

    fn digits(self, right: &str) -> Result<(&'a str, u32), Wrong> {
        match self {
            Value::Variable(text) => Ok((text, 10)),
            Value::Toml(value) => match value.get_ref() {
                DeValue::Integer(integer) => Ok((integer.as_str(), integer.radix())),
                _ => Err(self.is_a("a whole number", right)),
            },
        }
    }

    fn integer(self, right: &str) -> Result<u64, Wrong> {
        let (digits, radix) = self.digits(right)?;
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

#[cfg(test)]
mod tests;
