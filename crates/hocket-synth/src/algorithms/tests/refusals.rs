//! What cannot run is refused with the reason and the remedy.

use super::*;
use crate::collective::{CollectiveError, Demand, NpuSet};

fn why(topology: &Topology, collective: &Collective, algorithm: Algorithm) -> String {
    match plan(
        topology,
        collective,
        &PlanOptions::new(algorithm),
        &mut Silent,
    ) {
        Err(PlanError::NotApplicable {
            algorithm: name,
            why,
        }) => {
            assert_eq!(name, algorithm.name());
            why
        }
        other => panic!("{algorithm}: {:?}", other.map(|plan| plan.len())),
    }
}

#[test]
fn names_read_back_and_unknown_ones_get_the_list() {
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
        assert!(!algorithm.summary().is_empty());
    }
    let error = "rings".parse::<Algorithm>().unwrap_err().to_string();
    assert!(error.contains("\"rings\"") && error.contains("ring, bidirectional-ring, direct"));
}

#[test]
fn a_kind_that_is_not_supported_names_those_who_do_it() {
    let topology = fully_connected(4);
    let why = why(
        &topology,
        &among_all(AllToAll, &topology, 64),
        Algorithm::Ring,
    );
    assert_eq!(
        why,
        "it does all-reduce, reduce-scatter, all-gather, not all-to-all; for all-to-all use \
         direct, pairwise, bruck, flows, greedy"
    );
    for kind in CollectiveKind::NAMED {
        assert!(Algorithm::Direct.supports(kind), "{kind}");
    }
    assert_eq!(
        Algorithm::Ring.unsupported(CollectiveKind::Custom),
        "it does all-reduce, reduce-scatter, all-gather, not several groups at once or other demands; \
         for these use steiner, flows, greedy"
    );
}

#[test]
fn two_npus_have_no_bidirectional_ring() {
    let topology = fully_connected(2);
    let why = why(
        &topology,
        &among_all(AllReduce, &topology, 64),
        Algorithm::BidirectionalRing,
    );
    assert!(why.contains("use ring"), "{why}");
}

#[test]
fn hierarchical_needs_all_npus_of_a_product_in_order() {
    let flat = fully_connected(4);
    let reason = why(
        &flat,
        &among_all(AllReduce, &flat, 64),
        Algorithm::Hierarchical,
    );
    assert!(reason.contains("states no dimensions"), "{reason}");
    let grid = product(&[(DimensionKind::Ring, 2), (DimensionKind::Ring, 2)]);
    for npus in [vec![0, 1, 2], vec![0, 2, 1, 3]] {
        let npus = npus.into_iter().map(NpuId).collect();
        let some = Collective::new(AllReduce, npus, 64, None).unwrap();
        let reason = why(&grid, &some, Algorithm::Hierarchical);
        assert!(reason.contains("all NPUs"), "{reason}");
    }
    let mut builder = full_mesh(4);
    builder.dimensions(vec![Dimension {
        kind: DimensionKind::Ring,
        size: 3,
        bandwidth: gigabyte(),
        latency: latency(),
        offload: false,
    }]);
    let odd = builder.finish().unwrap();
    let reason = why(
        &odd,
        &among_all(AllReduce, &odd, 64),
        Algorithm::Hierarchical,
    );
    assert!(reason.contains("do not make up its 4 NPUs"), "{reason}");
}

