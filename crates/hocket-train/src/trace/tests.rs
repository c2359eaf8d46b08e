use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prost::Message;

use super::chakra::{Attribute, Node, Value};
use super::*;
use crate::collective::Collective;
use crate::id::{NpuId, narrow};

fn node(id: u64, kind: NodeKind, data: &[u64], attributes: &[(&str, i64)]) -> Node {
    let attribute = |&(name, value): &(&str, i64)| Attribute {
        name: name.to_owned(),
        value: Some(Value::Int64(value)),
    };
    Node {
        id,
        name: format!("n{id}"),
        kind: kind as i32,
        data: data.to_vec(),
        attributes: attributes.iter().map(attribute).collect(),
        ..Node::default()
    }
}

fn compute(id: u64, data: &[u64]) -> Node {
    node(id, NodeKind::Compute, data, &[])
}

fn call(id: u64, kind: CallKind, bytes: i64, group: i64) -> Node {
    let attributes = [
        ("comm_type", kind as i64),
        ("comm_size", bytes),
        ("pg_name", group),
    ];
    node(id, NodeKind::Collective, &[], &attributes)
}

fn message(id: u64, kind: NodeKind, peer: i64, bytes: i64, tag: i64) -> Node {
    let end = match kind {
        NodeKind::Send => "comm_dst",
        _ => "comm_src",
    };
    let attributes = [(end, peer), ("comm_size", bytes), ("comm_tag", tag)];
    node(id, kind, &[], &attributes)
}

fn file_of(nodes: &[Node]) -> Vec<u8> {
    let mut bytes = vec![0]; // metadata without a version
    for node in nodes {
        bytes.append(&mut node.encode_length_delimited_to_vec());
    }
    bytes
}

fn read_bytes(files: &[Vec<u8>], groups: &[(u64, Vec<u32>)]) -> Result<Trace, TraceError> {
    let named = files.iter().map(|bytes| File { name: "t", bytes });
    let files: Vec<File<'_>> = named.collect();
    Trace::read(&files, Follow::All, groups)
}

fn read(ranks: &[&[Node]], groups: &[(u64, Vec<u32>)]) -> Result<Trace, TraceError> {
    let files: Vec<Vec<u8>> = ranks.iter().map(|nodes| file_of(nodes)).collect();
    read_bytes(&files, groups)
}

