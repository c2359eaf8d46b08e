//! Whether the participants can reach one another.

use std::collections::HashMap;

use super::recipe::Need;
use crate::collective::Collective;
use crate::id::{DeviceId, NpuId};
use crate::topology::Topology;

/// Returns why the need is not met, if it is not.
///
/// # Complexity
/// O(devices + links): one search each way from one participant. If participants are apart and only demands
/// count, one search for each NPU that wants something, and O(holders x takers) for each demand.
pub(super) fn gap(topology: &Topology, collective: &Collective, need: Need) -> Option<String> {
    let npus = collective.npus();
    let among = |hub, from, to| between_hub(topology, npus, hub, [from, to]);
    let (src, dst) = match need {
        Need::Mutual => among(npus[0], true, true),
        Need::From(hub) => among(hub, true, false),
        Need::To(hub) => among(hub, false, true),
        Need::Demanded => among(npus[0], true, true).and_then(|_| demanded(topology, collective)),
    }?;
    let name = |npu: NpuId| &topology.device(npu.device()).name;
    Some(format!(
        "no path of links leads from {:?} to {:?}; join them or leave one of them out",
        name(src),
        name(dst)
    ))
}

/// Returns two participants, one of them the hub, of which the first does not reach the second: from the hub, or to it.
fn between_hub(
    topology: &Topology,
    npus: &[NpuId],
    hub: NpuId,
    [from, to]: [bool; 2],
) -> Option<(NpuId, NpuId)> {
    let ways = [(from, false), (to, true)];
    let mut ways = ways.into_iter().filter(|&(wanted, _)| wanted);
    ways.find_map(|(_, backward)| {
        let reached = search(topology, hub, backward);
        let lost = *npus.iter().find(|npu| !reached[npu.index()])?;
        Some(if backward { (lost, hub) } else { (hub, lost) })
    })
}

/// Returns a holder and a taker of one demand that lack a way: a taker needs all holders of a sum, and one of a copy.
fn demanded(topology: &Topology, collective: &Collective) -> Option<(NpuId, NpuId)> {
    let among = collective.npus();
    let mut reaching: HashMap<NpuId, Vec<bool>> = HashMap::new();
    for demand in collective.demands() {
        let holders = demand.holders.members(among);
        for &taker in demand.wanted.members(among) {
            let before = reaching.entry(taker);
            let before = before.or_insert_with(|| search(topology, taker, true));
            let lost = holders.iter().copied().find(|npu| !before[npu.index()]);
            let is_cut_off = demand.reduced || holders.iter().all(|npu| !before[npu.index()]);
            if let Some(lost) = lost.filter(|_| is_cut_off) {
                return Some((lost, taker));
            }
        }
    }
    None
}

/// Devices that can be reached from `start`, or (backward) that can reach it.
fn search(topology: &Topology, start: NpuId, backward: bool) -> Vec<bool> {
    let mut reached = vec![false; topology.device_count()];
    let mut stack: Vec<DeviceId> = vec![start.device()];
    reached[start.index()] = true;
    while let Some(device) = stack.pop() {
        let links = match backward {
            false => topology.out_links(device),
            true => topology.in_links(device),
        };
        for &id in links {
            let link = topology.link(id);
            let next = if backward { link.src } else { link.dst };
            if !std::mem::replace(&mut reached[next.index()], true) {
                stack.push(next);
            }
        }
    }
    reached
}
