//! Faster ways round slow edges: what need not go over one, since it is nearly there.

use strum::VariantArray;

use super::network::{Timing, UnwoundNetwork};
use crate::graph::ShortestPaths;
use crate::id::narrow;

/// What to do with a chunk that would come sooner another way than over the edge that is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub(super) enum Detour {
    /// Never send it.
    Refuse,
    /// Send it if there is nothing else.
    Avoid,
    /// Send it all the same.
    Ignore,
}

/// For each edge, NPUs from which its end is reached faster than over the edge, and how fast.
#[derive(Clone, Debug, Default)]
pub(super) struct Near {
    near: Vec<Vec<(u32, u64)>>,
}

impl Near {
    /// Searches backwards from the end of each edge that is slower than the fastest.
    ///
    /// # Complexity
    /// O(slow edges x what is nearer).
    pub(super) fn new(network: &UnwoundNetwork, timings: &[Timing], sizes: usize) -> Self {
        let delay = |edge: u32| timings[edge as usize * sizes].delay;
        let edges = narrow(network.edges().len());
        let fastest = (0..edges).map(delay).min().unwrap_or(0);
        if (0..edges).all(|edge| delay(edge) == fastest) {
            return Self::default();
        }
        // NPUs with several slow edges in, of one cost, share one search.
        let mut near: Vec<Vec<(u32, u64)>> = vec![Vec::new(); edges as usize];
        let mut paths = ShortestPaths::new(u64::MAX, ());
        for npu in 0..network.npus() {
            let slow = network.in_edges(npu).iter().copied();
            let slow = slow.filter(|&edge| delay(edge) > fastest);
            let Some(limit) = slow.clone().map(delay).max() else {
                continue;
            };
            let found = within(&mut paths, network, narrow(npu), limit, delay);
            for edge in slow {
                let limit = delay(edge);
                let closer = found.iter().copied().filter(|&(_, far)| far < limit);
                near[edge as usize] = closer.collect();
            }
        }
        Self { near }
    }

    /// Returns whether there is none at all.
    pub(super) fn is_empty(&self) -> bool {
        self.near.iter().all(Vec::is_empty)
    }

    /// Returns the NPUs that are nearer to the end of an edge than the edge is long, with the time from each.
    #[inline]
    pub(super) fn of(&self, edge: u32) -> &[(u32, u64)] {
        self.near.get(edge as usize).map_or(&[], Vec::as_slice)
    }
}

/// Returns the number of NPUs from which `npu` is reached within less than `limit`, itself left out, nearest first.
fn within(
    paths: &mut ShortestPaths<u64>,
    network: &UnwoundNetwork,
    npu: u32,
    limit: u64,
    delay: impl Fn(u32) -> u64,
) -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    let arc = |&edge: &u32| (network.edges()[edge as usize].src.0, edge);
    paths.until(
        network.npus(),
        [(npu, 0)],
        |at| network.in_edges(at as usize).iter().map(arc),
        |length, edge, _| Some((length + delay(edge), ())).filter(|&(length, ())| length < limit),
        |at, length| {
            if at != npu {
                found.push((at, length));
            }
            false
        },
    );
    found
}
