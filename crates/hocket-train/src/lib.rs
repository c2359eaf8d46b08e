//! Training iterations, execution traces, and jobs that share a fabric.

#![forbid(unsafe_code)]

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
