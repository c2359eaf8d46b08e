//! Plans, proves, bounds and simulates collective communication on any network.
//!
//! The modules in five parts, and what flows through them:
//!
//! ```text
//! ground     units, id, progress, graph: for all below
//!
//! network    topology ---+--- routing: paths on a Clos or fat tree
//!                        |
//! plans      collective -+- algorithms -> plan -> verify -> Verified -> simulate -> Run -> report
//!                        |   |                                                             |
//!                        |   +- multirail (schedules of dimensions), synthesis             |
//!                        +- bound -------------------------------------------- lower bound +
//!
//! fabric     routing -> cluster: training jobs that share a fabric, as fluids of simulate
//!
//! training   trace -> replay -> iteration: computation, and calls served as multirail serves them
//! ```
//!
//! A module uses only those declared above it. Nothing here reads a file, a clock, the terminal or a
//! global: the same input gives the same output, on any number of threads.

#![forbid(unsafe_code)]

// Ground.
pub mod units;
pub mod id;
pub mod progress;
pub mod graph;

// Network.
pub mod topology;
pub mod routing;

// Plans.
pub mod collective;
pub mod plan;
pub mod bound;
pub mod verify;
pub mod multirail;
pub mod synthesis;
pub mod algorithms;
pub mod simulate;
pub mod report;

// Fabric.
pub mod cluster;

// Training.
pub mod trace;
pub mod iteration;
pub mod replay;
