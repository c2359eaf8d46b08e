//! The orders that a plan needs, and what becomes of it when waits are dropped, moved or added.

use hocket_core::plan::Op;
use hocket_core::units::Seed;

use crate::board::{Row, percent, pick};
use crate::order::{Order, closure, conflicts, members, reduction};

/// What was done to a plan that was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// One order of two transfers that conflict was taken out, and no other.
    OneOrder,
    /// Some waits were dropped.
    Dropped,
    /// A wait was moved.
    Moved,
    /// Waits were added in any direction.
    Added,
    /// A transfer was changed, or made no sense to begin with.
    Row,
}

/// The orders that the transfers need, at times some more, written out in full or in part.
pub(crate) fn orders(rows: &[Row], draw: &mut Seed) -> Order {
    let mut order = conflicts(rows);
    if percent(25, draw) {
        for _ in 0..draw.below(4) {
            let t = draw.below(rows.len().max(1));
            if t > 0 {
                order[t] |= 1 << draw.below(t);
            }
        }
    }
    in_full_or_part(&closure(&order), draw)
}

fn in_full_or_part(closed: &Order, draw: &mut Seed) -> Order {
    let least = reduction(closed);
    let keep = [0, u64::MAX, draw.next_u64()][draw.below(3)];
    let some = |(&least, &all)| least | all & keep;
    least.iter().zip(closed).map(some).collect()
}

/// The order without that of two transfers that conflict, and which they are. Only an order that
/// follows from no others can be taken out by itself.
pub(crate) fn take_one_order(
    rows: &[Row],
    order: &Order,
    draw: &mut Seed,
) -> Option<(Order, (usize, usize))> {
    let mut closed = closure(order);
    let least = reduction(&closed);
    let needed = |t: usize| {
        members(least[t])
            .map(move |u| (u, t))
            .filter(|&(u, t)| rows[u].conflicts(&rows[t]))
    };
    let pairs: Vec<(usize, usize)> = (0..rows.len()).flat_map(needed).collect();
    // Orders of sums are the delicate ones.
    let of_sums = |&&(_, t): &&(usize, usize)| rows[t].op == Op::Reduce;
    let sums: Vec<(usize, usize)> = pairs.iter().filter(of_sums).copied().collect();
    let from = if percent(50, draw) && !sums.is_empty() {
        &sums
    } else {
        &pairs
    };
    let &(u, t) = pick(from, draw)?;
    closed[t] &= !(1 << u);
    Some((in_full_or_part(&closed, draw), (u, t)))
}

fn waits_of(order: &Order) -> Vec<(usize, usize)> {
    (0..order.len())
        .flat_map(|t| members(order[t]).map(move |u| (u, t)))
        .collect()
}

pub(crate) fn drop_some(order: &mut Order, draw: &mut Seed) -> Change {
    for _ in 0..1 + draw.below(4) {
        if let Some(&(u, t)) = pick(&waits_of(order), draw) {
            order[t] &= !(1 << u);
        }
    }
    Change::Dropped
}

pub(crate) fn move_one(order: &mut Order, draw: &mut Seed) -> Change {
    if let Some(&(u, t)) = pick(&waits_of(order), draw) {
        order[t] &= !(1 << u);
        let other = draw.below(order.len());
        if draw.below(2) == 0 {
            order[t] |= 1 << other;
        } else {
            order[other] |= 1 << u;
        }
    }
    Change::Moved
}

pub(crate) fn add_some(order: &mut Order, draw: &mut Seed) -> Change {
    for _ in 0..(1 + draw.below(2)).min(order.len()) {
        let t = draw.below(order.len());
        order[t] |= 1 << draw.below(order.len());
    }
    Change::Added
}

pub(crate) fn change_row(rows: &mut [Row], npus: usize, chunks: usize, draw: &mut Seed) -> Change {
    if !rows.is_empty() {
        let t = draw.below(rows.len());
        let row = &mut rows[t];
        match draw.below(4) {
            0 => {
                row.op = if row.op == Op::Copy {
                    Op::Reduce
                } else {
                    Op::Copy
                }
            }
            1 => row.dst = (row.src + 1 + draw.below(npus - 1)) % npus,
            2 => row.src = (row.dst + 1 + draw.below(npus - 1)) % npus,
            _ => {
                row.chunk = draw.below(chunks);
                row.count = 1 + draw.below(chunks - row.chunk);
            }
        }
    }
    Change::Row
}
