//! A proved plan as a program of thread blocks with one peer in each direction, as MSCCL's runtimes ask for.
//!
//! The transfers are taken level by level of their waits, or in the plan's order. Each becomes a send and a receive, or
//! part of a step that receives and sends. Steps wait for those of other blocks that they conflict with. The parts:
//! `units` (the data in chunks of one size), `order` (the plan's, where waits allow it), `place` (where each chunk is
//! at each rank), `runs` (what each transfer moves from where to where), `pairs` (which receives go with which sends),
//! `emit` (blocks and steps of a rank, with `cells`: who accessed its memory), `joins` (messages made one) and `build` (as those of a program).
//!
//! Steps wait only for steps of their own rank, so ranks are lowered one after the other: what is not yet part of a program is never more than a rank's.
//!
//! # Deadlocks
//! Where sends and receives have blocks of their own, no capacity of connections is too small: of the transfers that have
//! not ended, take the first in the order. All before it in both of its blocks have ended, all that its steps
//! wait for have, and so have all messages before it on its connection. So it goes on. Fused steps have no such
//! argument: they are kept if the check finds that the program ends with one chunk a message.

mod build;
mod cells;
mod emit;
mod joins;
mod order;
mod pairs;
mod place;
mod runs;
mod units;

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::check::{Faults, Matching, is_stuck};
use super::{Buffer, Mode, Program, ProgramBuilder, Ranks, SizeLimits, Span, Task};
use crate::collective::{Collective, CollectiveKind};
use crate::explain::Explain;
use crate::graph::Lists;
use crate::id::narrow;
use crate::plan::Plan;
use crate::verify::Verified;

/// How a plan is lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "LowerOptions")]
pub struct CompileOptions {
    /// In place or out of place; `None` for what is usual for the collective: out of place where every rank has data for
    /// every other (all-to-all), else in place.
    pub mode: Option<Mode>,
    /// Channels over which chunks are spread, each with blocks of its own.
    pub channels: u32,
    /// Parts into which each chunk is cut, each on channels of its own.
    pub instances: u32,
    /// Whether steps that receive and steps that send the same on are made one.
    pub fuse: bool,
    /// Messages that a connection holds.
    pub in_flight: u32,
    /// Most chunks of one step.
    pub max_count: u32,
    /// Most chunks of the whole vector.
    pub max_chunks: u32,
    /// Sizes for which the program may be used.
    pub limits: SizeLimits,
    /// Messages of a level that a connection carries as one, at most: a step has the spans of all of them. Not with `fuse`.
    pub joins: u32,
    /// The channel of each transfer, instead of those by chunks.
    pub channel_of: Option<Vec<u32>>,
    /// Whether messages of a connection go in the plan's order, as links serve plans that ask for it, instead of level by
    /// level of their waits. Where the waits do not allow it, they go level by level.
    pub in_plan_order: bool,
    /// Whether sends wait for whatever the plan has them wait for that arrives at their rank, and not only for the data that
    /// they send. Plans pace themselves so.
    pub keeps_waits: bool,
}

impl CompileOptions {
    /// Returns the channel of a transfer, of its first instance.
    fn channel(&self, plan: &Plan, transfer: u32) -> u32 {
        match &self.channel_of {
            Some(channels) => channels[transfer as usize],
            None => plan.chunk()[transfer as usize] % self.channels,
        }
    }
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self {
            mode: None,
            channels: 1,
            instances: 1,
            fuse: true,
            in_flight: 2,
            max_count: 71,
            max_chunks: (1 << 15) - 1,
            limits: SizeLimits::default(),
            joins: 1,
            channel_of: None,
            in_plan_order: false,
            keeps_waits: false,
        }
    }
}

/// Why a plan cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
#[doc(alias = "LowerError")]
pub enum CompileError {
    /// A collective that has no input and output buffers.
    #[explain(
        why("a custom collective has no input and output buffers that a runtime knows"),
        remedy("use a collective that has a name, and one plan for each group")
    )]
    Custom,
    /// A device that is no rank sends or receives.
    #[explain(
        why("transfer {transfer} ends at device {device}, which is no rank of the collective"),
        remedy("use an algorithm in which only participants send and receive")
    )]
    NotARank {
        /// The transfer.
        transfer: u32,
        /// The device.
        device: u32,
    },
    /// Chunks that have no common measure.
    #[explain(
        why(
            "the plan's chunks are not whole multiples of one chunk size with at most {limit} chunks in the whole vector"
        ),
        remedy("use another number of chunks or another algorithm")
    )]
    Uneven {
        /// Most chunks of the whole vector.
        limit: u32,
    },
    /// An all-to-all in place.
    #[explain(
        why("{kind} in place would overwrite what is still to be sent"),
        remedy("lower it out of place")
    )]
    InPlace {
        /// The kind of the collective.
        kind: CollectiveKind,
    },
    /// An option without meaning.
    #[explain(field("{option}"), why("is 0"), remedy("give at least 1"))]
    Zero {
        /// The option.
        option: &'static str,
    },
    /// More than a program can hold.
    #[explain(why("{why}"))]
    TooLarge {
        /// What there is too much of.
        why: String,
    },
}

