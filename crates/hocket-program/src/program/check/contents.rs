//! What the chunks hold: replays the steps in one order on exact sets of contributions.

use std::collections::VecDeque;

use super::matching::Matching;
use super::memory::Memory;
use super::{Code, Faults, Place, mode_prefix};
use crate::id::narrow;
use crate::program::{Buffer, Op, Program, Span, Step};
use crate::verify::contribution::{Set, SetTable};

/// What a chunk holds: which data, and whose contributions to it. Nothing if the set is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    data: u32,
    of: Set,
}

const NOTHING: Value = Value {
    data: 0,
    of: Set::EMPTY,
};

struct Replay<'a, 'b> {
    program: &'a Program,
    memory: &'a Memory<'a>,
    values: Vec<Value>,
    sets: SetTable,
    under_way: Vec<VecDeque<Value>>,
    faults: &'b mut Faults,
}

/// Adds what is wrong with what is read, summed and left at the end.
pub(super) fn check(
    program: &Program,
    matching: &Matching,
    memory: &Memory<'_>,
    order: &[u32],
    faults: &mut Faults,
) {
    let mut replay = Replay {
        program,
        memory,
        values: vec![NOTHING; memory.len()],
        sets: SetTable::new(program.ranks() as usize),
        under_way: vec![VecDeque::new(); matching.connections.len()],
        faults,
    };
    replay.fill();
    let mut block_of = vec![0u32; program.len()];
    for block in 0..narrow(program.blocks().len()) {
        program
            .steps_of(block)
            .for_each(|step| block_of[step as usize] = block);
    }
    for &step in order {
        let block = block_of[step as usize] as usize;
        replay.step(step, matching.receives_on[block], matching.sends_on[block]);
        if replay.faults.count() >= Faults::KEPT as u64 {
            return;
        }
    }
    if replay.faults.is_empty() {
        replay.check_outputs();
    }
}

impl Replay<'_, '_> {
    /// Puts the inputs where they are before.
    fn fill(&mut self) {
        let task = self.program.task();
        for rank in 0..task.ranks {
            for chunk in 0..task.input(rank) {
                let before = task.before(rank, chunk);
                let at = self.memory.chunk(rank, Buffer::Input, chunk);
                self.values[at] = Value {
                    data: before.data,
                    of: self.sets.single(before.rank.unwrap_or(rank)),
                };
            }
        }
    }

    fn step(&mut self, number: u32, up: u32, down: u32) {
        let step = self.program.step(number);
        match step.op {
            Op::Copy => self.copy(step, number),
            op if op.moves_data() => {
                let count = step.count();
                let mut sums = Vec::with_capacity(count as usize);
                for i in 0..count {
                    let mut sum = NOTHING;
                    if op.receives() {
                        let message = self.under_way[up as usize].pop_front();
                        sum = message.expect("sent before it is received");
                    }
                    for source in step.sources() {
                        let read = self.read(source, i, number);
                        sum = self.add(sum, read, source, number);
                    }
                    sums.push(sum);
                }
                for target in step.targets() {
                    let chunks = self.memory.chunks(target);
                    self.values[chunks].copy_from_slice(&sums);
                }
                if op.sends() {
                    self.under_way[down as usize].extend(sums);
                }
            }
            _ => {}
        }
    }

    fn copy(&mut self, step: Step<'_>, number: u32) {
        let mut read = Vec::with_capacity(step.count() as usize);
        for source in step.sources() {
            for i in 0..source.count() {
                read.push(self.read(source, i, number));
            }
        }
        let mut read = read.into_iter();
        for target in step.targets() {
            for at in self.memory.chunks(target) {
                self.values[at] = read.next().expect("counts are equal");
            }
        }
    }

    fn read(&mut self, span: Span, i: u32, step: u32) -> Value {
        let value = self.values[self.memory.chunks(span).start + i as usize];
        if value.of == Set::EMPTY {
            let (program, mode) = (self.program, self.memory.mode);
            self.faults.add(Code::Undefined, Place::Step(step), || {
                let chunk = Span::new(span.rank(), span.buffer(), span.offset() + i, 1);
                format!(
                    "{}reads {chunk}, which holds nothing",
                    mode_prefix(program, mode)
                )
            });
        }
        value
    }

    fn add(&mut self, a: Value, b: Value, span: Span, step: u32) -> Value {
        if a.of == Set::EMPTY || b.of == Set::EMPTY {
            return if a.of == Set::EMPTY { b } else { a };
        }
        let prefix = || mode_prefix(self.program, self.memory.mode);
        if a.data != b.data {
            self.faults.add(Code::WrongSum, Place::Step(step), || {
                let (first, second) = (a.data, b.data);
                format!(
                    "{}sums chunks {first} and {second} of the data in {span}",
                    prefix()
                )
            });
            return a;
        }
        match self.sets.disjoint_union(a.of, b.of) {
            Some(of) => Value { data: a.data, of },
            None => {
                self.faults.add(Code::CountedTwice, Place::Step(step), || {
                    let data = a.data;
                    format!(
                        "{}sums a rank's contribution to chunk {data} of the data twice, in {span}",
                        prefix()
                    )
                });
                a
            }
        }
    }

    fn check_outputs(&mut self) {
        let task = *self.program.task();
        let prefix = || mode_prefix(self.program, self.memory.mode);
        for rank in 0..task.ranks {
            for chunk in 0..task.output(rank) {
                let Some(after) = task.after(rank, chunk) else {
                    return;
                };
                let wanted = after
                    .rank
                    .map_or_else(|| self.sets.all(), |of| self.sets.single(of));
                let value = self.values[self.memory.chunk(rank, Buffer::Output, chunk)];
                if value.of == wanted && value.data == after.data {
                    continue;
                }
                let missing = (0..task.ranks).find(|&other| {
                    self.sets.contains(wanted, other) && !self.sets.contains(value.of, other)
                });
                let what = if value.of == Set::EMPTY {
                    "holds nothing".to_owned()
                } else if value.data != after.data {
                    format!("holds chunk {} of the data, not {}", value.data, after.data)
                } else if let Some(missing) = missing {
                    format!("lacks the contribution of rank {missing}")
                } else {
                    "holds contributions that do not belong there".to_owned()
                };
                self.faults.add(Code::WrongResult, Place::Rank(rank), || {
                    format!("{}output chunk {chunk} {what} at the end", prefix())
                });
            }
        }
    }
}
