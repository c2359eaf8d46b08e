//! Rail-optimised pods.

use super::super::{Topology, TopologyError};
use super::nodes::{Nodes, runs};
use super::{Counts, switches};
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};

family! {
    /// A rail-optimised pod: NPU i of every node is linked to rail switch i, and rails to every spine.
    ///
    /// ```text
    ///   rail0     rail1          NPU i of node n is npu(n * npus + i)
    ///   |    \   /    |
    ///   |     \ /     |          npu2 - rail0, npu3 - rail1
    /// npu0    npu1   npu2 ...
    ///    \    /
    ///   switch0 (of node 0)
    /// ```
    ///
    /// The NPUs of a node are joined by a switch, as of NVLink. The nodes are its groups. Switches are named
    /// `switch0`, ..., `rail0`, ..., `spine0`, ...
    ///
    /// # Source
    /// Wang et al.: Rail-only, a low-cost high-performance network for training LLMs with trillion
    /// parameters, Hot Interconnects 2024, section II (the rail-optimised network it starts from).
    "rail", as "4x8",
    struct Rail {
        /// Nodes of the pod.
        nodes: u32,
        /// NPUs in each node, which is the number of rails.
        npus: u32,
        /// Switches to each of which every rail switch is linked. Without any, NPUs of unlike places reach
        /// each other through their nodes.
        spines: u32 = 0,
        /// Of each link between an NPU and its node's switch.
        node_bandwidth: Bandwidth = bandwidth,
        /// Of each link between an NPU and its node's switch.
        node_latency: Time = latency,
        /// Of each link to a rail switch or a spine, one direction.
        bandwidth: Bandwidth,
        /// Of each link to a rail switch or a spine.
        latency: Time,
    }
}

impl Rail {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let (rails, spines) = (u128::from(self.npus), u128::from(self.spines));
        self.within().counts(rails + spines, rails * spines)
    }

    fn within(&self) -> Nodes {
        Nodes {
            nodes: self.nodes,
            npus: self.npus,
            bandwidth: self.node_bandwidth,
            latency: self.node_latency,
        }
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for no node, an empty one, or fewer than two NPUs in all;
    /// [`TopologyError::TooLarge`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let &Self {
            nodes,
            npus,
            spines,
            bandwidth,
            latency,
            ..
        } = self;
        let more = if spines == 0 {
            String::new()
        } else {
            format!("x{spines}")
        };
        let mut builder = self.within().build("rail", &more, &self.counts())?;
        let rails = switches(&mut builder, "rail", npus);
        let tops = switches(&mut builder, "spine", spines);
        for npu in 0..nodes * npus {
            let rail = rails[(npu % npus) as usize];
            builder.both_ways(DeviceId(npu), rail, bandwidth, latency);
        }
        for &rail in &rails {
            for &top in &tops {
                builder.both_ways(rail, top, bandwidth, latency);
            }
        }
        builder.finish()?.with_groups(runs(nodes, npus))
    }
}
