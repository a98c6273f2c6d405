use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::fault::Fault;
use super::head::ResponseHead;
use super::redirect::{keeps_credentials, redirect};
use crate::http::Request;
use crate::http::field::{self, FieldName, FieldValue};

/// What is asked of an origin.
#[derive(Clone, PartialEq, Eq)]
pub struct Get {
    url: Url,
    fields: Vec<(FieldName, FieldValue)>,
    pub(super) persistence: Persistence,
}

/// Whether the connection is meant to serve another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// It is not, and the origin is told so.
    Close,
    /// It is.
    KeepAlive,
}

/// What is sent with each request unless a field of that name was given.
static USUAL: [(FieldName, FieldValue); 3] = [
    (field::USER_AGENT, FieldValue::from_static(concat!("Holdfast/", env!("CARGO_PKG_VERSION")))),
    (field::ACCEPT, FieldValue::from_static("*/*")),
    (field::ACCEPT_ENCODING, FieldValue::from_static("identity")),
];

impl Get {
    /// A request for what an `http` or `https` URL names, on a connection that ends with the answer. User and password
    /// of the URL are sent as Basic credentials (RFC 7617); its fragment is not sent.
    ///
    /// # Errors
    /// [`Fault::Url`] for other schemes, and for credentials that cannot be sent.
    pub fn new(url: Url) -> Result<Self, Fault> {
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(Fault::Url("the URL of an origin begins with http:// or https://"));
        }
        // RFC 7617 §2: what stands before the first colon is the user.
        if percent_decode_str(url.username()).any(|byte| byte == b':') {
            return Err(Fault::Url("a user name with a colon cannot be sent as Basic credentials"));
        }
        Ok(Get { url, fields: Vec::new(), persistence: Persistence::Close })
    }

    /// What is asked for. May hold credentials: not for logs.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether a request is this one, as it reaches whoever is asked. A proxy on the way may have put another host in place of
    /// the one that is meant, as nginx does unless it is told not to: it is known by who asks, then. And it may have taken away
    /// what the path begins with, where it has more servers than one behind it.
    pub fn is_for(&self, request: &Request) -> bool {
        self.url.query() == request.query.as_deref()
            && request.path.len() > 1
            && self.url.path().ends_with(request.path.as_str())
            && (self.authority().eq_ignore_ascii_case(&request.authority)
                || request.headers.get(field::USER_AGENT.as_str()) == Some(self.agent()))
    }

    /// As what it asks.
    fn agent(&self) -> &str {
        let fields = self.fields.iter().chain(&USUAL);
        fields
            .filter(|(name, _)| *name == field::USER_AGENT)
            .map(|(_, value)| value.as_str())
            .next()
            .unwrap_or_default()
    }

    /// The host to connect to: a DNS name, or an IP address without brackets.
    pub fn host(&self) -> String {
        match self.url.host() {
            Some(Host::Ipv6(address)) => address.to_string(),
            host => host.map(|host| host.to_string()).unwrap_or_default(),
        }
    }

    /// The TCP port to connect to.
    pub fn port(&self) -> u16 {
        // Both schemes have one.
        self.url.port_or_known_default().unwrap_or_default()
    }

    /// Whether TLS is to be spoken.
    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Adds a field. It takes the place of one of that name which would be sent by itself: `User-Agent`, `Accept`,
    /// `Accept-Encoding`, `Host`, and `Authorization` from the URL's credentials.
    #[must_use]
    pub fn header(mut self, name: FieldName, value: FieldValue) -> Self {
        self.fields.push((name, value));
        self
    }

    /// Asks for the bytes from `first` on, up to and with `last` (RFC 9110 §14.2). The origin may answer with all of them
    /// and status 200.
    #[must_use]
    pub fn range(self, first: u64, last: Option<u64>) -> Self {
        let last = last.map(|last| last.to_string()).unwrap_or_default();
        let value = FieldValue::new(format!("bytes={first}-{last}"));
        self.header(field::RANGE, value.expect("digits and a dash are a field value"))
    }

    /// Means to use the connection again, if the answer lets it
    /// ([`Exchange::is_reusable`](super::Exchange::is_reusable)).
    #[must_use]
    pub fn keep_alive(mut self) -> Self {
        self.persistence = Persistence::KeepAlive;
        self
    }

    /// The same request of where this answer to it redirects to; `None` if it does not. `Authorization`, `Cookie` and
    /// `Host` stay behind where credentials of the URL would ([`redirect`]). Count them: [`REDIRECTS`](super::REDIRECTS).
    ///
    /// # Errors
    /// As [`redirect`] and [`Get::new`].
    pub fn follow(mut self, answer: &ResponseHead) -> Result<Option<Self>, Fault> {
        let Some(to) = redirect(&self.url, answer)? else { return Ok(None) };
        if !keeps_credentials(&self.url, &to) {
            self.fields.retain(|(name, _)| ![field::AUTHORIZATION, field::COOKIE, field::HOST].contains(name));
        }
        let target = Get::new(to)?;
        Ok(Some(Get { url: target.url, ..self }))
    }

    /// The request as it is sent.
    pub(super) fn to_bytes(&self) -> Bytes {
        let (path, query) = (self.url.path(), self.url.query());
        let mut head = format!("GET {path}{}{}", query.map_or("", |_| "?"), query.unwrap_or_default());
        head += " HTTP/1.1\r\n";
        let mut write = |name: FieldName, value: &str| {
            for part in [name.as_str(), ": ", value, "\r\n"] {
                head += part;
            }
        };
        let given = |name: FieldName| self.fields.iter().any(|(own, _)| *own == name);
        // RFC 9110 §7.2: first, since a server may need it to understand the rest.
        if !given(field::HOST) {
            write(field::HOST, &self.authority());
        }
        for (name, value) in USUAL.iter().filter(|(name, _)| !given(*name)) {
            write(*name, value.as_str());
        }
        if let Some(basic) = self.basic()
            && !given(field::AUTHORIZATION)
        {
            write(field::AUTHORIZATION, &basic);
        }
        for (name, value) in &self.fields {
            write(*name, value.as_str());
        }
        head += match self.persistence {
            Persistence::Close => "Connection: close\r\n\r\n",
            Persistence::KeepAlive => "Connection: keep-alive\r\n\r\n",
        };
        head.into()
    }

    fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.into(), |port| format!("{host}:{port}"))
    }

    fn basic(&self) -> Option<String> {
        let (user, password) = (self.url.username(), self.url.password());
        if user.is_empty() && password.is_none() {
            return None;
        }
        let mut credentials: Vec<u8> = percent_decode_str(user).collect();
        credentials.push(b':');
        credentials.extend(percent_decode_str(password.unwrap_or_default()));
        Some(format!("Basic {}", BASE64_STANDARD.encode(credentials)))
    }
}

