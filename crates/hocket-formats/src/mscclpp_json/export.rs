//! [`Program`] to [`ExecutionPlan`]: each send becomes a put into the receiver's memory.
//!
//! With the protocol Simple the put is followed by a signal. A receiver that is not ready must not be written to. It signals that
//! it is before the first put of each connection, which also says that it has come to this call, and before puts into
//! chunks that its own steps may still use. Sums are put into scratch and added by the receiver.
//!
//! With LL what is put are packets, into scratch of each message's own: whoever reads a packet waits until it is there, so there are no
//! signals. The halves of the scratch take turns from call to call, which is enough where a rank's call ends only after all ranks'
//! calls have begun: whoever writes a half anew knows that all have read it. Broadcasts and reduces are refused.
//!
//! Steps that wait for other blocks take a semaphore.
//!
//! A plan of many equal slices is written as the program of [one of them](first_slice), each step of which is a pipeline: it
//! goes through its chunk slice by slice. That is the order in which the steps of all slices would stand, level by level.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::sync::Arc;

use hocket_base::explain::Explain;
use hocket_base::progress::Silent;
use hocket_plan::collective::CollectiveKind;
use hocket_plan::plan::Plan;
use hocket_plan::verify::{Verified, verify};
use hocket_program::program::{Buffer as Memory, Mode, Program, Ranks, SizeLimits, Task};
use rustc_hash::FxHashMap;
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::inbox::{How, Inbox};
use super::rank::RankWriter;
use super::to_program::COLLECTIVES;
use super::{BufferType, ChannelType, ExecutionPlan, limits};

/// Why a program has no plan in this format.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum Refused {
    /// It does what the format has no word for.
    #[explain(why("MSCCL++'s JSON cannot express it: {_0}"))]
    Inexpressible(String),
    /// More operations of a block than the executor holds.
    #[explain(
        why(
            "MSCCL++'s executor cannot hold it: block {block} of rank {rank} has {count} operations, and the most is {most}"
        ),
        remedy("make a plan that fits by --runtime mscclpp")
    )]
    Operations {
        /// The rank.
        rank: u32,
        /// The block.
        block: u32,
        /// Operations of the block.
        count: usize,
        /// The most.
        most: usize,
    },
    /// More thread blocks of a rank than every GPU runs at once.
    #[explain(why("a rank would have {count} thread blocks, and the most is {most}"))]
    Blocks {
        /// Blocks of the rank.
        count: usize,
        /// The most.
        most: usize,
    },
    /// More ranks or bytes than the executor holds.
    #[explain(why("MSCCL++'s executor cannot hold it: {_0}"))]
    Limit(String),
    /// The text could not be written.
    #[explain(from, why("the text could not be written"))]
    Write(fmt::Error),
}

/// How messages are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
pub enum Protocol {
    /// Puts with signals: full bandwidth.
    Simple,
    /// Packets with flags: half the bandwidth, and no signals.
    #[strum(serialize = "LL")]
    Ll,
}

impl Protocol {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What was written, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Chunks of the whole vector.
    pub chunks: u32,
    /// Steps of the program.
    pub steps: usize,
    /// Most operations of a thread block.
    pub operations: usize,
    /// Most thread blocks of a rank.
    pub blocks: usize,
    /// Channels of the program.
    pub channels: u32,
    /// Most scratch chunks of a rank.
    pub scratch: u32,
    /// Whether some channels are ports.
    pub has_ports: bool,
    /// Whether ranks' own data go through the switch, where the plan leaves them out.
    pub adds_own: bool,
    /// Whether a channel of a switch binds the output.
    pub binds_output: bool,
    /// Bytes of a round of its pipelines, if it has pipelines.
    pub unit: Option<u64>,
}

impl Written {
    /// Refuses more thread blocks of a rank than the most.
    ///
    /// # Errors
    /// [`Refused::Blocks`].
    pub fn check(&self, most: usize) -> Result<(), Refused> {
        let count = self.blocks;
        let refused = Refused::Blocks { count, most };
        if count > most { Err(refused) } else { Ok(()) }
    }
}

/// The most that a file may take.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Operations of a thread block; the executor holds [`MAX_OPS`](limits::MAX_OPS).
    pub operations: usize,
    /// Thread blocks of a rank; every GPU runs [`MAX_BLOCKS`](limits::MAX_BLOCKS) at once.
    pub blocks: usize,
}

/// Returns the plan of the first of a plan's equal slices, proved, and how many slices there are.
pub fn first_slice(verified: &Verified) -> Option<(Verified, u32)> {
    let (first, slices) = verified.plan().first_of_equal_slices()?;
    Some((proved(first, verified)?, slices))
}

