//! Spanning trees of large networks in which every NPU takes part, by the prices of links.
//!
//! A tree grows by the cheapest way from an NPU that is in it to one that is not, over a link or through switches. Prices rise
//! with the bytes of all trees, and with each use by the tree itself. As nothing becomes cheaper while a tree grows, labels
//! are kept as lower bounds, and computed anew only where they seem to be the least: a switch is not looked at each time that the
//! tree reaches an NPU below it. Ways through several switches are layered by the number of switches passed, so that labels have no circles.
//!
//! # Complexity
//! O(NPUs log links) for a tree, and what the switches between other switches add.
//!
//! # Source
//! Prices: Garg, Koenemann, 1998; Plotkin, Shmoys, Tardos, 1995. Trees between the cheapest and the shortest: Alpert et al.,
//! Prim-Dijkstra tradeoffs for improved performance-driven routing tree design, 1995.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::NONE;
use super::layers::Layers;
use crate::bound::network::ArcNetwork;
use crate::id::narrow;
use crate::progress::{Interrupted, Paced, Progress};

/// A hop of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WideHop {
    pub near: u32,
    pub far: u32,
    /// Where its arcs begin in [`WideTree::arcs`]; they end where those of the next hop begin.
    pub first: u32,
}

/// A spanning tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct WideTree {
    /// Each after the one that leads to its start.
    pub hops: Vec<WideHop>,
    pub arcs: Vec<u32>,
}

impl WideTree {
    /// Returns the arcs of a hop, from the root on.
    pub(crate) fn way(&self, hop: usize) -> &[u32] {
        let end = self.hops.get(hop + 1).map(|next| next.first as usize);
        &self.arcs[self.hops[hop].first as usize..end.unwrap_or(self.arcs.len())]
    }
}

/// How full the trees make links, and what one use more costs.
pub(crate) struct Load<'a> {
    /// Uses that a link has at the rate that is wanted.
    room: Vec<f64>,
    pub uses: Vec<f64>,
    price: Vec<f64>,
    /// For each arc the one that leads back, where trees use both.
    twins: Option<&'a [u32]>,
    steep: f64,
    scale: f64,
}

/// Powers of e at most.
const MOST_POWER: f64 = 500.0;

impl<'a> Load<'a> {
    /// `least` is how long a full link takes for a byte of each tree [s].
    pub(crate) fn new(network: &ArcNetwork, least: f64, twins: Option<&'a [u32]>) -> Self {
        let arcs = network.arcs();
        let room: Vec<f64> = arcs.iter().map(|arc| arc.capacity as f64 * least).collect();
        Self {
            uses: vec![0.0; room.len()],
            price: vec![0.0; room.len()],
            room,
            twins,
            steep: 1.0,
            scale: 1.0,
        }
    }

    /// Returns the same uses with room for another time of a full link [s].
    fn wanting(self, network: &ArcNetwork, least: f64) -> Self {
        let uses = self.uses;
        Self {
            uses,
            ..Self::new(network, least, self.twins)
        }
    }

    /// Makes prices so steep; the mean price of what trees use is 1, if there are any.
    pub(crate) fn set_steep(&mut self, steep: f64) {
        self.steep = steep;
        self.scale = 1.0;
        self.price_all();
        let (mut cost, mut uses) = (0.0, 0.0);
        for (&used, price) in self.uses.iter().zip(&self.price) {
            cost += used * price;
            uses += used;
        }
        self.scale = match uses > 0.0 {
            true => uses / cost,
            false => 1.0 / self.price.iter().copied().fold(f64::INFINITY, f64::min),
        };
        self.price_all();
    }

    fn price_all(&mut self) {
        for arc in 0..self.uses.len() {
            self.price_one(arc);
        }
    }

    fn price_one(&mut self, arc: usize) {
        let full = (self.uses[arc] + 0.5) / self.room[arc] - 1.0;
        let power = (self.steep * full).min(MOST_POWER);
        self.price[arc] = power.exp() * self.scale / self.room[arc];
    }

