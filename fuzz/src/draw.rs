//! Values from bytes: the first bytes decide first, and what is spent gives zeros.

use hocket_core::progress::Progress;
use hocket_core::units::{Bandwidth, Time};

/// Draws values from bytes.
pub struct Draw<'a>(&'a [u8]);

impl<'a> Draw<'a> {
    /// Draws from these.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What has not been drawn yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Takes so many bytes, or as many as are left.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, left) = self.0.split_at(count.min(self.0.len()));
        self.0 = left;
        taken
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// Eight bytes as a number.
    pub fn word(&mut self) -> u64 {
        self.take(8)
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    /// Yes or no.
    pub fn yes(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A number below `count`, which is 1 to 256.
    pub fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    /// One of some values.
    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// A number that is mostly below `count`, and one time in 32 any.
    pub fn near(&mut self, count: usize) -> u32 {
        const EDGES: [u32; 4] = [u32::MAX, u32::MAX - 1, 1 << 31, 1 << 30];
        match self.byte() {
            byte @ 248..252 => EDGES[usize::from(byte) - 248],
            252.. => self.word() as u32,
            byte => u32::from(byte) % count.clamp(1, 256) as u32,
        }
    }

    /// Bytes, 1 or more: small ones, some around powers of two, and any.
    pub fn size(&mut self) -> u64 {
        let size = match self.byte() {
            small @ 0..96 => u64::from(small),
            power @ 96..160 => 1 << (power - 96),
            power @ 160..224 => u64::MAX >> (power - 160),
            224..240 => 1_000 * u64::from(self.byte()),
            _ => self.word(),
        };
        size.max(1)
    }

    /// Bytes of what is to be cut into some pieces; rarely too few.
    pub fn ample(&mut self) -> u64 {
        match self.byte() {
            0..16 => self.size(),
            byte => 1_000 + 977 * u64::from(byte),
        }
    }

    /// A bandwidth: mostly that of a link, now and then the least or the largest.
    pub fn rate(&mut self) -> Bandwidth {
        const RATES: [u64; 8] = [
            1_000_000_000,
            25_000_000_000,
            50_000_000_000,
            7_000_000_001,
            3,
            1,
            u64::MAX,
            1 << 40,
        ];
        let rate = match self.byte() {
            255 => self.word(),
            byte @ 224.. => RATES[usize::from(byte % 8)],
            byte => RATES[usize::from(byte % 4)],
        };
        Bandwidth::from_bytes_per_second(rate.max(1)).expect("not 0")
    }

    /// A latency, as [`rate`](Self::rate).
    pub fn latency(&mut self) -> Time {
        const NANOSECONDS: [u64; 4] = [0, 20, 700, 2_600];
        match self.byte() {
            255 => Time::from_ps(self.word()),
            254 => Time::MAX,
            253 => Time::from_ps(1),
            byte => Time::from_ns(NANOSECONDS[usize::from(byte % 4)]),
        }
    }

    /// `0..count` in any order.
    pub fn order(&mut self, count: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..count as u32).collect();
        for i in (1..count).rev() {
            order.swap(i, self.below((i + 1).min(256)));
        }
        order
    }
}

/// Stops work that goes on for long: inputs are small, so that few should.
pub struct Patience(pub u32);

impl Progress for Patience {
    fn report(&mut self, _: &'static str, _: u64, _: u64) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}
