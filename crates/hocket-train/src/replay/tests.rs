use proptest::prelude::*;

use super::*;
use crate::id::narrow;
use crate::progress::Silent;
use crate::trace::{Groups, Names};
use crate::units::Time;

const RATES: Rates = Rates {
    operations: 1_000,
    bytes: Some(10),
};

/// A row: its rank, kind, recorded time, and what it waits for.
type Row<'a> = (NodeKind, u64, &'a [u32]);

/// A trace of ranks whose rows have neither calls nor messages yet.
fn trace(ranks: &[&[Row<'_>]]) -> Trace {
    let mut made = Trace {
        rank_first: vec![0],
        dependency_first: vec![0],
        ..Trace::default()
    };
    for &(kind, time, deps) in ranks.iter().copied().flatten() {
        made.id.push(100 + made.kind.len() as u64);
        made.kind.push(kind);
        made.duration.push(Time::from_ps(time));
        made.dependencies.extend(deps);
        made.dependency_first.push(narrow(made.dependencies.len()));
    }
    for rows in ranks {
        let last = made.rank_first[made.rank_first.len() - 1];
        made.rank_first.push(last + narrow(rows.len()));
    }
    let rows = made.kind.len();
    made.operations = vec![0; rows];
    made.tensor_bytes = vec![0; rows];
    made.is_cpu = vec![0; rows];
    made.bytes = vec![0; rows];
    made.peer = vec![NONE; rows];
    made.call = vec![NONE; rows];
    made.partner = vec![NONE; rows];
    made.priority = vec![0; rows];
    made.names = Names {
        text: "name".to_owned(),
        first: vec![0, 4],
        of: vec![0; rows],
    };
    made.groups = Groups {
        id: vec![0],
        first: vec![0, narrow(ranks.len())],
        ranks: (0..narrow(ranks.len())).collect(),
    };
    made.calls.first.push(0);
    made
}

fn group(trace: &mut Trace, ranks: &[u32]) {
    trace.groups.id.push(trace.groups.id.len() as u64);
    trace.groups.ranks.extend(ranks);
    trace.groups.first.push(narrow(trace.groups.ranks.len()));
}

fn call(trace: &mut Trace, group: u32, size: u64, nodes: &[u32]) {
    let number = narrow(trace.calls.len());
    trace.calls.kind.push(CallKind::AllReduce);
    trace.calls.group.push(group);
    trace.calls.size.push(size);
    trace.calls.nodes.extend(nodes);
    trace.calls.first.push(narrow(trace.calls.nodes.len()));
    for &node in nodes {
        trace.call[node as usize] = number;
    }
}

fn message(trace: &mut Trace, from: u32, to: u32, bytes: u64) {
    for (one, other) in [(from, to), (to, from)] {
        trace.peer[one as usize] = trace.rank_of(other);
        trace.partner[one as usize] = other;
        trace.bytes[one as usize] = bytes;
    }
}

fn run(trace: &Trace, times: &[u64]) -> Result<Outcome, ReplayError> {
    let shapes: Vec<Shape> = times
        .iter()
        .map(|&time| Shape::timed(time, 0).unwrap())
        .collect();
    let shape_of: Vec<u32> = (0..narrow(times.len())).collect();
    let replay = Replay::new(trace, RATES);
    let ran = replay.run(trace, &shape_of, &shapes, Order::Fifo, &mut Silent);
    ran.map(|(_, outcome)| outcome)
}

use NodeKind::{Collective, Compute, MemoryLoad, Metadata, Receive, Send};

#[test]
fn times_are_recorded_or_follow_from_rates() {
    let mut made = trace(&[&[
        (Compute, 7, &[]),
        (Compute, 0, &[]),
        (Compute, 0, &[]),
        (MemoryLoad, 0, &[]),
        (Metadata, 9, &[]),
        (Collective, 5, &[]),
    ]]);
    made.operations[..3].fill(3);
    made.tensor_bytes[2..4].fill(1);
    made.is_cpu[1] = 1;
    let nodes = Replay::new(&made, RATES).graph.nodes;
    let second = 1_000_000_000_000;
    let wanted = [7, 3 * second / 1_000, second / 10, second / 10, 0, 5];
    assert_eq!(nodes.time_ps, wanted);
    assert_eq!(nodes.engine, [0, 1, 0, 1, 2, 2]);
    assert_eq!(at_rate(1, 3), 333_333_333_334);
    assert_eq!(at_rate(u64::MAX, 1), u64::MAX);
}

#[test]
fn ranks_of_the_same_calls_share_a_station() {
    let rows: &[Row<'_>] = &[(Collective, 0, &[])];
    let mut made = trace(&[rows; 5]);
    group(&mut made, &[0, 1]);
    group(&mut made, &[2, 3, 4]);
    group(&mut made, &[1, 2]);
    call(&mut made, 1, 8, &[0, 1]);
    call(&mut made, 2, 8, &[2, 3, 4]);
    assert_eq!(stations(&made), [0, 0, 2, 2, 2]);
    made.kind[3] = Send;
    assert_eq!(stations(&made), [0, 0, 2, 3, 2]);
    made.calls.group[1] = 3;
    assert_eq!(stations(&made), [0, 1, 2, 3, 4]);
}

#[test]
fn each_distinct_call_is_there_once() {
    let ranks: &[Row<'_>] = &[(Collective, 0, &[]), (Collective, 0, &[0]), (Send, 0, &[])];
    let other: &[Row<'_>] = &[
        (Collective, 0, &[]),
        (Collective, 0, &[]),
        (Receive, 0, &[]),
    ];
    let mut made = trace(&[ranks, other]);
    call(&mut made, 0, 8, &[0, 3]);
    call(&mut made, 0, 8, &[1, 4]);
    message(&mut made, 2, 5, 64);
    made.priority[4] = 3;
    let replay = Replay::new(&made, RATES);
    assert_eq!(replay.collectives.size, [8]);
    let messages = &replay.messages;
    assert_eq!((&messages.source, &messages.target), (&vec![0], &vec![1]));
    assert_eq!(messages.size, [64]);
    let calls = &replay.graph.calls;
    assert_eq!(calls.shape, [0, 0, 1]);
    assert_eq!(calls.starters, [2, 2, 1]);
    assert_eq!(calls.members, [0, 3, 1, 4, 2, 5]);
    assert_eq!(calls.priority, [u32::MAX, u32::MAX - 3, u32::MAX]);
    assert_eq!(replay.graph.nodes.call, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn a_message_begins_with_its_sender_and_ends_with_its_receiver() {
    let mut made = trace(&[
        &[(Compute, 10, &[]), (Send, 0, &[0])],
        &[(Receive, 0, &[]), (Compute, 5, &[2])],
    ]);
    message(&mut made, 1, 2, 64);
    let outcome = run(&made, &[100]).unwrap();
    assert_eq!(outcome.end_ps, [10, 110, 110, 115]);
    assert_eq!(outcome.call_start_ps, [10]);
}

#[test]
fn ranks_that_wait_for_each_other_are_named() {
    let mut made = trace(&[
        &[
            (Collective, 0, &[]),
            (Collective, 0, &[0]),
            (Compute, 1, &[1]),
        ],
        &[(Collective, 0, &[]), (Collective, 0, &[3])],
    ]);
    call(&mut made, 0, 8, &[0, 4]);
    call(&mut made, 0, 8, &[1, 3]);
    let error = run(&made, &[1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rank 0: node 100 \"name\" never ends: it waits for node 104 \"name\" of rank 1, which never \
         starts; ranks wait for each other: check the order of their calls"
    );
}

#[test]
fn shapes_that_are_missing_are_refused() {
    let mut made = trace(&[&[(Collective, 0, &[])]]);
    call(&mut made, 0, 8, &[0]);
    let error = run(&made, &[]).unwrap_err().to_string();
    assert_eq!(error, "shape_of has 0 entries; it needs 1");
}

/// Six ranks: each step is a call of all, of halves, of thirds, of one half or of one third.
fn in_groups(steps: &[(u8, u64)]) -> Trace {
    let groups: [&[u32]; 5] = [&[0, 1, 2], &[3, 4, 5], &[0, 1], &[2, 3], &[4, 5]];
    let mut waits: Vec<Vec<u32>> = Vec::new();
    for rank in 0..6 {
        for step in 0..narrow(steps.len()) {
            // A call waits for the second before it: two go on at once.
            let row = rank * narrow(steps.len()) + step;
            waits.push((step > 1).then(|| row - 2).into_iter().collect());
        }
    }
    let rows: Vec<Row<'_>> = waits
        .iter()
        .map(|deps| (Collective, 0, &deps[..]))
        .collect();
    let ranks: Vec<&[Row<'_>]> = rows.chunks(steps.len()).collect();
    let mut made = trace(&ranks);
    for ranks in groups {
        group(&mut made, ranks);
    }
    for (step, &(of, size)) in steps.iter().enumerate() {
        let chosen: &[u32] = [&[0][..], &[1, 2], &[3, 4, 5], &[1], &[4]][usize::from(of)];
        for &group in chosen {
            let at = |rank: u32| rank * narrow(steps.len()) + narrow(step);
            let members: Vec<u32> = made.groups.ranks_of(group).iter().map(|&r| at(r)).collect();
            call(&mut made, group, size, &members);
        }
    }
    made
}

proptest! {
    #[test]
    fn a_shared_station_serves_as_stations_of_their_own(
        steps in prop::collection::vec((0..5u8, 1..5u64), 1..12)
    ) {
        let made = in_groups(&steps);
        let mut replay = Replay::new(&made, RATES);
        let sizes = &replay.collectives.size;
        let shapes: Vec<Shape> = sizes.iter().map(|&size| Shape::timed(7 * size, 0).unwrap()).collect();
        let shape_of: Vec<u32> = (0..narrow(shapes.len())).collect();
        let run = |replay: &Replay| {
            replay.run(&made, &shape_of, &shapes, Order::Fifo, &mut Silent).map(|ran| ran.1)
        };
        let shared = run(&replay);
        replay.graph.station = (0..6).collect();
        prop_assert!(shared.is_ok());
        prop_assert_eq!(shared, run(&replay));
    }
}
