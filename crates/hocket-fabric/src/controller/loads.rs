//! How many flows each link carries, what its share is, and which path is least loaded.

use super::super::Fabric;
use crate::id::narrow;

/// Of a link that is not there.
const DEAD: u16 = u16::MAX;
/// A link with so many flows takes no more.
const FULL: u16 = DEAD - 1;

/// A side of a ToR: its links up, or those down to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Up,
    Down,
}

impl Side {
    pub(super) const BOTH: [Side; 2] = [Side::Up, Side::Down];

    pub(super) fn other(self) -> Side {
        match self {
            Side::Up => Side::Down,
            Side::Down => Side::Up,
        }
    }
}

/// Loads by slot of the fabric, rows of ToRs.
#[derive(Clone, Debug)]
pub(super) struct Loads {
    counts: Vec<u16>,
    tors: usize,
    columns: usize,
    /// Two levels and links of one bandwidth: rows of counts can be compared as they are.
    is_flat: bool,
    slack: u16,
    /// By side and ToR: flows, links that are there, and how many flows each of them may have.
    degrees: [Vec<u32>; 2],
    links: [Vec<u32>; 2],
    shares: [Vec<u16>; 2],
}

impl Loads {
    pub(super) fn new(fabric: &Fabric, slack: u16) -> Self {
        let count = |link: &Option<_>| if link.is_some() { 0 } else { DEAD };
        let counts: Vec<u16> = fabric.links.iter().map(count).collect();
        let (tors, columns) = (fabric.tors, fabric.columns);
        let there = |row: &[u16]| narrow(row.iter().filter(|&&count| count != DEAD).count());
        let links = [0, tors * columns].map(|start| {
            let rows = counts[start..start + tors * columns].chunks(columns);
            rows.map(there).collect()
        });
        Self {
            counts,
            tors,
            columns,
            is_flat: fabric.upper.is_none() && fabric.is_even(),
            slack,
            degrees: [vec![0; tors], vec![0; tors]],
            links,
            shares: [vec![slack; tors], vec![slack; tors]],
        }
    }

