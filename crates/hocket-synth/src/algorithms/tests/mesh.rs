//! The algorithms for meshes: what they do, on every mesh that they are for, and nothing else.

use super::*;
use crate::id::{fit, narrow};
use crate::topology::build;

fn mesh(columns: usize, rows: usize) -> Topology {
    build::mesh(&[narrow(columns), narrow(rows)], gigabyte(), latency()).unwrap()
}

fn without(topology: &Topology, corner: usize, size: u64) -> Collective {
    let npus = topology.npus().filter(|npu| npu.index() != corner);
    Collective::new(AllReduce, npus.collect(), size, None).unwrap()
}

/// A chain of waits is one step shorter than both passes: what the corner sends waits for its link alone.
#[test]
fn ring_bi_odd_takes_two_passes_of_as_many_steps_as_npus_less_one() {
    for (columns, rows) in [(3, 3), (5, 3), (3, 5), (5, 5), (7, 3), (5, 7), (7, 7)] {
        let topology = mesh(columns, rows);
        let n = columns * rows;
        for chunks in [1, 2] {
            let collective = among_all(AllReduce, &topology, 16 * (n * n) as u64);
            let (plan, steps) = judged(&topology, &collective, Algorithm::RingBiOdd, chunks);
            assert_eq!(steps.into_iter().max(), Some(2 * (n - 1) - 1));
            assert_eq!(plan.len(), chunks * 4 * (n - 1) * (n - 1));
            let neighbours = |i: usize| {
                let links = topology
                    .links_from_to(NpuId(plan.src()[i]).device(), NpuId(plan.dst()[i]).device());
                !links.is_empty()
            };
            assert!((0..plan.len()).all(neighbours));
        }
    }
}

#[test]
fn tto_leaves_out_any_corner_and_no_two_trees_share_a_link() {
    for (columns, rows) in [(2, 2), (3, 2), (2, 4), (3, 3), (4, 3), (5, 4), (6, 6)] {
        let topology = mesh(columns, rows);
        let n = columns * rows;
        for corner in [0, columns - 1, n - columns, n - 1] {
            for (algorithm, chunks) in [
                (Algorithm::Tto, 1),
                (Algorithm::Tto, 4),
                (Algorithm::TtoOverlapped, 3),
            ] {
                let collective = without(&topology, corner, 10_007);
                let (plan, _) = judged(&topology, &collective, algorithm, chunks);
                let mut owner = std::collections::HashMap::new();
                for i in 0..plan.len() {
                    let (src, dst) = (plan.src()[i], plan.dst()[i]);
                    assert!(
                        !topology
                            .links_from_to(NpuId(src).device(), NpuId(dst).device())
                            .is_empty()
                    );
                    // In a pass a link is one tree's alone.
                    let pass = i < plan.len() / 2;
                    let tree = plan.chunk()[i] % 3;
                    assert_eq!(*owner.entry((src, dst, pass)).or_insert(tree), tree);
                }
            }
        }
    }
}

/// Two trees on a line: one to the left, the other to the right, the other way about in the second pass.
#[test]
fn two_trees_take_all_npus_of_a_line_and_share_no_link() {
    let lines = (2..=9).map(|n| build::line(n, gigabyte(), latency()).unwrap());
    for topology in lines.chain([mesh(1, 5), mesh(6, 1)]) {
        let n = topology.npu_count();
        for chunks in [1, 2, 5] {
            let collective = among_all(AllReduce, &topology, 10_007);
            let (plan, steps) = judged(&topology, &collective, Algorithm::TwoTreeOverlap, chunks);
            assert_eq!(steps.into_iter().max(), Some(2 * (n - 1)));
            assert_eq!(plan.len(), chunks * 4 * (n - 1));
            for i in 0..plan.len() {
                let (src, dst) = (plan.src()[i], plan.dst()[i]);
                assert_eq!(src.abs_diff(dst), 1);
                let (tree, is_first_pass) = (plan.chunk()[i] % 2, i < plan.len() / 2);
                assert_eq!(dst < src, (tree == 0) == is_first_pass);
            }
        }
    }
}

