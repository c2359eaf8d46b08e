//! How much of the data should take each order, so that all rails are loaded alike: a linear program.

use microlp::{ComparisonOp, OptimizationDirection, Problem};

use super::{Lane, Rail};
use crate::collective::CollectiveKind;
use crate::id::fit;
use crate::units::whole;

/// Most rails for which all orders are looked at: 6! = 720.
const MAX_RAILS: usize = 6;

/// Shares of the data by order, and the loads that they put on the rails.
#[derive(Clone, Debug, PartialEq)]
pub struct Balance {
    /// Orders of a reduce-scatter (an all-gather takes them backwards) and the share of the data that
    /// takes each, in sum 1; most first.
    pub shares: Vec<(Vec<u8>, f64)>,
    /// Of a byte that is to be summed, the bytes that one NPU sends on each rail.
    pub loads: Vec<f64>,
    /// Bandwidth used of all there is, where latencies count for nothing.
    pub utilization: f64,
}

impl Balance {
    /// Returns the rails that are busy all the time: those that limit, where not all are.
    pub fn busy(&self, rails: &[Rail]) -> Vec<bool> {
        let most = self.time(rails);
        let time = |(load, rail): (&f64, &Rail)| load / rail.bandwidth as f64;
        let times = self.loads.iter().zip(rails).map(time);
        times.map(|time| time >= 0.999 * most).collect()
    }

    /// Returns time for each byte, in seconds.
    fn time(&self, rails: &[Rail]) -> f64 {
        let times = self.loads.iter().zip(rails);
        times
            .map(|(load, rail)| load / rail.bandwidth as f64)
            .fold(0.0, f64::max)
    }

    /// Returns what shares do to rails.
    pub fn of(rails: &[Rail], shares: Vec<(Vec<u8>, f64)>) -> Self {
        let mut loads = vec![0.0; rails.len()];
        for (order, share) in &shares {
            for (load, cost) in loads.iter_mut().zip(costs(rails, order)) {
                *load += share * cost;
            }
        }
        let mut balance = Self {
            shares,
            loads,
            utilization: 0.0,
        };
        let sent: f64 = balance.loads.iter().sum();
        let bandwidth: f64 = rails.iter().map(|rail| rail.bandwidth as f64).sum();
        balance.utilization = sent / (bandwidth * balance.time(rails));
        balance
    }
}

/// Returns the shares with which the most loaded rail has least to do, over all orders of the rails. `None` for more
/// than six rails.
///
/// # Source
/// The choice that Themis (section 4.2) calls impractical chunk by chunk is a small linear program by
/// shares: minimise t, where for each rail the sum over orders of share x load is at most t x bandwidth.
pub fn balance(rails: &[Rail]) -> Option<Balance> {
    if rails.is_empty() || rails.len() > MAX_RAILS {
        return None;
    }
    let orders = orders(rails.len());
    let unit = rails
        .iter()
        .map(|rail| rail.bandwidth as f64)
        .fold(0.0, f64::max);
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let time = problem.add_var(1.0, (0.0, f64::INFINITY));
    let shares: Vec<_> = orders
        .iter()
        .map(|_| problem.add_var(0.0, (0.0, 1.0)))
        .collect();
    let costs: Vec<Vec<f64>> = orders.iter().map(|order| costs(rails, order)).collect();
    for (r, rail) in rails.iter().enumerate() {
        let of_rail = shares
            .iter()
            .zip(&costs)
            .map(|(&share, cost)| (share, cost[r]));
        let row: Vec<_> = of_rail
            .chain([(time, -(rail.bandwidth as f64) / unit)])
            .collect();
        problem.add_constraint(row, ComparisonOp::Le, 0.0);
    }
    let all: Vec<_> = shares.iter().map(|&share| (share, 1.0)).collect();
    problem.add_constraint(all, ComparisonOp::Eq, 1.0);
    let solution = problem.solve().ok()?.into_solution().ok()?;
    let found = orders
        .into_iter()
        .zip(shares)
        .map(|(order, share)| (order, solution.var_value(share)));
    let mut found: Vec<(Vec<u8>, f64)> = found.filter(|(_, share)| *share > 1e-9).collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    let sum: f64 = found.iter().map(|(_, share)| share).sum();
    found.iter_mut().for_each(|(_, share)| *share /= sum);
    Some(Balance::of(rails, found))
}

/// Returns the bytes that one NPU sends on each rail for a byte that is summed in an order.
fn costs(rails: &[Rail], order: &[u8]) -> Vec<f64> {
    let mut costs = vec![0.0; rails.len()];
    let mut held = 1.0;
    for &rail in order {
        let rail = usize::from(rail);
        costs[rail] = held * rails[rail].share();
        held /= f64::from(rails[rail].size);
    }
    costs
}

/// Returns every order of `count` rails.
fn orders(count: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for rail in 0..fit(count) {
        let longer = |order: &Vec<u8>| {
            let order = order.clone();
            (0..=order.len()).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, rail);
                longer
            })
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Lanes that take the orders by their shares: at least one for each order, as equal as that allows, the
/// orders in turn.
pub(super) fn lanes(
    balance: &Balance,
    kind: CollectiveKind,
    bytes: u64,
    chunks: usize,
) -> Vec<Lane> {
    let shares = &balance.shares[..balance.shares.len().min(chunks)];
    let sum: f64 = shares.iter().map(|(_, share)| share).sum();
    let mut counts = vec![1usize; shares.len()];
    for _ in shares.len()..chunks {
        let largest = |i: &usize| shares[*i].1 / counts[*i] as f64;
        let most = (0..shares.len()).max_by(|a, b| largest(a).total_cmp(&largest(b)));
        counts[most.unwrap_or(0)] += 1;
    }
    let mut turns: Vec<(f64, usize)> = Vec::with_capacity(chunks);
    for (i, &count) in counts.iter().enumerate() {
        turns.extend((0..count).map(|k| ((k as f64 + 0.5) / count as f64, i)));
    }
    turns.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut upto = 0.0;
    let mut start = 0;
    let mut lanes = Vec::with_capacity(chunks);
    for (_, i) in turns {
        upto += shares[i].1 / sum / counts[i] as f64;
        let end = whole((bytes as f64 * upto).round()).clamp(start, bytes);
        lanes.push(Lane::along(kind, end - start, &shares[i].0));
        start = end;
    }
    if let Some(last) = lanes.last_mut() {
        last.bytes += bytes - start;
    }
    lanes
}
