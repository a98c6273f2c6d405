use url::Url;

use super::fault::Fault;
use super::head::ResponseHead;

/// How many redirects in a row are worth following. Load balancers of providers take two or three.
pub const REDIRECTS: usize = 5;

/// Where an answer to a GET of `from` says that its content is (RFC 9110 §15.4): with 301, 302, 303, 307 and 308 what
/// `Location` names, without its fragment; `None` with any other status.
///
/// User and password of `from` go along if `Location` names none and the origin stays the same but for a step from
/// `http` to `https`.
///
/// # Errors
/// [`Fault::Redirect`] if there is no `Location`, or more than one, or it names no `http` or `https` URL.
pub fn redirect(from: &Url, answer: &ResponseHead) -> Result<Option<Url>, Fault> {
    if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let mut locations = answer.headers.get_all("Location");
    let location = locations.next().filter(|location| !location.is_empty());
    let location = location.ok_or(Fault::Redirect("the origin redirects without saying where to"))?;
    if locations.any(|other| other != location) {
        return Err(Fault::Redirect("the origin redirects to two places at once"));
    }
    let mut to = from.join(location).map_err(|_| Fault::Redirect("the origin redirects to what is no URL"))?;
    if !matches!(to.scheme(), "http" | "https") {
        return Err(Fault::Redirect("the origin redirects to what is neither http:// nor https://"));
    }
    to.set_fragment(None);
    if to.username().is_empty() && to.password().is_none() && keeps_credentials(from, &to) {
        let set = to.set_username(from.username()).and_then(|()| to.set_password(from.password()));
        set.expect("a URL with a host has a place for credentials");
    }
    Ok(Some(to))
}

/// Whether who is asked next may know what the first was told.
pub(super) fn keeps_credentials(from: &Url, to: &Url) -> bool {
    let upgraded = from.scheme() == "http" && to.scheme() == "https" && from.port() == to.port();
    from.host() == to.host() && (from.origin() == to.origin() || upgraded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(from: &str, location: &str) -> Result<String, Fault> {
        let answer = ResponseHead::of(302, &[("Location", location)]);
        redirect(&from.parse().unwrap(), &answer).map(|url| url.unwrap().into())
    }

    #[test]
    fn a_location_is_read_relative_to_what_was_asked_for() {
        for (location, url) in [
            ("http://b/x", "http://b/x"),
            ("/x?y", "http://a:81/x?y"),
            ("x", "http://a:81/p/x"),
            ("../x/./y", "http://a:81/x/y"),
            ("?q", "http://a:81/p/o?q"),
            ("//b/x", "http://b/x"),
            ("https://b/x#f", "https://b/x"),
            ("HTTP://B:80/ x", "http://b/%20x"),
            ("/ä", "http://a:81/%C3%A4"),
        ] {
            assert_eq!(to("http://a:81/p/o?i", location).as_deref(), Ok(url), "{location}");
        }
        assert_eq!(to("https://a/x", "http://a/x").as_deref(), Ok("http://a/x"));
    }

    #[test]
    fn what_leads_nowhere_is_refused() {
        for location in ["", "ftp://b/", "file:///etc/passwd", "javascript:0", "http://", "http://a:99999/", "mailto:a"]
        {
            assert!(matches!(to("http://a/", location), Err(Fault::Redirect(_))), "{location}");
        }
        let url = "http://a/".parse().unwrap();
        assert!(matches!(redirect(&url, &ResponseHead::of(307, &[])), Err(Fault::Redirect(_))));
        let two = |second| ResponseHead::of(302, &[("Location", "/x"), ("Location", second)]);
        assert!(matches!(redirect(&url, &two("/y")), Err(Fault::Redirect(_))));
        assert_eq!(redirect(&url, &two("/x")), Ok(Some("http://a/x".parse().unwrap())));
    }

    #[test]
    fn other_statuses_do_not_redirect() {
        let url = "http://a/".parse().unwrap();
        for status in [200, 201, 206, 300, 304, 305, 306, 400, 404, 503] {
            assert_eq!(redirect(&url, &ResponseHead::of(status, &[("Location", "/x")])), Ok(None), "{status}");
        }
        for status in [301, 302, 303, 307, 308] {
            assert!(redirect(&url, &ResponseHead::of(status, &[("Location", "/x")])).unwrap().is_some(), "{status}");
        }
    }

    #[test]
    fn credentials_go_to_nobody_else() {
        for (from, location, url) in [
            ("http://u:p@a/", "/x", "http://u:p@a/x"),
            ("http://u:p@a/", "http://a/x", "http://u:p@a/x"),
            ("http://u:p@a/", "https://a/x", "https://u:p@a/x"),
            ("http://u:p@a/", "http://v@a/x", "http://v@a/x"),
            ("http://u:p@a/", "http://v:q@b/x", "http://v:q@b/x"),
            ("http://u:p@a/", "//b/x", "http://b/x"),
            ("http://u:p@a/", "http://a:81/x", "http://a:81/x"),
            ("http://u:p@a/", "http://a.b/x", "http://a.b/x"),
            ("https://u:p@a/", "http://a/x", "http://a/x"),
            ("https://u:p@a/", "https://b.a/x", "https://b.a/x"),
        ] {
            assert_eq!(to(from, location).as_deref(), Ok(url), "{from} {location}");
        }
    }
}
