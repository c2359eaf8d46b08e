//! What a collective's demands force over the boundary of a set of devices.

use std::collections::HashMap;

use super::Fidelity;
use crate::collective::{Collective, CollectiveKind, Demand, NpuSet};
use crate::id::{NpuId, narrow};

/// Which of several NPUs decides when data can arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decides {
    /// Any copy will do: the nearest.
    Nearest,
    /// All are needed: the farthest.
    Farthest,
}

/// The demands of a collective that need the network, indexed by NPU.
///
/// An all-to-all of n NPUs has n x n demands; they are not listed but summed in closed form.
#[derive(Debug)]
pub(super) struct Needs<'a> {
    npus: &'a [NpuId],
    demands: Vec<Demand>,
    wanted: ByNpu,
    held: ByNpu,
    /// For an all-to-all, the bytes that each rank gets from each other one.
    all_to_all: Option<Vec<u64>>,
    /// In how many parts a byte is counted.
    parts: u64,
}

#[derive(Debug, Default)]
struct ByNpu {
    all: Vec<u32>,
    one: HashMap<NpuId, Vec<u32>>,
}

impl ByNpu {
    fn add(&mut self, set: &NpuSet, demand: u32) {
        match set {
            NpuSet::All => self.all.push(demand),
            NpuSet::One(npu) => self.one.entry(*npu).or_default().push(demand),
            NpuSet::Some(npus) => {
                for npu in npus {
                    self.one.entry(*npu).or_default().push(demand);
                }
            }
        }
    }

    fn of(&self, npu: NpuId) -> impl Iterator<Item = usize> {
        let own = self.one.get(&npu).map_or(&[][..], Vec::as_slice);
        self.all.iter().chain(own).map(|&demand| demand as usize)
    }
}

impl<'a> Needs<'a> {
    pub(crate) fn new(collective: &'a Collective, fidelity: Fidelity) -> Self {
        let npus = collective.npus();
        let n = npus.len();
        let kind = collective.kind();
        let is_all_to_all = kind == CollectiveKind::AllToAll;
        let is_shared = matches!(
            kind,
            CollectiveKind::AllGather | CollectiveKind::ReduceScatter
        );
        let equal_shares = is_shared && fidelity == Fidelity::Dimension;
        let all_to_all = is_all_to_all.then(|| {
            let block = |i| collective.block_start(i + 1, n) - collective.block_start(i, n);
            (0..n).map(block).collect()
        });
        let demands = if is_all_to_all {
            Vec::new()
        } else {
            let mut demands = collective.demands();
            for demand in demands.iter_mut().filter(|_| equal_shares) {
                demand.bytes = collective.size();
            }
            merge(demands, npus)
        };
        let (mut wanted, mut held) = (ByNpu::default(), ByNpu::default());
        for (i, demand) in demands.iter().enumerate() {
            wanted.add(&demand.wanted, narrow(i));
            held.add(&demand.holders, narrow(i));
        }
        Self {
            npus,
            demands,
            wanted,
            held,
            all_to_all,
            parts: if equal_shares { n as u64 } else { 1 },
        }
    }

    /// In how many parts a byte is counted: all amounts here are of such parts.
    pub(crate) fn parts(&self) -> u64 {
        self.parts
    }

    /// Returns an amount in bytes, rounded up.
    pub(crate) fn in_bytes(&self, amount: u128) -> u128 {
        amount.div_ceil(self.parts.into())
    }

    /// Participants.
    pub(crate) fn npus(&self) -> &'a [NpuId] {
        self.npus
    }

    /// Returns the demands, merged, but for an all-to-all's.
    pub(crate) fn demands(&self) -> &[Demand] {
        &self.demands
    }

    /// For an all-to-all, the bytes that each rank gets from each other one.
    pub(crate) fn all_to_all(&self) -> Option<&[u64]> {
        self.all_to_all.as_deref()
    }

    /// What must enter the NPU of a rank: bytes, from which NPUs, and which of them decides.
    ///
    /// A copy that it wants and does not hold enters whole. So does a sum that it wants and to
    /// which another contributes, once, since what enters may have been summed on the way.
    pub(crate) fn entering(&self, rank: usize, mut visit: impl FnMut(u64, Decides, &[NpuId])) {
        let npu = self.npus[rank];
        if let Some(blocks) = &self.all_to_all {
            for &other in self.npus {
                if other != npu && blocks[rank] > 0 {
                    visit(blocks[rank], Decides::Nearest, &[other]);
                }
            }
        }
        for demand in self.wanted.of(npu).map(|i| &self.demands[i]) {
            let holders = demand.holders.members(self.npus);
            if demand.reduced {
                visit(demand.bytes, Decides::Farthest, holders);
            } else if !demand.holders.contains(npu) {
                visit(demand.bytes, Decides::Nearest, holders);
            }
        }
    }

    /// What must leave the NPU of a rank: bytes, and the NPUs that all must get it.
    ///
    /// A copy that it alone holds and another wants leaves once, since others may pass it on. So
    /// does its contribution to a sum that another wants.
    pub(crate) fn leaving(&self, rank: usize, mut visit: impl FnMut(u64, &[NpuId])) {
        let npu = self.npus[rank];
        if let Some(blocks) = &self.all_to_all {
            for (&other, &bytes) in self.npus.iter().zip(blocks) {
                if other != npu && bytes > 0 {
                    visit(bytes, &[other]);
                }
            }
        }
        for demand in self.held.of(npu).map(|i| &self.demands[i]) {
            let sole = demand.reduced || demand.holders.members(self.npus).len() == 1;
            if sole && demand.wanted != NpuSet::One(npu) {
                visit(demand.bytes, demand.wanted.members(self.npus));
            }
        }
    }

    /// Returns the bytes that must pass from the NPUs `inside` (by NPU) to the others.
    ///
    /// A copy must pass if all who hold it are inside and one who wants it is outside; a sum, if
    /// one who contributes is inside and one who wants it is outside. Each at least once, whatever
    /// is copied or summed on either side.
    pub(crate) fn crossing(&self, inside: &[bool]) -> u128 {
        let within = |npu: &NpuId| inside[npu.index()];
        if let Some(blocks) = &self.all_to_all {
            let senders = self.npus.iter().filter(|npu| within(npu)).count() as u128;
            let takers = self.npus.iter().zip(blocks);
            let outside = takers.filter(|(npu, _)| !within(npu));
            return senders * outside.map(|(_, &bytes)| u128::from(bytes)).sum::<u128>();
        }
        let count = self.npus.iter().filter(|npu| within(npu)).count();
        let any_all = [count > 0, count < self.npus.len()];
        let must_cross = |demand: &&Demand| {
            let held = match (&demand.holders, demand.reduced) {
                (NpuSet::All, true) => any_all[0],
                (NpuSet::All, false) => !any_all[1],
                (set, true) => set.members(self.npus).iter().any(within),
                (set, false) => set.members(self.npus).iter().all(within),
            };
            held && match &demand.wanted {
                NpuSet::All => any_all[1],
                set => !set.members(self.npus).iter().all(within),
            }
        };
        let crossing = self.demands.iter().filter(must_cross);
        crossing.map(|demand| u128::from(demand.bytes)).sum()
    }
}

