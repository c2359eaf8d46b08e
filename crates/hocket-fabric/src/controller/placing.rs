//! Which path a flow gets, and which flows move for it.

use super::chains::Start;
use super::event::Reason;
use super::flows::NONE;
use super::loads::{Loads, Side};
use super::{Controller, Policy};
use crate::id::narrow;

impl Controller {
    /// Returns whether flows move so that links keep to their shares.
    pub(super) fn is_balancing(&self) -> bool {
        self.options.policy == Policy::Balanced && self.loads.is_flat()
    }

    /// Places a flow without a path: the one that is `wanted` where it is as good as any.
    pub(super) fn place(&mut self, flow: u32, wanted: Option<u32>, reason: Reason) {
        let row = self.flows.row(flow);
        let (src, dst) = (row.src, row.dst);
        if let Some(choice) = wanted.filter(|&choice| self.is_good(&self.loads, src, dst, choice)) {
            return self.put(flow, choice, reason);
        }
        match self.choose(&self.loads, src, dst) {
            Some((choice, true)) => self.put(flow, choice, reason),
            Some(_) => {
                let made = (!self.is_recovering).then(|| self.make_room(src, dst));
                match made.flatten() {
                    Some(choice) => self.put(flow, choice, reason),
                    None => self.overload(flow, reason),
                }
            }
            None => self.strand(flow),
        }
    }

    /// Takes a flow off its path.
    pub(super) fn lift(&mut self, flow: u32) {
        let row = self.flows.row(flow);
        if row.choice == NONE {
            self.stranded.remove(&row.id);
            return;
        }
        let slots = self.fabric.slots_of(row.src, row.dst, row.choice);
        let (src, dst) = (row.src, row.dst);
        self.flows.leave(flow, slots.iter());
        self.loads.take(slots.iter());
        self.loads.expect(src, dst, false);
        self.fullness.extend(slots.iter().map(narrow));
        self.flows.row_mut(flow).choice = NONE;
    }

    /// A flow that has no path is going to have one: shares are those with it.
    pub(super) fn expect(&mut self, flow: u32) {
        let row = self.flows.row(flow);
        self.loads.expect(row.src, row.dst, true);
    }

    pub(super) fn put(&mut self, flow: u32, choice: u32, reason: Reason) {
        self.enter(flow, choice);
        self.touch(flow, reason);
    }

    fn enter(&mut self, flow: u32, choice: u32) {
        let row = self.flows.row_mut(flow);
        row.choice = choice;
        let slots = self.fabric.slots_of(row.src, row.dst, choice);
        self.flows.enter(flow, slots.iter());
        self.loads.add(slots.iter());
        self.fullness.extend(slots.iter().map(narrow));
    }

    /// There is no path for a flow: it waits for links to return.
    fn strand(&mut self, flow: u32) {
        let row = self.flows.row(flow);
        let (id, src, dst) = (row.id, row.src, row.dst);
        self.loads.expect(src, dst, false);
        self.stranded.insert(id);
        self.touch(flow, Reason::NoPath);
    }

    /// Room costs more than it is worth: the path whose busiest link carries least. What is too much waits
    /// for flows to end.
    fn overload(&mut self, flow: u32, reason: Reason) {
        let row = self.flows.row(flow);
        let (src, dst) = (row.src, row.dst);
        match self.loads.best(&self.fabric, src, dst) {
            Some(choice) => self.put(flow, choice, reason),
            None => return self.strand(flow),
        }
        self.postpone(Side::Up, src);
        self.postpone(Side::Down, dst);
    }

    /// Returns the path for a flow among such loads where nothing moves, and whether that will do.
    pub(super) fn choose(&self, loads: &Loads, src: u32, dst: u32) -> Option<(u32, bool)> {
        match self.is_balancing() {
            true => loads.roomiest(src, dst),
            false => loads
                .best(&self.fabric, src, dst)
                .map(|choice| (choice, true)),
        }
    }

    /// Returns whether a path is as good as the one that would be chosen.
    pub(super) fn is_good(&self, loads: &Loads, src: u32, dst: u32, choice: u32) -> bool {
        let Some(load) = loads.busiest(&self.fabric, src, dst, choice) else {
            return false;
        };
        if self.is_balancing() {
            let has_room = |side, tor| loads.has_room(side, tor, choice);
            return has_room(Side::Up, src) && has_room(Side::Down, dst);
        }
        let best = loads.best(&self.fabric, src, dst);
        let least = best.and_then(|best| loads.busiest(&self.fabric, src, dst, best));
        least.is_some_and(|least| load <= least)
    }

