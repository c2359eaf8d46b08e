//! Packet fidelity is what a slow, obvious network of routers says, cycle for cycle.

use std::sync::Arc;

use hocket_core::algorithms::{Algorithm, PlanOptions, check_applicable, plan};
use hocket_core::collective::{Collective, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{DeviceId, NpuId, Rank, TransferId, fit, narrow};
use hocket_core::plan::{Chunks, LinkOrder, Op, PlanBuilder, Wait};
use hocket_core::progress::Silent;
use hocket_core::simulate::{PacketOptions, Run, SimulateError, simulate_packets};
use hocket_core::topology::{Topology, TopologyBuilder, build};
use hocket_core::units::{Bandwidth, Seed, Time};
use hocket_core::verify::{Verified, verify};
use proptest::prelude::*;

use crate::networks;
use crate::networks::config;
use crate::routers::{Outcome, Routers};

fn rate(megabytes: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(megabytes * 1_000_000).unwrap()
}

fn a_rate(seed: &mut Seed) -> Bandwidth {
    rate([8000, 4000, 2700, 1000, 500][seed.below(5)])
}

fn a_latency(seed: &mut Seed) -> Time {
    Time::from_ns([0, 1, 7, 40][seed.below(4)])
}

/// Small networks, most with links of different rates and latencies.
fn network(seed: &mut Seed) -> Topology {
    let (columns, rows) = (1 + seed.below(4), 1 + seed.below(3));
    let columns = if rows == 1 { columns.max(2) } else { columns };
    let mut builder = TopologyBuilder::new("small");
    match seed.below(4) {
        0 => {
            let sizes = [narrow(columns), narrow(rows)];
            return build::mesh(&sizes, a_rate(seed), a_latency(seed)).unwrap();
        }
        1 => {
            builder.npus(columns * rows);
            for npu in 0..columns * rows {
                let mut edge = |other: usize| {
                    let (a, b) = (DeviceId::from(npu), DeviceId::from(other));
                    builder.both_ways(a, b, a_rate(seed), a_latency(seed));
                };
                if npu % columns + 1 < columns {
                    edge(npu + 1);
                }
                if npu / columns + 1 < rows {
                    edge(npu + columns);
                }
            }
        }
        2 => {
            let npus = 3 + seed.below(4);
            builder.npus(npus);
            for npu in 0..npus {
                let next = DeviceId::from((npu + 1) % npus);
                builder.link(DeviceId::from(npu), next, a_rate(seed), a_latency(seed));
            }
        }
        _ => {
            let npus = 2 + seed.below(5);
            builder.npus(npus);
            let limit = (seed.below(2) == 0).then(|| a_rate(seed));
            let switch = builder.switch("switch", limit);
            for npu in 0..npus {
                builder.both_ways(DeviceId::from(npu), switch, a_rate(seed), a_latency(seed));
            }
        }
    }
    builder.finish().unwrap()
}

/// Messages between random NPUs, each after nothing, an earlier one or two earlier ones.
pub(crate) fn messages(topology: &Arc<Topology>, seed: &mut Seed) -> Verified {
    let npus = topology.npu_count();
    let most = [20, 300, 2000][seed.below(3)];
    let messages: Vec<(NpuId, NpuId, u64)> = (0..1 + seed.below(14))
        .map(|_| {
            let src = seed.below(npus);
            let dst = (src + 1 + seed.below(npus - 1)) % npus;
            (
                NpuId::from(src),
                NpuId::from(dst),
                1 + seed.below(most) as u64,
            )
        })
        .collect();
    let demands = messages.iter().map(|&(src, dst, bytes)| Demand {
        bytes,
        reduced: false,
        holders: NpuSet::One(src),
        wanted: NpuSet::One(dst),
    });
    let collective = Collective::custom(topology.npus().collect(), demands.collect()).unwrap();
    let chunks = Chunks::split(&collective.demands(), 1).unwrap();
    let mut builder = PlanBuilder::new("by hand", &collective, chunks);
    for (i, &(src, dst, _)) in messages.iter().enumerate() {
        let mut earlier = || Wait::on(TransferId::from(seed.below(i.max(1))));
        let wait = match i % 3 {
            0 => Wait::NOTHING,
            1 => earlier(),
            _ => {
                let both = [earlier(), earlier()];
                builder.all_of(&both)
            }
        };
        let wait = if seed.below(3) == 0 {
            Wait::NOTHING
        } else {
            wait
        };
        builder.send((narrow(i), 1), src, dst, Op::Copy, wait);
    }
    verify(Arc::new(builder.finish()), topology.clone(), &mut Silent).unwrap()
}

/// Legal options that make small buffers and short packets.
fn options(seed: &mut Seed) -> PacketOptions {
    let flit_bytes = [1, 8, 13, 64][seed.below(4)];
    let packet_bytes = flit_bytes * (1 + seed.below(6) as u64) + seed.below(3) as u64;
    let header_flits = [0, 0, 1, 3][seed.below(4)];
    let packet_flits = fit::<u32, _>(packet_bytes.div_ceil(flit_bytes)) + header_flits;
    PacketOptions {
        packet_bytes,
        flit_bytes,
        header_flits,
        virtual_channels: 1 + narrow(seed.below(4)),
        buffer_flits: packet_flits + [0, 1, 5, 40][seed.below(4)],
        cycle: [None, Some(Time::from_ns(1)), Some(Time::from_ns(3))][seed.below(3)],
        reduction_rate: (seed.below(2) == 0).then(|| a_rate(seed)),
        order: Some([LinkOrder::Ready, LinkOrder::Plan][seed.below(2)]),
        keep_services: seed.below(2) == 0,
    }
}

/// A run in cycles, as [`Routers`] tells it.
fn told(run: &Run, options: &PacketOptions, topology: &Topology) -> Outcome {
    let cycle = options.cycle_on(topology).unwrap().as_ps();
    let cycles = |time: &Time| {
        assert_eq!(time.as_ps() % cycle, 0);
        Some(time.as_ps() / cycle)
    };
    let links = run.links.iter();
    Outcome {
        start: run.start.iter().map(cycles).collect(),
        end: run.end.iter().map(cycles).collect(),
        links: links
            .map(|link| (cycles(&link.busy).unwrap(), link.bytes, link.messages))
            .collect(),
    }
}

/// Has both run a plan and compares them; whether it came to an end.
fn compare(verified: &Verified, options: &PacketOptions) -> bool {
    let topology = verified.topology();
    let expected = Routers::run(verified, options);
    let waiting = expected.end.iter().filter(|end| end.is_none()).count();
    match simulate_packets(verified, options, &mut Silent) {
        Ok(run) => {
            let ours = told(&run, options, topology);
            for t in 0..ours.end.len() {
                let of = |outcome: &Outcome| (outcome.start[t], outcome.end[t]);
                assert_eq!(of(&ours), of(&expected), "transfer {t}, {options:?}");
            }
            assert_eq!(ours.links, expected.links, "{options:?}");
            check_services(&run, options);
            true
        }
        Err(SimulateError::Buffers {
            waiting: ours,
            cycle,
        }) => {
            assert_eq!(ours, waiting, "{options:?}");
            check_cycle(&cycle, topology);
            false
        }
        // Plans that are meant for ready order may do so.
        Err(SimulateError::Deadlock {
            waiting: ours,
            first,
        }) if options.order == Some(LinkOrder::Plan) => {
            assert_eq!(ours, waiting, "{options:?}");
            assert!(expected.end[first.index()].is_none());
            false
        }
        Err(error) => panic!("{error}, {waiting} wait, {options:?}"),
    }
}

/// Links that wait for each other: each ends where the next begins, and the last is the first.
fn check_cycle(cycle: &str, topology: &Topology) {
    let links: Vec<(&str, &str)> = cycle
        .split(" and on through ")
        .next()
        .unwrap()
        .split(" waits for ")
        .map(|link| link.split_once('→').expect("two names"))
        .collect();
    assert!(links.len() >= 3, "{cycle}");
    assert!(
        links.windows(2).all(|pair| pair[0].1 == pair[1].0),
        "{cycle}"
    );
    for &(src, dst) in &links {
        let id = |name| topology.device_by_name(name).unwrap();
        assert!(!topology.links_from_to(id(src), id(dst)).is_empty());
    }
    let last = cycle
        .rsplit_once(" back to ")
        .map(|(_, last)| last.split_once('→').unwrap());
    assert_eq!(last.as_ref().unwrap_or(&links[links.len() - 1]), &links[0]);
}

/// Stays on a link do not overlap and last as long as it is busy.
fn check_services(run: &Run, options: &PacketOptions) {
    for (number, link) in run.links.iter().enumerate() {
        let stays = run.services.iter().filter(|s| s.link as usize == number);
        let mut busy = Time::ZERO;
        let mut last = Time::ZERO;
        for stay in stays {
            assert!(stay.start >= last, "{stay:?}");
            last = stay.end;
            busy = busy + stay.end.saturating_sub(stay.start);
        }
        assert!(!options.keep_services || busy == link.busy);
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn messages_take_what_routers_say(seed in any::<u64>()) {
        // Cheap, and worth many.
        for more in 0..8 {
            let mut seed = Seed(seed.wrapping_add(more));
            let topology = Arc::new(network(&mut seed));
            compare(&messages(&topology, &mut seed), &options(&mut seed));
        }
    }

    #[test]
    fn messages_on_any_network_take_what_routers_say(
        topology in networks::topology(),
        seed in any::<u64>(),
    ) {
        let mut seed = Seed(seed);
        compare(&messages(&Arc::new(topology), &mut seed), &options(&mut seed));
    }

    #[test]
    fn plans_take_what_routers_say(seed in any::<u64>()) {
        let mut seed = Seed(seed);
        let topology = Arc::new(network(&mut seed));
        let kind = CollectiveKind::NAMED[seed.below(CollectiveKind::NAMED.len())];
        let npus: Vec<NpuId> = topology.npus().collect();
        let root = kind.is_rooted().then(|| Rank::from(seed.below(npus.len())));
        let size = npus.len() as u64 * (1 + seed.below(40) as u64);
        let collective = Collective::new(kind, npus, size, root).unwrap();
        for algorithm in Algorithm::ALL {
            if check_applicable(&topology, &collective, algorithm).is_err() {
                continue;
            }
            let plan = plan(&topology, &collective, &PlanOptions::new(algorithm), &mut Silent).unwrap();
            if plan.len() > 300 {
                continue;
            }
            let verified = verify(Arc::new(plan), topology.clone(), &mut Silent).unwrap();
            compare(&verified, &options(&mut seed));
        }
    }
    #[test]
    fn packets_never_wait_in_a_circle_on_a_mesh(seed in any::<u64>()) {
        let mut seed = Seed(seed);
        let sizes = [2 + narrow(seed.below(3)), 1 + narrow(seed.below(4))];
        let mesh = build::mesh(&sizes, a_rate(&mut seed), a_latency(&mut seed)).unwrap();
        let npus: Vec<NpuId> = mesh.npus().collect();
        let size = npus.len() as u64 * (1 + seed.below(60) as u64);
        let collective = Collective::new(CollectiveKind::AllToAll, npus, size, None).unwrap();
        // Along x first, then along y.
        let plan = plan(&mesh, &collective, &PlanOptions::new(Algorithm::Direct), &mut Silent).unwrap();
        let verified = verify(Arc::new(plan), Arc::new(mesh), &mut Silent).unwrap();
        let options = PacketOptions { order: Some(LinkOrder::Ready), ..options(&mut seed) };
        let one = PacketOptions { virtual_channels: 1, ..options };
        prop_assert!(compare(&verified, &options));
        prop_assert!(compare(&verified, &one));
    }

    #[test]
    fn packets_on_a_one_way_ring_end_or_wait_in_a_circle(seed in any::<u64>()) {
        let mut seed = Seed(seed);
        let npus = 3 + seed.below(8);
        let (rate, latency) = (a_rate(&mut seed), a_latency(&mut seed));
        let ring = build::ring(narrow(npus), rate, latency, build::RingWays::One).unwrap();
        let all: Vec<NpuId> = ring.npus().collect();
        let size = npus as u64 * (1 + seed.below(300) as u64);
        let collective = Collective::new(CollectiveKind::AllToAll, all, size, None).unwrap();
        let plan = plan(&ring, &collective, &PlanOptions::new(Algorithm::Direct), &mut Silent).unwrap();
        let verified = verify(Arc::new(plan), Arc::new(ring), &mut Silent).unwrap();
        let options = PacketOptions {
            virtual_channels: 1,
            order: Some(LinkOrder::Ready),
            ..options(&mut seed)
        };
        compare(&verified, &options);
    }
}
