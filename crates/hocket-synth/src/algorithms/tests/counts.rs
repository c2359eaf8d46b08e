//! Transfers, steps and bytes by closed form.

use super::*;
use crate::collective::pattern::Shape;
use crate::collective::pattern::{Pass, Pattern};
use crate::id::narrow;

fn ceil_log2(n: usize) -> usize {
    (0..).find(|&steps| n <= 1 << steps).unwrap()
}

#[test]
fn steps_by_closed_form() {
    for n in 3..=17 {
        let topology = fully_connected(n);
        let steps = |algorithm, kind, chunks| {
            let collective = among_all(kind, &topology, 10_007);
            let (_, steps) = judged(&topology, &collective, algorithm, chunks);
            steps.into_iter().max().unwrap()
        };
        for chunks in [1, 3] {
            for algorithm in [Algorithm::Ring, Algorithm::BidirectionalRing] {
                assert_eq!(steps(algorithm, AllReduce, chunks), 2 * (n - 1));
                assert_eq!(steps(algorithm, ReduceScatter, chunks), n - 1);
                assert_eq!(steps(algorithm, AllGather, chunks), n - 1);
            }
            // Exactly log2 n a pass for a power of two; else a chain of waits may be shorter.
            let range = n.ilog2() as usize..=ceil_log2(n);
            let pass = steps(Algorithm::HalvingDoubling, AllGather, chunks);
            assert!(range.contains(&pass), "{n}: {pass}");
            let both = steps(Algorithm::HalvingDoubling, AllReduce, chunks);
            assert!(
                both >= 2 * range.start() && both <= 2 * range.end(),
                "{n}: {both}"
            );
            assert_eq!(steps(Algorithm::Direct, AllReduce, chunks), 2);
            assert_eq!(steps(Algorithm::Direct, AllToAll, chunks), 1);
            assert_eq!(steps(Algorithm::Direct, Gather, chunks), 1);
            // A holder's sends do not wait for one another.
            let depth = n.ilog2() as usize;
            for kind in [Broadcast, Reduce, Gather, Scatter] {
                assert_eq!(steps(Algorithm::Binomial, kind, chunks), depth);
            }
            assert_eq!(steps(Algorithm::Chain, Broadcast, chunks), n - 1);
            assert_eq!(steps(Algorithm::Chain, Reduce, chunks), n - 1);
            assert_eq!(steps(Algorithm::Pairwise, AllToAll, chunks), n - 1);
            assert_eq!(
                steps(Algorithm::DoubleBinaryTree, AllReduce, chunks),
                2 * depth
            );
        }
    }
}

#[test]
fn plan_order_goes_step_by_step() {
    for n in 2..=9 {
        let topology = fully_connected(n);
        for algorithm in [
            Algorithm::Ring,
            Algorithm::Direct,
            Algorithm::HalvingDoubling,
            Algorithm::Pairwise,
        ] {
            if algorithm == Algorithm::HalvingDoubling && !n.is_power_of_two() {
                continue;
            }
            for &kind in algorithm.kinds() {
                let collective = among_all(kind, &topology, 1000);
                let (_, steps) = judged(&topology, &collective, algorithm, 3);
                assert!(steps.is_sorted(), "{algorithm} {kind} {n}");
            }
        }
    }
}

#[test]
fn three_dimensions_of_switches_in_64_slices() {
    use DimensionKind::Switch;
    let topology = product(&[(Switch, 16), (Switch, 8), (Switch, 8)]);
    let collective = among_all(AllReduce, &topology, 1_000_000_000);
    let made = plan(
        &topology,
        &collective,
        &options(Algorithm::Hierarchical, 64),
        &mut Silent,
    )
    .unwrap();
    assert_eq!(made.len(), 64 * 1024 * 2 * (4 + 3 + 3));
    assert!(made.memory() < 64 * made.len());
}

