//! Trees for sums and trees for copies that share the links at the same time, found by rerouting one after the other.
//!
//! Each unit of data has a root, a tree along which it is summed there, and one along which it is copied from there.
//! All links have a price, which rises steeply with how full the trees make them. Each tree in turn is taken out, and
//! grows again where prices are least. What fills the fullest link falls by that, and prices become steeper. Trees lead
//! over links themselves, through switches: nothing is joined before. Sums need not take the links that lead back from
//! those of copies.
//!
//! Nothing is proved on the way: the trees are checked afterwards, and what they reach is compared with the worst partition.
//!
//! # Source
//! Prices that rise exponentially: Plotkin, Shmoys, Tardos, Fast approximation algorithms for fractional packing and covering
//! problems, 1995. Trees between the cheapest and the shortest: Alpert et al., Prim-Dijkstra tradeoffs for improved
//! performance-driven routing tree design, 1995.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::rc::Rc;

use super::undirected::worst_partition;
use super::{NoPacking, Tree, TreeArc, TreeSet, Undirected, costs};
use crate::bound::network::ArcNetwork;
use crate::id::{LinkId, NpuId, fit, narrow};
use crate::progress::{Interrupted, Paced, Progress};

const NONE: u32 = u32::MAX;

/// How steep prices are, one after another: by how many powers of e they rise until a link is as full as the bound has it.
const STEEP: [f64; 7] = [6.0, 12.0, 24.0, 48.0, 96.0, 192.0, 384.0];
/// Rounds over all trees for each.
const ROUNDS: usize = 3;
/// Powers of e at most.
const MOST_POWER: f64 = 600.0;
/// Labels that are settled, beyond which trees stay as they are.
const MOST_STEPS: u64 = 6_000_000;
/// How much trees are to be low once the fullest link is known, tried one after the other.
const LOWER: [f64; 3] = [30.0, 3.0, 0.3];
/// How often all trees are tried then.
const LOWERED: usize = 2;
/// Of what a tree is to be low by, how much counts for each arc, so that of ways with the same price the quickest is taken.
const TIE: f64 = 1e-3;

/// What is asked of rerouted trees.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Trees that sum, and as many that copy.
    pub trees: u64,
    /// How much they are to be low rather than cheap: what counts as much as an arc of mean price is this part of the time to
    /// the furthest node.
    pub low: f64,
}

/// Which of both networks trees are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    /// As it is.
    Copies = 0,
    /// With every link turned round.
    Sums = 1,
}

/// A tree by its hops, each after the one that leads to its start.
#[derive(Clone, Debug, Default)]
struct Routed {
    root: u32,
    /// The node above, the node, and the arcs from one to the other.
    hops: Vec<(u32, u32, Vec<u32>)>,
}

/// Trees, and how full they make each arc.
#[derive(Clone, Debug)]
struct Found {
    trees: Vec<Routed>,
    loads: Vec<u32>,
    /// How long the fullest arc takes, for a byte of each tree [s].
    fullest: f64,
}

/// Returns the trees of all NPUs that sum and copy at once; `None` where not all NPUs take part, a switch has a limit
/// or can sum or multicast, or no partition is known.
///
/// # Errors
/// [`NoPacking::Interrupted`].
pub fn reroute(
    network: &ArcNetwork,
    ends: &[NpuId],
    wanted: Wanted,
    progress: &mut dyn Progress,
) -> Result<Option<Undirected>, NoPacking> {
    let mut watch = Paced::new(progress, "trees: rerouted", 1 << 16);
    let Some(partition) = worst_partition(network, ends, &mut watch)? else {
        return Ok(None);
    };
    let links = 2 * (partition.parts.len() as u128 - 1);
    let bandwidth = partition.bandwidth;
    let mut router = Router::new(network, ends.len(), wanted.low);
    let Some(roots) = router.roots() else {
        return Ok(None);
    };
    let root = |tree: u64| roots[fit::<usize, _>(tree) % roots.len()];
    let trees = (0..wanted.trees)
        .flat_map(|tree| [Sense::Copies, Sense::Sums].map(|sense| (sense, root(tree))));
    let least = (wanted.trees as f64) * links as f64 / bandwidth as f64;
    let Some(found) = router.found(&trees.collect::<Vec<_>>(), least, &mut watch)? else {
        return Ok(None);
    };
    let reached_ppm = reached(network, &found, u128::from(wanted.trees) * links, bandwidth);
    let of = |sense: Sense| {
        let trees = found.trees.iter().skip(sense as usize).step_by(2);
        tree_set(trees)
    };
    Ok(Some(Undirected {
        partition,
        reached_ppm,
        sums: of(Sense::Sums),
        copies: of(Sense::Copies),
    }))
}

