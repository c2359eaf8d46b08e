//! BiGraph: two sides of switches, every one linked to every one across, NPUs below all of them.

use super::super::{Topology, TopologyBuilder, TopologyError};
use super::{Counts, check_least, check_memory, switches};
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};

family! {
    /// Two sides of switches, every one joined to every one across, and NPUs at all of them.
    ///
    /// ```text
    /// npu0 npu1   npu2 npu3         NPU h of switch s is npu(s * npus_per_switch + h),
    ///    \ /         \ /            the upper switches' first
    ///  upper0      upper1
    ///    |    \  /    |             two NPUs on different sides are joined by one shortest route
    ///    |    /  \    |
    ///  lower0      lower1
    ///    / \         / \
    /// npu4 npu5   npu6 npu7
    /// ```
    ///
    /// # Source
    /// Dong et al.: EFLOPS, algorithm and system co-design for a high performance distributed training
    /// platform, HPCA 2020.
    "bigraph", as "4x4",
    fn bigraph,
    struct BiGraph {
        /// Switches on each of the two sides.
        switches_per_side: u32,
        /// NPUs at each switch.
        npus_per_switch: u32,
        /// Of each link, one direction.
        bandwidth: Bandwidth,
        /// Of each link.
        latency: Time,
    }
}

impl BiGraph {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let side = u128::from(self.switches_per_side);
        let npus = 2 * side * u128::from(self.npus_per_switch);
        Counts::of(npus, 2 * side, npus + side * side)
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for a count of 0, [`TopologyError::TooLarge`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let &Self {
            switches_per_side: side,
            npus_per_switch: each,
            bandwidth,
            latency,
        } = self;
        check_least("switches per side of the BiGraph", side, 1)?;
        check_least("NPUs per switch of the BiGraph", each, 1)?;
        let what = || format!("a BiGraph of 2 x {side} switches of {each} NPUs");
        check_memory(what, &self.counts())?;
        let mut builder = TopologyBuilder::new(format!("bigraph {side}x{each}"));
        builder.npus((2 * side * each) as usize);
        let upper = switches(&mut builder, "upper", side);
        let lower = switches(&mut builder, "lower", side);
        let all = upper.iter().chain(&lower);
        let ports = all.flat_map(|&switch| (0..each).map(move |_| switch));
        for (npu, switch) in ports.enumerate() {
            builder.both_ways(DeviceId::from(npu), switch, bandwidth, latency);
        }
        for &above in &upper {
            for &below in &lower {
                builder.both_ways(above, below, bandwidth, latency);
            }
        }
        builder.finish()
    }
}
