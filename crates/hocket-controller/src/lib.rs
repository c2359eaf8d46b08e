//! The routing controller of a cluster as a service: hosts announce flows, and hear which paths they take.
//!
//! ```text
//! hosts -> accept (TLS) -> service (streams) -> desk -> hocket_control::server
//!                                                 |
//!                            operator (page, metrics), keeper (disk), standby (who is active)
//! ```

#![forbid(unsafe_code)]

pub mod accept;
mod audit;
pub mod certs;
pub mod config;
pub mod desk;
pub mod disk;
pub mod events;
pub mod fabric;
mod in_turn;
pub mod keeper;
pub mod linkfile;
pub mod metrics;
pub mod operator;
pub mod queue_pairs;
pub mod rotation;
pub mod run;
pub mod service;
pub mod standby;
