//! The algorithms: each makes a plan for a collective on a topology.
//!
//! [`plan`] and [`make`] are the entry. An algorithm is an implementation of `Recipe` in a file of its own, and
//! a line in the list below. What several share: `dimensional` runs the patterns of `collective/pattern` along the
//! dimensions of a grid of NPUs; `follow`, `mesh` and `mesh_trees` list steps; `rails` makes transfers of a schedule.

mod bigraph;
mod dimensional;
mod follow;
mod ladder;
mod mesh;
mod mesh_trees;
mod outline;
mod rails;
mod reach;
mod recipe;
pub mod registry;
mod schedule;

pub use ladder::{chunk_ladder, default_chunks};
pub use nccl::{
    Design, GivenChannel, Joint, LeftOut, Leg, Nic, design_channels, plan_channels, plan_heads,
};
pub use outline::Outline;
pub use rails::{carries_out, plan_of};
pub use recipe::{Construction, Made};
pub use schedule::schedule;

use std::sync::Arc;

use crate::collective::Collective;
use crate::multirail;
use crate::plan::{Chunks, Plan, PlanBuilder, PlanError, Routing};
use crate::progress::{Interrupted, MESSAGE, Progress};
use crate::steiner::Relays;
use crate::synthesis::{self, Unwinding};
use crate::topology::{LatencyModel, Topology};
use ladder::chunk_count;
use recipe::{On, Origin, recipes};

// Every algorithm, by the file that it is in. Listings, comparisons and ties follow this order.
recipes! {
    ring::{Ring, BidirectionalRing},
    direct::{Direct},
    halving_doubling::{HalvingDoubling},
    double_binary_tree::{DoubleBinaryTree},
    hierarchical::{Hierarchical},
    multi_ring::{MultiRing},
    themis::{ThemisFifo, Themis},
    multirail_optimal::{MultirailOptimal},
    binomial::{Binomial},
    chain::{Chain},
    pairwise::{Pairwise},
    bruck::{Bruck},
    ring_bi_odd::{RingBiOdd},
    tto::{Tto, TtoOverlapped},
    two_tree_overlap::{TwoTreeOverlap},
    multitree::{MultiTree},
    ring_2d::{Ring2d},
    hdrm::{Hdrm},
    trees::{Trees},
    steiner::{Steiner},
    flows::{Flows},
    in_network::{InNetwork, Multimem},
    node_groups::{NodeGroups},
    nccl::{NcclRing, NcclTree, NcclNvls},
    symmetric::{Symmetric},
    greedy::{Greedy, Blind},
}

/// Options of [`plan`] and [`schedule`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Algorithm that makes the plan.
    pub algorithm: Algorithm,
    /// Into how many slices the data is cut, each of which runs the algorithm on its own, pipelined
    /// with the others; `None` takes [`default_chunks`].
    pub chunks: Option<usize>,
    /// Memory that planning, verifying and simulating may take, in bytes. 16 GiB by default.
    pub memory_limit: u64,
    /// Number of steps that a search may simulate; [`multirail::EFFORT`] by default.
    pub effort: u64,
    /// Seed of random choices; 0 by default.
    pub seed: u64,
    /// Greatest number of random trials of each choice of greedy.
    pub trials: u64,
    /// How greedy and blind unwind switches: one way for all, or one for each dimension; empty tries several.
    pub unwinding: Vec<Unwinding>,
    /// What NPUs that take no part do with data, of steiner.
    pub relays: Relays,
    /// What latency does to links, where plans are simulated to choose among them; schedules are made for overlapped.
    pub latency: LatencyModel,
    /// How transfers are spread over equal paths; balanced by default. Greedy, which chooses its paths
    /// itself, is balanced only where that is no slower; see [`crate::select`].
    pub routing: Routing,
}

impl PlanOptions {
    /// Returns the defaults for an algorithm.
    pub fn new(algorithm: Algorithm) -> Self {
        let searched = synthesis::SynthesisOptions::default();
        Self {
            algorithm,
            chunks: None,
            memory_limit: searched.memory_limit,
            effort: multirail::EFFORT,
            seed: searched.seed,
            trials: searched.trials,
            unwinding: searched.unwinding,
            relays: Relays::default(),
            latency: searched.latency,
            routing: Routing::Balanced,
        }
    }
}

/// Makes a plan by one algorithm.
///
/// `progress` may stop it. A search that has a result by then (greedy, multirail-optimal) returns the best so
/// far; everything else returns [`PlanError::Interrupted`].
///
/// # Errors
/// [`PlanError::NotApplicable`] as [`check_applicable`]; [`PlanError::TooLarge`] before anything is
/// allocated, or [`PlanError::Memory`] for a schedule; [`PlanError::TooManyChunks`];
/// [`PlanError::Interrupted`]; [`PlanError::Collective`] where the topology lacks a participant.
///
/// # Examples
/// ```
/// use hocket_synth::algorithms::{Algorithm, PlanOptions, plan};
/// use hocket_plan::collective::{Collective, CollectiveKind};
/// use hocket_plan::plan::PlanError;
/// use hocket_base::progress::Silent;
/// use hocket_topology::build;
/// use hocket_base::units::{Bandwidth, Time};
///
/// let bandwidth = Bandwidth::from_bytes_per_second(50_000_000_000).unwrap();
/// let mesh = build::mesh(&[3, 3], bandwidth, Time::from_ns(500))?;
/// let all_reduce = Collective::among_all(CollectiveKind::AllReduce, &mesh, 1 << 20)?;
///
/// let direct = plan(&mesh, &all_reduce, &PlanOptions::new(Algorithm::Direct), &mut Silent)?;
/// assert_eq!(direct.len(), 2 * 9 * 8); // to and from each of 8 others, for each of 9 blocks
///
/// let hdrm = plan(&mesh, &all_reduce, &PlanOptions::new(Algorithm::Hdrm), &mut Silent);
/// assert!(matches!(hdrm, Err(PlanError::NotApplicable { algorithm: "hdrm", .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan(
    topology: &Topology,
    collective: &Collective,
    options: &PlanOptions,
    progress: &mut dyn Progress,
) -> Result<Plan, PlanError> {
    make(topology, collective, options, progress).map(|made| Arc::unwrap_or_clone(made.plan))
}

