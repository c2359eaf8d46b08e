//! Trees made into a plan.

use std::collections::HashMap;

use super::timetable::Timetable;
use super::{Packing, TreeArc};
use crate::collective::{Collective, CollectiveKind};
use crate::graph::Lists;
use crate::id::{ChunkId, LinkId, NpuId, TransferId};
use crate::plan::{Chunks, LinkOrder, Op, Plan, PlanBuilder, PlanError, Transfer, Wait};
use crate::topology::Topology;

/// Trees for what is summed, those of the network with every link turned round, and for what is copied.
#[derive(Clone, Debug)]
pub(crate) struct Passes {
    pub sums: Option<Packing>,
    pub copies: Option<Packing>,
}

/// One arc of a tree with one piece.
#[derive(Clone, Copy)]
struct Row {
    start: u64,
    is_sum: bool,
    piece: u32,
    tree: u32,
    arc: u32,
}

impl Passes {
    /// Transfers of a plan, for each piece of all trees.
    pub fn arcs(&self) -> u64 {
        let packings = self.sums.iter().chain(&self.copies);
        packings
            .flat_map(|it| &it.trees)
            .map(|tree| tree.arcs.len() as u64)
            .sum()
    }

    /// Trees of a root, over all its weight.
    pub fn trees_a_root(&self, collective: &Collective) -> u64 {
        let one = self.copies.as_ref().or(self.sums.as_ref());
        let trees = one.map_or(0, |packing| packing.trees.len() as u64);
        match collective.root() {
            Some(_) => trees,
            None => trees / collective.npus().len() as u64,
        }
    }

    /// The plan in which every tree carries so many pieces.
    ///
    /// # Errors
    /// [`PlanError::TooManyChunks`]; [`PlanError::TooLong`].
    pub fn plan(
        &self,
        name: &str,
        topology: &Topology,
        collective: &Collective,
        pieces: u32,
    ) -> Result<Plan, PlanError> {
        let demands = collective.demands();
        let owners = match collective.root() {
            Some(_) => 1,
            None => collective.npus().len(),
        };
        let trees = self.trees_a_root(collective) as usize;
        let parts = pieces as usize * trees;
        let chunks = match collective.kind() {
            CollectiveKind::AllReduce => Chunks::split(&demands, parts * owners),
            _ => Chunks::split_part_major(&demands, parts),
        }?;
        let bytes = collective.size().div_ceil((parts * owners) as u64);
        let mut rows = Vec::with_capacity(self.arcs() as usize * pieces as usize);
        let mut begin = 0;
        if let Some(sums) = &self.sums {
            let times = Timetable::new(topology, sums, bytes, pieces)?;
            let last = times.ends.iter().flatten().max().copied().unwrap_or(0);
            let end = last + u64::from(pieces - 1) * times.period;
            push_rows(&mut rows, &times, pieces, true, |_, stop| end - stop);
            begin = (u64::from(pieces) * times.period).max(last);
        }
        if let Some(copies) = &self.copies {
            let times = Timetable::new(topology, copies, bytes, pieces)?;
            push_rows(&mut rows, &times, pieces, false, |start, _| begin + start);
        }
        rows.sort_by_key(|row| (row.start, row.is_sum, row.piece, row.tree, row.arc));
        let mut maker = Maker::new(self, name, collective, chunks, pieces);
        maker.plan.reserve(rows.len());
        for row in rows {
            maker.push(row);
        }
        Ok(maker.plan.finish())
    }
}

fn push_rows(
    rows: &mut Vec<Row>,
    times: &Timetable,
    pieces: u32,
    is_sum: bool,
    start: impl Fn(u64, u64) -> u64,
) {
    let mirrored = |piece: u32| if is_sum { pieces - 1 - piece } else { piece };
    for (tree, (starts, ends)) in (0..).zip(times.starts.iter().zip(&times.ends)) {
        for (arc, (&begin, &end)) in (0..).zip(starts.iter().zip(ends)) {
            for piece in 0..pieces {
                let later = u64::from(piece) * times.period;
                rows.push(Row {
                    start: start(begin + later, end + later),
                    is_sum,
                    piece: mirrored(piece),
                    tree,
                    arc,
                });
            }
        }
    }
}

/// The trees of one pass, and the transfers made of them.
struct Pass<'a> {
    packing: &'a Packing,
    /// For each tree the number of its root's demand, and which of that root's trees it is.
    owner: Vec<(u32, u32)>,
    paths: Vec<u32>,
    /// Where the transfers of each tree begin in `made`.
    first: Vec<usize>,
    /// For each piece and arc of all trees.
    made: Vec<u32>,
    arcs: usize,
    /// The arcs that lead on from each arc of all trees, and after those from each root.
    below: Lists<u32>,
    /// By demand and number, the tree.
    tree_of: HashMap<(u32, u32), u32>,
}

struct Maker<'a> {
    plan: PlanBuilder,
    sums: Option<Pass<'a>>,
    copies: Option<Pass<'a>>,
    owners: u32,
    trees: u32,
}

const NONE: u32 = u32::MAX;

