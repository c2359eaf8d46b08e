//! Bytes for each destination as a fluid: over which arcs, and not over which ways.
//!
//! For each destination in turn, all its bytes are sent over the cheapest ways at the prices of the moment, equal ways
//! sharing them, and that is mixed with how they flowed before: as much of the new as makes the sum of a power of all
//! loads least. The power rises from pass to pass. What it takes is a search for each destination, however many flows
//! end there.
//!
//! # Source
//! Frank, Wolfe, An algorithm for quadratic programming, 1956; for one destination at a time: Cantor, Gerla, Optimal
//! routing in a packet-switched computer network, 1974.

use super::Flow;
use super::price::Prices;
use super::route::{Unroutable, capacity, distances, groups, work};
use crate::bound::network::ArcNetwork;
use crate::graph::ShortestPaths;
use crate::progress::{Interrupted, Progress};

/// The power of prices is two to these, one after the other.
const DOUBLINGS: std::ops::RangeInclusive<u32> = 1..=9;
/// Passes with one power at most.
const PASSES: usize = 16;
/// Arcs that are looked at for all destinations in all passes, about.
const MOST_WORK: usize = 1 << 21;
/// Halvings of the range in which the best share of the new lies.
const HALVINGS: u32 = 10;

/// Prices that prove how long the busiest arc sends, and how long it does.
pub(in crate::bound) struct Fluid<'a> {
    network: &'a ArcNetwork,
    flows: &'a [Flow],
    prices: Prices,
    /// By destination, then by arc: bytes.
    loads: Vec<Vec<f64>>,
    search: ShortestPaths<u64>,
    /// How long the busiest arc sends [s], the least of all passes.
    pub busiest: f64,
    /// How long it sends at least [s], and the prices that prove it.
    pub least: f64,
    pub proof: Vec<u64>,
}

impl<'a> Fluid<'a> {
    /// Sends all bytes for the first time.
    ///
    /// # Errors
    /// [`Unroutable::Unreachable`].
    pub(in crate::bound) fn new(
        network: &'a ArcNetwork,
        flows: &'a [Flow],
    ) -> Result<Self, Unroutable> {
        let prices = Prices::new(network, 0.0);
        let mut search = ShortestPaths::new(u64::MAX, ());
        work(&mut search, network, flows, prices.all())?;
        let arcs = network.arcs().len();
        let mut fluid = Self {
            network,
            flows,
            loads: vec![vec![0.0; arcs]; groups(flows).len()],
            proof: prices.all().to_vec(),
            prices,
            search,
            busiest: f64::INFINITY,
            least: 0.0,
        };
        fluid.pass(true);
        Ok(fluid)
    }

    /// Improves both until they differ by no more than `close` times, or `is_enough` says so of the time of the busiest
    /// arc.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub(in crate::bound) fn balance(
        &mut self,
        close: f64,
        is_enough: impl Fn(f64) -> bool,
        progress: &mut dyn Progress,
    ) -> Result<(), Interrupted> {
        let once = self.network.arcs().len() * self.loads.len() * DOUBLINGS.count();
        let passes = (MOST_WORK / once.max(1)).clamp(1, PASSES);
        let all = passes * DOUBLINGS.count();
        for (done, doublings) in DOUBLINGS
            .flat_map(|doublings| std::iter::repeat_n(doublings, passes))
            .enumerate()
        {
            if self.busiest <= close * self.least || is_enough(self.busiest) {
                break;
            }
            progress.spend(2 * (self.network.arcs().len() * self.loads.len()) as u64);
            if !progress.report("prices", done as u64, all as u64) {
                return Err(Interrupted);
            }
            self.prices.set(self.prices.busiest(), doublings);
            self.pass(false);
            self.prices.set(self.prices.busiest(), doublings);
            let prices = self.prices.all();
            if let Ok(work) = work(&mut self.search, self.network, self.flows, prices) {
                let least = work as f64 / capacity(self.network, prices);
                if least > self.least {
                    self.least = least;
                    self.proof.copy_from_slice(prices);
                }
            }
        }
        Ok(())
    }

    fn pass(&mut self, is_first: bool) {
        let mut there = vec![0.0; self.network.node_count()];
        let mut new = vec![0.0; self.network.arcs().len()];
        for (to, group) in groups(self.flows).into_iter().enumerate() {
            let dst = self.flows[group.start].dst;
            distances(&mut self.search, self.network, self.prices.all(), dst);
            for flow in &self.flows[group] {
                there[flow.src.index()] += flow.bytes as f64;
            }
            self.send(dst.0, &mut there, &mut new);
            let arcs = (0u32..).zip(self.loads[to].iter().zip(&new));
            let changes = arcs.map(|(arc, (old, new))| (arc, new - old));
            let changes: Vec<(u32, f64)> = changes.filter(|change| change.1 != 0.0).collect();
            let share = if is_first {
                1.0
            } else {
                self.best_share(&changes)
            };
            for (arc, more) in changes {
                self.loads[to][arc as usize] += share * more;
                self.prices.add(arc, share * more);
            }
            new.fill(0.0);
        }
        self.busiest = self.busiest.min(self.prices.busiest());
    }

    /// Sends the bytes at each node over the cheapest ways to a destination, as the last search found them.
    fn send(&self, dst: u32, there: &mut [f64], new: &mut [f64]) {
        let (arcs, costs) = (self.network.arcs(), self.search.costs());
        for &node in self.search.settled().iter().rev() {
            let bytes = std::mem::take(&mut there[node as usize]);
            if bytes == 0.0 || node == dst {
                continue;
            }
            let cheapest = |&&arc: &&u32| {
                let rest = costs[arcs[arc as usize].dst as usize];
                rest.checked_add(self.prices.all()[arc as usize]) == Some(costs[node as usize])
            };
            let on = self.network.arcs_out(node).iter().filter(cheapest);
            let bandwidth = |&arc: &u32| arcs[arc as usize].capacity as f64;
            let all: f64 = on.clone().map(bandwidth).sum();
            for arc in on {
                let part = bytes * bandwidth(arc) / all;
                new[*arc as usize] += part;
                there[arcs[*arc as usize].dst as usize] += part;
            }
        }
    }

    /// Returns how much of the changes makes the sum of powers least: where their bytes cost nothing more.
    fn best_share(&self, changes: &[(u32, f64)]) -> f64 {
        let is_too_much = |share: f64| {
            let cost = |&(arc, more): &(u32, f64)| self.prices.after(arc, share * more) * more;
            changes.iter().map(cost).sum::<f64>() > 0.0
        };
        if !is_too_much(1.0) {
            return 1.0;
        }
        let (mut share, mut step) = (0.0, 0.5);
        for _ in 0..HALVINGS {
            if !is_too_much(share + step) {
                share += step;
            }
            step /= 2.0;
        }
        share
    }
}
