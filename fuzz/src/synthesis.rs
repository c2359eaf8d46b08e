//! Synthesis on any network: greedy, its parts apart, the congestion-blind baseline, timetables from outside.

use hocket_core::collective::CollectiveKind;
use hocket_core::plan::PlanError;
use hocket_core::synthesis::{GREEDY, Problem, Send, Unwinding, unwindings};
use hocket_core::topology::LatencyModel;

use super::draw::{Draw, Patience};
use super::network;
use super::runs::{one_line, prove_and_run};

/// Most chunks, summed and copied, of a problem.
const MAX_CHUNKS: usize = 200;

/// Finds a timetable; the plan that it makes is right.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let Some(topology) = network::topology(&mut draw) else {
        return;
    };
    let Some(collective) = network::collective(&mut draw, &topology) else {
        return;
    };
    let unwinding = unwinding(&mut draw, &unwindings(&topology));
    let latency = draw.one_of(&[LatencyModel::Overlapped, LatencyModel::Occupying]);
    let pieces = draw.near(5) as usize;
    let demands = match collective.kind() {
        CollectiveKind::Custom | CollectiveKind::AllToAll => collective.demands().len(),
        _ => collective.npus().len(),
    };
    if pieces.saturating_mul(demands) > MAX_CHUNKS && pieces < 1 << 28 {
        return;
    }
    let problem = Problem::new(
        &topology,
        &collective,
        pieces,
        &unwinding,
        latency,
        16 << 30,
    );
    let problem = match problem {
        Ok(problem) => problem,
        Err(error) => return one_line(&error.to_string()),
    };
    let problem = match draw.below(4) {
        0 => problem.discretised(draw.size()),
        _ => Ok(problem),
    };
    match problem {
        Ok(problem) => solve(&problem, &topology, &mut draw),
        Err(error) => refused(error),
    }
}

fn solve(
    problem: &Problem,
    topology: &std::sync::Arc<hocket_core::topology::Topology>,
    draw: &mut Draw<'_>,
) {
    let seed = draw.word();
    let trials = draw.below(4) as u64;
    let patience = &mut Patience(1_000);
    let least = problem.least();
    let times = match draw.below(5) {
        0 => problem.greedy_apart(seed, trials, patience),
        1 => {
            return match problem.blind(seed) {
                Ok(plan) => prove_and_run(plan, topology, draw),
                Err(error) => one_line(&error.to_string()),
            };
        }
        2 => return drop(problem.compact(seed, patience).map_err(refused)),
        3 => problem.timetables(sends(draw), sends(draw)),
        _ => problem.greedy(seed, trials, patience),
    };
    match times {
        Ok(times) => {
            problem.check(&times).expect("what was found is whole");
            assert!(
                times.end() >= least,
                "{} is below the least, {least}",
                times.end()
            );
            prove_and_run(problem.plan(GREEDY, &times), topology, draw);
        }
        Err(error) => refused(error),
    }
}

fn refused(error: PlanError) {
    one_line(&error.to_string());
}

fn unwinding(draw: &mut Draw<'_>, candidates: &[Vec<Unwinding>]) -> Vec<Unwinding> {
    match draw.below(3) {
        0 => candidates.get(draw.below(32)).cloned().unwrap_or_default(),
        _ => (0..draw.below(3))
            .map(|_| match draw.below(3) {
                0 => Unwinding::Degree(draw.near(5)),
                1 => Unwinding::BothWays,
                _ => Unwinding::Max,
            })
            .collect(),
    }
}

fn sends(draw: &mut Draw<'_>) -> Vec<Send> {
    let one = |draw: &mut Draw<'_>| Send {
        chunk: draw.near(4),
        edge: draw.near(8),
        start: draw.size(),
    };
    (0..draw.below(8)).map(|_| one(draw)).collect()
}
