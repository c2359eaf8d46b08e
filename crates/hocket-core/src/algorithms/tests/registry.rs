//! The table has every algorithm once, in the order of the enum, and says what is so.

use super::*;
use crate::algorithms::registry::{ENTRIES, Heed, Making, entry};
use crate::topology::build;

#[test]
fn the_table_has_every_algorithm_in_the_order_of_the_enum() {
    let planned: Vec<Algorithm> = ENTRIES.iter().filter_map(|each| each.algorithm).collect();
    assert_eq!(planned, Algorithm::ALL);
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.entry().algorithm, Some(algorithm));
        assert_eq!(algorithm.entry().counts_as, Some(algorithm));
        assert!(algorithm.entry().is_compared, "{algorithm}");
    }
    for each in &ENTRIES {
        assert_eq!(entry(each.name).unwrap().name, each.name);
        assert_eq!(ENTRIES.iter().filter(|it| it.name == each.name).count(), 1);
        assert!(!each.summary.is_empty() && !each.kinds.is_empty());
        assert_eq!(each.uses.is_empty(), each.making != Making::Synthesis);
    }
    let error = entry("rign").unwrap_err().to_string();
    assert!(error.contains("\"rign\"") && error.ends_with("greedy, exact, blind, auto"));
}

#[test]
fn those_that_the_core_does_not_plan_are_sized_as_greedy() {
    let names: Vec<&str> = ENTRIES
        .iter()
        .filter(|each| each.algorithm.is_none())
        .map(|each| each.name)
        .collect();
    assert_eq!(names, ["exact", "blind", "auto"]);
    assert_eq!(entry("exact").unwrap().counts_as, Some(Algorithm::Greedy));
    assert_eq!(entry("auto").unwrap().counts_as, None);
    assert!(entry("exact").unwrap().uses.contains(&Heed::Slot));
    assert!(!entry("blind").unwrap().uses.contains(&Heed::Trials));
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
        assert_eq!(made.is_ok(), algorithm.entry().has_schedule, "{algorithm}");
    }
}
