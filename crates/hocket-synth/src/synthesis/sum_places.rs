//! Where sums are made.

use std::borrow::Cow;

use super::network::UnwoundNetwork;
use crate::collective::{Demand, NpuSet};
use crate::id::NpuId;

/// Chooses for each demand at which NPUs it is summed.
pub(super) struct SumPlaces<'a> {
    network: &'a UnwoundNetwork,
    /// The answer of the last search, for demands of the same holders and wants.
    last: Option<(NpuSet, NpuSet, NpuId)>,
}

impl<'a> SumPlaces<'a> {
    pub(super) fn new(network: &'a UnwoundNetwork) -> Self {
        Self {
            network,
            last: None,
        }
    }

    /// Where the sums of a demand are made: at those who both add and want, so that nobody else has
    /// to pass a sum on. Where there is none such, at one NPU that all who add can reach and that can
    /// reach all who want it: at one who adds, if possible, for the sum is then complete nowhere
    /// before it is there. Where there is no such NPU, at the first who adds; somebody is then cut
    /// off.
    pub(super) fn of<'b>(
        &mut self,
        demand: &Demand,
        holders: &'b [NpuId],
        wanted: &'b [NpuId],
    ) -> Cow<'b, [NpuId]> {
        if matches!(demand.holders, NpuSet::All) {
            return Cow::Borrowed(wanted);
        }
        let adds = |npu: &NpuId| demand.holders.contains(*npu);
        let both: Vec<NpuId> = wanted.iter().copied().filter(adds).collect();
        if !both.is_empty() {
            return Cow::Owned(both);
        }
        match &self.last {
            Some((of, to, site)) if (of, to) == (&demand.holders, &demand.wanted) => {
                Cow::Owned(vec![*site])
            }
            _ => {
                let site = meeting(self.network, holders, wanted).unwrap_or(holders[0]);
                self.last = Some((demand.holders.clone(), demand.wanted.clone(), site));
                Cow::Owned(vec![site])
            }
        }
    }
}

/// Returns an NPU that all of `holders` reach and that reaches all of `wanted`: the first of the holders, else of those
/// who want, else of all.
///
/// # Complexity
/// O((holders + wanted) x edges).
pub(super) fn meeting(
    network: &UnwoundNetwork,
    holders: &[NpuId],
    wanted: &[NpuId],
) -> Option<NpuId> {
    let mut count = vec![0; network.npus()];
    for (npus, backwards) in [(holders, false), (wanted, true)] {
        for &npu in npus {
            let reached = reached(network, &[npu], backwards);
            let counted = count.iter_mut().zip(reached);
            counted.for_each(|(count, reached)| *count += usize::from(reached));
        }
    }
    let everybody = (0..network.npus()).map(NpuId::from);
    let mut known = holders.iter().chain(wanted).copied().chain(everybody);
    known.find(|npu| count[npu.index()] == holders.len() + wanted.len())
}

/// Returns who can be reached from some NPUs, they among them; with `backwards`, who can reach one of them.
pub(super) fn reached(network: &UnwoundNetwork, from: &[NpuId], backwards: bool) -> Vec<bool> {
    let mut seen = vec![false; network.npus()];
    let mut stack = from.to_vec();
    while let Some(npu) = stack.pop() {
        if std::mem::replace(&mut seen[npu.index()], true) {
            continue;
        }
        let edges = match backwards {
            true => network.in_edges(npu.index()),
            false => network.out_edges(npu.index()),
        };
        stack.extend(edges.iter().map(|&edge| {
            let ends = network.edges()[edge as usize];
            if backwards { ends.src } else { ends.dst }
        }));
    }
    seen
}