/// Lowers a proved plan.
///
/// # Errors
/// [`CompileError`].
///
/// # Complexity
/// O(transfers x chunks of each), memory of about 30 bytes for each transfer beside the program.
#[doc(alias = "lower")]
pub fn compile(verified: &Verified, options: &CompileOptions) -> Result<Program, CompileError> {
    Ok(CompiledPlan::of(verified, options)?.program())
}

/// A proved plan of which a program can be made, as a whole or rank by rank.
#[doc(alias = "Lowering")]
pub struct CompiledPlan<'a> {
    moves: Moves<'a>,
    options: &'a CompileOptions,
    runs: runs::Runs,
    /// For steps that receive and send; none where they are not wanted.
    fused: Option<pairs::Pairs>,
    unfused: pairs::Pairs,
    task: Task,
    mode: Mode,
    frame: Program,
}

impl<'a> CompiledPlan<'a> {
    /// Lays out memory, and what each transfer moves.
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn of(verified: &'a Verified, options: &'a CompileOptions) -> Result<Self, CompileError> {
        let plan = verified.plan();
        let zero = [
            ("channels", options.channels),
            ("instances", options.instances),
            ("in_flight", options.in_flight),
            ("max_count", options.max_count),
        ];
        if let Some(&(option, _)) = zero.iter().find(|(_, value)| *value == 0) {
            return Err(CompileError::Zero { option });
        }
        if let Some(channels) = &options.channel_of {
            assert_eq!(channels.len(), plan.len(), "a channel for each transfer");
        }
        let moves = Moves::of(plan)?;
        let levels = levels(plan, options);
        let units = units::Units::of(plan, options)?;
        let collective = plan.collective();
        let task = task(collective, units.per_demand);
        let mode = options.mode.unwrap_or(match collective.kind() {
            CollectiveKind::AllToAll => Mode::OutOfPlace,
            _ => Mode::InPlace,
        });
        if mode == Mode::InPlace && collective.kind() == CollectiveKind::AllToAll {
            let kind = collective.kind();
            return Err(CompileError::InPlace { kind });
        }
        let runs = runs::Runs::of(&moves, &levels, &units, task, mode);
        let mut compiled = Self {
            fused: options.fuse.then(|| pairs::Pairs::of(&moves, &levels)),
            unfused: pairs::Pairs::default(),
            frame: ProgramBuilder::new("", task).finish().expect("it is empty"),
            moves,
            options,
            runs,
            task,
            mode,
        };
        compiled.check_sizes()?;
        compiled.frame = compiled.builder().finish().expect("it has no step");
        Ok(compiled)
    }

    /// Refuses what a program cannot count.
    fn check_sizes(&self) -> Result<(), CompileError> {
        let most = u64::from(u32::MAX) - 1;
        // What is copied within a rank lies in one piece.
        let copies = 1 + self.task.chunks / runs::longest(self.options);
        let copies = u64::from(self.task.ranks) * u64::from(copies);
        let steps = self.runs.parts_of_all(self.options);
        // A send has one operand, a receive two at most, a copy two.
        let operands = 3 * steps + 2 * copies;
        let scratch = self.runs.scratch.iter().copied().max().unwrap_or(0);
        let limits = [
            ("operands of its steps", operands, most),
            ("chunks of scratch", scratch.into(), Span::MAX_CHUNKS.into()),
        ];
        for (what, count, limit) in limits {
            if count > limit {
                let why = format!("{what}: {count}; the most is {limit}");
                return Err(CompileError::TooLarge { why });
            }
        }
        Ok(())
    }

    /// Returns the whole program. Fused steps are kept if it ends with one chunk a message.
    pub fn program(&self) -> Program {
        if let Some(pairs) = &self.fused {
            let program = self.with(pairs);
            let mut faults = Faults::default();
            let matching = Matching::of(&program, &mut faults);
            if matching.is_some_and(|matching| !is_stuck(&program, &matching)) {
                return program;
            }
        }
        self.with(&self.unfused)
    }

    fn with(&self, pairs: &pairs::Pairs) -> Program {
        let mut builder = self.builder();
        builder.reserve(2 * self.runs.len());
        self.add(&mut builder, pairs, 0..self.task.ranks);
        builder.finish().expect("its sizes were checked")
    }

    /// Returns a program without blocks yet.
    fn builder(&self) -> ProgramBuilder {
        let mut builder = ProgramBuilder::new(self.moves.plan.algorithm(), self.task);
        builder.modes(&[self.mode]);
        builder.limits(self.options.limits);
        builder.in_flight(self.options.in_flight);
        for (rank, &chunks) in (0..).zip(&self.runs.scratch) {
            builder.size(rank, Buffer::Scratch, chunks);
        }
        builder
    }

