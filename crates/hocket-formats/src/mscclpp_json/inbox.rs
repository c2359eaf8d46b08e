//! How each message that a rank receives is passed on, which the receiver decides.

use hocket_base::id::narrow;
use hocket_plan::collective::CollectiveKind;
use hocket_program::program::{Buffer as Memory, Mode, Op as StepOp, Program, Span};

use super::ChannelType;
use super::export::{Protocol, Refused};

/// How messages are passed on, and between whom.
pub struct How<'a> {
    /// By puts with signals, or in packets.
    pub protocol: Protocol,
    /// Whether two ranks reach each other's memory; the others are reached through ports.
    pub is_near: &'a dyn Fn(u32, u32) -> bool,
    /// Bytes of a chunk that a step moves in one round of a pipeline, with Simple; all at once if there are none.
    pub unit: Option<u64>,
}

impl How<'_> {
    pub(super) fn kind(&self, a: u32, b: u32) -> ChannelType {
        if (self.is_near)(a, b) {
            ChannelType::Memory
        } else {
            ChannelType::Port
        }
    }
}

/// How one message is passed on.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    /// Whether the receiver says first that it is ready.
    pub ready: bool,
    /// Where its parts are put.
    pub to: &'a [Span],
}

/// The messages that a rank receives, connection by connection.
pub(super) struct Inbox {
    /// Sender and channel of each connection, sorted.
    connections: Vec<(u32, u32)>,
    /// First message of each; one more than there are connections.
    starts: Vec<u32>,
    ready: Vec<bool>,
    /// Where the parts of each message end.
    ends: Vec<u32>,
    to: Vec<Span>,
    /// Scratch chunks of the rank, with those that messages are put into.
    pub scratch: u32,
}

/// Returns the steps of a rank that send, or that receive, by peer and channel; those of a connection in order.
pub(super) fn ends(part: &Program, rank: u32, receives: bool) -> Vec<((u32, u32), u32)> {
    let mut ends = Vec::new();
    for number in part.blocks_of(rank) {
        let block = part.blocks()[number as usize];
        let peer = if receives { block.recv } else { block.send };
        let Some(peer) = peer else { continue };
        let steps = part.steps_of(number).filter(|&step| {
            let op = part.step(step).op;
            if receives { op.receives() } else { op.sends() }
        });
        ends.extend(steps.map(|step| ((peer, block.channel), step)));
    }
    ends.sort_unstable();
    ends
}

impl Inbox {
    pub(super) fn of(part: &Program, rank: u32, how: &How<'_>) -> Result<Self, Refused> {
        let mut steps = part.blocks_of(rank).flat_map(|block| part.steps_of(block));
        let both = |op: StepOp| op.sends() && op.receives();
        if let Some(step) = steps.find(|&step| both(part.step(step).op)) {
            let name = part.step(step).op.name();
            let why = format!("a step is a {name}; lower it without fused steps");
            return Err(Refused::Inexpressible(why));
        }
        if how.protocol == Protocol::Ll {
            let far = |&((peer, _), _): &_| how.kind(rank, peer) == ChannelType::Port;
            if let Some(((to, _), _)) = ends(part, rank, false).into_iter().find(far) {
                return Err(Refused::Inexpressible(format!(
                    "packets go to memory of the same node, and ranks {rank} and {to} are on two; write it with protocol Simple"
                )));
            }
        }
        let receives = ends(part, rank, true);
        let connections = || receives.chunk_by(|a, b| a.0 == b.0);
        let count = connections().count();
        let mut inbox = Self {
            connections: Vec::with_capacity(count),
            starts: Vec::with_capacity(count + 1),
            ready: Vec::with_capacity(receives.len()),
            ends: Vec::with_capacity(receives.len()),
            to: Vec::with_capacity(receives.len()),
            scratch: part.sizes()[rank as usize][Memory::Scratch as usize],
        };
        let written = write_counts(part, rank);
        inbox.starts.push(0);
        for messages in connections() {
            inbox.connections.push(messages[0].0);
            inbox.connect(part, rank, how, messages, &written);
            inbox.starts.push(narrow(inbox.ready.len()));
        }
        Ok(inbox)
    }

    /// Returns the messages of a connection.
    pub(super) fn from(&self, connection: (u32, u32)) -> impl Iterator<Item = Pass<'_>> {
        let messages = match self.connections.binary_search(&connection) {
            Ok(i) => self.starts[i] as usize..self.starts[i + 1] as usize,
            Err(_) => 0..0,
        };
        let end = |messages: usize| {
            messages
                .checked_sub(1)
                .map_or(0, |last| self.ends[last] as usize)
        };
        messages.map(move |message| Pass {
            ready: self.ready[message],
            to: &self.to[end(message)..end(message + 1)],
        })
    }

    /// Adds the messages of a connection.
    fn connect(
        &mut self,
        part: &Program,
        rank: u32,
        how: &How<'_>,
        messages: &[((u32, u32), u32)],
        written: &[Vec<u8>; 3],
    ) {
        let is_sum = |step: u32| part.step(step).op == StepOp::RecvReduce;
        let slot = self.scratch;
        let has_own_slots = how.protocol == Protocol::Ll || how.unit.is_some();
        if !has_own_slots {
            let sums = messages.iter().filter(|message| is_sum(message.1));
            let counts = sums.map(|message| part.step(message.1).count());
            self.scratch += counts.max().unwrap_or(0);
        }
        for (i, &(_, receive)) in messages.iter().enumerate() {
            // A pipeline says before its first round that the call has begun.
            let mut ready = i == 0 && how.unit.is_none() && how.protocol != Protocol::Ll;
            for target in part.step(receive).targets() {
                let scratch = |at: u32| Span::new(rank, Memory::Scratch, at, target.count());
                let to = if how.protocol == Protocol::Ll || has_own_slots && is_sum(receive) {
                    let at = self.scratch;
                    self.scratch += target.count();
                    scratch(at)
                } else if is_sum(receive) {
                    ready = true;
                    scratch(slot)
                } else {
                    let counts = &written[target.buffer() as usize];
                    let is_fresh = |chunk: u32| {
                        counts[chunk as usize] == 1
                            && !starts_filled(part, rank, target.buffer(), chunk)
                    };
                    let mut chunks = target.offset()..target.offset() + target.count();
                    ready |= !chunks.all(is_fresh);
                    target
                };
                self.to.push(to);
            }
            self.ready.push(ready);
            self.ends.push(narrow(self.to.len()));
        }
    }
}

/// Returns how often each chunk of a rank's buffers is written; 255 stands for more.
fn write_counts(part: &Program, rank: u32) -> [Vec<u8>; 3] {
    let mut counts = part.sizes()[rank as usize].map(|size| vec![0u8; size as usize]);
    let steps = part.blocks_of(rank).flat_map(|block| part.steps_of(block));
    for span in steps.flat_map(|step| part.step(step).targets()) {
        let first = span.offset() as usize;
        let chunks = first..first + span.count() as usize;
        for count in &mut counts[span.buffer() as usize][chunks] {
            *count = count.saturating_add(1);
        }
    }
    counts
}

/// Returns whether a chunk holds data before the first step.
fn starts_filled(part: &Program, rank: u32, buffer: Memory, chunk: u32) -> bool {
    let task = part.task();
    let in_place = part.modes().contains(&Mode::InPlace);
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
