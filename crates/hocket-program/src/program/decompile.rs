//! A program as the transfers of a plan, where it is one: the reverse of `compile`.
//!
//! A plan has one place for each rank and chunk of data; a program has as many as it likes. What arrives at a rank is
//! therefore a transfer only when it is used: a sum where it is added to what the rank has, a copy where it is sent on or is the
//! result. At that moment both ends must have, in their places, what the program has. The transfers are in an order in which
//! they are right one after the other; the waits between them are the builder's.

use std::collections::HashMap;

use super::check::{Faults, Matching, Memory, run, step_name};
use super::{Buffer, Op, Program, Span, Step};
use crate::collective::CollectiveKind;
use crate::explain::Explain;
use crate::id::narrow;
use crate::verify::contribution::{Set, SetTable};

/// A transfer of consecutive chunks of data, numbered through all demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "RaisedTransfer")]
pub struct DecompiledTransfer {
    /// First chunk.
    pub first: u32,
    /// Number of chunks.
    pub count: u32,
    /// Rank that sends.
    pub src: u32,
    /// Rank that receives.
    pub dst: u32,
    /// Whether the receiver adds it to what it has.
    pub is_sum: bool,
}

/// What a program does, as transfers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "Raised")]
pub struct Decompiled {
    /// The transfers, in an order in which they are right one after the other.
    pub transfers: Vec<DecompiledTransfer>,
    /// Chunks that were sent to a rank that had them or that made no use of them.
    pub unused: u64,
}

/// Why a program is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
#[doc(alias = "RaiseError")]
pub enum DecompileError {
    /// Its collective has no name.
    #[explain(why("its collective has no name that plans know"))]
    Unnamed,
    /// It does not end.
    #[explain(why("it gets stuck with one chunk a message"))]
    Stuck,
    /// A rank has two values of a chunk of data at once.
    #[explain(
        why(
            "{step} uses another value of chunk {data} of the data than rank {rank} has in its one place"
        ),
        remedy("a plan keeps one value of a chunk at a rank")
    )]
    TwoValues {
        /// The step.
        step: String,
        /// The chunk of data.
        data: u32,
        /// The rank.
        rank: u32,
    },
}

/// What a chunk of memory holds: which data, whose contributions, and what brought it that is no transfer yet.
#[derive(Clone, Copy)]
struct Value {
    data: u32,
    of: Set,
    /// Position in `arrivals`; `NONE` for what the rank has in its place.
    by: u32,
}

const NONE: u32 = u32::MAX;
const NOTHING: Value = Value {
    data: 0,
    of: Set::EMPTY,
    by: NONE,
};

/// A message on its way or kept by its receiver.
#[derive(Clone, Copy)]
struct Message {
    src: u32,
    of: Set,
}

/// Messages that lie at a rank and are no transfers yet, summed where there are several.
struct Arrival {
    messages: Vec<Message>,
    /// Whether they became transfers.
    is_done: bool,
}

struct Decompiler<'a> {
    program: &'a Program,
    memory: Memory<'a>,
    sets: SetTable,
    values: Vec<Value>,
    /// What each rank has of each chunk of data in the plan's place for it.
    places: HashMap<(u32, u32), Set>,
    arrivals: Vec<Arrival>,
    under_way: Vec<std::collections::VecDeque<Value>>,
    /// Transfers of the step under way: sum, sender, receiver, chunk.
    made: Vec<(bool, u32, u32, u32)>,
    decompiled: Decompiled,
    step: u32,
}

