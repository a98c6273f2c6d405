//! What is remembered for a while and then forgotten, and never more of it than so much.

use alloc::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Values by key, each until its time; a full memory forgets first what it would forget first anyway.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(
    serialize = "K: Serialize, V: Serialize",
    deserialize = "K: Deserialize<'de> + Ord, V: Deserialize<'de>"
))]
pub struct Memory<K, V> {
    values: BTreeMap<K, (Time, V)>,
    order: BTreeSet<(Time, K)>,
    capacity: usize,
}

impl<K: Ord + Copy, V> Memory<K, V> {
    /// Of at most so many values.
    pub fn new(capacity: usize) -> Self {
        Memory { values: BTreeMap::new(), order: BTreeSet::new(), capacity }
    }

    /// Remembers `value` under `key` until then, instead of what was remembered there.
    pub fn remember(&mut self, now: Time, key: K, until: Time, value: V) {
        if let Some((old, _)) = self.values.insert(key, (until, value)) {
            self.order.remove(&(old, key));
        }
        self.order.insert((until, key));
        while let Some((first, key)) = self.order.first().copied()
            && (first <= now || self.order.len() > self.capacity)
        {
            self.order.pop_first();
            self.values.remove(&key);
        }
    }

    /// What is remembered under `key`.
    pub fn recall(&self, now: Time, key: &K) -> Option<&V> {
        self.values.get(key).filter(|(until, _)| now < *until).map(|(_, value)| value)
    }

    /// The same to change it, as long as it takes up room.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.values.get_mut(key).map(|(_, value)| value)
    }

    /// Remembers it no longer.
    pub fn forget(&mut self, key: &K) {
        if let Some((until, _)) = self.values.remove(key) {
            self.order.remove(&(until, *key));
        }
    }

    /// What takes up room: keys, until when, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&K, Time, &V)> {
        self.values.iter().map(|(key, (until, value))| (key, *until, value))
    }

    /// How many values take up room, some of which may be over.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks whether there are none")]
    pub fn len(&self) -> usize {
        debug_assert_eq!(self.values.len(), self.order.len());
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1000)
    }

    #[test]
    fn is_remembered_until_its_time() {
        let mut memory = Memory::new(8);
        memory.remember(at(0), 'a', at(10), 1);
        assert_eq!(
            (memory.recall(at(9), &'a'), memory.recall(at(10), &'a'), memory.recall(at(0), &'b')),
            (Some(&1), None, None)
        );
        memory.remember(at(5), 'a', at(20), 2);
        assert_eq!(memory.recall(at(15), &'a'), Some(&2));
        memory.remember(at(30), 'b', at(40), 3);
        assert_eq!(memory.len(), 1, "what is over is gone");
        memory.get_mut(&'b').into_iter().for_each(|value| *value += 1);
        assert_eq!(memory.recall(at(30), &'b'), Some(&4));
        memory.forget(&'b');
        assert_eq!((memory.recall(at(30), &'b'), memory.len()), (None, 0));
    }

    #[test]
    fn a_full_memory_forgets_what_it_would_forget_first() {
        let mut memory = Memory::new(2);
        memory.remember(at(0), 'a', at(30), ());
        memory.remember(at(0), 'b', at(10), ());
        memory.remember(at(0), 'c', at(20), ());
        assert_eq!(['a', 'b', 'c'].map(|key| memory.recall(at(0), &key).is_some()), [true, false, true]);
        assert_eq!(memory.len(), 2);
    }
}