#[test]
fn halving_moves_are_those_made() {
    for n in 1..=40 {
        let pattern = Pattern::halving_doubling();
        let made: usize = (0..Shape::HalvingDoubling.steps(n))
            .map(|step| pattern.step(Pass::AllGather, n, step).len())
            .sum();
        assert_eq!(Shape::HalvingDoubling.moves(n as u128), made as u128, "{n}");
    }
}

/// Bytes that each NPU sends, by receiver.
fn sent(plan: &Plan, n: usize) -> Vec<Vec<u64>> {
    let mut sent = vec![vec![0; n]; n];
    for t in 0..plan.len() {
        let bytes = plan.bytes(crate::id::TransferId::from(t));
        sent[plan.src()[t] as usize][plan.dst()[t] as usize] += bytes;
    }
    sent
}

#[test]
fn an_all_reduce_sends_no_more_than_it_must() {
    for n in [3, 4, 5, 8] {
        let topology = fully_connected(n);
        let size = 840 * n as u64;
        let collective = among_all(AllReduce, &topology, size);
        let least = 2 * 840 * (n as u64 - 1);
        let mut algorithms = vec![
            Algorithm::Ring,
            Algorithm::BidirectionalRing,
            Algorithm::Direct,
        ];
        if n.is_power_of_two() {
            algorithms.push(Algorithm::HalvingDoubling);
        }
        for algorithm in algorithms {
            let (plan, _) = judged(&topology, &collective, algorithm, 2);
            for row in sent(&plan, n) {
                assert_eq!(row.iter().sum::<u64>(), least, "{algorithm} {n}");
            }
        }
    }
}

#[test]
fn a_bidirectional_ring_sends_half_each_way() {
    let n = 6;
    let topology = fully_connected(n);
    let collective = among_all(AllReduce, &topology, 600);
    let (plan, _) = judged(&topology, &collective, Algorithm::BidirectionalRing, 1);
    for row in sent(&plan, n) {
        let mut used: Vec<u64> = row.into_iter().filter(|&bytes| bytes > 0).collect();
        used.sort_unstable();
        assert_eq!(used, [500, 500]);
    }
}

#[test]
fn nobody_is_an_inner_node_of_both_trees() {
    for n in 2..=33 {
        let topology = fully_connected(n);
        let collective = among_all(AllReduce, &topology, 1000);
        let (plan, _) = judged(&topology, &collective, Algorithm::DoubleBinaryTree, 1);
        let serves = |npu: u32, chunk: u32| {
            (0..plan.len())
                .any(|t| plan.src()[t] == npu && plan.chunk()[t] == chunk && plan.op()[t] == 0)
        };
        for npu in 0..narrow(n) {
            assert!(!(serves(npu, 0) && serves(npu, 1)), "NPU {npu} of {n}");
        }
    }
}

#[test]
fn an_owner_waits_once_for_all_it_sends() {
    let topology = fully_connected(8);
    let collective = among_all(AllReduce, &topology, 800);
    let (plan, _) = judged(&topology, &collective, Algorithm::Direct, 1);
    assert_eq!(plan.groups().len(), 8);
    let (plan, _) = judged(&topology, &collective, Algorithm::Ring, 1);
    assert_eq!(plan.groups().len(), 0);
}

#[test]
fn ladders_stop_at_two_million_transfers_and_at_the_bytes() {
    let topology = star(600);
    let large = among_all(AllReduce, &topology, 1 << 30);
    assert_eq!(chunk_ladder(&topology, &large, Algorithm::Ring), [1]);
    let ladder = chunk_ladder(&topology, &large, Algorithm::DoubleBinaryTree);
    assert_eq!(ladder, [1, 4, 16, 64, 256]);
    let small = among_all(AllReduce, &topology, 20);
    let ladder = chunk_ladder(&topology, &small, Algorithm::DoubleBinaryTree);
    assert_eq!(ladder, [1, 4]);
    assert_eq!(
        default_chunks(Algorithm::DoubleBinaryTree, &topology, &small),
        10
    );
}
