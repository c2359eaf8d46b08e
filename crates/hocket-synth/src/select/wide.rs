//! Plans of spanning trees by the prices of links, for large networks in which every NPU takes part.
//!
//! An all-gather and a reduce-scatter have a tree for each NPU. An all-reduce has few trees with many pieces, or one for each
//! NPU with few: lists of few pieces tell which of them ends first with as many as a plan may have.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::order::as_planned;
use super::trees::{TREES, TreeOptions, TreePlan};
use crate::bound::Fidelity;
use crate::bound::network::ArcNetwork;
use crate::collective::{Collective, CollectiveKind};
use crate::id::{fit, narrow};
use crate::plan::{LinkOrder, PlanBuilder, PlanError};
use crate::progress::{Interrupted, MESSAGE, Progress};
use crate::simulate::Run;
use crate::steiner::{
    Along, Bundle, Jobs, Layers, Listed, NONE, Urgency, WideWish, bundles, pack_wide, twins,
};
use crate::topology::Topology;
use crate::units::Time;
use crate::verify::Verified;

/// NPUs from which on trees are grown by prices, and from which on none are packed until the worst cut is full.
const FROM: usize = 64;
const FROM_ALONE: usize = 448;
/// Pieces that trees which share an all-reduce have at the most, about, and the numbers of such trees.
const PIECES: u64 = 16;
const SHARED: RangeInclusive<u64> = 16..=256;
/// Returns how many trees there are at the least among so many NPUs, where not each NPU has its own.
pub(crate) fn least_trees(kind: CollectiveKind, npus: u64) -> Option<u64> {
    use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
    let together = (npus * npus.saturating_sub(1)).div_ceil(MOST_TRANSFERS);
    let together = together.min(MOST_TOGETHER);
    match kind {
        _ if npus < FROM_ALONE as u64 => None,
        AllReduce => Some(*SHARED.start()),
        AllGather | ReduceScatter if together > 1 => Some(npus.div_ceil(together)),
        _ => None,
    }
}

/// Returns whether trees are grown by prices, and whether only so.
pub(super) fn is_wide(topology: &Topology, collective: &Collective) -> (bool, bool) {
    use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
    let npus = collective.npus().len();
    let is_kind = matches!(collective.kind(), AllGather | AllReduce | ReduceScatter);
    let is_wide = is_kind && npus >= FROM && npus == topology.npu_count();
    (is_wide, is_wide && npus >= FROM_ALONE)
}

/// How low trees of an NPU each are to be, and those that are shared.
const LOW: f64 = 0.1;
const LOW_SHARED: f64 = 1.0;
/// Rounds over trees of an NPU each, and over those that are shared.
const ROUNDS: usize = 4;
const ROUNDS_SHARED: usize = 10;
/// Labels that are looked at: a few seconds.
const MOST_WORK: u64 = 60_000_000;
/// Transfers of a plan, and of the lists that choose among plans.
const MOST_TRANSFERS: u64 = 4_300_000;
const FEW_TRANSFERS: u64 = 500_000;
/// NPUs from which on plans may have more: they have few pieces otherwise.
const MANY_NPUS: usize = 2048;
const MOST_OF_MANY: u64 = 8_000_000;
/// NPUs whose shards travel together, at the most.
const MOST_TOGETHER: u64 = 8;
/// The same where trees are packed, too, in links that they cross.
const MOST_CROSSINGS: u64 = 3_200_000;
const FEW_CROSSINGS: u64 = 300_000;
/// Latency decides where a list of few pieces takes so many times as long as the fullest link.
const LATE: f64 = 4.0;
/// How many times as many pieces tell what falls with their number.
const FINER: u32 = 3;
/// One over the share of the time of the fullest link that is not worth more pieces.
const NEAR: f64 = 100.0;
const NEAR_OF_FEW: f64 = 200.0;
/// The same where each piece takes long to list.
const NEAR_OF_EVEN: f64 = 50.0;
/// One over the share of links, for each NPU, that are full where links are to be filled evenly.
const FULL: usize = 2;
/// Transfers up to which both orders are listed.
const MOST_IN_BOTH_ORDERS: u64 = 1_100_000;
/// Orders: the longest way first, with all trees at once, or each from a random time on; or where later links are free first.
const PLAIN: Urgency = Urgency {
    tail: 1,
    is_spread: false,
    at_every_link: true,
    is_even: false,
};
const SPREAD: Urgency = Urgency {
    is_spread: true,
    ..PLAIN
};
const EVEN: Urgency = Urgency {
    is_spread: true,
    is_even: true,
    ..PLAIN
};

