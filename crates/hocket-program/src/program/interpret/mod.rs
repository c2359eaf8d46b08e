//! Runs a program on arrays: what the outputs hold at the end, not what they should hold.
//!
//! It shares no code with [`check`](super::check) but the numbering of memory and who meets whom, and so is its oracle
//! and that of plans that are lowered. [`interpret`] makes one run, in an order of one's choice; [`computes`] compares what one
//! gives with what it must give; [`explore`] makes all runs of a small program. A program without races gives the same in every run, so one order is enough for it.

mod computes;
mod explore;
mod machine;

pub use computes::computes;
pub use explore::{Explored, explore};

use super::check::{Faults, Matching, Memory};
use super::{Buffer, Mode, Program};
use crate::explain::Explain;
use crate::id::{fit, narrow};
use machine::Machine;

/// Numbers that a program can move and add.
pub trait Element: Copy + PartialEq {
    /// Returns the sum, as a runtime computes it: integers wrap, floats round.
    fn plus(self, other: Self) -> Self;
}

macro_rules! element {
    ($type:ty, $plus:expr) => {
        impl Element for $type {
            #[inline]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
        }
    };
}

element!(i32, i32::wrapping_add);
element!(i64, i64::wrapping_add);
element!(u64, u64::wrapping_add);
element!(f32, |a: f32, b: f32| a + b);
element!(f64, |a: f64, b: f64| a + b);

/// Which of the blocks that can go on does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "Schedule")]
pub enum BlockOrder {
    /// The first, as far as it gets.
    First,
    /// The last, as far as it gets.
    Last,
    /// Each in turn, one message at a time.
    InTurn,
    /// A random one, one message at a time; the number makes it repeatable.
    Random(u64),
}

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterpretOptions {
    /// In place or out of place.
    pub mode: Mode,
    /// Numbers in a chunk.
    pub elements: usize,
    /// Chunks that fit one message.
    pub chunks_per_message: u32,
    /// Who goes next.
    pub schedule: BlockOrder,
}

/// Why a run did not end well.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum InterpretError {
    /// The program does not fit together.
    #[explain(why("{_0}"))]
    Malformed(String),
    /// No block can go on, and some have steps left.
    #[explain(why("no block can go on: {blocks} of them have steps left, among them {first}"))]
    Stuck {
        /// How many blocks have steps left.
        blocks: usize,
        /// The first of them and its step.
        first: String,
    },
    /// A chunk was read that holds nothing.
    #[explain(why("{step} reads a chunk that holds nothing"))]
    Undefined {
        /// The step.
        step: String,
    },
    /// An output is not what the task says.
    #[explain(why("output chunk {chunk} of rank {rank} has another value than it must have"))]
    Wrong {
        /// The rank.
        rank: u32,
        /// The chunk of its output.
        chunk: u32,
    },
}

/// Runs a program in one order. `input` gives the number at a rank, chunk of its input and position in the chunk. The
/// result is the output of each rank, chunk after chunk, in which `None` is what was never written.
///
/// # Errors
/// [`InterpretError`].
pub fn interpret<T: Element>(
    program: &Program,
    options: &InterpretOptions,
    input: impl Fn(u32, u32, usize) -> T,
) -> Result<Vec<Vec<Option<T>>>, InterpretError> {
    let matching = match_up(program)?;
    let memory = Memory::of(program, options.mode);
    let mut machine = Machine::new(program, &matching, &memory, options, &input);
    let blocks = program.blocks().len();
    let mut random = match options.schedule {
        BlockOrder::Random(seed) => seed | 1,
        _ => 1,
    };
    let mut turn = 0;
    let mut idle = 0;
    while idle < blocks {
        let block = match options.schedule {
            BlockOrder::First | BlockOrder::InTurn => turn % blocks,
            BlockOrder::Last => blocks - 1 - turn % blocks,
            BlockOrder::Random(_) => {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                if idle > 0 {
                    (turn + 1) % blocks
                } else {
                    fit(random % blocks as u64)
                }
            }
        };
        let as_far_as_it_gets = matches!(options.schedule, BlockOrder::First | BlockOrder::Last);
        let mut moved = false;
        while machine.advance(narrow(block))? {
            moved = true;
            if !as_far_as_it_gets {
                break;
            }
        }
        idle = if moved { 0 } else { idle + 1 };
        turn = match options.schedule {
            BlockOrder::Random(_) => block,
            _ => turn + 1,
        };
    }
    machine.check_ended()?;
    let outputs = (0..program.ranks()).map(|rank| {
        let chunks = 0..program.task().output(rank);
        let chunks = chunks.map(|chunk| memory.chunk(rank, Buffer::Output, chunk));
        chunks.flat_map(|chunk| machine.values(chunk)).collect()
    });
    Ok(outputs.collect())
}

fn match_up(program: &Program) -> Result<Matching, InterpretError> {
    let mut faults = Faults::default();
    super::check::check_structure(program, &mut faults);
    let matching = if faults.is_empty() {
        Matching::of(program, &mut faults)
    } else {
        None
    };
    matching.ok_or_else(|| {
        let detail = faults.kept().first().map(|fault| fault.detail.clone());
        InterpretError::Malformed(detail.unwrap_or_default())
    })
}