/// Returns the plan with fewer equal slices, so that its chunks have at least so many bytes on average, proved; `None` if they
/// have, or no slices are equal.
pub fn with_chunks_of(verified: &Verified, least: u64) -> Option<Verified> {
    proved(verified.plan().with_chunks_of(least)?, verified)
}

fn proved(plan: Plan, like: &Verified) -> Option<Verified> {
    let topology = Arc::clone(like.topology());
    verify(Arc::new(plan), topology, &mut Silent).ok()
}

/// Returns the bytes of a round, for the program of the first of so many equal slices.
pub fn unit_of(first: &Verified, program: &dyn Ranks, slices: u32) -> u64 {
    let task = program.frame().task();
    let chunks = first.plan().chunks();
    let own = (0..)
        .zip(chunks.demand())
        .filter(|(_, demand)| **demand == 0);
    let bytes: u64 = own.map(|(chunk, _)| chunks.bytes_of(chunk, 1)).sum();
    let is_whole = matches!(
        task.kind,
        CollectiveKind::AllReduce | CollectiveKind::Broadcast | CollectiveKind::Reduce
    );
    let parts = if is_whole { task.chunks } else { task.part() };
    let unit = bytes.div_ceil(u64::from(parts) * u64::from(slices));
    unit.next_multiple_of(u64::from(super::alignment()))
}

/// Writes the plan of a program whose steps do not both receive and send, rank by rank, so that a rank is all that is kept of it
/// beside a few bytes for each message. Nothing is written if it takes more than there is room for.
///
/// Steps of pipelines have one chunk each.
///
/// # Errors
/// [`Refused`].
pub fn export(
    program: &dyn Ranks,
    how: &How<'_>,
    room: Room,
    out: &mut dyn Write,
) -> Result<Written, Refused> {
    let Survey {
        head,
        inboxes,
        mut written,
        fits_in,
    } = Survey::of(program, how)?;
    let most = room.operations;
    let ranks = program.frame().ranks();
    for rank in 0..if fits_in <= most { 0 } else { ranks } {
        RankWriter::new(&program.rank(rank), rank, how, &inboxes).check(most)?;
    }
    written.check(room.blocks)?;
    let text = super::write(&head)?;
    let (before, after) = text
        .split_once("\"gpus\":[]")
        .ok_or(Refused::Write(fmt::Error))?;
    write!(out, "{before}\"gpus\":[")?;
    for rank in 0..ranks {
        if rank > 0 {
            out.write_char(',')?;
        }
        let operations = RankWriter::new(&program.rank(rank), rank, how, &inboxes).write(out)?;
        written.operations = written.operations.max(operations);
    }
    write!(out, "]{after}")?;
    Ok(written)
}

/// Counts what [`export`] would write, even if the executor cannot hold as many operations. It keeps all ranks.
///
/// # Errors
/// [`Refused`] for what no other number of channels mends.
pub fn need(program: &dyn Ranks, how: &How<'_>) -> Result<Written, Refused> {
    let ranks = 0..program.frame().ranks();
    let kept = Kept {
        frame: program.frame(),
        ranks: ranks.clone().map(|rank| program.rank(rank)).collect(),
    };
    let survey = Survey::of(&kept, how)?;
    let mut written = survey.written;
    for (rank, part) in ranks.zip(&kept.ranks) {
        let (_, most) = RankWriter::new(part, rank, how, &survey.inboxes).busiest();
        written.operations = written.operations.max(most);
    }
    Ok(written)
}

/// A program whose ranks are all in memory, so that none is made twice.
struct Kept<'a> {
    frame: &'a Program,
    ranks: Vec<Cow<'a, Program>>,
}

impl Ranks for Kept<'_> {
    fn frame(&self) -> &Program {
        self.frame
    }

    fn rank(&self, rank: u32) -> Cow<'_, Program> {
        Cow::Borrowed(&self.ranks[rank as usize])
    }
}

