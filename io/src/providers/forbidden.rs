//! Where nothing of a provider's is fetched from: what is nearer than it may lead, and this server itself, whose pages trust
//! whoever is on this machine.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use holdfast_core::input::Loss;
use url::{Host, Url};

/// Why an address is not gone to, with the host that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Forbidden {
    /// It is nearer than the provider may lead.
    Near(String),
    /// This server listens on that port of it.
    Own(String, u16),
}

impl Forbidden {
    /// What becomes of a source for it. No credentials would help, and no account is to blame.
    pub fn loss(&self) -> Loss {
        match self {
            Forbidden::Near(_) => Loss::Unusable,
            Forbidden::Own(..) => Loss::Loop,
        }
    }
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Forbidden::Near(host) => write!(
                f,
                "it leads to {host}, a private address, which is refused; `allow_private` of the provider would allow it"
            ),
            Forbidden::Own(host, port) => {
                write!(f, "it leads to port {port} of {host}, where this server itself listens, which is refused")
            }
        }
    }
}

/// A connection to somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// To whom.
    pub peer: SocketAddr,
    /// From which address of this machine, where that is known.
    pub own: Option<IpAddr>,
}

/// Where this server listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listeners(pub Vec<SocketAddr>);

impl Listeners {
    /// Whether a connection leads to this server. What leads to an address of this machine comes from that address.
    pub fn are_at(&self, Ends { peer, own }: Ends) -> bool {
        let to = peer.ip().to_canonical();
        let is_here = to.is_loopback() || to.is_unspecified() || own.is_some_and(|own| own.to_canonical() == to);
        self.0.iter().filter(|own| own.port() == peer.port()).any(|own| {
            let own = own.ip().to_canonical();
            own == to || is_here && (own.is_unspecified() || to.is_unspecified())
        })
    }

    /// The port, where a URL leads to this server as far as that shows in its words.
    pub fn port_in(&self, url: &Url) -> Option<u16> {
        let port = url.port_or_known_default()?;
        let hosts: &[IpAddr] = match url.host()? {
            Host::Ipv4(v4) => &[v4.into()],
            Host::Ipv6(v6) => &[v6.into()],
            Host::Domain(name) => {
                let name = name.trim_end_matches('.');
                let is_here = name == "localhost" || name.ends_with(".localhost");
                if is_here { &[IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] } else { &[] }
            }
        };
        hosts.iter().any(|to| self.are_at(Ends { peer: (*to, port).into(), own: None })).then_some(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_knows_itself_in_every_disguise() {
        for (listens, url, own) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080/api/status", true),
            ("127.0.0.1:8080", "http://[::ffff:127.0.0.1]:8080/", true),
            ("127.0.0.1:8080", "http://0:8080/", true),
            ("127.0.0.1:8080", "http://localhost:8080/", true),
            ("127.0.0.1:80", "http://127.0.0.1/", true),
            ("0.0.0.0:8080", "http://127.0.0.9:8080/", true),
            ("[::]:8080", "http://127.0.0.1:8080/", true),
            ("192.0.2.1:8080", "http://192.0.2.1:8080/", true),
            // Others on this machine are others.
            ("127.0.0.1:8080", "http://127.0.0.1:8081/", false),
            ("127.0.0.1:8080", "http://127.0.0.2:8080/", false),
            ("127.0.0.1:8080", "https://127.0.0.1/", false),
            ("0.0.0.0:8080", "http://192.0.2.1:8080/", false),
            ("0.0.0.0:8080", "http://panel.example:8080/", false),
        ] {
            let port = Listeners(vec![listens.parse().unwrap()]).port_in(&url.parse().unwrap());
            assert_eq!(port.is_some(), own, "{listens} {url}");
        }
        // What no word shows, where a connection leads does.
        let all = Listeners(vec!["0.0.0.0:8080".parse().unwrap()]);
        let ends = |peer: &str, own: &str| Ends { peer: peer.parse().unwrap(), own: Some(own.parse().unwrap()) };
        assert!(all.are_at(ends("192.0.2.1:8080", "192.0.2.1")) && all.are_at(ends("127.0.0.1:8080", "127.0.0.1")));
        assert!(!all.are_at(ends("192.0.2.7:8080", "192.0.2.1")) && !all.are_at(ends("192.0.2.1:81", "192.0.2.1")));
    }
}
