//! Whether any two conflicting accesses of a chunk are ordered.
//!
//! For the memory of one rank at a time, each step gets a clock: for every block that accesses this memory, how many of
//! its steps (or stretches between syncs) have ended before the step starts. Accesses of a chunk, in the order of a
//! run, are cut into phases of one write or of reads. They are ordered if each comes after all of the phase before.
//!
//! Clocks are first computed from the steps and dependencies of the rank alone, which are few and as a rule enough. What
//! they leave open is asked again with all messages and signals. Messages order what comes before a send and after its
//! receive; that a full connection makes a sender wait does not count.
//!
//! Where other ranks access the memory, several calls are looked at, one after the other. A rank begins a call when its
//! own blocks have ended the call before, and nothing else holds it back. In between its caller reads and writes its
//! input and output, which is one more access. Two calls are enough: steps of the first and of the third that conflict do so
//! with a step of the second, too. Scratch whose halves take turns is used again by the third call, so three are made.
//! A rank whose memory only its own blocks access needs one call: they have all ended before they begin again.
//!
//! # Source
//! Vector clocks: Mattern, Virtual time and global states of distributed systems, 1989. Phases: `docs/proof.md`.

use std::collections::{HashMap, HashSet, VecDeque};

use super::clock::{Access, CALLER, Cell, Clock};
use super::matching::{Matching, chunks};
use super::memory::Memory;
use super::{Code, Faults, Place, mode_prefix, step_name};
use crate::id::{fit, narrow};
use crate::program::{Buffer, Op, Program, Span};

/// Looks for races, rank by rank.
pub(super) struct Races<'a> {
    program: &'a Program,
    matching: &'a Matching,
    memory: &'a Memory<'a>,
    order: &'a [u32],
    block_of: Vec<u32>,
    /// Steps of each rank in the order of the run.
    own_order: Vec<Vec<u32>>,
    /// Blocks that access the memory of each rank, ascending.
    accessors: Vec<Vec<u32>>,
    /// Steps that others of their rank wait for.
    awaited: Vec<bool>,
    /// Steps that release each semaphore, by block.
    releases: Vec<Vec<(u32, Vec<u32>)>>,
}

impl<'a> Races<'a> {
    pub(super) fn new(
        program: &'a Program,
        matching: &'a Matching,
        memory: &'a Memory<'a>,
        order: &'a [u32],
    ) -> Self {
        let mut block_of = vec![0; program.len()];
        let mut awaited = vec![false; program.len()];
        let mut accessors = vec![Vec::new(); program.ranks() as usize];
        let mut releases = vec![Vec::new(); program.semaphores().len()];
        for block in 0..narrow(program.blocks().len()) {
            for step in program.steps_of(block) {
                block_of[step as usize] = block;
                let view = program.step(step);
                if let Some(target) = view.dependency {
                    awaited[target as usize] = true;
                }
                for span in view.spans() {
                    let list: &mut Vec<u32> = &mut accessors[span.rank() as usize];
                    if list.last() != Some(&block) {
                        list.push(block);
                    }
                }
                if view.op == Op::Release {
                    for semaphore in view.numbers() {
                        let list: &mut Vec<(u32, Vec<u32>)> = &mut releases[semaphore as usize];
                        match list.last_mut() {
                            Some((last, steps)) if *last == block => steps.push(step),
                            _ => list.push((block, vec![step])),
                        }
                    }
                }
            }
        }
        let mut own_order = vec![Vec::new(); program.ranks() as usize];
        for &step in order {
            let block = block_of[step as usize] as usize;
            own_order[program.blocks()[block].rank as usize].push(step);
        }
        Self {
            program,
            matching,
            memory,
            order,
            block_of,
            own_order,
            accessors,
            awaited,
            releases,
        }
    }

    /// Adds the races in the memory of one rank.
    pub(super) fn check(&mut self, rank: u32, faults: &mut Faults) {
        let accessors = &self.accessors[rank as usize];
        let of_rank = |&block: &u32| self.program.blocks()[block as usize].rank == rank;
        let mut calls = 1;
        if accessors.iter().all(of_rank) {
            let mut found = Faults::default();
            Pass::new(self, rank, false).run(&self.own_order[rank as usize], 1, &mut found);
            if found.is_empty() {
                return;
            }
        } else {
            calls = if self.program.alternates() { 3 } else { 2 };
        }
        Pass::new(self, rank, true).run(self.order, calls, faults);
    }
}

