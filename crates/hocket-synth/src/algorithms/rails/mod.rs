//! Multi-rail schedules as transfers.
//!
//! An operation of a lane is a reduce-scatter or all-gather along one dimension, in every group of
//! NPUs that differ in that dimension alone. The transfers stand in the order in which the schedule
//! serves them, and links are to serve them so ([`LinkOrder::Plan`]): the same order on every NPU,
//! whatever the timing.
//!
//! # Source
//! Themis, sections 2.3 and 4.6.

mod template;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::rc::Rc;

use super::hierarchical;
use crate::collective::pattern::{Pass, Shape};
use crate::collective::{Collective, CollectiveKind};
use crate::id::{NpuId, fit, narrow};
use crate::multirail::{PARTS, Rail, Schedule, Uneven};
use crate::plan::{Chunks, LinkOrder, Op, Plan, PlanBuilder, PlanError, Wait};
use crate::topology::Topology;
use template::{StageTemplate, Template};

/// Makes a plan of a schedule.
///
/// # Errors
/// [`PlanError::NotApplicable`] where the topology or the collective is not what the schedule was made
/// for, or a dimension sums in its switches; [`PlanError::TooLarge`]; [`PlanError::TooManyChunks`].
pub fn plan_of(
    schedule: &Schedule,
    topology: &Topology,
    collective: &Collective,
    memory_limit: u64,
) -> Result<Plan, PlanError> {
    collective.check_on(topology)?;
    if let Some(why) = mismatch(schedule, topology, collective) {
        return Err(PlanError::NotApplicable {
            algorithm: schedule.algorithm,
            why,
        });
    }
    let compiler = ScheduleCompiler::new(schedule);
    let transfers = compiler.transfers();
    PlanBuilder::check_size(transfers, memory_limit)?;
    let plan = compiler.build(collective, transfers as usize)?;
    debug_assert_eq!(plan.len() as u128, transfers);
    Ok(plan)
}

/// Returns whether a plan, perhaps from a file, is the one that a schedule makes, all of its columns.
///
/// # Errors
/// As [`plan_of`].
pub fn carries_out(
    plan: &Plan,
    schedule: &Schedule,
    topology: &Topology,
    memory_limit: u64,
) -> Result<bool, PlanError> {
    let made = plan_of(schedule, topology, plan.collective(), memory_limit)?;
    Ok(made.routed(topology, plan.routing()).is_same_as(plan))
}

/// Returns why no schedule can be made, if none can.
pub(super) fn refusal(topology: &Topology, collective: &Collective) -> Option<String> {
    hierarchical::product_refusal(topology, collective).or_else(|| {
        let Err(Uneven::Links { topology, due, found }) = Rail::check(topology) else {
            return None;
        };
        let lost = due.checked_sub(found)?;
        Some(format!(
            "{lost} links of the dimensions of topology {topology:?} are missing, and a schedule counts on \
             all; use hierarchical"
        ))
    })
}

/// Returns why a schedule does not fit, if it does not.
fn mismatch(schedule: &Schedule, topology: &Topology, collective: &Collective) -> Option<String> {
    if let Some(why) = refusal(topology, collective) {
        return Some(why);
    }
    if collective.kind() != schedule.kind {
        return Some(format!(
            "the schedule is of {}, not {}",
            schedule.kind,
            collective.kind()
        ));
    }
    let shape = |rails: &[Rail]| -> Vec<_> {
        let shapes = rails.iter();
        shapes.map(|rail| (rail.kind, rail.size)).collect()
    };
    let rails = Rail::of(topology);
    if shape(&rails) != shape(&schedule.rails) {
        return Some(format!(
            "the schedule is for other dimensions than those of topology {:?}",
            topology.name()
        ));
    }
    let lanes = schedule.lanes.iter().map(|lane| lane.bytes);
    let bytes = lanes.fold(0, u64::saturating_add);
    if bytes != collective.size() {
        return Some(format!(
            "the lanes of the schedule have {bytes} B, the collective {} B; make them equal",
            collective.size()
        ));
    }
    let sums = rails.iter().find(|rail| rail.offload)?;
    Some(format!(
        "switches of dimension {} sum, and a plan is of transfers between NPUs; simulate the schedule \
         instead of a plan, or leave offload out",
        sums.dimension + 1
    ))
}

/// A schedule and the templates of its lanes' parts, one for each order that lanes take.
struct ScheduleCompiler<'a> {
    schedule: &'a Schedule,
    /// Part p of lane l: l x parts + p.
    templates: Vec<Rc<Template>>,
}