    /// Returns what one use of an arc costs.
    fn cost(&self, arc: u32) -> f64 {
        let own = self.price[arc as usize];
        match self.twins {
            Some(twins) => own + self.price[twins[arc as usize] as usize],
            None => own,
        }
    }

    /// Adds uses of an arc, and of that which leads back.
    fn add(&mut self, arc: u32, uses: f64) {
        let back = self.twins.map(|twins| twins[arc as usize]);
        for arc in std::iter::once(arc).chain(back) {
            self.uses[arc as usize] += uses;
            self.price_one(arc as usize);
        }
    }

    /// Takes a tree out.
    pub(crate) fn unload(&mut self, tree: &WideTree) {
        for &arc in &tree.arcs {
            self.add(arc, -1.0);
        }
    }

    /// Returns how full the fullest link is: 1 at the rate that is wanted.
    pub(crate) fn fullest(&self) -> f64 {
        let full = self.uses.iter().zip(&self.room);
        full.map(|(uses, room)| uses / room).fold(0.0, f64::max)
    }
}

/// By how much of a hop each further child of the same link comes later.
const SIBLING: f64 = 0.2;

/// A label by its bits, which have the order of numbers of at least 0.
fn bits(label: f64) -> u64 {
    label.to_bits()
}

/// How much more a label may be than when it was offered, to be taken for the same.
const SAME: f64 = 1.0 + 1e-9;

/// Grows trees; keeps its buffers.
pub(crate) struct WideGrower<'a> {
    network: &'a ArcNetwork,
    layers: &'a Layers,
    npus: usize,
    /// What a hop costs beside its price; a child of the same link costs that part of it more than the one before.
    low: f64,
    sibling: f64,
    in_tree: Vec<bool>,
    time: Vec<f64>,
    children: Vec<f64>,
    /// By layered node, a lower bound on the cheapest way to it; when it was exact; and the last arc and node of that way.
    label: Vec<f64>,
    exact_at: Vec<u32>,
    via: Vec<(u32, u32)>,
    step: u32,
    /// By layered node of the first layer, the arcs from NPUs of the tree.
    offers: Vec<BinaryHeap<Reverse<(u64, u32)>>>,
    /// By switch, arcs to NPUs that may not be in the tree, the cheapest last.
    below: Vec<Vec<(u64, u32)>>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    stack: Vec<u32>,
    /// Labels that were looked at.
    pub work: u64,
}

impl<'a> WideGrower<'a> {
    pub(crate) fn new(network: &'a ArcNetwork, layers: &'a Layers, npus: usize) -> Self {
        let (nodes, layered) = (network.node_count(), layers.len());
        Self {
            network,
            layers,
            npus,
            low: 0.0,
            sibling: 0.0,
            in_tree: vec![false; npus],
            time: vec![0.0; npus],
            children: vec![0.0; network.arcs().len()],
            label: vec![f64::INFINITY; layered],
            exact_at: vec![0; layered],
            via: vec![(NONE, NONE); layered],
            step: 0,
            offers: vec![BinaryHeap::new(); layered],
            below: vec![Vec::new(); nodes],
            heap: BinaryHeap::new(),
            stack: Vec::new(),
            work: 0,
        }
    }

    pub(crate) fn set_low(&mut self, low: f64, sibling: f64) {
        (self.low, self.sibling) = (low, sibling);
    }

    /// Returns a tree from a root, whose arcs are loaded; `None` where somebody cannot be reached.
    pub(crate) fn grow(&mut self, root: u32, load: &mut Load<'_>) -> Option<WideTree> {
        self.begin(load);
        let mut tree = WideTree {
            hops: Vec::with_capacity(self.npus - 1),
            arcs: Vec::with_capacity(2 * (self.npus - 1)),
        };
        self.time[root as usize] = 0.0;
        self.join(root, load);
        while tree.hops.len() + 1 < self.npus {
            if !self.next(&mut tree, load) {
                return None;
            }
        }
        Some(tree)
    }

