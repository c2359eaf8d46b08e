//! Three-level fat tree.

use super::super::{Topology, TopologyBuilder, TopologyError};
use super::{Counts, check_memory, switches};
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};

family! {
    /// A three-level fat tree of switches with `k` ports: `k**3 / 4` NPUs, full bisection bandwidth.
    ///
    /// `k` pods of `k / 2` edge and `k / 2` agg switches; every edge switch has `k / 2` NPUs; agg switch `j` of
    /// each pod is linked to core switches `j * k / 2` to `(j + 1) * k / 2 - 1`. Switches are named `edge0`,
    /// ..., `agg0`, ..., `core0`, ..., pod by pod.
    ///
    /// # Source
    /// Al-Fares, Loukissas, Vahdat: A scalable, commodity data center network architecture, SIGCOMM 2008.
    "fat_tree", as "4",
    fn fat_tree,
    struct FatTree {
        /// Ports of each switch, an even number.
        k: u32,
        /// Of each link, one direction.
        bandwidth: Bandwidth,
        /// Of each link.
        latency: Time,
    }
}

impl FatTree {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let ports = u128::from(self.k);
        let npus = ports * ports * ports / 4;
        Counts::of(npus, 5 * ports * ports / 4, 3 * npus)
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for an odd `k` or 0, [`TopologyError::TooLarge`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let &Self {
            k,
            bandwidth,
            latency,
        } = self;
        if k == 0 || k % 2 == 1 {
            return Err(TopologyError::BadParameter {
                what: "k of the fat tree".to_owned(),
                why: format!("is {k}; give it an even number, 2 or more"),
            });
        }
        let counts = self.counts();
        let what = || format!("a fat tree of {k}-port switches ({} NPUs)", counts.npus);
        check_memory(what, &counts)?;
        let (half, npus) = (k / 2, counts.npus);
        let mut builder = TopologyBuilder::new(format!("fat tree {k}"));
        builder.npus(npus as usize);
        let edge = switches(&mut builder, "edge", k * half);
        let agg = switches(&mut builder, "agg", k * half);
        let core = switches(&mut builder, "core", half * half);
        for npu in (0..).take(npus as usize) {
            let above = edge[(npu / half) as usize];
            builder.both_ways(DeviceId(npu), above, bandwidth, latency);
        }
        let half = half as usize;
        for (i, &below) in edge.iter().enumerate() {
            let pod = i / half;
            for &above in &agg[pod * half..(pod + 1) * half] {
                builder.both_ways(below, above, bandwidth, latency);
            }
        }
        for (i, &below) in agg.iter().enumerate() {
            let j = i % half;
            for &above in &core[j * half..(j + 1) * half] {
                builder.both_ways(below, above, bandwidth, latency);
            }
        }
        builder.finish()
    }
}
