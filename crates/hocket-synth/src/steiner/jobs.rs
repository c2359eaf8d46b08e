//! Trees as jobs: who sends a piece to whom, over which links, after what.

use std::collections::HashMap;

use super::{Bundle, Hop, Packer, Packing, Relays, Tree, WideTree};
use crate::bound::network::ArcNetwork;
use crate::collective::Collective;
use crate::graph::Lists;
use crate::id::{ChunkId, LinkId, NpuId, TransferId, narrow};
use crate::plan::{Chunks, LinkOrder, Op, Plan, PlanBuilder, Transfer, Wait};
use crate::topology::Topology;

/// What is done with each piece of each tree.
#[derive(Default)]
pub(crate) struct Jobs {
    /// Each after those that it waits for.
    pub list: Vec<Job>,
    /// By job, those that it waits for.
    pub before: Lists<u32>,
    /// The links of each way.
    pub ways: Vec<Vec<LinkId>>,
    /// By tree, its commodity's demand and its bytes; of one that carries the shards of a [`Bundle`], the first demand and the
    /// bytes of one.
    pub trees: Vec<(u32, f64)>,
    /// Whether some way has several links.
    pub has_long_ways: bool,
}

/// A send of a piece of a tree.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub tree: u32,
    /// How many chunks of the tree it leaves out, and how many that follow those it takes at once: more than one only where
    /// each has a single piece.
    pub part: (u32, u32),
    src: u32,
    dst: u32,
    pub op: Op,
    /// Position in [`Jobs::ways`].
    pub way: u32,
}

/// Jobs while they are made.
struct Maker<'a> {
    packer: &'a Packer<'a>,
    numbers: Numbers,
    jobs: Jobs,
}

/// Numbers for ways.
struct Numbers {
    /// Arcs that are the inside of switches: these come first.
    internal: u32,
    known: HashMap<Vec<u32>, u32>,
}

impl Numbers {
    fn new(network: &ArcNetwork) -> Self {
        let arcs = network.arcs();
        Self {
            internal: narrow(arcs.iter().filter(|arc| arc.internal).count()),
            known: HashMap::new(),
        }
    }

    /// Returns the number of a way, which is among the ways from then on.
    fn of(&mut self, way: &[u32], ways: &mut Vec<Vec<LinkId>>) -> u32 {
        if let Some(&number) = self.known.get(way) {
            return number;
        }
        let number = narrow(ways.len());
        let links = way.iter().filter(|&&arc| arc >= self.internal);
        ways.push(links.map(|&arc| LinkId(arc - self.internal)).collect());
        self.known.insert(way.to_vec(), number);
        number
    }
}

impl Jobs {
    /// Returns the jobs of a packing.
    pub(crate) fn new(packer: &Packer<'_>, packing: &Packing) -> Self {
        let mut maker = Maker {
            packer,
            numbers: Numbers::new(packer.network()),
            jobs: Jobs::default(),
        };
        for (tree, bytes) in &packing.trees {
            let demand = packer.commodities[tree.commodity as usize].demand;
            let number = narrow(maker.jobs.trees.len());
            maker.jobs.trees.push((demand, *bytes));
            maker.add(number, tree);
        }
        let mut jobs = maker.jobs;
        jobs.has_long_ways = jobs.ways.iter().any(|way| way.len() > 1);
        jobs
    }

    /// Returns the links that a piece of each tree crosses, all together.
    pub(crate) fn crossed(&self) -> u64 {
        let links = self
            .list
            .iter()
            .map(|job| self.ways[job.way as usize].len());
        links.sum::<usize>() as u64
    }

    /// Returns the number of links that send for nearly as long as any.
    pub(crate) fn full(&self, topology: &Topology) -> usize {
        let mut busy = vec![0.0; topology.links().len()];
        for job in &self.list {
            for &link in &self.ways[job.way as usize] {
                let rate = topology.link(link).bandwidth.bytes_per_second() as f64;
                busy[link.index()] += f64::from(job.part.1) / rate;
            }
        }
        let most = busy.iter().copied().fold(0.0, f64::max);
        busy.iter().filter(|&&busy| busy > 0.9 * most).count()
    }

