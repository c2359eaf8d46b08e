//! [`Algo`] to [`Program`], and its check.

use hocket_base::id::narrow;
use hocket_base::progress::{Interrupted, Progress};
use hocket_plan::collective::CollectiveKind;
use hocket_program::program::check::{CheckOptions, Fault, Place, check as check_program};
use hocket_program::program::{
    Block, Buffer, Mode, NewStep, Op, Program, ProgramBuilder, SizeLimits, Span, Task,
};
use strum::VariantArray as _;

use super::{Algo, At, Runtime, Step, StepType, rules};
use crate::{FormatError, Verdict};

/// Returns the program of an algorithm.
///
/// # Errors
/// [`FormatError`] for an offset of -1 where a chunk is read or written, and what [`ProgramBuilder::finish`]
/// refuses.
pub fn program(algo: &Algo) -> Result<Program, FormatError> {
    let task = Task {
        kind: algo.kind().unwrap_or(CollectiveKind::Custom),
        ranks: algo.ranks,
        root: 0,
        chunks: algo.chunks,
    };
    let mut builder = ProgramBuilder::new(&algo.name, task);
    builder.in_flight(algo.protocol.in_flight());
    builder.modes(&modes(algo));
    let max = algo
        .max_bytes
        .filter(|&max| max > 0 || algo.out_of_place.is_none());
    builder.limits(SizeLimits {
        min: algo.min_bytes.unwrap_or(0),
        max: max.unwrap_or(u64::MAX),
    });
    let mut first_block = 0;
    for (rank, gpu) in algo.gpus.iter().enumerate() {
        let rank = narrow(rank);
        for &buffer in Buffer::ALL {
            builder.size(rank, buffer, gpu.sizes[buffer as usize]);
        }
        for tb in &gpu.blocks {
            builder.block(Block {
                rank,
                send: tb.send,
                recv: tb.recv,
                channel: tb.channel,
            });
            for step in &tb.steps {
                add(&mut builder, rank, first_block, step)?;
            }
        }
        first_block += narrow(gpu.blocks.len());
    }
    builder
        .finish()
        .map_err(|error| FormatError::new(error.to_string()))
}

fn modes(algo: &Algo) -> Vec<Mode> {
    let out_of_place = algo.out_of_place.unwrap_or(!algo.in_place);
    let mut modes = Vec::new();
    if algo.in_place {
        modes.push(Mode::InPlace);
    }
    if out_of_place {
        modes.push(Mode::OutOfPlace);
    }
    modes
}

fn add(
    builder: &mut ProgramBuilder,
    rank: u32,
    first_block: u32,
    step: &Step,
) -> Result<(), FormatError> {
    let span = |at: At, word: &str| match u32::try_from(at.offset) {
        Ok(offset) => Ok(Span::new(rank, at.buffer, offset, step.count)),
        Err(_) => {
            let why = format!("<step> of type {} has {word}off=\"-1\"", step.kind.name());
            Err(FormatError::at(u64::from(step.line.0), why).remedy("give the chunk"))
        }
    };
    let (op, uses_src, uses_dst) = match step.kind {
        StepType::Nop => (Op::Nop, false, false),
        StepType::Send => (Op::Send, true, false),
        StepType::Recv => (Op::Recv, false, true),
        StepType::Copy => (Op::Copy, true, true),
        StepType::Reduce => (Op::Reduce, true, true),
        StepType::RecvCopySend => (Op::RecvSend, false, true),
        StepType::RecvReduceSend => (Op::RecvReduceSend, true, false),
        StepType::RecvReduceCopy => (Op::RecvReduce, true, true),
        StepType::RecvReduceCopySend => (Op::RecvReduceStoreSend, true, true),
    };
    let src = uses_src.then(|| span(step.src, "src")).transpose()?;
    let dst = uses_dst.then(|| span(step.dst, "dst")).transpose()?;
    let mut sources: Vec<Span> = src.into_iter().collect();
    if step.kind == StepType::Reduce {
        sources.extend(dst);
    }
    let dependency = step
        .dependency
        .map(|(block, target)| (first_block + block, target));
    builder.step(&NewStep {
        op,
        dependency,
        sources: &sources,
        targets: dst.as_slice(),
        numbers: &[],
    });
    Ok(())
}

/// Judges an algorithm: the rules of the format, the program, and which runtimes load it.
///
/// # Errors
/// [`Interrupted`].
pub fn check(
    algo: &Algo,
    options: &CheckOptions,
    progress: &mut dyn Progress,
) -> Result<Verdict, Interrupted> {
    let mut verdict = Verdict::default();
    rules::check(algo, &mut verdict);
    if verdict.is_right() {
        match program(algo) {
            Ok(program) => {
                let checked = check_program(&program, options, progress)?;
                verdict.take(&checked, |fault| locate(algo, &program, fault));
            }
            Err(error) => verdict.add(crate::Finding {
                code: "unreadable",
                line: error.line().unwrap_or(0),
                place: String::new(),
                detail: error.why().to_owned(),
            }),
        }
    }
    let mut loaded = 0;
    for &runtime in Runtime::VARIANTS {
        let name = runtime.name();
        match runtime.refuses(algo) {
            None => {
                loaded += 1;
                verdict.notes.push(format!("{name} loads it"));
            }
            Some(why) => verdict
                .notes
                .push(format!("{name} does not load it: {why}")),
        }
    }
    if loaded == 0 && verdict.is_right() {
        verdict.add(crate::Finding {
            code: "no_runtime",
            line: 1,
            place: String::new(),
            detail: format!("no runtime loads it; {}", verdict.notes.join("; ")),
        });
    }
    Ok(verdict)
}

/// Line and place of a fault in the file.
fn locate(algo: &Algo, program: &Program, fault: &Fault) -> (u64, String) {
    let of_block = |block: u32| {
        let rank = program.blocks()[block as usize].rank;
        (rank, block - program.blocks_of(rank).start)
    };
    match fault.place {
        Place::Program => (1, String::new()),
        Place::Rank(rank) => {
            let line = algo.gpus[rank as usize].line.0;
            (u64::from(line), format!("gpu {rank}"))
        }
        Place::Block(block) => {
            let (rank, id) = of_block(block);
            let line = algo.gpus[rank as usize].blocks[id as usize].line.0;
            (u64::from(line), format!("gpu {rank}, tb {id}"))
        }
        Place::Step(step) => {
            let block = program.block_of(step);
            let (rank, id) = of_block(block);
            let position = step - program.steps_of(block).start;
            let tb = &algo.gpus[rank as usize].blocks[id as usize];
            let line = tb.steps[position as usize].line.0;
            (
                u64::from(line),
                format!("gpu {rank}, tb {id}, step {position}"),
            )
        }
    }
}
