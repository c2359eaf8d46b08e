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

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};

use hocket_core::collective::CollectiveKind;
use hocket_core::program::{Buffer as Memory, Mode, Op as StepOp, Program, Span};

use super::to_program::COLLECTIVES;
use super::writer::Writer;
use super::{
    BufferType, ChannelType, Channels, ExecutionPlan, Gpu, RemoteBuffer, Semaphore, Threadblock,
    rules,
};

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

/// A connection of the program: who sends to whom on which channel.
type Ends = (u32, u32, u32);

/// How one message is passed on.
#[derive(Clone, Copy)]
struct Pass {
    /// Whether the receiver says first that it is ready.
    ready: bool,
    /// Where it is put.
    to: Span,
}

struct Exporter<'a> {
    program: &'a Program,
    protocol: Protocol,
    is_near: &'a dyn Fn(u32, u32) -> bool,
    /// How the message that each step sends or receives is passed on.
    passes: Vec<Option<Pass>>,
    /// Channels of each rank, sorted: by type and peer.
    channels: Vec<Vec<(ChannelType, u32, Ends)>>,
    /// Memory of others that each rank writes to, sorted.
    remote: Vec<Vec<(u32, BufferType)>>,
    scratch: Vec<u32>,
    /// Semaphores of each rank: block that gives and block that takes.
    semaphores: Vec<BTreeMap<(u32, u32), u32>>,
    /// Blocks that wait for each step.
    waiting: HashMap<u32, Vec<u32>>,
}

