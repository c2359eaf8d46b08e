//! What a runtime executes: thread blocks with steps, buffers, connections and signals.
//!
//! A [`Plan`](crate::plan::Plan) has transfers and waits. A program says what each thread block of each rank does,
//! in which order, and on which memory:
//!
//! ```text
//! Verified -> lower -> Program -> check -> faults, or none
//!                         |
//!                         +-> interpret -> the arrays at the end
//!                         +-> raise -> transfers, where it is a plan
//!                         +-> words -> what an interpreter on a GPU reads
//! ```
//!
//! A program need not come from a plan. [`check`](check::check) and [`interpret`](interpret::interpret) judge what anybody wrote, and share nothing
//! with [`crate::verify`] but sets of ranks, so that they are a second opinion on lowered plans.
//!
//! # The machine
//! Blocks of a rank run at the same time, each one step after the other. A step may
//!
//! - wait for a step of another block of its rank ([`Step::dependency`]);
//! - send to, and receive from, the one peer that its block has in each direction, over a connection that keeps
//!   the order and holds a limited number of messages ([`Program::in_flight`]);
//! - copy and sum between places, which may lie on other ranks;
//! - signal another rank on a [`Line`], wait for such a signal, meet other blocks of its rank at a barrier, or take and
//!   give a counting semaphore;
//! - write packets, which carry a flag, so that reading one waits until it has been written.
//!
//! A program is called again and again. A rank begins a call when its own blocks have ended the call before, whatever other
//! ranks do; counts of signals and semaphores stay as they are, and packets carry the number of their call.
//!
//! In a program whose steps are not [`synced`](Program::is_synced), only [`Op::Nop`] and [`Op::Barrier`] order the
//! memory accesses of the steps of one block.

mod builder;
pub mod check;
pub mod interpret;
mod compile;
mod decompile;
mod task;
pub mod words;

pub use builder::{NewStep, ProgramBuilder, ProgramError};
pub use compile::{CompileError, CompileOptions, CompiledPlan, awaited, compile, fewest_channels};
pub use decompile::{DecompileError, Decompiled, DecompiledTransfer, decompile};
pub use task::{Contents, Mode, Task};

use std::borrow::Cow;

use strum::{IntoStaticStr, VariantArray};

use crate::graph::Lists;
use crate::id::{fit, narrow};

/// One of the three buffers of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[repr(u8)]
pub enum Buffer {
    /// What the collective gets.
    Input = 0,
    /// What the collective gives.
    Output = 1,
    /// Memory of the program's own, with undefined contents at the start.
    Scratch = 2,
}

impl Buffer {
    /// All buffers, in the order of [`Program::sizes`].
    pub const ALL: &[Buffer] = Self::VARIANTS;

    /// Returns the name in messages.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Consecutive chunks of a buffer of a rank, in eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span(u64);

impl Span {
    /// Most chunks of a buffer.
    pub const MAX_CHUNKS: u32 = 1 << 24;
    /// Most chunks of one span.
    pub const MAX_COUNT: u32 = (1 << 16) - 1;
    /// Most ranks of a program.
    pub const MAX_RANKS: u32 = 1 << 20;
    const OFFSET: u64 = Self::MAX_CHUNKS as u64 - 1;
    const COUNT: u64 = Self::MAX_COUNT as u64;
    const PACKET: u64 = 1 << 62;

    /// Returns the chunks `offset`, ... `offset + count - 1` of a buffer of rank `rank`.
    ///
    /// # Panics
    /// In debug builds, if a part is too large; whoever reads files checks before.
    pub fn new(rank: u32, buffer: Buffer, offset: u32, count: u32) -> Self {
        debug_assert!(rank < Self::MAX_RANKS && offset < Self::MAX_CHUNKS);
        debug_assert!(count <= Self::MAX_COUNT);
        let place = u64::from(offset) | u64::from(rank) << 40 | (buffer as u64) << 60;
        Self(place | u64::from(count) << 24)
    }

    /// Returns the same chunks as packets: a read waits until they have been written.
    pub fn packet(self) -> Self {
        Self(self.0 | Self::PACKET)
    }

    /// Rank whose memory it is.
    pub const fn rank(self) -> u32 {
        (self.0 >> 40) as u32 & (Self::MAX_RANKS - 1)
    }

    /// Returns the buffer.
    pub const fn buffer(self) -> Buffer {
        match self.0 >> 60 & 3 {
            0 => Buffer::Input,
            1 => Buffer::Output,
            _ => Buffer::Scratch,
        }
    }

    /// Returns first chunk.
    pub const fn offset(self) -> u32 {
        (self.0 & Self::OFFSET) as u32
    }

    /// Returns the number of chunks.
    pub const fn count(self) -> u32 {
        (self.0 >> 24 & Self::COUNT) as u32
    }

