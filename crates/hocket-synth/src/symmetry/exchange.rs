//! All-to-alls: what the first NPU of each orbit has for all others, shifted to what all have for all.

use std::sync::Arc;

use super::cuts::cuts;
use super::expand::Shifted;
use super::find::{find, find_free};
use super::group::Symmetry;
use super::{prove, run_of_all, simulate_shifted};
use crate::bound::Fidelity;
use crate::bound::multiflow::{Flow, Routing, Shares, flows as flows_of};
use crate::bound::network::ArcNetwork;
use crate::collective::{Collective, CollectiveKind, Demand, NpuSet};
use crate::graph::{Lists, ShortestPaths};
use crate::id::{DeviceId, LinkId, NpuId, narrow};
use crate::multiflow::{Legs, Service, plan, whole};
use crate::plan::{LinkOrder, Plan, PlanError};
use crate::progress::{Interrupted, Progress};
use crate::simulate::{Run, SimulateOptions};
use crate::topology::{LatencyModel, Topology};
use crate::units::whole as whole_part;
use crate::verify::Verified;

/// Transfers of all NPUs up to which each leg of a way is one.
const MOST_TRANSFERS: usize = 1 << 22;
/// Links that all searches of a pass look at, and its searches at least.
const MOST_LINKS: usize = 1 << 22;
const FEWEST_TURNS: usize = 8;
/// Passes, and how many of them have one power of prices: two to a number that grows.
const PASSES: u32 = 12;
const PASSES_A_POWER: u32 = 2;
/// A pass is worth while that makes the busiest link less busy by this; passes in a row that were not, after which no more
/// are tried.
const BETTER: f64 = 0.999;
const PATIENCE: u32 = 3;
/// Transfers for each leg are not tried, if whole ways take no longer than this times as long as the busiest link sends.
const NEAR: f64 = 1.005;
/// Ways are good enough whose busiest link sends for no longer than this times the least.
const CLOSE: f64 = 1.001;
/// The price of a byte on the fastest link while it is as busy as the busiest; what an idle link costs of it, and one that
/// is busier at most.
const UNIT: f64 = (1u64 << 20) as f64;
const IDLE: f64 = 1.0 / 1024.0;
const DEAREST: f64 = 4096.0;

/// A plan of what the first NPU of each orbit has for others, which with all its shifts makes an all-to-all.
pub(crate) struct Exchange {
    symmetry: Symmetry,
    collective: Collective,
    /// Where blocks differ by a byte, of the largest.
    base: Verified,
    run: Run,
    /// How long the busiest link sends at least [s].
    pub least: f64,
}

impl Exchange {
    /// Plans an all-to-all among all NPUs whose largest block is cut into so many pieces, over ways that keep the busiest
    /// link busy for a short time; `None` if the network is not symmetric, or links or switches would be shared. If links
    /// join NPUs alone, each piece may go its whole way in one transfer, which NPUs pass on.
    ///
    /// # Errors
    /// [`PlanError::TooManyChunks`], [`PlanError::TooLong`], [`PlanError::Interrupted`].
    pub(crate) fn new(
        name: &str,
        topology: &Arc<Topology>,
        collective: &Collective,
        (pieces, is_passed_on): (u64, bool),
        progress: &mut dyn Progress,
    ) -> Result<Option<Self>, PlanError> {
        let is_among_all = collective.npus().len() == topology.npu_count();
        if collective.kind() != CollectiveKind::AllToAll || !is_among_all {
            return Ok(None);
        }
        let Some(symmetry) = find(topology).ok().or_else(|| find_free(topology)) else {
            return Ok(None);
        };
        let npus = topology.npu_count() as u64;
        let block = collective.size().div_ceil(npus).next_multiple_of(pieces);
        let one = of_firsts(collective, &symmetry, block)?;
        let flows = flows_of(&one).expect("each block goes from one NPU to one other");
        let parts = Shares::new(&flows, pieces);
        let network = ArcNetwork::new(topology, Fidelity::Link);
        let Some(routing) = ways(topology, &symmetry, &network, (&flows, &parts), progress)? else {
            return Ok(None);
        };
        let mut search = Search {
            symmetry: &symmetry,
            topology,
            best: None,
        };
        if is_passed_on {
            let cut = (&parts, &routing.ways, &slowness(&network)[..]);
            let plan = whole(name, topology, &one, &flows, &network, cut)?;
            search.offer(plan, &[LinkOrder::Priority], progress)?;
        }
        let is_near = search.time() <= NEAR * routing.busiest;
        let legs = (!is_near).then(|| Legs::new(&network, &routing));
        let fits = |legs: &Legs| legs.steps() * symmetry.len() <= MOST_TRANSFERS;
        if let Some(legs) = legs.filter(fits) {
            let orbits = symmetry.orbits();
            let busy = legs.folded(|link| orbits.first(orbits.of(link)));
            for service in [Service::MostAhead, Service::VirtualTime] {
                let cut = (&parts, &legs, &busy);
                let plan = plan(name, topology, &one, &flows, cut, service, progress)?;
                search.offer(plan, &[LinkOrder::Plan, LinkOrder::Ready], progress)?;
            }
        }
        Ok(search.best.map(|(base, run)| Self {
            symmetry,
            collective: collective.clone(),
            base,
            run,
            least: routing.least,
        }))
    }

