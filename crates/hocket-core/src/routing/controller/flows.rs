//! Live flows: a slab of rows, each in the list of every link that it takes, of its job and of its sender.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::event::{FlowId, JobId, Reason};
use crate::id::NpuId;

/// No row, no choice.
pub(super) const NONE: u32 = u32::MAX;

/// A live flow.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: FlowId,
    pub(super) job: JobId,
    pub(super) from: NpuId,
    pub(super) src: u32,
    pub(super) dst: u32,
    /// The path, and what its host was told last.
    pub(super) choice: u32,
    pub(super) told: u32,
    /// Bytes left as reported last.
    pub(super) bytes: u64,
    /// As told last [bytes/s]; 0: nothing.
    pub(super) rate: u64,
    /// When it was told its path last, and whether its host has acknowledged that.
    pub(super) revision: u64,
    pub(super) is_acknowledged: bool,
    pub(super) is_live: bool,
    /// Why its path is as it is since the event that touched it last.
    pub(super) reason: Reason,
    pub(super) touched: u64,
}

/// Quick hashing of numbers: multiply and turn.
#[derive(Clone, Copy, Default)]
pub(super) struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Doubly linked lists through an arena of nodes; a node is in one list at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    heads: Vec<u32>,
    /// Before and after.
    nodes: Vec<[u32; 2]>,
}

impl Lists {
    pub(super) fn new(count: usize) -> Self {
        Self {
            heads: vec![NONE; count],
            nodes: Vec::new(),
        }
    }

    fn put(&mut self, list: usize, node: u32) {
        let first = std::mem::replace(&mut self.heads[list], node);
        self.nodes[node as usize] = [NONE, first];
        if first != NONE {
            self.nodes[first as usize][0] = node;
        }
    }

    fn take(&mut self, list: usize, node: u32) {
        let [before, after] = self.nodes[node as usize];
        match before {
            NONE => self.heads[list] = after,
            _ => self.nodes[before as usize][1] = after,
        }
        if after != NONE {
            self.nodes[after as usize][0] = before;
        }
    }
}

/// All live flows.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    rows: Vec<Row>,
    free: Vec<u32>,
    by_id: HashMap<FlowId, u32, BuildHasherDefault<Quick>>,
    /// One for each slot of the fabric; flow `i` has `width` nodes, one for each link of its path.
    by_slot: Lists,
    width: u32,
    /// One for each NIC.
    by_sender: Lists,
    /// One for each job that has a number here.
    by_job: Lists,
    jobs: HashMap<JobId, u32, BuildHasherDefault<Quick>>,
}

impl Flows {
    pub(super) fn new(slots: usize, senders: usize, width: u32) -> Self {
        Self {
            rows: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::default(),
            by_slot: Lists::new(slots),
            width,
            by_sender: Lists::new(senders),
            by_job: Lists::new(0),
            jobs: HashMap::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// One more than the highest row.
    pub(super) fn row_count(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn find(&self, id: FlowId) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    #[inline]
    pub(super) fn row(&self, flow: u32) -> &Row {
        &self.rows[flow as usize]
    }

    #[inline]
    pub(super) fn row_mut(&mut self, flow: u32) -> &mut Row {
        &mut self.rows[flow as usize]
    }

    /// Live rows, in order of their places.
    pub(super) fn live(&self) -> impl Iterator<Item = (u32, &Row)> {
        (0..).zip(&self.rows).filter(|(_, row)| row.is_live)
    }

    /// A new flow, whose id is not live.
    pub(super) fn add(&mut self, row: Row) -> u32 {
        let (id, job, from) = (row.id, row.job, row.from);
        let flow = match self.free.pop() {
            Some(flow) => {
                self.rows[flow as usize] = row;
                flow
            }
            None => {
                self.rows.push(row);
                let nodes = self.rows.len() * self.width as usize;
                self.by_slot.nodes.resize(nodes, [NONE; 2]);
                self.by_sender.nodes.push([NONE; 2]);
                self.by_job.nodes.push([NONE; 2]);
                self.rows.len() as u32 - 1
            }
        };
        self.by_id.insert(id, flow);
        self.by_sender.put(from.index(), flow);
        let next = self.jobs.len() as u32;
        let job = *self.jobs.entry(job).or_insert(next);
        if job == next {
            self.by_job.heads.push(NONE);
        }
        self.by_job.put(job as usize, flow);
        flow
    }

    /// A flow has ended; its path must have been taken off before.
    pub(super) fn remove(&mut self, flow: u32) {
        let row = &mut self.rows[flow as usize];
        row.is_live = false;
        let (id, job, from) = (row.id, row.job, row.from);
        self.by_id.remove(&id);
        self.by_sender.take(from.index(), flow);
        self.by_job.take(self.jobs[&job] as usize, flow);
        self.free.push(flow);
    }

    /// A flow takes the links of these slots.
    pub(super) fn enter(&mut self, flow: u32, slots: impl Iterator<Item = usize>) {
        for (node, slot) in (flow * self.width..).zip(slots) {
            self.by_slot.put(slot, node);
        }
    }

    /// A flow takes them no longer.
    pub(super) fn leave(&mut self, flow: u32, slots: impl Iterator<Item = usize>) {
        for (node, slot) in (flow * self.width..).zip(slots) {
            self.by_slot.take(slot, node);
        }
    }

    /// Flows that take the link of a slot, the one that came last first.
    #[inline]
    pub(super) fn on(&self, slot: usize) -> impl Iterator<Item = u32> + '_ {
        let width = self.width;
        chained(&self.by_slot, slot).map(move |node| node / width)
    }

    /// Flows of a sender.
    pub(super) fn from(&self, sender: NpuId) -> impl Iterator<Item = u32> + '_ {
        chained(&self.by_sender, sender.index())
    }

    /// Flows of a job.
    pub(super) fn of(&self, job: JobId) -> impl Iterator<Item = u32> + '_ {
        let list = self.jobs.get(&job);
        list.into_iter()
            .flat_map(|&list| chained(&self.by_job, list as usize))
    }
}

#[inline]
fn chained(lists: &Lists, list: usize) -> impl Iterator<Item = u32> + '_ {
    let first = lists.heads.get(list).copied().unwrap_or(NONE);
    let at = |node: u32| (node != NONE).then_some(node);
    std::iter::successors(at(first), move |&node| at(lists.nodes[node as usize][1]))
}