/// Returns the transfers that a program makes, of one that the check found right.
///
/// # Errors
/// [`DecompileError`] for programs of which no plan can say what they do.
///
/// # Complexity
/// O(chunks moved), about 60 bytes for each.
#[doc(alias = "raise")]
pub fn decompile(program: &Program) -> Result<Decompiled, DecompileError> {
    if program.task().kind == CollectiveKind::Custom {
        return Err(DecompileError::Unnamed);
    }
    let mut faults = Faults::default();
    let matching = Matching::of(program, &mut faults).ok_or(DecompileError::Stuck)?;
    let order = run(program, &matching, 1).map_err(|_| DecompileError::Stuck)?;
    let memory = Memory::of(program, program.modes()[0]);
    let mut decompiler = Decompiler {
        program,
        values: vec![NOTHING; memory.len()],
        memory,
        sets: SetTable::new(program.ranks() as usize),
        places: HashMap::new(),
        arrivals: Vec::new(),
        under_way: vec![Default::default(); matching.connections.len()],
        made: Vec::new(),
        decompiled: Decompiled {
            transfers: Vec::new(),
            unused: 0,
        },
        step: 0,
    };
    decompiler.fill();
    for step in order {
        let block = program.block_of(step) as usize;
        decompiler.step = step;
        decompiler.make(matching.receives_on[block], matching.sends_on[block], block)?;
        decompiler.note();
    }
    decompiler.finish()?;
    Ok(decompiler.decompiled)
}

