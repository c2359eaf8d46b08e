//! Runs a pattern along each dimension of a grid of NPUs, in several independent lanes of chunks.
//!
//! An all-reduce sums along dimension 1, then 2, ..., and copies back in the reverse order. Within
//! a lane, NPU m owns chunk c(m), whose index takes m's coordinates with dimension 1 as the most
//! significant, so that what an NPU holds after each dimension is one range of chunks. A flat
//! algorithm has one dimension.

use std::collections::HashMap;
use std::ops::Range;

use super::Job;
use crate::collective::CollectiveKind;
use crate::collective::pattern::{Pass, Pattern, Shape};
use crate::id::{ChunkId, LinkId, NpuId, narrow};
use crate::plan::{Chunks, Op, Plan, PlanBuilder, PlanError, Transfer, Wait};

/// One dimension of the grid.
#[derive(Clone, Debug)]
pub(super) struct Along {
    /// NPUs along it.
    pub size: usize,
    /// Lane l follows pattern l modulo their number. All have one shape.
    pub patterns: Vec<Pattern>,
    /// The links that some transfers of each pattern take; empty: all take the default route.
    paths: Vec<PathOf>,
}

/// The links from one NPU to another.
pub(super) type PathOf = HashMap<(NpuId, NpuId), Vec<LinkId>>;

impl Along {
    /// So many NPUs, and their patterns.
    pub(super) fn new(size: usize, patterns: Vec<Pattern>) -> Self {
        Self {
            size,
            patterns,
            paths: Vec::new(),
        }
    }

    /// Returns the same, on paths for each pattern.
    pub(super) fn on_paths(mut self, paths: Vec<PathOf>) -> Self {
        self.paths = paths;
        self
    }
}

/// Returns the number of transfers of a collective over a grid, exactly.
pub(super) fn transfers(
    kind: CollectiveKind,
    lanes: u128,
    sides: impl Iterator<Item = (usize, Shape)> + Clone,
) -> u128 {
    let all: u128 = sides.clone().map(|(size, _)| size as u128).product();
    let pass: u128 = sides
        .map(|(size, shape)| all / size as u128 * shape.moves(size as u128))
        .sum();
    lanes.saturating_mul(pass * passes(kind).len() as u128)
}

/// Builds the plan for `npus`, the participants in any order, of which the first dimension varies fastest.
pub(super) fn build(
    job: &Job<'_>,
    npus: &[NpuId],
    sides: &[Along],
    lanes: usize,
) -> Result<Plan, PlanError> {
    let grid = Grid::new(sides);
    let chunks = grid.chunks(job, npus, lanes)?;
    let places = lanes * npus.len();
    let paced = if sides.len() > 1 {
        2 * sides.len() * places
    } else {
        0
    };
    let mut plan = job.builder(chunks);
    let paths = sides.iter().map(|side| numbered(&mut plan, &side.paths));
    let paths = paths.collect();
    let mut run = Run {
        plan,
        paths,
        grid,
        npus,
        ready: vec![Wait::NOTHING; places],
        fresh: Vec::new(),
        inbox: vec![Vec::new(); places],
        latest: vec![Wait::NOTHING; places],
        over: vec![Wait::NOTHING; paced],
    };
    let forward = 0..sides.len();
    let mut phases = Vec::new();
    for &pass in passes(job.collective.kind()) {
        match pass {
            Pass::ReduceScatter => phases.extend(forward.clone().map(|d| (pass, d))),
            Pass::AllGather => phases.extend(forward.clone().rev().map(|d| (pass, d))),
        }
    }
    // A flat algorithm runs all lanes abreast. On a grid each lane starts a dimension some lanes
    // behind another, so that the dimensions work on different lanes at the same time.
    let squad = if sides.len() == 1 { lanes } else { 1 };
    let squads = lanes / squad;
    for wave in 0..squads + phases.len() - 1 {
        let now = wave.saturating_sub(squads - 1)..(wave + 1).min(phases.len());
        for i in now.rev() {
            let first = (wave - i) * squad;
            run.phase(&phases, i, first..first + squad);
        }
    }
    Ok(run.plan.finish())
}

/// Adds paths to a plan, and gives their positions.
fn numbered(plan: &mut PlanBuilder, paths: &[PathOf]) -> Vec<HashMap<(NpuId, NpuId), u32>> {
    let each = |of: &PathOf| {
        let mut ends: Vec<_> = of.keys().copied().collect();
        ends.sort_unstable();
        let number = |ends| (ends, plan.path(&of[&ends]));
        ends.into_iter().map(number).collect()
    };
    paths.iter().map(each).collect()
}

