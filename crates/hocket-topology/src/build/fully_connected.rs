//! Every NPU linked to every other.

use super::super::{DimensionKind, Topology, TopologyError};
use super::Counts;
use super::product::{one, sides};
use crate::units::{Bandwidth, Time};

family! {
    /// A link each way between every two NPUs.
    "fully_connected" or "fc", as "8",
    along FullyConnected as "FullyConnected" or "fc",
    fn fully_connected,
    struct FullyConnected {
        /// NPUs in all.
        npus: u32,
        /// Of each link, one direction.
        bandwidth: Bandwidth,
        /// Of each link.
        latency: Time,
    }
}

impl FullyConnected {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::of_dimensions(sides(
            DimensionKind::FullyConnected,
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
        one("fully connected", &self.counts(), None)
    }
}
