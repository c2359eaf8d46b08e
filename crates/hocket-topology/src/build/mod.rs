//! Builders of the usual networks, a file per family.
//!
//! Each file declares a family by `family!`. Its functions, text, files, counts and documentation follow from
//! [`FAMILIES`].
//!
//! # Examples
//! ```
//! use hocket_topology::build::{self, Clos};
//! use hocket_base::units::{Bandwidth, Time};
//!
//! let bandwidth = Bandwidth::from_bytes_per_second(50_000_000_000).unwrap();
//! let latency = Time::from_ns(500);
//! let torus = build::torus(&[4, 4, 2], bandwidth, latency)?;
//! assert_eq!(torus.npu_count(), 32);
//!
//! let clos = Clos {
//!     spines: 2,
//!     tors: 4,
//!     hosts_per_tor: 8,
//!     host_bandwidth: bandwidth,
//!     bandwidth,
//!     latency,
//! }
//! .build()?;
//! assert_eq!(clos.npu_count(), 32);
//! assert_eq!(clos.device_count(), 32 + 4 + 2);
//! assert_eq!(clos.links().len(), 2 * (32 + 4 * 2));
//! # Ok::<(), hocket_topology::TopologyError>(())
//! ```
//!
//! NPUs are named `npu0`, `npu1`, ... Sizes are checked before anything is allocated.

#[macro_use]
mod family;
mod nodes;
mod product;

pub use family::{Along, Counts, Family, Otherwise, Parameter, Unit, Value};
pub use product::product;
pub use product::product_counts;

use super::{TopologyBuilder, TopologyError};
use crate::id::DeviceId;

families! {
    ring::Ring,
    line::Line,
    switch::Switch,
    fully_connected::FullyConnected,
    mesh::Mesh,
    torus::Torus,
    hypercube::Hypercube,
    dragonfly::Dragonfly,
    clos::Clos,
    bigraph::BiGraph,
    hyperx_2d::HyperX2d,
    fat_tree::FatTree,
    rail::Rail,
    boxes::Boxes,
    planes::Planes,
}

/// Memory that a built topology may take, in bytes.
pub const MEMORY_LIMIT: u64 = 16 << 30;

/// A device (with its name) and a link (with its place in the adjacency), in bytes, rounded up.
const DEVICE_BYTES: u128 = 80;
const LINK_BYTES: u128 = 40;

/// Refuses what would not fit [`MEMORY_LIMIT`]; whatever fits has ids of 32 bits.
fn check_memory(what: impl FnOnce() -> String, counts: &Counts) -> Result<(), TopologyError> {
    let devices = counts.npus.saturating_add(counts.switches);
    let bytes = devices
        .saturating_mul(DEVICE_BYTES)
        .saturating_add(counts.links.saturating_mul(LINK_BYTES));
    if bytes <= u128::from(MEMORY_LIMIT) {
        return Ok(());
    }
    Err(TopologyError::TooLarge {
        what: what(),
        bytes,
        limit: MEMORY_LIMIT,
    })
}

/// Refuses a parameter below its least useful value.
fn check_least(what: &str, value: u32, least: u32) -> Result<(), TopologyError> {
    if value >= least {
        return Ok(());
    }
    Err(TopologyError::BadParameter {
        what: what.to_owned(),
        why: format!("is {value}; give it at least {least}"),
    })
}

/// Adds switches named `stem0`, `stem1`, ...
fn switches(builder: &mut TopologyBuilder, stem: &str, count: u32) -> Vec<DeviceId> {
    (0..count)
        .map(|i| builder.switch(format!("{stem}{i}"), None))
        .collect()
}

#[cfg(test)]
mod tests;