/// Returns the passes that a kind is made of.
fn passes(kind: CollectiveKind) -> &'static [Pass] {
    match kind {
        CollectiveKind::AllReduce => &[Pass::ReduceScatter, Pass::AllGather],
        CollectiveKind::ReduceScatter => &[Pass::ReduceScatter],
        _ => &[Pass::AllGather],
    }
}

/// Coordinates of NPUs and chunks.
struct Grid<'a> {
    sides: &'a [Along],
    /// NPUs between neighbours along each dimension.
    stride: Vec<usize>,
    /// Chunks between neighbours along each dimension.
    width: Vec<usize>,
    len: usize,
}

impl<'a> Grid<'a> {
    fn new(sides: &'a [Along]) -> Self {
        let len: usize = sides.iter().map(|side| side.size).product();
        let below = |d: usize| sides[..d].iter().map(|side| side.size).product::<usize>();
        let stride: Vec<usize> = (0..sides.len()).map(below).collect();
        let width = (0..sides.len()).map(|d| len / below(d + 1)).collect();
        Self {
            sides,
            stride,
            width,
            len,
        }
    }

    fn coordinate(&self, member: usize, d: usize) -> usize {
        member / self.stride[d] % self.sides[d].size
    }

    /// Returns first chunk, within a lane, of what a member sums or gathers along dimension `d`.
    fn first_chunk(&self, member: usize, d: usize) -> usize {
        (0..d)
            .map(|e| self.coordinate(member, e) * self.width[e])
            .sum()
    }

    /// Returns the members with coordinate 0 along dimension `d`: one for each group.
    fn bases(&self, d: usize) -> Vec<usize> {
        (0..self.len)
            .filter(|&member| self.coordinate(member, d) == 0)
            .collect()
    }

    /// Returns a lane's chunks: each demand is its owner's.
    fn chunks(&self, job: &Job<'_>, npus: &[NpuId], lanes: usize) -> Result<Chunks, PlanError> {
        let demands = job.collective.demands();
        if job.collective.kind() == CollectiveKind::AllReduce {
            return Chunks::split(&demands, lanes * self.len);
        }
        let mut rank = vec![0u32; job.topology.npu_count()];
        for (i, npu) in job.collective.npus().iter().enumerate() {
            rank[npu.index()] = narrow(i);
        }
        let mut owner = vec![0u32; self.len];
        for (member, npu) in npus.iter().enumerate() {
            owner[self.first_chunk(member, self.sides.len())] = rank[npu.index()];
        }
        Chunks::split_part_major_in(&demands, lanes, &owner)
    }
}

/// A plan in the making. A place is a member in a lane: lane x members + member.
struct Run<'a> {
    plan: PlanBuilder,
    /// Positions of the paths of each side's patterns.
    paths: Vec<Vec<HashMap<(NpuId, NpuId), u32>>>,
    grid: Grid<'a>,
    npus: &'a [NpuId],
    /// What makes all that each place may send ready, but for what follows.
    ready: Vec<Wait>,
    /// In a ring, the arrival of the step before.
    fresh: Vec<Wait>,
    /// Arrivals not yet in `ready`.
    inbox: Vec<Vec<Wait>>,
    /// The last arrival at each place.
    latest: Vec<Wait>,
    /// On a grid, the last arrival of each phase at each place: phase x places + place.
    over: Vec<Wait>,
}

/// Lanes that are in a phase at a time: while one waits for its step's latency, another sends.
const ABREAST: usize = 2;