/// As [`plan`], with what is known of the plan: a proof and a time where it was proved and simulated to choose it, and
/// what it was made of.
///
/// # Errors
/// As [`plan`].
pub fn make(
    topology: &Topology,
    collective: &Collective,
    options: &PlanOptions,
    progress: &mut dyn Progress,
) -> Result<Made, PlanError> {
    let on = On {
        topology,
        collective,
    };
    let recipe = options.algorithm.recipe();
    let (chunks, transfers) = check(&on, options)?;
    let is_rule = recipe.about().making == Origin::Rule;
    let total = u64::try_from(transfers).unwrap_or(u64::MAX);
    if is_rule {
        go_on(progress, 0, total)?;
    }
    let job = Job {
        topology,
        collective,
        options,
        chunks,
        transfers: transfers as usize,
    };
    let mut made = recipe.plan(&job, progress)?;
    if is_rule {
        progress.spend(MESSAGE.saturating_mul(total));
        debug_assert_eq!(made.plan.len() as u128, transfers);
        go_on(progress, total, total)?;
        let plan = Arc::unwrap_or_clone(made.plan);
        made.plan = Arc::new(plan.routed(topology, options.routing));
    }
    Ok(made)
}

/// Returns the chunks and transfers of a job that can be done.
fn check(on: &On<'_>, options: &PlanOptions) -> Result<(usize, u128), PlanError> {
    check_applicable(on.topology, on.collective, options.algorithm)?;
    let chunks = chunk_count(on, options)?;
    let recipe = options.algorithm.recipe();
    // A schedule is refused by its steps, and its plan by the transfers that it has.
    let transfers = match recipe.about().making {
        Origin::Schedule => 0,
        _ => recipe.transfers(on, chunks as u128),
    };
    PlanBuilder::check_size(transfers, options.memory_limit)?;
    Ok((chunks, transfers))
}

/// Reports that so many transfers are made.
fn go_on(progress: &mut dyn Progress, done: u64, total: u64) -> Result<(), Interrupted> {
    if progress.report("plan", done, total) {
        Ok(())
    } else {
        Err(Interrupted)
    }
}

/// Checks that an algorithm can run here, whatever the number of chunks.
///
/// # Errors
/// [`PlanError::NotApplicable`] with the reason and what would make it run;
/// [`PlanError::Collective`] where the topology lacks a participant.
pub fn check_applicable(
    topology: &Topology,
    collective: &Collective,
    algorithm: Algorithm,
) -> Result<(), PlanError> {
    collective.check_on(topology)?;
    let recipe = algorithm.recipe();
    let on = On {
        topology,
        collective,
    };
    let refusal = match recipe.about().supports(collective.kind()) {
        true => recipe.refusal(&on),
        false => Some(algorithm.unsupported(collective.kind())),
    };
    let gap = || reach::gap(topology, collective, recipe.need(collective));
    match refusal.or_else(gap) {
        None => Ok(()),
        Some(why) => Err(algorithm.refused(why)),
    }
}

/// Returns the exact number of transfers of a plan, for an algorithm that [applies](check_applicable). Saturates.
///
/// Some plans have more: those of multirail-optimal up to twice as many, and those of trees several times as many. In
/// those of flows, greedy and blind, NPUs that do not want chunks pass them on.
pub fn transfer_count(
    topology: &Topology,
    collective: &Collective,
    algorithm: Algorithm,
    chunks: usize,
) -> u128 {
    let on = On {
        topology,
        collective,
    };
    algorithm.recipe().transfers(&on, chunks as u128)
}

/// One plan to build; all checks are done.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    topology: &'a Topology,
    collective: &'a Collective,
    options: &'a PlanOptions,
    chunks: usize,
    transfers: usize,
}

impl<'a> Job<'a> {
    /// Returns what is done where.
    fn on(&self) -> On<'a> {
        On {
            topology: self.topology,
            collective: self.collective,
        }
    }

    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm {
        self.options.algorithm
    }

    /// Returns the number of chunks, where one is asked for.
    fn asked_chunks(&self) -> Option<usize> {
        self.options.chunks.map(|_| self.chunks)
    }

    /// Returns a plan with room for all its transfers.
    fn builder(&self, chunks: Chunks) -> PlanBuilder {
        let mut builder = PlanBuilder::new(self.algorithm().name(), self.collective, chunks);
        builder.reserve(self.transfers);
        builder
    }

    /// Returns the root's rank; 0 for kinds without one.
    fn root(&self) -> usize {
        self.collective.root().map_or(0, |root| root.index())
    }
}

#[cfg(test)]
mod tests;
