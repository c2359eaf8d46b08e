//! Plans of routed flows: into how many pieces blocks are cut, and in what order links serve, by what comes out of
//! simulation.

use std::sync::Arc;

use super::order::{as_planned, in_best_order};
use crate::bound::Fidelity;
use crate::bound::multiflow::{
    Flow, MOST_FLOWS, Routing, Shares, Spread, Unroutable, flows as flows_of,
};
use crate::bound::network::ArcNetwork;
use crate::collective::{Collective, CollectiveKind};
use crate::id::{DeviceId, NpuId, fit};
use crate::multiflow::{Legs, Service, plan, whole, windowed};
use crate::plan::{PlanBuilder, PlanError};
use crate::progress::{Interrupted, Progress};
use crate::simulate::Run;
use crate::symmetry::Exchange;
use crate::topology::{LatencyModel, Topology};
use crate::verify::{Verified, verify};

/// The name of the algorithm.
pub const FLOWS: &str = "flows";

/// Transfers up to which blocks are cut into more pieces.
const MOST_TRANSFERS: u64 = 300_000;
/// Pieces of the largest block that are tried: powers of this.
const STEP: u64 = 4;
const MOST_PIECES: u64 = 1024;
/// Pieces of the largest block in which ways are found whose bytes are then moved in proportion.
const COARSE: u64 = 16;
/// Transfers of such a plan at most: before bytes are moved, and once the ways are known.
const MOST_STEPS: f64 = 116_000.0;
const MOST_STEPS_BALANCED: f64 = 119_000.0;
/// What its pieces may cost by their size, as a share of the time.
const LOSS: f64 = 0.003;
/// Shares of their time that links between switches are left free, if no plan that uses them fully is nearly as quick
/// as the busiest link: what goes over many links arrives late, and has to queue at the last of them.
const SPARES: [f64; 2] = [0.08, 0.25];
const NEARLY: f64 = 1.03;
/// A plan is good enough that takes this much longer than the busiest link at least sends.
const CLOSE: f64 = 1.01;
/// The other order of service is not tried, if the plan takes this much longer than the busiest link sends.
const CLOSER: f64 = 1.005;
/// More pieces in whole parts are not tried, if the plan with bytes in proportion takes this much longer than the busiest
/// link sends.
const NEAR_BUSIEST: f64 = 1.02;

/// Blocks above which a transfer takes its whole way, passed on by NPUs, if links join NPUs alone and the plan comes near.
const MANY: usize = 1 << 16;

/// One over the share of its time by which a plan may take longer, if nothing begins long before it can be sent.
const FREE: u64 = 300;

/// A plan of routed flows.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// The plan, proved.
    pub proof: Arc<Verified>,
    /// Its run at link fidelity with overlapped latency.
    pub run: Run,
    /// Pieces of a block, on average: fewer than were tried where it has fewer bytes.
    pub pieces: usize,
}