/// One computation of clocks, for the memory of one rank.
struct Pass<'a> {
    races: &'a Races<'a>,
    program: &'a Program,
    /// Whether messages, signals and packets count.
    global: bool,
    first_chunk: usize,
    rank: u32,
    call: u32,
    /// Position of each block among those with clocks; the caller comes after them.
    slot: HashMap<u32, u32>,
    /// What each block knows, and what it will know after its next sync; by block.
    now: HashMap<u32, Clock>,
    pending: HashMap<u32, Clock>,
    stretch: HashMap<u32, u32>,
    /// What is known after steps that others wait for.
    after: HashMap<u32, Clock>,
    signals: HashMap<u32, VecDeque<Clock>>,
    /// What is known after each release of each semaphore.
    released: HashMap<(u32, u32), Clock>,
    acquired: HashMap<u32, u64>,
    /// What single threads of each block have learned since its last sync: thread i waits for the i-th number of a step.
    threads: HashMap<u32, Vec<Clock>>,
    meetings: HashMap<(u32, u32), (Clock, usize)>,
    /// Chunks of the rank, and its scratch once more where halves take turns.
    cells: Vec<Cell>,
    /// Pairs of steps of two calls that were reported.
    reported: HashSet<(u32, u32)>,
}

impl<'a> Pass<'a> {
    fn new(races: &'a Races<'a>, rank: u32, global: bool) -> Self {
        let accessors = &races.accessors[rank as usize];
        let chunks = races.memory.of_rank(rank);
        let scratch = races.program.sizes()[rank as usize][Buffer::Scratch as usize] as usize;
        let halves = if races.program.alternates() {
            scratch
        } else {
            0
        };
        Self {
            races,
            program: races.program,
            global,
            first_chunk: chunks.start,
            rank,
            call: 0,
            slot: accessors
                .iter()
                .zip(0..)
                .map(|(&block, slot)| (block, slot))
                .collect(),
            now: HashMap::new(),
            pending: HashMap::new(),
            stretch: HashMap::new(),
            after: HashMap::new(),
            signals: HashMap::new(),
            released: HashMap::new(),
            acquired: HashMap::new(),
            threads: HashMap::new(),
            meetings: HashMap::new(),
            cells: vec![Cell::default(); chunks.len() + halves],
            reported: HashSet::new(),
        }
    }

    fn run(mut self, order: &[u32], calls: u32, faults: &mut Faults) {
        for call in 0..calls {
            self.call = call;
            if calls > 1 {
                self.begin(faults);
            }
            for &step in order {
                self.step(step, faults);
                if faults.count() >= Faults::KEPT as u64 {
                    return;
                }
            }
        }
    }

    /// Begins a call: the blocks of each rank know that all of them have ended the call before, and that the caller is done.
    fn begin(&mut self, faults: &mut Faults) {
        self.acquired.clear();
        for rank in 0..self.program.ranks() {
            if self.call == 0 && rank != self.rank {
                continue;
            }
            let mut known = Clock::new(self.width());
            for block in self.program.blocks_of(rank) {
                for clock in [self.now.remove(&block), self.pending.remove(&block)] {
                    clock.iter().for_each(|clock| known.join(clock));
                }
                self.threads.remove(&block);
                let ended = if self.program.is_synced() {
                    self.call * narrow(self.program.steps_of(block).len())
                } else {
                    let stretch = self.stretch.entry(block).or_default();
                    *stretch += u32::from(self.call > 0);
                    *stretch
                };
                if let Some(&slot) = self.slot.get(&block) {
                    known.ended[slot as usize] = ended;
                }
            }
            if rank == self.rank {
                let caller = self.slot.len();
                known.ended[caller] = self.call;
                self.hand_over(&known, faults);
                known.ended[caller] = self.call + 1;
            }
            for block in self.program.blocks_of(rank) {
                self.now.insert(block, known.clone());
            }
        }
    }

