//! NPUs in a circle.

use super::super::{DimensionKind, Topology, TopologyBuilder, TopologyError};
use super::product::{one, sides};
use super::{Counts, check_least, check_memory};
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

impl From<bool> for RingWays {
    fn from(both_ways: bool) -> Self {
        if both_ways { Self::Both } else { Self::One }
    }
}

family! {
    /// NPUs in a cycle, with links one way or both. Two NPUs are joined by one link each way.
    "ring", as "16",
    along Ring as "Ring" or "ring" or "r",
    fn ring,
    struct Ring {
        /// NPUs in the cycle.
        npus: u32,
        /// Of each link, one direction.
        bandwidth: Bandwidth,
        /// Of each link.
        latency: Time,
        /// Whether links go both ways, not only from each NPU to the next.
        both_ways: RingWays = true,
    }
}

impl Ring {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        match self.both_ways {
            RingWays::Both => {
                let kind = DimensionKind::Ring;
                Counts::of_dimensions(sides(kind, &[self.npus], self.bandwidth, self.latency))
            }
            RingWays::One => Counts {
                links: self.npus.into(),
                ..Counts::of(self.npus.into(), 0, 0)
            },
        }
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for fewer than two NPUs, [`TopologyError::TooLarge`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        if self.both_ways == RingWays::Both {
            return one("ring", &self.counts(), None);
        }
        let n = self.npus;
        check_least("size of the ring", n, 2)?;
        check_memory(|| format!("a ring of {n} NPUs"), &self.counts())?;
        let mut builder = TopologyBuilder::new(format!("one-way ring {n}"));
        builder.npus(n as usize);
        for i in 0..n {
            let (next, rate) = (DeviceId((i + 1) % n), self.bandwidth);
            builder.link(DeviceId(i), next, rate, self.latency);
        }
        builder.finish()
    }
}
