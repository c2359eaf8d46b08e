//! Switches that sum and multicast: what they may do, and what is refused and why.

use super::*;
use crate::id::DeviceId;
use crate::topology::Offload;

/// The switch of a [`star`] of three NPUs.
const CORE: u32 = 3;

const NOTHING: Offload = Offload {
    sums: false,
    multicasts: false,
    all_reduces: false,
    ..Offload::FULL
};

/// Three NPUs around one switch.
fn star(offload: Option<Offload>) -> Arc<Topology> {
    let mut builder = TopologyBuilder::new("star");
    builder.npus(3);
    let core = builder.switch("core", None);
    (0..3).for_each(|i| builder.both_ways(DeviceId(i), core, bandwidth(), Time::ZERO));
    builder.offload(core, offload);
    Arc::new(builder.finish().unwrap())
}

fn verdict(plan: PlanBuilder, offload: Option<Offload>) -> Result<Verified, String> {
    verify(Arc::new(plan.finish()), star(offload), &mut Silent).map_err(|error| match error {
        VerifyError::Wrong(report) => unsent(&report.violations()[0]),
        other => other.to_string(),
    })
}

/// Everybody's data into the switch, whose sum goes to everybody.
fn sum_and_multicast() -> PlanBuilder {
    let mut b = builder(ALL_REDUCE, 3, 1);
    let up = |b: &mut PlanBuilder, npu| send(b, (0, 1), (npu, CORE), Op::Reduce, Wait::NOTHING);
    let ups = [up(&mut b, 0), up(&mut b, 1), up(&mut b, 2)];
    let all = b.all_of(&ups);
    (0..3).for_each(|npu| {
        send(&mut b, (0, 1), (CORE, npu), Op::Copy, all);
    });
    b
}

/// The data of two into the switch, for the third, which sends the sum back for the switch to multicast.
fn sum_for_one_and_multicast_for_one() -> PlanBuilder {
    let mut b = builder(ALL_REDUCE, 3, 1);
    let up = |b: &mut PlanBuilder, npu| send(b, (0, 1), (npu, CORE), Op::Reduce, Wait::NOTHING);
    let ups = [up(&mut b, 1), up(&mut b, 2)];
    let both = b.all_of(&ups);
    let whole = send(&mut b, (0, 1), (CORE, 0), Op::Reduce, both);
    let back = send(&mut b, (0, 1), (0, CORE), Op::Copy, whole);
    (1..3).for_each(|npu| {
        send(&mut b, (0, 1), (CORE, npu), Op::Copy, back);
    });
    b
}

#[test]
fn a_switch_does_what_it_can_and_no_more() {
    let can = |sums, multicasts, all_reduces| {
        Some(Offload {
            sums,
            multicasts,
            all_reduces,
            ..NOTHING
        })
    };
    assert!(verdict(sum_and_multicast(), can(false, false, true)).is_ok());
    assert_eq!(
        verdict(sum_and_multicast(), can(true, true, false)).unwrap_err(),
        "switch_cannot, transfer 4, chunk 0: switch core cannot multicast its own sum (all-reduce); it can sum, multicast"
    );
    assert!(verdict(sum_for_one_and_multicast_for_one(), can(true, true, false)).is_ok());
    assert!(verdict(sum_for_one_and_multicast_for_one(), can(false, false, true)).is_ok());
    assert_eq!(
        verdict(sum_for_one_and_multicast_for_one(), can(false, true, false)).unwrap_err(),
        "switch_cannot, transfer 1, chunk 0: switch core cannot sum; it can multicast"
    );
    assert_eq!(
        verdict(sum_for_one_and_multicast_for_one(), can(true, false, false)).unwrap_err(),
        "switch_cannot, transfer 5, chunk 0: switch core cannot multicast; it can sum"
    );
}

#[test]
fn no_transfer_ends_at_a_switch_that_only_forwards() {
    assert_eq!(
        verdict(sum_and_multicast(), None).unwrap_err(),
        "switch_cannot, transfer 0, chunk 0, NPU 0: switch core only forwards, so that no transfer ends or starts \
         there; let transfers pass it, or say in the topology what it can do (offload)"
    );
}

