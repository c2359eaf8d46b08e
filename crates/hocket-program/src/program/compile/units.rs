//! The data in chunks of one size: how many, and which of them each chunk of a plan is.

use std::collections::HashSet;

use super::{CompileError, CompileOptions};
use crate::collective::CollectiveKind;
use crate::id::narrow;
use crate::plan::Plan;

/// The chunks of a plan as runs of equal chunks.
pub(super) struct Units {
    /// Equal chunks of each demand.
    pub per_demand: u32,
    /// First equal chunk of each chunk of the plan, counted through all demands.
    pub start: Vec<u32>,
    /// Number of equal chunks of each.
    pub len: Vec<u32>,
}

impl Units {
    /// Returns the fewest equal chunks at whose ends all chunks of the plan end.
    pub(super) fn of(plan: &Plan, options: &CompileOptions) -> Result<Self, CompileError> {
        let collective = plan.collective();
        let chunks = plan.chunks();
        // The demands themselves may take more memory than the plan.
        let demands = chunks
            .demand()
            .iter()
            .max()
            .map_or(0, |&last| last as usize + 1);
        let mut sizes = vec![0u64; demands];
        let mut counts = vec![0u32; demands];
        for (chunk, &demand) in (0..).zip(chunks.demand()) {
            sizes[demand as usize] += chunks.bytes_of(chunk, 1);
            counts[demand as usize] += 1;
        }
        let mut boundaries: HashSet<(u64, u64)> = HashSet::new();
        let mut ends = vec![0u64; demands];
        for (chunk, &demand) in (0..).zip(chunks.demand()) {
            let d = demand as usize;
            ends[d] += chunks.bytes_of(chunk, 1);
            boundaries.insert((ends[d], sizes[d]));
        }
        drop(ends);
        let mut boundaries: Vec<(u64, u64)> = boundaries.into_iter().collect();
        boundaries.sort_unstable();
        let has_parts = !matches!(
            collective.kind(),
            CollectiveKind::AllReduce | CollectiveKind::Broadcast | CollectiveKind::Reduce
        );
        let parts = if has_parts {
            narrow(collective.npus().len())
        } else {
            1
        };
        let limit = options.max_chunks / parts / options.instances;
        let least = counts.iter().copied().max().unwrap_or(1).max(1);
        let fits = |&count: &u32| {
            boundaries
                .iter()
                .all(|&(end, bytes)| boundary(end, bytes, count).is_some())
        };
        let mut candidates = (least..=limit).filter(fits);
        candidates
            .find_map(|count| Self::cut(plan, &sizes, count, options.instances))
            .ok_or(CompileError::Uneven {
                limit: options.max_chunks,
            })
    }

    /// Returns the runs for a number of equal chunks that fits; `None` if a chunk of the plan is shorter than one of
    /// them.
    fn cut(plan: &Plan, sizes: &[u64], count: u32, instances: u32) -> Option<Self> {
        let chunks = plan.chunks();
        let mut ends = vec![(0u64, 0u32); sizes.len()];
        let per_demand = count * instances;
        let mut units = Self {
            per_demand,
            start: Vec::with_capacity(chunks.len()),
            len: Vec::with_capacity(chunks.len()),
        };
        for (chunk, &demand) in chunks.demand().iter().enumerate() {
            let (bytes, at) = ends[demand as usize];
            let bytes = bytes + chunks.bytes_of(narrow(chunk), 1);
            let end = boundary(bytes, sizes[demand as usize], count)?;
            if end <= at {
                return None;
            }
            units.start.push(demand * per_demand + at * instances);
            units.len.push((end - at) * instances);
            ends[demand as usize] = (bytes, end);
        }
        Some(units)
    }
}

/// Returns which of `count` equal chunks of `bytes` ends at byte `end`, give or take a byte or a 64th of a chunk: a
/// program has no size, and its chunks are cut anew for each.
fn boundary(end: u64, bytes: u64, count: u32) -> Option<u32> {
    let (end, bytes, count) = (u128::from(end), u128::from(bytes), u128::from(count));
    let nearest = (end * count + bytes / 2) / bytes;
    let off = (end * count).abs_diff(nearest * bytes);
    let is_near = off < count || off * 64 <= bytes;
    u32::try_from(nearest).ok().filter(|_| is_near)
}
