//! The routing controller of a cluster as a service: hosts announce flows, and hear which paths they take.
//!
//! ```text
//! hosts -> accept (TLS) -> service (streams) -> server_owner -> hocket_control::server
//!                                                 |
//!                            operator (page, metrics), store_writer (disk), standby (who is active)
//! ```

#![forbid(unsafe_code)]

mod in_turn;
pub mod metrics;
pub mod accept;
pub mod cluster;
mod audit;
pub mod disk;
pub mod certs;
pub mod server_owner;
pub mod linkfile;
pub mod config;
pub mod events;
pub mod store_writer;
pub mod operator;
pub mod queue_pairs;
pub mod rotation;
pub mod service;
pub mod standby;
pub mod run;
