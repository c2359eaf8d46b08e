//! Training iterations, execution traces, and jobs that share a fabric.

#![forbid(unsafe_code)]
#![warn(
    clippy::cast_lossless,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

// Of the crates below: `crate::id` and so on.
use hocket_base::{explain, graph, id, progress, units};
use hocket_fabric as routing;
use hocket_plan::{collective, multirail, plan, simulate};
#[cfg(test)]
use hocket_synth::algorithms;
use hocket_topology as topology;

pub mod trace;
pub mod iteration;
pub mod replay;
pub mod cluster;
