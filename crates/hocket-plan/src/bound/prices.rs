//! Prices: traffic under lengths of links that were found for these demands.

use super::multiflow::{Flow, Fluid, Routing, Shares, Spread, work};
use super::network::Arc;
use super::witness::Lengths;
use super::{Candidate, Problem, traffic};
use crate::collective::Demand;
use crate::graph::ShortestPaths;
use crate::progress::{Interrupted, Progress};
use crate::units::{Time, gcd, whole};

/// Flows up to which prices are sought: an all-to-all of 64 NPUs has so many.
const MOST_FLOWS: usize = 1 << 12;
/// Flows up to which bytes are moved between single ways; more are a fluid for each destination.
const MOST_ALONE: usize = 1 << 10;
/// Prices of more flows are not sought where they can prove no more than this times what else is known.
pub(super) const WORTH: f64 = 1.001;
/// Prices are sought until the busiest link sends for no more than this times what they prove.
const CLOSE: f64 = 1.0005;
/// The dearest link costs one of these: what is left of rounding is the links that decide.
const DEAREST: [f64; 4] = [256.0, 64.0, 16.0, 4.0];

/// Returns the best bound from [`traffic`] under prices, for data that each go from one NPU to one other, if that may be
/// more than is `known`.
///
/// The bytes are spread over ways until the busiest link has least to do, and the busier a link, the dearer. By the
/// duality of linear programs the best prices prove just how long the busiest link sends. They are rounded to few
/// whole numbers, and the bound is computed from these alone, exactly: whatever they are, it holds.
///
/// # Complexity
/// For each of some tens of passes a search from each destination, and one for each flow, of which there are few.
/// Otherwise two searches from each destination, in fewer passes on large networks.
///
/// # Source
/// Shahrokhi, Matula, The maximum concurrent flow problem, 1990.
pub(super) fn bounds(
    problem: &Problem,
    known: Time,
    progress: &mut dyn Progress,
) -> Result<Candidate, Interrupted> {
    let mut best = Candidate::default();
    let Some(flows) = flows(problem).filter(|flows| !flows.is_empty()) else {
        return Ok(best);
    };
    // How long a link sends has nothing to do with its latency.
    let still = problem.network.arcs().iter();
    let still = still.map(|arc| Arc { latency: 0, ..*arc }).collect();
    let network = problem.network.with_arcs(still);
    let found = if flows.len() <= MOST_ALONE {
        let parts = Shares::new(&flows, 1);
        let Ok(routing) = Routing::first(&network, &flows, &parts) else {
            return Ok(best);
        };
        let mut spread = Spread::new(&network, &flows, &parts, &routing);
        spread.balance(0.0, CLOSE, progress)?;
        spread.proof().to_vec()
    } else {
        let Ok(mut fluid) = Fluid::new(&network, &flows) else {
            return Ok(best);
        };
        let is_enough = |busiest: f64| busiest <= WORTH * known.as_seconds();
        fluid.balance(CLOSE, is_enough, progress)?;
        if is_enough(fluid.busiest) {
            return Ok(best);
        }
        fluid.proof
    };
    let mut search = ShortestPaths::new(u64::MAX, ());
    offer_rounded(problem, &found, &mut best, |prices| {
        work(&mut search, &network, &flows, prices).ok()
    });
    Ok(best)
}

/// Offers what prices prove, rounded to few whole numbers; `work` returns bytes times prices of their ways.
pub(super) fn offer_rounded(
    problem: &Problem,
    found: &[u64],
    best: &mut Candidate,
    mut work: impl FnMut(&[u64]) -> Option<u128>,
) {
    let arcs = problem.network.arcs();
    let highest = found.iter().copied().max().unwrap_or(1) as f64;
    for dearest in DEAREST {
        let rounded = found.iter().map(|&price| price as f64 / highest * dearest);
        let mut prices: Vec<u64> = rounded.map(|price| whole(price.round())).collect();
        let common = prices.iter().copied().fold(0, gcd).max(1);
        prices.iter_mut().for_each(|price| *price /= common);
        let Some(work) = work(&prices) else {
            break;
        };
        let node = |node: u32| problem.network.device_of(node as usize);
        let lengths = || {
            let priced = arcs.iter().zip(&prices).filter(|&(_, &price)| price > 0);
            let priced = priced.map(|(arc, &price)| ([arc.src, arc.dst].map(node), price));
            Lengths::Prices(priced.collect())
        };
        traffic::offer(problem, lengths, &prices, work, best);
    }
}

/// Returns all demands as flows, by who wants them; `None` if one is no flow, or if they are too many.
fn flows(problem: &Problem) -> Option<Vec<Flow>> {
    let needs = &problem.needs;
    let npus = needs.npus();
    let flow = |src, dst, bytes| Flow {
        demand: 0,
        src,
        dst,
        bytes,
    };
    if let Some(blocks) = needs.all_to_all() {
        if npus.len() * (npus.len() - 1) > MOST_FLOWS {
            return None;
        }
        let to = npus.iter().zip(blocks);
        let pairs = to.flat_map(|(&dst, &bytes)| npus.iter().map(move |&src| (src, dst, bytes)));
        let pairs = pairs.filter(|&(src, dst, bytes)| src != dst && bytes > 0);
        return Some(
            pairs
                .map(|(src, dst, bytes)| flow(src, dst, bytes))
                .collect(),
        );
    }
    if needs.demands().len() > MOST_FLOWS {
        return None;
    }
    let one = |demand: &Demand| {
        let ends = [&demand.holders, &demand.wanted].map(|set| set.members(npus));
        match (ends, demand.reduced) {
            ([&[src], &[dst]], false) => Some(flow(src, dst, demand.bytes)),
            _ => None,
        }
    };
    let mut flows = needs
        .demands()
        .iter()
        .map(one)
        .collect::<Option<Vec<_>>>()?;
    flows.sort_by_key(|flow| (flow.dst, flow.src));
    Some(flows)
}