/// Secrets never get into a log by way of `{:?}`; the path may be one.
impl fmt::Debug for Get {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("origin", &self.url.origin().ascii_serialization()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(url: &str) -> Get {
        Get::new(url.parse().unwrap()).unwrap()
    }

    fn sent(get: &Get) -> String {
        String::from_utf8(get.to_bytes().to_vec()).unwrap()
    }

    fn value(head: &str, name: &str) -> Vec<String> {
        let name = format!("{name}: ");
        head.lines().filter_map(|line| line.strip_prefix(&name)).map(Into::into).collect()
    }

    #[test]
    fn a_request_says_what_it_needs_and_no_more() {
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            sent(&get("HTTP://Origin.example:80/a%20b/../c d?x=1&y=ä#z")),
            format!(
                "GET /c%20d?x=1&y=%C3%A4 HTTP/1.1\r\nHost: origin.example\r\nUser-Agent: Holdfast/{version}\r\n\
                 Accept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
            )
        );
        assert!(sent(&get("http://a?").keep_alive()).starts_with("GET /? HTTP/1.1\r\nHost: a\r\n"));
        assert!(sent(&get("http://a").keep_alive()).ends_with("\r\nConnection: keep-alive\r\n\r\n"));
    }

    #[test]
    fn the_authority_names_a_port_unless_it_is_the_schemes_own() {
        for (url, host) in [
            ("https://a:443/", "a"),
            ("https://a:80/", "a:80"),
            ("http://[2001:DB8::1]:8080/", "[2001:db8::1]:8080"),
            ("http://bücher.example/", "xn--bcher-kva.example"),
            ("http://user@a:81/", "a:81"),
        ] {
            assert_eq!(value(&sent(&get(url)), "Host"), [host], "{url}");
        }
    }

