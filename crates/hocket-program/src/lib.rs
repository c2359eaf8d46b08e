//! Programs that runtimes execute: made of plans, judged, run on arrays; costs of thread blocks.

#![forbid(unsafe_code)]

// Of the crates below: `crate::id` and so on.
use hocket_base::{explain, graph, id, progress, units};
use hocket_plan::{collective, plan, verify};

pub mod program;
pub mod kernel;
