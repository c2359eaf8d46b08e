//! Networks of one dimension: line, ring, fully connected, switch.

use super::super::{Dimension, DimensionKind, Topology, TopologyBuilder, TopologyError};
use super::product::{build, check_product};
use super::{check_least, check_memory};
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};

/// Which way round a ring's links go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RingWays {
    /// From each NPU to the next only.
    One,
    /// A link each way between neighbours.
    Both,
}

/// `n` NPUs in a row, a link each way between neighbours.
///
/// # Errors
/// [`TopologyError::BadParameter`] for fewer than two NPUs, [`TopologyError::TooLarge`].
pub fn line(n: u32, bandwidth: Bandwidth, latency: Time) -> Result<Topology, TopologyError> {
    one_dimension("line", DimensionKind::Line, n, bandwidth, latency, None)
}

/// `n` NPUs in a circle. Two NPUs are joined by one link each way, not by two.
///
/// # Errors
/// [`TopologyError::BadParameter`] for fewer than two NPUs, [`TopologyError::TooLarge`].
pub fn ring(
    n: u32,
    bandwidth: Bandwidth,
    latency: Time,
    ways: RingWays,
) -> Result<Topology, TopologyError> {
    if ways == RingWays::Both {
        return one_dimension("ring", DimensionKind::Ring, n, bandwidth, latency, None);
    }
    check_least("size of the ring", n, 2)?;
    check_memory(|| format!("a ring of {n} NPUs"), n.into(), n.into())?;
    let mut builder = TopologyBuilder::new(format!("one-way ring {n}"));
    builder.npus(n as usize);
    for i in 0..n {
        builder.link(DeviceId(i), DeviceId((i + 1) % n), bandwidth, latency);
    }
    builder.finish()
}

/// `n` NPUs, a link each way between every two.
///
/// # Errors
/// [`TopologyError::BadParameter`] for fewer than two NPUs, [`TopologyError::TooLarge`].
pub fn fully_connected(
    n: u32,
    bandwidth: Bandwidth,
    latency: Time,
) -> Result<Topology, TopologyError> {
    let kind = DimensionKind::FullyConnected;
    one_dimension("fully connected", kind, n, bandwidth, latency, None)
}

/// `n` NPUs below one switch, which may have a `limit` of its own on what crosses it.
///
/// `latency` is that of each link: from NPU to NPU takes two.
///
/// # Errors
/// [`TopologyError::BadParameter`] for fewer than two NPUs, [`TopologyError::TooLarge`].
pub fn switch(
    n: u32,
    bandwidth: Bandwidth,
    latency: Time,
    limit: Option<Bandwidth>,
) -> Result<Topology, TopologyError> {
    one_dimension(
        "switch",
        DimensionKind::Switch,
        n,
        bandwidth,
        latency,
        limit,
    )
}

fn one_dimension(
    what: &str,
    kind: DimensionKind,
    size: u32,
    bandwidth: Bandwidth,
    latency: Time,
    limit: Option<Bandwidth>,
) -> Result<Topology, TopologyError> {
    check_least(&format!("size of the {what}"), size, 2)?;
    let dimensions = [Dimension {
        kind,
        size,
        bandwidth,
        latency,
        offload: false,
    }];
    let name = format!("{what} {size}");
    check_product(&name, &dimensions)?;
    build(name, &dimensions, limit)
}
