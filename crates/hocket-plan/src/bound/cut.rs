//! Cuts: what must leave a set of devices, over the links that leave it; exact by maximum flows.

use super::demand_group::{self, DemandGroup, Way};
use super::fill::{Pipe, capacity, fill};
use super::maxflow::{fits, flow_network};
use super::network::{ArcNetwork, FAR, Search};
use super::witness::saturating_bandwidth;
use super::{Candidate, Fidelity, Problem, WORK_BETWEEN_REPORTS, Witness, sweep_cuts};
use crate::graph::UNLIMITED;
use crate::id::{DeviceId, NpuId};
use crate::progress::{Interrupted, Paced, Progress};
use crate::units::Bandwidth;

/// The best cut, and whether it is the best there is.
#[derive(Default)]
pub(super) struct Cuts {
    pub best: Candidate,
    /// Whether the search over all cuts of [`bounds`] was complete.
    pub exact: bool,
}

/// An exact time in units of bytes x unit / bandwidth: `bytes / bandwidth`.
#[derive(Clone, Copy)]
struct Ratio {
    bytes: u128,
    bandwidth: u128,
}

impl Ratio {
    fn reduced(bytes: u128, bandwidth: u128) -> Self {
        let (mut a, mut b) = (bytes, bandwidth);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let divisor = a.max(1);
        Ratio {
            bytes: bytes / divisor,
            bandwidth: bandwidth / divisor,
        }
    }
}

/// Returns the greatest of bytes(A) / bandwidth(A -> rest) over all sets of devices A, by kind of demand.
///
/// What is copied from sole holders to a set W of NPUs must leave every A that misses one of W:
/// d(A), the bytes held inside, over the links that leave A. For all-gather among all NPUs this
/// bound is met by tree packing where bandwidth in and out is equal at every node. Sums are the same
/// with every link turned round: reduce-scatter is an all-gather backwards. An all-reduce needs a
/// broadcast and a reduction of S over every cut, at the same time: the links of the two directions
/// differ, so it is not twice the all-gather bound.
///
/// The greatest ratio is found by Newton's method (Dinkelbach): for t = P / Q check by maximum flow
/// that every w of W can get all bytes within t. If one cannot, the least cut has a greater ratio,
/// which is the next t. Targets are visited breadth-first, and one that was served becomes a source
/// for the next: cuts that it is outside of are proven already. So most flows stay near their
/// target. One-to-one demands of one source (scatter) are one flow problem, as are those to one
/// sink (gather) on reversed links.
///
/// Other demands (all-to-all, custom mixtures) and more participants than `exact_cut_limit` get the
/// best of the cuts that [`sweep`] finds.
///
/// With latencies: bytes that cross link e start no earlier than data from an NPU inside A reaches e
/// and have to go on to one outside, so e has less than t, see [`fill`]. Fluids are on all links of a
/// transfer at once; the first transfer out of A begins at some NPU inside, one that helps perhaps.
///
/// # Source
/// Edmonds, Edge-disjoint branchings, 1973; Zhao et al., ForestColl: efficient collective
/// communications on heterogeneous network fabrics, 2024; Dinkelbach, On nonlinear fractional
/// programming, 1967.
pub(super) fn bounds(
    problem: &Problem,
    groups: &[Vec<NpuId>],
    progress: &mut dyn Progress,
) -> Result<Cuts, Interrupted> {
    let mut cuts = Cuts {
        exact: problem.needs.npus().len() <= problem.options.exact_cut_limit,
        ..Cuts::default()
    };
    let mut watch = Paced::new(progress, "bound: cuts", WORK_BETWEEN_REPORTS);
    if cuts.exact {
        by_flows(problem, &mut cuts, &mut watch)?;
    }
    if !cuts.exact {
        sweep_cuts::offer(problem, groups, &mut cuts.best, &mut watch)?;
    }
    Ok(cuts)
}

fn by_flows(problem: &Problem, cuts: &mut Cuts, watch: &mut Paced) -> Result<(), Interrupted> {
    let unit = problem.network.unit();
    let spreads = demand_group::group(&problem.needs);
    cuts.exact = spreads.complete;
    for spread in &spreads.list {
        let network = match spread.way {
            Way::Copy => &problem.network,
            Way::Sum => &problem.reversed,
        };
        match worst_cut(network, spread, unit, watch)? {
            Some(near) => {
                let inside = |node: usize| near[node] == (spread.way == Way::Copy);
                offer(
                    problem,
                    (0..near.len()).map(inside).collect(),
                    &mut cuts.best,
                );
            }
            None => cuts.exact = false,
        }
    }
    Ok(())
}

