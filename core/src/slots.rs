//! The one mechanism under every scarce thing: a fixed number of places, each with at most one holder.
//!
//! Taking a slot gives a [`Hold`], which names the slot and the generation of this tenancy; everything that is done to a
//! slot later is checked against it, so that a late release of a former holder touches nobody else.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// One tenancy of one slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Hold {
    /// Which slot, from 0.
    pub slot: u32,
    /// Which tenancy of it, from 1.
    pub generation: u64,
}

/// A fixed number of slots and who holds them.
#[derive(Debug)]
pub struct SlotTable<Holder> {
    slots: Vec<Slot<Holder>>,
}

#[derive(Debug)]
struct Slot<Holder> {
    generation: u64,
    holder: Option<Holder>,
}

impl<Holder: Copy + PartialEq> SlotTable<Holder> {
    /// `capacity` free slots.
    pub fn new(capacity: u32) -> Self {
        SlotTable { slots: (0..capacity).map(|_| Slot { generation: 0, holder: None }).collect() }
    }

    /// How many there are, free or held.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Gives the first free slot to `holder`, if there is one.
    pub fn take(&mut self, holder: Holder) -> Option<Hold> {
        debug_assert!(!self.slots.iter().any(|slot| slot.holder == Some(holder)), "one holder, one slot");
        let (index, slot) = self.slots.iter_mut().enumerate().find(|(_, slot)| slot.holder.is_none())?;
        slot.generation += 1;
        slot.holder = Some(holder);
        Some(Hold { slot: index as u32, generation: slot.generation })
    }

    /// Frees the slot of `hold` and returns its holder; `None` if that tenancy is over already.
    pub fn release(&mut self, hold: Hold) -> Option<Holder> {
        let slot = self.slots.get_mut(hold.slot as usize)?;
        if slot.generation != hold.generation {
            return None;
        }
        slot.holder.take()
    }

    /// Who holds under `hold`, if that tenancy still lasts.
    pub fn holder(&self, hold: Hold) -> Option<Holder> {
        let slot = self.slots.get(hold.slot as usize)?;
        if slot.generation == hold.generation { slot.holder } else { None }
    }

    /// The holder of each slot, in order.
    pub fn holders(&self) -> impl Iterator<Item = Option<Holder>> + '_ {
        self.slots.iter().map(|slot| slot.holder)
    }

    /// Whether a slot is free.
    pub fn has_free(&self) -> bool {
        self.slots.iter().any(|slot| slot.holder.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_one_holder_until_it_is_released() {
        let mut slots = SlotTable::new(2);
        let a = slots.take('a').unwrap();
        let b = slots.take('b').unwrap();
        assert_eq!(slots.take('c'), None);
        assert!(!slots.has_free());
        assert_eq!((slots.holder(a), slots.holder(b)), (Some('a'), Some('b')));
        assert_eq!(slots.release(a), Some('a'));
        let c = slots.take('c').unwrap();
        assert_eq!(c.slot, a.slot);
    }

    #[test]
    fn a_late_release_touches_nobody_else() {
        let mut slots = SlotTable::new(1);
        let a = slots.take('a').unwrap();
        slots.release(a);
        let b = slots.take('b').unwrap();
        assert_eq!(slots.release(a), None);
        assert_eq!(slots.holder(a), None);
        assert_eq!(slots.holder(b), Some('b'));
        assert_eq!(slots.release(Hold { slot: 9, generation: 1 }), None);
    }
}
