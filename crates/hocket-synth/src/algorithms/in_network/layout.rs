//! When each slice of the data crosses each edge of its tree, as a timetable that repeats, and the plan of it.
//!
//! In each period every tree carries one slice over every edge, so that all links are as busy as the shares make
//! them. What crosses an edge for the first time waits until few slices are under way, so that simulations in
//! which links share their bandwidth, and real queues, keep to the timetable too.

use std::collections::BTreeMap;

use super::tree::{Step, Tree};
use super::tree_shares::Trees;
use super::{owners, passes};
use crate::collective::Collective;
use crate::id::{ChunkId, DeviceId, LinkId, NpuId, TransferId, fit, narrow};
use crate::plan::{LinkOrder, Op, Plan, PlanBuilder, Transfer, Wait};
use crate::topology::Topology;
use crate::units::whole;

/// One tree seen from one root: which devices send when, in periods from the start of a slice.
pub(super) struct RootedTree<'a> {
    tree: &'a Tree,
    steps: Vec<Step>,
    /// By step, the steps below it; those below the root at the end.
    below: Vec<Vec<usize>>,
    /// By edge, the latency of each of its ways, in periods.
    late: Vec<[u64; 2]>,
    /// By step, when it sends to its parent, and when its parent sends to it.
    ups: Vec<u64>,
    downs: Vec<u64>,
    /// By edge, the step with each of its ways up.
    by_edge: Vec<[usize; 2]>,
    /// When all is over.
    pub end: u64,
}

impl<'a> RootedTree<'a> {
    /// Returns a lane whose periods take so many picoseconds.
    pub(crate) fn new(
        topology: &Topology,
        (tree, root): (&'a Tree, DeviceId),
        [sums, copies]: [bool; 2],
        period: f64,
    ) -> Self {
        let steps = tree.steps(root);
        let mut below = vec![Vec::new(); steps.len() + 1];
        for (i, step) in steps.iter().enumerate() {
            below[step.before.unwrap_or(steps.len())].push(i);
        }
        let mut by_edge = vec![[0; 2]; tree.edges.len()];
        for (i, step) in steps.iter().enumerate() {
            by_edge[step.edge][step.up] = i;
        }
        let late = |way: &Vec<LinkId>| -> u64 {
            let latency = way.iter().map(|&id| topology.link(id).latency.as_ps());
            // The root in turn sends twice in a period, so what passes its link may be late by one.
            let behind = u64::from(!tree.turns.is_empty());
            whole((latency.sum::<u64>() as f64 / period).ceil().min(1e6)) + behind
        };
        let late = tree.edges.iter().map(|edge| edge.ways.each_ref().map(late));
        let late: Vec<[u64; 2]> = late.collect();
        let cost = |step: &Step, way: usize| -> u64 {
            tree.edges[step.edge].ways[way].len() as u64 + late[step.edge][way]
        };
        let (mut ups, mut downs) = (vec![0; steps.len()], vec![0; steps.len()]);
        let mut end = 0;
        if sums {
            let arrival = |i: usize, ups: &[u64]| ups[i] + cost(&steps[i], steps[i].up);
            for i in (0..steps.len()).rev() {
                ups[i] = below[i]
                    .iter()
                    .map(|&child| arrival(child, &ups))
                    .max()
                    .unwrap_or(0);
            }
            let last = below[steps.len()].iter().map(|&child| arrival(child, &ups));
            end = last.max().unwrap_or(0);
        }
        if copies {
            let whole = end;
            for (i, step) in steps.iter().enumerate() {
                downs[i] = step.before.map_or(whole, |before| {
                    downs[before] + cost(&steps[before], 1 - steps[before].up)
                });
                end = end.max(downs[i] + cost(step, 1 - step.up));
            }
        }
        Self {
            tree,
            steps,
            below,
            late,
            ups,
            downs,
            by_edge,
            end,
        }
    }

    /// For how many periods a chunk is under way after it has left a step's sender.
    fn late(&self, step: &Step, way: usize) -> u64 {
        self.late[step.edge][way]
    }
}

/// All lanes of a collective, and how many slices each carries.
pub(super) struct Layout<'a> {
    /// Each from every root that it has in turn, slice by slice.
    lanes: Vec<Vec<RootedTree<'a>>>,
    passes: [bool; 2],
    slices: usize,
}

