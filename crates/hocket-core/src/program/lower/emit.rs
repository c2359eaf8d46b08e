//! Blocks and steps: what each transfer becomes, and what each step waits for.

use std::collections::HashMap;

use super::pairs::Pairs;
use super::place::{At, Places};
use super::units::Units;
use super::{LowerError, LowerOptions, Moves};
use crate::plan::{Wait, WaitOn};
use crate::program::{Block, Buffer, Mode, NewStep, Op, Program, ProgramBuilder, Span, Task};

/// A step by its block and its position there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct StepId {
    block: u32,
    position: u32,
}

const NONE: StepId = StepId {
    block: u32::MAX,
    position: u32::MAX,
};

/// A step under construction, in 24 bytes.
#[derive(Clone, Copy)]
struct Draft {
    op: Op,
    src: Buffer,
    dst: Buffer,
    count: u16,
    src_at: u32,
    dst_at: u32,
    after: StepId,
    /// Chunks that it stored and nobody read before they were written again.
    unread: u16,
}

struct DraftBlock {
    block: Block,
    steps: Vec<Draft>,
    /// Steps up to the last that sends.
    sent: u32,
}

/// The steps that have accessed a chunk of memory since it was written, and the one that wrote it.
#[derive(Clone)]
struct Cell {
    write: StepId,
    /// The first that read it; most chunks have one.
    read: StepId,
    more: More,
}

/// The others, boxed: a chunk that is read once has none, and there are many chunks.
type More = Option<Box<Vec<StepId>>>;

/// Whether a place lies directly behind a run of chunks that starts at `first`.
fn follows(first: At, at: At, run: u32) -> bool {
    first.0 == at.0 && first.1 + run == at.1
}

struct Emitter<'a> {
    task: Task,
    max_count: u32,
    pairs: Pairs,
    places: Places<'a>,
    blocks: Vec<DraftBlock>,
    senders: HashMap<(u32, u32, u32), u32>,
    receivers: HashMap<(u32, u32, u32), u32>,
    /// Chunks of input, output and scratch of each rank, up to the last that was accessed.
    cells: Vec<[Vec<Cell>; 3]>,
    /// How much of a block another one has waited for: steps of it that have ended.
    waited: HashMap<(u32, u32), u32>,
    /// The last step that received each transfer, where waits are kept; else empty.
    received: Vec<StepId>,
}

/// Makes the program, with steps that receive and send where `fuse`.
pub(super) fn emit(
    moves: &Moves<'_>,
    units: &Units,
    task: Task,
    mode: Mode,
    options: &LowerOptions,
    fuse: bool,
) -> Result<Program, LowerError> {
    let mut emitter = Emitter {
        task,
        max_count: options.max_count.min(Span::MAX_COUNT),
        pairs: if fuse {
            Pairs::of(moves)
        } else {
            Pairs::default()
        },
        places: Places::new(moves, units, task, mode),
        blocks: Vec::new(),
        senders: HashMap::new(),
        receivers: HashMap::new(),
        cells: vec![Default::default(); task.ranks as usize],
        waited: HashMap::new(),
        received: vec![
            NONE;
            if options.keeps_waits {
                moves.plan.len()
            } else {
                0
            }
        ],
    };
    let mut position = 0;
    for level in moves.levels.iter() {
        for slice in level.chunks(AT_ONCE) {
            emitter.slice(moves, slice, position, units, options);
            position += slice.len() as u32;
        }
    }
    emitter.copy_inputs();
    emitter.drop_unread_stores(mode);
    emitter.finish(moves, mode, options)
}

/// Transfers of a level of which all sends are added before all receives: a block that sends its own first can send on
/// what it receives in one step.
const AT_ONCE: usize = 1 << 13;

/// Consecutive chunks of a transfer: from where, with which own chunks if they are summed, to where.
struct Run {
    transfer: u32,
    src: u32,
    dst: u32,
    channel: u32,
    from: At,
    own: Option<At>,
    to: At,
    count: u32,
}

impl Cell {
    fn new() -> Self {
        Self {
            write: NONE,
            read: NONE,
            more: None,
        }
    }

    fn is_read(&self) -> bool {
        self.read != NONE
    }

    fn add_read(&mut self, step: StepId) {
        if self.is_read() {
            self.more.get_or_insert_default().push(step);
        } else {
            self.read = step;
        }
    }

    fn forget_reads(&mut self) {
        self.read = NONE;
        self.more = None;
    }
}

