//! Which transfer waits for which, as bits, and the same as waits and groups of a plan.

use hocket_core::id::{TransferId, narrow};
use hocket_core::plan::{Lists, Wait};
use hocket_core::units::Seed;

use crate::board::{Row, percent, pick};

/// Transfers, a bit each.
pub(crate) type Mask = u64;

/// For each transfer those that it waits for.
pub(crate) type Order = Vec<Mask>;

/// The orders that transfers made one after the other need: of every two that conflict.
pub(crate) fn conflicts(rows: &[Row]) -> Order {
    let earlier = |t: usize| (0..t).filter(move |&u| rows[t].conflicts(&rows[u]));
    (0..rows.len())
        .map(|t| earlier(t).fold(0, |mask, u| mask | 1 << u))
        .collect()
}

/// All that follows from an order in which no transfer waits for a later one.
pub(crate) fn closure(order: &Order) -> Order {
    let mut all: Order = Vec::new();
    for direct in order {
        let earlier = members(*direct).map(|u| all[u]);
        all.push(earlier.fold(*direct, |mask, more| mask | more));
    }
    all
}

/// The fewest waits from which a closed order follows.
pub(crate) fn reduction(closed: &Order) -> Order {
    let implied = |mask: Mask| members(mask).fold(0, |all, u| all | closed[u]);
    closed.iter().map(|&mask| mask & !implied(mask)).collect()
}

/// The transfers of a mask.
pub(crate) fn members(mask: Mask) -> impl Iterator<Item = usize> {
    let last = (Mask::BITS - mask.leading_zeros()) as usize;
    (0..last).filter(move |t| mask >> t & 1 == 1)
}

/// How an order is written down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Percent of the masks that take a group that is there already, where one has the same members.
    share: usize,
    /// Percent that are built from smaller groups.
    nest: usize,
    /// Percent of odd things: empty groups, groups of one, members named twice.
    odd: usize,
}

impl Style {
    pub(crate) fn draw(draw: &mut Seed) -> Self {
        Self {
            share: [0, 50, 100][draw.below(3)],
            nest: [0, 40, 90][draw.below(3)],
            odd: [0, 0, 25][draw.below(3)],
        }
    }
}

/// Groups while they are made: members, and which transfers they come to.
struct Groups {
    lists: Lists<u32>,
    masks: Vec<Mask>,
}

/// The waits of each transfer and the groups that they name.
pub(crate) fn write(order: &Order, style: Style, draw: &mut Seed) -> (Vec<u32>, Lists<u32>) {
    let mut groups = Groups {
        lists: Lists::default(),
        masks: Vec::new(),
    };
    let waits = order
        .iter()
        .map(|&mask| groups.wait(mask, style, draw).to_bits())
        .collect();
    (waits, groups.lists)
}

impl Groups {
    fn wait(&mut self, mask: Mask, style: Style, draw: &mut Seed) -> Wait {
        let odd = percent(style.odd, draw);
        match mask.count_ones() {
            0 if !odd => Wait::NOTHING,
            1 if !odd => Wait::on(TransferId(mask.trailing_zeros())),
            _ => self.group(mask, style, draw),
        }
    }

    fn group(&mut self, mask: Mask, style: Style, draw: &mut Seed) -> Wait {
        let same: Vec<usize> = (0..self.masks.len())
            .filter(|&g| self.masks[g] == mask)
            .collect();
        if let Some(&g) = pick(&same, draw)
            && percent(style.share, draw)
        {
            return Wait::group(narrow(g));
        }
        let mut list: Vec<u32> = Vec::new();
        let mut rest = mask;
        while percent(style.nest, draw) && (rest != 0 || percent(style.odd, draw)) {
            let within: Vec<usize> = (0..self.masks.len())
                .filter(|&g| self.masks[g] & !mask == 0)
                .collect();
            let nested = match pick(&within, draw) {
                Some(&g) if percent(60, draw) => Wait::group(narrow(g)),
                _ => {
                    let some = mask & draw.next_u64();
                    // A proper part, so that this ends.
                    if some == mask {
                        break;
                    }
                    self.group(some, style, draw)
                }
            };
            list.push(nested.to_bits());
            let covered = (nested.to_bits() & !(1 << 31)) as usize;
            rest &= !self.masks[covered];
        }
        for t in members(rest) {
            list.push(Wait::on(TransferId(narrow(t))).to_bits());
        }
        if percent(style.odd, draw)
            && let Some(&again) = pick(&list, draw)
        {
            list.push(again);
        }
        for i in (1..list.len()).rev() {
            list.swap(i, draw.below(i + 1));
        }
        self.masks.push(mask);
        Wait::group(self.lists.push(&list))
    }
}
