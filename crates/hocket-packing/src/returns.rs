//! Arcs that lead back towards the only root, left out.
//!
//! Where all comes from one root, what is near to it needs nothing from farther away. If switches are removed without
//! knowing that, part of what enters them is joined to arcs that lead back, and is lost to those who could send on.
//! A switch does not copy, which cuts do not see: it keeps as much in as out.

use std::cmp::Reverse;

use super::NoPacking;
use super::cuts::Backward;
use super::graph::{Arc, Graph};
use crate::id::narrow;
use crate::progress::Progress;

/// Surroundings for which flows are computed: the largest ones.
const MOST_TRIES: usize = 16;

/// Takes the units of arcs into the surroundings of the only root from farther away: of the largest surroundings, by
/// the time that arcs take, for which every end still gets its share, and no switch gets less than it passes on. Whether
/// there are such arcs.
pub(super) fn leave_out(
    graph: &mut Graph,
    supply: &[i64],
    costs: &[u64],
    progress: &mut dyn Progress,
) -> Result<bool, NoPacking> {
    let mut roots = (0..).zip(supply).filter(|(_, trees)| **trees > 0);
    let (Some((root, _)), None) = (roots.next(), roots.next()) else {
        return Ok(false);
    };
    let times = graph.times(root, costs);
    let mut radii = times.clone();
    radii.sort_unstable();
    radii.dedup();
    let ends = graph.ends();
    let all: Vec<i64> = graph.arcs.iter().map(|arc| arc.units).collect();
    let without = |radius: u64| -> Vec<i64> {
        let arcs = graph.arcs.iter().zip(&all);
        let kept = arcs.map(|(arc, &units)| {
            let is_near = [arc.src, arc.dst].map(|node| times[node as usize] <= radius);
            if is_near == [false, true] { 0 } else { units }
        });
        kept.collect()
    };
    let mut tries = 0;
    for radius in radii.into_iter().rev() {
        let mut tried = graph.clone().with_units(&without(radius));
        if tried
            .arcs
            .iter()
            .zip(&all)
            .all(|(arc, units)| arc.units == *units)
            || !balance(graph, &mut tried, &times)
        {
            continue;
        }
        let mut flows = Backward::new(tried.nodes(), &tried.arcs, supply, &ends);
        if flows.violated(progress)?.is_none() {
            *graph = tried;
            return Ok(true);
        }
        tries += 1;
        if tries == MOST_TRIES {
            break;
        }
    }
    Ok(false)
}

/// Takes from switches that now pass on more than enters them, and did not before, what leads on towards the root, the
/// farthest switch first; whether that was enough.
fn balance(before: &Graph, after: &mut Graph, times: &[u64]) -> bool {
    let surplus = |graph: &Graph| {
        let mut surplus = vec![0i64; graph.nodes()];
        for arc in &graph.arcs {
            surplus[arc.dst as usize] += arc.units;
            surplus[arc.src as usize] -= arc.units;
        }
        surplus
    };
    let (least, mut left) = (surplus(before), surplus(after));
    let nodes = 0..narrow(before.nodes());
    let mut switches: Vec<u32> = nodes.filter(|&node| !before.is_end(node)).collect();
    switches.sort_by_key(|&node| Reverse(times[node as usize]));
    for node in switches {
        let enough = least[node as usize].min(0);
        let nearer =
            |arc: &&mut Arc| arc.src == node && times[arc.dst as usize] < times[node as usize];
        for arc in after.arcs.iter_mut().filter(nearer) {
            let less = (enough - left[node as usize]).clamp(0, arc.units);
            arc.units -= less;
            left[node as usize] += less;
            left[arc.dst as usize] -= less;
        }
        if left[node as usize] < enough {
            return false;
        }
    }
    true
}
