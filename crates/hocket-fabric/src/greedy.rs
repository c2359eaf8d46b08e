//! Flows one after the other, each to the path that looks best when it comes.

use super::fabric::Upper;
use super::{Fabric, Flow};
use crate::id;

/// A load: 32 bits where they hold the sum of all weights, which is twice as many in a register.
trait Load: Copy + Ord + std::ops::Add<Output = Self> + std::ops::AddAssign + TryFrom<u64> {
    const ZERO: Self;
    /// Of a link that is not there: above any that is.
    const MISSING: Self;
}

impl Load for u32 {
    const ZERO: Self = 0;
    const MISSING: Self = u32::MAX;
}

impl Load for u64 {
    const ZERO: Self = 0;
    const MISSING: Self = u64::MAX;
}

/// Algorithm 1: the path whose busiest link would carry least, the lowest choice where several do.
///
/// The paper counts flows; here a flow counts as much as it weighs.
///
/// # Source
/// Cohen et al., Routing for large ML models, Algorithm 1.
pub(super) fn greedy<'a>(
    fabric: &Fabric,
    flows: impl Iterator<Item = &'a Flow> + Clone,
) -> Vec<u32> {
    let total: u64 = flows.clone().map(|flow| flow.weight).sum();
    let largest = fabric.scales.iter().copied().max().unwrap_or(1);
    match total * largest < u64::from(u32::MAX) {
        true => greedy_in::<u32>(fabric, flows),
        false => greedy_in::<u64>(fabric, flows),
    }
}

fn greedy_in<'a, L: Load>(fabric: &Fabric, flows: impl Iterator<Item = &'a Flow>) -> Vec<u32> {
    let load = |link: &Option<_>| if link.is_some() { L::ZERO } else { L::MISSING };
    let mut loads: Vec<L> = fabric.links.iter().map(load).collect();
    match &fabric.upper {
        None if fabric.is_even() => {
            let (up, down) = loads.split_at_mut(fabric.blocks()[1]);
            flows
                .map(|flow| across_spines(fabric, up, down, flow))
                .collect()
        }
        Some(upper) if fabric.is_even() => {
            let mut planes = vec![L::ZERO; fabric.columns];
            let choose = |flow| across_cores(fabric, upper, &mut loads, &mut planes, flow);
            flows.map(choose).collect()
        }
        _ => flows
            .map(|flow| across_any(fabric, &mut loads, flow))
            .collect(),
    }
}

fn across_spines<L: Load>(fabric: &Fabric, up: &mut [L], down: &mut [L], flow: &Flow) -> u32 {
    let spines = fabric.columns;
    let (from, to) = (flow.src as usize * spines, flow.dst as usize * spines);
    let (up_row, down_row) = (&mut up[from..from + spines], &mut down[to..to + spines]);
    let mut best = L::MISSING;
    let mut chosen = 0;
    for (spine, (&above, &below)) in up_row.iter().zip(down_row.iter()).enumerate() {
        let load = above.max(below);
        if load < best {
            best = load;
            chosen = spine;
        }
    }
    let weight = narrow::<L>(flow.weight);
    up_row[chosen] += weight;
    down_row[chosen] += weight;
    id::narrow(chosen)
}

/// The busier of a plane's links is looked up once for all its cores.
fn across_cores<L: Load>(
    fabric: &Fabric,
    upper: &Upper,
    loads: &mut [L],
    planes: &mut [L],
    flow: &Flow,
) -> u32 {
    let [source, target] = [flow.src, flow.dst].map(|tor| upper.pod_of[tor as usize] as usize);
    if source == target {
        return across_any(fabric, loads, flow);
    }
    let [up, down, above, below, _] = fabric.blocks();
    let row =
        |start: usize, row: usize, width: usize| start + row * width..start + (row + 1) * width;
    let rises = &loads[row(up, flow.src as usize, fabric.columns)];
    let falls = &loads[row(down, flow.dst as usize, fabric.columns)];
    for (plane, (&rise, &fall)) in planes.iter_mut().zip(rises.iter().zip(falls)) {
        *plane = rise.max(fall);
    }
    let rises = &loads[row(above, source, upper.cores)];
    let falls = &loads[row(below, target, upper.cores)];
    let mut best = (L::MISSING, 0);
    for (core, (&rise, &fall)) in rises.iter().zip(falls).enumerate() {
        let load = rise.max(fall).max(planes[upper.plane_of[core] as usize]);
        if load < best.0 {
            best = (load, id::narrow(core));
        }
    }
    let weight = narrow::<L>(flow.weight);
    for slot in fabric.slots_of(flow.src, flow.dst, best.1).iter() {
        loads[slot] += weight;
    }
    best.1
}

fn across_any<L: Load>(fabric: &Fabric, loads: &mut [L], flow: &Flow) -> u32 {
    let &Flow { src, dst, weight } = flow;
    let share = |slot: usize| narrow::<L>(weight * fabric.scale(slot));
    let busiest = |choice: &u32| {
        let slots = fabric.slots_of(src, dst, *choice);
        slots.iter().map(|slot| loads[slot] + share(slot)).max()
    };
    let chosen = fabric.choices_between(src, dst).min_by_key(busiest);
    let chosen = chosen.expect("every flow has a path");
    for slot in fabric.slots_of(src, dst, chosen).iter() {
        loads[slot] += share(slot);
    }
    chosen
}

fn narrow<L: Load>(weight: u64) -> L {
    L::try_from(weight).unwrap_or_else(|_| unreachable!("the sum of all weights fits"))
}
