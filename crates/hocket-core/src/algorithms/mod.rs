//! The baseline algorithms: recipes that make a plan for a collective on a topology.
//!
//! [`plan`] is the entry; each algorithm has a file. What several share: `dimensional` runs the
//! patterns of `collective/pattern` along the dimensions of a grid of NPUs.

mod algorithm;
mod bigraph;
mod binomial;
mod chain;
mod chunking;
mod dimensional;
mod direct;
mod double_binary_tree;
mod follow;
mod halving_doubling;
mod hdrm;
mod hierarchical;
mod in_network;
mod mesh;
mod multi_ring;
mod multitree;
mod nccl;
mod node_groups;
mod outline;
mod pairwise;
mod rails;
mod reach;
pub mod registry;
mod ring;
mod ring_2d;
mod ring_bi_odd;
mod trees;
mod tto;
mod two_tree_overlap;

pub use algorithm::Algorithm;
pub use chunking::{chunk_ladder, default_chunks};
pub use nccl::{GivenChannel, Joint, Leg, Nic, design_channels, plan_channels, plan_heads};
pub use outline::Outline;
pub use rails::{carries_out, plan_of};

use std::sync::Arc;

use crate::collective::{Collective, CollectiveKind};
use crate::multirail::{self, Model, PARTS, Policy, Problem, Rail, Schedule};
use crate::plan::{Chunks, Plan, PlanBuilder, PlanError, Routing};
use crate::progress::{Interrupted, Progress};
use crate::select::{Method, TreeOptions, flows, flows_refusal, synthesize, trees as packed_trees};
use crate::symmetry::{self, SymmetricOptions};
use crate::synthesis;
use crate::topology::Topology;
use chunking::chunk_count;
use reach::Need;
use trees::Down;

/// Options of [`plan`] and [`schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// How transfers are spread over equal paths; balanced by default. Greedy, which chooses its paths
    /// itself, is balanced only where that is no slower; see [`crate::select`].
    pub routing: Routing,
}

