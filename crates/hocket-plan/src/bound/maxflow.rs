//! The bound's network as one for maximum flows.

use super::network::ArcNetwork;
use crate::graph::FlowNetwork;

/// Returns a network's arcs with their capacity times `scale` (divided by `unit`); no drains yet.
pub(super) fn flow_network(network: &ArcNetwork, unit: u64, scale: u128) -> FlowNetwork {
    let capacity = |capacity: u64| (u128::from(capacity / unit) * scale) as i128;
    let arcs = network.arcs().iter();
    let arcs = arcs.map(|arc| (arc.src, arc.dst, capacity(arc.capacity)));
    FlowNetwork::new(network.node_count(), arcs)
}

/// Returns whether flows of `total` times a bandwidth, and of `total` times every capacity, can be summed without
/// overflow.
pub(super) fn fits(network: &ArcNetwork, unit: u64, total: u128) -> bool {
    let capacities = network
        .arcs()
        .iter()
        .map(|arc| u128::from(arc.capacity / unit));
    let most = capacities.sum::<u128>().checked_mul(total);
    most.is_some_and(|most| most < 1 << 120)
}