impl Decompiler<'_> {
    fn fill(&mut self) {
        let task = self.program.task();
        for rank in 0..task.ranks {
            for chunk in 0..task.input(rank) {
                let data = task.before(rank, chunk).data;
                let of = self.sets.single(rank);
                let at = self.memory.chunk(rank, Buffer::Input, chunk);
                self.values[at] = Value { data, of, by: NONE };
                self.places.insert((rank, data), of);
            }
        }
    }

    fn make(&mut self, up: u32, down: u32, block: usize) -> Result<(), DecompileError> {
        let step = self.program.step(self.step);
        let block = self.program.blocks()[block];
        if step.op == Op::Copy {
            return self.copy(step);
        }
        if !step.op.moves_data() {
            return Ok(());
        }
        for i in 0..step.count() {
            let mut terms = Vec::new();
            if step.op.receives() {
                let message = self.under_way[up as usize].pop_front();
                terms.push(message.expect("sent before it is received"));
            }
            for source in step.sources() {
                terms.push(self.read(source, i, block.rank)?);
            }
            let sum = self.sum(block.rank, &terms)?;
            for target in step.targets() {
                self.write(target, i, block.rank, sum)?;
            }
            if step.op.sends() {
                let message = self.send(block.rank, sum)?;
                self.under_way[down as usize].push_back(message);
            }
        }
        Ok(())
    }

    fn copy(&mut self, step: Step<'_>) -> Result<(), DecompileError> {
        let each = |span: Span| (0..span.count()).map(move |i| (span, i));
        let sources = step.sources().flat_map(each);
        for ((source, i), (target, j)) in sources.zip(step.targets().flat_map(each)) {
            let value = self.read(source, i, target.rank())?;
            let at = self.memory.chunks(target).start + j as usize;
            self.values[at] = value;
        }
        Ok(())
    }

    /// Returns what a chunk holds, as it arrives at the rank that reads it.
    fn read(&mut self, span: Span, i: u32, reader: u32) -> Result<Value, DecompileError> {
        let value = self.values[self.memory.chunks(span).start + i as usize];
        if span.rank() == reader {
            Ok(value)
        } else {
            self.send(span.rank(), value)
        }
    }

    fn write(
        &mut self,
        span: Span,
        i: u32,
        writer: u32,
        value: Value,
    ) -> Result<(), DecompileError> {
        let arrived = if span.rank() == writer {
            value
        } else {
            self.send(writer, value)?
        };
        let at = self.memory.chunks(span).start + i as usize;
        self.values[at] = arrived;
        Ok(())
    }

    /// Returns what a rank sends, as it arrives.
    fn send(&mut self, rank: u32, value: Value) -> Result<Value, DecompileError> {
        self.settle(rank, value)?;
        self.decompiled.unused += 1; // until it becomes a transfer
        self.arrivals.push(Arrival {
            messages: vec![Message {
                src: rank,
                of: value.of,
            }],
            is_done: false,
        });
        let by = narrow(self.arrivals.len()) - 1;
        Ok(Value { by, ..value })
    }

    fn is_held(&self, value: Value) -> bool {
        value.by == NONE || self.arrivals[value.by as usize].is_done
    }

    fn place(&self, rank: u32, data: u32) -> Set {
        self.places
            .get(&(rank, data))
            .copied()
            .unwrap_or(Set::EMPTY)
    }

    /// Makes sure that a rank has a value in its place.
    fn settle(&mut self, rank: u32, value: Value) -> Result<(), DecompileError> {
        let has = self.place(rank, value.data);
        if has == value.of {
            if value.by != NONE {
                self.arrivals[value.by as usize].is_done = true;
            }
            return Ok(());
        }
        if self.is_held(value) {
            return Err(self.two_values(rank, value.data));
        }
        self.transfer(rank, value, false)
    }

    /// Makes transfers of what arrived: the first a copy unless all are added to what is there.
    fn transfer(&mut self, rank: u32, value: Value, is_sum: bool) -> Result<(), DecompileError> {
        let arrival = &mut self.arrivals[value.by as usize];
        arrival.is_done = true;
        let messages = std::mem::take(&mut arrival.messages);
        if messages.is_empty() {
            return Err(self.two_values(rank, value.data)); // it was added to something else
        }
        for (i, message) in messages.into_iter().enumerate() {
            if self.place(message.src, value.data) != message.of {
                return Err(self.two_values(message.src, value.data));
            }
            let adds = is_sum || i > 0;
            let after = if adds {
                let before = self.place(rank, value.data);
                let both = self.sets.disjoint_union(before, message.of);
                both.ok_or_else(|| self.two_values(rank, value.data))?
            } else {
                message.of
            };
            self.places.insert((rank, value.data), after);
            self.made.push((adds, message.src, rank, value.data));
            self.decompiled.unused -= 1;
        }
        Ok(())
    }

    /// Adds values up at a rank.
    fn sum(&mut self, rank: u32, terms: &[Value]) -> Result<Value, DecompileError> {
        let first = terms.first().copied().unwrap_or(NOTHING);
        if terms.len() < 2 {
            return Ok(first);
        }
        let mut of = Set::EMPTY;
        for term in terms {
            let both = self.sets.disjoint_union(of, term.of);
            of = both.ok_or_else(|| self.two_values(rank, first.data))?;
        }
        let (held, arrived): (Vec<Value>, Vec<Value>) =
            terms.iter().partition(|&&term| self.is_held(term));
        if held.is_empty() {
            let mut messages = Vec::new();
            for term in arrived {
                messages.append(&mut self.arrivals[term.by as usize].messages);
            }
            self.arrivals.push(Arrival {
                messages,
                is_done: false,
            });
            let by = narrow(self.arrivals.len()) - 1;
            return Ok(Value { of, by, ..first });
        }
        let has = self.place(rank, first.data);
        if held.len() > 1 || held[0].of != has {
            return Err(self.two_values(rank, first.data));
        }
        for term in arrived {
            self.transfer(rank, term, true)?;
        }
        Ok(Value {
            of,
            by: NONE,
            ..first
        })
    }

    fn two_values(&self, rank: u32, data: u32) -> DecompileError {
        let step = step_name(self.program, self.step);
        DecompileError::TwoValues { step, data, rank }
    }

    /// Takes over the transfers of a step, those of consecutive chunks as one; copies come first, since what is copied may be sent on.
    fn note(&mut self) {
        self.made.sort_unstable();
        for (is_sum, src, dst, data) in self.made.drain(..) {
            match self.decompiled.transfers.last_mut() {
                Some(last)
                    if (last.src, last.dst, last.is_sum) == (src, dst, is_sum)
                        && last.first + last.count == data =>
                {
                    last.count += 1;
                }
                _ => self.decompiled.transfers.push(DecompiledTransfer {
                    first: data,
                    count: 1,
                    src,
                    dst,
                    is_sum,
                }),
            }
        }
    }

    /// Makes transfers of results that have arrived and were not used since.
    fn finish(&mut self) -> Result<(), DecompileError> {
        let task = *self.program.task();
        for rank in 0..task.ranks {
            for chunk in 0..task.output(rank) {
                let value = self.values[self.memory.chunk(rank, Buffer::Output, chunk)];
                self.settle(rank, value)?;
            }
            self.note();
        }
        Ok(())
    }
}