impl PlanOptions {
    /// The defaults for an algorithm.
    pub fn new(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            chunks: None,
            memory_limit: 16 << 30,
            effort: multirail::EFFORT,
            seed: 0,
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
/// use hocket_core::algorithms::{Algorithm, PlanOptions, plan};
/// use hocket_core::collective::{Collective, CollectiveKind};
/// use hocket_core::plan::PlanError;
/// use hocket_core::progress::Silent;
/// use hocket_core::topology::build;
/// use hocket_core::units::{Bandwidth, Time};
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
    let algorithm = options.algorithm;
    if algorithm.is_multirail() {
        let schedule = schedule(topology, collective, options, progress)?;
        return plan_of(&schedule, topology, collective, options.memory_limit);
    }
    let (chunks, transfers) = check(topology, collective, options)?;
    if algorithm == Algorithm::Trees {
        let given = TreeOptions {
            pieces: options.chunks.map(|_| chunks),
            memory_limit: options.memory_limit,
            ..TreeOptions::default()
        };
        let topology = Arc::new(topology.clone());
        let made = packed_trees(&topology, collective, &given, progress)?;
        return Ok(Plan::clone(made.proof.plan()).routed(&topology, options.routing));
    }
    if algorithm == Algorithm::Symmetric {
        let given = SymmetricOptions {
            pieces: options.chunks.map(|_| chunks),
            memory_limit: options.memory_limit,
            ..SymmetricOptions::for_whole(topology)
        };
        let topology = Arc::new(topology.clone());
        let made = symmetry::plan(&topology, collective, &given, progress)?;
        return made.shifted().expand(options.memory_limit);
    }
    if algorithm == Algorithm::Flows {
        let (topology, pieces) = (Arc::new(topology.clone()), options.chunks);
        let made = flows(
            &topology,
            collective,
            pieces,
            options.memory_limit,
            progress,
        )?;
        return Ok(made.routed(&topology, options.routing));
    }
    if algorithm == Algorithm::Greedy {
        let given = synthesis::Options {
            seed: options.seed,
            memory_limit: options.memory_limit,
            ..synthesis::Options::default()
        };
        let topology = Arc::new(topology.clone());
        let method = Method::Greedy;
        let made = synthesize(&topology, collective, chunks, method, &given, progress)?;
        let made = made.routed(options.routing, progress)?;
        return Ok(Plan::clone(made.plan()));
    }
    let total = u64::try_from(transfers).unwrap_or(u64::MAX);
    go_on(progress, 0, total)?;
    let job = Job {
        topology,
        collective,
        algorithm,
        chunks,
        transfers: transfers as usize,
    };
    let plan = match algorithm {
        Algorithm::Ring => ring::build(&job),
        Algorithm::BidirectionalRing => ring::build_bidirectional(&job),
        Algorithm::Direct => direct::build(&job),
        Algorithm::HalvingDoubling => halving_doubling::build(&job),
        Algorithm::DoubleBinaryTree => double_binary_tree::build(&job),
        Algorithm::Hierarchical => hierarchical::build(&job),
        Algorithm::MultiRing => multi_ring::build(&job),
        Algorithm::Binomial => binomial::build(&job),
        Algorithm::Chain => chain::build(&job),
        Algorithm::Pairwise => pairwise::build(&job),
        Algorithm::RingBiOdd => ring_bi_odd::build(&job),
        Algorithm::Tto => tto::build(&job, Down::AfterAll),
        Algorithm::TtoOverlapped => tto::build(&job, Down::AtOnce),
        Algorithm::TwoTreeOverlap => two_tree_overlap::build(&job),
        Algorithm::MultiTree => multitree::build(&job),
        Algorithm::Ring2d => ring_2d::build(&job),
        Algorithm::Hdrm => hdrm::build(&job),
        Algorithm::InNetwork => in_network::build(&job),
        Algorithm::NodeGroups => node_groups::build(&job, progress),
        Algorithm::NcclRing => nccl::ring(&job),
        Algorithm::NcclTree => nccl::tree(&job),
        Algorithm::NcclNvls => nccl::nvls(&job),
        Algorithm::ThemisFifo | Algorithm::Themis | Algorithm::MultirailOptimal => {
            unreachable!("multi-rail schedules are lowered by plan_of")
        }
        Algorithm::Trees | Algorithm::Flows | Algorithm::Symmetric | Algorithm::Greedy => {
            unreachable!("synthesized above")
        }
    }?;
    debug_assert_eq!(plan.len() as u128, transfers);
    go_on(progress, total, total)?;
    Ok(plan.routed(topology, options.routing))
}

/// Makes the schedule of a multi-rail algorithm, or of hierarchical: which way through the dimensions
/// each chunk goes, and when. [`plan_of`] makes a plan of it.
///
/// The schedule is made for the topology's own switching. `progress` may end a search early: the best so
/// far is the result.
///
/// # Errors
/// As [`plan`], with [`PlanError::Memory`] in place of [`PlanError::TooLarge`];
/// [`PlanError::NotApplicable`] for an algorithm that schedules no dimensions.
///
/// # Examples
/// ```
/// use hocket_core::algorithms::{Algorithm, PlanOptions, plan_of, schedule};
/// use hocket_core::collective::{Collective, CollectiveKind};
/// use hocket_core::progress::Silent;
/// use hocket_core::topology::{Dimension, DimensionKind, build};
/// use hocket_core::units::{Bandwidth, Time};
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
        return Err(PlanError::NotApplicable {
            algorithm: algorithm.name(),
            why,
        });
    }
    let chunks = chunk_count(topology, collective, options)?;
    let (kind, bytes) = (collective.kind(), collective.size());
    let rails = Rail::of(topology);
    check_steps(&rails, chunks, options)?;
    if multirail::is_too_long(&rails, bytes, chunks) {
        return Err(PlanError::NotApplicable {
            algorithm: algorithm.name(),
            why: "it could take longer than 46 days; make sizes smaller or bandwidths larger"
                .to_owned(),
        });
    }
    let model = Model {
        switching: topology.switching(),
        ..Model::default()
    };
    let (lanes, policy) = match algorithm {
        Algorithm::Hierarchical => (
            multirail::fixed_order(&rails, kind, bytes, chunks),
            Policy::Fifo,
        ),
        Algorithm::ThemisFifo => (multirail::themis(&rails, kind, bytes, chunks), Policy::Fifo),
        Algorithm::Themis => (
            multirail::themis(&rails, kind, bytes, chunks),
            Policy::SmallestFirst,
        ),
        Algorithm::MultirailOptimal => {
            let problem = Problem {
                kind,
                rails,
                bytes,
                chunks,
                model,
            };
            let found = multirail::optimal(&problem, options.effort, progress);
            return Ok(found.named(algorithm.name()));
        }
        _ => {
            return Err(PlanError::NotApplicable {
                algorithm: algorithm.name(),
                why: format!("it schedules no dimensions; {} do", schedulers()),
            });
        }
    };
    Ok(Schedule::new(kind, rails, lanes, policy, model).named(algorithm.name()))
}

