//! What must enter and leave each participant, and how far it has to come.

use super::fan_out::{self, Nearest};
use super::fill::{Pipe, capacity, fill};
use super::needs::Decides;
use super::network::{FAR, Search};
use super::nodes::Nodes;
use super::witness::saturating_bandwidth;
use super::{Candidate, Fidelity, Problem, WORK_BETWEEN_REPORTS, Witness};
use crate::id::NpuId;
use crate::progress::{Interrupted, Paced, Progress};
use crate::units::Time;

/// The best bounds that single participants give.
pub(super) struct Degree {
    pub ingress: Candidate,
    pub egress: Candidate,
    pub latency: Candidate,
    pub fan_out: Candidate,
    pub nodes: Candidate,
    /// What ingress and egress say of every participant.
    pub plain: Vec<Plain>,
    /// Somebody who cannot get what it needs.
    pub unreachable: Option<Witness>,
}

/// Bytes that must come from (or go to) a distance of that many picoseconds or more.
#[derive(Clone, Copy, Debug)]
struct Far {
    distance: u64,
    bytes: u128,
}

/// The bound that an NPU's own links give on one side.
pub(super) struct Plain {
    pub time: Time,
    pub rank: usize,
    pub side: Side,
}

/// What is bounded of an NPU: what enters it, or what leaves it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Ingress,
    Egress,
}

/// Arcs that are looked at for [`Nodes`] in all searches together, about: it looks at evenly spread participants.
const MOST_NODES_WORK: usize = 1 << 21;
/// Searches of [`Nodes`] for both sides of a participant.
const NODES_SEARCHES: usize = 10;

/// Ingress, egress and latency of every participant, and what [`fan_out`] and [`Nodes`] say of it.
///
/// Bytes that must enter v from a latency distance of x or more ([`super::needs`] counts them)
/// cannot be in v before x, nor, over link e, before e's own latency: by time t link e has brought
/// at most bandwidth x (t - max(x, alpha_e)). So t is at least the time to fill those pipes, for
/// every x. The largest x gives latency plus transmission, x = 0 the plain degree bound. The same
/// the other way for what must leave v. A copy with several holders comes from the nearest; of a sum
/// the farthest contribution has to arrive.
///
/// At flow fidelity a transfer is on its last link from its start on, and its latencies follow its last
/// byte. So what leaves v has the distance of all its way still before it, but what enters v may have
/// passed link e at any time up to t - (latency of the transfer over e): there x is 0.
///
/// # Complexity
/// Two shortest-path searches per participant, one where distances are equal both ways; beyond `pair_limit` participants only so many of
/// them, evenly spread, have their distances searched.
///
/// # Source
/// The alpha-beta lower bounds of Chan, Heimlich, Purkayastha, van de Geijn: Collective
/// communication: theory, practice, and experience, 2007, for any graph.
pub(super) fn bounds(
    problem: &Problem,
    groups: &[Vec<NpuId>],
    progress: &mut dyn Progress,
) -> Result<Degree, Interrupted> {
    let mut found = Degree {
        ingress: Candidate::default(),
        egress: Candidate::default(),
        latency: Candidate::default(),
        fan_out: Candidate::default(),
        nodes: Candidate::default(),
        plain: Vec::new(),
        unreachable: None,
    };
    let n = problem.needs.npus().len();
    let stride = n.div_ceil(problem.options.pair_limit.max(1));
    let mut search = Search::default();
    let mut watch = Paced::new(progress, "bound: distances", WORK_BETWEEN_REPORTS);
    let arcs = problem.network.arcs().len() as u64;
    let is_two_way = problem.network.is_two_way();
    let nearest = Nearest::new(problem);
    let mut nodes = Nodes::new(problem, groups);
    let nodes_work = n * NODES_SEARCHES * problem.network.arcs().len();
    // Odd, so that with nodes of eight NPUs it comes to all places in a node.
    let nodes_stride = (nodes_work / MOST_NODES_WORK) | 1;
    for rank in 0..n {
        let search_distances = rank % stride == 0 || !problem.connected;
        for side in [Side::Ingress, Side::Egress] {
            let (network, is_known) = match side {
                Side::Ingress => (&problem.reversed, false),
                Side::Egress => (&problem.network, is_two_way),
            };
            if search_distances && !is_known {
                let from = problem.needs.npus()[rank].0;
                search.run(network, [from], |arc| arc.latency);
            }
            let searched = search_distances.then_some(&search);
            let time = one(problem, rank, side, searched, &mut found);
            if time > Time::ZERO {
                found.plain.push(Plain { time, rank, side });
            }
            if found.unreachable.is_some() {
                return Ok(found);
            }
            if search_distances && fan_out::applies(problem, side) {
                fan_out::offer(problem, rank, side, &search, &nearest, &mut found.fan_out);
            }
            if let Some(nodes) = nodes
                .as_mut()
                .filter(|_| search_distances && rank % nodes_stride == 0)
            {
                nodes.offer(problem, rank, side, &search, &mut found.nodes);
            }
        }
        let looked_at = if search_distances { 2 * arcs } else { 1 };
        watch.count(looked_at, rank as u64 + 1, n as u64)?;
    }
    Ok(found)
}

