//! Who guesses passwords: an address may fail so often in a minute, then nobody there is looked at for a while (playback §8), but
//! for those who were let in from there before.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use holdfast_core::memory::Memory;
use holdfast_core::time::Time;

use super::address::network;
use super::rate::Rate;

/// How many different wrong logins of one address are known again. More than that nobody in a house has set up wrongly.
const KNOWN: usize = 8;

/// For how long one is known after it was sent last.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Addresses whose wrong logins are known.
const ADDRESSES: usize = 4096;

/// So many logins that were right are known again, each for so long after it was sent last. A film goes on for hours on one
/// request; whoever seeks in it then has to be known still. What was right stays right as long as this program runs, so that its
/// age tells a guesser nothing.
const LET_IN: usize = 4096;
const LASTS: Duration = Duration::from_secs(6 * 60 * 60);

/// How many times as often an address may fail under names that were let in from it. A guesser beside them would find their
/// passwords as fast as it can ask, were the right one always let in.
const BESIDE: u32 = 10;

/// An address from which nothing failed for so long after it was locked out is news when it is again.
const QUIET: Duration = Duration::from_secs(60);

/// Logins that failed, and such as did not.
#[derive(Debug)]
pub(super) struct Guesses {
    rate: Rate,
    /// So that nobody can find passwords that are taken for others.
    hasher: RandomState,
    /// What failed lately, oldest first, by the network that it came from.
    known: BTreeMap<IpAddr, Vec<(u64, Time)>>,
    /// What was right lately, by the network that it came from and the name.
    let_in: Memory<(IpAddr, u64), u64>,
    /// What was not looked at, under such names.
    beside: Rate,
    /// Networks of which it was told that they are locked out.
    locked: Memory<IpAddr, ()>,
}

impl Guesses {
    /// So many may fail in a minute; 0 = any number.
    pub fn new(per_minute: u32) -> Self {
        Guesses {
            rate: Rate::per_minute(per_minute),
            hasher: RandomState::new(),
            known: BTreeMap::new(),
            let_in: Memory::new(LET_IN),
            beside: Rate::per_minute(per_minute.saturating_mul(BESIDE)),
            locked: Memory::new(ADDRESSES),
        }
    }

    /// How long this login is not looked at, since too many of its address failed. One that was right there is looked at all the
    /// same: whoever guesses at the same address may not end the film of somebody else in the house.
    pub fn exhausted(&mut self, now: Time, peer: IpAddr, name: &str, password: &str) -> Option<Duration> {
        let wait = self.rate.exhausted(now, peer)?;
        if let Some(right) = self.let_in.recall(now, &(network(peer), self.hasher.hash_one(name))).copied() {
            if let Some(longer) = self.beside.exhausted(now, peer) {
                return Some(wait.max(longer));
            }
            if right == self.hasher.hash_one((name, password)) {
                return None;
            }
            // That it is one too many is told to the next.
            let _ = self.beside.admit(now, peer);
        }
        Some(wait)
    }

    /// This login was right.
    pub fn succeeded(&mut self, now: Time, peer: IpAddr, name: &str, password: &str) {
        let own = (network(peer), self.hasher.hash_one(name));
        self.let_in.remember(now, own, now + LASTS, self.hasher.hash_one((name, password)));
    }

    /// What was just found wrong, if it is still known: it need not be looked at again, and is no guess. A television with the
    /// password of last year asks day and night; it must not keep everybody else in its house out.
    pub fn is_known(&mut self, now: Time, peer: IpAddr, name: &str, password: &str) -> bool {
        let hash = self.hasher.hash_one((name, password));
        let known = self.known.get_mut(&network(peer));
        let own = known.and_then(|known| known.iter_mut().find(|(own, until)| *own == hash && *until > now));
        own.map(|(_, until)| *until = now + REMEMBERED).is_some()
    }

