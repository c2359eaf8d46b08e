//! The precondition and postcondition of a collective, as a list of demands.

use super::{Collective, CollectiveKind, block_start};
use crate::id::NpuId;

/// A set of participants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NpuSet {
    /// Every participant of the collective.
    All,
    /// One of them.
    One(NpuId),
    /// Some of them, ascending, without repetition.
    Some(Box<[NpuId]>),
}

impl NpuSet {
    /// Returns the set of the NPUs given, in any order.
    pub fn of(npus: impl IntoIterator<Item = NpuId>) -> Self {
        let mut npus: Vec<NpuId> = npus.into_iter().collect();
        npus.sort_unstable();
        npus.dedup();
        match npus[..] {
            [npu] => NpuSet::One(npu),
            _ => NpuSet::Some(npus.into()),
        }
    }

    /// Returns its members, given the participants.
    pub fn members<'a>(&'a self, all: &'a [NpuId]) -> &'a [NpuId] {
        match self {
            NpuSet::All => all,
            NpuSet::One(npu) => std::slice::from_ref(npu),
            NpuSet::Some(npus) => npus,
        }
    }

    /// Returns whether a participant is a member.
    pub fn contains(&self, npu: NpuId) -> bool {
        match self {
            NpuSet::All => true,
            NpuSet::One(one) => *one == npu,
            NpuSet::Some(npus) => npus.binary_search(&npu).is_ok(),
        }
    }
}

/// Some bytes, who holds them before and who must hold them after.
///
/// Where `reduced`, every holder holds a contribution of its own and those who want it must get the
/// sum of all contributions, each once. Otherwise every holder holds the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Number of bytes.
    pub bytes: u64,
    /// `true` if the holders' values are to be summed.
    pub reduced: bool,
    /// NPUs that hold the bytes before the collective.
    pub holders: NpuSet,
    /// NPUs that must hold the bytes, or their sum, after the collective.
    pub wanted: NpuSet,
}

impl Demand {
    /// What is wrong with this demand among `npus`, which ascend, if anything.
    pub(super) fn check(&self, npus: &[NpuId]) -> Result<(), String> {
        if self.bytes == 0 {
            return Err("has 0 bytes; give it at least one".to_owned());
        }
        for (set, word) in [(&self.holders, "held"), (&self.wanted, "wanted")] {
            let members = set.members(npus);
            if members.is_empty() {
                return Err(format!("is {word} by nobody; name at least one NPU"));
            }
            if let Some(npu) = members.iter().find(|npu| npus.binary_search(npu).is_err()) {
                return Err(format!("is {word} by NPU {npu}, which does not take part"));
            }
        }
        Ok(())
    }
}

/// Returns the demands of a collective, in the order that [`Collective::demands`] documents.
pub(super) fn expand(collective: &Collective) -> Vec<Demand> {
    let npus = &collective.npus;
    let n = npus.len();
    let size = collective.size;
    let block = |i: usize| block_start(size, i + 1, n) - block_start(size, i, n);
    let root = || {
        let rank = collective
            .root
            .expect("rooted kinds have a root by construction");
        NpuSet::One(npus[rank.index()])
    };
    let whole = |reduced, holders, wanted| {
        vec![Demand {
            bytes: size,
            reduced,
            holders,
            wanted,
        }]
    };
    let per_rank = |reduced, ends: &dyn Fn(NpuId) -> (NpuSet, NpuSet)| {
        let demand = |(i, &npu): (usize, &NpuId)| {
            let (holders, wanted) = ends(npu);
            Demand {
                bytes: block(i),
                reduced,
                holders,
                wanted,
            }
        };
        npus.iter().enumerate().map(demand).collect()
    };
    match collective.kind {
        CollectiveKind::AllReduce => whole(true, NpuSet::All, NpuSet::All),
        CollectiveKind::Reduce => whole(true, NpuSet::All, root()),
        CollectiveKind::Broadcast => whole(false, root(), NpuSet::All),
        CollectiveKind::ReduceScatter => per_rank(true, &|npu| (NpuSet::All, NpuSet::One(npu))),
        CollectiveKind::AllGather => per_rank(false, &|npu| (NpuSet::One(npu), NpuSet::All)),
        CollectiveKind::Gather => per_rank(false, &|npu| (NpuSet::One(npu), root())),
        CollectiveKind::Scatter => per_rank(false, &|npu| (root(), NpuSet::One(npu))),
        CollectiveKind::AllToAll => {
            let pair = |i: usize, j: usize| Demand {
                bytes: block(j),
                reduced: false,
                holders: NpuSet::One(npus[i]),
                wanted: NpuSet::One(npus[j]),
            };
            (0..n)
                .flat_map(|i| (0..n).map(move |j| pair(i, j)))
                .collect()
        }
        CollectiveKind::Custom => collective.custom.clone(),
    }
}