/// Offers the cut from the nodes `inside` to the others.
pub(super) fn offer(problem: &Problem, inside: Vec<bool>, best: &mut Candidate) {
    let network = &problem.network;
    let bytes = problem.needs.crossing(&inside);
    let participants = problem.needs.npus().iter();
    let (within, without): (Vec<NpuId>, Vec<NpuId>) =
        participants.partition(|npu| inside[npu.index()]);
    if bytes == 0 || within.is_empty() || without.is_empty() {
        return;
    }
    let from = |nodes: &[u32], network: &ArcNetwork| -> Vec<u64> {
        let from = nodes.iter().copied();
        Search::default()
            .run(network, from, |arc| arc.latency)
            .to_vec()
    };
    let nodes = |npus: Vec<NpuId>| -> Vec<u32> { npus.iter().map(|npu| npu.0).collect() };
    // A transfer of fluids begins at any NPU inside, or switch that can, and is on all its links from then on.
    let is_inside = |node: &u32| inside[*node as usize];
    let sources: Vec<u32> = match problem.options.fidelity {
        Fidelity::Flow => network.stations().filter(is_inside).collect(),
        _ => nodes(within),
    };
    let before = from(&sources, network);
    let after = from(&nodes(without), &problem.reversed);
    let crossing = network
        .arcs()
        .iter()
        .filter(|arc| inside[arc.src as usize] && !inside[arc.dst as usize]);
    let pipes = crossing.map(|arc| Pipe {
        delay: arc.delay(before[arc.src as usize], after[arc.dst as usize]),
        capacity: arc.capacity.into(),
    });
    // A link that no data can reach, or from which none can go on, carries nothing.
    let mut pipes: Vec<Pipe> = pipes.filter(|pipe| pipe.delay < FAR).collect();
    let time = fill(&mut pipes, bytes, problem.needs.parts());
    let bandwidth = saturating_bandwidth(capacity(&pipes));
    let bytes = problem.needs.in_bytes(bytes);
    best.offer(time, || witness(problem, &inside, bytes, bandwidth));
}

fn witness(problem: &Problem, inside: &[bool], bytes: u128, bandwidth: Bandwidth) -> Witness {
    let network = &problem.network;
    let npus_inside = network.npus().filter(|npu| inside[npu.index()]).count();
    let leaving = 2 * npus_inside <= network.npus().count();
    let listed: Vec<DeviceId> = (0..network.device_count())
        .filter(|&device| inside[device] == leaving)
        .map(DeviceId::from)
        .collect();
    let (npus, switches): (Vec<DeviceId>, Vec<DeviceId>) = listed
        .into_iter()
        .partition(|device| network.is_npu(device.0));
    Witness::Cut {
        npus: npus.into_iter().map(|device| NpuId(device.0)).collect(),
        switches,
        leaving,
        bytes,
        bandwidth,
    }
}

/// Returns the set A with the greatest bytes(A) / bandwidth(A -> rest), by node; `None` where the numbers are too large
/// to be exact.
pub fn worst_cut(
    network: &ArcNetwork,
    spread: &DemandGroup,
    unit: u64,
    watch: &mut Paced,
) -> Result<Option<Vec<bool>>, Interrupted> {
    let total: u128 = spread
        .ends
        .iter()
        .map(|&(_, bytes)| u128::from(bytes))
        .sum();
    if !fits(network, unit, total) {
        return Ok(None);
    }
    if spread.own_bytes_each {
        return worst_scatter_cut(network, spread, total, unit, watch);
    }
    let turned = network.reversed();
    let order = visiting_order(network, spread);
    let Some((mut ratio, mut worst)) = best_single(network, spread, total, unit) else {
        return Ok(None);
    };
    let arcs = network.arcs().len() as u64;
    let mut served: Vec<u32> = Vec::new();
    'restart: loop {
        let mut flows = flow_network(&turned, unit, ratio.bytes);
        for &(npu, bytes) in &spread.ends {
            flows.set_drain(npu.0, (u128::from(bytes) * ratio.bandwidth) as i128);
        }
        for &node in &served {
            flows.set_drain(node, UNLIMITED);
        }
        let needed = (total * ratio.bandwidth) as i128;
        for &node in &order[served.len()..] {
            watch.count(arcs, served.len() as u64, order.len() as u64)?;
            if flows.flow(&[(node, UNLIMITED)], needed) < needed {
                worst = (0..network.node_count())
                    .map(|v| !flows.is_near(v))
                    .collect();
                match ratio_of(network, spread, &worst, unit) {
                    Some(greater) => ratio = greater,
                    None => return Ok(None),
                }
                continue 'restart;
            }
            flows.set_drain(node, UNLIMITED);
            served.push(node);
        }
        return Ok(Some(worst));
    }
}

