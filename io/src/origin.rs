//! Where a channel's media comes from: the URLs of its sources.

mod shown;

use std::fmt;
use std::path::PathBuf;

use url::Url;

use crate::ovt::Generation;
pub(crate) use shown::Secrets;
pub use shown::path as shown_path;

/// One source of a channel.
#[derive(Clone, PartialEq, Eq)]
pub enum Origin {
    /// MPEG-TS over HTTP: `http://…`, `https://…`.
    Http(Url),
    /// OvenMediaEngine, or another Holdfast: `ovt://host[:9000]/app/stream`.
    Ovt {
        /// The DNS name, or the IP address without brackets.
        host: String,
        /// The TCP port.
        port: u16,
        /// As it is asked for.
        target: String,
        /// Whose numbers it speaks; `?generation=0.18` … `0.21` says so.
        generation: Generation,
    },
    /// RTSP through GStreamer: `rtsp://…`, `rtsps://…`.
    Rtsp(Url),
    /// MPEG-TS over SRT through GStreamer: `srt://host:port?mode=…`.
    Srt(Url),
    /// An MPEG-TS file in a loop: `file:///path`.
    File(PathBuf),
    /// The test signal: `test:`.
    Test,
    /// A publishing slot of this server: `whip:ENDPOINT` or `whip:ENDPOINT/SLOT`, counted from 1.
    Slot {
        /// The endpoint's name.
        endpoint: String,
        /// Its slot, from 0.
        slot: u32,
    },
}

/// What is wrong with the URL of a source, and what would be right. Holds nothing of the URL beside its scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable(String);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

/// The port that OvenMediaEngine's origins listen on.
const OVT_PORT: u16 = 9000;

impl Origin {
    /// Reads the URL of a source.
    ///
    /// # Errors
    /// What would be right.
    pub fn parse(text: &str) -> Result<Origin, Unusable> {
        let unusable = |what: &str| Err(Unusable(what.to_owned()));
        // Parsers of URLs pass over ends of lines and tabs: what is left would be another address than what was written.
        if text.contains(char::is_control) {
            return unusable("holds a control character, such as the end of a line or a tab; write it on one line");
        }
        if text == "test:" {
            return Ok(Origin::Test);
        }
        if let Some(place) = text.strip_prefix("whip:") {
            return Origin::slot(place);
        }
        let Ok(url) = Url::parse(text) else {
            return unusable("is no URL; one such as \"http://origin.example/live.ts\" is");
        };
        let is_remote = matches!(url.scheme(), "http" | "https" | "rtsp" | "rtsps" | "srt" | "ovt");
        if is_remote && !names_host(text) {
            return unusable("names no host; \"http://origin.example/live.ts\" does");
        }
        match url.scheme() {
            "http" | "https" => Ok(Origin::Http(url)),
            "rtsp" | "rtsps" => Ok(Origin::Rtsp(url)),
            "srt" if url.port().is_some() => Ok(Origin::Srt(url)),
            "srt" => unusable("needs a host and a port, such as \"srt://origin.example:9000\""),
            "file" => match url.to_file_path() {
                Ok(path) => Ok(Origin::File(path)),
                Err(()) => unusable("names no file of this machine; \"file:///var/lib/slate.ts\" does"),
            },
            "ovt" => Origin::ovt(&url, text),
            scheme => Err(Unusable(format!(
                "begins with \"{scheme}:\"; http, https, ovt, rtsp, rtsps, srt, file, whip and test are known"
            ))),
        }
    }

