use hocket_base::id::{NpuId, fit, narrow};
use hocket_base::units::{Bandwidth, Time};
use hocket_plan::collective::{Collective, CollectiveKind};
use hocket_plan::plan::{Chunks, Op, Plan, PlanBuilder, Wait};
use hocket_topology::Topology;
use hocket_topology::build::{RingWays, ring};
use proptest::prelude::*;

use super::{Does, PlanFiles, Refused, Writer};

/// Bytes of a varint, and the number.
fn varint(bytes: &[u8]) -> (usize, u64) {
    let mut value = 0;
    for (i, byte) in bytes.iter().enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return (i + 1, value);
        }
    }
    panic!("a varint ends");
}

/// A field of a message: its number, and what it holds.
#[derive(Clone, Debug, PartialEq)]
enum Field {
    Number(u64, u64),
    Bytes(u64, Vec<u8>),
}

/// The fields of a message, by the rules of the wire format alone.
fn fields(mut bytes: &[u8]) -> Vec<Field> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (length, key) = varint(bytes);
        bytes = &bytes[length..];
        let (length, value) = varint(bytes);
        bytes = &bytes[length..];
        let size: usize = fit(value);
        match key & 7 {
            0 => found.push(Field::Number(key >> 3, value)),
            2 => {
                found.push(Field::Bytes(key >> 3, bytes[..size].to_vec()));
                bytes = &bytes[size..];
            }
            other => panic!("kind {other}"),
        }
    }
    found
}

/// The messages of a file.
fn messages(mut bytes: &[u8]) -> Vec<Vec<Field>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (length, size) = varint(bytes);
        let end = length + fit::<usize, _>(size);
        found.push(fields(&bytes[length..end]));
        bytes = &bytes[end..];
    }
    found
}

fn attribute(name: &str, value: u64) -> Field {
    let mut inner = vec![10, fit(name.len())];
    inner.extend(name.bytes());
    inner.push(9 << 3);
    assert!(value < 128);
    inner.push(fit(value));
    Field::Bytes(10, inner)
}

#[test]
fn a_node_is_what_the_format_says() {
    let mut writer = Writer::new();
    let send = Does::Send {
        to: 2,
        bytes: 100,
        tag: 5,
    };
    writer.node(3, "a", &[1, 300], send);
    let call = Does::Call {
        kind: 0,
        bytes: 7,
        group: Some(12),
    };
    writer.node(4, "b", &[], call);
    writer.node(5, "c", &[], Does::Compute { micros: 9 });
    assert_eq!(writer.nodes(), 3);
    let found = messages(&writer.take());
    assert_eq!(found[0], [Field::Bytes(1, b"0.0.4".to_vec())]);
    let node = [
        Field::Number(1, 3),
        Field::Bytes(2, b"a".to_vec()),
        Field::Number(3, 5),
        Field::Bytes(5, vec![1, 0xac, 0x02]),
        attribute("comm_dst", 2),
        attribute("comm_size", 100),
        attribute("comm_tag", 5),
    ];
    assert_eq!(found[1], node);
    let Field::Bytes(10, group) = &found[2][5] else {
        panic!("the last attribute is the group");
    };
    assert_eq!(
        fields(group),
        [
            Field::Bytes(1, b"pg_name".to_vec()),
            Field::Bytes(29, b"12".to_vec())
        ]
    );
    assert_eq!(found[3][2..], [Field::Number(3, 4), Field::Number(7, 9)]);
    assert_eq!(messages(&writer.take()).len(), 1);
}

fn network(npus: usize) -> Topology {
    let rate = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
    ring(narrow(npus), rate, Time::from_ps(1000), RingWays::Both).unwrap()
}

/// A plan of single chunks between NPUs: chunk, from, to, whether it sums, and what it waits for.
fn plan_of(npus: u32, sends: &[(u32, u32, u32, bool, Vec<u32>)]) -> Plan {
    let all = (0..npus).map(NpuId).collect();
    let collective =
        Collective::new(CollectiveKind::AllReduce, all, u64::from(npus) * 4, None).unwrap();
    let chunks = Chunks::split(&collective.demands(), npus as usize).unwrap();
    let mut builder = PlanBuilder::new("test", &collective, chunks);
    for (chunk, src, dst, sums, waits) in sends {
        let waits: Vec<Wait> = waits
            .iter()
            .map(|&each| Wait::on(hocket_base::id::TransferId(each)))
            .collect();
        let wait = builder.all_of(&waits);
        let op = if *sums { Op::Reduce } else { Op::Copy };
        builder.send((*chunk, 1), NpuId(*src), NpuId(*dst), op, wait);
    }
    builder.finish()
}

