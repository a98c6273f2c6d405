//! How providers and their accounts are written. Secrets in their addresses are neither shown nor repeated in messages.

use holdfast_io::providers::{Guide, Location};
use url::Url;

use super::place::starred;
use super::{Kind, Value, Wrong, quoted};

/// Where a provider's list or panel is; `None` while nobody said.
pub(in crate::config) struct ProviderAt;

impl Kind<Option<Location>> for ProviderAt {
    fn read(&self, value: Value<'_>) -> Result<Option<Location>, Wrong> {
        let right =
            "write the URL of a list or a panel, such as \"http://panel.example:8080\" or \"file:///srv/tv.m3u\"";
        location(value.text(right)?, right).map(Some)
    }

    fn show(&self, value: &Option<Location>) -> String {
        quoted(&value.as_ref().map_or_else(String::new, shown))
    }
}

/// Where a provider's guide is.
pub(in crate::config) struct GuideAt;

impl Kind<Guide> for GuideAt {
    fn read(&self, value: Value<'_>) -> Result<Guide, Wrong> {
        let right = "write the URL of an XMLTV file, \"auto\" or \"none\"";
        match value.text(right)? {
            "auto" => Ok(Guide::Auto),
            "none" => Ok(Guide::None),
            text => location(text, right).map(Guide::At),
        }
    }

    fn show(&self, value: &Guide) -> String {
        quoted(&match value {
            Guide::Auto => String::from("auto"),
            Guide::None => String::from("none"),
            Guide::At(location) => shown(location),
        })
    }
}

fn location(text: &str, right: &str) -> Result<Location, Wrong> {
    if text.len() > 2048 {
        return Err(Wrong::new(format!("has {} bytes", text.len()), "a URL has at most 2048"));
    }
    Location::parse(text).map_err(|wrong| Wrong::new(wrong, right))
}

fn shown(location: &Location) -> String {
    match location {
        Location::Http(url) => starred(url),
        Location::File(path) => Url::from_file_path(path).map_or_else(|()| location.label(), String::from),
    }
}

/// What is said to a provider: a name or a password. It is not shown.
pub(in crate::config) struct Credential;

impl Kind<String> for Credential {
    fn read(&self, value: Value<'_>) -> Result<String, Wrong> {
        let right = "write up to 256 bytes without control characters";
        let text = value.text(right)?;
        if text.len() > 256 || text.chars().any(char::is_control) {
            return Err(Wrong::new("is longer than 256 bytes or holds control characters", right));
        }
        Ok(text.to_owned())
    }

    fn show(&self, value: &String) -> String {
        quoted(if value.is_empty() { "" } else { "***" })
    }
}

/// The name of a group in a catalogue, in any language.
pub(in crate::config) struct Group;

impl Kind<String> for Group {
    fn read(&self, value: Value<'_>) -> Result<String, Wrong> {
        let right = "write the name of a group as the catalogue has it, up to 256 bytes";
        let text = value.text(right)?.trim();
        if text.is_empty() || text.len() > 256 || text.chars().any(char::is_control) {
            return Err(Wrong::new("is empty, longer than 256 bytes, or holds control characters", right));
        }
        Ok(text.to_owned())
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }
}