    fn ovt(url: &Url, text: &str) -> Result<Origin, Unusable> {
        let form = || Unusable(String::from("is not of the form \"ovt://origin.example:9000/app/stream\""));
        let host = url.host_str().ok_or_else(form)?;
        let mut parts = url.path_segments().ok_or_else(form)?;
        if parts.by_ref().filter(|part| !part.is_empty()).count() < 2 {
            return Err(form());
        }
        let mut generation = Generation::Auto;
        for (name, value) in url.query_pairs() {
            if name == "generation" {
                generation = match &*value {
                    "0.18" => Generation::V18,
                    "0.19" => Generation::V19,
                    "0.20" => Generation::V20,
                    "0.21" => Generation::V21,
                    _ => return Err(Unusable(String::from("has a generation that is not 0.18, 0.19, 0.20 or 0.21"))),
                };
            }
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let target = text.split_once('?').map_or(text, |(target, _)| target).to_owned();
        Ok(Origin::Ovt { host, port: url.port().unwrap_or(OVT_PORT), target, generation })
    }

    fn slot(place: &str) -> Result<Origin, Unusable> {
        let form = || Unusable(String::from("is not of the form \"whip:ENDPOINT\" or \"whip:ENDPOINT/1\""));
        let (endpoint, slot) = match place.split_once('/') {
            None => (place, 1),
            Some((endpoint, slot)) => (endpoint, slot.parse().map_err(|_| form())?),
        };
        let slot = u32::checked_sub(slot, 1).filter(|_| !endpoint.is_empty()).ok_or_else(form)?;
        Ok(Origin::Slot { endpoint: endpoint.to_owned(), slot })
    }

    /// The URL as it is shown, logged and told: scheme, host, port and the last part of the path, such as
    /// `http://origin.example:8080/…/123.ts`. The rest may hold keys, and so may a last part of 16 characters or more.
    pub fn label(&self) -> String {
        let plain = |url: &Url| {
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            let (host, path) = (url.host_str().unwrap_or_default(), shown_path(url, "…"));
            format!("{}://{host}{port}{path}{}", url.scheme(), if url.query().is_some() { "?…" } else { "" })
        };
        match self {
            Origin::Http(url) | Origin::Rtsp(url) | Origin::Srt(url) => plain(url),
            Origin::Ovt { target, .. } => match Url::parse(target) {
                Ok(url) => plain(&url),
                Err(_) => String::from("ovt:"),
            },
            Origin::File(path) => format!("file://{}", path.display()),
            Origin::Test => String::from("test:"),
            Origin::Slot { endpoint, slot } => format!("whip:{endpoint}/{}", slot + 1),
        }
    }

    /// Words that came from elsewhere and may repeat the URL, without what [`Origin::label`] hides.
    pub fn redact(&self, text: &str) -> String {
        let secrets = match self {
            Origin::Http(url) | Origin::Rtsp(url) | Origin::Srt(url) => Secrets::of(url),
            Origin::Ovt { target, .. } => Url::parse(target).map(|url| Secrets::of(&url)).unwrap_or_default(),
            Origin::File(_) | Origin::Test | Origin::Slot { .. } => Secrets::default(),
        };
        secrets.without(text)
    }
}

/// Whether a host stands where it belongs. In `http:///path` parsers of URLs take the first part of the path for it.
fn names_host(text: &str) -> bool {
    let rest = text.split_once(':').and_then(|(_, rest)| rest.strip_prefix("//"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '\\', '?', '#']))
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_is_read() {
        let read = |text: &str| Origin::parse(text).unwrap();
        assert!(matches!(read("https://a.example/live.ts?key=x"), Origin::Http(_)));
        assert!(matches!(read("rtsps://a.example/cam"), Origin::Rtsp(_)));
        assert!(matches!(read("srt://a.example:7000?mode=caller"), Origin::Srt(_)));
        assert_eq!(read("file:///var/slate.ts"), Origin::File("/var/slate.ts".into()));
        assert_eq!(read("test:"), Origin::Test);
        assert_eq!(read("whip:stage"), Origin::Slot { endpoint: "stage".into(), slot: 0 });
        assert_eq!(read("whip:stage/2"), Origin::Slot { endpoint: "stage".into(), slot: 1 });
        let Origin::Ovt { host, port, target, generation } = read("ovt://[::1]/app/stream?generation=0.18") else {
            panic!("not OVT")
        };
        assert_eq!((host.as_str(), port, target.as_str()), ("::1", 9000, "ovt://[::1]/app/stream"));
        assert_eq!(generation, Generation::V18);
    }

    #[test]
    fn what_is_wrong_names_what_would_be_right_and_no_secret() {
        for (text, right) in [
            ("origin/live.ts", "http://"),
            ("ftp://user:secret@a/b", "ovt"),
            ("http:///secret/x.ts", "names no host"),
            ("https:secret/x.ts", "names no host"),
            ("rtsp:///x", "names no host"),
            ("srt://:7000", "http://"),
            ("http://a.example/live x\r\nX: y.ts", "control character"),
            ("ovt://a.example/app/str\team", "control character"),
            ("whip:stage\n", "control character"),
            ("srt://a.example", "port"),
            ("ovt://a.example/app", "/app/stream"),
            ("ovt://a.example/app/stream?generation=7", "0.21"),
            ("whip:", "whip:ENDPOINT"),
            ("whip:stage/0", "whip:ENDPOINT"),
            ("whip:stage/x", "whip:ENDPOINT"),
            ("file://elsewhere/x.ts", "file:///"),
        ] {
            let words = Origin::parse(text).unwrap_err().to_string();
            assert!(words.contains(right) && !words.contains("secret"), "{text}: {words}");
        }
    }

    #[test]
    fn a_label_holds_no_secret() {
        for (text, label) in [
            ("http://user:secret@a.example/x.ts?token=secret", "http://a.example/x.ts?…"),
            ("http://a.example:8080/live/user/secret/123.ts#secret", "http://a.example:8080/…/123.ts"),
            ("rtsp://user:secret@a.example/x?secret", "rtsp://a.example/x?…"),
            ("srt://a.example:7000?passphrase=secretsecret", "srt://a.example:7000?…"),
            ("ovt://[::1]:9001/secret/stream?generation=0.18", "ovt://[::1]:9001/…/stream"),
            ("file:///var/lib/slate.ts", "file:///var/lib/slate.ts"),
        ] {
            let origin = Origin::parse(text).unwrap();
            assert_eq!((origin.label().as_str(), format!("{origin:?}").as_str()), (label, label), "{text}");
            assert!(!origin.redact(&format!("cannot open {text}")).contains("secret"), "{text}");
        }
    }
}
