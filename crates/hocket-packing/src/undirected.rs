//! Trees that sum and copy at once: up to their roots over one way of each link, down over the other.
//!
//! An all-reduce along a tree takes each of its edges once each way. So as many trees fit as spanning trees that share
//! no unit of an edge, where an edge is a link with the one that leads back. By Tutte's and Nash-Williams' theorem
//! the worst partition says how many that are. On meshes, where corners have few links, that is up to twice what a
//! reduce-scatter and an all-gather, one after the other, come to.
//!
//! # Source
//! Tutte, On the problem of decomposing a graph into n connected factors; Nash-Williams, Edge-disjoint spanning trees
//! of finite graphs, both 1961.

use std::collections::VecDeque;

use super::both_ways::{Edge, edges, without_switches};
use super::graph;
use super::scale::times_between;
use super::union;
use super::{NoPacking, Tree, TreeArc, TreeSet};
use crate::bound::network::{Arc, ArcNetwork};
use crate::bound::partition::strongest;
use crate::id::{DeviceId, NpuId, fit, narrow};
use crate::progress::{Interrupted, Paced, Progress};
use crate::units::gcd;

/// Trees up to which more are tried where the exact number is larger.
const MOST_TREES: u64 = 24;
/// Trees up to which the exact number is taken.
const MOST_EXACT: u128 = 64;
/// Arcs of all trees, beyond which exchanges would take too long.
const MOST_ARCS: u128 = 60_000;
/// What is good enough to look no further.
const ENOUGH_PPM: u64 = 995_000;

/// Trees along which sums and copies share the links at all times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undirected {
    /// The partition that no all-reduce beats.
    pub partition: Partition,
    /// What all trees together reach of what it allows, in millionths, rounded down.
    pub reached_ppm: u64,
    /// From the roots to the ends, along links turned round.
    pub sums: TreeSet,
    /// The same trees, along links.
    pub copies: TreeSet,
}

/// NPUs in parts, each of which hears of every other part, and is heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The devices of each part. Every NPU is in one; a switch may be in several, and its links then count for each.
    pub parts: Vec<Vec<DeviceId>>,
    /// What leads into the parts, all together [bytes/s].
    pub bandwidth: u128,
}

/// Trees up to which a network with switches gets at least, so that what passes a switch can be spread.
const SPREAD_TREES: u64 = 24;

/// Packs trees of all NPUs; `None` where not all NPUs take part, a switch has a limit or can sum or multicast (no
/// partition is a bound then), or the network is too large or cannot be counted exactly.
///
/// # Errors
/// [`NoPacking::Interrupted`].
pub fn pack_undirected(
    network: &ArcNetwork,
    ends: &[NpuId],
    progress: &mut dyn Progress,
) -> Result<Option<Undirected>, NoPacking> {
    let mut watch = Paced::new(progress, "trees: both ways", 1 << 16);
    let Some(partition) = worst_partition(network, ends, &mut watch)? else {
        return Ok(None);
    };
    let (nodes, devices) = (ends.len(), network.device_count());
    let mut edges = edges(network);
    let unit = edges.iter().fold(0, |unit, edge| gcd(unit, edge.size));
    if unit == 0 {
        return Ok(None);
    }
    edges.iter_mut().for_each(|edge| edge.size /= unit);
    let physical = Strength::new(network, nodes, &edges);
    let Some((count, over, under)) = physical.choose(&mut watch)? else {
        return Ok(None);
    };
    let finer = match devices > nodes && count < SPREAD_TREES {
        true => (SPREAD_TREES / count).next_multiple_of(2),
        false => 1,
    };
    let (count, over) = (count * finer, over * u128::from(finer));
    let units = floors(&physical.sizes, (over, under));
    for (edge, units) in edges.iter_mut().zip(units) {
        edge.size = units;
    }
    edges.retain(|edge| edge.size > 0);
    let edges = without_switches(edges, nodes);
    let only_ends = network.within(nodes);
    let logical = Strength::new(&only_ends, nodes, &edges);
    let Some(worst) = logical.worst(&logical.sizes, &mut watch)? else {
        return Ok(None);
    };
    // Switches may have left something over.
    let count = (worst.entering / 2 / worst.links.max(1)).min(count.into()) as usize;
    if count == 0 {
        return Ok(None);
    }
    let shared = union::Edges {
        nodes,
        ends: edges.iter().map(|edge| edge.ends).collect(),
        units: logical.sizes,
    };
    let Some(trees) = union::trees(&shared, count, &mut watch)? else {
        return Ok(None);
    };
    // count / time, over bandwidth / 2 / (parts - 1).
    let reached = 2_000_000 * count as u128 * under * u128::from(unit);
    let reached = reached.saturating_mul(partition.parts.len() as u128 - 1);
    let reached_ppm = (reached / (over * partition.bandwidth)).min(1_000_000) as u64;
    let (copies, sums) = tree_sets(network, nodes, &edges, &trees);
    Ok(Some(Undirected {
        partition,
        reached_ppm,
        sums,
        copies,
    }))
}

