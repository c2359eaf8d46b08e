//! Closed forms of the algorithms for meshes, counted in steps as Laskar et al. do: a link is held until its
//! message has arrived, alpha + beta(n).

use std::sync::Arc;

use hocket_core::algorithms::{self, Algorithm, PlanOptions};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::fit;
use hocket_core::progress::Silent;
use hocket_core::simulate::{LatencyModel, SimulateOptions};
use hocket_core::topology::{Topology, build};

use crate::run::{Link, time_of, time_of_plan};

const LINK: Link = Link {
    rate: 25_000_000_000,
    alpha: 21_000,
};
const PART: u64 = 32_768;

fn mesh(columns: u32, rows: u32) -> Arc<Topology> {
    let mesh = build::mesh(&[columns, rows], LINK.bandwidth(), LINK.latency());
    Arc::new(mesh.expect("a mesh"))
}

fn occupying() -> SimulateOptions {
    SimulateOptions {
        latency: LatencyModel::Occupying,
        ..SimulateOptions::default()
    }
}

fn steps(picoseconds: u64, bytes: u64) -> f64 {
    picoseconds as f64 / (LINK.alpha + LINK.beta(bytes)) as f64
}

/// All but the bottom left corner, `chunks` chunks of three parts.
fn tto_steps(algorithm: Algorithm, (columns, rows): (u32, u32), chunks: usize) -> f64 {
    let topology = mesh(columns, rows);
    let corner = columns * (rows - 1);
    let npus = topology.npus().filter(|npu| npu.0 != corner).collect();
    let size = 3 * chunks as u64 * PART;
    let collective = Collective::new(CollectiveKind::AllReduce, npus, size, None);
    let options = PlanOptions {
        chunks: Some(chunks),
        ..PlanOptions::new(algorithm)
    };
    let plan = algorithms::plan(
        &topology,
        &collective.expect("all-reduce"),
        &options,
        &mut Silent,
    );
    let time = time_of_plan(plan.expect("a plan"), &topology, &occupying());
    steps(time, PART)
}

/// 2 (N - 1) (section IV-B).
#[test]
fn ring_bi_odd() {
    for (columns, rows) in [(3, 3), (5, 3), (5, 5), (7, 5), (9, 9)] {
        let topology = mesh(columns, rows);
        let ring = u64::from(columns * rows - 1);
        let kind = CollectiveKind::AllReduce;
        for chunks in [1, 3] {
            let size = chunks * 2 * ring * PART;
            let count: usize = fit(chunks);
            let time = time_of(
                &topology,
                kind,
                size,
                Algorithm::RingBiOdd,
                count,
                &occupying(),
            );
            let (found, alone) = (steps(time, PART), 2.0 * ring as f64);
            match chunks {
                1 => assert_eq!(found, alone, "{columns} x {rows}"),
                _ => assert!(
                    found <= chunks as f64 * alone,
                    "{columns} x {rows}: {found}"
                ),
            }
        }
    }
}

/// 2 (H + C - 1) with H = columns + rows - 2 (section V-C).
#[test]
fn tto() {
    for (columns, rows) in [(2, 2), (3, 3), (4, 4), (5, 3), (3, 6), (8, 8)] {
        for chunks in [1, 2, 5, 30] {
            let height = (columns + rows - 2) as usize;
            let found = tto_steps(Algorithm::Tto, (columns, rows), chunks);
            assert_eq!(
                found,
                (2 * (height + chunks - 1)) as f64,
                "{columns} x {rows}, {chunks}"
            );
        }
    }
}

/// Figure 7: a pass of 5 chunks on 3 x 3 takes TTO 24 steps of a ninth of a chunk, latency apart; it sends thirds.
#[test]
fn tto_on_3_by_3_with_5_chunks() {
    assert_eq!(tto_steps(Algorithm::Tto, (3, 3), 5) / 2.0 * 3.0, 24.0);
}

/// All-reduce of `chunks` chunks of two parts on a line of `n`.
fn two_tree_steps(n: u32, chunks: usize) -> f64 {
    let line = build::line(n, LINK.bandwidth(), LINK.latency()).expect("a line");
    let time = time_of(
        &Arc::new(line),
        CollectiveKind::AllReduce,
        2 * chunks as u64 * PART,
        Algorithm::TwoTreeOverlap,
        chunks,
        &occupying(),
    );
    steps(time, PART)
}

