//! Trees of a reduce that are those of a broadcast over the links that lead back.

use std::collections::HashMap;

use crate::id::LinkId;
use crate::packing::Packing;
use crate::topology::Topology;

/// For each link the one that leads back with the same bandwidth and latency; `None` where some link has none, or some
/// switch a limit or work of its own.
pub(super) fn twins(topology: &Topology) -> Option<Vec<LinkId>> {
    let is_limited = topology
        .devices()
        .iter()
        .any(|device| device.limit.is_some());
    if is_limited || topology.has_offload() {
        return None;
    }
    let mut found: HashMap<_, Vec<LinkId>> = HashMap::new();
    for (number, link) in topology.links().iter().enumerate().rev() {
        let key = (link.src, link.dst, link.bandwidth, link.latency);
        found.entry(key).or_default().push(LinkId::from(number));
    }
    let links = topology.links().iter();
    links
        .map(|link| {
            let back = (link.dst, link.src, link.bandwidth, link.latency);
            found.get_mut(&back)?.pop()
        })
        .collect()
}

/// Trees that sum over the links that lead back.
pub(super) fn mirrored(copies: &Packing, twins: &[LinkId]) -> Packing {
    let mut sums = copies.clone();
    sums.turned = !copies.turned;
    for way in &mut sums.set.ways {
        for link in way {
            *link = twins[link.index()];
        }
    }
    sums
}
