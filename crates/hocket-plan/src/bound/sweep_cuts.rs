//! Cuts by sweeping: all prefixes of a few orders of the devices, for demands no flow decides.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::needs::Crossing;
use super::network::{ArcNetwork, Search};
use super::nodes::assigned;
use super::{Candidate, Problem, cut};
use crate::graph::Lists;
use crate::id::{NpuId, narrow};
use crate::progress::{Interrupted, Paced};

/// Offers the best cuts that sweeps find.
///
/// For all-to-all the worst cut is a sparsest cut, which is hard; every cut gives a true bound
/// though. An order of the nodes gives one cut after each node, both ways; adding a node changes
/// only its own links and demands, so an order costs as much as reading the network once. The orders
/// are: by number, by coordinate along each dimension of a product (for its bisections),
/// breadth-first and most-connected-first from two ends of the network (for groups behind slow
/// links).
///
/// Where some NPUs send or get more than others, cuts about them matter. So the best two, by bytes over bandwidth,
/// of these are offered as well: each of `groups`, each switch and its NPUs, and by coordinate from each start.
pub(super) fn offer(
    problem: &Problem,
    groups: &[Vec<NpuId>],
    best: &mut Candidate,
    watch: &mut Paced,
) -> Result<(), Interrupted> {
    let network = &problem.network;
    let first = problem.needs.npus()[0].0;
    let end = farthest(network, first);
    let mut orders = by_coordinate(problem, 0);
    for start in [end, farthest(network, end)] {
        orders.push(network.breadth_first(start));
        orders.push(most_connected_first(network, start));
    }
    let (count, arcs) = (orders.len() as u64, network.arcs().len() as u64);
    for (order, done) in orders.into_iter().zip(0..) {
        watch.count(4 * arcs, done, count)?;
        for (_, inside) in sweep(problem, &order).into_iter().flatten() {
            cut::offer(problem, inside, best);
        }
    }
    let work = |orders: usize| problem.needs.demands().len().saturating_mul(orders);
    let mut local = clusters(network, groups);
    local.truncate(MOST_WORK / work(1).max(1));
    let sizes = problem.dimensions.iter().map(|dimension| dimension.size);
    let most = sizes.max().unwrap_or(1);
    if work(most as usize * problem.dimensions.len()) <= MOST_WORK {
        let starts = (1..most.into()).flat_map(|start| {
            let orders = by_coordinate(problem, start);
            orders.into_iter().skip(1)
        });
        local.extend(starts);
    }
    let mut greatest: [Option<(f64, Vec<bool>)>; 2] = [None, None];
    let count = local.len() as u64;
    for (order, done) in local.into_iter().zip(0..) {
        watch.count(4 * order.len() as u64, done, count)?;
        for (greatest, found) in greatest.iter_mut().zip(sweep(problem, &order)) {
            let ratio = |cut: &Option<(f64, Vec<bool>)>| cut.as_ref().map_or(0.0, |cut| cut.0);
            if ratio(&found) > ratio(greatest) {
                *greatest = found;
            }
        }
    }
    for (_, inside) in greatest.into_iter().flatten() {
        cut::offer(problem, inside, best);
    }
    Ok(())
}

/// Demands times orders up to which all cuts are looked at that [`offer`] lists last.
const MOST_WORK: usize = 1 << 25;

/// Returns the nodes of each group, NPUs first, and of each switch and the NPUs around it.
fn clusters(network: &ArcNetwork, groups: &[Vec<NpuId>]) -> Vec<Vec<u32>> {
    let nodes = || 0..narrow(network.node_count());
    let mut clusters: Vec<Vec<u32>> = vec![Vec::new(); groups.len()];
    let (of, _) = assigned(network, groups);
    for node in nodes() {
        if let Some(cluster) = clusters.get_mut(of[node as usize] as usize) {
            cluster.push(node);
        }
    }
    let device = |node: u32| network.device_of(node as usize).index();
    let around = network.arcs().iter().flat_map(|arc| {
        let ends = [(arc.src, arc.dst), (arc.dst, arc.src)];
        let is_star = |&(npu, switch): &(u32, u32)| network.is_npu(npu) && !network.is_npu(switch);
        let star = ends.into_iter().filter(is_star);
        star.map(|(npu, switch)| (device(switch), npu))
    });
    let halves = nodes().filter(|&node| !network.is_npu(node));
    let all = around.chain(halves.map(|node| (device(node), node)));
    for star in Lists::grouped(network.device_count(), all).iter() {
        let mut star = star.to_vec();
        star.sort_unstable();
        star.dedup();
        if star.len() > 1 {
            clusters.push(star);
        }
    }
    clusters
}

