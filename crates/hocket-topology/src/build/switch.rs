//! NPUs around one switch.

use super::super::{DimensionKind, Topology, TopologyError};
use super::Counts;
use super::product::{one, sides};
use crate::units::{Bandwidth, Time};

family! {
    /// NPUs around one switch. From NPU to NPU there are two links.
    "switch", as "8",
    along Switch as "Switch" or "sw",
    fn switch,
    struct Switch {
        /// NPUs at the switch.
        npus: u32,
        /// Of each link, one direction.
        bandwidth: Bandwidth,
        /// Of each link.
        latency: Time,
        /// Of the switch itself, all ports together; none by default.
        limit: Option<Bandwidth>,
    }
}

impl Switch {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::of_dimensions(sides(
            DimensionKind::Switch,
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
        one("switch", &self.counts(), self.limit)
    }
}
