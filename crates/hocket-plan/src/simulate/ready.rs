//! Which transfers may start, as others end.

use std::sync::Arc;

use crate::id::narrow;
use crate::plan::{Plan, Wait, WaitGraph, WaitOn};

/// The waits of a plan that are still open.
pub struct Ready {
    waits: Arc<WaitGraph>,
    transfers: usize,
    /// Members of each group that have not ended.
    left: Vec<u32>,
    ended: Vec<u32>,
}

impl Ready {
    pub(super) fn new(plan: &Plan) -> Self {
        Self::following(plan, &Arc::new(WaitGraph::new(plan)))
    }

    /// As many as like follow one plan, each for itself.
    pub fn following(plan: &Plan, waits: &Arc<WaitGraph>) -> Self {
        Self {
            left: waits.member_counts().to_vec(),
            transfers: plan.len(),
            waits: waits.clone(),
            ended: Vec::new(),
        }
    }

    /// Returns each transfer that waits for nothing, or for groups without members.
    pub fn at_first(&mut self, plan: &Plan, mut start: impl FnMut(u32)) {
        let left = self.left.iter().enumerate();
        let empty = left.filter(|&(_, &left)| left == 0);
        let empty: Vec<u32> = empty
            .map(|(group, _)| narrow(self.transfers + group))
            .collect();
        for node in empty {
            self.follow(node, &mut start);
        }
        for (transfer, &bits) in plan.wait().iter().enumerate() {
            if Wait::from_bits(bits).target() == WaitOn::Nothing {
                start(narrow(transfer));
            }
        }
    }

    /// A transfer has ended: gives each that may start now.
    #[inline]
    pub fn end(&mut self, transfer: u32, mut start: impl FnMut(u32)) {
        self.follow(transfer, &mut start);
    }

    #[inline]
    fn follow(&mut self, node: u32, start: &mut impl FnMut(u32)) {
        self.ended.push(node);
        while let Some(node) = self.ended.pop() {
            for &target in self.waits.freed_by(node as usize) {
                match (target as usize).checked_sub(self.transfers) {
                    None => start(target),
                    Some(group) => {
                        self.left[group] -= 1;
                        if self.left[group] == 0 {
                            self.ended.push(target);
                        }
                    }
                }
            }
        }
    }
}
