//! [`Program`] to [`Algo`], and to text rank by rank.

use std::fmt::{self, Write};

use hocket_base::explain::Explain;
use hocket_plan::collective::CollectiveKind;
use hocket_program::program::{Buffer, Mode, Op, Program, Span, awaited};
use strum::VariantArray as _;

use super::{
    Algo, At, COLLECTIVES, Gpu, LineNumber, Protocol, Runtime, Step, StepType, Tb, rules, write,
};
use crate::Verdict;

/// Why a program has no file: what the format cannot express, or what no runtime loads.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum Refused {
    /// It does what the format has no word for.
    #[explain(why("MSCCL's XML cannot express it: {_0}"))]
    Inexpressible(String),
    /// It breaks a rule of the format.
    #[explain(why("no runtime runs it: {_0}"))]
    Rule(String),
    /// Every runtime refuses it, each for its reason.
    #[explain(why("no runtime loads it: {_0}"))]
    NoRuntime(String),
    /// The text could not be written.
    #[explain(from, why("the text could not be written"))]
    Write(fmt::Error),
}

/// `<algo>` of a program, without its ranks.
fn head(program: &Program, protocol: Protocol) -> Result<Algo, Refused> {
    let task = program.task();
    let known = COLLECTIVES.iter().find(|(_, kind)| *kind == task.kind);
    let Some(&(collective, _)) = known else {
        let why = format!("it has no name for {}", task.kind);
        return Err(Refused::Inexpressible(why));
    };
    let is_rooted = task.kind.is_rooted() && task.kind != CollectiveKind::Custom;
    if is_rooted && task.root != 0 {
        let why = format!(
            "it has no place for the root, rank {}; make rank 0 the root",
            task.root
        );
        return Err(Refused::Inexpressible(why));
    }
    if !program.is_synced() {
        let why = "its steps are not synced".to_owned();
        return Err(Refused::Inexpressible(why));
    }
    let channels = program.blocks().iter().map(|block| block.channel + 1).max();
    let (limits, modes) = (program.limits(), program.modes());
    let name: String = program
        .name()
        .chars()
        .filter(|&letter| letter != '"' && letter != '&' && letter != '<' && !letter.is_control())
        .collect();
    Ok(Algo {
        name,
        protocol,
        channels: channels.unwrap_or(1),
        chunks: task.chunks,
        ranks: program.ranks(),
        collective: collective.to_owned(),
        in_place: modes.contains(&Mode::InPlace),
        out_of_place: Some(modes.contains(&Mode::OutOfPlace)),
        min_bytes: Some(limits.min),
        // 0 stands for no limit.
        max_bytes: Some(if limits.max == u64::MAX {
            0
        } else {
            limits.max
        }),
        threads: None,
        gpus: Vec::new(),
    })
}

/// `<gpu>` of a rank.
fn gpu(program: &Program, awaited: &[bool], rank: u32) -> Result<Gpu, Refused> {
    let blocks = program.blocks_of(rank);
    let first = blocks.start;
    let tbs = blocks.map(|number| {
        let block = program.blocks()[number as usize];
        let range = program.steps_of(number);
        let start = range.start;
        let steps = range.map(|step| {
            let view = program.step(step);
            let dependency = view.dependency.map(|target| {
                let other = program.block_of(target);
                (other - first, target - program.steps_of(other).start)
            });
            let (kind, src, dst, count) = words(program, step)?;
            Ok(Step {
                position: step - start,
                kind,
                src,
                dst,
                count,
                dependency,
                awaited: awaited[step as usize],
                line: LineNumber::default(),
            })
        });
        Ok(Tb {
            send: block.send,
            recv: block.recv,
            channel: block.channel,
            steps: steps.collect::<Result<_, Refused>>()?,
            line: LineNumber::default(),
        })
    });
    Ok(Gpu {
        sizes: program.sizes()[rank as usize],
        blocks: tbs.collect::<Result<_, Refused>>()?,
        line: LineNumber::default(),
    })
}