/// Returns the best prefix of an order by bytes over bandwidth, for what leaves it and for what enters it, and those
/// bytes over that bandwidth.
fn sweep(problem: &Problem, order: &[u32]) -> [Option<(f64, Vec<bool>)>; 2] {
    let network = &problem.network;
    let mut crossing = Crossing::new(&problem.needs);
    let mut inside = vec![false; network.node_count()];
    let mut bandwidth = [0u128; 2];
    let mut best = [(0.0, 0); 2];
    for (i, &node) in order.iter().enumerate() {
        inside[node as usize] = true;
        for (side, arcs) in [network.arcs_out(node), network.arcs_in(node)]
            .into_iter()
            .enumerate()
        {
            for arc in arcs.iter().map(|&arc| &network.arcs()[arc as usize]) {
                let other = if side == 0 { arc.dst } else { arc.src };
                if inside[other as usize] {
                    bandwidth[1 - side] -= u128::from(arc.capacity);
                } else {
                    bandwidth[side] += u128::from(arc.capacity);
                }
            }
        }
        if network.is_npu(node) {
            crossing.add(node);
        }
        for (side, bytes) in [crossing.leaving, crossing.entering]
            .into_iter()
            .enumerate()
        {
            // Only a choice between cuts: `cut::offer` computes exactly.
            let ratio = bytes as f64 / bandwidth[side] as f64;
            if bandwidth[side] > 0 && ratio > best[side].0 {
                best[side] = (ratio, i + 1);
            }
        }
    }
    let prefix = |side: usize| {
        let (ratio, count) = best[side];
        let mut inside = vec![side == 1; order.len().max(network.node_count())];
        for &node in &order[..count] {
            inside[node as usize] = side == 0;
        }
        (count > 0).then_some((ratio, inside))
    };
    [prefix(0), prefix(1)]
}

/// Returns the NPU last reached by latency; the highest of equals.
fn farthest(network: &ArcNetwork, from: u32) -> u32 {
    let mut search = Search::default();
    let distance = search.run(network, [from], |arc| arc.latency.max(1));
    let npus = network.npus().map(|npu| npu.0);
    npus.max_by_key(|&npu| distance[npu as usize])
        .unwrap_or(from)
}

/// By number, and by coordinate along each dimension, from a start onwards and round; switches in the middle of their
/// neighbours.
fn by_coordinate(problem: &Problem, start: u64) -> Vec<Vec<u32>> {
    let network = &problem.network;
    let npus = network.npus().count() as u64;
    let mut orders = vec![placed(network, |npu| npu)];
    let sizes = problem
        .dimensions
        .iter()
        .map(|dimension| u64::from(dimension.size));
    if sizes.clone().product::<u64>() != npus {
        return orders;
    }
    let mut stride = 1;
    for size in sizes {
        let place = |npu: u64| (npu / stride + size - start % size) % size;
        orders.push(placed(network, |npu| place(npu) * npus + npu));
        stride *= size;
    }
    orders
}

/// Returns the number of nodes by rising place. That of an NPU is given; that of a switch is the mean of its
/// neighbours'.
fn placed(network: &ArcNetwork, place: impl Fn(u64) -> u64) -> Vec<u32> {
    let count = network.node_count();
    let npus = network.npus().count();
    let mut places: Vec<Option<u64>> = (0..count)
        .map(|node| (node < npus).then(|| place(node as u64)))
        .collect();
    // Switches two or more links from any NPU are placed in later rounds.
    for _ in npus..count {
        let settled = places.clone();
        for node in (npus..count).filter(|&node| settled[node].is_none()) {
            let node_id = narrow(node);
            let sources = network
                .arcs_in(node_id)
                .iter()
                .map(|&arc| network.arcs()[arc as usize].src);
            let sinks = network
                .arcs_out(node_id)
                .iter()
                .map(|&arc| network.arcs()[arc as usize].dst);
            let known = sources
                .chain(sinks)
                .filter_map(|other| settled[other as usize]);
            let (sum, number) =
                known.fold((0, 0), |(sum, number), place| (sum + place, number + 1));
            places[node] = (number > 0).then(|| sum / number);
        }
        if places == settled {
            break;
        }
    }
    let mut order: Vec<u32> = (0..narrow(count)).collect();
    order.sort_by_key(|&node| places[node as usize].unwrap_or(u64::MAX));
    order
}

