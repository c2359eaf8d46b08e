//! All-reduces along trees, each with so many pieces one after another that a plan of one piece of each is kept.

use std::sync::Arc;

use super::trees::{TREES, TreeOptions};
use super::wide::{On, Shape};
use crate::collective::{Collective, CollectiveKind};
use crate::id::fit;
use crate::plan::{LinkOrder, Plan, PlanBuilder, PlanError};
use crate::progress::{Interrupted, Progress};
use crate::steiner::{Jobs, Timing};
use crate::topology::{LatencyModel, Topology};
use crate::units::Time;
use crate::verify::{Verified, verify};

/// One over the share of the time of the fullest link that is not worth more pieces.
const NEAR: f64 = 50.0;
/// Pieces of a tree at the most.
const MOST_PIECES: f64 = 4096.0;
/// Transfers of one piece of each tree, and trees that are enough where these are too few.
const FEW_KEPT: u64 = 530_000;
const MOST_KEPT: u64 = 2_200_000;
const ENOUGH: u64 = 64;
/// The fewest pieces of each tree that are simulated where not all are.
const FEWEST: u64 = 3;
/// Pieces fill the network where each takes this share of the time for which it keeps the fullest link busy.
const FULL: f64 = 0.9;
/// Messages up to which more pieces are simulated where they do not.
const MOST_SIMULATED: u64 = 60_000_000;
const NO_TREE: &str =
    "no tree reaches all NPUs over links that lead back, with a byte for each piece";

/// Trees that carry pieces one after another.
///
/// A piece never waits for another, but at links, and these serve whichever comes first in the plan: so what proves the
/// plan of one piece of each tree proves all pieces.
pub struct Pipelined {
    /// What all pieces together do.
    pub collective: Collective,
    /// The plan of one piece of each tree, proved; where pieces differ by a byte, of the largest.
    pub block: Arc<Verified>,
    /// Pieces that every tree carries.
    pub pieces: u32,
    /// When all ends at link fidelity: simulated, or told by what fewer pieces of that size take; as if all pieces were as
    /// large as the largest.
    pub time: Time,
    /// Numbers of pieces that were simulated, and when they end.
    pub simulated: Vec<(u32, Time)>,
    trees: Shape,
}

impl Pipelined {
    /// Returns the number of transfers of all pieces.
    pub fn transfers(&self) -> u128 {
        self.trees.jobs.list.len() as u128 * u128::from(self.pieces)
    }

    /// Returns the whole plan.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`].
    pub fn expand(&self, memory_limit: u64) -> Result<Plan, PlanError> {
        PlanBuilder::check_size(self.transfers(), memory_limit)?;
        let topology = self.block.topology();
        let all = (self.pieces, self.pieces);
        let made = first_pieces(topology, &self.collective, &self.trees, all);
        Ok(made.ok_or(Interrupted)?)
    }
}