/// What a period of the timetable holds: a step of a lane, up or down.
#[derive(Clone, Copy)]
struct Item {
    lane: usize,
    step: usize,
    is_down: bool,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(
        topology: &Topology,
        collective: &Collective,
        trees: &'a Trees,
        slices: usize,
    ) -> Self {
        let passes = passes(collective.kind());
        let owners = owners(collective);
        let lanes = trees.list.iter().flat_map(|tree| {
            let rooted = move |root| RootedTree::new(topology, (tree, root), passes, trees.period);
            let turns = match tree.turns.is_empty() {
                true => std::slice::from_ref(&tree.root),
                false => &tree.turns[..tree.turns.len().min(slices)],
            };
            owners.iter().map(move |owner| match owner {
                Some(npu) => vec![rooted(npu.device())],
                None => turns.iter().map(|&root| rooted(root)).collect(),
            })
        });
        Self {
            lanes: lanes.collect(),
            passes,
            slices,
        }
    }

    /// Returns the plan, in the order of the timetable, older slices first.
    pub(crate) fn write(&self, plan: PlanBuilder) -> Plan {
        let turns = self.lanes.iter().map(Vec::len).max().unwrap_or(1);
        // By start and turn.
        let mut by_start: BTreeMap<u64, Vec<Vec<Item>>> = BTreeMap::new();
        let lanes = self.lanes.iter().enumerate();
        let rooted = lanes.flat_map(|(lane, each)| {
            (0..turns).map(move |turn| (lane, turn, &each[turn % each.len()]))
        });
        for (lane, turn, each) in rooted {
            let has_all = each.steps.len() - usize::from(!each.tree.turns.is_empty());
            for step in 0..each.steps.len() {
                let ways = [(false, each.ups[step]), (true, each.downs[step])];
                for ((is_down, start), _) in ways.into_iter().zip(self.passes).filter(|it| it.1) {
                    if is_down && step >= has_all {
                        continue; // the root has the sum already
                    }
                    let item = Item {
                        lane,
                        step,
                        is_down,
                    };
                    let items = by_start.entry(start);
                    items.or_insert_with(|| vec![Vec::new(); turns])[turn].push(item);
                }
            }
        }
        let mut writer = Writer::new(self, plan);
        let last = by_start.keys().next_back().copied().unwrap_or(0);
        for period in 0..last + self.slices as u64 {
            for (start, items) in by_start.range(..=period).rev() {
                let slice: usize = fit(period - start);
                if slice >= self.slices {
                    break;
                }
                let items = items[slice % turns].iter();
                items.for_each(|&item| writer.push(item, slice));
            }
        }
        writer.plan.link_order(LinkOrder::Plan);
        writer.plan.finish()
    }
}

struct Writer<'a> {
    layout: &'a Layout<'a>,
    plan: PlanBuilder,
    /// By lane and edge, the paths both ways.
    paths: Vec<Vec<[u32; 2]>>,
    /// Where the steps of each lane begin among those of all.
    first: Vec<usize>,
    steps: usize,
    /// By pass, slice and step of all lanes.
    made: [Vec<u32>; 2],
    /// By slice and lane, the wait for all that the root sums.
    whole: Vec<Option<Wait>>,
}

impl<'a> Writer<'a> {
    fn new(layout: &'a Layout<'a>, mut plan: PlanBuilder) -> Self {
        let mut steps = 0;
        let mut first = Vec::with_capacity(layout.lanes.len());
        let mut paths: Vec<Vec<[u32; 2]>> = Vec::with_capacity(layout.lanes.len());
        for (i, lane) in layout.lanes.iter().enumerate() {
            let RootedTree {
                tree, steps: each, ..
            } = &lane[0];
            first.push(steps);
            steps += each.len();
            let same = i
                .checked_sub(1)
                .filter(|&before| std::ptr::eq(layout.lanes[before][0].tree, *tree));
            let known = same.map(|before| paths[before].clone());
            paths.push(known.unwrap_or_else(|| {
                let edges = tree.edges.iter();
                edges
                    .map(|edge| [plan.path(&edge.ways[0]), plan.path(&edge.ways[1])])
                    .collect()
            }));
        }
        let all = steps * layout.slices;
        Self {
            layout,
            plan,
            paths,
            first,
            steps,
            made: layout
                .passes
                .map(|is_made| vec![0; if is_made { all } else { 0 }]),
            whole: vec![None; layout.slices * layout.lanes.len()],
        }
    }

