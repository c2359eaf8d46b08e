use super::*;

fn npus(n: u32) -> Vec<NpuId> {
    (0..n).map(NpuId).collect()
}

#[test]
fn no_byte_is_lost() {
    for kind in CollectiveKind::NAMED {
        for size in [1, 7, 1000, 1001] {
            let collective = Collective::new(kind, npus(6), size, None).unwrap();
            let total: u64 = collective.demands().iter().map(|demand| demand.bytes).sum();
            let copies = if kind == CollectiveKind::AllToAll {
                6
            } else {
                1
            };
            assert_eq!(total, copies * size, "{kind}");
        }
    }
}

#[test]
fn kinds_read_back_from_their_names() {
    for kind in CollectiveKind::NAMED {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert!("allreduce".parse::<CollectiveKind>().is_err());
}

#[test]
fn nonsense_is_refused() {
    use CollectiveKind::{AllReduce, Broadcast};
    let few = Collective::new(AllReduce, npus(1), 1, None);
    assert_eq!(few, Err(CollectiveError::TooFewNpus { count: 1 }));
    let twice = Collective::new(AllReduce, vec![NpuId(1), NpuId(0), NpuId(1)], 1, None);
    assert_eq!(twice, Err(CollectiveError::DuplicateNpu { npu: NpuId(1) }));
    let empty = Collective::new(AllReduce, npus(2), 0, None);
    assert_eq!(empty, Err(CollectiveError::ZeroSize));
    for (kind, root) in [(AllReduce, 0), (Broadcast, 2)] {
        let bad = Collective::new(kind, npus(2), 1, Some(Rank(root)));
        assert!(
            matches!(bad, Err(CollectiveError::BadRoot { .. })),
            "{kind}"
        );
    }
    let demand = Demand {
        bytes: 1,
        reduced: false,
        holders: NpuSet::of([]),
        wanted: NpuSet::All,
    };
    let nobody = Collective::custom(npus(2), vec![demand]);
    assert!(matches!(
        nobody,
        Err(CollectiveError::BadDemand { index: 0, .. })
    ));
}

#[test]
fn sizes_that_do_not_add_up_are_refused() {
    let demand = Demand {
        bytes: u64::MAX,
        reduced: false,
        holders: NpuSet::One(NpuId(0)),
        wanted: NpuSet::All,
    };
    let demands = vec![demand.clone(), demand];
    let refused = Collective::custom(npus(2), demands);
    assert!(matches!(
        refused,
        Err(CollectiveError::BadDemand { index: 1, .. })
    ));
}

#[test]
fn blocks_that_together_pass_64_bits_are_refused() {
    let all_to_all = |size| Collective::new(CollectiveKind::AllToAll, npus(4), size, None);
    assert!(all_to_all(u64::MAX / 4).is_ok());
    let refused = all_to_all(u64::MAX / 4 + 1).expect_err("2^64 B in all");
    assert!(
        refused.to_string().contains("make size smaller"),
        "{refused}"
    );
    assert!(Collective::new(CollectiveKind::AllReduce, npus(4), u64::MAX, None).is_ok());
}

#[test]
fn names_are_kept_and_checked() {
    let plain = Collective::new(CollectiveKind::AllReduce, npus(2), 8, None).unwrap();
    assert_eq!(plain.name(), "all-reduce");
    let named = plain.clone().with_name("gradients of layer 3").unwrap();
    assert_eq!(named.name(), "gradients of layer 3");
    assert_eq!(named.kind(), CollectiveKind::AllReduce);
    assert_eq!(named.with_name("all-reduce").unwrap(), plain);
    for bad in ["", "two\nlines"] {
        let refused = plain.clone().with_name(bad);
        assert!(
            matches!(refused, Err(CollectiveError::BadName { .. })),
            "{bad:?}"
        );
    }
}
