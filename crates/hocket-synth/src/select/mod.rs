//! Synthesized plans, chosen by what they come to when they are simulated.
//!
//! Switches can be unwound into edges in several ways, and transfers spread over equal paths or not. Which way
//! is best cannot be told from a timetable: through switches a plan may be slower than its timetable, or
//! faster. So plans are made, proved and simulated here, and the quickest is kept. `greedy` means this choice
//! wherever it is asked for by name: [`crate::algorithms::make`], by which Rust and Python plan, makes it of
//! [`Candidates`].

mod candidate;
mod flows;
mod reverse_links;
mod order;
mod packings;
mod pieces;
mod pipelined;
mod steiner;
mod wide;
mod trees;
mod time_reversal;

pub use candidate::{Candidate, Ending};
pub(crate) use flows::refusal as flows_refusal;
pub use flows::{FLOWS, FlowPlan, flows};
pub use pipelined::{Pipelined, kept_among, pipelined};
pub(crate) use steiner::steiner_refusal;
pub use steiner::{STEINER, SteinerOptions, SteinerPlan, steiner};
pub(crate) use time_reversal::reversed_in_time;
pub use trees::{TREES, TreeOptions, TreePlan, trees};
pub(crate) use wide::least_trees;

use std::sync::Arc;

use crate::collective::Collective;
use crate::plan::PlanError;
use crate::progress::{Interrupted, Progress};
use crate::synthesis::{Problem, SynthesisOptions, unwindings};
use crate::topology::Topology;
use crate::units::Time;

/// How the plan of one unwinding is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Chunks are matched to edges over time; see [`Problem::greedy`].
    Greedy,
    /// Every chunk on a shortest way, whatever else is on it; see [`Problem::blind`].
    Blind,
}

/// The plans of one method, one for each unwinding that was tried; at least one.
#[derive(Debug)]
pub struct Candidates(Vec<Candidate>);

impl Candidates {
    /// Makes a plan with each unwinding that [`SynthesisOptions::unwinding`] asks for.
    ///
    /// `progress` may stop it: unwindings after the first that gave a plan are then left out.
    ///
    /// # Errors
    /// As [`synthesize`].
    pub fn find(
        topology: &Arc<Topology>,
        collective: &Collective,
        pieces: usize,
        method: Method,
        options: &SynthesisOptions,
        progress: &mut dyn Progress,
    ) -> Result<Self, PlanError> {
        let tried = if options.unwinding.is_empty() {
            unwindings(topology)
        } else {
            vec![options.unwinding.clone()]
        };
        let total = tried.len() as u64;
        let mut found = Vec::new();
        let mut failure = None;
        for (done, unwinding) in (0..).zip(tried) {
            if !found.is_empty() && !progress.report("unwinding", done, total) {
                break;
            }
            let (latency, limit) = (options.latency, options.memory_limit);
            let problem = Problem::new(topology, collective, pieces, &unwinding, latency, limit)?;
            let on = (Arc::clone(topology), unwinding, latency);
            let made = match method {
                Method::Greedy => problem
                    .greedy(options.seed, options.trials, progress)
                    .map(|times| Candidate::of_timetables(on, Arc::new(problem), times)),
                Method::Blind => problem
                    .blind(options.seed)
                    .map(|plan| Candidate::of_plan(on, Arc::new(problem), plan)),
            };
            match made {
                Ok(candidate) => found.push(candidate),
                Err(why) => failure = Some(why),
            }
        }
        match failure {
            Some(why) if found.is_empty() => Err(why),
            _ => Ok(Self(found)),
        }
    }

    /// Returns the one that ends first, the first of equals: as simulated, where all are small enough for it, else by
    /// their timetables. Timetables decide, too, where `progress` stops the simulations.
    ///
    /// # Errors
    /// As [`Candidate::ending`].
    pub fn quickest(mut self, progress: &mut dyn Progress) -> Result<Candidate, PlanError> {
        let mut best = 0;
        if self.0.len() > 1 {
            let ends = match self.ends(progress) {
                Err(PlanError::Interrupted(_)) => {
                    let planned = self.0.iter().map(Candidate::end);
                    planned.collect::<Option<_>>().ok_or(Interrupted)?
                }
                ends => ends?,
            };
            best = (0..ends.len()).min_by_key(|&i| ends[i]).unwrap_or(0);
        }
        Ok(self.0.swap_remove(best))
    }

    fn ends(&self, progress: &mut dyn Progress) -> Result<Vec<Time>, PlanError> {
        let all_small = self.0.iter().all(Candidate::is_simulated);
        let end = |each: &Candidate| match each.end() {
            Some(end) if !all_small => Ok(end),
            _ => each.ending(progress).map(|ending| ending.time),
        };
        self.0.iter().map(end).collect()
    }
}

/// Synthesizes a plan with every unwinding worth trying, and gives the one that is the quickest.
///
/// # Errors
/// [`PlanError::TooLarge`] before anything is allocated; [`PlanError::TooManyChunks`];
/// [`PlanError::TooLong`]; [`PlanError::NotApplicable`] where an NPU that wants data cannot be reached;
/// [`PlanError::Interrupted`] before a first plan was found (later, the best so far is the result);
/// [`PlanError::Collective`] where the topology lacks a participant.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use hocket_plan::collective::{Collective, CollectiveKind};
/// use hocket_base::progress::Silent;
/// use hocket_synth::select::{Method, synthesize};
/// use hocket_synth::synthesis::SynthesisOptions;
/// use hocket_topology::build::{self, RingWays};
/// use hocket_base::units::{Bandwidth, Time};
///
/// let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
/// let ring = Arc::new(build::ring(4, gigabyte, Time::ZERO, RingWays::One)?);
/// let all_gather = Collective::among_all(CollectiveKind::AllGather, &ring, 4_000_000)?;
/// let options = SynthesisOptions::default();
/// let made = synthesize(&ring, &all_gather, 1, Method::Greedy, &options, &mut Silent)?;
/// // Each NPU passes on three blocks of 1 MB, and nothing is faster.
/// assert_eq!(made.ending(&mut Silent)?.time, Time::from_ns(3_000_000));
/// assert_eq!(made.end(), Some(Time::from_ns(3_000_000)));
/// assert_eq!(made.problem().least(), 3_000_000_000);
/// assert_eq!(made.plan().len(), 12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn synthesize(
    topology: &Arc<Topology>,
    collective: &Collective,
    pieces: usize,
    method: Method,
    options: &SynthesisOptions,
    progress: &mut dyn Progress,
) -> Result<Candidate, PlanError> {
    Candidates::find(topology, collective, pieces, method, options, progress)?.quickest(progress)
}

#[cfg(test)]
mod tests;
