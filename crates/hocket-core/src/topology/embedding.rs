//! Orders of NPUs in which neighbours are close.

use super::Topology;
use crate::id::NpuId;

/// The NPUs in an order for a closed ring.
pub fn ring_order(_topology: &Topology, npus: &[NpuId]) -> Vec<NpuId> {
    npus.to_vec()
}

/// The NPUs in an order for an open chain that starts at `first`.
pub fn chain_order(_topology: &Topology, npus: &[NpuId], first: NpuId) -> Vec<NpuId> {
    let mut order = vec![first];
    order.extend(npus.iter().copied().filter(|&npu| npu != first));
    order
}
