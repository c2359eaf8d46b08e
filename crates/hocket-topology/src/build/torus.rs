//! A product of rings.

use super::super::{DimensionKind, Topology, TopologyError};
use super::Counts;
use super::product::{grid, sides};
use crate::units::{Bandwidth, Time};

family! {
    /// A mesh whose axes close. An axis of 2 has one link each way, not two.
    ///
    /// NPU numbers vary fastest along the first axis.
    "torus", as "4x4x4",
    struct Torus {
        /// NPUs along each axis.
        size: Vec<u32>,
        /// Of each link, one direction.
        bandwidth: Bandwidth,
        /// Of each link.
        latency: Time,
    }
}

impl Torus {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::of_dimensions(sides(
            DimensionKind::Ring,
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
        grid("torus", &self.counts())
    }
}

/// Builds a [`Torus`].
///
/// # Errors
/// As [`Torus::build`].
pub fn torus(size: &[u32], bandwidth: Bandwidth, latency: Time) -> Result<Topology, TopologyError> {
    let size = size.to_vec();
    Torus {
        size,
        bandwidth,
        latency,
    }
    .build()
}
