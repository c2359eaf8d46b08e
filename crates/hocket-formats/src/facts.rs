//! What a file says of its program.

use hocket_base::id::narrow;
use hocket_program::program::{Mode, SizeLimits};

use crate::msccl_xml::Algo;
use crate::mscclpp_json::ExecutionPlan;

/// What all formats say of their programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What it is called.
    pub name: String,
    /// Its collective, in the format's word.
    pub collective: String,
    /// Number of ranks.
    pub ranks: u32,
    /// Its protocol.
    pub protocol: String,
    /// Chunks of the larger of its buffers.
    pub chunks: u32,
    /// Whether it is for calls in place, out of place or both.
    pub modes: Vec<Mode>,
    /// Sizes for which it may be used.
    pub limits: SizeLimits,
    /// Most thread blocks of a rank.
    pub blocks: usize,
    /// Steps of all ranks.
    pub steps: usize,
    /// Most scratch chunks of a rank.
    pub scratch: u32,
}

impl Facts {
    /// Of a file of MSCCL.
    pub fn of_msccl(algo: &Algo) -> Self {
        let tbs = || algo.gpus.iter().flat_map(|gpu| &gpu.blocks);
        let out_of_place = algo.out_of_place.unwrap_or(!algo.in_place);
        let modes = [
            (algo.in_place, Mode::InPlace),
            (out_of_place, Mode::OutOfPlace),
        ];
        let max = algo
            .max_bytes
            .filter(|&max| max > 0 || algo.out_of_place.is_none());
        Self {
            name: algo.name.clone(),
            collective: algo.collective.clone(),
            ranks: algo.ranks,
            protocol: algo.protocol.name().to_owned(),
            chunks: algo.chunks,
            modes: modes
                .into_iter()
                .filter(|mode| mode.0)
                .map(|mode| mode.1)
                .collect(),
            limits: SizeLimits {
                min: algo.min_bytes.unwrap_or(0),
                max: max.unwrap_or(u64::MAX),
            },
            blocks: algo
                .gpus
                .iter()
                .map(|gpu| gpu.blocks.len())
                .max()
                .unwrap_or(0),
            steps: tbs().map(|tb| tb.steps.len()).sum(),
            scratch: algo.gpus.iter().map(|gpu| gpu.sizes[2]).max().unwrap_or(0),
        }
    }

    /// Of a file of MSCCL++.
    pub fn of_mscclpp(plan: &ExecutionPlan) -> Self {
        let tbs = || plan.gpus.iter().flat_map(|gpu| &gpu.threadblocks);
        let ops = tbs().flat_map(|tb| &tb.ops).map(|op| 1 + op.ops.len());
        let chunks = plan
            .gpus
            .iter()
            .map(|gpu| gpu.input_chunks.max(gpu.output_chunks));
        let mode = if plan.inplace {
            Mode::InPlace
        } else {
            Mode::OutOfPlace
        };
        Self {
            name: plan.name.clone(),
            collective: plan.collective.clone(),
            ranks: narrow(plan.gpus.len()),
            protocol: plan.protocol.clone(),
            chunks: chunks.max().unwrap_or(0),
            modes: vec![mode],
            limits: SizeLimits {
                min: plan.min_message_size,
                max: plan.max_message_size,
            },
            blocks: plan
                .gpus
                .iter()
                .map(|gpu| gpu.threadblocks.len())
                .max()
                .unwrap_or(0),
            steps: ops.sum(),
            scratch: plan
                .gpus
                .iter()
                .map(|gpu| gpu.scratch_chunks)
                .max()
                .unwrap_or(0),
        }
    }
}
