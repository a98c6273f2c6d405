//! What is still to happen, the earliest first, what was planned first of the same time before the rest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use holdfast_core::time::Time;

/// Events stay where they are; only their times and places move about in the heap.
pub struct Queue<Event> {
    heap: BinaryHeap<Reverse<(Time, u64, u32)>>,
    places: Vec<Option<Event>>,
    free: Vec<u32>,
    order: u64,
}

impl<Event> Default for Queue<Event> {
    fn default() -> Self {
        Queue { heap: BinaryHeap::new(), places: Vec::new(), free: Vec::new(), order: 0 }
    }
}

impl<Event> Queue<Event> {
    pub fn push(&mut self, at: Time, event: Event) {
        self.order += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        self.places[place as usize] = Some(event);
        self.heap.push(Reverse((at, self.order, place)));
    }

    /// When the next is due.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    pub fn pop(&mut self) -> Option<Event> {
        let Reverse((.., place)) = self.heap.pop()?;
        self.free.push(place);
        self.places[place as usize].take()
    }
}
