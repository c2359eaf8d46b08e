//! Whether any two conflicting accesses of a chunk are ordered.
//!
//! For the memory of one rank at a time, each step gets a clock: for every block that accesses this memory, how many of
//! its steps (or stretches between syncs) have ended before the step starts. Accesses of a chunk, in the order of a
//! run, are cut into phases of one write or of reads; they are ordered if each comes after all of the phase before.
//!
//! Clocks are first computed from the steps and dependencies of the rank alone, which are few and as a rule enough. What
//! they leave open is asked again with all messages and signals. Messages order what comes before a send and after its
//! receive; that a full connection makes a sender wait does not count.
//!
//! # Source
//! Vector clocks: Mattern, Virtual time and global states of distributed systems, 1989. Phases: `docs/proof.md`.

use std::collections::{HashMap, VecDeque};

use super::matching::{Matching, chunks};
use super::memory::Memory;
use super::{Code, Faults, Place, mode_prefix, step_name};
use crate::program::{Op, Program, Span};

/// What is known to have ended: of each block so many steps or stretches, and single steps beyond.
#[derive(Clone, Debug, Default)]
struct Clock {
    ended: Vec<u32>,
    single: Vec<u32>,
}

impl Clock {
    fn new(width: usize) -> Self {
        Self {
            ended: vec![0; width],
            single: Vec::new(),
        }
    }

    fn join(&mut self, other: &Clock) {
        for (own, &theirs) in self.ended.iter_mut().zip(&other.ended) {
            *own = (*own).max(theirs);
        }
        for &step in &other.single {
            if !self.single.contains(&step) {
                self.single.push(step);
            }
        }
    }
}

/// An access of a chunk: which step, of which of the blocks with clocks, in which step or stretch of it.
#[derive(Clone, Copy, Debug)]
struct Access {
    step: u32,
    block: u32,
    position: u32,
}

impl Access {
    fn is_before(self, clock: &Clock) -> bool {
        clock.ended[self.block as usize] > self.position || clock.single.contains(&self.step)
    }
}

/// Accesses of one chunk that may still conflict: the last write, and the reads since.
#[derive(Clone, Debug, Default)]
struct Cell {
    write: Option<Access>,
    reads: Vec<Access>,
}

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
        for block in 0..program.blocks().len() as u32 {
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
        if accessors.iter().all(of_rank) {
            let mut found = Faults::default();
            Pass::new(self, rank, false).run(&self.own_order[rank as usize], &mut found);
            if found.is_empty() {
                return;
            }
        }
        Pass::new(self, rank, true).run(self.order, faults);
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
    /// Position of each block among those with clocks.
    slot: HashMap<u32, u32>,
    /// What each block knows, and what it will know after its next sync; by block.
    now: HashMap<u32, Clock>,
    pending: HashMap<u32, Clock>,
    stretch: HashMap<u32, u32>,
    /// What is known after steps that others wait for.
    after: HashMap<u32, Clock>,
    signals: HashMap<u32, VecDeque<Clock>>,
    acquired: HashMap<u32, u64>,
    meetings: HashMap<(u32, u32), (Clock, usize)>,
    cells: Vec<Cell>,
}

impl<'a> Pass<'a> {
    fn new(races: &'a Races<'a>, rank: u32, global: bool) -> Self {
        let accessors = &races.accessors[rank as usize];
        let chunks = races.memory.of_rank(rank);
        Self {
            races,
            program: races.program,
            global,
            first_chunk: chunks.start,
            rank,
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
            acquired: HashMap::new(),
            meetings: HashMap::new(),
            cells: vec![Cell::default(); chunks.len()],
        }
    }

    fn run(mut self, order: &[u32], faults: &mut Faults) {
        for &step in order {
            self.step(step, faults);
            if faults.count() >= Faults::KEPT as u64 {
                return;
            }
        }
    }

    fn width(&self) -> usize {
        self.slot.len()
    }

