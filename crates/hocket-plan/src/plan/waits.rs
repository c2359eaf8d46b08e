//! The waits of a plan, turned around.

use super::{Lists, Plan, Wait, WaitOn};
use crate::graph::Counts;
use crate::id::narrow;

/// The graph of waits: what each transfer and each group sets free when it ends.
///
/// Node t is transfer t; node `transfers + g` is group g.
#[derive(Debug)]
pub struct WaitGraph {
    freed: Lists<u32>,
    members: Vec<u32>,
}

impl WaitGraph {
    /// Turns the waits of a plan around.
    pub fn new(plan: &Plan) -> Self {
        let transfers = plan.len();
        let nodes = transfers + plan.groups().len();
        let node = |bits: u32| match Wait::from_bits(bits).target() {
            WaitOn::Nothing => None,
            WaitOn::Transfer(id) => Some(id.index()),
            WaitOn::Group(group) => Some(transfers + group as usize),
        };
        let mut counts = Counts::<u32>::new(nodes);
        let waits = plan.wait().iter().chain(plan.groups().items());
        waits
            .filter_map(|&bits| node(bits))
            .for_each(|node| counts.add(node));
        let mut slots = counts.into_slots();
        let mut targets = vec![0u32; slots.len()];
        let mut fill = |bits: u32, target: usize| {
            if let Some(node) = node(bits) {
                targets[slots.take(node)] = narrow(target);
            }
        };
        for (transfer, &bits) in plan.wait().iter().enumerate() {
            fill(bits, transfer);
        }
        for (group, members) in plan.groups().iter().enumerate() {
            members
                .iter()
                .for_each(|&bits| fill(bits, transfers + group));
        }
        let size =
            |members: &[u32]| narrow(members.iter().filter(|&&bits| node(bits).is_some()).count());
        let members = plan.groups().iter().map(size).collect();
        Self {
            freed: Lists::from_parts(slots.into_offsets(), targets),
            members,
        }
    }

    /// Returns what a node sets free: transfers that wait for it and groups that it is a member of.
    #[inline]
    pub fn freed_by(&self, node: usize) -> &[u32] {
        self.freed.get(node)
    }

    /// Returns how many members of each group are still to end, at the start.
    pub fn member_counts(&self) -> &[u32] {
        &self.members
    }

    /// Returns the transfers by their level, the length of the longest chain of waits that ends in them; in a level, in
    /// the plan's order. Those on cycles, and those behind them, are left out.
    pub fn levels(&self, plan: &Plan) -> Lists<u32> {
        let transfers = plan.len();
        let mut left = self.members.clone();
        let is_free = |&i: &u32| plan.wait()[i as usize] == Wait::NOTHING.to_bits();
        let mut level: Vec<u32> = (0..narrow(transfers)).filter(is_free).collect();
        let empty = (0..left.len()).filter(|&group| left[group] == 0);
        let mut groups: Vec<usize> = empty.map(|group| group + transfers).collect();
        let mut levels = Lists::default();
        let mut next = Vec::new();
        loop {
            let mut node_at = 0;
            loop {
                // A group ends with the last of its members, in this level; an empty one before the first.
                let node = match groups.pop() {
                    Some(group) => group,
                    None if node_at < level.len() => {
                        node_at += 1;
                        level[node_at - 1] as usize
                    }
                    None => break,
                };
                for &freed in self.freed_by(node) {
                    match (freed as usize).checked_sub(transfers) {
                        None if node >= transfers && node_at == 0 => level.push(freed),
                        None => next.push(freed),
                        Some(group) => {
                            left[group] -= 1;
                            if left[group] == 0 {
                                groups.push(freed as usize);
                            }
                        }
                    }
                }
            }
            if level.is_empty() {
                return levels;
            }
            level.sort_unstable();
            levels.push(&level);
            std::mem::swap(&mut level, &mut next);
            next.clear();
        }
    }

    /// Returns the transfers in an order in which each follows what it waits for; those on cycles, and those behind
    /// them, are left out.
    pub fn sorted(&self, plan: &Plan) -> Vec<u32> {
        let transfers = plan.len();
        let mut left = self.members.clone();
        let is_free = |&i: &u32| plan.wait()[i as usize] == Wait::NOTHING.to_bits();
        let mut order: Vec<u32> = (0..narrow(transfers)).filter(is_free).collect();
        let empty = (0..left.len())
            .filter(|&group| left[group] == 0)
            .map(|g| g + transfers);
        let mut groups: Vec<usize> = empty.collect();
        let mut next = 0;
        loop {
            let node = match groups.pop() {
                Some(group) => group,
                None if next < order.len() => {
                    next += 1;
                    order[next - 1] as usize
                }
                None => return order,
            };
            for &freed in self.freed_by(node) {
                match (freed as usize).checked_sub(transfers) {
                    None => order.push(freed),
                    Some(group) => {
                        left[group] -= 1;
                        if left[group] == 0 {
                            groups.push(freed as usize);
                        }
                    }
                }
            }
        }
    }
}
