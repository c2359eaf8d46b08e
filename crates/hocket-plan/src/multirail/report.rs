//! How well a schedule uses its rails, at dimension fidelity.

use crate::collective::Collective;
use crate::multirail::{Schedule, Timeline};
use crate::report::{Bins, DimensionReport, DimensionUse, Union, ideal};
use crate::units::Time;

/// Returns the use that a schedule makes of its rails in a timeline of its own; what [`DimensionReport::new`] says of a
/// run. Where switches sum, a rail's bandwidth counts each way and there is no ideal time.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bytes of a dimension may pass 64 bits"
)]
pub fn schedule_report(
    schedule: &Schedule,
    timeline: &Timeline,
    collective: &Collective,
) -> DimensionReport {
    let rails = &schedule.rails;
    let mut sent = vec![0.0; rails.len()];
    for lane in &schedule.lanes {
        for stage in lane.stages(rails) {
            sent[usize::from(stage.rail)] += stage.sent;
        }
    }
    let npus = collective.npus().len() as f64;
    let seconds = Time::from_ps(timeline.finish).as_seconds();
    let ways = |offload: bool| 1.0 + f64::from(u8::from(offload));
    let bandwidth = rails
        .iter()
        .map(|rail| rail.bandwidth as f64 * ways(rail.offload));
    let bandwidth: Vec<f64> = bandwidth.collect();
    let share = |sent: f64, bandwidth: f64| sent / (bandwidth * seconds).max(f64::MIN_POSITIVE);
    let uses = rails.iter().zip(&sent).zip(&bandwidth);
    let uses = uses.map(|((rail, &sent), &bandwidth)| DimensionUse {
        kind: rail.kind,
        size: rail.size,
        bandwidth: rail.bandwidth as f64,
        bytes: (sent * npus).round() as u128,
        utilization: share(sent, bandwidth),
    });
    let total: f64 = bandwidth.iter().sum();
    let is_plain = !rails.iter().any(|rail| rail.offload);
    DimensionReport {
        dimensions: uses.collect(),
        weighted_utilization: share(sent.iter().sum(), total),
        ideal: ideal(collective, total).filter(|_| is_plain),
    }
}

/// Share of each time bin in which each rail has an operation under way, 0 to 1; what [`crate::report::activity`]
/// says of a run.
pub fn schedule_activity(schedule: &Schedule, timeline: &Timeline, bins: Bins) -> Vec<f32> {
    let stages = schedule.stages();
    let mut unions = vec![Union::default(); schedule.rails.len()];
    for (task, (&start, &end)) in timeline.start.iter().zip(&timeline.end).enumerate() {
        let lane = &schedule.lanes[task / stages / crate::multirail::PARTS];
        if let Some(rail) = lane.rails().nth(task % stages) {
            unions[usize::from(rail)].add(start, end);
        }
    }
    let finish = Time::from_ps(timeline.finish);
    let shares = unions.into_iter().map(|union| union.shares(finish, bins));
    shares.flatten().collect()
}
