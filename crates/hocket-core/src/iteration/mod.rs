//! Training iterations: computation and collectives as a graph, run on NPUs that share their rails.
//!
//! A [`Graph`] has nodes of *actors*: an NPU, or one that stands for all that do the same. A node computes,
//! or takes part in a *call*: one collective or message, of some [`Shape`], which its actors' rails serve
//! chunk by chunk. [`run`] gives when everything starts and ends ([`Outcome`]), and what of it kept an
//! actor from computing ([`exposed`]).

mod engine;
mod exposed;
mod graph;
mod shape;
mod station;

pub use engine::{Outcome, run};
pub use exposed::{Exposure, exposed};
pub use graph::{Calls, Deps, Engine, Graph, GraphError, Nodes, Order};
pub use shape::Shape;

#[cfg(test)]
mod tests;