    #[test]
    fn it_names_where_to_connect_to() {
        for (url, host, port, encrypted) in [
            ("http://[2001:DB8::1]/", "2001:db8::1", 80, false),
            ("https://bücher.example/", "xn--bcher-kva.example", 443, true),
            ("https://192.0.2.1:80/", "192.0.2.1", 80, true),
        ] {
            let get = get(url);
            assert_eq!((&*get.host(), get.port(), get.is_encrypted()), (host, port, encrypted));
        }
    }

    #[test]
    fn credentials_of_the_url_are_decoded_and_sent_as_basic() {
        let authorization = |url| value(&sent(&get(url)), "Authorization");
        // RFC 7617 §2.
        assert_eq!(authorization("http://Aladdin:open%20sesame@a/"), ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]);
        assert_eq!(authorization("http://test:123%C2%A3@a/"), ["Basic dGVzdDoxMjPCow=="]);
        assert_eq!(authorization("http://:p@a/"), ["Basic OnA="]);
        assert_eq!(authorization("http://u@a/"), ["Basic dTo="]);
        assert_eq!(authorization("http://a/"), [""; 0]);
        let colon = "http://a%3ab:c@d/".parse().unwrap();
        assert!(matches!(Get::new(colon), Err(Fault::Url(_))));
    }

    #[test]
    fn a_field_that_is_given_takes_the_place_of_the_usual_one() {
        let request = get("http://u:p@a/")
            .header(field::USER_AGENT, FieldValue::from_static("VLC/3.0.20"))
            .header(field::AUTHORIZATION, FieldValue::from_static("Bearer x"))
            .header(field::HOST, FieldValue::from_static("b"))
            .header(field::REFERER, FieldValue::from_static("http://c/"))
            .range(5, Some(9));
        let head = sent(&request);
        for (name, expected) in [
            ("User-Agent", "VLC/3.0.20"),
            ("Authorization", "Bearer x"),
            ("Host", "b"),
            ("Referer", "http://c/"),
            ("Range", "bytes=5-9"),
            ("Accept", "*/*"),
        ] {
            assert_eq!(value(&head, name), [expected], "{name}");
        }
        assert_eq!(value(&sent(&get("http://a/").range(7, None)), "Range"), ["bytes=7-"]);
    }

    #[test]
    fn only_http_is_asked_for() {
        for url in ["ftp://a/", "file:///etc/passwd", "srt://a:1", "data:,a", "http+unix://a/"] {
            assert!(matches!(Get::new(url.parse().unwrap()), Err(Fault::Url(_))), "{url}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let request = get("http://hunter2:hunter2@a:1/hunter2?hunter2");
        assert_eq!(format!("{request:?}"), "Get { origin: \"http://a:1\", .. }");
    }

    #[test]
    fn secrets_are_not_carried_to_another_host() {
        let request = get("http://u:p@a/x")
            .header(field::COOKIE, FieldValue::from_static("k"))
            .header(field::USER_AGENT, FieldValue::from_static("VLC"));
        let follow = |location: &str| {
            let answer = ResponseHead::of(302, &[("Location", location)]);
            sent(&request.clone().follow(&answer).unwrap().unwrap())
        };
        let same = follow("/y");
        assert!(same.starts_with("GET /y "));
        assert_eq!((value(&same, "Cookie").len(), value(&same, "Authorization").len()), (1, 1));
        let other = follow("http://b/y");
        assert_eq!((value(&other, "Cookie").len(), value(&other, "Authorization").len()), (0, 0));
        assert_eq!((value(&other, "User-Agent"), value(&other, "Host")), (vec!["VLC".into()], vec!["b".into()]));
        let ok = ResponseHead::of(200, &[("Location", "/y")]);
        assert_eq!(request.clone().follow(&ok), Ok(None));
    }
}
