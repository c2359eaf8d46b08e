//! What the groups of a job do in a communication phase: the transfers of a plan among ranks.

use std::collections::HashMap;
use std::sync::Arc;

use crate::id::{TransferId, narrow};
use crate::plan::{Plan, WaitGraph};
use crate::simulate::Ready;

/// When a transfer may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounds {
    /// When what it waits for in the plan has arrived.
    #[default]
    Data,
    /// When all transfers of its group that are fewer waits deep have arrived: a ring's round starts
    /// when the slowest flow of the one before has ended.
    LockStep,
}

/// A plan among ranks 0, 1, ... that every group of a job follows, each with its own GPUs as ranks.
///
/// A pair of ranks, one of which sends to the other, is a *channel*: one connection, which carries one
/// transfer at a time, in the order in which they may start.
#[derive(Clone, Debug)]
pub struct Pattern {
    plan: Arc<Plan>,
    waits: Arc<WaitGraph>,
    channels: Vec<(u32, u32)>,
    channel_bytes: Vec<u64>,
    /// By transfer.
    channel_of: Vec<u32>,
    /// Transfers by how many waits deep they are; empty unless rounds are in lock step.
    levels: Vec<Vec<u32>>,
    ranks: usize,
}

impl Pattern {
    /// Returns the pattern of a plan, whose NPUs are the ranks; waits must not go in circles, as verified plans' do
    /// not.
    ///
    /// # Complexity
    /// O(transfers and waits) time and memory.
    pub fn new(plan: Arc<Plan>, rounds: Rounds) -> Self {
        let mut known = HashMap::new();
        let mut channels = Vec::new();
        let mut channel_bytes: Vec<u64> = Vec::new();
        let mut channel_of = Vec::with_capacity(plan.len());
        let pairs = plan.src().iter().copied().zip(plan.dst().iter().copied());
        for (transfer, pair) in pairs.enumerate() {
            let next = narrow(channels.len());
            let channel = *known.entry(pair).or_insert(next);
            if channel == next {
                channels.push(pair);
                channel_bytes.push(0);
            }
            let sum = &mut channel_bytes[channel as usize];
            *sum = sum.saturating_add(plan.bytes(TransferId(narrow(transfer))));
            channel_of.push(channel);
        }
        let ends = plan.src().iter().chain(plan.dst());
        let ranks = ends.max().map_or(0, |&last| last as usize + 1);
        let waits = Arc::new(WaitGraph::new(&plan));
        let levels = match rounds {
            Rounds::Data => Vec::new(),
            Rounds::LockStep => levels(&plan, &waits),
        };
        Self {
            plan,
            waits,
            channels,
            channel_bytes,
            channel_of,
            levels,
            ranks,
        }
    }

    /// One more than the highest rank that sends or receives.
    pub fn rank_count(&self) -> usize {
        self.ranks
    }

    /// Pairs of ranks (source, destination) that share a connection.
    pub fn channels(&self) -> &[(u32, u32)] {
        &self.channels
    }

    /// Returns the bytes that go over each channel in a phase; saturates at `u64::MAX`.
    pub fn bytes_by_channel(&self) -> &[u64] {
        &self.channel_bytes
    }

    pub(super) fn bytes(&self, transfer: u32) -> u64 {
        self.plan.bytes(TransferId(transfer))
    }

    pub(super) fn channel_of(&self, transfer: u32) -> u32 {
        self.channel_of[transfer as usize]
    }

    pub(super) fn transfer_count(&self) -> usize {
        self.plan.len()
    }
}

/// Returns how many waits deep each transfer is, turned around.
fn levels(plan: &Plan, waits: &Arc<WaitGraph>) -> Vec<Vec<u32>> {
    let mut ready = Ready::following(plan, waits);
    let mut levels = Vec::new();
    let mut level = Vec::new();
    ready.at_first(plan, |transfer| level.push(transfer));
    while !level.is_empty() {
        let mut next = Vec::new();
        for &transfer in &level {
            ready.end(transfer, |freed| next.push(freed));
        }
        next.sort_unstable();
        levels.push(std::mem::replace(&mut level, next));
    }
    levels
}

/// How far one group is in its phase.
pub(super) struct Course {
    ready: Ready,
    ended: usize,
    /// Level under way and how many of it have not ended; in lock step.
    level: usize,
    open: usize,
}

impl Course {
    /// Starts a phase and gives the transfers that may start.
    pub(super) fn start(pattern: &Pattern, begin: &mut Vec<u32>) -> Self {
        let mut course = Self {
            ready: Ready::following(&pattern.plan, &pattern.waits),
            ended: 0,
            level: 0,
            open: 0,
        };
        match pattern.levels.first() {
            Some(first) => {
                course.open = first.len();
                begin.extend(first);
            }
            None => {
                let start = |transfer| begin.push(transfer);
                course.ready.at_first(&pattern.plan, start);
            }
        }
        course
    }

    /// A transfer has arrived: gives those that may start now, and says whether it was the last.
    pub(super) fn end(&mut self, pattern: &Pattern, transfer: u32, begin: &mut Vec<u32>) -> bool {
        self.ended += 1;
        if pattern.levels.is_empty() {
            self.ready.end(transfer, |next| begin.push(next));
        } else {
            self.open -= 1;
            if self.open == 0 {
                self.level += 1;
                if let Some(next) = pattern.levels.get(self.level) {
                    self.open = next.len();
                    begin.extend(next);
                }
            }
        }
        self.ended == pattern.transfer_count()
    }
}
