//! Schedules of dimensions: lanes from anywhere and those that are searched, lowered to plans.

use hocket_core::algorithms::{self, Algorithm, PlanOptions, plan_of};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::multirail::{Lane, Model, Policy, Rail, Schedule, balance};
use hocket_core::multirail::{schedule_activity, schedule_report};
use hocket_core::report::Bins;
use hocket_core::topology::{LatencyModel, Switching, Topology, build};

use super::draw::{Draw, Patience};
use super::network;
use super::runs::{one_line, prove_and_run};

/// Makes a schedule, runs it at dimension fidelity, and makes a plan of it.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let topology = match build::product(&network::tried(&mut draw)) {
        Ok(topology) => topology,
        Err(error) => return one_line(&error.to_string()),
    };
    let kind = draw.one_of(&[
        CollectiveKind::AllReduce,
        CollectiveKind::ReduceScatter,
        CollectiveKind::AllGather,
    ]);
    let size = draw.ample();
    let Ok(mut collective) = Collective::among_all(kind, &topology, size) else {
        return;
    };
    balance(&Rail::of(&topology));
    let made = match draw.yes() {
        true => searched(&topology, &collective, &mut draw),
        false => of_lanes(&topology, kind, &mut draw),
    };
    let schedule = match made {
        Ok(schedule) => schedule,
        Err(why) => return one_line(&why),
    };
    if draw.below(8) > 0 {
        let sizes = schedule.lanes.iter().map(|lane| lane.bytes);
        let bytes = sizes.fold(0, u64::saturating_add);
        collective = Collective::among_all(kind, &topology, bytes).expect("a byte or more");
    }
    check(&schedule, topology, &collective, &mut draw);
}

fn model(draw: &mut Draw<'_>) -> Model {
    Model {
        switching: draw.one_of(&[Switching::CutThrough, Switching::StoreAndForward]),
        latency: draw.one_of(&[LatencyModel::Overlapped, LatencyModel::Occupying]),
    }
}

fn searched(
    topology: &Topology,
    collective: &Collective,
    draw: &mut Draw<'_>,
) -> Result<Schedule, String> {
    let options = PlanOptions {
        chunks: Some(draw.near(9) as usize),
        effort: draw.byte().into(),
        ..PlanOptions::new(draw.one_of(&Algorithm::ALL))
    };
    if options
        .chunks
        .is_some_and(|chunks| (64..1 << 29).contains(&chunks))
    {
        return Err("large, but not too large".to_owned());
    }
    let made = algorithms::schedule(topology, collective, &options, &mut Patience(100));
    made.map_err(|error| error.to_string())
}

fn of_lanes(
    topology: &Topology,
    kind: CollectiveKind,
    draw: &mut Draw<'_>,
) -> Result<Schedule, String> {
    let rails = Rail::of(topology);
    let order = |draw: &mut Draw<'_>| match draw.below(8) {
        0 => (0..draw.below(5)).map(|_| draw.byte() % 8).collect(),
        _ => draw
            .order(rails.len())
            .into_iter()
            .map(|rail| rail as u8)
            .collect(),
    };
    let lane = |draw: &mut Draw<'_>| Lane {
        bytes: draw.ample(),
        reduce_scatter: match kind {
            CollectiveKind::AllGather if draw.below(8) > 0 => Vec::new(),
            _ => order(draw),
        },
        all_gather: match kind {
            CollectiveKind::ReduceScatter if draw.below(8) > 0 => Vec::new(),
            _ => order(draw),
        },
    };
    let lanes = (0..draw.below(6)).map(|_| lane(draw)).collect();
    let policy = draw.one_of(&[Policy::Fifo, Policy::SmallestFirst]);
    Schedule::of_lanes(kind, rails, lanes, policy, model(draw)).map_err(|error| error.to_string())
}

fn check(schedule: &Schedule, topology: Topology, collective: &Collective, draw: &mut Draw<'_>) {
    let timeline = schedule.simulate(model(draw));
    assert_eq!(timeline.end.iter().max(), Some(&timeline.finish));
    schedule_report(schedule, &timeline, collective);
    schedule_activity(schedule, &timeline, Bins::Count(3));
    match plan_of(schedule, &topology, collective, 16 << 30) {
        Ok(plan) => prove_and_run(plan, &topology.into(), draw),
        Err(error) => one_line(&error.to_string()),
    }
}