/// Routes what goes from one NPU to one other so that the busiest link has least to do, and makes the quickest plan of
/// it, over numbers of pieces and orders of links: all-to-all, scatter, gather, and custom collectives alike.
///
/// With `pieces` given, the largest block is cut into so many, and smaller ones into pieces of about the same size.
///
/// # Errors
/// [`PlanError::NotApplicable`] for a collective that sums or copies, or where an NPU that wants data cannot be
/// reached; [`PlanError::TooLarge`]; [`PlanError::TooManyChunks`]; [`PlanError::TooLong`];
/// [`PlanError::Interrupted`] before a first plan was found (later, the best so far is the result);
/// [`PlanError::Collective`] where the topology lacks a participant.
pub fn flows(
    topology: &Arc<Topology>,
    collective: &Collective,
    pieces: Option<usize>,
    memory_limit: u64,
    progress: &mut dyn Progress,
) -> Result<FlowPlan, PlanError> {
    collective.check_on(topology)?;
    let n = collective.npus().len() as u128;
    if collective.kind() == CollectiveKind::AllToAll {
        PlanBuilder::check_size(n * (n - 1), memory_limit)?;
    }
    let flows = flows_of(collective).map_err(|demand| refused(not_of_one(collective, demand)))?;
    let on = On {
        topology,
        collective,
        network: ArcNetwork::new(topology, Fidelity::Link),
        flows,
        memory_limit,
    };
    let largest = on.largest();
    let ladder: Vec<u64> = match pieces {
        Some(pieces) if pieces as u64 > largest.max(1) || pieces == 0 => {
            return Err(PlanError::TooManyChunks {
                what: "the largest block".to_owned(),
                bytes: largest,
                chunks: pieces,
            });
        }
        Some(pieces) => vec![pieces as u64],
        None => std::iter::successors(Some(1), |pieces| Some(pieces * STEP))
            .take_while(|&pieces| pieces == 1 || pieces <= largest.min(MOST_PIECES))
            .collect(),
    };
    let mut search = Search {
        on: &on,
        best: None,
        least: 0.0,
        pieces,
    };
    match search.run(&ladder, progress) {
        Err(PlanError::Interrupted(_)) if search.best.is_some() => {}
        ended => ended?,
    }
    let best = search.best.ok_or(Interrupted)?;
    let best = match on.with_windows(&best, progress) {
        Err(PlanError::Interrupted(_)) => best,
        windowed => windowed?.unwrap_or(best),
    };
    Ok(FlowPlan {
        proof: best.proof,
        run: best.run,
        pieces: best.pieces,
    })
}

/// A search for the quickest plan.
struct Search<'a> {
    on: &'a On<'a>,
    best: Option<Found>,
    /// How long the busiest link sends at least [s].
    least: f64,
    /// Pieces of the largest block, if given.
    pieces: Option<usize>,
}

