//! The same input gives the same, on any number of threads.

use super::super::slots::{Clockwork, slot_table};
use super::*;

#[test]
fn slots_do_not_depend_on_threads() {
    let topologies = [
        build::mesh(&[5, 4], gb_per_s(1), Time::from_ns(3_000)).expect("a mesh"),
        build::ring(7, gb_per_s(1), Time::ZERO, build::RingWays::One).expect("a ring"),
    ];
    for topology in topologies {
        let collective = Collective::among_all(CollectiveKind::AllGather, &topology, 1_000_000);
        let unwinding = [Unwinding::Max];
        let latency = LatencyModel::Overlapped;
        let collective = collective.expect("a collective");
        let problem = Problem::new(&topology, &collective, 5, &unwinding, latency, MEMORY);
        let problem = problem.expect("it fits");
        let (network, spread) = (problem.network(), &problem.work().copies.spread);
        let clockwork = Clockwork::of(spread, problem.copy_times()).expect("links are alike");
        let table = |threads| {
            let lag = clockwork.lag;
            let found = slot_table(network, spread, 7, lag, threads, &mut Silent);
            let found = found.expect("not interrupted").expect("all are reached");
            found.timetable(network, clockwork)
        };
        let one = table(1);
        assert_eq!(one.check(network, spread, problem.copy_times()), Ok(()));
        assert!(
            (2..=9).all(|threads| table(threads) == one),
            "{}",
            topology.name()
        );
    }
}

#[test]
fn synthesis_does_the_same_twice() {
    let topology = build::mesh(&[4, 3], gb_per_s(1), Time::from_ns(300)).expect("a mesh");
    for kind in CollectiveKind::NAMED {
        let collective = Collective::among_all(kind, &topology, 100_003).expect("a collective");
        let (none, latency) = ([Unwinding::Degree(1)], LatencyModel::Overlapped);
        let problem = Problem::new(&topology, &collective, 2, &none, latency, MEMORY);
        let problem = problem.expect("it fits");
        let found = || problem.greedy(0, 12, &mut Silent).expect("runs");
        let (one, other) = (found(), found());
        assert_eq!(one.end(), other.end(), "{kind}");
        assert_eq!(
            problem.plan(GREEDY, &one),
            problem.plan(GREEDY, &other),
            "{kind}"
        );
    }
}

#[test]
fn a_network_cut_in_two_is_refused() {
    // Rings of two in both dimensions, of which those of one are gone: alike from every NPU.
    let whole = build::torus(&[2, 2], gb_per_s(1), Time::ZERO).expect("a torus");
    let is_far = |id: &crate::id::LinkId| {
        let link = whole.link(*id);
        link.src.0.abs_diff(link.dst.0) == 2
    };
    let all = || (0..whole.links().len()).map(crate::id::LinkId::from);
    for gone in [all().filter(is_far).collect::<Vec<_>>(), all().collect()] {
        let topology = whole.without(&[], &gone).expect("NPUs are left");
        for kind in CollectiveKind::NAMED {
            let problem = problem(&topology, kind, 1_000, None);
            let refused = problem
                .greedy(0, 4, &mut Silent)
                .expect_err("there is no way");
            assert!(
                refused.to_string().contains("there is no way "),
                "{refused}"
            );
        }
    }
}
