//! The routing controller's service and its host agents, without input and output: state machines that are
//! told what happened and when, and say what is to be done.
//!
//! ```text
//! programs -> agent::Agent <- message -> server::Server -> hocket_fabric::controller
//!                                          |
//!                                        store (what outlives a restart)
//! ```
//!
//! Nothing here has a clock, a thread, a socket or a file, so that each fault is one more thing that a machine is
//! told, and the same input gives the same output. Points in time are durations since a start that
//! whoever owns the machine chooses; they must not go back.

#![forbid(unsafe_code)]

pub mod message;
pub mod digest;
pub mod directory;
#[cfg(feature = "server")]
pub mod stages;
pub mod store;
#[cfg(feature = "server")]
pub mod server;
pub mod agent;