/// Plans an all-reduce among all NPUs along few trees with many pieces: so many trees, or as many as [`kept_among`] counts.
///
/// # Errors
/// [`PlanError::NotApplicable`] for another collective, among few NPUs, and where a link leads one way only;
/// [`PlanError::TooLarge`], [`PlanError::Interrupted`].
pub fn pipelined(
    topology: &Arc<Topology>,
    collective: &Collective,
    options: &TreeOptions,
    trees: Option<u64>,
    progress: &mut dyn Progress,
) -> Result<Pipelined, PlanError> {
    let few = TreeOptions {
        pieces: None,
        ..options.clone()
    };
    let mut on = On::new(topology, collective, &few);
    if !on.is_alone || collective.kind() != CollectiveKind::AllReduce {
        return Err(refused(
            "trees keep one piece each of all-reduces among all of 448 NPUs or more",
        ));
    }
    if on.network.arcs().iter().any(|arc| arc.internal) {
        return Err(refused("a switch has a limit of its own"));
    }
    on.shared = Some(trees.unwrap_or_else(|| trees_among(collective.npus().len() as u64)));
    let grown = on.grown(progress)?;
    let shape = match grown.into_iter().next() {
        Some((jobs, rate)) => on.shape(jobs, rate, progress)?,
        None => None,
    };
    let shape = shape.ok_or_else(|| refused(NO_TREE))?;
    let trees = shape.jobs.trees.len() as u64;
    let most = collective.size() / trees;
    let pieces = match options.pieces {
        Some(pieces) if pieces as u64 > most => return Err(refused(NO_TREE)),
        Some(pieces) => pieces as u64,
        None => {
            let near = (shape.fill * NEAR / shape.rate).ceil().min(MOST_PIECES);
            crate::units::whole(near).clamp(1, most.max(1))
        }
    };
    let simulated = simulated(topology, &shape, pieces, options.latency, progress)?;
    // All pieces are taken to be as large as the largest: some have a byte less.
    let bytes = collective.size().div_ceil(trees * pieces) * trees;
    let part = Collective::new(
        CollectiveKind::AllReduce,
        collective.npus().to_vec(),
        bytes,
        None,
    );
    let part = part.map_err(|error| refused(&error.to_string()))?;
    let one = first_pieces(topology, &part, &shape, (1, fit(pieces))).ok_or(Interrupted)?;
    let block = verify(Arc::new(one), Arc::clone(topology), progress)?;
    Ok(Pipelined {
        collective: collective.clone(),
        block: Arc::new(block),
        pieces: fit(pieces),
        time: extrapolated(&simulated, fit(pieces), shape.rate / pieces as f64),
        simulated,
        trees: shape,
    })
}

/// Returns how many transfers one piece of each tree has that [`pipelined`] plans among so many NPUs.
pub fn kept_among(npus: u64) -> u64 {
    trees_among(npus) * 2 * (npus - 1)
}

/// Returns how many trees share an all-reduce: so many that their first pieces are a plan of half a million transfers, and
/// not fewer than 64 as long as that is one of two million.
fn trees_among(npus: u64) -> u64 {
    let each = 2 * (npus - 1);
    let trees = (FEW_KEPT / each).max(ENOUGH.min(MOST_KEPT / each));
    1 << trees.clamp(16, 256).ilog2()
}

/// Simulates all pieces, or so many that they fill the network, and twice as many.
fn simulated(
    topology: &Topology,
    shape: &Shape,
    pieces: u64,
    latency: LatencyModel,
    progress: &mut dyn Progress,
) -> Result<Vec<(u32, Time)>, PlanError> {
    let busy = shape.rate / pieces as f64;
    let crossed = shape.jobs.crossed();
    let timing = Timing::new(&shape.jobs, topology, fit(pieces), shape.urgency);
    let mut count = crate::units::whole((shape.fill / shape.rate).ceil()).max(FEWEST);
    let mut found: Vec<(u32, Time)> = Vec::new();
    loop {
        let is_all = if found.is_empty() { 2 * count } else { count } >= pieces;
        let some = if is_all { pieces } else { count };
        let jobs = &shape.jobs;
        let end = jobs.stream(topology, &timing, fit(some), latency, progress)?;
        if is_all {
            return Ok(vec![(fit(some), end)]);
        }
        found.push((fit(some), end));
        if let &[.., few, more] = &found[..] {
            let is_full = each(few, more) >= FULL * busy;
            if is_full || 2 * some * crossed > MOST_SIMULATED {
                return Ok(vec![few, more]);
            }
        }
        count *= 2;
    }
}

/// Returns how much longer each further piece took between two numbers of them [ps].
fn each((few, first): (u32, Time), (more, last): (u32, Time)) -> f64 {
    (last.as_ps() - first.as_ps()) as f64 / f64::from(more - few)
}

/// Tells when so many pieces end by what two smaller numbers of them take: each more takes as long as each did between, and
/// no less than it keeps the fullest link busy [ps].
fn extrapolated(simulated: &[(u32, Time)], pieces: u32, busy: f64) -> Time {
    let &[few, (more, last)] = simulated else {
        return simulated[0].1;
    };
    let others = each(few, (more, last)).max(busy) * f64::from(pieces - more);
    Time::from_ps(last.as_ps() + crate::units::whole(others.ceil()))
}

