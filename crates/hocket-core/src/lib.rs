//! Plans, proves, bounds and simulates collective communication on any network.
//!
//! The modules in five parts, and what flows through them:
//!
//! ```text
//! ground     units, id, explain, progress, graph: for all below
//!
//! network    topology ---+--- routing: paths on a Clos or fat tree
//!                        |
//! plans      collective -+- algorithms -> plan -> verify -> Verified -> simulate -> Run -> report
//!                        |   |                                                             |
//!                        |   +- multirail (schedules of dimensions)                        |
//!                        |   +- select (the quickest as simulated) -- synthesis            |
//!                        +- bound -------------------------------------------- lower bound +
//!
//! fabric     routing -> cluster: training jobs that share a fabric, as fluids of simulate
//!
//! training   trace -> replay -> iteration: computation, and calls served as multirail serves them
//! ```
//!
//! # Examples
//! A ring all-reduce of 4 MB among four NPUs, from the network to its figures:
//! ```
//! use std::sync::Arc;
//!
//! use hocket_core::algorithms::{Algorithm, PlanOptions, plan};
//! use hocket_core::bound::{BoundOptions, bound};
//! use hocket_core::collective::{Collective, CollectiveKind};
//! use hocket_core::progress::Silent;
//! use hocket_core::report::Report;
//! use hocket_core::simulate::{SimulateOptions, simulate};
//! use hocket_core::topology::build::{self, RingWays};
//! use hocket_core::units::{Bandwidth, Time};
//! use hocket_core::verify::verify;
//!
//! let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
//! let ring = Arc::new(build::ring(4, gigabyte, Time::from_ns(1_000), RingWays::One)?);
//! let all_reduce = Collective::among_all(CollectiveKind::AllReduce, &ring, 4_000_000)?;
//!
//! let options = PlanOptions { chunks: Some(1), ..PlanOptions::new(Algorithm::Ring) };
//! let plan = plan(&ring, &all_reduce, &options, &mut Silent)?;
//! let verified = verify(Arc::new(plan), Arc::clone(&ring), &mut Silent)?;
//! let run = simulate(&verified, &SimulateOptions::default(), &mut Silent)?;
//! let bound = bound(&ring, &all_reduce, &BoundOptions::default(), &mut Silent)?;
//!
//! // Six steps, in each of which every NPU sends a quarter of its vector.
//! assert_eq!(run.time, Time::from_ns(6_006_000));
//! assert!(bound.time <= run.time);
//! let report = Report::new(&run, &all_reduce, &ring);
//! assert!(report.gap(bound.time) < 0.001);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A module uses only those declared above it. Nothing here reads a file, a clock, the terminal or a
//! global: the same input gives the same output, on any number of threads.

#![forbid(unsafe_code)]

pub use hocket_base::{explain, graph, id, progress, units};
pub use hocket_fabric as routing;
pub use hocket_plan::{bound, collective, multirail, plan, report, simulate, verify};
pub use hocket_program::{kernel, program};
pub use hocket_synth::{algorithms, multiflow, packing, select, steiner, symmetry, synthesis};
pub use hocket_topology as topology;
pub use hocket_train::{cluster, iteration, replay, trace};

/// The example of `README.md`, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
