//! Random small networks of every kind, some with links and devices that failed.

use hocket_core::id::{DeviceId, LinkId, narrow};
use hocket_core::topology::build::{self, Clos, RingWays};
use hocket_core::topology::{
    Dimension, DimensionKind, Offload, Switching, Topology, TopologyBuilder,
};
use hocket_core::units::{Bandwidth, Seed, Time};

/// A network of 2 to 9 NPUs.
pub(crate) fn network(seed: &mut Seed) -> Topology {
    let whole = match seed.below(12) {
        0..4 => irregular(seed),
        4..6 => product(seed),
        6 => mesh(seed),
        7 => star(seed),
        8 => clos(seed),
        9 => ring(seed),
        _ => road(seed),
    };
    let switching = [
        whole.switching(),
        Switching::CutThrough,
        Switching::StoreAndForward,
    ];
    let whole = whole.with_switching(switching[seed.below(3)]);
    let whole = if seed.below(4) == 0 {
        offloaded(whole, seed)
    } else {
        whole
    };
    let whole = if seed.below(3) == 0 {
        grouped(whole, seed)
    } else {
        whole
    };
    if seed.below(5) > 0 {
        return whole;
    }
    let mut devices = Vec::new();
    if seed.below(3) == 0 {
        devices.push(DeviceId::from(seed.below(whole.device_count())));
    }
    let links = whole.links().len();
    let links: Vec<LinkId> = (0..1 + seed.below(2))
        .map(|_| LinkId::from(seed.below(links)))
        .collect();
    let left = whole.without(&devices, &links);
    left.ok()
        .filter(|left| left.npu_count() > 1 && !left.links().is_empty())
        .unwrap_or(whole)
}

/// Nodes of NPUs, whoever is joined with whom: neighbours by number, or any.
fn grouped(topology: Topology, seed: &mut Seed) -> Topology {
    let npus = topology.npu_count();
    let count = 1 + seed.below(npus.min(4));
    let drawn = seed.below(2) == 0;
    let mut groups = vec![Vec::new(); count];
    for npu in topology.npus() {
        let group = match drawn {
            true => seed.below(count),
            false => npu.index() * count / npus,
        };
        groups[group].push(npu);
    }
    groups.retain(|group| !group.is_empty());
    topology.with_groups(groups).expect("every NPU is in one")
}

/// Some switches sum and multicast, a few at a rate of their own.
fn offloaded(mut topology: Topology, seed: &mut Seed) -> Topology {
    for switch in topology.npu_count()..topology.device_count() {
        if seed.below(4) > 0 {
            // One that does both, or one after the other only.
            let all_reduces = seed.below(2) == 0;
            let offload = Offload {
                rate: (seed.below(3) == 0).then(|| rate(seed)),
                all_reduces,
                ..Offload::FULL
            };
            let switch = DeviceId::from(switch);
            topology = topology
                .with_offload(switch, Some(offload))
                .expect("a switch");
        }
    }
    topology
}

/// From a slow link to a fast one; some of odd rates, for what rounds.
pub(crate) fn rate(seed: &mut Seed) -> Bandwidth {
    let rate = match seed.below(6) {
        0 => 1 + seed.below(100_000_000_000) as u64,
        1 => [7_000_000_001, 333_333_333, 999_999_999_989][seed.below(3)],
        _ => [1, 2, 10, 10, 25, 50][seed.below(6)] * 1_000_000_000,
    };
    Bandwidth::from_bytes_per_second(rate).expect("positive")
}

/// None, as long as short messages take, or longer than long ones.
fn latency(seed: &mut Seed) -> Time {
    match seed.below(6) {
        0 => Time::ZERO,
        1 => Time::from_ps(1 + seed.below(100_000) as u64),
        2 => Time::from_ps(1 + seed.below(100_000_000) as u64),
        _ => Time::from_ns([20, 500, 500, 2600, 100_000][seed.below(5)]),
    }
}

fn limit(seed: &mut Seed) -> Option<Bandwidth> {
    (seed.below(2) == 0).then(|| rate(seed))
}

fn link(builder: &mut TopologyBuilder, a: usize, b: usize, seed: &mut Seed) {
    let (rate, latency) = (rate(seed), latency(seed));
    builder.link(DeviceId::from(a), DeviceId::from(b), rate, latency);
}