    /// Returns the same sends backwards: the last first, along ways turned round.
    pub(crate) fn turned(&self) -> Self {
        let count = self.list.len();
        let last = narrow(count.saturating_sub(1));
        let pairs = (0..count).flat_map(|number| {
            let before = self.before.get(number).iter();
            before.map(move |&other| ((last - other) as usize, last - narrow(number)))
        });
        let back = |way: &Vec<LinkId>| way.iter().rev().copied().collect();
        Self {
            list: self.list.iter().rev().copied().collect(),
            before: Lists::grouped(count, pairs),
            ways: self.ways.iter().map(back).collect(),
            trees: self.trees.clone(),
            has_long_ways: self.has_long_ways,
        }
    }

    /// Returns the chunks if every tree carries so many pieces, and the first chunk of each tree; `None` if a piece
    /// would have no byte. Bytes of trees are rounded within each demand.
    pub(crate) fn chunks(
        &self,
        collective: &Collective,
        pieces: u32,
    ) -> Option<(Chunks, Vec<u32>)> {
        let demands = collective.demands();
        let mut of: Vec<Vec<usize>> = vec![Vec::new(); demands.len()];
        for (number, (demand, _)) in self.trees.iter().enumerate() {
            of[*demand as usize].push(number);
        }
        let count = self.trees.len() * pieces as usize + demands.len();
        let mut chunks = Chunks::with_capacity(count);
        let mut first = vec![0; self.trees.len()];
        for ((d, demand), trees) in (0..).zip(&demands).zip(&of) {
            if trees.is_empty() {
                chunks.push(d, demand.bytes);
                continue;
            }
            let total: f64 = trees.iter().map(|&tree| self.trees[tree].1).sum();
            let (mut so_far, mut last) = (0.0, 0);
            for (i, &tree) in trees.iter().enumerate() {
                first[tree] = narrow(chunks.len());
                let bytes = self.trees[tree].1;
                for piece in 1..=pieces {
                    let share = (so_far + bytes * f64::from(piece) / f64::from(pieces)) / total;
                    let is_last = piece == pieces && i + 1 == trees.len();
                    let end = match is_last {
                        true => demand.bytes,
                        false => crate::units::whole((share * demand.bytes as f64).round()),
                    };
                    if end <= last || end > demand.bytes {
                        return None;
                    }
                    chunks.push(d, end - last);
                    last = end;
                }
                so_far += bytes;
            }
        }
        Some((chunks, first))
    }

    /// Returns the plan whose links serve in some order of `turns`, by job and piece.
    pub(crate) fn plan(
        &self,
        name: &str,
        collective: &Collective,
        (chunks, first): (Chunks, Vec<u32>),
        pieces: u32,
        (turns, order): (&[u64], LinkOrder),
    ) -> Plan {
        let mut rows: Vec<u32> = (0..narrow(turns.len())).collect();
        rows.sort_by_key(|&row| (turns[row as usize], row));
        let mut plan = PlanBuilder::new(name, collective, chunks);
        plan.link_order(order);
        plan.reserve(rows.len());
        let paths: Vec<u32> = self.ways.iter().map(|links| plan.path(links)).collect();
        let mut made = vec![TransferId(0); rows.len()];
        for row in rows {
            let (number, piece) = (row / pieces, row % pieces);
            let job = &self.list[number as usize];
            let before = self.before.get(number as usize).iter();
            let waits = before.map(|&other| Wait::on(made[(other * pieces + piece) as usize]));
            let waits: Vec<Wait> = waits.collect();
            let wait = plan.all_of(&waits);
            made[row as usize] = plan.push(Transfer {
                chunk: ChunkId(first[job.tree as usize] + job.part.0 + piece),
                count: job.part.1,
                src: NpuId(job.src),
                dst: NpuId(job.dst),
                op: job.op,
                wait,
                path: Some(paths[job.way as usize]),
            });
        }
        plan.finish()
    }
}

/// What is done along spanning trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Along {
    /// Copies from the root.
    Copies,
    /// Sums, over arcs of the network turned round.
    Sums,
    /// First sums over the arcs that lead back, then copies.
    Both,
}

