//! The ingest page: plain HTML, CSS and ES modules, embedded, without anything from elsewhere.
//!
//! The page carries no data: it reads its endpoint from its own address and everything else from `GET /api/status` or, where
//! that takes a token, from `GET /api/endpoints`, so every file here is the same bytes for everybody and may be cached by
//! whatever the server puts around it.

/// What the page may load and talk to; goes with every answer that carries it. Redirects of a POST to another host
/// (RFC 9725, 4.5) are why connections are not limited to the page's own origin.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    media-src 'self' blob:; connect-src *; base-uri 'none'; form-action 'none'";

/// The type of the page.
pub(super) const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// The file at `path` (decoded or not, without query): its content type and its bytes.
///
/// `/` and `/publish/{endpoint}` are the page itself, whatever the name: whoever serves it sees to endpoints that are not
/// there, with [`no_such_endpoint`]. Its parts live under `/page/`. `None` for every other path.
pub fn file(path: &str) -> Option<(&'static str, &'static [u8])> {
    if path == "/" || path.strip_prefix("/publish/").is_some_and(|name| !name.is_empty() && !name.contains('/')) {
        return Some((HTML, include_bytes!("page.html")));
    }
    let file: (&'static str, &'static [u8]) = match path.strip_prefix("/page/")? {
        "page.css" => (CSS, include_bytes!("page.css")),
        "page.js" => (JS, include_bytes!("page.js")),
        "capture.js" => (JS, include_bytes!("capture.js")),
        "publisher.js" => (JS, include_bytes!("publisher.js")),
        "session.js" => (JS, include_bytes!("session.js")),
        "sdp.js" => (JS, include_bytes!("sdp.js")),
        "words.js" => (JS, include_bytes!("words.js")),
        "icon.svg" => ("image/svg+xml", include_bytes!("icon.svg")),
        _ => return None,
    };
    Some(file)
}

/// What stands in the page's place where no endpoint has this name, with links to `others`.
pub(super) fn no_such_endpoint<'a>(name: &str, others: impl Iterator<Item = &'a str>) -> String {
    let links: String =
        others.map(|other| format!("<li><a href=\"/publish/{0}\">{0}</a></li>\n", escaped(other))).collect();
    let there = if links.is_empty() {
        "<p>Ask whoever runs this server for the right address.</p>".to_owned()
    } else {
        format!("<p>Endpoints of this server:</p>\n<ul>\n{links}</ul>")
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>No such endpoint · Holdfast</title>\n\
         <link rel=\"icon\" type=\"image/svg+xml\" href=\"/page/icon.svg\">\n\
         <link rel=\"stylesheet\" href=\"/page/page.css\">\n</head>\n<body data-state=\"failed\">\n\
         <header><img src=\"/page/icon.svg\" alt=\"\" width=\"28\" height=\"28\"><h1>Holdfast <span>ingest</span></h1></header>\n\
         <main>\n<section>\n<h2>There is no endpoint “{}”</h2>\n{there}\n</section>\n</main>\n</body>\n</html>\n",
        escaped(name)
    )
}

/// As text of an element or value of an attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::input::RefuseReason;

    fn text(path: &str) -> &'static str {
        let (_, bytes) = file(path).unwrap_or_else(|| panic!("{path} is not served"));
        std::str::from_utf8(bytes).unwrap()
    }

    /// What stands between each `before` and the next `"`.
    fn quoted<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
        text.split(before).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn the_page_is_at_the_root_and_at_every_endpoint() {
        let (kind, root) = file("/").unwrap();
        assert_eq!(kind, HTML);
        assert_eq!(file("/publish/live").unwrap().1, root);
        for path in ["", "/publish", "/publish/", "/publish/a/b", "/page/", "/page/mod.rs", "/page/../mod.rs", "//"] {
            assert!(file(path).is_none(), "{path}");
        }
    }

    #[test]
    fn an_endpoint_that_is_not_there_is_named_without_becoming_markup() {
        let page = no_such_endpoint("<b a=\"&\">", ["live", "b"].into_iter());
        assert!(page.contains("no endpoint “&lt;b a=&quot;&amp;&quot;&gt;”") && !page.contains("<b "), "{page}");
        assert_eq!(quoted(&page, "<a href=\""), ["/publish/live", "/publish/b"]);
        for part in quoted(&page, "<link rel=\"stylesheet\" href=\"") {
            assert!(file(part).is_some(), "{part}");
        }
        assert!(!no_such_endpoint("x", std::iter::empty()).contains("<ul>"));
    }

    #[test]
    fn everything_the_page_refers_to_is_served_from_here() {
        let html = text("/");
        let mut seen = 0;
        for path in quoted(html, "src=\"").into_iter().chain(quoted(html, "href=\"")) {
            if !path.starts_with('#') {
                assert!(file(path).is_some(), "page.html refers to {path}");
                seen += 1;
            }
        }
        assert!(seen >= 3);
        for module in ["page", "capture", "publisher", "session", "sdp", "words"] {
            for import in quoted(text(&format!("/page/{module}.js")), "from \"./") {
                assert!(file(&format!("/page/{import}")).is_some(), "{module}.js imports {import}");
            }
        }
    }

    #[test]
    fn the_policy_forbids_what_the_page_does_not_contain() {
        let html = text("/");
        for inline in ["style=\"", "<style", "onclick=", "javascript:", "http://", "https://"] {
            assert!(!html.contains(inline), "{inline} would need a wider policy");
        }
        assert_eq!(html.matches("<script").count(), html.matches("<script type=\"module\" src=").count());
    }

    #[test]
    fn every_state_of_a_channel_has_words_and_a_colour() {
        let (words, css) = (text("/page/words.js"), text("/page/page.css"));
        for state in crate::routes::status::channels::STATES {
            assert!(words.contains(&format!("\n  {state}: ")), "{state}");
            // Off is drawn in the colour that rows have anyway.
            assert!(state == "off" || css.contains(&format!("[data-state=\"{state}\"]")), "{state}");
        }
    }

    #[test]
    fn every_reason_of_the_core_to_refuse_a_publisher_has_words() {
        let words = text("/page/words.js");
        // Viewers alone meet these; the last two come with 422 and 404, which have words of their own.
        let elsewhere = [
            RefuseReason::TooManyViewers,
            RefuseReason::StartTimeout,
            RefuseReason::NoSource,
            RefuseReason::UserLimit,
            RefuseReason::Suppressed,
            RefuseReason::AccountExpired,
            RefuseReason::Kicked,
            RefuseReason::Busy,
            RefuseReason::ProviderLimit,
            RefuseReason::AccountsOver,
            RefuseReason::ProviderFailed,
            RefuseReason::Superseded,
            RefuseReason::Preempted,
            RefuseReason::PlaybackOver,
            RefuseReason::TooManyRequests,
            RefuseReason::InVain,
            RefuseReason::NegotiationFailed,
            RefuseReason::NotFound,
        ];
        for reason in RefuseReason::ALL.iter().filter(|reason| !elsewhere.contains(reason)) {
            let reason = reason.as_str();
            let has = |key: &str| words.contains(&format!("\n  {key}: "));
            assert!(has(reason) || has(&format!("\"{reason}\"")), "{reason}");
        }
    }
}
