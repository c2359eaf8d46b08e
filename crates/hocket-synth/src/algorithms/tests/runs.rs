//! Every algorithm does what it should, on every kind, number of NPUs, root and number of slices.

use super::*;
use crate::plan::Wait;

/// Every collective of a kind among `npus`: one for each root.
fn rooted(kind: CollectiveKind, npus: &[NpuId], size: u64) -> Vec<Collective> {
    let roots: Vec<Option<Rank>> = match kind.is_rooted() {
        true => (0..npus.len()).map(|rank| Some(rank.into())).collect(),
        false => vec![None],
    };
    let collective = |root| Collective::new(kind, npus.to_vec(), size, root).unwrap();
    roots.into_iter().map(collective).collect()
}

/// Algorithms for a network of one kind, on which tests of their own run them.
fn is_of_one_network(algorithm: Algorithm) -> bool {
    let needs_dimensions = algorithm == Algorithm::Hierarchical || algorithm.is_multirail();
    needs_dimensions
        || matches!(
            algorithm,
            Algorithm::RingBiOdd
                | Algorithm::MultiRing
                | Algorithm::Tto
                | Algorithm::TtoOverlapped
                | Algorithm::TwoTreeOverlap
                | Algorithm::MultiTree
                | Algorithm::Ring2d
                | Algorithm::Hdrm
                | Algorithm::InNetwork
                | Algorithm::NodeGroups
                | Algorithm::NcclRing
                | Algorithm::NcclTree
                | Algorithm::NcclNvls
        )
}

/// The other algorithms, where they do not refuse; the golden table of the Python tests says where that is.
fn applying(topology: &Topology, collective: &Collective) -> impl Iterator<Item = Algorithm> {
    let applies = |each: &Algorithm| check_applicable(topology, collective, *each).is_ok();
    let others = Algorithm::ALL
        .into_iter()
        .filter(|&each| !is_of_one_network(each));
    others.filter(applies)
}

/// Algorithms that search: what they do depends on the network more than on the root.
fn searches(algorithm: Algorithm) -> bool {
    let making = algorithm.about().making;
    matches!(making, Origin::Routes | Origin::Synthesis)
}

#[test]
fn every_recipe_kind_root_and_size() {
    for n in (2..=9).chain([12, 16]) {
        let most = if n <= 9 { 3 } else { 1 };
        on_full_mesh(n, most, &|algorithm| !searches(algorithm), |_| true);
    }
}

#[test]
fn every_search_kind_and_size() {
    for n in 2..=5 {
        on_full_mesh(n, 3, &searches, |_| true);
    }
    for n in [8, 12] {
        on_full_mesh(n, 1, &searches, |root| root == 0 || root == n - 1);
    }
}

/// Judges the plans of algorithms among NPUs that are all connected, from these roots.
fn on_full_mesh(
    n: usize,
    most_chunks: usize,
    is_meant: &dyn Fn(Algorithm) -> bool,
    is_root: impl Fn(usize) -> bool,
) {
    let topology = fully_connected(n);
    let npus: Vec<NpuId> = topology.npus().collect();
    let mut judged_plans = 0;
    for kind in CollectiveKind::NAMED {
        for chunks in 1..=most_chunks {
            // Each block has 2 x chunks bytes and some one more.
            let size = (2 * n * chunks + n / 2) as u64;
            let collectives = rooted(kind, &npus, size).into_iter().enumerate();
            for (_, collective) in collectives.filter(|&(root, _)| is_root(root)) {
                for algorithm in applying(&topology, &collective).filter(|&each| is_meant(each)) {
                    judged(&topology, &collective, algorithm, chunks);
                    judged_plans += 1;
                }
            }
        }
    }
    assert!(judged_plans >= 8 * most_chunks, "{judged_plans} plans");
}

