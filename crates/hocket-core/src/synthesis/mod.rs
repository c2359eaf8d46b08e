//! Plans for any collective on any topology, by matching chunks to links over time.
//!
//! # Flow
//! A [`Network`] is the topology with its switches unwound; [`Work`] is the collective as chunks that
//! spread; a synthesizer finds a [`Timetable`] of sends; `lower` makes a plan of it, on the topology
//! itself.
//!
//! | file | what it is |
//! | --- | --- |
//! | `network`, `unwind` | NPUs, the edges between them, what a chunk costs on each |
//! | `work`, `spread` | what is to be summed and copied; who holds and who wants each chunk |
//! | `greedy`, `event` | greedy matching, event by event, best of several trials |
//! | `relay` | ways for chunks that not everybody wants |
//! | `least` | the least time that any timetable takes |
//! | `timetable`, `lower` | the sends, checked; the plan made of them |
//!
//! # Source
//! Won and others: TACOS: Topology-aware collective algorithm synthesizer for distributed training.

mod event;
mod greedy;
mod least;
mod lower;
mod network;
mod relay;
mod slots;
mod spread;
mod symmetric;
mod timetable;
mod unwind;
mod work;

pub use network::{Edge, Network, Timing};
pub use relay::Unreachable;
pub use slots::SlotTable;
pub use spread::{Spread, Wanted};
pub use timetable::{Send, Timetable};
pub use unwind::Unwinding;
pub use work::{Part, Work};

use crate::collective::Collective;
use crate::plan::{Plan, PlanBuilder, PlanError};
use crate::progress::Progress;
use crate::topology::{LatencyModel, Topology};
use greedy::{Failure, Trials, greedy};
use lower::{Timetables, lower};

/// How a plan is synthesized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How fabrics are unwound: one for all, or one for each dimension; empty tries several and
    /// keeps the best.
    pub unwinding: Vec<Unwinding>,
    /// Whether a link is held during its latency.
    pub latency: LatencyModel,
    /// Of the random choices.
    pub seed: u64,
    /// At most so many trials of each matching.
    pub trials: u64,
    /// Memory that planning, verifying and simulating may take, in bytes.
    pub memory_limit: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            unwinding: Vec::new(),
            latency: LatencyModel::Overlapped,
            seed: 0,
            trials: 64,
            memory_limit: 16 << 30,
        }
    }
}

/// A plan, and what is known of how good it is.
#[derive(Clone, Debug)]
pub struct Synthesis {
    /// The plan.
    pub plan: Plan,
    /// When the timetable it was made of ends, in picoseconds.
    pub end: u64,
    /// The least that any timetable takes with this unwinding and these chunks, in picoseconds.
    pub least: u64,
    /// How the fabrics were unwound; empty where there are none.
    pub unwinding: Vec<Unwinding>,
}

/// The name of the greedy algorithm.
pub const GREEDY: &str = "greedy";

