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

use std::collections::{BTreeMap, VecDeque};

use super::scale::times_between;
use super::union::{self, Edges};
use super::{NoPacking, Tree, TreeArc, TreeSet};
use crate::bound::network::{Arc, Network};
use crate::bound::partition::strongest;
use crate::id::{DeviceId, LinkId, NpuId};
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
    /// The NPUs of each part.
    pub parts: Vec<Vec<NpuId>>,
    /// What leads from part to part, in both directions together [bytes/s].
    pub bandwidth: u128,
}

impl Partition {
    /// The parts, as devices.
    pub fn devices(&self) -> Vec<Vec<DeviceId>> {
        let part = |npus: &Vec<NpuId>| npus.iter().map(|npu| npu.device()).collect();
        self.parts.iter().map(part).collect()
    }
}

/// A link and the one that leads back.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ends: [u32; 2],
    there: LinkId,
    back: LinkId,
    /// Of the slower.
    bandwidth: u64,
}

/// Packs trees of all NPUs; `None` where not all devices take part, or the network is too large or cannot be
/// counted exactly.
///
/// # Errors
/// [`NoPacking::Interrupted`].
pub(crate) fn pack_undirected(
    network: &Network,
    ends: &[NpuId],
    progress: &mut dyn Progress,
) -> Result<Option<Undirected>, NoPacking> {
    let nodes = network.node_count();
    if ends.len() != nodes || nodes < 2 {
        return Ok(None);
    }
    let mut watch = Paced::new(progress, "trees: both ways", 1 << 16);
    let pairs = pairs(network);
    let unit = pairs.iter().fold(0, |unit, pair| gcd(unit, pair.bandwidth));
    if unit == 0 {
        return Ok(None);
    }
    let sizes: Vec<u64> = pairs.iter().map(|pair| pair.bandwidth / unit).collect();
    let Some(worst) = worst(network, &pairs, &sizes, &mut watch)? else {
        return Ok(None);
    };
    let Some((count, over, under)) = choose(network, &pairs, &sizes, &worst, &mut watch)? else {
        return Ok(None);
    };
    let edges = Edges {
        nodes,
        ends: pairs.iter().map(|pair| pair.ends).collect(),
        units: floors(&sizes, (over, under)),
    };
    let Some(trees) = union::trees(&edges, count as usize, &mut watch)? else {
        return Ok(None);
    };
    let partition = partition_of(network, &worst.parts);
    // count / time, over bandwidth / 2 / (parts - 1).
    let reached = 2_000_000 * u128::from(count) * under * u128::from(unit);
    let reached = reached.saturating_mul(partition.parts.len() as u128 - 1);
    let reached_ppm = (reached / (over * partition.bandwidth)) as u64;
    let (copies, sums) = tree_sets(nodes, &pairs, &trees);
    Ok(Some(Undirected {
        partition,
        reached_ppm,
        sums,
        copies,
    }))
}

impl Undirected {
    /// How long a byte of all data takes at the rate that is reached [s].
    pub(crate) fn seconds_a_byte(&self) -> f64 {
        let share = self.reached_ppm.max(1) as f64 / 1e6;
        let parts = self.partition.parts.len() as f64 - 1.0;
        2.0 * parts / (self.partition.bandwidth as f64 * share)
    }
}

/// Links there and links back, with their bandwidths.
type Ways = [Vec<(u64, LinkId)>; 2];

/// Links between the same NPUs, the fastest there with the fastest back.
fn pairs(network: &Network) -> Vec<Pair> {
    let mut between: BTreeMap<(u32, u32), Ways> = BTreeMap::new();
    for (link, arc) in (0..).map(LinkId).zip(network.arcs()) {
        let ends = (arc.src.min(arc.dst), arc.src.max(arc.dst));
        let way = usize::from(arc.src > arc.dst);
        let links = &mut between.entry(ends).or_default()[way];
        links.push((arc.capacity, link));
    }
    let mut pairs = Vec::new();
    for ((a, b), mut links) in between {
        for way in &mut links {
            way.sort_by(|x, y| y.0.cmp(&x.0).then(x.1.cmp(&y.1)));
        }
        let [there, back] = links;
        pairs.extend(there.into_iter().zip(back).map(|(there, back)| Pair {
            ends: [a, b],
            there: there.1,
            back: back.1,
            bandwidth: there.0.min(back.0),
        }));
    }
    pairs
}

/// The worst partition: its parts, and the units between them.
struct Worst {
    parts: Vec<Vec<u32>>,
    between: u128,
}

/// `None` where the numbers are too large to be exact.
fn worst(
    network: &Network,
    pairs: &[Pair],
    units: &[u64],
    watch: &mut Paced,
) -> Result<Option<Worst>, Interrupted> {
    let used = pairs.iter().zip(units).filter(|(_, units)| **units > 0);
    let arcs = used.flat_map(|(pair, &units)| {
        let [a, b] = pair.ends;
        [(a, b), (b, a)].map(|(src, dst)| Arc {
            src,
            dst,
            capacity: units,
            latency: 0,
            sending: 0,
            internal: false,
        })
    });
    let undirected = network.with_arcs(arcs.collect());
    let single = (0..network.node_count() as u32)
        .map(|node| vec![node])
        .collect();
    let Some(parts) = strongest(&undirected, single, 1, watch)? else {
        return Ok(None);
    };
    let part_of = part_of(network.node_count(), &parts);
    let split = pairs.iter().zip(units);
    let split =
        split.filter(|(pair, _)| part_of[pair.ends[0] as usize] != part_of[pair.ends[1] as usize]);
    let between = split.map(|(_, &units)| u128::from(units)).sum();
    Ok(Some(Worst { parts, between }))
}