    /// The caller reads and writes the input and the output of the rank, with what is known when its call begins.
    fn hand_over(&mut self, known: &Clock, faults: &mut Faults) {
        let access = Access {
            step: CALLER,
            call: self.call,
            block: narrow(self.slot.len()),
            position: self.call,
        };
        for chunk in self.races.memory.of_caller(self.rank) {
            let cell = std::mem::take(&mut self.cells[chunk - self.first_chunk]);
            let early = |other: &&Access| !other.is_before(known);
            let read = cell.reads.iter().find(early).map(|&read| (read, "reads"));
            let write = cell.write.iter().find(early);
            if let Some((other, did)) = read.or(write.map(|&write| (write, "writes"))) {
                self.report_return((other.step, did), chunk, faults);
            }
            self.cells[chunk - self.first_chunk].write = Some(access);
        }
    }

    fn width(&self) -> usize {
        self.slot.len() + 1
    }

    fn step(&mut self, step: u32, faults: &mut Faults) {
        let view = self.program.step(step);
        let block = self.races.block_of[step as usize];
        let width = self.width();
        let mut clock = self.now.remove(&block).unwrap_or_else(|| Clock::new(width));
        let mut learned = self.learned(step, block, &clock);
        let synced = self.program.is_synced();
        let position = if synced {
            let steps = self.program.steps_of(block);
            self.call * narrow(steps.len()) + step - steps.start
        } else {
            self.stretch.get(&block).copied().unwrap_or(0)
        };
        let slot = self.slot.get(&block).copied();
        // What the accesses of this step come after: packets order them at once, the rest from the next sync on.
        let orders_itself = synced || view.sources().any(Span::is_packet);
        let mut effective = clock.clone();
        if let (Some(learned), true) = (&learned, orders_itself) {
            effective.join(learned);
        }
        if let Some(block) = slot {
            let access = Access {
                step,
                call: self.call,
                block,
                position,
            };
            self.access(access, &effective, faults);
        }
        let syncs = synced || matches!(view.op, Op::Nop | Op::Barrier);
        if syncs {
            if let Some(pending) = self.pending.remove(&block) {
                clock.join(&pending);
            }
            self.threads.remove(&block);
            if let Some(learned) = learned.take() {
                clock.join(&learned);
            }
            if let Some(slot) = slot {
                clock.ended[slot as usize] = position + 1;
            }
            if !synced {
                self.stretch.insert(block, position + 1);
            }
        }
        self.publish(
            (step, block, position),
            if syncs { &clock } else { &effective },
        );
        if let Some(learned) = learned {
            self.pending
                .entry(block)
                .or_insert_with(|| Clock::new(width))
                .join(&learned);
        }
        self.now.insert(block, clock);
    }

    /// Returns what a step learns from what it waited for; nothing if it waited for nothing.
    fn learned(&mut self, step: u32, block: u32, now: &Clock) -> Option<Clock> {
        let view = self.program.step(step);
        let mut learned: Option<Clock> = None;
        let width = self.width();
        let mut join = |clock: &Clock| {
            learned.get_or_insert_with(|| Clock::new(width)).join(clock);
        };
        if let Some(clock) = view.dependency.and_then(|target| self.after.get(&target)) {
            join(clock);
        }
        if !self.global {
            return learned;
        }
        let matching = self.races.matching;
        if view.op.receives() {
            let sent_by = matching.sent_by[step as usize];
            if let Some(clock) = self.after.get(&sent_by) {
                join(clock);
            }
            if !self.races.awaited[sent_by as usize] {
                self.after.remove(&sent_by); // nobody else asks
            }
        }
        match view.op {
            Op::Wait | Op::Acquire => {
                for (thread, number) in view.numbers().enumerate() {
                    let clock = match view.op {
                        Op::Wait => self.signals.get_mut(&number).and_then(VecDeque::pop_front),
                        _ => self.acquire(number, (step, block)),
                    };
                    if let Some(clock) = clock {
                        join(&clock);
                        let threads = self.threads.entry(block).or_default();
                        if threads.len() <= thread {
                            threads.resize(thread + 1, Clock::new(width));
                        }
                        threads[thread].join(&clock);
                    }
                }
            }
            Op::Barrier => join(&self.meet(step, block, now)),
            _ => {}
        }
        for chunk in view
            .sources()
            .filter(|span| span.is_packet())
            .flat_map(chunks)
        {
            let written = matching.written_by.get(&chunk);
            if let Some(clock) = written.and_then(|by| self.after.get(by)) {
                join(clock);
            }
        }
        learned
    }

