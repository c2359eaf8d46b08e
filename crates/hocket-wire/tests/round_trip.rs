//! Every message comes out as it went in, and bytes that are none are an error.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use hocket_control::message::{
    Change, FLOW_IDS, FlowName, FromHost, HeldPattern, Hello, HostFlow, HostJob, JOB_IDS, NewFlow,
    Path, PatternFlow, Reason, Refusal, Resync, Stage, Terms, ToHost,
};
use hocket_steering::{Algorithm, Fields, Policy, SwitchHash};
use hocket_wire::v1;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use prost::Message;

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 16]>().prop_map(IpAddr::from),
    ]
}

fn ends() -> impl Strategy<Value = [IpAddr; 2]> {
    [address(), address()]
}

fn flow() -> impl Strategy<Value = HostFlow> {
    let numbers = (any::<u64>(), any::<u32>(), any::<u64>());
    let path = (option::of(any::<u32>()), any::<bool>());
    (numbers, ends(), path).prop_map(|((id, job, bytes), [src, dst], (held, is_fixed))| {
        let opened = NewFlow {
            job,
            src,
            dst,
            bytes,
            is_fixed,
        };
        HostFlow { id, opened, held }
    })
}

fn pattern() -> impl Strategy<Value = Vec<PatternFlow>> {
    let flow = (ends(), any::<u64>());
    vec(
        flow.prop_map(|([src, dst], bytes)| PatternFlow { src, dst, bytes }),
        0..4,
    )
}

fn hello() -> impl Strategy<Value = Hello> {
    let held =
        any::<[u32; 3]>().prop_map(|[job, index, choice]| HeldPattern { job, index, choice });
    let job =
        (any::<u32>(), pattern(), any::<bool>()).prop_map(|(job, pattern, is_live)| HostJob {
            job,
            pattern,
            is_live,
        });
    let lists = (vec(flow(), 0..4), vec(held, 0..4), vec(job, 0..4));
    let numbers = (any::<u32>(), any::<u64>(), any::<u64>());
    let links = vec(any::<u32>(), 0..4);
    (numbers, lists, links, any::<bool>()).prop_map(
        |((version, epoch, sequence), (flows, patterns, jobs), failed, takes_segments)| Hello {
            version,
            epoch,
            sequence,
            flows,
            patterns,
            jobs,
            failed,
            takes_segments,
        },
    )
}

fn from_host() -> impl Strategy<Value = FromHost> {
    let event = || (any::<u64>(), any::<u32>());
    prop_oneof![
        hello().prop_map(FromHost::Hello),
        (any::<u64>(), vec(flow(), 0..4))
            .prop_map(|(sequence, flows)| FromHost::Starts { sequence, flows }),
        vec(any::<(u64, u64)>(), 0..4).prop_map(|left| FromHost::Progress { left }),
        (any::<u64>(), vec(any::<u64>(), 0..4))
            .prop_map(|(sequence, flows)| FromHost::Ends { sequence, flows }),
        (event(), pattern()).prop_map(|((sequence, job), pattern)| FromHost::JobComes {
            sequence,
            job,
            pattern
        }),
        event().prop_map(|(sequence, job)| FromHost::JobStarts { sequence, job }),
        event().prop_map(|(sequence, job)| FromHost::JobStops { sequence, job }),
        event().prop_map(|(sequence, job)| FromHost::JobGoes { sequence, job }),
        (
            any::<u64>(),
            vec(any::<u32>(), 0..4),
            vec(any::<u32>(), 0..4)
        )
            .prop_map(|(sequence, failed, returned)| {
                FromHost::Links {
                    sequence,
                    failed,
                    returned,
                }
            }),
        any::<[u64; 2]>().prop_map(|[epoch, revision]| FromHost::Acknowledged { epoch, revision }),
        any::<(u64, u32, u64)>().prop_map(|(sequence, flows, digest)| FromHost::Beat {
            sequence,
            flows,
            digest
        }),
    ]
}

fn stage() -> impl Strategy<Value = Stage> {
    let algorithm = (0..11u8, any::<u8>()).prop_map(|(kind, fields)| {
        let fields = Fields(fields);
        match kind {
            0 => Algorithm::Linux(Policy::Layer3),
            1 => Algorithm::Linux(Policy::Layer4),
            2 => Algorithm::Linux(Policy::Custom(fields)),
            3 => Algorithm::Crc16(fields),
            4 => Algorithm::Crc32(fields),
            5 => Algorithm::Crc32Low(fields),
            6 => Algorithm::Crc32High(fields),
            7 => Algorithm::CrcCcitt(fields),
            8 => Algorithm::Xor(fields),
            9 => Algorithm::CrcXor(fields),
            _ => Algorithm::Toeplitz(fields),
        }
    });
    let hash =
        (algorithm, any::<u32>(), any::<u32>()).prop_map(|(algorithm, seed, offset)| SwitchHash {
            algorithm,
            seed,
            offset,
        });
    let ways = (1u32..=1 << 20).prop_flat_map(|ways| (Just(ways), 0..ways));
    (hash, ways).prop_map(|(hash, (ways, wanted))| Stage { hash, ways, wanted })
}

fn path() -> impl Strategy<Value = Path> {
    let lists = (
        vec(any::<u32>(), 0..8),
        vec(stage(), 0..4),
        vec(stage(), 0..4),
        vec(any::<u128>().prop_map(Ipv6Addr::from), 0..=8),
    );
    (any::<u32>(), lists).prop_map(|(choice, (links, forth, back, segments))| Path {
        choice,
        links,
        forth,
        back,
        segments,
    })
}

