//! How one switch maps a header to one of its ways.

use super::header::{Fields, Header};
use super::linear;
use super::linux::{self, ByPort, Policy};

/// What a switch computes of the fields that it hashes.
///
/// The names are those of SAI (`SAI_HASH_ALGORITHM_*`), which says neither the order of the fields nor start
/// values: chips differ in both. Here fields come in network order (addresses, ports, protocol, label).
/// `RANDOM` cannot be predicted and is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// The kernel's.
    Linux(Policy),
    /// CRC-16, polynomial 0x8005: SAI's `CRC`.
    Crc16(Fields),
    /// All 32 bits of CRC-32.
    Crc32(Fields),
    /// Low 16 bits of CRC-32: `CRC_32LO`.
    Crc32Low(Fields),
    /// High 16 bits of CRC-32: `CRC_32HI`.
    Crc32High(Fields),
    /// CRC-16, polynomial 0x1021: `CRC_CCITT`.
    CrcCcitt(Fields),
    /// Exclusive or of words of 16 bits: `XOR`.
    Xor(Fields),
    /// CRC-16 exclusive-or the words: `CRC_XOR`.
    CrcXor(Fields),
    /// The hash of receive-side scaling.
    Toeplitz(Fields),
}

impl Algorithm {
    /// Returns the fields of a header that it hashes.
    pub fn fields(self, header: &Header) -> Fields {
        match self {
            Algorithm::Linux(policy) => policy.fields(header),
            Algorithm::Crc16(fields)
            | Algorithm::Crc32(fields)
            | Algorithm::Crc32Low(fields)
            | Algorithm::Crc32High(fields)
            | Algorithm::CrcCcitt(fields)
            | Algorithm::Xor(fields)
            | Algorithm::CrcXor(fields)
            | Algorithm::Toeplitz(fields) => fields,
        }
    }
}

/// A switch's hash and what it is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SwitchHash {
    /// The algorithm and its fields.
    pub algorithm: Algorithm,
    /// Its seed: the start value, of which algorithms of 16 bits take the low half.
    pub seed: u32,
    /// How many bits of the hash are passed over, lowest first; the hash is turned by so many. Linux has
    /// none.
    pub offset: u32,
}

impl SwitchHash {
    /// Returns the number of a header: 31 bits for Linux, 16 or 32 for others.
    pub fn hash(&self, header: &Header) -> u32 {
        if let Algorithm::Linux(policy) = self.algorithm {
            return linux::hash(policy, self.seed, header);
        }
        let bytes = self.algorithm.fields(header).bytes(header);
        let bytes = bytes.as_slice();
        let low = self.seed as u16;
        let hash = match self.algorithm {
            Algorithm::Linux(_) => unreachable!("it has returned"),
            Algorithm::Crc16(_) => linear::crc16(low, bytes),
            Algorithm::Crc32(_) => linear::crc32(self.seed, bytes),
            Algorithm::Crc32Low(_) => linear::crc32(self.seed, bytes) & 0xffff,
            Algorithm::Crc32High(_) => linear::crc32(self.seed, bytes) >> 16,
            Algorithm::CrcCcitt(_) => linear::crc_ccitt(low, bytes),
            Algorithm::Xor(_) => linear::xor16(low, bytes),
            Algorithm::CrcXor(_) => linear::crc16(low, bytes) ^ linear::xor16(0, bytes),
            Algorithm::Toeplitz(_) => linear::toeplitz(self.seed, bytes),
        };
        match self.algorithm {
            Algorithm::Crc32(_) | Algorithm::Toeplitz(_) => hash.rotate_right(self.offset),
            _ => u32::from((hash as u16).rotate_right(self.offset)),
        }
    }

    /// Returns which of so many equal ways a header takes, from 0, in the order of the switch's next hops.
    ///
    /// # Panics
    /// If there are none.
    pub fn way(&self, header: &Header, ways: u32) -> u32 {
        let hash = self.hash(header);
        match self.algorithm {
            // The first way whose bound is not below the hash; bounds are rounded to the nearest.
            Algorithm::Linux(_) => {
                let guess = ((u64::from(hash) * u64::from(ways)) >> 31) as u32;
                let is_past = |way: &u32| hash <= bound(*way, ways);
                let found = (guess.saturating_sub(1)..ways).find(is_past);
                found.unwrap_or(ways - 1)
            }
            _ => hash % ways,
        }
    }