/// Targets, near ones of a source one after another.
fn visiting_order(network: &ArcNetwork, spread: &DemandGroup) -> Vec<u32> {
    let mut wanted = vec![false; network.node_count()];
    for npu in &spread.targets {
        wanted[npu.index()] = true;
    }
    let mut order = network.breadth_first(spread.ends[0].0.0);
    order.retain(|&node| wanted[node as usize]);
    let mut reached = vec![false; network.node_count()];
    for &node in &order {
        reached[node as usize] = true;
    }
    order.extend(
        spread
            .targets
            .iter()
            .filter(|npu| !reached[npu.index()])
            .map(|npu| npu.0),
    );
    order
}

/// Returns the best of the cuts around one NPU: a good start.
fn best_single(
    network: &ArcNetwork,
    spread: &DemandGroup,
    total: u128,
    unit: u64,
) -> Option<(Ratio, Vec<bool>)> {
    let mut held = vec![0u64; network.node_count()];
    for &(npu, bytes) in &spread.ends {
        held[npu.index()] += bytes;
    }
    let capacity = |arcs: &[u32]| -> u128 {
        let one = |&arc: &u32| u128::from(network.arcs()[arc as usize].capacity / unit);
        arcs.iter().map(one).sum()
    };
    let mut best: Option<(Ratio, usize)> = None;
    for npu in &spread.targets {
        let bytes = total - u128::from(held[npu.index()]);
        let ratio = Ratio::reduced(bytes, capacity(network.arcs_in(npu.0)));
        let greater = |(best, _): (Ratio, usize)| {
            let cross = (ratio.bytes * best.bandwidth, best.bytes * ratio.bandwidth);
            cross.0 > cross.1
        };
        if ratio.bandwidth > 0 && best.is_none_or(greater) {
            best = Some((ratio, npu.index()));
        }
    }
    let (ratio, outside) = best?;
    let inside = (0..network.node_count())
        .map(|node| node != outside)
        .collect();
    Some((ratio, inside))
}

/// Returns the bytes that must leave a set over the bandwidth that leaves it; `None` if there is none.
fn ratio_of(
    network: &ArcNetwork,
    spread: &DemandGroup,
    inside: &[bool],
    unit: u64,
) -> Option<Ratio> {
    let counts = |npu: &NpuId| inside[npu.index()] != spread.own_bytes_each;
    let counted = spread.ends.iter().filter(|(npu, _)| counts(npu));
    let bytes = counted.map(|&(_, bytes)| u128::from(bytes)).sum();
    let crosses = |src: u32, dst: u32| inside[src as usize] && !inside[dst as usize];
    let crossing = network
        .arcs()
        .iter()
        .filter(|arc| crosses(arc.src, arc.dst));
    let bandwidth = crossing.map(|arc| u128::from(arc.capacity / unit)).sum();
    (bandwidth > 0).then(|| Ratio::reduced(bytes, bandwidth))
}

/// As [`worst_cut`], where one source has bytes of its own for each target.
fn worst_scatter_cut(
    network: &ArcNetwork,
    spread: &DemandGroup,
    total: u128,
    unit: u64,
    watch: &mut Paced,
) -> Result<Option<Vec<bool>>, Interrupted> {
    let source = spread.targets[0];
    let needed = |ratio: Ratio| (total * ratio.bandwidth) as i128;
    let mut worst: Vec<bool> = (0..network.node_count())
        .map(|node| node == source.index())
        .collect();
    let work = network.arcs().len() as u64 * spread.ends.len() as u64;
    let mut round = 0;
    loop {
        round += 1;
        watch.count(work, round - 1, round)?;
        let Some(ratio) = ratio_of(network, spread, &worst, unit) else {
            return Ok(None);
        };
        let mut flows = flow_network(network, unit, ratio.bytes);
        for &(npu, bytes) in &spread.ends {
            flows.set_drain(npu.0, (u128::from(bytes) * ratio.bandwidth) as i128);
        }
        if flows.flow(&[(source.0, UNLIMITED)], needed(ratio)) == needed(ratio) {
            return Ok(Some(worst));
        }
        worst = (0..network.node_count())
            .map(|node| flows.is_near(node))
            .collect();
    }
}