/// Trees as jobs, in the better order.
pub(super) struct Shape {
    pub jobs: Jobs,
    /// How long the fullest link sends [ps].
    pub rate: f64,
    pub urgency: Urgency,
    /// Pieces of each tree, when their list ends [ps], and their turns where these are not those of all orders.
    listed: (u32, u64),
    turns: Option<Vec<u64>>,
    /// What is above the fullest link's time of it, falling with the number of pieces [ps].
    pub fill: f64,
    most: u64,
    promised: f64,
}

/// Trees that were grown by prices, which may be worth a plan.
pub(super) struct Grown<'a> {
    on: On<'a>,
    /// As jobs, and how long the fullest link sends [ps].
    trees: Vec<(Jobs, f64)>,
}

/// Grows trees by prices; none where some NPU cannot be reached.
///
/// # Errors
/// [`PlanError::TooLarge`], [`PlanError::Interrupted`].
pub(super) fn grown<'a>(
    topology: &'a Arc<Topology>,
    collective: &'a Collective,
    options: &'a TreeOptions,
    progress: &mut dyn Progress,
) -> Result<Grown<'a>, PlanError> {
    let on = On::new(topology, collective, options);
    let trees = on.grown(progress)?;
    Ok(Grown { on, trees })
}

impl Grown<'_> {
    /// Returns how long the fullest link sends, of the trees with which that is the least [ps].
    pub(super) fn least(&self) -> f64 {
        let rates = self.trees.iter().map(|(_, rate)| *rate);
        rates.fold(f64::INFINITY, f64::min)
    }
}

/// Returns the plan of trees by prices; `None` where there are none, and where they promise to take no less than another.
///
/// # Errors
/// [`PlanError::TooLarge`], [`PlanError::Interrupted`], and as [`super::Candidate::ending`].
pub(super) fn wide(
    Grown { on, trees }: Grown<'_>,
    other: Option<Time>,
    progress: &mut dyn Progress,
) -> Result<Option<TreePlan>, PlanError> {
    let options = on.options;
    let mut shapes = Vec::new();
    for (jobs, rate) in trees {
        shapes.extend(on.shape(jobs, rate, progress)?);
    }
    if !on.is_alone && options.pieces.is_none() {
        for shape in &mut shapes {
            on.fit(shape, progress)?;
        }
    }
    shapes.sort_by(|a, b| a.promised.total_cmp(&b.promised));
    let Some(shape) = shapes.into_iter().next() else {
        return Ok(None);
    };
    if other.is_some_and(|other| shape.promised >= other.as_ps() as f64) {
        return Ok(None);
    }
    let (few, _) = shape.listed;
    let most = match options.pieces {
        Some(_) => few,
        None => on.worthwhile(&shape),
    };
    let mut best: Option<(Verified, Run, u32)> = None;
    // One that takes little to make first, in case that the other is stopped.
    let first = if most >= 4 * few { few } else { most };
    for pieces in [first, most] {
        if best.as_ref().is_some_and(|best| pieces == best.2) {
            break;
        }
        match on.planned(&shape, pieces, progress) {
            Err(PlanError::Interrupted(_)) if best.is_some() => break,
            made => {
                let (proof, run) = made?;
                if best.as_ref().is_none_or(|best| run.time < best.1.time) {
                    best = Some((proof, run, pieces));
                }
            }
        }
    }
    Ok(best.map(|(proof, run, pieces)| TreePlan {
        proof: Arc::new(proof),
        run,
        pieces: fit(pieces),
        passes: None,
    }))
}

