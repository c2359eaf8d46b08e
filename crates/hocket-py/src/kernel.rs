//! `hocket._core.kernel`: what thread blocks take that run their steps in order.

use hocket_core::kernel::{self as core, Block, Costs, Dependency, Kernel, Step};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::to_vec;
use crate::error::CoreError;

/// Whether it receives, whether it sends, operands, chunks, and blocks with their steps that it waits for.
type StepTuple = (bool, bool, u32, u32, Vec<(u32, u32)>);
/// NPU, whom it sends to, whom it receives from, channel, steps.
type BlockTuple = (u32, Option<u32>, Option<u32>, u32, Vec<StepTuple>);

fn step_of((receives, sends, operands, chunks, waits): StepTuple) -> Step {
    let waits = waits.into_iter();
    Step {
        receives,
        sends,
        operands,
        chunks,
        waits: waits
            .map(|(block, step)| Dependency { block, step })
            .collect(),
    }
}

fn block_of((npu, send, receive, channel, steps): BlockTuple) -> Block {
    Block {
        npu,
        send,
        receive,
        channel,
        steps: steps.into_iter().map(step_of).collect(),
    }
}

/// Times of one kernel with chunks of several sizes.
#[pyfunction]
#[pyo3(signature = (npus, instances, blocks, chunks, *, fixed, latency, sync, send, receive, operand, link, slot, parts, in_flight, streams))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn durations<'py>(
    py: Python<'py>,
    npus: u32,
    instances: u32,
    blocks: Vec<BlockTuple>,
    chunks: PyReadonlyArray1<'py, f64>,
    fixed: f64,
    latency: f64,
    sync: f64,
    send: f64,
    receive: f64,
    operand: f64,
    link: f64,
    slot: f64,
    parts: u32,
    in_flight: u32,
    streams: bool,
) -> Result<Bound<'py, PyArray1<f64>>, CoreError> {
    let blocks = blocks.into_iter().map(block_of).collect();
    let kernel = Kernel {
        npus,
        instances,
        blocks,
    };
    let costs = Costs {
        fixed,
        latency,
        sync,
        send,
        receive,
        operand,
        link,
        slot,
        parts,
        in_flight,
        streams,
    };
    let chunks = to_vec(&chunks);
    let found = py.detach(|| core::durations(&kernel, &costs, &chunks))?;
    Ok(PyArray1::from_vec(py, found))
}
