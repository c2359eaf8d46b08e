//! Whether the participants can reach one another.

use super::recipe::Need;
use crate::id::{DeviceId, NpuId};
use crate::topology::Topology;

/// Returns why the need is not met, if it is not.
///
/// # Complexity
/// O(devices + links): one search each way from one participant.
pub(super) fn gap(topology: &Topology, npus: &[NpuId], need: Need) -> Option<String> {
    let (hub, from, to) = match need {
        Need::Mutual => (npus[0], true, true),
        Need::From(hub) => (hub, true, false),
        Need::To(hub) => (hub, false, true),
    };
    let ways = [(from, false), (to, true)];
    let (src, dst) = ways
        .into_iter()
        .filter(|&(wanted, _)| wanted)
        .find_map(|(_, backward)| {
            let reached = search(topology, hub, backward);
            let lost = *npus.iter().find(|npu| !reached[npu.index()])?;
            Some(if backward { (lost, hub) } else { (hub, lost) })
        })?;
    let name = |npu: NpuId| &topology.device(npu.device()).name;
    Some(format!(
        "no path of links leads from {:?} to {:?}; join them or leave one of them out",
        name(src),
        name(dst)
    ))
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
