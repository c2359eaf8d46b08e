//! Any algorithm on any network: it says why not, or its plan is right.

use hocket_core::algorithms::{
    Algorithm, PlanOptions, check_applicable, chunk_ladder, default_chunks, plan, transfer_count,
};

use super::draw::Draw;
use super::network;
use super::runs::{one_line, prove_and_run};
use hocket_core::progress::Silent;

/// Most transfers of a plan that is made.
const MAX_TRANSFERS: u128 = 2_000;

/// Makes a plan, proves it and runs it.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let Some(topology) = network::topology(&mut draw) else {
        return;
    };
    let Some(collective) = network::collective(&mut draw, &topology) else {
        return;
    };
    let algorithm = draw.one_of(&Algorithm::ALL);
    if let Err(error) = check_applicable(&topology, &collective, algorithm) {
        return one_line(&error.to_string());
    }
    let options = PlanOptions {
        chunks: Some(draw.near(6) as usize),
        effort: 1_000,
        seed: draw.byte().into(),
        ..PlanOptions::new(algorithm)
    };
    let chunks = options.chunks.unwrap_or(1);
    chunk_ladder(&topology, &collective, algorithm);
    default_chunks(algorithm, &topology, &collective);
    let count = transfer_count(&topology, &collective, algorithm, chunks);
    if count > MAX_TRANSFERS && count.saturating_mul(100) < u128::from(options.memory_limit) {
        return;
    }
    match plan(&topology, &collective, &options, &mut Silent) {
        Ok(plan) => prove_and_run(plan, &topology, &mut draw),
        Err(error) => one_line(&error.to_string()),
    }
}
