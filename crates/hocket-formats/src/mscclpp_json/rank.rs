//! One rank of a plan: its channels, and what its blocks do.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};

use hocket_base::id::narrow;
use hocket_program::program::{Buffer as Memory, Op as StepOp, Program, Span};

use super::export::{Protocol, Refused, buffer_type};
use super::inbox::{How, Inbox, Pass, ends};
use super::writer::{Channel, Writer};
use super::{BufferType, ChannelType, Channels, Gpu, RemoteBuffer, Semaphore, limits};

/// A connection of the program: who sends to whom on which channel.
type Ends = (u32, u32, u32);

/// Text that is gathered before it is handed on, in bytes.
const AT_ONCE: usize = 1 << 16;

/// Writes the blocks of one rank.
pub(super) struct RankWriter<'a> {
    program: &'a Program,
    rank: u32,
    how: &'a How<'a>,
    /// Its first step.
    first: u32,
    /// How the message that each of its steps sends or receives is passed on.
    passes: Vec<Option<Pass<'a>>>,
    /// Its channels, sorted: by type and peer.
    channels: Vec<(ChannelType, u32, Ends)>,
    /// Memory of others that it writes to, sorted.
    remote: Vec<(u32, BufferType)>,
    scratch: u32,
    /// Its semaphores: block that gives and block that takes.
    semaphores: BTreeMap<(u32, u32), u32>,
    /// Blocks that wait for each step.
    waiting: HashMap<u32, Vec<u32>>,
}

impl<'a> RankWriter<'a> {
    pub(super) fn new(
        program: &'a Program,
        rank: u32,
        how: &'a How<'a>,
        inboxes: &'a [Inbox],
    ) -> Self {
        let blocks = program.blocks_of(rank);
        let (mut first, mut end) = (0, 0);
        if !blocks.is_empty() {
            first = program.steps_of(blocks.start).start;
            end = program.steps_of(blocks.end - 1).end;
        }
        let mut writer = Self {
            program,
            rank,
            how,
            first,
            passes: vec![None; (end - first) as usize],
            channels: Vec::new(),
            remote: Vec::new(),
            scratch: inboxes[rank as usize].scratch,
            semaphores: BTreeMap::new(),
            waiting: HashMap::new(),
        };
        writer.connect(inboxes);
        writer.join();
        writer
    }

    /// Finds channels, and how each message is passed on.
    fn connect(&mut self, inboxes: &'a [Inbox]) {
        let rank = self.rank;
        for receives in [false, true] {
            let ends = ends(self.program, rank, receives);
            for messages in ends.chunk_by(|a, b| a.0 == b.0) {
                let (peer, channel) = messages[0].0;
                let (from, to) = if receives { (peer, rank) } else { (rank, peer) };
                let kind = self.how.kind(rank, peer);
                self.channels.push((kind, peer, (from, to, channel)));
                let passes = inboxes[to as usize].from((from, channel));
                for (&(_, step), pass) in messages.iter().zip(passes) {
                    self.passes[(step - self.first) as usize] = Some(pass);
                    for to in pass.to {
                        let buffer = (peer, buffer_type(to.buffer()));
                        if !receives && self.remote.last() != Some(&buffer) {
                            self.remote.push(buffer);
                        }
                    }
                }
            }
        }
        self.channels.sort_unstable();
        self.remote.sort_unstable();
        self.remote.dedup();
    }

    /// Finds which blocks wait for which.
    fn join(&mut self) {
        for block in self.program.blocks_of(self.rank) {
            for step in self.program.steps_of(block) {
                let Some(target) = self.program.step(step).dependency else {
                    continue;
                };
                let giver = self.program.block_of(target);
                let next = narrow(self.semaphores.len());
                self.semaphores.entry((giver, block)).or_insert(next);
                self.waiting.entry(target).or_default().push(block);
            }
        }
    }

    /// Returns the block with the most operations, and how many it has.
    pub(super) fn busiest(&self) -> (u32, usize) {
        let blocks = self.program.blocks_of(self.rank);
        let mut writer = Writer::new(0);
        let mut busiest = (0, 0);
        for block in blocks.clone() {
            let id = block - blocks.start;
            writer.begin(id);
            self.steps(block, &mut writer);
            if writer.count() > busiest.1 {
                busiest = (id, writer.count());
            }
        }
        busiest
    }

