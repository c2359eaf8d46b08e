//! A way for each part of each flow.

use std::ops::Range;

use super::Flow;
use super::cheapest_path::CheapestPath;
use super::price::Prices;
use super::shares::Shares;
use crate::bound::network::ArcNetwork;
use crate::graph::{Lists, ShortestPaths};
use crate::id::{NpuId, narrow};
use crate::progress::{Interrupted, Progress};

/// Why some flows have no way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unroutable {
    /// No way leads from the first to the second.
    Unreachable(NpuId, NpuId),
    /// Planning was asked to stop.
    Interrupted,
}

impl From<Interrupted> for Unroutable {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

/// A way for each part.
#[derive(Clone, Debug)]
pub struct Routing {
    /// The arcs that each part takes, in order.
    pub ways: Lists<u32>,
    /// How long the busiest arc sends, with what it is left free, in seconds.
    pub busiest: f64,
    /// However parts are cut and routed, the busiest arc sends no less, up to rounding, in seconds.
    pub least: f64,
    /// The price of a byte on each arc.
    pub prices: Vec<u64>,
}

/// Parts of a destination are routed in two to this many turns.
const TURNS: u32 = 3;
/// The power of prices is two to this one at first, and grows.
const FIRST_DOUBLINGS: u32 = 1;
const LAST_DOUBLINGS: u32 = 8;
/// Passes with one power.
const PASSES: u32 = 4;
/// Parts that are routed in all passes together, and passes if that makes fewer.
const MOST_PARTS: u32 = 1 << 21;
const FEWEST_PASSES: u32 = 6;
/// Flows above which the work of all passes is limited.
const LARGE: usize = 1 << 16;
/// A pass is worth while that makes the busiest arc less busy by this.
const BETTER: f64 = 0.999;
/// Passes in a row that were not worth while, after which no more are tried.
const PATIENCE: u32 = 12;
/// If passes are fewer, ways of the first need not be the cheapest; later ones cost over it no more than this times the
/// power of prices, so that arcs on them are busier by about this share.
const SLACK: f64 = 0.005;
/// A routing is good enough that is this close to the best there can be.
const CLOSE: f64 = 1.002;

impl Routing {
    /// Routes each part over a way that was cheapest before others were routed.
    ///
    /// # Errors
    /// [`Unroutable::Unreachable`].
    pub fn first(network: &ArcNetwork, flows: &[Flow], parts: &Shares) -> Result<Self, Unroutable> {
        Self::new(network, flows, parts, 0.0, &mut OnePass)
    }