/// Offers what one side of an NPU says, and gives the most that it says of its links.
fn one(
    problem: &Problem,
    rank: usize,
    side: Side,
    searched: Option<&Search>,
    found: &mut Degree,
) -> Time {
    let npu = problem.needs.npus()[rank];
    let arcs = match side {
        Side::Ingress => problem.network.arcs_in(npu.0),
        Side::Egress => problem.network.arcs_out(npu.0),
    };
    let (far, farthest) = distances(problem, rank, side, searched);
    let Some((distance, other)) = farthest else {
        return Time::ZERO;
    };
    let (from, to) = match side {
        Side::Ingress => (other, npu),
        Side::Egress => (npu, other),
    };
    if distance == FAR || arcs.is_empty() {
        found.unreachable = Some(Witness::Unreachable { from, to });
        return Time::ZERO;
    }
    let latency = Time::from_ps(distance);
    found
        .latency
        .offer(latency, || Witness::Latency { from, to, latency });
    let mut pipes = Vec::with_capacity(arcs.len());
    let mut bytes = 0;
    let mut most = Time::ZERO;
    for entry in far {
        bytes += entry.bytes;
        pipes.clear();
        pipes.extend(arcs.iter().map(|&number| {
            let arc = &problem.network.arcs()[number as usize];
            let distance = match (side, problem.options.fidelity) {
                (Side::Ingress, Fidelity::Flow) => 0,
                _ => entry.distance.saturating_sub(arc.sending),
            };
            Pipe {
                delay: distance.max(problem.delay[number as usize]),
                capacity: arc.capacity.into(),
            }
        }));
        let time = fill(&mut pipes, bytes, problem.needs.parts());
        most = most.max(time);
        let bandwidth = saturating_bandwidth(capacity(&pipes));
        let bytes = problem.needs.in_bytes(bytes);
        let latency = Time::from_ps(pipes[0].delay);
        match side {
            Side::Ingress => found.ingress.offer(time, || Witness::Ingress {
                npu,
                bytes,
                bandwidth,
                latency,
            }),
            Side::Egress => found.egress.offer(time, || Witness::Egress {
                npu,
                bytes,
                bandwidth,
                latency,
            }),
        }
    }
    most
}

/// Returns what must enter or leave at each distance, farthest first, and the farthest of it: how far, and whom it
/// concerns. Without distances everything is taken to be near.
fn distances(
    problem: &Problem,
    rank: usize,
    side: Side,
    searched: Option<&Search>,
) -> (Vec<Far>, Option<(u64, NpuId)>) {
    let npu = problem.needs.npus()[rank];
    let distance = searched.map(Search::distances);
    let mut bytes_at = vec![0; problem.network.node_count()];
    let mut farthest: Option<(u64, NpuId)> = None;
    let mut add = |bytes: u64, decides: Decides, others: &[NpuId]| {
        let at = |other: &&NpuId| distance.map_or(0, |distance| distance[other.index()]);
        let mut others = others.iter().filter(|&&other| other != npu);
        // Without distances the first will do as well as any.
        let other = match (distance, decides) {
            (None, _) => others.next(),
            (Some(_), Decides::Nearest) => others.min_by_key(at),
            (Some(_), Decides::Farthest) => others.max_by_key(at),
        };
        let Some(other) = other else { return };
        let distance = at(&other);
        bytes_at[other.index()] += u128::from(bytes);
        if farthest.is_none_or(|(most, _)| distance > most) {
            farthest = Some((distance, *other));
        }
    };
    match side {
        Side::Ingress => problem.needs.entering(rank, add),
        Side::Egress => {
            let leave = |bytes: u64, others: &[NpuId]| add(bytes, Decides::Farthest, others);
            problem.needs.leaving(rank, leave);
        }
    }
    let Some(searched) = searched else {
        let bytes = bytes_at.iter().sum();
        return (vec![Far { distance: 0, bytes }], farthest);
    };
    let mut far: Vec<Far> = Vec::new();
    for &node in searched.nearest_first().iter().rev() {
        let bytes = bytes_at[node as usize];
        let distance = searched.distances()[node as usize];
        match far.last_mut() {
            Some(last) if last.distance == distance => last.bytes += bytes,
            _ if bytes > 0 => far.push(Far { distance, bytes }),
            _ => {}
        }
    }
    (far, farthest)
}