/// Writes the plan of a program whose steps do not both receive and send, rank by rank, and gives the most scratch chunks of a
/// rank. `is_near` says which ranks reach each other's memory; the others are reached through ports. Nothing is written
/// unless the executor can hold all of it.
///
/// # Errors
/// [`Refused`].
pub fn export(
    program: &Program,
    protocol: Protocol,
    is_near: &dyn Fn(u32, u32) -> bool,
    out: &mut dyn Write,
) -> Result<u32, Refused> {
    let head = head(program, protocol)?;
    let mut exporter = Exporter::new(program, protocol, is_near);
    exporter.connect()?;
    exporter.join();
    for block in 0..program.blocks().len() as u32 {
        exporter.check_block(block)?;
    }
    let text = super::write(&head)?;
    let (before, after) = text
        .split_once("\"gpus\":[]")
        .ok_or(Refused::Write(fmt::Error))?;
    write!(out, "{before}\"gpus\":[")?;
    for rank in 0..program.ranks() {
        if rank > 0 {
            out.write_char(',')?;
        }
        let gpu = serde_json::to_string(&exporter.gpu(rank));
        out.write_str(&gpu.map_err(|_| fmt::Error)?)?;
    }
    write!(out, "]{after}")?;
    Ok(exporter.scratch.iter().copied().max().unwrap_or(0))
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

impl<'a> Exporter<'a> {
    fn new(
        program: &'a Program,
        protocol: Protocol,
        is_near: &'a dyn Fn(u32, u32) -> bool,
    ) -> Self {
        let ranks = program.ranks() as usize;
        let sizes = program.sizes().iter();
        Self {
            program,
            protocol,
            is_near,
            passes: vec![None; program.len()],
            channels: vec![Vec::new(); ranks],
            remote: vec![Vec::new(); ranks],
            scratch: sizes.map(|sizes| sizes[Memory::Scratch as usize]).collect(),
            semaphores: vec![BTreeMap::new(); ranks],
            waiting: HashMap::new(),
        }
    }

    fn kind(&self, a: u32, b: u32) -> ChannelType {
        if (self.is_near)(a, b) {
            ChannelType::Memory
        } else {
            ChannelType::Port
        }
    }

    /// Pairs sends with receives, and says how each message is passed on.
    fn connect(&mut self) -> Result<(), Refused> {
        let program = self.program;
        let mut sends: Vec<(Ends, u32)> = Vec::new();
        let mut receives: Vec<(Ends, u32)> = Vec::new();
        for (number, block) in program.blocks().iter().enumerate() {
            for step in program.steps_of(number as u32) {
                let op = program.step(step).op;
                if op.sends() && op.receives() {
                    let why = format!("a step is a {}; lower it without fused steps", op.name());
                    return Err(Refused::Inexpressible(why));
                }
                match (op.sends(), op.receives(), block.send, block.recv) {
                    (true, _, Some(peer), _) => {
                        sends.push(((block.rank, peer, block.channel), step));
                    }
                    (_, true, _, Some(peer)) => {
                        receives.push(((peer, block.rank, block.channel), step));
                    }
                    _ => {}
                }
            }
        }
        sends.sort_unstable();
        receives.sort_unstable();
        let written = self.write_counts();
        let mut all = sends.iter().zip(&receives).peekable();
        while let Some(&(&(key, _), _)) = all.peek() {
            let messages = std::iter::from_fn(|| all.next_if(|((ends, _), _)| *ends == key));
            let messages: Vec<(u32, u32)> = messages.map(|(send, recv)| (send.1, recv.1)).collect();
            let (from, to, _) = key;
            let kind = self.kind(from, to);
            if self.protocol == Protocol::Ll && kind == ChannelType::Port {
                let why = format!(
                    "packets go to memory of the same node, and ranks {from} and {to} are on two; write it with protocol Simple"
                );
                return Err(Refused::Inexpressible(why));
            }
            for (rank, peer) in [(from, to), (to, from)] {
                self.channels[rank as usize].push((kind, peer, key));
            }
            self.pass(key, &messages, &written);
        }
        for rank in 0..program.ranks() as usize {
            self.channels[rank].sort_unstable();
            self.remote[rank].sort_unstable();
            self.remote[rank].dedup();
        }
        Ok(())
    }

    /// How often each chunk of each rank's buffers is written; 255 stands for more.
    fn write_counts(&self) -> Vec<[Vec<u8>; 3]> {
        let sizes = self.program.sizes().iter();
        let mut counts: Vec<[Vec<u8>; 3]> = sizes
            .map(|sizes| sizes.map(|size| vec![0; size as usize]))
            .collect();
        for step in 0..self.program.len() as u32 {
            for span in self.program.step(step).targets() {
                let first = span.offset() as usize;
                let buffer = &mut counts[span.rank() as usize][span.buffer() as usize];
                for count in &mut buffer[first..first + span.count() as usize] {
                    *count = count.saturating_add(1);
                }
            }
        }
        counts
    }

    fn pass(&mut self, (from, to, _): Ends, messages: &[(u32, u32)], written: &[[Vec<u8>; 3]]) {
        let program = self.program;
        let is_sum = |receive: u32| program.step(receive).op == StepOp::RecvReduce;
        let slot = self.scratch[to as usize];
        if self.protocol == Protocol::Simple {
            let sums = messages.iter().filter(|message| is_sum(message.1));
            let counts = sums.map(|message| program.step(message.1).count());
            self.scratch[to as usize] += counts.max().unwrap_or(0);
        }
        for (i, &(send, receive)) in messages.iter().enumerate() {
            let mut targets = program.step(receive).targets();
            let target = targets.next().expect("it receives into something");
            let pass = if self.protocol == Protocol::Ll {
                let own = &mut self.scratch[to as usize];
                let at = *own;
                *own += target.count();
                let to = Span::new(to, Memory::Scratch, at, target.count());
                Pass { ready: false, to }
            } else if is_sum(receive) {
                let to = Span::new(to, Memory::Scratch, slot, target.count());
                Pass { ready: true, to }
            } else {
                let counts = &written[to as usize][target.buffer() as usize];
                let is_fresh = |chunk: u32| {
                    counts[chunk as usize] == 1 && !self.starts_filled(to, target.buffer(), chunk)
                };
                let mut chunks = target.offset()..target.offset() + target.count();
                let ready = i == 0 || !chunks.all(is_fresh);
                Pass { ready, to: target }
            };
            self.passes[send as usize] = Some(pass);
            self.passes[receive as usize] = Some(pass);
            let buffer = (to, buffer_type(pass.to.buffer()));
            let remote = &mut self.remote[from as usize];
            if remote.last() != Some(&buffer) {
                remote.push(buffer);
            }
        }
    }

    /// Whether a chunk holds data before the first step.
    fn starts_filled(&self, rank: u32, buffer: Memory, chunk: u32) -> bool {
        let task = self.program.task();
        let in_place = self.program.modes().contains(&Mode::InPlace);
        match (buffer, task.kind) {
            (Memory::Input, _) => true,
            (Memory::Scratch, _) => false,
            (Memory::Output, _) if !in_place => false,
            (Memory::Output, CollectiveKind::AllGather | CollectiveKind::Gather) => {
                chunk / task.part() == rank
            }
            (Memory::Output, _) => chunk < task.input(rank),
        }
    }

    /// Finds who waits for whom within ranks.
    fn join(&mut self) {
        for block in 0..self.program.blocks().len() as u32 {
            let rank = self.program.blocks()[block as usize].rank as usize;
            for step in self.program.steps_of(block) {
                let Some(target) = self.program.step(step).dependency else {
                    continue;
                };
                let giver = self.program.block_of(target);
                let next = self.semaphores[rank].len() as u32;
                self.semaphores[rank].entry((giver, block)).or_insert(next);
                self.waiting.entry(target).or_default().push(block);
            }
        }
    }

    fn gpu(&self, rank: u32) -> Gpu {
        let blocks = self.program.blocks_of(rank);
        let first = blocks.start;
        let threadblocks = blocks.map(|block| self.block(block, block - first));
        let all = &self.channels[rank as usize];
        let channels = [ChannelType::Memory, ChannelType::Port]
            .into_iter()
            .filter_map(|kind| {
                let own = all.iter().filter(|key| key.0 == kind);
                let peers: Vec<u32> = own.map(|key| key.1).collect();
                (!peers.is_empty()).then_some(Channels {
                    channel_type: kind,
                    connected_to: Some(peers),
                    buffer_type: None,
                    rank_groups: None,
                })
            });
        let remote = self.remote[rank as usize].iter();
        let remote = remote.map(|&(peer, buffer)| RemoteBuffer {
            rank: peer,
            r#type: buffer,
            access_channel_types: vec![self.kind(rank, peer)],
        });
        let task = self.program.task();
        let sizes = self.program.sizes()[rank as usize];
        // The executor divides by these: a buffer that a rank does not use has the size of the others'.
        let or_all = |size: u32| if size == 0 { task.chunks } else { size };
        Gpu {
            id: rank,
            input_chunks: or_all(sizes[Memory::Input as usize]),
            output_chunks: or_all(sizes[Memory::Output as usize]),
            scratch_chunks: self.scratch[rank as usize],
            threadblocks: threadblocks.collect(),
            channels: channels.collect(),
            remote_buffers: remote.collect(),
            semaphores: vec![Semaphore { init_value: 0 }; self.semaphores[rank as usize].len()],
        }
    }

    fn check_block(&self, block: u32) -> Result<(), Refused> {
        let mut writer = Writer::new(false);
        self.steps(block, &mut writer);
        let (count, most) = (writer.count(), rules::MAX_OPS);
        if count <= most {
            return Ok(());
        }
        let rank = self.program.blocks()[block as usize].rank;
        let id = block - self.program.blocks_of(rank).start;
        Err(Refused::Limit(format!(
            "block {id} of rank {rank} has {count} operations, and the most is {most}; spread it over more channels, or use fewer chunks"
        )))
    }

    fn block(&self, block: u32, id: u32) -> Threadblock {
        let mut writer = Writer::new(true);
        self.steps(block, &mut writer);
        writer.finish(id)
    }

    fn steps(&self, block: u32, writer: &mut Writer) {
        for step in self.program.steps_of(block) {
            self.step(block, step, writer);
        }
    }

    /// Type and number of the channel of a connection at one of its ends.
    fn channel(&self, rank: u32, peer: u32, ends: Ends) -> (ChannelType, u32) {
        let kind = self.kind(rank, peer);
        let all = &self.channels[rank as usize];
        let first = all.partition_point(|key| key.0 < kind);
        let own = all.partition_point(|key| *key < (kind, peer, ends));
        (kind, (own - first) as u32)
    }

    fn step(&self, block: u32, step: u32, writer: &mut Writer) {
        let view = self.program.step(step);
        let own = self.program.blocks()[block as usize];
        let rank = own.rank;
        let semaphores = &self.semaphores[rank as usize];
        if let Some(target) = view.dependency {
            let giver = self.program.block_of(target);
            writer.semaphores("sem_acquire", &[semaphores[&(giver, block)]]);
        }
        match view.op {
            StepOp::Send => {
                let peer = own.send.expect("it sends");
                let pass = self.passes[step as usize].expect("it was paired");
                let (kind, channel) = self.channel(rank, peer, (rank, peer, own.channel));
                writer.sync();
                if pass.ready {
                    writer.signal("wait", kind, channel);
                    writer.sync();
                }
                let memory = (peer, buffer_type(pass.to.buffer()));
                let remote = self.remote[rank as usize].partition_point(|each| *each < memory);
                let name = match (self.protocol, kind) {
                    (Protocol::Ll, _) => "ppkt",
                    (_, ChannelType::Port) => "pwsf",
                    _ => "pws",
                };
                writer.put(
                    name,
                    (kind, channel, remote as u32),
                    view.sources(),
                    pass.to,
                );
            }
            StepOp::Recv | StepOp::RecvReduce => {
                let pass = self.passes[step as usize].expect("it was paired");
                if self.protocol == Protocol::Ll {
                    let packets = view.sources().chain([pass.to]);
                    writer.sync();
                    let name = if view.op == StepOp::Recv {
                        "upkt"
                    } else {
                        "repkt"
                    };
                    writer.data(name, packets, view.targets());
                } else {
                    let peer = own.recv.expect("it receives");
                    let (kind, channel) = self.channel(rank, peer, (peer, rank, own.channel));
                    if pass.ready {
                        writer.sync();
                        writer.signal("signal", kind, channel);
                    }
                    writer.signal("wait", kind, channel);
                    if view.op == StepOp::RecvReduce {
                        writer.sync();
                        writer.data("re", view.sources().chain([pass.to]), view.targets());
                    }
                }
            }
            StepOp::Copy => {
                writer.sync();
                writer.data("copy", view.sources(), view.targets());
            }
            StepOp::Reduce => {
                writer.sync();
                writer.data("re", view.sources(), view.targets());
            }
            _ => {}
        }
        if let Some(takers) = self.waiting.get(&step) {
            writer.sync();
            let numbers = takers.iter().map(|&taker| semaphores[&(block, taker)]);
            writer.semaphores("sem_release", &numbers.collect::<Vec<_>>());
        }
    }
}
