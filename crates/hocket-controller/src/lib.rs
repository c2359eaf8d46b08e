//! The routing controller of a cluster as a service: hosts announce flows, and hear which paths they take.
//!
//! ```text
//! hosts -> accept (TLS) -> service (streams) -> server_owner -> hocket_control::server
//!                                                 |
//!                            operator (page, metrics), store_writer (disk), standby (who is active)
//! ```

#![forbid(unsafe_code)]

pub mod accept;
mod audit;
pub mod certs;
pub mod config;
pub mod server_owner;
pub mod disk;
pub mod events;
pub mod cluster;
mod in_turn;
pub mod store_writer;
pub mod linkfile;
pub mod metrics;
pub mod operator;
pub mod queue_pairs;
pub mod rotation;
pub mod run;
pub mod service;
pub mod standby;
