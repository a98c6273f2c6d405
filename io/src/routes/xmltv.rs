//! The guide: `/xmltv.php`. It names every stream as the list does, so that players know them, and passes on what the guides of
//! providers say of them.

use std::borrow::Cow;
use std::fmt::Write;

use super::{login, long_text};
use crate::http::Request;
use crate::providers::Kind;
use crate::providers::library::{Cursor, Library, Step};
use crate::providers::store::GuideIds;
use crate::server::{Call, Produce};

/// Answers a request for the guide: for everybody where nobody has to log in.
pub(super) fn guide(call: &mut Call<'_>, request: &Request) {
    login::long_page(call, request, long_text("application/xml; charset=utf-8"), |call, _, login, library, _| {
        let own = call.server.catalog().streams().iter().map(|stream| stream.name.as_str());
        let mut begin = String::from(BEGIN);
        own.for_each(|name| channel(&mut begin, name, name, ""));
        let library = login.map(|_| library);
        Box::new(Document {
            begin: Some(begin),
            library,
            channels: true,
            place: Cursor::default(),
            told: GuideIds::default(),
        })
    });
}

const BEGIN: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tv generator-info-name=\"Holdfast\">\n";
const END: &str = "</tv>\n";

struct Document {
    begin: Option<String>,
    library: Option<Library>,
    /// Channels come first, then what is on.
    channels: bool,
    place: Cursor,
    /// The ids of what was told already: several streams may have one.
    told: GuideIds,
}

impl Produce for Document {
    fn produce(&mut self, piece: &mut Vec<u8>, about: usize) -> bool {
        let mut text = self.begin.take().unwrap_or_default();
        let more = self.go_on(&mut text, about);
        if !more {
            text.push_str(END);
        }
        piece.extend_from_slice(text.as_bytes());
        more
    }
}

impl Document {
    fn go_on(&mut self, text: &mut String, about: usize) -> bool {
        let Some(library) = &self.library else { return false };
        while text.len() < about {
            match library.next(&mut self.place, &[Kind::Live]) {
                Step::Item(item) if item.entry.guide.is_empty() || !self.told.insert(item.entry.guide) => {}
                Step::Item(item) if self.channels => {
                    channel(text, item.entry.guide, item.entry.name, &library.logo(&item));
                }
                Step::Item(item) => {
                    for (_, element) in library.programmes(&item) {
                        text.push_str("  ");
                        text.push_str(element);
                        text.push('\n');
                    }
                }
                Step::Pause => break,
                Step::End if self.channels => {
                    self.channels = false;
                    (self.place, self.told) = (Cursor::default(), GuideIds::default());
                }
                Step::End => return false,
            }
        }
        true
    }
}

fn channel(text: &mut String, id: &str, name: &str, logo: &str) {
    let (id, name) = (escape(id), escape(name));
    let _ = write!(text, "  <channel id=\"{id}\">\n    <display-name>{name}</display-name>\n");
    if !logo.is_empty() {
        let _ = writeln!(text, "    <icon src=\"{}\"/>", escape(logo));
    }
    text.push_str("  </channel>\n");
}

/// As content, or in an attribute (XML 1.0 §2.4). What no document may hold becomes a replacement character (§2.2).
fn escape(text: &str) -> Cow<'_, str> {
    let special = |c: char| matches!(c, '&' | '<' | '>' | '"' | '\'' | '\u{fffe}' | '\u{ffff}') || c.is_control();
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            c if special(c) => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_ends_what_it_stands_in() {
        let mut guide = String::new();
        ["a&b <\"c\"> 'd'\u{1}", "é"].into_iter().for_each(|name| channel(&mut guide, name, name, ""));
        let name = "a&amp;b &lt;&quot;c&quot;&gt; &apos;d&apos;\u{fffd}";
        assert!(
            guide.contains(&format!("<channel id=\"{name}\">\n    <display-name>{name}</display-name>\n")),
            "{guide}"
        );
        assert!(guide.contains("<channel id=\"é\">"), "{guide}");
    }
}
