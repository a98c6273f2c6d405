//! Variables of playlists (`EXT-X-DEFINE`, RFC 8216bis §4.3.2.3).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use url::Url;

use super::attribute;

/// How the line of a definition begins.
pub(super) const DEFINE: &[u8] = b"#EXT-X-DEFINE:";
/// How many there may be in a playlist.
const MOST: usize = 64;

/// Names and their values.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Variables(Vec<(String, String)>);

impl Variables {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Sets one; `None` if it has no such name or value, or there are too many.
    pub fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let named = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if !named || value.contains(['"', '\r', '\n']) {
            return None;
        }
        if let Some((_, own)) = self.0.iter_mut().find(|(own, _)| own == name) {
            *own = value.into();
        } else if self.0.len() < MOST {
            self.0.push((name.into(), value.into()));
        } else {
            return None;
        }
        Some(())
    }

    /// Takes in a definition: its attributes, the address of its playlist, and what that may import.
    pub(super) fn define(&mut self, list: &str, base: &Url, imported: &Variables) -> Option<()> {
        let attribute = |name| attribute::list(list).find(|own| own.is(name)).map(|own| own.value);
        if let Some(name) = attribute("NAME") {
            self.set(name, attribute("VALUE")?)
        } else if let Some(name) = attribute("IMPORT") {
            self.set(name, imported.get(name)?)
        } else {
            let name = attribute("QUERYPARAM")?;
            let (_, value) = base.query_pairs().find(|(own, _)| own == name)?;
            self.set(name, &value)
        }
    }

    /// Puts values in their places; `None` where one is not defined, or where more than `most` bytes came of it. With no variable
    /// at all `{$` means nothing.
    pub(super) fn put_into<'t>(&self, text: &'t str, most: usize) -> Option<Cow<'t, str>> {
        if self.is_empty() || !text.contains("{$") {
            return Some(text.into());
        }
        let (mut out, mut rest) = (String::with_capacity(text.len() * 2), text);
        while let Some((before, reference)) = rest.split_once("{$") {
            let (name, behind) = reference.split_once('}')?;
            out.push_str(before);
            out.push_str(self.get(name)?);
            rest = behind;
            if out.len() + rest.len() > most {
                return None;
            }
        }
        out.push_str(rest);
        Some(out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        let mut variables = Variables::default();
        for (name, value) in pairs {
            variables.set(name, value).unwrap();
        }
        variables
    }

    #[test]
    fn a_variable_is_defined_imported_or_taken_from_the_address() {
        let base = Url::parse("http://a/b?token=x%20y&other").unwrap();
        let imported = variables(&[("host", "h")]);
        let define = |list| {
            let mut own = Variables::default();
            own.define(list, &base, &imported).map(|()| own)
        };
        assert_eq!(define("NAME=\"n\",VALUE=\"v,w\""), Some(variables(&[("n", "v,w")])));
        assert_eq!(define("IMPORT=\"host\""), Some(imported.clone()));
        assert_eq!(define("QUERYPARAM=\"token\""), Some(variables(&[("token", "x y")])));
        for wrong in ["", "NAME=\"n\"", "NAME=\"a b\",VALUE=\"\"", "IMPORT=\"token\"", "QUERYPARAM=\"host\""] {
            assert_eq!(define(wrong), None, "{wrong}");
        }
        // What would end a quoted string cannot be put into one.
        let base = Url::parse("http://a/b?token=%22").unwrap();
        assert_eq!(Variables::default().define("QUERYPARAM=\"token\"", &base, &imported), None);
    }

    #[test]
    fn values_are_put_in_once() {
        let own = variables(&[("a", "1"), ("b", "{$a}")]);
        assert_eq!(own.put_into("x{$a}y{$b}{z", 9).as_deref(), Some("x1y{$a}{z"));
        assert_eq!(own.put_into("x{$a}y{$b}{z", 8), None);
        assert_eq!(own.put_into("nothing", 0).as_deref(), Some("nothing"));
        assert_eq!(own.put_into("{$c}", 99), None);
        assert_eq!(own.put_into("{$a", 99), None);
        assert_eq!(Variables::default().put_into("{$c}", 99).as_deref(), Some("{$c}"));
    }

    #[test]
    fn there_are_not_too_many() {
        let mut own = Variables::default();
        let set = (0..100).filter(|n| own.set(&n.to_string(), "v").is_some()).count();
        assert_eq!(set, MOST);
        assert_eq!(own.set("0", "again"), Some(()));
    }
}
