//! The agent of the routing controller on a host: local programs open flows, and are given source ports that take
//! the paths that the controller wants.
//!
//! ```text
//! programs -> local (Unix socket) -> agent_owner -> hocket_control::agent -> session (TLS) -> controller
//!                                     |
//!          srv6 (rules of the kernel) <-> ports (hash models, what is in use) <-> probes
//! ```
//!
//! The last good paths are kept in memory: an agent that is restarted asks again.

#![forbid(unsafe_code)]

pub mod datagrams;
mod seqpacket;
pub mod client;
pub mod ports;
mod sockets;
pub mod srv6;
pub mod agent_owner;
pub mod local;
pub mod probes;
pub mod config;
pub mod session;