fn part_of(nodes: usize, parts: &[Vec<u32>]) -> Vec<u32> {
    let mut part_of = vec![0; nodes];
    for (number, part) in (0..).zip(parts) {
        part.iter()
            .for_each(|&node| part_of[node as usize] = number);
    }
    part_of
}

/// Trees that each pair carries in a time.
fn floors(sizes: &[u64], (over, under): (u128, u128)) -> Vec<u64> {
    let floor = |&size: &u64| (u128::from(size) * over / under) as u64;
    sizes.iter().map(floor).collect()
}

/// How many trees, and in what time each link carries its own; the exact number where it is small.
fn choose(
    network: &Network,
    pairs: &[Pair],
    sizes: &[u64],
    worst: &Worst,
    watch: &mut Paced,
) -> Result<Option<(u64, u128, u128)>, Interrupted> {
    let (between, links) = (worst.between, worst.parts.len() as u128 - 1);
    if between == 0 {
        return Ok(None);
    }
    let mut divisor = (between, links);
    while divisor.1 > 0 {
        divisor = (divisor.1, divisor.0 % divisor.1);
    }
    let exact = between / divisor.0;
    let most = MOST_ARCS / network.node_count() as u128;
    if exact <= MOST_EXACT.min(most) {
        return Ok(Some((exact as u64, links / divisor.0, 1)));
    }
    let mut best: Option<(u64, u128, u128)> = None;
    for count in 1..=MOST_TREES.min(most as u64) {
        let trees = u128::from(count);
        if let Some((its, over, under)) = best {
            let reached = u128::from(its) * under * links * 1_000_000 / (over * between);
            if reached >= ENOUGH_PPM.into() {
                break;
            }
        }
        let least = (trees * links, between);
        let longest = match best {
            Some((its, over, under)) => (trees * over, u128::from(its) * under),
            None => (8 * trees * links, between),
        };
        let times = times_between(sizes.iter().map(|&size| size.into()), least, longest);
        let (mut low, mut high) = (0, times.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let units = floors(sizes, times[middle]);
            let fits = self::worst(network, pairs, &units, watch)?
                .is_some_and(|worst| worst.between >= trees * (worst.parts.len() as u128 - 1));
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

fn partition_of(network: &Network, parts: &[Vec<u32>]) -> Partition {
    let part_of = part_of(network.node_count(), parts);
    let between = network.arcs().iter();
    let between = between.filter(|arc| part_of[arc.src as usize] != part_of[arc.dst as usize]);
    let mut parts: Vec<Vec<NpuId>> = parts
        .iter()
        .map(|part| part.iter().map(|&node| NpuId(node)).collect())
        .collect();
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts.sort();
    Partition {
        parts,
        bandwidth: between.map(|arc| u128::from(arc.capacity)).sum(),
    }
}

/// The trees from their middles, along links and along links turned round.
fn tree_sets(nodes: usize, pairs: &[Pair], trees: &[Vec<u32>]) -> (TreeSet, TreeSet) {
    let (mut copies, mut sums) = (TreeSet::default(), TreeSet::default());
    for pair in pairs {
        copies.ways.extend([vec![pair.there], vec![pair.back]]);
        // Data goes the other way than the tree.
        sums.ways.extend([vec![pair.back], vec![pair.there]]);
    }
    for edges in trees {
        let mut near: Vec<Vec<(u32, u32)>> = vec![Vec::new(); nodes];
        for &edge in edges {
            let [a, b] = pairs[edge as usize].ends;
            near[a as usize].push((b, 2 * edge));
            near[b as usize].push((a, 2 * edge + 1));
        }
        let tree = from(middle(&near), &near);
        copies.trees.push(tree.clone());
        sums.trees.push(tree);
    }
    (copies, sums)
}

/// The node in the middle of a longest path of a tree.
fn middle(near: &[Vec<(u32, u32)>]) -> u32 {
    let last = |start: u32| {
        let tree = from(start, near);
        let end = tree.arcs.len() as u32 - 1;
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

/// The tree from one of its nodes, the nearest first.
fn from(root: u32, near: &[Vec<(u32, u32)>]) -> Tree {
    let mut arcs: Vec<TreeArc> = Vec::with_capacity(near.len() - 1);
    let mut queue = VecDeque::from([(root, root, TreeArc::ROOT)]);
    while let Some((node, before, parent)) = queue.pop_front() {
        for &(next, way) in near[node as usize]
            .iter()
            .filter(|(next, _)| *next != before)
        {
            queue.push_back((next, node, arcs.len() as u32));
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