/// What must cross the boundary of a growing set of NPUs.
pub(super) struct Crossing<'a, 'b> {
    needs: &'a Needs<'b>,
    rank: HashMap<u32, usize>,
    /// By demand: how many holders and how many takers are in the set.
    inside: Vec<[usize; 2]>,
    /// For all-to-all: participants in the set, and bytes each participant gets from another.
    count: u128,
    blocks: [u128; 2],
    /// Bytes that must pass from the set to the other NPUs.
    pub leaving: u128,
    /// Bytes that must pass from the other NPUs to the set.
    pub entering: u128,
}

impl<'a, 'b> Crossing<'a, 'b> {
    /// With nobody in the set.
    pub(crate) fn new(needs: &'a Needs<'b>) -> Self {
        let blocks = needs
            .all_to_all
            .iter()
            .flatten()
            .map(|&bytes| u128::from(bytes))
            .sum();
        Self {
            needs,
            rank: needs
                .npus
                .iter()
                .enumerate()
                .map(|(rank, npu)| (npu.0, rank))
                .collect(),
            inside: vec![[0, 0]; needs.demands.len()],
            count: 0,
            blocks: [0, blocks],
            leaving: 0,
            entering: 0,
        }
    }

    /// Puts an NPU into the set; one that takes no part changes nothing.
    pub(crate) fn add(&mut self, npu: u32) {
        let Some(&rank) = self.rank.get(&npu) else {
            return;
        };
        if let Some(blocks) = &self.needs.all_to_all {
            self.count += 1;
            self.blocks[0] += u128::from(blocks[rank]);
            self.blocks[1] -= u128::from(blocks[rank]);
            let others = self.needs.npus.len() as u128 - self.count;
            self.leaving = self.count * self.blocks[1];
            self.entering = others * self.blocks[0];
            return;
        }
        let needs = self.needs;
        for (end, index) in [&needs.held, &needs.wanted].into_iter().enumerate() {
            for demand in index.of(NpuId(npu)) {
                let bytes = u128::from(needs.demands[demand].bytes);
                let before = self.crosses(demand);
                self.inside[demand][end] += 1;
                let after = self.crosses(demand);
                self.leaving += bytes * u128::from(after[0]);
                self.leaving -= bytes * u128::from(before[0]);
                self.entering += bytes * u128::from(after[1]);
                self.entering -= bytes * u128::from(before[1]);
            }
        }
    }

    /// Returns whether a demand must leave and whether it must enter; see [`Needs::crossing`].
    fn crosses(&self, demand: usize) -> [bool; 2] {
        let Demand {
            reduced,
            holders,
            wanted,
            ..
        } = &self.needs.demands[demand];
        let [held, taken] = self.inside[demand];
        let holders = holders.members(self.needs.npus).len();
        let takers = wanted.members(self.needs.npus).len();
        let must = |held: usize, lacking: usize| {
            lacking > 0 && if *reduced { held > 0 } else { held == holders }
        };
        [must(held, takers - taken), must(holders - held, taken)]
    }
}

/// Sums the bytes of demands that are alike and drops those that are met from the start.
fn merge(demands: Vec<Demand>, npus: &[NpuId]) -> Vec<Demand> {
    let mut merged: Vec<Demand> = Vec::with_capacity(demands.len());
    let mut seen: HashMap<(bool, NpuSet, NpuSet), usize> = HashMap::new();
    for mut demand in demands {
        for set in [&mut demand.holders, &mut demand.wanted] {
            if npus.len() > 1 && set.members(npus).len() == npus.len() {
                *set = NpuSet::All;
            }
        }
        let holders = demand.holders.members(npus);
        demand.reduced &= holders.len() > 1;
        let takers = demand.wanted.members(npus);
        let met = !demand.reduced && takers.iter().all(|&npu| demand.holders.contains(npu));
        if demand.bytes == 0 || met {
            continue;
        }
        let key = (
            demand.reduced,
            demand.holders.clone(),
            demand.wanted.clone(),
        );
        match seen.get(&key) {
            Some(&at) => merged[at].bytes = merged[at].bytes.saturating_add(demand.bytes),
            None => {
                seen.insert(key, merged.len());
                merged.push(demand);
            }
        }
    }
    merged
}
