//! The congestion-blind baseline: every chunk by the shortest way, as if it were alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::greedy::Failure;
use super::lower::Timetables;
use super::network::{Network, Timing};
use super::problem::Problem;
use super::spread::{Spread, Wanted};
use super::timetable::{Send, Timetable};
use crate::units::Seed;

/// The name of the algorithm.
pub const BLIND: &str = "blind";

/// Timetables in which chunks share edges at will; a plan of them is served as messages come.
///
/// # Complexity
/// O(chunks x edges log NPUs).
///
/// # Source
/// TACOS, section VII-C: as TACCL, which leaves congestion out while it looks for ways. Equally short
/// ways are drawn by lot.
pub(super) fn timetables(problem: &Problem, seed: u64) -> Result<Timetables, Failure> {
    let (sums, copies) = problem.parts();
    let mut random = Seed(seed);
    let summed = trees(
        &problem.mirror,
        &sums.spread,
        &problem.sum_times,
        &mut random,
    )?;
    let summed = summed.mirrored(&problem.sum_times, &sums.spread);
    let copied = trees(
        &problem.network,
        &copies.spread,
        &problem.copy_times,
        &mut random,
    )?;
    Ok(Timetables {
        copies: copied.later(summed.end),
        sums: summed,
    })
}

fn trees(
    network: &Network,
    spread: &Spread,
    timings: &[Timing],
    random: &mut Seed,
) -> Result<Timetable, Failure> {
    let mut sends = Vec::new();
    let mut others = vec![Vec::new(); spread.chunks()];
    for &(chunk, npu) in &spread.others {
        others[chunk as usize].push(npu);
    }
    let everybody: Vec<u32> = (0..spread.npus as u32).collect();
    for (chunk, &(holder, _)) in (0u32..).zip(&spread.holders) {
        let mut sources = std::mem::take(&mut others[chunk as usize]);
        sources.push(holder);
        let class = spread.class[chunk as usize] as usize;
        let delay = |edge: u32| timings[edge as usize * spread.sizes.len() + class].delay;
        let (far, via) = shortest(network, &sources, &delay, random);
        let wanted = match &spread.wanted {
            Wanted::All => &everybody[..],
            Wanted::Listed(lists) => lists.get(chunk as usize),
        };
        let mut reached = vec![false; spread.npus];
        sources.iter().for_each(|&npu| reached[npu as usize] = true);
        for &npu in wanted {
            let mut at = npu;
            while !std::mem::replace(&mut reached[at as usize], true) {
                let edge = via[at as usize];
                if edge == u32::MAX {
                    return Err(Failure::Unreachable);
                }
                at = network.edges()[edge as usize].src.0;
                let start = far[at as usize];
                sends.push(Send { chunk, edge, start });
            }
        }
    }
    Ok(Timetable::new(sends, timings, spread))
}

/// Distances from `sources`, and the last edge of a shortest way to each NPU.
fn shortest(
    network: &Network,
    sources: &[u32],
    delay: &dyn Fn(u32) -> u64,
    random: &mut Seed,
) -> (Vec<u64>, Vec<u32>) {
    let mut far = vec![(u64::MAX, 0u64); network.npus()];
    let mut via = vec![u32::MAX; network.npus()];
    let mut queue = BinaryHeap::new();
    for &npu in sources {
        far[npu as usize] = (0, 0);
        queue.push(Reverse((0, npu)));
    }
    while let Some(Reverse((length, npu))) = queue.pop() {
        if length > far[npu as usize].0 {
            continue;
        }
        for &edge in network.out_edges(npu as usize) {
            let dst = network.edges()[edge as usize].dst.0;
            let found = (length + delay(edge), random.next_u64());
            if found < far[dst as usize] {
                if found.0 < far[dst as usize].0 {
                    queue.push(Reverse((found.0, dst)));
                }
                far[dst as usize] = found;
                via[dst as usize] = edge;
            }
        }
    }
    (far.into_iter().map(|(length, _)| length).collect(), via)
}
