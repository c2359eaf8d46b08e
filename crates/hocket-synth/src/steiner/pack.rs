//! The trees of all commodities: one after the other is taken out and grows again where links are least full.

use std::collections::HashSet;
use std::rc::Rc;

use super::grow::{Grower, Prices, Sense};
use super::{Commodity, NONE, Relays, Tree, twins};
use crate::bound::network::ArcNetwork;
use crate::id::narrow;
use crate::progress::{Interrupted, Paced, Progress};
use crate::topology::Topology;
use crate::units::{Seed, whole};

/// How steep prices are at first, in the second round, and at last.
const STEEP: [i32; 3] = [3, 4, 40];
/// The rounds, in per cent, after which trees are kept to choose shares of.
const FROM: i32 = 40;
/// Trees that are kept.
const MOST_KNOWN: usize = 900;

/// Trees of all commodities, each with its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Packing {
    pub trees: Vec<(Rc<Tree>, f64)>,
    /// How long the fullest arc sends [s].
    pub seconds: f64,
}

/// Trees that were in some packing, once each.
#[derive(Default)]
pub(crate) struct Known {
    pub trees: Vec<Rc<Tree>>,
    seen: HashSet<(u32, Vec<u32>)>,
}

impl Known {
    pub(crate) fn add(&mut self, tree: &Rc<Tree>, mut arcs: Vec<u32>) {
        arcs.sort_unstable();
        if self.trees.len() < MOST_KNOWN && self.seen.insert((tree.commodity, arcs)) {
            self.trees.push(Rc::clone(tree));
        }
    }
}

/// Packs trees for one collective.
pub(crate) struct Packer<'a> {
    pub commodities: &'a [Commodity],
    /// As it is, and turned round.
    networks: [ArcNetwork; 2],
    pub twins: Vec<u32>,
    pub relays: Relays,
    pub(super) capacity: Vec<f64>,
    /// By NPU, its node group if data stay out of groups that neither have nor want them.
    group: Vec<u32>,
    /// By commodity, whether its trees sum and copy over the same links, there and back.
    pub is_both: Vec<bool>,
}

impl<'a> Packer<'a> {
    pub(crate) fn new(
        topology: &Topology,
        network: &ArcNetwork,
        commodities: &'a [Commodity],
        relays: Relays,
    ) -> Self {
        let twins = twins(network);
        // Few links are left to look at then, which counts if there are many trees.
        let mut group = Vec::new();
        if commodities.len() > topology.npu_count() && !topology.groups().is_empty() {
            group = vec![0; topology.npu_count()];
            for (number, npus) in (0..).zip(topology.groups()) {
                for npu in npus {
                    group[npu.index()] = number;
                }
            }
        }
        let leads_back = !twins.contains(&NONE);
        let is_both =
            |each: &Commodity| leads_back && each.is_summed() && each.holders == each.wanted;
        Self {
            commodities,
            is_both: commodities.iter().map(is_both).collect(),
            networks: [network.clone(), network.reversed()],
            twins,
            relays,
            group,
            capacity: network
                .arcs()
                .iter()
                .map(|arc| arc.capacity as f64)
                .collect(),
        }
    }

    /// Returns the network as it is.
    pub(crate) fn network(&self) -> &ArcNetwork {
        &self.networks[0]
    }