    /// Returns how long the plan takes; if blocks differ by a byte, about [s].
    pub(crate) fn time(&self) -> f64 {
        self.run.time.as_seconds()
    }

    /// Returns the plan of all NPUs, and its run if all blocks are equal.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`], [`PlanError::TooManyChunks`].
    pub(crate) fn whole(&self, memory_limit: u64) -> Result<(Plan, Option<Run>), PlanError> {
        let base = self.base.plan();
        let plan = Shifted::new(&self.symmetry, base, &self.collective).expand(memory_limit)?;
        let blocks = self.collective.npus().len() as u64;
        let is_even = base.collective().demands()[0].bytes * blocks == self.collective.size();
        Ok((
            plan,
            is_even.then(|| run_of_all(&self.run, self.symmetry.len())),
        ))
    }
}

/// Returns what the first NPU of each orbit has for each other NPU.
fn of_firsts(
    collective: &Collective,
    symmetry: &Symmetry,
    bytes: u64,
) -> Result<Collective, PlanError> {
    let all = collective.npus();
    let demands = symmetry.firsts().flat_map(|has| {
        let wants = all.iter().filter(move |&&npu| npu != has);
        wants.map(move |&npu| Demand {
            bytes,
            reduced: false,
            holders: NpuSet::One(has),
            wanted: NpuSet::One(npu),
        })
    });
    Ok(Collective::custom(all.to_vec(), demands.collect())?)
}

/// Returns how long each arc sends a byte, in no unit, and 0 inside devices.
fn slowness(network: &ArcNetwork) -> Vec<u64> {
    let arcs = network.arcs().iter();
    let fastest = arcs.clone().map(|arc| arc.capacity).max().unwrap_or(1) as f64;
    arcs.map(|arc| match arc.internal {
        true => 0,
        false => whole_part(UNIT * fastest / arc.capacity.max(1) as f64),
    })
    .collect()
}

struct Search<'a> {
    topology: &'a Arc<Topology>,
    symmetry: &'a Symmetry,
    /// The quickest so far.
    best: Option<(Verified, Run)>,
}

impl Search<'_> {
    /// Returns the time of the quickest so far [s].
    fn time(&self) -> f64 {
        let best = self.best.as_ref();
        best.map_or(f64::INFINITY, |(_, run)| run.time.as_seconds())
    }

    /// Proves a plan of the first NPUs' blocks, simulates it among its shifts in each order, and keeps the quickest.
    fn offer(
        &mut self,
        plan: Plan,
        orders: &[LinkOrder],
        progress: &mut dyn Progress,
    ) -> Result<(), PlanError> {
        let proof = prove(self.symmetry, plan, self.topology, progress)?;
        for &order in orders {
            let options = SimulateOptions {
                order: Some(order),
                latency: LatencyModel::default(),
                ..SimulateOptions::default()
            };
            let run = simulate_shifted(self.symmetry, &proof, &options, progress)?;
            if self
                .best
                .as_ref()
                .is_none_or(|(_, best)| run.time < best.time)
            {
                self.best = Some((proof.clone().with_link_order(order), run));
            }
        }
        Ok(())
    }
}

