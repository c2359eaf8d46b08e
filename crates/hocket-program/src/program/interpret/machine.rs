//! The state of a run, and what one block does next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Element, InterpretError, InterpretOptions};
use crate::id::narrow;
use crate::program::check::{Matching, Memory, step_name};
use crate::program::{Buffer, Op, Program, Span};

/// A part of a step that has begun: what it read, and what it is still to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Open<T> {
    pub step: u32,
    /// Chunks of memory that are being read and written.
    pub reads: Vec<usize>,
    pub writes: Vec<usize>,
    /// The numbers to write: for each target chunk those of a source chunk.
    values: Vec<T>,
    packets: Vec<(u32, u32, u32)>,
}

/// A message: numbers of its chunks.
type Message<T> = Vec<T>;

/// The state of a run.
#[derive(Clone)]
pub(super) struct Machine<'a, T> {
    pub program: &'a Program,
    matching: &'a Matching,
    memory: &'a Memory<'a>,
    elements: usize,
    per_message: u32,
    pub at: Vec<u32>,
    /// Messages of the step of each block that are through.
    messages: Vec<u32>,
    pub open: Vec<Vec<Open<T>>>,
    cells: Vec<Option<T>>,
    fifos: Vec<VecDeque<Message<T>>>,
    /// Messages that are being written into each connection, or read from it.
    held: Vec<u32>,
    signals: Vec<u64>,
    semaphores: Vec<u64>,
    arrived: BTreeMap<(u32, u32), Vec<u32>>,
    passed: Vec<bool>,
    packets: BTreeSet<(u32, u32, u32)>,
}

/// The part of a run's state on which its future depends, for telling states apart.
pub(super) type State<T> = (
    Vec<u32>,
    Vec<u32>,
    Vec<Vec<Open<T>>>,
    Vec<Option<T>>,
    Vec<VecDeque<Message<T>>>,
    (Vec<u32>, Vec<u64>, Vec<u64>, Vec<bool>),
    BTreeMap<(u32, u32), Vec<u32>>,
    BTreeSet<(u32, u32, u32)>,
);

impl<'a, T: Element> Machine<'a, T> {
    pub(super) fn new(
        program: &'a Program,
        matching: &'a Matching,
        memory: &'a Memory<'a>,
        options: &InterpretOptions,
        input: &impl Fn(u32, u32, usize) -> T,
    ) -> Self {
        let elements = options.elements;
        let mut cells = vec![None; memory.len() * elements];
        for rank in 0..program.ranks() {
            for chunk in 0..program.task().input(rank) {
                let first = memory.chunk(rank, Buffer::Input, chunk) * elements;
                for i in 0..elements {
                    cells[first + i] = Some(input(rank, chunk, i));
                }
            }
        }
        let blocks = program.blocks().len();
        let firsts = (0..narrow(blocks)).map(|block| program.steps_of(block).start);
        Self {
            program,
            matching,
            memory,
            elements,
            per_message: options.chunks_per_message.max(1),
            at: firsts.collect(),
            messages: vec![0; blocks],
            open: vec![Vec::new(); blocks],
            cells,
            fifos: vec![VecDeque::new(); matching.connections.len()],
            held: vec![0; matching.connections.len()],
            signals: vec![0; program.lines().len()],
            semaphores: program
                .semaphores()
                .iter()
                .map(|each| u64::from(each.initial))
                .collect(),
            arrived: BTreeMap::new(),
            passed: vec![false; blocks],
            packets: BTreeSet::new(),
        }
    }

    /// Begins and ends the next part of a block's step; whether it could.
    pub(super) fn advance(&mut self, block: u32) -> Result<bool, InterpretError> {
        if !self.begin(block)? {
            return Ok(false);
        }
        while !self.open[block as usize].is_empty() {
            self.end(block, 0);
        }
        Ok(true)
    }

    /// Returns the numbers of a chunk of memory.
    pub(super) fn values(&self, chunk: usize) -> Vec<Option<T>> {
        self.cells[chunk * self.elements..(chunk + 1) * self.elements].to_vec()
    }

    /// Begins the next part of a block's step: all of it, or one message. Whether it could.
    pub(super) fn begin(&mut self, block: u32) -> Result<bool, InterpretError> {
        let step = self.at[block as usize];
        if step == self.program.steps_of(block).end {
            return Ok(false);
        }
        let view = self.program.step(step);
        let syncs = self.program.is_synced() || matches!(view.op, Op::Nop | Op::Barrier);
        if syncs && !self.open[block as usize].is_empty() {
            return Ok(false);
        }
        if let Some(target) = view.dependency
            && self.messages[block as usize] == 0
        {
            let other = self.program.block_of(target) as usize;
            let is_open = self.open[other].iter().any(|open| open.step == target);
            if self.at[other] <= target || is_open {
                return Ok(false);
            }
        }
        if view.op.moves_data() {
            return self.begin_move(block, step);
        }
        let can = match view.op {
            Op::Wait => view.numbers().all(|line| self.signals[line as usize] > 0),
            Op::Acquire => view
                .numbers()
                .all(|each| self.semaphores[each as usize] > 0),
            Op::Barrier => self.meet(block, step),
            _ => true,
        };
        if !can {
            return Ok(false);
        }
        for number in view.numbers() {
            match view.op {
                Op::Signal => self.signals[number as usize] += 1,
                Op::Wait => self.signals[number as usize] -= 1,
                Op::Acquire => self.semaphores[number as usize] -= 1,
                Op::Release => self.semaphores[number as usize] += 1,
                _ => {}
            }
        }
        self.at[block as usize] += 1;
        Ok(true)
    }

