//! Schedules of dimensions, by the algorithms that make them.

use super::recipe::{Construction, Made, On};
use super::{Algorithm, Job, PlanOptions, check_applicable, chunk_count, plan_of, rails};
use crate::collective::{Collective, CollectiveKind};
use crate::multirail::{self, Lane, Model, PARTS, Policy, Problem, Rail, Schedule};
use crate::plan::PlanError;
use crate::progress::Progress;
use crate::topology::Topology;

/// Makes the schedule of a multi-rail algorithm, or of hierarchical: which way through the dimensions
/// each chunk goes, and when. [`plan_of`] makes a plan of it.
///
/// The schedule is made for the topology's own switching. `progress` may end a search early: the best so
/// far is the result.
///
/// # Errors
/// As [`plan()`](super::plan), with [`PlanError::Memory`] in place of [`PlanError::TooLarge`];
/// [`PlanError::NotApplicable`] for an algorithm that schedules no dimensions.
///
/// # Examples
/// ```
/// use hocket_synth::algorithms::{Algorithm, PlanOptions, plan_of, schedule};
/// use hocket_plan::collective::{Collective, CollectiveKind};
/// use hocket_base::progress::Silent;
/// use hocket_topology::{Dimension, DimensionKind, build};
/// use hocket_base::units::{Bandwidth, Time};
///
/// let dimension = |kind, gigabytes: u64| Dimension {
///     kind,
///     size: 4,
///     bandwidth: Bandwidth::from_bytes_per_second(gigabytes * 1_000_000_000).unwrap(),
///     latency: Time::from_ns(500),
///     offload: false,
/// };
/// let dimensions = [dimension(DimensionKind::Ring, 100), dimension(DimensionKind::Switch, 50)];
/// let network = build::product(&dimensions)?;
/// let all_reduce = Collective::among_all(CollectiveKind::AllReduce, &network, 1 << 28)?;
///
/// let finish = |algorithm| {
///     let options = PlanOptions { chunks: Some(16), ..PlanOptions::new(algorithm) };
///     schedule(&network, &all_reduce, &options, &mut Silent).map(|found| found.timeline.finish)
/// };
/// // Themis spreads the load over both dimensions; the fixed order leaves the second one idle for long.
/// assert!(finish(Algorithm::Themis)? < finish(Algorithm::Hierarchical)?);
///
/// let options = PlanOptions { chunks: Some(16), ..PlanOptions::new(Algorithm::Themis) };
/// let themis = schedule(&network, &all_reduce, &options, &mut Silent)?;
/// let plan = plan_of(&themis, &network, &all_reduce, 1 << 30)?;
/// assert_eq!(plan.algorithm(), "themis");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn schedule(
    topology: &Topology,
    collective: &Collective,
    options: &PlanOptions,
    progress: &mut dyn Progress,
) -> Result<Schedule, PlanError> {
    let algorithm = options.algorithm;
    check_applicable(topology, collective, algorithm)?;
    if let Some(why) = rails::refusal(topology, collective) {
        return Err(algorithm.refused(why));
    }
    let on = On {
        topology,
        collective,
    };
    let chunks = chunk_count(&on, options)?;
    let job = Job {
        topology,
        collective,
        options,
        chunks,
        transfers: 0,
    };
    scheduled(&job, progress)
}

/// As [`schedule`], once it is known that the dimensions can be scheduled.
fn scheduled(job: &Job<'_>, progress: &mut dyn Progress) -> Result<Schedule, PlanError> {
    let &Job {
        topology,
        collective,
        options,
        chunks,
        ..
    } = job;
    let algorithm = options.algorithm;
    let (kind, bytes) = (collective.kind(), collective.size());
    let rails = Rail::of(topology);
    check_steps(&rails, chunks, options)?;
    if multirail::is_too_long(&rails, bytes, chunks) {
        let why = "it could take longer than 46 days; make sizes smaller or bandwidths larger";
        return Err(algorithm.refused(why));
    }
    let Some(scheduler) = algorithm.recipe().scheduler() else {
        let why = format!("it schedules no dimensions; {} do", schedulers());
        return Err(algorithm.refused(why));
    };
    let problem = Problem {
        kind,
        rails,
        bytes,
        chunks,
        model: Model {
            switching: topology.switching(),
            ..Model::default()
        },
    };
    Ok(scheduler(problem, options.effort, progress).named(algorithm.name()))
}

/// Returns the plan of a schedule that an algorithm makes.
pub(super) fn planned(job: &Job<'_>, progress: &mut dyn Progress) -> Result<Made, PlanError> {
    let (topology, collective, options) = (job.topology, job.collective, job.options);
    let schedule = scheduled(job, progress)?;
    let plan = plan_of(&schedule, topology, collective, options.memory_limit)?;
    let construction = Some(Construction::Schedule(Box::new(schedule)));
    Ok(Made {
        construction,
        ..plan.routed(topology, options.routing).into()
    })
}

/// Lanes served by a policy: what an algorithm without a search schedules.
pub(super) fn of_lanes(
    problem: Problem,
    lanes: fn(&[Rail], CollectiveKind, u64, usize) -> Vec<Lane>,
    policy: Policy,
) -> Schedule {
    let Problem {
        kind,
        rails,
        bytes,
        chunks,
        model,
    } = problem;
    let lanes = lanes(&rails, kind, bytes, chunks);
    Schedule::new(kind, rails, lanes, policy, model)
}

/// Names of those that schedule dimensions, as a sentence lists them.
fn schedulers() -> String {
    let able = Algorithm::ALL
        .into_iter()
        .filter(|each| each.has_schedule());
    let names: Vec<&str> = able.map(Algorithm::name).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Checks that a schedule's steps fit in memory, before they are listed.
fn check_steps(rails: &[Rail], chunks: usize, options: &PlanOptions) -> Result<(), PlanError> {
    const BYTES_PER_STEP: u128 = 64;
    let steps: u128 = rails.iter().map(|rail| rail.step_count() as u128).sum();
    let bytes = steps
        .saturating_mul(2 * PARTS as u128 * chunks as u128)
        .saturating_mul(BYTES_PER_STEP);
    if bytes > u128::from(options.memory_limit) {
        return Err(PlanError::Memory {
            algorithm: options.algorithm.name(),
            chunks,
            steps,
            bytes,
            limit: options.memory_limit,
        });
    }
    Ok(())
}
