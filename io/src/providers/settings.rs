//! What is configured of a provider, beside what the core decides by.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use url::{Host, Url};

use crate::origin::Origin;

/// One provider. Holds secrets: its `Debug` does not show them.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    /// What it is called in the configuration.
    pub name: String,
    /// Where its list is, or its panel.
    pub location: Location,
    /// What is there.
    pub dialect: Dialect,
    /// Where its guide is.
    pub guide: Guide,
    /// How often both are read again.
    pub refresh: Duration,
    /// `User-Agent` of whatever is asked of it; empty = our own.
    pub user_agent: String,
    /// How live streams are asked for, where the provider lets one choose.
    pub output: Output,
    /// Whether it is told through which servers a request for it came (`Via`, RFC 9110 §7.6.3). Some take that for a sign of
    /// somebody who sells on what he has of them.
    pub via: bool,
    /// Which of its groups are taken; empty = all.
    pub groups: Vec<String>,
    /// How near addresses in its catalogue may lead.
    pub reach: Reach,
    /// How many entries are taken of its catalogue.
    pub entries: usize,
    /// How many bytes of its list, of each answer of its panel and of its guide are read.
    pub bytes: u64,
    /// The credentials of its accounts, in the order of the core's; `None` = whatever its addresses hold already.
    pub accounts: Vec<Option<Credentials>>,
}

/// Where a list, a panel or a guide is.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// `http://…`, `https://…`
    Http(Url),
    /// A file of this machine: `file:///path`.
    File(PathBuf),
}

/// What an account logs in with.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Credentials {
    /// Part of addresses: in their path, in their query.
    pub username: String,
    /// The same.
    pub password: String,
}

/// What people call an account of a provider: which of them it is, counted from 1, and what it logs in with.
pub fn account_name(number: usize, username: &str) -> String {
    if username.is_empty() { number.to_string() } else { format!("{number} ({username})") }
}

impl ProviderSettings {
    /// The place of the account with which its panel is read, counted from 0.
    pub(crate) fn reads_with(&self) -> Option<usize> {
        self.accounts.iter().position(Option::is_some)
    }

    /// What the account at this place, counted from 0, logs in with, if the configuration says so; empty if not. What stands in an
    /// address is not shown, as nothing of addresses is that may be a key.
    pub fn username(&self, place: usize) -> &str {
        let own = self.accounts.get(place).and_then(Option::as_ref);
        own.filter(|own| self.location.credentials().as_ref() != Some(*own)).map_or("", |own| &own.username)
    }
}

/// How a provider tells what it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// Which of the others it is shows its address.
    #[default]
    Auto,
    /// A list.
    M3u,
    /// The API of a panel: `player_api.php`.
    Xtream,
}

/// Where the guide of a provider is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Guide {
    /// Where its list says, or where panels have it.
    #[default]
    Auto,
    /// Nowhere.
    None,
    /// There.
    At(Location),
}

/// How a live stream is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Output {
    /// MPEG-TS, unless a panel says that it has none, or gives none where HLS can be had.
    #[default]
    Auto,
    /// MPEG-TS.
    Ts,
    /// HLS.
    M3u8,
}

impl Dialect {
    /// The dialect that is meant at this address, if it is not said.
    pub fn at(self, location: &Location) -> Dialect {
        let Location::Http(url) = location else { return Dialect::M3u };
        let file = url.path().rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        match self {
            Dialect::Auto if file == "player_api.php" || file.is_empty() && url.query().is_none() => Dialect::Xtream,
            Dialect::Auto => Dialect::M3u,
            said => said,
        }
    }
}

impl Location {
    /// Reads an address.
    ///
    /// # Errors
    /// What would be right. Nothing of the address is repeated but its scheme.
    pub fn parse(text: &str) -> Result<Location, String> {
        match Origin::parse(text).map_err(|unusable| unusable.to_string())? {
            Origin::Http(url) => Ok(Location::Http(url)),
            Origin::File(path) => Ok(Location::File(path)),
            _ => Err(String::from("begins with neither http://, https:// nor file://")),
        }
    }

    /// How near it is, as far as that shows in its words. A file is not near: whoever wrote it need not be who operates this server.
    pub fn reach(&self) -> Reach {
        match self {
            Location::Http(url) => Reach::to_url(url),
            Location::File(_) => Reach::Public,
        }
    }

    /// As it is shown: without what may be a secret.
    pub fn label(&self) -> String {
        match self {
            Location::Http(url) => Origin::Http(url.clone()).label(),
            Location::File(path) => Origin::File(path.clone()).label(),
        }
    }

    /// The credentials that it holds: in its query, as panels have it, or before its host.
    pub fn credentials(&self) -> Option<Credentials> {
        let Location::Http(url) = self else { return None };
        let value = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        if let (Some(username), Some(password)) = (value("username"), value("password")) {
            return Some(Credentials { username, password }).filter(|own| !own.username.is_empty());
        }
        let decoded = |part: &str| percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned();
        (!url.username().is_empty()).then(|| Credentials {
            username: decoded(url.username()),
            password: decoded(url.password().unwrap_or_default()),
        })
    }
}

/// How near something is, or may be. Whatever is near may be reached from here though its provider cannot reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Outside, where everybody may go.
    Public,
    /// In a private network, or in many at once.
    Network,
    /// This machine, whose services trust whoever is on it.
    Machine,
}

