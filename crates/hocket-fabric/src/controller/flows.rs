//! Live flows: a slab of rows, each in the list of every link that it takes, of its job and of its sender. And flows
//! that wait for their receivers.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::event::{AnnouncedFlow, FlowId, JobId, Reason};
use crate::id::{NpuId, narrow};

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
    /// Whether it keeps what its host was told.
    pub(super) is_fixed: bool,
    /// Bytes left as reported last.
    pub(super) bytes: u64,
    /// As told last [bytes/s]; 0: nothing.
    pub(super) rate: u64,
    /// When it was told its path last, and whether its host has acknowledged that.
    pub(super) revision: u64,
    pub(super) is_acknowledged: bool,
    pub(super) is_live: bool,
    /// Why its path is as it is since the event that touched it last, and whether that is under way.
    pub(super) reason: Reason,
    pub(super) is_touched: bool,
    /// Whether its host is told in this event, even if its path stays.
    pub(super) is_asked: bool,
}

impl Row {
    /// Returns whether it may move to make room for another.
    pub(super) fn can_move(&self) -> bool {
        !self.is_fixed || self.choice != self.told
    }
}

/// Doubly linked lists through an arena of nodes that several kinds of lists share; a node is in one
/// list at most.
#[derive(Clone, Debug, Default)]
struct Nodes(Vec<[u32; 2]>);

impl Nodes {
    fn put(&mut self, head: &mut u32, node: u32) {
        let first = std::mem::replace(head, node);
        self.0[node as usize] = [NONE, first];
        if first != NONE {
            self.0[first as usize][0] = node;
        }
    }

    fn take(&mut self, head: &mut u32, node: u32) {
        let [before, after] = self.0[node as usize];
        match before {
            NONE => *head = after,
            _ => self.0[before as usize][1] = after,
        }
        if after != NONE {
            self.0[after as usize][0] = before;
        }
    }

    #[inline]
    fn after(&self, head: u32) -> impl Iterator<Item = u32> + '_ {
        let at = |node: u32| (node != NONE).then_some(node);
        std::iter::successors(at(head), move |&node| at(self.0[node as usize][1]))
    }
}

/// All live flows.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    rows: Vec<Row>,
    free: Vec<u32>,
    by_id: FxHashMap<FlowId, u32>,
    /// Flow `i` has `width` nodes from `i * width` on: for its sender, its job, and each link of its path.
    nodes: Nodes,
    width: u32,
    /// First nodes: by NIC, by job that has a number here, by slot of the fabric.
    by_sender: Vec<u32>,
    by_job: Vec<u32>,
    by_slot: Vec<u32>,
    jobs: FxHashMap<JobId, u32>,
}

impl Flows {
    /// For paths of so many links at most.
    pub(super) fn new(slots: usize, senders: usize, links: u32) -> Self {
        Self {
            rows: Vec::new(),
            free: Vec::new(),
            by_id: FxHashMap::default(),
            nodes: Nodes::default(),
            width: links + 2,
            by_sender: vec![NONE; senders],
            by_job: Vec::new(),
            by_slot: vec![NONE; slots],
            jobs: FxHashMap::default(),
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

    /// Returns a new flow, whose id is not live.
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
                self.nodes.0.resize(nodes, [NONE; 2]);
                narrow(self.rows.len()) - 1
            }
        };
        self.by_id.insert(id, flow);
        let node = flow * self.width;
        self.nodes.put(&mut self.by_sender[from.index()], node);
        let next = narrow(self.jobs.len());
        let job = *self.jobs.entry(job).or_insert(next);
        if job == next {
            self.by_job.push(NONE);
        }
        self.nodes.put(&mut self.by_job[job as usize], node + 1);
        flow
    }

    /// A flow has ended; its path must have been taken off before.
    pub(super) fn remove(&mut self, flow: u32) {
        let row = &mut self.rows[flow as usize];
        row.is_live = false;
        let (id, job, from) = (row.id, row.job, row.from);
        self.by_id.remove(&id);
        let node = flow * self.width;
        self.nodes.take(&mut self.by_sender[from.index()], node);
        let job = self.jobs[&job] as usize;
        self.nodes.take(&mut self.by_job[job], node + 1);
        self.free.push(flow);
    }

    /// A flow takes the links of these slots.
    pub(super) fn enter(&mut self, flow: u32, slots: impl Iterator<Item = usize>) {
        for (node, slot) in (flow * self.width + 2..).zip(slots) {
            self.nodes.put(&mut self.by_slot[slot], node);
        }
    }

    /// A flow takes them no longer.
    pub(super) fn leave(&mut self, flow: u32, slots: impl Iterator<Item = usize>) {
        for (node, slot) in (flow * self.width + 2..).zip(slots) {
            self.nodes.take(&mut self.by_slot[slot], node);
        }
    }

    /// Returns the flows that take the link of a slot, the one that came last first.
    #[inline]
    pub(super) fn on(&self, slot: usize) -> impl Iterator<Item = u32> + '_ {
        self.listed(self.by_slot[slot])
    }

    /// Returns the flows of a sender.
    pub(super) fn from(&self, sender: NpuId) -> impl Iterator<Item = u32> + '_ {
        self.listed(self.by_sender[sender.index()])
    }

    /// Returns the flows of a job.
    pub(super) fn of(&self, job: JobId) -> impl Iterator<Item = u32> + '_ {
        let job = self.jobs.get(&job);
        self.listed(job.map_or(NONE, |&job| self.by_job[job as usize]))
    }

    #[inline]
    fn listed(&self, head: u32) -> impl Iterator<Item = u32> + '_ {
        let width = self.width;
        self.nodes.after(head).map(move |node| node / width)
    }
}

/// What waiting flows are looked up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    To(NpuId),
    From(NpuId),
    Of(JobId),
}

/// Flows that were announced while their receivers were gone.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    flows: BTreeMap<FlowId, AnnouncedFlow>,
    by: BTreeSet<(Key, FlowId)>,
}

impl Waiting {
    fn keys(flow: &AnnouncedFlow) -> [(Key, FlowId); 3] {
        let keys = [Key::To(flow.dst), Key::From(flow.src), Key::Of(flow.job)];
        keys.map(|key| (key, flow.id))
    }

    /// A flow waits. Its number must not be among those that do.
    pub(super) fn add(&mut self, flow: AnnouncedFlow) {
        self.by.extend(Self::keys(&flow));
        self.flows.insert(flow.id, flow);
    }

    pub(super) fn remove(&mut self, flow: FlowId) -> Option<AnnouncedFlow> {
        let removed = self.flows.remove(&flow)?;
        for key in Self::keys(&removed) {
            self.by.remove(&key);
        }
        Some(removed)
    }

    /// Removes the flows of a key, and returns them in the order of their numbers.
    ///
    /// # Complexity
    /// O(flows of the key x log waiting).
    pub(super) fn take(&mut self, key: Key) -> Vec<AnnouncedFlow> {
        let of = (key, FlowId(0))..=(key, FlowId(u64::MAX));
        let of: Vec<FlowId> = self.by.range(of).map(|&(_, flow)| flow).collect();
        of.into_iter()
            .filter_map(|flow| self.remove(flow))
            .collect()
    }
}