    /// Returns the hashes that lead to a way: an interval for Linux, whose bounds are next hops' `upper_bound`.
    pub(super) fn interval(way: u32, ways: u32) -> [u32; 2] {
        let low = way
            .checked_sub(1)
            .map_or(0, |before| bound(before, ways) + 1);
        [low, bound(way, ways)]
    }

    /// Returns whether the hash of a packet is also that of one which comes back.
    pub(super) fn is_symmetric(&self) -> bool {
        match self.algorithm {
            Algorithm::Linux(Policy::Custom(fields)) => {
                let both = |one: Fields, other: Fields| fields.has(one) == fields.has(other);
                both(Fields::SRC, Fields::DST) && both(Fields::SPORT, Fields::DPORT)
            }
            Algorithm::Linux(_) => true,
            _ => false,
        }
    }
}

/// Returns the last hash of a way of so many.
fn bound(way: u32, ways: u32) -> u32 {
    let ways = u64::from(ways);
    ((((u64::from(way) + 1) << 31) + ways / 2) / ways - 1) as u32
}

/// A switch on a path: its hash, how many equal ways it has, and the one to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The switch's hash.
    pub hash: SwitchHash,
    /// How many ways it has.
    pub ways: u32,
    /// The way that is wanted.
    pub wanted: u32,
}

impl Stage {
    /// Returns whether a hash leads the wanted way.
    #[inline(always)]
    fn is_met(&self, hash: u32, [low, high]: [u32; 2]) -> bool {
        match self.hash.algorithm {
            Algorithm::Linux(_) => low <= hash && hash <= high,
            _ => hash % self.ways == self.wanted,
        }
    }
}

/// The part of a header that varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    SourcePort,
    FlowLabel,
}

impl Part {
    pub(super) fn set(self, header: &Header, value: u32) -> Header {
        match self {
            Part::SourcePort => Header {
                sport: value as u16,
                ..*header
            },
            Part::FlowLabel => Header {
                label: value,
                ..*header
            },
        }
    }
}

/// A stage made ready for many values of one part of a header.
pub(super) enum Ready<'a> {
    /// Linux, by port.
    Port(ByPort, &'a Stage, [u32; 2]),
    /// What each byte of the part adds, exclusive-or, to the hash of 0.
    Linear(Box<[[u32; 256]; 3]>, &'a Stage),
    /// In full.
    Full(Header, Part, bool, &'a Stage, [u32; 2]),
}

impl<'a> Ready<'a> {
    /// `is_back`: the stage sees the packets that come back.
    pub(super) fn new(header: &Header, part: Part, stage: &'a Stage, is_back: bool) -> Self {
        let seen = |value: u32| {
            let header = part.set(header, value);
            if is_back { header.reversed() } else { header }
        };
        let interval = SwitchHash::interval(stage.wanted, stage.ways);
        if let Algorithm::Linux(policy) = stage.hash.algorithm {
            let by_port = ByPort::new(policy, stage.hash.seed, &seen(0), is_back);
            return match by_port.filter(|_| part == Part::SourcePort) {
                Some(by_port) => Ready::Port(by_port, stage, interval),
                None => Ready::Full(*header, part, is_back, stage, interval),
            };
        }
        let none = stage.hash.hash(&seen(0));
        let mut adds = Box::new([[0; 256]; 3]);
        let bytes = if part == Part::SourcePort { 2 } else { 3 };
        for (i, table) in adds.iter_mut().enumerate().take(bytes) {
            for bit in 0..8 {
                let of_bit = stage.hash.hash(&seen(1 << (8 * i + bit))) ^ none;
                for value in (0..256).filter(|value| value >> bit & 1 == 1) {
                    table[value] ^= of_bit;
                }
            }
        }
        adds[0].iter_mut().for_each(|add| *add ^= none);
        Ready::Linear(adds, stage)
    }

    #[inline(always)]
    pub(super) fn is_met(&self, value: u32) -> bool {
        match self {
            Ready::Port(by_port, stage, interval) => {
                stage.is_met(by_port.hash(value as u16), *interval)
            }
            Ready::Linear(adds, stage) => {
                let add = |byte: usize| adds[byte][(value >> (8 * byte) & 0xff) as usize];
                stage.is_met(add(0) ^ add(1) ^ add(2), [0; 2])
            }
            Ready::Full(header, part, is_back, stage, interval) => {
                let header = part.set(header, value);
                let header = if *is_back { header.reversed() } else { header };
                stage.is_met(stage.hash.hash(&header), *interval)
            }
        }
    }
}