/// A tree of links both ways, each of its own cost, and one-way links on top, parallel ones too.
fn irregular(seed: &mut Seed) -> Topology {
    let (npus, switches) = (2 + seed.below(6), seed.below(4));
    let mut builder = TopologyBuilder::new("irregular");
    builder.npus(npus);
    for i in 0..switches {
        builder.switch(format!("switch{i}"), limit(seed));
    }
    let devices = npus + switches;
    let mut order: Vec<usize> = (0..devices).collect();
    for i in (1..devices).rev() {
        order.swap(i, seed.below(i + 1));
    }
    for i in 1..devices {
        let (a, b) = (order[i], order[seed.below(i)]);
        link(&mut builder, a, b, seed);
        link(&mut builder, b, a, seed);
    }
    for _ in 0..seed.below(8) {
        let a = seed.below(devices);
        link(
            &mut builder,
            a,
            (a + 1 + seed.below(devices - 1)) % devices,
            seed,
        );
    }
    builder.finish().expect("a network")
}

/// A row of NPUs and switches, most links alike: what comes from afar meets what begins near by.
fn road(seed: &mut Seed) -> Topology {
    let (npus, switches) = (3 + seed.below(5), 1 + seed.below(3));
    let mut builder = TopologyBuilder::new("road");
    builder.npus(npus);
    for i in 0..switches {
        let limit = limit(seed).filter(|_| seed.below(3) == 0);
        builder.switch(format!("switch{i}"), limit);
    }
    let mut order: Vec<usize> = (0..npus + switches).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, seed.below(i + 1));
    }
    let (usual, far) = (rate(seed), latency(seed));
    for pair in order.windows(2) {
        for (a, b) in [(pair[0], pair[1]), (pair[1], pair[0])] {
            let rate = if seed.below(4) == 0 {
                rate(seed)
            } else {
                usual
            };
            let latency = [far, far, Time::ZERO, latency(seed)][seed.below(4)];
            builder.link(DeviceId::from(a), DeviceId::from(b), rate, latency);
        }
    }
    builder.finish().expect("a network")
}

/// One to three small dimensions; the switches of some sum.
fn product(seed: &mut Seed) -> Topology {
    const KINDS: [DimensionKind; 4] = [
        DimensionKind::Ring,
        DimensionKind::Line,
        DimensionKind::FullyConnected,
        DimensionKind::Switch,
    ];
    let sizes: &[u32] = match seed.below(3) {
        0 => &[2, 3, 4, 5, 7, 8],
        1 => &[2, 3, 4],
        _ => &[1, 2, 2, 2],
    };
    let count = if sizes.len() == 6 {
        1
    } else {
        2 + usize::from(sizes.len() == 4)
    };
    let dimensions = (0..count).map(|i| {
        let kind = KINDS[seed.below(4)];
        let size = sizes[seed.below(sizes.len())];
        Dimension {
            kind,
            size: if i == 0 { size.max(2) } else { size },
            bandwidth: rate(seed),
            latency: latency(seed),
            offload: kind == DimensionKind::Switch && seed.below(4) == 0,
        }
    });
    let dimensions: Vec<Dimension> = dimensions.collect();
    build::product(&dimensions).expect("a product")
}

fn mesh(seed: &mut Seed) -> Topology {
    let sizes = [2 + narrow(seed.below(3)), 1 + narrow(seed.below(3))];
    let (rate, latency) = (rate(seed), latency(seed));
    let made = match seed.below(3) {
        0 => build::torus(&sizes, rate, latency),
        1 => build::hypercube(1 + narrow(seed.below(3)), rate, latency),
        _ => build::mesh(&sizes, rate, latency),
    };
    made.expect("a mesh")
}

/// A switch, perhaps with a limit, and links of different costs in and out.
fn star(seed: &mut Seed) -> Topology {
    let npus = 2 + seed.below(6);
    let mut builder = TopologyBuilder::new("star");
    builder.npus(npus);
    builder.switch("switch", limit(seed));
    let usual = (rate(seed), latency(seed));
    for npu in 0..npus {
        for (a, b) in [(npu, npus), (npus, npu)] {
            let (rate, latency) = if seed.below(3) == 0 {
                (rate(seed), latency(seed))
            } else {
                usual
            };
            builder.link(DeviceId::from(a), DeviceId::from(b), rate, latency);
        }
    }
    builder.finish().expect("a network")
}

fn clos(seed: &mut Seed) -> Topology {
    let made = Clos {
        spines: 1 + narrow(seed.below(3)),
        tors: 2 + narrow(seed.below(2)),
        hosts_per_tor: 1 + narrow(seed.below(3)),
        host_bandwidth: rate(seed),
        bandwidth: rate(seed),
        latency: latency(seed),
    }
    .build();
    made.expect("a Clos")
}

fn ring(seed: &mut Seed) -> Topology {
    let ways = [RingWays::One, RingWays::Both][seed.below(2)];
    let npus = 3 + narrow(seed.below(5));
    match seed.below(3) {
        0 => build::fully_connected(npus, rate(seed), latency(seed)),
        _ => build::ring(npus, rate(seed), latency(seed), ways),
    }
    .expect("a ring")
}
