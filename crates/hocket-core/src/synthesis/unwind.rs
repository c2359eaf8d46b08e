//! Switches unwound into edges between NPUs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use super::network::Edge;
use crate::id::{DeviceId, LinkId, NpuId};
use crate::topology::Topology;

/// How many NPUs each NPU of a switch is joined to for the whole plan.
///
/// # Source
/// TACOS, section IV-D and Fig. 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unwinding {
    /// Each NPU to the next d, in the order of their numbers.
    Degree(u32),
    /// Each NPU to the next and to the one before.
    BothWays,
    /// Each NPU to every other.
    Max,
}

impl Unwinding {
    /// How far on, among n NPUs, those lie that an NPU is joined to.
    fn offsets(self, n: usize) -> Vec<usize> {
        match self {
            Unwinding::Degree(d) => (1..=(d as usize).min(n - 1)).collect(),
            Unwinding::BothWays if n > 2 => vec![1, n - 1],
            Unwinding::BothWays => vec![1],
            Unwinding::Max => (1..n).collect(),
        }
    }
}

impl fmt::Display for Unwinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unwinding::Degree(d) => d.fmt(f),
            Unwinding::BothWays => f.write_str("ring"),
            Unwinding::Max => f.write_str("max"),
        }
    }
}

/// A name that is no unwinding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unwinding {0:?} is none; it is a degree (1, 2, ...), ring (both ways) or max (all to all)"
)]
pub struct BadUnwinding(String);

impl std::str::FromStr for Unwinding {
    type Err = BadUnwinding;

    fn from_str(name: &str) -> Result<Self, BadUnwinding> {
        match (name, name.parse()) {
            ("max", _) => Ok(Unwinding::Max),
            ("ring", _) => Ok(Unwinding::BothWays),
            (_, Ok(degree)) if degree > 0 => Ok(Unwinding::Degree(degree)),
            _ => Err(BadUnwinding(name.to_owned())),
        }
    }
}

/// Gives every edge that the fabrics of a topology unwind into, with its path, and counts it into
/// `link_share`.
pub(super) fn unwind(
    topology: &Topology,
    unwinding: &[Unwinding],
    link_share: &mut [u64],
    mut give: impl FnMut(Edge, &[LinkId]),
) {
    let dimension_of = match unwinding.len() {
        1 => None,
        _ => topology.link_dimensions(),
    };
    for fabric in Fabric::all(topology) {
        let dimension = dimension_of
            .as_ref()
            .and_then(|of| of[fabric.first_link.index()]);
        let chosen = unwinding[dimension.map_or(0, |d| (d as usize).min(unwinding.len() - 1))];
        let n = fabric.npus.len();
        for _ in 0..fabric.ports {
            for offset in chosen.offsets(n) {
                for (i, &src) in fabric.npus.iter().enumerate() {
                    let dst = fabric.npus[(i + offset) % n];
                    if let Some(path) = fabric.path(topology, src, dst, link_share) {
                        path.iter().for_each(|link| link_share[link.index()] += 1);
                        give(Edge { src, dst }, &path);
                    }
                }
            }
        }
    }
}

/// The fabrics of a topology that join at least two NPUs: how many there are of each dimension, for
/// choosing among unwindings. `None` stands for those of no dimension.
pub(super) fn fabric_sizes(topology: &Topology) -> Vec<(Option<u32>, usize)> {
    let dimension_of = topology.link_dimensions();
    let mut sizes: Vec<(Option<u32>, usize)> = Vec::new();
    for fabric in Fabric::all(topology) {
        let of = dimension_of.as_ref();
        let dimension = of.and_then(|of| of[fabric.first_link.index()]);
        match sizes.iter_mut().find(|(of, _)| *of == dimension) {
            Some((_, size)) => *size = (*size).max(fabric.npus.len()),
            None => sizes.push((dimension, fabric.npus.len())),
        }
    }
    sizes
}

/// Switches that are joined among each other, and the NPUs around them.
struct Fabric {
    member: Vec<bool>,
    npus: Vec<NpuId>,
    first_link: LinkId,
    /// Links into the fabric that every one of its NPUs has.
    ports: usize,
}

impl Fabric {
    fn all(topology: &Topology) -> Vec<Self> {
        let mut seen = vec![false; topology.device_count()];
        let switches = topology.npu_count()..topology.device_count();
        let mut fabrics = Vec::new();
        for start in switches {
            if !seen[start] {
                fabrics.extend(Self::around(topology, DeviceId::from(start), &mut seen));
            }
        }
        fabrics
    }

    /// The fabric of one switch; `None` where it joins fewer than two NPUs.
    fn around(topology: &Topology, start: DeviceId, seen: &mut [bool]) -> Option<Self> {
        let mut stack = vec![start];
        let mut switches = Vec::new();
        seen[start.index()] = true;
        let mut entries: Vec<(NpuId, LinkId)> = Vec::new();
        while let Some(switch) = stack.pop() {
            switches.push(switch);
            let ends = topology
                .in_links(switch)
                .iter()
                .map(|&id| (id, topology.link(id).src));
            let ends = ends.chain(
                topology
                    .out_links(switch)
                    .iter()
                    .map(|&id| (id, topology.link(id).dst)),
            );
            for (id, end) in ends {
                if topology.is_npu(end) {
                    if topology.link(id).src == end {
                        entries.push((NpuId(end.0), id));
                    }
                } else if !std::mem::replace(&mut seen[end.index()], true) {
                    stack.push(end);
                }
            }
        }
        entries.sort_unstable();
        let ports = entries.chunk_by(|a, b| a.0 == b.0);
        let npus: Vec<NpuId> = ports.clone().map(|group| group[0].0).collect();
        if npus.len() < 2 {
            return None;
        }
        let mut member = vec![false; topology.device_count()];
        switches
            .iter()
            .for_each(|switch| member[switch.index()] = true);
        Some(Self {
            member,
            first_link: entries[0].1,
            ports: ports.map(<[_]>::len).min().unwrap_or(1),
            npus,
        })
    }

    /// The way through the fabric with fewest links, and of those the least shared; `None` where
    /// there is no way.
    fn path(
        &self,
        topology: &Topology,
        src: NpuId,
        dst: NpuId,
        link_share: &[u64],
    ) -> Option<Vec<LinkId>> {
        let cost = |id: LinkId| {
            let rate = topology.link(id).bandwidth.bytes_per_second();
            ((u128::from(link_share[id.index()] + 1) << 64) / u128::from(rate)) as u64
        };
        let mut best = std::collections::HashMap::new();
        let mut queue = BinaryHeap::from([Reverse(((0u32, 0u64), src.device()))]);
        best.insert(src.device(), ((0u32, 0u64), LinkId(u32::MAX)));
        while let Some(Reverse((length, device))) = queue.pop() {
            if device == dst.device() {
                break;
            }
            if best[&device].0 < length {
                continue;
            }
            for &id in topology.out_links(device) {
                let end = topology.link(id).dst;
                let inside =
                    self.member[end.index()] || (end == dst.device() && !topology.is_npu(device));
                let found = (length.0 + 1, length.1.saturating_add(cost(id)));
                if inside && best.get(&end).is_none_or(|known| (found, id) < *known) {
                    best.insert(end, (found, id));
                    queue.push(Reverse((found, end)));
                }
            }
        }
        let mut path = Vec::new();
        let mut device = dst.device();
        while device != src.device() {
            let (_, link) = best.get(&device)?;
            path.push(*link);
            device = topology.link(*link).src;
        }
        path.reverse();
        Some(path)
    }
}
