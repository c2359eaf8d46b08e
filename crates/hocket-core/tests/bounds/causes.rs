//! The least networks on which a run was below a bound that is not of its fidelity.

use std::sync::Arc;

use hocket_core::algorithms::{Algorithm, PlanOptions, schedule};
use hocket_core::bound::{Bound, BoundOptions, Fidelity, bound};
use hocket_core::collective::{Collective, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{DeviceId, NpuId};
use hocket_core::plan::{Chunks, Op, PlanBuilder, Wait};
use hocket_core::progress::Silent;
use hocket_core::simulate::simulate_packets;
use hocket_core::simulate::{
    FlowOptions, PacketOptions, SimulateOptions, simulate, simulate_flows,
};
use hocket_core::topology::{Dimension, DimensionKind, Topology, TopologyBuilder, build};
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::{Verified, verify};

const GIGA: u64 = 1_000_000_000;

fn rate(bytes_per_second: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(bytes_per_second).expect("positive")
}

fn at(fidelity: Fidelity, topology: &Topology, collective: &Collective) -> Bound {
    let options = BoundOptions {
        fidelity,
        ..BoundOptions::default()
    };
    bound(topology, collective, &options, &mut Silent).expect("nobody stops it")
}

fn proved(plan: PlanBuilder, topology: &Arc<Topology>) -> Verified {
    verify(Arc::new(plan.finish()), topology.clone(), &mut Silent).expect("right")
}

/// NPU 0 and, by way of NPU 1, NPU 4 are far from NPU 2, which is near NPU 3, by a link that both need.
///
/// NPU 0 sends past NPU 2: as a fluid it is on the last link from the start. What NPU 4 sends, piece by
/// piece, is stored at NPUs 1 and 2 and comes to that link when the other has left it. On a link that
/// carries one byte after the other both would come at once: all 2 MB are 1 ms away, and take 2 ms.
#[test]
fn a_fluid_from_afar_passes_its_last_link_early() {
    let mut builder = TopologyBuilder::new("far and near");
    builder.npus(5);
    for (src, dst, ns) in [(0, 2, 1_000_000), (1, 2, 1_000_000), (2, 3, 0), (4, 1, 0)] {
        let latency = Time::from_ns(ns);
        builder.link(DeviceId(src), DeviceId(dst), rate(GIGA), latency);
    }
    let topology = Arc::new(builder.finish().expect("a network"));
    let demand = |holder| Demand {
        bytes: 1_000_000,
        reduced: false,
        holders: NpuSet::One(NpuId(holder)),
        wanted: NpuSet::One(NpuId(3)),
    };
    let npus = topology.npus().collect();
    let collective = Collective::custom(npus, vec![demand(0), demand(4)]).expect("a collective");
    let pieces: u32 = 1_000;
    let chunks = Chunks::split(&collective.demands(), pieces as usize).expect("chunks");
    let mut plan = PlanBuilder::new("by hand", &collective, chunks);
    plan.send((0, pieces), NpuId(0), NpuId(3), Op::Copy, Wait::NOTHING);
    let mut left = Wait::NOTHING;
    for piece in pieces..2 * pieces {
        let mut send = |src, dst, wait| {
            let sent = plan.send((piece, 1), NpuId(src), NpuId(dst), Op::Copy, wait);
            Wait::on(sent)
        };
        left = send(4, 1, left);
        let near = send(1, 2, left);
        send(2, 3, near);
    }
    let verified = proved(plan, &topology);
    let run = simulate_flows(&verified, &FlowOptions::default(), &mut Silent).expect("it runs");
    let fidelities = [Fidelity::Link, Fidelity::Flow];
    let [link, flow] = fidelities.map(|it| at(it, &topology, &collective));
    assert_eq!(link.time, Time::from_ns(3_000_000));
    assert_eq!(flow.time, Time::from_ns(2_000_000));
    assert!(
        run.time >= flow.time && run.time < Time::from_ns(2_010_000),
        "{}",
        run.time
    );
    let whole = simulate(&verified, &SimulateOptions::default(), &mut Silent).expect("it runs");
    assert!(whole.time >= link.time, "{}", whole.time);
}

/// NPU 1 takes no part, but helps: it is near the link into NPU 2, and NPU 0 far from it.
///
/// While NPU 0 sends past the switch, from the start, the rest goes to NPU 1; it comes to the link
/// when that is free again. So the link is busy all the time, and nothing comes 1 us late.
#[test]
fn a_helper_sends_while_what_comes_from_afar_is_still_under_way() {
    let mut builder = TopologyBuilder::new("helper");
    builder.npus(3);
    let switch = builder.switch("switch", None);
    for (src, dst, ns) in [
        (DeviceId(0), switch, 1_000),
        (DeviceId(0), DeviceId(1), 1_000),
        (DeviceId(1), switch, 0),
        (switch, DeviceId(2), 0),
    ] {
        builder.link(src, dst, rate(GIGA), Time::from_ns(ns));
    }
    let topology = Arc::new(builder.finish().expect("a network"));
    let root = Some(hocket_core::id::Rank(0));
    let npus = vec![NpuId(0), NpuId(2)];
    let collective =
        Collective::new(CollectiveKind::Broadcast, npus, 5_000, root).expect("a collective");
    let chunks = Chunks::split(&collective.demands(), 5).expect("chunks");
    let mut plan = PlanBuilder::new("by hand", &collective, chunks);
    plan.send((0, 3), NpuId(0), NpuId(2), Op::Copy, Wait::NOTHING);
    let helped = plan.send((3, 2), NpuId(0), NpuId(1), Op::Copy, Wait::NOTHING);
    plan.send((3, 2), NpuId(1), NpuId(2), Op::Copy, Wait::on(helped));
    let verified = proved(plan, &topology);
    let run = simulate_flows(&verified, &FlowOptions::default(), &mut Silent).expect("it runs");
    assert_eq!(run.time, Time::from_ns(5_000));
    let flow = at(Fidelity::Flow, &topology, &collective);
    assert_eq!(flow.time, run.time);
}

/// A message of one flit takes its time through the limit of a switch.
#[test]
fn a_flit_takes_its_time_through_a_limit() {
    let topology = build::switch(2, rate(40 * GIGA), Time::ZERO, Some(rate(GIGA)));
    let topology = Arc::new(topology.expect("a switch"));
    let kind = CollectiveKind::Broadcast;
    let npus = topology.npus().collect();
    let root = Some(hocket_core::id::Rank(0));
    let collective = Collective::new(kind, npus, 512, root).expect("a collective");
    let chunks = Chunks::split(&collective.demands(), 1).expect("chunks");
    let mut plan = PlanBuilder::new("by hand", &collective, chunks);
    plan.send((0, 1), NpuId(0), NpuId(1), Op::Copy, Wait::NOTHING);
    let verified = proved(plan, &topology);
    let options = PacketOptions::default();
    let run = simulate_packets(&verified, &options, &mut Silent).expect("it runs");
    let least = at(Fidelity::Packet { flit_bytes: 512 }, &topology, &collective);
    // 512 ns through the switch and the link behind it, 12.8 ns to the switch.
    assert_eq!(least.time.as_ps(), 512_000 + 12_800);
    assert!(
        run.time >= least.time && run.time < Time::from_ns(550),
        "{}",
        run.time
    );
}

/// Of 5 bytes each of three NPUs has 5/3 at dimension fidelity; in a plan one has 1, and lacks 4.
#[test]
fn shares_of_a_dimension_are_equal_to_the_fraction_of_a_byte() {
    let dimension = Dimension {
        kind: DimensionKind::FullyConnected,
        size: 3,
        bandwidth: rate(GIGA),
        latency: Time::ZERO,
        offload: false,
    };
    let topology = build::product(&[dimension]).expect("a product");
    for kind in [CollectiveKind::AllGather, CollectiveKind::ReduceScatter] {
        let collective = Collective::among_all(kind, &topology, 5).expect("a collective");
        let options = PlanOptions {
            chunks: Some(1),
            ..PlanOptions::new(Algorithm::Hierarchical)
        };
        let made = schedule(&topology, &collective, &options, &mut Silent).expect("it applies");
        let time = Time::from_ps(made.timeline.finish);
        let [link, own] =
            [Fidelity::Link, Fidelity::Dimension].map(|it| at(it, &topology, &collective));
        // 10/3 bytes, or 4, over two links.
        assert_eq!((own.time.as_ps(), link.time.as_ps()), (1_666, 2_000));
        assert!(time >= own.time && time < link.time, "{time}");
    }
}

/// Where switches sum, an NPU sends all it has, once, and gets all there is, once.
#[test]
fn what_switches_sum_leaves_and_enters_each_npu_once() {
    let dimension = Dimension {
        kind: DimensionKind::Switch,
        size: 4,
        bandwidth: rate(GIGA),
        latency: Time::from_ns(100),
        offload: true,
    };
    let topology = build::product(&[dimension]).expect("a product");
    let least = |kind| {
        let collective = Collective::among_all(kind, &topology, 4_000).expect("a collective");
        let own = at(Fidelity::Dimension, &topology, &collective);
        let names: Vec<&str> = own.components.iter().map(|(name, _)| *name).collect();
        (own.time.as_ps(), names)
    };
    // Two links away: 200 ns; an all-reduce of transfers would take 6 us.
    assert_eq!(
        least(CollectiveKind::AllReduce),
        (4_200_000, vec!["latency", "ingress", "egress"])
    );
    assert_eq!(
        least(CollectiveKind::AllGather),
        (3_200_000, vec!["latency", "ingress"])
    );
    assert_eq!(
        least(CollectiveKind::ReduceScatter),
        (3_200_000, vec!["latency", "egress"])
    );
}