#[test]
fn those_who_cannot_be_reached_are_named() {
    let mut builder = TopologyBuilder::new("split");
    builder.npus(4);
    let device = |i| NpuId(i).device();
    builder.both_ways(device(0), device(1), gigabyte(), latency());
    builder.link(device(1), device(2), gigabyte(), latency());
    let topology = builder.finish().unwrap();
    let among = |kind, npus: &[u32]| {
        Collective::new(kind, npus.iter().map(|&npu| NpuId(npu)).collect(), 64, None).unwrap()
    };
    let reason = why(&topology, &among(AllReduce, &[0, 1, 3]), Algorithm::Ring);
    assert!(reason.contains("from \"npu0\" to \"npu3\""), "{reason}");
    let reason = why(&topology, &among(AllReduce, &[0, 1, 2]), Algorithm::Ring);
    assert!(reason.contains("from \"npu2\" to \"npu0\""), "{reason}");
    // The root of a broadcast reaches all; nobody has to reach it.
    let broadcast = among(Broadcast, &[0, 1, 2]);
    judged(&topology, &broadcast, Algorithm::Direct, 1);
    let reason = why(&topology, &among(Reduce, &[0, 1, 2]), Algorithm::Direct);
    assert!(reason.contains("from \"npu2\" to \"npu0\""), "{reason}");
}

#[test]
fn those_that_are_cut_off_are_counted_and_the_fewest_named() {
    let cut = |sizes: &[usize]| {
        let mut builder = TopologyBuilder::new("apart");
        builder.npus(sizes.iter().sum());
        let mut first = 0;
        for &size in sizes {
            for at in first + 1..first + size {
                let [from, to] = [at - 1, at].map(crate::id::DeviceId::from);
                builder.link(from, to, gigabyte(), latency());
                builder.link(to, from, gigabyte(), latency());
            }
            first += size;
        }
        let topology = builder.finish().unwrap();
        let why = check_applicable(
            &topology,
            &among_all(AllReduce, &topology, 64),
            Algorithm::Greedy,
        );
        why.expect_err("it is cut").to_string()
    };
    for (sizes, end) in [
        (
            &[4, 1][..],
            "\"npu4\": 1 of 5 NPUs is cut off; join them or leave them out: --failed npu4",
        ),
        (
            &[1, 3, 1],
            "2 of 5 NPUs are cut off; join them or leave them out: --failed npu0 --failed npu4",
        ),
        (
            &[2, 2],
            "2 of 4 NPUs are cut off; join them or leave them out: --failed npu2 --failed npu3",
        ),
        (
            &[12, 11],
            "--failed for each of npu12, npu13, npu14, npu15, npu16, npu17, npu18, npu19 and 3 more",
        ),
    ] {
        let why = cut(sizes);
        assert!(why.ends_with(end), "{why}");
    }
}

#[test]
fn demands_need_only_their_own_ways() {
    // a <-> b -> c, and d by itself: c gets what a holds, and no sum of c's.
    let mut builder = TopologyBuilder::new("apart");
    builder.npus(5);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(NpuId);
    for (from, to) in [(a, b), (b, a), (b, c), (d, e), (e, d)] {
        builder.link(from.device(), to.device(), gigabyte(), latency());
    }
    let apart = builder.finish().unwrap();
    let refused = |reduced, holders: &[NpuId], wanted: &[NpuId]| {
        let set = |npus: &[NpuId]| NpuSet::of(npus.iter().copied());
        let pair = |holder, taker| Demand {
            bytes: 64,
            reduced: false,
            holders: NpuSet::One(holder),
            wanted: NpuSet::One(taker),
        };
        let own = Demand {
            bytes: 64,
            reduced,
            holders: set(holders),
            wanted: set(wanted),
        };
        let demands = vec![pair(d, e), own];
        let collective = Collective::custom([a, b, c, d, e].to_vec(), demands).unwrap();
        let refused = check_applicable(&apart, &collective, Algorithm::Greedy).err();
        refused.map(|why| why.to_string())
    };
    let gap = |from: usize, to: usize| {
        Some(format!(
            "greedy: no path of links leads from \"npu{from}\" to \"npu{to}\"; join them or leave one of \
             them out"
        ))
    };
    assert_eq!(refused(false, &[a], &[b, c]), None);
    assert_eq!(refused(true, &[a, b], &[a, c]), None);
    assert_eq!(refused(false, &[c, b], &[a]), None); // one who holds a copy is enough
    assert_eq!(refused(true, &[b, c], &[a]), gap(2, 0)); // a sum needs all
    assert_eq!(refused(false, &[a], &[c, e]), gap(0, 4));
    assert_eq!(refused(false, &[c, d], &[a]), gap(2, 0));
}

