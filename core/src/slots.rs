//! The one mechanism under every scarce thing: a fixed number of places, each with at most one holder.
//!
//! Taking a slot gives a [`Hold`], which names the slot and the generation of this tenancy; everything that is done to a
//! slot later is checked against it, so that a late release of a former holder touches nobody else.

use alloc::vec::Vec;
use core::iter;
use core::ops::Range;

use serde::{Deserialize, Serialize};

/// One tenancy of one slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Hold {
    /// Which slot of its group, from 0.
    pub slot: u32,
    /// Which tenancy of it, from 1.
    pub generation: u64,
}

/// Groups of slots, each of a fixed size, and who holds them. Groups are named by their place, from 0; the slots of all groups
/// lie in one row, each group's beside one another.
#[derive(Debug, Serialize, Deserialize)]
pub struct SlotTable<Holder> {
    /// Where each group ends.
    ends: Vec<u32>,
    slots: Vec<Slot<Holder>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Slot<Holder> {
    generation: u64,
    holder: Option<Holder>,
}

impl<Holder: Copy + PartialEq> SlotTable<Holder> {
    /// For each capacity a group of so many free slots.
    pub fn new(capacities: impl IntoIterator<Item = u32>) -> Self {
        let mut slots = Vec::new();
        let end = |capacity| {
            slots.extend(iter::repeat_with(|| Slot { generation: 0, holder: None }).take(capacity as usize));
            slots.len() as u32
        };
        let ends = capacities.into_iter().map(end).collect();
        SlotTable { ends, slots }
    }

    /// Whether it has the same groups.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.ends == other.ends && self.slots.len() == other.slots.len()
    }

    /// How many slots there are in all groups, free or held.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Where the group's slots lie among those of all groups; empty if there is no such group.
    pub fn range(&self, group: u32) -> Range<usize> {
        let Some(end) = self.ends.get(group as usize) else { return 0..0 };
        let begin = group.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        begin as usize..*end as usize
    }

    /// Gives the first free slot of the group to `holder`, if there is one.
    pub fn take(&mut self, group: u32, holder: Holder) -> Option<Hold> {
        let range = self.range(group);
        let slots = &mut self.slots[range];
        debug_assert!(!slots.iter().any(|slot| slot.holder == Some(holder)), "one holder, one slot");
        let (index, slot) = slots.iter_mut().enumerate().find(|(_, slot)| slot.holder.is_none())?;
        slot.generation += 1;
        slot.holder = Some(holder);
        Some(Hold { slot: index as u32, generation: slot.generation })
    }

    /// Frees the group's slot of `hold` and returns its holder; `None` if that tenancy is over already.
    pub fn release(&mut self, group: u32, hold: Hold) -> Option<Holder> {
        let range = self.range(group);
        let slot = self.slots[range].get_mut(hold.slot as usize)?;
        if slot.generation != hold.generation {
            return None;
        }
        slot.holder.take()
    }

    /// Who holds under `hold` in the group, if that tenancy still lasts.
    pub fn holder(&self, group: u32, hold: Hold) -> Option<Holder> {
        let slot = self.slots[self.range(group)].get(hold.slot as usize)?;
        if slot.generation == hold.generation { slot.holder } else { None }
    }

    /// Who holds the slot at this place in the row of all groups.
    pub fn holder_at(&self, place: usize) -> Option<Holder> {
        self.slots.get(place)?.holder
    }

    /// The holder of each slot of the group, in order.
    pub fn holders(&self, group: u32) -> impl Iterator<Item = Option<Holder>> + '_ {
        self.slots[self.range(group)].iter().map(|slot| slot.holder)
    }

    /// Which tenancy of each slot of the group was its last, in order; 0: there was none.
    pub fn generations(&self, group: u32) -> impl Iterator<Item = u64> + '_ {
        self.slots[self.range(group)].iter().map(|slot| slot.generation)
    }

    /// Whether a slot of the group is free.
    pub fn has_free(&self, group: u32) -> bool {
        self.slots[self.range(group)].iter().any(|slot| slot.holder.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_one_holder_until_it_is_released() {
        let mut slots = SlotTable::new([2]);
        let a = slots.take(0, 'a').unwrap();
        let b = slots.take(0, 'b').unwrap();
        assert_eq!(slots.take(0, 'c'), None);
        assert!(!slots.has_free(0));
        assert_eq!((slots.holder(0, a), slots.holder(0, b)), (Some('a'), Some('b')));
        assert_eq!(slots.release(0, a), Some('a'));
        let c = slots.take(0, 'c').unwrap();
        assert_eq!(c.slot, a.slot);
    }

    #[test]
    fn a_late_release_touches_nobody_else() {
        let mut slots = SlotTable::new([1]);
        let a = slots.take(0, 'a').unwrap();
        slots.release(0, a);
        let b = slots.take(0, 'b').unwrap();
        assert_eq!(slots.release(0, a), None);
        assert_eq!(slots.holder(0, a), None);
        assert_eq!(slots.holder(0, b), Some('b'));
        assert_eq!(slots.release(0, Hold { slot: 9, generation: 1 }), None);
    }

    #[test]
    fn a_group_takes_no_slot_of_another() {
        let mut slots = SlotTable::new([1, 0, 2]);
        assert_eq!(slots.capacity(), 3);
        assert!(slots.has_free(0) && !slots.has_free(1) && slots.has_free(2));
        assert_eq!((slots.range(0), slots.range(1), slots.range(2), slots.range(3)), (0..1, 1..1, 1..3, 0..0));
        let a = slots.take(0, 'a').unwrap();
        assert_eq!((slots.take(0, 'b'), slots.take(1, 'b'), slots.take(3, 'b')), (None, None, None));
        let c = slots.take(2, 'c').unwrap();
        assert_eq!(a, c, "a hold is within its group");
        assert_eq!(slots.release(2, Hold { slot: 2, generation: 1 }), None);
        assert_eq!(slots.holders(2).collect::<Vec<_>>(), [Some('c'), None]);
        assert_eq!((slots.holder_at(0), slots.holder_at(1), slots.holder_at(2)), (Some('a'), Some('c'), None));
        assert_eq!(slots.release(0, a), Some('a'));
        assert_eq!(slots.holder(2, c), Some('c'));
    }
}
