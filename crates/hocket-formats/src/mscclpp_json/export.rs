//! [`Program`] to [`ExecutionPlan`]: each send becomes a put into the receiver's memory with a signal.
//!
//! A receiver that is not ready must not be written to. It signals that it is before the first put of each connection,
//! which also says that it has come to this call, and before puts into chunks that its own steps may still use.
//! Sums are put into scratch and added by the receiver. Steps that wait for other blocks take a semaphore.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hocket_core::collective::CollectiveKind;
use hocket_core::program::{Buffer as Memory, Mode, Op as StepOp, Program, Span};

use super::to_program::COLLECTIVES;
use super::{
    Buffer, BufferRefs, BufferType, ChannelRefs, ChannelType, Channels, ExecutionPlan, Gpu, Op,
    RemoteBuffer, Semaphore, Threadblock, rules,
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
    is_near: &'a dyn Fn(u32, u32) -> bool,
    /// How the message that each step sends or receives is passed on.
    passes: HashMap<u32, Pass>,
    /// Connections of each rank, in the order of its channels.
    channels: Vec<BTreeMap<(ChannelType, u32, Ends), u32>>,
    remote: Vec<BTreeMap<(u32, BufferType), BTreeSet<ChannelType>>>,
    scratch: Vec<u32>,
    /// Semaphores of each rank: block that gives and block that takes.
    semaphores: Vec<BTreeMap<(u32, u32), u32>>,
    /// Blocks that wait for each step.
    waiting: HashMap<u32, Vec<u32>>,
}

/// The plan of a program whose steps do not both receive and send. `is_near` says which ranks reach each other's memory; the
/// others are reached through ports.
///
/// # Errors
/// [`Refused`].
pub fn export(
    program: &Program,
    is_near: &dyn Fn(u32, u32) -> bool,
) -> Result<ExecutionPlan, Refused> {
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
    let ranks = program.ranks() as usize;
    let mut exporter = Exporter {
        program,
        is_near,
        passes: HashMap::new(),
        channels: vec![BTreeMap::new(); ranks],
        remote: vec![BTreeMap::new(); ranks],
        scratch: program
            .sizes()
            .iter()
            .map(|sizes| sizes[Memory::Scratch as usize])
            .collect(),
        semaphores: vec![BTreeMap::new(); ranks],
        waiting: HashMap::new(),
    };
    exporter.connect()?;
    exporter.join();
    let gpus = (0..program.ranks()).map(|rank| exporter.gpu(rank));
    let limits = program.limits();
    Ok(ExecutionPlan {
        name: program.name().to_owned(),
        collective: collective.to_owned(),
        protocol: "Simple".to_owned(),
        inplace: program.modes() == [Mode::InPlace],
        reuse_resources: false,
        gpus: gpus.collect::<Result<_, _>>()?,
        num_threads_per_block: super::threads(),
        use_double_scratch_buffer: false,
        buffer_alignment: super::alignment(),
        min_message_size: limits.min,
        max_message_size: limits.max,
    })
}

fn buffer_type(buffer: Memory) -> BufferType {
    match buffer {
        Memory::Input => BufferType::Input,
        Memory::Output => BufferType::Output,
        Memory::Scratch => BufferType::Scratch,
    }
}