    /// Returns whether the chunks are packets.
    pub const fn is_packet(self) -> bool {
        self.0 & Self::PACKET != 0
    }
}

impl std::fmt::Debug for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (first, count) = (self.offset(), self.count());
        let name = self.buffer().name();
        let rank = self.rank();
        if count == 1 {
            write!(f, "{name} chunk {first} of rank {rank}")
        } else {
            let last = first + count.saturating_sub(1);
            write!(f, "{name} chunks {first} to {last} of rank {rank}")
        }
    }
}

/// What a step does. "Source" and "target" are its spans; a sum is of all its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[repr(u8)]
pub enum Op {
    /// Nothing: waits for its dependency; orders memory accesses where steps are not synced.
    Nop = 0,
    /// Sends the source to the block's peer.
    Send = 1,
    /// Receives into the target.
    #[strum(serialize = "receive")]
    Recv = 2,
    /// Receives into the target and sends the same on.
    #[strum(serialize = "receive-send")]
    RecvSend = 3,
    /// Adds the source to what it receives, into the target.
    #[strum(serialize = "receive-reduce")]
    RecvReduce = 4,
    /// Adds the source to what it receives and sends the sum on; nothing is stored.
    #[strum(serialize = "receive-reduce-send")]
    RecvReduceSend = 5,
    /// Adds the source to what it receives, into the target, and sends the sum on.
    #[strum(serialize = "receive-reduce-store-send")]
    RecvReduceStoreSend = 6,
    /// Copies each source to the target of the same position.
    Copy = 7,
    /// Sums all sources into every target.
    Reduce = 8,
    /// Signals on each line.
    Signal = 9,
    /// Waits for one more signal on each line.
    Wait = 10,
    /// Waits for the other blocks of the rank that come to the barrier: its number, and how many blocks.
    Barrier = 11,
    /// Waits until each semaphore is above zero, and takes one.
    Acquire = 12,
    /// Gives one to each semaphore.
    Release = 13,
}

impl Op {
    /// Returns the name in messages.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns whether it sends over the block's connection.
    pub const fn sends(self) -> bool {
        matches!(
            self,
            Op::Send | Op::RecvSend | Op::RecvReduceSend | Op::RecvReduceStoreSend
        )
    }

    /// Returns whether it receives over the block's connection.
    pub const fn receives(self) -> bool {
        matches!(
            self,
            Op::Recv | Op::RecvSend | Op::RecvReduce | Op::RecvReduceSend | Op::RecvReduceStoreSend
        )
    }

    /// Returns whether its operands are spans, not numbers of lines, barriers or semaphores.
    pub const fn moves_data(self) -> bool {
        (self as u8) < Op::Signal as u8 && self as u8 != Op::Nop as u8
    }
}

/// A thread block: it runs its steps one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Rank that it belongs to.
    pub rank: u32,
    /// Rank that it sends to.
    pub send: Option<u32>,
    /// Rank that it receives from.
    pub recv: Option<u32>,
    /// Channel of both connections.
    pub channel: u32,
}

/// A one-way line of signals between two ranks, which counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// Rank that signals.
    pub from: u32,
    /// Rank that waits.
    pub to: u32,
}

/// A counting semaphore of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semaphore {
    /// Rank that it belongs to.
    pub rank: u32,
    /// Its count at the start.
    pub initial: u32,
}

/// Sizes in bytes for which a program may be used, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimits {
    /// Smallest size.
    pub min: u64,
    /// Largest size.
    pub max: u64,
}

impl Default for SizeLimits {
    fn default() -> Self {
        Self {
            min: 0,
            max: u64::MAX,
        }
    }
}

/// A program for all ranks of a collective. Made by [`ProgramBuilder`]; 18 bytes a step and 8 a span.
#[derive(Clone, Debug)]
pub struct Program {
    name: String,
    task: Task,
    modes: Vec<Mode>,
    limits: SizeLimits,
    in_flight: Option<u32>,
    synced: bool,
    alternates: bool,
    sizes: Vec<[u32; 3]>,
    blocks: Vec<Block>,
    /// First step of each block; one more than there are blocks.
    starts: Vec<u32>,
    op: Vec<Op>,
    /// How many of the operands are sources.
    sources: Vec<u8>,
    dependency: Vec<u32>,
    operands: Lists<u64>,
    lines: Vec<Line>,
    semaphores: Vec<Semaphore>,
}

/// A program that is given rank by rank, so that not all of it need be in memory at once.
pub trait Ranks {
    /// Returns all but the blocks.
    fn frame(&self) -> &Program;

    /// Returns the program, of which only the blocks of one rank are looked at.
    fn rank(&self, rank: u32) -> Cow<'_, Program>;
}

impl Ranks for Program {
    fn frame(&self) -> &Program {
        self
    }

    fn rank(&self, _rank: u32) -> Cow<'_, Program> {
        Cow::Borrowed(self)
    }
}