    /// Returns what is known after a step of a block has taken a semaphore once more.
    fn acquire(&mut self, semaphore: u32, (step, block): (u32, u32)) -> Option<Clock> {
        let acquired = self.acquired.entry(semaphore).or_default();
        *acquired += 1;
        let initial = self.program.semaphores()[semaphore as usize].initial;
        let needed = acquired.saturating_sub(u64::from(initial));
        let releases = &self.races.releases[semaphore as usize];
        // What the block itself releases later comes too late for it.
        let before = |(by, steps): &(u32, Vec<u32>)| match *by == block {
            true => steps.partition_point(|&release| release < step),
            false => steps.len(),
        };
        let all: usize = releases.iter().map(before).sum();
        let mut known: Option<Clock> = None;
        for each in releases {
            // So many must be of this block even if all others came first.
            let own: usize = fit(needed.saturating_sub((all - before(each)) as u64));
            let last = own.checked_sub(1).map(|i| (each.1[i], semaphore));
            if let Some(clock) = last.and_then(|last| self.released.get(&last)) {
                known
                    .get_or_insert_with(|| Clock::new(clock.ended.len()))
                    .join(clock);
            }
        }
        known
    }

    /// Returns what all blocks that meet at a barrier know together. The first that leaves asks; all have arrived by
    /// then.
    fn meet(&mut self, step: u32, block: u32, now: &Clock) -> Clock {
        let rank = self.program.blocks()[block as usize].rank;
        let id = self.program.step(step).numbers().next().expect("checked");
        let blocks = &self.races.matching.barriers[&(rank, id)];
        if let Some((clock, left)) = self.meetings.remove(&(rank, id)) {
            if left > 1 {
                self.meetings.insert((rank, id), (clock.clone(), left - 1));
            }
            return clock;
        }
        let mut all = Clock::new(self.width());
        for other in blocks {
            let known = if *other == block {
                Some(now)
            } else {
                self.now.get(other)
            };
            for clock in known.into_iter().chain(self.pending.get(other)) {
                all.join(clock);
            }
            if let Some(&slot) = self.slot.get(other) {
                let ended = if self.program.is_synced() {
                    0 // known already: steps are synced
                } else {
                    self.stretch.get(other).copied().unwrap_or(0) + 1
                };
                let own = &mut all.ended[slot as usize];
                *own = (*own).max(ended);
            }
        }
        if blocks.len() > 1 {
            self.meetings
                .insert((rank, id), (all.clone(), blocks.len() - 1));
        }
        all
    }

    /// Keeps what is known after a step, for those who wait for it.
    fn publish(&mut self, (step, block, position): (u32, u32, u32), clock: &Clock) {
        let view = self.program.step(step);
        if self.global && matches!(view.op, Op::Signal | Op::Release) {
            for (thread, number) in view.numbers().enumerate() {
                let mut known = clock.clone();
                // What the thread that signals has waited for by itself.
                let threads = self.threads.get(&block);
                if let Some(own) = threads.and_then(|threads| threads.get(thread)) {
                    known.join(own);
                }
                if view.op == Op::Signal {
                    self.signals.entry(number).or_default().push_back(known);
                } else {
                    self.released.insert((step, number), known);
                }
            }
        }
        let writes_packets = view.targets().any(Span::is_packet);
        let asked = view.op.sends() || writes_packets;
        if self.races.awaited[step as usize] || (self.global && asked) {
            let mut clock = clock.clone();
            if let (true, false, Some(&slot)) = (
                writes_packets,
                self.program.is_synced(),
                self.slot.get(&block),
            ) {
                clock.single.push(Access {
                    step,
                    call: self.call,
                    block: slot,
                    position,
                });
            }
            self.after.insert(step, clock);
        }
    }

