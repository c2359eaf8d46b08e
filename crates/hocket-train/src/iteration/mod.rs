//! Training iterations: computation and collectives as a graph, run on NPUs that share their rails.
//!
//! A [`Graph`] has nodes of *actors*: an NPU, or one that stands for all that do the same. A node computes,
//! or takes part in a *call*: one collective or message, of some [`Shape`], which its actors' rails serve
//! chunk by chunk. [`run`] gives when everything starts and ends ([`Outcome`]), and what of it kept an
//! actor from computing ([`exposed`]). [`Training`] makes the graph of a model that is trained.
//!
//! # Examples
//! A step of 1 ms, an all-reduce of 3 ms beside another step of 1 ms, and an update that waits for both:
//! ```
//! use hocket_plan::collective::CollectiveKind;
//! use hocket_train::iteration::{Calls, Deps, Graph, Nodes, Order, Shape, exposed, run};
//! use hocket_plan::multirail::{Model, Policy, Rail, Schedule, themis};
//! use hocket_base::progress::Silent;
//! use hocket_topology::build::{self, RingWays};
//! use hocket_base::units::{Bandwidth, Time};
//!
//! const MS: u64 = 1_000_000_000; // in picoseconds
//! let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
//! let rails = Rail::of(&build::ring(4, gigabyte, Time::ZERO, RingWays::Both)?);
//! let kind = CollectiveKind::AllReduce;
//! let lanes = themis(&rails, kind, 4_000_000, 1);
//! let schedule = Schedule::new(kind, rails, lanes, Policy::Fifo, Model::default());
//!
//! let graph = Graph {
//!     actors: 1, // it stands for all four NPUs, which do the same
//!     station: vec![0],
//!     nodes: Nodes {
//!         actor: vec![0; 4],
//!         engine: vec![0; 4],
//!         time_ps: vec![MS, 0, MS, MS],
//!         call: vec![u32::MAX, 0, u32::MAX, u32::MAX],
//!     },
//!     deps: Deps { first: vec![0, 0, 1, 2, 4], of: vec![0, 0, 1, 2] },
//!     calls: Calls {
//!         shape: vec![0],
//!         priority: vec![0],
//!         starters: vec![1],
//!         first: vec![0, 1],
//!         members: vec![1],
//!     },
//! };
//! let shapes = [Shape::of_schedule(&schedule, &[0])?];
//! let outcome = run(&graph, &shapes, Order::Fifo, &mut Silent)?;
//! assert_eq!(outcome.finish_ps, 5 * MS);
//! // The all-reduce outlasts the step beside it by 2 ms.
//! assert_eq!(exposed(&graph, &outcome).exposed_ps.iter().sum::<u64>(), 2 * MS);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod engine;
mod exposed;
mod graph;
mod shape;
mod station;
mod training;

pub use engine::{Outcome, run};
pub use exposed::{Exposure, exposed};
pub use graph::{Calls, Deps, Engine, Graph, GraphError, Nodes, Order};
pub use shape::Shape;
pub use training::{
    Axis, Cause, Exchange, Layer, Pass, Piece, Stage, Training, TrainingGraph, under_way,
};

#[cfg(test)]
mod tests;
