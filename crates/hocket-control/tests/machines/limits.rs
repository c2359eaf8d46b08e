//! Hosts that say what they may not, or too much.

use std::net::{IpAddr, Ipv6Addr};

use hocket_base::id::NpuId;
use hocket_control::directory::{BadDirectory, Directory, HostEntry, HostId, read_address};
use hocket_control::message::{
    Change, FLOW_IDS, FromHost, Hello, HostFlow, JOB_IDS, MOST_FLOWS, NewFlow, Refusal, ToHost,
};
use hocket_control::server::{self, Close};
use proptest::prelude::*;

use super::connected::{Connected, flow, hello, opened, options};
use super::site::address;

/// A server without agents, and a session of host 0 that is welcomed.
fn alone(options: server::Options) -> (Connected, u64) {
    let mut connected = Connected::new(options, 0);
    let session = connected.session(0);
    connected.say(session, FromHost::Hello(hello()));
    (connected, session)
}

fn refused(connected: &Connected) -> Vec<(u64, Refusal)> {
    let changes = connected
        .told
        .iter()
        .filter_map(|(_, message)| match &**message {
            ToHost::Changes { changes, .. } => Some(changes),
            _ => None,
        });
    let refused = changes.flatten().filter_map(|change| match change {
        Change::Refuse { flow, why } => Some((*flow, *why)),
        _ => None,
    });
    refused.collect()
}

fn with(id: u64, opened: NewFlow) -> HostFlow {
    HostFlow { opened, ..flow(id) }
}

#[test]
fn a_host_speaks_for_itself_alone() {
    let (mut connected, session) = alone(options());
    let of_job = |id, job| {
        with(
            id,
            NewFlow {
                job,
                ..opened(0, 7)
            },
        )
    };
    let flows = vec![
        with(1, opened(1, 7)),
        with(2, opened(0, 99)),
        of_job(3, 9),
        flow(FLOW_IDS),
        of_job(4, JOB_IDS),
        of_job(5, 3),
    ];
    connected.say(session, FromHost::Starts { sequence: 2, flows });
    let whys = [
        (1, Refusal::NotItsAddress),
        (2, Refusal::UnknownAddress),
        (3, Refusal::NotItsJob),
        (FLOW_IDS, Refusal::BadNumber),
        (4, Refusal::BadNumber),
    ];
    assert_eq!(refused(&connected), whys);
    assert_eq!(connected.server.flows().count(), 1);
    assert_eq!(connected.server.metrics().refused.iter().sum::<u64>(), 5);
    // Another host with the same number has another flow.
    let other = connected.session(1);
    connected.say(other, FromHost::Hello(hello()));
    connected.say(
        other,
        FromHost::Ends {
            sequence: 2,
            flows: vec![5],
        },
    );
    assert_eq!(connected.server.flows().count(), 1);
}

#[test]
fn limits_hold() {
    let limits = server::Options {
        most_host_flows: 3,
        most_flows: 5,
        ..options()
    };
    let (mut connected, session) = alone(limits);
    let flows = (0..5).map(flow).collect();
    connected.say(session, FromHost::Starts { sequence: 2, flows });
    assert_eq!(
        refused(&connected),
        [(3, Refusal::TooMany), (4, Refusal::TooMany)]
    );
    let other = connected.session(1);
    let flows = (0..3).map(|id| with(id, opened(1, 7))).collect();
    connected.say(other, FromHost::Hello(Hello { flows, ..hello() }));
    assert_eq!(refused(&connected)[2..], [(2, Refusal::Full)]);
    assert_eq!(connected.server.flows().count(), 5);
}

