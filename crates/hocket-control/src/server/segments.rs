//! Paths have segments (SRv6) where the receiver's kernel takes them: another one drops the packets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hocket_base::id::NpuId;
use hocket_fabric::controller::{Command, Reason};

use super::Server;
use super::flow_numbers;
use crate::directory::HostId;
use crate::message::{FlowName, Path};

/// Whose kernels take segments.
#[derive(Clone, Debug)]
pub(super) struct Takers {
    /// Whether there are any segments.
    are_used: bool,
    /// By NIC: what its host said last.
    said: BTreeMap<NpuId, bool>,
    /// NICs whose hosts said something else before.
    changed: BTreeSet<NpuId>,
}

impl Takers {
    pub(super) fn new(are_used: bool) -> Self {
        Self {
            are_used,
            said: BTreeMap::new(),
            changed: BTreeSet::new(),
        }
    }
}

impl Server {
    /// A host says whether its kernel takes segments.
    pub(super) fn hear_of_segments(&mut self, host: HostId, takes: bool) {
        if !self.takers.are_used {
            return;
        }
        for nic in self.nics(host) {
            if self.takers.said.insert(nic, takes) != Some(takes) {
                self.takers.changed.insert(nic);
            }
        }
    }

    /// Hosts that have not come by now are counted among those that take none.
    pub(super) fn expect_no_segments(&mut self) {
        if self.takers.are_used {
            let missing: Vec<HostId> = self.missing().collect();
            let nics = missing.into_iter().flat_map(|host| self.nics(host));
            let nics: Vec<NpuId> = nics.collect();
            self.takers.changed.extend(nics);
        }
    }

    /// Returns a path as its sender is to be told it.
    pub(super) fn fit(&self, mut path: Arc<Path>, dst: NpuId, is_held: bool) -> Arc<Path> {
        // After a start, flows keep what they have until their receivers are heard.
        let unheard = is_held && self.recovering.is_some();
        let takes = self.takers.said.get(&dst).copied().unwrap_or(unheard);
        if !takes && !path.segments.is_empty() {
            Arc::make_mut(&mut path).segments.clear();
        }
        path
    }

    /// Paths to hosts that have changed what they take are told again.
    ///
    /// # Complexity
    /// O(flows) where any has.
    pub(super) fn retell_segments(&mut self) {
        let changed = std::mem::take(&mut self.takers.changed);
        if changed.is_empty() {
            return;
        }
        let path = |(flow, choice)| Command::Path {
            flow,
            choice,
            reason: Reason::Held,
        };
        let mut commands = Vec::new();
        for (row, host) in self.hosts.iter().zip(0..) {
            let flows = row.flows.iter();
            let to = flows.filter(|(_, flow)| changed.contains(&flow.nics[1]));
            let name = |id| flow_numbers::of(HostId(host), FlowName::Own(id));
            let told = to.filter_map(|(&id, flow)| Some((name(id), flow.told?)));
            commands.extend(told.map(path));
        }
        for (&id, job) in &self.jobs {
            let to = job.nics.iter().zip(0..);
            for (_, index) in to.filter(|([_, dst], _)| changed.contains(dst)) {
                let (flow, at) = (flow_numbers::pattern(id, index), index as usize);
                commands.extend(job.told[at].map(|choice| path((flow, choice))));
                let ahead = job.ahead[at].map(|choice| Command::Ahead { flow, choice });
                commands.extend(ahead);
            }
        }
        commands.into_iter().for_each(|command| self.obey(command));
    }
}
