//! Will what runs be cleaned up after? (spec: playback §7)
//!
//! A permit is taken before anything of a playback is to be seen, and given back when nothing of it is left: when its places and
//! accounts are free and its last connection to a provider is closed. With none left, whoever comes waits for one, in order, and
//! not for ever. One lane is enough: each input is handled to its end by one thread, so that a cleanup never stands in a queue
//! behind another, whichever end it begins at.

use alloc::collections::BTreeMap;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// One place among those that can be cleaned up after. Whoever has it gives it back to where it came from.
#[derive(Debug, Serialize, Deserialize)]
#[must_use = "a permit that is dropped is lost"]
pub(crate) struct Permit(());

/// So many permits, and who waits for one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "K: Serialize", deserialize = "K: Deserialize<'de> + Ord"))]
pub(crate) struct Permits<K> {
    capacity: usize,
    held: usize,
    patience: Duration,
    tickets: u64,
    /// Who waits, and until when. All wait equally long: the first that came is also the first whose time is over.
    order: BTreeMap<u64, (K, Time)>,
    waiting: BTreeMap<K, u64>,
}

impl<K: Ord + Copy> Permits<K> {
    /// All free. Whoever waits for one does so for `patience`.
    pub fn new(capacity: usize, patience: Duration) -> Self {
        Permits { capacity, held: 0, patience, tickets: 0, order: BTreeMap::new(), waiting: BTreeMap::new() }
    }

    /// How many are held.
    pub fn held(&self) -> usize {
        self.held
    }

    /// How many wait for one.
    pub fn waiting(&self) -> usize {
        self.order.len()
    }

    /// Who waits for one, in order.
    pub fn queue(&self) -> impl Iterator<Item = K> {
        self.order.values().map(|(key, _)| *key)
    }

    /// One at once, if one is free and nobody waits.
    pub fn take(&mut self) -> Option<Permit> {
        (self.order.is_empty() && self.held < self.capacity).then(|| {
            self.held += 1;
            Permit(())
        })
    }

    /// `key` waits from now on; until when.
    pub fn wait(&mut self, now: Time, key: K) -> Time {
        let until = now + self.patience;
        self.tickets += 1;
        self.order.insert(self.tickets, (key, until));
        if let Some(old) = self.waiting.insert(key, self.tickets) {
            self.order.remove(&old);
        }
        until
    }

    /// `key` waits no longer.
    pub fn leave(&mut self, key: K) {
        if let Some(ticket) = self.waiting.remove(&key) {
            self.order.remove(&ticket);
        }
    }

    /// Whether somebody waits for whom one is free.
    pub fn can_grant(&self) -> bool {
        !self.order.is_empty() && self.held < self.capacity
    }

    /// Who has waited longest, with its permit, if one is free.
    pub fn grant(&mut self) -> Option<(K, Permit)> {
        if !self.can_grant() {
            return None;
        }
        let (_, (key, _)) = self.order.pop_first()?;
        self.waiting.remove(&key);
        self.held += 1;
        Some((key, Permit(())))
    }

    /// Nothing is left of what the permit was for.
    pub fn give_back(&mut self, permit: Permit) {
        let Permit(()) = permit;
        debug_assert!(self.held > 0, "a permit comes from here");
        self.held = self.held.saturating_sub(1);
    }

    /// When the first one's time is over.
    pub fn deadline(&self) -> Option<Time> {
        self.order.first_key_value().map(|(_, (_, until))| *until)
    }

    /// Takes out one whose time is over.
    pub fn expired(&mut self, now: Time) -> Option<K> {
        let (ticket, (key, until)) = self.order.first_key_value().map(|(ticket, row)| (*ticket, *row))?;
        if until > now {
            return None;
        }
        self.order.remove(&ticket);
        self.waiting.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1000)
    }

    #[test]
    fn permits_held_and_free_are_all_there_are() {
        let mut permits: Permits<u8> = Permits::new(2, Duration::from_secs(5));
        let (first, second) = (permits.take().unwrap(), permits.take().unwrap());
        assert!(permits.take().is_none());
        permits.give_back(first);
        assert_eq!(permits.held(), 1);
        permits.give_back(second);
        assert_eq!(permits.held(), 0);
    }

    #[test]
    fn who_waits_gets_one_in_order_and_not_for_ever() {
        let mut permits = Permits::new(1, Duration::from_secs(5));
        let held = permits.take().unwrap();
        assert_eq!(permits.wait(at(0), 'b'), at(5000));
        permits.wait(at(1), 'a');
        permits.wait(at(2), 'c');
        assert_eq!(permits.waiting(), 3);
        assert!(permits.grant().is_none());
        permits.give_back(held);
        assert!(permits.take().is_none(), "whoever comes later comes behind those that wait");
        let (first, permit) = permits.grant().unwrap();
        assert_eq!(first, 'b');
        permits.leave('a');
        assert_eq!((permits.deadline(), permits.expired(at(5001))), (Some(at(5002)), None));
        assert_eq!((permits.expired(at(5002)), permits.waiting()), (Some('c'), 0));
        permits.give_back(permit);
        assert!(permits.grant().is_none());
    }
}
