//! What each event changes: which flows are there, which links, which hosts.

use std::collections::BTreeMap;

use super::Controller;
use super::event::{AnnouncedFlow, Command, FlowId, Reason};
use super::failover::Repairs;
use super::flows::{Key, NONE, Row};
use super::loads::Side;
use crate::id::{LinkId, NpuId, narrow};

impl Controller {
    /// The ToRs of a flow's ends.
    pub(super) fn ends(&self, flow: &AnnouncedFlow) -> Result<[u32; 2], Reason> {
        let tor = |nic: NpuId| {
            let is_gone = self.is_gone.get(nic.index()).copied();
            let tor = self.fabric.tor_of(nic).filter(|_| is_gone == Some(false));
            tor.ok_or(Reason::UnknownHost)
        };
        let [src, dst] = [tor(flow.src)?, tor(flow.dst)?];
        if src == dst {
            return Err(Reason::Local);
        }
        Ok([src, dst])
    }

    /// Returns whether a flow lacks its receiver alone, which is gone.
    fn may_come(&self, flow: &AnnouncedFlow) -> bool {
        let is_gone = |nic: NpuId| self.is_gone.get(nic.index()).copied();
        let have_tors = [flow.src, flow.dst].map(|nic| self.fabric.tor_of(nic).is_some());
        have_tors == [true; 2] && [flow.src, flow.dst].map(is_gone) == [Some(false), Some(true)]
    }

    /// Flows start (section 3.5.4). Their ToRs' shares are those with all of them, and flows that hold a path
    /// already come before those that need one.
    pub(super) fn start(&mut self, announced: &[AnnouncedFlow], commands: &mut Vec<Command>) {
        let wanted = announced.iter().map(|flow| (*flow, None));
        let added = self.add(wanted, commands);
        for (flow, _) in added {
            let has_lost = self.flows.row(flow).told != NONE;
            let reason = if has_lost {
                Reason::Failure
            } else {
                Reason::New
            };
            self.place(flow, None, reason);
        }
    }

    /// Rows for flows, each with the choice that it would like; gives those that are still to be placed.
    pub(super) fn add(
        &mut self,
        announced: impl Iterator<Item = (AnnouncedFlow, Option<u32>)>,
        commands: &mut Vec<Command>,
    ) -> Vec<(u32, Option<u32>)> {
        let mut added = Vec::new();
        for (flow, wanted) in announced {
            if self.is_unplaced(flow.id) {
                continue;
            }
            match self.ends(&flow) {
                Err(reason) => {
                    self.end_id(flow.id);
                    if self.may_come(&flow) {
                        let held = None;
                        self.waiting.add(AnnouncedFlow { held, ..flow });
                    }
                    let flow = flow.id;
                    commands.push(Command::Revoke { flow, reason });
                }
                Ok(ends) => added.extend(self.add_one(&flow, ends).map(|row| (row, wanted))),
            }
        }
        let has_path = |&(flow, _): &(u32, Option<u32>)| self.flows.row(flow).told != NONE;
        if !added.iter().any(has_path) {
            return added;
        }
        let (held, mut new): (Vec<_>, Vec<_>) = added.into_iter().partition(has_path);
        for (flow, wanted) in held {
            let row = self.flows.row(flow);
            let (src, dst, told) = (row.src, row.dst, row.told);
            match self.loads.busiest(&self.fabric, src, dst, told) {
                Some(_) => self.put(flow, told, Reason::Held),
                None => new.push((flow, wanted)),
            }
        }
        new
    }

    fn add_one(&mut self, flow: &AnnouncedFlow, [src, dst]: [u32; 2]) -> Option<u32> {
        self.waiting.remove(flow.id);
        if let Some(known) = self.flows.find(flow.id) {
            let row = self.flows.row_mut(known);
            if [row.src, row.dst] == [src, dst] && row.from == flow.src && row.job == flow.job {
                row.bytes = flow.bytes;
                row.is_fixed = flow.is_fixed;
                if !row.is_touched {
                    let has_path = row.choice != NONE;
                    self.touch(
                        known,
                        if has_path {
                            Reason::Held
                        } else {
                            Reason::NoPath
                        },
                    );
                }
                return None;
            }
            self.end(known);
        }
        let held = flow.held.filter(|&choice| {
            let slots = self.fabric.slots(src, dst, choice);
            slots.is_some()
        });
        let row = self.flows.add(Row {
            id: flow.id,
            job: flow.job,
            from: flow.src,
            src,
            dst,
            choice: NONE,
            told: held.unwrap_or(NONE),
            is_fixed: flow.is_fixed,
            bytes: flow.bytes,
            rate: 0,
            revision: 0,
            is_acknowledged: false,
            is_live: true,
            reason: Reason::New,
            is_touched: false,
            is_asked: false,
        });
        self.expect(row);
        Some(row)
    }

    /// Returns whether the event under way has announced a flow already.
    fn is_unplaced(&self, id: FlowId) -> bool {
        let has_no_path = |flow| self.flows.row(flow).choice == NONE;
        self.flows.find(id).is_some_and(has_no_path) && !self.stranded.contains(&id)
    }

