//! Least bandwidth between two halves of the NPUs.

mod flow;
mod refine;

use super::super::Topology;
use super::Bisection;
use crate::id::narrow;
use flow::SplitFlow;

/// Most NPUs of which all halvings are tried.
const ENUMERATED: usize = 16;

/// Returns the least flow between halves, or an upper bound on it; `None` for one NPU.
pub(super) fn bisection(topology: &Topology) -> Option<Bisection> {
    let n = topology.npu_count();
    if n < 2 {
        return None;
    }
    let is_minimum = n <= ENUMERATED;
    let mut flow = SplitFlow::new(topology);
    let bytes_per_second = if is_minimum {
        halvings(n).map(|split| flow.least(&split)).min()
    } else {
        let splits = starting_splits(topology).into_iter();
        splits
            .map(|split| {
                let refined = refine::refined(topology, &split);
                flow.least(&split).min(flow.least(&refined))
            })
            .min()
    };
    Some(Bisection {
        bytes_per_second: bytes_per_second.unwrap_or(0),
        is_minimum,
    })
}

/// Returns every set of half the NPUs, rounded down, as a side for each NPU.
fn halvings(n: usize) -> impl Iterator<Item = Vec<bool>> {
    let half = narrow(n / 2);
    // An even number: the complement of a set is looked at with the set, so NPU 0 stays out of it.
    let sets = if n.is_multiple_of(2) {
        1u32 << (n - 1)
    } else {
        1u32 << n
    };
    (0..sets)
        .filter(move |set| set.count_ones() == half)
        .map(move |set| (0..n).map(|i| set >> i & 1 == 1).collect())
}

/// Halves by id, by position along each dimension, and by distance from NPU 0.
fn starting_splits(topology: &Topology) -> Vec<Vec<bool>> {
    let n = topology.npu_count();
    let mut orders: Vec<Vec<usize>> = vec![(0..n).collect()];
    let mut stride = 1;
    for dimension in topology.dimensions() {
        let size = dimension.size as usize;
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&npu| npu / stride % size);
        orders.push(order);
        stride *= size;
    }
    orders.push(by_distance(topology));
    orders.dedup();
    let halved = |order: Vec<usize>| {
        let mut side = vec![false; n];
        order[..n / 2].iter().for_each(|&npu| side[npu] = true);
        side
    };
    orders.into_iter().map(halved).collect()
}

/// Returns the NPUs in the order in which a breadth-first search from the first one meets them.
fn by_distance(topology: &Topology) -> Vec<usize> {
    let mut seen = vec![false; topology.device_count()];
    let mut order = Vec::with_capacity(topology.device_count());
    for start in topology.npus() {
        if std::mem::replace(&mut seen[start.index()], true) {
            continue;
        }
        let mut next = order.len();
        order.push(start.device());
        while next < order.len() {
            for &id in topology.out_links(order[next]) {
                let end = topology.link(id).dst;
                if !std::mem::replace(&mut seen[end.index()], true) {
                    order.push(end);
                }
            }
            next += 1;
        }
    }
    let npus = order.into_iter().filter(|&device| topology.is_npu(device));
    npus.map(|device| device.index()).collect()
}
