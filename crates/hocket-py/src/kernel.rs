//! `hocket._core.kernel`: what thread blocks take that run their steps in order.

use hocket_core::kernel::{self as core, Block, Costs, Dependency, Kernel, Step};
use pyo3::prelude::*;

use crate::arrays::{Array, Given, to_vec};
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

/// Return how long it takes with chunks of each of these sizes [us].
///
/// Costs are in microseconds, bytes and microseconds per byte: ``fixed`` of a kernel that moves nothing;
/// ``latency`` until a receiver works on a part; ``sync`` until who waits for a step sees it done;
/// ``send`` and ``receive`` of a block, and ``operand`` for each local operand; ``link`` is what a link
/// carries [bytes/us]. A transfer has ``slot`` bytes at most and is passed on in ``parts``; a connection
/// holds ``in_flight`` of them. A receiver works on a part while it arrives, if it ``streams``.
#[pyfunction]
#[pyo3(signature = (npus, instances, blocks, chunks, *, fixed, latency, sync, send, receive, operand, link, slot, parts, in_flight, streams))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn durations<'py>(
    py: Python<'py>,
    npus: u32,
    instances: u32,
    blocks: Vec<BlockTuple>,
    chunks: Given<'py, f64>,
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
) -> Result<Array<'py, f64>, CoreError> {
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
    Ok(Array::from_vec(py, found))
}