impl Emitter<'_> {
    /// Adds the steps of transfers of one level.
    fn slice(
        &mut self,
        moves: &Moves<'_>,
        slice: &[u32],
        position: u32,
        units: &Units,
        options: &LowerOptions,
    ) {
        let mut runs = Vec::new();
        for &transfer in slice {
            let each = moves.at(transfer);
            let spread = match &options.channel_of {
                Some(channels) => channels[transfer as usize],
                None => each.first % options.channels,
            };
            let mut whole: Vec<(At, Option<At>, At, u32)> = Vec::new();
            for chunk in each.first..each.first + each.count {
                let from = self.places.now(each.src, chunk);
                let own = each.is_sum.then(|| self.places.now(each.dst, chunk));
                let to = self.places.next(each.dst, chunk);
                let len = units.len[chunk as usize];
                match whole.last_mut() {
                    Some((last_from, last_own, last_to, run))
                        if follows(*last_from, from, *run)
                            && follows(*last_to, to, *run)
                            && last_own
                                .zip(own)
                                .is_none_or(|(last, own)| follows(last, own, *run)) =>
                    {
                        *run += len;
                    }
                    _ => whole.push((from, own, to, len)),
                }
            }
            for (from, own, to, len) in whole {
                let part = len / options.instances;
                for instance in 0..options.instances {
                    let mut done = 0;
                    while done < part {
                        let count = (part - done).min(self.max_count);
                        let offset = instance * part + done;
                        let at = |place: At| (place.0, place.1 + offset);
                        runs.push(Run {
                            transfer,
                            src: each.src,
                            dst: each.dst,
                            channel: instance * options.channels + spread,
                            from: at(from),
                            own: own.map(at),
                            to: at(to),
                            count,
                        });
                        done += count;
                    }
                }
            }
        }
        for run in &runs {
            let mut after = Vec::new();
            if options.keeps_waits {
                let wait = Wait::from_bits(moves.plan.wait()[run.transfer as usize]);
                self.arrivals(moves, run.src, wait, &mut after);
            }
            self.send(run.src, run.dst, run.channel, run.from, run.count, after);
        }
        for run in &runs {
            let step = self.receive(run.dst, run.src, run.channel, run.own, run.to, run.count);
            if let Some(last) = self.received.get_mut(run.transfer as usize) {
                *last = step;
            }
        }
        for (each, position) in slice
            .iter()
            .map(|&transfer| moves.at(transfer))
            .zip(position..)
        {
            for chunk in each.first..each.first + each.count {
                self.places.end(each.src, chunk, position);
                self.places.end(each.dst, chunk, position);
            }
        }
    }

    /// Steps by which what a wait is for arrives at a rank.
    fn arrivals(&self, moves: &Moves<'_>, rank: u32, wait: Wait, steps: &mut Vec<StepId>) {
        match wait.target() {
            WaitOn::Nothing => {}
            WaitOn::Transfer(transfer) => {
                if moves.at(transfer.0).dst == rank {
                    steps.push(self.received[transfer.index()]);
                }
            }
            WaitOn::Group(group) => {
                for &bits in moves.plan.groups().get(group as usize) {
                    self.arrivals(moves, rank, Wait::from_bits(bits), steps);
                }
            }
        }
    }

    fn add_block(&mut self, block: Block) -> u32 {
        self.blocks.push(DraftBlock {
            block,
            steps: Vec::new(),
            sent: 0,
        });
        self.blocks.len() as u32 - 1
    }

    /// The block of `rank` that sends to a peer on a channel.
    fn sender(&mut self, rank: u32, peer: u32, channel: u32) -> u32 {
        if let Some(&block) = self.senders.get(&(rank, peer, channel)) {
            return block;
        }
        let recv = self.pairs.receives.get(&(rank, peer)).copied();
        self.pair(rank, Some(peer), recv, channel)
    }

    /// The block of `rank` that receives from a peer on a channel.
    fn receiver(&mut self, rank: u32, peer: u32, channel: u32) -> u32 {
        if let Some(&block) = self.receivers.get(&(rank, peer, channel)) {
            return block;
        }
        let send = self.pairs.sends.get(&(rank, peer)).copied();
        self.pair(rank, send, Some(peer), channel)
    }

    fn pair(&mut self, rank: u32, send: Option<u32>, recv: Option<u32>, channel: u32) -> u32 {
        let block = self.add_block(Block {
            rank,
            send,
            recv,
            channel,
        });
        if let Some(peer) = send {
            self.senders.insert((rank, peer, channel), block);
        }
        if let Some(peer) = recv {
            self.receivers.insert((rank, peer, channel), block);
        }
        block
    }

    fn cells(&mut self, rank: u32, at: At, count: u32) -> &mut [Cell] {
        let (first, end) = (at.1 as usize, (at.1 + count) as usize);
        let cells = &mut self.cells[rank as usize][at.0 as usize];
        if cells.len() < end {
            cells.reserve_exact((end - cells.len()).max(cells.len() / 4));
            cells.resize(end, Cell::new());
        }
        &mut cells[first..end]
    }

    fn send(
        &mut self,
        rank: u32,
        peer: u32,
        channel: u32,
        from: At,
        count: u32,
        mut after: Vec<StepId>,
    ) {
        let block = self.sender(rank, peer, channel);
        if self.fuses(rank, block, from, count) {
            return;
        }
        for cell in self.cells(rank, from, count) {
            after.push(cell.write);
        }
        let step = self.step(block, (Op::Send, from, from, count), after);
        for cell in self.cells(rank, from, count) {
            cell.add_read(step);
        }
        self.blocks[block as usize].sent = step.position + 1;
    }

    /// Makes the receive that brought these chunks send them on, if it may.
    fn fuses(&mut self, rank: u32, block: u32, from: At, count: u32) -> bool {
        let write = self.cells(rank, from, 1)[0].write;
        let is_whole = |cell: &Cell| cell.write == write && !cell.is_read();
        if write.block != block || !self.cells(rank, from, count).iter().all(is_whole) {
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

    fn receive(
        &mut self,
        rank: u32,
        peer: u32,
        channel: u32,
        own: Option<At>,
        to: At,
        count: u32,
    ) -> StepId {
        let block = self.receiver(rank, peer, channel);
        let mut after: Vec<StepId> = Vec::new();
        if let Some(own) = own {
            for cell in self.cells(rank, own, count) {
                after.push(cell.write);
            }
        }
        for cell in self.cells(rank, to, count) {
            after.extend([cell.write, cell.read]);
            after.extend(cell.more.iter().flat_map(|more| more.iter()));
        }
        let op = if own.is_some() {
            Op::RecvReduce
        } else {
            Op::Recv
        };
        let step = self.step(block, (op, own.unwrap_or(to), to, count), after);
        if let Some(own) = own.filter(|&own| own != to) {
            for cell in self.cells(rank, own, count) {
                cell.add_read(step);
            }
        }
        for i in 0..count {
            let is_read = own == Some(to);
            let cell = &mut self.cells(rank, (to.0, to.1 + i), 1)[0];
            let before = std::mem::replace(&mut cell.write, step);
            let unread = !cell.is_read() && !is_read;
            cell.forget_reads();
            if unread {
                self.unread(before);
            }
        }
        step
    }

    /// Notes that a chunk that a step stored was read by nobody.
    fn unread(&mut self, step: StepId) {
        if step != NONE {
            self.blocks[step.block as usize].steps[step.position as usize].unread += 1;
        }
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
        let more = after.len() + 1;
        if steps.capacity() - steps.len() < more {
            // Blocks of a single step, as those of a direct all-to-all, are many: they have no spare room.
            let spare = steps.len().min(8).max(steps.len() / 4);
            steps.reserve_exact(more.max(spare));
        }
        for other in after {
            steps.push(Draft {
                op: Op::Nop,
                src: Buffer::Input,
                dst: Buffer::Output,
                count: 0,
                src_at: 0,
                dst_at: 0,
                after: other,
                unread: 0,
            });
        }
        let (op, src, dst, count) = what;
        steps.push(Draft {
            op,
            src: src.0,
            dst: dst.0,
            count: count as u16,
            src_at: src.1,
            dst_at: dst.1,
            after: last,
            unread: 0,
        });
        StepId {
            block,
            position: steps.len() as u32 - 1,
        }
    }

    /// Adds a block for copies from inputs to outputs, which wait for nothing.
    fn copy_inputs(&mut self) {
        for rank in 0..self.task.ranks {
            let copies = self.places.copies(rank);
            if copies.is_empty() {
                continue;
            }
            let block = self.pair(rank, None, None, 0);
            for (from, to, len) in copies {
                let mut done = 0;
                while done < len {
                    let count = (len - done).min(self.max_count);
                    let (from, to) = ((Buffer::Input, from + done), (Buffer::Output, to + done));
                    self.step(block, (Op::Copy, from, to, count), Vec::new());
                    done += count;
                }
            }
        }
    }

    /// Steps that sum and send on need not store what nobody reads.
    fn drop_unread_stores(&mut self, mode: Mode) {
        for rank in 0..self.task.ranks {
            for buffer in [Buffer::Input, Buffer::Scratch] {
                let cells = std::mem::take(&mut self.cells[rank as usize][buffer as usize]);
                for (chunk, cell) in cells.iter().enumerate() {
                    if !cell.is_read() && !self.is_result(rank, buffer, chunk as u32, mode) {
                        self.unread(cell.write);
                    }
                }
            }
        }
        for block in &mut self.blocks {
            for step in &mut block.steps {
                if step.op == Op::RecvReduceStoreSend && step.unread == step.count {
                    step.op = Op::RecvReduceSend;
                }
            }
        }
    }

    /// Whether a chunk of input or scratch lies under a chunk of the output.
    fn is_result(&self, rank: u32, buffer: Buffer, chunk: u32, mode: Mode) -> bool {
        if mode == Mode::OutOfPlace || buffer == Buffer::Scratch {
            return false;
        }
        let task = &self.task;
        let at = task.in_place(rank, Buffer::Input, chunk);
        let first = task.in_place(rank, Buffer::Output, 0);
        (first..first + task.output(rank)).contains(&at)
    }

    /// The program of the blocks, in the order of ranks.
    fn finish(
        mut self,
        moves: &Moves<'_>,
        mode: Mode,
        options: &LowerOptions,
    ) -> Result<Program, LowerError> {
        self.cells = Vec::new();
        self.waited = HashMap::new();
        self.senders = HashMap::new();
        self.receivers = HashMap::new();
        let mut builder = ProgramBuilder::new(moves.plan.algorithm(), self.task);
        builder.modes(&[mode]);
        builder.limits(options.limits);
        builder.in_flight(options.in_flight);
        builder.reserve(self.blocks.iter().map(|block| block.steps.len()).sum());
        let scratch = self.compact_scratch();
        for (rank, (_, size)) in scratch.iter().enumerate() {
            builder.size(rank as u32, Buffer::Scratch, *size);
        }
        let mut order: Vec<u32> = (0..self.blocks.len() as u32).collect();
        order.sort_by_key(|&block| self.blocks[block as usize].block.rank);
        let mut number = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            number[old as usize] = new as u32;
        }
        for old in order {
            let draft = &mut self.blocks[old as usize];
            let rank = draft.block.rank;
            builder.block(draft.block);
            for step in std::mem::take(&mut draft.steps) {
                let span = |buffer: Buffer, at: u32| {
                    let at = match buffer {
                        Buffer::Scratch => scratch[rank as usize].0[at as usize],
                        _ => at,
                    };
                    Span::new(rank, buffer, at, u32::from(step.count))
                };
                let (src, dst) = (
                    || span(step.src, step.src_at),
                    || span(step.dst, step.dst_at),
                );
                let (sources, targets) = match step.op {
                    Op::Send | Op::RecvReduceSend => (Some(src()), None),
                    Op::Recv | Op::RecvSend => (None, Some(dst())),
                    Op::Nop => (None, None),
                    _ => (Some(src()), Some(dst())),
                };
                let after = step.after;
                builder.step(&NewStep {
                    op: step.op,
                    dependency: (after != NONE)
                        .then(|| (number[after.block as usize], after.position)),
                    sources: sources.as_slice(),
                    targets: targets.as_slice(),
                    numbers: &[],
                });
            }
        }
        builder.finish().map_err(|error| LowerError::TooLarge {
            why: error.to_string(),
        })
    }

    /// For each rank, new numbers of its scratch chunks without those that no step uses any more, and how many are left.
    fn compact_scratch(&self) -> Vec<(Vec<u32>, u32)> {
        let sizes = self
            .places
            .sizes
            .iter()
            .map(|&size| vec![false; size as usize]);
        let mut used: Vec<Vec<bool>> = sizes.collect();
        for block in &self.blocks {
            for step in &block.steps {
                let of_rank = &mut used[block.block.rank as usize];
                let reads = !matches!(step.op, Op::Recv | Op::RecvSend | Op::Nop);
                let writes = !matches!(step.op, Op::Send | Op::RecvReduceSend | Op::Nop);
                let ends = [
                    (reads, step.src, step.src_at),
                    (writes, step.dst, step.dst_at),
                ];
                for (_, _, at) in ends
                    .into_iter()
                    .filter(|end| end.0 && end.1 == Buffer::Scratch)
                {
                    let end = at as usize + step.count as usize;
                    of_rank[at as usize..end].fill(true);
                }
            }
        }
        let renumber = |used: Vec<bool>| {
            let mut next = 0;
            let mut numbers = Vec::with_capacity(used.len());
            for is_used in used {
                numbers.push(next);
                next += u32::from(is_used);
            }
            (numbers, next)
        };
        used.into_iter().map(renumber).collect()
    }
}