    /// Refuses a block with more operations than the most.
    pub(super) fn check(&self, most: usize) -> Result<(), Refused> {
        let (block, count) = self.busiest();
        if count > most {
            let rank = self.rank;
            return Err(Refused::Operations {
                rank,
                block,
                count,
                most,
            });
        }
        Ok(())
    }

    /// Writes the rank, and returns the most operations of a block.
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<usize, Refused> {
        let head = serde_json::to_string(&self.gpu()).map_err(|_| fmt::Error)?;
        let (before, after) = head
            .split_once("\"threadblocks\":[]")
            .ok_or(Refused::Write(fmt::Error))?;
        write!(out, "{before}\"threadblocks\":[")?;
        let mut operations = 0;
        let mut writer = Writer::new(AT_ONCE);
        let blocks = self.program.blocks_of(self.rank);
        for block in blocks.clone() {
            if block > blocks.start {
                writer.comma();
            }
            writer.begin(block - blocks.start);
            self.steps(block, &mut writer);
            operations = operations.max(writer.count());
            writer.finish();
            if writer.held() >= AT_ONCE {
                writer.flush(out)?;
            }
        }
        writer.flush(out)?;
        write!(out, "]{after}")?;
        Ok(operations)
    }

    /// Returns the rank without its blocks.
    fn gpu(&self) -> Gpu {
        let rank = self.rank;
        let channels = [ChannelType::Memory, ChannelType::Port]
            .into_iter()
            .filter_map(|kind| {
                let own = self.channels.iter().filter(|key| key.0 == kind);
                let peers: Vec<u32> = own.map(|key| key.1).collect();
                (!peers.is_empty()).then_some(Channels {
                    channel_type: kind,
                    connected_to: Some(peers),
                    buffer_type: None,
                    rank_groups: None,
                })
            });
        let remote = self.remote.iter().map(|&(peer, buffer)| RemoteBuffer {
            rank: peer,
            r#type: buffer,
            access_channel_types: vec![self.how.kind(rank, peer)],
        });
        let task = self.program.task();
        let sizes = self.program.sizes()[rank as usize];
        // The executor divides by these: a buffer that a rank does not use has the size of the others'.
        let or_all = |size: u32| if size == 0 { task.chunks } else { size };
        Gpu {
            id: rank,
            input_chunks: or_all(sizes[Memory::Input as usize]),
            output_chunks: or_all(sizes[Memory::Output as usize]),
            scratch_chunks: self.scratch,
            threadblocks: Vec::new(),
            channels: channels.collect(),
            remote_buffers: remote.collect(),
            semaphores: vec![Semaphore { init_value: 0 }; self.semaphores.len()],
        }
    }

    /// The channel of a connection at one of its ends.
    fn channel(&self, peer: u32, ends: Ends) -> Channel {
        let kind = self.how.kind(self.rank, peer);
        let all = &self.channels;
        let first = all.partition_point(|key| key.0 < kind);
        let own = all.partition_point(|key| *key < (kind, peer, ends));
        (kind, narrow(own - first))
    }

    fn steps(&self, block: u32, writer: &mut Writer) {
        let own = self.program.blocks()[block as usize];
        let rank = self.rank;
        let sends = own
            .send
            .map(|peer| self.channel(peer, (rank, peer, own.channel)));
        let receives = own
            .recv
            .map(|peer| self.channel(peer, (peer, rank, own.channel)));
        // What is copied within the rank is copied at once.
        let unit = self.how.unit.filter(|_| sends.or(receives).is_some());
        if unit.is_some() {
            self.open(block, (sends, receives), writer);
        }
        let mut is_open = false;
        let mut awaited = Vec::new();
        for step in self.program.steps_of(block) {
            if let (Some(unit), false) = (unit, is_open) {
                writer.begin_rounds(unit, self.tells(step, sends));
                is_open = true;
            }
            if let Some(target) = self.program.step(step).dependency {
                let giver = self.program.block_of(target);
                awaited.push(self.semaphores[&(giver, block)]);
            }
            let op = self.program.step(step).op;
            if op == StepOp::Nop {
                continue;
            }
            writer.semaphores("sem_acquire", &awaited);
            awaited.clear();
            match op {
                StepOp::Send => self.send(step, own.send.zip(sends), writer),
                StepOp::Recv | StepOp::RecvReduce => self.receive(step, receives, writer),
                StepOp::Copy => self.local("copy", step, writer),
                StepOp::Reduce => self.local("re", step, writer),
                _ => {}
            }
            self.after(block, step, writer);
            if is_open {
                writer.end_rounds();
                is_open = false;
            }
        }
    }

