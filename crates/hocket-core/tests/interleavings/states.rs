//! A set of states that is cheap to fill and to empty, again and again.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use crate::oracle::State;

/// The states visited.
#[derive(Default)]
pub(crate) struct Seen(HashSet<State, BuildHasherDefault<Mix>>);

impl Seen {
    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a state; whether it is new.
    pub(crate) fn insert(&mut self, state: State) -> bool {
        self.0.insert(state)
    }
}

/// A hash of small integers: multiply and rotate.
#[derive(Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
