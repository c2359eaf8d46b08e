//! A program as words of 64 bits, one list for each rank, as an interpreter on a GPU reads them.
//!
//! | word | what it is |
//! | --- | --- |
//! | 0 | number of blocks |
//! | 1, 2, ... | of each block the position of its first operation |
//! | after them | operations, each a head and its operands |
//!
//! The low 8 bits of a head are its code; the next 24 bits are a number *a*, and the next 24 a number *b*.
//!
//! | code | operation | operands |
//! | --- | --- | --- |
//! | 0 | the block ends | |
//! | 1 | all threads of the block meet, and see what was written before | |
//! | 2 | signal *a* slots | two words a slot: slot and rank in 32 bits each; count (signed) and counts of a call |
//! | 3 | wait for *a* slots of this rank | the same |
//! | 4 | sum *a* sources into each of *b* targets; of one source this is a copy | a span each, as [`Span`] has its bits |
//!
//! A slot is a number of 64 bits in the memory of the rank that waits. One block writes it, and one waits for it. In
//! the call *e* of a program, counted from 0, a signal writes *e* x counts of a call + count, and a wait waits until it is
//! at least that. So nothing is ever reset. Lines, semaphores and barriers are all slots: of a barrier
//! each block has one for each other block.
//!
//! A span whose rank is [`EVERY`] stands for the same chunks at all ranks: as a source for their sum, as a target for a
//! copy to each. A switch does this where memory has a multicast address.

use std::collections::BTreeMap;

use super::{Op, Program, Semaphore, Span, Step};
use crate::explain::Explain;
use crate::id::narrow;

/// The rank of a span that stands for all ranks.
pub const EVERY: u32 = Span::MAX_RANKS - 1;

const END: u64 = 0;
const MEET: u64 = 1;
const SIGNAL: u64 = 2;
const WAIT: u64 = 3;
const SUM: u64 = 4;

/// Why a program has no words.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum WordsError {
    /// A step that has no operation.
    #[explain(why("{step} {why}; only copies, sums, signals and semaphores have words"))]
    Step {
        /// The step.
        step: String,
        /// What it does.
        why: &'static str,
    },
    /// A program with two halves of scratch.
    #[explain(why("its scratch takes turns from call to call, for packets, which have no words"))]
    Alternates,
}

/// The words of all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// Those of each rank.
    pub of: Vec<Vec<u64>>,
    /// Slots that each rank needs.
    pub slots: u32,
}

/// Returns the words of a program that [`check`](super::check::check) finds right.
///
/// # Errors
/// [`WordsError`] for steps that send messages, use packets or depend on steps of other blocks.
pub fn words(program: &Program) -> Result<Words, WordsError> {
    if program.alternates() {
        return Err(WordsError::Alternates);
    }
    let mut slots = Slots::of(program);
    let ranks = 0..program.ranks();
    Ok(Words {
        of: ranks
            .map(|rank| slots.rank(program, rank))
            .collect::<Result<_, _>>()?,
        slots: slots.taken.into_iter().max().unwrap_or(0),
    })
}

/// A slot, and how many signals of it and waits for it there were so far.
#[derive(Clone, Copy, Default)]
struct Slot {
    rank: u32,
    index: u32,
    /// Signals of a call.
    of_call: u32,
    /// What a semaphore starts with.
    initial: u32,
    signals: u32,
    waits: u32,
}

/// The slots of a program.
struct Slots {
    /// How many each rank has.
    taken: Vec<u32>,
    lines: Vec<Slot>,
    semaphores: Vec<Slot>,
    /// Of each rank's barrier its blocks, and the slots of those who wait by those who come, in rows.
    barriers: BTreeMap<(u32, u32), (Vec<u32>, Vec<Slot>)>,
}

impl Slots {
    fn of(program: &Program) -> Self {
        let mut slots = Self {
            taken: vec![0; program.ranks() as usize],
            lines: Vec::new(),
            semaphores: Vec::new(),
            barriers: BTreeMap::new(),
        };
        for line in program.lines() {
            let slot = slots.take(line.to, 0);
            slots.lines.push(slot);
        }
        for &Semaphore { rank, initial } in program.semaphores() {
            let slot = slots.take(rank, initial);
            slots.semaphores.push(slot);
        }
        let mut visits: BTreeMap<(u32, u32), BTreeMap<u32, u32>> = BTreeMap::new();
        for block in 0..narrow(program.blocks().len()) {
            for step in program.steps_of(block) {
                let view = program.step(step);
                let of = match view.op {
                    Op::Signal => &mut slots.lines,
                    Op::Release => &mut slots.semaphores,
                    Op::Barrier => {
                        let rank = program.blocks()[block as usize].rank;
                        let id = view.numbers().next().unwrap_or(0);
                        *visits
                            .entry((rank, id))
                            .or_default()
                            .entry(block)
                            .or_default() += 1;
                        continue;
                    }
                    _ => continue,
                };
                for number in view.numbers() {
                    of[number as usize].of_call += 1;
                }
            }
        }
        for ((rank, id), blocks) in visits {
            let of_call = blocks.values().copied().max().unwrap_or(0);
            let all = (0..blocks.len() * blocks.len()).map(|_| Slot {
                of_call,
                ..slots.take(rank, 0)
            });
            let all = all.collect();
            slots
                .barriers
                .insert((rank, id), (blocks.into_keys().collect(), all));
        }
        slots
    }