/// `dependency` of a step that has none.
const NONE: u32 = u32::MAX;

/// One step, as a view.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// What it does.
    pub op: Op,
    /// Step of the same rank that must have ended before it starts, by its number in the program.
    pub dependency: Option<u32>,
    sources: u8,
    operands: &'a [u64],
}

impl<'a> Step<'a> {
    /// Returns what it reads; none if its operands are no spans.
    pub fn sources(self) -> impl ExactSizeIterator<Item = Span> + Clone + 'a {
        let count = if self.op.moves_data() {
            self.sources as usize
        } else {
            0
        };
        self.operands[..count].iter().map(|&bits| Span(bits))
    }

    /// Returns what it writes; none if its operands are no spans.
    pub fn targets(self) -> impl ExactSizeIterator<Item = Span> + Clone + 'a {
        let first = if self.op.moves_data() {
            self.sources as usize
        } else {
            self.operands.len()
        };
        self.operands[first..].iter().map(|&bits| Span(bits))
    }

    /// Sources and targets.
    pub fn spans(self) -> impl ExactSizeIterator<Item = Span> + Clone + 'a {
        let count = if self.op.moves_data() {
            self.operands.len()
        } else {
            0
        };
        self.operands[..count].iter().map(|&bits| Span(bits))
    }

    /// Returns the numbers of lines, barriers or semaphores; none if it moves data.
    pub fn numbers(self) -> impl ExactSizeIterator<Item = u32> + Clone + 'a {
        let count = if self.op.moves_data() {
            0
        } else {
            self.operands.len()
        };
        self.operands[..count].iter().map(|&number| fit(number))
    }

    /// Returns the number of chunks that it sends, receives, copies or sums: those of its first span; of copies, of all
    /// sources.
    pub fn count(self) -> u32 {
        match self.op {
            Op::Copy => self.sources().map(Span::count).sum(),
            _ => self.spans().next().map_or(0, Span::count),
        }
    }
}

impl Program {
    /// Returns what it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what it is meant to do.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Returns whether it is meant for calls in place, out of place or both.
    pub fn modes(&self) -> &[Mode] {
        &self.modes
    }

    /// For which sizes it may be used.
    pub fn limits(&self) -> SizeLimits {
        self.limits
    }

    /// Returns the number of messages that a connection holds before its sender has to wait; `None` if there is no
    /// limit.
    pub fn in_flight(&self) -> Option<u32> {
        self.in_flight
    }

    /// Returns the same program with connections that hold another number of messages.
    pub fn with_in_flight(mut self, messages: Option<u32>) -> Self {
        self.in_flight = messages;
        self
    }

    /// Returns whether each step of a block has ended, for all threads of the block, before the next starts.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Returns whether two halves of the scratch take turns from call to call; sizes are those of one.
    pub fn alternates(&self) -> bool {
        self.alternates
    }

    /// Returns the chunks of input, output and scratch of each rank.
    pub fn sizes(&self) -> &[[u32; 3]] {
        &self.sizes
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        narrow(self.sizes.len())
    }

    /// Returns the thread blocks, those of a rank next to each other and ranks ascending.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the blocks of a rank, by their numbers.
    pub fn blocks_of(&self, rank: u32) -> std::ops::Range<u32> {
        let first = self.blocks.partition_point(|block| block.rank < rank);
        let last = self.blocks.partition_point(|block| block.rank <= rank);
        narrow(first)..narrow(last)
    }

    /// Returns the steps of a block, by their numbers in the program.
    pub fn steps_of(&self, block: u32) -> std::ops::Range<u32> {
        self.starts[block as usize]..self.starts[block as usize + 1]
    }

    /// Block that a step belongs to.
    pub fn block_of(&self, step: u32) -> u32 {
        narrow(self.starts.partition_point(|&start| start <= step)) - 1
    }

    /// Returns the number of steps in all.
    pub fn len(&self) -> usize {
        self.op.len()
    }

    /// Returns whether it has no step.
    pub fn is_empty(&self) -> bool {
        self.op.is_empty()
    }

    /// One step, by its number in the program.
    #[inline]
    pub fn step(&self, step: u32) -> Step<'_> {
        let i = step as usize;
        Step {
            op: self.op[i],
            dependency: (self.dependency[i] != NONE).then_some(self.dependency[i]),
            sources: self.sources[i],
            operands: self.operands.get(i),
        }
    }

    /// Returns the lines of signals.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the semaphores.
    pub fn semaphores(&self) -> &[Semaphore] {
        &self.semaphores
    }

    /// Memory that the columns take, in bytes.
    pub fn memory(&self) -> usize {
        let (steps, operands) = (self.op.len(), self.operands.items().len());
        let blocks = self.blocks.len() * (size_of::<Block>() + 4);
        steps * (1 + 1 + 4 + 4) + operands * 8 + blocks + self.sizes.len() * 12
    }
}
