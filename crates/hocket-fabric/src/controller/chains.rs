//! Kempe chains: how few flows must move so that a link has no more than its share.
//!
//! Flows are edges between ToRs (where they leave, where they arrive), and columns are colours. Where a link
//! of column a carries one flow too many and the ToR has room in column b, a flow moves from a to b. At its
//! other end b may now have one too many; then a flow moves from b to a there, and so on. Each flow moves
//! once at most. On a whole fabric where no other link has more than its share the walk ends: a ToR is
//! entered by flows of one column and left by flows of the other, and it has one more of these than
//! it was entered times, since a link that overflows had its full share before. Flows that are fixed do not
//! move, and a walk that meets no others goes no further.
//!
//! # Source
//! Kempe chains in bipartite multigraphs: König's proof that the largest degree is enough colours (1916).

use super::flows::Flows;
use super::loads::{Loads, Side};

/// Flows looked at in one list for one that ends the chain.
const LOOK: usize = 8;
/// Most flows of a chain, moves that cost nothing included.
const LONGEST: usize = 1 << 12;

/// A link of a ToR that carries one flow too many, and a column of the ToR with room.
#[derive(Clone, Copy)]
pub(super) struct Start {
    pub(super) side: Side,
    pub(super) tor: u32,
    pub(super) over: u32,
    pub(super) other: u32,
}

/// The search for chains.
#[derive(Clone, Debug, Default)]
pub(super) struct Chains {
    /// By flow: the walk that moved it last.
    marks: Vec<u64>,
    walk: u64,
    trail: Vec<(u32, u32)>,
    best: Vec<(u32, u32)>,
}

impl Chains {
    /// Forgets what was found.
    pub(super) fn begin(&mut self, rows: usize) {
        self.best.clear();
        self.marks.resize(rows, 0);
    }

    /// Returns the chain that moves fewest flows whose hosts have a path already, of those tried since
    /// [`Chains::begin`]: flows and their new columns.
    pub(super) fn cheapest(&self) -> &[(u32, u32)] {
        &self.best
    }

    /// Tries a chain that costs `limit` at most; says what it costs. It is then the cheapest.
    pub(super) fn try_one(
        &mut self,
        flows: &Flows,
        loads: &Loads,
        start: Start,
        limit: u32,
    ) -> Option<u32> {
        self.walk += 1;
        self.trail.clear();
        let Start {
            mut side,
            mut tor,
            mut over,
            mut other,
        } = start;
        let mut cost = 0;
        while self.trail.len() < LONGEST {
            let (flow, is_last) = self.next(flows, loads, side, tor, over, other)?;
            self.marks[flow as usize] = self.walk;
            self.trail.push((flow, other));
            let row = flows.row(flow);
            cost += u32::from(row.choice == row.told);
            if cost > limit {
                return None;
            }
            if is_last {
                std::mem::swap(&mut self.best, &mut self.trail);
                return Some(cost);
            }
            side = side.other();
            tor = end(flows, flow, side);
            std::mem::swap(&mut over, &mut other);
        }
        None
    }

    /// Returns a flow of column `over` to move to `other`: among the first few one whose other end has room, else the
    /// first; and whether it has.
    fn next(
        &self,
        flows: &Flows,
        loads: &Loads,
        side: Side,
        tor: u32,
        over: u32,
        other: u32,
    ) -> Option<(u32, bool)> {
        let far = side.other();
        let mut first = None;
        let on = flows.on(loads.slot(side, tor, over));
        let movable =
            on.filter(|&flow| self.marks[flow as usize] != self.walk && flows.row(flow).can_move());
        for flow in movable.take(LOOK) {
            let at = end(flows, flow, far);
            if loads.has_room(far, at, other) {
                return Some((flow, true));
            }
            if first.is_none() && !loads.is_dead(loads.slot(far, at, other)) {
                first = Some((flow, false));
            }
        }
        first
    }
}

/// Returns the ToR of a flow at a side.
fn end(flows: &Flows, flow: u32, side: Side) -> u32 {
    let row = flows.row(flow);
    match side {
        Side::Up => row.src,
        Side::Down => row.dst,
    }
}