impl Exporter<'_> {
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
        let mut ends: BTreeMap<Ends, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        for (number, block) in program.blocks().iter().enumerate() {
            for step in program.steps_of(number as u32) {
                let op = program.step(step).op;
                if op.sends() && op.receives() {
                    let why = format!("a step is a {}; lower it without fused steps", op.name());
                    return Err(Refused::Inexpressible(why));
                }
                match (op.sends(), op.receives(), block.send, block.recv) {
                    (true, _, Some(peer), _) => {
                        ends.entry((block.rank, peer, block.channel))
                            .or_default()
                            .0
                            .push(step);
                    }
                    (_, true, _, Some(peer)) => {
                        ends.entry((peer, block.rank, block.channel))
                            .or_default()
                            .1
                            .push(step);
                    }
                    _ => {}
                }
            }
        }
        let written = self.write_counts();
        for (&key, (sends, receives)) in &ends {
            let (from, to, _) = key;
            let kind = self.kind(from, to);
            for (rank, peer) in [(from, to), (to, from)] {
                self.channels[rank as usize].insert((kind, peer, key), 0);
            }
            self.pass(key, sends, receives, &written);
        }
        for channels in &mut self.channels {
            let mut next: HashMap<ChannelType, u32> = HashMap::new();
            for ((kind, ..), number) in channels {
                let count = next.entry(*kind).or_default();
                *number = *count;
                *count += 1;
            }
        }
        Ok(())
    }

    /// How often each chunk of each rank is written.
    fn write_counts(&self) -> HashMap<(u32, Memory, u32), u32> {
        let mut counts = HashMap::new();
        for step in 0..self.program.len() as u32 {
            for span in self.program.step(step).targets() {
                for chunk in span.offset()..span.offset() + span.count() {
                    *counts
                        .entry((span.rank(), span.buffer(), chunk))
                        .or_default() += 1;
                }
            }
        }
        counts
    }

    fn pass(
        &mut self,
        (from, to, _): Ends,
        sends: &[u32],
        receives: &[u32],
        written: &HashMap<(u32, Memory, u32), u32>,
    ) {
        let kind = self.kind(from, to);
        let sums = receives
            .iter()
            .filter(|&&step| self.program.step(step).op == StepOp::RecvReduce);
        let most = sums
            .map(|&step| self.program.step(step).count())
            .max()
            .unwrap_or(0);
        let slot = self.scratch[to as usize];
        self.scratch[to as usize] += most;
        for (i, (&send, &receive)) in sends.iter().zip(receives).enumerate() {
            let view = self.program.step(receive);
            let target = view.targets().next().expect("it receives into something");
            let is_sum = view.op == StepOp::RecvReduce;
            let place = if is_sum {
                Span::new(to, Memory::Scratch, slot, target.count())
            } else {
                target
            };
            let is_fresh = |chunk: u32| {
                written.get(&(to, target.buffer(), chunk)) == Some(&1)
                    && !self.starts_filled(to, target.buffer(), chunk)
            };
            let mut chunks = target.offset()..target.offset() + target.count();
            let ready = i == 0 || is_sum || !chunks.all(is_fresh);
            let pass = Pass { ready, to: place };
            self.passes.insert(send, pass);
            self.passes.insert(receive, pass);
            let buffer = (to, buffer_type(place.buffer()));
            self.remote[from as usize]
                .entry(buffer)
                .or_default()
                .insert(kind);
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

    fn gpu(&self, rank: u32) -> Result<Gpu, Refused> {
        let first = self.program.blocks_of(rank).start;
        let blocks = self.program.blocks_of(rank);
        let threadblocks = blocks.map(|block| self.block(rank, block, block - first));
        let channels = [ChannelType::Memory, ChannelType::Port]
            .into_iter()
            .filter_map(|kind| {
                let own = self.channels[rank as usize]
                    .keys()
                    .filter(|key| key.0 == kind);
                let peers: Vec<u32> = own.map(|key| key.1).collect();
                (!peers.is_empty()).then_some(Channels {
                    channel_type: kind,
                    connected_to: Some(peers),
                    buffer_type: None,
                    rank_groups: None,
                })
            });
        let remote = self.remote[rank as usize]
            .iter()
            .map(|(&(rank, kind), access)| RemoteBuffer {
                rank,
                r#type: kind,
                access_channel_types: access.iter().copied().collect(),
            });
        let task = self.program.task();
        let sizes = self.program.sizes()[rank as usize];
        // The executor divides by these: a buffer that a rank does not use has the size of the others'.
        let or_all = |size: u32| if size == 0 { task.chunks } else { size };
        Ok(Gpu {
            id: rank,
            input_chunks: or_all(sizes[Memory::Input as usize]),
            output_chunks: or_all(sizes[Memory::Output as usize]),
            scratch_chunks: self.scratch[rank as usize],
            threadblocks: threadblocks.collect::<Result<_, _>>()?,
            channels: channels.collect(),
            remote_buffers: remote.collect(),
            semaphores: vec![Semaphore { init_value: 0 }; self.semaphores[rank as usize].len()],
        })
    }

    fn block(&self, rank: u32, block: u32, id: u32) -> Result<Threadblock, Refused> {
        let mut writer = Writer {
            ops: Vec::new(),
            channels: BTreeMap::new(),
            buffers: BTreeMap::new(),
        };
        for step in self.program.steps_of(block) {
            self.step(rank, block, step, &mut writer);
        }
        if writer.ops.last().is_some_and(|op| op.name == "nop") {
            writer.ops.pop();
        }
        if writer.ops.len() > rules::MAX_OPS {
            return Err(Refused::Limit(format!(
                "block {id} of rank {rank} has {} operations, and the most is {}; spread it over more channels, or use fewer chunks",
                writer.ops.len(),
                rules::MAX_OPS
            )));
        }
        let channels = writer.channels.into_iter().map(|(kind, ids)| ChannelRefs {
            channel_type: kind,
            channel_ids: ids,
        });
        let buffers = writer.buffers.into_iter().map(|(kind, ids)| BufferRefs {
            access_channel_type: kind,
            remote_buffer_ids: ids,
        });
        Ok(Threadblock {
            id,
            ops: writer.ops,
            channels: channels.collect(),
            remote_buffer_refs: buffers.collect(),
        })
    }

    fn step(&self, rank: u32, block: u32, step: u32, writer: &mut Writer) {
        let view = self.program.step(step);
        let own = self.program.blocks()[block as usize];
        let semaphores = &self.semaphores[rank as usize];
        if let Some(target) = view.dependency {
            let giver = self.program.block_of(target);
            writer.semaphores("sem_acquire", vec![semaphores[&(giver, block)]]);
        }
        match view.op {
            StepOp::Send => {
                let peer = own.send.expect("it sends");
                let ends = (rank, peer, own.channel);
                let kind = self.kind(rank, peer);
                let channel = self.channels[rank as usize][&(kind, peer, ends)];
                let pass = self.passes[&step];
                writer.sync();
                if pass.ready {
                    writer.signal("wait", kind, channel);
                    writer.sync();
                }
                let key = (peer, buffer_type(pass.to.buffer()));
                let remote = self.remote[rank as usize]
                    .keys()
                    .position(|each| *each == key);
                let name = if kind == ChannelType::Port {
                    "pwsf"
                } else {
                    "pws"
                };
                let channel = writer.channel(kind, channel);
                let buffer = writer.buffer(kind, remote.expect("it was added") as u32);
                writer.ops.push(Op {
                    name: name.to_owned(),
                    src_buff: view.sources().map(local).collect(),
                    dst_buff: vec![Buffer {
                        buffer_id: Some(buffer),
                        index: pass.to.offset(),
                        size: pass.to.count(),
                        ..Buffer::default()
                    }],
                    channel_ids: vec![channel],
                    channel_type: Some(kind),
                    ..Op::default()
                });
            }
            StepOp::Recv | StepOp::RecvReduce => {
                let peer = own.recv.expect("it receives");
                let ends = (peer, rank, own.channel);
                let kind = self.kind(rank, peer);
                let channel = self.channels[rank as usize][&(kind, peer, ends)];
                let pass = self.passes[&step];
                if pass.ready {
                    writer.sync();
                    writer.signal("signal", kind, channel);
                }
                writer.signal("wait", kind, channel);
                if view.op == StepOp::RecvReduce {
                    writer.sync();
                    let sources = view.sources().chain([pass.to]);
                    writer.data("re", sources.collect(), view.targets().collect());
                }
            }
            StepOp::Copy => {
                writer.sync();
                writer.data("copy", view.sources().collect(), view.targets().collect());
            }
            StepOp::Reduce => {
                writer.sync();
                writer.data("re", view.sources().collect(), view.targets().collect());
            }
            _ => {}
        }
        if let Some(takers) = self.waiting.get(&step) {
            writer.sync();
            let numbers = takers.iter().map(|&taker| semaphores[&(block, taker)]);
            writer.semaphores("sem_release", numbers.collect());
        }
    }
}

/// A chunk of the block's own rank.
fn local(span: Span) -> Buffer {
    Buffer {
        r#type: Some(buffer_type(span.buffer())),
        index: span.offset(),
        size: span.count(),
        ..Buffer::default()
    }
}

/// The operations of a block, and the channels and remote buffers that they use.
struct Writer {
    ops: Vec<Op>,
    channels: BTreeMap<ChannelType, Vec<u32>>,
    buffers: BTreeMap<ChannelType, Vec<u32>>,
}

impl Writer {
    /// Has the threads of the block wait for each other.
    fn sync(&mut self) {
        if self.ops.last().is_some_and(|op| op.name != "nop") {
            self.ops.push(Op {
                name: "nop".to_owned(),
                ..Op::default()
            });
        }
    }

    fn position(list: &mut Vec<u32>, id: u32) -> u32 {
        let found = list.iter().position(|&known| known == id);
        found.unwrap_or_else(|| {
            list.push(id);
            list.len() - 1
        }) as u32
    }

    fn channel(&mut self, kind: ChannelType, id: u32) -> u32 {
        Self::position(self.channels.entry(kind).or_default(), id)
    }

    fn buffer(&mut self, kind: ChannelType, id: u32) -> u32 {
        Self::position(self.buffers.entry(kind).or_default(), id)
    }

    fn signal(&mut self, name: &str, kind: ChannelType, channel: u32) {
        let channel = self.channel(kind, channel);
        self.ops.push(Op {
            name: name.to_owned(),
            channel_ids: vec![channel],
            channel_type: Some(kind),
            ..Op::default()
        });
    }

    fn semaphores(&mut self, name: &str, numbers: Vec<u32>) {
        self.ops.push(Op {
            name: name.to_owned(),
            semaphore_ids: numbers,
            ..Op::default()
        });
    }

    fn data(&mut self, name: &str, sources: Vec<Span>, targets: Vec<Span>) {
        self.ops.push(Op {
            name: name.to_owned(),
            src_buff: sources.into_iter().map(local).collect(),
            dst_buff: targets.into_iter().map(local).collect(),
            reduce_op: (name == "re").then(|| "sum".to_owned()),
            ..Op::default()
        });
    }
}
