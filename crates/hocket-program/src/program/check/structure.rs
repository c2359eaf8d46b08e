//! Whether everything that a program names exists and fits.

use super::{Code, Faults, Place, block_name, step_name};
use crate::id::narrow;
use crate::program::{Op, Program, Span, Step};

/// Adds what is wrong with single blocks and steps.
pub(crate) fn check(program: &Program, faults: &mut Faults) {
    check_task(program, faults);
    for (number, block) in program.blocks().iter().enumerate() {
        let place = Place::Block(narrow(number));
        for (peer, word) in [(block.send, "sends to"), (block.recv, "receives from")] {
            let Some(peer) = peer else { continue };
            if peer >= program.ranks() {
                faults.add(Code::Unknown, place, || {
                    let last = program.ranks().saturating_sub(1);
                    format!("{word} rank {peer}, which does not exist; ranks are 0 to {last}")
                });
            } else if peer == block.rank {
                faults.add(Code::Unknown, place, || {
                    format!("{word} its own rank {peer}; give another rank, or none")
                });
            }
        }
    }
    for block in 0..narrow(program.blocks().len()) {
        for step in program.steps_of(block) {
            check_step(program, block, step, faults);
        }
    }
}

fn check_task(program: &Program, faults: &mut Faults) {
    let task = program.task();
    if !task.is_even() {
        faults.add(Code::BadStep, Place::Program, || {
            format!(
                "{} chunks of an {} cannot be the same number for each of {} ranks; take a multiple of {}",
                task.chunks, task.kind, task.ranks, task.ranks
            )
        });
    }
    for (number, line) in program.lines().iter().enumerate() {
        if line.from >= program.ranks() || line.to >= program.ranks() || line.from == line.to {
            faults.add(Code::Unknown, Place::Program, || {
                let (from, to) = (line.from, line.to);
                format!(
                    "line {number} leads from rank {from} to rank {to}, which is no pair of ranks"
                )
            });
        }
    }
}

fn check_step(program: &Program, block: u32, number: u32, faults: &mut Faults) {
    let place = Place::Step(number);
    let step = program.step(number);
    let own = &program.blocks()[block as usize];
    if let Some(wrong) = wrong_operands(step) {
        faults.add(Code::BadStep, place, || wrong);
        return;
    }
    for span in step.spans() {
        check_span(program, own.rank, step.op, span, place, faults);
    }
    for (needed, peer, word) in [
        (step.op.sends(), own.send, "sends"),
        (step.op.receives(), own.recv, "receives"),
    ] {
        if needed && peer.is_none() {
            faults.add(Code::Unknown, place, || {
                format!("{word}, but its block has no peer for that; give the block one")
            });
        }
    }
    for line in step.numbers() {
        check_number(program, own.rank, step.op, line, place, faults);
    }
    if let Some(target) = step.dependency {
        let other = program.block_of(target);
        let other_rank = program.blocks()[other as usize].rank;
        if other_rank != own.rank {
            faults.add(Code::BadDependency, place, || {
                format!("waits for a step of rank {other_rank}; dependencies stay within a rank")
            });
        } else if other == block && target >= number {
            faults.add(Code::BadDependency, place, || {
                format!(
                    "waits for {}, which does not come before it",
                    step_name(program, target)
                )
            });
        }
    }
}

fn check_span(program: &Program, rank: u32, op: Op, span: Span, place: Place, faults: &mut Faults) {
    if span.rank() >= program.ranks() {
        faults.add(Code::Unknown, place, || {
            format!("names {span}, which does not exist")
        });
        return;
    }
    let over_connection = op.sends() || op.receives();
    if over_connection && (span.rank() != rank || span.is_packet()) {
        faults.add(Code::BadStep, place, || {
            format!("names {span}; a step that sends or receives has memory of its own rank only")
        });
    }
    let size = program.sizes()[span.rank() as usize][span.buffer() as usize];
    let end = u64::from(span.offset()) + u64::from(span.count());
    if end > u64::from(size) {
        faults.add(Code::OutOfBounds, place, || {
            format!(
                "names {span}, whose {} has {size} chunks",
                span.buffer().name()
            )
        });
    }
}

fn check_number(
    program: &Program,
    rank: u32,
    op: Op,
    number: u32,
    place: Place,
    faults: &mut Faults,
) {
    let found = match op {
        Op::Signal => program.lines().get(number as usize).map(|line| line.from),
        Op::Wait => program.lines().get(number as usize).map(|line| line.to),
        Op::Acquire | Op::Release => {
            let semaphore = program.semaphores().get(number as usize);
            semaphore.map(|semaphore| semaphore.rank)
        }
        _ => Some(rank),
    };
    if found != Some(rank) {
        faults.add(Code::Unknown, place, || {
            format!(
                "names number {number} to {op}, which its rank does not have",
                op = op.name()
            )
        });
    }
}

/// Returns what is wrong with the number and size of a step's operands, if anything.
fn wrong_operands(step: Step<'_>) -> Option<String> {
    let (sources, targets) = (step.sources().len(), step.targets().len());
    let counts = (sources, targets, step.numbers().len());
    let fits = match step.op {
        Op::Nop => counts == (0, 0, 0),
        Op::Send | Op::RecvReduceSend => counts == (1, 0, 0),
        Op::Recv | Op::RecvSend => counts == (0, 1, 0),
        Op::RecvReduce | Op::RecvReduceStoreSend => counts == (1, 1, 0),
        Op::Copy => sources > 0 && sources == targets,
        Op::Reduce => sources > 0 && targets > 0,
        Op::Barrier => counts.2 == 2,
        Op::Signal | Op::Wait | Op::Acquire | Op::Release => counts.2 > 0,
    };
    if !fits {
        return Some(format!(
            "{} with {sources} sources and {targets} targets; it takes another number of them",
            step.op.name()
        ));
    }
    if step.op.moves_data() && step.spans().any(|span| span.count() == 0) {
        return Some(format!(
            "{} of no chunks; give it at least one",
            step.op.name()
        ));
    }
    let first = step.spans().next()?;
    let equal = match step.op {
        Op::Copy => step
            .sources()
            .zip(step.targets())
            .all(|(source, target)| source.count() == target.count()),
        _ => step.spans().all(|span| span.count() == first.count()),
    };
    (!equal).then(|| {
        format!(
            "{} between different numbers of chunks; they must be equal",
            step.op.name()
        )
    })
}

/// Returns the blocks that meet at barriers, for messages.
pub(super) fn named(program: &Program, blocks: &[u32]) -> String {
    let names: Vec<String> = blocks
        .iter()
        .map(|&block| block_name(program, block))
        .collect();
    names.join(" and ")
}
