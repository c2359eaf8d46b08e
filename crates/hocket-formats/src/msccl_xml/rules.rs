//! What the runtimes demand beyond a right program, and which of them load a file.

use strum::{IntoStaticStr, VariantArray};

use super::{Algo, Gpu, Step, StepType, Tb};
use crate::{Finding, Verdict};

/// Chunks that one step may have.
pub const MAX_COUNT: u32 = 71;
/// Highest id of a block that others wait for: it is kept in eight bits with a sign.
pub const MAX_DEPENDED_BLOCK: u32 = 127;
/// Most `re` steps that are fused into one.
pub const MAX_FUSED: usize = 16;
/// Highest offset: it is kept in sixteen bits with a sign.
pub const MAX_OFFSET: u32 = (1 << 15) - 1;
/// Steps that a block may have in the runtime that holds most.
pub const MAX_STEPS: u32 = 256;
/// Characters of a name or value.
const MAX_TEXT: usize = 254;

/// A runtime that loads MSCCL's XML.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
pub enum Runtime {
    /// microsoft/msccl.
    #[strum(serialize = "MSCCL")]
    Msccl,
    /// Azure/msccl-executor-nccl.
    #[strum(serialize = "msccl-executor-nccl")]
    Azure,
    /// ROCm/rccl.
    #[strum(serialize = "RCCL")]
    Rccl,
}

impl Runtime {
    /// Returns the name in messages.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the number of blocks that a rank may have.
    const fn max_blocks(self) -> usize {
        match self {
            Runtime::Msccl => 216,
            Runtime::Azure => 1024,
            Runtime::Rccl => 64,
        }
    }

    /// Returns the number of steps that a block may have.
    const fn max_steps(self) -> usize {
        match self {
            Runtime::Msccl | Runtime::Azure => MAX_STEPS as usize,
            Runtime::Rccl => 64,
        }
    }

    /// Returns why it does not load a file; `None` if it does.
    pub fn refuses(self, algo: &Algo) -> Option<String> {
        let gpus = || algo.gpus.iter().enumerate();
        let by_gpu = || gpus().find_map(|(rank, gpu)| self.refuses_gpu(algo, rank, gpu));
        self.refuses_head(algo).or_else(by_gpu)
    }

    /// Returns why it does not load a file because of the attributes of `<algo>`.
    pub(super) fn refuses_head(self, algo: &Algo) -> Option<String> {
        const MSCCL: [&str; 7] = [
            "allreduce",
            "allgather",
            "reduce",
            "broadcast",
            "alltoall",
            "reduce_scatter",
            "custom",
        ];
        const OTHERS: [&str; 11] = [
            "reduce",
            "broadcast",
            "allreduce",
            "reducescatter",
            "allgather",
            "send",
            "recv",
            "gather",
            "scatter",
            "alltoall",
            "alltoallv",
        ];
        let named = match self {
            Runtime::Msccl => MSCCL.as_slice(),
            Runtime::Azure | Runtime::Rccl => OTHERS.as_slice(),
        };
        if !named.contains(&algo.collective.as_str()) {
            return Some(format!("it knows no coll=\"{}\"", algo.collective));
        }
        let lacks = [
            ("outofplace", algo.out_of_place.is_none()),
            ("minBytes", algo.min_bytes.is_none()),
            ("maxBytes", algo.max_bytes.is_none()),
        ];
        let missing = lacks.iter().find(|(_, is_missing)| *is_missing);
        match missing {
            Some((name, _)) if self != Runtime::Msccl => {
                Some(format!("it demands {name} of <algo>"))
            }
            _ => None,
        }
    }

    /// Returns why it does not load a file because of what a rank does.
    pub(super) fn refuses_gpu(self, algo: &Algo, rank: usize, gpu: &Gpu) -> Option<String> {
        const MAX_NODES: usize = 4096;
        let blocks = gpu.blocks.len();
        if blocks > self.max_blocks() {
            let most = self.max_blocks();
            return Some(format!(
                "rank {rank} has {blocks} blocks, and the most is {most}"
            ));
        }
        if self == Runtime::Msccl
            && let Some(why) = wrong_sizes(algo, gpu, rank)
        {
            return Some(why);
        }
        for (id, tb) in gpu.blocks.iter().enumerate() {
            let (steps, most) = (tb.steps.len(), self.max_steps());
            if steps > most {
                return Some(format!(
                    "block {id} of rank {rank} has {steps} steps, and the most is {most}"
                ));
            }
        }
        let steps: usize = gpu.blocks.iter().map(|tb| tb.steps.len()).sum();
        let nodes = 1 + algo.ranks as usize + blocks + steps;
        (nodes > MAX_NODES).then(|| {
            format!("rank {rank} has {nodes} elements to load, and the most is {MAX_NODES}")
        })
    }
}

/// Returns what microsoft/msccl demands of the sizes of buffers.
fn wrong_sizes(algo: &Algo, gpu: &Gpu, rank: usize) -> Option<String> {
    let (ranks, chunks) = (u64::from(algo.ranks), u64::from(algo.chunks));
    let times = |name| if algo.collective == name { ranks } else { 1 };
    let checks = [
        ("i_chunks", gpu.sizes[0], times("allgather")),
        ("o_chunks", gpu.sizes[1], times("reduce_scatter")),
    ];
    checks.into_iter().find_map(|(name, size, factor)| {
        let whole = u64::from(size) * factor;
        (size > 0 && whole != chunks).then(|| {
            format!("rank {rank} has {name}=\"{size}\", which does not make {chunks} chunks in all")
        })
    })
}

