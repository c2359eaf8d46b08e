//! The waits of a plan, turned around.

use super::{Plan, Wait, WaitOn};

/// The graph of waits: what each transfer and each group sets free when it ends.
///
/// Node t is transfer t; node `transfers + g` is group g.
#[derive(Debug)]
pub(crate) struct WaitGraph {
    offsets: Vec<u32>,
    targets: Vec<u32>,
    members: Vec<u32>,
}

impl WaitGraph {
    /// Turns the waits of a plan around.
    pub(crate) fn new(plan: &Plan) -> Self {
        let transfers = plan.len();
        let nodes = transfers + plan.groups().len();
        let node = |bits: u32| match Wait::from_bits(bits).target() {
            WaitOn::Nothing => None,
            WaitOn::Transfer(id) => Some(id.index()),
            WaitOn::Group(group) => Some(transfers + group as usize),
        };
        let mut offsets = vec![0u32; nodes + 1];
        let mut count = |bits: u32| {
            if let Some(node) = node(bits) {
                offsets[node + 1] += 1;
            }
        };
        plan.wait().iter().for_each(|&bits| count(bits));
        plan.groups().items().iter().for_each(|&bits| count(bits));
        for i in 0..nodes {
            offsets[i + 1] += offsets[i];
        }
        let mut targets = vec![0u32; offsets[nodes] as usize];
        // Fill from the back, so that `offsets` needs no second copy: afterwards offsets[n] is the
        // start of n's targets again.
        let mut fill = |bits: u32, target: usize| {
            if let Some(node) = node(bits) {
                offsets[node + 1] -= 1;
                targets[offsets[node + 1] as usize] = target as u32;
            }
        };
        for (group, members) in plan.groups().iter().enumerate().rev() {
            members
                .iter()
                .for_each(|&bits| fill(bits, transfers + group));
        }
        for (transfer, &bits) in plan.wait().iter().enumerate().rev() {
            fill(bits, transfer);
        }
        offsets.remove(0);
        offsets.push(targets.len() as u32);
        let size =
            |members: &[u32]| members.iter().filter(|&&bits| node(bits).is_some()).count() as u32;
        let members = plan.groups().iter().map(size).collect();
        Self {
            offsets,
            targets,
            members,
        }
    }

    /// What a node sets free: transfers that wait for it and groups that it is a member of.
    #[inline]
    pub(crate) fn freed_by(&self, node: usize) -> &[u32] {
        &self.targets[self.offsets[node] as usize..self.offsets[node + 1] as usize]
    }

    /// How many members of each group are still to end, at the start.
    pub(crate) fn member_counts(&self) -> &[u32] {
        &self.members
    }

    /// Transfers in an order in which each follows what it waits for; those on cycles, and those
    /// behind them, are left out.
    pub(crate) fn sorted(&self, plan: &Plan) -> Vec<u32> {
        let transfers = plan.len();
        let mut left = self.members.clone();
        let is_free = |&i: &u32| plan.wait()[i as usize] == Wait::NOTHING.to_bits();
        let mut order: Vec<u32> = (0..transfers as u32).filter(is_free).collect();
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
