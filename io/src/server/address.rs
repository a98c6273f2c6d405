//! Who counts as one client, and how many connections each of them has.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// One customer of an IPv6 network has a /64 at least.
pub(super) fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::from((address.to_bits() >> 64 << 64).to_be_bytes()),
        v4 => v4,
    }
}

/// Connections by address. As large as there are connections at most.
#[derive(Debug)]
pub(super) struct Crowd {
    /// How many one address may have; 0 = no limit.
    most: usize,
    open: BTreeMap<IpAddr, usize>,
}

impl Crowd {
    pub fn new(most: usize) -> Self {
        Crowd { most, open: BTreeMap::new() }
    }

    /// Counts a connection. `false`: it is one too many, and not counted.
    pub fn enter(&mut self, peer: IpAddr) -> bool {
        if self.most == 0 {
            return true;
        }
        let open = self.open.entry(network(peer)).or_default();
        let admitted = *open < self.most;
        *open += usize::from(admitted);
        admitted
    }

    /// A connection that was counted is gone.
    pub fn leave(&mut self, peer: IpAddr) {
        let peer = network(peer);
        let Some(open) = self.open.get_mut(&peer) else { return };
        *open -= 1;
        if *open == 0 {
            self.open.remove(&peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn each_address_has_places_of_its_own_and_gives_them_back() {
        let mut crowd = Crowd::new(2);
        assert!(crowd.enter(ip("192.0.2.1")) && crowd.enter(ip("::ffff:192.0.2.1")));
        assert!(!crowd.enter(ip("192.0.2.1")));
        assert!(crowd.enter(ip("2001:db8::1")) && crowd.enter(ip("2001:db8::2")), "a network is one address");
        assert!(!crowd.enter(ip("2001:db8::3")) && crowd.enter(ip("2001:db8:0:1::1")));
        crowd.leave(ip("192.0.2.1"));
        assert!(crowd.enter(ip("192.0.2.1")));
        for _ in 0..2 {
            crowd.leave(ip("192.0.2.1"));
            crowd.leave(ip("2001:db8::1"));
        }
        crowd.leave(ip("2001:db8:0:1::1"));
        assert!(crowd.open.is_empty());
    }

    #[test]
    fn zero_is_no_limit() {
        let mut crowd = Crowd::new(0);
        assert!((0..1000).all(|_| crowd.enter(ip("192.0.2.1"))));
        crowd.leave(ip("192.0.2.1"));
        assert!(crowd.open.is_empty());
    }
}