/// Ids and dependencies of a rank's nodes.
fn nodes(files: &PlanFiles<'_>, rank: usize) -> Vec<(u64, u64, Vec<u64>)> {
    let mut writer = Writer::new();
    files.rank(rank, &mut writer).unwrap();
    let found = messages(&writer.take());
    let node = |message: &Vec<Field>| {
        let (mut id, mut kind, mut after) = (0, 0, Vec::new());
        for field in message {
            match field {
                Field::Number(1, value) => id = *value,
                Field::Number(3, value) => kind = *value,
                Field::Bytes(5, packed) => {
                    let mut rest = packed.as_slice();
                    while !rest.is_empty() {
                        let (length, value) = varint(rest);
                        after.push(value);
                        rest = &rest[length..];
                    }
                }
                _ => {}
            }
        }
        (id, kind, after)
    };
    found[1..].iter().map(node).collect()
}

#[test]
fn a_send_waits_for_sums_at_its_rank_and_for_its_own_sends() {
    let sends = [
        (0, 0, 1, true, vec![]),
        (1, 2, 1, false, vec![]),
        (0, 1, 2, true, vec![0, 1]),
        (2, 1, 2, false, vec![2]),
    ];
    let plan = plan_of(3, &sends);
    let network = network(3);
    let files = PlanFiles::new(&plan, &network).unwrap();
    assert_eq!(nodes(&files, 0), [(0, 5, vec![])]);
    let at_1 = [
        (1, 6, vec![]),
        (2, 4, vec![1]),
        (4, 6, vec![]),
        (6, 5, vec![2, 4]),
        (9, 5, vec![6]),
    ];
    assert_eq!(nodes(&files, 1), at_1);
    let at_2 = [
        (3, 5, vec![]),
        (7, 6, vec![]),
        (8, 4, vec![7]),
        (10, 6, vec![]),
    ];
    assert_eq!(nodes(&files, 2), at_2);
}

#[test]
fn a_rank_without_transfers_has_a_node_all_the_same() {
    let plan = plan_of(3, &[(0, 0, 1, true, vec![])]);
    let network = network(3);
    let files = PlanFiles::new(&plan, &network).unwrap();
    assert_eq!(nodes(&files, 2), [(0, 4, vec![])]);
}

#[test]
fn what_ranks_cannot_wait_for_is_refused() {
    let plan = plan_of(4, &[(0, 0, 1, true, vec![]), (1, 2, 3, true, vec![0])]);
    let network = network(4);
    let files = PlanFiles::new(&plan, &network).unwrap();
    let refused = files.rank(2, &mut Writer::new()).unwrap_err();
    let expected = Refused::Elsewhere {
        transfer: 1,
        awaited: 0,
        npu: 2,
    };
    assert_eq!(refused, expected);
    let none = plan_of(2, &[]);
    assert_eq!(
        PlanFiles::new(&none, &network).unwrap_err(),
        Refused::Nothing
    );
}

#[test]
fn a_large_group_is_a_node_once() {
    let mut sends: Vec<_> = (0..70).map(|i| (i % 2, 0, 1, false, vec![])).collect();
    let all: Vec<u32> = (0..70).collect();
    sends.push((0, 1, 0, false, all));
    let plan = plan_of(2, &sends);
    let network = network(2);
    let files = PlanFiles::new(&plan, &network).unwrap();
    let found = nodes(&files, 1);
    let joins: Vec<_> = found.iter().filter(|node| node.1 == 4).collect();
    assert_eq!(joins.len(), 1);
    assert_eq!(joins[0].0, 3 * 71);
    assert_eq!(joins[0].2, (0..70).map(|i| 3 * i + 1).collect::<Vec<_>>());
    assert_eq!(found.last().unwrap().2, [3 * 71]);
}

proptest! {
    /// Whatever is sent, each node waits for nodes of its own file, and each send has its receive.
    #[test]
    fn files_are_closed(
        npus in 2u32..6,
        steps in proptest::collection::vec((0u32..6, 1u32..6, any::<bool>(), any::<u64>()), 1..40),
    ) {
        let mut sends: Vec<(u32, u32, u32, bool, Vec<u32>)> = Vec::new();
        for (src, by, sums, chosen) in steps {
            let src = src % npus;
            let dst = (src + 1 + by % (npus - 1)) % npus;
            let near = |i: &u32| {
                let (_, a, b, ..) = sends[*i as usize];
                a == src || b == src
            };
            let waits = (0..narrow(sends.len())).filter(near);
            let waits = waits.filter(|i| (chosen >> (i % 64)) & 1 == 1).collect();
            sends.push((0, src, dst, sums, waits));
        }
        let plan = plan_of(npus, &sends);
        let network = network(npus as usize);
        let files = PlanFiles::new(&plan, &network).unwrap();
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        for rank in 0..npus as usize {
            let found = nodes(&files, rank);
            let mut seen = std::collections::HashSet::new();
            for (id, kind, after) in found {
                prop_assert!(after.iter().all(|each| seen.contains(each)), "{after:?} before {id}");
                prop_assert!(seen.insert(id));
                match kind {
                    5 => sent.push(id / 3),
                    6 => received.push(id / 3),
                    _ => {}
                }
            }
        }
        sent.sort_unstable();
        received.sort_unstable();
        prop_assert_eq!(&sent, &(0..sends.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(sent, received);
    }
}
