//! Greedy by connected components: flows that can share no link do not wait for each other.

use rayon::prelude::*;

use super::sets::Sets;
use super::{Fabric, Flow, greedy};
use crate::id::narrow;

/// Returns the same as [`greedy::greedy`], part by part.
///
/// Flows with one source ToR or one destination ToR are connected, on three levels also those that
/// leave or enter one pod. What is not connected shares no link, so that neither the order nor the
/// thread in which it is assigned shows.
///
/// # Source
/// Cohen et al., Routing for large ML models, section 3.4.3.
pub(super) fn greedy_parallel(fabric: &Fabric, flows: &[Flow]) -> Vec<u32> {
    let batches = batches(&components(fabric, flows), rayon::current_num_threads());
    if batches.len() < 2 {
        return greedy::greedy(fabric, flows.iter());
    }
    let assigned: Vec<Vec<u32>> = batches
        .par_iter()
        .map(|batch| greedy::greedy(fabric, batch.iter().map(|&i| &flows[i as usize])))
        .collect();
    let mut choices = vec![0; flows.len()];
    for (batch, assigned) in batches.iter().zip(assigned) {
        for (&i, choice) in batch.iter().zip(assigned) {
            choices[i as usize] = choice;
        }
    }
    choices
}

/// Returns the component of each flow, by the lowest of its ends; sources and destinations are apart.
fn components(fabric: &Fabric, flows: &[Flow]) -> Vec<usize> {
    let tors = fabric.tor_count();
    let pods = fabric.upper.as_ref().map_or(0, |upper| upper.pods);
    let mut sets = Sets::new(2 * (tors + pods));
    for flow in flows {
        let [src, dst] = [flow.src as usize, tors + flow.dst as usize];
        sets.join(src, dst);
        let between = [flow.src, flow.dst].map(|tor| fabric.pod_of(tor));
        if let [Some(from), Some(to)] = between
            && from != to
        {
            sets.join(src, 2 * tors + from as usize);
            sets.join(dst, 2 * tors + pods + to as usize);
        }
    }
    flows
        .iter()
        .map(|flow| sets.least(flow.src as usize))
        .collect()
}

/// Returns the flows in so many parts of whole components, about alike in size; each part in the order given.
fn batches(component: &[usize], count: usize) -> Vec<Vec<u32>> {
    let mut sizes = vec![0u32; component.iter().max().map_or(0, |&last| last + 1)];
    for &of in component {
        sizes[of] += 1;
    }
    let mut largest_first: Vec<usize> = (0..sizes.len()).filter(|&of| sizes[of] > 0).collect();
    largest_first.sort_by_key(|&of| std::cmp::Reverse(sizes[of]));
    let mut filled = vec![0; count.min(largest_first.len())];
    let mut batch_of = vec![0; sizes.len()];
    for of in largest_first {
        let least = (0..filled.len()).min_by_key(|&batch| filled[batch]);
        batch_of[of] = least.expect("there is a batch for every component or fewer");
        filled[batch_of[of]] += sizes[of];
    }
    let mut batches = vec![Vec::new(); filled.len()];
    for (i, &of) in component.iter().enumerate() {
        batches[batch_of[of]].push(narrow(i));
    }
    batches
}
