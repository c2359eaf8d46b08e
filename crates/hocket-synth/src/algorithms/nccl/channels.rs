//! The channels of a network: rings over all NPUs, node after node.

use super::cycles::{Cycle, cycles, cycles_by_speed};
use crate::algorithms::dimensional::PathOf;
use crate::algorithms::multi_ring::{self, Nodes};
use crate::id::NpuId;
use crate::topology::Topology;
use crate::topology::embedding::ring_order;

/// A ring that goes one way.
pub(super) struct NcclChannel {
    /// All NPUs in order.
    pub order: Vec<NpuId>,
    /// The links of those of its steps that do not take the way of single messages.
    pub paths: PathOf,
}

/// Returns whether NPUs are on several nodes.
pub(super) fn is_spread(topology: &Topology) -> bool {
    topology.groups().len() > 1
}

/// Returns the number of channels.
pub(super) fn count(topology: &Topology) -> usize {
    match is_spread(topology) {
        true => multi_ring::lanes(topology) / 2,
        false => inside(topology).len(),
    }
}

/// Returns the channels of a collective of so many bytes.
pub(super) fn channels(topology: &Topology, size: u64) -> Vec<NcclChannel> {
    if !is_spread(topology) {
        return inside(topology);
    }
    let rings = Nodes::new(topology, size).rings().into_iter();
    rings
        .map(|ring| NcclChannel {
            order: ring.order(),
            paths: ring.there,
        })
        .collect()
}

/// Returns those of one node; the best single cycle where no search finds one.
fn inside(topology: &Topology) -> Vec<NcclChannel> {
    let npus: Vec<NpuId> = topology.npus().collect();
    along(topology, cycles(topology, &npus))
}

/// Returns those of one node in every way that may be the fastest, those first that carry most together.
pub(super) fn every_inside(topology: &Topology) -> Vec<Vec<NcclChannel>> {
    let npus: Vec<NpuId> = topology.npus().collect();
    let mut found = cycles_by_speed(topology, &npus);
    if found.is_empty() {
        found.push(Vec::new());
    }
    found.into_iter().map(|it| along(topology, it)).collect()
}

fn along(topology: &Topology, cycles: Vec<Cycle>) -> Vec<NcclChannel> {
    if cycles.is_empty() {
        let npus: Vec<NpuId> = topology.npus().collect();
        return vec![NcclChannel {
            order: ring_order(topology, &npus),
            paths: PathOf::new(),
        }];
    }
    let found = cycles.into_iter();
    found
        .map(|Cycle { order, paths }| NcclChannel { order, paths })
        .collect()
}
