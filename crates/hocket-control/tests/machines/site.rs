//! Where runs take place: a small fabric, its hosts, and options with short beats, so that runs are short.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use hocket_base::id::{DeviceId, NpuId};
use hocket_base::units::{Bandwidth, Time};
use hocket_control::agent;
use hocket_control::directory::{Directory, HostEntry};
use hocket_control::message::Terms;
use hocket_control::server;
use hocket_control::stages::Stages;
use hocket_fabric::Fabric;
use hocket_fabric::steering::{Algorithm, Fields, Policy, SwitchHash};
use hocket_topology::Topology;
use hocket_topology::build::Clos;

use super::disk::Random;
use super::faults::HOSTS;

pub(crate) const BEAT: Duration = Duration::from_millis(500);
pub(crate) const RECOVERY: Duration = Duration::from_millis(900);

pub(crate) fn address(host: u32) -> IpAddr {
    [10, 0, 0, host as u8 + 1].into()
}

/// Options of the servers, of which some are drawn.
pub(crate) fn server_options(random: &mut Random) -> server::Options {
    let mut options = server::Options {
        terms: Terms {
            lease: Duration::from_millis(1_200),
            beat: BEAT,
            least_bytes: 1_000,
        },
        grace: Duration::from_millis(400),
        recovery: RECOVERY,
        resend: Duration::from_millis(100),
        most_host_flows: 24,
        ..server::Options::default()
    };
    options.policy.rate_slack_ppm = random.one_in(3).then_some(100_000);
    options.policy.look_ahead = if random.one_in(3) { 4 } else { 0 };
    options.policy.failover = random.one_in(3);
    options
}

pub(crate) fn agent_options(seed: u64) -> agent::Options {
    agent::Options {
        patience: Duration::from_millis(20),
        resend: Duration::from_millis(100),
        backoff: [Duration::from_millis(10), Duration::from_millis(100)],
        connect: Duration::from_millis(250),
        hold: Duration::from_millis(200),
        retry: Duration::from_millis(300),
        seed,
        ..agent::Options::default()
    }
}

/// Four spines, four ToRs, two hosts at each.
fn topology() -> Topology {
    let bandwidth = Bandwidth::from_bytes_per_second(12_500_000_000).unwrap();
    let topology = Clos {
        spines: 4,
        tors: 4,
        hosts_per_tor: 2,
        host_bandwidth: bandwidth,
        bandwidth,
        latency: Time::ZERO,
    }
    .build();
    topology.unwrap()
}

/// With a segment for each switch.
pub(crate) fn stages_with_segments() -> Stages {
    stages().with_segments(&topology(), |device| {
        Some(Ipv6Addr::from(u128::from(device.0)))
    })
}

pub(crate) fn stages() -> Stages {
    let topology = topology();
    let hash = |device: DeviceId| SwitchHash {
        algorithm: Algorithm::Linux(Policy::Custom(Fields::FIVE)),
        seed: device.0,
        offset: 0,
    };
    Stages::new(Fabric::new(&topology).unwrap(), &topology, hash, true)
}

/// Host `i` has NIC `i`; jobs 1 and 2 are of all hosts, and 3 is of host 0 alone.
pub(crate) fn directory() -> Directory {
    let name = |host: u32| format!("host{host}");
    let hosts = (0..HOSTS).map(|host| HostEntry {
        name: name(host),
        nics: vec![(address(host), NpuId(host))],
    });
    let all: Vec<String> = (0..HOSTS).map(name).collect();
    let jobs = vec![(1, all.clone()), (2, all), (3, vec![name(0)])];
    Directory::new(hosts.collect(), jobs, false).unwrap()
}

/// The links between switches.
pub(crate) fn links(stages: &Stages) -> Vec<u32> {
    let fabric = stages.fabric();
    let mut links = Vec::new();
    for (src, dst) in [(0, 1), (1, 2), (2, 3), (3, 0)] {
        for choice in 0..4 {
            fabric.route(src, dst, choice, &mut links);
        }
    }
    links.sort_unstable();
    links.dedup();
    links.iter().map(|link| link.0).collect()
}
