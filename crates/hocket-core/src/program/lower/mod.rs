//! A proved plan as a program of thread blocks with one peer in each direction, as MSCCL's runtimes ask for.
//!
//! The transfers are taken level by level of their waits, or in the plan's order. Each becomes a send and a receive, or part of a step that
//! receives and sends; steps wait for those of other blocks that they conflict with. The parts: `units` (the
//! data in chunks of one size), `order` (the plan's, where waits allow it), `place` (where each chunk is at each rank), `pairs` (which receives go with which
//! sends) and `emit` (blocks and steps).
//!
//! # Deadlocks
//! Where sends and receives have blocks of their own, no capacity of connections is too small: of the transfers that have
//! not ended, take the first in the order. All before it in both of its blocks have ended, all that its steps
//! wait for have, and so have all messages before it on its connection. So it goes on. Fused steps have no such
//! argument: they are kept if the check finds that the program ends with one chunk a message.

mod emit;
mod order;
mod pairs;
mod place;
mod units;

use std::borrow::Cow;
use std::collections::HashMap;

use super::check::{Faults, Matching, is_stuck};
use super::{Mode, Program, SizeLimits, Task};
use crate::collective::{Collective, CollectiveKind};
use crate::explain::Explain;
use crate::graph::Lists;
use crate::plan::Plan;
use crate::verify::Verified;

/// How a plan is lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerOptions {
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
    /// The channel of each transfer, instead of those by chunks.
    pub channel_of: Option<Vec<u32>>,
    /// Whether messages of a connection go in the plan's order, as links serve plans that ask for it, instead of level by
    /// level of their waits. Where the waits do not allow it, they go level by level.
    pub in_plan_order: bool,
    /// Whether sends wait for whatever the plan has them wait for that arrives at their rank, and not only for the data that
    /// they send. Plans pace themselves so.
    pub keeps_waits: bool,
}

impl Default for LowerOptions {
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
            channel_of: None,
            in_plan_order: false,
            keeps_waits: false,
        }
    }
}

/// Why a plan cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// A collective that has no input and output buffers.
    #[error(
        "a custom collective has no input and output buffers that a runtime knows; use a collective that has a name"
    )]
    Custom,
    /// A device that is no rank sends or receives.
    #[error(
        "transfer {transfer} ends at device {device}, which is no rank of the collective; \
         use an algorithm in which only participants send and receive"
    )]
    NotARank {
        /// The transfer.
        transfer: u32,
        /// The device.
        device: u32,
    },
    /// Chunks that have no common measure.
    #[error(
        "the plan's chunks are not whole multiples of one chunk size with at most {limit} chunks in the whole \
         vector; use another number of chunks or another algorithm"
    )]
    Uneven {
        /// Most chunks of the whole vector.
        limit: u32,
    },
    /// An all-to-all in place.
    #[error("{kind} in place would overwrite what is still to be sent; lower it out of place")]
    InPlace {
        /// The kind of the collective.
        kind: CollectiveKind,
    },
    /// An option without meaning.
    #[error("{option}: is 0; give at least 1")]
    Zero {
        /// The option.
        option: &'static str,
    },
    /// More than a program can hold.
    #[error("{why}")]
    TooLarge {
        /// What there is too much of.
        why: String,
    },
}

impl Explain for LowerError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Zero { option } => Some(option),
            _ => None,
        }
    }

    fn remedy(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Custom => Some("use a collective that has a name".into()),
            Self::NotARank { .. } => {
                Some("use an algorithm in which only participants send and receive".into())
            }
            Self::Uneven { .. } => Some("use another number of chunks or another algorithm".into()),
            Self::InPlace { .. } => Some("lower it out of place".into()),
            Self::Zero { .. } => Some("give at least 1".into()),
            Self::TooLarge { .. } => None,
        }
    }
}