impl Search<'_> {
    /// Tries so many pieces, one after the other, until a plan is good enough.
    fn run(&mut self, ladder: &[u64], progress: &mut dyn Progress) -> Result<(), PlanError> {
        let on = self.on;
        if !on.is_few() && self.by_symmetry(ladder, progress)? {
            return Ok(());
        }
        let mut most = 1;
        let mut is_in_proportion = false;
        for (i, &pieces) in ladder.iter().enumerate() {
            most = pieces;
            let (parts, routing) = on.routed(pieces, 0.0, progress)?;
            self.least = self.least.max(routing.least);
            if on.is_passed_on() {
                let whole = on.whole(&parts, &routing, progress)?;
                if self.offer(whole) <= CLOSE * routing.busiest {
                    return Ok(());
                }
            }
            let found = on.made(&parts, &routing, Service::MostAhead, progress)?;
            let transfers = found.proof.plan().len() as u64;
            if self.offer(found) <= CLOSE * self.least {
                return Ok(());
            }
            let is_last = transfers * STEP > MOST_TRANSFERS || i + 1 == ladder.len();
            if !on.is_few() && is_last && self.time() > CLOSER * routing.busiest {
                self.offer(on.made(&parts, &routing, Service::VirtualTime, progress)?);
            }
            if on.is_few() && !is_in_proportion && (is_last || pieces >= COARSE) {
                is_in_proportion = true;
                let busiest = self.finer(&parts, &routing, progress)?;
                if self.time() <= NEAR_BUSIEST * busiest {
                    return Ok(());
                }
            }
            if is_last {
                break;
            }
        }
        for spare in SPARES.into_iter().filter(|_| on.has_inner_links()) {
            if self.time() <= NEARLY * self.least {
                break;
            }
            let (parts, routing) = on.routed(most, spare, progress)?;
            self.offer(on.made(&parts, &routing, Service::MostAhead, progress)?);
        }
        Ok(())
    }

    /// Plans for one NPU and shifts its plan to all others, if the network is symmetric. Returns whether that is good enough.
    fn by_symmetry(
        &mut self,
        ladder: &[u64],
        progress: &mut dyn Progress,
    ) -> Result<bool, PlanError> {
        let on = self.on;
        let mut best: Option<(u64, Exchange)> = None;
        for &pieces in ladder {
            if best.is_some() && on.flows.len() as u64 * pieces > MOST_TRANSFERS {
                break;
            }
            let how = (pieces, on.is_passed_on());
            let made = Exchange::new(FLOWS, on.topology, on.collective, how, progress)?;
            let Some(made) = made else {
                break;
            };
            let is_close = made.time() <= CLOSE * made.least;
            if best
                .as_ref()
                .is_none_or(|(_, best)| made.time() < best.time())
            {
                best = Some((pieces, made));
            }
            if is_close {
                break;
            }
        }
        let Some((pieces, best)) = best else {
            return Ok(false);
        };
        self.least = best.least;
        if best.time() <= CLOSE * best.least {
            progress.searched();
        }
        let (plan, run) = best.whole(on.memory_limit)?;
        let (proof, run) = match run {
            Some(run) => (
                verify(Arc::new(plan), Arc::clone(on.topology), progress)?,
                run,
            ),
            None => as_planned(plan, on.topology, LatencyModel::default(), progress)?,
        };
        let found = Found {
            run,
            proof: Arc::new(proof),
            pieces: fit(pieces),
        };
        Ok(self.offer(found) <= CLOSE * best.least)
    }

    /// Tries the bytes of each way in proportion, and as many pieces as help. Returns how long the busiest link sends,
    /// or the longest way [s].
    fn finer(
        &mut self,
        parts: &Shares,
        routing: &Routing,
        progress: &mut dyn Progress,
    ) -> Result<f64, PlanError> {
        let on = self.on;
        let mut spread = Spread::new(&on.network, &on.flows, parts, routing);
        let grain = match self.pieces {
            Some(pieces) => on.largest() as f64 / pieces as f64,
            None => spread.grain(MOST_STEPS, LOSS),
        };
        spread.balance(grain, 1.0, progress)?;
        let grain = match self.pieces {
            Some(_) => grain,
            None => spread.grain(MOST_STEPS_BALANCED, LOSS),
        };
        let (parts, routing) = spread.cut(grain);
        self.least = self.least.max(routing.least);
        for service in [Service::VirtualTime, Service::MostAhead] {
            let found = on.made(&parts, &routing, service, progress)?;
            if self.offer(found) <= CLOSER * routing.busiest {
                break;
            }
        }
        Ok(routing.busiest)
    }

    /// Keeps the quicker of two, of equals the one of fewer transfers; with its time [s].
    fn offer(&mut self, found: Found) -> f64 {
        let order = |found: &Found| (found.run.time, found.proof.plan().len());
        if self
            .best
            .as_ref()
            .is_none_or(|best| order(&found) < order(best))
        {
            self.best = Some(found);
        }
        self.time()
    }

    /// Returns the time of the best so far [s].
    fn time(&self) -> f64 {
        self.best
            .as_ref()
            .map_or(f64::INFINITY, |best| best.run.time.as_seconds())
    }
}

/// What is to be planned.
struct On<'a> {
    topology: &'a Arc<Topology>,
    collective: &'a Collective,
    network: ArcNetwork,
    flows: Vec<Flow>,
    memory_limit: u64,
}

/// A plan as simulated.
struct Found {
    run: Run,
    proof: Arc<Verified>,
    pieces: usize,
}