/// Returns the plan of the first of so many pieces of each tree; `None` where one would have no byte.
fn first_pieces(
    topology: &Topology,
    collective: &Collective,
    shape: &Shape,
    (first, pieces): (u32, u32),
) -> Option<Plan> {
    let jobs: &Jobs = &shape.jobs;
    let chunks = jobs.chunks(collective, first)?;
    let turns = jobs.by_priority(topology, (first, pieces), shape.urgency);
    let turns = (&turns[..], LinkOrder::Priority);
    Some(jobs.plan(TREES, collective, chunks, first, turns))
}

fn refused(why: &str) -> PlanError {
    PlanError::NotApplicable {
        algorithm: TREES,
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::DeviceId;
    use crate::progress::Silent;
    use crate::simulate::{SimulateOptions, simulate};
    use crate::topology::{TopologyBuilder, build};
    use crate::units::Bandwidth;

    fn gb_per_s(giga: u64) -> Bandwidth {
        Bandwidth::from_bytes_per_second(giga * 1_000_000_000).expect("positive")
    }

    fn all_reduce(topology: &Topology, size: u64) -> Collective {
        Collective::among_all(CollectiveKind::AllReduce, topology, size).expect("a collective")
    }

    /// A network of 520 NPUs: a torus, rails, or a ring with random links; some of it failed or slow.
    fn network(case: u32) -> Topology {
        let (wide, slow, latency) = (gb_per_s(50), gb_per_s(17), Time::from_ns(800));
        match case {
            0 => {
                let whole = build::torus(&[20, 26], wide, latency).expect("a torus");
                let [a, b] = [DeviceId(3), DeviceId(4)];
                let links = [(a, b), (b, a)].map(|(a, b)| whole.links_between(a, b).expect("it"));
                whole.without(&[], &links.concat()).expect("the rest")
            }
            1 => {
                let rail = build::Rail {
                    nodes: 65,
                    npus: 8,
                    spines: 0,
                    node_bandwidth: gb_per_s(300),
                    node_latency: Time::from_ns(300),
                    bandwidth: wide,
                    latency,
                };
                let whole = rail.build().expect("rails");
                whole.without(&[DeviceId(3)], &[]).expect("the rest")
            }
            _ => {
                let mut builder = TopologyBuilder::new("random");
                builder.npus(520);
                for npu in 0..520u32 {
                    let rate = if npu % 7 == 0 { slow } else { wide };
                    for ahead in [1, 23 + npu % 5] {
                        let ends = (DeviceId(npu), DeviceId((npu + ahead) % 520));
                        builder.both_ways(ends.0, ends.1, rate, latency);
                    }
                }
                builder.finish().expect("a network")
            }
        }
    }

    fn made(
        topology: &Arc<Topology>,
        size: u64,
        pieces: Option<usize>,
        latency: LatencyModel,
    ) -> Pipelined {
        let options = TreeOptions {
            pieces,
            latency,
            ..TreeOptions::default()
        };
        pipelined(
            topology,
            &all_reduce(topology, size),
            &options,
            None,
            &mut Silent,
        )
        .expect("trees")
    }

    fn in_full(made: &Pipelined, latency: LatencyModel) -> Time {
        let plan = made.expand(1 << 34).expect("it fits");
        assert_eq!(plan.len() as u128, made.transfers());
        let topology = Arc::clone(made.block.topology());
        let proof = verify(Arc::new(plan), topology, &mut Silent).expect("right");
        let options = SimulateOptions {
            latency,
            ..SimulateOptions::default()
        };
        simulate(&proof, &options, &mut Silent).expect("a run").time
    }

    #[test]
    fn what_is_counted_is_what_is_simulated_transfer_by_transfer() {
        let (topology, latency) = (Arc::new(network(1)), LatencyModel::default());
        let made = made(&topology, (1 << 16) * 256, Some(2), latency);
        assert_eq!(made.simulated, [(2, made.time)]);
        assert_eq!(in_full(&made, latency), made.time);
    }

    #[test]
    #[ignore = "takes a minute: make test-long"]
    fn the_same_on_other_networks_and_where_latency_occupies_links() {
        for case in 0..3 {
            let topology = Arc::new(network(case));
            let made = made(&topology, (1 << 16) * 256, Some(4), LatencyModel::Occupying);
            assert_eq!(made.simulated, [(4, made.time)]);
            let whole = in_full(&made, LatencyModel::Occupying);
            assert_eq!(whole, made.time, "{}", topology.name());
        }
    }

    #[test]
    #[ignore = "takes a minute: make test-long"]
    fn what_is_told_of_few_pieces_agrees_with_all() {
        for case in 0..3 {
            let topology = Arc::new(network(case));
            let made = made(&topology, 1 << 30, Some(40), LatencyModel::default());
            assert_eq!(made.simulated.len(), 2, "not all");
            let whole = in_full(&made, LatencyModel::default()).as_seconds();
            let off = made.time.as_seconds() / whole - 1.0;
            assert!(off.abs() < 0.01, "{}: {off}", topology.name());
        }
    }

    #[test]
    fn others_are_refused() {
        let small = Arc::new(build::torus(&[4, 4], gb_per_s(50), Time::ZERO).expect("a torus"));
        let options = TreeOptions::default();
        let found = pipelined(
            &small,
            &all_reduce(&small, 1 << 20),
            &options,
            None,
            &mut Silent,
        );
        assert!(matches!(found, Err(PlanError::NotApplicable { .. })));
        let large = Arc::new(network(0));
        let few_bytes = all_reduce(&large, 100);
        let found = pipelined(&large, &few_bytes, &options, None, &mut Silent);
        assert!(matches!(found, Err(PlanError::NotApplicable { .. })));
        let options = TreeOptions {
            pieces: Some(1_000_000),
            ..TreeOptions::default()
        };
        let found = pipelined(
            &large,
            &all_reduce(&large, 1 << 20),
            &options,
            None,
            &mut Silent,
        );
        assert!(matches!(found, Err(PlanError::NotApplicable { .. })));
    }

    #[test]
    fn networks_that_are_cut_are_refused() {
        let whole = network(0);
        let around = |npu: u32| {
            let out = whole.out_links(DeviceId(npu)).iter().copied();
            let ends = out.map(|link| whole.link(link).dst);
            let both = ends.flat_map(|far| [(DeviceId(npu), far), (far, DeviceId(npu))]);
            let links = both.map(|(a, b)| whole.links_between(a, b).expect("links"));
            links.collect::<Vec<_>>().concat()
        };
        let halves = {
            let (wide, late) = (gb_per_s(50), Time::from_ns(700));
            let mut builder = TopologyBuilder::new("halves");
            builder.npus(600);
            for npu in (0..599u32).filter(|npu| *npu != 299) {
                builder.both_ways(DeviceId(npu), DeviceId(npu + 1), wide, late);
            }
            builder.finish().expect("a network")
        };
        let cut = |npu: u32| whole.without(&[], &around(npu)).expect("the rest");
        for topology in [cut(0), cut(77), halves] {
            let topology = Arc::new(topology);
            let options = TreeOptions::default();
            let all = all_reduce(&topology, 1 << 30);
            let found = pipelined(&topology, &all, &options, None, &mut Silent);
            assert!(matches!(found, Err(PlanError::NotApplicable { .. })));
        }
    }

    #[test]
    fn more_pieces_take_no_less_than_they_keep_the_fullest_link_busy() {
        let ps = Time::from_ps;
        assert_eq!(extrapolated(&[(9, ps(70))], 9, 1.0), ps(70), "simulated");
        let simulated = [(3, ps(100)), (6, ps(130))];
        assert_eq!(extrapolated(&simulated, 10, 1.0), ps(170));
        assert_eq!(extrapolated(&simulated, 10, 20.0), ps(210));
    }
}