    /// Returns position of a chunk of a span among the cells.
    fn cell(&self, span: Span, chunk: usize) -> usize {
        let mut at = chunk - self.first_chunk;
        if span.buffer() == Buffer::Scratch && self.program.alternates() && self.call % 2 == 1 {
            at += self.program.sizes()[self.rank as usize][Buffer::Scratch as usize] as usize;
        }
        at
    }

    /// Adds the accesses of a step to the chunks, and the races with those before.
    fn access(&mut self, access: Access, clock: &Clock, faults: &mut Faults) {
        let step = self.program.step(access.step);
        let rank = self.rank;
        for span in step.sources().filter(|span| span.rank() == rank) {
            for chunk in self.races.memory.chunks(span) {
                let at = self.cell(span, chunk);
                let cell = &mut self.cells[at];
                let write = cell
                    .write
                    .filter(|write| write.step != access.step && !write.is_before(clock));
                // What an earlier step of the same block read is read before whatever this one is before.
                let own = (access.block, access.position);
                cell.reads
                    .retain(|read| read.block != own.0 || read.position == own.1);
                cell.reads.push(access);
                if let Some(write) = write {
                    self.report((write, "writes"), (access, "reads"), span, faults);
                }
            }
        }
        for span in step.targets().filter(|span| span.rank() == rank) {
            for chunk in self.races.memory.chunks(span) {
                let at = self.cell(span, chunk);
                let cell = std::mem::take(&mut self.cells[at]);
                let race = |other: &&Access| {
                    let is_same = (other.step, other.call) == (access.step, access.call);
                    !is_same && !other.is_before(clock)
                };
                if let Some(&read) = cell.reads.iter().find(race) {
                    self.report((read, "reads"), (access, "writes"), span, faults);
                } else if let Some(&write) = cell.write.iter().find(race) {
                    self.report((write, "writes"), (access, "writes"), span, faults);
                }
                self.cells[at].write = Some(access);
            }
        }
    }

    /// Adds a race of two steps of one call or of two, or of a step with the caller before it.
    fn report(
        &mut self,
        (first, did): (Access, &str),
        (second, does): (Access, &str),
        span: Span,
        faults: &mut Faults,
    ) {
        let (program, mode) = (self.program, self.races.memory.mode);
        let prefix = || mode_prefix(program, mode);
        if first.call == second.call && first.step != CALLER {
            if second.call == 0 {
                faults.add(Code::Race, Place::Step(second.step), || {
                    let first = step_name(program, first.step);
                    let prefix = prefix();
                    format!(
                        "{prefix}{does} {span}, which {first} {did} in no certain order with it"
                    )
                });
            }
            return;
        }
        if !self.reported.insert((first.step, second.step)) {
            return;
        }
        faults.add(Code::NextCall, Place::Step(second.step), || {
            let (prefix, rank) = (prefix(), span.rank());
            if first.step == CALLER {
                return format!(
                    "{prefix}{does} {span} when rank {rank} may not have begun the call yet; wait for a signal of rank {rank} first"
                );
            }
            let apart = second.call - first.call;
            let later = if apart == 1 { "the next call" } else { "the call after next" };
            let first = step_name(program, first.step);
            let done = if did == "reads" { "read" } else { "written" };
            format!(
                "{prefix}{does} {span} in {later} when {first} may not have {done} it yet in this one"
            )
        });
    }

    /// Adds that a step may still access a chunk when the call of its rank has ended.
    fn report_return(&mut self, (step, does): (u32, &str), chunk: usize, faults: &mut Faults) {
        if !self.reported.insert((step, CALLER)) {
            return;
        }
        let (program, memory, rank) = (self.program, self.races.memory, self.rank);
        faults.add(Code::NextCall, Place::Step(step), || {
            let prefix = mode_prefix(program, memory.mode);
            let mut spans = program.step(step).spans();
            let covers = |span: &Span| span.rank() == rank && memory.chunks(*span).contains(&chunk);
            let span = spans.find(covers).expect("it was accessed");
            format!(
                "{prefix}{does} {span} when rank {rank} may have ended the call; have a block of rank {rank} wait for a signal after it"
            )
        });
    }
}
