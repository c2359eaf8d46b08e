//! Runs of a file's program on integers.

use hocket_program::program::Program;
use hocket_program::program::check::CheckOptions;
use hocket_program::program::interpret::{
    BlockOrder, Explored, InterpretOptions, computes, explore,
};

use crate::{Finding, Verdict};

/// Runs a program on integers, in all modes that it is for and in three orders; adds what came out wrong.
pub fn run(program: &Program, options: &CheckOptions, verdict: &mut Verdict) {
    let orders = [BlockOrder::First, BlockOrder::Last, BlockOrder::Random(1)];
    for &mode in program.modes() {
        for schedule in orders {
            let options = InterpretOptions {
                mode,
                elements: 1,
                chunks_per_message: options.chunks_per_message,
                schedule,
            };
            if let Err(error) = computes(program, &options) {
                verdict.add(Finding {
                    code: "run",
                    line: 0,
                    place: String::new(),
                    detail: format!("a run {mode} on integers: {error}"),
                });
                return;
            }
        }
    }
    let outputs = match verdict.contents_known {
        true => "every output is right",
        false => "it ends; what outputs must hold is not known",
    };
    let mut how = format!("in {} orders", orders.len());
    if program.len() <= EXPLORED_STEPS && verdict.contents_known {
        match explored(program, options.chunks_per_message) {
            Some(Explored::Right) => "in every order that there is".clone_into(&mut how),
            Some(outcome) => {
                verdict.add(Finding {
                    code: "run",
                    line: 0,
                    place: String::new(),
                    detail: format!("of all its runs {}", what_of(outcome)),
                });
                return;
            }
            None => {}
        }
    }
    verdict
        .notes
        .push(format!("run on integers {how}: {outputs}"));
}

/// Steps of a program at most whose runs are all made, and states that they may have.
const EXPLORED_STEPS: usize = 64;
const EXPLORED_STATES: usize = 5_000;

/// Returns what runs of a program come to, after "of all its runs".
fn what_of(outcome: Explored) -> &'static str {
    match outcome {
        Explored::TooMany => "only some were made",
        Explored::Race => "one has two steps access a chunk at the same time",
        Explored::Undefined => "one reads a chunk that holds nothing",
        Explored::Stuck => "one gets stuck",
        Explored::Wrong => "one ends with a wrong output",
        Explored::Right => "every one ends with right outputs",
    }
}

/// Returns what all runs of a program come to in all its modes; nothing where there are too many.
fn explored(program: &Program, chunks_per_message: u32) -> Option<Explored> {
    for &mode in program.modes() {
        match explore(program, mode, chunks_per_message, EXPLORED_STATES).ok()? {
            Explored::Right => {}
            Explored::TooMany => return None,
            worse => return Some(worse),
        }
    }
    Some(Explored::Right)
}
