//! Networks that look the same from every NPU: planned once, for the data of one NPU, and shifted to all others.
//!
//! A group that takes every NPU to every other in one way takes a plan of one NPU's block to plans of all blocks. So
//! only one is kept: transfers in proportion to NPUs x pieces, where the whole plan has NPUs times as many. Each orbit
//! of links (those that the group takes to each other) has the same to do at every link, at the same times: simulating
//! one block's plan, with one link for each orbit, simulates the whole. `docs/proof.md` has the proofs.
//!
//! | file | what it does |
//! | --- | --- |
//! | `group` | the group, checked against the network; where it takes NPUs and links; orbits |
//! | `extend` | switches and links follow the NPUs |
//! | `find` | the group, by the digits of NPUs' numbers |
//! | `coordinates` | such numbers, where NPUs are numbered anyhow |
//! | `steps` | ways from one NPU to another, and the orbits that they use |
//! | `ranks` | who may get data from whom, so that any choice is a tree |
//! | `balance` | how often each orbit is used, so that the busiest is least busy |
//! | `trees` | the trees of the first NPU |
//! | `exchange` | all-to-alls: the plan of what the first NPU has for others, or of each orbit the first |
//! | `cuts`, `bound` | lower bounds that one NPU and its subgroups tell of all |
//! | `expand` | the whole plan, transfer by transfer |

#[cfg(test)]
mod tests;

mod balance;
mod bound;
mod coordinates;
mod cuts;
mod exchange;
mod expand;
mod extend;
mod find;
mod group;
mod ranks;
mod steps;
mod trees;

pub use bound::lower_bound;
pub(crate) use exchange::Exchange;
pub use expand::Shifted;
pub use find::find;
pub use group::{Orbits, Shift, Symmetry};

use std::sync::Arc;

use crate::collective::{Collective, CollectiveKind};
use crate::explain::Explain;
use crate::id::{DeviceId, LinkId, Rank, fit};
use crate::packing::{Packing, Passes, Rate, RowOrder};
use crate::plan::{LinkOrder, Plan, PlanBuilder, PlanError};
use crate::progress::Progress;
use crate::simulate::{Run, SimulateError, SimulateOptions, simulate_folded};
use crate::topology::{LatencyModel, Topology};
use crate::units::{Time, whole};
use crate::verify::{Verified, VerifyError, verify};
use cuts::SubgroupCut;

/// The name of the algorithm.
pub const SYMMETRIC: &str = "symmetric";

/// Why a network is not symmetric, or its symmetry of no use.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum NoSymmetry {
    /// Two NPUs that differ.
    #[explain(why(
        "{a} ({a_links} links out) and {b} ({b_links}) do not have the same links: not every NPU sees the same network"
    ))]
    Npus {
        /// Name of one.
        a: String,
        /// How many links lead out of it.
        a_links: usize,
        /// Name of the other.
        b: String,
        /// How many links lead out of it.
        b_links: usize,
    },
    /// Two devices that would have to be alike.
    #[explain(why("{a} would be taken to {b}, which is not like it"))]
    Devices {
        /// Name of one.
        a: String,
        /// Name of the other.
        b: String,
    },
    /// A link that would be taken to one that is not there, or not like it.
    #[explain(why(
        "the link {src}→{dst} would be taken to {new_src}→{new_dst}, where there is none like it"
    ))]
    Link {
        /// Where it starts.
        src: String,
        /// Where it ends.
        dst: String,
        /// Where its start is taken.
        new_src: String,
        /// Where its end is taken.
        new_dst: String,
    },
    /// A switch that would be taken to one that is not there.
    #[explain(why("no switch is joined to other NPUs as {switch} is to its own"))]
    Switch {
        /// Its name.
        switch: String,
    },
    /// Generators that do not make a product of cyclic groups.
    #[explain(why(
        "generator {generator} does not come back after as many times as it says, or does not commute with those before"
    ))]
    Order {
        /// Which.
        generator: usize,
    },
    /// No group takes every NPU to every other in one way.
    #[explain(why(
        "no shifts of the network onto itself take every NPU to every other in one way"
    ))]
    Regular,
    /// A link on which data of several NPUs would meet.
    #[explain(why(
        "by symmetry several NPUs would use the link {src}→{dst} at the same time, and only one can be first"
    ))]
    Shared {
        /// Where it starts.
        src: String,
        /// Where it ends.
        dst: String,
    },
    /// A switch whose own limit data of several NPUs would share.
    #[explain(why(
        "by symmetry several NPUs would pass {switch} at the same time, whose limit only one can use first"
    ))]
    Limit {
        /// Its name.
        switch: String,
    },
    /// More ways than are looked at.
    #[explain(why("{ways} ways lead from each of {npus} NPUs to others, more than are looked at"))]
    TooMany {
        /// Number of NPUs.
        npus: usize,
        /// Ways from each.
        ways: usize,
    },
}

