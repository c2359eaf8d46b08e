//! Does one transfer always end before another starts?

use crate::id::TransferId;
use crate::plan::{Plan, Wait, WaitOn};

/// Answers questions about the order that a plan's waits enforce. Exact: a quick look at the wait
/// itself and the groups nested in it, then, where that finds nothing, a search of everything that
/// comes before.
pub(super) struct Ordering<'a> {
    plan: &'a Plan,
    /// Position of each transfer in the wait order; `None` where that is the plan's own.
    position: Option<Vec<u32>>,
    seen: Vec<u32>,
    seen_groups: Vec<u32>,
    search: u32,
    stack: Vec<u32>,
}

impl<'a> Ordering<'a> {
    pub(super) fn new(plan: &'a Plan, order: &super::structure::Order) -> Self {
        let position = match order {
            super::structure::Order::Plan => None,
            super::structure::Order::Other(order) => {
                let mut position = vec![0; plan.len()];
                for (at, &transfer) in order.iter().enumerate() {
                    position[transfer as usize] = at as u32;
                }
                Some(position)
            }
        };
        Self {
            plan,
            position,
            seen: Vec::new(),
            seen_groups: Vec::new(),
            search: 0,
            stack: Vec::new(),
        }
    }

    /// Whether whoever waits for `wait` starts after `transfer` has ended.
    #[inline]
    pub(super) fn ends_before(&mut self, transfer: TransferId, wait: Wait) -> bool {
        match wait.target() {
            WaitOn::Nothing => false,
            WaitOn::Transfer(id) if id == transfer => true,
            _ => self.is_nested(Wait::on(transfer), wait) || self.is_ancestor(transfer, wait),
        }
    }

    /// Whether `inner` is `outer`, or a member of it or of a group nested in it, as far as a short
    /// look tells; `false` may only mean that it was not found.
    pub(super) fn is_nested(&mut self, inner: Wait, outer: Wait) -> bool {
        const LOOK: usize = 64;
        self.stack.clear();
        self.stack.push(outer.to_bits());
        let mut looked = 0;
        while let Some(bits) = self.stack.pop() {
            if bits == inner.to_bits() {
                return true;
            }
            if let WaitOn::Group(group) = Wait::from_bits(bits).target() {
                let members = self.plan.groups().get(group as usize);
                looked += members.len();
                if looked > LOOK {
                    return members.contains(&inner.to_bits());
                }
                self.stack.extend_from_slice(members);
            }
        }
        false
    }

    /// Searches everything that ends before `wait` is over, back to the position of `transfer`.
    fn is_ancestor(&mut self, transfer: TransferId, wait: Wait) -> bool {
        self.seen.resize(self.plan.len(), 0);
        self.seen_groups.resize(self.plan.groups().len(), 0);
        self.search += 1;
        let target = self.position_of(transfer);
        self.stack.clear();
        self.stack.push(wait.to_bits());
        while let Some(bits) = self.stack.pop() {
            match Wait::from_bits(bits).target() {
                WaitOn::Nothing => {}
                WaitOn::Transfer(id) if id == transfer => return true,
                WaitOn::Transfer(id) => {
                    let seen = std::mem::replace(&mut self.seen[id.index()], self.search);
                    if seen != self.search && self.position_of(id) > target {
                        self.stack.push(self.plan.wait()[id.index()]);
                    }
                }
                WaitOn::Group(group) => {
                    let group = group as usize;
                    let seen = std::mem::replace(&mut self.seen_groups[group], self.search);
                    if seen != self.search {
                        self.stack.extend_from_slice(self.plan.groups().get(group));
                    }
                }
            }
        }
        false
    }

    fn position_of(&self, transfer: TransferId) -> u32 {
        match &self.position {
            None => transfer.0,
            Some(position) => position[transfer.index()],
        }
    }
}
