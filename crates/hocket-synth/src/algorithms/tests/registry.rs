//! The table has every algorithm once, and says what is so.

use super::*;
use crate::algorithms::registry::{Origin, SearchOption, entries, entry};
use crate::topology::build;

#[test]
fn the_table_has_every_algorithm_once() {
    let planned: Vec<Algorithm> = entries().filter_map(|each| each.algorithm).collect();
    assert_eq!(planned, Algorithm::ALL);
    for each in entries() {
        let about = each.about;
        assert_eq!(entry(about.name).unwrap().about.name, about.name);
        assert_eq!(
            entries().filter(|it| it.about.name == about.name).count(),
            1
        );
        assert!(!about.summary.is_empty() && !about.kinds.is_empty());
        match about.making {
            Origin::Rule | Origin::Schedule => assert!(about.uses.is_empty(), "{}", about.name),
            // How paths are found may be an option.
            Origin::Routes => {}
            _ => assert!(!about.uses.is_empty(), "{}", about.name),
        }
    }
    let error = entry("rign").unwrap_err().to_string();
    assert!(error.contains("\"rign\"") && error.ends_with("greedy, blind, exact, auto"));
}

#[test]
fn those_that_the_core_does_not_plan_alone_are_sized_as_greedy_or_not_at_all() {
    let others = entries().filter(|each| each.algorithm.is_none());
    let others: Vec<_> = others
        .map(|each| (each.about.name, each.counts_as))
        .collect();
    assert_eq!(others, [("exact", Some(Algorithm::Greedy)), ("auto", None)]);
    assert!(
        entry("exact")
            .unwrap()
            .about
            .uses
            .contains(&SearchOption::Slot)
    );
    assert!(
        !Algorithm::Blind
            .about()
            .uses
            .contains(&SearchOption::Trials)
    );
}

#[test]
fn what_is_said_to_have_a_schedule_makes_one() {
    let dimension = |kind| Dimension {
        kind,
        size: 4,
        bandwidth: gigabyte(),
        latency: latency(),
        offload: false,
    };
    let network = build::product(&[
        dimension(DimensionKind::Ring),
        dimension(DimensionKind::Switch),
    ])
    .unwrap();
    let collective = among_all(AllReduce, &network, 1 << 20);
    for algorithm in Algorithm::ALL {
        let made = schedule(
            &network,
            &collective,
            &PlanOptions::new(algorithm),
            &mut Silent,
        );
        assert_eq!(made.is_ok(), algorithm.has_schedule(), "{algorithm}");
    }
}
