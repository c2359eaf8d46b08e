//! The trees of a collective: those that reach the rate, and others where these promise no plan near to what it allows.

use std::ops::RangeInclusive;

use super::pieces::MOST_TRANSFERS;
use super::trees::{TREES, TreeOptions};
use crate::bound::Fidelity;
use crate::bound::network::ArcNetwork;
use crate::collective::{Collective, CollectiveKind};
use crate::id::NpuId;
use crate::packing::{
    NoPacking, Packing, PackingFault, Passes, Undirected, Wanted, best_rate, pack, pack_undirected,
    reroute, seconds_of_partition,
};
use crate::plan::{Chunks, PlanError};
use crate::progress::{Interrupted, Progress};
use crate::topology::Topology;

/// Arcs of all trees up to which each of many roots has more than a few trees.
const FEW_ARCS: u64 = 40_000;
/// Trees of one root.
const MOST_TREES: u64 = 128;
/// By how much quicker sums and copies at once must be than one after the other, which need fewer exchanges.
const WORTHWHILE: f64 = 0.995;

/// NPUs up to which trees are rerouted.
const MOST_REROUTED: usize = 128;
/// What is good enough to look for no other trees, in share of what the worst partition lets through.
const ENOUGH: f64 = 0.98;
/// Trees that are tried then: the more, the nearer to the rate, and the lower, the sooner they are filled.
const REROUTED: [Wanted; 3] = [
    Wanted {
        trees: 48,
        low: 0.1,
    },
    Wanted {
        trees: 96,
        low: 0.1,
    },
    Wanted {
        trees: 96,
        low: 0.5,
    },
];

/// Other trees of an all-reduce, that sum and copy at once, where the first ones do not come near to what the worst
/// partition lets through.
pub(super) fn rerouted(
    topology: &Topology,
    collective: &Collective,
    options: &TreeOptions,
    first: &Passes,
    progress: &mut dyn Progress,
) -> Result<Vec<Passes>, PlanError> {
    let mut found = Vec::new();
    let npus = collective.npus();
    if collective.kind() != CollectiveKind::AllReduce || npus.len() > MOST_REROUTED {
        return Ok(found);
    }
    let reached = match first {
        Passes::AtOnce(both) => both.seconds_a_byte(),
        Passes::Apart { sums, copies } => {
            let both = [sums, copies].into_iter().flatten();
            both.map(Packing::seconds_a_byte).sum::<f64>() / npus.len() as f64
        }
    };
    let mut packer = Packer::new(topology, collective, progress);
    match packer.least_both()? {
        Some(least) if least < ENOUGH * reached => {}
        _ => return Ok(found),
    }
    let room = collective.size() / options.pieces.unwrap_or(1).max(1) as u64;
    for wanted in REROUTED.into_iter().filter(|wanted| wanted.trees <= room) {
        match packer.reroute(wanted) {
            Err(PlanError::Interrupted(_)) => break,
            made => found.extend(made?.map(Passes::AtOnce)),
        }
    }
    Ok(found)
}

/// Returns the trees that carry so many pieces.
pub(super) fn passes(
    topology: &Topology,
    collective: &Collective,
    pieces: usize,
    progress: &mut dyn Progress,
) -> Result<Passes, PlanError> {
    use CollectiveKind::{AllGather, AllReduce, Broadcast, Reduce, ReduceScatter};
    let kind = collective.kind();
    let has_sums = matches!(kind, ReduceScatter | Reduce | AllReduce);
    let has_copies = matches!(kind, AllGather | Broadcast | AllReduce);
    if !has_sums && !has_copies {
        return Err(refused(&format!(
            "it does all-reduce, reduce-scatter, all-gather, broadcast and reduce, not {kind}; use greedy"
        )));
    }
    let pieces = pieces.max(1);
    let room = (collective.size() / pieces as u64).max(1);
    let most = most_trees(collective).min(share(collective) / pieces as u64);
    let most = most.max(1);
    let mut packer = Packer::new(topology, collective, progress);
    packer.check_pieces(collective, pieces)?;
    let mut sums = has_sums.then(|| packer.pack(true, 1..=most)).transpose()?;
    let mut copies = has_copies
        .then(|| packer.pack(false, 1..=most))
        .transpose()?;
    if let (Some(sums), Some(copies)) = (&mut sums, &mut copies) {
        // A chunk is summed and copied along one tree each.
        let (a, b) = (sums.trees_a_weight, copies.trees_a_weight);
        if a != b {
            let of_sums = packer.pack(false, a..=a)?;
            let of_copies = packer.pack(true, b..=b)?;
            if sums.seconds_a_byte() + of_sums.seconds_a_byte()
                <= of_copies.seconds_a_byte() + copies.seconds_a_byte()
            {
                *copies = of_sums;
            } else {
                *sums = of_copies;
            }
        }
        let apart = (sums.seconds_a_byte() + copies.seconds_a_byte()) / packer.npus.len() as f64;
        if let Some(both) = packer.pack_undirected()?
            && both.seconds_a_byte() < apart * WORTHWHILE
            && both.copies.trees.len() as u64 <= room
        {
            return Ok(Passes::AtOnce(both));
        }
    }
    Ok(Passes::Apart { sums, copies })
}

