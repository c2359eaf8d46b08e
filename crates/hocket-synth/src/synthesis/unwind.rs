//! Switches unwound into edges between NPUs.

use std::collections::HashSet;
use std::fmt;

use super::network::Edge;
use super::switch_group::{Around, NO_LINK, Paths, SwitchGroup};
use crate::explain::Explain;
use crate::id::{LinkId, NpuId};
use crate::topology::Topology;

/// How many NPUs each NPU of a switch is joined to for the whole plan.
///
/// Every choice keeps all NPUs in reach over the edges that can be reached through the switches. An NPU with
/// links of one direction only is joined to as many that have both. If that leaves an NPU out, as behind
/// switches that are joined one way, edges are added until none is.
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
    /// Returns how far on, among n NPUs, those lie that an NPU is joined to.
    fn offsets(self, n: usize) -> Vec<usize> {
        match self {
            _ if n < 2 => Vec::new(),
            Unwinding::Degree(d) => (1..=(d as usize).min(n - 1)).collect(),
            Unwinding::BothWays if n > 2 => vec![1, n - 1],
            Unwinding::BothWays => vec![1],
            Unwinding::Max => (1..n).collect(),
        }
    }

    /// Returns how many of n others an NPU with links of one direction is joined to.
    fn degree(self, n: usize) -> usize {
        match self {
            Unwinding::Degree(d) => n.min(d as usize),
            Unwinding::BothWays => n.min(2),
            Unwinding::Max => n,
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

/// A name that is not an unwinding.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[explain(
    why("{_0:?} is not an unwinding"),
    remedy("use a degree (1, 2, ...), ring (both ways) or max (all to all)")
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

/// Returns every edge that the switch groups of a topology unwind into, with its path, and counts it into `link_share`.
///
/// # Complexity
/// One search of its fabric for each edge; where a fabric joins its NPUs one way only in places, one
/// more search for each NPU that sends into it.
pub(super) fn unwind(
    topology: &Topology,
    unwinding: &[Unwinding],
    link_share: &mut [u64],
    give: impl FnMut(Edge, &[LinkId]),
) {
    let dimension_of = match unwinding.len() {
        1 => None,
        _ => topology.link_dimensions(),
    };
    let mut edges = Edges {
        topology,
        link_share,
        give,
        paths: Paths::new((u32::MAX, u64::MAX), NO_LINK),
    };
    for fabric in SwitchGroup::all(topology) {
        let dimension = dimension_of
            .as_ref()
            .and_then(|of| of[fabric.first_link.index()]);
        let chosen = unwinding[dimension.map_or(0, |d| (d as usize).min(unwinding.len() - 1))];
        let mut joined = HashSet::new();
        edges.circle(&fabric, chosen, &mut joined);
        edges.one_way(&fabric, chosen, &mut joined);
        if !fabric.is_whole || fabric.both.is_empty() {
            edges.complete(&fabric, &joined);
        }
    }
}

/// The edges of a network while they are made.
struct Edges<'a, Give> {
    topology: &'a Topology,
    link_share: &'a mut [u64],
    give: Give,
    paths: Paths,
}

/// Edges that there are by now, by their ends.
type Joined = HashSet<(NpuId, NpuId)>;

impl<Give: FnMut(Edge, &[LinkId])> Edges<'_, Give> {
    /// Makes an edge, if there is a way for it.
    fn join(&mut self, fabric: &SwitchGroup, (src, dst): (NpuId, NpuId), joined: &mut Joined) {
        if let Some(path) = fabric.path(self.topology, (src, dst), self.link_share, &mut self.paths)
        {
            path.iter()
                .for_each(|link| self.link_share[link.index()] += 1);
            (self.give)(Edge { src, dst }, &path);
            joined.insert((src, dst));
        }
    }

    /// Edges among the NPUs with links of both directions, in a circle.
    fn circle(&mut self, fabric: &SwitchGroup, chosen: Unwinding, joined: &mut Joined) {
        let n = fabric.both.len();
        for _ in 0..fabric.ports {
            for offset in chosen.offsets(n) {
                for (i, src) in fabric.both.iter().enumerate() {
                    let dst = &fabric.both[(i + offset) % n];
                    self.join(fabric, (src.npu, dst.npu), joined);
                }
            }
        }
    }

    /// Edges of the NPUs with links of one direction: to those who can pass on, if there are any; the
    /// first to the first, the second to the second, so that all are used alike.
    fn one_way(&mut self, fabric: &SwitchGroup, chosen: Unwinding, joined: &mut Joined) {
        let turned = |&(one, other): &(NpuId, NpuId)| (other, one);
        let sides = [
            (&fabric.senders, &fabric.receivers, false),
            (&fabric.receivers, &fabric.senders, true),
        ];
        for (ends, opposite, is_turned) in sides {
            let others = match (chosen, fabric.both.is_empty()) {
                (Unwinding::Max, _) => [&fabric.both[..], opposite].concat(),
                (_, true) => opposite.clone(),
                (_, false) => fabric.both.clone(),
            };
            for (i, end) in ends.iter().enumerate() {
                for offset in 0..chosen.degree(others.len()) {
                    let pair = (end.npu, others[(i + offset) % others.len()].npu);
                    let pair = if is_turned { turned(&pair) } else { pair };
                    if !joined.contains(&pair) {
                        (0..end.links).for_each(|_| self.join(fabric, pair, joined));
                    }
                }
            }
        }
    }

    /// Edges to all who can be reached through the switches and not yet over edges.
    fn complete(&mut self, fabric: &SwitchGroup, joined: &Joined) {
        let mut next = vec![Vec::new(); self.topology.npu_count()];
        #[expect(
            clippy::iter_over_hash_type,
            reason = "who is reached is the same in any order"
        )]
        for &(src, dst) in joined {
            next[src.index()].push(dst);
        }
        let mut added = Joined::new();
        let senders = fabric.both.iter().chain(&fabric.senders);
        for (i, &Around { npu: src, .. }) in senders.enumerate() {
            let mut seen = vec![false; next.len()];
            spread(src, &next, &mut seen);
            let mut ends = fabric.reached_from(self.topology, src);
            let turn = i % ends.len().max(1);
            ends.rotate_left(turn);
            for dst in ends {
                if !seen[dst.index()] {
                    self.join(fabric, (src, dst), &mut added);
                    next[src.index()].push(dst);
                    spread(dst, &next, &mut seen);
                }
            }
        }
    }
}

/// Marks an NPU and all that can be reached from it over edges.
fn spread(from: NpuId, next: &[Vec<NpuId>], seen: &mut [bool]) {
    let mut stack = vec![from];
    while let Some(npu) = stack.pop() {
        if !std::mem::replace(&mut seen[npu.index()], true) {
            stack.extend(&next[npu.index()]);
        }
    }
}

/// Returns the fabrics of a topology that join at least two NPUs: how many there are of each dimension, for choosing
/// among unwindings. `None` stands for those of no dimension.
pub(super) fn fabric_sizes(topology: &Topology) -> Vec<(Option<u32>, usize)> {
    let dimension_of = topology.link_dimensions();
    let mut sizes: Vec<(Option<u32>, usize)> = Vec::new();
    for fabric in SwitchGroup::all(topology) {
        let of = dimension_of.as_ref();
        let dimension = of.and_then(|of| of[fabric.first_link.index()]);
        let npus = fabric.npus();
        match sizes.iter_mut().find(|(of, _)| *of == dimension) {
            Some((_, size)) => *size = (*size).max(npus),
            None => sizes.push((dimension, npus)),
        }
    }
    sizes
}
