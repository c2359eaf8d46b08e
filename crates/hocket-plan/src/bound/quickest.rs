//! How soon all that an NPU must get, or give, can have taken its ways through the whole network.

use super::degree::{Plain, Side};
use super::needs::Decides;
use super::network::{Arc, ArcNetwork, Search};
use super::witness::saturating_bandwidth;
use super::{Candidate, Fidelity, Problem, WORK_BETWEEN_REPORTS, Witness};
use crate::graph::CheapestWays;
use crate::id::NpuId;
use crate::progress::{Interrupted, Paced, Progress};
use crate::units::Time;

/// Arcs that are looked at for single NPUs, about, in one search each, and in those for their ways.
const MOST_WORK: usize = 1 << 19;
const MOST_WAYS_WORK: usize = 1 << 22;

/// NPUs that are looked at on any network, with the largest bounds of their own links.
const LEAST_NPUS: usize = 8;

/// Sets of others, by distance, that are looked at for an NPU.
const MOST_SETS: usize = 8;

const PS_PER_SECOND: u128 = 1_000_000_000_000;

/// Bytes that must come from (or go to) one of some NPUs, the nearest of them that far away.
struct Far {
    distance: u64,
    bytes: u128,
    ends: Vec<NpuId>,
}

/// Bounds the time by the quickest flow of what an NPU must get (or give) through the whole network.
///
/// Let b bytes have to come to v from NPUs of a set: copies that others do not hold, or sums to which one of the set
/// contributes. Each has a chain of transfers from the set to v, over arcs that it has for itself, and at a node it goes on
/// no sooner than it has come. So the b bytes are a flow over time from the set to v that ends at T. No such flow is larger
/// than one that sends at a constant rate over ways that it never leaves: with x a flow of rate |x| whose bytes
/// are under way for c(x) together, max over x of T |x| - c(x). Hence T is at least the least (b + c(x)) / |x|, and the x to
/// look at are those of the cheapest ways, one after the other. The sets are those of the farthest. What leaves v is
/// the same backwards in time.
///
/// `ingress` and `egress` are this with the links of v alone; `cut` with all of them, but without latencies.
///
/// # Complexity
/// A shortest path for each way that helps, for each set and NPU; as many NPUs as [`MOST_WORK`] and
/// [`MOST_WAYS_WORK`] allow.
///
/// # Source
/// Ford, Fulkerson, Constructing maximal dynamic flows from static flows, 1958; Burkard, Dlaska, Klinz, The quickest flow
/// problem, 1993.
pub(super) fn bounds(
    problem: &Problem,
    mut plain: Vec<Plain>,
    progress: &mut dyn Progress,
) -> Result<Candidate, Interrupted> {
    let mut best = Candidate::default();
    let fidelity = problem.options.fidelity;
    if !matches!(fidelity, Fidelity::Link | Fidelity::Packet { .. }) {
        return Ok(best);
    }
    let arcs = problem.network.arcs().len().max(1);
    plain.sort_by_key(|it| std::cmp::Reverse(it.time));
    plain.truncate((MOST_WORK / arcs).max(LEAST_NPUS));
    let networks = [&problem.reversed, &problem.network];
    let latencies = least_latencies(&problem.network);
    let mut ways = networks.map(|network| ways_of(network, &latencies));
    let mut search = Search::default();
    let mut watch = Paced::new(progress, "bound: fastest flows", WORK_BETWEEN_REPORTS);
    let count = plain.len() as u64;
    let mut looked_at = 0;
    for (done, it) in (0u64..).zip(&plain) {
        if looked_at > MOST_WAYS_WORK && done >= LEAST_NPUS as u64 {
            break;
        }
        let which = usize::from(it.side == Side::Egress);
        let from = problem.needs.npus()[it.rank];
        search.run(networks[which], [from.0], |arc| arc.latency);
        let far = farthest_first(problem, it.rank, it.side, &search);
        let ways = &mut ways[which];
        looked_at += arcs * one(problem, from, it.side, &far, ways, &mut best);
        watch.count(arcs as u64 * 8, done + 1, count)?;
    }
    Ok(best)
}

