//! How many trees a root has, and how many of them each link can carry.

use std::ops::RangeInclusive;

use super::cuts::Backward;
use super::graph::{Arc, Graph};
use super::{NoPacking, Rate};
use crate::id::{NpuId, fit, narrow};
use crate::progress::Progress;
use crate::units::gcd;
use hocket_base::graph::dead_ends;

/// What is good enough to look no further.
const ENOUGH_PPM: u64 = 995_000;

/// Trees of a root, and what each arc can carry of them.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    /// Trees of a root of weight 1.
    pub trees: u64,
    /// For each arc.
    pub units: Vec<i64>,
    /// A link of `bandwidth` units carries floor(bandwidth x time) trees, time = over / under.
    over: u128,
    under: u128,
    unit: u128,
}

impl Scale {
    /// Returns how many trees start at each node.
    pub(crate) fn supply(&self, graph: &Graph, weights: &[(NpuId, u64)]) -> Vec<i64> {
        let mut supply = vec![0; graph.nodes()];
        for &(npu, weight) in weights {
            supply[npu.index()] = (weight * self.trees) as i64;
        }
        supply
    }

    /// Returns the same number of trees in a time longer by a quarter.
    pub(crate) fn slower(&self, graph: &Graph, weights: &[(NpuId, u64)]) -> Self {
        let (over, under) = (self.over * 5, self.under * 4);
        Self {
            units: floors(graph, weights, self.trees, (over, under)),
            over,
            under,
            ..*self
        }
    }

    /// (trees / time) over the rate, in millionths.
    pub(crate) fn reached_ppm(&self, rate: &Rate) -> u64 {
        let reached = u128::from(self.trees) * self.under * self.unit * rate.weight;
        let best = self.over * rate.bandwidth;
        fit(reached * 1_000_000 / best)
    }
}

/// Returns the trees that each arc carries in a time: no more than all there are, to every end.
fn floors(
    graph: &Graph,
    weights: &[(NpuId, u64)],
    trees: u64,
    (over, under): (u128, u128),
) -> Vec<i64> {
    let all: u64 = weights.iter().map(|&(_, weight)| weight * trees).sum();
    let most = u128::from(all) * graph.ends().len() as u128;
    let floor = |arc: &Arc| fit((u128::from(arc.units.unsigned_abs()) * over / under).min(most));
    graph.arcs.iter().map(floor).collect()
}

