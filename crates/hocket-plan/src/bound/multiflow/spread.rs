//! How many bytes of each flow take each of its ways, in proportion and not in whole parts.
//!
//! Each pass looks, for every flow, for the cheapest way at the prices of the moment, and moves bytes to it from each
//! of the flow's other ways until both cost the same. Bytes of a long way count for more on its links, as such a way
//! can send for less of the time: T / (T - length) of them, if T is the time of the whole.
//!
//! # Source
//! Bertsekas, Gallager, Data networks, 1992, section 5.7 (bytes moved between ways until their prices are equal); Ford,
//! Fulkerson, Constructing maximal dynamic flows from static flows, 1958 (for how long a way can send).

use super::Flow;
use super::cheapest_path::CheapestPath;
use super::price::Prices;
use super::route::{Routing, capacity, distances, groups, work};
use super::shares::Shares;
use crate::bound::network::ArcNetwork;
use crate::collective::block_start;
use crate::graph::{Lists, ShortestPaths};
use crate::id::fit;
use crate::progress::{Interrupted, Progress};
use crate::units::whole;

/// Flows up to which bytes are moved.
pub const MOST_FLOWS: usize = 1_024;
/// The power of prices is two to these, one after the other.
const DOUBLINGS: std::ops::RangeInclusive<u32> = 3..=11;
/// Passes with one power.
const PASSES: u64 = 8;
/// Bytes that are moved are a share of a way's that is known to two to the minus this.
const HALVINGS: u32 = 10;
/// A way that is as long as the whole time or longer counts so many times.
const MOST_WEIGHT: f64 = 4.0;
/// The least share of a flow that a way has.
const LEAST_SHARE: f64 = 0.002;

/// One way of a flow.
#[derive(Clone, Debug)]
struct Way {
    arcs: Vec<u32>,
    bytes: f64,
    /// How much a byte counts.
    weight: f64,
}

/// Bytes of flows on ways.
pub struct Spread<'a> {
    network: &'a ArcNetwork,
    flows: &'a [Flow],
    ways: Vec<Vec<Way>>,
    prices: Prices,
    /// Of a byte on each arc, with the bytes that were best.
    best: Vec<u64>,
    /// How long the busiest arc sends at least [s], by the prices that prove most.
    least: f64,
    proof: Vec<u64>,
}

impl<'a> Spread<'a> {
    /// Starts with the ways of a routing.
    pub fn new(
        network: &'a ArcNetwork,
        flows: &'a [Flow],
        parts: &Shares,
        routing: &Routing,
    ) -> Self {
        let mut prices = Prices::new(network, 0.0);
        let mut ways: Vec<Vec<Way>> = vec![Vec::new(); flows.len()];
        for (part, arcs) in routing.ways.iter().enumerate() {
            let bytes = parts.bytes[part] as f64;
            let own = &mut ways[parts.flow[part] as usize];
            for &arc in arcs {
                prices.add(arc, bytes);
            }
            match own.iter_mut().find(|way| way.arcs == arcs) {
                Some(way) => way.bytes += bytes,
                None => own.push(Way {
                    arcs: arcs.to_vec(),
                    bytes,
                    weight: 1.0,
                }),
            }
        }
        Self {
            network,
            flows,
            ways,
            prices,
            best: routing.prices.clone(),
            least: routing.least,
            proof: routing.prices.clone(),
        }
    }

    /// Returns the prices of all arcs that prove most of how long the busiest sends.
    pub fn proof(&self) -> &[u64] {
        &self.proof
    }

    /// Returns the size of pieces that makes no more than so many transfers, and no smaller than costs the share `loss`
    /// of the time: a piece is late by about two of its sending times per link.
    pub fn grain(&self, most_transfers: f64, loss: f64) -> f64 {
        let arcs = self.network.arcs();
        let (mut transfers, mut longest, mut latency) = (0.0, 0.0_f64, 0.0_f64);
        for way in self.ways.iter().flatten() {
            let npus = way.arcs.iter().map(|&arc| arcs[arc as usize].dst);
            let legs = npus.filter(|&node| self.network.is_npu(node)).count();
            transfers += way.bytes * legs as f64;
            longest = longest.max(self.length(&way.arcs, 1.0) - self.length(&way.arcs, 0.0));
            latency = latency.max(self.length(&way.arcs, 0.0));
        }
        let allowed = loss * (self.prices.busiest() + latency) / (2.0 * longest);
        allowed.max(transfers / most_transfers).max(1.0)
    }

    /// How long a piece is under way alone [s].
    fn length(&self, way: &[u32], grain: f64) -> f64 {
        let arcs = way.iter().map(|&arc| &self.network.arcs()[arc as usize]);
        let each = arcs.map(|arc| arc.latency as f64 * 1e-12 + grain / arc.capacity as f64);
        each.sum()
    }