impl On<'_> {
    /// Returns whether there are links between switches.
    fn has_inner_links(&self) -> bool {
        let is_npu = |node: u32| self.network.is_npu(node);
        let mut arcs = self.network.arcs().iter();
        arcs.any(|arc| !arc.internal && !is_npu(arc.src) && !is_npu(arc.dst))
    }

    /// Returns the bytes of the largest flow.
    fn largest(&self) -> u64 {
        self.flows.iter().map(|flow| flow.bytes).max().unwrap_or(0)
    }

    /// Returns whether bytes can be moved between ways in a short time.
    fn is_few(&self) -> bool {
        self.flows.len() <= MOST_FLOWS
    }

    /// Returns ways of all parts if the largest flow has so many, and links between switches are free for the share
    /// `spare`.
    fn routed(
        &self,
        pieces: u64,
        spare: f64,
        progress: &mut dyn Progress,
    ) -> Result<(Shares, Routing), PlanError> {
        let parts = Shares::new(&self.flows, pieces);
        PlanBuilder::check_size(parts.flow.len() as u128, self.memory_limit)?;
        let routing = Routing::new(&self.network, &self.flows, &parts, spare, progress);
        Ok((parts, routing.map_err(|why| self.unroutable(&why))?))
    }

    /// Returns whether there are so many blocks, all over links between NPUs, that a transfer for each link would take long.
    fn is_passed_on(&self) -> bool {
        self.flows.len() > MANY && self.network.node_count() == self.topology.npu_count()
    }

    /// Returns a plan in which each part takes its whole way in one transfer.
    fn whole(
        &self,
        parts: &Shares,
        routing: &Routing,
        progress: &mut dyn Progress,
    ) -> Result<Found, PlanError> {
        let (topology, collective) = (self.topology, self.collective);
        let cut = (parts, &routing.ways, &routing.prices[..]);
        let plan = whole(FLOWS, topology, collective, &self.flows, &self.network, cut)?;
        let (proof, run) = as_planned(plan, topology, LatencyModel::default(), progress)?;
        Ok(Found {
            run,
            pieces: 1,
            proof: Arc::new(proof),
        })
    }

    fn made(
        &self,
        parts: &Shares,
        routing: &Routing,
        service: Service,
        progress: &mut dyn Progress,
    ) -> Result<Found, PlanError> {
        let legs = Legs::new(&self.network, routing);
        PlanBuilder::check_size(legs.steps() as u128, self.memory_limit)?;
        let cut = (parts, &legs, &legs);
        let (topology, collective) = (self.topology, self.collective);
        let plan = plan(
            FLOWS,
            topology,
            collective,
            &self.flows,
            cut,
            service,
            progress,
        )?;
        let is_long = legs.steps() as u64 > MOST_TRANSFERS; // and simulated for as long as it is planned
        let enough = if is_long {
            CLOSE * routing.busiest
        } else {
            0.0
        };
        let latency = LatencyModel::default();
        let (proof, run) = in_best_order(plan, topology, latency, enough, progress)?;
        Ok(Found {
            run,
            pieces: (proof.plan().chunks().len() / self.flows.len().max(1)).max(1),
            proof: Arc::new(proof),
        })
    }

    /// Returns the same plan with windows, if it takes about as long; `None` if not, and for long plans.
    fn with_windows(
        &self,
        best: &Found,
        progress: &mut dyn Progress,
    ) -> Result<Option<Found>, PlanError> {
        let plan = best.proof.plan();
        if plan.len() as u64 > MOST_TRANSFERS {
            return Ok(None);
        }
        let Some(plan) = windowed(plan, self.topology, best.run.time) else {
            return Ok(None);
        };
        let latency = LatencyModel::default();
        let (proof, run) = in_best_order(plan, self.topology, latency, 0.0, progress)?;
        let most = best.run.time.as_ps() + best.run.time.as_ps() / FREE;
        Ok((run.time.as_ps() <= most).then(|| Found {
            run,
            proof: Arc::new(proof),
            pieces: best.pieces,
        }))
    }

    fn unroutable(&self, why: &Unroutable) -> PlanError {
        let name = |npu: NpuId| &self.topology.device(DeviceId(npu.0)).name;
        match *why {
            Unroutable::Interrupted => PlanError::Interrupted(Interrupted),
            Unroutable::Unreachable(src, dst) => refused(format!(
                "{} wants data of {}, but no links lead there",
                name(dst),
                name(src)
            )),
        }
    }
}

/// Returns why it does not do a collective, whatever the network.
pub(crate) fn refusal(collective: &Collective) -> Option<String> {
    let demand = flows_of(collective).err()?;
    Some(not_of_one(collective, demand))
}

