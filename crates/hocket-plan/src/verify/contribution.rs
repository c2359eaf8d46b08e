//! Exact sets of contributions, four to eight bytes each.
//!
//! A value that travels is the sum of some ranks' contributions. Rings make runs of consecutive ranks
//! (modulo n), which are stored in the handle itself. Any other set is a bit set that is stored once,
//! and unions are remembered.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::id::narrow;

/// Handle of a set of ranks; equal sets of one [`SetTable`] have equal handles.
///
/// 0 is the empty set; the high bit marks a stored bit set (its position below). Otherwise the upper
/// half is the first rank of a cyclic run and the lower half its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Set(u64);

const STORED: u64 = 1 << 63;

impl Set {
    /// No rank.
    pub const EMPTY: Set = Set(0);

    fn run(start: u32, length: u32) -> Self {
        Set(u64::from(start) << 32 | u64::from(length))
    }

    fn as_run(self) -> Option<(u32, u32)> {
        (self.0 & STORED == 0).then_some(((self.0 >> 32) as u32, (self.0 & 0xffff_ffff) as u32))
    }
}

/// Multiply-and-fold hash of integers; the keys are our own handles, not an attacker's.
#[derive(Default)]
pub struct FoldHasher(u64);

impl Hasher for FoldHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        const LOW: u128 = u64::MAX as u128;
        let wide = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (wide & LOW) as u64 ^ (wide >> 64) as u64;
    }
}

type FoldMap<K, V> = HashMap<K, V, BuildHasherDefault<FoldHasher>>;

/// The sets of ranks `0..n` that occur in a replay.
pub struct SetTable {
    n: u32,
    words: usize,
    bits: Vec<u64>,
    ids: FoldMap<Box<[u64]>, Set>,
    unions: FoldMap<(u64, u64), Set>,
}

impl SetTable {
    /// Returns a table for ranks `0..n`, with the empty set alone.
    pub fn new(n: usize) -> Self {
        Self {
            n: narrow(n),
            words: n.div_ceil(64),
            bits: Vec::new(),
            ids: FoldMap::default(),
            unions: FoldMap::default(),
        }
    }

    /// Memory of the stored sets, in bytes.
    pub fn memory(&self) -> usize {
        self.bits.len() * 16 + self.unions.len() * 32
    }

    /// Forgets every stored set; handles from before are void.
    pub fn clear(&mut self) {
        self.bits.clear();
        self.ids.clear();
        self.unions.clear();
    }

    /// Returns the set of one rank.
    pub fn single(&self, rank: u32) -> Set {
        Set::run(rank, 1)
    }

    /// Returns the set of all ranks.
    pub fn all(&self) -> Set {
        Set::run(0, self.n)
    }

    /// Returns the set of the ranks given.
    pub fn of(&mut self, ranks: impl IntoIterator<Item = u32>) -> Set {
        let mut bits = vec![0; self.words];
        for rank in ranks {
            bits[rank as usize / 64] |= 1 << (rank % 64);
        }
        self.intern(&bits)
    }

    /// `a` and `b` together, or `None` if they share a rank.
    #[inline]
    pub fn disjoint_union(&mut self, a: Set, b: Set) -> Option<Set> {
        if let (Some((a_start, a_length)), Some((b_start, b_length))) = (a.as_run(), b.as_run()) {
            let length = a_length + b_length;
            if length <= self.n {
                if self.wrap(a_start + a_length) == b_start {
                    return Some(self.canonical_run(a_start, length));
                }
                if self.wrap(b_start + b_length) == a_start {
                    return Some(self.canonical_run(b_start, length));
                }
            }
        }
        let key = if a.0 < b.0 { (a.0, b.0) } else { (b.0, a.0) };
        match self.unions.get(&key) {
            // A set is never its own union with another, so EMPTY can mean "they overlap".
            Some(&Set::EMPTY) => None,
            Some(&set) => Some(set),
            None => {
                let set = self.union_of_bits(a, b);
                self.unions.insert(key, set.unwrap_or(Set::EMPTY));
                set
            }
        }
    }

    /// Returns whether `rank` is in `set`.
    #[inline]
    pub fn contains(&self, set: Set, rank: u32) -> bool {
        match set.as_run() {
            Some((start, length)) => {
                let distance = if rank >= start {
                    rank - start
                } else {
                    rank + self.n - start
                };
                distance < length
            }
            None => self.stored(set)[rank as usize / 64] >> (rank % 64) & 1 == 1,
        }
    }

