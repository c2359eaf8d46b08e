//! What a server told a host since it welcomed it, and what the host may use by that.

use std::collections::{BTreeMap, BTreeSet};

use hocket_control::message::{Change, FlowName, Reason};

/// A choice that a host was told of a flow, and with which revision.
type Told = (u64, Option<u32>);

/// What a server told a host since it welcomed it.
#[derive(Clone, Debug, Default)]
pub(super) struct Story {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) told: BTreeMap<FlowName, Vec<Told>>,
    /// Jobs that went, when all was said, and jobs that are known and not live.
    pub(super) went: BTreeMap<u32, u64>,
    pub(super) idle: BTreeSet<u32>,
    pub(super) synced: Option<u64>,
}

impl Story {
    /// A flow of the host that has another path than it was told of last.
    pub(super) fn moves(&self, change: &Change) -> Option<(u64, Reason)> {
        let Change::Path {
            flow: flow @ FlowName::Own(id),
            path,
            reason,
            ..
        } = change
        else {
            return None;
        };
        let (_, told) = self.told.get(flow)?.last()?;
        told.is_some_and(|told| told != path.choice)
            .then_some((*id, *reason))
    }

    pub(super) fn note(&mut self, revision: u64, change: &Change) {
        let (flow, choice) = match change {
            Change::Path { flow, path, .. } => (*flow, Some(path.choice)),
            &Change::Ahead {
                job,
                index,
                ref path,
                ..
            } => (FlowName::Pattern { job, index }, Some(path.choice)),
            Change::Revoke { flow, .. } => (*flow, None),
            Change::Refuse { flow, .. } => (FlowName::Own(*flow), None),
            Change::JobGoes { job } => {
                self.went.entry(*job).or_insert(revision);
                let all = FlowName::Pattern {
                    job: *job,
                    index: 0,
                }..=FlowName::Pattern {
                    job: *job,
                    index: u32::MAX,
                };
                for (_, told) in self.told.range_mut(all) {
                    told.push((revision, None));
                }
                return;
            }
            Change::JobStops { job } => {
                self.idle.insert(*job);
                return;
            }
            _ => return,
        };
        self.told.entry(flow).or_default().push((revision, choice));
    }

    pub(super) fn allows(
        &self,
        flow: FlowName,
        choice: u32,
        acknowledged: u64,
        before: Option<u32>,
    ) -> bool {
        let told = self.told.get(&flow).map_or(&[][..], Vec::as_slice);
        let is_later = |&&(revision, _): &&Told| revision > acknowledged;
        if told
            .iter()
            .filter(is_later)
            .any(|&(_, told)| told == Some(choice))
        {
            return true;
        }
        match told.iter().rfind(|told| !is_later(told)) {
            Some(&(_, last)) => last == Some(choice),
            None => {
                let is_void = self.synced.is_some_and(|synced| synced <= acknowledged);
                // The next iteration may take the paths of the last.
                let is_idle = match flow {
                    FlowName::Pattern { job, .. } => {
                        let went = self.went.get(&job);
                        self.idle.contains(&job) && went.is_none_or(|&went| went > acknowledged)
                    }
                    FlowName::Own(_) => false,
                };
                before == Some(choice) && (!is_void || is_idle)
            }
        }
    }
}
