//! The ingest page: plain HTML, CSS and ES modules, embedded, without anything from elsewhere.
//!
//! The page carries no data: it reads its endpoint from its own address and everything else from `GET /api/status`, so
//! every file here is the same bytes for everybody and may be cached by whatever the server puts around it.

/// What the page may load and talk to; goes with every answer that carries it. Redirects of a POST to another host
/// (RFC 9725, 4.5) are why connections are not limited to the page's own origin.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    media-src 'self' blob:; connect-src *; base-uri 'none'; form-action 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// The file at `path` (decoded or not, without query): its content type and its bytes.
///
/// `/` and `/publish/{endpoint}` are the page itself, whether there is an endpoint of that name or not: the page says so in
/// words. Its parts live under `/page/`. `None` for every other path.
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
    fn every_reason_of_the_core_to_refuse_a_publisher_has_words() {
        let words = text("/page/words.js");
        // Viewers alone meet the first; the others come with 422 and 404, which have words of their own.
        let elsewhere = [RefuseReason::TooManyViewers, RefuseReason::NegotiationFailed, RefuseReason::NotFound];
        for reason in RefuseReason::ALL.iter().filter(|reason| !elsewhere.contains(reason)) {
            let reason = reason.as_str();
            let has = |key: &str| words.contains(&format!("\n  {key}: "));
            assert!(has(reason) || has(&format!("\"{reason}\"")), "{reason}");
        }
    }
}
