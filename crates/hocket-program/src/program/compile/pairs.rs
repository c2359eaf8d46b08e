//! Which receives go with which sends in one block, so that they may become one step.

use rustc_hash::FxHashMap;

use super::Moves;
use crate::graph::Lists;

/// For ranks and peers that they receive from, the peer that the same block sends to; and the reverse.
#[derive(Default)]
pub(super) struct Pairs {
    pub sends: FxHashMap<(u32, u32), u32>,
    pub receives: FxHashMap<(u32, u32), u32>,
}

impl Pairs {
    /// Pairs the peers of each rank between which most chunks pass through it; each peer once, and only if half of what
    /// either carries is such a chunk.
    pub(super) fn of(moves: &Moves<'_>, levels: &Lists<u32>) -> Self {
        let mut came: FxHashMap<(u32, u32), (u32, u32)> = FxHashMap::default();
        let mut through: FxHashMap<(u32, u32, u32), u32> = FxHashMap::default();
        let mut carried: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for each in moves.along(levels) {
            if let Some((from, count)) = came.remove(&(each.src, each.first))
                && count == each.count
                && from != each.dst
            {
                *through.entry((each.src, from, each.dst)).or_default() += 1;
            }
            came.insert((each.dst, each.first), (each.src, each.count));
            *carried.entry((each.src, each.dst)).or_default() += 1;
        }
        let mut found: Vec<(u32, (u32, u32, u32))> = through
            .into_iter()
            .map(|(key, count)| (count, key))
            .collect();
        found.sort_unstable_by_key(|&(count, key)| (std::cmp::Reverse(count), key));
        let mut pairs = Self::default();
        for (count, (rank, from, to)) in found {
            let most = carried[&(from, rank)].max(carried[&(rank, to)]);
            let is_free = !pairs.sends.contains_key(&(rank, from))
                && !pairs.receives.contains_key(&(rank, to));
            if is_free && count * 2 >= most {
                pairs.sends.insert((rank, from), to);
                pairs.receives.insert((rank, to), from);
            }
        }
        pairs
    }
}
