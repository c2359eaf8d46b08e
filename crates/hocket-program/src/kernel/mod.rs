//! What a kernel takes that moves data by thread blocks, each of which runs its own steps in order: [`Kernel`].
//!
//! A thread block sends to one peer and receives from one, over a channel. A buffer is divided into chunks, and a
//! chunk that is longer than a slot of the connection is worked through in rounds: every block runs all of its
//! steps on one tile of the chunks, then again on the next tile. A block that waits for data of this round
//! therefore cannot begin the next one, so that channels do not add up as instances do.
//!
//! Copying takes a block a time per byte, one for what it sends and one for what it receives. Blocks that send
//! over one link at the same time share it equally. A connection has few slots: a block that is far ahead waits.
//!
//! # Source
//! Semantics of thread blocks, rounds and slots: the interpreters of MSCCL and RCCL
//! (`msccl_kernel.cu`, `prims_simple.h`, `prims_ll.h`).

mod engine;
mod link;
#[cfg(test)]
mod tests;

use crate::explain::Explain;
use crate::id::fit;
use crate::units::whole;

/// A step of one thread block that another step waits for, in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Which block, by its place in [`Kernel::blocks`].
    pub block: u32,
    /// Which of its steps.
    pub step: u32,
}

/// One step of a thread block: it receives, adds local operands, and sends, or does only some of it, in one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Whether it takes chunks from the connection on which its block receives.
    pub receives: bool,
    /// Whether it puts chunks on the connection on which its block sends.
    pub sends: bool,
    /// How many local operands it reads besides what is received or sent: one for a local copy or a sum.
    pub operands: u32,
    /// How many chunks it works on.
    pub chunks: u32,
    /// What must have been done before, in the same round.
    pub waits: Vec<Dependency>,
}

/// A thread block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The NPU that it runs on.
    pub npu: u32,
    /// The NPU that it sends to.
    pub send: Option<u32>,
    /// The NPU that it receives from.
    pub receive: Option<u32>,
    /// Which connection between two NPUs it uses.
    pub channel: u32,
    /// What it does in each round, in this order.
    pub steps: Vec<Step>,
}

/// Thread blocks that run together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// How many NPUs there are.
    pub npus: u32,
    /// How many times all blocks are there, side by side, on connections of their own.
    pub instances: u32,
    /// The blocks of one instance.
    pub blocks: Vec<Block>,
}

/// What a protocol costs, in microseconds and bytes.
///
/// These are floating-point numbers, as they are fitted to what was measured. There is no rounding to
/// picoseconds here, which would make steps in what a fit must find smooth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Time of a kernel that moves nothing.
    pub fixed: f64,
    /// Time from a part being on its way (or there, see `streams`) to when its receiver works on it.
    pub latency: f64,
    /// Time from a step being done to when those that wait for it see it.
    pub sync: f64,
    /// Time of a block per byte that it sends.
    pub send: f64,
    /// Time of a block per byte that it receives.
    pub receive: f64,
    /// Time of a block per byte and local operand.
    pub operand: f64,
    /// What a link carries per microsecond, of all blocks that send over it.
    pub link: f64,
    /// Bytes of one transfer: what a round moves of a chunk at most.
    pub slot: f64,
    /// How many parts a transfer is passed on in.
    pub parts: u32,
    /// How many parts a connection holds that were not received yet.
    pub in_flight: u32,
    /// Whether a receiver works on a part while it arrives, word by word, rather than when it is there.
    pub streams: bool,
}

/// Why a kernel cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum KernelError {
    /// A block or one of its steps is wrong.
    #[explain(origin("thread block {block}"), why("{why}"))]
    Block {
        /// Which block.
        block: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A cost is no number that can be.
    #[explain(
        field("{name}"),
        why("is out of range"),
        remedy("give what was measured")
    )]
    Cost {
        /// Which.
        name: &'static str,
    },
    /// No block can go on.
    #[explain(
        origin("thread block {block}"),
        why("waits at step {step} for ever, as all others do"),
        remedy("send less before receiving")
    )]
    Stuck {
        /// A block that has not finished.
        block: usize,
        /// The step at which it waits.
        step: usize,
    },
}

/// Parts of a transfer at most.
const MOST_PARTS: u32 = 1 << 10;

/// Rounds that are simulated; more of them follow at the pace of the last half.
pub const ROUNDS: usize = 24;

/// Returns how long a kernel takes with chunks of each of these sizes, in microseconds.
///
/// Chunks of more than [`ROUNDS`] slots take the pace that the last rounds have.
///
/// # Errors
/// If blocks do not fit together, a cost is not valid, or no block can go on.
///
/// # Complexity
/// Steps of all blocks, times [`ROUNDS`], times a logarithm; once for each size within a slot, and once for all others.
pub fn durations(kernel: &Kernel, costs: &Costs, chunks: &[f64]) -> Result<Vec<f64>, KernelError> {
    costs.check()?;
    if !chunks.iter().all(|each| each.is_finite() && *each > 0.0) {
        return Err(KernelError::Cost { name: "chunks" });
    }
    let wires = engine::Wires::new(kernel)?;
    let most = chunks.iter().fold(0.0_f64, |most, &each| most.max(each));
    let long = if most > costs.slot {
        let rounds = fit(whole((most / costs.slot).ceil()).min(ROUNDS as u64));
        engine::ends(kernel, &wires, costs, costs.slot, rounds)?
    } else {
        Vec::new()
    };
    let of = |chunk: f64| {
        if chunk <= costs.slot {
            let ends = engine::ends(kernel, &wires, costs, chunk, 1)?;
            return Ok(costs.fixed + ends[0]);
        }
        Ok(costs.fixed + after(&long, chunk / costs.slot))
    };
    chunks.iter().map(|&chunk| of(chunk)).collect()
}

/// When so many rounds have ended, part of a round and more rounds than were simulated included.
fn after(ends: &[f64], rounds: f64) -> f64 {
    let last = ends.len();
    let whole: usize = fit(whole(rounds));
    if whole < last {
        let (from, to) = (ends[whole - 1], ends[whole]);
        return from + (to - from) * (rounds - whole as f64);
    }
    let half = last / 2;
    let pace = (ends[last - 1] - ends[last - half - 1]) / half.max(1) as f64;
    ends[last - 1] + (rounds - last as f64) * pace
}

impl Costs {
    fn check(&self) -> Result<(), KernelError> {
        let positive = [
            ("send", self.send),
            ("receive", self.receive),
            ("link", self.link),
            ("slot", self.slot),
            ("parts", f64::from(self.parts)),
            ("in_flight", f64::from(self.in_flight)),
        ];
        let natural = [
            ("fixed", self.fixed),
            ("latency", self.latency),
            ("sync", self.sync),
            ("operand", self.operand),
        ];
        if self.parts > MOST_PARTS {
            return Err(KernelError::Cost { name: "parts" });
        }
        let wrong = positive
            .iter()
            .find(|(_, value)| !(value.is_finite() && *value > 0.0));
        let wrong = wrong.or_else(|| {
            natural
                .iter()
                .find(|(_, value)| !(value.is_finite() && *value >= 0.0))
        });
        wrong.map_or(Ok(()), |&(name, _)| Err(KernelError::Cost { name }))
    }
}
