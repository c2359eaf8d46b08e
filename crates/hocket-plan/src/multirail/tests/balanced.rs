//! The linear program of shares, against solutions by hand and by trying them all.

use super::*;
use crate::id::fit;
use DimensionKind::{FullyConnected, Ring, Switch};

const GIGABYTE: u64 = 1_000_000_000;

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

fn share(balance: &Balance, order: &[u8]) -> f64 {
    let found = balance.shares.iter().find(|(other, _)| other == order);
    found.map_or(0.0, |(_, share)| *share)
}

#[test]
fn two_rails_by_hand() {
    // 4 x 4, 2 : 1. With share x upwards the loads are 3/16 + 9/16 x and 3/4 - 9/16 x; the first is
    // to be twice the second: x = 7/9.
    let rails = rails(&[
        dimension(Switch, 4, 2 * GIGABYTE, 0),
        dimension(Switch, 4, GIGABYTE, 0),
    ]);
    let found = balance(&rails).unwrap();
    assert_near(share(&found, &[0, 1]), 7.0 / 9.0);
    assert_near(share(&found, &[1, 0]), 2.0 / 9.0);
    assert_near(found.loads[0], 10.0 / 16.0);
    assert_near(found.loads[1], 5.0 / 16.0);
    assert_near(found.utilization, 1.0);
    assert_eq!(found.busy(&rails), [true, true]);
}

/// Themis, section 6.3.
#[test]
fn just_enough_bandwidth_is_used_by_the_fixed_order() {
    let rails = rails(&[
        dimension(Switch, 4, 4 * GIGABYTE, 0),
        dimension(Switch, 4, GIGABYTE, 0),
    ]);
    let found = balance(&rails).unwrap();
    assert_near(share(&found, &[0, 1]), 1.0);
    assert_near(found.utilization, 1.0);
}

/// Themis, section 6.3: more bandwidth in the first dimension than P1 times that of the second.
#[test]
fn underprovisioned_bandwidth_leaves_the_first_rail_idle() {
    let rails = rails(&[
        dimension(Switch, 4, 8 * GIGABYTE, 0),
        dimension(Switch, 4, GIGABYTE, 0),
    ]);
    let found = balance(&rails).unwrap();
    assert_near(share(&found, &[0, 1]), 1.0);
    assert_eq!(found.busy(&rails), [false, true]);
    // 15/16 are sent in the time of 3/16 on the second, where 9 x 3/16 could be.
    assert_near(found.utilization, 5.0 / 9.0);
}

#[test]
fn one_rail_is_busy_and_seven_are_too_many() {
    let one = rails(&[dimension(Ring, 5, GIGABYTE, 0)]);
    let found = balance(&one).unwrap();
    assert_eq!((found.shares.len(), found.utilization), (1, 1.0));
    assert_eq!(balance(&[]), None);
    let seven = rails(&[dimension(Ring, 2, GIGABYTE, 0); 7]);
    assert_eq!(balance(&seven), None);
    assert!(balance(&seven[..6]).is_some());
}

#[test]
fn all_bandwidth_of_table_2_can_be_used() {
    for (name, rails) in rails_of_table_2() {
        let found = balance(&rails).unwrap();
        assert!((found.utilization - 1.0).abs() < 1e-6, "{name}: {found:?}");
        assert!(found.busy(&rails).into_iter().all(|busy| busy), "{name}");
        let sent: f64 = found.loads.iter().sum();
        assert!((sent - (1.0 - 1.0 / 1024.0)).abs() < 1e-9, "{name}: {sent}");
        let all: f64 = found.shares.iter().map(|(_, share)| share).sum();
        assert!((all - 1.0).abs() < 1e-9, "{name}: {all}");
        assert!(found.shares.is_sorted_by(|a, b| a.1 >= b.1), "{name}");
    }
}

/// Every way to hand `count` units to `places` places.
fn grid(places: usize, count: u32) -> Vec<Vec<u32>> {
    if places == 1 {
        return vec![vec![count]];
    }
    let with_first = |first| {
        let rest = grid(places - 1, count - first).into_iter();
        rest.map(move |rest| [vec![first], rest].concat())
    };
    (0..=count).flat_map(with_first).collect()
}

#[test]
fn no_shares_on_a_grid_are_better() {
    let kinds = [Ring, Switch, FullyConnected];
    let mut seed = crate::units::Seed(7);
    for case in 0..12 {
        let count = 2 + case % 2;
        let dims: Vec<Dimension> = (0..count)
            .map(|_| {
                let size = [2, 3, 4, 8][seed.below(4)];
                let rate = 1 + seed.below(20) as u64;
                dimension(kinds[seed.below(3)], size, rate * GIGABYTE, 0)
            })
            .collect();
        let rails = rails(&dims);
        let orders = orders(fit(count));
        let time = |balance: &Balance| {
            let times = balance.loads.iter().zip(&rails);
            times
                .map(|(load, rail)| load / rail.bandwidth as f64)
                .fold(0.0, f64::max)
        };
        let best = time(&balance(&rails).unwrap());
        let units = if count == 2 { 1000 } else { 12 };
        for parts in grid(orders.len(), units) {
            let shares = orders.iter().cloned().zip(&parts);
            let shares = shares.map(|(order, &part)| (order, f64::from(part) / f64::from(units)));
            let other = time(&Balance::of(&rails, shares.collect()));
            assert!(best <= other * (1.0 + 1e-9), "{dims:?} {parts:?}");
        }
    }
}