/// Synthesizes a plan by greedy matching.
///
/// # Errors
/// [`PlanError::TooLarge`] before anything is allocated; [`PlanError::TooManyChunks`];
/// [`PlanError::NotApplicable`] where somebody cannot be reached, or on an interruption;
/// [`PlanError::Collective`] where the topology lacks a participant.
pub fn synthesize(
    topology: &Topology,
    collective: &Collective,
    pieces: usize,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Synthesis, PlanError> {
    collective.check_on(topology)?;
    let work = Work::new(topology.npu_count(), collective, pieces)?;
    PlanBuilder::check_size(work.transfers(), options.memory_limit)?;
    let unwindings = match options.unwinding.is_empty() {
        true => candidates(topology),
        false => vec![options.unwinding.clone()],
    };
    let mut best: Option<(Network, Timetables, u64, Vec<Unwinding>)> = None;
    let mut failure = None;
    for unwinding in unwindings {
        let network = Network::new(topology, &unwinding);
        match solve(topology, &network, &work, options, progress) {
            Ok((times, least)) => {
                if best
                    .as_ref()
                    .is_none_or(|(_, best, ..)| times.end() < best.end())
                {
                    best = Some((network, times, least, unwinding));
                }
            }
            Err(found) => failure = Some(found),
        }
    }
    let Some((network, times, least, unwinding)) = best else {
        return Err(refused(
            &work,
            failure.expect("at least one unwinding is tried"),
        ));
    };
    Ok(Synthesis {
        plan: lower(GREEDY, collective, &network, &work, &times),
        end: times.end(),
        least,
        unwinding,
    })
}

/// The unwindings worth trying: each kind for all fabrics, and for products each combination.
fn candidates(topology: &Topology) -> Vec<Vec<Unwinding>> {
    /// NPUs of a fabric up to which all are joined to all.
    const MOST_NPUS: usize = 32;
    const COMBINATIONS: usize = 27;
    let fabrics = unwind::fabric_sizes(topology);
    let kinds = |npus: usize| match npus {
        0..=2 => vec![Unwinding::Degree(1)],
        3..=MOST_NPUS => vec![Unwinding::Degree(1), Unwinding::BothWays, Unwinding::Max],
        _ => vec![Unwinding::Degree(1), Unwinding::BothWays],
    };
    let largest = fabrics.iter().map(|&(_, npus)| npus).max().unwrap_or(0);
    let per_dimension = !fabrics.is_empty() && fabrics.iter().all(|(of, _)| of.is_some());
    if !per_dimension || fabrics.len() < 2 {
        return kinds(largest).into_iter().map(|kind| vec![kind]).collect();
    }
    let mut combinations = vec![vec![Unwinding::Degree(1); topology.dimensions().len()]];
    for (dimension, npus) in fabrics {
        let dimension = dimension.expect("all have one") as usize;
        let longer = combinations.iter().flat_map(|combination| {
            kinds(npus).into_iter().map(move |kind| {
                let mut combination = combination.clone();
                combination[dimension] = kind;
                combination
            })
        });
        let longer: Vec<_> = longer.collect();
        if longer.len() > COMBINATIONS {
            break;
        }
        combinations = longer;
    }
    combinations
}

/// Timetables of the sums and of the copies, and the least that they take together.
fn solve(
    topology: &Topology,
    network: &Network,
    work: &Work,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<(Timetables, u64), Failure> {
    let trials = Trials {
        seed: options.seed,
        most: options.trials,
    };
    let axes: Vec<usize> = topology.dimensions().iter().map(|d| d.size as usize).collect();
    let mirror = network.mirrored();
    let sums = &work.sums.spread;
    let sum_times = timings(topology, network, sums, options.latency);
    let copies = &work.copies.spread;
    let copy_times = timings(topology, network, copies, options.latency);
    let summed = greedy(&mirror, sums, &sum_times, &[], &axes, trials, progress)?;
    let summed = summed.mirrored(&sum_times, sums);
    let mut copied = greedy(network, copies, &copy_times, &[], &axes, trials, progress)?;
    for send in &mut copied.sends {
        send.start += summed.end;
    }
    if !copied.sends.is_empty() {
        copied.end += summed.end;
    }
    let least =
        least::least(&mirror, sums, &sum_times).max(least::least(network, copies, &copy_times));
    Ok((
        Timetables {
            sums: summed,
            copies: copied,
        },
        least,
    ))
}

/// What a chunk of each size costs on each edge, of edge x sizes.
fn timings(
    topology: &Topology,
    network: &Network,
    spread: &Spread,
    latency: LatencyModel,
) -> Vec<Timing> {
    let of_size: Vec<Vec<Timing>> = spread
        .sizes
        .iter()
        .map(|&bytes| network.timings(topology, bytes, latency))
        .collect();
    (0..network.edges().len())
        .flat_map(|edge| of_size.iter().map(move |timings| timings[edge]))
        .collect()
}

fn refused(work: &Work, failure: Failure) -> PlanError {
    let why = match failure {
        Failure::Interrupted => "stopped on request before it was done".to_owned(),
        Failure::Unreachable(Unreachable { chunk, npu }) => {
            let part = if work.copies.is_empty() {
                &work.sums
            } else {
                &work.copies
            };
            let (chunk, holder) = (
                part.ids[chunk as usize],
                part.spread.holders[chunk as usize].0,
            );
            format!(
                "chunk {chunk} of NPU {holder} has no way to NPU {npu}, which needs it; add a link \
                 or leave the NPU out"
            )
        }
    };
    PlanError::NotApplicable {
        algorithm: GREEDY,
        why,
    }
}
