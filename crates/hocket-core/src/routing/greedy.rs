//! Flows one after the other, each to the path that looks best when it comes.

use super::{Fabric, Flow};
use crate::id::LinkId;

/// A load: 32 bits where they hold the sum of all weights, which is twice as many in a register.
trait Load: Copy + Ord + std::ops::AddAssign + TryFrom<u64> {
    const ZERO: Self;
    /// Of a link that is not there: above any that is.
    const MISSING: Self;
}

impl Load for u32 {
    const ZERO: Self = 0;
    const MISSING: Self = u32::MAX;
}

impl Load for u64 {
    const ZERO: Self = 0;
    const MISSING: Self = u64::MAX;
}

/// Algorithm 1: the path whose busiest link carries least, the lowest spine where several do.
///
/// The paper counts flows; here a flow counts as much as it weighs.
///
/// # Source
/// Cohen et al., Routing for large ML models, Algorithm 1.
pub(super) fn greedy(fabric: &Fabric, flows: &[Flow]) -> Vec<u32> {
    greedy_after(fabric, flows, &[])
}

/// As [`greedy`], where the first flows have their spines already.
pub(super) fn greedy_after(fabric: &Fabric, flows: &[Flow], fixed: &[u32]) -> Vec<u32> {
    let total: u64 = flows.iter().map(|flow| flow.weight).sum();
    match total < u64::from(u32::MAX) {
        true => greedy_in::<u32>(fabric, flows, fixed),
        false => greedy_in::<u64>(fabric, flows, fixed),
    }
}

fn greedy_in<L: Load>(fabric: &Fabric, flows: &[Flow], fixed: &[u32]) -> Vec<u32> {
    let spines = fabric.spine_count();
    let [mut up, mut down] = fabric.columns().map(empty::<L>);
    let choose = |(i, flow): (usize, &Flow)| {
        let (from, to) = (flow.src as usize * spines, flow.dst as usize * spines);
        let (up_row, down_row) = (&mut up[from..from + spines], &mut down[to..to + spines]);
        let mut best = L::MISSING;
        let mut chosen = 0;
        for (spine, (&above, &below)) in up_row.iter().zip(down_row.iter()).enumerate() {
            let load = above.max(below);
            if load < best {
                best = load;
                chosen = spine;
            }
        }
        if let Some(&fixed) = fixed.get(i) {
            chosen = fixed as usize;
        }
        let weight = weight::<L>(flow);
        up_row[chosen] += weight;
        down_row[chosen] += weight;
        chosen as u32
    };
    flows.iter().enumerate().map(choose).collect()
}

/// The least loaded uplink among those that lead to the flow's end, whatever lies behind it; the first
/// flows have their spines already.
pub(super) fn least_loaded(fabric: &Fabric, flows: &[Flow], fixed: &[u32]) -> Vec<u32> {
    let mut up = vec![0u64; fabric.tor_count() * fabric.spine_count()];
    let choose = |(i, flow): (usize, &Flow)| {
        let spines = fabric.spines_between(flow.src, flow.dst);
        let least = || spines.min_by_key(|&spine| up[fabric.slot(flow.src, spine)]);
        let chosen = fixed.get(i).copied().or_else(least);
        let chosen = chosen.expect("every flow has a path");
        up[fabric.slot(flow.src, chosen)] += flow.weight;
        chosen
    };
    flows.iter().enumerate().map(choose).collect()
}

fn empty<L: Load>(links: &[Option<LinkId>]) -> Vec<L> {
    let load = |link: &Option<LinkId>| if link.is_some() { L::ZERO } else { L::MISSING };
    links.iter().map(load).collect()
}

fn weight<L: Load>(flow: &Flow) -> L {
    L::try_from(flow.weight).unwrap_or_else(|_| unreachable!("the sum of all weights fits"))
}