impl NoSymmetry {
    /// That a link cannot be taken to where its ends are.
    fn link(topology: &Topology, ends: (DeviceId, DeviceId), taken: (DeviceId, DeviceId)) -> Self {
        let name = |device: DeviceId| topology.device(device).name.clone();
        Self::Link {
            src: name(ends.0),
            dst: name(ends.1),
            new_src: name(taken.0),
            new_dst: name(taken.1),
        }
    }
}

impl From<NoSymmetry> for PlanError {
    fn from(why: NoSymmetry) -> Self {
        refused(&format!("{why}; use trees or greedy"))
    }
}

/// How a plan by symmetry is made.
#[derive(Clone, Copy, Debug)]
pub struct SymmetricOptions {
    /// Pieces that every tree carries; by default those of the quickest plan.
    pub pieces: Option<usize>,
    /// Transfers of the plan of one block up to which more pieces are tried; two million by default.
    pub most_transfers: u64,
    /// Bytes that the plan of one block may take; 16 GiB by default.
    pub memory_limit: u64,
    /// What latency does to links in the simulation.
    pub latency: LatencyModel,
}

impl Default for SymmetricOptions {
    fn default() -> Self {
        Self {
            pieces: None,
            most_transfers: 2_000_000,
            memory_limit: 16 << 30,
            latency: LatencyModel::default(),
        }
    }
}

impl SymmetricOptions {
    /// For a plan that is to be expanded: few enough pieces for the transfers of all shifts.
    pub fn for_whole(topology: &Topology) -> Self {
        const MOST_TRANSFERS: u64 = 1_200_000;
        Self {
            most_transfers: MOST_TRANSFERS / topology.npu_count() as u64,
            ..Self::default()
        }
    }
}

/// A plan of one NPU's block, proved, that a group shifts to the blocks of all others.
#[derive(Clone, Debug)]
pub struct SymmetricPlan {
    /// The group.
    pub symmetry: Symmetry,
    /// What all shifts together do.
    pub collective: Collective,
    /// The plan of the first NPU's block: a broadcast of an all-gather, a reduction of a reduce-scatter, an
    /// all-reduce of an all-reduce. Where blocks differ by a byte, of the largest.
    pub base: Arc<Verified>,
    /// Its trees.
    pub passes: Passes,
    /// Pieces that every tree carries.
    pub pieces: usize,
    /// The run of that block at link fidelity among all others; where blocks differ by a byte, the whole plan ends no
    /// later.
    pub run: Run,
}

impl SymmetricPlan {
    /// Returns the whole plan, transfer by transfer.
    pub fn shifted(&self) -> Shifted<'_> {
        Shifted::new(&self.symmetry, self.base.plan(), &self.collective)
    }

    /// Returns the run of the whole plan, where all blocks are equal: each transfer has that of the block which it is a
    /// shift of.
    pub fn whole_run(&self) -> Option<Run> {
        let (base, npus) = (self.base.plan().collective(), self.symmetry.len());
        is_whole(base, npus, &self.collective).then(|| run_of_all(&self.run, npus))
    }

    /// Simulates the whole plan at link fidelity: the plan of one block, with one link for each orbit.
    ///
    /// Gives the times of that block's transfers, which are those of its shifts; and the use of all links.
    ///
    /// # Errors
    /// As [`simulate`](crate::simulate::simulate).
    pub fn simulate(
        &self,
        options: &SimulateOptions,
        progress: &mut dyn Progress,
    ) -> Result<Run, SimulateError> {
        simulate_shifted(&self.symmetry, &self.base, options, progress)
    }
}