#[test]
fn a_flood_is_refused_and_ended() {
    let limits = server::Options {
        rate: 10,
        burst: 20,
        ..options()
    };
    let (mut connected, session) = alone(limits);
    let starts = |sequence: u64| FromHost::Starts {
        sequence,
        flows: (0..8).map(|id| flow(8 * sequence + id)).collect(),
    };
    (2..4).for_each(|sequence| connected.say(session, starts(sequence)));
    assert_eq!(
        (connected.server.flows().count(), refused(&connected).len()),
        (16, 0)
    );
    connected.say(session, starts(4));
    assert_eq!(refused(&connected).len(), 8);
    assert!(
        refused(&connected)
            .iter()
            .all(|(_, why)| *why == Refusal::TooFast)
    );
    // An end is never refused.
    connected.say(
        session,
        FromHost::Ends {
            sequence: 5,
            flows: vec![16],
        },
    );
    assert_eq!(connected.server.flows().count(), 15);
    (6..9).for_each(|sequence| connected.say(session, starts(sequence)));
    assert_eq!(connected.closed, [(session, Close::Flood)]);
    // Another host is not concerned.
    let other = connected.session(1);
    let flows = vec![with(1, opened(1, 7))];
    connected.say(other, FromHost::Hello(Hello { flows, ..hello() }));
    assert_eq!(connected.server.flows().count(), 16);
    // Time heals.
    connected.now += std::time::Duration::from_secs(5);
    let again = connected.session(0);
    connected.say(again, FromHost::Hello(hello()));
    connected.say(again, starts(2));
    assert_eq!(connected.server.flows().count(), 9);
}

#[test]
fn sessions_that_make_no_sense_are_ended() {
    let ended = |message: FromHost| {
        let (mut connected, session) = alone(options());
        connected.say(session, message);
        connected.closed.first().map(|(_, why)| *why)
    };
    let version = Hello {
        version: 2,
        sequence: 2,
        ..hello()
    };
    let newer = Hello {
        epoch: 2,
        sequence: 2,
        ..hello()
    };
    let beyond = FromHost::Acknowledged {
        epoch: 1,
        revision: 9,
    };
    let many = FromHost::Ends {
        sequence: 2,
        flows: vec![0; MOST_FLOWS + 1],
    };
    assert_eq!(ended(FromHost::Hello(version)), Some(Close::Version));
    assert_eq!(ended(FromHost::Hello(newer)), Some(Close::NewerEpoch));
    assert_eq!(ended(beyond), Some(Close::Nonsense));
    assert_eq!(ended(many), Some(Close::TooLarge));
    assert_eq!(
        ended(FromHost::Beat {
            sequence: 1,
            flows: 0,
            digest: 0
        }),
        None
    );
}

#[test]
fn a_host_has_one_session() {
    let (mut connected, first) = alone(options());
    let second = connected.session(0);
    assert_eq!(connected.closed, [(first, Close::Replaced)]);
    connected.say(
        first,
        FromHost::Starts {
            sequence: 2,
            flows: vec![flow(1)],
        },
    );
    assert_eq!(connected.server.flows().count(), 0);
    // Nothing counts before all was said.
    connected.say(
        second,
        FromHost::Starts {
            sequence: 2,
            flows: vec![flow(1)],
        },
    );
    assert_eq!(connected.server.flows().count(), 0);
    assert!(matches!(
        *connected.told.last().unwrap().1,
        ToHost::Resync { .. }
    ));
}

#[test]
fn a_host_that_does_not_keep_up_is_dropped() {
    let limits = server::Options {
        most_unacknowledged: 8,
        ..options()
    };
    let (mut connected, session) = alone(limits);
    for sequence in 2..20 {
        connected.say(
            session,
            FromHost::Starts {
                sequence,
                flows: vec![flow(sequence)],
            },
        );
    }
    assert_eq!(connected.closed, [(session, Close::Slow)]);
    assert_eq!(
        connected
            .server
            .unacknowledged(hocket_control::directory::HostId(0)),
        None
    );
}