#[test]
fn more_pieces_than_bytes_and_no_pieces_are_refused() {
    let topology = fully_connected(4);
    let collective = among_all(AllReduce, &topology, 10);
    for (chunks, fits) in [(2, true), (3, false), (usize::MAX, false)] {
        let made = plan(
            &topology,
            &collective,
            &options(Algorithm::Ring, chunks),
            &mut Silent,
        );
        match made {
            Ok(_) => assert!(fits),
            Err(error) => {
                assert!(matches!(error, PlanError::TooManyChunks { bytes: 10, .. }));
                assert!(!fits);
            }
        }
    }
    let none = plan(
        &topology,
        &collective,
        &options(Algorithm::Ring, 0),
        &mut Silent,
    );
    assert!(none.unwrap_err().to_string().contains("one or more"));
}

#[test]
fn what_is_too_large_is_refused_before_it_is_tried() {
    let topology = star(60_000);
    for (kind, algorithm) in [
        (AllToAll, Algorithm::Direct),
        (AllToAll, Algorithm::Pairwise),
        (AllReduce, Algorithm::Ring),
    ] {
        let collective = among_all(kind, &topology, 1 << 40);
        let made = plan(
            &topology,
            &collective,
            &PlanOptions::new(algorithm),
            &mut Silent,
        );
        let error = made.unwrap_err();
        assert!(matches!(error, PlanError::TooLarge { .. }), "{error}");
    }
    let collective = among_all(AllReduce, &topology, 1 << 40);
    let made = plan(
        &topology,
        &collective,
        &options(Algorithm::HalvingDoubling, 1 << 20),
        &mut Silent,
    );
    assert!(matches!(made, Err(PlanError::TooLarge { .. })));
}

#[test]
fn an_npu_that_is_not_there_is_named() {
    let topology = fully_connected(3);
    let collective = Collective::new(AllReduce, vec![NpuId(0), NpuId(3)], 8, None).unwrap();
    let made = plan(
        &topology,
        &collective,
        &PlanOptions::new(Algorithm::Ring),
        &mut Silent,
    );
    assert!(matches!(
        made,
        Err(PlanError::Collective(CollectiveError::UnknownNpu { .. }))
    ));
}

#[test]
fn planning_stops_when_it_is_asked_to() {
    struct Refuse;
    impl Progress for Refuse {
        fn report(&mut self, _: &'static str, _: u64, _: u64) -> bool {
            false
        }
    }
    let topology = product(&[(DimensionKind::Line, 24), (DimensionKind::Line, 24)]);
    let collective = among_all(AllGather, &topology, 1 << 24);
    for algorithm in [Algorithm::Direct, Algorithm::Greedy] {
        let made = plan(&topology, &collective, &options(algorithm, 1), &mut Refuse);
        assert_eq!(
            made.err(),
            Some(PlanError::Interrupted(Interrupted)),
            "{algorithm}"
        );
    }
}

#[test]
fn a_schedule_that_does_not_fit_says_what_it_needs() {
    let topology = crate::topology::build::torus(&[4, 4], gigabyte(), latency()).unwrap();
    let collective = among_all(AllReduce, &topology, 1 << 20);
    let given = PlanOptions {
        memory_limit: 10_000,
        ..options(Algorithm::Themis, 64)
    };
    let error = schedule(&topology, &collective, &given, &mut Silent).unwrap_err();
    assert!(
        matches!(error, PlanError::Memory { chunks: 64, .. }),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        "themis: a schedule of 64 chunks, each of 6 steps a pass, needs about 96 KiB of memory, \
         more than the limit of 10 KiB; use fewer chunks"
    );
}