    /// Routes parts so that the busiest arc has little to do.
    ///
    /// In each pass all parts are routed anew, in groups of the same destination: each over the cheapest way at the
    /// prices of the moment, which rise with every part. Arcs between switches are left free for the share `spare`
    /// of the time that they are busy, as if they were slower. `progress` may stop it after the first pass.
    ///
    /// # Errors
    /// [`Unroutable`].
    ///
    /// # Complexity
    /// For each of some tens of passes eight searches from each destination, and for each part the arcs about its
    /// way.
    pub fn new(
        network: &ArcNetwork,
        flows: &[Flow],
        parts: &Shares,
        spare: f64,
        progress: &mut dyn Progress,
    ) -> Result<Self, Unroutable> {
        let all = (LAST_DOUBLINGS - FIRST_DOUBLINGS + 1) * PASSES;
        let is_large = flows.len() > LARGE;
        let within = (MOST_PARTS / narrow(parts.flow.len().max(1))).clamp(FEWEST_PASSES, all);
        let most = if is_large { within } else { all };
        let mut router = Router {
            network,
            flows,
            parts,
            groups: groups(flows),
            prices: Prices::new(network, spare),
            search: ShortestPaths::new(u64::MAX, ()),
            walk: CheapestPath::new(network.node_count()),
            slack: if is_large { f64::INFINITY } else { 0.0 },
        };
        let mut least = router.least()?.at_least(most_at_an_npu(network, flows));
        router.prices.set(least.with_spare, FIRST_DOUBLINGS);
        let mut best = Self {
            ways: router.pass(None)?,
            busiest: router.prices.busiest(),
            least: least.of_links,
            prices: router.prices.all().to_vec(),
        };
        let mut ways = best.ways.clone();
        let mut failed = 0;
        for pass in 1..most {
            if best.busiest <= CLOSE * least.with_spare || failed == PATIENCE {
                break;
            }
            progress.spend(2 * (network.arcs().len() * router.groups.len() * (1 << TURNS)) as u64);
            if !progress.report("routes", pass.into(), most.into()) {
                break;
            }
            let doublings = FIRST_DOUBLINGS + pass / PASSES;
            let busiest = router.prices.busiest();
            router.prices.set(busiest, doublings);
            if is_large {
                router.slack = SLACK * f64::from(1u32 << doublings);
            }
            ways = router.pass(Some(&ways))?;
            let busiest = router.prices.busiest();
            failed = if busiest < BETTER * best.busiest {
                0
            } else {
                failed + 1
            };
            router.prices.set(busiest, doublings);
            least = least.or(router.least()?);
            if busiest < best.busiest {
                best.ways.clone_from(&ways);
                best.busiest = busiest;
                best.prices.copy_from_slice(router.prices.all());
            }
        }
        Ok(Self {
            least: least.of_links,
            ..best
        })
    }
}

/// Stops after the first pass.
struct OnePass;

impl Progress for OnePass {
    fn report(&mut self, _: &'static str, _: u64, _: u64) -> bool {
        false
    }
}

/// Returns how long an NPU's links are busy at least with what it sends or gets, the most of all [s].
fn most_at_an_npu(network: &ArcNetwork, flows: &[Flow]) -> f64 {
    let mut bytes = vec![[0.0; 2]; network.node_count()];
    for flow in flows {
        bytes[flow.src.index()][0] += flow.bytes as f64;
        bytes[flow.dst.index()][1] += flow.bytes as f64;
    }
    let bandwidth = |arcs: &[u32]| -> f64 {
        let arcs = arcs.iter().map(|&arc| &network.arcs()[arc as usize]);
        arcs.map(|arc| arc.capacity as f64).sum()
    };
    let ends = (0..).zip(&bytes).filter(|(_, bytes)| **bytes != [0.0; 2]);
    let busy = ends.map(|(node, &[sent, got])| {
        let out = sent / bandwidth(network.arcs_out(node));
        out.max(got / bandwidth(network.arcs_in(node)))
    });
    busy.filter(|busy| busy.is_finite()).fold(0.0, f64::max)
}

struct Router<'a> {
    network: &'a ArcNetwork,
    flows: &'a [Flow],
    parts: &'a Shares,
    /// The flows of each destination.
    groups: Vec<Range<usize>>,
    prices: Prices,
    search: ShortestPaths<u64>,
    walk: CheapestPath,
    /// Ways cost no more than this share over the cheapest.
    slack: f64,
}

