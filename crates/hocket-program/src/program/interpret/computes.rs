//! Runs a program on integers and compares every output with what its task says.

use std::collections::HashMap;

use super::{InterpretError, InterpretOptions, interpret};
use crate::program::{Program, Task};
use crate::units::Seed;

/// Returns the number that a rank contributes to some data.
fn contribution(rank: u32, data: u32) -> i64 {
    let mut seed = Seed(u64::from(rank) << 32 | u64::from(data));
    seed.next_u64() as i64
}

/// Returns what data is after a sum over all ranks.
fn sum(task: &Task, data: u32) -> i64 {
    let all = (0..task.ranks).map(|rank| contribution(rank, data));
    all.fold(0, i64::wrapping_add)
}

/// Runs a program on drawn integers, one for each chunk, and says whether each output holds, bit by bit, what its task says.
///
/// # Errors
/// [`InterpretError`]; of a task whose outputs are not known, only what keeps a run from ending.
///
/// # Complexity
/// That of the run, and of one sum over all ranks for each chunk of data.
pub fn computes(program: &Program, options: &InterpretOptions) -> Result<(), InterpretError> {
    let task = *program.task();
    let options = InterpretOptions {
        elements: 1,
        ..*options
    };
    let given = |rank, chunk, _| contribution(rank, task.before(rank, chunk).data);
    let outputs = interpret(program, &options, given)?;
    let mut sums: HashMap<u32, i64> = HashMap::new();
    for (rank, output) in (0..).zip(outputs) {
        for (chunk, found) in (0..).zip(output) {
            let Some(after) = task.after(rank, chunk) else {
                return Ok(());
            };
            let wanted = match after.rank {
                Some(of) => contribution(of, after.data),
                None => *sums
                    .entry(after.data)
                    .or_insert_with(|| sum(&task, after.data)),
            };
            if found != Some(wanted) {
                return Err(InterpretError::Wrong { rank, chunk });
            }
        }
    }
    Ok(())
}
