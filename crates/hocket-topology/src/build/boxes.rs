//! Nodes with network interfaces.

use super::super::{Topology, TopologyError};
use super::nodes::{Nodes, runs};
use super::{Counts, check_least};
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};

family! {
    /// Nodes of NPUs with network interfaces (NICs), all of which one switch joins.
    ///
    /// The NPUs of a node are joined by a switch of their own. The nodes are its groups. NPUs share the
    /// interfaces evenly, neighbours the same one: NPU i of a node is linked to interface `i * nics / npus`.
    /// From NPU to NPU of another node there are four links. Switches are named `switch0`, ... (of the nodes),
    /// `nic0_0`, ... (node, interface) and `net`.
    "box", as "4x8",
    struct Boxes {
        /// Nodes in all.
        nodes: u32,
        /// NPUs in each node.
        npus: u32,
        /// Network interfaces of each node, which divide its NPUs.
        nics: u32 = npus,
        /// Of each link between an NPU and its node's switch.
        node_bandwidth: Bandwidth = bandwidth,
        /// Of each link between an NPU and its node's switch.
        node_latency: Time = latency,
        /// Of each link to and from a NIC, one direction.
        bandwidth: Bandwidth,
        /// Of each link to and from a NIC.
        latency: Time,
    }
}

impl Boxes {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let all = u128::from(self.nodes) * u128::from(self.nics);
        self.within().counts(all + 1, all)
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
    /// [`TopologyError::BadParameter`] for no node, an empty one, fewer than two NPUs in all, or interfaces
    /// that are none or do not divide the NPUs; [`TopologyError::TooLarge`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let &Self {
            nodes,
            npus,
            nics,
            bandwidth,
            latency,
            ..
        } = self;
        check_least("NICs of each node", nics, 1)?;
        if npus > 0 && npus % nics != 0 {
            return Err(TopologyError::BadParameter {
                what: "NICs of each node".to_owned(),
                why: format!("{nics} do not divide {npus} NPUs; give a number that does"),
            });
        }
        let more = if nics == npus {
            String::new()
        } else {
            format!("x{nics}")
        };
        let mut builder = self.within().build("box", &more, &self.counts())?;
        let mut ports = Vec::new();
        for node in 0..nodes {
            ports.extend((0..nics).map(|nic| builder.switch(format!("nic{node}_{nic}"), None)));
        }
        let net = builder.switch("net", None);
        for npu in 0..nodes * npus {
            let port = ports[(npu / (npus / nics)) as usize];
            builder.both_ways(DeviceId(npu), port, bandwidth, latency);
        }
        for port in ports {
            builder.both_ways(port, net, bandwidth, latency);
        }
        builder.finish()?.with_groups(runs(nodes, npus))
    }
}