fn not_of_one(collective: &Collective, demand: usize) -> String {
    let kind = collective.kind();
    match kind {
        CollectiveKind::Custom => format!(
            "demand {demand} is not held by one NPU and wanted by one, and it only does collectives whose data each \
             go from one NPU to one other; use greedy"
        ),
        _ => format!(
            "it does all-to-all, scatter, gather and custom collectives, not {kind}; use greedy"
        ),
    }
}

fn refused(why: String) -> PlanError {
    PlanError::NotApplicable {
        algorithm: FLOWS,
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::{BoundOptions, bound};
    use crate::collective::{Demand, NpuSet};
    use crate::progress::Silent;
    use crate::simulate::{SimulateOptions, simulate};
    use crate::topology::{TopologyBuilder, build};
    use crate::units::{Bandwidth, Seed, Time};
    use crate::verify::verify;

    const MEMORY: u64 = 1 << 34;

    fn gb_per_s(giga: u64) -> Bandwidth {
        Bandwidth::from_bytes_per_second(giga * 1_000_000_000).expect("positive")
    }

    /// Returns how much of the bound a plan reaches.
    fn share(topology: &Arc<Topology>, collective: &Collective) -> f64 {
        let made = flows(topology, collective, None, MEMORY, &mut Silent).expect("a plan");
        let plan = Arc::clone(made.proof.plan());
        let proof = verify(plan, Arc::clone(topology), &mut Silent).expect("a proof");
        let run = simulate(&proof, &SimulateOptions::default(), &mut Silent).expect("a run");
        assert_eq!(run, made.run);
        let least = bound(topology, collective, &BoundOptions::default(), &mut Silent);
        least.expect("a bound").time.as_ps() as f64 / run.time.as_ps() as f64
    }

    #[test]
    fn large_data_comes_near_the_bound() {
        use CollectiveKind::{AllToAll, Gather, Scatter};
        let latency = Time::from_ns(700);
        let torus = build::torus(&[4, 4], gb_per_s(25), latency).expect("a torus");
        let mesh = build::mesh(&[4, 3], gb_per_s(25), latency).expect("a mesh");
        let star = build::switch(8, gb_per_s(25), latency, None).expect("a switch");
        let tree = build::fat_tree(4, gb_per_s(25), latency).expect("a fat tree");
        for (name, network) in [
            ("torus", torus),
            ("mesh", mesh),
            ("star", star),
            ("tree", tree),
        ] {
            let network = Arc::new(network);
            for kind in [AllToAll, Scatter, Gather] {
                let collective =
                    Collective::among_all(kind, &network, 1 << 30).expect("a collective");
                let share = share(&network, &collective);
                let enough = if name == "tree" { 0.9 } else { 0.97 };
                assert!(share > enough && share <= 1.0, "{name}, {kind}: {share}");
            }
        }
    }

    #[test]
    fn whole_ways_take_hardly_longer_than_the_busiest_link() {
        let latency = Time::from_ns(700);
        let torus = build::torus(&[4, 8], gb_per_s(25), latency).expect("a torus");
        let mesh = build::mesh(&[6, 3], gb_per_s(25), latency).expect("a mesh");
        for network in [torus, mesh] {
            let topology = &Arc::new(network);
            let kind = CollectiveKind::AllToAll;
            let collective = &Collective::among_all(kind, topology, 1 << 30).expect("a collective");
            let on = On {
                topology,
                collective,
                network: ArcNetwork::new(topology, Fidelity::Link),
                flows: flows_of(collective).expect("of one for one"),
                memory_limit: MEMORY,
            };
            assert!(!on.is_passed_on(), "few blocks");
            let (parts, routing) = on.routed(4, 0.0, &mut Silent).expect("ways");
            let found = on.whole(&parts, &routing, &mut Silent).expect("a plan");
            assert_eq!(found.proof.plan().len(), parts.flow.len());
            let time = found.run.time.as_seconds();
            assert!(time >= routing.busiest, "{time} s");
            assert!(
                time <= 1.03 * routing.busiest,
                "{time} s of {}",
                routing.busiest
            );
        }
    }

    /// Boxes of four NPUs and a switch each, whose NPUs 0 are joined by slower links, not all both ways.
    fn boxes(seed: &mut Seed) -> Topology {
        let mut builder = TopologyBuilder::new("boxes");
        builder.npus(12);
        let latency = Time::from_ns(700);
        for i in 0..3usize {
            let switch = builder.switch(format!("switch{i}"), None);
            for npu in 4 * i..4 * i + 4 {
                builder.both_ways(npu.into(), switch, gb_per_s(50), latency);
            }
            let other = 4 * ((i + 1) % 3);
            builder.link((4 * i).into(), other.into(), gb_per_s(5), latency);
            if seed.below(2) == 0 {
                builder.link(other.into(), (4 * i).into(), gb_per_s(10), latency);
            }
        }
        builder.finish().expect("a network")
    }

    #[test]
    fn unequal_blocks_take_hardly_longer_than_the_busiest_link() {
        let mut seed = Seed(3);
        for case in 0..10 {
            let network = Arc::new(boxes(&mut seed));
            let npus: Vec<NpuId> = network.npus().collect();
            let demand = |seed: &mut Seed| Demand {
                bytes: 1 + seed.below(64_000_000) as u64,
                reduced: false,
                holders: NpuSet::One(npus[seed.below(12)]),
                wanted: NpuSet::One(npus[seed.below(12)]),
            };
            let demands = (0..60).map(|_| demand(&mut seed)).collect();
            let collective = Collective::custom(npus.clone(), demands).expect("a collective");
            let made = flows(&network, &collective, None, MEMORY, &mut Silent).expect("a plan");
            let proof = made.proof;
            let run = simulate(&proof, &SimulateOptions::default(), &mut Silent).expect("a run");
            let all = flows_of(&collective).expect("of one for one");
            let links = ArcNetwork::new(&network, Fidelity::Link);
            let parts = Shares::new(&all, 64);
            let routing = Routing::new(&links, &all, &parts, 0.0, &mut Silent).expect("a routing");
            let time = run.time.as_seconds();
            assert!(time >= routing.least, "case {case}: {time} s");
            assert!(
                time <= 1.1 * routing.least,
                "case {case}: {time} s of {}",
                routing.least
            );
        }
    }

    #[test]
    fn what_it_does_not_do_is_refused() {
        let torus = Arc::new(build::torus(&[3, 3], gb_per_s(25), Time::ZERO).expect("a torus"));
        let of = |kind| Collective::among_all(kind, &torus, 900).expect("a collective");
        let refused = |collective: &Collective, pieces, memory| {
            let plan = flows(&torus, collective, pieces, memory, &mut Silent);
            plan.expect_err("refused").to_string()
        };
        let all_to_all = of(CollectiveKind::AllToAll);
        assert_eq!(
            refused(&of(CollectiveKind::AllGather), None, MEMORY),
            "flows: it does all-to-all, scatter, gather and custom collectives, not all-gather; use greedy"
        );
        assert!(refused(&all_to_all, Some(101), MEMORY).contains("the largest block of 100 B"));
        assert!(refused(&all_to_all, None, 1000).contains("more than the limit"));
        let few = Collective::among_all(CollectiveKind::AllToAll, &torus, 8).expect("a collective");
        assert!(refused(&few, None, MEMORY).contains("of 0 B cannot be cut"));
    }

    #[test]
    fn who_cannot_be_reached_is_named() {
        let mut builder = TopologyBuilder::new("one way");
        builder.npus(2);
        builder.link(0usize.into(), 1usize.into(), gb_per_s(1), Time::ZERO);
        let network = Arc::new(builder.finish().expect("a network"));
        let kind = CollectiveKind::AllToAll;
        let collective = Collective::among_all(kind, &network, 900).expect("a collective");
        let why = flows(&network, &collective, None, MEMORY, &mut Silent).expect_err("refused");
        assert_eq!(
            why.to_string(),
            "flows: npu0 wants data of npu1, but no links lead there"
        );
    }
}
