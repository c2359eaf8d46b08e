//! Traffic: bytes times the length of their way, over what all links together can carry.

use super::fill::{Pipe, capacity, fill};
use super::network::{Arc, FAR, Search};
use super::witness::Lengths;
use super::{Candidate, Problem, WORK_BETWEEN_REPORTS, Witness};
use crate::collective::Demand;
use crate::id::NpuId;
use crate::progress::{Interrupted, Paced, Progress};

/// Returns the best bound from the traffic under a few lengths of links.
///
/// Give every link e a length l_e >= 0, whichever. Bytes that go a way of length d take d of the
/// sum of bandwidth x l that the network has each second, so t >= work / sum of B_e l_e, where work
/// adds up bytes x length of
///
/// * a copy wanted by one: the shortest way from the nearest holder;
/// * a copy wanted by several: for each that lacks it, the shortest way from any other NPU (or switch that
///   multicasts), since it gets it from somewhere;
/// * a sum wanted by one: for each other that contributes, the shortest way to any other NPU (or switch that sums);
/// * a sum wanted by several: the same for every holder but one, until the first place has heard of
///   all (see [`super::partition`]), and after that the way into each taker but one; the one left
///   out is the dearest.
///
/// A link is of use only between its least latency from an NPU and that to one, see [`fill`].
///
/// # Complexity
/// For one-to-one demands a shortest-path search per participant and length, beyond `pair_limit`
/// participants for some of them only; the others' traffic then counts its last hop alone.
///
/// # Source
/// Shahrokhi, Matula, The maximum concurrent flow problem, 1990: the best lengths give the exact
/// time of all-to-all.
pub(super) fn bounds(
    problem: &Problem,
    progress: &mut dyn Progress,
) -> Result<Candidate, Interrupted> {
    let mut best = Candidate::default();
    let mut watch = Paced::new(progress, "bound: traffic", WORK_BETWEEN_REPORTS);
    let fastest = problem
        .network
        .arcs()
        .iter()
        .map(|arc| arc.capacity)
        .max()
        .unwrap_or(1);
    let slowness = |arc: &Arc| {
        let length = u128::from(fastest) * 16 / u128::from(arc.capacity);
        u64::try_from(length).unwrap_or(u64::MAX).min(1 << 24)
    };
    let mut offer = |lengths: Lengths, length: &dyn Fn(&Arc) -> u64| {
        let work = one_to_one(problem, length, &mut watch)? + one_to_many(problem, length);
        let each: Vec<u64> = problem.network.arcs().iter().map(length).collect();
        offer(problem, || lengths, &each, work, &mut best);
        Ok(())
    };
    offer(Lengths::Hops, &|arc| u64::from(!arc.internal))?;
    let arcs = problem.network.arcs();
    let is_alike = |arc: &Arc| !arc.internal && arc.capacity == fastest;
    if !arcs.iter().all(is_alike) {
        offer(Lengths::Slowness, &slowness)?;
    }
    if problem.network.arcs().iter().any(|arc| arc.internal) {
        offer(Lengths::LimitedSwitches, &|arc| u64::from(arc.internal))?;
    }
    Ok(best)
}

/// Offers what so much work takes, bytes times the lengths of their ways, if each arc has such a length.
pub(super) fn offer(
    problem: &Problem,
    lengths: impl FnOnce() -> Lengths,
    length: &[u64],
    work: u128,
    best: &mut Candidate,
) {
    let arcs = problem.network.arcs().iter().zip(&problem.delay);
    let used = arcs.zip(length);
    let used = used.filter(|&((_, &delay), &length)| length > 0 && delay < FAR);
    let mut pipes: Vec<Pipe> = used
        .map(|((arc, &delay), &length)| Pipe {
            delay,
            capacity: u128::from(arc.capacity) * u128::from(length),
        })
        .collect();
    if work == 0 || pipes.is_empty() {
        return;
    }
    let time = fill(&mut pipes, work, problem.needs.parts());
    best.offer(time, || Witness::Traffic {
        lengths: lengths(),
        work: problem.needs.in_bytes(work),
        capacity: capacity(&pipes),
    });
}