    /// This login failed. If none of its address is looked at from here on, for how long: said once as long as that goes on, however
    /// often one more fails when it would be over.
    pub fn failed(&mut self, now: Time, peer: IpAddr, name: &str, password: &str) -> Option<Duration> {
        // That it is one too many is told to the next.
        let _ = self.rate.admit(now, peer);
        let locked = self.rate.exhausted(now, peer);
        let peer = network(peer);
        let news = locked.filter(|_| self.locked.recall(now, &peer).is_none());
        if let Some(wait) = locked {
            self.locked.remember(now, peer, now + wait + QUIET, ());
        }
        if self.known.len() >= ADDRESSES {
            self.known.retain(|_, known| known.iter().any(|(_, until)| *until > now));
        }
        if self.known.len() < ADDRESSES || self.known.contains_key(&peer) {
            let known = self.known.entry(peer).or_default();
            known.retain(|(_, until)| *until > now);
            if known.len() == KNOWN {
                known.remove(0);
            }
            known.push((self.hasher.hash_one((name, password)), now + REMEMBERED));
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn the_same_again_is_no_guess() {
        let mut guesses = Guesses::new(2);
        let mut failures = 0;
        for second in 0..3600 {
            if !guesses.is_known(at(second), HOME, "anna", "of last year") {
                guesses.failed(at(second), HOME, "anna", "of last year");
                failures += 1;
            }
            assert_eq!(guesses.exhausted(at(second), HOME, "ben", "x"), None, "{second} s");
        }
        assert_eq!(failures, 1);
        // Neither another password nor another user is the same, nor is it from another address.
        assert!(!guesses.is_known(at(3600), HOME, "anna", "of this year"));
        assert!(!guesses.is_known(at(3600), HOME, "ben", "of last year"));
        assert!(!guesses.is_known(at(3600), IpAddr::from([192, 0, 2, 2]), "anna", "of last year"));
        assert!(!guesses.is_known(at(4300), HOME, "anna", "of last year"), "not for ever: it may be right by then");
    }

    #[test]
    fn what_is_not_the_same_is_counted() {
        let mut guesses = Guesses::new(2);
        guesses.failed(at(0), HOME, "anna", "1");
        assert_eq!(guesses.exhausted(at(0), HOME, "ben", "x"), None);
        guesses.failed(at(0), HOME, "anna", "2");
        assert!(guesses.exhausted(at(0), HOME, "ben", "x").is_some());
    }

    #[test]
    fn a_lock_out_is_news_once_until_its_address_was_quiet() {
        let mut guesses = Guesses::new(10);
        let away = IpAddr::from([192, 0, 2, 2]);
        let mut tries = 0;
        let mut failed = |guesses: &mut Guesses, second, peer| {
            tries += 1;
            guesses.failed(at(second), peer, "anna", &tries.to_string())
        };
        assert!((0..9).all(|_| failed(&mut guesses, 0, HOME).is_none()), "as many as may");
        assert_eq!(failed(&mut guesses, 0, HOME), Some(Duration::from_secs(6)));
        for second in (6..600).step_by(6) {
            assert_eq!(failed(&mut guesses, second, HOME), None, "{second} s: it goes on");
        }
        assert_eq!((0..10).filter(|_| failed(&mut guesses, 600, away).is_some()).count(), 1, "another address");
        assert_eq!((0..10).filter(|_| failed(&mut guesses, 700, HOME).is_some()).count(), 1, "it is again");
    }

    #[test]
    fn who_was_let_in_before_is_looked_at_whoever_guesses_beside() {
        let mut guesses = Guesses::new(2);
        let away = IpAddr::from([192, 0, 2, 2]);
        guesses.succeeded(at(0), HOME, "anna", "right");
        // As for ever as a film is long.
        for second in (0..21_600).step_by(20) {
            for home in [HOME, away] {
                for guess in 0..3 {
                    guesses.failed(at(second), home, "anna", &format!("{second} {guess}"));
                }
            }
            assert_eq!(guesses.exhausted(at(second), HOME, "anna", "right"), None, "{second} s");
            for (home, name, password) in
                [(HOME, "anna", "wrong"), (HOME, "ben", "right"), (HOME, "anna", ""), (away, "anna", "right")]
            {
                assert!(guesses.exhausted(at(second), home, name, password).is_some(), "{name} {password} {second} s");
            }
        }
        for guess in 0..2 {
            guesses.failed(at(21_600), HOME, "anna", &guess.to_string());
        }
        assert!(guesses.exhausted(at(21_600), HOME, "anna", "right").is_some(), "not for ever");
    }

    #[test]
    fn who_guesses_the_password_of_somebody_at_the_same_address_is_slowed_down_too() {
        let mut guesses = Guesses::new(2);
        guesses.succeeded(at(0), HOME, "anna", "right");
        for guess in 0..2 {
            guesses.failed(at(0), HOME, "x", &guess.to_string());
        }
        // Whoever has another name does not count.
        for guess in 0..1000 {
            assert!(guesses.exhausted(at(0), HOME, "ben", &guess.to_string()).is_some());
        }
        let found = (0..1000).map(|guess| if guess == 20 { "right".to_owned() } else { guess.to_string() });
        let found = found.filter(|guess| guesses.exhausted(at(0), HOME, "anna", guess).is_none()).count();
        assert_eq!(found, 0);
        assert_eq!(guesses.exhausted(at(60), HOME, "anna", "right"), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut guesses = Guesses::new(0);
        for host in 0..LET_IN as u32 + 100 {
            guesses.succeeded(at(0), IpAddr::from(host.to_be_bytes()), "anna", "right");
        }
        assert_eq!(guesses.let_in.len(), LET_IN);
        for password in 0..100 {
            guesses.failed(at(0), HOME, "anna", &password.to_string());
        }
        assert_eq!(guesses.known[&HOME].len(), KNOWN);
        assert!(guesses.is_known(at(0), HOME, "anna", "99") && !guesses.is_known(at(0), HOME, "anna", "1"));
        for host in 0..ADDRESSES as u32 + 100 {
            guesses.failed(at(1), IpAddr::from(host.to_be_bytes()), "anna", "1");
        }
        assert_eq!(guesses.known.len(), ADDRESSES);
        guesses.failed(at(700), HOME, "anna", "1");
        assert_eq!(guesses.known.len(), 1);
    }
}