/// Adds what is wrong by the rules that all runtimes share.
pub(super) fn check(algo: &Algo, verdict: &mut Verdict) {
    check_head(algo, verdict);
    for (rank, gpu) in algo.gpus.iter().enumerate() {
        check_gpu(algo, rank, gpu, verdict);
    }
}

/// Adds what is wrong with the attributes of `<algo>`.
pub(super) fn check_head(algo: &Algo, verdict: &mut Verdict) {
    let mut add = |code, detail: String| {
        verdict.add(Finding {
            code,
            line: 1,
            place: String::new(),
            detail,
        });
    };
    if algo.name.chars().count() > MAX_TEXT {
        add(
            "too_long",
            format!("name has more than {MAX_TEXT} characters; shorten it"),
        );
    }
    if let (Some(min), Some(max)) = (algo.min_bytes, algo.max_bytes)
        && max != 0
        && min > max
    {
        add(
            "size_limits",
            format!("minBytes is {min}, above maxBytes, {max}"),
        );
    }
    if !algo.in_place && algo.out_of_place == Some(false) {
        let detail = "is for calls neither in place nor out of place; set one of both to 1";
        add("no_mode", detail.to_owned());
    }
}

/// Adds what is wrong with what a rank does.
pub(super) fn check_gpu(algo: &Algo, rank: usize, gpu: &Gpu, verdict: &mut Verdict) {
    for (id, tb) in gpu.blocks.iter().enumerate() {
        check_block(
            algo,
            gpu,
            (id, tb),
            &mut |code, step: Option<&Step>, detail| {
                let place = match step {
                    Some(step) => format!("gpu {rank}, tb {id}, step {}", step.position),
                    None => format!("gpu {rank}, tb {id}"),
                };
                verdict.add(Finding {
                    code,
                    line: u64::from(step.map_or(tb.line, |step| step.line).0),
                    place,
                    detail,
                });
            },
        );
    }
}

type Report<'a> = dyn FnMut(&'static str, Option<&Step>, String) + 'a;

fn check_block(algo: &Algo, gpu: &Gpu, (id, tb): (usize, &Tb), report: &mut Report<'_>) {
    if tb.channel >= algo.channels {
        let (channel, channels) = (tb.channel, algo.channels);
        report(
            "unknown_channel",
            None,
            format!("has chan=\"{channel}\", and nchannels is {channels}; channels count from 0"),
        );
    }
    for (position, step) in tb.steps.iter().enumerate() {
        let step_report = &mut |code, detail| report(code, Some(step), detail);
        check_step(gpu, id, position, step, step_report);
        if step.kind == StepType::Nop && position + 1 == tb.steps.len() {
            step_report(
                "trailing_nop",
                "is a nop at the end of its block, which runtimes drop".to_owned(),
            );
        }
    }
    check_chains(tb, report);
}

fn check_step(
    gpu: &Gpu,
    id: usize,
    position: usize,
    step: &Step,
    report: &mut dyn FnMut(&'static str, String),
) {
    if step.position as usize != position {
        let detail = format!(
            "has s=\"{}\", and is step {position} of its block",
            step.position
        );
        report("position", detail);
    }
    if step.count > MAX_COUNT {
        report(
            "count",
            format!("has cnt=\"{}\", and the most is {MAX_COUNT}", step.count),
        );
    }
    if step.kind != StepType::Nop && step.count == 0 {
        report("count", "has cnt=\"0\"; only nops have none".to_owned());
    }
    if step.kind == StepType::Nop && step.dependency.is_none() {
        report(
            "nop",
            "is a nop that waits for nothing, which upsets the count of steps".to_owned(),
        );
    }
    for (at, word) in [(step.src, "src"), (step.dst, "dst")] {
        if at.offset > MAX_OFFSET as i32 {
            report(
                "offset",
                format!(
                    "has {word}off=\"{}\", and the most is {MAX_OFFSET}",
                    at.offset
                ),
            );
        }
    }
    let Some((block, target)) = step.dependency else {
        return;
    };
    if block > MAX_DEPENDED_BLOCK {
        let most = MAX_DEPENDED_BLOCK;
        report(
            "dependency",
            format!("waits for tb {block}, and only tb 0 to {most} can be waited for"),
        );
    }
    let found = gpu.blocks.get(block as usize);
    match found.and_then(|tb| tb.steps.get(target as usize)) {
        None => report(
            "dependency",
            format!("waits for step {target} of tb {block}, which does not exist"),
        ),
        Some(other) if !other.awaited => report(
            "dependency",
            format!(
                "waits for step {target} of tb {block}, which has hasdep=\"0\" and tells nobody"
            ),
        ),
        Some(_) if block as usize == id && target as usize >= position => report(
            "dependency",
            format!("waits for step {target} of its own block, which does not come before it"),
        ),
        Some(_) => {}
    }
}

/// `re` steps of one target and source that follow each other without a dependency are fused, 16 at most.
fn check_chains(tb: &Tb, report: &mut Report<'_>) {
    let mut length = 0;
    let mut last: Option<&Step> = None;
    for step in &tb.steps {
        let goes_on = last.is_some_and(|last| {
            step.kind == StepType::Reduce
                && last.kind == StepType::Reduce
                && step.dst == last.dst
                && step.src.buffer == last.src.buffer
                && step.dependency.is_none()
                && !last.awaited
        });
        length = if goes_on { length + 1 } else { 1 };
        if length == MAX_FUSED + 1 {
            report(
                "fused",
                Some(step),
                format!(
                    "is one of more than {MAX_FUSED} re steps that are fused; put a dependency between them"
                ),
            );
        }
        last = Some(step);
    }
}
