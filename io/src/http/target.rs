//! Request targets (RFC 9112 §3.2) and the authority they or `Host` name.

use super::fault::Fault;
use super::head::Method;

/// What a request line names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// As it was sent: begins with `/`, or is `*`.
    pub path: String,
    /// The path's segments, percent-decoded after they were split.
    pub segments: Vec<String>,
    /// What followed the first `?`, as it was sent.
    pub query: Option<String>,
    /// Host and port of an absolute target.
    pub authority: Option<String>,
}

impl Target {
    pub(super) fn parse(target: &str, method: Method) -> Result<Self, Fault> {
        if target.contains('#') {
            return Err(Fault::bad("a request target has no fragment"));
        }
        if target == "*" {
            return Target::server_wide(method, None);
        }
        if target.starts_with('/') {
            return Target::origin(target, None);
        }
        let Some(rest) = strip_scheme(target) else {
            return Err(Fault::bad("a request target begins with /, http:// or https://, or is *"));
        };
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.is_empty() || !is_authority(authority) {
            return Err(Fault::bad("the authority of a request target is host or host:port, without user information"));
        }
        match rest {
            // RFC 9112 §3.2.4: what a proxy was asked as `OPTIONS http://host` is asked of the server as `OPTIONS *`.
            "" if method == Method::Options => Target::server_wide(method, Some(authority)),
            _ if rest.starts_with('/') => Target::origin(rest, Some(authority)),
            _ => Target::origin(&format!("/{rest}"), Some(authority)),
        }
    }

    fn server_wide(method: Method, authority: Option<&str>) -> Result<Self, Fault> {
        if method != Method::Options {
            return Err(Fault::bad("the request target * is for OPTIONS"));
        }
        Ok(Target { path: "*".into(), segments: Vec::new(), query: None, authority: authority.map(Into::into) })
    }

    fn origin(target: &str, authority: Option<&str>) -> Result<Self, Fault> {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let segments = path[1..].split('/').map(decode).collect::<Result<Vec<_>, _>>()?;
        // A client resolves them before it sends (RFC 3986 §5.2.4); decoding `%2e%2e` must not bring them back.
        if segments.iter().any(|segment| matches!(segment.as_str(), "." | "..")) {
            return Err(Fault::bad("a path has no . or .. segments"));
        }
        Ok(Target { path: path.into(), segments, query: query.map(Into::into), authority: authority.map(Into::into) })
    }
}

fn strip_scheme(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once("://")?;
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")).then_some(rest)
}

fn decode(segment: &str) -> Result<String, Fault> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(Fault::bad("in a path, % is followed by two hexadecimal digits"));
        };
        bytes.push((high * 16 + low) as u8);
    }
    if bytes.contains(&0) {
        return Err(Fault::bad("a path has no %00"));
    }
    String::from_utf8(bytes).map_err(|_| Fault::bad("a decoded path is UTF-8"))
}

/// Whether this is `uri-host [ ":" port ]` (RFC 9110 §7.2), by its characters. An empty one is.
pub(super) fn is_authority(text: &str) -> bool {
    let (host, port) = match text.rfind(':') {
        Some(colon) if !text.ends_with(']') => (&text[..colon], &text[colon + 1..]),
        _ => (text, ""),
    };
    let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(literal) => return is_port(port) && literal.bytes().all(|b| b.is_ascii_hexdigit() || b":.".contains(&b)),
        None => host,
    };
    is_port(port) && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&b))
}

fn is_port(port: &str) -> bool {
    port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(target: &str) -> Option<Target> {
        Target::parse(target, Method::Get).ok()
    }

    #[test]
    fn segments_are_split_before_they_are_decoded() {
        let target = get("/timeshift/u%2Fser/2026-11-29%3A20-00/caf%C3%A9.ts?a=%zz?b").unwrap();
        assert_eq!(target.segments, ["timeshift", "u/ser", "2026-11-29:20-00", "café.ts"]);
        assert_eq!(target.path, "/timeshift/u%2Fser/2026-11-29%3A20-00/caf%C3%A9.ts");
        assert_eq!(target.query.as_deref(), Some("a=%zz?b"));
        assert_eq!(get("/").unwrap().segments, [""]);
        assert_eq!(get("/é|{}").unwrap().segments, ["é|{}"]);
    }

    #[test]
    fn wrong_paths_are_refused() {
        for bad in ["/%", "/%1", "/%g1", "/%+1", "/%00", "/a%ff", "/a/../b", "/%2e%2E", "/.", "/a#b", "a", "", "*"] {
            assert_eq!(get(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_absolute_target_names_its_authority() {
        for (target, path, query) in [
            ("http://host:80/a/b?c", "/a/b", Some("c")),
            ("HTTPS://host:80", "/", None),
            ("http://host:80?c", "/", Some("c")),
        ] {
            let target = get(target).unwrap();
            assert_eq!((&*target.path, target.query.as_deref()), (path, query));
            assert_eq!(target.authority.as_deref(), Some("host:80"));
        }
        for bad in ["http:///a", "http://user@host/", "ftp://host/", "http://ho st/", "host:80", "http://h:x/"] {
            assert_eq!(get(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_whole_server_is_for_options_alone() {
        for target in ["*", "http://host"] {
            assert_eq!(Target::parse(target, Method::Options).map(|t| t.path), Ok("*".into()));
        }
        assert_eq!(Target::parse("http://host/", Method::Options).map(|t| t.path), Ok("/".into()));
    }

    #[test]
    fn authorities() {
        for good in ["", "a", "a.b:8080", "[::1]", "[::1]:80", "192.0.2.1:", "a_b"] {
            assert!(is_authority(good), "{good}");
        }
        for bad in ["a b", "a/b", "a@b", "a:b", "[::1", "a:123456", "é", "a,b c", "[a b]", "::1x:y"] {
            assert!(!is_authority(bad), "{bad}");
        }
    }
}
