//! Switched fabrics: two-level Clos and three-level fat tree.

use super::super::{Topology, TopologyBuilder, TopologyError};
use super::{check_least, check_memory, switches};
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};

/// Parameters of [`clos`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clos {
    /// Switches of the upper level.
    pub spines: u32,
    /// Switches of the lower level.
    pub tors: u32,
    /// NPUs below each ToR switch.
    pub hosts_per_tor: u32,
    /// Bandwidth of each link between an NPU and its ToR.
    pub host_bandwidth: Bandwidth,
    /// Bandwidth of each link between a ToR and a spine.
    pub fabric_bandwidth: Bandwidth,
    /// Latency of every link.
    pub latency: Time,
}

/// A two-level Clos: NPUs below ToR switches, every ToR linked to every spine.
///
/// ```text
/// spine0   spine1          NPU h of ToR t is npu(t * hosts_per_tor + h)
///   |  \ /  |
///   |  / \  |
/// tor0     tor1
/// ```
///
/// Switches are named `tor0`, ... and `spine0`, ..., ToRs first.
///
/// # Errors
/// [`TopologyError::BadParameter`] for a count of 0 or fewer than two NPUs in all;
/// [`TopologyError::TooLarge`].
pub fn clos(parameters: &Clos) -> Result<Topology, TopologyError> {
    let &Clos {
        spines,
        tors,
        hosts_per_tor,
        ..
    } = parameters;
    check_least("spines of the Clos", spines, 1)?;
    check_least("ToRs of the Clos", tors, 1)?;
    check_least("hosts per ToR of the Clos", hosts_per_tor, 1)?;
    let hosts = u128::from(tors) * u128::from(hosts_per_tor);
    if hosts < 2 {
        return Err(TopologyError::BadParameter {
            what: "Clos".to_owned(),
            why: "has one NPU; give it two ToRs or two hosts per ToR".to_owned(),
        });
    }
    check_memory(
        || format!("a Clos of {spines} spines and {tors} ToRs of {hosts_per_tor}"),
        hosts + u128::from(tors) + u128::from(spines),
        2 * (hosts + u128::from(tors) * u128::from(spines)),
    )?;
    let name = format!("clos {spines}x{tors}x{hosts_per_tor}");
    let mut builder = TopologyBuilder::new(name);
    builder.npus(hosts as usize);
    let tor_ids = switches(&mut builder, "tor", tors);
    let spine_ids = switches(&mut builder, "spine", spines);
    for host in 0..hosts as u32 {
        let tor = tor_ids[(host / hosts_per_tor) as usize];
        let bandwidth = parameters.host_bandwidth;
        builder.both_ways(DeviceId(host), tor, bandwidth, parameters.latency);
    }
    for &tor in &tor_ids {
        for &spine in &spine_ids {
            builder.both_ways(tor, spine, parameters.fabric_bandwidth, parameters.latency);
        }
    }
    builder.finish()
}

/// The three-level fat tree of switches with `k` ports: k^3/4 NPUs, full bisection bandwidth.
///
/// `k` pods of k/2 edge and k/2 agg switches; every edge switch has k/2 NPUs; agg switch j of each
/// pod is linked to core switches j k/2 to (j + 1) k/2 - 1. Switches are named `edge0`, ...,
/// `agg0`, ..., `core0`, ..., pod by pod.
///
/// # Errors
/// [`TopologyError::BadParameter`] for an odd `k` or 0, [`TopologyError::TooLarge`].
///
/// # Source
/// Al-Fares, Loukissas, Vahdat: A scalable, commodity data center network architecture, SIGCOMM
/// 2008.
pub fn fat_tree(k: u32, bandwidth: Bandwidth, latency: Time) -> Result<Topology, TopologyError> {
    if k == 0 || k % 2 == 1 {
        return Err(TopologyError::BadParameter {
            what: "k of the fat tree".to_owned(),
            why: format!("is {k}; give it an even number, 2 or more"),
        });
    }
    let ports = u128::from(k);
    let npus = ports * ports * ports / 4;
    let what = || format!("a fat tree of {k}-port switches ({npus} NPUs)");
    check_memory(what, npus + 5 * ports * ports / 4, 6 * npus)?;
    let half = k / 2;
    let mut builder = TopologyBuilder::new(format!("fat tree {k}"));
    builder.npus(npus as usize);
    let edge = switches(&mut builder, "edge", k * half);
    let agg = switches(&mut builder, "agg", k * half);
    let core = switches(&mut builder, "core", half * half);
    for npu in 0..npus as u32 {
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
