//! Where something is: addresses, files, URLs.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use holdfast_io::origin::{Origin, shown_path};
use holdfast_io::ovt::Generation;
use url::Url;

use super::super::Ports;
use super::super::fault::printable;
use super::{Kind, Value, Wrong, quoted};

/// An IP address with a port.
pub(in crate::config) struct Listener;

impl Kind<SocketAddr> for Listener {
    fn read(&self, value: Value<'_>) -> Result<SocketAddr, Wrong> {
        let right = r#"write "ADDRESS:PORT", such as "127.0.0.1:8080" or "[::]:8080""#;
        let text = value.text(right)?;
        text.parse().map_err(|_| Wrong::new(format!("\"{}\" is not an IP address with a port", printable(text)), right))
    }

    fn show(&self, value: &SocketAddr) -> String {
        quoted(&value.to_string())
    }
}

/// An IP address.
pub(in crate::config) struct Address;

impl Kind<IpAddr> for Address {
    fn read(&self, value: Value<'_>) -> Result<IpAddr, Wrong> {
        let right = r#"write one such as "192.0.2.7" or "2001:db8::7""#;
        let text = value.text(right)?;
        text.parse().map_err(|_| Wrong::new(format!("\"{}\" is not an IP address", printable(text)), right))
    }

    fn show(&self, value: &IpAddr) -> String {
        quoted(&value.to_string())
    }
}

/// "FIRST-LAST", or "" for whatever the system gives.
pub(in crate::config) struct PortRange;

impl Kind<Option<Ports>> for PortRange {
    fn read(&self, value: Value<'_>) -> Result<Option<Ports>, Wrong> {
        let right = r#"write "FIRST-LAST" with ports from 1024 to 65535, such as "20000-20100", or "" for any"#;
        let text = value.text(right)?;
        if text.is_empty() {
            return Ok(None);
        }
        let port = |part: &str| part.trim().parse().ok().filter(|port| *port >= 1024);
        let ports =
            text.split_once('-').and_then(|(first, last)| Some(Ports { first: port(first)?, last: port(last)? }));
        match ports {
            None => Err(Wrong::new(format!("\"{}\" is not a range of ports", printable(text)), right)),
            Some(Ports { first, last }) if first > last => {
                Err(Wrong::new(format!("{first} is greater than {last}"), right))
            }
            ports => Ok(ports),
        }
    }

    fn show(&self, value: &Option<Ports>) -> String {
        quoted(&value.map_or_else(String::new, |ports| format!("{}-{}", ports.first, ports.last)))
    }
}

/// The path of a file, or "" for none.
pub(in crate::config) struct File;

impl Kind<PathBuf> for File {
    fn read(&self, value: Value<'_>) -> Result<PathBuf, Wrong> {
        let right = r#"write the path of a file, such as "/etc/holdfast/cert.pem""#;
        let text = value.text(right)?;
        if text.contains('\0') {
            return Err(Wrong::new("holds a zero byte", right));
        }
        Ok(PathBuf::from(text))
    }

    fn show(&self, value: &PathBuf) -> String {
        quoted(&value.to_string_lossy())
    }
}

/// The path of a directory, from the root on: it is looked through for as long as the program runs, wherever that was started.
pub(in crate::config) struct Directory;

impl Kind<PathBuf> for Directory {
    fn read(&self, value: Value<'_>) -> Result<PathBuf, Wrong> {
        let right = r#"write the whole path of a directory, such as "/srv/films""#;
        let text = value.text(right)?;
        if text.contains('\0') {
            return Err(Wrong::new("holds a zero byte", right));
        }
        if !text.starts_with('/') {
            return Err(Wrong::new(format!("{} does not begin with a /", quoted(text)), right));
        }
        Ok(PathBuf::from(text))
    }

    fn show(&self, value: &PathBuf) -> String {
        File.show(value)
    }
}

/// The URL of a source. What may be a secret in it is neither shown nor repeated in messages.
pub(in crate::config) struct Source;

impl Kind<Origin> for Source {
    fn read(&self, value: Value<'_>) -> Result<Origin, Wrong> {
        let right = "write the URL of a source, such as \"http://origin.example/live.ts\"";
        let text = value.text(right)?;
        if text.len() > 2048 {
            return Err(Wrong::new(format!("has {} bytes", text.len()), "a URL has at most 2048"));
        }
        Origin::parse(text).map_err(|unusable| Wrong::new(unusable.to_string(), right))
    }

    fn show(&self, value: &Origin) -> String {
        quoted(&match value {
            Origin::Http(url) | Origin::Rtsp(url) | Origin::Srt(url) => starred(url),
            Origin::Ovt { target, generation, .. } => {
                let target = Url::parse(target).map_or_else(|_| String::from("ovt:***"), |url| starred(&url));
                match generation {
                    Generation::Auto => target,
                    Generation::V18 => target + "?generation=0.18",
                    Generation::V19 => target + "?generation=0.19",
                    Generation::V20 => target + "?generation=0.20",
                    Generation::V21 => target + "?generation=0.21",
                }
            }
            Origin::File(path) => Url::from_file_path(path).map_or_else(|()| value.label(), String::from),
            Origin::Test | Origin::Slot { .. } => value.label(),
        })
    }
}

/// A URL without what may be a secret.
pub(super) fn starred(url: &Url) -> String {
    let mut url = url.clone();
    if !url.username().is_empty() || url.password().is_some() {
        // A URL that has them can have others.
        let _ = url.set_password(None).and_then(|()| url.set_username("***"));
    }
    if url.query().is_some() {
        url.set_query(Some("***"));
    }
    url.set_fragment(None);
    let path = shown_path(&url, "***");
    url.set_path(&path);
    String::from(url)
}

/// A STUN or TURN server (RFC 7064, RFC 7065).
pub(in crate::config) struct IceUrl;

impl Kind<String> for IceUrl {
    fn read(&self, value: Value<'_>) -> Result<String, Wrong> {
        let right = r#"write such as "stun:192.0.2.7:3478" or "turn:turn.example.org:3478?transport=udp""#;
        let text = value.text(right)?;
        let wrong = || Wrong::new(format!("\"{}\" is not the URL of a STUN or TURN server", printable(text)), right);
        let (scheme, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (authority, transport) = match rest.split_once("?transport=") {
            Some((authority, transport)) => (authority, Some(transport)),
            None => (rest, None),
        };
        let may = match transport {
            None => matches!(scheme, "stun" | "stuns" | "turn" | "turns"),
            Some(transport) => matches!(scheme, "turn" | "turns") && matches!(transport, "udp" | "tcp"),
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        // The `url` crate knows no host in a `stun:` URL, but it knows what a host is.
        let hosted = url::Url::parse(&format!("http://{authority}/")).is_ok_and(|url| url.has_host());
        if !may || text.len() > 256 || !authority.chars().all(fits) || !hosted {
            return Err(wrong());
        }
        Ok(text.to_owned())
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }
}
