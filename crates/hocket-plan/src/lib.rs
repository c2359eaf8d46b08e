//! Collectives and plans for them: proof, lower bounds, simulation, figures.

#![forbid(unsafe_code)]

// Of the crates below: `crate::id` and so on.
use hocket_base::{explain, graph, id, progress, units};
use hocket_fabric as routing;
use hocket_topology as topology;

pub mod collective;
pub mod plan;
pub mod verify;
pub mod bound;
pub mod simulate;
pub mod report;
pub mod multirail;