fn name() -> impl Strategy<Value = FlowName> {
    prop_oneof![
        (0..FLOW_IDS).prop_map(FlowName::Own),
        (1..JOB_IDS, any::<u32>()).prop_map(|(job, index)| FlowName::Pattern { job, index }),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let reason = || prop::sample::select(Reason::ALL);
    let why = || prop::sample::select(Refusal::ALL);
    prop_oneof![
        (name(), option::of(ends()), path(), reason()).prop_map(|(flow, ends, path, reason)| {
            Change::Path {
                flow,
                ends,
                path: path.into(),
                reason,
            }
        }),
        (1..JOB_IDS, any::<u32>(), ends(), path()).prop_map(|(job, index, ends, path)| {
            Change::Ahead {
                job,
                index,
                ends,
                path: path.into(),
            }
        }),
        (name(), any::<u64>()).prop_map(|(flow, bytes_per_second)| Change::Rate {
            flow,
            bytes_per_second
        }),
        (name(), reason()).prop_map(|(flow, reason)| Change::Revoke { flow, reason }),
        (1..JOB_IDS).prop_map(|job| Change::JobStops { job }),
        (1..JOB_IDS).prop_map(|job| Change::JobGoes { job }),
        (any::<u64>(), why()).prop_map(|(flow, why)| Change::Refuse { flow, why }),
        (any::<u32>(), why()).prop_map(|(job, why)| Change::RefuseJob { job, why }),
    ]
}

fn to_host() -> impl Strategy<Value = ToHost> {
    let time = || any::<u64>().prop_map(Duration::from_micros);
    let terms = (time(), time(), any::<u64>()).prop_map(|(lease, beat, least_bytes)| Terms {
        lease,
        beat,
        least_bytes,
    });
    prop_oneof![
        (any::<[u64; 3]>(), terms).prop_map(|([epoch, answers, revision], terms)| {
            ToHost::Welcome {
                epoch,
                answers,
                revision,
                terms,
            }
        }),
        (any::<[u64; 2]>(), vec(change(), 0..4)).prop_map(|([epoch, revision], changes)| {
            ToHost::Changes {
                epoch,
                revision,
                changes,
            }
        }),
        any::<[u64; 2]>().prop_map(|[epoch, revision]| ToHost::Synced { epoch, revision }),
        any::<u64>().prop_map(|sequence| ToHost::Taken { sequence }),
        prop::sample::select(&[Resync::NoHello, Resync::Digest][..])
            .prop_map(|why| ToHost::Resync { why }),
    ]
}

proptest! {
    #[test]
    fn what_hosts_say_comes_out_as_it_went_in(messages in vec(from_host(), 0..4)) {
        let bytes = hocket_wire::host_batch(&messages).encode_to_vec();
        let batch = v1::HostBatch::decode(&bytes[..]).unwrap();
        prop_assert_eq!(hocket_wire::read_host_batch(batch), Ok(messages));
    }

    #[test]
    fn what_the_controller_says_comes_out_as_it_went_in(messages in vec(to_host(), 0..4)) {
        let bytes = hocket_wire::controller_batch(&messages).encode_to_vec();
        let batch = v1::ControllerBatch::decode(&bytes[..]).unwrap();
        prop_assert_eq!(hocket_wire::read_controller_batch(batch), Ok(messages));
    }
}

fn read(kind: v1::from_host::Kind) -> String {
    let message = v1::FromHost { kind: Some(kind) };
    let messages = vec![message];
    let error = hocket_wire::read_host_batch(v1::HostBatch { messages });
    error.unwrap_err().to_string()
}

#[test]
fn messages_that_are_none_are_refused_in_a_line() {
    use v1::from_host::Kind;
    let unknown = v1::HostBatch {
        messages: vec![v1::FromHost { kind: None }],
    };
    let error = hocket_wire::read_host_batch(unknown).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a message of a host is missing or of a kind that version 1 does not have; update this end"
    );
    let flow = v1::HostFlow {
        src: vec![10, 0, 0],
        dst: vec![10, 0, 0, 1],
        ..Default::default()
    };
    let starts = |flows| Kind::Starts(v1::Starts { sequence: 1, flows });
    assert_eq!(
        read(starts(vec![flow.clone()])),
        "an address of 3 bytes; send 4 or 16"
    );
    assert_eq!(
        read(starts(vec![flow; 65_537])),
        "65537 flows in a message; send 65536 at most"
    );
    let left = vec![1, 2, 3];
    assert_eq!(
        read(Kind::Progress(v1::Progress { left })),
        "bytes left after a flow is missing or of a kind that version 1 does not have; update this end"
    );
}

#[test]
fn segments_that_are_none_are_refused_in_a_line() {
    use v1::change::Kind;
    let read = |segments: Vec<Vec<u8>>| {
        let path = v1::Path {
            segments,
            ..Default::default()
        };
        let kind = Kind::Ahead(v1::Ahead {
            job: 1,
            index: 0,
            ends: Some(v1::Pair {
                src: vec![10, 0, 0, 1],
                dst: vec![10, 0, 0, 2],
            }),
            path: Some(path),
        });
        let changes = vec![v1::Change { kind: Some(kind) }];
        let changes = v1::Changes {
            epoch: 1,
            revision: 1,
            changes,
        };
        let kind = Some(v1::to_host::Kind::Changes(changes));
        let messages = vec![v1::ToHost { kind }];
        hocket_wire::read_controller_batch(v1::ControllerBatch { messages })
    };
    assert!(read(vec![vec![0; 16]; 8]).is_ok());
    let wrong = |segments| read(segments).unwrap_err().to_string();
    assert_eq!(wrong(vec![vec![0; 4]]), "a segment of 4 bytes; send 16");
    assert_eq!(
        wrong(vec![vec![0; 16]; 9]),
        "9 segments of a path; send 8 at most"
    );
}