#[test]
fn trees_are_counted_by_whom_a_switch_exchanges_a_chunk_with() {
    // Two chunks through all three NPUs are one tree; a broadcast of one to another is a second one.
    let plan = |second: bool| {
        let mut b = builder(CollectiveKind::Broadcast, 3, 2);
        for chunk in 0..2 {
            let came = send(&mut b, (chunk, 1), (0, CORE), Op::Copy, Wait::NOTHING);
            let first = send(&mut b, (chunk, 1), (CORE, 1), Op::Copy, came);
            match second && chunk == 1 {
                true => send(&mut b, (chunk, 1), (1, 2), Op::Copy, first),
                false => send(&mut b, (chunk, 1), (CORE, 2), Op::Copy, came),
            };
        }
        b
    };
    let one = Some(Offload {
        trees: Some(1),
        ..Offload::FULL
    });
    assert!(verdict(plan(false), one).is_ok());
    assert!(verdict(plan(true), Some(Offload::FULL)).is_ok());
    assert_eq!(
        verdict(plan(true), one).unwrap_err(),
        "switch_cannot: switch core is in 2 trees, sets of devices with which it exchanges one chunk; it has room for 1"
    );
}

#[test]
fn what_a_switch_has_sent_on_it_keeps_no_longer() {
    // NPU 1's data passes the switch; then NPU 2's, which is not added to it.
    let plan = |extra: bool| {
        let mut b = builder(CollectiveKind::Reduce, 3, 1);
        let one = send(&mut b, (0, 1), (1, CORE), Op::Reduce, Wait::NOTHING);
        let first = send(&mut b, (0, 1), (CORE, 0), Op::Reduce, one);
        let two = send(&mut b, (0, 1), (2, CORE), Op::Reduce, first);
        let second = send(&mut b, (0, 1), (CORE, 0), Op::Reduce, two);
        if extra {
            send(&mut b, (0, 1), (CORE, 0), Op::Reduce, second);
        }
        b
    };
    assert!(verdict(plan(false), Some(Offload::FULL)).is_ok());
    let wrong = verdict(plan(true), Some(Offload::FULL)).unwrap_err();
    assert!(wrong.starts_with("counted_twice, transfer 4"), "{wrong}");
}

#[test]
fn a_switch_must_hold_what_it_sends_and_does_not_sum_what_is_not_summed() {
    let mut b = builder(CollectiveKind::Broadcast, 3, 1);
    send(&mut b, (0, 1), (CORE, 1), Op::Copy, Wait::NOTHING);
    assert_eq!(
        verdict(b, Some(Offload::FULL)).unwrap_err(),
        "sent_before_held, transfer 0, chunk 0: switch core sends it before it holds it"
    );
    let mut b = builder(CollectiveKind::Broadcast, 3, 1);
    send(&mut b, (0, 1), (0, CORE), Op::Reduce, Wait::NOTHING);
    assert_eq!(
        verdict(b, Some(Offload::FULL)).unwrap_err(),
        "reduce_into_nothing, transfer 0, chunk 0: switch core holds nothing to add to; copy instead"
    );
    let mut b = builder(ALL_REDUCE, 3, 1);
    send(&mut b, (0, 1), (CORE, CORE), Op::Copy, Wait::NOTHING);
    let wrong = verdict(b, Some(Offload::FULL)).unwrap_err();
    assert!(wrong.ends_with("switch core sends to itself"), "{wrong}");
}

#[test]
fn a_network_says_what_is_wrong_with_a_property() {
    let topology = Topology::clone(&star(None));
    let refused = |device, offload| {
        let found = topology
            .clone()
            .with_offload(DeviceId(device), Some(offload));
        found.unwrap_err().to_string()
    };
    assert_eq!(
        refused(0, Offload::FULL),
        "offload of \"npu0\": is an NPU; offload is for switches"
    );
    assert_eq!(
        refused(4, Offload::FULL),
        "offload of device 4: is not in the topology; name one of its switches"
    );
    assert_eq!(
        refused(CORE, NOTHING),
        "offload of \"core\": has no operation; give it sum, multicast or all-reduce, or leave offload out"
    );
    let none = Offload {
        trees: Some(0),
        ..Offload::FULL
    };
    assert_eq!(
        refused(CORE, none),
        "offload of \"core\": has 0 trees; give it one at least, or leave trees out"
    );
    let full = topology
        .with_offload(DeviceId(CORE), Some(Offload::FULL))
        .unwrap();
    assert_eq!((full.has_offload(), full.end_count()), (true, 4));
    let less = full.without(&[DeviceId(1)], &[]).unwrap();
    assert_eq!(
        less.offload(DeviceId(2)),
        Some(&Offload::FULL),
        "it closes up"
    );
    let plain = full.with_offload(DeviceId(CORE), None).unwrap();
    assert_eq!((plain.has_offload(), plain.end_count()), (false, 3));
}
