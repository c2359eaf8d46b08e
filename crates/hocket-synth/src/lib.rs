//! Algorithms and searches that make plans for collectives.

#![forbid(unsafe_code)]

// Of the crates below: `crate::id` and so on.
use hocket_base::{explain, graph, id, progress, units};
use hocket_fabric as routing;
use hocket_plan::{bound, collective, multirail, plan, simulate, verify};
use hocket_topology as topology;

pub use hocket_packing as packing;

pub mod multiflow;
pub mod steiner;
pub mod symmetry;
pub mod synthesis;
pub mod select;
pub mod algorithms;