    fn push(&mut self, item: Item, slice: usize) {
        let lane = self.lane(item.lane, slice);
        let step = &lane.steps[item.step];
        let wait = self.wait(lane, item, slice);
        let (src, dst, op, way) = match item.is_down {
            // A sum in which the root's own data are takes their place.
            false if step.before.is_none() && !lane.tree.turns.is_empty() => {
                (step.device, step.parent, Op::Copy, step.up)
            }
            false => (step.device, step.parent, Op::Reduce, step.up),
            true => (step.parent, step.device, Op::Copy, 1 - step.up),
        };
        let id = self.plan.push(Transfer {
            chunk: ChunkId(narrow(slice * self.layout.lanes.len() + item.lane)),
            count: 1,
            src: NpuId(src.0),
            dst: NpuId(dst.0),
            op,
            wait,
            path: Some(self.paths[item.lane][step.edge][way]),
        });
        let place = self.place(item.lane, item.step, slice);
        self.made[usize::from(item.is_down)][place] = id.0;
    }

    /// Returns a lane as it is for a slice.
    fn lane(&self, lane: usize, slice: usize) -> &'a RootedTree<'a> {
        let turns = &self.layout.lanes[lane];
        &turns[slice % turns.len()]
    }

    fn place(&self, lane: usize, step: usize, slice: usize) -> usize {
        slice * self.steps + self.first[lane] + step
    }

    fn on(&self, is_down: bool, (lane, step): (usize, usize), slice: usize) -> Wait {
        let place = self.place(lane, step, slice);
        Wait::on(TransferId(self.made[usize::from(is_down)][place]))
    }

    /// A transfer waits for what brings its chunk.
    fn wait(&mut self, lane: &RootedTree<'_>, item: Item, slice: usize) -> Wait {
        let brings = match (item.is_down, lane.steps[item.step].before) {
            (false, _) => self.all_below(lane, item.lane, item.step, slice),
            (true, Some(before)) => self.on(true, (item.lane, before), slice),
            (true, None) if self.layout.passes[0] => {
                let place = slice * self.layout.lanes.len() + item.lane;
                let known = self.whole[place];
                let root = lane.steps.len();
                let whole = known.unwrap_or_else(|| self.all_below(lane, item.lane, root, slice));
                self.whole[place] = Some(whole);
                whole
            }
            (true, None) => Wait::NOTHING,
        };
        match brings == Wait::NOTHING {
            true => self.turn(lane, item, slice),
            false => brings,
        }
    }

    fn all_below(
        &mut self,
        lane: &RootedTree<'_>,
        number: usize,
        step: usize,
        slice: usize,
    ) -> Wait {
        let below = lane.below[step].iter();
        let waits: Vec<Wait> = below
            .map(|&child| self.on(false, (number, child), slice))
            .collect();
        self.plan.all_of(&waits)
    }

    /// What begins with a slice waits until an earlier one has crossed the same edge: one is on the link then, and
    /// as many more as its latency has room for.
    fn turn(&self, lane: &RootedTree<'_>, item: Item, slice: usize) -> Wait {
        let step = &lane.steps[item.step];
        let way = if item.is_down { 1 - step.up } else { step.up };
        let room = 1 + lane.late(step, way).max(1);
        let before = usize::try_from(room).ok();
        let before = before.and_then(|room| slice.checked_sub(room));
        before.map_or(Wait::NOTHING, |slice| {
            let same = self.lane(item.lane, slice).by_edge[step.edge][step.up];
            self.on(item.is_down, (item.lane, same), slice)
        })
    }
}
