//! What hosts and the controller say, and what is stored, drawn from bytes.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use hocket_control::message::{
    Change, FLOW_IDS, FlowName, FromHost, HeldPattern, Hello, HostFlow, HostJob, JOB_IDS, NewFlow,
    Path, PatternFlow, Reason, Refusal, Resync, Stage, Terms, ToHost, VERSION,
};
use hocket_control::store::Record;
use hocket_core::routing::steering::{Algorithm, Fields, SwitchHash};

use super::draw::Draw;

/// The address of a host.
pub fn address(host: u8) -> IpAddr {
    [10, 0, 0, host].into()
}

/// Links, of which some are not there.
pub fn links(draw: &mut Draw<'_>) -> Vec<u32> {
    (0..draw.below(4)).map(|_| draw.near(17)).collect()
}

/// The number of a job, of which some cannot be.
pub fn job_number(draw: &mut Draw<'_>) -> u32 {
    draw.one_of(&[0, 1, 1, 1, 2, JOB_IDS - 1, JOB_IDS, u32::MAX])
}

/// The flows of an iteration.
pub fn pattern(draw: &mut Draw<'_>) -> Vec<PatternFlow> {
    let flow = |draw: &mut Draw<'_>| PatternFlow {
        src: address(draw.below(5) as u8),
        dst: address(draw.below(5) as u8),
        bytes: draw.size(),
    };
    (0..draw.below(6)).map(|_| flow(draw)).collect()
}

/// Some time.
pub fn pause(draw: &mut Draw<'_>) -> Duration {
    match draw.byte() {
        255 => Duration::from_secs(draw.word() >> 8),
        byte @ 240.. => Duration::from_secs(byte.into()),
        byte => Duration::from_millis(byte.into()),
    }
}

/// The hash of every switch.
pub const HASH: SwitchHash = SwitchHash {
    algorithm: Algorithm::Crc32(Fields::FIVE),
    seed: 1,
    offset: 0,
};

fn host_flow(draw: &mut Draw<'_>) -> HostFlow {
    HostFlow {
        id: draw.one_of(&[0, 1, 2, 3, 4, FLOW_IDS - 1, FLOW_IDS, u64::MAX]),
        opened: NewFlow {
            job: job_number(draw),
            src: address(draw.below(5) as u8),
            dst: address(draw.below(5) as u8),
            bytes: draw.size(),
            is_fixed: draw.yes(),
        },
        held: draw.yes().then(|| draw.near(3)),
    }
}

fn several<T>(draw: &mut Draw<'_>, mut one: impl FnMut(&mut Draw<'_>) -> T) -> Vec<T> {
    (0..draw.below(5)).map(|_| one(draw)).collect()
}

fn hello(draw: &mut Draw<'_>, sequence: u64) -> Hello {
    Hello {
        version: if draw.below(16) == 0 { 9 } else { VERSION },
        epoch: draw.below(4) as u64,
        sequence,
        flows: several(draw, host_flow),
        patterns: several(draw, |draw| HeldPattern {
            job: job_number(draw),
            index: draw.near(6),
            choice: draw.near(3),
        }),
        jobs: several(draw, |draw| HostJob {
            job: job_number(draw),
            pattern: pattern(draw),
            is_live: draw.yes(),
        }),
        failed: links(draw),
        takes_segments: draw.yes(),
    }
}

/// Something that a host says.
pub fn from_host(draw: &mut Draw<'_>, sequence: u64) -> FromHost {
    let job = job_number(draw);
    match draw.below(12) {
        0 | 1 => FromHost::Hello(hello(draw, sequence)),
        2 | 3 => FromHost::Starts {
            sequence,
            flows: several(draw, host_flow),
        },
        4 => FromHost::Ends {
            sequence,
            flows: several(draw, |draw| host_flow(draw).id),
        },
        5 => FromHost::Progress {
            left: several(draw, |draw| (host_flow(draw).id, draw.size())),
        },
        6 => FromHost::JobComes {
            sequence,
            job,
            pattern: pattern(draw),
        },
        7 => FromHost::JobStarts { sequence, job },
        8 => FromHost::JobStops { sequence, job },
        9 => FromHost::Links {
            sequence,
            failed: links(draw),
            returned: links(draw),
        },
        10 => FromHost::Acknowledged {
            epoch: draw.below(4) as u64,
            revision: draw.near(8).into(),
        },
        _ if draw.yes() => FromHost::JobGoes { sequence, job },
        _ => FromHost::Beat {
            sequence,
            flows: draw.near(4),
            digest: draw.word(),
        },
    }
}

fn path(draw: &mut Draw<'_>) -> Path {
    let stage = |draw: &mut Draw<'_>| Stage {
        hash: HASH,
        ways: draw.near(4),
        wanted: draw.near(4),
    };
    Path {
        choice: draw.near(3),
        links: links(draw),
        forth: several(draw, stage),
        back: several(draw, stage),
        segments: several(draw, |draw| Ipv6Addr::from(u128::from(draw.word()))),
    }
}

fn change(draw: &mut Draw<'_>) -> Change {
    let (job, index) = (job_number(draw), draw.near(4));
    let flow = match draw.yes() {
        true => FlowName::Own(draw.near(8).into()),
        false => FlowName::Pattern { job, index },
    };
    let ends = [address(draw.below(5) as u8), address(draw.below(5) as u8)];
    let reason = draw.one_of(Reason::ALL);
    let why = draw.one_of(Refusal::ALL);
    match draw.below(10) {
        0..3 => Change::Path {
            flow,
            ends: draw.yes().then_some(ends),
            path: path(draw).into(),
            reason,
        },
        3 => Change::Ahead {
            job,
            index,
            ends,
            path: path(draw).into(),
        },
        4 => Change::Rate {
            flow,
            bytes_per_second: draw.size(),
        },
        5 => Change::Revoke { flow, reason },
        6 => Change::JobStops { job },
        7 => Change::JobGoes { job },
        8 => Change::Refuse {
            flow: draw.near(8).into(),
            why,
        },
        _ => Change::RefuseJob { job, why },
    }
}

/// Something that a controller says.
pub fn to_host(draw: &mut Draw<'_>, revision: u64) -> ToHost {
    let epoch = draw.below(4) as u64;
    match draw.below(10) {
        0 | 1 => ToHost::Welcome {
            epoch,
            answers: draw.near(8).into(),
            revision: revision.saturating_sub(1),
            terms: Terms {
                lease: pause(draw),
                beat: pause(draw),
                least_bytes: draw.size(),
            },
        },
        2 => ToHost::Synced { epoch, revision },
        3 => ToHost::Taken {
            sequence: draw.near(8).into(),
        },
        4 => ToHost::Resync {
            why: draw.one_of(&[Resync::NoHello, Resync::Digest]),
        },
        _ => ToHost::Changes {
            epoch,
            revision,
            changes: several(draw, change),
        },
    }
}

/// Something to be stored.
pub fn record(draw: &mut Draw<'_>) -> Record {
    let job = job_number(draw);
    match draw.below(4) {
        0 | 1 => Record::JobComes {
            job,
            leader: draw.one_of(&["host0", "host1", "nobody", ""]).to_owned(),
            pattern: pattern(draw),
        },
        2 => Record::JobGoes { job },
        _ => Record::LinksFail { links: links(draw) },
    }
}
