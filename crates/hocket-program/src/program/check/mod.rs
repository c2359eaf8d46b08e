//! Judges a program, whoever wrote it: structure, deadlocks, races, and what the buffers hold at the end.
//!
//! The parts, in order; each is asked only if those before found nothing:
//!
//! 1. `structure`: everything that is named exists; each connection, line and barrier has its two ends, and they agree;
//! 2. `run`: one run to the end with full connections making senders wait. Whatever a block waits for is given by one
//!    other block, so that no step can take away what another waits for: if one run ends, all do, and if one
//!    gets stuck, all do;
//! 3. `races`: any two conflicting accesses of a chunk are ordered by steps, dependencies, messages and signals, and not
//!    merely by a connection being full, whose capacity in chunks changes with the size. This holds for a call, for calls
//!    that follow each other, and for what the callers do in between;
//! 4. `contents`: what the chunks hold at the end of that run; without races, of every run.
//!
//! A call leaves every count as it found it: lines have as many signals as waits, and semaphores as many releases as
//! acquires. So each call of a rank, which begins when its call before has ended, can end if the first can: let all ranks
//! end a call before any begins the next.
//!
//! A step with several chunks may be cut into several messages, fewer for small chunks than for large ones. More messages
//! fill a connection sooner: a program that cannot get stuck with one chunk a message cannot with more.

mod clock;
mod contents;
mod matching;
mod memory;
mod races;
mod run;
mod structure;

use strum::{Display, IntoStaticStr};

use super::{Mode, Program};
use crate::progress::{Interrupted, Progress};

pub(super) use matching::Matching;
pub(super) use memory::Memory;
pub(super) use run::run;
pub(super) use structure::check as check_structure;

/// The kind of a fault; its name is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// A rank, line, semaphore or barrier that does not exist, or a peer that a block cannot have.
    Unknown,
    /// Chunks beyond the end of a buffer.
    OutOfBounds,
    /// A step whose operands do not fit what it does.
    BadStep,
    /// Two blocks on one end of a connection, line or semaphore, of which only one is safe.
    Shared,
    /// Sends and receives, or signals and waits, that do not match.
    Unmatched,
    /// A dependency on a step of another rank, or of the same block and later.
    BadDependency,
    /// Blocks that wait for each other, or for what never comes.
    Deadlock,
    /// Two accesses of a chunk, one a write, in no order.
    Race,
    /// A chunk is read that holds nothing.
    Undefined,
    /// Different data is summed.
    WrongSum,
    /// A contribution is summed twice.
    CountedTwice,
    /// An output does not hold what it must at the end.
    WrongResult,
    /// Right in one call, and wrong where calls follow each other: a count that is left over, or accesses of two calls, or
    /// of a call and its caller, in no order.
    NextCall,
}

impl Code {
    /// Returns the name in reports and JSON, as `wrong_result`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Where a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In no certain place.
    Program,
    /// At a rank.
    Rank(u32),
    /// At a block, by its number in the program.
    Block(u32),
    /// At a step, by its number in the program.
    Step(u32),
}

/// One thing that is wrong with a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its kind.
    pub code: Code,
    /// Where it is.
    pub place: Place,
    /// What is wrong, in words.
    pub detail: String,
}

/// Everything wrong that was found with a program, the first [`Faults::KEPT`] in full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    kept: Vec<Fault>,
    count: u64,
}

impl Faults {
    /// How many faults are kept in full; the rest are counted.
    pub const KEPT: usize = 100;

    /// Returns the faults that were kept.
    pub fn kept(&self) -> &[Fault] {
        &self.kept
    }

    /// Returns how many were found.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds one; `detail` is called only if it is kept.
    pub fn add(&mut self, code: Code, place: Place, detail: impl FnOnce() -> String) {
        if self.kept.len() < Self::KEPT {
            let detail = detail();
            self.kept.push(Fault {
                code,
                place,
                detail,
            });
        }
        self.count += 1;
    }
}

/// How a program is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Chunks that fit one message of a connection. With 1, the least, the check holds for any message size.
    pub chunks_per_message: u32,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            chunks_per_message: 1,
        }
    }
}

/// What was found of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// What is wrong with it.
    pub faults: Faults,
    /// Where it gets stuck with the chunks a message that were asked for: the fewest chunks a message, up to 256, with
    /// which it does not.
    pub safe_from: Option<u32>,
    /// Whether it is known what the outputs must hold, so that the contents were checked.
    pub contents_known: bool,
}

impl Checked {
    /// Returns whether nothing is wrong with it.
    pub fn is_right(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Judges a program.
///
/// # Errors
/// [`Interrupted`].
///
/// # Complexity
/// O(steps x blocks that access one rank's memory) where dependencies within the rank order all accesses, and so
/// many for each rank where they do not; memory of 4 bytes for each of these pairs that others wait for.
pub fn check(
    program: &Program,
    options: &CheckOptions,
    progress: &mut dyn Progress,
) -> Result<Checked, Interrupted> {
    const STAGE: &str = "check";
    let mut checked = Checked {
        faults: Faults::default(),
        safe_from: None,
        contents_known: program.task().after(0, 0).is_some(),
    };
    let faults = &mut checked.faults;
    structure::check(program, faults);
    if !faults.is_empty() {
        return Ok(checked);
    }
    let Some(matching) = Matching::of(program, faults) else {
        return Ok(checked);
    };
    let order = match run::run(program, &matching, options.chunks_per_message) {
        Ok(order) => order,
        Err(stuck) => {
            checked.safe_from = run::safe_from(program, &matching, options.chunks_per_message);
            stuck.explain(
                program,
                &matching,
                options.chunks_per_message,
                checked.safe_from,
                faults,
            );
            return Ok(checked);
        }
    };
    matching::check_balance(program, faults);
    let parts = program.modes().len() as u64 * u64::from(program.ranks()) + 1;
    let mut done = 0;
    for &mode in program.modes() {
        let memory = Memory::of(program, mode);
        let mut races = races::Races::new(program, &matching, &memory, &order);
        for rank in 0..program.ranks() {
            races.check(rank, faults);
            done += 1;
            if !progress.report(STAGE, done, parts) {
                return Err(Interrupted);
            }
        }
        if !faults.is_empty() {
            break;
        }
        contents::check(program, &matching, &memory, &order, faults);
        if !faults.is_empty() {
            break;
        }
    }
    Ok(checked)
}

/// "in place: " where a program has several modes.
fn mode_prefix(program: &Program, mode: Mode) -> String {
    if program.modes().len() > 1 {
        format!("{mode}: ")
    } else {
        String::new()
    }
}

/// "rank 3, block 2 of it, step 5", for messages.
pub fn step_name(program: &Program, step: u32) -> String {
    let block = program.block_of(step);
    let position = step - program.steps_of(block).start;
    format!("step {position} of {}", block_name(program, block))
}

/// "block 2 of rank 3", for messages.
pub fn block_name(program: &Program, block: u32) -> String {
    let rank = program.blocks()[block as usize].rank;
    format!(
        "block {} of rank {rank}",
        block - program.blocks_of(rank).start
    )
}

/// Returns whether a program gets stuck with one chunk a message.
pub(super) fn is_stuck(program: &Program, matching: &Matching) -> bool {
    run::run(program, matching, 1).is_err()
}
