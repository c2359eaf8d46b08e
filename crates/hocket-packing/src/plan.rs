//! Trees made into a plan.

use std::collections::HashMap;

use super::timetable::{Timetable, Turns};
use super::{Packing, Tree, TreeArc, TreeSet, Undirected};
use crate::collective::{Collective, CollectiveKind};
use crate::id::{ChunkId, LinkId, NpuId, TransferId, fit, narrow};
use crate::topology::Topology;
use hocket_base::graph::Lists;
use hocket_plan::plan::{Chunks, LinkOrder, Op, Plan, PlanBuilder, PlanError, Transfer, Wait};

/// The trees of a collective.
#[derive(Clone, Debug)]
pub enum Passes {
    /// All is summed first, and then copied; trees for what is summed are those of the network with every link
    /// turned round.
    Apart {
        /// Where they sum.
        sums: Option<Packing>,
        /// Where they copy.
        copies: Option<Packing>,
    },
    /// Sums and copies share the links at all times.
    AtOnce(Undirected),
}

/// In what order the rows of a plan are, and with it which messages links serve first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// By when they start in the timetable.
    Starts,
    /// By when they end there.
    Ends,
    /// By when they start; no more pieces of an arc are under way than the timetable has, and so many more. Links serve
    /// what is ready first, and each arc gets its share of every link.
    Windows(u32),
    /// The same with the timetable in which who is ready first is served first.
    ReadyWindows(u32),
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
    /// Returns the trees along which data is summed.
    pub fn sums(&self) -> Option<&TreeSet> {
        match self {
            Self::Apart { sums, .. } => sums.as_ref().map(|packing| &packing.set),
            Self::AtOnce(both) => Some(&both.sums),
        }
    }

    /// Returns the trees along which data is copied.
    pub fn copies(&self) -> Option<&TreeSet> {
        match self {
            Self::Apart { copies, .. } => copies.as_ref().map(|packing| &packing.set),
            Self::AtOnce(both) => Some(&both.copies),
        }
    }

    /// Returns the number of transfers of a plan, for each piece of all trees.
    pub fn arcs(&self) -> u64 {
        let sets = self.sums().into_iter().chain(self.copies());
        sets.flat_map(|set| &set.trees)
            .map(|tree| tree.arcs.len() as u64)
            .sum()
    }

    /// Returns the number of chunks of a piece of all trees.
    pub fn trees(&self) -> usize {
        let one = self.copies().or_else(|| self.sums());
        one.map_or(0, |set| set.trees.len())
    }

    /// Returns when the plan ends in which every tree carries so many pieces, in ps, if all keep to the timetable.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn end(
        &self,
        topology: &Topology,
        collective: &Collective,
        pieces: u32,
    ) -> Result<u64, PlanError> {
        let chunks = self.trees() as u64 * u64::from(pieces);
        let bytes = collective.size().div_ceil(chunks.max(1));
        let times = self.times(topology, bytes, pieces, Turns::All)?;
        let [sums, copies] = [&times.sums, &times.copies].map(|table| {
            let table = table.as_ref();
            table.map_or(0, |table| table.last(pieces))
        });
        Ok(sums.max(times.begin + copies))
    }

    fn times(
        &self,
        topology: &Topology,
        bytes: u64,
        pieces: u32,
        turns: Turns,
    ) -> Result<Times, PlanError> {
        if let Self::AtOnce(both) = self {
            let (sums, copies) = (&both.sums, &both.copies);
            let [sums, copies] = Timetable::together(topology, sums, copies, bytes, pieces, turns)?;
            return Ok(Times {
                begin: sums.first(),
                sums: Some(sums),
                copies: Some(copies),
            });
        }
        let of = |set: Option<&TreeSet>| -> Result<Option<Timetable>, PlanError> {
            let table = set.map(|set| Timetable::new(topology, set, bytes, pieces, turns));
            table.transpose()
        };
        let (sums, copies) = (of(self.sums())?, of(self.copies())?);
        // The links are free by then, and no piece is copied before it is summed.
        let begin = match (&sums, &copies) {
            (Some(sums), Some(copies)) => {
                let behind = sums.period.saturating_sub(copies.period);
                let ready = sums.first() + u64::from(pieces - 1) * behind;
                ready.max(u64::from(pieces) * sums.period)
            }
            _ => 0,
        };
        Ok(Times {
            begin,
            sums,
            copies,
        })
    }

    /// Returns the plan in which every tree carries so many pieces.
    ///
    /// Where pieces pass several links in a row, links that serve first come, first served may not keep to the
    /// timetable: who has no reason to wait sends all pieces at once, and keeps others from links that they share.
    /// `order` says how that is met.
    ///
    /// # Errors
    /// [`PlanError::TooManyChunks`]; [`PlanError::TooLong`].
    pub fn plan(
        &self,
        name: &str,
        topology: &Topology,
        collective: &Collective,
        pieces: u32,
        order: RowOrder,
    ) -> Result<Plan, PlanError> {
        self.plan_by(self, name, topology, collective, (pieces, order))
    }

    /// As [`plan`](Self::plan), with the timetable of trees that have the same arcs over other links: each link
    /// there stands for those that are as busy.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn plan_by(
        &self,
        busy: &Self,
        name: &str,
        topology: &Topology,
        collective: &Collective,
        (pieces, order): (u32, RowOrder),
    ) -> Result<Plan, PlanError> {
        let demands = collective.demands();
        let parts = pieces as usize * self.trees();
        let chunks = match (collective.kind(), collective.root()) {
            (CollectiveKind::AllReduce, _) | (_, Some(_)) => Chunks::split(&demands, parts),
            (_, None) => Chunks::split_part_major(&demands, parts / collective.npus().len()),
        }?;
        let bytes = collective.size().div_ceil(parts as u64);
        let turns = match order {
            RowOrder::ReadyWindows(_) => Turns::Ready,
            _ => Turns::All,
        };
        let times = busy.times(topology, bytes, pieces, turns)?;
        let mut rows = Vec::with_capacity(fit::<usize, _>(self.arcs()) * pieces as usize);
        if let Some(sums) = &times.sums {
            let end = sums.last(pieces);
            push_rows(&mut rows, sums, pieces, true, |start, stop| match order {
                RowOrder::Ends => end - start,
                _ => end - stop,
            });
        }
        if let Some(copies) = &times.copies {
            let begin = times.begin;
            push_rows(
                &mut rows,
                copies,
                pieces,
                false,
                |start, stop| match order {
                    RowOrder::Ends => begin + stop,
                    _ => begin + start,
                },
            );
        }
        rows.sort_by_key(|row| (row.start, row.is_sum, row.piece, row.tree, row.arc));
        let mut maker = Maker::new(self, name, collective, chunks, pieces);
        if let RowOrder::Windows(more) | RowOrder::ReadyWindows(more) = order {
            maker.set_windows(&times, more);
        }
        maker.plan.reserve(rows.len());
        for row in rows {
            maker.push(row);
        }
        Ok(maker.plan.finish())
    }
}

