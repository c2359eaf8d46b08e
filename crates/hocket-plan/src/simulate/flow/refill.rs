//! How rates are found after a change: level by level, where something changes only.
//!
//! A server has a level: the rate at which it stops flows, if it does. A flow's rate is the lowest level
//! on its way, or its own most. Whether a server stops its flows at a level depends on the rates below
//! that level alone, and on which flows come so far. So a sweep over the levels, upwards, meets each
//! server that may have another level than before once all that it depends on is known:
//!
//! - A server at whose level fewer flows arrive, or slower ones, than before, may no longer stop them. Those that
//!   nothing else stops there grow; servers on their way may become full, at levels further up.
//! - A server that becomes full below the rates that its flows had stops them, for good: there is more for
//!   others, at levels further up.
//!
//! All other flows keep their rates, and servers that only they pass are not looked at. A server on which
//! a flow grows is looked at no sooner than it could be full if all others kept their rates: one with
//! much to spare, not at all. This is the incremental shortest paths of Ramalingam and Reps, with
//! progressive filling for relaxation.
//!
//! # Source
//! Progressive filling: Bertsekas and Gallager, Data Networks, section 6.5.2. Sweep: Ramalingam and Reps,
//! An incremental algorithm for a generalization of the shortest-path problem, J. Algorithms 21, 1996.

use std::cmp::Reverse;

use super::fair::{Fair, NONE, Server, State};

impl Fair {
    /// Finds all rates after flows came or went. Puts into `flows` those that came and those whose rate
    /// is another than before, each once, and gives how many passages it looked at.
    ///
    /// # Complexity
    /// O(passages of the servers whose level may have changed, each log of them), each server once.
    pub fn refill(&mut self, flows: &mut Vec<u32>) -> usize {
        self.work = 0;
        flows.clear();
        std::mem::swap(flows, &mut self.moved);
        self.take_changes();
        while let Some(level) = self.next_level() {
            self.judge_servers(level);
            self.stop_flows(level);
            self.grow_flows(level);
        }
        for server in self.touched.drain(..) {
            let server = &mut self.servers[server as usize];
            debug_assert!(server.is_open || server.growing == 0);
            server.is_touched = false;
            server.is_open = false;
            server.growing = 0;
        }
        self.kept.clear();
        for flow in self.renewed.drain(..) {
            if self.flows[flow as usize].state == State::Kept {
                self.moved.push(flow);
            }
        }
        for &flow in &self.moved {
            self.flows[flow as usize].state = State::Kept;
        }
        std::mem::swap(flows, &mut self.moved);
        self.work
    }

    fn next_level(&self) -> Option<u128> {
        let level = |&Reverse((level, _)): &_| level;
        let server = self.events.peek().map(level);
        let flow = self.mosts.peek().map(level);
        server.into_iter().chain(flow).min()
    }

    /// Decides of each server that is due at a level whether it stops its flows there, before any does.
    fn judge_servers(&mut self, level: u128) {
        while let Some(&Reverse((due, number))) = self.events.peek() {
            if due != level {
                return;
            }
            self.events.pop();
            if self.servers[number as usize].key != level {
                continue;
            }
            self.servers[number as usize].key = NONE;
            if let Some(key) = self.judge(number, level) {
                self.watch(number, key);
            }
        }
    }

    /// Returns the level at which it is to be looked at again, unless it stops its flows now.
    fn judge(&mut self, number: u32, level: u128) -> Option<u128> {
        let server = &self.servers[number as usize];
        if !server.is_open {
            let bound = self.bound(server);
            if server.level > level && bound > level {
                return Some(bound.min(server.level));
            }
            self.open(number, level);
        }
        self.settle_kept(number, level);
        let share = self.share(&self.servers[number as usize]);
        let server = &mut self.servers[number as usize];
        debug_assert!(share >= level, "a share only grows");
        if share == level {
            server.level = level;
            self.full.push(number);
            return None;
        }
        if server.level == level {
            server.level = NONE;
            self.eased.push(number);
        }
        Some(share.min(server.level))
    }

    /// Returns what each growing flow of an open server can have, if all others that are not settled grow too.
    fn share(&self, server: &Server) -> u128 {
        let share = server.left.checked_div(u128::from(server.growing));
        share.map_or(NONE, |share| self.round(share))
    }

    /// No level below this stops the growing flows of a server that is not open.
    ///
    /// The others have at most what they had, and one step each.
    fn bound(&self, server: &Server) -> u128 {
        let steps = server.load.checked_shr(self.bits - 1).unwrap_or(0);
        let others = u128::from(server.weight - server.growing);
        let spare = server.room - server.load;
        match spare.checked_sub(steps + others) {
            None => 0,
            Some(spare) => {
                let share = spare.checked_div(u128::from(server.growing));
                share.map_or(NONE, |share| self.round(share))
            }
        }
    }

    fn round(&self, rate: u128) -> u128 {
        let surplus = (u128::BITS - rate.leading_zeros()).saturating_sub(self.bits);
        rate >> surplus << surplus
    }