/// What is to be planned.
pub(super) struct On<'a> {
    topology: &'a Arc<Topology>,
    collective: &'a Collective,
    options: &'a TreeOptions,
    pub network: ArcNetwork,
    /// Whether no trees are packed.
    pub is_alone: bool,
    /// How many trees share an all-reduce, unless that is left to the number of transfers.
    pub shared: Option<u64>,
}

impl<'a> On<'a> {
    pub(super) fn new(
        topology: &'a Arc<Topology>,
        collective: &'a Collective,
        options: &'a TreeOptions,
    ) -> Self {
        Self {
            topology,
            collective,
            options,
            network: ArcNetwork::new(topology, Fidelity::Link),
            is_alone: is_wide(topology, collective).1,
            shared: None,
        }
    }

    /// Returns trees as jobs, and how long the fullest link sends [ps].
    pub(super) fn grown(&self, progress: &mut dyn Progress) -> Result<Vec<(Jobs, f64)>, PlanError> {
        let npus = self.network.npus().count() as u64;
        let back = twins(&self.network);
        let mut found = Vec::new();
        let along = match self.collective.kind() {
            CollectiveKind::AllReduce => Along::Both,
            CollectiveKind::ReduceScatter => Along::Sums,
            _ => Along::Copies,
        };
        if along == Along::Both && back.contains(&NONE) {
            return Ok(found);
        }
        let mut rank = vec![0; fit(npus)];
        for (number, npu) in (0..).zip(self.collective.npus()) {
            rank[npu.index()] = number;
        }
        let turned = (along == Along::Sums).then(|| self.network.reversed());
        let network = turned.as_ref().unwrap_or(&self.network);
        let layers = Layers::new(network, fit(npus));
        let (each, all) = enters(network);
        let passes = if along == Along::Both { 2 } else { 1 };
        let shared = self.shared.unwrap_or_else(|| {
            let trees = self.most() / (passes * (npus - 1) * PIECES);
            trees
                .next_power_of_two()
                .clamp(*SHARED.start(), *SHARED.end())
        });
        let together = match along {
            Along::Both => Vec::new(),
            _ => self.together(network),
        };
        let each_one = match together.len() {
            0 => (npus, LOW, ROUNDS),
            some => (some as u64, LOW, ROUNDS),
        };
        let counts = match along {
            Along::Both => vec![(shared, LOW_SHARED, ROUNDS_SHARED), each_one],
            _ => vec![each_one],
        };
        for (trees, low, rounds) in counts {
            let transfers = trees * (npus - 1) * passes;
            let is_first = found.is_empty();
            let is_left = !is_first && (transfers > self.most() || self.shared.is_some());
            if is_left || trees > self.collective.size() {
                continue;
            }
            PlanBuilder::check_size(transfers.into(), self.options.memory_limit)?;
            let others = (npus - 1) as f64;
            let (roots, least) = match along {
                Along::Both => {
                    let roots = (0..trees)
                        .map(|tree| narrow(fit::<usize, _>(spread(tree) % npus)))
                        .collect();
                    let rate = (2.0 * others / all).max(1.0 / each);
                    (roots, trees as f64 * rate)
                }
                _ if together.is_empty() => {
                    ((0..narrow(fit::<usize, _>(npus))).collect(), others / each)
                }
                _ => {
                    let last = |bundle: &Bundle| bundle.members[bundle.members.len() - 1];
                    let roots: Vec<u32> = together.iter().map(last).collect();
                    (roots, others * (trees as f64 / npus as f64) / each)
                }
            };
            let wish = WideWish {
                least,
                low,
                rounds,
                most_work: MOST_WORK,
            };
            let leads_back = (along == Along::Both).then_some(&back[..]);
            let packed = pack_wide(network, &layers, &roots, leads_back, wish, progress)?;
            let Some(packing) = packed else {
                return Ok(found);
            };
            let parts = if along == Along::Both { trees } else { npus };
            let bytes = self.collective.size() as f64 / parts as f64;
            let most = together.iter().map(|bundle| bundle.members.len()).max();
            let of = |tree: usize| match (along, together.get(tree)) {
                (Along::Both, _) => (0, bytes),
                (_, Some(bundle)) => (rank[bundle.members[0] as usize], bytes),
                (_, None) => (rank[roots[tree] as usize], bytes),
            };
            let jobs = Jobs::spanning(network, &back, &packing.trees, of, along, &together);
            let rate = packing.seconds * bytes * most.unwrap_or(1) as f64 * 1e12;
            found.push((jobs, rate));
        }
        Ok(found)
    }

