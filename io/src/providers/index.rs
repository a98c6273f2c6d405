//! Which entries of a catalogue are known by a key, and by what clients know it.

use super::Kind;
use super::store::id_of;

/// The first so many bits of a key say in which bucket it is. A million entries are 244 in each.
const BITS: u32 = 12;

/// An entry in the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub key: u64,
    pub kind: Kind,
    pub place: u32,
}

impl Slot {
    /// How many places there are.
    pub const MOST: usize = 1 << 30;
}

/// Buckets that grow one by one: a table that grows as a whole would keep everybody waiting meanwhile.
#[derive(Debug, Default)]
pub(super) struct Index {
    buckets: Vec<Vec<(u64, u32)>>,
}

impl Index {
    pub fn insert(&mut self, slot: Slot) {
        if self.buckets.is_empty() {
            self.buckets.resize_with(1 << BITS, Vec::new);
        }
        let bucket = &mut self.buckets[place(slot.key)];
        // In order, those of one key in the order in which they came.
        let at = bucket.partition_point(|(key, _)| *key <= slot.key);
        if bucket.len() == bucket.capacity() {
            bucket.reserve_exact((bucket.len() / 4).max(4));
        }
        bucket.insert(at, (slot.key, (slot.kind as u32) << 30 | slot.place));
    }

    fn bucket(&self, key: u64) -> &[(u64, u32)] {
        self.buckets.get(place(key)).map_or(&[], Vec::as_slice)
    }

    pub fn find(&self, kind: Kind, key: u64) -> impl Iterator<Item = u32> + use<'_> {
        let bucket = self.bucket(key);
        let from = bucket.partition_point(|(own, _)| *own < key);
        let same = bucket[from..].iter().take_while(move |(own, _)| *own == key);
        same.map(|(_, packed)| unpack(*packed)).filter(move |(own, _)| *own == kind).map(|(_, place)| place)
    }

    /// What clients know by an id.
    pub fn by_id(&self, kind: Kind, id: u32) -> Option<Slot> {
        let first = u64::from(id) << 34;
        let bucket = self.bucket(first);
        // The ids 0 and 1 are one.
        let least = if id == 1 { 0 } else { first };
        let from = bucket.partition_point(|(own, _)| *own < least);
        let same = bucket[from..].iter().take_while(|(own, _)| id_of(*own) == id);
        let mut slots = same.map(|(key, packed)| {
            let (kind, place) = unpack(*packed);
            Slot { key: *key, kind, place }
        });
        slots.find(|slot| slot.kind == kind)
    }

    pub fn kind_of(&self, key: u64) -> Option<Kind> {
        let bucket = self.bucket(key);
        let (_, packed) = bucket.get(bucket.partition_point(|(own, _)| *own < key)).filter(|(own, _)| *own == key)?;
        Some(unpack(*packed).0)
    }
}

fn place(key: u64) -> usize {
    (key >> (64 - BITS)) as usize
}

fn unpack(packed: u32) -> (Kind, u32) {
    (Kind::ALL[(packed >> 30) as usize], packed & (Slot::MOST as u32 - 1))
}