/// Returns what the program of a plan over so many channels takes at least, far sooner than it can be made: operations of a
/// thread block and thread blocks of a rank. All else is left out.
///
/// A message is a step at both ends at least. Over memory with Simple, its sender puts, waits for its threads and signals; who
/// sums waits for the message, then for its threads, and sums.
pub fn least(plan: &Plan, how: &How<'_>, channels: u32, channel_of: Option<&[u32]>) -> Written {
    let ranks: FxHashMap<u32, u32> = (0..)
        .zip(plan.collective().npus())
        .map(|(rank, npu)| (npu.0, rank))
        .collect();
    let mut blocks = vec![0; ranks.len()];
    let mut connections: FxHashMap<(u32, u32, u32), usize> = FxHashMap::default();
    for i in 0..plan.len() {
        let ends = [plan.src()[i], plan.dst()[i]].map(|device| ranks.get(&device).copied());
        let [Some(src), Some(dst)] = ends else {
            continue; // It is refused.
        };
        let channel = channel_of.map_or(plan.chunk()[i] % channels, |channels| channels[i]);
        let is_told = how.kind(src, dst) == ChannelType::Memory || plan.op()[i] != 0;
        let step = if is_told && how.protocol == Protocol::Simple {
            3
        } else {
            1
        };
        let pipeline = usize::from(how.unit.is_some());
        let operations = connections.entry((src, dst, channel)).or_insert_with(|| {
            blocks[src as usize] += 1;
            blocks[dst as usize] += 1;
            0
        });
        *operations += step + pipeline;
    }
    Written {
        operations: connections.into_values().max().unwrap_or(0),
        blocks: blocks.into_iter().max().unwrap_or(0),
        ..Written::default()
    }
}

/// What is known of a program before its operations are counted or written.
struct Survey {
    head: ExecutionPlan,
    inboxes: Vec<Inbox>,
    /// Without operations.
    written: Written,
    /// What no block has more operations than, by the number of its steps alone.
    fits_in: usize,
}

impl Survey {
    fn of(program: &dyn Ranks, how: &How<'_>) -> Result<Self, Refused> {
        let frame = program.frame();
        let mut head = Head::of(frame).plan(how.protocol)?;
        let mut hash = Fnv::default();
        let mut written = Written {
            unit: how.unit,
            chunks: frame.task().chunks,
            ..Written::default()
        };
        let mut inboxes = Vec::with_capacity(frame.ranks() as usize);
        let mut fits_in = 0;
        for rank in 0..frame.ranks() {
            let part = program.rank(rank);
            let blocks = part.blocks_of(rank);
            inboxes.push(Inbox::of(&part, rank, how)?);
            hash.rank(&part, rank, how);
            let steps = blocks.clone().flat_map(|block| part.steps_of(block));
            let joins = steps.filter(|&step| part.step(step).dependency.is_some());
            // A step has at most eight operations with its pipeline, and one for 16 blocks that wait for it.
            let joins = joins.count().div_ceil(limits::MAX_OP_SEMAPHORES);
            for block in blocks.clone() {
                let spans = part
                    .steps_of(block)
                    .map(|step| part.step(step).spans().count());
                // Each part of a message has one more at most.
                let parts: usize = spans.map(|spans| spans.saturating_sub(2)).sum();
                let steps = part.steps_of(block).len();
                written.steps += steps;
                fits_in = fits_in.max(9 * steps + parts + joins + 1);
                let own = part.blocks()[block as usize];
                written.channels = written.channels.max(own.channel + 1);
                let mut peers = own.send.into_iter().chain(own.recv);
                written.has_ports |= peers.any(|peer| how.kind(rank, peer) == ChannelType::Port);
            }
            written.blocks = written.blocks.max(blocks.len());
        }
        written.scratch = inboxes.iter().map(|inbox| inbox.scratch).max().unwrap_or(0);
        if how.protocol == Protocol::Ll {
            // Where the second half of another rank's scratch starts, the executor takes from its own.
            inboxes
                .iter_mut()
                .for_each(|inbox| inbox.scratch = written.scratch);
        }
        limit_sizes(&mut head, frame.task().chunks, written.scratch, how.unit)?;
        // The executor keeps what it has set up under the name and the buffers, and would take one plan for another.
        hash.head(&head, frame.task());
        head.name = format!("{}-{:016x}", head.name, hash.0);
        Ok(Self {
            head,
            inboxes,
            written,
            fits_in,
        })
    }
}

/// What the file of a plan says of all ranks.
pub(super) struct Head<'a> {
    pub(super) name: &'a str,
    pub(super) task: &'a Task,
    pub(super) in_place: bool,
    pub(super) limits: SizeLimits,
}

impl<'a> Head<'a> {
    fn of(frame: &'a Program) -> Self {
        Self {
            name: frame.name(),
            task: frame.task(),
            in_place: frame.modes() == [Mode::InPlace],
            limits: frame.limits(),
        }
    }