    pub(super) fn is_flat(&self) -> bool {
        self.is_flat
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn tors(&self) -> usize {
        self.tors
    }

    #[inline]
    pub(super) fn slot(&self, side: Side, tor: u32, column: u32) -> usize {
        (side as usize * self.tors + tor as usize) * self.columns + column as usize
    }

    #[inline]
    pub(super) fn row(&self, side: Side, tor: u32) -> &[u16] {
        let start = self.slot(side, tor, 0);
        &self.counts[start..start + self.columns]
    }

    /// Returns the number of flows on a link; 0 where there is none.
    pub(super) fn count(&self, slot: usize) -> u16 {
        match self.counts[slot] {
            DEAD => 0,
            count => count,
        }
    }

    pub(super) fn is_dead(&self, slot: usize) -> bool {
        self.counts[slot] == DEAD
    }

    /// Returns how many flows a link of a ToR may have.
    #[inline]
    pub(super) fn share(&self, side: Side, tor: u32) -> u16 {
        self.shares[side as usize][tor as usize]
    }

    /// Returns whether a link is there and has room for one flow more within its share.
    #[inline]
    pub(super) fn has_room(&self, side: Side, tor: u32, column: u32) -> bool {
        self.counts[self.slot(side, tor, column)] < self.share(side, tor)
    }

    /// Returns whether a link has more flows than its share.
    pub(super) fn is_over(&self, side: Side, tor: u32, column: u32) -> bool {
        let count = self.counts[self.slot(side, tor, column)];
        count != DEAD && count > self.share(side, tor)
    }

    pub(super) fn add(&mut self, slots: impl Iterator<Item = usize>) {
        slots.for_each(|slot| self.counts[slot] += 1);
    }

    pub(super) fn take(&mut self, slots: impl Iterator<Item = usize>) {
        slots.for_each(|slot| self.counts[slot] -= 1);
    }

    /// A flow from one ToR to another comes, or goes.
    pub(super) fn expect(&mut self, src: u32, dst: u32, comes: bool) {
        for (side, tor) in [(Side::Up, src), (Side::Down, dst)] {
            let degree = &mut self.degrees[side as usize][tor as usize];
            *degree = if comes { *degree + 1 } else { *degree - 1 };
            self.share_out(side, tor);
        }
    }

    fn share_out(&mut self, side: Side, tor: u32) {
        let (side, tor) = (side as usize, tor as usize);
        let even = self.degrees[side][tor].div_ceil(self.links[side][tor].max(1));
        let share = u16::try_from(even.saturating_add(self.slack.into()));
        self.shares[side][tor] = share.map_or(FULL, |share| share.min(FULL));
    }

    /// A link that carries nothing fails, or returns.
    pub(super) fn set_there(&mut self, slot: usize, is_there: bool) {
        self.counts[slot] = if is_there { 0 } else { DEAD };
        let row = slot / self.columns;
        if let Some(side) = Side::BOTH.get(row / self.tors) {
            let tor = row % self.tors;
            let links = &mut self.links[*side as usize][tor];
            *links = if is_there { *links + 1 } else { *links - 1 };
            self.share_out(*side, narrow(tor));
        }
    }

    /// Returns the path with most room within the shares of its ToRs, and whether it has any. The busiest link counts,
    /// then the other, then the lowest choice. For flat fabrics.
    #[inline]
    pub(super) fn roomiest(&self, src: u32, dst: u32) -> Option<(u32, bool)> {
        let shares = [self.share(Side::Up, src), self.share(Side::Down, dst)];
        let most = shares[0].max(shares[1]);
        let (column, load) = self.least(src, dst, shares.map(|share| most - share))?;
        Some((column, load < most))
    }

    /// Returns the path whose busiest link carries least (Algorithm 1), then the other link, then the lowest choice;
    /// `None` where there is no path, or none whose links may take more.
    pub(super) fn best(&self, fabric: &Fabric, src: u32, dst: u32) -> Option<u32> {
        if self.is_flat {
            return Some(self.least(src, dst, [0; 2])?.0);
        }
        let choices = fabric.choices_between(src, dst);
        let loaded = choices.filter_map(|choice| {
            let load = self.busiest(fabric, src, dst, choice)?;
            Some((load, choice))
        });
        Some(loaded.min()?.1)
    }

    /// Returns what the busiest link of a path would carry with one flow more, in flows of the fabric's reference
    /// bandwidth; `None` where a link is dead or full.
    pub(super) fn busiest(&self, fabric: &Fabric, src: u32, dst: u32, choice: u32) -> Option<u64> {
        let slots = fabric.slots(src, dst, choice)?;
        let load = |slot: usize| {
            let count = self.counts[slot];
            (count < FULL).then(|| (u64::from(count) + 1) * fabric.scale(slot))
        };
        slots
            .iter()
            .try_fold(0, |most, slot| Some(load(slot)?.max(most)))
    }

    /// Returns the column whose busier link, with `more` added to either side, carries least, and that load.
    #[inline]
    fn least(&self, src: u32, dst: u32, more: [u16; 2]) -> Option<(u32, u16)> {
        let key = |(&up, &down): (&u16, &u16)| {
            let (up, down) = (up.saturating_add(more[0]), down.saturating_add(more[1]));
            u32::from(up.max(down)) << 16 | u32::from(up.min(down))
        };
        let (ups, downs) = (self.row(Side::Up, src), self.row(Side::Down, dst));
        let least = ups.iter().zip(downs).map(key).min()?;
        let load = (least >> 16) as u16;
        if load >= FULL {
            return None;
        }
        let column = ups.iter().zip(downs).position(|pair| key(pair) == least)?;
        Some((narrow(column), load))
    }
}
