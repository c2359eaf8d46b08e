//! BiGraph: two sides of switches, every one linked to every one across, NPUs below all of them.

use super::super::{Topology, TopologyBuilder, TopologyError};
use super::{check_least, check_memory, switches};
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};

/// Two sides of switches, a link each way between every two across, and NPUs at every switch.
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
/// # Errors
/// [`TopologyError::BadParameter`] for a count of 0, [`TopologyError::TooLarge`].
///
/// # Source
/// Dong et al.: EFLOPS, algorithm and system co-design for a high performance distributed training
/// platform, HPCA 2020.
pub fn bigraph(
    switches_per_side: u32,
    npus_per_switch: u32,
    bandwidth: Bandwidth,
    latency: Time,
) -> Result<Topology, TopologyError> {
    check_least("switches per side of the BiGraph", switches_per_side, 1)?;
    check_least("NPUs per switch of the BiGraph", npus_per_switch, 1)?;
    let side = u128::from(switches_per_side);
    let npus = 2 * side * u128::from(npus_per_switch);
    check_memory(
        || format!("a BiGraph of 2 x {switches_per_side} switches of {npus_per_switch} NPUs"),
        npus + 2 * side,
        2 * (npus + side * side),
    )?;
    let name = format!("bigraph {switches_per_side}x{npus_per_switch}");
    let mut builder = TopologyBuilder::new(name);
    builder.npus(npus as usize);
    let upper = switches(&mut builder, "upper", switches_per_side);
    let lower = switches(&mut builder, "lower", switches_per_side);
    let all = upper.iter().chain(&lower);
    let ports = all.flat_map(|&switch| (0..npus_per_switch).map(move |_| switch));
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