    pub(super) fn progress(&mut self, left: &[(FlowId, u64)]) {
        for &(id, bytes) in left {
            if let Some(flow) = self.flows.find(id) {
                self.flows.row_mut(flow).bytes = bytes;
            }
        }
    }

    pub(super) fn end_id(&mut self, id: FlowId) {
        self.waiting.remove(id);
        if let Some(flow) = self.flows.find(id) {
            self.end(flow);
        }
    }

    pub(super) fn end(&mut self, flow: u32) {
        let row = self.flows.row(flow);
        self.fallen.push((Side::Up, row.src));
        self.fallen.push((Side::Down, row.dst));
        self.lift(flow);
        self.flows.remove(flow);
    }

    /// Hosts come: the flows that wait for them start.
    pub(super) fn come(&mut self, nics: &[NpuId], commands: &mut Vec<Command>) {
        self.set_gone(nics, false);
        let to = nics.iter().map(|&nic| Key::To(nic));
        let waiting: Vec<AnnouncedFlow> = to.flat_map(|key| self.waiting.take(key)).collect();
        self.start(&waiting, commands);
    }

    /// Hosts are gone, and what they send with them.
    pub(super) fn go(&mut self, nics: &[NpuId]) {
        for nic in self.set_gone(nics, true) {
            self.waiting.take(Key::From(nic));
            let flows: Vec<u32> = self.flows.from(nic).collect();
            flows.into_iter().for_each(|flow| self.end(flow));
        }
    }

    /// Notes which NICs are gone; gives those that the fabric has.
    fn set_gone(&mut self, nics: &[NpuId], are_gone: bool) -> Vec<NpuId> {
        let known = nics.iter().filter(|nic| nic.index() < self.is_gone.len());
        let known: Vec<NpuId> = known.copied().collect();
        for nic in &known {
            self.is_gone[nic.index()] = are_gone;
        }
        known
    }

    /// Of these links, those that work or have failed, with their slots; sorted.
    fn slots_that(&self, links: &[LinkId], are_dead: bool) -> Vec<(LinkId, usize)> {
        let slot = |&link: &LinkId| {
            let slot = *self.slot_of.get(link.index())?;
            let is_asked = slot != NONE && self.is_dead[link.index()] == are_dead;
            is_asked.then_some((link, slot as usize))
        };
        let mut found: Vec<_> = links.iter().filter_map(slot).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Flows over links that fail take other paths, in the order of their numbers.
    pub(super) fn fail(&mut self, links: &[LinkId], mut ready: Repairs) {
        let fresh = self.slots_that(links, false);
        let on = fresh.iter().flat_map(|&(_, slot)| self.flows.on(slot));
        let mut cut: Vec<(FlowId, u32)> = on.map(|flow| (self.flows.row(flow).id, flow)).collect();
        cut.sort_unstable();
        cut.dedup();
        for &(_, flow) in &cut {
            self.lift(flow);
        }
        for &(link, slot) in &fresh {
            self.is_dead[link.index()] = true;
            self.loads.set_there(slot, false);
        }
        for &(_, flow) in &cut {
            self.expect(flow);
        }
        let key: Vec<LinkId> = fresh.iter().map(|&(link, _)| link).collect();
        let ready: BTreeMap<u32, u32> = ready.remove(&key).into_iter().flatten().collect();
        for (_, flow) in cut {
            let choice = ready.get(&flow).copied();
            self.place(flow, choice, Reason::Failure);
            if choice.is_some_and(|choice| self.flows.row(flow).choice == choice) {
                self.touch(flow, Reason::Failover);
            }
        }
    }

    /// Links work again: flows without a path may have one, and ToRs spread theirs over more links.
    pub(super) fn restore(&mut self, links: &[LinkId]) {
        for (link, slot) in self.slots_that(links, true) {
            self.is_dead[link.index()] = false;
            self.loads.set_there(slot, true);
            let row = slot / self.loads.columns();
            if let Some(&side) = Side::BOTH.get(row / self.loads.tors()) {
                self.fallen.push((side, narrow(row % self.loads.tors())));
            }
        }
        let waiting: Vec<FlowId> = std::mem::take(&mut self.stranded).into_iter().collect();
        let waiting = waiting.iter().filter_map(|&id| self.flows.find(id));
        let waiting: Vec<u32> = waiting.collect();
        waiting.iter().for_each(|&flow| self.expect(flow));
        for flow in waiting {
            self.place(flow, None, Reason::Return);
        }
    }

    pub(super) fn acknowledged(&mut self, revision: u64, flows: &[FlowId]) {
        for &id in flows {
            if let Some(flow) = self.flows.find(id) {
                let row = self.flows.row_mut(flow);
                row.is_acknowledged |= row.revision <= revision;
            }
        }
    }

    /// Notes that everything that hosts hold is known: links with more than their share are relieved from now on.
    pub(super) fn recovered(&mut self) {
        self.is_recovering = false;
        for side in Side::BOTH {
            let tors = 0..narrow(self.loads.tors());
            self.fallen.extend(tors.map(|tor| (side, tor)));
        }
    }
}