    /// Moves the fewest flows that make room for one more from a ToR to another, and says in which
    /// column.
    fn make_room(&mut self, src: u32, dst: u32) -> Option<u32> {
        let columns = 0..narrow(self.loads.columns());
        let loads = &self.loads;
        let free = |side, tor| {
            let columns = columns.clone();
            columns.filter(move |&column| loads.has_room(side, tor, column))
        };
        let mut tries = self.options.tries;
        let mut limit = self.options.most_moves;
        let mut found = None;
        // Only flows that this event brought move for nothing.
        let least = u32::from(self.touched.is_empty());
        self.chains.begin(self.flows.row_count());
        'search: for above in free(Side::Up, src) {
            for below in free(Side::Down, dst) {
                let starts = [
                    (above, Side::Down, dst, above, below),
                    (below, Side::Up, src, below, above),
                ];
                for (column, side, tor, over, other) in starts {
                    let start = Start {
                        side,
                        tor,
                        over,
                        other,
                    };
                    if loads.is_dead(loads.slot(side, tor, over)) {
                        continue;
                    }
                    let cost = self.chains.try_one(&self.flows, loads, start, limit);
                    if let Some(cost) = cost {
                        found = Some(column);
                        if cost <= least {
                            break 'search;
                        }
                        limit = cost - 1;
                    }
                }
                tries = tries.saturating_sub(1);
                if tries == 0 {
                    break 'search;
                }
            }
        }
        found.inspect(|_| self.follow(Reason::Room))
    }

    /// Flows of the cheapest chain move.
    fn follow(&mut self, reason: Reason) {
        for i in 0..self.chains.cheapest().len() {
            let (flow, column) = self.chains.cheapest()[i];
            let row = self.flows.row(flow);
            let slots = self.fabric.slots_of(row.src, row.dst, row.choice);
            self.flows.leave(flow, slots.iter());
            self.loads.take(slots.iter());
            self.fullness.extend(slots.iter().map(narrow));
            self.enter(flow, column);
            let row = self.flows.row(flow);
            // What this event placed or cut keeps that reason.
            if !row.is_touched || row.reason == Reason::Held {
                self.touch(flow, reason);
            }
        }
    }

    /// A ToR's links may have more than their share, and it was too dear to change that.
    fn postpone(&mut self, side: Side, tor: u32) {
        let place = side as usize * self.loads.tors() + tor as usize;
        if !std::mem::replace(&mut self.is_pending[place], true) {
            self.pending.push_back((side, tor));
        }
    }

    /// The shares of a ToR's links may have fallen: flows move from links that have more, as far as that
    /// is worth it and no more than so many.
    pub(super) fn balance(&mut self, side: Side, tor: u32, left: &mut u64) {
        for over in 0..narrow(self.loads.columns()) {
            while self.loads.is_over(side, tor, over) {
                if *left == 0 || !self.relieve(side, tor, over) {
                    return self.postpone(side, tor);
                }
                *left -= 1;
            }
        }
    }

    /// Takes one flow from a link with more than its share.
    fn relieve(&mut self, side: Side, tor: u32, over: u32) -> bool {
        let mut limit = self.options.most_moves;
        let mut is_found = false;
        let least = u32::from(self.touched.is_empty());
        self.chains.begin(self.flows.row_count());
        let columns = 0..narrow(self.loads.columns());
        let loads = &self.loads;
        let free = columns.filter(|&column| loads.has_room(side, tor, column));
        for other in free.take(self.options.tries as usize) {
            let start = Start {
                side,
                tor,
                over,
                other,
            };
            let cost = self.chains.try_one(&self.flows, loads, start, limit);
            if let Some(cost) = cost {
                is_found = true;
                if cost <= least {
                    break;
                }
                limit = cost - 1;
            }
        }
        if is_found {
            self.follow(Reason::Balance);
        }
        is_found
    }

    /// Tries again what was too dear, for so many ToRs.
    pub(super) fn catch_up(&mut self, most: usize, left: &mut u64) {
        for _ in 0..most.min(self.pending.len()) {
            let Some((side, tor)) = self.pending.pop_front() else {
                return;
            };
            let place = side as usize * self.loads.tors() + tor as usize;
            self.is_pending[place] = false;
            self.balance(side, tor, left);
        }
    }
}
