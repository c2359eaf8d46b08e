//! Plans for any collective on any topology, by matching chunks to links over time.
//!
//! # Flow
//! A [`Network`] is the topology with its switches unwound; [`Work`] is the collective as chunks that
//! spread; a synthesizer finds a [`Timetable`] of sends; `lower` makes a plan of it, on the topology
//! itself.
//!
//! | file | what it is |
//! | --- | --- |
//! | `network`, `unwind`, `fabric` | NPUs, the edges between them (through switches too), what a chunk costs on each |
//! | `work`, `sites`, `spread` | what is to be summed (and where) and copied; who holds and who wants each chunk |
//! | `greedy`, `event` | greedy matching, event by event, best of several trials |
//! | `slots`, `blocks`, `slot_table` | the same slot by slot, where links are all alike: bits as they are looked at, a compact table |
//! | `symmetric` | one NPU's part, done by all, where the network looks the same from each |
//! | `detour` | faster ways round slow edges |
//! | `overlap` | sums and copies in one timetable |
//! | `blind` | the congestion-blind baseline |
//! | `relay` | ways for chunks that not everybody wants |
//! | `cut` | who is cut off, where there is no plan |
//! | `least` | the least time that any timetable takes |
//! | `timetable`, `lower` | the sends, checked; the plan made of them |
//!
//! # Source
//! Won and others: TACOS: Topology-aware collective algorithm synthesizer for distributed training.

mod blind;
mod blocks;
mod cut;
mod detour;
mod event;
mod fabric;
mod greedy;
mod least;
mod lower;
mod network;
mod overlap;
mod problem;
mod relay;
mod sites;
mod slot_table;
mod slots;
mod spread;
mod symmetric;
mod timetable;
mod unwind;
mod work;

pub use blind::BLIND;
pub use lower::Timetables;
pub use network::{Edge, Network, Timing};
pub use problem::{Compact, Problem};
pub use slot_table::SlotTable;
pub use spread::{Spread, Wanted};
pub use timetable::{Send, Timetable};
pub use unwind::{BadUnwinding, Unwinding};
pub use work::{Part, Work};

use crate::collective::Collective;
use crate::plan::{Plan, PlanError};
use crate::progress::Progress;
use crate::topology::{LatencyModel, Topology};

/// How a plan is synthesized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How fabrics are unwound: one for all, or one for each dimension; empty tries several and
    /// keeps the best.
    pub unwinding: Vec<Unwinding>,
    /// Whether a link is held during its latency.
    pub latency: LatencyModel,
    /// Seed of the random choices.
    pub seed: u64,
    /// Greatest number of trials of each matching.
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
/// [`PlanError::TooLong`]; [`PlanError::NotApplicable`] where an NPU that wants data cannot be reached;
/// [`PlanError::Interrupted`] before a first plan was found (later, the best so far is the result);
/// [`PlanError::Collective`] where the topology lacks a participant.
///
/// # Examples
/// ```
/// use hocket_core::collective::{Collective, CollectiveKind};
/// use hocket_core::progress::Silent;
/// use hocket_core::synthesis::{Options, synthesize};
/// use hocket_core::topology::build::{self, RingWays};
/// use hocket_core::units::{Bandwidth, Time};
///
/// let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
/// let ring = build::ring(4, gigabyte, Time::ZERO, RingWays::One)?;
/// let all_gather = Collective::among_all(CollectiveKind::AllGather, &ring, 4_000_000)?;
/// let made = synthesize(&ring, &all_gather, 1, &Options::default(), &mut Silent)?;
/// // Each NPU passes on three blocks of 1 MB, and nothing is faster.
/// assert_eq!(Time::from_ps(made.end), Time::from_ns(3_000_000));
/// assert_eq!(made.end, made.least);
/// assert_eq!(made.plan.len(), 12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn synthesize(
    topology: &Topology,
    collective: &Collective,
    pieces: usize,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Synthesis, PlanError> {
    let unwindings = if options.unwinding.is_empty() {
        candidates(topology)
    } else {
        vec![options.unwinding.clone()]
    };
    let mut best: Option<(Problem, Timetables, Vec<Unwinding>)> = None;
    let mut failure = None;
    for unwinding in unwindings {
        let problem = Problem::new(
            topology,
            collective,
            pieces,
            &unwinding,
            options.latency,
            options.memory_limit,
        )?;
        match problem.greedy(options.seed, options.trials, progress) {
            Ok(times) => {
                if best
                    .as_ref()
                    .is_none_or(|(_, best, _)| times.end() < best.end())
                {
                    best = Some((problem, times, unwinding));
                }
            }
            Err(found) => failure = Some(found),
        }
    }
    let Some((problem, times, unwinding)) = best else {
        return Err(failure.expect("at least one unwinding is tried"));
    };
    Ok(Synthesis {
        plan: problem.plan(GREEDY, &times),
        end: times.end(),
        least: problem.least(),
        unwinding,
    })
}

/// The unwindings worth trying: each kind for all fabrics, and for products each combination.
pub fn candidates(topology: &Topology) -> Vec<Vec<Unwinding>> {
    /// NPUs of a fabric up to which all are joined to all.
    const MOST_NPUS: usize = 32;
    // Of several dimensions.
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

#[cfg(test)]
mod tests;
