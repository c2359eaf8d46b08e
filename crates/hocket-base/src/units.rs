//! Time and bandwidth as integers; the only place where they are converted.
//!
//! Time is a whole number of picoseconds (`u64`: up to 213 days), sizes are bytes (`u64`), bandwidth
//! is bytes per second (`u64`). A transmission time is rounded *up* to the next picosecond, once.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Add;

const PS_PER_SECOND: u64 = 1_000_000_000_000;

/// A point in time or a duration, in whole picoseconds. Addition saturates at [`Time::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Time(u64);

impl Time {
    /// No time at all.
    pub const ZERO: Time = Time(0);
    /// The largest representable time (213 days); a simulation that reaches it reports an overflow.
    pub const MAX: Time = Time(u64::MAX);

    /// From picoseconds.
    #[inline]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// From nanoseconds; saturates.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(1_000))
    }

    /// In picoseconds.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// In seconds, rounded to the nearest `f64`.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / PS_PER_SECOND as f64
    }

    /// `self - other`, or zero where `other` is later.
    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, rhs: Time) -> Time {
        Time(self.0.saturating_add(rhs.0))
    }
}

impl std::iter::Sum for Time {
    fn sum<I: Iterator<Item = Time>>(iter: I) -> Time {
        iter.fold(Time::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    /// In the largest unit that keeps the number at 1 or more, with three decimals at most.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (PS_PER_SECOND, "s"),
            (1_000_000_000, "ms"),
            (1_000_000, "us"),
            (1_000, "ns"),
        ];
        for (ps, name) in units {
            if self.0 >= ps {
                let number = format!("{:.3}", self.0 as f64 / ps as f64);
                let number = number.trim_end_matches('0').trim_end_matches('.');
                return write!(f, "{number} {name}");
            }
        }
        write!(f, "{} ps", self.0)
    }
}

/// A positive bandwidth in bytes per second (GB/s here is 10^9 bytes per second).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Bandwidth(NonZeroU64);

impl Bandwidth {
    /// From bytes per second; `None` for 0.
    pub const fn from_bytes_per_second(bytes: u64) -> Option<Self> {
        match NonZeroU64::new(bytes) {
            Some(bytes) => Some(Self(bytes)),
            None => None,
        }
    }

    /// In bytes per second.
    #[inline]
    pub const fn bytes_per_second(self) -> u64 {
        self.0.get()
    }

    /// Returns the inverse bandwidth (beta) as an exact fraction, for fast repeated use.
    pub fn beta(self) -> Beta {
        let divisor = gcd(PS_PER_SECOND, self.0.get());
        Beta {
            ps: PS_PER_SECOND / divisor,
            bytes: self.0.get() / divisor,
        }
    }

    /// Returns time to transmit `bytes`: bytes / bandwidth, rounded up to whole picoseconds.
    pub fn transmission(self, bytes: u64) -> Time {
        self.beta().transmission(bytes)
    }
}

/// Returns the whole part of a number: 0 if it is negative or no number, [`u64::MAX`] if it is larger than that.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float saturates"
)]
pub const fn whole(number: f64) -> u64 {
    number as u64
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.get();
        for (unit, name) in [
            (1_000_000_000, "GB/s"),
            (1_000_000, "MB/s"),
            (1_000, "kB/s"),
        ] {
            if bytes >= unit {
                let number = format!("{:.3}", bytes as f64 / unit as f64);
                let number = number.trim_end_matches('0').trim_end_matches('.');
                return write!(f, "{number} {name}");
            }
        }
        write!(f, "{bytes} B/s")
    }
}

/// Inverse bandwidth: `ps` picoseconds for every `bytes` bytes, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beta {
    ps: u64,
    bytes: u64,
}

impl Beta {
    /// Returns time to transmit `bytes`, rounded up to whole picoseconds; saturates at [`Time::MAX`].
    ///
    /// # Source
    /// The beta term of the alpha-beta model (Hockney).
    #[inline]
    pub fn transmission(self, bytes: u64) -> Time {
        match bytes.checked_mul(self.ps) {
            Some(product) if self.bytes == 1 => Time(product),
            Some(product) => Time(product.div_ceil(self.bytes)),
            None => {
                let wide = (u128::from(bytes) * u128::from(self.ps)).div_ceil(self.bytes.into());
                Time(u64::try_from(wide).unwrap_or(u64::MAX))
            }
        }
    }
}

/// An amount of memory for messages: `149 GiB`, rounded up; what passes 2^70 bytes is not told apart.
pub struct Memory(pub u128);

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (60, "EiB"),
            (50, "PiB"),
            (40, "TiB"),
            (30, "GiB"),
            (20, "MiB"),
            (10, "KiB"),
        ];
        if self.0 >= 1 << 70 {
            return f.write_str("over 1024 EiB");
        }
        match units.iter().find(|(bits, _)| self.0 >= 1 << bits) {
            Some((bits, name)) => write!(f, "{} {name}", self.0.div_ceil(1 << bits)),
            None => write!(f, "{} B", self.0),
        }
    }
}

/// Greatest common divisor.
pub const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Seed of everything that draws at random; the same seed gives the same result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// Next value of the SplitMix64 sequence, advancing the seed.
    ///
    /// # Source
    /// Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a value in `0..bound` (bias below `bound / 2^64`).
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next_u64() % bound as u64).expect("below a usize")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bandwidth(bytes: u64) -> Bandwidth {
        Bandwidth::from_bytes_per_second(bytes).expect("positive")
    }

    #[test]
    fn transmission_is_exact_and_rounds_up() {
        assert_eq!(bandwidth(25_000_000_000).transmission(1).as_ps(), 40);
        assert_eq!(bandwidth(3).transmission(1).as_ps(), 333_333_333_334);
        // 50 GiB/s, 64 MiB / 16: 4 MiB / (50 * 2^30) s = 78.125 us.
        assert_eq!(
            bandwidth(50 << 30).transmission(4 << 20).as_ps(),
            78_125_000
        );
        assert_eq!(bandwidth(1).transmission(u64::MAX), Time::MAX);
    }

    #[test]
    fn wide_products_do_not_wrap() {
        let slow = bandwidth(7_000_000_001);
        let expected = (1u128 << 40) * u128::from(PS_PER_SECOND);
        let expected = expected.div_ceil(7_000_000_001);
        assert_eq!(u128::from(slow.transmission(1 << 40).as_ps()), expected);
    }

    #[test]
    fn times_read_well() {
        assert_eq!(Time::from_ps(999).to_string(), "999 ps");
        assert_eq!(Time::from_ps(1_500).to_string(), "1.5 ns");
        assert_eq!(Time::from_ps(2_000_000_000_000).to_string(), "2 s");
        assert_eq!(bandwidth(50_000_000_000).to_string(), "50 GB/s");
        assert_eq!(Memory(160_000_000_000).to_string(), "150 GiB");
        assert_eq!(Memory(16 << 30).to_string(), "16 GiB");
        assert_eq!(Memory(u128::MAX).to_string(), "over 1024 EiB");
        assert_eq!(Memory(1000).to_string(), "1000 B");
    }
}