    fn step(&mut self, step: u32, faults: &mut Faults) {
        let view = self.program.step(step);
        let block = self.races.block_of[step as usize];
        let width = self.width();
        let mut clock = self.now.remove(&block).unwrap_or_else(|| Clock::new(width));
        let mut learned = self.learned(step, block, &clock);
        let synced = self.program.is_synced();
        let position = if synced {
            step - self.program.steps_of(block).start
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
        self.publish(step, block, if syncs { &clock } else { &effective });
        if let Some(learned) = learned {
            self.pending
                .entry(block)
                .or_insert_with(|| Clock::new(width))
                .join(&learned);
        }
        self.now.insert(block, clock);
    }

    /// What a step learns from what it waited for; nothing if it waited for nothing.
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
            Op::Wait => {
                for line in view.numbers() {
                    let signals = self.signals.get_mut(&line);
                    if let Some(clock) = signals.and_then(VecDeque::pop_front) {
                        join(&clock);
                    }
                }
            }
            Op::Acquire => {
                for semaphore in view.numbers() {
                    let acquired = self.acquired.entry(semaphore).or_default();
                    *acquired += 1;
                    let initial = self.program.semaphores()[semaphore as usize].initial;
                    let needed = acquired.saturating_sub(u64::from(initial));
                    let releases = &self.races.releases[semaphore as usize];
                    let all: usize = releases.iter().map(|(_, steps)| steps.len()).sum();
                    for (_, steps) in releases {
                        // So many must be of this block even if all others came first.
                        let own = needed.saturating_sub((all - steps.len()) as u64) as usize;
                        if let Some(clock) =
                            own.checked_sub(1).and_then(|i| self.after.get(&steps[i]))
                        {
                            join(clock);
                        }
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

    /// What all blocks that meet at a barrier know together. The first that leaves asks; all have arrived by then.
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
    fn publish(&mut self, step: u32, block: u32, clock: &Clock) {
        let view = self.program.step(step);
        let own = |clock: &Clock| clock.clone();
        if self.global && view.op == Op::Signal {
            for line in view.numbers() {
                self.signals.entry(line).or_default().push_back(own(clock));
            }
            return;
        }
        let writes_packets = view.targets().any(Span::is_packet);
        let asked = view.op.sends() || view.op == Op::Release || writes_packets;
        if self.races.awaited[step as usize] || (self.global && asked) {
            let mut clock = own(clock);
            if writes_packets && !self.program.is_synced() && self.slot.contains_key(&block) {
                clock.single.push(step);
            }
            self.after.insert(step, clock);
        }
    }

    /// Adds the accesses of a step to the chunks, and the races with those before.
    fn access(&mut self, access: Access, clock: &Clock, faults: &mut Faults) {
        let step = self.program.step(access.step);
        let rank = self.rank;
        for span in step.sources().filter(|span| span.rank() == rank) {
            for chunk in self.races.memory.chunks(span) {
                let cell = &mut self.cells[chunk - self.first_chunk];
                if let Some(write) = cell.write
                    && write.step != access.step
                    && !write.is_before(clock)
                {
                    report(
                        self.races,
                        (write.step, "writes"),
                        (access.step, "reads"),
                        span,
                        faults,
                    );
                }
                // What an earlier step of the same block read is read before whatever this one is before.
                let own = (access.block, access.position);
                cell.reads
                    .retain(|read| read.block != own.0 || read.position == own.1);
                cell.reads.push(access);
            }
        }
        for span in step.targets().filter(|span| span.rank() == rank) {
            for chunk in self.races.memory.chunks(span) {
                let cell = &mut self.cells[chunk - self.first_chunk];
                let race = |other: &&Access| other.step != access.step && !other.is_before(clock);
                if let Some(read) = cell.reads.iter().find(race) {
                    report(
                        self.races,
                        (read.step, "reads"),
                        (access.step, "writes"),
                        span,
                        faults,
                    );
                } else if let Some(write) = cell.write.iter().find(race) {
                    report(
                        self.races,
                        (write.step, "writes"),
                        (access.step, "writes"),
                        span,
                        faults,
                    );
                }
                cell.reads.clear();
                cell.write = Some(access);
            }
        }
    }
}

fn report(
    races: &Races<'_>,
    (first, did): (u32, &str),
    (second, does): (u32, &str),
    span: Span,
    faults: &mut Faults,
) {
    let (program, mode) = (races.program, races.memory.mode);
    faults.add(Code::Race, Place::Step(second), || {
        let prefix = mode_prefix(program, mode);
        let first = step_name(program, first);
        format!("{prefix}{does} {span}, which {first} {did} in no certain order with it")
    });
}
