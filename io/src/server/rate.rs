//! How many requests that change something one address may send (RFC 9725 §5): guessing tokens and session URLs must not
//! come cheap, nor may one client keep every slot in negotiation.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use holdfast_core::time::Time;

use super::address::network;

/// Requests that may come at once, in seconds of the rate.
const BURST: u32 = 10;

/// Addresses that are remembered; beyond that, those who sent nothing lately are forgotten.
const ADDRESSES: usize = 4096;

/// The generic cell rate algorithm (ITU-T I.371), one cell a request.
#[derive(Debug)]
pub(super) struct Rate {
    /// From one request to the next; zero = no limit.
    every: Duration,
    /// When each address will have used up what it has sent.
    used_until: BTreeMap<IpAddr, Time>,
}

impl Rate {
    /// `per_second` requests on average; 0 = no limit.
    pub fn new(per_second: u32) -> Self {
        let every = if per_second == 0 { Duration::ZERO } else { Duration::from_secs(1) / per_second };
        Rate { every, used_until: BTreeMap::new() }
    }

    /// Counts one request.
    ///
    /// # Errors
    /// How long to wait, if it is one too many; it is not counted then.
    pub fn admit(&mut self, now: Time, peer: IpAddr) -> Result<(), Duration> {
        if self.every.is_zero() {
            return Ok(());
        }
        if self.used_until.len() >= ADDRESSES {
            self.used_until.retain(|_, until| *until > now);
        }
        let burst = Duration::from_secs(u64::from(BURST));
        let peer = network(peer);
        if self.used_until.len() >= ADDRESSES && !self.used_until.contains_key(&peer) {
            return Err(self.every);
        }
        let until = self.used_until.entry(peer).or_insert(now);
        let next = (*until).max(now) + self.every;
        if next > now + burst {
            return Err(next.since(now + burst));
        }
        *until = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1000)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_burst_is_let_through_then_the_rate() {
        let mut rate = Rate::new(2);
        let sent = (0..30).filter(|_| rate.admit(at(0), ip("192.0.2.1")).is_ok()).count();
        assert_eq!(sent, 20);
        assert_eq!(rate.admit(at(0), ip("192.0.2.1")), Err(Duration::from_millis(500)));
        assert_eq!(rate.admit(at(0), ip("192.0.2.2")), Ok(()), "addresses are counted apart");
        assert_eq!(rate.admit(at(500), ip("192.0.2.1")), Ok(()));
        assert!(rate.admit(at(500), ip("192.0.2.1")).is_err());
    }

    #[test]
    fn a_network_is_one_address() {
        let mut rate = Rate::new(1);
        for host in 0..10 {
            assert_eq!(rate.admit(at(0), ip(&format!("2001:db8::{host}"))), Ok(()));
        }
        assert!(rate.admit(at(0), ip("2001:db8::ffff")).is_err());
        assert_eq!(rate.admit(at(0), ip("2001:db8:0:1::1")), Ok(()));
        for _ in 0..10 {
            assert_eq!(rate.admit(at(0), ip("::ffff:192.0.2.1")), Ok(()));
        }
        assert!(rate.admit(at(0), ip("192.0.2.1")).is_err());
    }

    #[test]
    fn memory_is_bounded_and_zero_is_no_limit() {
        let mut rate = Rate::new(1);
        for host in 0..20_000u32 {
            let _ = rate.admit(at(0), IpAddr::from(host.to_be_bytes()));
        }
        assert_eq!(rate.used_until.len(), ADDRESSES);
        let _ = rate.admit(at(60_000), ip("192.0.2.1"));
        assert_eq!(rate.used_until.len(), 1);
        let mut open = Rate::new(0);
        assert!((0..1000).all(|_| open.admit(at(0), ip("192.0.2.1")).is_ok()));
    }
}