/// Returns the run of a plan of so many shifts: each transfer has that of the one which it is a shift of.
fn run_of_all(run: &Run, npus: usize) -> Run {
    let shifted = |times: &[Time]| -> Vec<Time> {
        let shifts = |time: &Time| std::iter::repeat_n(*time, npus);
        times.iter().flat_map(shifts).collect()
    };
    Run {
        time: run.time,
        start: shifted(&run.start),
        end: shifted(&run.end),
        links: run.links.clone(),
        services: Vec::new(),
    }
}

/// Whether so many blocks like one make up a collective: otherwise some are smaller by a byte.
fn is_whole(block: &Collective, npus: usize, collective: &Collective) -> bool {
    u128::from(block.size()) * npus as u128 == u128::from(collective.size())
}

/// Proves the plan of one block, which proves all its shifts; see `docs/proof.md`.
///
/// # Errors
/// As [`verify`].
pub fn prove(
    symmetry: &Symmetry,
    base: Plan,
    topology: &Arc<Topology>,
    progress: &mut dyn Progress,
) -> Result<Verified, VerifyError> {
    let orbits = symmetry.firsts().len();
    debug_assert_eq!(symmetry.len() * orbits, topology.npu_count());
    verify(Arc::new(base), Arc::clone(topology), progress)
}

fn simulate_shifted(
    symmetry: &Symmetry,
    base: &Verified,
    options: &SimulateOptions,
    progress: &mut dyn Progress,
) -> Result<Run, SimulateError> {
    let orbits = symmetry.orbits();
    let links = (0..base.topology().links().len()).map(LinkId::from);
    let first: Vec<LinkId> = links.map(|link| orbits.first(orbits.of(link))).collect();
    simulate_folded(base, options, &first, progress)
}

/// Finds the group of a network, plans one block, proves and simulates it, and so all.
///
/// # Errors
/// [`PlanError::NotApplicable`] where there is no group, or for another kind than all-gather, reduce-scatter and
/// all-reduce among all NPUs; [`PlanError::TooManyChunks`], [`PlanError::TooLarge`], [`PlanError::TooLong`],
/// [`PlanError::Interrupted`].
///
/// # Complexity
/// O(links x digits + NPUs x (ways from one + pieces) x log), where the plan that is meant has NPUs times as many
/// transfers as are kept.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use hocket_plan::collective::{Collective, CollectiveKind};
/// use hocket_base::progress::Silent;
/// use hocket_synth::symmetry::{SymmetricOptions, plan};
/// use hocket_topology::build;
/// use hocket_base::units::{Bandwidth, Time};
///
/// let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
/// let torus = Arc::new(build::torus(&[8, 8, 8], gigabyte, Time::ZERO)?);
/// let gather = Collective::among_all(CollectiveKind::AllGather, &torus, 512 * 6_000)?;
/// let made = plan(&torus, &gather, &SymmetricOptions::default(), &mut Silent)?;
/// assert_eq!(made.symmetry.orders(), [8, 8, 8]);
/// // What is kept, and what is meant.
/// assert_eq!(made.shifted().len(), 512 * made.base.plan().len() as u128);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan(
    topology: &Arc<Topology>,
    collective: &Collective,
    options: &SymmetricOptions,
    progress: &mut dyn Progress,
) -> Result<SymmetricPlan, PlanError> {
    check(topology, collective)?;
    let symmetry = find(topology)?;
    let (passes, busy) = passes(topology, collective, &symmetry, options)?;
    let mut search = Search {
        topology,
        collective,
        symmetry: &symmetry,
        options,
        passes: &passes,
        busy: &busy,
        best: None,
    };
    search.run(progress)?;
    let (base, run, pieces) = search.best.expect("a number of pieces was tried");
    Ok(SymmetricPlan {
        collective: collective.clone(),
        base: Arc::new(base),
        pieces: fit(pieces),
        symmetry,
        passes,
        run,
    })
}

