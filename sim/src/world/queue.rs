//! What is still to happen, the earliest first, what was planned first of the same time before the rest.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use holdfast_core::time::Time;

/// µs in one slot.
const SLOT: u64 = 4_096;
/// So many slots lie ahead: half a second. Nearly everything is planned for sooner, and few slots stay close at hand.
const SLOTS: usize = 128;

/// Only what happens in this slot is kept in order: however much is planned, little moves about.
pub struct Queue<Event> {
    /// Everything up to the end of `slot`. Empty only if nothing is planned.
    near: BinaryHeap<Row<Event>>,
    slot: u64,
    /// The slots behind it, each at its number modulo [`SLOTS`].
    slots: Vec<Vec<Row<Event>>>,
    /// How much is in these.
    ahead: usize,
    /// What comes behind them.
    far: BinaryHeap<Row<Event>>,
    order: u64,
}

struct Row<Event> {
    at: Time,
    order: u64,
    event: Event,
}

impl<Event> Row<Event> {
    fn slot(&self) -> u64 {
        self.at.as_micros() / SLOT
    }
}

impl<Event> PartialEq for Row<Event> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<Event> Eq for Row<Event> {}

impl<Event> PartialOrd for Row<Event> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<Event> Ord for Row<Event> {
    /// The earliest is the greatest: a heap gives that out first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<Event> Default for Queue<Event> {
    fn default() -> Self {
        let slots = (0..SLOTS).map(|_| Vec::new()).collect();
        Queue { near: BinaryHeap::new(), slot: 0, slots, ahead: 0, far: BinaryHeap::new(), order: 0 }
    }
}

impl<Event> Queue<Event> {
    pub fn push(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.put(Row { at, order: self.order, event });
        self.advance();
    }

    /// When the next is due.
    pub fn next(&self) -> Option<Time> {
        self.near.peek().map(|row| row.at)
    }

    pub fn pop(&mut self) -> Option<Event> {
        let row = self.near.pop()?;
        self.advance();
        Some(row.event)
    }

    fn put(&mut self, row: Row<Event>) {
        let slot = row.slot();
        if slot <= self.slot {
            self.near.push(row);
        } else if slot < self.slot + SLOTS as u64 {
            self.slots[slot as usize % SLOTS].push(row);
            self.ahead += 1;
        } else {
            self.far.push(row);
        }
    }

    /// Goes on to the next slot in which something is planned, when this one is over.
    fn advance(&mut self) {
        while self.near.is_empty() {
            self.slot = match self.far.peek() {
                _ if self.ahead > 0 => self.slot + 1,
                Some(row) => row.slot(),
                None => return,
            };
            let rows = &mut self.slots[self.slot as usize % SLOTS];
            self.ahead -= rows.len();
            self.near.extend(rows.drain(..));
            while self.far.peek().is_some_and(|row| row.slot() < self.slot + SLOTS as u64)
                && let Some(row) = self.far.pop()
            {
                self.put(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    #[test]
    fn everything_comes_out_at_its_time_and_in_its_order() {
        let mut dice = super::super::generator(1, 1);
        let (mut queue, mut planned, mut now) = (Queue::default(), Vec::new(), 0);
        for number in 0..20_000_u64 {
            let span = [1, 1_000, 100_000, 20_000_000, 100_000_000][dice.random_range(0..5)];
            let at = now + dice.random_range(0..span);
            planned.push((at, number));
            queue.push(Time::from_micros(at), number);
            if dice.random_bool(0.49) || number > 15_000 {
                let (first, _) = planned.iter().enumerate().min_by_key(|(_, row)| **row).expect("some");
                let (at, number) = planned.swap_remove(first);
                assert_eq!((queue.next(), queue.pop()), (Some(Time::from_micros(at)), Some(number)));
                now = at;
            }
        }
        planned.sort();
        assert!(
            planned
                .into_iter()
                .map(|(_, number)| Some(number))
                .eq(std::iter::repeat_with(|| queue.pop()).take_while(Option::is_some))
        );
        assert_eq!((queue.next(), queue.pop()), (None, None));
    }
}
