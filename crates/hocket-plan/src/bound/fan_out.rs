//! What a byte that leaves or enters an NPU can do for others: little, where little time is left.

use super::degree::Side;
use super::fill::{Pipe, capacity, fill};
use super::needs::Decides;
use super::network::{ArcNetwork, FAR, Search};
use super::witness::saturating_bandwidth;
use super::{Candidate, Fidelity, Problem, Witness};
use crate::id::NpuId;
use crate::units::Time;

/// Distances at which more can be served that are told apart; those beyond count as the last of them.
const MOST_STEPS: usize = 64;

/// How far every place that copies is from the nearest participant but itself, and how far every place
/// that sums is to it.
///
/// # Complexity
/// A search for each place and direction, which ends at the nearest.
pub(super) struct Nearest {
    after: Vec<u64>,
    before: Vec<u64>,
}

impl Nearest {
    pub(crate) fn new(problem: &Problem) -> Self {
        Self {
            after: nearest(problem, &problem.network),
            before: nearest(problem, &problem.reversed),
        }
    }

    /// Returns how far the nearest participant is from a place that copies, but for itself.
    pub(crate) fn after(&self, place: u32) -> u64 {
        self.after[place as usize]
    }
}

/// By node, the distance to the nearest participant but itself; [`FAR`] where nothing is copied or summed.
fn nearest(problem: &Problem, network: &ArcNetwork) -> Vec<u64> {
    let mut takes_part = vec![false; network.node_count()];
    for npu in problem.needs.npus() {
        takes_part[npu.index()] = true;
    }
    let mut search = Search::default();
    let mut found = vec![FAR; network.node_count()];
    for place in network.stations() {
        let is_other = |node: u32| node != place && takes_part[node as usize];
        let way = search.until(network, [place], |arc| arc.latency, is_other);
        found[place as usize] = way.unwrap_or(FAR);
    }
    found
}

/// Returns whether there is anything to be learned: not where the time of one NPU stands for that of all, nor from what
/// enters at flow fidelity.
pub(super) fn applies(problem: &Problem, side: Side) -> bool {
    match problem.options.fidelity {
        Fidelity::Link | Fidelity::Packet { .. } => true,
        Fidelity::Flow => side == Side::Egress,
        Fidelity::Dimension => false,
    }
}

/// Bounds the time by what the bytes that leave (or enter) one NPU can do.
///
/// Let v have data that k others want, or contribute to sums that k others want: for each byte of that and
/// each of the k there is a chain of transfers from v to it, and a byte that leaves v for the last time in
/// that chain. If it leaves v over link e when x of the run is left, it serves none of those that are
/// farther than x. And it serves one alone, unless x is enough for a way from v to some place that copies,
/// and from there on to some participant: chains that begin with the same byte part at such a place, and one
/// of them goes on. So of the bytes that leave over e, those that serve j others or more leave it during
/// T - d_j, where d_1 is the distance of the nearest of the k, and d_j for larger j that of the j-th, or
/// that of the nearest by way of another place if that is more. Over all links of v and all j, the bytes
/// are at least k times those that v has: each link counts once for every j, with d_j before it.
///
/// What enters v, for sums that it wants, is the same backwards in time: a byte that enters early holds no
/// contribution from afar, and only one until some place can have summed two.
///
/// With d the latency between any two, S bytes for or from n - 1 others at B take 2 d + S / B - d / (n - 1) or
/// (n - 1) S / B + d, whichever is less. `ingress` and `egress` say d + S / B.
///
/// # Complexity
/// With the distances from v known, its links times the different distances, [`MOST_STEPS`] at most.
///
/// # Source
/// The postal model of Bar-Noy and Kipnis, Designing broadcasting algorithms in the postal model for
/// message-passing systems, 1992, has the same trade for whole messages on a full network.
pub(super) fn offer(
    problem: &Problem,
    rank: usize,
    side: Side,
    searched: &Search,
    nearest: &Nearest,
    best: &mut Candidate,
) {
    let npu = problem.needs.npus()[rank];
    let (amount, bytes, is_other) = served(problem, rank, side);
    if amount == bytes {
        return; // nobody serves more than one
    }
    let (arcs, onward) = match side {
        Side::Ingress => (problem.network.arcs_in(npu.0), &nearest.before),
        Side::Egress => (problem.network.arcs_out(npu.0), &nearest.after),
    };
    let distances = searched.distances();
    let places = problem.network.stations().filter(|&place| place != npu.0);
    let by_way_of = |place: u32| distances[place as usize].saturating_add(onward[place as usize]);
    let shared = places.map(by_way_of).min().unwrap_or(FAR);
    let mut steps: Vec<(u64, u128)> = Vec::new();
    let others = searched.nearest_first().iter();
    for &node in others.filter(|&&node| is_other[node as usize]) {
        let way = distances[node as usize];
        let way = if steps.is_empty() {
            way
        } else {
            way.max(shared)
        };
        let is_full = steps.len() == MOST_STEPS;
        match steps.last_mut() {
            Some(last) if last.0 == way || is_full => last.1 += 1,
            _ => steps.push((way, 1)),
        }
    }
    let mut pipes = Vec::with_capacity(arcs.len() * steps.len());
    for &number in arcs {
        let arc = &problem.network.arcs()[number as usize];
        pipes.extend(steps.iter().map(|&(way, count)| {
            Pipe {
                delay: way
                    .saturating_sub(arc.sending)
                    .max(problem.delay[number as usize]),
                capacity: count * u128::from(arc.capacity),
            }
        }));
    }
    let time = fill(&mut pipes, amount, problem.needs.parts());
    if time == Time::MAX {
        return;
    }
    best.offer(time, || {
        let own = arcs.iter().map(|&number| Pipe {
            delay: 0,
            capacity: problem.network.arcs()[number as usize].capacity.into(),
        });
        Witness::FanOut {
            npu,
            leaving: side == Side::Egress,
            bytes: problem.needs.in_bytes(bytes),
            others: is_other.iter().filter(|&&is| is).count(),
            bandwidth: saturating_bandwidth(capacity(&own.collect::<Vec<_>>())),
            latency: Time::from_ps(shared),
        }
    });
}

/// Returns what leaves the NPU of a rank, or enters it: bytes times those that want or contribute it, the bytes alone,
/// and who these others are.
fn served(problem: &Problem, rank: usize, side: Side) -> (u128, u128, Vec<bool>) {
    let npu = problem.needs.npus()[rank];
    let mut is_other = vec![false; problem.network.node_count()];
    let (mut amount, mut total) = (0, 0);
    let mut add = |bytes: u64, others: &[NpuId]| {
        let mut count: u128 = 0;
        for other in others.iter().filter(|&&other| other != npu) {
            is_other[other.index()] = true;
            count += 1;
        }
        if count > 0 {
            amount += u128::from(bytes) * count;
            total += u128::from(bytes);
        }
    };
    match side {
        Side::Egress => problem.needs.leaving(rank, add),
        Side::Ingress => problem.needs.entering(rank, |bytes, decides, others| {
            if decides == Decides::Farthest {
                add(bytes, others);
            }
        }),
    }
    (amount, total, is_other)
}