/// Returns what the fullest link allows of a best time of `share` bytes over `bandwidth`: in millionths, rounded down.
fn reached(network: &ArcNetwork, found: &Found, share: u128, bandwidth: u128) -> u64 {
    let scale = share.saturating_mul(1_000_000);
    let loaded = network.arcs().iter().zip(&found.loads);
    let ppm = loaded.filter(|(_, load)| **load > 0).map(|(arc, &load)| {
        let most = scale.saturating_mul(arc.capacity.into());
        most / bandwidth.saturating_mul(load.into())
    });
    ppm.min().unwrap_or(0).min(1_000_000) as u64
}

fn tree_set<'a>(trees: impl Iterator<Item = &'a Routed>) -> TreeSet {
    let mut numbers: HashMap<&'a [u32], u32> = HashMap::new();
    let mut set = TreeSet::default();
    for tree in trees {
        let mut place: HashMap<u32, u32> = HashMap::from([(tree.root, TreeArc::ROOT)]);
        let mut arcs = Vec::with_capacity(tree.hops.len());
        for (i, (src, dst, way)) in (0..).zip(&tree.hops) {
            let way = *numbers.entry(way).or_insert_with(|| {
                set.ways.push(way.iter().copied().map(LinkId).collect());
                narrow(set.ways.len()) - 1
            });
            arcs.push(TreeArc {
                src: NpuId(*src),
                dst: NpuId(*dst),
                way,
                parent: place[src],
            });
            place.insert(*dst, i);
        }
        set.trees.push(Tree {
            root: NpuId(tree.root),
            arcs,
        });
    }
    set
}

struct Router {
    /// As it is, and turned round; arcs have the same positions.
    networks: Rc<[ArcNetwork; 2]>,
    nodes: usize,
    costs: Vec<f64>,
    capacity: Vec<f64>,
    loads: Vec<u32>,
    /// How long a full link takes [s].
    least: f64,
    low: f64,
    steep: f64,
    steps: u64,
    label: Vec<f64>,
    via: Vec<u32>,
    time: Vec<f64>,
    in_tree: Vec<bool>,
}

impl Router {
    fn new(network: &ArcNetwork, nodes: usize, low: f64) -> Self {
        let all = network.node_count();
        let arcs = network.arcs();
        Self {
            nodes,
            costs: costs(network).iter().map(|&cost| cost as f64).collect(),
            capacity: arcs.iter().map(|arc| arc.capacity as f64).collect(),
            loads: vec![0; arcs.len()],
            least: 1.0,
            low,
            steep: STEEP[0],
            steps: 0,
            label: vec![0.0; all],
            via: vec![NONE; all],
            time: vec![0.0; all],
            in_tree: vec![false; all],
            networks: Rc::new([network.clone(), network.reversed()]),
        }
    }

    /// Trees, each of a sense and from a root; `least` is how long the fullest link takes for all of them at best [s]. `None`
    /// where somebody cannot be reached.
    fn found(
        &mut self,
        wanted: &[(Sense, u32)],
        least: f64,
        watch: &mut Paced,
    ) -> Result<Option<Found>, Interrupted> {
        self.least = least;
        let mut trees = vec![Routed::default(); wanted.len()];
        let mut best: Option<Found> = None;
        let rounds = STEEP.len() * ROUNDS;
        for round in 0..rounds {
            self.steep = STEEP[round / ROUNDS];
            for (tree, &(sense, root)) in trees.iter_mut().zip(wanted) {
                let before = self.steps;
                self.unload(tree);
                let Some(grown) = self.grow(sense, root) else {
                    return Ok(None);
                };
                *tree = grown;
                watch.count(8 * (self.steps - before), round as u64, rounds as u64)?;
            }
            let fullest = self.fullest();
            if best.as_ref().is_none_or(|best| fullest <= best.fullest) {
                best = Some(Found {
                    trees: trees.clone(),
                    loads: self.loads.clone(),
                    fullest,
                });
            }
            if self.steps > MOST_STEPS {
                break;
            }
        }
        if let Some(found) = &mut best {
            self.make_shallow(found, wanted);
        }
        Ok(best)
    }

