//! Runs at every fidelity, with random options of each.

use std::num::NonZeroU32;

use hocket_core::algorithms::{Algorithm, PlanOptions, schedule};
use hocket_core::bound::{Bound, BoundOptions, Fidelity, bound};
use hocket_core::collective::Collective;
use hocket_core::id::{fit, narrow};
use hocket_core::multirail::{Model, Rail};
use hocket_core::progress::Silent;
use hocket_core::simulate::{
    FlowOptions, LatencyModel, LinkOrder, PacketOptions, SimulateError, SimulateOptions, Switching,
    simulate, simulate_flows, simulate_packets,
};
use hocket_core::topology::Topology;
use hocket_core::units::{Seed, Time};
use hocket_core::verify::Verified;

use crate::networks::rate;
use crate::tally::Tally;

const ORDERS: [LinkOrder; 2] = [LinkOrder::Ready, LinkOrder::Plan];
const SWITCHINGS: [Switching; 2] = [Switching::StoreAndForward, Switching::CutThrough];
const LATENCIES: [LatencyModel; 2] = [LatencyModel::Overlapped, LatencyModel::Occupying];

/// The bound beside a run at a fidelity.
fn bound_at(fidelity: Fidelity, topology: &Topology, collective: &Collective) -> Bound {
    let options = BoundOptions {
        fidelity,
        ..BoundOptions::default()
    };
    bound(topology, collective, &options, &mut Silent).expect("nobody stops it")
}

/// Runs of a plan: link twice, flow and packet once each.
pub(crate) fn of_plan(verified: &Verified, seed: &mut Seed, tally: &mut Tally) {
    let (topology, collective) = (verified.topology(), verified.plan().collective());
    let link = bound_at(Fidelity::Link, topology, collective);
    for _ in 0..2 {
        let options = SimulateOptions {
            order: [None, Some(ORDERS[seed.below(2)])][seed.below(2)],
            switching: Some(SWITCHINGS[seed.below(2)]),
            latency: LATENCIES[seed.below(2)],
            keep_services: false,
            ..SimulateOptions::default()
        };
        match simulate(verified, &options, &mut Silent) {
            Ok(run) => tally.run("link", run.time, &link, &options),
            Err(error) => refuse(error, tally),
        }
    }
    let flow = bound_at(Fidelity::Flow, topology, collective);
    let options = FlowOptions {
        flow_rate: (seed.below(6) == 0).then(|| rate(seed)),
        keep_services: false,
        rate_bits: [None, None, None, NonZeroU32::new(3)][seed.below(4)],
    };
    match simulate_flows(verified, &options, &mut Silent) {
        Ok(run) => tally.run("flow", run.time, &flow, &options),
        Err(error) => refuse(error, tally),
    }
    let options = packets(collective.size(), seed);
    let fidelity = Fidelity::Packet {
        flit_bytes: options.flit_bytes,
    };
    let packet = bound_at(fidelity, topology, collective);
    match simulate_packets(verified, &options, &mut Silent) {
        Ok(run) => tally.run("packet", run.time, &packet, &options),
        Err(error) => refuse(error, tally),
    }
}

fn refuse(error: SimulateError, tally: &mut Tally) {
    match error {
        SimulateError::Deadlock { .. } => tally.refuse("waits for ever in plan order"),
        SimulateError::Buffers { .. } => tally.refuse("full buffers in a circle"),
        SimulateError::TooLong => tally.refuse("longer than 213 days"),
        other => tally.wrong(format!("{other}")),
    }
}

/// Flits of a 40th of all bytes to more than all, and every other knob.
fn packets(size: u64, seed: &mut Seed) -> PacketOptions {
    let parts = [1, 3, 10, 40][seed.below(4)];
    let flit_bytes = size / parts + 1 + seed.below(3) as u64;
    let packet_bytes = flit_bytes * (1 + seed.below(4) as u64) + seed.below(2) as u64;
    let header_flits = [0, 0, 1][seed.below(3)];
    let packet_flits = fit::<u32, _>(packet_bytes.div_ceil(flit_bytes)) + header_flits;
    let cycles = [1, 1_000, 3_001, 1_000_000];
    PacketOptions {
        packet_bytes,
        flit_bytes,
        header_flits,
        virtual_channels: 1 + narrow(seed.below(4)),
        buffer_flits: packet_flits + [0, 1, 40][seed.below(3)],
        cycle: (seed.below(2) == 0).then(|| Time::from_ps(cycles[seed.below(4)])),
        reduction_rate: (seed.below(4) == 0).then(|| rate(seed)),
        order: [None, Some(ORDERS[seed.below(2)])][seed.below(2)],
        keep_services: false,
    }
}

/// Runs of a multi-rail schedule at dimension fidelity, where one applies.
pub(crate) fn of_schedule(
    topology: &Topology,
    collective: &Collective,
    seed: &mut Seed,
    tally: &mut Tally,
) {
    // Where links failed, or a switch has a limit, NPUs differ: then there is no such fidelity.
    let is_limited = topology
        .devices()
        .iter()
        .any(|device| device.limit.is_some());
    let is_whole = !topology.name().contains("without");
    if is_limited || !is_whole || Rail::of(topology).is_empty() {
        return;
    }
    let dimension = bound_at(Fidelity::Dimension, topology, collective);
    let several: Vec<Algorithm> = Algorithm::ALL
        .into_iter()
        .filter(|it| it.is_multirail() || *it == Algorithm::Hierarchical)
        .collect();
    for _ in 0..3 {
        let options = PlanOptions {
            chunks: Some(1 + seed.below(4)),
            effort: 1_000,
            ..PlanOptions::new(several[seed.below(several.len())])
        };
        let Ok(made) = schedule(topology, collective, &options, &mut Silent) else {
            continue;
        };
        let model = Model {
            switching: SWITCHINGS[seed.below(2)],
            latency: LATENCIES[seed.below(2)],
        };
        let finish = if seed.below(2) == 0 {
            made.simulate(model).finish
        } else {
            made.timeline.finish
        };
        tally.run(
            "dimension",
            Time::from_ps(finish),
            &dimension,
            &(options, model),
        );
    }
}