    /// Looks at all flows of a server: what those have that stay below a level, who may still grow.
    fn open(&mut self, number: u32, level: u128) {
        let server = &mut self.servers[number as usize];
        server.is_open = true;
        server.left = server.room;
        server.growing = 0;
        self.work += server.crossing.len();
        let from = self.kept.len();
        for crossing in &server.crossing {
            let flow = &self.flows[crossing.flow as usize];
            let is_settled = match flow.state {
                State::Kept => flow.rate < level,
                State::Growing => false,
                State::Stopped => true,
            };
            if is_settled {
                server.left -= u128::from(crossing.weight) * flow.rate;
                continue;
            }
            server.growing += u64::from(crossing.weight);
            if flow.state == State::Kept {
                self.kept.push((flow.rate, crossing.flow, crossing.weight));
            }
        }
        self.kept[from..].sort_unstable();
        server.kept = (from, self.kept.len());
    }

    /// Takes flows that kept a rate below a level off what an open server has.
    fn settle_kept(&mut self, number: u32, level: u128) {
        let server = &mut self.servers[number as usize];
        let (from, to) = &mut server.kept;
        while from < to && self.kept[*from].0 < level {
            let (rate, flow, weight) = self.kept[*from];
            *from += 1;
            if self.flows[flow as usize].state == State::Kept {
                server.left -= u128::from(weight) * rate;
                server.growing -= u64::from(weight);
            }
        }
    }

    /// Stops all that is faster than a level on the servers that are full, and what has its most.
    fn stop_flows(&mut self, level: u128) {
        while let Some(number) = self.full.pop() {
            let crossings = std::mem::take(&mut self.servers[number as usize].crossing);
            for crossing in &crossings {
                let flow = &self.flows[crossing.flow as usize];
                match flow.state {
                    State::Growing => self.stop(crossing.flow, level),
                    State::Kept if flow.rate > level => self.stop(crossing.flow, level),
                    _ => {}
                }
            }
            self.servers[number as usize].crossing = crossings;
        }
        while let Some(&Reverse((most, flow))) = self.mosts.peek() {
            if most != level {
                return;
            }
            self.mosts.pop();
            if self.flows[flow as usize].state == State::Growing {
                self.stop(flow, level);
            }
        }
    }

    fn stop(&mut self, number: u32, rate: u128) {
        let flow = &mut self.flows[number as usize];
        let before = std::mem::replace(&mut flow.state, State::Stopped);
        let loss = flow.rate.wrapping_sub(rate);
        flow.rate = rate;
        if before == State::Kept {
            self.moved.push(number);
        }
        let passes = std::mem::take(&mut flow.passes);
        for (pass, _) in &passes {
            let server = &mut self.servers[pass.server as usize];
            let weight = u128::from(pass.weight);
            let is_open = server.is_open;
            if before == State::Growing {
                server.load += weight * rate;
            } else {
                server.load -= weight * loss;
            }
            if is_open {
                server.left -= weight * rate;
            }
            if is_open || before == State::Growing {
                server.growing -= u64::from(pass.weight);
            } else {
                self.watch(pass.server, self.servers[pass.server as usize].level);
            }
        }
        self.flows[number as usize].passes = passes;
    }

    /// Grows the flows that nothing stops at a level any more.
    fn grow_flows(&mut self, level: u128) {
        while let Some(number) = self.eased.pop() {
            let crossings = std::mem::take(&mut self.servers[number as usize].crossing);
            for crossing in &crossings {
                let flow = &self.flows[crossing.flow as usize];
                let is_at_level = flow.state == State::Kept && flow.rate == level;
                if !is_at_level || flow.most == level {
                    continue;
                }
                let mut passes = flow.passes.iter();
                if passes.all(|(pass, _)| self.servers[pass.server as usize].level != level) {
                    self.grow(crossing.flow, level);
                }
            }
            self.servers[number as usize].crossing = crossings;
        }
    }

    fn grow(&mut self, number: u32, level: u128) {
        self.moved.push(number);
        let flow = &mut self.flows[number as usize];
        flow.state = State::Growing;
        for (pass, _) in &flow.passes {
            let server = &mut self.servers[pass.server as usize];
            server.load -= u128::from(pass.weight) * flow.rate;
            if !server.is_open {
                server.growing += u64::from(pass.weight);
            }
        }
        self.watch_growth(number, level);
    }

    /// Looks at what a growing flow passes when it may become full.
    pub(super) fn watch_growth(&mut self, number: u32, level: u128) {
        let passes = std::mem::take(&mut self.flows[number as usize].passes);
        for (pass, _) in &passes {
            let server = &self.servers[pass.server as usize];
            if !server.is_open {
                let key = self.bound(server).max(level).min(server.level);
                self.watch(pass.server, key);
            }
        }
        let flow = &mut self.flows[number as usize];
        flow.passes = passes;
        if flow.most != NONE {
            self.mosts.push(Reverse((flow.most, number)));
        }
    }

    /// Looks at a server at a level, or sooner.
    pub(super) fn watch(&mut self, number: u32, level: u128) {
        let server = &mut self.servers[number as usize];
        if !std::mem::replace(&mut server.is_touched, true) {
            self.touched.push(number);
        }
        if level < server.key {
            server.key = level;
            self.events.push(Reverse((level, number)));
        }
    }
}