fn check(topology: &Topology, collective: &Collective) -> Result<(), PlanError> {
    use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
    collective.check_on(topology)?;
    let kind = collective.kind();
    if !matches!(kind, AllGather | ReduceScatter | AllReduce) {
        return Err(refused(&format!(
            "{kind} does not ask the same of every NPU; it does all-gather, reduce-scatter and all-reduce: use trees"
        )));
    }
    let (part, all) = (collective.npus().len(), topology.npu_count());
    if part != all {
        return Err(refused(&format!(
            "{part} of {all} NPUs take part, and it needs all of them; use trees or greedy"
        )));
    }
    Ok(())
}

/// Returns why a collective cannot be planned by symmetry here.
pub fn refusal(topology: &Topology, collective: &Collective) -> Option<String> {
    let found = check(topology, collective).and_then(|()| Ok(find(topology)?));
    match found {
        Err(PlanError::NotApplicable { why, .. }) => Some(why),
        Err(other) => Some(other.to_string()),
        Ok(_) => None,
    }
}

fn refused(why: &str) -> PlanError {
    PlanError::NotApplicable {
        algorithm: SYMMETRIC,
        why: why.to_owned(),
    }
}

/// Returns the trees of a collective, and the same over the first link of each orbit.
fn passes(
    topology: &Topology,
    collective: &Collective,
    symmetry: &Symmetry,
    options: &SymmetricOptions,
) -> Result<(Passes, Passes), PlanError> {
    let block = collective.size() / symmetry.len() as u64;
    let kind = collective.kind();
    let arcs = match kind {
        CollectiveKind::AllReduce => 2 * (symmetry.len() as u64 - 1),
        _ => symmetry.len() as u64 - 1,
    };
    let room =
        (block / options.pieces.unwrap_or(1).max(1) as u64).min(options.most_transfers / arcs);
    let mut count = None;
    let mut one = |turned: bool| -> Result<(Packing, Packing), PlanError> {
        let cuts = cuts::cuts(topology, symmetry, turned);
        let rate = rate(symmetry, &cuts);
        let least = rate.weight as f64 / rate.bandwidth as f64;
        let trees = trees::trees(topology, symmetry, turned, (count, room), least)?;
        let number = trees.set.trees.len() as u64;
        count = Some(number);
        let packing = |set| Packing {
            turned,
            rate: rate.clone(),
            trees_a_weight: number,
            reached_ppm: whole(least / trees.seconds_a_byte * 1e6 + 1e-3).min(1_000_000),
            set,
        };
        Ok((packing(trees.set.clone()), packing(trees.folded.clone())))
    };
    let copies = (kind != CollectiveKind::ReduceScatter)
        .then(|| one(false))
        .transpose()?;
    let sums = (kind != CollectiveKind::AllGather)
        .then(|| one(true))
        .transpose()?;
    let (copies, copied) = copies.unzip();
    let (sums, summed) = sums.unzip();
    let passes = Passes::Apart { sums, copies };
    let busy = Passes::Apart {
        sums: summed,
        copies: copied,
    };
    Ok((passes, busy))
}

/// Returns what the worst cut round a subgroup lets through.
fn rate(symmetry: &Symmetry, cuts: &[SubgroupCut]) -> Rate {
    let weight = |cut: &SubgroupCut| (symmetry.len() - cut.npus) as u128;
    let slow = |a: &&SubgroupCut, b: &&SubgroupCut| {
        (weight(a) * b.bandwidth)
            .cmp(&(weight(b) * a.bandwidth))
            .then(b.npus.cmp(&a.npus))
    };
    let worst = cuts
        .iter()
        .max_by(slow)
        .expect("the subgroup of one NPU is there");
    Rate {
        bandwidth: worst.bandwidth,
        weight: weight(worst),
        cut: worst.inside.clone(),
    }
}

/// One over the share of a time that is not worth more pieces.
const GOOD_ENOUGH: u64 = 400;
/// How often the number of pieces is doubled at most.
const MOST_DOUBLINGS: u32 = 13;

struct Search<'a> {
    topology: &'a Arc<Topology>,
    collective: &'a Collective,
    symmetry: &'a Symmetry,
    options: &'a SymmetricOptions,
    passes: &'a Passes,
    /// The same trees over links that stand for those that are as busy.
    busy: &'a Passes,
    /// The quickest plan so far, its run, and its pieces.
    best: Option<(Verified, Run, u64)>,
}