/// From a start, always the node with the most bandwidth to and from those before it.
fn most_connected_first(network: &ArcNetwork, start: u32) -> Vec<u32> {
    let mut taken = vec![false; network.node_count()];
    let mut bandwidth = vec![0u128; network.node_count()];
    let mut queue = BinaryHeap::from([(0, Reverse(start))]);
    let mut order = Vec::with_capacity(network.node_count());
    while let Some((_, Reverse(node))) = queue.pop() {
        if std::mem::replace(&mut taken[node as usize], true) {
            continue;
        }
        order.push(node);
        for &arc in network.arcs_out(node).iter().chain(network.arcs_in(node)) {
            let arc = &network.arcs()[arc as usize];
            let other = arc.src + arc.dst - node;
            if !taken[other as usize] {
                bandwidth[other as usize] += u128::from(arc.capacity);
                queue.push((bandwidth[other as usize], Reverse(other)));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::{BoundOptions, Fidelity, bound};
    use crate::collective::{Collective, CollectiveKind, Demand, NpuSet};
    use crate::id::{DeviceId, NpuId, Rank};
    use crate::progress::Silent;
    use crate::topology::{Dimension, DimensionKind, Topology, TopologyBuilder, build};
    use crate::units::{Bandwidth, Seed, Time};

    fn gb_per_s(giga: u64) -> Bandwidth {
        Bandwidth::from_bytes_per_second(giga * 1_000_000_000).expect("positive")
    }

    /// Returns the NPUs and then switches, and links both ways: from, to, GB/s, nanoseconds.
    fn topology(npus: usize, switches: usize, links: &[(u32, u32, u64, u64)]) -> Topology {
        let mut builder = TopologyBuilder::new("test");
        builder.npus(npus);
        for i in 0..switches {
            builder.switch(format!("switch{i}"), None);
        }
        for &(a, b, giga, ns) in links {
            let (a, b) = (DeviceId(a), DeviceId(b));
            builder.both_ways(a, b, gb_per_s(giga), Time::from_ns(ns));
        }
        builder.finish().expect("valid")
    }

    fn network(npus: usize, switches: usize, links: &[(u32, u32, u64, u64)]) -> ArcNetwork {
        ArcNetwork::new(&topology(npus, switches, links), Fidelity::Link)
    }

    #[test]
    fn a_switch_is_placed_between_its_neighbours() {
        let star = network(
            4,
            1,
            &[(0, 4, 1, 1), (1, 4, 1, 1), (2, 4, 1, 1), (3, 4, 1, 1)],
        );
        assert_eq!(placed(&star, |npu| npu), [0, 1, 4, 2, 3]);
        assert_eq!(placed(&star, |npu| 10 - npu), [3, 2, 4, 1, 0]);
        let links = [(0, 4, 1, 1), (1, 4, 1, 1), (2, 5, 1, 1), (3, 5, 1, 1)];
        let tree = [&links[..], &[(4, 6, 1, 1), (5, 6, 1, 1)]].concat();
        // Means of 0 and 1, of 2 and 3, and in a second round of those two, rounded down.
        assert_eq!(
            placed(&network(4, 3, &tree), |npu| npu),
            [0, 4, 1, 6, 2, 5, 3]
        );
        // A switch that nothing leads to is the last.
        assert_eq!(
            placed(&network(2, 1, &[(0, 1, 1, 1)]), |npu| npu),
            [0, 1, 2]
        );
    }

    #[test]
    fn orders_go_along_each_dimension() {
        let problem_of = |topology: &Topology| {
            let kind = CollectiveKind::AllToAll;
            let collective = Collective::among_all(kind, topology, 1_000).expect("valid");
            by_coordinate(
                &Problem::new(topology, &collective, BoundOptions::default()),
                0,
            )
        };
        let dimension = |size| Dimension {
            kind: DimensionKind::FullyConnected,
            size,
            bandwidth: gb_per_s(1),
            latency: Time::ZERO,
            offload: false,
        };
        let product = build::product(&[2, 3, 2].map(dimension)).expect("valid");
        assert_eq!(
            problem_of(&product),
            [
                vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
                vec![0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11],
                vec![0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11],
                vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
            ]
        );
        let line = topology(3, 0, &[(0, 1, 1, 1), (1, 2, 1, 1)]);
        assert_eq!(problem_of(&line), [[0, 1, 2]]);
    }

    #[test]
    fn the_farthest_is_last_by_latency_and_of_equals_the_highest() {
        let links = [(0, 1, 1, 9), (1, 2, 1, 0), (2, 3, 1, 0), (0, 4, 1, 9)];
        assert_eq!(
            farthest(&network(5, 0, &links), 0),
            3,
            "links take some time"
        );
        assert_eq!(farthest(&network(5, 0, &links), 3), 4);
        let star = [(0, 1, 1, 5), (0, 2, 1, 5), (0, 3, 1, 5)];
        assert_eq!(farthest(&network(4, 0, &star), 0), 3);
        assert_eq!(farthest(&network(4, 0, &star), 3), 2);
    }

    #[test]
    fn the_most_connected_comes_next() {
        // From 0: 2 has 3 GB/s; then 1 has 2 + 2 with both, more than the 3 of node 3.
        let links = [(0, 1, 2, 1), (0, 2, 3, 1), (1, 2, 2, 1), (2, 3, 3, 1)];
        assert_eq!(
            most_connected_first(&network(4, 0, &links), 0),
            [0, 2, 1, 3]
        );
        assert_eq!(
            most_connected_first(&network(4, 0, &links), 3),
            [3, 2, 0, 1]
        );
        let equal = [(0, 1, 1, 1), (0, 2, 1, 1)];
        assert_eq!(most_connected_first(&network(3, 0, &equal), 0), [0, 1, 2]);
    }

    /// The bound by cuts [us] of 1 MB from each NPU to each of some.
    fn cut_bound(topology: &Topology, wanted_by: &[u32]) -> u64 {
        let npus: Vec<NpuId> = topology.npus().collect();
        let takers = wanted_by.iter().map(|&npu| NpuId(npu));
        let pairs = takers.flat_map(|to| npus.iter().map(move |&from| (from, to)));
        let demands = pairs
            .filter(|(from, to)| from != to)
            .map(|(from, to)| Demand {
                bytes: 1_000_000,
                reduced: false,
                holders: NpuSet::One(from),
                wanted: NpuSet::One(to),
            });
        let demands = demands.collect();
        let collective = Collective::custom(npus.clone(), demands).expect("valid");
        let bound = bound(topology, &collective, &BoundOptions::default(), &mut Silent);
        let components = bound.expect("nobody stops it").components;
        let cut = components.iter().find(|(name, _)| *name == "cut");
        cut.expect("links cross it").1.as_ps() / 1_000_000
    }

    #[test]
    fn a_slab_or_a_box_that_gets_most_is_cut_off() {
        let torus = build::torus(&[8, 2], gb_per_s(1), Time::ZERO).expect("valid");
        // 12 others have a megabyte for each of four, over two links into each row of the slab: 48 over 4.
        assert_eq!(cut_bound(&torus, &[3, 4, 11, 12]), 12_000);
        // Four boxes of two around a switch each, joined by slow links to one more.
        let mut links = Vec::new();
        for cluster in 0..4 {
            for npu in [2 * cluster, 2 * cluster + 1] {
                links.push((npu, 8 + cluster, 10, 0));
            }
            links.push((8 + cluster, 12, 1, 0));
        }
        // The six others have a megabyte for both of a box.
        assert_eq!(cut_bound(&topology(8, 5, &links), &[4, 5]), 12_000);
    }

    #[test]
    fn a_sweep_takes_the_best_prefix() {
        let mut seed = Seed(11);
        for _ in 0..300 {
            let (npus, switches) = (2 + seed.below(4), seed.below(3));
            let count = npus + switches;
            let links: Vec<(u32, u32, u64, u64)> = (0..count + seed.below(6))
                .map(|_| {
                    let from = seed.below(count);
                    let to = (from + 1 + seed.below(count - 1)) % count;
                    (narrow(from), narrow(to), 1 + seed.below(3) as u64, 0)
                })
                .collect();
            let topology = topology(npus, switches, &links);
            let kind = CollectiveKind::NAMED[seed.below(8)];
            let root = kind.is_rooted().then(|| Rank(narrow(seed.below(npus))));
            let members: Vec<NpuId> = topology.npus().collect();
            let collective = Collective::new(kind, members, 1_000, root).expect("valid");
            let problem = Problem::new(&topology, &collective, BoundOptions::default());
            let network = &problem.network;
            let mut order: Vec<u32> = (0..narrow(count)).collect();
            (1..count).for_each(|i| order.swap(i, seed.below(i + 1)));
            let ratio = |inside: &[bool]| {
                let crosses = |arc: &&super::super::network::Arc| {
                    inside[arc.src as usize] && !inside[arc.dst as usize]
                };
                let arcs = network.arcs().iter().filter(crosses);
                let bandwidth: u64 = arcs.map(|arc| arc.capacity).sum();
                (bandwidth > 0).then(|| problem.needs.crossing(inside) as f64 / bandwidth as f64)
            };
            let found = sweep(&problem, &order);
            for (side, found) in found.into_iter().enumerate() {
                let best = (1..count)
                    .map(|length| {
                        let mut inside = vec![side == 1; count];
                        for &node in &order[..length] {
                            inside[node as usize] = side == 0;
                        }
                        ratio(&inside).unwrap_or(0.0)
                    })
                    .fold(0.0, f64::max);
                let found =
                    found.map_or(0.0, |(_, inside)| ratio(&inside).expect("links cross it"));
                assert_eq!(found, best, "{kind} over {links:?} in the order {order:?}");
            }
        }
    }
}