/// 2 (H + C - 1) with H = n - 1 (section V-A).
#[test]
fn two_trees_on_a_line() {
    for n in [2, 3, 4, 5, 8, 32] {
        for chunks in [1, 2, 5, 30] {
            let expected = 2 * (n as usize - 1 + chunks - 1);
            assert_eq!(two_tree_steps(n, chunks), expected as f64, "{n}, {chunks}");
        }
    }
}

/// Figure 5, in steps of a quarter of a chunk without latency: a pass of 5 chunks on a line of 4 takes two trees
/// 2 (3 + 5 - 1) = 14, since they send halves, and MultiTree 15.
#[test]
fn two_trees_and_all_trees_with_5_chunks_on_a_line_of_4() {
    let link = Link { alpha: 0, ..LINK };
    let line = build::line(4, link.bandwidth(), link.latency()).expect("a line");
    let line = Arc::new(line);
    let quarters = |kind, algorithm| {
        let time = time_of(&line, kind, 5 * 4 * PART, algorithm, 5, &occupying());
        time as f64 / link.beta(PART) as f64
    };
    let both = quarters(CollectiveKind::AllReduce, Algorithm::TwoTreeOverlap);
    assert_eq!(both / 2.0, 14.0);
    let pass = quarters(CollectiveKind::ReduceScatter, Algorithm::MultiTree);
    assert_eq!(pass, 15.0);
}

/// A chunk's way down beside others' way up is never later, and with many chunks earlier.
#[test]
fn tto_overlapped() {
    for sides in [(3, 3), (4, 4), (8, 8)] {
        for chunks in [1, 5, 30] {
            let found = tto_steps(Algorithm::TtoOverlapped, sides, chunks);
            assert!(
                found <= tto_steps(Algorithm::Tto, sides, chunks),
                "{sides:?}, {chunks}"
            );
        }
    }
}

/// Figure 7: MultiTree's trees on 3 x 3 take 6 steps a pass, 30 with 5 chunks; figure 4: those on a line of 4 take 3, 15
/// with 5 chunks. Fewer than 8 and 12 no trees can take on 4 x 4 and 5 x 5: a corner has two links for N - 1 blocks.
#[test]
fn multitree() {
    let sizes: [(&[u32], u64); 4] = [(&[3, 3], 6), (&[4, 4], 8), (&[5, 5], 12), (&[4], 3)];
    for (sides, expected) in sizes {
        let topology = build::mesh(sides, LINK.bandwidth(), LINK.latency()).expect("a mesh");
        let topology = Arc::new(topology);
        let n = topology.npu_count() as u64;
        for (kind, passes) in [
            (CollectiveKind::AllReduce, 2),
            (CollectiveKind::ReduceScatter, 1),
        ] {
            let time = |chunks: u64| {
                let size = n * chunks * PART;
                let chunks: usize = fit(chunks);
                steps(
                    time_of(
                        &topology,
                        kind,
                        size,
                        Algorithm::MultiTree,
                        chunks,
                        &occupying(),
                    ),
                    PART,
                )
            };
            assert_eq!(time(1), (passes * expected) as f64, "{sides:?} {kind}");
            if kind == CollectiveKind::ReduceScatter {
                assert_eq!(time(5), (5 * expected) as f64, "{sides:?}");
            }
        }
    }
}

/// 2 (n - 1) (alpha + beta(D / 2n)) + 2 (n - 1) (alpha + beta(D / 2nn)) on a torus of n x n: both halves at once, on
/// links of their own.
#[test]
fn ring_2d_on_a_torus() {
    for n in [3, 4, 5, 8] {
        let torus = build::torus(&[n, n], LINK.bandwidth(), LINK.latency()).expect("a torus");
        let kind = CollectiveKind::AllReduce;
        let n = u64::from(n);
        let size = 2 * n * n * PART;
        let time = time_of(
            &Arc::new(torus),
            kind,
            size,
            Algorithm::Ring2d,
            1,
            &occupying(),
        );
        let pass = |bytes| (n - 1) * (LINK.alpha + LINK.beta(bytes));
        assert_eq!(time, 2 * (pass(n * PART) + pass(PART)), "{n}");
    }
}