impl<'a> ScheduleCompiler<'a> {
    fn new(schedule: &'a Schedule) -> Self {
        /// Order of the reduce-scatter, order of the all-gather, part.
        type Way<'a> = (&'a [u8], &'a [u8], usize);
        let mut known: HashMap<Way<'_>, Rc<Template>> = HashMap::new();
        let mut templates = Vec::with_capacity(schedule.lanes.len() * PARTS);
        for lane in &schedule.lanes {
            for part in 0..PARTS {
                let key = (&lane.reduce_scatter[..], &lane.all_gather[..], part);
                let make = || Rc::new(Template::new(&schedule.rails, lane, part));
                templates.push(Rc::clone(known.entry(key).or_insert_with(make)));
            }
        }
        Self {
            schedule,
            templates,
        }
    }

    /// Transfers, exactly.
    fn transfers(&self) -> u128 {
        let rails = &self.schedule.rails;
        let all = self.templates.iter();
        all.map(|template| template.transfers(rails)).sum()
    }

    /// Builds the plan. NPU ids vary fastest in the first dimension.
    fn build(&self, collective: &Collective, transfers: usize) -> Result<Plan, PlanError> {
        let grid = Grid::new(&self.schedule.rails);
        let chunks = self.chunks(collective, &grid)?;
        let npus = grid.npus;
        let mut plan = PlanBuilder::new(self.schedule.algorithm, collective, chunks);
        plan.reserve(transfers);
        plan.link_order(LinkOrder::Plan);
        let mut run = Run {
            plan,
            npus: collective.npus(),
            grid,
            travels: vec![Travel::default(); self.templates.len()],
        };
        let stages = self.schedule.stages();
        for &(task, step) in &self.schedule.timeline.served {
            let (part, stage) = (task as usize / stages, task as usize % stages);
            let place = Place {
                part,
                stage,
                step: step as usize,
                first_chunk: narrow(part * npus),
            };
            run.step(&self.templates[part], place);
        }
        Ok(run.plan.finish())
    }

    /// Returns a chunk for each NPU in each part of each lane, laid out as the part's template says.
    fn chunks(&self, collective: &Collective, grid: &Grid) -> Result<Chunks, PlanError> {
        let demands = collective.demands();
        let lanes = &self.schedule.lanes;
        let mut chunks = Chunks::with_capacity(lanes.len() * PARTS * grid.npus);
        if collective.kind() == CollectiveKind::AllReduce {
            for lane in lanes {
                chunks.split_one(0, lane.bytes, PARTS * grid.npus)?;
            }
            return Ok(chunks);
        }
        let all: u128 = lanes.iter().map(|lane| u128::from(lane.bytes)).sum();
        let pieces = (lanes.len() * PARTS) as u64;
        let mut before = 0u128;
        for (l, lane) in lanes.iter().enumerate() {
            for part in 0..PARTS {
                let template = &self.templates[l * PARTS + part];
                let mut owner = vec![0u32; grid.npus];
                for npu in 0..grid.npus {
                    let chunk = grid.first_chunk(npu, &template.width, |_| true);
                    owner[chunk as usize] = narrow(npu);
                }
                for demand in owner {
                    // Each of its chunks has one byte, and by the lanes' sizes what is left.
                    let spare = demands[demand as usize].bytes.checked_sub(pieces);
                    let spare = spare.ok_or_else(|| PlanError::TooManyChunks {
                        what: format!("block {demand}"),
                        bytes: demands[demand as usize].bytes,
                        chunks: fit(pieces),
                    })?;
                    let bytes = u128::from(spare);
                    // Byte of the demand at which so many halves of lanes' bytes end.
                    let at = |twice: u128| fit::<u64, _>(bytes * twice / (2 * all));
                    let start = 2 * before + part as u128 * u128::from(lane.bytes);
                    chunks.push(demand, 1 + at(start + u128::from(lane.bytes)) - at(start));
                }
            }
            before += u128::from(lane.bytes);
        }
        Ok(chunks)
    }
}

/// Coordinates of NPUs.
struct Grid {
    npus: usize,
    size: Vec<usize>,
    /// NPUs between neighbours along each rail.
    stride: Vec<usize>,
}

impl Grid {
    fn new(rails: &[Rail]) -> Self {
        let size: Vec<usize> = rails.iter().map(|rail| rail.size as usize).collect();
        let stride = (0..size.len()).map(|i| size[..i].iter().product());
        Self {
            npus: size.iter().product(),
            stride: stride.collect(),
            size,
        }
    }

    fn coordinate(&self, npu: usize, rail: usize) -> usize {
        npu / self.stride[rail] % self.size[rail]
    }

    /// Returns first chunk, within a part, of those whose digits are an NPU's coordinates on some rails.
    fn first_chunk(&self, npu: usize, width: &[u32], fixed: impl Fn(usize) -> bool) -> u32 {
        let rails = (0..self.size.len()).filter(|&rail| fixed(rail));
        let digit = |rail: usize| narrow(self.coordinate(npu, rail)) * width[rail];
        rails.map(digit).sum()
    }
}