/// Lowers a proved plan.
///
/// # Errors
/// [`LowerError`].
///
/// # Complexity
/// O(transfers x chunks of each), memory of about 50 bytes for each step.
pub fn lower(verified: &Verified, options: &LowerOptions) -> Result<Program, LowerError> {
    let plan = verified.plan();
    let zero = [
        ("channels", options.channels),
        ("instances", options.instances),
        ("in_flight", options.in_flight),
        ("max_count", options.max_count),
    ];
    if let Some(&(option, _)) = zero.iter().find(|(_, value)| *value == 0) {
        return Err(LowerError::Zero { option });
    }
    if let Some(channels) = &options.channel_of {
        assert_eq!(channels.len(), plan.len(), "a channel for each transfer");
    }
    let moves = Moves::of(plan, options)?;
    let units = units::Units::of(plan, options)?;
    let collective = plan.collective();
    let task = task(collective, units.per_demand);
    let mode = options.mode.unwrap_or(match collective.kind() {
        CollectiveKind::AllToAll => Mode::OutOfPlace,
        _ => Mode::InPlace,
    });
    if mode == Mode::InPlace && collective.kind() == CollectiveKind::AllToAll {
        let kind = collective.kind();
        return Err(LowerError::InPlace { kind });
    }
    let make = |fuse: bool| emit::emit(&moves, &units, task, mode, options, fuse);
    if options.fuse {
        let program = make(true)?;
        let mut faults = Faults::default();
        let matching = Matching::of(&program, &mut faults);
        if matching.is_some_and(|matching| !is_stuck(&program, &matching)) {
            return Ok(program);
        }
    }
    make(false)
}

/// The number of channels below which some block has more than `most` steps, however the plan is lowered: the messages of
/// each connection, spread over that many, each take a step.
pub fn fewest_channels(plan: &Plan, most: u32) -> u32 {
    let mut messages: HashMap<(u32, u32), u32> = HashMap::new();
    for (&src, &dst) in plan.src().iter().zip(plan.dst()) {
        *messages.entry((src, dst)).or_default() += 1;
    }
    let longest = messages.into_values().max().unwrap_or(0);
    longest.div_ceil(most).max(1)
}

/// What a collective is to ranks that count from 0, with its vector in chunks.
fn task(collective: &Collective, per_demand: u32) -> Task {
    let ranks = collective.npus().len() as u32;
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

/// The transfers of a plan, between ranks, in an order that their waits allow.
struct Moves<'a> {
    plan: &'a Plan,
    levels: Lists<u32>,
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
    fn of(plan: &'a Plan, options: &LowerOptions) -> Result<Self, LowerError> {
        let collective = plan.collective();
        if collective.kind() == CollectiveKind::Custom {
            return Err(LowerError::Custom);
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
            rank_of[npu.index()] = rank as u32;
        }
        for transfer in 0..plan.len() {
            for device in [plan.src()[transfer], plan.dst()[transfer]] {
                if rank_of[device as usize] == u32::MAX {
                    let transfer = transfer as u32;
                    return Err(LowerError::NotARank { transfer, device });
                }
            }
        }
        let in_order = options
            .in_plan_order
            .then(|| order::in_plan_order(plan, options.channel_of.as_deref()));
        Ok(Self {
            plan,
            levels: in_order.flatten().unwrap_or_else(|| plan.wait_levels()),
            rank_of,
        })
    }

    /// All of them, level by level.
    fn iter(&self) -> impl Iterator<Item = Move> + '_ {
        self.levels
            .items()
            .iter()
            .map(|&transfer| self.at(transfer))
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

/// Whether another step waits for each step, for runtimes in which a step that is waited for says so.
pub fn awaited(program: &Program) -> Vec<bool> {
    let mut awaited = vec![false; program.len()];
    for step in 0..program.len() as u32 {
        if let Some(target) = program.step(step).dependency {
            awaited[target as usize] = true;
        }
    }
    awaited
}