/// Type, source, target and count of a step. Fields that the runtimes do not look at repeat the others.
fn words(program: &Program, step: u32) -> Result<(StepType, At, At, u32), Refused> {
    let view = program.step(step);
    let at = |span: Span| At {
        buffer: span.buffer(),
        offset: span.offset() as i32,
    };
    let src = view.sources().next().map(at);
    let dst = view.targets().next().map(at);
    let inexpressible = || {
        let name = hocket_program::program::check::step_name(program, step);
        Refused::Inexpressible(format!(
            "{name} is a {} that it has no type for",
            view.op.name()
        ))
    };
    let kind = match view.op {
        Op::Nop => {
            let unused = |buffer| At { buffer, offset: -1 };
            return Ok((
                StepType::Nop,
                unused(Buffer::Input),
                unused(Buffer::Output),
                0,
            ));
        }
        Op::Send => StepType::Send,
        Op::Recv => StepType::Recv,
        Op::RecvSend => StepType::RecvCopySend,
        Op::RecvReduce => StepType::RecvReduceCopy,
        Op::RecvReduceSend => StepType::RecvReduceSend,
        Op::RecvReduceStoreSend => StepType::RecvReduceCopySend,
        Op::Copy => StepType::Copy,
        Op::Reduce => StepType::Reduce,
        _ => return Err(inexpressible()),
    };
    let rank = program.blocks()[program.block_of(step) as usize].rank;
    let is_local = view
        .spans()
        .all(|span| span.rank() == rank && !span.is_packet());
    let fits = match view.op {
        Op::Copy => view.spans().len() == 2,
        // re sums its source into its target, which is the other source.
        Op::Reduce => {
            view.sources().len() == 2
                && view.targets().len() == 1
                && view.sources().nth(1) == view.targets().next()
        }
        _ => true,
    };
    let (Some(src), Some(dst)) = (src.or(dst), dst.or(src)) else {
        return Err(inexpressible());
    };
    if is_local && fits {
        Ok((kind, src, dst, view.count()))
    } else {
        Err(inexpressible())
    }
}

/// Returns the file of a program, as a whole.
///
/// # Errors
/// [`Refused::Inexpressible`].
pub fn from_program(program: &Program, protocol: Protocol) -> Result<Algo, Refused> {
    let mut algo = head(program, protocol)?;
    let awaited = awaited(program);
    let gpus = (0..program.ranks()).map(|rank| gpu(program, &awaited, rank));
    algo.gpus = gpus.collect::<Result<_, _>>()?;
    Ok(algo)
}

/// Writes the file of a program, rank by rank, and gives the runtimes that load it. Nothing is written
/// unless one does.
///
/// # Errors
/// [`Refused`].
pub fn export(
    program: &Program,
    protocol: Protocol,
    out: &mut dyn Write,
) -> Result<Vec<Runtime>, Refused> {
    let mut algo = head(program, protocol)?;
    // microsoft/msccl has another word for reduce-scatters than the others; theirs is written.
    let runtimes = Runtime::VARIANTS.iter();
    let refusals = runtimes.map(|&runtime| (runtime, runtime.refuses_head(&algo)));
    let mut refusals: Vec<_> = refusals.collect();
    let awaited = awaited(program);
    let mut verdict = Verdict::default();
    rules::check_head(&algo, &mut verdict);
    for rank in 0..program.ranks() {
        let gpu = gpu(program, &awaited, rank)?;
        rules::check_gpu(&algo, rank as usize, &gpu, &mut verdict);
        for (runtime, refusal) in &mut refusals {
            let why = || runtime.refuses_gpu(&algo, rank as usize, &gpu);
            *refusal = refusal.take().or_else(why);
        }
        if let Some(finding) = verdict.findings.first() {
            return Err(Refused::Rule(finding.to_string()));
        }
    }
    let loaders: Vec<Runtime> = refusals
        .iter()
        .filter(|(_, refusal)| refusal.is_none())
        .map(|&(runtime, _)| runtime)
        .collect();
    if loaders.is_empty() {
        let why = refusals.into_iter();
        let why =
            why.map(|(runtime, why)| format!("{}: {}", runtime.name(), why.unwrap_or_default()));
        return Err(Refused::NoRuntime(why.collect::<Vec<_>>().join("; ")));
    }
    algo.gpus.clear();
    write::write_head(&algo, out)?;
    for rank in 0..program.ranks() {
        write::write_gpu(rank as usize, &gpu(program, &awaited, rank)?, out)?;
    }
    out.write_str("</algo>\n")?;
    Ok(loaders)
}