/// Work of the copies that one NPU alone wants.
fn one_to_one(
    problem: &Problem,
    length: impl Fn(&Arc) -> u64 + Copy,
    watch: &mut Paced,
) -> Result<u128, Interrupted> {
    let needs = &problem.needs;
    let npus = needs.npus();
    let mut search = Search::default();
    let mut wanted = vec![Vec::new(); problem.network.npus().count()];
    for demand in needs.demands() {
        if let (&[taker], false) = (demand.wanted.members(npus), demand.reduced) {
            wanted[taker.index()].push(demand);
        }
    }
    let stride = npus.len().div_ceil(problem.options.pair_limit.max(1));
    let mut work: u128 = 0;
    let arcs = problem.network.arcs().len() as u64;
    for (rank, &npu) in npus.iter().enumerate() {
        let looked_at = if rank % stride == 0 { arcs } else { 1 };
        watch.count(looked_at, rank as u64, npus.len() as u64)?;
        let all = needs.all_to_all().map(|blocks| u128::from(blocks[rank]));
        if all.is_none() && wanted[npu.index()].is_empty() {
            continue;
        }
        let near;
        let distance: &dyn Fn(&NpuId) -> u128 = if rank % stride == 0 {
            let distances = search.run(&problem.reversed, [npu.0], length);
            &|other| distances[other.index()].into()
        } else {
            near = u128::from(nearest(&problem.reversed, npu, length, &mut search));
            &|_| near
        };
        let others = npus.iter().filter(|&&other| other != npu);
        work += all.map_or(0, |bytes| bytes * others.map(distance).sum::<u128>());
        for demand in &wanted[npu.index()] {
            let nearest = demand.holders.members(npus).iter().map(distance).min();
            work += u128::from(demand.bytes) * nearest.unwrap_or(0);
        }
    }
    Ok(work)
}

/// Work of everything else.
fn one_to_many(problem: &Problem, length: impl Fn(&Arc) -> u64 + Copy) -> u128 {
    let npus = problem.needs.npus();
    let mut search = Search::default();
    let mut both = |network| -> Vec<u128> {
        let mut near = vec![0; problem.network.npus().count()];
        for &npu in npus {
            near[npu.index()] = nearest(network, npu, length, &mut search).into();
        }
        near
    };
    let (way_in, way_out) = (both(&problem.reversed), both(&problem.network));
    let but_dearest = |set: &[NpuId], way: &[u128]| -> u128 {
        let dearest = set.iter().map(|npu| way[npu.index()]).max().unwrap_or(0);
        set.iter().map(|npu| way[npu.index()]).sum::<u128>() - dearest
    };
    let work = |demand: &Demand| -> u128 {
        let holders = demand.holders.members(npus);
        let takers = demand.wanted.members(npus);
        let ways = match (demand.reduced, takers) {
            (false, [_]) => 0,
            (false, _) => {
                let lack = takers.iter().filter(|&&npu| !demand.holders.contains(npu));
                lack.map(|npu| way_in[npu.index()]).sum()
            }
            (true, [taker]) => {
                let others = holders.iter().filter(|&npu| npu != taker);
                others.map(|npu| way_out[npu.index()]).sum()
            }
            (true, _) => but_dearest(holders, &way_out) + but_dearest(takers, &way_in),
        };
        u128::from(demand.bytes) * ways
    };
    problem.needs.demands().iter().map(work).sum()
}

/// Length of the shortest way from an NPU to any other, or to a switch that sums or multicasts; 0 where there is none.
fn nearest(
    network: &super::network::ArcNetwork,
    npu: NpuId,
    length: impl Fn(&Arc) -> u64,
    search: &mut Search,
) -> u64 {
    let other = |node: u32| node != npu.0 && network.is_station(node);
    search.until(network, [npu.0], length, other).unwrap_or(0)
}
