//! Units, identifiers, parts of errors, progress and graph tools of hocket.

#![forbid(unsafe_code)]

// Derived code names this crate.
extern crate self as hocket_base;

pub mod units;
pub mod id;
pub mod explain;
pub mod progress;
pub mod graph;
