//! Sets of numbers that are joined.

use crate::id::narrow;

/// Each number's way to the least of its set.
pub(super) struct Sets(Vec<u32>);

impl Sets {
    /// Returns every number below `count` in a set of its own.
    pub(super) fn new(count: usize) -> Self {
        Self((0..narrow(count)).collect())
    }

    /// Returns the least number of a set.
    pub(super) fn least(&mut self, mut at: usize) -> usize {
        while self.0[at] as usize != at {
            self.0[at] = self.0[self.0[at] as usize];
            at = self.0[at] as usize;
        }
        at
    }

    pub(super) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.least(a), self.least(b));
        self.0[a.max(b)] = narrow(a.min(b));
    }
}