    fn take(&mut self, rank: u32, initial: u32) -> Slot {
        let index = self.taken[rank as usize];
        self.taken[rank as usize] += 1;
        Slot {
            rank,
            index,
            initial,
            ..Slot::default()
        }
    }

    /// Returns the words of a rank.
    fn rank(&mut self, program: &Program, rank: u32) -> Result<Vec<u64>, WordsError> {
        let blocks = program.blocks_of(rank);
        let mut words = vec![blocks.len() as u64];
        words.resize(1 + blocks.len(), 0);
        for (i, block) in blocks.enumerate() {
            words[1 + i] = words.len() as u64;
            for step in program.steps_of(block) {
                let view = program.step(step);
                self.step(program, (block, view), &mut words)
                    .map_err(|why| WordsError::Step {
                        step: super::check::step_name(program, step),
                        why,
                    })?;
                if program.is_synced() {
                    words.push(MEET);
                }
            }
            words.push(END);
        }
        Ok(words)
    }

    fn step(
        &mut self,
        program: &Program,
        (block, view): (u32, Step<'_>),
        words: &mut Vec<u64>,
    ) -> Result<(), &'static str> {
        if view.dependency.is_some() {
            return Err("depends on a step of another block");
        }
        if view.spans().any(Span::is_packet) {
            return Err("has packets");
        }
        let ranks = program.ranks();
        match view.op {
            Op::Nop => words.push(MEET),
            Op::Copy => {
                for (source, target) in view.sources().zip(view.targets()) {
                    sum(&[source], &[target], ranks, words);
                }
            }
            Op::Reduce => {
                let (sources, targets): (Vec<_>, Vec<_>) =
                    (view.sources().collect(), view.targets().collect());
                sum(&sources, &targets, ranks, words);
            }
            Op::Signal => count(SIGNAL, &mut self.lines, view.numbers(), words),
            Op::Wait => count(WAIT, &mut self.lines, view.numbers(), words),
            Op::Release => count(SIGNAL, &mut self.semaphores, view.numbers(), words),
            Op::Acquire => count(WAIT, &mut self.semaphores, view.numbers(), words),
            Op::Barrier => {
                let rank = program.blocks()[block as usize].rank;
                let id = view.numbers().next().unwrap_or(0);
                if let Some((blocks, slots)) = self.barriers.get_mut(&(rank, id)) {
                    let many = narrow(blocks.len());
                    let own = narrow(blocks.partition_point(|&other| other < block));
                    let others = || (0..many).filter(move |&other| other != own);
                    words.push(MEET);
                    count(SIGNAL, slots, others().map(|to| own * many + to), words);
                    count(WAIT, slots, others().map(|from| from * many + own), words);
                    words.push(MEET);
                }
            }
            _ => return Err("sends or receives a message"),
        }
        Ok(())
    }
}

fn head(code: u64, a: usize, b: usize) -> u64 {
    code | (a as u64) << 8 | (b as u64) << 32
}

/// Adds signals or waits.
fn count(code: u64, slots: &mut [Slot], numbers: impl Iterator<Item = u32>, words: &mut Vec<u64>) {
    let start = words.len();
    words.push(0);
    for number in numbers {
        let slot = &mut slots[number as usize];
        let so_far = if code == SIGNAL {
            &mut slot.signals
        } else {
            &mut slot.waits
        };
        *so_far += 1;
        let count = if code == SIGNAL {
            *so_far
        } else {
            so_far.wrapping_sub(slot.initial)
        };
        words.push(u64::from(slot.index) | u64::from(slot.rank) << 32);
        words.push(u64::from(count) | u64::from(slot.of_call) << 32);
    }
    words[start] = head(code, (words.len() - start) / 2, 0);
}

/// Adds a sum.
fn sum(sources: &[Span], targets: &[Span], ranks: u32, words: &mut Vec<u64>) {
    let (sources, targets) = (together(sources, ranks), together(targets, ranks));
    words.push(head(SUM, sources.len(), targets.len()));
    words.extend(sources.into_iter().chain(targets).map(|span| span.0));
}

/// Returns one span for the same chunks of all ranks.
fn together(spans: &[Span], ranks: u32) -> Vec<Span> {
    let Some(&first) = spans.first() else {
        return Vec::new();
    };
    let at = |rank| Span::new(rank, first.buffer(), first.offset(), first.count());
    let are_all = ranks > 1 && spans.iter().copied().eq((0..ranks).map(at));
    if are_all {
        vec![at(EVERY)]
    } else {
        spans.to_vec()
    }
}
