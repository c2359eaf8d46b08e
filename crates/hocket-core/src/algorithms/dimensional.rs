//! Runs a pattern along each dimension of a grid of NPUs, in several independent lanes of chunks.
//!
//! An all-reduce sums along dimension 1, then 2, ..., and copies back in the reverse order. Within
//! a lane, NPU m owns chunk c(m), whose index takes m's coordinates with dimension 1 as the most
//! significant, so that what an NPU holds after each dimension is one range of chunks. A flat
//! algorithm has one dimension.

use super::Job;
use super::pattern::{Pass, Pattern, Shape};
use crate::collective::CollectiveKind;
use crate::id::NpuId;
use crate::plan::{Chunks, Op, Plan, PlanBuilder, PlanError, Wait};

/// One dimension of the grid.
#[derive(Clone, Debug)]
pub(super) struct Along {
    /// NPUs along it.
    pub size: usize,
    /// Lane l follows pattern l modulo their number. All have one shape.
    pub patterns: Vec<Pattern>,
}

/// Transfers of a collective over a grid, exactly.
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

/// Builds the plan for `npus`, of which the first dimension varies fastest.
pub(super) fn build(
    job: &Job<'_>,
    npus: &[NpuId],
    sides: &[Along],
    lanes: usize,
) -> Result<Plan, PlanError> {
    let grid = Grid::new(sides);
    let chunks = grid.chunks(job, lanes)?;
    let places = lanes * npus.len();
    let mut run = Run {
        plan: job.builder(chunks),
        grid,
        npus,
        lanes,
        ready: vec![Wait::NOTHING; places],
        fresh: Vec::new(),
        inbox: vec![Vec::new(); places],
    };
    let forward = 0..sides.len();
    let mut phases = Vec::new();
    for &pass in passes(job.collective.kind()) {
        match pass {
            Pass::ReduceScatter => phases.extend(forward.clone().map(|d| (pass, d))),
            Pass::AllGather => phases.extend(forward.clone().rev().map(|d| (pass, d))),
        }
    }
    for (i, &(pass, d)) in phases.iter().enumerate() {
        run.phase(pass, d, i + 1 == phases.len());
    }
    Ok(run.plan.finish())
}

/// The passes that a kind is made of.
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

    /// First chunk, within a lane, of what a member sums or gathers along dimension `d`.
    fn first_chunk(&self, member: usize, d: usize) -> usize {
        (0..d)
            .map(|e| self.coordinate(member, e) * self.width[e])
            .sum()
    }

    /// The members with coordinate 0 along dimension `d`: one for each group.
    fn bases(&self, d: usize) -> Vec<usize> {
        (0..self.len)
            .filter(|&member| self.coordinate(member, d) == 0)
            .collect()
    }

    fn chunks(&self, job: &Job<'_>, lanes: usize) -> Result<Chunks, PlanError> {
        let demands = job.collective.demands();
        if job.collective.kind() == CollectiveKind::AllReduce {
            return Chunks::split(&demands, lanes * self.len);
        }
        let mut owner = vec![0u32; self.len];
        for member in 0..self.len {
            owner[self.first_chunk(member, self.sides.len())] = member as u32;
        }
        Chunks::split_slice_major_in(&demands, lanes, &owner)
    }
}

/// A plan in the making. A place is a member in a lane: lane x members + member.
struct Run<'a> {
    plan: PlanBuilder,
    grid: Grid<'a>,
    npus: &'a [NpuId],
    lanes: usize,
    /// What makes all that each place may send ready, but for what follows.
    ready: Vec<Wait>,
    /// In a ring, the arrival of the step before.
    fresh: Vec<Wait>,
    /// Arrivals not yet in `ready`.
    inbox: Vec<Vec<Wait>>,
}

impl Run<'_> {
    /// One pass along one dimension, in every group and lane at once.
    fn phase(&mut self, pass: Pass, d: usize, last: bool) {
        let side = &self.grid.sides[d];
        let shape = side.patterns[0].shape();
        let bases = self.grid.bases(d);
        let steps = shape.steps(side.size);
        self.fresh = vec![
            Wait::NOTHING;
            if shape == Shape::Ring {
                self.ready.len()
            } else {
                0
            }
        ];
        let keep = match (shape, pass) {
            (Shape::Ring, Pass::ReduceScatter) => false,
            (Shape::HalvingDoubling, _) => true,
            _ => !last,
        };
        for step in 0..steps {
            self.step(pass, d, step, &bases, keep);
            if shape == Shape::HalvingDoubling && !(last && step + 1 == steps) {
                self.settle();
            }
        }
        if shape == Shape::Ring && pass == Pass::ReduceScatter && !last {
            for (inbox, &fresh) in self.inbox.iter_mut().zip(&self.fresh) {
                inbox.push(fresh);
            }
        }
        if !last {
            self.settle();
        }
    }

    fn step(&mut self, pass: Pass, d: usize, step: usize, bases: &[usize], keep: bool) {
        let side = &self.grid.sides[d];
        let (stride, width) = (self.grid.stride[d], self.grid.width[d]);
        let op = match pass {
            Pass::ReduceScatter => Op::Reduce,
            Pass::AllGather => Op::Copy,
        };
        let patterns = side.patterns.iter();
        let moves: Vec<_> = patterns.map(|p| p.step(pass, side.size, step)).collect();
        let mut arrivals = self.fresh.clone();
        for lane in 0..self.lanes {
            let start = lane * self.npus.len();
            for &base in bases {
                let block = start + self.grid.first_chunk(base, d);
                for a_move in &moves[lane % moves.len()] {
                    let src = base + a_move.src as usize * stride;
                    let dst = base + a_move.dst as usize * stride;
                    let first = block + a_move.first as usize * width;
                    let range = (first as u32, a_move.count * width as u32);
                    let wait = self.wait_of(start + src, pass, step);
                    let (src, to) = (self.npus[src], self.npus[dst]);
                    let arrival = Wait::on(self.plan.send(range, src, to, op, wait));
                    if let Some(slot) = arrivals.get_mut(start + dst) {
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

    /// What a place waits for before it sends in a step. In a ring it sends on what came in the
    /// step before: added to what it had (reduce-scatter), or as it came (all-gather).
    fn wait_of(&mut self, place: usize, pass: Pass, step: usize) -> Wait {
        let ready = self.ready[place];
        match (self.fresh.get(place), pass) {
            (Some(&fresh), Pass::ReduceScatter) => self.plan.all_of(&[ready, fresh]),
            (Some(&fresh), Pass::AllGather) if step > 0 => fresh,
            _ => ready,
        }
    }

    /// Takes the arrivals into `ready`.
    fn settle(&mut self) {
        for (ready, inbox) in self.ready.iter_mut().zip(&mut self.inbox) {
            if !inbox.is_empty() {
                inbox.push(*ready);
                *ready = self.plan.all_of(inbox);
                inbox.clear();
            }
        }
    }
}
