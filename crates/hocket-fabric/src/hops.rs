//! Paths that switches choose link by link on the way up, each knowing its own links alone.

use super::{Fabric, Flow};

/// Goes up a link at a time. `choose` is given the level, from 0, the ways on, lowest first, each
/// with its slot, and picks a position.
pub(super) fn climb(
    fabric: &Fabric,
    flow: &Flow,
    choices: &mut Vec<u32>,
    ways: &mut Vec<usize>,
    mut choose: impl FnMut(usize, &[usize]) -> usize,
) -> u32 {
    choices.clear();
    choices.extend(fabric.choices_between(flow.src, flow.dst));
    let slot = |choice: u32, level: usize| {
        let slots = fabric.slots_of(flow.src, flow.dst, choice);
        slots
            .iter()
            .nth(level)
            .expect("a path has a link for each level")
    };
    for level in 0.. {
        ways.clear();
        ways.extend(choices.iter().map(|&choice| slot(choice, level)));
        ways.sort_unstable();
        ways.dedup();
        let taken = ways[choose(level, ways)];
        choices.retain(|&choice| slot(choice, level) == taken);
        if choices.len() == 1 {
            break;
        }
    }
    choices[0]
}

/// Returns the least loaded link up among those that lead to the flow's end, whatever lies behind it; the lowest where
/// several are. The first flows have their choices, `fixed`, already.
pub(super) fn least_loaded(fabric: &Fabric, flows: &[Flow], fixed: &[u32]) -> Vec<u32> {
    let mut loads = vec![0u64; fabric.blocks()[4]];
    let (mut choices, mut ways) = (Vec::new(), Vec::new());
    let choose = |(i, flow): (usize, &Flow)| {
        let with = |slot: usize| loads[slot] + flow.weight * fabric.scale(slot);
        let least = |_, ways: &[usize]| {
            let least = (0..ways.len()).min_by_key(|&way| with(ways[way]));
            least.expect("every flow has a path")
        };
        let chosen = match fixed.get(i) {
            Some(&fixed) => fixed,
            None => climb(fabric, flow, &mut choices, &mut ways, least),
        };
        for slot in fabric.slots_of(flow.src, flow.dst, chosen).iter() {
            loads[slot] += flow.weight * fabric.scale(slot);
        }
        chosen
    };
    flows.iter().enumerate().map(choose).collect()
}