/// Names of those that schedule dimensions, as a sentence lists them.
fn schedulers() -> String {
    let able = registry::ENTRIES.iter().filter(|each| each.has_schedule);
    let names: Vec<&str> = able.map(|each| each.name).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Chunks and transfers of a job that can be done.
fn check(
    topology: &Topology,
    collective: &Collective,
    options: &PlanOptions,
) -> Result<(usize, u128), PlanError> {
    check_applicable(topology, collective, options.algorithm)?;
    let chunks = chunk_count(topology, collective, options)?;
    let transfers = transfer_count(topology, collective, options.algorithm, chunks);
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
    let kind = collective.kind();
    let npus = collective.npus();
    let refusal = if algorithm.supports(kind) {
        match algorithm {
            Algorithm::Hierarchical => hierarchical::refusal(topology, collective),
            Algorithm::MultiRing => multi_ring::refusal(topology, collective),
            _ if algorithm.is_multirail() => rails::refusal(topology, collective),
            Algorithm::RingBiOdd => ring_bi_odd::refusal(topology, collective),
            Algorithm::Tto | Algorithm::TtoOverlapped => tto::refusal(topology, collective),
            Algorithm::TwoTreeOverlap => two_tree_overlap::refusal(topology, collective),
            Algorithm::MultiTree => multitree::refusal(topology, collective),
            Algorithm::Ring2d => ring_2d::refusal(topology, collective),
            Algorithm::Hdrm => hdrm::refusal(topology, collective),
            Algorithm::Flows => flows_refusal(collective),
            Algorithm::InNetwork => in_network::refusal(topology, collective),
            Algorithm::NodeGroups => node_groups::refusal(topology, collective),
            Algorithm::NcclRing | Algorithm::NcclTree | Algorithm::NcclNvls => {
                nccl::refusal(topology, collective, algorithm)
            }
            Algorithm::Symmetric => symmetry::refusal(topology, collective),
            Algorithm::BidirectionalRing if npus.len() == 2 => {
                Some("on 2 NPUs both directions are the same links; use ring".to_owned())
            }
            _ => None,
        }
    } else {
        Some(algorithm.unsupported(kind))
    };
    match refusal.or_else(|| reach::gap(topology, npus, need(collective, algorithm))) {
        None => Ok(()),
        Some(why) => Err(PlanError::NotApplicable {
            algorithm: algorithm.name(),
            why,
        }),
    }
}

/// How many transfers a plan has, exactly, for an algorithm that [applies](check_applicable);
/// multirail-optimal may make up to twice as many, trees several times as many, and flows and greedy as many more as chunks are passed on by
/// NPUs that do not want them. Saturates.
pub fn transfer_count(
    topology: &Topology,
    collective: &Collective,
    algorithm: Algorithm,
    chunks: usize,
) -> u128 {
    if algorithm == Algorithm::Hierarchical {
        let sides = hierarchical::grid(topology);
        return hierarchical::transfers(&sides, collective.kind(), chunks as u128);
    }
    if algorithm == Algorithm::MultiRing {
        let lanes = (multi_ring::lanes(topology) as u128).saturating_mul(chunks as u128);
        return multi_ring::transfers(collective.kind(), collective.npus().len(), lanes);
    }
    if algorithm == Algorithm::InNetwork {
        return in_network::transfers(topology, collective, chunks as u128);
    }
    if algorithm == Algorithm::NodeGroups {
        return node_groups::transfers(topology, collective, chunks as u128);
    }
    if matches!(
        algorithm,
        Algorithm::NcclRing | Algorithm::NcclTree | Algorithm::NcclNvls
    ) {
        return nccl::transfers(topology, collective, algorithm, chunks as u128);
    }
    let outline = Outline {
        kind: collective.kind(),
        npus: u32::try_from(collective.npus().len()).expect("ids of NPUs have 32 bits"),
        dimensions: topology.dimensions(),
    };
    outline.transfers(algorithm, chunks)
}

/// One plan to build; all checks are done.
struct Job<'a> {
    topology: &'a Topology,
    collective: &'a Collective,
    algorithm: Algorithm,
    chunks: usize,
    transfers: usize,
}

impl Job<'_> {
    /// A plan with room for all its transfers.
    fn builder(&self, chunks: Chunks) -> PlanBuilder {
        let mut builder = PlanBuilder::new(self.algorithm.name(), self.collective, chunks);
        builder.reserve(self.transfers);
        builder
    }

    /// The root's rank; 0 for kinds without one.
    fn root(&self) -> usize {
        self.collective.root().map_or(0, |root| root.index())
    }
}

fn need(collective: &Collective, algorithm: Algorithm) -> Need {
    let Some(root) = collective.root() else {
        return Need::Mutual;
    };
    let root = collective.npus()[root.index()];
    match algorithm {
        Algorithm::Direct | Algorithm::Trees | Algorithm::Flows | Algorithm::Greedy => {
            match collective.kind() {
                CollectiveKind::Broadcast | CollectiveKind::Scatter => Need::From(root),
                _ => Need::To(root),
            }
        }
        _ => Need::Mutual,
    }
}

#[cfg(test)]
mod tests;
