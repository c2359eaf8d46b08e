//! Clusters of nodes that are joined in themselves: boxes, rail-optimised pods, and planes of switches.

use super::super::{Topology, TopologyBuilder, TopologyError};
use super::{check_least, check_memory, switches};
use crate::id::{DeviceId, NpuId};
use crate::units::{Bandwidth, Time};

/// Alike nodes of NPUs around a switch, as of NVLink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// Nodes.
    pub nodes: u32,
    /// NPUs in each.
    pub npus: u32,
    /// Bandwidth of each link between an NPU and its node's switch.
    pub node_bandwidth: Bandwidth,
    /// Latency of such a link.
    pub node_latency: Time,
    /// Bandwidth of each link of the network between nodes.
    pub bandwidth: Bandwidth,
    /// Latency of such a link.
    pub latency: Time,
}

/// Nodes whose NPU i is linked to rail switch i, and rail switches each linked to every one of `spines`, or to
/// none.
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
/// Without spines, NPUs of unlike places reach each other through their nodes. Switches are named `switch0`,
/// ..., `rail0`, ..., `spine0`, ...; nodes are stated as [groups](Topology::groups).
///
/// # Errors
/// [`TopologyError::BadParameter`] for no node, an empty one, or fewer than two NPUs in all;
/// [`TopologyError::TooLarge`].
///
/// # Source
/// Wang et al.: Rail-only, a low-cost high-performance network for training LLMs with trillion parameters,
/// Hot Interconnects 2024, section II (the rail-optimised network it starts from).
pub fn rail(parameters: &Nodes, spines: u32) -> Result<Topology, TopologyError> {
    let &Nodes { nodes, npus, .. } = parameters;
    let uplinks = 2 * u128::from(npus) * u128::from(spines);
    let devices = u128::from(npus) + u128::from(spines);
    let mut builder = inside(
        parameters,
        "rail",
        (devices, uplinks),
        |name| match spines {
            0 => name,
            _ => format!("{name}x{spines}"),
        },
    )?;
    let rails = switches(&mut builder, "rail", npus);
    let tops = switches(&mut builder, "spine", spines);
    let (bandwidth, latency) = (parameters.bandwidth, parameters.latency);
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

/// Nodes with `nics` network interfaces each, all of which one switch joins.
///
/// NPUs share the interfaces evenly, neighbours the same one: NPU i of a node is linked to interface
/// `i * nics / npus`. Switches are named `switch0`, ... (of the nodes), `nic0_0`, ... (node, interface) and
/// `net`; nodes are stated as [groups](Topology::groups).
///
/// # Errors
/// As [`rail`], and [`TopologyError::BadParameter`] where the interfaces are none or do not divide the NPUs.
pub fn boxes(parameters: &Nodes, nics: u32) -> Result<Topology, TopologyError> {
    let &Nodes { nodes, npus, .. } = parameters;
    check_least("NICs of each node", nics, 1)?;
    if npus > 0 && npus % nics != 0 {
        return Err(TopologyError::BadParameter {
            what: "NICs of each node".to_owned(),
            why: format!("{nics} do not divide {npus} NPUs; give a number that does"),
        });
    }
    let all = u128::from(nodes) * u128::from(nics);
    let mut builder = inside(parameters, "box", (all + 1, 2 * all), |name| {
        if nics == npus {
            name
        } else {
            format!("{name}x{nics}")
        }
    })?;
    let (bandwidth, latency) = (parameters.bandwidth, parameters.latency);
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

/// `npus` NPUs, each linked to each of `planes` switches named `plane0`, ...
///
/// # Errors
/// [`TopologyError::BadParameter`] for fewer than two NPUs or no plane; [`TopologyError::TooLarge`].
///
/// # Source
/// NVIDIA GB200 NVL72: 72 GPUs with 18 links of NVLink 5 each, one to each of 18 switch chips.
pub fn planes(
    npus: u32,
    planes: u32,
    bandwidth: Bandwidth,
    latency: Time,
) -> Result<Topology, TopologyError> {
    check_least("NPUs of the planes", npus, 2)?;
    check_least("planes", planes, 1)?;
    let (n, p) = (u128::from(npus), u128::from(planes));
    check_memory(
        || format!("{planes} planes of {npus} NPUs"),
        n + p,
        2 * n * p,
    )?;
    let mut builder = TopologyBuilder::new(format!("planes {npus}x{planes}"));
    builder.npus(npus as usize);
    let switches = switches(&mut builder, "plane", planes);
    for npu in 0..npus {
        for &plane in &switches {
            builder.both_ways(DeviceId(npu), plane, bandwidth, latency);
        }
    }
    builder.finish()
}

/// The nodes by themselves; `more` devices and links are to come.
fn inside(
    parameters: &Nodes,
    what: &str,
    (devices, links): (u128, u128),
    title: impl Fn(String) -> String,
) -> Result<TopologyBuilder, TopologyError> {
    let &Nodes { nodes, npus, .. } = parameters;
    check_least("nodes", nodes, 1)?;
    check_least("NPUs of each node", npus, 1)?;
    let all = u128::from(nodes) * u128::from(npus);
    if all < 2 {
        return Err(TopologyError::BadParameter {
            what: what.to_owned(),
            why: "has one NPU; give it two nodes or a node of two".to_owned(),
        });
    }
    let name = title(format!("{what} {nodes}x{npus}"));
    let count = all + u128::from(nodes) + devices;
    check_memory(|| name.clone(), count, 4 * all + links)?;
    let mut builder = TopologyBuilder::new(name);
    builder.npus(all as usize);
    let within = switches(&mut builder, "switch", if npus > 1 { nodes } else { 0 });
    for (i, &switch) in within.iter().enumerate() {
        for npu in 0..npus {
            let npu = DeviceId(i as u32 * npus + npu);
            builder.both_ways(
                npu,
                switch,
                parameters.node_bandwidth,
                parameters.node_latency,
            );
        }
    }
    Ok(builder)
}

/// Groups of `each` NPUs that follow one another.
pub(super) fn runs(count: u32, each: u32) -> Vec<Vec<NpuId>> {
    let run = |i| (i * each..(i + 1) * each).map(NpuId).collect();
    (0..count).map(run).collect()
}