impl<'a> Maker<'a> {
    fn new(
        passes: &'a Passes,
        name: &str,
        collective: &Collective,
        chunks: Chunks,
        pieces: u32,
    ) -> Self {
        let mut plan = PlanBuilder::new(name, collective, chunks);
        plan.link_order(LinkOrder::Plan);
        let mut pass = |packing: &'a Option<Packing>, is_sum: bool| {
            packing.as_ref().map(|packing| {
                Pass::new(packing, collective, pieces, |way| {
                    let mut links: Vec<LinkId> = way.to_vec();
                    if is_sum {
                        links.reverse();
                    }
                    plan.path(&links)
                })
            })
        };
        let (sums, copies) = (pass(&passes.sums, true), pass(&passes.copies, false));
        Self {
            plan,
            sums,
            copies,
            owners: match collective.root() {
                Some(_) => 1,
                None => collective.npus().len() as u32,
            },
            trees: passes.trees_a_root(collective) as u32,
        }
    }

    fn push(&mut self, row: Row) {
        let pass = if row.is_sum { &self.sums } else { &self.copies };
        let pass = pass.as_ref().expect("rows are of passes that are there");
        let tree = &pass.packing.trees[row.tree as usize];
        let arc = tree.arcs[row.arc as usize];
        let (owner, number) = pass.owner[row.tree as usize];
        let waits: Vec<Wait> = match (row.is_sum, arc.parent) {
            (true, _) => pass.below(row, Some(row.arc)),
            (false, TreeArc::ROOT) => match &self.sums {
                Some(sums) => {
                    // The tree of the same number of the same root.
                    let same = sums.tree_of(owner, number);
                    sums.below(Row { tree: same, ..row }, None)
                }
                None => Vec::new(),
            },
            (false, parent) => vec![Wait::on(TransferId(pass.at(row, parent)))],
        };
        let path = pass.paths[arc.way as usize];
        let wait = self.plan.all_of(&waits);
        let (src, dst, op) = match row.is_sum {
            true => (arc.dst, arc.src, Op::Reduce),
            false => (arc.src, arc.dst, Op::Copy),
        };
        let chunk = (row.piece * self.trees + number) * self.owners + owner;
        let id = self.plan.push(Transfer {
            chunk: ChunkId(chunk),
            count: 1,
            src,
            dst,
            op,
            wait,
            path: Some(path),
        });
        let pass = if row.is_sum {
            &mut self.sums
        } else {
            &mut self.copies
        };
        if let Some(pass) = pass {
            let place = pass.place(row, row.arc);
            pass.made[place] = id.0;
        }
    }
}

impl<'a> Pass<'a> {
    fn new(
        packing: &'a Packing,
        collective: &Collective,
        pieces: u32,
        path: impl FnMut(&Vec<LinkId>) -> u32,
    ) -> Self {
        let mut arcs = 0;
        let mut first = Vec::with_capacity(packing.trees.len());
        for tree in &packing.trees {
            first.push(arcs);
            arcs += tree.arcs.len();
        }
        let rank = |npu: NpuId| match collective.root() {
            Some(_) => 0,
            None => collective
                .npus()
                .iter()
                .position(|&it| it == npu)
                .unwrap_or(0) as u32,
        };
        let mut owner: Vec<(u32, u32)> = Vec::with_capacity(packing.trees.len());
        let mut before: Option<NpuId> = None;
        for tree in &packing.trees {
            let next = match (before == Some(tree.root), owner.last()) {
                (true, Some(&(rank, number))) => (rank, number + 1),
                _ => (rank(tree.root), 0),
            };
            owner.push(next);
            before = Some(tree.root);
        }
        let tree_of = owner.iter().copied().zip(0..).collect();
        let parents: Vec<(usize, u32)> = packing
            .trees
            .iter()
            .enumerate()
            .flat_map(|(t, tree)| {
                let at = first[t];
                let parent = move |arc: &TreeArc| match arc.parent {
                    TreeArc::ROOT => arcs + t,
                    parent => at + parent as usize,
                };
                (0..).zip(&tree.arcs).map(move |(i, arc)| (parent(arc), i))
            })
            .collect();
        Self {
            below: Lists::grouped(arcs + packing.trees.len(), parents.into_iter()),
            tree_of,
            paths: packing.ways.iter().map(path).collect(),
            packing,
            owner,
            first,
            made: vec![NONE; arcs * pieces as usize],
            arcs,
        }
    }

    fn place(&self, row: Row, arc: u32) -> usize {
        row.piece as usize * self.arcs + self.first[row.tree as usize] + arc as usize
    }

    /// The transfer of another arc of the same tree with the same piece.
    fn at(&self, row: Row, arc: u32) -> u32 {
        self.made[self.place(row, arc)]
    }

    /// The transfers that lead on from an arc, or from the root.
    fn below(&self, row: Row, arc: Option<u32>) -> Vec<Wait> {
        let tree = row.tree as usize;
        let place = arc.map_or(self.arcs + tree, |arc| self.first[tree] + arc as usize);
        let below = self.below.get(place).iter();
        below
            .map(|&arc| Wait::on(TransferId(self.at(row, arc))))
            .collect()
    }

    fn tree_of(&self, owner: u32, number: u32) -> u32 {
        self.tree_of[&(owner, number)]
    }
}