#[test]
fn a_directory_contradicts_itself_in_no_way() {
    let host = |name: &str, at: u32| HostEntry {
        name: name.to_owned(),
        nics: vec![(address(at), NpuId(at))],
    };
    let made = |hosts, jobs| Directory::new(hosts, jobs, false).map(|made| made.len());
    assert_eq!(
        made(
            vec![host("a", 0), host("b", 1)],
            vec![(1, vec!["b".to_owned()])]
        ),
        Ok(2)
    );
    assert_eq!(
        made(vec![host("a", 0), host("a", 1)], vec![]),
        Err(BadDirectory::DuplicateName("a".to_owned()))
    );
    let twice = |nic| HostEntry {
        nics: vec![(address(0), NpuId(nic))],
        ..host("b", 0)
    };
    let (host_b, address_0) = ("b".to_owned(), address(0));
    assert_eq!(
        made(vec![host("a", 0), twice(1)], vec![]),
        Err(BadDirectory::DuplicateAddress {
            name: host_b.clone(),
            address: address_0
        })
    );
    let same = HostEntry {
        nics: vec![(address(1), NpuId(0))],
        ..host("b", 0)
    };
    assert_eq!(
        made(vec![host("a", 0), same], vec![]),
        Err(BadDirectory::DuplicateNic {
            name: host_b,
            nic: NpuId(0)
        })
    );
    assert_eq!(
        made(vec![], vec![(0, vec![])]),
        Err(BadDirectory::BadJob(0))
    );
    let unknown = BadDirectory::UnknownHost {
        job: 1,
        name: "c".to_owned(),
    };
    assert_eq!(
        unknown.to_string(),
        "job 1 names the host \"c\", which is not there; name hosts as they are listed"
    );
    assert_eq!(made(vec![], vec![(1, vec!["c".to_owned()])]), Err(unknown));
    assert!(matches!(
        made(vec![host("", 0)], vec![]),
        Err(BadDirectory::BadName(_))
    ));
}

/// The ways to write an address of IPv6.
fn writings(bits: u128) -> Vec<String> {
    let groups = (0..8).rev().map(|at| (bits >> (16 * at)) as u16);
    let join = |write: fn(u16) -> String| groups.clone().map(write).collect::<Vec<_>>().join(":");
    let high = groups.clone().take(6).map(|group| format!("{group:x}"));
    let low = (bits as u32).to_be_bytes().map(|byte| byte.to_string());
    vec![
        join(|group| format!("{group:04x}")),
        join(|group| format!("{group:X}")),
        format!("{}:{}", high.collect::<Vec<_>>().join(":"), low.join(".")),
        Ipv6Addr::from(bits).to_string(),
    ]
}

proptest! {
    #[test]
    fn an_address_is_one_however_it_is_written(
        bits in prop_oneof![any::<u128>(), any::<u32>().prop_map(|four| 0xffff << 32 | u128::from(four))],
    ) {
        let address = match bits >> 32 {
            0xffff => IpAddr::from((bits as u32).to_be_bytes()),
            _ => IpAddr::from(bits.to_be_bytes()),
        };
        let nics = vec![(IpAddr::from(bits.to_be_bytes()), NpuId(0))];
        let host = HostEntry { name: "a".to_owned(), nics };
        let directory = Directory::new(vec![host.clone()], vec![], true).unwrap();
        prop_assert_eq!(directory.entry(HostId(0)).nics[0].0, address);
        for text in writings(bits) {
            for text in [format!("[{text}]"), text] {
                prop_assert_eq!(read_address(&text), Ok(address), "{}", text);
            }
        }
        // As a host may say it.
        for said in [address, IpAddr::from(bits.to_be_bytes())] {
            prop_assert_eq!(directory.at(said), Some((HostId(0), NpuId(0))));
        }
        let other = HostEntry { name: "b".to_owned(), nics: vec![(address, NpuId(1))] };
        let twice = Directory::new(vec![host, other], vec![], true).unwrap_err();
        prop_assert_eq!(twice, BadDirectory::DuplicateAddress { name: "b".to_owned(), address });
    }
}

#[test]
fn what_is_no_address_is_told_from_one_with_a_zone() {
    for text in [
        "",
        "[]",
        "10.0.0.01",
        "[10.0.0.1]",
        "10.0.0.1 ",
        "::1]",
        "a.b",
    ] {
        assert_eq!(read_address(text), Err("is not an IP address"), "{text}");
    }
    for text in ["fe80::1%eth0", "[fe80::1%3]"] {
        let why = "has a zone, which no other host knows";
        assert_eq!(read_address(text), Err(why), "{text}");
    }
}