    /// Returns a packing with so many trees of the largest commodity, and of others in proportion, each grown in so many
    /// rounds; `None` if somebody cannot be reached. `low` says how much trees are to be low rather than cheap.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub(crate) fn pack(
        &self,
        (most, rounds): (u64, i32),
        low: f64,
        known: &mut Known,
        progress: &mut dyn Progress,
    ) -> Result<Option<Packing>, Interrupted> {
        let mut watch = Paced::new(progress, "steiner: trees", 1 << 16);
        let owners = self.owners(most);
        let (capacity, twins) = (&self.capacity, &self.twins);
        let latency = latencies(self.network(), low);
        let mut grower = Grower::new(&self.networks, self.relays, latency, &self.group);
        let mut prices = Prices::new(capacity, twins);
        let mut seed = Seed(owners.len() as u64);
        let mut trees: Vec<Option<Rc<Tree>>> = vec![None; owners.len()];
        let mut order: Vec<usize> = (0..owners.len()).collect();
        let mut best: Option<Packing> = None;
        let total = u64::from(rounds.unsigned_abs()) * owners.len() as u64;
        let mut done = 0;
        for round in 0..rounds {
            prices.power = match round {
                0 => STEEP[0],
                _ => STEEP[1] + (STEEP[2] - STEEP[1]) * round / rounds,
            };
            for i in (1..order.len()).rev() {
                order.swap(i, seed.below(i + 1));
            }
            for &i in &order {
                done += 1;
                watch.count(std::mem::take(&mut grower.work), done, total)?;
                let (number, bytes) = owners[i];
                if let Some(old) = &trees[i] {
                    self.add(&mut prices, old, -bytes);
                }
                prices.bytes = bytes;
                if round == 0 {
                    let times = prices.loads.iter().zip(capacity);
                    let times = times.map(|(load, capacity)| (load + bytes) / capacity);
                    prices.fullest = times.fold(prices.fullest, f64::max);
                }
                prices.begin();
                let Some(new) = self.grown(number, &mut grower, &mut prices, &mut seed) else {
                    return Ok(None);
                };
                let kept = match trees[i].take() {
                    Some(old)
                        if self.cost(&old, &mut prices) * (1.0 + 1e-9)
                            < self.cost(&new, &mut prices) =>
                    {
                        old
                    }
                    _ => Rc::new(new),
                };
                self.add(&mut prices, &kept, bytes);
                trees[i] = Some(kept);
            }
            prices.fullest = self.seconds(&prices.loads);
            if 100 * round >= FROM * rounds {
                for tree in trees.iter().flatten() {
                    known.add(tree, self.arcs(tree).collect());
                }
            }
            let is_better = |best: &Packing| prices.fullest < best.seconds * (1.0 - 1e-9);
            if best.as_ref().is_none_or(is_better) {
                let shares = owners.iter().map(|owner| owner.1);
                best = Some(Packing {
                    trees: trees.iter().flatten().cloned().zip(shares).collect(),
                    seconds: prices.fullest,
                });
            }
        }
        Ok(best)
    }

    /// Returns how many links are looked at in a round, about.
    pub(crate) fn work(&self, most: u64) -> u64 {
        let links = self.capacity.len() as u64;
        let groups = self.group.iter().max();
        let groups = groups.map_or(1, |&last| u64::from(last) + 1);
        let is_fresh = self.relays != Relays::Sum
            || self.network().npus().count() < self.network().node_count();
        let of = |each: &Commodity| match is_fresh {
            true => links * each.ends() as u64,
            false => links,
        };
        let of = |each: &Commodity| of(each) * (each.ends() as u64).min(groups) / groups;
        let all: u64 = self.commodities.iter().map(of).sum();
        all.saturating_mul(most)
    }

    /// Returns the commodity and the bytes of each tree.
    fn owners(&self, most: u64) -> Vec<(u32, f64)> {
        let largest = self.commodities.iter().map(|each| each.bytes).max();
        let largest = largest.unwrap_or(1) as f64;
        let mut owners = Vec::new();
        for (number, each) in (0..).zip(self.commodities) {
            let wanted = (most as f64 * each.bytes as f64 / largest).round();
            let trees = whole(wanted).clamp(1, each.bytes.max(1));
            owners.extend((0..trees).map(|_| (number, each.bytes as f64 / trees as f64)));
        }
        owners
    }

    /// Returns all arcs that a tree uses, an arc as often as it is used.
    pub(crate) fn arcs<'b>(&'b self, tree: &'b Tree) -> impl Iterator<Item = u32> + 'b {
        let is_both = self.is_both[tree.commodity as usize];
        let copies = tree.copies.iter().flat_map(|hop| &hop.arcs).copied();
        let back = copies.clone().filter(move |_| is_both);
        let back = back.map(|arc| self.twins[arc as usize]);
        let sums = tree.sums.iter().flat_map(|hop| &hop.arcs).copied();
        copies.chain(back).chain(sums)
    }

    /// Adds the bytes of a tree to the arcs that it uses.
    pub(super) fn load(&self, loads: &mut [f64], tree: &Tree, bytes: f64) {
        for arc in self.arcs(tree) {
            loads[arc as usize] += bytes;
        }
    }

    fn add(&self, prices: &mut Prices<'_>, tree: &Tree, bytes: f64) {
        for arc in self.arcs(tree) {
            prices.add(arc, bytes);
        }
    }

    /// Returns how long the fullest arc sends [s].
    pub(super) fn seconds(&self, loads: &[f64]) -> f64 {
        let times = loads.iter().zip(&self.capacity);
        times
            .map(|(load, capacity)| load / capacity)
            .fold(0.0, f64::max)
    }
    /// Grows one tree of a commodity. Of one that others may sum, the cheaper of two: the root of the second is any NPU.
    fn grown(
        &self,
        number: u32,
        grower: &mut Grower<'_>,
        prices: &mut Prices<'_>,
        seed: &mut Seed,
    ) -> Option<Tree> {
        let each = &self.commodities[number as usize];
        // A holder, so that nobody before the root has the whole sum, which is then copied to everybody else.
        let any = each.holders[seed.below(each.holders.len())];
        let root = each.root().unwrap_or(any);
        let tree = self.grown_from(root, number, grower, prices)?;
        if !self.is_both[number as usize] || self.relays != Relays::Sum {
            return Some(tree);
        }
        let relay = narrow(seed.below(self.network().npus().count()));
        if each.has(relay) {
            return Some(tree);
        }
        let Some(other) = self.grown_from(relay, number, grower, prices) else {
            return Some(tree); // it lies where no links lead to the group
        };
        let other = without_tip(other, each);
        let is_cheaper = self.cost(&other, prices) < self.cost(&tree, prices);
        Some(if is_cheaper { other } else { tree })
    }

    /// Grows one tree of a commodity from a root.
    fn grown_from(
        &self,
        root: u32,
        number: u32,
        grower: &mut Grower<'_>,
        prices: &mut Prices<'_>,
    ) -> Option<Tree> {
        let each = &self.commodities[number as usize];
        let is_both = self.is_both[number as usize];
        let mut tree = Tree {
            commodity: number,
            root,
            sums: Vec::new(),
            copies: Vec::new(),
        };
        if each.is_summed() && !is_both {
            tree.sums = grower.grow(Sense::Sums, root, &each.holders, prices)?;
        }
        if is_both || each.is_copied(root) {
            let sense = if is_both { Sense::Both } else { Sense::Copies };
            tree.copies = grower.grow(sense, root, &each.wanted, prices)?;
        }
        Some(tree)
    }

    fn cost(&self, tree: &Tree, prices: &mut Prices<'_>) -> f64 {
        let sense = match self.is_both[tree.commodity as usize] {
            true => Sense::Both,
            false => Sense::Copies,
        };
        prices.cost(&tree.copies, sense) + prices.cost(&tree.sums, Sense::Sums)
    }
}

/// Returns a tree without the hops from a root that no end needs: it is a relay, and one hop leaves it.
fn without_tip(mut tree: Tree, commodity: &Commodity) -> Tree {
    while !commodity.has(tree.root) {
        let mut leaving = (0..tree.copies.len()).filter(|&at| tree.copies[at].near == tree.root);
        let (Some(only), None) = (leaving.next(), leaving.next()) else {
            break;
        };
        tree.root = tree.copies.remove(only).far;
    }
    tree
}

/// What latency costs beside prices: an arc of mean latency costs `low` times what a full arc of mean bandwidth does.
fn latencies(network: &ArcNetwork, low: f64) -> Vec<f64> {
    let arcs = network.arcs();
    let count = arcs.len().max(1) as f64;
    let mean = arcs.iter().map(|arc| arc.latency as f64).sum::<f64>() / count;
    let price = arcs
        .iter()
        .map(|arc| 1.0 / arc.capacity as f64)
        .sum::<f64>()
        / count;
    let scale = low * price / mean.max(1.0);
    arcs.iter().map(|arc| arc.latency as f64 * scale).collect()
}