    /// Returns how many transfers a plan may have; fewer where each takes long to list, for it crosses switches.
    fn most(&self) -> u64 {
        let npus = self.network.npus().count();
        let is_direct = self.network.node_count() == npus;
        let is_all_reduce = self.collective.kind() == CollectiveKind::AllReduce;
        match npus >= MANY_NPUS && (is_direct || is_all_reduce) {
            true => MOST_OF_MANY,
            false => MOST_TRANSFERS,
        }
    }

    /// Returns NPUs whose shards travel together, as few as there must be; none where a tree for each NPU is not too much.
    fn together(&self, network: &ArcNetwork) -> Vec<Bundle> {
        let npus: Vec<u32> = self.collective.npus().iter().map(|npu| npu.0).collect();
        let all = npus.len() as u64 * (npus.len() as u64 - 1);
        match (all.div_ceil(self.most()), self.options.pieces) {
            (most @ 2.., None | Some(1)) => bundles(network, &npus, fit(most.min(MOST_TOGETHER))),
            _ => Vec::new(),
        }
    }

    /// Lists trees with few pieces, and tells when they end with many; `None` where pieces would have no byte.
    pub(super) fn shape(
        &self,
        jobs: Jobs,
        rate: f64,
        progress: &mut dyn Progress,
    ) -> Result<Option<Shape>, PlanError> {
        let rows = jobs.list.len() as u64;
        let crossed = jobs.crossed();
        let [most, few] = match self.is_alone {
            true => [self.most() / rows, FEW_TRANSFERS / rows],
            false => [MOST_CROSSINGS / crossed, FEW_CROSSINGS / crossed],
        }
        .map(|pieces| pieces.max(1));
        let few = match self.options.pieces {
            Some(pieces) => u32::try_from(pieces).unwrap_or(u32::MAX),
            None => fit(few),
        };
        PlanBuilder::check_size(
            u128::from(rows) * u128::from(few),
            self.options.memory_limit,
        )?;
        if jobs.chunks(self.collective, few).is_none() {
            return Ok(None);
        }
        let mut orders = match (self.collective.kind(), jobs.has_long_ways) {
            (CollectiveKind::AllReduce, _) => [SPREAD, PLAIN],
            // Copies along links from NPU to NPU meet least if all trees begin at once.
            (_, false) => [PLAIN, SPREAD],
            (_, true) if self.is_alone => [EVEN, EVEN],
            (_, true) => [EVEN, SPREAD],
        };
        if rows * u64::from(few) > MOST_IN_BOTH_ORDERS {
            // Where few links are full, the others make up for what they lose.
            if orders[0] == EVEN && jobs.full(self.topology) * FULL < self.network.npus().count() {
                orders[0] = SPREAD;
            }
            orders[1] = orders[0];
            if u64::from(few) >= most {
                // There is nothing to choose.
                return Ok(Some(Shape {
                    jobs,
                    rate,
                    urgency: orders[0],
                    listed: (few, crate::units::whole(rate)),
                    turns: None,
                    fill: 0.0,
                    most,
                    promised: rate,
                }));
            }
        }
        let mut best: Option<(Urgency, Listed)> = None;
        for (number, &urgency) in (0..).zip(&orders) {
            let near = rate * (1.0 + 1.0 / NEAR);
            if best
                .as_ref()
                .is_some_and(|best| best.1.end as f64 <= near || urgency == best.0)
            {
                break;
            }
            if !progress.report("trees: orders", number, 2) {
                return Err(Interrupted.into());
            }
            progress.spend(MESSAGE * crossed * u64::from(few));
            let listed = jobs.list(self.topology, few, urgency);
            if best.as_ref().is_none_or(|best| listed.end < best.1.end) {
                best = Some((urgency, listed));
            }
        }
        let is_late = |end: u64| !self.is_alone && end as f64 > LATE * rate;
        Ok(best
            .filter(|best| !is_late(best.1.end))
            .map(|(urgency, listed)| {
                let end = listed.end;
                // What is above the fullest link's time falls with the number of pieces.
                let fill = (end as f64 - rate).max(0.0) * f64::from(few);
                let most = most.max(few.into());
                Shape {
                    promised: rate + fill / most as f64,
                    listed: (few, end),
                    turns: urgency.is_even.then_some(listed.turns),
                    fill,
                    jobs,
                    rate,
                    urgency,
                    most,
                }
            }))
    }