#[test]
fn rivals_on_meshes_and_tori() {
    let torus = |sizes: &[u32]| build::torus(sizes, gigabyte(), latency()).unwrap();
    let topologies = [
        mesh(3, 3),
        mesh(4, 3),
        mesh(2, 5),
        torus(&[3, 3]),
        torus(&[4, 3]),
    ];
    for topology in &topologies {
        for chunks in [1, 3] {
            for &kind in Algorithm::MultiTree.kinds() {
                judged(
                    topology,
                    &among_all(kind, topology, 10_007),
                    Algorithm::MultiTree,
                    chunks,
                );
            }
            judged(
                topology,
                &among_all(AllReduce, topology, 10_007),
                Algorithm::Ring2d,
                chunks,
            );
        }
    }
    let flat = line(5);
    judged(
        &flat,
        &among_all(AllReduce, &flat, 10_007),
        Algorithm::MultiTree,
        1,
    );
}

#[test]
fn what_is_no_mesh_is_refused_with_what_works_instead() {
    let why = |topology: &Topology, collective: &Collective, algorithm| {
        check_applicable(topology, collective, algorithm)
            .unwrap_err()
            .to_string()
    };
    let refused = |topology: &Topology, algorithm, said: &str| {
        let why = why(topology, &among_all(AllReduce, topology, 10_007), algorithm);
        assert!(why.contains(said), "{why}");
    };
    let torus = build::torus(&[3, 3], gigabyte(), latency()).unwrap();
    for algorithm in [Algorithm::RingBiOdd, Algorithm::Tto] {
        for topology in [&torus, &line(5), &star(4)] {
            refused(topology, algorithm, "use greedy");
        }
        for topology in [&mesh(1, 5), &mesh(5, 1)] {
            refused(topology, algorithm, "use two-tree-overlap");
        }
    }
    refused(&mesh(4, 3), Algorithm::RingBiOdd, "use bidirectional-ring");
    refused(&mesh(4, 4), Algorithm::Tto, "0-11,13-15");
    refused(&star(4), Algorithm::MultiTree, "use greedy");
    refused(&line(4), Algorithm::Ring2d, "use ring or greedy");
    refused(&mesh(2, 2), Algorithm::Tto, "as 0-1,3");
    for topology in [&torus, &line(5), &star(4), &mesh(2, 2)] {
        refused(topology, Algorithm::TwoTreeOverlap, "use greedy");
    }
    let row = mesh(5, 1);
    let why_not = why(&row, &without(&row, 2, 10_007), Algorithm::TwoTreeOverlap);
    assert!(why_not.contains("all NPUs of the line"), "{why_not}");
    let whole = mesh(3, 3);
    let (a, b) = (NpuId(4).device(), NpuId(5).device());
    let links = whole.links_from_to(a, b).to_vec();
    let broken = whole.without(&[], &links).unwrap();
    refused(
        &broken,
        Algorithm::RingBiOdd,
        "there is no link from npu4 to npu5",
    );
}

/// The default number of chunks is where a step more and a smaller chunk cost the same.
#[test]
fn trees_take_as_many_chunks_as_pay() {
    let grid = mesh(8, 8);
    as_many_as_pay((3, 14), |size| {
        default_chunks(Algorithm::Tto, &grid, &without(&grid, 56, size))
    });
    for n in [2, 3, 8, 40] {
        let line = build::line(n, gigabyte(), latency()).unwrap();
        as_many_as_pay((2, n as usize - 1), |size| {
            let collective = among_all(AllReduce, &line, size);
            default_chunks(Algorithm::TwoTreeOverlap, &line, &collective)
        });
    }
}

/// Compares the chunks chosen for some sizes with the best of all.
fn as_many_as_pay((trees, height): (usize, usize), chunks: impl Fn(u64) -> usize) {
    let alpha = latency().as_seconds();
    for size in [1 << 16, 1 << 20, 1 << 24, 1 << 28] {
        let time = |chunks: usize| {
            let step = alpha + size as f64 / trees as f64 / chunks as f64 / 1e9;
            (height + chunks - 1) as f64 * step
        };
        let found = chunks(size);
        let most = fit::<usize, _>(size) / trees / 8_192;
        let best = (1..=most.max(1))
            .min_by(|&a, &b| time(a).total_cmp(&time(b)))
            .unwrap();
        assert!(
            time(found) <= time(best) * 1.001,
            "{size}: {found} chunks, {best} are better"
        );
    }
}