impl Router<'_> {
    /// Routes all parts anew, one destination after the other, some of its parts at a time.
    fn pass(&mut self, before: Option<&Lists<u32>>) -> Result<Lists<u32>, Unroutable> {
        let mut ways = Lists::default();
        let mut found: Vec<Vec<u32>> = Vec::new();
        for group in 0..self.groups.len() {
            let group = self.groups[group].clone();
            let parts = self.parts.of(group.start).start..self.parts.of(group.end - 1).end;
            let dst = self.flows[group.start].dst;
            found.resize(parts.len().max(found.len()), Vec::new());
            for turn in 0..1 << TURNS {
                let mine = parts.clone().filter(|&part| turn_of(part) == turn);
                if let Some(before) = before {
                    for part in mine.clone() {
                        let bytes = self.parts.bytes[part] as f64;
                        for &arc in before.get(part) {
                            self.prices.add(arc, -bytes);
                        }
                    }
                }
                distances(&mut self.search, self.network, self.prices.all(), dst);
                for part in mine {
                    let flow = self.flows[self.parts.flow[part] as usize];
                    let costs = self.search.costs();
                    if costs[flow.src.index()] == u64::MAX {
                        return Err(Unroutable::Unreachable(flow.src, dst));
                    }
                    let bytes = self.parts.bytes[part] as f64;
                    let way = &mut found[part - parts.start];
                    way.clear();
                    if let Some(before) = before.filter(|_| self.slack > 0.0) {
                        way.extend(before.get(part));
                    }
                    self.walk.find(
                        self.network,
                        self.prices.all(),
                        costs,
                        self.slack,
                        (flow.src.0, dst.0),
                        way,
                    );
                    for &arc in &*way {
                        self.prices.add(arc, bytes);
                    }
                }
            }
            for way in &found[..parts.len()] {
                ways.push(way);
            }
        }
        Ok(ways)
    }

    /// Returns how long the busiest arc sends at least, whatever the ways: bytes times their distances, over what all
    /// arcs carry in a second at their prices.
    fn least(&mut self) -> Result<Least, Unroutable> {
        let prices = self.prices.all();
        let work = work(&mut self.search, self.network, self.flows, prices)? as f64;
        let paces = self.prices.pace().iter().zip(prices);
        let slowed: f64 = paces.map(|(pace, &price)| price as f64 / pace).sum();
        Ok(Least {
            of_links: work / capacity(self.network, prices),
            with_spare: work / slowed,
        })
    }
}

/// How long the busiest arc sends at least [s].
#[derive(Clone, Copy, Debug)]
struct Least {
    of_links: f64,
    /// The same, if arcs between switches were slower as they are taken to be.
    with_spare: f64,
}

impl Least {
    fn at_least(self, time: f64) -> Self {
        self.or(Self {
            of_links: time,
            with_spare: time,
        })
    }

    /// Returns the greater of two.
    fn or(self, other: Self) -> Self {
        Self {
            of_links: self.of_links.max(other.of_links),
            with_spare: self.with_spare.max(other.with_spare),
        }
    }
}

/// Returns the sum of bytes times what each costs on the cheapest way, exactly.
pub(in crate::bound) fn work(
    search: &mut ShortestPaths<u64>,
    network: &ArcNetwork,
    flows: &[Flow],
    prices: &[u64],
) -> Result<u128, Unroutable> {
    let mut work = 0;
    for group in flows.chunk_by(|a, b| a.dst == b.dst) {
        distances(search, network, prices, group[0].dst);
        let costs = search.costs();
        for flow in group {
            match costs[flow.src.index()] {
                u64::MAX => return Err(Unroutable::Unreachable(flow.src, flow.dst)),
                cost => work += u128::from(flow.bytes) * u128::from(cost),
            }
        }
    }
    Ok(work)
}

/// Returns what all arcs carry in a second, at their prices.
pub(super) fn capacity(network: &ArcNetwork, prices: &[u64]) -> f64 {
    let arcs = network.arcs().iter().zip(prices);
    arcs.map(|(arc, &price)| arc.capacity as f64 * price as f64)
        .sum()
}

/// Finds what it costs to get from each node to a destination.
pub(super) fn distances(
    search: &mut ShortestPaths<u64>,
    network: &ArcNetwork,
    prices: &[u64],
    dst: NpuId,
) {
    let arcs = network.arcs();
    search.run(
        network.node_count(),
        [(dst.0, 0)],
        |node| {
            let arcs_in = network.arcs_in(node).iter();
            arcs_in.map(|&arc| (arcs[arc as usize].src, arc))
        },
        |so_far, arc, _| Some((so_far + prices[arc as usize], ())),
    );
}

/// Returns the flows of each destination; they are sorted by it.
pub(super) fn groups(flows: &[Flow]) -> Vec<Range<usize>> {
    let mut start = 0;
    let groups = flows.chunk_by(|a, b| a.dst == b.dst).map(|group| {
        let range = start..start + group.len();
        start = range.end;
        range
    });
    groups.collect()
}

/// When a part is routed.
fn turn_of(part: usize) -> u64 {
    (part as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - TURNS)
}