    /// Returns the plan without its ranks.
    pub(super) fn plan(&self, protocol: Protocol) -> Result<ExecutionPlan, Refused> {
        let task = self.task;
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
        if protocol == Protocol::Ll
            && matches!(
                task.kind,
                CollectiveKind::Broadcast | CollectiveKind::Reduce
            )
        {
            let why = format!(
                "packets of a later {} could overwrite those that a rank has not read yet, since not all ranks wait for all; write it with protocol Simple",
                task.kind
            );
            return Err(Refused::Inexpressible(why));
        }
        Ok(ExecutionPlan {
            name: self.name.to_owned(),
            collective: collective.to_owned(),
            protocol: protocol.name().to_owned(),
            inplace: self.in_place,
            reuse_resources: false,
            gpus: Vec::new(),
            num_threads_per_block: super::threads(),
            use_double_scratch_buffer: protocol == Protocol::Ll,
            buffer_alignment: super::alignment(),
            min_message_size: self.limits.min,
            max_message_size: self.limits.max,
            ignored: Vec::new(),
        })
    }
}

/// Limits the sizes of a plan that has its ranks, and names it by what is in it.
pub(super) fn finish(head: &mut ExecutionPlan, task: &Task, scratch: u32) -> Result<(), Refused> {
    limit_sizes(head, task.chunks, scratch, None)?;
    let mut hash = Fnv::default();
    for byte in serde_json::to_string(&head.gpus)
        .map_err(|_| fmt::Error)?
        .bytes()
    {
        hash.add(u64::from(byte));
    }
    hash.head(head, task);
    head.name = format!("{}-{:016x}", head.name, hash.0);
    Ok(())
}

/// Returns what a plan was called before its hash was added, if it has one.
pub(super) fn plain_name(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((plain, hash))
            if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            plain
        }
        _ => name,
    }
}

/// Keeps messages below the sizes whose bytes the executor counts in 32 bits: those of a buffer, and with LL those of two halves of
/// packets, each twice as large as what is in it. It counts the rounds of a pipeline in 16.
fn limit_sizes(
    head: &mut ExecutionPlan,
    chunks: u32,
    scratch: u32,
    unit: Option<u64>,
) -> Result<(), Refused> {
    let copies = if head.protocol == Protocol::Ll.name() {
        4
    } else {
        1
    };
    let longest = u64::from(chunks).max(u64::from(scratch) * copies).max(1);
    let most_rounds = unit.map_or(u64::MAX, |unit| unit.saturating_mul(u64::from(u16::MAX)));
    let most = (u64::from(u32::MAX) / longest).min(most_rounds) * u64::from(chunks);
    if head.max_message_size == u64::MAX {
        head.max_message_size = most.max(head.min_message_size);
    }
    if head.max_message_size > most {
        return Err(Refused::Limit(format!(
            "it counts bytes in 32 bits and rounds in 16, which is enough for messages of {most} bytes with this plan"
        )));
    }
    Ok(())
}

/// Fowler, Noll and Vo's hash, of 64 bits.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn head(&mut self, head: &ExecutionPlan, task: &Task) {
        for byte in head.collective.bytes() {
            self.add(u64::from(byte));
        }
        self.add(u64::from(task.chunks));
        self.add(u64::from(head.inplace));
        self.add(head.min_message_size);
        self.add(head.max_message_size);
    }

    /// All that the text of a rank depends on.
    fn rank(&mut self, part: &Program, rank: u32, how: &How<'_>) {
        self.add(how.protocol as u64);
        self.add(how.unit.unwrap_or(0));
        for size in part.sizes()[rank as usize] {
            self.add(u64::from(size));
        }
        let blocks = part.blocks_of(rank);
        let first = blocks
            .clone()
            .next()
            .map_or(0, |block| part.steps_of(block).start);
        for number in blocks {
            let block = part.blocks()[number as usize];
            for peer in [block.send, block.recv] {
                self.add(peer.map_or(u64::MAX, u64::from));
                self.add(peer.map_or(u64::MAX, |peer| how.kind(rank, peer) as u64));
            }
            self.add(u64::from(block.channel));
            for step in part.steps_of(number) {
                let view = part.step(step);
                self.add(view.op as u64);
                self.add(
                    view.dependency
                        .map_or(u64::MAX, |step| u64::from(step - first)),
                );
                for span in view.spans() {
                    for part in [span.buffer() as u32, span.offset(), span.count()] {
                        self.add(u64::from(part));
                    }
                }
            }
        }
    }
}

pub(super) fn buffer_type(buffer: Memory) -> BufferType {
    match buffer {
        Memory::Input => BufferType::Input,
        Memory::Output => BufferType::Output,
        Memory::Scratch => BufferType::Scratch,
    }
}