    /// Grows trees again, the highest first, so that they are less deep and no link is fuller than the fullest.
    fn make_shallow(&mut self, found: &mut Found, wanted: &[(Sense, u32)]) {
        self.loads.clone_from(&found.loads);
        let fullest = found.fullest;
        self.least = fullest;
        for _ in 0..LOWERED {
            let mut order: Vec<(f64, usize)> = Vec::with_capacity(wanted.len());
            for (i, tree) in found.trees.iter().enumerate() {
                order.push((self.height(tree), i));
            }
            order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            for (height, i) in order {
                let (sense, root) = wanted[i];
                self.unload(&found.trees[i]);
                let lowered = LOWER.iter().any(|&low| {
                    self.low = low;
                    let Some(tree) = self.grow(sense, root) else {
                        return false;
                    };
                    let is_better = self.fullest() <= fullest && self.height(&tree) < height;
                    if is_better {
                        found.trees[i] = tree;
                    } else {
                        self.unload(&tree);
                    }
                    is_better
                });
                if !lowered {
                    let arcs = found.trees[i].hops.iter().flat_map(|hop| &hop.2);
                    arcs.for_each(|&arc| self.loads[arc as usize] += 1);
                }
            }
        }
        found.loads.clone_from(&self.loads);
    }

    /// When the first piece is everywhere, alone.
    fn height(&mut self, tree: &Routed) -> f64 {
        self.time[tree.root as usize] = 0.0;
        let mut height = 0.0f64;
        for (src, dst, arcs) in &tree.hops {
            let way: f64 = arcs.iter().map(|&arc| self.costs[arc as usize]).sum();
            self.time[*dst as usize] = self.time[*src as usize] + way;
            height = height.max(self.time[*dst as usize]);
        }
        height
    }

    fn unload(&mut self, tree: &Routed) {
        for &arc in tree.hops.iter().flat_map(|hop| &hop.2) {
            self.loads[arc as usize] -= 1;
        }
    }

    fn fullest(&self) -> f64 {
        let loads = self.loads.iter().zip(&self.capacity);
        loads
            .map(|(&load, capacity)| f64::from(load) / capacity)
            .fold(0.0, f64::max)
    }

    /// Returns what one use more of an arc costs.
    fn price(&self, arc: u32) -> f64 {
        let capacity = self.capacity[arc as usize] * self.least;
        let load = f64::from(self.loads[arc as usize]);
        let power = |load: f64| (self.steep * (load / capacity - 1.0)).min(MOST_POWER).exp();
        power(load + 1.0) - power(load)
    }

    /// Returns the NPUs by how far the furthest other is, the nearest first; `None` where one cannot be reached. Scales
    /// costs, so that the first of them has all others within one.
    fn roots(&mut self) -> Option<Vec<u32>> {
        let mut far: Vec<(f64, u32)> = Vec::with_capacity(self.nodes);
        for root in 0..narrow(self.nodes) {
            let mut furthest = 0.0f64;
            for network in self.networks.iter() {
                let times = self.shortest(network, root);
                for time in &times[..self.nodes] {
                    furthest = furthest.max(*time);
                }
            }
            far.push((furthest, root));
        }
        far.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let least = far[0].0;
        if !least.is_finite() || least <= 0.0 {
            return None;
        }
        self.costs.iter_mut().for_each(|cost| *cost /= least);
        Some(far.into_iter().map(|(_, root)| root).collect())
    }

