//! Whether addresses can be listened on beside one another, and media come in at them.

use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

use crate::config::reader::Reader;

/// Two listeners must not want the same address.
pub(super) fn settings(reader: &mut Reader<'_>) {
    let http = reader.settings.http.listen.iter().map(|address| ("http.listen", *address));
    let ovt = reader.settings.ovt.listen.iter().map(|address| ("ovt.listen", *address));
    let listen: Vec<(&str, SocketAddr)> = http.chain(ovt).collect();
    let pairs = listen.iter().enumerate().flat_map(|(n, one)| listen[n + 1..].iter().map(move |other| (one, other)));
    let Some(((key, one), (second, other))) = pairs.into_iter().find(|(one, other)| collide(&one.1, &other.1)) else {
        return;
    };
    let (wrong, right) = if one == other {
        (format!("\"{one}\" is there twice"), String::from("write each address once"))
    } else {
        (
            format!("\"{one}\" and \"{other}\" cannot both be listened on: the system refuses the second"),
            String::from("leave out the narrower one, or take another port"),
        )
    };
    reader.conflict(&[second, key], wrong, right);
}

fn collide(one: &SocketAddr, other: &SocketAddr) -> bool {
    one.port() != 0 && one.port() == other.port() && (covers(one, other) || covers(other, one))
}

/// Whether the first takes the connections to the second: `[::]` takes those of IPv4 too.
fn covers(one: &SocketAddr, other: &SocketAddr) -> bool {
    match (one.ip().to_canonical(), other.ip().to_canonical()) {
        (IpAddr::V6(any), _) if any.is_unspecified() => true,
        (IpAddr::V4(any), IpAddr::V4(_)) if any.is_unspecified() => true,
        (one, other) => one == other,
    }
}

/// The addresses among `own` that are none of loopback and yet on an interface that is.
pub(super) fn misplaced(own: &[IpAddr]) -> Vec<IpAddr> {
    let own: Vec<IpAddr> = own.iter().copied().filter(|own| !own.is_loopback() && !own.is_unspecified()).collect();
    // Not asked for nothing: most configurations name no address.
    if own.is_empty() {
        return own;
    }
    let on_loopback: Vec<IpAddr> = getifaddrs()
        .into_iter()
        .flatten()
        .filter(|interface| interface.flags.contains(InterfaceFlags::IFF_LOOPBACK))
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::from(address.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::from(address.ip())))
        })
        .collect();
    own.into_iter().filter(|own| on_loopback.contains(own)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collides(one: &str, other: &str) -> bool {
        let [one, other] = [one, other].map(|address| address.parse().expect("an address"));
        assert_eq!(collide(&one, &other), collide(&other, &one));
        collide(&one, &other)
    }

    #[test]
    fn what_one_takes_the_other_cannot() {
        for (one, other) in [
            ("0.0.0.0:80", "[::]:80"),
            ("[::]:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
            ("127.0.0.1:80", "127.0.0.1:80"),
        ] {
            assert!(collides(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("0.0.0.0:80", "[::]:81"),
            ("0.0.0.0:80", "[::1]:80"),
            ("127.0.0.1:80", "127.0.0.2:80"),
            ("[::]:0", "[::]:0"),
        ] {
            assert!(!collides(one, other), "{one} {other}");
        }
    }

    #[test]
    fn addresses_of_loopback_are_at_home_there() {
        let own = ["127.0.0.1", "::1", "0.0.0.0", "203.0.113.77"].map(|address| address.parse().expect("an address"));
        assert_eq!(misplaced(&own), Vec::<IpAddr>::new());
    }
}