    /// Lists more pieces, and tells what of the time above the fullest link's falls with their number.
    fn fit(&self, shape: &mut Shape, progress: &mut dyn Progress) -> Result<(), PlanError> {
        let (few, end) = shape.listed;
        let more = few.saturating_mul(FINER);
        if u64::from(more) > shape.most || shape.jobs.chunks(self.collective, more).is_none() {
            return Ok(());
        }
        if !progress.report("trees: orders", 1, 2) {
            return Err(Interrupted.into());
        }
        progress.spend(MESSAGE * shape.jobs.crossed() * u64::from(more));
        let finer = shape.jobs.list(self.topology, more, shape.urgency).end as f64;
        let part = |pieces: f64| 1.0 / pieces;
        let fill = (end as f64 - finer) / (part(few.into()) - part(more.into()));
        shape.fill = fill.max(0.0);
        let most = shape.most as f64;
        shape.promised = finer - shape.fill * (part(more.into()) - part(most));
        Ok(())
    }

    /// Returns the number of pieces with which all ends about as early as with the most.
    fn worthwhile(&self, shape: &Shape) -> u32 {
        let (few, _) = shape.listed;
        let spare = match self.is_alone {
            true if shape.urgency.is_even => shape.rate / NEAR_OF_EVEN,
            true => shape.rate / NEAR,
            false => shape.promised / NEAR_OF_FEW,
        } + shape.fill / shape.most as f64;
        let bytes = self.collective.size() / shape.jobs.trees.len() as u64;
        let pieces = crate::units::whole((shape.fill / spare).ceil());
        fit(pieces.min(bytes).clamp(few.into(), shape.most))
    }

    fn planned(
        &self,
        shape: &Shape,
        pieces: u32,
        progress: &mut dyn Progress,
    ) -> Result<(Verified, Run), PlanError> {
        let transfers = shape.jobs.list.len() as u128 * u128::from(pieces);
        PlanBuilder::check_size(transfers, self.options.memory_limit)?;
        let chunks = shape
            .jobs
            .chunks(self.collective, pieces)
            .ok_or(Interrupted)?;
        let jobs = &shape.jobs;
        let urgency = shape.urgency;
        let again = match &shape.turns {
            Some(_) if pieces == shape.listed.0 => None,
            _ if urgency.is_even => {
                progress.spend(MESSAGE * jobs.crossed() * u64::from(pieces));
                Some(jobs.list(self.topology, pieces, urgency).turns)
            }
            _ => Some(jobs.by_priority(self.topology, (pieces, pieces), urgency)),
        };
        let turns = again.as_ref().or(shape.turns.as_ref());
        let turns = turns.map(Vec::as_slice).unwrap_or_default();
        let turns = (turns, LinkOrder::Priority);
        let plan = jobs.plan(TREES, self.collective, chunks, pieces, turns);
        as_planned(plan, self.topology, self.options.latency, progress)
    }
}

