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

fn flat_algorithms(n: usize) -> impl Iterator<Item = Algorithm> {
    Algorithm::ALL.into_iter().filter(move |&algorithm| {
        let of_one_network = matches!(
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
        );
        let needs_dimensions = algorithm == Algorithm::Hierarchical || algorithm.is_multirail();
        !of_one_network && !needs_dimensions && (algorithm, n) != (Algorithm::BidirectionalRing, 2)
    })
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
    for algorithm in flat_algorithms(n).filter(|&each| is_meant(each)) {
        for &kind in algorithm.kinds() {
            for chunks in 1..=most_chunks {
                // Each block has 2 x chunks bytes and some one more.
                let size = (2 * n * chunks + n / 2) as u64;
                let collectives = rooted(kind, &npus, size).into_iter().enumerate();
                for (_, collective) in collectives.filter(|&(root, _)| is_root(root)) {
                    judged(&topology, &collective, algorithm, chunks);
                }
            }
        }
    }
}

#[test]
fn some_npus_in_any_order_on_other_topologies() {
    for topology in [star(11), line(11), one_way_ring(11)] {
        for npus in [[7, 2, 9, 0, 4, 10, 3], [10, 9, 8, 7, 6, 5, 4]] {
            let npus = npus.map(NpuId);
            // All NPUs take part in what is planned by symmetry.
            let others = flat_algorithms(npus.len()).filter(|&it| it != Algorithm::Symmetric);
            for algorithm in others {
                for &kind in algorithm.kinds() {
                    for collective in rooted(kind, &npus, 1001) {
                        judged(&topology, &collective, algorithm, 2);
                    }
                }
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
        for algorithm in flat_algorithms(n) {
            // Searches take long, and sizes change only which of their plans is taken.
            let most = if searches(algorithm) { 2 } else { 3 };
            for &kind in algorithm.kinds() {
                for size in [2 * n as u64, 100, 1 << 20].into_iter().take(most) {
                    let collective = among_all(kind, &topology, size);
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