impl Reach {
    /// How near an address is.
    pub(crate) fn to(address: IpAddr) -> Reach {
        match address.to_canonical() {
            IpAddr::V4(v4) => {
                let [a, b, ..] = v4.octets();
                let network = v4.is_private()
                    || v4.is_link_local()
                    || v4.is_multicast()
                    // Shared address space of carriers (RFC 6598), benchmarks (RFC 2544), reserved (RFC 1112).
                    || a == 100 && b & 0xc0 == 64
                    || a == 198 && b & 0xfe == 18
                    || a >= 240;
                // Linux takes 0.0.0.0 for itself.
                if v4.is_loopback() || a == 0 { Reach::Machine } else { Reach::in_network(network) }
            }
            IpAddr::V6(v6) if v6.is_loopback() || v6.is_unspecified() => Reach::Machine,
            // NAT64 (RFC 6052) leads to IPv4 addresses.
            IpAddr::V6(v6) if v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0] => {
                Reach::to(std::net::Ipv4Addr::from_bits(v6.to_bits() as u32).into())
            }
            IpAddr::V6(v6) => {
                Reach::in_network(v6.is_multicast() || v6.is_unique_local() || v6.is_unicast_link_local())
            }
        }
    }

    /// How near the host of a URL is, as far as that shows in its words.
    pub(crate) fn to_url(url: &Url) -> Reach {
        match url.host() {
            Some(Host::Ipv4(v4)) => Reach::to(v4.into()),
            Some(Host::Ipv6(v6)) => Reach::to(v6.into()),
            Some(Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                let own = name == "localhost" || name.ends_with(".localhost");
                if own { Reach::Machine } else { Reach::Public }
            }
            None => Reach::Machine,
        }
    }

    fn in_network(network: bool) -> Reach {
        if network { Reach::Network } else { Reach::Public }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSettings")
            .field("name", &self.name)
            .field("location", &self.location)
            .field("accounts", &self.accounts.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Location {
        Location::parse(text).unwrap()
    }

    #[test]
    fn the_dialect_shows_in_the_address() {
        for (text, dialect) in [
            ("http://panel.example:8080", Dialect::Xtream),
            ("http://panel.example/", Dialect::Xtream),
            ("http://panel.example/player_api.php?username=a&password=b", Dialect::Xtream),
            ("http://panel.example/get.php?username=a&password=b&type=m3u_plus", Dialect::M3u),
            ("https://lists.example/tv.m3u", Dialect::M3u),
            ("file:///srv/tv.m3u", Dialect::M3u),
        ] {
            assert_eq!(Dialect::Auto.at(&at(text)), dialect, "{text}");
        }
        assert_eq!(Dialect::Xtream.at(&at("http://panel.example/base")), Dialect::Xtream);
        assert_eq!(Dialect::M3u.at(&at("http://panel.example/")), Dialect::M3u);
    }

    #[test]
    fn an_address_may_hold_credentials_and_shows_none() {
        let own = |text: &str| at(text).credentials().map(|own| (own.username, own.password));
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(own("http://p.example/get.php?type=m3u&username=a%40b&password=s+1"), pair("a@b", "s 1"));
        assert_eq!(own("http://a:s%2F1@p.example/x.m3u"), pair("a", "s/1"));
        assert_eq!(own("http://p.example/x.m3u?username=a"), None);
        assert_eq!(own("file:///x.m3u"), None);
        assert!(
            !format!("{:?}", at("http://hunter2:hunter2@p.example/hunter2/x.m3u?password=hunter2")).contains("hunter")
        );
        assert!(Location::parse("srt://a:1").is_err() && Location::parse("ftp://a/b").is_err());
    }

    #[test]
    fn an_account_is_called_by_what_it_logs_in_with_where_no_address_says_that() {
        let own = |username: &str| Some(Credentials { username: username.into(), password: "hunter2".into() });
        let settings = ProviderSettings {
            name: "tv".into(),
            location: at("http://p.example/get.php?username=key&password=hunter2"),
            dialect: Dialect::Auto,
            guide: Guide::None,
            refresh: Duration::ZERO,
            user_agent: String::new(),
            output: Output::Auto,
            via: false,
            groups: Vec::new(),
            reach: Reach::Public,
            entries: 0,
            bytes: 0,
            accounts: vec![own("box-1"), own("key"), None],
        };
        let names = [0, 1, 2].map(|place| account_name(place + 1, settings.username(place)));
        assert_eq!(names, ["1 (box-1)", "2", "3"]);
    }

    #[test]
    fn what_is_near_is_known_in_every_disguise() {
        let reach = |text: &str| Reach::to_url(&text.parse().unwrap());
        for text in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://localhost/",
            "http://x.localhost./",
            "http://[64:ff9b::7f00:1]/",
        ] {
            assert_eq!(reach(text), Reach::Machine, "{text}");
        }
        for text in [
            "http://10.1.2.3/",
            "http://192.168.0.1/",
            "http://172.31.0.1/",
            "http://169.254.169.254/",
            "http://100.64.0.1/",
            "http://[::ffff:10.0.0.1]/",
            "http://[fd00::1]/",
            "http://[fe80::1]/",
            "http://255.255.255.255/",
            "http://[64:ff9b::a00:1]/",
            "http://224.0.0.1/",
        ] {
            assert_eq!(reach(text), Reach::Network, "{text}");
        }
        for text in ["http://192.0.2.1/", "http://172.32.0.1/", "http://[2001:db8::1]/", "http://localhost.example/"] {
            assert_eq!(reach(text), Reach::Public, "{text}");
        }
    }
}
