//! The choice is the quickest as simulated, the same however it is asked for, and stops when told to.

use super::*;
use crate::algorithms::{Algorithm, PlanOptions, plan};
use crate::collective::CollectiveKind;
use crate::plan::Routing;
use crate::progress::Silent;
use crate::synthesis::Unwinding;
use crate::topology::{Dimension, DimensionKind, build};
use crate::units::{Bandwidth, Time};

fn gb_per_s(giga: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(giga * 1_000_000_000).expect("positive")
}

fn switches(sizes: &[u32]) -> Arc<Topology> {
    let dimension = |&size: &u32| Dimension {
        kind: DimensionKind::Switch,
        size,
        bandwidth: gb_per_s(u64::from(size)),
        latency: Time::from_ns(700),
        offload: false,
    };
    let dimensions: Vec<Dimension> = sizes.iter().map(dimension).collect();
    Arc::new(build::product(&dimensions).expect("a product"))
}

/// Networks whose switches can be unwound in several ways, and one with equal paths.
fn networks() -> Vec<Arc<Topology>> {
    let clos = build::fat_tree(4, gb_per_s(10), Time::from_ns(500)).expect("a fat tree");
    vec![switches(&[5]), switches(&[3, 4]), Arc::new(clos)]
}

fn collective(kind: CollectiveKind, topology: &Topology) -> Collective {
    Collective::among_all(kind, topology, 1_000_003).expect("a collective")
}

fn time(candidate: &Candidate) -> Time {
    candidate.ending(&mut Silent).expect("it runs").time
}

fn few() -> SynthesisOptions {
    SynthesisOptions {
        trials: 6,
        ..SynthesisOptions::default()
    }
}

#[test]
fn the_quickest_of_all_unwindings_is_kept() {
    for topology in networks() {
        for kind in [CollectiveKind::AllGather, CollectiveKind::AllReduce] {
            let collective = collective(kind, &topology);
            let make = |options: &SynthesisOptions| {
                let method = Method::Greedy;
                synthesize(&topology, &collective, 1, method, options, &mut Silent).expect("runs")
            };
            let best = make(&few());
            let single = |unwinding: Vec<Unwinding>| {
                let one = SynthesisOptions { unwinding, ..few() };
                time(&make(&one))
            };
            let least = unwindings(&topology).into_iter().map(single).min();
            assert_eq!(Some(time(&best)), least, "{kind} on {}", topology.name());
            assert!(best.proof().is_some(), "it was simulated, so it is proved");
        }
    }
}

#[test]
fn greedy_by_name_is_the_same_plan() {
    for topology in networks() {
        for routing in [Routing::Balanced, Routing::Single] {
            let collective = collective(CollectiveKind::AllGather, &topology);
            let options = PlanOptions {
                chunks: Some(2),
                seed: 7,
                routing,
                ..PlanOptions::new(Algorithm::Greedy)
            };
            let named = plan(&topology, &collective, &options, &mut Silent).expect("runs");
            let seeded = SynthesisOptions {
                seed: 7,
                ..SynthesisOptions::default()
            };
            let made = synthesize(
                &topology,
                &collective,
                2,
                Method::Greedy,
                &seeded,
                &mut Silent,
            );
            let made = made.and_then(|made| made.routed(routing, &mut Silent));
            assert_eq!(made.expect("runs").plan().as_ref(), &named);
        }
    }
}

#[test]
fn spread_only_where_no_slower() {
    let topology = networks().pop().expect("the fat tree");
    for kind in [CollectiveKind::AllGather, CollectiveKind::AllToAll] {
        let collective = collective(kind, &topology);
        let make = || {
            let method = Method::Greedy;
            synthesize(&topology, &collective, 1, method, &few(), &mut Silent).expect("runs")
        };
        let spread = |routing| make().routed(routing, &mut Silent).expect("runs");
        let (planned, balanced) = (make(), spread(Routing::Balanced));
        assert!(time(&balanced) <= time(&planned));
        assert_eq!(spread(Routing::Single).plan(), planned.plan());
        let sprayed = spread(Routing::Spray);
        assert_eq!(sprayed.plan().routing(), Routing::Spray);
        assert!(!sprayed.is_simulated());
        assert_eq!(time(&sprayed), time(&planned));
    }
}

/// Stops at the first report of a stage, and from then on.
struct StopAt(&'static str, bool);

impl Progress for StopAt {
    fn report(&mut self, stage: &'static str, _: u64, _: u64) -> bool {
        self.1 |= stage == self.0;
        !self.1
    }
}

#[test]
fn what_is_found_by_the_time_it_is_stopped_counts() {
    let topology = switches(&[5]);
    let collective = collective(CollectiveKind::AllGather, &topology);
    let find = |progress: &mut dyn Progress| {
        Candidates::find(&topology, &collective, 1, Method::Greedy, &few(), progress)
    };
    let all = find(&mut Silent).expect("runs").0.len();
    assert_eq!(all, unwindings(&topology).len());
    let mut stop = StopAt("unwinding", false);
    let found = find(&mut stop).expect("the first unwinding has a plan");
    assert_eq!(found.0.len(), 1);
    let best = found.quickest(&mut stop).expect("one is left");
    assert_eq!(best.unwinding(), unwindings(&topology)[0]);
    // Without a plan there is nothing to give.
    let mut stop = StopAt("synthesizing", false);
    let found = synthesize(&topology, &collective, 1, Method::Greedy, &few(), &mut stop);
    assert!(matches!(found, Ok(_) | Err(PlanError::Interrupted(_))));
}

#[test]
fn who_is_cut_off_is_told() {
    let whole = build::ring(4, gb_per_s(1), Time::ZERO, build::RingWays::One).expect("a ring");
    let cut = whole
        .without(&[], &[crate::id::LinkId(0)])
        .expect("a network");
    let collective = collective(CollectiveKind::AllGather, &cut);
    let (cut, method) = (Arc::new(cut), Method::Blind);
    let found = synthesize(&cut, &collective, 1, method, &few(), &mut Silent);
    assert!(matches!(found, Err(PlanError::NotApplicable { .. })));
}
