//! Sends that wait for what they pass on: what algorithms that list their steps are made of.

use std::ops::Range;

use super::Job;
use crate::id::{ChunkId, NpuId, narrow};
use crate::plan::{Chunks, LinkOrder, Op, Plan, PlanBuilder, Transfer, Wait};

/// A plan in the making. A send waits for whatever earlier sends bring of its chunks to its sender.
pub(super) struct Follow {
    plan: PlanBuilder,
    npus: usize,
    /// What has brought each chunk to each NPU, of chunk x NPUs.
    came: Vec<Wait>,
}

impl Follow {
    pub(super) fn new(job: &Job<'_>, chunks: Chunks) -> Self {
        let npus = job.topology.npu_count();
        Self {
            came: vec![Wait::NOTHING; npus * chunks.len()],
            plan: job.builder(chunks),
            npus,
        }
    }

    /// Makes links serve in the order of the sends.
    pub(super) fn in_order(mut self) -> Self {
        self.plan.link_order(LinkOrder::Plan);
        self
    }

    /// Adds chunks to what the receiver has.
    pub(super) fn reduce(&mut self, chunks: Range<u32>, src: NpuId, dst: NpuId) {
        let id = self.push(chunks.clone(), (src, dst), Op::Reduce, Wait::NOTHING);
        for chunk in chunks {
            let place = self.place(chunk, dst);
            self.came[place] = self.plan.all_of(&[self.came[place], id]);
        }
    }

    /// Copies chunks to a receiver, not before `also` has ended.
    pub(super) fn copy(&mut self, chunks: Range<u32>, src: NpuId, dst: NpuId, also: Wait) {
        let id = self.push(chunks.clone(), (src, dst), Op::Copy, also);
        for chunk in chunks {
            let place = self.place(chunk, dst);
            self.came[place] = id;
        }
    }

    /// Returns what has brought a chunk to an NPU.
    pub(super) fn came(&self, chunk: u32, npu: NpuId) -> Wait {
        self.came[self.place(chunk, npu)]
    }

    pub(super) fn finish(self) -> Plan {
        self.plan.finish()
    }

    fn place(&self, chunk: u32, npu: NpuId) -> usize {
        chunk as usize * self.npus + npu.index()
    }

    fn push(&mut self, chunks: Range<u32>, ends: (NpuId, NpuId), op: Op, also: Wait) -> Wait {
        let mut waits = vec![also];
        waits.extend(chunks.clone().map(|chunk| self.came(chunk, ends.0)));
        waits.dedup();
        let wait = self.plan.all_of(&waits);
        Wait::on(self.plan.push(Transfer {
            chunk: ChunkId(chunks.start),
            count: narrow(chunks.len()),
            src: ends.0,
            dst: ends.1,
            op,
            wait,
            path: None,
        }))
    }
}

/// One chunk.
pub(super) fn only(chunk: u32) -> Range<u32> {
    chunk..chunk + 1
}
