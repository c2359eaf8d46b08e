//! Blocks and steps of one rank: what each transfer becomes there, and what each step waits for.

use rustc_hash::FxHashMap;

use super::cells::{Cells, NONE, StepId};
use super::joins::gather;
use super::pairs::Pairs;
use super::place::{At, copies};
use super::runs::{Run, Runs, longest};
use super::{CompileOptions, Moves};
use crate::id::{fit, narrow};
use crate::plan::{Wait, WaitOn};
use crate::program::{Block, Buffer, Mode, Op, Task};

/// A step under construction, in 24 bytes.
#[derive(Clone, Copy)]
pub(super) struct Draft {
    pub op: Op,
    pub src: Buffer,
    pub dst: Buffer,
    pub count: u16,
    pub src_at: u32,
    pub dst_at: u32,
    pub after: StepId,
    /// Chunks that it stored and nobody read before they were written again.
    unread: u16,
    /// Whether its message is part of the one before.
    pub is_joined: bool,
}

impl Draft {
    /// Waits for another step.
    pub(super) fn waiting(after: StepId) -> Self {
        Self {
            op: Op::Nop,
            src: Buffer::Input,
            dst: Buffer::Output,
            count: 0,
            src_at: 0,
            dst_at: 0,
            after,
            unread: 0,
            is_joined: false,
        }
    }

    /// Returns whether it reads its source.
    pub(super) fn reads(&self) -> bool {
        !matches!(self.op, Op::Recv | Op::RecvSend | Op::Nop)
    }

    /// Returns whether it writes its target.
    pub(super) fn writes(&self) -> bool {
        !matches!(self.op, Op::Send | Op::RecvReduceSend | Op::Nop)
    }
}

/// A block under construction.
pub(super) struct DraftBlock {
    pub block: Block,
    pub steps: Vec<Draft>,
    /// Steps up to the last that sends.
    sent: u32,
    /// The last message: its slice, how many it is made of, from which buffer they come, and whether they are summed.
    message: (u32, u32, Buffer, bool),
}

/// What all ranks have in common.
pub(super) struct Common<'a> {
    pub moves: &'a Moves<'a>,
    pub runs: &'a Runs,
    /// Which receives may become one step with which sends; none where steps are not fused.
    pub pairs: &'a Pairs,
    pub task: Task,
    pub mode: Mode,
    pub options: &'a CompileOptions,
}

/// The blocks of one rank while they are made.
struct Emitter<'a> {
    common: &'a Common<'a>,
    rank: u32,
    blocks: Vec<DraftBlock>,
    /// Number of the slice.
    slice: u32,
    /// Blocks that send to a peer on a channel.
    senders: FxHashMap<(u32, u32), u32>,
    /// Blocks that receive from a peer on a channel.
    receivers: FxHashMap<(u32, u32), u32>,
    cells: Cells,
    /// How much of a block another one has waited for: steps of it that have ended.
    waited: FxHashMap<(u32, u32), u32>,
    /// The last step that received each transfer, where waits are kept; else empty.
    received: FxHashMap<u32, StepId>,
}

/// Returns the blocks of a rank, with steps that receive and send where the pairs allow it.
pub(super) fn emit(common: &Common<'_>, rank: u32) -> Vec<DraftBlock> {
    let mut emitter = Emitter {
        common,
        rank,
        blocks: Vec::new(),
        slice: 0,
        senders: FxHashMap::default(),
        receivers: FxHashMap::default(),
        cells: Cells::default(),
        waited: FxHashMap::default(),
        received: FxHashMap::default(),
    };
    for (sends, receives) in common.runs.slices_of(rank) {
        emitter.slice(sends, receives);
    }
    emitter.copy_inputs();
    emitter.drop_unread_stores();
    if common.options.joins > 1 {
        gather(&mut emitter.blocks);
    }
    emitter.blocks
}

