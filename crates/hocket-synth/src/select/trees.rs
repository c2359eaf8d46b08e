//! Plans of packed trees: of which packing, by what comes out of simulation.

use std::sync::Arc;

use super::packings::{faulty, passes, rerouted};
use super::pieces::{Found, MOST_TRANSFERS, Search};
use super::reverse_links;
use super::time_reversal::reversed_proof;
use super::wide::{grown, is_wide, wide};
use crate::bound::{BoundOptions, bound};
use crate::collective::{Collective, CollectiveKind};
use crate::id::{LinkId, NpuId, fit};
use crate::packing::Passes;
use crate::plan::PlanError;
use crate::progress::{Interrupted, Limited, Progress};
use crate::simulate::Run;
use crate::topology::{LatencyModel, Topology};
use crate::verify::Verified;

/// The name of the algorithm.
pub const TREES: &str = "trees";

/// NPUs from which on a reduce is a broadcast turned round, if links are alike both ways.
const FROM_TURNED: usize = 256;
/// One over the share by which it may take longer than the broadcast before a reduce of its own is looked for.
const NEAR: u64 = 32;
/// Work of packing trees, and of their plans, before others are grown by prices.
const PACKED_WORK: u64 = 60_000_000;
/// One over the share by which a plan may take longer than the bound before trees are grown by prices.
const NEAR_BOUND: u64 = 100;
/// The same before packings have all the work that they want.
const FAIR: u64 = 20;
/// How many more plans are tried of several packings.
const MOST_FINER: usize = 2;
/// One over the share of a timetable by which plans end before it at most.
const EARLY: u64 = 40;

/// How plans of trees are made.
#[derive(Clone, Debug)]
pub struct TreeOptions {
    /// Pieces that every tree carries; by default those of the quickest plan.
    pub pieces: Option<usize>,
    /// Bytes that a plan may take; 16 GiB by default.
    pub memory_limit: u64,
    /// What latency does to links in the simulations.
    pub latency: LatencyModel,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            pieces: None,
            memory_limit: 16 << 30,
            latency: LatencyModel::default(),
        }
    }
}

/// A plan of packed trees, and what proves how good they are.
#[derive(Clone, Debug)]
pub struct TreePlan {
    /// The plan, proved.
    pub proof: Arc<Verified>,
    /// Its run at link fidelity.
    pub run: Run,
    /// Pieces that every tree carries.
    pub pieces: usize,
    /// The trees, checked against the network; `None` of those that were grown by prices.
    pub passes: Option<Passes>,
}

/// Packs trees for a collective and makes the quickest plan of them, over numbers of pieces and orders of links.
///
/// The timetable tells which number of pieces ends first; its plan is simulated, and those of half and twice as
/// many as long as that is better. `progress` may stop it: the best so far is then the result.
///
/// # Errors
/// As [`synthesize`](super::synthesize).
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use hocket_plan::collective::{Collective, CollectiveKind};
/// use hocket_synth::packing::Passes;
/// use hocket_base::progress::Silent;
/// use hocket_synth::select::{TreeOptions, trees};
/// use hocket_topology::build;
/// use hocket_base::units::{Bandwidth, Time};
///
/// let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
/// let mesh = Arc::new(build::mesh(&[3, 3], gigabyte, Time::ZERO)?);
/// let all_gather = Collective::among_all(CollectiveKind::AllGather, &mesh, 900_000_000)?;
/// let made = trees(&mesh, &all_gather, &TreeOptions::default(), &mut Silent)?;
/// // Eight blocks of 100 MB enter a corner over two links.
/// let Some(Passes::Apart { copies: Some(copies), .. }) = &made.passes else { unreachable!() };
/// assert_eq!((copies.rate.bandwidth, copies.rate.weight), (2_000_000_000, 8));
/// assert!(made.run.time < Time::from_ns(410_000_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn trees(
    topology: &Arc<Topology>,
    collective: &Collective,
    options: &TreeOptions,
    progress: &mut dyn Progress,
) -> Result<TreePlan, PlanError> {
    collective.check_on(topology)?;
    let (is_wide, is_alone) = is_wide(topology, collective);
    if is_alone {
        let grown = grown(topology, collective, options, progress)?;
        if let Some(plan) = wide(grown, None, progress)? {
            return Ok(plan);
        }
    }
    match is_wide && !is_alone {
        true => packed_or_wide(topology, collective, options, progress),
        false => packed(topology, collective, options, progress),
    }
}

