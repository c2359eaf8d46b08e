//! All runs of a small program.

use std::collections::HashSet;

use super::machine::Machine;
use super::{BlockOrder, InterpretError, InterpretOptions, match_up};
use crate::id::narrow;
use crate::program::check::Memory;
use crate::program::{Buffer, Mode, Program};

/// What the runs of a program come to; the first that holds, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explored {
    /// More states than were allowed: not all runs were made.
    TooMany,
    /// In some run two steps access a chunk at the same time, one of them to write it.
    Race,
    /// In some run a chunk is read that holds nothing.
    Undefined,
    /// Some run gets stuck.
    Stuck,
    /// Some run ends with other outputs than the collective asks for.
    Wrong,
    /// Every run ends with the outputs that the collective asks for.
    Right,
}

/// Makes all runs of a program in which each step, or message of a step, begins and ends at moments of its own, as long as
/// there are at most `limit` states. Races are looked for with connections that hold any number of messages, and
/// deadlocks with those that the program says.
///
/// # Errors
/// [`InterpretError::Malformed`].
pub fn explore(
    program: &Program,
    mode: Mode,
    chunks_per_message: u32,
    limit: usize,
) -> Result<Explored, InterpretError> {
    let with_any = program.clone().with_in_flight(None);
    let (first, states) = runs(&with_any, mode, chunks_per_message, limit)?;
    if first != Explored::Right || program.in_flight().is_none() {
        return Ok(first);
    }
    Ok(runs(
        program,
        mode,
        chunks_per_message,
        limit.saturating_sub(states),
    )?
    .0)
}

/// Returns the number that stands for a rank's chunk of data: sums of different ones differ but for a chance of 2^-64.
fn number(rank: u32, data: u32) -> u64 {
    let mut word = (u64::from(rank) << 32 | u64::from(data)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn runs(
    program: &Program,
    mode: Mode,
    chunks_per_message: u32,
    limit: usize,
) -> Result<(Explored, usize), InterpretError> {
    let matching = match_up(program)?;
    let memory = Memory::of(program, mode);
    let options = InterpretOptions {
        mode,
        elements: 1,
        chunks_per_message,
        schedule: BlockOrder::First,
    };
    let task = *program.task();
    let input = |rank, chunk, _| number(rank, task.before(rank, chunk).data);
    let start = Machine::new(program, &matching, &memory, &options, &input);
    let mut seen = HashSet::new();
    seen.insert(start.state());
    let mut left = vec![start];
    let mut worst = Explored::Right;
    while let Some(machine) = left.pop() {
        if has_conflict(&machine) {
            return Ok((Explored::Race, seen.len()));
        }
        let mut next = Vec::new();
        for block in 0..narrow(program.blocks().len()) {
            for which in 0..machine.open[block as usize].len() {
                let mut other = machine.clone();
                other.end(block, which);
                next.push(other);
            }
            let mut other = machine.clone();
            match other.begin(block) {
                Ok(true) => next.push(other),
                // It may have come to a barrier.
                Ok(false) if other.state() != machine.state() => next.push(other),
                Ok(false) => {}
                Err(_) => worst = severe(worst, Explored::Undefined),
            }
        }
        if next.is_empty() {
            let outcome = match machine.check_ended() {
                Err(_) => Explored::Stuck,
                Ok(()) if is_right(&machine, &memory, program) => Explored::Right,
                Ok(()) => Explored::Wrong,
            };
            worst = severe(worst, outcome);
        }
        for machine in next {
            if seen.insert(machine.state()) {
                if seen.len() > limit {
                    return Ok((Explored::TooMany, seen.len()));
                }
                left.push(machine);
            }
        }
    }
    Ok((worst, seen.len()))
}

fn severe(a: Explored, b: Explored) -> Explored {
    if (a as u8) < b as u8 { a } else { b }
}

/// Returns whether two steps that have begun conflict.
fn has_conflict(machine: &Machine<'_, u64>) -> bool {
    let open: Vec<_> = machine.open.iter().flatten().collect();
    let meets = |a: &[usize], b: &[usize]| a.iter().any(|chunk| b.contains(chunk));
    open.iter().enumerate().any(|(i, a)| {
        open[..i].iter().any(|b| {
            a.step != b.step
                && (meets(&a.writes, &b.writes)
                    || meets(&a.writes, &b.reads)
                    || meets(&a.reads, &b.writes))
        })
    })
}

fn is_right(machine: &Machine<'_, u64>, memory: &Memory<'_>, program: &Program) -> bool {
    let task = program.task();
    (0..task.ranks).all(|rank| {
        (0..task.output(rank)).all(|chunk| {
            let Some(after) = task.after(rank, chunk) else {
                return true;
            };
            let wanted = match after.rank {
                Some(of) => number(of, after.data),
                None => {
                    (0..task.ranks).fold(0u64, |sum, of| sum.wrapping_add(number(of, after.data)))
                }
            };
            machine.values(memory.chunk(rank, Buffer::Output, chunk))[0] == Some(wanted)
        })
    })
}