impl Jobs {
    /// Returns the jobs of spanning trees, each with its demand and its bytes; or with those of a shard of its bundle, where
    /// there are bundles.
    pub(crate) fn spanning(
        network: &ArcNetwork,
        twins: &[u32],
        trees: &[WideTree],
        of: impl Fn(usize) -> (u32, f64),
        along: Along,
        bundles: &[Bundle],
    ) -> Self {
        let alone = Bundle::default();
        let mut spanning = Spanning {
            numbers: Numbers::new(network),
            twins,
            along,
            arrived: vec![Vec::new(); network.npus().count()],
            jobs: Self::default(),
        };
        for (number, tree) in trees.iter().enumerate() {
            spanning.jobs.trees.push(of(number));
            spanning.arrived.iter_mut().for_each(Vec::clear);
            let bundle = bundles.get(number).unwrap_or(&alone);
            if along == Along::Copies {
                spanning.gather(narrow(number), bundle);
            }
            if along != Along::Copies {
                spanning.sum(narrow(number), tree, bundle);
            }
            if along != Along::Sums {
                spanning.copy(narrow(number), tree, bundle);
            }
            if along == Along::Sums {
                spanning.scatter(narrow(number), bundle);
            }
        }
        let mut jobs = spanning.jobs;
        jobs.has_long_ways = jobs.ways.iter().any(|way| way.len() > 1);
        jobs
    }
}

/// Jobs of spanning trees while they are made.
struct Spanning<'a> {
    numbers: Numbers,
    twins: &'a [u32],
    along: Along,
    /// By NPU, the jobs of the tree that bring it something.
    arrived: Vec<Vec<u32>>,
    jobs: Jobs,
}

impl Spanning<'_> {
    fn sum(&mut self, tree: u32, of: &WideTree, bundle: &Bundle) {
        let mut way = Vec::new();
        for (number, hop) in of.hops.iter().enumerate().rev() {
            let back = of.way(number).iter().rev();
            way.clear();
            way.extend(back.map(|&arc| match self.along {
                Along::Both => self.twins[arc as usize],
                _ => arc,
            }));
            let ends = (hop.far, hop.near);
            self.push((tree, bundle.part(hop.far)), ends, Op::Reduce, &way);
        }
    }

    fn copy(&mut self, tree: u32, of: &WideTree, bundle: &Bundle) {
        for (number, hop) in of.hops.iter().enumerate() {
            // Its own sums were sent before; what it passes on is the copy.
            self.arrived[hop.far as usize].clear();
            let (ends, way) = ((hop.near, hop.far), of.way(number));
            self.push((tree, bundle.part(hop.far)), ends, Op::Copy, way);
        }
    }

    /// Brings the shards of a bundle to its last member.
    fn gather(&mut self, tree: u32, bundle: &Bundle) {
        for shard in 0..bundle.ways.len() {
            for (number, way) in bundle.ways.iter().enumerate().skip(shard) {
                let ends = (bundle.members[number], bundle.members[number + 1]);
                self.push((tree, (narrow(shard), 1)), ends, Op::Copy, way);
            }
        }
    }

    /// Brings what the last member of a bundle has summed to whom it is for, with what those between add.
    fn scatter(&mut self, tree: u32, bundle: &Bundle) {
        for shard in 0..bundle.ways.len() {
            for (number, way) in bundle.ways.iter().enumerate().skip(shard).rev() {
                let ends = (bundle.members[number + 1], bundle.members[number]);
                let way: Vec<u32> = way.iter().rev().copied().collect();
                self.push((tree, (narrow(shard), 1)), ends, Op::Reduce, &way);
            }
        }
    }

    /// Adds a job that waits for all that its source has got.
    fn push(
        &mut self,
        (tree, (first, count)): (u32, (u32, u32)),
        (src, dst): (u32, u32),
        op: Op,
        way: &[u32],
    ) {
        let way = self.numbers.of(way, &mut self.jobs.ways);
        self.jobs.before.push(&self.arrived[src as usize]);
        self.arrived[dst as usize].push(narrow(self.jobs.list.len()));
        let job = Job {
            tree,
            part: (first, count.max(1)),
            src,
            dst,
            op,
            way,
        };
        self.jobs.list.push(job);
    }
}