/// Returns the least bandwidth into an NPU, and that into all [B/s].
fn enters(network: &ArcNetwork) -> (f64, f64) {
    let mut into = vec![0.0; network.npus().count()];
    for arc in network.arcs().iter().filter(|arc| network.is_npu(arc.dst)) {
        into[arc.dst as usize] += arc.capacity as f64;
    }
    let least = into.iter().copied().fold(f64::INFINITY, f64::min);
    (least, into.iter().sum())
}

/// Returns numbers far apart for numbers that follow each other: Knuth, The Art of Computer Programming 3, 6.4.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::{BoundOptions, bound};
    use crate::id::DeviceId;
    use crate::progress::Silent;
    use crate::topology::build;
    use crate::units::Bandwidth;

    fn without(topology: &Topology, names: [&str; 2]) -> Arc<Topology> {
        let ids = names.map(|name| {
            let all = (0..topology.device_count()).map(DeviceId::from);
            let mut named = all.filter(|&id| topology.device(id).name == name);
            named.next().expect("a device")
        });
        let [there, back] = [(ids[0], ids[1]), (ids[1], ids[0])]
            .map(|(src, dst)| topology.links_between(src, dst).expect("a link"));
        let links = [there, back].concat();
        Arc::new(topology.without(&[], &links).expect("what is left"))
    }

    #[test]
    fn what_is_expected_fits_as_long_as_eight_shards_travel_together() {
        use CollectiveKind::{AllGather, AllReduce, Broadcast, ReduceScatter};
        let trees = |kind, npus| least_trees(kind, npus);
        for kind in [AllGather, ReduceScatter] {
            assert_eq!(trees(kind, 1024), None, "each has its own");
            assert_eq!(trees(kind, 4096), Some(1024), "four share one");
            assert_eq!(
                trees(kind, 16_384),
                Some(2048),
                "too many, by others' count"
            );
        }
        assert_eq!(trees(AllReduce, FROM_ALONE as u64 - 1), None);
        assert_eq!(trees(AllReduce, 4096), Some(*SHARED.start()));
        assert_eq!(trees(Broadcast, 4096), None);
    }

    #[test]
    fn large_networks_with_a_dead_link_come_near_the_bound() {
        use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
        let bandwidth = Bandwidth::from_bytes_per_second(50_000_000_000).expect("positive");
        let latency = Time::from_ns(700);
        let torus = build::torus(&[23, 23], bandwidth, latency).expect("a torus");
        let rail = build::Rail {
            nodes: 65,
            npus: 8,
            spines: 0,
            node_bandwidth: bandwidth,
            node_latency: latency,
            bandwidth,
            latency,
        };
        let rail = rail.build().expect("rails");
        let uneven = rail.without(&[DeviceId::from(0)], &[]);
        let uneven = Arc::new(uneven.expect("what is left"));
        let torus = without(&torus, ["npu0", "npu1"]);
        let rail = without(&rail, ["npu0", "rail0"]);
        for (network, kind, pieces, most) in [
            (&uneven, AllGather, Some(1), 1.05),
            (&uneven, ReduceScatter, Some(1), 1.05),
            (&torus, AllGather, None, 1.03),
            (&torus, AllReduce, Some(1), 1.3),
            (&rail, ReduceScatter, None, 1.03),
        ] {
            let options = TreeOptions {
                pieces,
                ..TreeOptions::default()
            };
            let collective = Collective::among_all(kind, network, 1 << 30).expect("a collective");
            let grown = grown(network, &collective, &options, &mut Silent).expect("trees");
            let made = wide(grown, None, &mut Silent);
            let made = made.expect("no error").expect("a plan");
            let least = bound(network, &collective, &BoundOptions::default(), &mut Silent);
            let gap = made.run.time.as_seconds() / least.expect("a bound").time.as_seconds();
            assert!(
                (1.0..most).contains(&gap),
                "{kind} on {}: {gap}",
                network.name()
            );
        }
    }
}