/// The fault of a trace that has one.
fn fault(ranks: &[&[Node]]) -> Fault {
    match read(ranks, &[]) {
        Err(TraceError::Node { fault, .. }) => *fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn sizes_are_what_goes_in_at_one_rank() {
    let npus: Vec<NpuId> = (0..4).map(NpuId).collect();
    for &kind in CallKind::KNOWN {
        let Some(collective) = kind.collective() else {
            continue;
        };
        let size = kind.size(1000, 4).unwrap();
        let collective = Collective::new(collective, npus.clone(), size, None).unwrap();
        let demands = collective.demands();
        let held = demands
            .iter()
            .filter(|demand| demand.holders.contains(NpuId(0)));
        let held: u64 = held.map(|demand| demand.bytes).sum();
        assert_eq!(held, 1000, "{kind:?}");
    }
    assert_eq!(CallKind::AllGather.size(1 << 61, 4), None);
    assert_eq!(CallKind::AllReduce.size(1 << 62, 4), Some(1 << 62));
}

#[test]
fn calls_and_partners_are_matched() {
    let first = [
        call(0, CallKind::AllGather, 100, 0),
        call(1, CallKind::AllReduce, 100, 7),
        message(2, NodeKind::Send, 1, 8, 3),
    ];
    let second = [
        message(5, NodeKind::Receive, 0, 8, 3),
        call(6, CallKind::AllGather, 100, 0),
    ];
    let third = [
        call(9, CallKind::AllReduce, 100, 7),
        call(8, CallKind::AllGather, 100, 0),
    ];
    let trace = read(&[&first, &second, &third], &[(7, vec![2, 0])]).unwrap();
    assert_eq!(trace.rank_first, [0, 3, 5, 7]);
    assert_eq!(trace.order, [0, 1, 2, 3, 4, 6, 5]);
    assert_eq!(trace.calls.size, [300, 100]);
    assert_eq!(trace.calls.nodes_of(0), [0, 4, 6]);
    assert_eq!(trace.calls.nodes_of(1), [5, 1]);
    assert_eq!(trace.groups.ranks_of(trace.calls.group[1]), [2, 0]);
    assert_eq!(trace.call, [0, 1, NONE, NONE, 0, 1, 0]);
    assert_eq!(trace.partner[2..4], [3, 2]);
    assert_eq!(
        (trace.rank_of(0), trace.rank_of(4), trace.rank_of(6)),
        (0, 1, 2)
    );
    assert_eq!(trace.names.of_row(3), "n5");
}

#[test]
fn a_rank_may_have_no_nodes() {
    let trace = read(&[&[], &[compute(3, &[])], &[]], &[]).unwrap();
    assert_eq!(trace.rank_first, [0, 0, 1, 1]);
    assert_eq!((trace.ranks(), trace.len(), trace.rank_of(0)), (3, 1, 1));
    assert!(read(&[&[]], &[]).unwrap().is_empty());
    assert_eq!(read(&[], &[]).unwrap_err(), TraceError::NoFiles);
}

#[test]
fn a_long_cycle_is_named_by_its_first_nodes() {
    let ring: Vec<Node> = (0..1000)
        .map(|id| compute(id, &[(id + 1) % 1000]))
        .collect();
    let leads_there = [&ring[..], &[compute(5000, &[0])]].concat();
    let Fault::Cycle { path } = fault(&[&leads_there]) else {
        panic!("no cycle");
    };
    assert_eq!(path.matches("node ").count(), 4);
    assert!(path.ends_with(", ..."), "{path}");
    assert!(!path.contains("5000"), "{path}");
}

#[test]
fn a_long_chain_is_no_cycle() {
    let link = |at: u64| compute(100_000 - at, &[100_001 - at][..usize::from(at > 0)]);
    let chain: Vec<Node> = (0..100_000).map(link).collect();
    assert_eq!(read(&[&chain], &[]).unwrap().order.len(), 100_000);
}

#[test]
fn faults_name_what_is_wrong() {
    let again = [compute(1, &[]), compute(1, &[])];
    let first = "n1".to_owned();
    assert_eq!(fault(&[&again]), Fault::Duplicate { first });
    let kind = "data";
    assert_eq!(
        fault(&[&[compute(1, &[9])]]),
        Fault::Dangling { kind, on: 9 }
    );
    let alone = message(1, NodeKind::Receive, 0, 8, 3);
    let unmatched = Fault::Unmatched {
        what: "receive",
        other: "send",
        src: 0,
        dst: 1,
        tag: 3,
    };
    assert_eq!(fault(&[&[], &[alone]]), unmatched);
    let error = read(&[&[call(1, CallKind::AllReduce, 8, 0)], &[]], &[]).unwrap_err();
    assert!(matches!(
        error,
        TraceError::Missing {
            more: 0,
            fewer: 1,
            ..
        }
    ));
}

#[test]
fn files_cut_short_say_where() {
    let whole = file_of(&[compute(3, &[]), compute(4, &[3])]);
    let last = whole.len() - 1 - compute(4, &[3]).encoded_len();
    for end in 1..whole.len() {
        let cut = read_bytes(&[whole[..end].to_vec()], &[]);
        let is_between = end == 1 || end == last;
        match cut {
            Ok(_) => assert!(is_between, "{end}"),
            Err(TraceError::Overrun { byte, after, .. }) => {
                let wanted = if end > last {
                    (last, Some(3))
                } else {
                    (1, None)
                };
                assert_eq!((byte, after), wanted);
            }
            Err(other) => panic!("{end}: {other}"),
        }
    }
    let long = [&whole[..], &[0x80]].concat();
    let error = read_bytes(&[long], &[]).unwrap_err();
    assert!(
        matches!(error, TraceError::Truncated { after: Some(4), .. }),
        "{error}"
    );
}

/// A node that is mostly plausible.
fn any_node() -> impl Strategy<Value = Node> {
    let attribute = prop::sample::select(vec![
        "comm_type",
        "comm_size",
        "comm_src",
        "comm_dst",
        "comm_tag",
        "pg_name",
        "num_ops",
    ]);
    let value = prop_oneof![Just(0i64), Just(1), 0..12i64, any::<i64>()];
    let attributes = prop::collection::vec((attribute, value), 0..7);
    let ids = prop::collection::vec(0..6u64, 0..3);
    (0..6u64, -1..9i32, ids.clone(), ids, attributes).prop_map(
        |(id, kind, control, data, attributes)| Node {
            kind,
            control,
            ..node(id, NodeKind::Compute, &data, &attributes)
        },
    )
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::with_cases(500)
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_bytes(std::slice::from_ref(&bytes), &[]);
        let _ = read_bytes(&[[&[0], &bytes[..]].concat()], &[]);
    }

    #[test]
    fn random_nodes_are_refused_or_hold_together(
        ranks in prop::collection::vec(prop::collection::vec(any_node(), 0..4), 1..4),
        at in any::<prop::sample::Index>(),
        flip in any::<u8>(),
    ) {
        let mut files: Vec<Vec<u8>> = ranks.iter().map(|nodes| file_of(nodes)).collect();
        let groups = [(1, vec![0])];
        for _ in 0..2 {
            match read_bytes(&files, &groups) {
                Ok(trace) => check(&trace),
                Err(error) => prop_assert!(!error.to_string().contains('\n'), "{error}"),
            }
            let file = &mut files[0];
            let byte = at.index(file.len());
            file[byte] ^= flip;
        }
    }
}

/// What every trace keeps to.
fn check(trace: &Trace) {
    let mut place = vec![0; trace.len()];
    for (at, &row) in trace.order.iter().enumerate() {
        place[row as usize] = at;
    }
    for row in 0..narrow(trace.len()) {
        let at = row as usize;
        for &on in trace.dependencies_of(row) {
            assert!(place[on as usize] < place[at]);
            assert_eq!(trace.rank_of(on), trace.rank_of(row));
        }
        let is_message = matches!(trace.kind[at], NodeKind::Send | NodeKind::Receive);
        assert_eq!(is_message, trace.partner[at] != NONE);
        if is_message {
            let partner = trace.partner[at] as usize;
            assert_eq!(trace.partner[partner], row);
            assert_eq!(trace.peer[at], trace.rank_of(narrow(partner)));
        }
        let is_call = (trace.call_kind[at] as u8) < CallKind::Unspecified as u8;
        assert_eq!(is_call, trace.call[at] != NONE);
        if is_call {
            assert!(trace.calls.nodes_of(trace.call[at]).contains(&row));
        }
    }
    for call in 0..narrow(trace.calls.len()) {
        let ranks = trace
            .calls
            .nodes_of(call)
            .iter()
            .map(|&row| trace.rank_of(row));
        let group = trace.calls.group[call as usize];
        assert!(ranks.eq(trace.groups.ranks_of(group).iter().copied()));
    }
}