/// Packs trees, and takes those that are grown by prices where no plan is near the bound: the quicker. Packings have only so
/// much work where prices reach the rate, and all that they want where the plan is not fair.
fn packed_or_wide(
    topology: &Arc<Topology>,
    collective: &Collective,
    options: &TreeOptions,
    progress: &mut dyn Progress,
) -> Result<TreePlan, PlanError> {
    let least = match bound(topology, collective, &BoundOptions::default(), progress) {
        Ok(least) => least.time.as_ps(),
        Err(_) => return packed(topology, collective, options, progress),
    };
    let grown = match grown(topology, collective, options, progress) {
        Err(PlanError::TooLarge { .. }) => return packed(topology, collective, options, progress),
        grown => grown?,
    };
    let reaches = grown.least() <= (least + least / NEAR) as f64;
    let most = if reaches { PACKED_WORK } else { u64::MAX };
    let mut limited = Limited::new(progress, most);
    let first = match packed(topology, collective, options, &mut limited) {
        Err(why @ (PlanError::Interrupted(_) | PlanError::NotApplicable { .. })) => Err(why),
        first => Ok(first?),
    };
    let is_cut = limited.spent >= most;
    let time = first.as_ref().ok().map(|plan| plan.run.time);
    if time.is_some_and(|time| time.as_ps() <= least + least / NEAR_BOUND) {
        return first;
    }
    let best = match wide(grown, time, progress) {
        Ok(Some(plan)) if time.is_none_or(|time| plan.run.time < time) => Ok(plan),
        _ => first,
    };
    let is_fair = |plan: &TreePlan| plan.run.time.as_ps() <= least + least / FAIR;
    if !is_cut || best.as_ref().is_ok_and(is_fair) {
        return best;
    }
    match (packed(topology, collective, options, progress), best) {
        (Ok(other), Ok(best)) if other.run.time < best.run.time => Ok(other),
        (_, Ok(best)) => Ok(best),
        (made, _) => made,
    }
}

/// Packs trees for a collective, or for a broadcast that is a reduce when it is turned round.
fn packed(
    topology: &Arc<Topology>,
    collective: &Collective,
    options: &TreeOptions,
    progress: &mut dyn Progress,
) -> Result<TreePlan, PlanError> {
    let turned = match twins_of(topology, collective) {
        Some(twins) => Some(as_turned(topology, collective, &twins, options, progress)?),
        None => None,
    };
    match turned {
        Some((plan, true)) => Ok(plan),
        Some((plan, false)) => match searched(topology, collective, options, progress) {
            Ok(other) if other.run.time < plan.run.time => Ok(other),
            Ok(_) | Err(PlanError::Interrupted(_)) => Ok(plan),
            Err(error) => Err(error),
        },
        None => searched(topology, collective, options, progress),
    }
}

/// Packs trees for a collective itself, and makes the quickest plan of them: of several packings, those that promise most
/// first, as long as one promises more than the best plan came to.
fn searched(
    topology: &Arc<Topology>,
    collective: &Collective,
    options: &TreeOptions,
    progress: &mut dyn Progress,
) -> Result<TreePlan, PlanError> {
    let of = |passes: Passes| Search {
        topology,
        collective,
        options,
        passes,
        tried: Vec::new(),
        best: None,
    };
    let first = of(passes(
        topology,
        collective,
        options.pieces.unwrap_or(1),
        progress,
    )?);
    let others = rerouted(topology, collective, options, &first.passes, progress)?;
    let is_alone = others.is_empty();
    let mut searches: Vec<(u64, Search)> = Vec::with_capacity(1 + others.len());
    for search in std::iter::once(first).chain(others.into_iter().map(of)) {
        let promised = match is_alone {
            true => 0,
            false => search.promised()?,
        };
        searches.push((promised, search));
    }
    searches.sort_by_key(|(promised, _)| *promised);
    let mut best = Best(None);
    for (number, (promised, search)) in searches.iter_mut().enumerate() {
        if !best.is_worth(*promised) {
            break;
        }
        let ended = search.run(progress);
        best.see(number, search);
        best.unless_interrupted(ended)?;
    }
    let mut searches: Vec<Search> = searches.into_iter().map(|(_, search)| search).collect();
    if !is_alone && options.pieces.is_none() {
        let ended = finer(&mut searches, &mut best, progress);
        best.unless_interrupted(ended)?;
    }
    let (number, found) = best.0.ok_or(PlanError::Interrupted(Interrupted))?;
    Ok(TreePlan {
        proof: Arc::new(found.proof),
        run: found.run,
        pieces: fit(found.pieces),
        passes: Some(searches.swap_remove(number).passes),
    })
}

