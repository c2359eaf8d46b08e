//! What networks of alike nodes share: the NPUs and the switch within each.

use super::super::{TopologyBuilder, TopologyError};
use super::{Counts, check_least, check_memory, switches};
use crate::id::{DeviceId, NpuId, narrow};
use crate::units::{Bandwidth, Time};

/// Alike nodes of NPUs around a switch, as of NVLink; one NPU needs none.
pub(super) struct Nodes {
    pub nodes: u32,
    /// In each.
    pub npus: u32,
    /// Of each link between an NPU and its node's switch.
    pub bandwidth: Bandwidth,
    /// Of such a link.
    pub latency: Time,
}

impl Nodes {
    /// With more switches, and more links both ways beside one of each NPU.
    pub(super) fn counts(&self, switches: u128, cables: u128) -> Counts {
        let all = u128::from(self.nodes) * u128::from(self.npus);
        let (within, ports) = match self.npus > 1 {
            true => (u128::from(self.nodes), all),
            false => (0, 0),
        };
        Counts::of(all, within + switches, ports + all + cables)
    }

    /// Returns the nodes by themselves, of a network of these `counts`; `more` ends its name.
    pub(super) fn build(
        &self,
        what: &str,
        more: &str,
        counts: &Counts,
    ) -> Result<TopologyBuilder, TopologyError> {
        let &Self {
            nodes,
            npus,
            bandwidth,
            latency,
        } = self;
        check_least("nodes", nodes, 1)?;
        check_least("NPUs of each node", npus, 1)?;
        if counts.npus < 2 {
            return Err(TopologyError::BadParameter {
                what: what.to_owned(),
                why: "has one NPU; give it two nodes or a node of two".to_owned(),
            });
        }
        let name = format!("{what} {nodes}x{npus}{more}");
        check_memory(|| name.clone(), counts)?;
        let mut builder = TopologyBuilder::new(name);
        builder.npus((nodes * npus) as usize);
        let within = switches(&mut builder, "switch", if npus > 1 { nodes } else { 0 });
        for (i, &switch) in within.iter().enumerate() {
            for npu in 0..npus {
                let npu = DeviceId(narrow(i) * npus + npu);
                builder.both_ways(npu, switch, bandwidth, latency);
            }
        }
        Ok(builder)
    }
}

/// Groups of `each` NPUs that follow one another.
pub(super) fn runs(count: u32, each: u32) -> Vec<Vec<NpuId>> {
    let run = |i| (i * each..(i + 1) * each).map(NpuId).collect();
    (0..count).map(run).collect()
}