/// Returns the partition that no all-reduce beats; `None` where not all NPUs take part, a switch has a limit or can sum
/// or multicast (no partition is a bound then), or numbers are too large to be exact.
pub(super) fn worst_partition(
    network: &ArcNetwork,
    ends: &[NpuId],
    watch: &mut Paced,
) -> Result<Option<Partition>, Interrupted> {
    let nodes = ends.len();
    if network.stations().count() != nodes
        || network.node_count() != network.device_count()
        || nodes < 2
    {
        return Ok(None);
    }
    let parts = strongest(network, singles(nodes), network.unit(), watch)?;
    Ok(parts.map(|parts| partition_of(network, &parts)))
}

/// Returns how many seconds a byte of all data takes at what the worst partition lets through; `None` where no
/// partition is a bound, or numbers are too large to be exact.
///
/// # Errors
/// [`Interrupted`].
pub fn seconds_of_partition(
    network: &ArcNetwork,
    ends: &[NpuId],
    progress: &mut dyn Progress,
) -> Result<Option<f64>, Interrupted> {
    let mut watch = Paced::new(progress, "trees: partition", 1 << 16);
    let partition = worst_partition(network, ends, &mut watch)?;
    Ok(partition.map(|it| 2.0 * (it.parts.len() as f64 - 1.0) / it.bandwidth as f64))
}

fn singles(nodes: usize) -> Vec<Vec<u32>> {
    (0..narrow(nodes)).map(|node| vec![node]).collect()
}

impl Undirected {
    /// Returns how many seconds a byte of all data takes at the rate that is reached.
    pub fn seconds_a_byte(&self) -> f64 {
        let share = self.reached_ppm.max(1) as f64 / 1e6;
        let parts = self.partition.parts.len() as f64 - 1.0;
        2.0 * parts / (self.partition.bandwidth as f64 * share)
    }
}

/// How many trees the edges of a network have room for.
struct Strength<'a> {
    network: &'a ArcNetwork,
    /// NPUs: nodes from there on are switches.
    nodes: usize,
    edges: &'a [Edge],
    sizes: Vec<u64>,
}

/// The worst partition: parts less one, and the units that lead into parts.
struct Worst {
    links: u128,
    entering: u128,
}

impl<'a> Strength<'a> {
    fn new(network: &'a ArcNetwork, nodes: usize, edges: &'a [Edge]) -> Self {
        Self {
            network,
            nodes,
            edges,
            sizes: edges.iter().map(|edge| edge.size).collect(),
        }
    }

    /// Returns `None` where the numbers are too large to be exact.
    fn worst(&self, units: &[u64], watch: &mut Paced) -> Result<Option<Worst>, Interrupted> {
        let used = self.edges.iter().zip(units);
        let arcs = used.filter(|(_, units)| **units > 0);
        let arcs = arcs.flat_map(|(edge, &units)| {
            let [a, b] = edge.ends;
            [(a, b), (b, a)].map(|(src, dst)| Arc {
                src,
                dst,
                capacity: units,
                latency: 0,
                sending: 0,
                internal: false,
            })
        });
        let undirected = self.network.with_arcs(arcs.collect());
        let parts = strongest(&undirected, singles(self.nodes), 1, watch)?;
        Ok(parts.map(|parts| Worst {
            links: parts.len() as u128 - 1,
            entering: partition_of(&undirected, &parts).bandwidth,
        }))
    }