/// Returns the number of trees of a root up to which more are tried where the exact number is larger: the more, the
/// less is lost, but the more transfers a piece of all of them takes.
fn most_trees(collective: &Collective) -> u64 {
    let others = collective.npus().len() as u64 - 1;
    if collective.root().is_some() {
        return MOST_TREES;
    }
    let arcs = ((others + 1) * others).max(1);
    (FEW_ARCS / arcs)
        .clamp(16, MOST_TREES)
        .min(MOST_TRANSFERS / arcs)
}

/// Returns the bytes that each root has.
fn share(collective: &Collective) -> u64 {
    match collective.root() {
        Some(_) => collective.size(),
        None => collective.size() / collective.npus().len() as u64,
    }
}

/// Packs trees of one collective, and checks them.
struct Packer<'a> {
    topology: &'a Topology,
    npus: &'a [NpuId],
    weights: Vec<(NpuId, u64)>,
    network: ArcNetwork,
    progress: &'a mut dyn Progress,
}

impl<'a> Packer<'a> {
    fn new(
        topology: &'a Topology,
        collective: &'a Collective,
        progress: &'a mut dyn Progress,
    ) -> Self {
        Self {
            topology,
            npus: collective.npus(),
            weights: match collective.root() {
                Some(root) => vec![(collective.npus()[root.index()], 1)],
                None => collective.npus().iter().map(|&npu| (npu, 1)).collect(),
            },
            network: ArcNetwork::new(topology, Fidelity::Link),
            progress,
        }
    }

    /// Refuses before trees are packed what is refused afterwards: a root with fewer bytes than pieces. An all-reduce may
    /// have trees that all share, unless no such trees are worthwhile.
    fn check_pieces(&mut self, collective: &Collective, pieces: usize) -> Result<(), PlanError> {
        if collective.root().is_some() || share(collective) >= pieces as u64 {
            return Ok(());
        }
        let demands = collective.demands();
        if collective.kind() != CollectiveKind::AllReduce {
            return Chunks::split_part_major(&demands, pieces).map(drop);
        }
        let Some(both) = self.least_both()? else {
            return Chunks::split(&demands, pieces * self.npus.len()).map(drop);
        };
        let mut apart = 0.0;
        for network in [self.network.reversed(), self.network.clone()] {
            let rate = best_rate(&network, self.npus, &self.weights, self.progress);
            let Some(rate) = rate.map_err(stopped)? else {
                return Ok(());
            };
            apart += rate.weight as f64 / rate.bandwidth as f64 / self.npus.len() as f64;
        }
        match both < apart * WORTHWHILE {
            true => Ok(()),
            false => Chunks::split(&demands, pieces * self.npus.len()).map(drop),
        }
    }

    /// Returns how long a byte of all data takes by sums and copies at once, at the rate that nothing exceeds [s].
    fn least_both(&mut self) -> Result<Option<f64>, PlanError> {
        seconds_of_partition(&self.network, self.npus, self.progress).map_err(stopped)
    }

    fn reroute(&mut self, wanted: Wanted) -> Result<Option<Undirected>, PlanError> {
        let made = reroute(&self.network, self.npus, wanted, self.progress).map_err(stopped)?;
        match made
            .as_ref()
            .map(|both| both.check(self.topology, self.npus))
        {
            Some(Err(fault)) => Err(faulty(fault)),
            _ => Ok(made),
        }
    }

    fn pack(&mut self, sums: bool, counts: RangeInclusive<u64>) -> Result<Packing, PlanError> {
        let turned = sums.then(|| self.network.reversed());
        let network = turned.as_ref().unwrap_or(&self.network);
        let packing = pack(network, self.npus, &self.weights, counts, self.progress);
        let packing = packing.map_err(|why| match why {
            NoPacking::Interrupted => PlanError::Interrupted(Interrupted),
            NoPacking::NoRate => refused(
                "somebody cannot be reached, or bandwidths are too far apart to be counted exactly; use greedy",
            ),
            NoPacking::Stuck => refused("no trees were found that span this network; use greedy"),
        })?;
        let checked = packing.check(self.topology, self.npus, &self.weights);
        checked.map(|()| packing).map_err(faulty)
    }

    fn pack_undirected(&mut self) -> Result<Option<Undirected>, PlanError> {
        let both = match pack_undirected(&self.network, self.npus, self.progress) {
            Err(NoPacking::Interrupted) => return Err(PlanError::Interrupted(Interrupted)),
            both => both.ok().flatten(),
        };
        match both
            .as_ref()
            .map(|both| both.check(self.topology, self.npus))
        {
            Some(Err(fault)) => Err(faulty(fault)),
            _ => Ok(both),
        }
    }
}

/// Of what only an interruption stops.
fn stopped<E>(_: E) -> PlanError {
    PlanError::Interrupted(Interrupted)
}

pub(super) fn faulty(fault: PackingFault) -> PlanError {
    PlanError::Malformed {
        why: fault.to_string(),
    }
}

fn refused(why: &str) -> PlanError {
    PlanError::NotApplicable {
        algorithm: TREES,
        why: why.to_owned(),
    }
}
