//! What a report names is what is wrong.

use super::*;
use crate::id::{LinkId, narrow};

/// The first thing wrong with a plan among NPUs in a row.
fn first_of(builder: PlanBuilder, n: usize) -> String {
    match verify(Arc::new(builder.finish()), line(n), &mut Silent) {
        Err(VerifyError::Wrong(report)) => unsent(&report.violations()[0]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_violation_says_what_its_transfer_sends() {
    let mut b = builder(CollectiveKind::ReduceScatter, 3, 1);
    send(&mut b, (0, 2), (1, 0), Op::Reduce, Wait::NOTHING);
    send(&mut b, (0, 1), (9, 0), Op::Copy, Wait::NOTHING);
    let Err(VerifyError::Wrong(report)) = verify(Arc::new(b.finish()), line(3), &mut Silent) else {
        panic!("NPU 9 does not exist");
    };
    let detail = &report.violations()[0].detail;
    assert!(
        detail.ends_with("; transfer 1 copies chunk 0 from NPU 9 to npu0"),
        "{detail}"
    );
}

#[test]
fn a_transfer_that_names_what_is_not_there_says_what_is() {
    let one = |chunk, ends| {
        let mut b = builder(ALL_REDUCE, 2, 3);
        send(&mut b, chunk, ends, Op::Reduce, Wait::NOTHING);
        first_of(b, 2)
    };
    assert_eq!(
        one((0, 1), (2, 0)),
        "unknown_npu, transfer 0, chunk 0, NPU 2: NPU 2 does not exist; NPUs are 0 to 1"
    );
    assert_eq!(
        one((0, 1), (0, 2)),
        "unknown_npu, transfer 0, chunk 0, NPU 0: NPU 2 does not exist; NPUs are 0 to 1"
    );
    assert_eq!(
        one((2, 5), (0, 1)),
        "unknown_chunk, transfer 0, chunk 2, NPU 0: carries chunks 2..7; the plan has chunks 0..3"
    );
}

/// The links between the NPUs named, one after the other.
fn links(topology: &Topology, npus: &[u32]) -> Vec<LinkId> {
    npus.windows(2)
        .map(|ends| {
            let is_it = |link: &LinkId| {
                let link = topology.link(*link);
                (link.src, link.dst) == (NpuId(ends[0]).device(), NpuId(ends[1]).device())
            };
            let all = (0..narrow(topology.links().len())).map(LinkId);
            all.into_iter().find(is_it).expect("they are neighbours")
        })
        .collect()
}

/// A broadcast from NPU 0 to NPU 2, which goes along the links given, and to NPU 1.
fn broadcast_along(path: &[LinkId]) -> PlanBuilder {
    let mut b = builder(CollectiveKind::Broadcast, 3, 1);
    let path = Some(b.path(path));
    b.push(Transfer {
        chunk: ChunkId(0),
        count: 1,
        src: NpuId(0),
        dst: NpuId(2),
        op: Op::Copy,
        wait: Wait::NOTHING,
        path,
    });
    send(&mut b, (0, 1), (0, 1), Op::Copy, Wait::NOTHING);
    b
}

#[test]
fn a_path_leads_on_from_where_it_is_and_never_back() {
    let topology = line(3);
    let wrong = |npus: &[u32], from: usize| {
        let path = &links(&topology, npus)[from..];
        let told = first_of(broadcast_along(path), 3);
        let (place, why) = told.split_once(": ").unwrap();
        assert_eq!(place, "broken_path, transfer 0, chunk 0, NPU 0");
        why.to_owned()
    };
    let right = broadcast_along(&links(&topology, &[0, 1, 2]));
    assert_eq!(codes(right, 3), []);
    assert_eq!(
        wrong(&[0, 1, 2], 1),
        "hop 0 starts at npu1, but the chunk is at npu0"
    );
    assert_eq!(wrong(&[0, 1], 0), "the path ends at npu1, not at npu2");
    assert_eq!(wrong(&[0, 1, 0, 1, 2], 0), "hop 1 comes back to npu0");
    assert_eq!(wrong(&[0, 1, 2, 1, 2], 0), "hop 2 comes back to npu1");
}

#[test]
fn the_chunk_that_is_wrong_is_named_in_every_component() {
    // Chunks 0 to 2 belong to the first of two blocks; each is a component of its own.
    let all_but = |left_out: u32, early: Option<u32>| {
        let mut b = builder(CollectiveKind::Broadcast, 3, 4);
        for chunk in 0..4 {
            let first = send(&mut b, (chunk, 1), (0, 1), Op::Copy, Wait::NOTHING);
            let wait = if early == Some(chunk) {
                Wait::NOTHING
            } else {
                first
            };
            if chunk != left_out {
                send(&mut b, (chunk, 1), (1, 2), Op::Copy, wait);
            }
        }
        b
    };
    let missing = all_but(2, None);
    assert_eq!(
        first_of(missing, 3),
        "missing, chunk 2, NPU 2: never gets it"
    );
    assert_eq!(
        first_of(all_but(9, Some(3)), 3),
        "unordered_read, transfer 7, chunk 3, NPU 1: is sent without waiting for transfer 6, which brings part of it"
    );
}

#[test]
fn what_is_left_of_a_sum_is_told_from_what_is_left_of_nothing() {
    let b = builder(CollectiveKind::Reduce, 3, 1);
    assert_eq!(
        first_of(b, 3),
        "missing, chunk 0, NPU 0: ends without the contributions of NPUs 1, 2"
    );
    let mut b = builder(CollectiveKind::ReduceScatter, 3, 1);
    send(&mut b, (0, 1), (1, 0), Op::Reduce, Wait::NOTHING);
    assert_eq!(
        first_of(b, 3),
        "missing, transfer 0, chunk 0, NPU 0: ends without the contributions of NPU 2"
    );
}