    /// Returns how many trees, and in what time each link carries its own; the exact number where it is small.
    fn choose(&self, watch: &mut Paced) -> Result<Option<(u64, u128, u128)>, Interrupted> {
        let Some(worst) = self.worst(&self.sizes, watch)? else {
            return Ok(None);
        };
        let (entering, links) = (worst.entering, 2 * worst.links);
        if entering == 0 {
            return Ok(None);
        }
        let mut divisor = (entering, links);
        while divisor.1 > 0 {
            divisor = (divisor.1, divisor.0 % divisor.1);
        }
        let exact = entering / divisor.0;
        let most = MOST_ARCS / self.nodes as u128;
        if exact <= MOST_EXACT.min(most) {
            return Ok(Some((fit(exact), links / divisor.0, 1)));
        }
        let mut best: Option<(u64, u128, u128)> = None;
        for count in 1..=MOST_TREES.min(fit(most)) {
            let trees = u128::from(count);
            if let Some((its, over, under)) = best {
                let reached = u128::from(its) * under * links * 1_000_000 / (over * entering);
                if reached >= ENOUGH_PPM.into() {
                    break;
                }
            }
            let least = (trees * links, entering);
            let longest = match best {
                Some((its, over, under)) => (trees * over, u128::from(its) * under),
                None => (8 * trees * links, entering),
            };
            let times = times_between(self.sizes.iter().map(|&size| size.into()), least, longest);
            let (mut low, mut high) = (0, times.len());
            while low < high {
                let middle = low + (high - low) / 2;
                let units = floors(&self.sizes, times[middle]);
                let fits = self
                    .worst(&units, watch)?
                    .is_some_and(|worst| worst.entering >= 2 * trees * worst.links);
                if fits {
                    best = Some((count, times[middle].0, times[middle].1));
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
        }
        Ok(best)
    }
}

/// Returns the trees that each edge carries in a time.
fn floors(sizes: &[u64], (over, under): (u128, u128)) -> Vec<u64> {
    let floor = |&size: &u64| fit(u128::from(size) * over / under);
    sizes.iter().map(floor).collect()
}

fn partition_of(network: &ArcNetwork, parts: &[Vec<u32>]) -> Partition {
    let mut bandwidth = 0;
    let mut devices: Vec<Vec<DeviceId>> = Vec::with_capacity(parts.len());
    for part in parts {
        let mut is_inside = vec![false; network.node_count()];
        part.iter()
            .for_each(|&node| is_inside[node as usize] = true);
        let enters = |arc: &&Arc| !is_inside[arc.src as usize] && is_inside[arc.dst as usize];
        let entering = network.arcs().iter().filter(enters);
        bandwidth += entering.map(|arc| u128::from(arc.capacity)).sum::<u128>();
        let mut part: Vec<DeviceId> = part.iter().map(|&node| DeviceId(node)).collect();
        part.sort_unstable();
        devices.push(part);
    }
    devices.sort();
    Partition {
        parts: devices,
        bandwidth,
    }
}

/// Returns the trees from their middles, along links and along links turned round.
fn tree_sets(
    network: &ArcNetwork,
    nodes: usize,
    edges: &[Edge],
    trees: &[Vec<u32>],
) -> (TreeSet, TreeSet) {
    let (mut copies, mut sums) = (TreeSet::default(), TreeSet::default());
    let ends_of = graph::ends_of_links(network);
    for edge in edges {
        let [mut there, mut back] = [edge.there.clone(), edge.back.clone()];
        for way in [&mut there, &mut back] {
            graph::remove_loops(way, &ends_of);
        }
        let turned = |way: &Vec<_>| way.iter().rev().copied().collect();
        // Data goes the other way than the tree.
        sums.ways.extend([turned(&back), turned(&there)]);
        copies.ways.extend([there, back]);
    }
    for tree in trees {
        let mut near: Vec<Vec<(u32, u32)>> = vec![Vec::new(); nodes];
        for &edge in tree {
            let [a, b] = edges[edge as usize].ends;
            near[a as usize].push((b, 2 * edge));
            near[b as usize].push((a, 2 * edge + 1));
        }
        let tree = from(middle(&near), &near);
        copies.trees.push(tree.clone());
        sums.trees.push(tree);
    }
    (copies, sums)
}

/// Returns the node in the middle of a longest path of a tree.
fn middle(near: &[Vec<(u32, u32)>]) -> u32 {
    let last = |start: u32| {
        let tree = from(start, near);
        let end = narrow(tree.arcs.len()) - 1;
        (tree, end)
    };
    let (tree, end) = last(0);
    let (tree, end) = last(tree.arcs[end as usize].dst.0);
    let mut path = vec![tree.arcs[end as usize].dst.0];
    let mut at = end;
    while at != TreeArc::ROOT {
        path.push(tree.arcs[at as usize].src.0);
        at = tree.arcs[at as usize].parent;
    }
    path[path.len() / 2]
}

/// Returns the tree from one of its nodes, the nearest first.
fn from(root: u32, near: &[Vec<(u32, u32)>]) -> Tree {
    let mut arcs: Vec<TreeArc> = Vec::with_capacity(near.len() - 1);
    let mut queue = VecDeque::from([(root, root, TreeArc::ROOT)]);
    while let Some((node, before, parent)) = queue.pop_front() {
        for &(next, way) in near[node as usize]
            .iter()
            .filter(|(next, _)| *next != before)
        {
            queue.push_back((next, node, narrow(arcs.len())));
            arcs.push(TreeArc {
                src: NpuId(node),
                dst: NpuId(next),
                way,
                parent,
            });
        }
    }
    Tree {
        root: NpuId(root),
        arcs,
    }
}
