mod balanced;
mod bands;
mod greedy;
mod offload;
mod oracle;
mod searched;
mod served;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::networks::{dimension, table_2};
use super::*;
use crate::collective::CollectiveKind;
use crate::topology::{Dimension, DimensionKind, build};
use crate::units::Time;

/// Sizes of the all-reduces, in megabytes.
pub(crate) const SIZES: [u64; 5] = [100, 250, 500, 750, 1000];

/// Their rails.
fn rails_of_table_2() -> [(&'static str, Vec<Rail>); 6] {
    table_2().map(|(name, topology)| (name, Rail::of(&topology)))
}

/// So many cases of a property, the same on every run; `PROPTEST_CASES` asks for that many new
/// ones.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig::with_cases(cases);
    match std::env::var("PROPTEST_CASES").map(|cases| cases.parse()) {
        Ok(Ok(cases)) => config.cases = cases,
        _ => config.rng_seed = RngSeed::Fixed(1),
    }
    config.failure_persistence = None;
    config
}

/// The rails of dimensions.
fn rails(dimensions: &[Dimension]) -> Vec<Rail> {
    Rail::of(&build::product(dimensions).unwrap())
}

/// The share of all rails' bandwidth that an all-reduce of so many bytes makes use of.
///
/// # Source
/// Themis, figure 4: the average over the dimensions, weighted by their bandwidth.
fn utilization(rails: &[Rail], bytes: u64, ps: u64) -> f64 {
    let npus: f64 = rails.iter().map(|rail| f64::from(rail.size)).product();
    let bandwidth: f64 = rails.iter().map(|rail| rail.bandwidth as f64).sum();
    2.0 * bytes as f64 * (1.0 - 1.0 / npus) / (bandwidth * ps as f64 * 1e-12)
}

/// All orders of so many rails.
pub(crate) fn orders(count: u8) -> Vec<Vec<u8>> {
    match count {
        0 => vec![Vec::new()],
        _ => {
            let shorter = orders(count - 1).into_iter();
            let with_last = |order: Vec<u8>| {
                (0..=order.len()).map(move |at| [&order[..at], &[count - 1], &order[at..]].concat())
            };
            shorter.flat_map(with_last).collect()
        }
    }
}

#[test]
fn rails_leave_out_dimensions_of_one_npu() {
    let gigabyte = 1_000_000_000;
    let found = rails(&[
        dimension(DimensionKind::Ring, 1, gigabyte, 10),
        dimension(DimensionKind::Ring, 4, gigabyte, 10),
        dimension(DimensionKind::Switch, 1, gigabyte, 10),
        dimension(DimensionKind::Switch, 4, gigabyte, 10),
        dimension(DimensionKind::FullyConnected, 5, gigabyte, 10),
        dimension(DimensionKind::Ring, 2, gigabyte, 10),
    ]);
    let seen: Vec<_> = found
        .iter()
        .map(|rail| {
            let delay = rail.fixed_delay().as_ps();
            (
                rail.dimension,
                rail.bandwidth / gigabyte,
                rail.step_count(),
                delay,
            )
        })
        .collect();
    // Both ways round the ring; a switch is two links on; a link to each of four neighbours.
    assert_eq!(
        seen,
        [(1, 2, 3, 30), (3, 1, 2, 40), (4, 4, 1, 10), (5, 1, 1, 10)]
    );
    assert!(found.iter().all(|rail| {
        let size = f64::from(rail.size);
        rail.share() == (size - 1.0) / size
    }));
}