    /// Returns the ranks of `set`, ascending.
    pub fn ranks(&self, set: Set) -> impl Iterator<Item = u32> + '_ {
        (0..self.n).filter(move |&rank| self.contains(set, rank))
    }

    fn wrap(&self, rank: u32) -> u32 {
        if rank >= self.n { rank - self.n } else { rank }
    }

    fn canonical_run(&self, start: u32, length: u32) -> Set {
        Set::run(if length == self.n { 0 } else { start }, length)
    }

    fn stored(&self, set: Set) -> &[u64] {
        let start = (set.0 & !STORED) as usize * self.words;
        &self.bits[start..start + self.words]
    }

    fn to_bits(&self, set: Set) -> Vec<u64> {
        match set.as_run() {
            Some((start, length)) => {
                let mut bits = vec![0; self.words];
                for i in 0..length {
                    let rank = self.wrap(start + i);
                    bits[rank as usize / 64] |= 1 << (rank % 64);
                }
                bits
            }
            None => self.stored(set).to_vec(),
        }
    }

    fn union_of_bits(&mut self, a: Set, b: Set) -> Option<Set> {
        let mut bits = self.to_bits(a);
        for (word, other) in bits.iter_mut().zip(self.to_bits(b)) {
            if *word & other != 0 {
                return None;
            }
            *word |= other;
        }
        Some(self.intern(&bits))
    }

    /// Returns the handle of a bit set: a run where it is one.
    fn intern(&mut self, bits: &[u64]) -> Set {
        let length: u32 = bits.iter().map(|word| word.count_ones()).sum();
        if length == 0 {
            return Set::EMPTY;
        }
        let last = self.n as usize - 1;
        let mut before = bits[last / 64] >> (last % 64) & 1; // of the rank before a word
        let mut starts = (0..).zip(bits).flat_map(|(at, &word)| {
            let mut left = word & !(word << 1 | before);
            before = word >> 63;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(64 * at + bit)
            })
        });
        match (starts.next(), starts.next()) {
            (None, _) => return self.all(),
            (Some(start), None) => return self.canonical_run(start, length),
            _ => {}
        }
        if let Some(&set) = self.ids.get(bits) {
            return set;
        }
        let set = Set(STORED | (self.bits.len() / self.words) as u64);
        self.bits.extend_from_slice(bits);
        self.ids.insert(bits.into(), set);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    /// Keys as the tables of a replay have them: handles of runs that differ in their upper half
    /// only, pairs of such, and bit sets.
    fn hashes() -> [Vec<u64>; 3] {
        use std::hash::{BuildHasher, Hash};
        fn hash(key: impl Hash) -> u64 {
            BuildHasherDefault::<FoldHasher>::default().hash_one(key)
        }
        let run = |start: u64| Set::run(crate::id::fit(start), 1).0;
        [
            (0..4096).map(|i| hash(run(i))).collect(),
            (0..4096)
                .map(|i| hash((run(i / 64), run(i % 64))))
                .collect(),
            (0..4096)
                .map(|i| hash(vec![1u64 << (i / 64), i % 64].into_boxed_slice()))
                .collect(),
        ]
    }

    #[test]
    fn hashes_of_handles_are_spread() {
        for hashes in hashes() {
            // Of 4,096 random hashes 3,970 differ in their low 16 bits, give or take 11.
            let mut low: Vec<u16> = hashes.iter().map(|&hash| (hash & 0xffff) as u16).collect();
            low.sort_unstable();
            low.dedup();
            assert!(low.len() > 3_850, "{} of 4,096 differ", low.len());
            for bit in 0..64 {
                let ones = hashes.iter().filter(|&hash| hash >> bit & 1 == 1).count();
                assert!(
                    (1_700..=2_400).contains(&ones),
                    "bit {bit} is set in {ones} of 4,096"
                );
            }
        }
    }

    #[test]
    fn a_union_is_stored_once_and_forgotten() {
        let mut table = SetTable::new(6);
        assert_eq!(table.memory(), 0);
        let (a, b) = (table.single(0), table.single(2));
        let union = table.disjoint_union(a, b);
        assert_eq!(table.disjoint_union(b, a), union);
        assert_eq!(table.memory(), 16 + 32, "one set of one word, one union");
        assert_eq!(table.disjoint_union(union.unwrap(), a), None);
        assert_eq!(table.memory(), 16 + 2 * 32);
        table.clear();
        assert_eq!(table.memory(), 0);
        let other = table.disjoint_union(table.single(1), table.single(4));
        assert_eq!(table.ranks(other.unwrap()).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(table.memory(), 16 + 32);
    }

    #[test]
    fn unions_agree_with_bit_sets() {
        for n in [2usize, 3, 5, 64, 65, 130] {
            let mut table = SetTable::new(n);
            let mut seed = Seed(n as u64);
            let mut known: Vec<(Set, Vec<bool>)> = Vec::new();
            for rank in 0..n {
                let mut bits = vec![false; n];
                bits[rank] = true;
                known.push((table.single(narrow(rank)), bits));
            }
            for _ in 0..2000 {
                let (a, a_bits) = known[seed.below(known.len())].clone();
                let (b, b_bits) = known[seed.below(known.len())].clone();
                let overlap = a_bits.iter().zip(&b_bits).any(|(&x, &y)| x && y);
                let union = table.disjoint_union(a, b);
                assert_eq!(union.is_none(), overlap);
                let Some(union) = union else { continue };
                let bits: Vec<bool> = a_bits.iter().zip(&b_bits).map(|(&x, &y)| x || y).collect();
                for (rank, &bit) in bits.iter().enumerate() {
                    assert_eq!(table.contains(union, narrow(rank)), bit);
                }
                for (set, other) in &known {
                    assert_eq!(
                        *set == union,
                        *other == bits,
                        "equal sets have equal handles"
                    );
                }
                let ranks = (0..narrow(n)).filter(|&rank| bits[rank as usize]);
                assert_eq!(table.of(ranks), union);
                known.push((union, bits));
            }
        }
    }
}
