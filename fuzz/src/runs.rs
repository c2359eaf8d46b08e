//! A plan that is proved: every fidelity runs it, and what they tell fits together.

use std::sync::Arc;

use hocket_core::bound::{BoundOptions, Fidelity, bound};
use hocket_core::id::TransferId;
use hocket_core::progress::Silent;
use hocket_core::report::{Bins, Report, activity, heat};
use hocket_core::simulate::{
    FlowOptions, LatencyModel, LinkOrder, PacketOptions, Run, SimulateError, SimulateOptions,
    Switching, simulate, simulate_flows, simulate_packets,
};
use hocket_core::units::Time;
use hocket_core::verify::Verified;

use super::draw::{Draw, Patience};

/// Most flits that packets of one run are made of.
const MAX_FLITS: u64 = 2_000;

/// Runs a plan at each fidelity, with options that are drawn.
pub fn check(verified: &Verified, draw: &mut Draw<'_>) {
    let options = SimulateOptions {
        order: draw.one_of(&[None, Some(LinkOrder::Ready), Some(LinkOrder::Plan)]),
        switching: draw.one_of(&[
            None,
            Some(Switching::StoreAndForward),
            Some(Switching::CutThrough),
        ]),
        latency: draw.one_of(&[LatencyModel::Overlapped, LatencyModel::Occupying]),
        keep_services: draw.yes(),
        ..SimulateOptions::default()
    };
    if let Some(run) = told(simulate(verified, &options, &mut Patience(1_000))) {
        look_at(&run, verified, Fidelity::Link);
    }
    let flow_rate = (draw.below(8) == 0).then(|| draw.rate());
    let options = FlowOptions {
        flow_rate,
        keep_services: draw.yes(),
        rate_bits: std::num::NonZeroU32::new(draw.below(12) as u32),
    };
    if let Some(run) = told(simulate_flows(verified, &options, &mut Patience(1_000))) {
        look_at(&run, verified, Fidelity::Flow);
    }
    packets(verified, draw);
}

fn packets(verified: &Verified, draw: &mut Draw<'_>) {
    let options = PacketOptions {
        packet_bytes: draw.one_of(&[8192, 512, 1, 0, 1 << 20]),
        flit_bytes: draw.one_of(&[512, 256, 1, 0, 4096]),
        header_flits: draw.one_of(&[0, 1, 7, u32::MAX]),
        virtual_channels: draw.one_of(&[4, 1, 2, 64, 0, 65]),
        buffer_flits: draw.one_of(&[318, 16, 1, 0, u32::MAX]),
        cycle: draw.one_of(&[
            None,
            Some(Time::from_ns(1)),
            Some(Time::from_ps(1)),
            Some(Time::ZERO),
            Some(Time::MAX),
        ]),
        reduction_rate: (draw.below(8) == 0).then(|| draw.rate()),
        order: draw.one_of(&[None, Some(LinkOrder::Ready), Some(LinkOrder::Plan)]),
        keep_services: draw.yes(),
    };
    let plan = verified.plan();
    let sizes = (0..plan.len()).map(|i| plan.bytes(TransferId(i as u32)));
    let flits = |bytes: u64| {
        let of_bytes = bytes.div_ceil(options.flit_bytes.max(1));
        let packets = bytes.div_ceil(options.packet_bytes.max(1)).max(1);
        of_bytes.saturating_add(packets.saturating_mul(options.header_flits.into()))
    };
    if sizes.map(flits).fold(0, u64::saturating_add) > MAX_FLITS {
        return;
    }
    if let Some(run) = told(simulate_packets(verified, &options, &mut Patience(1_000))) {
        let flit_bytes = options.flit_bytes;
        look_at(&run, verified, Fidelity::Packet { flit_bytes });
    }
}

/// The run, if it came to something; every reason why it did not is one that may be.
fn told(result: Result<Run, SimulateError>) -> Option<Run> {
    match result {
        Ok(run) => Some(run),
        Err(error) => {
            one_line(&error.to_string());
            None
        }
    }
}

fn look_at(run: &Run, verified: &Verified, fidelity: Fidelity) {
    let (plan, topology) = (verified.plan(), verified.topology());
    let options = BoundOptions {
        fidelity,
        ..BoundOptions::default()
    };
    let bound = bound(topology, plan.collective(), &options, &mut Silent).expect("nobody stops it");
    bound.witness.describe(topology);
    assert!(
        run.time >= bound.time,
        "{} in {} at {fidelity:?} fidelity, below the bound of {}",
        plan.algorithm(),
        run.time,
        bound.time
    );
    assert_eq!(run.end.len(), plan.len());
    assert_eq!(
        run.end.iter().max().copied().unwrap_or(Time::ZERO),
        run.time
    );
    assert!(
        run.start
            .iter()
            .zip(&run.end)
            .all(|(start, end)| start <= end)
    );
    let report = Report::new(run, plan.collective(), topology);
    assert!(report.rates.algbw.is_finite() && report.utilization >= 0.0);
    heat(run, 3);
    // Without dimensions there is no activity.
    drop(activity(run, verified, Bins::Count(3)));
}

/// What a message must be.
pub fn one_line(message: &str) {
    assert!(
        !message.is_empty() && !message.contains(['\n', '\u{1b}']),
        "{message:?}"
    );
}

/// Proves a plan of ours, which must be right, and runs it.
pub fn prove_and_run(
    plan: hocket_core::plan::Plan,
    topology: &Arc<hocket_core::topology::Topology>,
    draw: &mut Draw<'_>,
) {
    use hocket_core::verify::{VerifyError, verify};
    let name = format!("{} {}", plan.algorithm(), plan.collective().kind());
    match verify(Arc::new(plan), topology.clone(), &mut Patience(1_000)) {
        Ok(verified) => check(&verified, draw),
        Err(VerifyError::Interrupted(_)) => {}
        Err(error) => panic!("{name} on {:?}: {error}", topology.name()),
    }
}
