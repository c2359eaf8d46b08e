//! All runs of several calls of a small program, by an interpreter of its own, slow and obvious.
//!
//! A rank begins a call when its blocks have ended the call before; in between its caller takes what is in the output and
//! gives new inputs. Each step, and each such handing over, begins and ends at a moment of its own.

use std::collections::{BTreeMap, HashSet};

use hocket_core::id::narrow;
use hocket_core::program::{Buffer, Mode, Op, Program, Span, Step, Task};
use hocket_core::units::Seed;

/// What runs come to; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Race,
    Undefined,
    Stuck,
    Wrong,
    Left,
    Right,
    TooMany,
}

/// An access that has begun: of a step of a block, or of a caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Open {
    reads: Vec<usize>,
    writes: Vec<(usize, Option<u64>)>,
    flags: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// No call, or the last one has ended.
    Outside,
    /// The caller has its buffers.
    Caller,
    /// The blocks run.
    Inside,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// Of each rank, the calls that have begun, and where it is.
    calls: Vec<u32>,
    phases: Vec<Phase>,
    at: Vec<u32>,
    open: Vec<Option<Open>>,
    handing: Vec<Option<Open>>,
    cells: Vec<Option<u64>>,
    flags: Vec<u32>,
    signals: Vec<u32>,
    semaphores: Vec<u32>,
    /// Blocks that stand at a barrier.
    arrived: Vec<bool>,
    passed: Vec<bool>,
}

struct World<'a> {
    program: &'a Program,
    task: Task,
    mode: Mode,
    calls: u32,
    /// First cell of each rank's input, output and two halves of scratch.
    starts: Vec<[usize; 4]>,
}