/// Where a step stands.
#[derive(Clone, Copy)]
struct Place {
    part: usize,
    stage: usize,
    step: usize,
    first_chunk: u32,
}

/// A part on its way.
#[derive(Clone, Default)]
struct Travel {
    /// By NPU: what makes all that it may send ready, but for what is in `fresh` and `inbox`.
    ready: Vec<Wait>,
    /// By NPU, on a ring: the arrival of the step before.
    fresh: Vec<Wait>,
    /// By NPU: arrivals not yet in `ready`.
    inbox: Vec<Vec<Wait>>,
}

/// A plan in the making.
struct Run<'a> {
    plan: PlanBuilder,
    npus: &'a [NpuId],
    grid: Grid,
    travels: Vec<Travel>,
}

impl Run<'_> {
    /// One step of one part, in every group.
    fn step(&mut self, template: &Template, place: Place) {
        let stage = &template.stages[place.stage];
        let is_last_stage = place.stage + 1 == template.stages.len();
        let is_last_step = place.step + 1 == stage.steps.len();
        let mut travel = std::mem::take(&mut self.travels[place.part]);
        if place.step == 0 {
            travel.begin(stage, self.grid.npus);
        }
        self.send(template, place, &mut travel, !is_last_stage);
        if is_last_step && stage.shape == Shape::Ring && stage.pass == Pass::ReduceScatter {
            for (inbox, &fresh) in travel.inbox.iter_mut().zip(&travel.fresh) {
                inbox.push(fresh);
            }
        }
        if is_last_step && is_last_stage {
            return;
        }
        if is_last_step || stage.shape == Shape::HalvingDoubling {
            travel.settle(&mut self.plan);
        }
        self.travels[place.part] = travel;
    }

    fn send(&mut self, template: &Template, place: Place, travel: &mut Travel, goes_on: bool) {
        let stage = &template.stages[place.stage];
        let keep = match (stage.shape, stage.pass) {
            (Shape::Ring, Pass::ReduceScatter) => false,
            (Shape::HalvingDoubling, _) => true,
            _ => goes_on,
        };
        let op = match stage.pass {
            Pass::ReduceScatter => Op::Reduce,
            Pass::AllGather => Op::Copy,
        };
        let summed_before = match stage.pass {
            Pass::ReduceScatter => &template.stages[..place.stage],
            Pass::AllGather => &template.stages[place.stage + 1..],
        };
        let is_fixed = |rail| summed_before.iter().any(|other| other.rail == rail);
        let npus = self.npus;
        let stride = self.grid.stride[stage.rail];
        let mut arrivals = travel.fresh.clone();
        for base in 0..self.grid.npus {
            if self.grid.coordinate(base, stage.rail) != 0 {
                continue;
            }
            let start = place.first_chunk + self.grid.first_chunk(base, &template.width, is_fixed);
            for send in &stage.steps[place.step] {
                let src = base + send.src as usize * stride;
                let dst = base + send.dst as usize * stride;
                let wait = travel.wait_of(&mut self.plan, src, stage.pass, place.step);
                let mut sent = Wait::NOTHING;
                for &(first, count) in &send.ranges {
                    let chunks = (start + first, count);
                    let id = self.plan.send(chunks, npus[src], npus[dst], op, wait);
                    if keep {
                        travel.inbox[dst].push(Wait::on(id));
                    }
                    if stage.shape == Shape::Ring {
                        sent = self.plan.all_of(&[sent, Wait::on(id)]);
                    }
                }
                if let Some(slot) = arrivals.get_mut(dst) {
                    *slot = sent;
                }
            }
        }
        travel.fresh = arrivals;
    }
}

impl Travel {
    fn begin(&mut self, stage: &StageTemplate, npus: usize) {
        self.ready.resize(npus, Wait::NOTHING);
        self.inbox.resize(npus, Vec::new());
        self.fresh.clear();
        if stage.shape == Shape::Ring {
            self.fresh.resize(npus, Wait::NOTHING);
        }
    }

    /// Returns what an NPU waits for before it sends in a step. In a ring it sends on what came in the step before:
    /// added to what it had (reduce-scatter), or as it came (all-gather).
    fn wait_of(&self, plan: &mut PlanBuilder, npu: usize, pass: Pass, step: usize) -> Wait {
        let ready = self.ready[npu];
        match (self.fresh.get(npu), pass) {
            (Some(&fresh), Pass::ReduceScatter) => plan.all_of(&[ready, fresh]),
            (Some(&fresh), Pass::AllGather) if step > 0 => fresh,
            _ => ready,
        }
    }

    /// Takes the arrivals into `ready`.
    fn settle(&mut self, plan: &mut PlanBuilder) {
        for (ready, inbox) in self.ready.iter_mut().zip(&mut self.inbox) {
            if !inbox.is_empty() {
                inbox.push(*ready);
                *ready = plan.all_of(inbox);
                inbox.clear();
            }
        }
    }
}