    /// Says, and waits until the other end says, that the call has begun, if the first message of the block has no such signal.
    fn open(
        &self,
        block: u32,
        (sends, receives): (Option<Channel>, Option<Channel>),
        writer: &mut Writer,
    ) {
        let first = |is_end: fn(StepOp) -> bool| {
            let mut steps = self.program.steps_of(block);
            let step = steps.find(|&step| is_end(self.program.step(step).op));
            step.is_some_and(|step| !self.pass(step).ready)
        };
        if let Some(channel) = receives.filter(|_| first(StepOp::receives)) {
            writer.signal("signal", channel);
        }
        if let Some(channel) = sends.filter(|_| first(StepOp::sends)) {
            writer.signal("wait", channel);
        }
    }

    /// Returns whether the operations of a step end with [`Writer::tell`].
    fn tells(&self, step: u32, sends: Option<Channel>) -> bool {
        let is_memory = sends.is_some_and(|(kind, _)| kind == ChannelType::Memory);
        is_memory && self.program.step(step).op == StepOp::Send && !self.waiting.contains_key(&step)
    }

    /// Tells those that wait for a step.
    fn after(&self, block: u32, step: u32, writer: &mut Writer) {
        if let Some(takers) = self.waiting.get(&step) {
            if takers.len() == 1 {
                writer.sync_first();
            } else {
                writer.sync();
            }
            let numbers = takers.iter().map(|&taker| self.semaphores[&(block, taker)]);
            writer.semaphores("sem_release", &numbers.collect::<Vec<_>>());
        }
    }

    fn local(&self, name: &str, step: u32, writer: &mut Writer) {
        let view = self.program.step(step);
        writer.sync();
        writer.data(name, view.sources(), view.targets());
    }

    fn pass(&self, step: u32) -> Pass<'a> {
        self.passes[(step - self.first) as usize].expect("it was paired")
    }

    fn send(&self, step: u32, to: Option<(u32, Channel)>, writer: &mut Writer) {
        let (peer, channel) = to.expect("it sends");
        let pass = self.pass(step);
        if pass.ready {
            writer.signal("wait", channel);
        }
        writer.sync();
        let name = match (self.how.protocol, channel.0) {
            (Protocol::Ll, _) => "ppkt",
            (_, ChannelType::Port) => "pwsf",
            // What puts and signals at once signals over ports alone.
            _ => "put",
        };
        let view = self.program.step(step);
        let parts: Vec<(Span, (u32, Span))> = view
            .sources()
            .zip(pass.to.iter().map(|&to| {
                let memory = (peer, buffer_type(to.buffer()));
                let remote = self.remote.partition_point(|each| *each < memory);
                (narrow(remote), to)
            }))
            .collect();
        // What signals at once is one part: it tells of those before, too.
        let with_signal = if name == "pwsf" { 1 } else { 0 };
        let (first, last) = parts.split_at(parts.len() - with_signal);
        for part in first.chunks(limits::MAX_OP_CHANNELS) {
            writer.put(if name == "pwsf" { "put" } else { name }, channel, part);
        }
        if name == "pwsf" {
            if !first.is_empty() {
                writer.sync();
            }
            writer.put(name, channel, last);
        }
        if name == "put" {
            writer.tell(channel);
        }
    }

    fn receive(&self, step: u32, from: Option<Channel>, writer: &mut Writer) {
        let view = self.program.step(step);
        let pass = self.pass(step);
        let is_sum = view.op == StepOp::RecvReduce;
        if self.how.protocol == Protocol::Ll {
            writer.sync();
            let name = if is_sum { "repkt" } else { "upkt" };
            let with_message = view.sources().chain(pass.to.iter().copied());
            writer.data(name, with_message, view.targets());
            return;
        }
        let channel = from.expect("it receives");
        if pass.ready {
            writer.sync_first();
            writer.signal("signal", channel);
        }
        writer.signal("wait", channel);
        if is_sum {
            writer.sync();
            for ((own, &to), target) in view.sources().zip(pass.to).zip(view.targets()) {
                writer.data("re", [own, to].into_iter(), [target].into_iter());
            }
        }
    }
}
