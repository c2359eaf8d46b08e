//! How many trees a root has, and how many of them each link can carry.

use super::cuts::Backward;
use super::graph::{Arc, Graph};
use super::{NoPacking, Rate};
use crate::id::NpuId;
use crate::progress::Progress;
use crate::units::gcd;

/// Trees of a root of weight 1 up to which more are tried; where the exact number is larger, fewer trees lose
/// a little, which [`Scale::reached_ppm`] states.
const MOST_TREES: u64 = 16;
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
    /// How many trees start at each node.
    pub fn supply(&self, graph: &Graph, weights: &[(NpuId, u64)]) -> Vec<i64> {
        let mut supply = vec![0; graph.nodes()];
        for &(npu, weight) in weights {
            supply[npu.index()] = (weight * self.trees) as i64;
        }
        supply
    }

    /// (trees / time) over the rate, in millionths.
    pub fn reached_ppm(&self, rate: &Rate) -> u64 {
        let reached = u128::from(self.trees) * self.under * self.unit * rate.weight;
        let best = self.over * rate.bandwidth;
        (reached * 1_000_000 / best) as u64
    }
}

/// The exact number of trees where it is small, else the best of those tried; `None` where none fits.
pub(super) fn choose(
    graph: &Graph,
    weights: &[(NpuId, u64)],
    rate: &Rate,
    progress: &mut dyn Progress,
) -> Result<Option<Scale>, NoPacking> {
    // Rate Q / P in units: k trees take k P / Q.
    let unit = unit_of(graph, rate);
    let (q, p) = (rate.bandwidth / unit, rate.weight);
    let divisor = q_divisor(graph, q, p);
    let exact = q / divisor;
    let floors = |over: u128, under: u128| -> Vec<i64> {
        let floor = |arc: &Arc| ((arc.units as u128) * over / under) as i64;
        graph.arcs.iter().map(floor).collect()
    };
    let scale = |trees: u64, over: u128, under: u128| Scale {
        trees,
        units: floors(over, under),
        over,
        under,
        unit,
    };
    if exact <= u128::from(MOST_TREES) {
        return Ok(Some(scale(exact as u64, exact * p, q)));
    }
    let mut best: Option<Scale> = None;
    for trees in 1..=MOST_TREES {
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
        let times = times_between(graph, least, most);
        let (mut low, mut high) = (0, times.len());
        let mut found = None;
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

/// The bandwidth that [`Graph::new`] counts in.
fn unit_of(graph: &Graph, rate: &Rate) -> u128 {
    let cut = graph.arcs.iter();
    let cut = cut.filter(|arc| !rate.cut[arc.src as usize] && rate.cut[arc.dst as usize]);
    let units: u128 = cut.map(|arc| arc.units as u128).sum();
    rate.bandwidth / units
}

/// gcd of Q and of P times every bandwidth.
fn q_divisor(graph: &Graph, q: u128, p: u128) -> u128 {
    let bandwidths = graph
        .arcs
        .iter()
        .fold(0, |so_far, arc| gcd(so_far, arc.units as u64));
    let mut pair = (q, p * u128::from(bandwidths.max(1)));
    while pair.1 > 0 {
        pair = (pair.1, pair.0 % pair.1);
    }
    pair.0
}

/// j / b for every bandwidth b, from `least` to before `most`, ascending and each once.
fn times_between(graph: &Graph, least: (u128, u128), most: (u128, u128)) -> Vec<(u128, u128)> {
    /// Times of one bandwidth that are looked at.
    const MOST: u128 = 4_096;
    let mut bandwidths: Vec<u128> = graph.arcs.iter().map(|arc| arc.units as u128).collect();
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
