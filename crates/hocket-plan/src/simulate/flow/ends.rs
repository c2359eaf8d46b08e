//! When each flow is due: a queue in which times can change.

use crate::id::narrow;

const NONE: u32 = u32::MAX;

/// A binary heap of slots by (time, slot), at most one time for each.
///
/// # Complexity
/// O(log n) a change; memory 16 bytes a slot.
#[derive(Default)]
pub struct Ends {
    heap: Vec<u32>,
    /// By slot: where in the heap, or [`NONE`]; its time.
    place: Vec<u32>,
    time: Vec<u64>,
}

impl Ends {
    /// Returns the earliest time.
    pub fn first(&self) -> Option<u64> {
        self.heap.first().map(|&slot| self.time[slot as usize])
    }

    /// Sets the time of a slot.
    pub fn set(&mut self, slot: u32, time: u64) {
        let i = slot as usize;
        if i >= self.place.len() {
            self.place.resize(i + 1, NONE);
            self.time.resize(i + 1, 0);
        }
        self.time[i] = time;
        if self.place[i] == NONE {
            self.place[i] = narrow(self.heap.len());
            self.heap.push(slot);
        }
        self.rise(self.place[i] as usize);
        self.sink(self.place[i] as usize);
    }

    /// Takes the slot of lowest number that is due at `time`, the earliest.
    pub fn pop(&mut self, time: u64) -> Option<u32> {
        if self.first() != Some(time) {
            return None;
        }
        let slot = self.heap.swap_remove(0);
        self.place[slot as usize] = NONE;
        if let Some(&first) = self.heap.first() {
            self.place[first as usize] = 0;
            self.sink(0);
        }
        Some(slot)
    }

    fn is_before(&self, a: usize, b: usize) -> bool {
        let key = |i: usize| (self.time[self.heap[i] as usize], self.heap[i]);
        key(a) < key(b)
    }

    fn rise(&mut self, mut at: usize) {
        while at > 0 && self.is_before(at, (at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.is_before(child, least) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.swap(at, least);
            at = least;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[self.heap[a] as usize] = narrow(a);
        self.place[self.heap[b] as usize] = narrow(b);
    }
}
