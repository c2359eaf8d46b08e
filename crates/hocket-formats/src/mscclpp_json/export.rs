//! [`Program`] to [`ExecutionPlan`]: each send becomes a put into the receiver's memory.
//!
//! With the protocol Simple the put is followed by a signal. A receiver that is not ready must not be written to. It signals that
//! it is before the first put of each connection, which also says that it has come to this call, and before puts into
//! chunks that its own steps may still use. Sums are put into scratch and added by the receiver.
//!
//! With LL what is put are packets, into scratch of each message's own: whoever reads a packet waits until it is there, so there are no
//! signals. The halves of the scratch take turns from call to call.
//!
//! Steps that wait for other blocks take a semaphore.

use std::fmt::{self, Write};

use hocket_core::collective::CollectiveKind;
use hocket_core::program::{Buffer as Memory, Mode, Program, Ranks};

use super::inbox::{How, Inbox};
use super::rank::RankWriter;
use super::to_program::COLLECTIVES;
use super::{BufferType, ExecutionPlan, rules};

/// Why a program has no plan in this format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It does what the format has no word for.
    #[error("MSCCL++'s JSON cannot express it: {0}")]
    Inexpressible(String),
    /// More operations, channels or buffers of a block than the executor holds.
    #[error("MSCCL++'s executor cannot hold it: {0}")]
    Limit(String),
    /// The text could not be written.
    #[error("the text could not be written")]
    Write(#[from] fmt::Error),
}

/// How messages are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Puts with signals: full bandwidth.
    Simple,
    /// Packets with flags: half the bandwidth, and no signals.
    Ll,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Protocol; 2] = [Protocol::Simple, Protocol::Ll];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Simple => "Simple",
            Protocol::Ll => "LL",
        }
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Steps of the program.
    pub steps: usize,
    /// Most thread blocks of a rank.
    pub blocks: usize,
    /// Channels of the program.
    pub channels: u32,
    /// Most scratch chunks of a rank.
    pub scratch: u32,
}

/// Writes the plan of a program whose steps do not both receive and send, rank by rank, so that a rank is all that is kept of it
/// beside a few bytes for each message. `is_near` says which ranks reach each other's memory; the others are reached through ports.
/// Nothing is written unless the executor can hold all of it.
///
/// # Errors
/// [`Refused`].
pub fn export(
    program: &dyn Ranks,
    protocol: Protocol,
    is_near: &dyn Fn(u32, u32) -> bool,
    out: &mut dyn Write,
) -> Result<Written, Refused> {
    let frame = program.frame();
    let head = head(frame, protocol)?;
    let how = How { protocol, is_near };
    let mut written = Written::default();
    let mut inboxes = Vec::with_capacity(frame.ranks() as usize);
    let mut surely_fits = true;
    for rank in 0..frame.ranks() {
        let part = program.rank(rank);
        let blocks = part.blocks_of(rank);
        inboxes.push(Inbox::of(&part, rank, &how)?);
        let steps = blocks.clone().flat_map(|block| part.steps_of(block));
        let joins = steps.filter(|&step| part.step(step).dependency.is_some());
        // A step has at most seven operations, and one for 16 blocks that wait for it.
        let joins = joins.count().div_ceil(rules::MAX_OP_SEMAPHORES);
        for block in blocks.clone() {
            let steps = part.steps_of(block).len();
            written.steps += steps;
            surely_fits &= 8 * steps + joins <= rules::MAX_OPS;
            let channel = part.blocks()[block as usize].channel;
            written.channels = written.channels.max(channel + 1);
        }
        written.blocks = written.blocks.max(blocks.len());
    }
    written.scratch = inboxes.iter().map(|inbox| inbox.scratch).max().unwrap_or(0);
    for rank in 0..if surely_fits { 0 } else { frame.ranks() } {
        RankWriter::new(&program.rank(rank), rank, &how, &inboxes).check()?;
    }
    let text = super::write(&head)?;
    let (before, after) = text
        .split_once("\"gpus\":[]")
        .ok_or(Refused::Write(fmt::Error))?;
    write!(out, "{before}\"gpus\":[")?;
    for rank in 0..frame.ranks() {
        if rank > 0 {
            out.write_char(',')?;
        }
        RankWriter::new(&program.rank(rank), rank, &how, &inboxes).write(out)?;
    }
    write!(out, "]{after}")?;
    Ok(written)
}

/// The plan of a program, without its ranks.
fn head(program: &Program, protocol: Protocol) -> Result<ExecutionPlan, Refused> {
    let task = program.task();
    let known = COLLECTIVES.iter().find(|(_, kind)| *kind == task.kind);
    let Some(&(collective, _)) = known else {
        let why = format!("it has no name for {}", task.kind);
        return Err(Refused::Inexpressible(why));
    };
    if task.kind != CollectiveKind::Custom && task.kind.is_rooted() && task.root != 0 {
        let why = format!(
            "it has no place for the root, rank {}; make rank 0 the root",
            task.root
        );
        return Err(Refused::Inexpressible(why));
    }
    let limits = program.limits();
    Ok(ExecutionPlan {
        name: program.name().to_owned(),
        collective: collective.to_owned(),
        protocol: protocol.name().to_owned(),
        inplace: program.modes() == [Mode::InPlace],
        reuse_resources: false,
        gpus: Vec::new(),
        num_threads_per_block: super::threads(),
        use_double_scratch_buffer: protocol == Protocol::Ll,
        buffer_alignment: super::alignment(),
        min_message_size: limits.min,
        max_message_size: limits.max,
    })
}

pub(super) fn buffer_type(buffer: Memory) -> BufferType {
    match buffer {
        Memory::Input => BufferType::Input,
        Memory::Output => BufferType::Output,
        Memory::Scratch => BufferType::Scratch,
    }
}
