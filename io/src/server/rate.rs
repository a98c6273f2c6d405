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
    /// How far ahead of that an address may be.
    burst: Duration,
    senders: BTreeMap<IpAddr, Sender>,
    refused: u64,
}

/// From one line about an address to the next.
const PAUSE: Duration = Duration::from_secs(1);

/// One address.
#[derive(Debug)]
struct Sender {
    /// When it will have used up what it has sent.
    used_until: Time,
    /// Requests that were refused since that was last told, and until when no more is told.
    untold: u64,
    quiet_until: Time,
}

/// One request too many.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany {
    /// How long its client should wait.
    pub wait: Duration,
    /// What people are to be told of it: who, and how many were refused since it was last said.
    pub tell: Option<(IpAddr, u64)>,
}

impl Rate {
    /// `per_second` requests on average; 0 = no limit.
    pub fn new(per_second: u32) -> Self {
        let every = if per_second == 0 { Duration::ZERO } else { Duration::from_secs(1) / per_second };
        Rate { every, burst: Duration::from_secs(u64::from(BURST)), senders: BTreeMap::new(), refused: 0 }
    }

    /// `most` a minute, which may come at once; 0 = no limit.
    pub fn per_minute(most: u32) -> Self {
        let minute = Duration::from_secs(60);
        let every = if most == 0 { Duration::ZERO } else { minute / most };
        Rate { every, burst: minute, senders: BTreeMap::new(), refused: 0 }
    }

    /// How long an address has to wait that has used up what it may; nothing is counted.
    pub fn exhausted(&self, now: Time, peer: IpAddr) -> Option<Duration> {
        let sender = self.senders.get(&network(peer)).filter(|_| !self.every.is_zero())?;
        let next = sender.used_until.max(now) + self.every;
        (next > now + self.burst).then(|| next.since(now + self.burst))
    }

    /// How many were refused so far.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Counts one request.
    ///
    /// # Errors
    /// [`TooMany`]; it is not counted then.
    pub fn admit(&mut self, now: Time, peer: IpAddr) -> Result<(), TooMany> {
        if self.every.is_zero() {
            return Ok(());
        }
        if self.senders.len() >= ADDRESSES {
            self.senders.retain(|_, sender| sender.used_until > now);
        }
        let burst = self.burst;
        let peer = network(peer);
        if self.senders.len() >= ADDRESSES && !self.senders.contains_key(&peer) {
            self.refused += 1;
            return Err(TooMany { wait: self.every, tell: None });
        }
        let fresh = Sender { used_until: now, untold: 0, quiet_until: Time::ZERO };
        let sender = self.senders.entry(peer).or_insert(fresh);
        let next = sender.used_until.max(now) + self.every;
        if next > now + burst {
            self.refused += 1;
            sender.untold += 1;
            let tell = (sender.quiet_until <= now).then(|| (peer, std::mem::take(&mut sender.untold)));
            if tell.is_some() {
                sender.quiet_until = now + PAUSE;
            }
            return Err(TooMany { wait: next.since(now + burst), tell });
        }
        sender.used_until = next;
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
        // Ten of the thirty were refused, and one of them was told.
        let wait = Duration::from_millis(500);
        assert_eq!(rate.admit(at(0), ip("192.0.2.1")), Err(TooMany { wait, tell: None }));
        assert_eq!(rate.refused(), 11);
        assert_eq!(rate.admit(at(0), ip("192.0.2.2")), Ok(()), "addresses are counted apart");
        assert_eq!(rate.admit(at(500), ip("192.0.2.1")), Ok(()));
        assert!(rate.admit(at(500), ip("192.0.2.1")).is_err());
    }

    #[test]
    fn an_address_is_told_of_once_a_second_with_its_count() {
        let mut rate = Rate::new(1);
        let told = |rate: &mut Rate, now: u64, peer: &str| rate.admit(at(now), ip(peer)).err()?.tell;
        assert!((0..10).all(|_| rate.admit(at(0), ip("192.0.2.1")).is_ok()));
        assert_eq!(told(&mut rate, 0, "192.0.2.1"), Some((ip("192.0.2.1"), 1)));
        for _ in 0..5 {
            assert_eq!(told(&mut rate, 900, "192.0.2.1"), None);
        }
        assert_eq!(rate.admit(at(1000), ip("192.0.2.1")), Ok(()));
        assert_eq!(told(&mut rate, 1000, "192.0.2.1"), Some((ip("192.0.2.1"), 6)));
        assert_eq!(rate.refused(), 7);
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
        assert_eq!(rate.senders.len(), ADDRESSES);
        let _ = rate.admit(at(60_000), ip("192.0.2.1"));
        assert_eq!(rate.senders.len(), 1);
        let mut open = Rate::new(0);
        assert!((0..1000).all(|_| open.admit(at(0), ip("192.0.2.1")).is_ok()));
    }
}
