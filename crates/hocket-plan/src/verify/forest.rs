//! A tree in which whatever lies above ends before: quick answers about chains and barriers.

use super::structure::Order;
use crate::id::narrow;
use crate::plan::{Plan, Wait, WaitOn};

/// Every transfer and every group hangs below the latest of what it waits for.
///
/// A group is over when all its members are, a transfer when it has ended. What lies above a node
/// is over before the node is; what does not lie above it may be all the same.
pub(super) struct Forest {
    transfers: usize,
    /// Place of each node in a depth-first walk: transfers first, then groups.
    first: Vec<u32>,
    /// How many nodes hang below each, itself included.
    size: Vec<u32>,
}

const ROOT: u32 = u32::MAX;

impl Forest {
    /// # Complexity
    /// O(transfers + group members); 8 bytes for each transfer and group.
    pub(super) fn new(plan: &Plan, order: &Order, positions: Option<&[u32]>) -> Self {
        let transfers = plan.len();
        let (parent, latest) = parents(plan, positions);
        let nodes = downwards(plan, order, &latest);
        let mut size = vec![1u32; parent.len()];
        for &node in nodes.iter().rev() {
            if parent[node as usize] != ROOT {
                size[parent[node as usize] as usize] += size[node as usize];
            }
        }
        let mut first = vec![0u32; parent.len()];
        let mut next = vec![0u32; parent.len()];
        let mut next_root = 0;
        for &node in &nodes {
            let node = node as usize;
            let free = match parent[node] {
                ROOT => &mut next_root,
                parent => &mut next[parent as usize],
            };
            first[node] = *free;
            *free += size[node];
            next[node] = first[node] + 1;
        }
        Self {
            transfers,
            first,
            size,
        }
    }

    /// Returns whether `above` is `below` or lies above it, so that it is over whenever `below` is.
    #[inline]
    pub(super) fn is_above(&self, above: Wait, below: Wait) -> bool {
        match (self.node(above), self.node(below)) {
            (Some(above), Some(below)) => {
                self.first[below].wrapping_sub(self.first[above]) < self.size[above]
            }
            _ => false,
        }
    }

    fn node(&self, wait: Wait) -> Option<usize> {
        match wait.target() {
            WaitOn::Nothing => None,
            WaitOn::Transfer(id) => Some(id.index()),
            WaitOn::Group(group) => Some(self.transfers + group as usize),
        }
    }
}

/// Returns the node above each node; and for each group the position of its latest transfer, plus one (0 where it has
/// none).
fn parents(plan: &Plan, positions: Option<&[u32]>) -> (Vec<u32>, Vec<u32>) {
    let transfers = plan.len();
    let mut latest: Vec<u32> = Vec::with_capacity(plan.groups().len());
    let mut parent = vec![ROOT; transfers];
    parent.reserve(plan.groups().len());
    for members in plan.groups().iter() {
        let member = |&bits: &u32| match Wait::from_bits(bits).target() {
            WaitOn::Nothing => (0, ROOT),
            WaitOn::Transfer(id) => {
                let position = positions.map_or(id.0, |at| at[id.index()]);
                (position + 1, id.0)
            }
            WaitOn::Group(group) => (latest[group as usize], narrow(transfers) + group),
        };
        let (last, above) = members.iter().map(member).max().unwrap_or((0, ROOT));
        latest.push(last);
        parent.push(if last == 0 { ROOT } else { above });
    }
    for (transfer, &bits) in plan.wait().iter().enumerate() {
        parent[transfer] = match Wait::from_bits(bits).target() {
            WaitOn::Nothing => ROOT,
            WaitOn::Transfer(id) => id.0,
            WaitOn::Group(group) => narrow(transfers) + group,
        };
    }
    (parent, latest)
}

/// Returns all nodes, each after the one above it.
fn downwards(plan: &Plan, order: &Order, latest: &[u32]) -> Vec<u32> {
    let transfers = plan.len();
    // Groups by their latest transfer, those of one transfer as they are numbered.
    let mut groups: Vec<u32> = (0..narrow(latest.len())).collect();
    groups.sort_by_key(|&group| latest[group as usize]);
    let mut groups = groups.into_iter().peekable();
    let mut nodes = Vec::with_capacity(transfers + latest.len());
    for position in 0..=transfers {
        while let Some(group) = groups.next_if(|&g| latest[g as usize] as usize == position) {
            nodes.push(narrow(transfers) + group);
        }
        if position < transfers {
            nodes.push(order.at(position));
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Collective, CollectiveKind};
    use crate::id::NpuId;
    use crate::plan::{Chunks, Op, PlanBuilder};

    #[test]
    fn groups_hang_below_their_latest_member() {
        let npus: Vec<NpuId> = (0..2).map(NpuId::from).collect();
        let collective = Collective::new(CollectiveKind::AllReduce, npus.clone(), 8, None).unwrap();
        let chunks = Chunks::split(&collective.demands(), 1).unwrap();
        let mut builder = PlanBuilder::new("by hand", &collective, chunks);
        let send = |builder: &mut PlanBuilder, wait| {
            Wait::on(builder.send((0, 1), npus[0], npus[1], Op::Copy, wait))
        };
        let first = send(&mut builder, Wait::NOTHING);
        let second = send(&mut builder, Wait::NOTHING);
        let both = builder.all_of(&[first, second]);
        let third = send(&mut builder, both);
        let nested = builder.all_of(&[both, third]);
        let fourth = send(&mut builder, nested);
        let plan = builder.finish();
        let forest = Forest::new(&plan, &Order::Plan, None);
        let chain = [second, both, third, nested, fourth];
        for (i, &above) in chain.iter().enumerate() {
            for (j, &below) in chain.iter().enumerate() {
                assert_eq!(forest.is_above(above, below), i <= j, "{i} above {j}");
            }
            assert!(!forest.is_above(first, above), "it is not the latest");
            assert!(!forest.is_above(above, Wait::NOTHING));
            assert!(!forest.is_above(Wait::NOTHING, above));
        }
    }
}
