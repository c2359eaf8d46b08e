//! What a topology is like: degrees, connectedness, diameter, bandwidths, bisection.

mod bisection;
mod distance;

use super::Topology;
use crate::id::{DeviceId, NpuId};
use crate::units::{Bandwidth, Time};

/// Least and greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<T> {
    /// Least.
    pub min: T,
    /// Greatest.
    pub max: T,
}

/// Bandwidth between two halves of the NPUs, one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bisection {
    /// Bytes per second.
    pub bytes_per_second: u128,
    /// Whether it is the least over all halvings; else an upper bound on that.
    #[doc(alias = "exact")]
    pub is_minimum: bool,
}

/// What [`Topology::inspect`] finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Number of NPUs.
    pub npus: usize,
    /// Number of switches.
    pub switches: usize,
    /// Number of directed links.
    pub links: usize,
    /// Links that leave an NPU.
    pub out_degree: Range<usize>,
    /// Links that end at an NPU.
    pub in_degree: Range<usize>,
    /// Whether every NPU reaches every NPU.
    pub connected: bool,
    /// Names of two NPUs of which the first does not reach the second, where there are such.
    pub unreachable: Option<(String, String)>,
    /// Links crossed between the two NPUs farthest apart. `None` where NPUs are unreachable, or where
    /// finding it would take too long (2^37 steps).
    pub diameter_hops: Option<usize>,
    /// Sum of link latencies between the two NPUs farthest apart; `None` as above.
    pub diameter_latency: Option<Time>,
    /// Sum over all links, in bytes per second.
    pub total_bandwidth: u128,
    /// Slowest and fastest link; `None` without links.
    pub link_bandwidth: Option<Range<Bandwidth>>,
    /// Least bandwidth from one half of the NPUs to the other; `None` for one NPU.
    pub bisection: Option<Bisection>,
}

impl Topology {
    /// Measures the topology.
    ///
    /// The bisection bandwidth is the least, over all splits of the NPUs into halves (sizes differ by
    /// one where their number is odd) and both directions, of the maximum flow from one half to the
    /// other through links and switches. Exact up to 16 NPUs; an upper bound from contiguous splits
    /// and their refinement above.
    ///
    /// # Complexity
    /// O(n links / 64) for diameters where links have one latency, O(n links log devices) where not,
    /// O(links) for whole products.
    pub fn inspect(&self) -> Inspection {
        let unreachable = unreachable_pair(self);
        let connected = unreachable.is_none();
        let name = |npu: NpuId| self.device(npu.device()).name.clone();
        let bandwidths = || self.links().iter().map(|link| link.bandwidth);
        Inspection {
            npus: self.npu_count(),
            switches: self.device_count() - self.npu_count(),
            links: self.links().len(),
            out_degree: degrees(self, |npu| self.out_links(npu).len()),
            in_degree: degrees(self, |npu| self.in_links(npu).len()),
            connected,
            diameter_hops: connected.then(|| distance::hops(self)).flatten(),
            diameter_latency: connected.then(|| distance::latency(self)).flatten(),
            total_bandwidth: bandwidths().map(|b| u128::from(b.bytes_per_second())).sum(),
            link_bandwidth: bandwidths()
                .min()
                .zip(bandwidths().max())
                .map(|(min, max)| Range { min, max }),
            bisection: bisection::bisection(self),
            unreachable: unreachable.map(|(from, to)| (name(from), name(to))),
        }
    }

    /// Returns those of some pairs of NPUs that no link joins, nor links through switches alone: what one sends to the
    /// other passes a third NPU. One search serves consecutive pairs of one sender.
    ///
    /// # Complexity
    /// O(links) for each sender.
    pub fn detours(&self, pairs: &[(NpuId, NpuId)]) -> Vec<(NpuId, NpuId)> {
        let of_sender = |of_sender: &[(NpuId, NpuId)]| {
            let src = of_sender[0].0.device();
            let reached = distance::reached(self, src, |device| {
                let passes_on = device == src || !self.is_npu(device);
                let links = self.out_links(device).iter().filter(|_| passes_on);
                links.map(|&id| self.link(id).dst).collect()
            });
            let mut lacking = of_sender.to_vec();
            lacking.retain(|(_, dst)| !reached[dst.index()]);
            lacking
        };
        pairs
            .chunk_by(|a, b| a.0 == b.0)
            .flat_map(of_sender)
            .collect()
    }
}

fn degrees(topology: &Topology, degree: impl Fn(DeviceId) -> usize) -> Range<usize> {
    let all = || topology.npus().map(|npu| degree(npu.device()));
    Range {
        min: all().min().unwrap_or(0),
        max: all().max().unwrap_or(0),
    }
}

/// Returns two NPUs of which the first does not reach the second. All reach all if NPU 0 reaches all and all reach NPU
/// 0.
fn unreachable_pair(topology: &Topology) -> Option<(NpuId, NpuId)> {
    let forward = distance::reached(topology, DeviceId(0), |device| {
        let ends = topology.out_links(device).iter();
        ends.map(|&id| topology.link(id).dst).collect()
    });
    let backward = distance::reached(topology, DeviceId(0), |device| {
        let ends = topology.in_links(device).iter();
        ends.map(|&id| topology.link(id).src).collect()
    });
    let missing = |reached: &[bool]| topology.npus().find(|npu| !reached[npu.index()]);
    missing(&forward)
        .map(|npu| (NpuId(0), npu))
        .or_else(|| missing(&backward).map(|npu| (npu, NpuId(0))))
}

#[cfg(test)]
mod tests;