impl Emitter<'_> {
    /// Adds the steps of one slice.
    fn slice(&mut self, sends: &[u32], receives: &[u32]) {
        let Common {
            moves,
            runs,
            options,
            ..
        } = *self.common;
        self.slice += 1;
        for run in sends.iter().map(|&run| runs.get(run)) {
            let peer = moves.at(run.transfer).dst;
            for (instance, part) in Runs::parts(run, options) {
                let channel = self.channel(run.transfer, instance);
                let mut after = Vec::new();
                if options.keeps_waits {
                    let wait = Wait::from_bits(moves.plan.wait()[run.transfer as usize]);
                    self.arrivals(wait, &mut after);
                }
                self.send(peer, channel, part.from, part.count, after);
                self.join(self.senders[&(peer, channel)], &part);
            }
        }
        for run in receives.iter().map(|&run| runs.get(run)) {
            let peer = moves.at(run.transfer).src;
            for (instance, part) in Runs::parts(run, options) {
                let channel = self.channel(run.transfer, instance);
                let step = self.receive(peer, channel, part.own, part.to, part.count);
                self.join(step.block, &part);
                if options.keeps_waits {
                    self.received.insert(run.transfer, step);
                }
            }
        }
    }

    /// Makes the last message of a block part of the one before, if both are alike and of the slice. Both ends decide alike.
    fn join(&mut self, block: u32, part: &Run) {
        let own = &mut self.blocks[block as usize];
        let (slice, count, buffer, is_sum) = own.message;
        let is_joined = slice == self.slice
            && count < self.common.options.joins
            && (buffer, is_sum) == (part.from.0, part.own.is_some());
        let count = if is_joined { count + 1 } else { 1 };
        own.message = (self.slice, count, part.from.0, part.own.is_some());
        if let Some(last) = own.steps.last_mut() {
            last.is_joined = is_joined;
        }
    }

    /// Returns the channel of an instance of a transfer.
    fn channel(&self, transfer: u32, instance: u32) -> u32 {
        let options = self.common.options;
        instance * options.channels + options.channel(self.common.moves.plan, transfer)
    }

    /// Steps by which what a wait is for arrives at the rank.
    fn arrivals(&self, wait: Wait, steps: &mut Vec<StepId>) {
        let moves = self.common.moves;
        match wait.target() {
            WaitOn::Nothing => {}
            WaitOn::Transfer(transfer) => {
                if moves.at(transfer.0).dst == self.rank {
                    steps.push(self.received.get(&transfer.0).copied().unwrap_or(NONE));
                }
            }
            WaitOn::Group(group) => {
                for &bits in moves.plan.groups().get(group as usize) {
                    self.arrivals(Wait::from_bits(bits), steps);
                }
            }
        }
    }

    /// Returns the block that sends to a peer on a channel.
    fn sender(&mut self, peer: u32, channel: u32) -> u32 {
        if let Some(&block) = self.senders.get(&(peer, channel)) {
            return block;
        }
        let recv = self.common.pairs.receives.get(&(self.rank, peer)).copied();
        self.pair(Some(peer), recv, channel)
    }

    /// Returns the block that receives from a peer on a channel.
    fn receiver(&mut self, peer: u32, channel: u32) -> u32 {
        if let Some(&block) = self.receivers.get(&(peer, channel)) {
            return block;
        }
        let send = self.common.pairs.sends.get(&(self.rank, peer)).copied();
        self.pair(send, Some(peer), channel)
    }

    fn pair(&mut self, send: Option<u32>, recv: Option<u32>, channel: u32) -> u32 {
        let block = narrow(self.blocks.len());
        self.blocks.push(DraftBlock {
            block: Block {
                rank: self.rank,
                send,
                recv,
                channel,
            },
            steps: Vec::new(),
            sent: 0,
            message: (0, 0, Buffer::Input, false),
        });
        if let Some(peer) = send {
            self.senders.insert((peer, channel), block);
        }
        if let Some(peer) = recv {
            self.receivers.insert((peer, channel), block);
        }
        block
    }

    fn send(&mut self, peer: u32, channel: u32, from: At, count: u32, mut after: Vec<StepId>) {
        let block = self.sender(peer, channel);
        if self.fuses(block, from, count) {
            return;
        }
        after.extend(self.cells.writes(from, count));
        let step = self.step(block, (Op::Send, from, from, count), after);
        for cell in self.cells.at(from, count) {
            cell.add_read(step);
        }
        self.blocks[block as usize].sent = step.position + 1;
    }

    /// Makes the receive that brought these chunks send them on, if it may.
    fn fuses(&mut self, block: u32, from: At, count: u32) -> bool {
        let cells = self.cells.at(from, count);
        let write = cells[0].write;
        let is_whole = |cell: &super::cells::Cell| cell.write == write && !cell.is_read();
        if write.block != block || !cells.iter().all(is_whole) {
            return false;
        }
        let own = &mut self.blocks[block as usize];
        let step = &mut own.steps[write.position as usize];
        let same = (step.dst, step.dst_at, u32::from(step.count)) == (from.0, from.1, count);
        let fused = match step.op {
            Op::Recv => Op::RecvSend,
            Op::RecvReduce => Op::RecvReduceStoreSend,
            _ => return false,
        };
        if !same || write.position < own.sent {
            return false;
        }
        step.op = fused;
        own.sent = write.position + 1;
        true
    }

    fn receive(&mut self, peer: u32, channel: u32, own: Option<At>, to: At, count: u32) -> StepId {
        let block = self.receiver(peer, channel);
        let mut after: Vec<StepId> = Vec::new();
        if let Some(own) = own {
            after.extend(self.cells.writes(own, count));
        }
        for cell in self.cells.at(to, count) {
            after.extend(cell.accesses());
        }
        let op = if own.is_some() {
            Op::RecvReduce
        } else {
            Op::Recv
        };
        let step = self.step(block, (op, own.unwrap_or(to), to, count), after);
        if let Some(own) = own.filter(|&own| own != to) {
            for cell in self.cells.at(own, count) {
                cell.add_read(step);
            }
        }
        let is_read = own == Some(to);
        for cell in self.cells.at(to, count) {
            let before = std::mem::replace(&mut cell.write, step);
            let unread = !cell.is_read() && !is_read;
            cell.forget_reads();
            if unread {
                note_unread(&mut self.blocks, before);
            }
        }
        step
    }

    /// Adds a step to a block, with steps before it for all but one of what it waits for.
    fn step(&mut self, block: u32, what: (Op, At, At, u32), mut after: Vec<StepId>) -> StepId {
        after.retain(|step| *step != NONE && step.block != block);
        after.sort_unstable_by_key(|step| (step.block, std::cmp::Reverse(step.position)));
        after.dedup_by_key(|step| step.block);
        after.retain(|step| {
            let waited = self.waited.entry((block, step.block)).or_insert(0);
            let is_new = *waited <= step.position;
            *waited = (*waited).max(step.position + 1);
            is_new
        });
        let last = after.pop().unwrap_or(NONE);
        let steps = &mut self.blocks[block as usize].steps;
        steps.extend(after.into_iter().map(Draft::waiting));
        let (op, src, dst, count) = what;
        steps.push(Draft {
            op,
            src: src.0,
            dst: dst.0,
            count: fit(count),
            src_at: src.1,
            dst_at: dst.1,
            after: last,
            unread: 0,
            is_joined: false,
        });
        StepId {
            block,
            position: narrow(steps.len()) - 1,
        }
    }

    /// Adds a block for copies from inputs to outputs, which wait for nothing.
    fn copy_inputs(&mut self) {
        let copies = copies(&self.common.task, self.common.mode, self.rank);
        if copies.is_empty() {
            return;
        }
        let max_count = longest(self.common.options);
        let block = self.pair(None, None, 0);
        for (from, to, len) in copies {
            for done in (0..len).step_by(max_count as usize) {
                let count = (len - done).min(max_count);
                let (from, to) = ((Buffer::Input, from + done), (Buffer::Output, to + done));
                self.step(block, (Op::Copy, from, to, count), Vec::new());
            }
        }
    }

    /// Steps that sum and send on need not store what nobody reads.
    fn drop_unread_stores(&mut self) {
        for buffer in [Buffer::Input, Buffer::Scratch] {
            for (cell, chunk) in self.cells.take(buffer).iter().zip(0..) {
                if !cell.is_read() && !self.is_result(buffer, chunk) {
                    note_unread(&mut self.blocks, cell.write);
                }
            }
        }
        for step in self.blocks.iter_mut().flat_map(|block| &mut block.steps) {
            if step.op == Op::RecvReduceStoreSend && step.unread == step.count {
                step.op = Op::RecvReduceSend;
            }
        }
    }

    /// Returns whether a chunk of input or scratch lies under a chunk of the output.
    fn is_result(&self, buffer: Buffer, chunk: u32) -> bool {
        if self.common.mode == Mode::OutOfPlace || buffer == Buffer::Scratch {
            return false;
        }
        let (task, rank) = (&self.common.task, self.rank);
        let at = task.in_place(rank, Buffer::Input, chunk);
        let first = task.in_place(rank, Buffer::Output, 0);
        (first..first + task.output(rank)).contains(&at)
    }
}

/// Notes that a chunk that a step stored was read by nobody.
fn note_unread(blocks: &mut [DraftBlock], step: StepId) {
    if step != NONE {
        blocks[step.block as usize].steps[step.position as usize].unread += 1;
    }
}