/// Returns the exact number of trees of a root of weight 1 where it is among `counts`, else the best of these, which
/// may lose a little; see [`Scale::reached_ppm`]. `None` where none fits.
pub(super) fn choose(
    graph: &Graph,
    weights: &[(NpuId, u64)],
    rate: &Rate,
    counts: RangeInclusive<u64>,
    progress: &mut dyn Progress,
) -> Result<Option<Scale>, NoPacking> {
    // Rate Q / P in units: k trees take k P / Q.
    let unit = unit_of(graph, rate);
    let (q, p) = (rate.bandwidth / unit, rate.weight);
    let divisor = q_divisor(graph, q, p);
    let exact = q / divisor;
    let scale = |trees: u64, over: u128, under: u128| Scale {
        trees,
        units: floors(graph, weights, trees, (over, under)),
        over,
        under,
        unit,
    };
    if let Some(trees) = u64::try_from(exact).ok().filter(|it| counts.contains(it)) {
        return Ok(Some(scale(trees, exact * p, q)));
    }
    let mut best: Option<Scale> = None;
    let into = into_ends(graph);
    for trees in counts {
        let reached = best.as_ref().map_or(0, |best| best.reached_ppm(rate));
        if reached >= ENOUGH_PPM {
            break;
        }
        // Times at which some arc can carry one tree more, from the least that the rate allows to the least that
        // is no better than what there is.
        let least = (u128::from(trees) * p, q);
        let most = match &best {
            Some(best) => (
                u128::from(trees) * best.over,
                u128::from(best.trees) * best.under,
            ),
            None => (8 * u128::from(trees) * p, q),
        };
        let bandwidths = graph.arcs.iter().map(|arc| fit::<u128, _>(arc.units));
        let times = times_between(bandwidths, least, most);
        // What must enter one end says at once of most times that they are too short.
        let enters = |&(over, under): &(u128, u128)| {
            let tried = scale(trees, over, under);
            all_enter(&into, &tried.units, &tried.supply(graph, weights))
        };
        let (mut low, mut high) = (times.partition_point(|time| !enters(time)), times.len());
        let mut found = None;
        if let Some(&(over, under)) = times.get(low) {
            let tried = scale(trees, over, under);
            if fits(graph, weights, &tried, progress)? {
                found = Some(tried);
                high = low;
            } else {
                low += 1;
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            let (over, under) = times[middle];
            let tried = scale(trees, over, under);
            if fits(graph, weights, &tried, progress)? {
                found = Some(tried);
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        best = found.or(best);
    }
    Ok(best)
}

/// Returns the trees that leave room: as many as take about `percent` of the rate, so that more can enter each end than
/// must. `None` where no number among `counts` leaves enough.
pub(super) fn roomy(
    graph: &Graph,
    weights: &[(NpuId, u64)],
    rate: &Rate,
    mut counts: RangeInclusive<u64>,
    percent: u64,
) -> Option<Scale> {
    let unit = unit_of(graph, rate);
    let into = into_ends(graph);
    let under = rate.bandwidth / unit * u128::from(percent);
    // Rounding down takes at most half of the room.
    let least = (100 + 10_000 / percent as i64) / 2;
    counts.find_map(|trees| {
        let over = u128::from(trees) * rate.weight * 100;
        let units = floors(graph, weights, trees, (over, under));
        let found = Scale {
            trees,
            units,
            over,
            under,
            unit,
        };
        let wanted = found.supply(graph, weights);
        let wanted: Vec<i64> = wanted.iter().map(|trees| trees * least).collect();
        let offered: Vec<i64> = found.units.iter().map(|units| units * 100).collect();
        all_enter(&into, &offered, &wanted).then_some(found)
    })
}

/// Returns the bandwidth that [`Graph::new`] counts in.
fn unit_of(graph: &Graph, rate: &Rate) -> u128 {
    let cut = graph.arcs.iter();
    let cut = cut.filter(|arc| !rate.cut[arc.src as usize] && rate.cut[arc.dst as usize]);
    let units: u128 = cut.map(|arc| fit::<u128, _>(arc.units)).sum();
    rate.bandwidth / units
}

/// gcd of Q and of P times every bandwidth, but of dead ends, which no tree needs.
fn q_divisor(graph: &Graph, q: u128, p: u128) -> u128 {
    let kept: Vec<bool> = (0..narrow(graph.nodes()))
        .map(|node| graph.is_end(node))
        .collect();
    let dead = dead_ends(&kept, graph.arcs.iter().map(|arc| (arc.src, arc.dst)));
    let is_live = |arc: &&Arc| !dead[arc.src as usize] && !dead[arc.dst as usize];
    let live = graph.arcs.iter().filter(is_live);
    let bandwidths = live.fold(0, |so_far, arc| gcd(so_far, fit(arc.units)));
    let mut pair = (q, p * u128::from(bandwidths.max(1)));
    while pair.1 > 0 {
        pair = (pair.1, pair.0 % pair.1);
    }
    pair.0
}

/// j / b for every bandwidth b, from `least` to before `most`, ascending and each once.
pub(super) fn times_between(
    bandwidths: impl Iterator<Item = u128>,
    least: (u128, u128),
    most: (u128, u128),
) -> Vec<(u128, u128)> {
    /// Times of one bandwidth that are looked at.
    const MOST: u128 = 4_096;
    let mut bandwidths: Vec<u128> = bandwidths.collect();
    bandwidths.sort_unstable();
    bandwidths.dedup();
    let mut times: Vec<(u128, u128)> = Vec::new();
    for bandwidth in bandwidths.into_iter().filter(|&it| it > 0) {
        let first = (least.0 * bandwidth).div_ceil(least.1);
        let last = (most.0 * bandwidth).div_ceil(most.1);
        let step = ((last.saturating_sub(first)) / MOST).max(1);
        let mut at = first;
        while at < last {
            times.push((at, bandwidth));
            at += step;
        }
    }
    times.sort_unstable_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)));
    times.dedup_by(|a, b| a.0 * b.1 == b.0 * a.1);
    times
}

/// Ends with the arcs into each.
fn into_ends(graph: &Graph) -> Vec<(u32, Vec<usize>)> {
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes()];
    for (number, arc) in graph.arcs.iter().enumerate() {
        into[arc.dst as usize].push(number);
    }
    let ends = graph.ends().into_iter();
    ends.map(|end| (end, std::mem::take(&mut into[end as usize])))
        .collect()
}

/// Returns whether the arcs into each end can carry all trees of others.
fn all_enter(into: &[(u32, Vec<usize>)], units: &[i64], supply: &[i64]) -> bool {
    let all: i64 = supply.iter().sum();
    into.iter().all(|(end, arcs)| {
        let enter: i64 = arcs.iter().map(|&arc| units[arc]).sum();
        enter >= all - supply[*end as usize]
    })
}

fn fits(
    graph: &Graph,
    weights: &[(NpuId, u64)],
    scale: &Scale,
    progress: &mut dyn Progress,
) -> Result<bool, NoPacking> {
    let supply = scale.supply(graph, weights);
    let scaled = graph.clone().with_units(&scale.units);
    let mut flows = Backward::new(graph.nodes(), &scaled.arcs, &supply, &graph.ends());
    Ok(flows.violated(progress)?.is_none())
}
