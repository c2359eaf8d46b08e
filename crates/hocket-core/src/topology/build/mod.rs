//! Builders of the usual networks, a file per family.
//!
//! ```text
//! line      0 - 1 - 2 - 3           ring      0 - 1 - 2 - 3 - 0
//! switch    every NPU - sw0         fully_connected   every NPU - every NPU
//! mesh      line x line x ...       torus     ring x ring x ...      hypercube  2 x 2 x ...
//! product   any of ring, line, fully connected and switch, in any order and number
//! dragonfly fully connected groups, a link between each two groups
//! clos      NPUs - ToR switches - spines       fat_tree   NPUs - edge - agg - core
//! bigraph   NPUs - upper switches - lower switches - NPUs
//! rail      nodes of NPUs, NPU i of each - rail switch i - spines
//! boxes     nodes of NPUs - their NICs - a switch      planes   every NPU - every switch
//! ```
//!
//! # Examples
//! ```
//! use hocket_core::topology::build::{self, Clos};
//! use hocket_core::units::{Bandwidth, Time};
//!
//! let bandwidth = Bandwidth::from_bytes_per_second(50_000_000_000).unwrap();
//! let latency = Time::from_ns(500);
//! let torus = build::torus(&[4, 4, 2], bandwidth, latency)?;
//! assert_eq!(torus.npu_count(), 32);
//!
//! let clos = build::clos(&Clos {
//!     spines: 2,
//!     tors: 4,
//!     hosts_per_tor: 8,
//!     host_bandwidth: bandwidth,
//!     fabric_bandwidth: bandwidth,
//!     latency,
//! })?;
//! assert_eq!(clos.npu_count(), 32);
//! assert_eq!(clos.device_count(), 32 + 4 + 2);
//! assert_eq!(clos.links().len(), 2 * (32 + 4 * 2));
//! # Ok::<(), hocket_core::topology::TopologyError>(())
//! ```
//!
//! NPUs are named `npu0`, `npu1`, ... Sizes are checked before anything is allocated.

mod bigraph;
mod clos;
mod dragonfly;
mod nodes;
mod product;
mod simple;

pub use bigraph::bigraph;
pub use clos::{Clos, clos, fat_tree};
pub use dragonfly::{Dragonfly, dragonfly};
pub use nodes::{Nodes, boxes, planes, rail};
pub(crate) use product::product_counts;
pub use product::{hypercube, mesh, product, torus};
pub use simple::{RingWays, fully_connected, line, ring, switch};

use super::{TopologyBuilder, TopologyError};
use crate::id::DeviceId;

/// Memory that a built topology may take, in bytes.
pub const MEMORY_LIMIT: u64 = 16 << 30;

/// A device (with its name) and a link (with its place in the adjacency), in bytes, rounded up.
const DEVICE_BYTES: u128 = 80;
const LINK_BYTES: u128 = 40;

/// Refuses what would not fit [`MEMORY_LIMIT`]; whatever fits has ids of 32 bits.
fn check_memory(
    what: impl FnOnce() -> String,
    devices: u128,
    links: u128,
) -> Result<(), TopologyError> {
    let bytes = devices
        .saturating_mul(DEVICE_BYTES)
        .saturating_add(links.saturating_mul(LINK_BYTES));
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
