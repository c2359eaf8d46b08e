//! Plans, proves, bounds and simulates collective communication on any network.
//!
//! The flow, in the order of the modules:
//!
//! ```text
//! Topology --+
//!            +- algorithms::plan -> Plan -> verify -> Verified -> simulate -> Run -> report
//! Collective-+                                                     bound  ----------> report
//! ```
//!
//! A module uses only those above it in this list. Nothing here reads a file, a clock, the terminal
//! or a global: the same input gives the same output, on any number of threads.

#![forbid(unsafe_code)]

pub mod units;
pub mod id;
pub mod progress;
pub mod topology;
pub mod routing;
pub mod collective;
pub mod trace;
pub mod plan;
pub mod bound;
pub mod verify;
pub mod multirail;
pub mod iteration;
pub mod replay;
pub mod synthesis;
pub mod algorithms;
pub mod simulate;
pub mod cluster;
pub mod report;
