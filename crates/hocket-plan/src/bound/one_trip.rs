//! What an all-reduce gains from switches that sum or multicast, but not both at once.

use super::fan_out::Nearest;
use super::fill::{Pipe, fill};
use super::network::{ArcNetwork, FAR, Search};
use super::witness::saturating_bandwidth;
use super::{Candidate, Fidelity, Problem, WORK_BETWEEN_REPORTS, Witness};
use crate::id::{NpuId, narrow};
use crate::progress::{Interrupted, Paced, Progress};
use crate::topology::Topology;
use crate::units::Time;

/// Bounds the time of sums that several NPUs want, where the way from one NPU to the next leads by at most one switch
/// that sums or multicasts, and none of these can do both to the same bytes.
///
/// Let n NPUs contribute to a sum that m of them want. For each byte, each contributor v and each other r that wants
/// it there is a chain of transfers from v to r. Look at what it does from where the byte leaves v for the last time to
/// where it first comes to r, and call it a trip if it is at no other NPU on the way. Each pair of v and r is
/// charged to a link of v or to one of r:
///
/// - if the byte leaves v when less is left than the shortest way by another NPU to a participant takes, the chain is
///   a trip. If r gets it as part of a sum that a switch made, or no switch made anything of it, then what left v
///   serves r alone: the pair is charged to what left v. Otherwise a switch sent to several what v alone had sent,
///   and the pair is charged to what entered r, which holds contributions by way of v alone;
/// - if it leaves v sooner, the pair is charged to what left v, to which at most all pairs of v are charged.
///
/// So the number of pairs times the bytes is at most what enters all that want it within T less the distance of the
/// nearest contributor, and what leaves each v within T less the distance of the nearest that wants it, and, once for
/// each pair of v but one, what leaves v within T less the shortest way by another NPU to a participant.
///
/// With d the latency of a trip and n NPUs at B, S bytes take (n - 1) / n S / B + 2 d - 2 d / n or
/// (n - 1) / 2 S / B + d, whichever is less. Switches that do both need S / B + d.
///
/// # Complexity
/// A search for each participant and direction.
pub(super) fn bound(
    problem: &Problem,
    topology: &Topology,
    progress: &mut dyn Progress,
) -> Result<Candidate, Interrupted> {
    let mut best = Candidate::default();
    let mut demands = problem.needs.demands().iter();
    let Some(demand) = demands.next().filter(|_| demands.next().is_none()) else {
        return Ok(best);
    };
    let npus = problem.needs.npus();
    let holders = demand.holders.members(npus);
    let wanted = demand.wanted.members(npus);
    if !demand.reduced || wanted.len() < 2 || !applies(problem, topology) {
        return Ok(best);
    }
    let nearest = Nearest::new(problem);
    let mut watch = Paced::new(progress, "bound: trips", WORK_BETWEEN_REPORTS);
    let mut pipes: Vec<Pipe> = Vec::new();
    let mut search = Search::default();
    let (mut pairs, mut shortest, mut sending) = (0, FAR, 0);
    for (done, npu) in (0u64..).zip(holders) {
        let others = wanted.iter().filter(|&other| other != npu).count() as u128;
        pairs += others;
        let distances = search.run(&problem.network, [npu.0], |arc| arc.latency);
        let other_npus = problem.network.npus().filter(|other| other != npu);
        let by_way_of =
            |other: NpuId| distances[other.index()].saturating_add(nearest.after(other.0));
        let two = other_npus.map(by_way_of).min().unwrap_or(FAR);
        let reach = wanted.iter().filter(|&other| other != npu);
        let one = reach
            .map(|other| distances[other.index()])
            .min()
            .unwrap_or(FAR);
        shortest = shortest.min(two);
        for &number in problem.network.arcs_out(npu.0) {
            let arc = &problem.network.arcs()[number as usize];
            sending += u128::from(arc.capacity);
            for (way, count) in [(one, 1), (two, others.saturating_sub(1))] {
                let delay = way
                    .saturating_sub(arc.sending)
                    .max(problem.delay[number as usize]);
                if count > 0 && delay < FAR {
                    let capacity = count * u128::from(arc.capacity);
                    pipes.push(Pipe { delay, capacity });
                }
            }
        }
        watch.count(
            problem.network.arcs().len() as u64,
            done + 1,
            holders.len() as u64,
        )?;
    }
    for npu in wanted {
        let contributes =
            |node: u32| node != npu.0 && holders.iter().any(|holder| holder.0 == node);
        let way = search.until(&problem.reversed, [npu.0], |arc| arc.latency, contributes);
        for &number in problem.network.arcs_in(npu.0) {
            let arc = &problem.network.arcs()[number as usize];
            let way = way.unwrap_or(FAR).saturating_sub(arc.sending);
            let delay = way.max(problem.delay[number as usize]);
            if delay < FAR {
                let capacity = arc.capacity.into();
                pipes.push(Pipe { delay, capacity });
            }
        }
    }
    let bytes = u128::from(demand.bytes);
    let time = fill(
        &mut pipes,
        bytes.saturating_mul(pairs),
        problem.needs.parts(),
    );
    if time < Time::MAX {
        best.offer(time, || Witness::OneTrip {
            bytes: problem.needs.in_bytes(bytes),
            npus: holders.len(),
            bandwidth: saturating_bandwidth(sending),
            latency: Time::from_ps(shortest),
        });
    }
    Ok(best)
}

/// Returns whether some switch sums or multicasts, none does both at once, and no two of them are joined but by NPUs.
fn applies(problem: &Problem, topology: &Topology) -> bool {
    let is_known = matches!(
        problem.options.fidelity,
        Fidelity::Link | Fidelity::Packet { .. }
    );
    let mut able = topology
        .devices()
        .iter()
        .filter_map(|device| device.offload);
    is_known
        && able.clone().next().is_some()
        && able.all(|can| !can.all_reduces)
        && are_apart(&problem.network)
}

/// Returns whether every way between two places that sum or multicast leads by an NPU, unless both are halves of one
/// switch.
fn are_apart(network: &ArcNetwork) -> bool {
    let able = |node: u32| network.is_station(node) && !network.is_npu(node);
    (0..narrow(network.node_count()))
        .filter(|&node| able(node))
        .all(|start| {
            let mut seen = vec![false; network.node_count()];
            seen[start as usize] = true;
            let mut open = vec![start];
            while let Some(node) = open.pop() {
                for &arc in network.arcs_out(node) {
                    let next = network.arcs()[arc as usize].dst;
                    let is_same =
                        network.device_of(next as usize) == network.device_of(start as usize);
                    if able(next) && !is_same {
                        return false;
                    }
                    if !network.is_npu(next) && !std::mem::replace(&mut seen[next as usize], true) {
                        open.push(next);
                    }
                }
            }
            true
        })
}
