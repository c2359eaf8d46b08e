//! Which links a flow takes, and what they can carry.

use super::Port;
use crate::id::{DeviceId, LinkId, NpuId};
use crate::routing::Fabric;
use crate::topology::Topology;
use crate::units::{Bandwidth, Time};

/// A topology as flows between NICs see it.
pub(super) struct Network<'a> {
    topology: &'a Topology,
    fabric: &'a Fabric,
}

/// What a flow needs of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Nothing: its ends are in one host.
    Host,
    /// Two NICs below one ToR.
    Tor,
    /// A path from one ToR to another.
    Fabric {
        /// The ToRs.
        src: u32,
        dst: u32,
    },
}

impl<'a> Network<'a> {
    pub(super) fn new(topology: &'a Topology, fabric: &'a Fabric) -> Self {
        Self { topology, fabric }
    }

    pub(super) fn reach(&self, from: Port, to: Port) -> Reach {
        if from.host == to.host {
            return Reach::Host;
        }
        let [src, dst] = [from, to].map(|port| self.tor(port.nic));
        match src == dst {
            true => Reach::Tor,
            false => Reach::Fabric { src, dst },
        }
    }

    /// The links of a flow whose reach is `reach`, by the choice that a router made.
    pub(super) fn links(
        &self,
        from: NpuId,
        to: NpuId,
        reach: Reach,
        choice: u32,
        links: &mut Vec<LinkId>,
    ) {
        links.clear();
        if reach == Reach::Host {
            return;
        }
        links.push(self.up(from));
        if let Reach::Fabric { src, dst } = reach {
            self.fabric.route(src, dst, choice, links);
        }
        links.push(self.down(to));
    }

    /// Returns the links of all ways between two ToRs, one way after the other between those of the NICs; gives how
    /// many ways `fabric`, which is this network's less what failed, has.
    pub(super) fn spread(
        &self,
        nics: [NpuId; 2],
        [src, dst]: [u32; 2],
        fabric: &Fabric,
        links: &mut Vec<LinkId>,
    ) -> u32 {
        links.clear();
        links.push(self.up(nics[0]));
        let mut ways = 0;
        for choice in fabric.choices_between(src, dst) {
            fabric.route(src, dst, choice, links);
            ways += 1;
        }
        links.push(self.down(nics[1]));
        ways
    }

    fn tor(&self, nic: NpuId) -> u32 {
        let tor = self.fabric.tor_of(nic);
        tor.expect("a port's NIC is joined to a ToR")
    }

    /// Returns the link from a NIC to its ToR.
    pub(super) fn up(&self, nic: NpuId) -> LinkId {
        self.fabric.npu_links(nic)[0].expect("a port's NIC has a link to its ToR")
    }

    /// Returns the link to a NIC from its ToR.
    pub(super) fn down(&self, nic: NpuId) -> LinkId {
        self.fabric.npu_links(nic)[1].expect("a port's NIC has a link from its ToR")
    }

    pub(super) fn name(&self, npu: NpuId) -> &str {
        &self.topology.device(DeviceId(npu.0)).name
    }

    /// Of each link, by number.
    pub(super) fn capacities(&self) -> impl Iterator<Item = Bandwidth> {
        self.topology.links().iter().map(|link| link.bandwidth)
    }

    pub(super) fn bandwidth(&self, link: LinkId) -> u64 {
        self.topology.link(link).bandwidth.bytes_per_second()
    }

    pub(super) fn latency(&self, links: &[LinkId]) -> Time {
        let latencies = links.iter().map(|&link| self.topology.link(link).latency);
        latencies.fold(Time::ZERO, |sum, latency| sum + latency)
    }
}
