//! A way for each part of each flow.

use std::ops::Range;

use super::Flow;
use super::price::Prices;
use super::walk::Walk;
use crate::bound::network::Network;
use crate::graph::{Lists, ShortestPaths};
use crate::id::NpuId;
use crate::progress::{Interrupted, Progress};

/// Flows cut into parts of about the same size.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// Where the parts of each flow begin.
    first: Vec<u32>,
    /// The flow of each part.
    pub flow: Vec<u32>,
    /// The bytes of each part.
    pub bytes: Vec<u64>,
}

impl Parts {
    /// The largest flow has so many parts (one for each byte, where it has fewer), smaller ones fewer.
    pub fn new(flows: &[Flow], most: u64) -> Self {
        let largest = flows.iter().map(|flow| flow.bytes).max().unwrap_or(1);
        let grain = largest.div_ceil(most.max(1));
        let mut parts = Self {
            first: vec![0],
            flow: Vec::new(),
            bytes: Vec::new(),
        };
        for (f, flow) in (0..).zip(flows) {
            let count = flow.bytes.div_ceil(grain) as usize;
            for i in 0..count {
                let start = |i| crate::collective::block_start(flow.bytes, i, count);
                parts.flow.push(f);
                parts.bytes.push(start(i + 1) - start(i));
            }
            parts.first.push(parts.flow.len() as u32);
        }
        parts
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.flow.len()
    }

    /// The parts of a flow.
    pub fn of(&self, flow: usize) -> Range<usize> {
        self.first[flow] as usize..self.first[flow + 1] as usize
    }
}

/// Why some flows have no way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unroutable {
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
pub(crate) struct Routing {
    /// The arcs that each part takes, in order.
    pub ways: Lists<u32>,
    /// How long the busiest arc sends [s].
    pub busiest: f64,
    /// No routing has a busiest arc that sends for less, up to rounding [s].
    pub least: f64,
    /// The price of a byte on each arc.
    pub prices: Vec<u64>,
}

/// The power of prices is two to this one at first, and grows pass by pass.
const FIRST_DOUBLINGS: u32 = 1;
const LAST_DOUBLINGS: u32 = 8;
/// Passes with one power.
const PASSES: u32 = 4;
/// Passes with the last power that are no better than those before.
const PATIENCE: u32 = 4;
/// A routing is good enough that is this close to the best there can be.
const CLOSE: f64 = 1.002;

impl Routing {
    /// Routes parts so that the busiest arc has little to do.
    ///
    /// Parts of a destination are routed after one another, each over the cheapest way at the prices of the moment
    /// among those that come nearer to the destination with each step.
    ///
    /// # Errors
    /// [`Unroutable`].
    ///
    /// # Complexity
    /// For each of some tens of passes a search from each destination, and the length of its way for each part.
    pub fn new(
        network: &Network,
        flows: &[Flow],
        parts: &Parts,
        progress: &mut dyn Progress,
    ) -> Result<Self, Unroutable> {
        let mut router = Router {
            network,
            flows,
            parts,
            groups: groups(flows),
            prices: Prices::new(network),
            search: ShortestPaths::new(u64::MAX, ()),
            walk: Walk::new(network.node_count()),
        };
        let mut ways = Lists::default();
        let mut best: Option<Self> = None;
        let mut least = router.least()?;
        let (mut doublings, mut passes, mut failed) = (FIRST_DOUBLINGS, 0, 0);
        loop {
            let total = u64::from((LAST_DOUBLINGS - FIRST_DOUBLINGS + 1) * PASSES);
            if !progress.report("routes", passes, total) {
                match best {
                    Some(best) => return Ok(best),
                    None => return Err(Unroutable::Interrupted),
                }
            }
            let busiest = router.prices.busiest();
            router.prices.set(busiest.max(least), doublings);
            ways = router.pass(&ways)?;
            passes += 1;
            router.prices.set(router.prices.busiest().max(least), doublings);
            least = least.max(router.least()?);
            let busiest = router.prices.busiest();
            if std::env::var("TRACE").is_ok() {println!("p {doublings} busiest {busiest:.6} least {least:.6}");}
            let enough = best.as_ref().is_none_or(|best| busiest < best.busiest * 0.9995);
            failed = if enough { 0 } else { failed + 1 };
            if best.as_ref().is_none_or(|best| busiest < best.busiest) {
                best = Some(Self {
                    ways: ways.clone(),
                    busiest,
                    least,
                    prices: router.prices.all().to_vec(),
                });
            }
            let best = best.as_mut().expect("there is one by now");
            best.least = least;
            let close = best.busiest <= CLOSE * least;
            if close || (failed >= PATIENCE && doublings == LAST_DOUBLINGS) {
                if std::env::var("TRACE").is_ok() {println!("passes {passes}");}
                return Ok(best.clone());
            }
            if passes.is_multiple_of(u64::from(PASSES)) {
                doublings = (doublings + 1).min(LAST_DOUBLINGS);
            }
        }
    }
}

