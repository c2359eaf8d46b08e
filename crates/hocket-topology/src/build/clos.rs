//! Two-level Clos.

use super::super::{Topology, TopologyBuilder, TopologyError};
use super::{Counts, check_least, check_memory, switches};
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};

family! {
    /// A two-level Clos: NPUs below ToR switches, every ToR joined to every spine.
    ///
    /// ```text
    /// spine0   spine1          NPU h of ToR t is npu(t * hosts_per_tor + h)
    ///   |  \ /  |
    ///   |  / \  |
    /// tor0     tor1
    /// ```
    ///
    /// Switches are named `tor0`, ... and `spine0`, ..., ToRs first.
    "clos", as "2x4x8",
    struct Clos {
        /// Switches of the upper level.
        spines: u32,
        /// Switches of the lower level.
        tors: u32,
        /// NPUs below each ToR switch.
        hosts_per_tor: u32 = 1,
        /// Of each link between an NPU and its ToR.
        host_bandwidth: Bandwidth = bandwidth,
        /// Of each link between a ToR and a spine, one direction.
        bandwidth: Bandwidth,
        /// Of every link.
        latency: Time,
    }
}

impl Clos {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let (spines, tors) = (u128::from(self.spines), u128::from(self.tors));
        let hosts = tors * u128::from(self.hosts_per_tor);
        Counts::of(hosts, tors + spines, hosts + tors * spines)
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for a count of 0 or fewer than two NPUs in all;
    /// [`TopologyError::TooLarge`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let &Self {
            spines,
            tors,
            hosts_per_tor: hosts,
            ..
        } = self;
        check_least("spines of the Clos", spines, 1)?;
        check_least("ToRs of the Clos", tors, 1)?;
        check_least("hosts per ToR of the Clos", hosts, 1)?;
        let counts = self.counts();
        if counts.npus < 2 {
            return Err(TopologyError::BadParameter {
                what: "Clos".to_owned(),
                why: "has one NPU; give it two ToRs or two hosts per ToR".to_owned(),
            });
        }
        let what = || format!("a Clos of {spines} spines and {tors} ToRs of {hosts}");
        check_memory(what, &counts)?;
        let mut builder = TopologyBuilder::new(format!("clos {spines}x{tors}x{hosts}"));
        builder.npus((tors * hosts) as usize);
        let tor_ids = switches(&mut builder, "tor", tors);
        let spine_ids = switches(&mut builder, "spine", spines);
        for host in 0..tors * hosts {
            let tor = tor_ids[(host / hosts) as usize];
            builder.both_ways(DeviceId(host), tor, self.host_bandwidth, self.latency);
        }
        for &tor in &tor_ids {
            for &spine in &spine_ids {
                builder.both_ways(tor, spine, self.bandwidth, self.latency);
            }
        }
        builder.finish()
    }
}
