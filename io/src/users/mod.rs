//! Who may log in, and from where.

mod password;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use holdfast_core::input::UserId;
use ipnet::IpNet;
pub use password::Password;
use ring::digest;

/// What a user logs in with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Its name.
    pub name: String,
    /// Its password.
    pub password: Password,
    /// When it expires, in seconds since 1970; `None` = never. For clients to show; the core knows by itself.
    pub expires: Option<u64>,
    /// Which of the catalogue's groups it may see and play; empty = all.
    pub groups: Vec<String>,
    /// What clients are told of it.
    pub status: Status,
}

/// What clients are told of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Status {
    /// It may play.
    #[default]
    Active,
    /// It may play, to try it out.
    Trial,
    /// Its time is over.
    Expired,
    /// It may not play.
    Banned,
    /// It may not play for now.
    Disabled,
}

impl Status {
    /// Whether it may play.
    pub fn may_play(self) -> bool {
        matches!(self, Status::Active | Status::Trial)
    }

    /// The word for it that clients of the Xtream API know.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Active | Status::Trial => "Active",
            Status::Expired => "Expired",
            Status::Banned => "Banned",
            Status::Disabled => "Disabled",
        }
    }
}

/// Everybody who may log in.
#[derive(Debug, Default)]
pub(crate) struct Users {
    logins: Vec<Login>,
    places: BTreeMap<String, usize>,
    /// What was right last: hashing a password again for each segment of a stream would keep everybody waiting.
    right: Vec<Option<digest::Digest>>,
}

impl Users {
    pub fn new(logins: Vec<Login>) -> Self {
        let places = logins.iter().enumerate().map(|(place, login)| (login.name.clone(), place)).collect();
        let right = logins.iter().map(|_| None).collect();
        Users { logins, places, right }
    }

    /// Whether nobody has to log in.
    pub fn is_open(&self) -> bool {
        self.logins.is_empty()
    }

    pub fn get(&self, user: UserId) -> Option<&Login> {
        self.logins.get(user.0 as usize)
    }

    /// Who that is. An unknown name takes as long as a known one.
    pub fn find(&mut self, name: &str, password: &str) -> Option<UserId> {
        let known = self.places.get(name).copied();
        let place = known.unwrap_or(0);
        let login = self.logins.get(place)?;
        let given = digest::digest(&digest::SHA256, password.as_bytes());
        // Whoever can tell by the time that this is equal has a preimage of SHA-256.
        let cached = self.right[place].is_some_and(|right| right.as_ref() == given.as_ref());
        let right = (cached && known.is_some()) || login.password.is(password);
        if right && known.is_some() {
            self.right[place] = Some(given);
            return Some(UserId(place as u32));
        }
        None
    }
}

/// Where a request really comes from: its peer, or, where that is a proxy that is trusted, who it says was its peer, and so on.
/// `forwarded` are the values of `X-Forwarded-For` in their order, `real` that of `X-Real-IP`.
pub(crate) fn client<'v>(
    peer: SocketAddr,
    trusted: &[IpNet],
    forwarded: impl DoubleEndedIterator<Item = &'v str>,
    real: Option<&str>,
) -> IpAddr {
    let trusts = |address: IpAddr| trusted.iter().any(|network| network.contains(&address.to_canonical()));
    let mut client = peer.ip().to_canonical();
    if !trusts(client) {
        return client;
    }
    let mut said = false;
    for text in forwarded.rev().flat_map(|value| value.rsplit(',')) {
        // What a proxy that is trusted could not write itself proves nothing.
        let Ok(address) = text.trim().parse::<IpAddr>() else { return client };
        said = true;
        client = address.to_canonical();
        if !trusts(client) {
            return client;
        }
    }
    match real.filter(|_| !said).and_then(|text| text.trim().parse::<IpAddr>().ok()) {
        Some(address) => address.to_canonical(),
        None => client,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_a_name_and_its_own_password() {
        let login = |name: &str, password: &str| Login {
            name: name.into(),
            password: Password::parse(password).unwrap(),
            expires: None,
            groups: Vec::new(),
            status: Status::Active,
        };
        let mut users = Users::new(vec![login("anna", "a"), login("ben", &Password::hash("b", [1; 16]).to_string())]);
        for _ in 0..2 {
            assert_eq!(users.find("anna", "a"), Some(UserId(0)));
            assert_eq!(users.find("ben", "b"), Some(UserId(1)));
            for (name, password) in [("anna", "b"), ("ben", "a"), ("", "a"), ("Anna", "a"), ("carl", "a"), ("anna", "")]
            {
                assert_eq!(users.find(name, password), None, "{name} {password}");
            }
        }
        assert_eq!(Users::default().find("", ""), None);
    }

    #[test]
    fn only_a_trusted_proxy_says_who_its_client_is() {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "::1/128"].map(|network| network.parse().unwrap()).into();
        let at = |peer: &str, forwarded: &[&str], real: Option<&str>| {
            client(SocketAddr::new(peer.parse().unwrap(), 1), &trusted, forwarded.iter().copied(), real).to_string()
        };
        for (peer, forwarded, real, client) in [
            ("192.0.2.1", &["198.51.100.1"][..], Some("198.51.100.2"), "192.0.2.1"),
            ("10.0.0.1", &["198.51.100.1"], None, "198.51.100.1"),
            ("10.0.0.1", &["203.0.113.9, 198.51.100.1"], None, "198.51.100.1"),
            ("10.0.0.1", &["203.0.113.9", "198.51.100.1, 10.0.0.2"], None, "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1, nonsense"], None, "10.0.0.1"),
            ("10.0.0.1", &[], Some("198.51.100.2"), "198.51.100.2"),
            ("10.0.0.1", &[], None, "10.0.0.1"),
            ("::1", &["2001:db8::7"], None, "2001:db8::7"),
            ("::ffff:10.0.0.1", &["::ffff:198.51.100.1"], None, "198.51.100.1"),
        ] {
            assert_eq!(at(peer, forwarded, real), client, "{peer} {forwarded:?} {real:?}");
        }
    }
}