    fn shortest(&self, network: &ArcNetwork, root: u32) -> Vec<f64> {
        let mut times = vec![f64::INFINITY; network.node_count()];
        times[root as usize] = 0.0;
        let mut heap = BinaryHeap::from([Reverse((0u64, root))]);
        while let Some(Reverse((bits, node))) = heap.pop() {
            let time = f64::from_bits(bits);
            if time > times[node as usize] {
                continue;
            }
            for &arc in network.arcs_out(node) {
                let next = network.arcs()[arc as usize].dst;
                let later = time + self.costs[arc as usize];
                if later < times[next as usize] {
                    times[next as usize] = later;
                    heap.push(Reverse((later.to_bits(), next)));
                }
            }
        }
        times
    }

    /// Returns a tree from a root, whose arcs are loaded; `None` where somebody cannot be reached.
    fn grow(&mut self, sense: Sense, root: u32) -> Option<Routed> {
        let networks = Rc::clone(&self.networks);
        self.grow_on(&networks[sense as usize], root)
    }

    fn grow_on(&mut self, network: &ArcNetwork, root: u32) -> Option<Routed> {
        // What a tree costs at these prices, about: that of an arc counts by it.
        let mean = self.mean_price();
        let mut tree = Routed {
            root,
            hops: Vec::with_capacity(self.nodes - 1),
        };
        self.in_tree.fill(false);
        self.in_tree[root as usize] = true;
        self.time[root as usize] = 0.0;
        let mut heap: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        let mut members = vec![root];
        let mut is_stale = true;
        while members.len() < self.nodes {
            if is_stale {
                heap.clear();
                self.label.fill(f64::INFINITY);
                for &node in &members {
                    self.push(
                        network,
                        &mut heap,
                        node,
                        (self.low * self.time[node as usize], mean),
                    );
                }
                is_stale = false;
            }
            let Reverse((bits, node)) = heap.pop()?;
            self.steps += 1;
            let label = f64::from_bits(bits);
            if self.in_tree[node as usize] || label > self.label[node as usize] {
                continue;
            }
            if node as usize >= self.nodes {
                self.push(network, &mut heap, node, (label, mean));
                continue;
            }
            let mut arcs = Vec::new();
            let mut at = node;
            let mut time = 0.0;
            while !self.in_tree[at as usize] {
                let arc = self.via[at as usize];
                arcs.push(arc);
                time += self.costs[arc as usize];
                self.loads[arc as usize] += 1;
                at = network.arcs()[arc as usize].src;
            }
            arcs.reverse();
            is_stale = arcs.len() > 1;
            self.in_tree[node as usize] = true;
            self.time[node as usize] = self.time[at as usize] + time;
            members.push(node);
            tree.hops.push((at, node, arcs));
            if !is_stale {
                self.push(
                    network,
                    &mut heap,
                    node,
                    (self.low * self.time[node as usize], mean),
                );
            }
        }
        Some(tree)
    }

    /// Offers the arcs out of a node that is reached at a price.
    fn push(
        &mut self,
        network: &ArcNetwork,
        heap: &mut BinaryHeap<Reverse<(u64, u32)>>,
        node: u32,
        (label, mean): (f64, f64),
    ) {
        for &arc in network.arcs_out(node) {
            let next = network.arcs()[arc as usize].dst;
            if self.in_tree[next as usize] {
                continue;
            }
            let offer = label + self.price(arc) / mean + TIE * self.low * self.costs[arc as usize];
            if offer < self.label[next as usize] {
                self.label[next as usize] = offer;
                self.via[next as usize] = arc;
                heap.push(Reverse((offer.to_bits(), next)));
            }
        }
    }

    /// Returns what an arc of a tree costs, if those that there are stay.
    fn mean_price(&self) -> f64 {
        let all: f64 = (0..narrow(self.loads.len()))
            .map(|arc| f64::from(self.loads[arc as usize]) * self.price(arc))
            .sum();
        let uses: f64 = self.loads.iter().map(|&load| f64::from(load)).sum();
        if uses > 0.0 {
            (all / uses).max(f64::MIN_POSITIVE)
        } else {
            1.0
        }
    }
}
