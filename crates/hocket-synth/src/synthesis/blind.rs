//! The congestion-blind baseline: every chunk by the shortest way, as if it were alone.

use std::cell::RefCell;

use super::compile::Timetables;
use super::delivery::{Delivery, Wanted};
use super::greedy::Failure;
use super::network::{Timing, UnwoundNetwork};
use super::problem::Problem;
use super::timetable::{Send, Timetable};
use crate::graph::ShortestPaths;
use crate::id::narrow;
use crate::units::Seed;

/// Ways by time; of equal ones the least lot wins.
type Paths = ShortestPaths<u64, (u64, u32)>;

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
    network: &UnwoundNetwork,
    spread: &Delivery,
    timings: &[Timing],
    random: &mut Seed,
) -> Result<Timetable, Failure> {
    let mut sends = Vec::new();
    let mut others = vec![Vec::new(); spread.chunks()];
    for &(chunk, npu) in &spread.others {
        others[chunk as usize].push(npu);
    }
    let mut paths = Paths::new(u64::MAX, (u64::MAX, u32::MAX));
    let everybody: Vec<u32> = (0..narrow(spread.npus)).collect();
    for (chunk, &(holder, _)) in (0u32..).zip(&spread.holders) {
        let mut sources = std::mem::take(&mut others[chunk as usize]);
        sources.push(holder);
        let class = spread.class[chunk as usize] as usize;
        let delay = |edge: u32| timings[edge as usize * spread.sizes.len() + class].delay;
        search(&mut paths, network, &sources, delay, random);
        let wanted = match &spread.wanted {
            Wanted::All => &everybody[..],
            Wanted::Listed(lists) => lists.get(chunk as usize),
        };
        let mut reached = vec![false; spread.npus];
        sources.iter().for_each(|&npu| reached[npu as usize] = true);
        for &npu in wanted {
            let mut at = npu;
            while !std::mem::replace(&mut reached[at as usize], true) {
                let (_, edge) = paths.via(at);
                if edge == u32::MAX {
                    return Err(Failure::Unreachable);
                }
                at = network.edges()[edge as usize].src.0;
                let start = paths.costs()[at as usize];
                sends.push(Send { chunk, edge, start });
            }
        }
    }
    Ok(Timetable::new(sends, timings, spread))
}

/// Searches for the shortest ways from `sources`: distances, and the last edge of the way to each NPU, after
/// the lot that it drew. Each edge looked at draws one.
fn search(
    paths: &mut Paths,
    network: &UnwoundNetwork,
    sources: &[u32],
    delay: impl Fn(u32) -> u64,
    random: &mut Seed,
) {
    let random = RefCell::new(random);
    let arc = |&edge: &u32| {
        let lot = random.borrow_mut().next_u64();
        (network.edges()[edge as usize].dst.0, (lot, edge))
    };
    paths.run(
        network.npus(),
        sources.iter().map(|&npu| (npu, 0)),
        |npu| network.out_edges(npu as usize).iter().map(arc),
        |length, (lot, edge), _| Some((length + delay(edge), (lot, edge))),
    );
}
