//! NPUs below parallel switches.

use super::super::{Topology, TopologyBuilder, TopologyError};
use super::{Counts, check_least, check_memory, switches};
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};

family! {
    /// NPUs, each linked to every one of some switches, as the chips of an NVLink switch system.
    ///
    /// The switches are named `plane0`, ...
    ///
    /// # Source
    /// NVIDIA GB200 NVL72: 72 GPUs with 18 links of NVLink 5 each, one to each of 18 switch chips.
    "planes", as "72x18",
    fn planes,
    struct Planes {
        /// NPUs in all.
        npus: u32,
        /// Switches, to each of which every NPU is linked.
        planes: u32,
        /// Of each link, one direction.
        bandwidth: Bandwidth,
        /// Of each link.
        latency: Time,
    }
}

impl Planes {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let (npus, planes) = (u128::from(self.npus), u128::from(self.planes));
        Counts::of(npus, planes, npus * planes)
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for fewer than two NPUs or no plane; [`TopologyError::TooLarge`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let &Self {
            npus,
            planes,
            bandwidth,
            latency,
        } = self;
        check_least("NPUs of the planes", npus, 2)?;
        check_least("planes", planes, 1)?;
        check_memory(|| format!("{planes} planes of {npus} NPUs"), &self.counts())?;
        let mut builder = TopologyBuilder::new(format!("planes {npus}x{planes}"));
        builder.npus(npus as usize);
        let switches = switches(&mut builder, "plane", planes);
        for npu in 0..npus {
            for &plane in &switches {
                builder.both_ways(DeviceId(npu), plane, bandwidth, latency);
            }
        }
        builder.finish()
    }
}