impl Search<'_> {
    fn run(&mut self, progress: &mut dyn Progress) -> Result<(), PlanError> {
        if let Some(pieces) = self.options.pieces {
            self.attempt(pieces as u64, progress)?;
            return Ok(());
        }
        let arcs = self.passes.arcs().max(1);
        let block = self.collective.size() / self.symmetry.len() as u64;
        let most = (block / self.passes.trees() as u64).min(self.options.most_transfers / arcs);
        let one = self.of_block(self.passes.trees() as u64)?;
        let mut ends: Vec<(u64, u64)> = Vec::new();
        for pieces in (0..MOST_DOUBLINGS)
            .map(|power| 1 << power)
            .filter(|&it| it <= most.max(1))
        {
            let end = self.busy.end(self.topology, &one, fit(pieces))?;
            ends.push((pieces, end));
        }
        let least = ends.iter().map(|&(_, end)| end + end / GOOD_ENOUGH).min();
        let least = least.unwrap_or(u64::MAX);
        let start = ends.iter().position(|&(_, end)| end <= least).unwrap_or(0);
        self.attempt(ends[start].0, progress)?;
        let is_better = ends
            .get(start + 1)
            .map(|&(pieces, _)| self.attempt(pieces, progress));
        if start > 0 && !is_better.transpose()?.unwrap_or(false) {
            self.attempt(ends[start - 1].0, progress)?;
        }
        Ok(())
    }

    /// Returns what is asked of one block, cut into so many equal chunks, each as large as the largest of any block.
    fn of_block(&self, chunks: u64) -> Result<Collective, PlanError> {
        let size = self.collective.size();
        let npus = self.symmetry.len() as u64;
        if chunks > size / npus {
            return Err(PlanError::TooManyChunks {
                what: "a block".to_owned(),
                bytes: size / npus,
                chunks: fit(chunks),
            });
        }
        let bytes = size.div_ceil(npus).div_ceil(chunks) * chunks;
        let (kind, root) = match self.collective.kind() {
            CollectiveKind::AllGather => (
                CollectiveKind::Broadcast,
                Some(Rank(self.symmetry.npu(0).0)),
            ),
            CollectiveKind::ReduceScatter => {
                (CollectiveKind::Reduce, Some(Rank(self.symmetry.npu(0).0)))
            }
            kind => (kind, None),
        };
        Ok(Collective::new(
            kind,
            self.topology.npus().collect(),
            bytes,
            root,
        )?)
    }

    /// Proves and simulates the plan of so many pieces; whether it is the best so far.
    fn attempt(&mut self, pieces: u64, progress: &mut dyn Progress) -> Result<bool, PlanError> {
        let transfers = u128::from(self.passes.arcs()) * u128::from(pieces);
        PlanBuilder::check_size(transfers.max(pieces.into()), self.options.memory_limit)?;
        let chunks = pieces * self.passes.trees() as u64;
        let one = self.of_block(chunks)?;
        let topology = self.topology;
        let plan = self.passes.plan_by(
            self.busy,
            SYMMETRIC,
            topology,
            &one,
            (fit(pieces), RowOrder::Starts),
        )?;
        let proof = prove(self.symmetry, plan, topology, progress)?;
        let mut run = |order| {
            let latency = self.options.latency;
            let options = SimulateOptions {
                order: Some(order),
                latency,
                ..SimulateOptions::default()
            };
            simulate_shifted(self.symmetry, &proof, &options, progress).map_err(PlanError::from)
        };
        let mut order = LinkOrder::Plan;
        let mut best = run(order)?;
        // First come, first served only where all blocks are equal: a smaller chunk could make others late.
        if is_whole(&one, self.symmetry.len(), self.collective) {
            let ready = run(LinkOrder::Ready)?;
            if ready.time < best.time {
                (order, best) = (LinkOrder::Ready, ready);
            }
        }
        let found = self.best.as_ref();
        if found.is_some_and(|(_, found, _)| found.time <= best.time) {
            return Ok(false);
        }
        self.best = Some((proof.with_link_order(order), best, pieces));
        Ok(true)
    }
}