/// Numbers of pieces that were not tried, of all packings: those that promise most first. A plan may end a little before
/// its timetable, as a piece goes on as soon as it is there; so those that promise a little less are tried too.
fn finer(
    searches: &mut [Search],
    best: &mut Best,
    progress: &mut dyn Progress,
) -> Result<(), PlanError> {
    let mut pairs = Vec::new();
    for (number, search) in searches.iter().enumerate() {
        let most = search.most(MOST_TRANSFERS);
        let powers = search.ladder().into_iter();
        let all = powers.flat_map(|power| [power, power * 3]);
        for pieces in all.filter(|pieces| *pieces <= most && !search.tried.contains(pieces)) {
            pairs.push((search.end(pieces)?, number, pieces));
        }
    }
    pairs.sort_unstable();
    for (promised, number, pieces) in pairs.into_iter().take(MOST_FINER) {
        if !best.is_worth(promised - promised / EARLY) {
            break;
        }
        searches[number].attempt(pieces, progress)?;
        best.see(number, &mut searches[number]);
    }
    Ok(())
}

/// The quickest plan of all searches, and the number of its search.
struct Best(Option<(usize, Found)>);

impl Best {
    /// Returns whether a plan that ends then would be quicker.
    fn is_worth(&self, promised: u64) -> bool {
        let found = self.0.as_ref();
        found.is_none_or(|(_, found)| promised < found.run.time.as_ps())
    }

    /// Takes what a search has found.
    fn see(&mut self, number: usize, search: &mut Search) {
        if let Some(found) = search.best.take()
            && self.is_worth(found.run.time.as_ps())
        {
            self.0 = Some((number, found));
        }
    }

    /// Passes errors on, but for an interruption where there is a plan.
    fn unless_interrupted(&self, ended: Result<(), PlanError>) -> Result<(), PlanError> {
        match ended {
            Err(PlanError::Interrupted(_)) if self.0.is_some() => Ok(()),
            other => other,
        }
    }
}

/// For each link the one that leads back, where a reduce is made as a broadcast.
fn twins_of(topology: &Topology, collective: &Collective) -> Option<Vec<LinkId>> {
    let is_large = collective.npus().len() > FROM_TURNED;
    match collective.kind() == CollectiveKind::Reduce && is_large {
        true => reverse_links::twins(topology),
        false => None,
    }
}

