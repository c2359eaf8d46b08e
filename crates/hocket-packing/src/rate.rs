//! The best rate of trees, by the worst cut.

use super::NoPacking;
use crate::bound::cut::worst_cut;
use crate::bound::demand_group::{DemandGroup, Way};
use crate::bound::network::ArcNetwork;
use crate::id::NpuId;
use crate::progress::{Paced, Progress};

/// What all roots can send at once at most: a root of weight 1 so many bytes a second, as a fraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The bandwidth into the set that is reached last [bytes/s].
    pub bandwidth: u128,
    /// The weight of the roots outside that set.
    pub weight: u128,
    /// The devices of that set; where a switch has a limit, what enters it.
    pub cut: Vec<bool>,
}

/// Searches all cuts, by Newton's method and maximum flows; `None` where somebody cannot be reached, or
/// the numbers are too large to be exact.
pub fn best(
    network: &ArcNetwork,
    ends: &[NpuId],
    weights: &[(NpuId, u64)],
    progress: &mut dyn Progress,
) -> Result<Option<Rate>, NoPacking> {
    let group = DemandGroup {
        way: Way::Copy,
        ends: weights.to_vec(),
        targets: ends.to_vec(),
        own_bytes_each: false,
    };
    let mut watch = Paced::new(progress, "trees: rate", 1 << 16);
    let unit = network.unit();
    let Some(outside) = worst_cut(network, &group, unit, &mut watch)? else {
        return Ok(None);
    };
    let cut: Vec<bool> = outside.iter().map(|&outside| !outside).collect();
    let entering = network.arcs().iter();
    let entering = entering.filter(|arc| !cut[arc.src as usize] && cut[arc.dst as usize]);
    let bandwidth = entering.map(|arc| u128::from(arc.capacity)).sum();
    let left = weights.iter().filter(|(npu, _)| !cut[npu.index()]);
    let weight = left.map(|&(_, weight)| u128::from(weight)).sum();
    Ok((bandwidth > 0 && weight > 0).then_some(Rate {
        bandwidth,
        weight,
        cut,
    }))
}