/// When sums and copies are sent; copies begin later.
struct Times {
    sums: Option<Timetable>,
    copies: Option<Timetable>,
    begin: u64,
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
    set: &'a TreeSet,
    /// For each tree its chunk of the first piece.
    chunk: Vec<u32>,
    paths: Vec<u32>,
    /// Where the transfers of each tree begin in `made`.
    first: Vec<usize>,
    /// For each piece and arc of all trees.
    made: Vec<u32>,
    arcs: usize,
    /// The arcs that lead on from each arc of all trees, and after those from each root.
    below: Lists<u32>,
    /// By chunk of the first piece.
    tree_of: Vec<u32>,
    /// For each arc of all trees, how many pieces may be under way; empty where any number may.
    windows: Vec<u32>,
}

struct Maker<'a> {
    plan: PlanBuilder,
    sums: Option<Pass<'a>>,
    copies: Option<Pass<'a>>,
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
        let mut pass = |set: Option<&'a TreeSet>, is_sum: bool| {
            set.map(|set| {
                let chunk = passes.chunks_of(set, collective);
                Pass::new(set, chunk, pieces, |way| {
                    let mut links: Vec<LinkId> = way.to_vec();
                    if is_sum {
                        links.reverse();
                    }
                    plan.path(&links)
                })
            })
        };
        let (sums, copies) = (pass(passes.sums(), true), pass(passes.copies(), false));
        Self { plan, sums, copies }
    }

    fn set_windows(&mut self, times: &Times, more: u32) {
        let passes = [&mut self.sums, &mut self.copies];
        for (pass, table) in passes.into_iter().zip([&times.sums, &times.copies]) {
            if let (Some(pass), Some(table)) = (pass, table) {
                pass.windows = table.under_way().map(|pieces| pieces + more).collect();
            }
        }
        self.plan.link_order(LinkOrder::Ready);
    }

    fn push(&mut self, row: Row) {
        let pass = if row.is_sum { &self.sums } else { &self.copies };
        let pass = pass.as_ref().expect("rows are of passes that are there");
        let tree = &pass.set.trees[row.tree as usize];
        let arc = tree.arcs[row.arc as usize];
        let chunk = pass.chunk[row.tree as usize];
        let mut waits: Vec<Wait> = match (row.is_sum, arc.parent) {
            (true, _) => pass.below(row, Some(row.arc)),
            (false, TreeArc::ROOT) => match &self.sums {
                Some(sums) => {
                    let same = sums.tree_of[chunk as usize];
                    sums.below(Row { tree: same, ..row }, None)
                }
                None => Vec::new(),
            },
            (false, parent) => vec![Wait::on(TransferId(pass.at(row, parent)))],
        };
        waits.extend(pass.before(row).map(|id| Wait::on(TransferId(id))));
        let path = pass.paths[arc.way as usize];
        let wait = self.plan.all_of(&waits);
        let (src, dst, op) = match row.is_sum {
            true => (arc.dst, arc.src, Op::Reduce),
            false => (arc.src, arc.dst, Op::Copy),
        };
        let chunk = row.piece * narrow(pass.set.trees.len()) + chunk;
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

impl Passes {
    /// Returns the chunk that each tree carries first: of several roots, theirs are next to each other.
    fn chunks_of(&self, set: &TreeSet, collective: &Collective) -> Vec<u32> {
        let trees = narrow(set.trees.len());
        let of_one_root = set
            .trees
            .windows(2)
            .all(|pair| pair[0].root == pair[1].root);
        if matches!(self, Self::AtOnce(_)) || of_one_root {
            return (0..trees).collect();
        }
        let npus = collective.npus();
        let ranks: HashMap<NpuId, u32> = npus.iter().copied().zip(0..).collect();
        let mut seen: HashMap<NpuId, u32> = HashMap::new();
        let chunk = |tree: &Tree| {
            let number = seen.entry(tree.root).or_insert(0);
            *number += 1;
            (*number - 1) * narrow(npus.len()) + ranks[&tree.root]
        };
        set.trees.iter().map(chunk).collect()
    }
}

impl<'a> Pass<'a> {
    fn new(
        set: &'a TreeSet,
        chunk: Vec<u32>,
        pieces: u32,
        path: impl FnMut(&Vec<LinkId>) -> u32,
    ) -> Self {
        let mut arcs = 0;
        let mut first = Vec::with_capacity(set.trees.len());
        for tree in &set.trees {
            first.push(arcs);
            arcs += tree.arcs.len();
        }
        let mut tree_of = vec![NONE; chunk.len()];
        for (tree, &chunk) in (0..).zip(&chunk) {
            tree_of[chunk as usize] = tree;
        }
        let parents: Vec<(usize, u32)> = set
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
            below: Lists::grouped(arcs + set.trees.len(), parents.into_iter()),
            tree_of,
            windows: Vec::new(),
            paths: set.ways.iter().map(path).collect(),
            set,
            chunk,
            first,
            made: vec![NONE; arcs * pieces as usize],
            arcs,
        }
    }

    fn place(&self, row: Row, arc: u32) -> usize {
        row.piece as usize * self.arcs + self.first[row.tree as usize] + arc as usize
    }

    /// Returns the transfer of another arc of the same tree with the same piece.
    fn at(&self, row: Row, arc: u32) -> u32 {
        self.made[self.place(row, arc)]
    }

    /// Returns the transfer of the last piece that must be there before a row's may be sent over the same arc.
    fn before(&self, row: Row) -> Option<u32> {
        let window = self
            .windows
            .get(self.first[row.tree as usize] + row.arc as usize)?;
        let piece = row.piece.checked_sub(*window)?;
        Some(self.at(Row { piece, ..row }, row.arc))
    }

    /// Returns the transfers that lead on from an arc, or from the root.
    fn below(&self, row: Row, arc: Option<u32>) -> Vec<Wait> {
        let tree = row.tree as usize;
        let place = arc.map_or(self.arcs + tree, |arc| self.first[tree] + arc as usize);
        let below = self.below.get(place).iter();
        below
            .map(|&arc| Wait::on(TransferId(self.at(row, arc))))
            .collect()
    }
}