impl Maker<'_> {
    /// Adds the jobs of a tree: first those that sum, from the ends towards the root, then those that copy.
    fn add(&mut self, number: u32, tree: &Tree) {
        let commodity = &self.packer.commodities[tree.commodity as usize];
        let is_both = self.packer.is_both[tree.commodity as usize];
        let (root, copies) = match is_both {
            true => self.rooted(tree),
            false => (tree.root, tree.copies.clone()),
        };
        let sums: Vec<(u32, u32, Vec<u32>)> = match is_both {
            true => copies
                .iter()
                .map(|hop| (hop.near, hop.far, self.back(&hop.arcs)))
                .collect(),
            false => tree
                .sums
                .iter()
                .map(|hop| (hop.near, hop.far, hop.arcs.iter().rev().copied().collect()))
                .collect(),
        };
        // What has arrived at each NPU; the first at one that holds nothing is copied there, and the others wait for it.
        let mut arrived: HashMap<u32, Vec<u32>> = HashMap::new();
        for (near, far, way) in sums.into_iter().rev() {
            let mut before = arrived.get(&far).cloned().unwrap_or_default();
            let is_first = !arrived.contains_key(&near);
            let holds = commodity.holders.binary_search(&near).is_ok();
            if !holds && !is_first {
                before.push(arrived[&near][0]);
            }
            let op = if holds || !is_first {
                Op::Reduce
            } else {
                Op::Copy
            };
            let id = self.push(number, (far, near), op, way, &before);
            arrived.entry(near).or_default().push(id);
        }
        let mut there: HashMap<u32, Vec<u32>> = HashMap::new();
        there.insert(root, arrived.remove(&root).unwrap_or_default());
        for hop in &copies {
            let before = there[&hop.near].clone();
            let way = hop.arcs.clone();
            let id = self.push(number, (hop.near, hop.far), Op::Copy, way, &before);
            there.insert(hop.far, vec![id]);
        }
    }

    fn push(
        &mut self,
        tree: u32,
        (src, dst): (u32, u32),
        op: Op,
        way: Vec<u32>,
        before: &[u32],
    ) -> u32 {
        let way = self.numbers.of(&way, &mut self.jobs.ways);
        self.jobs.before.push(before);
        self.jobs.list.push(Job {
            tree,
            part: (0, 1),
            src,
            dst,
            op,
            way,
        });
        narrow(self.jobs.list.len()) - 1
    }

    /// Returns the way back.
    fn back(&self, arcs: &[u32]) -> Vec<u32> {
        let arcs = arcs.iter().rev();
        arcs.map(|&arc| self.packer.twins[arc as usize]).collect()
    }

    /// Returns the tree with the root from which it is lowest, each hop after the one that leads to its start.
    fn rooted(&self, tree: &Tree) -> (u32, Vec<Hop>) {
        let ends = tree.copies.iter().flat_map(|hop| [hop.near, hop.far]);
        let mut npus: Vec<u32> = ends.collect();
        npus.sort_unstable();
        npus.dedup();
        let place = |npu: u32| npus.partition_point(|&other| other < npu);
        let arcs = self.packer.network().arcs();
        let mean = arcs.iter().map(|arc| arc.latency).sum::<u64>() / arcs.len().max(1) as u64;
        let takes = |arc: &u32| arcs[*arc as usize].latency + mean + 1;
        let mut beside: Vec<Vec<Side>> = vec![Vec::new(); npus.len()];
        for hop in &tree.copies {
            let (near, far) = (place(hop.near), place(hop.far));
            let back = self.back(&hop.arcs);
            for (from, to, way) in [(near, far, hop.arcs.clone()), (far, near, back)] {
                beside[from].push((to, way.iter().map(takes).sum(), way));
            }
        }
        let commodity = &self.packer.commodities[tree.commodity as usize];
        let may_sum =
            |&root: &usize| self.packer.relays == Relays::Sum || commodity.has(npus[root]);
        let roots = (0..npus.len()).filter(may_sum);
        let Some(root) = roots.min_by_key(|&root| walk(&beside, root, |_, _| {})) else {
            return (tree.root, Vec::new());
        };
        let mut hops = Vec::with_capacity(tree.copies.len());
        walk(&beside, root, |near, (far, _, way)| {
            hops.push(Hop {
                near: npus[near],
                far: npus[*far],
                arcs: way.clone(),
            });
        });
        (npus[root], hops)
    }
}

/// The other end of a hop, how long the way there takes, and its arcs.
type Side = (usize, u64, Vec<u32>);

/// Visits the hops of a tree from its root on, each after those before it; returns how long the longest way takes.
fn walk(beside: &[Vec<Side>], root: usize, mut visit: impl FnMut(usize, &Side)) -> u64 {
    let mut reached = vec![(root, usize::MAX, 0)];
    let (mut next, mut depth) = (0, 0);
    while let Some(&(near, from, time)) = reached.get(next) {
        next += 1;
        depth = depth.max(time);
        for side in beside[near].iter().filter(|side| side.0 != from) {
            reached.push((side.0, near, time + side.1));
            visit(near, side);
        }
    }
    depth
}
