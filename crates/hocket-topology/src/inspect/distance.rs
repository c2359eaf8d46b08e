//! Distances between NPUs, in links and in latency.

use super::super::build::product_counts;
use super::super::{DimensionKind, Topology};
use crate::graph::ShortestPaths;
use crate::id::{DeviceId, LinkId, NpuId};
use crate::units::Time;

/// NPUs times links above which diameters are not searched for.
const LARGEST: u64 = 1 << 37;

/// Devices that a search from one of them reaches.
pub(super) fn reached(
    topology: &Topology,
    start: DeviceId,
    neighbours: impl Fn(DeviceId) -> Vec<DeviceId>,
) -> Vec<bool> {
    let mut reached = vec![false; topology.device_count()];
    let mut stack = vec![start];
    reached[start.index()] = true;
    while let Some(device) = stack.pop() {
        for end in neighbours(device) {
            if !std::mem::replace(&mut reached[end.index()], true) {
                stack.push(end);
            }
        }
    }
    reached
}

/// Returns the number of links between the NPUs farthest apart, where all are connected.
pub(super) fn hops(topology: &Topology) -> Option<usize> {
    if is_whole_product(topology) {
        return Some(dimension_hops(topology).map(|(hops, _)| hops).sum());
    }
    let work = topology.npu_count() as u64 * topology.links().len() as u64;
    (work <= LARGEST).then(|| hops_by_search(topology))
}

/// Latency between the NPUs farthest apart, where all are connected.
pub(super) fn latency(topology: &Topology) -> Option<Time> {
    if is_whole_product(topology) {
        let along = |(hops, latency): (usize, Time)| times(latency, hops);
        return Some(dimension_hops(topology).map(along).sum());
    }
    let first = topology
        .links()
        .first()
        .map_or(Time::ZERO, |link| link.latency);
    if topology.links().iter().all(|link| link.latency == first) {
        return hops(topology).map(|hops| times(first, hops));
    }
    let work = topology.npu_count() as u64 * topology.links().len() as u64;
    let mut paths = ShortestPaths::new(Time::MAX, ());
    let farthest = |npu| farthest_latency(topology, npu, &mut paths);
    (work <= LARGEST).then(|| topology.npus().map(farthest).max().unwrap_or(Time::ZERO))
}

fn times(latency: Time, count: usize) -> Time {
    Time::from_ps(latency.as_ps().saturating_mul(count as u64))
}

/// Returns whether every link of the dimensions is there, so that distances add up over them.
fn is_whole_product(topology: &Topology) -> bool {
    let dimensions = topology.dimensions();
    let (npus, switches, links) = product_counts(dimensions);
    !dimensions.is_empty()
        && npus == topology.npu_count() as u128
        && npus + switches == topology.device_count() as u128
        && links == topology.links().len() as u128
}

/// Links between the ends of each dimension, and the latency of one.
fn dimension_hops(topology: &Topology) -> impl Iterator<Item = (usize, Time)> {
    topology.dimensions().iter().map(|dimension| {
        let size = dimension.size as usize;
        let hops = match dimension.kind {
            _ if size == 1 => 0,
            DimensionKind::Ring => size / 2,
            DimensionKind::Line => size - 1,
            DimensionKind::FullyConnected => 1,
            DimensionKind::Switch => 2,
        };
        (hops, dimension.latency)
    })
}

/// Breadth-first search from 64 NPUs at a time, a bit for each.
fn hops_by_search(topology: &Topology) -> usize {
    let count = topology.device_count();
    let mut farthest = 0;
    let mut seen = vec![0u64; count];
    let mut coming = vec![0u64; count];
    for start in (0..topology.npu_count()).step_by(64) {
        let batch = 64.min(topology.npu_count() - start);
        seen.fill(0);
        let mut frontier: Vec<(usize, u64)> =
            (0..batch).map(|bit| (start + bit, 1 << bit)).collect();
        frontier
            .iter()
            .for_each(|&(device, bits)| seen[device] |= bits);
        let mut left = batch * (topology.npu_count() - 1);
        let mut level = 0;
        while left > 0 && !frontier.is_empty() {
            level += 1;
            let mut touched = Vec::new();
            for (device, bits) in frontier.drain(..) {
                for &id in topology.out_links(DeviceId::from(device)) {
                    let end = topology.link(id).dst.index();
                    let new = bits & !seen[end];
                    if new != 0 {
                        if coming[end] == 0 {
                            touched.push(end);
                        }
                        coming[end] |= new;
                    }
                }
            }
            for device in touched {
                let bits = std::mem::take(&mut coming[device]);
                seen[device] |= bits;
                if device < topology.npu_count() {
                    left -= bits.count_ones() as usize;
                }
                frontier.push((device, bits));
            }
        }
        farthest = farthest.max(level);
    }
    farthest
}

/// Latency to the NPU farthest from one.
fn farthest_latency(topology: &Topology, src: NpuId, paths: &mut ShortestPaths<Time>) -> Time {
    let arc = |&id: &LinkId| (topology.link(id).dst.0, topology.link(id).latency);
    paths.run(
        topology.device_count(),
        [(src.0, Time::ZERO)],
        |device| topology.out_links(DeviceId(device)).iter().map(arc),
        |so_far, latency, _| Some((so_far + latency, ())),
    );
    let npus = &paths.costs()[..topology.npu_count()];
    npus.iter().copied().max().unwrap_or(Time::ZERO)
}
