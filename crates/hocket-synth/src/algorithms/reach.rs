//! Whether the participants can reach one another.

use std::collections::{HashMap, HashSet};

use super::recipe::Need;
use crate::collective::Collective;
use crate::id::{DeviceId, NpuId};
use crate::topology::Topology;

/// NPUs that are named of those that are cut off.
const SHOWN: usize = 8;
/// Classes of participants that reach each other, of which the largest is looked for.
const CLASSES: usize = 64;

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
    let name = |npu: NpuId| topology.device(npu.device()).name.as_str();
    let lost = |hub, backward| {
        let reached = search(topology, hub, backward);
        let is_lost = |npu: &NpuId| !reached[npu.index()];
        npus.iter().copied().filter(is_lost).collect()
    };
    let apart = match need {
        Need::Mutual => fewest_apart(topology, npus),
        Need::From(hub) => lost(hub, false),
        Need::To(hub) => lost(hub, true),
        Need::Demanded => Vec::new(),
    };
    let between = format!(
        "no path of links leads from {:?} to {:?}",
        name(src),
        name(dst)
    );
    let all = npus.len();
    let counted = match apart.len() {
        0 => return Some(format!("{between}; join them or leave one of them out")),
        1 => format!("1 of {all} NPUs is cut off"),
        count => format!("{count} of {all} NPUs are cut off"),
    };
    let shown: Vec<&str> = apart.iter().take(SHOWN).map(|&npu| name(npu)).collect();
    let out = match apart.len().checked_sub(SHOWN + 1) {
        None => format!("--failed {}", shown.join(" --failed ")),
        Some(more) => format!(
            "--failed for each of {} and {} more",
            shown.join(", "),
            more + 1
        ),
    };
    Some(format!(
        "{between}: {counted}; join them or leave them out: {out}"
    ))
}

/// Returns the participants outside of the largest class of those that reach each other; of equal ones, the first.
///
/// # Complexity
/// O(devices + links) for each class, of which no more than [`CLASSES`] are compared.
fn fewest_apart(topology: &Topology, npus: &[NpuId]) -> Vec<NpuId> {
    let mut left = npus.to_vec();
    let mut largest: Vec<NpuId> = Vec::new();
    for _ in 0..CLASSES {
        if left.len() <= largest.len() {
            break;
        }
        let [to, from] = [false, true].map(|backward| search(topology, left[0], backward));
        let is_near = |npu: &NpuId| to[npu.index()] && from[npu.index()];
        let (class, others) = left.into_iter().partition(is_near);
        left = others;
        if class.len() > largest.len() {
            largest = class;
        }
    }
    let kept: HashSet<NpuId> = largest.into_iter().collect();
    npus.iter()
        .copied()
        .filter(|npu| !kept.contains(npu))
        .collect()
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