impl World<'_> {
    fn cell(&self, rank: u32, buffer: Buffer, chunk: u32, call: u32) -> usize {
        let starts = self.starts[rank as usize];
        match (self.mode, buffer) {
            (_, Buffer::Scratch) => {
                let half = usize::from(self.program.alternates() && call % 2 == 1);
                starts[2 + half] + chunk as usize
            }
            (Mode::InPlace, _) => starts[0] + self.task.in_place(rank, buffer, chunk) as usize,
            _ => starts[buffer as usize] + chunk as usize,
        }
    }

    fn number(rank: u32, data: u32, call: u32) -> u64 {
        let mut seed = Seed(u64::from(call) << 40 | u64::from(rank) << 20 | u64::from(data));
        seed.next_u64()
    }

    fn wanted(&self, rank: u32, chunk: u32, call: u32) -> u64 {
        let after = self.task.after(rank, chunk).expect("a known kind");
        let of = |rank| Self::number(rank, after.data, call);
        match after.rank {
            Some(rank) => of(rank),
            None => (0..self.task.ranks).map(of).fold(0, u64::wrapping_add),
        }
    }

    fn blocks_of(&self, rank: u32) -> impl Iterator<Item = usize> {
        self.program.blocks_of(rank).map(|block| block as usize)
    }

    fn start(&self, cells: usize) -> State {
        let blocks = self.program.blocks().len();
        let ranks = self.task.ranks as usize;
        let firsts = (0..narrow(blocks)).map(|block| self.program.steps_of(block).start);
        let semaphores = self.program.semaphores().iter().map(|each| each.initial);
        State {
            calls: vec![0; ranks],
            phases: vec![Phase::Outside; ranks],
            at: firsts.collect(),
            open: vec![None; blocks],
            handing: vec![None; ranks],
            cells: vec![None; cells],
            flags: vec![0; cells],
            signals: vec![0; self.program.lines().len()],
            semaphores: semaphores.collect(),
            arrived: vec![false; blocks],
            passed: vec![false; blocks],
        }
    }

    fn has_ended(&self, state: &State, rank: u32) -> bool {
        self.blocks_of(rank).all(|block| {
            let end = self.program.steps_of(narrow(block)).end;
            state.at[block] == end && state.open[block].is_none()
        })
    }

    /// What a caller does next; an outcome if it finds something wrong.
    fn caller(&self, state: &State, rank: u32) -> Option<Result<State, Outcome>> {
        let r = rank as usize;
        let mut next = state.clone();
        match state.phases[r] {
            Phase::Outside => {
                let call = state.calls[r];
                if call > self.calls {
                    return None;
                }
                let outputs = 0..self.task.output(rank);
                let is_right = |chunk| {
                    let at = self.cell(rank, Buffer::Output, chunk, 0);
                    state.cells[at] == Some(self.wanted(rank, chunk, call - 1))
                };
                if call > 0 && !outputs.clone().all(is_right) {
                    return Some(Err(Outcome::Wrong));
                }
                let mut writes = BTreeMap::new();
                for chunk in outputs {
                    writes.insert(self.cell(rank, Buffer::Output, chunk, 0), None);
                }
                for chunk in 0..self.task.input(rank) {
                    let data = self.task.before(rank, chunk).data;
                    let value = Self::number(rank, data, call);
                    writes.insert(self.cell(rank, Buffer::Input, chunk, 0), Some(value));
                }
                next.phases[r] = Phase::Caller;
                next.handing[r] = Some(Open {
                    reads: Vec::new(),
                    writes: writes.into_iter().collect(),
                    flags: Vec::new(),
                });
            }
            Phase::Caller => {
                let handed = next.handing[r].take().expect("it has begun");
                for (cell, value) in handed.writes {
                    next.cells[cell] = value;
                }
                next.calls[r] += 1;
                next.phases[r] = Phase::Outside;
                if next.calls[r] <= self.calls {
                    next.phases[r] = Phase::Inside;
                    for block in self.blocks_of(rank) {
                        next.at[block] = self.program.steps_of(narrow(block)).start;
                    }
                }
            }
            Phase::Inside if self.has_ended(state, rank) => next.phases[r] = Phase::Outside,
            Phase::Inside => return None,
        }
        Some(Ok(next))
    }

    /// What a block does next, if it can.
    fn block(&self, state: &State, block: usize) -> Option<Result<State, Outcome>> {
        let rank = self.program.blocks()[block].rank;
        let r = rank as usize;
        if state.phases[r] != Phase::Inside {
            return None;
        }
        let mut next = state.clone();
        if let Some(open) = next.open[block].take() {
            for (cell, value) in open.writes {
                next.cells[cell] = value;
            }
            for cell in open.flags {
                next.flags[cell] = state.calls[r];
            }
            return Some(Ok(next));
        }
        let at = state.at[block];
        if at == self.program.steps_of(narrow(block)).end {
            return None;
        }
        let step = self.program.step(at);
        next.at[block] += 1;
        let numbers = || step.numbers().map(|number| number as usize);
        match step.op {
            Op::Signal => numbers().for_each(|line| next.signals[line] += 1),
            Op::Release => numbers().for_each(|each| next.semaphores[each] += 1),
            Op::Wait | Op::Acquire => {
                let counts = if step.op == Op::Wait {
                    &mut next.signals
                } else {
                    &mut next.semaphores
                };
                for number in numbers() {
                    counts[number] = counts[number].checked_sub(1)?;
                }
            }
            Op::Barrier if state.passed[block] => next.passed[block] = false,
            Op::Barrier => return self.meet(state, block).map(Ok),
            Op::Copy | Op::Reduce => match self.moved(state, step, state.calls[r])? {
                Some(open) => next.open[block] = Some(open),
                None => return Some(Err(Outcome::Undefined)),
            },
            _ => {}
        }
        Some(Ok(next))
    }

    fn meet(&self, state: &State, block: usize) -> Option<State> {
        if state.arrived[block] {
            return None;
        }
        let mut next = state.clone();
        next.arrived[block] = true;
        let rank = self.program.blocks()[block].rank;
        let id = |block: usize| {
            let step = self.program.step(state.at[block]);
            step.numbers().next()
        };
        let own = self.program.step(state.at[block]);
        let needed = own.numbers().nth(1).expect("how many blocks") as usize;
        let here: Vec<usize> = self
            .blocks_of(rank)
            .filter(|&other| next.arrived[other] && id(other) == id(block))
            .collect();
        if here.len() == needed {
            for other in here {
                next.arrived[other] = false;
                next.passed[other] = true;
            }
        }
        Some(next)
    }

    /// The access of a step that moves data: `None` if a packet is not there yet, and inside if it reads what holds nothing.
    fn moved(&self, state: &State, step: Step<'_>, call: u32) -> Option<Option<Open>> {
        let cells = |span: Span| {
            let chunks = span.offset()..span.offset() + span.count();
            chunks
                .map(|chunk| self.cell(span.rank(), span.buffer(), chunk, call))
                .collect::<Vec<_>>()
        };
        let mut open = Open {
            reads: Vec::new(),
            writes: Vec::new(),
            flags: Vec::new(),
        };
        let mut values = Vec::new();
        for span in step.sources() {
            let of = cells(span);
            if span.is_packet() && of.iter().any(|&cell| state.flags[cell] != call) {
                return None;
            }
            values.push(of.iter().map(|&cell| state.cells[cell]).collect::<Vec<_>>());
            open.reads.extend(of);
        }
        if values.iter().flatten().any(Option::is_none) {
            return Some(None);
        }
        for (i, span) in step.targets().enumerate() {
            let of = cells(span);
            for (j, &cell) in of.iter().enumerate() {
                let value = match step.op {
                    Op::Copy => values[i][j],
                    _ => {
                        let all = values.iter().filter_map(|value| value[j]);
                        Some(all.fold(0, u64::wrapping_add))
                    }
                };
                open.writes.push((cell, value));
            }
            if span.is_packet() {
                open.flags.extend(of);
            }
        }
        Some(Some(open))
    }

    fn has_conflict(state: &State) -> bool {
        let all: Vec<&Open> = state.open.iter().chain(&state.handing).flatten().collect();
        let writes = |open: &Open, cell: usize| open.writes.iter().any(|it| it.0 == cell);
        all.iter().enumerate().any(|(i, a)| {
            all[..i].iter().any(|b| {
                a.writes
                    .iter()
                    .any(|&(cell, _)| writes(b, cell) || b.reads.contains(&cell))
                    || a.reads.iter().any(|&cell| writes(b, cell))
            })
        })
    }
}