impl Run<'_> {
    /// One pass along one dimension, in every group at once, in some lanes.
    fn phase(&mut self, phases: &[(Pass, usize)], i: usize, lanes: Range<usize>) {
        let (pass, d) = phases[i];
        let last = i + 1 == phases.len();
        let side = &self.grid.sides[d];
        let shape = side.patterns[0].shape();
        let bases = self.grid.bases(d);
        let steps = shape.steps(side.size);
        let places = lanes.start * self.npus.len()..lanes.end * self.npus.len();
        let keep = match (shape, pass) {
            (Shape::Ring, Pass::ReduceScatter) => false,
            (Shape::HalvingDoubling, _) => true,
            _ => !last,
        };
        self.fresh = match shape {
            Shape::Ring => vec![Wait::NOTHING; places.len()],
            _ => Vec::new(),
        };
        self.pace(i, places.clone());
        for step in 0..steps {
            self.step(phases, i, step, lanes.clone(), &bases, keep);
            if shape == Shape::HalvingDoubling && !(last && step + 1 == steps) {
                self.settle(places.clone());
            }
        }
        if shape == Shape::Ring && pass == Pass::ReduceScatter && !last {
            for (inbox, &fresh) in self.inbox[places.clone()].iter_mut().zip(&self.fresh) {
                inbox.push(fresh);
            }
        }
        if !last {
            self.settle(places.clone());
        }
        if !self.over.is_empty() {
            let start = i * self.ready.len();
            let over = &mut self.over[start + places.start..start + places.end];
            over.copy_from_slice(&self.latest[places]);
        }
    }

    fn step(
        &mut self,
        phases: &[(Pass, usize)],
        i: usize,
        step: usize,
        lanes: Range<usize>,
        bases: &[usize],
        keep: bool,
    ) {
        let (pass, d) = phases[i];
        let side = &self.grid.sides[d];
        let (stride, width) = (self.grid.stride[d], self.grid.width[d]);
        let chunks = narrow(width);
        let op = match pass {
            Pass::ReduceScatter => Op::Reduce,
            Pass::AllGather => Op::Copy,
        };
        let patterns = side.patterns.iter();
        let moves: Vec<_> = patterns.map(|p| p.step(pass, side.size, step)).collect();
        let first_place = lanes.start * self.npus.len();
        let mut arrivals = self.fresh.clone();
        for lane in lanes {
            let start = lane * self.npus.len();
            for &base in bases {
                let block = start + self.grid.first_chunk(base, d);
                for a_move in &moves[lane % moves.len()] {
                    let src = base + a_move.src as usize * stride;
                    let dst = base + a_move.dst as usize * stride;
                    let first = block + a_move.first as usize * width;
                    let range = (narrow(first), a_move.count * chunks);
                    let place = start + src;
                    let wait = self.wait_of(place, place - first_place, pass, step);
                    let (src, to) = (self.npus[src], self.npus[dst]);
                    let paths = &self.paths[d];
                    let own = (!paths.is_empty()).then(|| &paths[lane % paths.len()]);
                    let arrival = Wait::on(self.plan.push(Transfer {
                        chunk: ChunkId(range.0),
                        count: range.1,
                        src,
                        dst: to,
                        op,
                        wait,
                        path: own.and_then(|paths| paths.get(&(src, to)).copied()),
                    }));
                    self.latest[start + dst] = arrival;
                    if let Some(slot) = arrivals.get_mut(start + dst - first_place) {
                        *slot = arrival;
                    }
                    if keep {
                        self.inbox[start + dst].push(arrival);
                    }
                }
            }
        }
        self.fresh = arrivals;
    }

    /// On a grid, lets places also wait for the same phase some lanes before, so that the lanes come
    /// through one after the other.
    fn pace(&mut self, i: usize, places: Range<usize>) {
        let behind = ABREAST * self.npus.len();
        if self.over.is_empty() || places.start < behind {
            return;
        }
        let phase = i * self.ready.len();
        for place in places {
            let before = self.over[phase + place - behind];
            self.ready[place] = self.plan.all_of(&[before, self.ready[place]]);
        }
    }

    /// Returns what a place waits for before it sends in a step. In a ring it sends on what came in the step before:
    /// added to what it had (reduce-scatter), or as it came (all-gather).
    fn wait_of(&mut self, place: usize, in_squad: usize, pass: Pass, step: usize) -> Wait {
        let ready = self.ready[place];
        match (self.fresh.get(in_squad), pass) {
            (Some(&fresh), Pass::ReduceScatter) => self.plan.all_of(&[ready, fresh]),
            (Some(&fresh), Pass::AllGather) if step > 0 => fresh,
            _ => ready,
        }
    }

    /// Takes the arrivals into `ready`.
    fn settle(&mut self, places: Range<usize>) {
        let inboxes = self.inbox[places.clone()].iter_mut();
        for (ready, inbox) in self.ready[places].iter_mut().zip(inboxes) {
            if !inbox.is_empty() {
                inbox.push(*ready);
                *ready = self.plan.all_of(inbox);
                inbox.clear();
            }
        }
    }
}