/// Returns ways for parts of what the first NPUs have for others, such that these and all their shifts keep the busiest link
/// busy for a short time; `None` if not all can be reached, or two links of a kind follow each other between switches.
///
/// Only links are used that no element but the identity leaves in place, and no switches with a limit, so that all links of
/// a kind are equally busy. Parts are routed in turns, each over the cheapest way at the prices of its turn.
///
/// # Errors
/// [`Interrupted`].
///
/// # Complexity
/// O(passes x turns x first NPUs x links x log), with turns x first NPUs x links at most [`MOST_LINKS`] on small networks.
///
/// # Source
/// Shahrokhi, Matula, The maximum concurrent flow problem, 1990: prices, and the bound that they prove.
fn ways(
    topology: &Topology,
    symmetry: &Symmetry,
    network: &ArcNetwork,
    (flows, parts): (&[Flow], &Shares),
    progress: &mut dyn Progress,
) -> Result<Option<Routing>, Interrupted> {
    let mut router = Router::new(topology, symmetry, flows, parts);
    let all = topology.links().len().max(1) * symmetry.firsts().len();
    let turns = (MOST_LINKS / all).max(FEWEST_TURNS);
    let turns = turns.min(parts.flow.len().max(1));
    let Some(least) = router.least() else {
        return Ok(None);
    };
    let mut least = least.max(router.of_cuts());
    router.set(least, 1);
    let mut best = (f64::INFINITY, Vec::new());
    let mut waited = 0;
    for pass in 0..PASSES {
        progress.spend((turns * all) as u64);
        if !progress.report("routes", pass.into(), PASSES.into()) {
            return Err(Interrupted);
        }
        router.pass(turns);
        let busiest = router.busiest();
        waited = if busiest < BETTER * best.0 {
            0
        } else {
            waited + 1
        };
        if busiest < best.0 {
            best = (busiest, router.ways.clone());
        }
        router.set(busiest, 1 + (pass + 1) / PASSES_A_POWER);
        least = router.least().map_or(least, |more| least.max(more));
        if busiest <= CLOSE * least || waited == PATIENCE {
            break;
        }
    }
    let (busiest, found) = best;
    if !found.iter().all(|way| router.has_each_kind_once(way)) {
        return Ok(None);
    }
    let inside = network.arcs().iter().filter(|arc| arc.internal).count();
    let mut ways = Lists::default();
    for way in &found {
        ways.push_all(way.iter().map(|link| link.0 + narrow(inside)));
    }
    let links = topology.links().len();
    let prices = (0..links).map(|link| router.prices[router.orbit(LinkId::from(link))]);
    Ok(Some(Routing {
        ways,
        busiest,
        least,
        prices: std::iter::repeat_n(0, inside).chain(prices).collect(),
    }))
}

struct Router<'a> {
    topology: &'a Topology,
    symmetry: &'a Symmetry,
    flows: &'a [Flow],
    parts: &'a Shares,
    /// Whether links of each orbit are used.
    is_used: Vec<bool>,
    /// Seconds per byte of each orbit.
    pace: Vec<f64>,
    /// Of a byte on each orbit, if it is as busy as the busiest.
    full: Vec<f64>,
    /// Bytes over each link of an orbit.
    load: Vec<f64>,
    prices: Vec<u64>,
    scale: f64,
    doublings: u32,
    ways: Vec<Vec<LinkId>>,
    /// The parts of each first NPU.
    own: Vec<(NpuId, Vec<usize>)>,
    search: ShortestPaths<u64, LinkId>,
}

impl<'a> Router<'a> {
    fn new(
        topology: &'a Topology,
        symmetry: &'a Symmetry,
        flows: &'a [Flow],
        parts: &'a Shares,
    ) -> Self {
        let orbits = symmetry.orbits();
        let all = 0..narrow(orbits.len());
        let link = |orbit| topology.link(orbits.first(orbit));
        let is_used = |orbit| {
            let is_own = orbits.size(orbit) as usize == symmetry.len();
            is_own && topology.device(link(orbit).src).limit.is_none()
        };
        let rate = |orbit| link(orbit).bandwidth.bytes_per_second() as f64;
        let fastest = all.clone().map(rate).fold(1.0, f64::max);
        let mut of_each = vec![Vec::new(); topology.npu_count()];
        for (part, &flow) in parts.flow.iter().enumerate() {
            of_each[flows[flow as usize].src.index()].push(part);
        }
        let mut of = |npu: NpuId| std::mem::take(&mut of_each[npu.index()]);
        let mut router = Self {
            topology,
            symmetry,
            flows,
            parts,
            is_used: all.clone().map(is_used).collect(),
            pace: all.clone().map(|orbit| 1.0 / rate(orbit)).collect(),
            full: all.map(|orbit| UNIT * fastest / rate(orbit)).collect(),
            load: vec![0.0; orbits.len()],
            prices: vec![0; orbits.len()],
            scale: f64::INFINITY,
            doublings: 0,
            ways: vec![Vec::new(); parts.flow.len()],
            own: symmetry.firsts().map(|npu| (npu, of(npu))).collect(),
            search: ShortestPaths::new(u64::MAX, LinkId(u32::MAX)),
        };
        router.set(f64::INFINITY, 0);
        router
    }

    fn orbit(&self, link: LinkId) -> usize {
        self.symmetry.orbits().of(link) as usize
    }