/// The worst of all runs of so many calls of a program without connections whose steps are synced.
pub(crate) fn every_run(program: &Program, calls: u32, limit: usize) -> Outcome {
    let task = *program.task();
    let mut starts = Vec::new();
    let mut cells = 0;
    for rank in 0..task.ranks {
        let sizes = program.sizes()[rank as usize].map(|size| size as usize);
        let both = sizes[0] + sizes[1];
        starts.push([
            cells,
            cells + sizes[0],
            cells + both,
            cells + both + sizes[2],
        ]);
        cells += both + 2 * sizes[2];
    }
    let world = World {
        program,
        task,
        mode: program.modes()[0],
        calls,
        starts,
    };
    let first = world.start(cells);
    let mut seen = HashSet::from([first.clone()]);
    let mut left = vec![first];
    let mut worst = Outcome::Right;
    while let Some(state) = left.pop() {
        if World::has_conflict(&state) {
            return Outcome::Race;
        }
        let blocks = (0..program.blocks().len()).filter_map(|block| world.block(&state, block));
        let callers = (0..task.ranks).filter_map(|rank| world.caller(&state, rank));
        let mut is_last = true;
        for next in blocks.chain(callers) {
            is_last = false;
            match next {
                Err(outcome) => worst = worst.min(outcome),
                Ok(next) => {
                    if seen.insert(next.clone()) {
                        left.push(next);
                    }
                }
            }
        }
        if is_last {
            let has_ended = state.calls.iter().all(|&call| call > calls);
            let mut initial = program.semaphores().iter().map(|each| each.initial);
            let is_same = state
                .semaphores
                .iter()
                .all(|&it| Some(it) == initial.next())
                && state.signals.iter().all(|&it| it == 0);
            let outcome = match (has_ended, is_same) {
                (false, _) => Outcome::Stuck,
                (true, false) => Outcome::Left,
                (true, true) => Outcome::Right,
            };
            worst = worst.min(outcome);
        }
        if seen.len() > limit {
            return Outcome::TooMany;
        }
    }
    worst
}
