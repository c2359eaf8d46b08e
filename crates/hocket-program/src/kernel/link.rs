//! A link that blocks share while they send: all at the same rate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What blocks send over one link, as one fluid: since all have the same rate, one count of what each of them
/// has sent so far (`sent`) serves for all.
#[derive(Default)]
pub(super) struct Link {
    sent: f64,
    since: f64,
    rate: f64,
    sends: BinaryHeap<Reverse<(Ordered, usize)>>,
    /// Rises with every change, so that an end that was announced before is known to be void.
    pub(super) version: u32,
}

/// A number that is not negative, in its order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ordered(u64);

impl Ordered {
    pub(super) fn new(value: f64) -> Self {
        debug_assert!(value >= 0.0);
        Self(value.to_bits())
    }

    pub(super) fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// What limits the rate of a block that sends.
#[derive(Clone, Copy)]
pub(super) struct Sharing {
    /// Bytes per microsecond of a block alone.
    pub(super) own: f64,
    /// Bytes per microsecond of the link.
    pub(super) link: f64,
    /// Blocks that one stands for.
    pub(super) instances: f64,
}

impl Sharing {
    /// Returns the rate of each of so many blocks: its own, or its share of the link if that is less.
    fn rate(&self, blocks: usize) -> f64 {
        self.own.min(self.link / (self.instances * blocks as f64))
    }
}

impl Link {
    /// Adds a block that sends so many bytes from now on.
    pub(super) fn add(&mut self, now: f64, block: usize, bytes: f64, sharing: &Sharing) {
        self.advance(now);
        let end = Ordered::new(self.sent + bytes);
        self.sends.push(Reverse((end, block)));
        self.change(sharing);
    }

    /// When the next block is done, if any sends.
    pub(super) fn next(&self) -> Option<f64> {
        let Reverse((end, _)) = self.sends.peek()?;
        Some(self.since + (end.value() - self.sent).max(0.0) / self.rate)
    }

    /// Takes out the block that is done now.
    pub(super) fn pop(&mut self, now: f64, sharing: &Sharing) -> Option<usize> {
        let Reverse((end, block)) = self.sends.pop()?;
        self.sent = end.value();
        self.since = now;
        self.change(sharing);
        if self.sends.is_empty() {
            self.sent = 0.0;
        }
        Some(block)
    }

    fn advance(&mut self, now: f64) {
        if !self.sends.is_empty() {
            self.sent += self.rate * (now - self.since);
        }
        self.since = now;
    }

    fn change(&mut self, sharing: &Sharing) {
        self.rate = sharing.rate(self.sends.len());
        self.version = self.version.wrapping_add(1);
    }
}