    /// Takes what seems to be the cheapest way, if it is; whether there is any.
    fn next(&mut self, tree: &mut WideTree, load: &mut Load<'_>) -> bool {
        let Some(Reverse((offered, what))) = self.heap.pop() else {
            return false;
        };
        self.work += 1;
        let offered = f64::from_bits(offered) * SAME;
        match self.layers.is_node(what) {
            Some(node) => self.through(node, offered, tree, load),
            None => self.direct(what, offered, tree, load),
        }
        true
    }

    fn begin(&mut self, load: &Load<'_>) {
        self.in_tree.fill(false);
        self.children.fill(0.0);
        self.label.fill(f64::INFINITY);
        self.exact_at.fill(0);
        self.step = 1;
        self.offers.iter_mut().for_each(BinaryHeap::clear);
        self.heap.clear();
        for &switch in &self.layers.exits {
            let below = &mut self.below[switch as usize];
            below.clear();
            for &arc in self.network.arcs_out(switch) {
                if (self.network.arcs()[arc as usize].dst as usize) < self.npus {
                    below.push((bits(load.cost(arc)), arc));
                }
            }
            below.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// Offers the arcs out of an NPU that has come in.
    fn join(&mut self, npu: u32, load: &Load<'_>) {
        self.in_tree[npu as usize] = true;
        let network = self.network;
        for &arc in network.arcs_out(npu) {
            let next = network.arcs()[arc as usize].dst;
            let offer = self.first(arc, load);
            if (next as usize) < self.npus {
                if !self.in_tree[next as usize] {
                    self.heap.push(Reverse((bits(offer), arc)));
                }
                continue;
            }
            let node = self.layers.entry[next as usize];
            if node != NONE {
                self.offers[node as usize].push(Reverse((bits(offer), arc)));
                self.lower(node, offer, load);
            }
        }
    }

    /// Returns the label that the end of an arc out of an NPU of the tree has by it.
    fn first(&self, arc: u32, load: &Load<'_>) -> f64 {
        let near = self.network.arcs()[arc as usize].src as usize;
        let time = self.time[near] + self.sibling * self.children[arc as usize];
        self.low * (time + 1.0) + load.cost(arc)
    }

    /// A layered node may be reached at so low a price, and with it what lies behind.
    fn lower(&mut self, node: u32, label: f64, load: &Load<'_>) {
        if label >= self.label[node as usize] {
            return;
        }
        self.label[node as usize] = label;
        self.exact_at[node as usize] = 0;
        self.stack.push(node);
        let layers = self.layers;
        while let Some(node) = self.stack.pop() {
            self.offer(node);
            let label = self.label[node as usize];
            for &(next, arc) in layers.after(node) {
                self.work += 1;
                let offer = label + load.cost(arc);
                if offer < self.label[next as usize] {
                    self.label[next as usize] = offer;
                    self.exact_at[next as usize] = 0;
                    self.stack.push(next);
                }
            }
        }
    }

    /// Offers the cheapest NPU below a layered node.
    fn offer(&mut self, node: u32) {
        if let Some((price, _)) = self.receiver(node) {
            let offer = self.label[node as usize] + price;
            let what = self.layers.code(node);
            self.heap.push(Reverse((bits(offer), what)));
        }
    }

    /// Returns the cheapest arc from a layered node to an NPU that is not in the tree, and its price.
    fn receiver(&mut self, node: u32) -> Option<(f64, u32)> {
        let below = &mut self.below[self.layers.switch(node) as usize];
        while let Some(&(price, arc)) = below.last() {
            let far = self.network.arcs()[arc as usize].dst;
            if !self.in_tree[far as usize] {
                return Some((f64::from_bits(price), arc));
            }
            below.pop();
        }
        None
    }

    /// Returns the label of a layered node.
    fn exact(&mut self, node: u32, load: &Load<'_>) -> f64 {
        let at = node as usize;
        if self.exact_at[at] == self.step {
            return self.label[at];
        }
        let layers = self.layers;
        let before = layers.before(node);
        if before.is_empty() {
            while let Some(Reverse((offered, arc))) = self.offers[at].pop() {
                self.work += 1;
                let now = self.first(arc, load);
                let is_same = now <= f64::from_bits(offered) * SAME;
                self.offers[at].push(Reverse((bits(now), arc)));
                if is_same {
                    self.via[at] = (arc, NONE);
                    break;
                }
            }
            let least = self.offers[at].peek();
            self.label[at] = least.map_or(f64::INFINITY, |least| f64::from_bits(least.0.0));
        } else {
            loop {
                let (mut least, mut way) = (f64::INFINITY, (NONE, NONE));
                for &(from, arc) in before {
                    let label = self.label[from as usize] + load.cost(arc);
                    if label < least {
                        (least, way) = (label, (arc, from));
                    }
                }
                self.work += before.len() as u64;
                self.label[at] = least;
                self.via[at] = way;
                if way.1 == NONE || self.exact_at[way.1 as usize] == self.step {
                    break;
                }
                self.exact(way.1, load);
            }
        }
        self.exact_at[at] = self.step;
        self.label[at]
    }

    fn direct(&mut self, arc: u32, offered: f64, tree: &mut WideTree, load: &mut Load<'_>) {
        let far = self.network.arcs()[arc as usize].dst;
        if self.in_tree[far as usize] {
            return;
        }
        let now = self.first(arc, load);
        if now > offered {
            self.heap.push(Reverse((bits(now), arc)));
            return;
        }
        let first = narrow(tree.arcs.len());
        tree.arcs.push(arc);
        self.take(first, tree, load);
    }

    fn through(&mut self, node: u32, offered: f64, tree: &mut WideTree, load: &mut Load<'_>) {
        let Some((price, last)) = self.receiver(node) else {
            return;
        };
        let now = self.exact(node, load) + price;
        if now > offered {
            if now.is_finite() {
                let what = self.layers.code(node);
                self.heap.push(Reverse((bits(now), what)));
            }
            return;
        }
        let first = narrow(tree.arcs.len());
        tree.arcs.push(last);
        let mut at = node;
        while at != NONE {
            let (arc, from) = self.via[at as usize];
            tree.arcs.push(arc);
            at = from;
        }
        tree.arcs[first as usize..].reverse();
        self.take(first, tree, load);
        self.offer(node);
    }

    /// Takes the way that was pushed last.
    fn take(&mut self, first: u32, tree: &mut WideTree, load: &mut Load<'_>) {
        self.step += 1;
        let way = &tree.arcs[first as usize..];
        let arcs = self.network.arcs();
        let near = arcs[way[0] as usize].src;
        let far = arcs[way[way.len() - 1] as usize].dst;
        for &arc in way {
            load.add(arc, 1.0);
        }
        let children = &mut self.children[way[0] as usize];
        self.time[far as usize] = self.time[near as usize] + 1.0 + self.sibling * *children;
        *children += 1.0;
        tree.hops.push(WideHop { near, far, first });
        self.join(far, load);
    }
}

/// How steep prices are, one after another.
const STEEP: [f64; 10] = [4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0];
/// How far over the wanted rate a link may be for trees to be good enough.
const ENOUGH: f64 = 1.0 + 1e-6;
/// How much more than the wanted rate the fullest link may need before less is wanted.
const TOO_FULL: f64 = 1.3;

/// What is asked of trees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WideWish {
    /// How long a full link takes for a byte of each tree [s], at best.
    pub least: f64,
    /// How much a tree is to be low rather than cheap: what a hop costs beside arcs of mean price.
    pub low: f64,
    /// Rounds over all trees.
    pub rounds: usize,
    /// Labels that are looked at, after which no further round begins.
    pub most_work: u64,
}

/// Trees, and how long the fullest link takes for a byte of each [s].
pub(crate) struct WidePacking {
    pub trees: Vec<WideTree>,
    pub seconds: f64,
}

/// Grows a tree from each root, again and again where links are least full; `None` where somebody cannot be reached.
///
/// # Errors
/// [`Interrupted`].
pub(crate) fn pack(
    network: &ArcNetwork,
    layers: &Layers,
    roots: &[u32],
    twins: Option<&[u32]>,
    wish: WideWish,
    progress: &mut dyn Progress,
) -> Result<Option<WidePacking>, Interrupted> {
    if !wish.least.is_finite() {
        return Ok(None); // nothing leads to some NPU
    }
    let mut watch = Paced::new(progress, "trees by prices", 1 << 16);
    let npus = network.npus().count();
    let mut grower = WideGrower::new(network, layers, npus);
    grower.set_low(wish.low, SIBLING);
    let mut least = wish.least;
    let mut load = Load::new(network, least, twins);
    let mut trees = vec![WideTree::default(); roots.len()];
    let mut best: Option<WidePacking> = None;
    let total = (wish.rounds * roots.len()) as u64;
    for round in 0..wish.rounds {
        load.set_steep(STEEP[round * STEEP.len() / wish.rounds]);
        for (number, &root) in roots.iter().enumerate() {
            let before = grower.work;
            load.unload(&trees[number]);
            let Some(tree) = grower.grow(root, &mut load) else {
                return Ok(None);
            };
            trees[number] = tree;
            let done = round * roots.len() + number;
            watch.count(grower.work - before, done as u64, total)?;
        }
        let fullest = load.fullest();
        let seconds = fullest * least;
        if best.as_ref().is_none_or(|best| seconds < best.seconds) {
            best = Some(WidePacking {
                trees: trees.clone(),
                seconds,
            });
        }
        if fullest <= ENOUGH || grower.work > wish.most_work {
            break;
        }
        if fullest > TOO_FULL {
            least *= fullest / TOO_FULL;
            load = load.wanting(network, least);
        }
    }
    Ok(best)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bound::Fidelity;
    use crate::id::DeviceId;
    use crate::topology::{Topology, TopologyBuilder, build};
    use crate::units::{Bandwidth, Seed, Time};

    fn gb_per_s(giga: u64) -> Bandwidth {
        Bandwidth::from_bytes_per_second(giga * 1_000_000_000).expect("positive")
    }

    /// A network of NPUs and switches in which everybody reaches everybody: a ring of devices, and links at random.
    pub(in crate::steiner) fn random(seed: &mut Seed) -> Topology {
        let mut builder = TopologyBuilder::new("random");
        let npus = 2 + seed.below(9);
        let switches = seed.below(6);
        let mut devices: Vec<DeviceId> = (0..npus).map(|i| builder.npu(format!("n{i}"))).collect();
        devices.extend((0..switches).map(|i| builder.switch(format!("s{i}"), None)));
        let mut order = devices.clone();
        for i in (1..order.len()).rev() {
            order.swap(i, seed.below(i + 1));
        }
        let mut link = |a: DeviceId, b: DeviceId, seed: &mut Seed| {
            let bandwidth = gb_per_s(10 * (1 + seed.below(4) as u64));
            builder.link(a, b, bandwidth, Time::from_ns(500));
        };
        for i in 0..order.len() {
            link(order[i], order[(i + 1) % order.len()], seed);
            link(order[(i + 1) % order.len()], order[i], seed);
        }
        for _ in 0..seed.below(12) {
            let (a, b) = (seed.below(devices.len()), seed.below(devices.len()));
            if a != b {
                link(devices[a], devices[b], seed);
            }
        }
        builder.finish().expect("a network")
    }

    /// The cheapest of all ways from the tree to an NPU outside, by trying them all.
    fn cheapest(grower: &WideGrower<'_>, load: &Load<'_>) -> f64 {
        let network = grower.network;
        let mut least = f64::INFINITY;
        let mut ways: Vec<(u32, f64, usize)> = Vec::new();
        for npu in (0..narrow(grower.npus)).filter(|&npu| grower.in_tree[npu as usize]) {
            for &arc in network.arcs_out(npu) {
                ways.push((network.arcs()[arc as usize].dst, grower.first(arc, load), 0));
            }
        }
        while let Some((at, cost, passed)) = ways.pop() {
            if (at as usize) < grower.npus {
                if !grower.in_tree[at as usize] {
                    least = least.min(cost);
                }
                continue;
            }
            if passed == grower.layers.depth() {
                continue;
            }
            for &arc in network.arcs_out(at) {
                let next = network.arcs()[arc as usize].dst;
                ways.push((next, cost + load.cost(arc), passed + 1));
            }
        }
        least
    }

    #[test]
    fn each_hop_is_the_cheapest_of_all_ways() {
        let mut seed = Seed(7);
        let mut through_switches = 0;
        for _ in 0..300 {
            let topology = random(&mut seed);
            let network = ArcNetwork::new(&topology, Fidelity::Link);
            let npus = topology.npu_count();
            let layers = Layers::new(&network, npus);
            let mut load = Load::new(&network, 1e-9, None);
            let mut grower = WideGrower::new(&network, &layers, npus);
            for (low, steep) in [(0.0, 2.0), (0.1, 8.0), (1.0, 8.0), (0.3, 20.0)] {
                load.set_steep(steep);
                grower.set_low(low, SIBLING);
                let root = narrow(seed.below(npus));
                grower.begin(&load);
                let mut grown = WideTree::default();
                grower.time[root as usize] = 0.0;
                grower.join(root, &load);
                while grown.hops.len() + 1 < npus {
                    let least = cheapest(&grower, &load);
                    let taken = grown.hops.len();
                    let before: Vec<f64> = load.price.clone();
                    let first = |grower: &WideGrower<'_>, arc| grower.first(arc, &load);
                    let firsts: Vec<f64> = (0..narrow(before.len()))
                        .map(
                            |arc| match network.is_npu(network.arcs()[arc as usize].src) {
                                true => first(&grower, arc),
                                false => 0.0,
                            },
                        )
                        .collect();
                    while grown.hops.len() == taken {
                        assert!(grower.next(&mut grown, &mut load), "all are reached");
                    }
                    let way = grown.way(taken);
                    let rest: f64 = way[1..].iter().map(|&arc| before[arc as usize]).sum();
                    let cost = firsts[way[0] as usize] + rest;
                    assert!((cost - least).abs() <= 1e-6 * least, "{cost} and {least}");
                    through_switches += usize::from(way.len() > 2);
                }
            }
        }
        assert!(through_switches > 100, "{through_switches}");
    }

    #[test]
    fn uses_are_those_of_the_trees() {
        let (bandwidth, latency) = (gb_per_s(50), Time::from_ns(500));
        let fat_tree = build::FatTree {
            k: 4,
            bandwidth,
            latency,
        };
        let fat_tree = fat_tree.build().expect("a fat tree");
        let network = ArcNetwork::new(&fat_tree, Fidelity::Link);
        let layers = Layers::new(&network, 16);
        // Edge, aggregation, core, aggregation, edge.
        assert_eq!(layers.len(), 8 + 8 + (4 + 8) + 8 + 8);
        let mut load = Load::new(&network, 1e-9, None);
        let mut grower = WideGrower::new(&network, &layers, 16);
        grower.set_low(0.1, SIBLING);
        let mut uses = vec![0.0; network.arcs().len()];
        for root in 0..16 {
            load.set_steep(8.0);
            let tree = grower.grow(root, &mut load).expect("all are reached");
            let mut reached = [false; 16];
            reached[root as usize] = true;
            for (number, hop) in tree.hops.iter().enumerate() {
                let way = tree.way(number);
                let arcs: Vec<_> = way
                    .iter()
                    .map(|&arc| network.arcs()[arc as usize])
                    .collect();
                assert_eq!((arcs[0].src, arcs[arcs.len() - 1].dst), (hop.near, hop.far));
                assert!(arcs.windows(2).all(|pair| pair[0].dst == pair[1].src));
                assert!(reached[hop.near as usize] && !reached[hop.far as usize]);
                reached[hop.far as usize] = true;
                way.iter().for_each(|&arc| uses[arc as usize] += 1.0);
            }
            assert!(reached.iter().all(|&reached| reached));
        }
        assert_eq!(load.uses, uses);
    }
}