    fn add(&self, builder: &mut ProgramBuilder, pairs: &pairs::Pairs, ranks: Range<u32>) {
        let common = emit::Common {
            moves: &self.moves,
            runs: &self.runs,
            pairs,
            task: self.task,
            mode: self.mode,
            options: self.options,
        };
        for rank in ranks {
            let scratch = self.runs.scratch[rank as usize];
            build::add(builder, rank, emit::emit(&common, rank), scratch);
        }
    }
}

/// Rank by rank, no step both receives and sends, whatever the options say.
impl Ranks for CompiledPlan<'_> {
    fn frame(&self) -> &Program {
        &self.frame
    }

    fn rank(&self, rank: u32) -> Cow<'_, Program> {
        let mut builder = self.builder();
        self.add(&mut builder, &self.unfused, rank..rank + 1);
        Cow::Owned(builder.finish().expect("its sizes were checked"))
    }
}

/// Returns the transfers in an order that their waits allow.
fn levels(plan: &Plan, options: &CompileOptions) -> Lists<u32> {
    let in_order = options
        .in_plan_order
        .then(|| order::in_plan_order(plan, options.channel_of.as_deref()));
    let mut levels = in_order.flatten().unwrap_or_else(|| plan.wait_levels());
    if options.joins > 1 {
        // Connection by connection: what one carries waits, of the level, for those before it alone, joined or not.
        levels = levels.iter().fold(Lists::default(), |mut sorted, level| {
            let mut level = level.to_vec();
            level.sort_by_key(|&transfer| {
                let ends = (plan.dst()[transfer as usize], plan.src()[transfer as usize]);
                (ends, options.channel(plan, transfer))
            });
            sorted.push(&level);
            sorted
        });
    }
    levels
}

/// Returns the number of channels below which some block has more than `most` steps, however the plan is lowered: the
/// messages of each connection, spread over that many, each take a step.
pub fn fewest_channels(plan: &Plan, most: u32) -> u32 {
    let mut messages: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (&src, &dst) in plan.src().iter().zip(plan.dst()) {
        *messages.entry((src, dst)).or_default() += 1;
    }
    let longest = messages.into_values().max().unwrap_or(0);
    longest.div_ceil(most).max(1)
}

/// Returns what a collective is to ranks that count from 0, with its vector in chunks.
fn task(collective: &Collective, per_demand: u32) -> Task {
    let ranks = narrow(collective.npus().len());
    let chunks = match collective.kind() {
        CollectiveKind::AllReduce | CollectiveKind::Broadcast | CollectiveKind::Reduce => {
            per_demand
        }
        _ => per_demand * ranks,
    };
    Task {
        kind: collective.kind(),
        ranks,
        root: collective.root().map_or(0, |root| root.0),
        chunks,
    }
}

/// The transfers of a plan, between ranks.
struct Moves<'a> {
    plan: &'a Plan,
    rank_of: Vec<u32>,
}

/// One of them.
#[derive(Clone, Copy)]
struct Move {
    src: u32,
    dst: u32,
    first: u32,
    count: u32,
    is_sum: bool,
}

impl<'a> Moves<'a> {
    fn of(plan: &'a Plan) -> Result<Self, CompileError> {
        let collective = plan.collective();
        if collective.kind() == CollectiveKind::Custom {
            return Err(CompileError::Custom);
        }
        let devices = plan
            .src()
            .iter()
            .chain(plan.dst())
            .max()
            .map_or(0, |&max| max + 1);
        let highest = collective.npus().iter().map(|npu| npu.0 + 1).max();
        let mut rank_of = vec![u32::MAX; devices.max(highest.unwrap_or(0)) as usize];
        for (rank, npu) in collective.npus().iter().enumerate() {
            rank_of[npu.index()] = narrow(rank);
        }
        for transfer in 0..plan.len() {
            for device in [plan.src()[transfer], plan.dst()[transfer]] {
                if rank_of[device as usize] == u32::MAX {
                    let transfer = narrow(transfer);
                    return Err(CompileError::NotARank { transfer, device });
                }
            }
        }
        Ok(Self { plan, rank_of })
    }

    /// Returns all of them, level by level.
    fn along(&self, levels: &Lists<u32>) -> impl Iterator<Item = Move> {
        levels.items().iter().map(|&transfer| self.at(transfer))
    }

    fn at(&self, transfer: u32) -> Move {
        let i = transfer as usize;
        Move {
            src: self.rank_of[self.plan.src()[i] as usize],
            dst: self.rank_of[self.plan.dst()[i] as usize],
            first: self.plan.chunk()[i],
            count: self.plan.chunk_count()[i],
            is_sum: self.plan.op()[i] != 0,
        }
    }
}

/// Returns whether another step waits for each step, for runtimes in which a step that is waited for says so.
pub fn awaited(program: &Program) -> Vec<bool> {
    let mut awaited = vec![false; program.len()];
    for step in 0..narrow(program.len()) {
        if let Some(target) = program.step(step).dependency {
            awaited[target as usize] = true;
        }
    }
    awaited
}