    /// Moves bytes until the busiest arc has least to do, if pieces have this size, or no more than `close` times what is
    /// proved.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn balance(
        &mut self,
        grain: f64,
        close: f64,
        progress: &mut dyn Progress,
    ) -> Result<(), Interrupted> {
        let mut search = ShortestPaths::new(u64::MAX, ());
        let mut walk = CheapestPath::new(self.network.node_count());
        let mut best = (f64::INFINITY, Vec::new());
        let groups = groups(self.flows);
        let all = PASSES * DOUBLINGS.count() as u64;
        for pass in 0..all {
            progress.spend((self.network.arcs().len() * groups.len()) as u64);
            if !progress.report("bytes of ways", pass, all) {
                return Err(Interrupted);
            }
            self.weigh(grain);
            let busiest = self.prices.busiest();
            if busiest < best.0 {
                best = (busiest, self.ways.clone());
                self.best.copy_from_slice(self.prices.all());
            }
            let doublings = DOUBLINGS.start() + fit::<u32, _>(pass / PASSES);
            self.prices.set(busiest, doublings);
            let prices = self.prices.all();
            if let Ok(work) = work(&mut search, self.network, self.flows, prices) {
                let least = work as f64 / capacity(self.network, prices);
                if least > self.least {
                    self.least = least;
                    self.proof.copy_from_slice(prices);
                }
            }
            if best.0 <= close * self.least {
                break;
            }
            for group in &groups {
                let dst = self.flows[group.start].dst;
                distances(&mut search, self.network, self.prices.all(), dst);
                for flow in group.clone() {
                    let ends = (self.flows[flow].src.0, dst.0);
                    let mut arcs = Vec::new();
                    let prices = self.prices.all();
                    walk.find(self.network, prices, search.costs(), 0.0, ends, &mut arcs);
                    self.shift(flow, arcs, grain);
                }
            }
        }
        self.weigh(grain);
        if self.prices.busiest() > best.0 {
            self.ways = best.1;
        }
        Ok(())
    }

    /// Gives each way its weight, and arcs their loads.
    fn weigh(&mut self, grain: f64) {
        let time = self.prices.busiest();
        for flow in 0..self.ways.len() {
            for i in 0..self.ways[flow].len() {
                let way = &self.ways[flow][i];
                let weight = self.weight(&way.arcs, grain, time);
                let more = way.bytes * (weight - way.weight);
                let way = &mut self.ways[flow][i];
                way.weight = weight;
                for &arc in &way.arcs {
                    self.prices.add(arc, more);
                }
            }
        }
    }

    fn weight(&self, way: &[u32], grain: f64, time: f64) -> f64 {
        let rest = (time - self.length(way, grain)).max(time / MOST_WEIGHT);
        time / rest
    }

    /// Moves bytes of a flow to the cheapest of its ways, of which `arcs` may be a new one.
    fn shift(&mut self, flow: usize, arcs: Vec<u32>, grain: f64) {
        let mut own = std::mem::take(&mut self.ways[flow]);
        if own.iter().all(|way| way.arcs != arcs) {
            let weight = self.weight(&arcs, grain, self.prices.busiest());
            own.push(Way {
                arcs,
                bytes: 0.0,
                weight,
            });
        }
        let cost = |prices: &Prices, way: &Way| -> f64 {
            let all = prices.all();
            let sum: u64 = way.arcs.iter().map(|&arc| all[arc as usize]).sum();
            sum as f64 * way.weight
        };
        let costs = own.iter().map(|way| cost(&self.prices, way));
        let cheapest = costs.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        let to = cheapest.map_or(0, |(i, _)| i);
        for from in (0..own.len()).filter(|&i| i != to) {
            let held = own[from].bytes;
            for halving in 0..=HALVINGS {
                let bytes = held / f64::from(1u32 << halving);
                if own[from].bytes < bytes || bytes == 0.0 {
                    continue;
                }
                self.put(&mut own, (from, to), bytes);
                if cost(&self.prices, &own[from]) < cost(&self.prices, &own[to]) {
                    self.put(&mut own, (to, from), bytes);
                }
            }
        }
        own.retain(|way| way.bytes > 0.0);
        self.ways[flow] = own;
    }

    fn put(&mut self, own: &mut [Way], (from, to): (usize, usize), bytes: f64) {
        for (way, bytes) in [(from, -bytes), (to, bytes)] {
            let way = &mut own[way];
            way.bytes += bytes;
            for &arc in &way.arcs {
                self.prices.add(arc, bytes * way.weight);
            }
        }
    }

    /// Cuts ways into pieces of about this size.
    pub fn cut(&self, grain: f64) -> (Shares, Routing) {
        let mut ways = Lists::default();
        let mut pieces = Vec::with_capacity(self.flows.len());
        for (flow, own) in self.flows.iter().zip(&self.ways) {
            let mut bytes = Vec::new();
            let total = flow.bytes as f64;
            let most = own.iter().map(|way| way.bytes).fold(0.0, f64::max);
            let least = (total * LEAST_SHARE).max(grain / 2.0).min(most);
            let own = own.iter().filter(|way| way.bytes >= least);
            let kept: f64 = own.clone().map(|way| way.bytes).sum();
            // Pieces of one size, as runtimes cut a vector.
            let count = whole((total / grain).round()).clamp(1, flow.bytes.max(1));
            let start = |i| block_start(flow.bytes, i, fit(count));
            let (mut so_far, mut given) = (0.0, 0);
            for way in own {
                so_far += way.bytes;
                let end = whole((so_far / kept * count as f64).round()).min(count);
                for i in given..end {
                    bytes.push(start(fit(i + 1)) - start(fit(i)));
                    ways.push(&way.arcs);
                }
                given = end;
            }
            pieces.push(bytes);
        }
        let routing = Routing {
            ways,
            busiest: self.prices.busiest(),
            least: self.least,
            prices: self.best.clone(),
        };
        (Shares::of_each(pieces), routing)
    }
}