    fn meet(&mut self, block: u32, step: u32) -> bool {
        if std::mem::take(&mut self.passed[block as usize]) {
            return true;
        }
        let rank = self.program.blocks()[block as usize].rank;
        let id = self.program.step(step).numbers().next().expect("checked");
        let arrived = self.arrived.entry((rank, id)).or_default();
        if !arrived.contains(&block) {
            arrived.push(block);
            arrived.sort_unstable();
        }
        if arrived.len() < self.matching.barriers[&(rank, id)].len() {
            return false;
        }
        for other in self.arrived.remove(&(rank, id)).unwrap_or_default() {
            self.passed[other as usize] = other != block;
        }
        true
    }

    fn begin_move(&mut self, block: u32, step: u32) -> Result<bool, InterpretError> {
        let view = self.program.step(step);
        let (sends, receives) = (view.op.sends(), view.op.receives());
        let up = self.matching.receives_on[block as usize] as usize;
        let down = self.matching.sends_on[block as usize] as usize;
        let chunks_of = |span: Span| span.offset()..span.offset() + span.count();
        let packets: Vec<Span> = view.sources().filter(|span| span.is_packet()).collect();
        for span in packets {
            let mut keys = chunks_of(span).map(|chunk| (span.rank(), span.buffer() as u32, chunk));
            if !keys.all(|key| self.packets.contains(&key)) {
                return Ok(false);
            }
        }
        if receives && self.fifos[up].is_empty() {
            return Ok(false);
        }
        if sends
            && let Some(most) = self.program.in_flight()
            && self.fifos[down].len() + self.held[down] as usize >= most as usize
        {
            return Ok(false);
        }
        // The chunks of this part: of a step that sends or receives, those of one message.
        let all = view.count();
        let (skip, take) = if sends || receives {
            let skip = self.messages[block as usize] * self.per_message;
            (skip as usize, self.per_message.min(all - skip) as usize)
        } else {
            (0, usize::MAX)
        };
        let memory = self.memory;
        let part = |span: Span| memory.chunks(span).skip(skip).take(take);
        let sources: Vec<Vec<usize>> = view.sources().map(|span| part(span).collect()).collect();
        let targets: Vec<Vec<usize>> = view.targets().map(|span| part(span).collect()).collect();
        let mut values: Vec<Vec<T>> = Vec::new();
        if receives {
            values.push(self.fifos[up].pop_front().expect("not empty"));
            self.held[up] += 1;
        }
        for chunks in &sources {
            values.push(self.read(chunks, step)?);
        }
        let written = if view.op == Op::Copy {
            values.concat()
        } else {
            let mut values = values.into_iter();
            let mut sum = values.next().expect("it reads something");
            for addend in values {
                for (total, each) in sum.iter_mut().zip(addend) {
                    *total = total.plus(each);
                }
            }
            sum
        };
        if sends {
            self.held[down] += 1;
        }
        let packets = view.targets().filter(|span| span.is_packet());
        let packets = packets.flat_map(|span| {
            chunks_of(span).map(move |chunk| (span.rank(), span.buffer() as u32, chunk))
        });
        self.open[block as usize].push(Open {
            step,
            reads: sources.concat(),
            writes: targets.concat(),
            values: written,
            packets: packets.collect(),
        });
        self.messages[block as usize] += 1;
        let parts = if sends || receives {
            all.div_ceil(self.per_message)
        } else {
            1
        };
        if self.messages[block as usize] == parts {
            self.messages[block as usize] = 0;
            self.at[block as usize] += 1;
        }
        Ok(true)
    }

    fn read(&self, chunks: &[usize], step: u32) -> Result<Vec<T>, InterpretError> {
        let elements = self.elements;
        let cells = chunks
            .iter()
            .flat_map(|chunk| chunk * elements..(chunk + 1) * elements);
        let values: Option<Vec<T>> = cells.map(|cell| self.cells[cell]).collect();
        values.ok_or_else(|| InterpretError::Undefined {
            step: step_name(self.program, step),
        })
    }

    /// Ends one of the parts that a block has begun.
    pub(super) fn end(&mut self, block: u32, which: usize) {
        let open = self.open[block as usize].remove(which);
        let op = self.program.step(open.step).op;
        let per_chunk = self.elements;
        let mut values = open.values.chunks(per_chunk).cycle();
        for &chunk in &open.writes {
            let first = chunk * per_chunk;
            let source = values.next().expect("as many as targets");
            for (cell, &value) in self.cells[first..first + per_chunk].iter_mut().zip(source) {
                *cell = Some(value);
            }
        }
        self.packets.extend(open.packets);
        if op.receives() {
            self.held[self.matching.receives_on[block as usize] as usize] -= 1;
        }
        if op.sends() {
            let down = self.matching.sends_on[block as usize] as usize;
            self.held[down] -= 1;
            self.fifos[down].push_back(open.values);
        }
    }

    /// Checks that no block has steps left.
    pub(super) fn check_ended(&self) -> Result<(), InterpretError> {
        let left: Vec<u32> = (0..narrow(self.at.len()))
            .filter(|&block| self.at[block as usize] < self.program.steps_of(block).end)
            .collect();
        match left.first() {
            None => Ok(()),
            Some(&first) => Err(InterpretError::Stuck {
                blocks: left.len(),
                first: step_name(self.program, self.at[first as usize]),
            }),
        }
    }

    pub(super) fn state(&self) -> State<T> {
        (
            self.at.clone(),
            self.messages.clone(),
            self.open.clone(),
            self.cells.clone(),
            self.fifos.clone(),
            (
                self.held.clone(),
                self.signals.clone(),
                self.semaphores.clone(),
                self.passed.clone(),
            ),
            self.arrived.clone(),
            self.packets.clone(),
        )
    }
}