/// Returns a reduce that is the best broadcast over the same trees, turned round in time; and whether it takes about as
/// long. It may take longer where messages pass several links: see [`reversed_proof`].
fn as_turned(
    topology: &Arc<Topology>,
    collective: &Collective,
    twins: &[LinkId],
    options: &TreeOptions,
    progress: &mut dyn Progress,
) -> Result<(TreePlan, bool), PlanError> {
    let npus = collective.npus().to_vec();
    let copies = Collective::new(
        CollectiveKind::Broadcast,
        npus.clone(),
        collective.size(),
        collective.root(),
    )?;
    let made = searched(topology, &copies, options, progress)?;
    let copied = (made.proof.as_ref(), &made.run);
    let (proof, run) = reversed_proof(copied, collective, options.latency, progress)?;
    let Some(Passes::Apart {
        copies: Some(packing),
        ..
    }) = &made.passes
    else {
        unreachable!("a broadcast only copies");
    };
    let sums = reverse_links::mirrored(packing, twins);
    let weights: Vec<(NpuId, u64)> = collective
        .root()
        .map(|root| (npus[root.index()], 1))
        .into_iter()
        .collect();
    sums.check(topology, &npus, &weights).map_err(faulty)?;
    let hoped = made.run.time.as_ps();
    let is_near = run.time.as_ps() <= hoped + hoped / NEAR;
    let plan = TreePlan {
        proof: Arc::new(proof),
        run,
        pieces: made.pieces,
        passes: Some(Passes::Apart {
            sums: Some(sums),
            copies: None,
        }),
    };
    Ok((plan, is_near))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::DeviceId;
    use crate::progress::Silent;
    use crate::simulate::{SimulateOptions, simulate};
    use crate::topology::build;
    use crate::units::{Bandwidth, Time};

    fn gb_per_s(giga: u64) -> Bandwidth {
        Bandwidth::from_bytes_per_second(giga * 1_000_000_000).expect("positive")
    }

    /// Returns how much of the bound a plan reaches.
    fn share(topology: &Arc<Topology>, kind: CollectiveKind, bytes: u64) -> f64 {
        let collective = Collective::among_all(kind, topology, bytes).expect("a collective");
        let made = trees(topology, &collective, &TreeOptions::default(), &mut Silent);
        let made = made.expect("a plan");
        let proof = &made.proof;
        let run = simulate(proof, &SimulateOptions::default(), &mut Silent).expect("a run");
        assert_eq!(run, made.run);
        let least = bound(topology, &collective, &BoundOptions::default(), &mut Silent);
        least.expect("a bound").time.as_ps() as f64 / run.time.as_ps() as f64
    }

    #[test]
    fn large_data_comes_near_the_bound() {
        use CollectiveKind::{AllGather, AllReduce, Broadcast, Reduce, ReduceScatter};
        let latency = Time::from_ns(700);
        let torus = build::torus(&[4, 4], gb_per_s(25), latency).expect("a torus");
        let mesh = build::mesh(&[4, 4], gb_per_s(25), latency).expect("a mesh");
        let star = build::switch(8, gb_per_s(25), latency, None).expect("a switch");
        for (name, network) in [("torus", torus), ("mesh", mesh), ("star", star)] {
            let network = Arc::new(network);
            for kind in [AllGather, ReduceScatter, AllReduce, Broadcast, Reduce] {
                let share = share(&network, kind, 1 << 30);
                assert!(share > 0.94, "{name}, {kind}: {share}");
            }
        }
    }

    #[test]
    fn what_packings_do_not_reach_is_grown_by_prices() {
        let latency = Time::from_ns(700);
        let torus = build::torus(&[16, 16], gb_per_s(25), latency).expect("a torus");
        let torus = torus.without(&[DeviceId::from(5)], &[]);
        let torus = Arc::new(torus.expect("what is left"));
        let kind = CollectiveKind::AllGather;
        let collective = Collective::among_all(kind, &torus, 1 << 30).expect("a collective");
        let options = TreeOptions::default();
        let made = trees(&torus, &collective, &options, &mut Silent).expect("a plan");
        assert!(made.passes.is_none());
        let least = bound(&torus, &collective, &BoundOptions::default(), &mut Silent);
        let least = least.expect("a bound").time.as_ps();
        assert!(made.run.time.as_ps() < least + least / 50);
        // Latency decides: packings stand.
        let small = Collective::among_all(kind, &torus, 1 << 14).expect("a collective");
        let made = trees(&torus, &small, &options, &mut Silent).expect("a plan");
        assert!(made.passes.is_some());
    }

    #[test]
    fn a_large_reduce_is_a_broadcast_turned_round() {
        let torus = build::torus(&[17, 16], gb_per_s(25), Time::from_ns(700)).expect("a torus");
        let torus = Arc::new(torus);
        let made = |kind| {
            let collective = Collective::among_all(kind, &torus, 1 << 28).expect("a collective");
            trees(&torus, &collective, &TreeOptions::default(), &mut Silent).expect("a plan")
        };
        let (copies, sums) = (
            made(CollectiveKind::Broadcast),
            made(CollectiveKind::Reduce),
        );
        assert_eq!(sums.pieces, copies.pieces);
        let (copied, summed) = (copies.run.time.as_ps() as f64, sums.run.time.as_ps() as f64);
        assert!(summed < 1.05 * copied, "{summed} and {copied}");
        let Some(Passes::Apart {
            sums: Some(packing),
            copies: None,
        }) = &sums.passes
        else {
            panic!("a reduce only sums");
        };
        assert!(packing.turned);
        assert_eq!(sums.proof.plan().algorithm(), TREES);
    }

    #[test]
    fn more_roots_than_bytes_are_refused_before_trees_are_packed() {
        use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
        let ways = build::RingWays::Both;
        for (kind, npus, bytes, size) in [
            (AllGather, 1_100, 1_000, 0),
            (ReduceScatter, 1_100, 1_000, 0),
            (AllReduce, 440, 400, 400),
        ] {
            let parts = if kind == AllReduce { 440 } else { 1 };
            let ring = build::ring(npus, gb_per_s(25), Time::from_ns(700), ways).expect("a ring");
            let ring = Arc::new(ring);
            let collective = Collective::among_all(kind, &ring, bytes).expect("a collective");
            let why = trees(&ring, &collective, &TreeOptions::default(), &mut Silent);
            match why.expect_err("refused") {
                PlanError::TooManyChunks { bytes, chunks, .. } => {
                    assert_eq!((bytes, chunks), (size, parts), "{kind}");
                }
                why => panic!("{kind}: {why}"),
            }
        }
    }

    #[test]
    fn what_it_does_not_do_is_refused() {
        let torus = build::torus(&[3, 3], gb_per_s(25), Time::ZERO).expect("a torus");
        let torus = Arc::new(torus);
        let kind = CollectiveKind::AllToAll;
        let collective = Collective::among_all(kind, &torus, 900).expect("a collective");
        let why = trees(&torus, &collective, &TreeOptions::default(), &mut Silent);
        let why = why.expect_err("refused");
        assert!(
            why.to_string().contains("not all-to-all; use greedy"),
            "{why}"
        );
        let kind = CollectiveKind::AllGather;
        let options = TreeOptions {
            pieces: Some(200),
            ..TreeOptions::default()
        };
        let collective = Collective::among_all(kind, &torus, 900).expect("a collective");
        let why = trees(&torus, &collective, &options, &mut Silent).expect_err("refused");
        assert!(matches!(why, PlanError::TooManyChunks { .. }), "{why}");
    }
}
