//! NPUs in a row.

use super::super::{DimensionKind, Topology, TopologyError};
use super::Counts;
use super::product::{one, sides};
use crate::units::{Bandwidth, Time};

family! {
    /// NPUs in a row, a link each way between neighbours: 0 - 1 - 2 - 3.
    "line", as "4",
    along Line as "Line" or "line" or "mesh" or "l",
    fn line,
    struct Line {
        /// NPUs in the row.
        npus: u32,
        /// Of each link, one direction.
        bandwidth: Bandwidth,
        /// Of each link.
        latency: Time,
    }
}

impl Line {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::of_dimensions(sides(
            DimensionKind::Line,
            &[self.npus],
            self.bandwidth,
            self.latency,
        ))
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for fewer than two NPUs, [`TopologyError::TooLarge`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        one("line", &self.counts(), None)
    }
}
