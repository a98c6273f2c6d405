//! The guide: `/xmltv.php`. It names every stream as the list does, so that players know them; what is on when, nobody tells us.

use std::borrow::Cow;
use std::fmt::Write;

use super::{login, text};
use crate::http::Request;
use crate::server::Call;

/// Answers a request for the guide: for everybody where nobody has to log in.
pub(super) fn guide(call: &mut Call<'_>, request: &Request) {
    login::page(call, request, |call, _, _| {
        let streams = call.server.catalog().streams();
        text("application/xml; charset=utf-8", document(streams.iter().map(|stream| stream.name.as_str())))
    });
}

fn document<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut guide = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tv generator-info-name=\"Holdfast\">\n");
    for name in names.map(escape) {
        let _ = writeln!(guide, "  <channel id=\"{name}\">\n    <display-name>{name}</display-name>\n  </channel>");
    }
    guide.push_str("</tv>\n");
    guide
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
        let guide = document(["a&b <\"c\"> 'd'\u{1}", "é"].into_iter());
        let name = "a&amp;b &lt;&quot;c&quot;&gt; &apos;d&apos;\u{fffd}";
        assert!(
            guide.contains(&format!("<channel id=\"{name}\">\n    <display-name>{name}</display-name>\n")),
            "{guide}"
        );
        assert!(guide.contains("<channel id=\"é\">"), "{guide}");
    }
}