#[test]
fn some_npus_in_any_order_on_other_topologies() {
    for topology in [star(11), line(11), one_way_ring(11)] {
        for npus in [[7, 2, 9, 0, 4, 10, 3], [10, 9, 8, 7, 6, 5, 4]] {
            let npus = npus.map(NpuId);
            let collectives = CollectiveKind::NAMED.map(|kind| rooted(kind, &npus, 1001));
            for collective in collectives.iter().flatten() {
                let mut count = 0;
                for algorithm in applying(&topology, collective) {
                    judged(&topology, collective, algorithm, 2);
                    count += 1;
                }
                assert!(count >= 4, "{count} algorithms for {}", collective.kind());
            }
        }
    }
}

#[test]
fn hierarchical_on_every_pair_and_some_triples_of_dimensions() {
    use DimensionKind::{FullyConnected, Line, Ring, Switch};
    let blocks = [Ring, Line, FullyConnected, Switch];
    let mut grids = Vec::new();
    for first in blocks {
        grids.extend([2, 3, 5].map(|size| vec![(first, size)]));
        for second in blocks {
            grids.push(vec![(first, 3), (second, 4)]);
            grids.push(vec![(first, 5), (second, 2)]);
        }
        grids.push(vec![(first, 2), (Switch, 3), (Ring, 3)]);
        grids.push(vec![(Line, 3), (first, 1), (FullyConnected, 2), (Ring, 2)]);
    }
    for grid in grids {
        let topology = product(&grid);
        for kind in [AllReduce, ReduceScatter, AllGather] {
            for chunks in [1, 3] {
                let collective = among_all(kind, &topology, 1009);
                judged(&topology, &collective, Algorithm::Hierarchical, chunks);
            }
        }
    }
}

#[test]
fn defaults_and_ladders_always_run() {
    for n in [2, 3, 6] {
        let topology = fully_connected(n);
        for kind in CollectiveKind::NAMED {
            for (nth, size) in [2 * n as u64, 100, 1 << 20].into_iter().enumerate() {
                let collective = among_all(kind, &topology, size);
                // Searches take long, and sizes change only which of their plans is taken.
                let is_short = |&each: &Algorithm| nth < 2 || !searches(each);
                for algorithm in applying(&topology, &collective).filter(is_short) {
                    let made = plan(
                        &topology,
                        &collective,
                        &PlanOptions::new(algorithm),
                        &mut Silent,
                    );
                    judge(&made.unwrap());
                    let ladder = chunk_ladder(&topology, &collective, algorithm);
                    assert!(ladder[0] == 1 && ladder.is_sorted(), "{ladder:?}");
                    for chunks in ladder.into_iter().take(3) {
                        judged(&topology, &collective, algorithm, chunks);
                    }
                }
            }
        }
    }
}

/// The same plan, in which one transfer waits for nothing.
fn without_wait(plan: &Plan, transfer: usize) -> Plan {
    let mut columns = plan.columns();
    columns.wait[transfer] = Wait::NOTHING.to_bits();
    Plan::from_columns(
        plan.algorithm(),
        plan.collective().clone(),
        plan.chunks().clone(),
        columns,
        plan.groups().clone(),
        plan.paths().clone(),
    )
    .unwrap()
}

#[test]
fn no_transfer_waits_in_vain() {
    let sides =
        [(DimensionKind::Ring, 3), (DimensionKind::Switch, 2)].map(|(kind, size)| Dimension {
            kind,
            size,
            bandwidth: gigabyte(),
            latency: latency(),
            offload: false,
        });
    let grid = crate::topology::build::product(&sides).unwrap();
    // These two wait for their step's sake, not for data alone.
    let in_steps = [Algorithm::Pairwise, Algorithm::Bruck];
    for algorithm in Algorithm::ALL
        .into_iter()
        .filter(|each| !in_steps.contains(each))
    {
        for &kind in algorithm.kinds() {
            let collective = among_all(kind, &grid, 60);
            if check_applicable(&grid, &collective, algorithm).is_err() {
                continue;
            }
            let (plan, _) = judged(&grid, &collective, algorithm, 2);
            for t in (0..plan.len()).filter(|&t| plan.wait()[t] != Wait::NOTHING.to_bits()) {
                let hasty = without_wait(&plan, t);
                let verdict = std::panic::catch_unwind(|| judge(&hasty));
                assert!(verdict.is_err(), "{algorithm} {kind}: transfer {t}");
            }
        }
    }
}
