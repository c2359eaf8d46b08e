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
    open: Vec<u32>,
}

/// Members of groups that a short look goes through before it gives up.
const LOOK: usize = 64;
/// Transfers that are looked for in a list one by one.
const FEW: usize = 16;

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
            open: Vec::new(),
        }
    }

    /// Whether whoever waits for `wait` starts after `transfer` has ended.
    #[inline]
    pub(super) fn ends_before(&mut self, transfer: TransferId, wait: Wait) -> bool {
        self.first_open(std::iter::once(transfer), wait).is_none()
    }

    /// The first of `transfers` that may not have ended when whoever waits for `wait` starts.
    ///
    /// One walk through the groups nested in `wait` finds all that are direct members.
    pub(super) fn first_open(
        &mut self,
        transfers: impl Iterator<Item = TransferId>,
        wait: Wait,
    ) -> Option<TransferId> {
        self.open.clear();
        self.open.extend(transfers.map(|transfer| transfer.0));
        match wait.target() {
            WaitOn::Nothing => return self.open.first().map(|&open| TransferId(open)),
            WaitOn::Transfer(id) => self.open.retain(|&open| open != id.0),
            WaitOn::Group(group) if self.open.len() <= FEW => self.strike_few(group),
            WaitOn::Group(group) => self.strike_many(group),
        }
        while let Some(open) = self.open.pop() {
            if !self.is_ancestor(TransferId(open), wait) {
                return Some(TransferId(open));
            }
        }
        None
    }

    /// Takes the members of a group, nested ones included, off a short list `open`.
    fn strike_few(&mut self, group: u32) {
        let mut looks = LOOK;
        self.stack.clear();
        self.stack.push(group);
        while let Some(group) = self.stack.pop() {
            for &bits in self.plan.groups().get(group as usize) {
                match Wait::from_bits(bits).target() {
                    WaitOn::Nothing => {}
                    WaitOn::Group(nested) => self.stack.push(nested),
                    WaitOn::Transfer(id) => {
                        looks -= 1;
                        let found = self.open.iter().position(|&open| open == id.0);
                        if let Some(found) = found {
                            self.open.swap_remove(found);
                        }
                        if looks == 0 || self.open.is_empty() {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// As [`Self::strike_few`], for a long list.
    fn strike_many(&mut self, group: u32) {
        self.seen.resize(self.plan.len(), 0);
        self.search += 1;
        for &open in &self.open {
            self.seen[open as usize] = self.search;
        }
        let mut looks = LOOK + 2 * self.open.len();
        self.stack.clear();
        self.stack.push(group);
        while let Some(group) = self.stack.pop() {
            let members = self.plan.groups().get(group as usize);
            looks = looks.saturating_sub(members.len());
            if looks == 0 {
                break;
            }
            for &bits in members {
                match Wait::from_bits(bits).target() {
                    WaitOn::Nothing => {}
                    WaitOn::Group(nested) => self.stack.push(nested),
                    WaitOn::Transfer(id) => self.seen[id.index()] = 0,
                }
            }
        }
        self.open
            .retain(|&open| self.seen[open as usize] == self.search);
    }

    /// Whether `inner` is `outer`, or a member of it or of a group nested in it, as far as a short
    /// look tells; `false` may only mean that it was not found.
    pub(super) fn is_nested(&mut self, inner: Wait, outer: Wait) -> bool {
        let mut looks = LOOK;
        self.stack.clear();
        self.stack.push(outer.to_bits());
        while let Some(bits) = self.stack.pop() {
            if bits == inner.to_bits() {
                return true;
            }
            if let WaitOn::Group(group) = Wait::from_bits(bits).target() {
                let members = self.plan.groups().get(group as usize);
                looks = looks.saturating_sub(members.len());
                if looks == 0 {
                    return members.contains(&inner.to_bits());
                }
                for &member in members {
                    self.stack.push(member);
                }
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
