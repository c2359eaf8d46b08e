//! A product of lines.

use super::super::{DimensionKind, Topology, TopologyError};
use super::Counts;
use super::product::{grid, sides};
use crate::units::{Bandwidth, Time};

family! {
    /// A mesh of any number of axes. NPU numbers vary fastest along the first.
    "mesh", as "9x9",
    struct Mesh {
        /// NPUs along each axis.
        size: Vec<u32>,
        /// Of each link, one direction.
        bandwidth: Bandwidth,
        /// Of each link.
        latency: Time,
    }
}

impl Mesh {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::of_dimensions(sides(
            DimensionKind::Line,
            &self.size,
            self.bandwidth,
            self.latency,
        ))
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for no axis, an axis of 0 or fewer than two NPUs in all;
    /// [`TopologyError::TooLarge`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        grid("mesh", &self.counts())
    }
}

/// Builds a [`Mesh`].
///
/// # Errors
/// As [`Mesh::build`].
pub fn mesh(size: &[u32], bandwidth: Bandwidth, latency: Time) -> Result<Topology, TopologyError> {
    let size = size.to_vec();
    Mesh {
        size,
        bandwidth,
        latency,
    }
    .build()
}