struct Router<'a> {
    network: &'a Network,
    flows: &'a [Flow],
    parts: &'a Parts,
    /// The flows of each destination.
    groups: Vec<Range<usize>>,
    prices: Prices,
    search: ShortestPaths<u64>,
    walk: Walk,
}

impl Router<'_> {
    /// Routes all parts anew, one destination after the other, some of its parts at a time.
    fn pass(&mut self, before: &Lists<u32>) -> Result<Lists<u32>, Unroutable> {
        let mut ways = Lists::default();
        let mut found: Vec<Vec<u32>> = Vec::new();
        for group in 0..self.groups.len() {
            let group = self.groups[group].clone();
            let parts = self.parts.of(group.start).start..self.parts.of(group.end - 1).end;
            let dst = self.flows[group.start].dst;
            found.resize(parts.len().max(found.len()), Vec::new());
            for turn in 0..TURNS {
                let mine = parts.clone().filter(|&part| turn_of(part) == turn);
                if before.len() > 0 {
                    for part in mine.clone() {
                        let bytes = self.parts.bytes[part] as f64;
                        for &arc in before.get(part) {
                            self.prices.add(arc, -bytes);
                        }
                    }
                }
                self.distances(dst);
                for part in mine {
                    let flow = self.flows[self.parts.flow[part] as usize];
                    let costs = self.search.costs();
                    if costs[flow.src.index()] == u64::MAX {
                        return Err(Unroutable::Unreachable(flow.src, dst));
                    }
                    let bytes = self.parts.bytes[part] as f64;
                    let way = &mut found[part - parts.start];
                    self.walk.find(self.network, self.prices.all(), costs, (flow.src.0, dst.0), way);
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

    /// What it costs to get from each node to a destination.
    fn distances(&mut self, dst: NpuId) {
        let arcs = self.network.arcs();
        let prices = self.prices.all();
        self.search.run(
            self.network.node_count(),
            [(dst.0, 0)],
            |node| {
                let arcs_in = self.network.arcs_in(node).iter();
                arcs_in.map(|&arc| (arcs[arc as usize].src, arc))
            },
            |so_far, arc, _| Some((so_far + prices[arc as usize], ())),
        );
    }

    /// How long the busiest arc sends at least, whatever the ways: bytes times their distances, over what all arcs
    /// carry in a second at their prices.
    fn least(&mut self) -> Result<f64, Unroutable> {
        let mut work = 0.0;
        for group in 0..self.groups.len() {
            let group = &self.flows[self.groups[group].clone()];
            self.distances(group[0].dst);
            let costs = self.search.costs();
            for flow in group {
                match costs[flow.src.index()] {
                    u64::MAX => return Err(Unroutable::Unreachable(flow.src, flow.dst)),
                    cost => work += flow.bytes as f64 * cost as f64,
                }
            }
        }
        let arcs = self.network.arcs().iter().enumerate();
        let capacity: f64 = arcs.map(|(i, arc)| arc.capacity as f64 * self.prices.all()[i] as f64).sum();
        Ok(work / capacity)
    }
}

/// The flows of each destination; they are sorted by it.
fn groups(flows: &[Flow]) -> Vec<Range<usize>> {
    let mut start = 0;
    let groups = flows.chunk_by(|a, b| a.dst == b.dst).map(|group| {
        let range = start..start + group.len();
        start = range.end;
        range
    });
    groups.collect()
}

/// Parts of a destination are routed in so many turns.
const TURNS: u64 = 8;

/// When a part is routed.
fn turn_of(part: usize) -> u64 {
    (part as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61
}