    /// Another power, and another thought of how long the busiest link sends.
    fn set(&mut self, scale: f64, doublings: u32) {
        (self.scale, self.doublings) = (scale, doublings);
        for orbit in 0..self.prices.len() {
            self.price(orbit);
        }
    }

    fn price(&mut self, orbit: usize) {
        let mut power = self.load[orbit] * self.pace[orbit] / self.scale;
        for _ in 0..self.doublings {
            power *= power;
        }
        self.prices[orbit] = whole_part(self.full[orbit] * (power.min(DEAREST) + IDLE)) + 1;
    }

    /// Adds the bytes of a part to the links on its way, or takes them away.
    fn carry(&mut self, part: usize, sign: f64) {
        for i in 0..self.ways[part].len() {
            let orbit = self.orbit(self.ways[part][i]);
            self.load[orbit] += sign * self.parts.bytes[part] as f64;
            self.price(orbit);
        }
    }

    /// Finds what it costs to get from an NPU to each device.
    fn distances(&mut self, from: NpuId) {
        let (topology, orbits) = (self.topology, self.symmetry.orbits());
        let (prices, is_used) = (&self.prices, &self.is_used);
        self.search.run(
            topology.device_count(),
            [(from.0, 0)],
            |device| {
                let links = topology.out_links(DeviceId(device)).iter();
                links.map(|&link| (topology.link(link).dst.0, link))
            },
            |so_far, link, _| {
                let orbit = orbits.of(link) as usize;
                is_used[orbit].then(|| (so_far + prices[orbit], link))
            },
        );
    }

    /// Routes all parts anew, those of a turn at the same prices.
    fn pass(&mut self, turns: usize) {
        let firsts = self.own.len();
        for (turn, first) in (0..turns * firsts).map(|i| (i / firsts, i % firsts)) {
            let (from, mine) = (self.own[first].0, std::mem::take(&mut self.own[first].1));
            let now = || mine.iter().skip(turn).step_by(turns);
            now().for_each(|&part| self.carry(part, -1.0));
            self.distances(from);
            for &part in now() {
                let mut way = std::mem::take(&mut self.ways[part]);
                way.clear();
                let mut at = self.flows[self.parts.flow[part] as usize].dst.0;
                while at != from.0 {
                    let link = self.search.via(at);
                    way.push(link);
                    at = self.topology.link(link).src.0;
                }
                way.reverse();
                self.ways[part] = way;
                self.carry(part, 1.0);
            }
            self.own[first].1 = mine;
        }
    }

    /// Returns how long the busiest link sends [s].
    fn busiest(&self) -> f64 {
        let busy = self.load.iter().zip(&self.pace);
        busy.map(|(load, pace)| load * pace).fold(0.0, f64::max)
    }

    /// Returns how long the busiest link sends at least, by the prices of the moment; nothing if there are links that are not
    /// used, and `None` if not all NPUs can be reached [s].
    fn least(&mut self) -> Option<f64> {
        let mut work = 0.0;
        for first in 0..self.own.len() {
            let from = self.own[first].0;
            self.distances(from);
            for &part in &self.own[first].1 {
                let flow = self.flows[self.parts.flow[part] as usize];
                let cost = self.search.costs()[flow.dst.index()];
                if cost == u64::MAX {
                    return None;
                }
                work += self.parts.bytes[part] as f64 * cost as f64;
            }
        }
        let priced = self.prices.iter().zip(&self.pace);
        let room: f64 = priced.map(|(&price, pace)| price as f64 / pace).sum();
        let is_all = !self.is_used.contains(&false);
        Some(if is_all { work / room } else { 0.0 })
    }

    /// Returns how long what leaves a subgroup's NPUs takes at least [s].
    fn of_cuts(&self) -> f64 {
        let least = self.flows.iter().map(|flow| flow.bytes).min().unwrap_or(0) as f64;
        let cuts = cuts(self.topology, self.symmetry, false).into_iter();
        let times = cuts.map(|cut| {
            let pairs = cut.npus as f64 * (self.topology.npu_count() - cut.npus) as f64;
            least * pairs / (cut.bandwidth.max(1) as f64)
        });
        times.fold(0.0, f64::max)
    }

    /// Returns whether no two links of a kind follow each other without an NPU between them.
    fn has_each_kind_once(&self, way: &[LinkId]) -> bool {
        let is_npu = |link: &LinkId| self.topology.is_npu(self.topology.link(*link).dst);
        way.split_inclusive(is_npu).all(|leg| {
            let mut kinds: Vec<usize> = leg.iter().map(|&link| self.orbit(link)).collect();
            kinds.sort_unstable();
            kinds.windows(2).all(|pair| pair[0] != pair[1])
        })
    }
}