/// By arc, the least time from when it carries a byte until an arc behind it can, or until the byte has arrived.
///
/// At packet fidelity a flit goes on one latency after it began, so that its last byte takes less by the time in which it
/// is sent. Inside a limited switch and on the link behind, it begins at once: what it gains there, by a link that is faster
/// than the limit, is taken off the latency of the link, which is no less.
fn least_latencies(network: &ArcNetwork) -> Vec<u64> {
    let least = |arc: &Arc| {
        let behind = network.arcs_in(arc.src).iter();
        let behind = behind.map(|&number| &network.arcs()[number as usize]);
        let limits = behind.filter(|it| it.internal).map(|limit| limit.sending);
        let sending = limits.fold(arc.sending, u64::max);
        arc.latency.saturating_sub(sending)
    };
    network.arcs().iter().map(least).collect()
}

fn ways_of(network: &ArcNetwork, latencies: &[u64]) -> CheapestWays {
    let arcs = network.arcs().iter().zip(latencies);
    let arc = arcs.map(|(arc, &latency)| (arc.src, arc.dst, arc.capacity, latency));
    CheapestWays::new(network.node_count(), arc)
}

/// Offers what the quickest flow says of an NPU, and returns how many ways were sought.
fn one(
    problem: &Problem,
    npu: NpuId,
    side: Side,
    far: &[Far],
    ways: &mut CheapestWays,
    best: &mut Candidate,
) -> usize {
    let mut sought = 0;
    let mut is_end = vec![false; problem.network.node_count()];
    let (mut bytes, mut others, mut sets) = (0, 0, 0);
    for (i, entry) in far.iter().enumerate() {
        bytes += entry.bytes;
        for end in &entry.ends {
            others += usize::from(!std::mem::replace(&mut is_end[end.index()], true));
        }
        let is_whole = far
            .get(i + 1)
            .is_none_or(|next| next.distance < entry.distance);
        let is_last = i + 1 == far.len();
        if !is_whole || (sets + 1 >= MOST_SETS && !is_last) {
            continue;
        }
        sets += 1;
        let parts = u128::from(problem.needs.parts());
        let mut work = bytes.saturating_mul(PS_PER_SECOND);
        let (mut rate, mut time, mut longest) = (0u128, u64::MAX, 0);
        let mut shortest = None;
        ways.restart();
        while let Some((more, cost)) =
            ways.grow(npu.0, |node| is_end[node as usize], time.saturating_add(1))
        {
            sought += 1;
            let more = u128::from(more).saturating_mul(parts);
            rate = rate.saturating_add(more);
            work = work.saturating_add(more.saturating_mul(cost.into()));
            time = u64::try_from(work / rate).unwrap_or(u64::MAX).min(time);
            shortest.get_or_insert(cost);
            longest = cost;
        }
        let Some(shortest) = shortest else { continue };
        best.offer(Time::from_ps(time), || Witness::Quickest {
            npu,
            leaving: side == Side::Egress,
            bytes: problem.needs.in_bytes(bytes),
            other: (others == 1).then(|| entry.ends[0]),
            others,
            bandwidth: saturating_bandwidth(rate / parts),
            latencies: [shortest, longest].map(Time::from_ps),
        });
    }
    sought
}

/// Returns what must enter or leave an NPU, farthest first. A sum needs the contribution of the farthest, and what
/// leaves gets to the farthest; a copy may come from any who holds it.
fn farthest_first(problem: &Problem, rank: usize, side: Side, searched: &Search) -> Vec<Far> {
    let npu = problem.needs.npus()[rank];
    let distances = searched.distances();
    let mut far = Vec::new();
    let mut add = |bytes: u64, decides: Decides, others: &[NpuId]| {
        let others = others.iter().filter(|&&other| other != npu);
        let at = |other: &&NpuId| distances[other.index()];
        let ends: Vec<NpuId> = match decides {
            Decides::Nearest => others.copied().collect(),
            Decides::Farthest => others.max_by_key(at).copied().into_iter().collect(),
        };
        if let Some(distance) = ends.iter().map(|end| distances[end.index()]).min() {
            far.push(Far {
                distance,
                bytes: bytes.into(),
                ends,
            });
        }
    };
    match side {
        Side::Ingress => problem.needs.entering(rank, add),
        Side::Egress => problem
            .needs
            .leaving(rank, |bytes, others| add(bytes, Decides::Farthest, others)),
    }
    far.sort_by_key(|entry| std::cmp::Reverse(entry.distance));
    far
}
