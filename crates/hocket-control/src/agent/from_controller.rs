//! What the controller says.

use std::sync::Arc;

use super::Agent;
use super::flow::{Kind, OpenFlow};
use super::output::{Output, SessionId, Why};
use super::session::Link;
use crate::message::{AT_ONCE, Change, FlowName, Path, Reason, Refusal, Terms, ToHost};

impl Agent {
    pub(super) fn hear(&mut self, session: SessionId, message: &ToHost) {
        if let Link::Up { heard, .. } = &mut self.link {
            *heard = self.now;
        }
        match message {
            &ToHost::Welcome {
                epoch,
                answers,
                revision,
                terms,
            } => {
                if matches!(self.link, Link::Greeting { hello, .. } if hello == answers) {
                    self.welcomed(session, epoch, revision, terms);
                }
            }
            ToHost::Changes {
                epoch,
                revision,
                changes,
            } => {
                if self.is_next(*epoch, *revision) {
                    changes.iter().for_each(|change| self.obey(change));
                }
            }
            ToHost::Synced { epoch, revision } => {
                if self.is_next(*epoch, *revision) {
                    self.synced();
                }
            }
            ToHost::Taken { sequence } => self.taken(*sequence),
            ToHost::Resync { .. } => {
                if let Link::Up { .. } = self.link {
                    self.metrics.resyncs += 1;
                    self.greet(session, self.now);
                }
            }
        }
    }

    fn welcomed(&mut self, session: SessionId, epoch: u64, revision: u64, terms: Terms) {
        if epoch < self.epoch {
            self.metrics.stale += 1;
            return self.disconnect(session);
        }
        if epoch > self.epoch {
            self.epoch = epoch;
            self.outputs.push(Output::Remember { epoch });
        }
        self.metrics.welcomes += 1;
        self.revision = revision;
        self.ahead = revision;
        self.terms = terms;
        self.backoff.reset();
        let flows = self.flows.values_mut();
        flows.for_each(|flow| flow.is_confirmed = false);
        self.patterns.doubt();
        self.link = Link::Up {
            session,
            heard: self.now,
            beat: self.now,
        };
        self.flush();
    }

    /// Returns whether a numbered message is the one that is to be put into effect now.
    fn is_next(&mut self, epoch: u64, revision: u64) -> bool {
        if !matches!(self.link, Link::Up { .. }) || epoch != self.epoch {
            return false;
        }
        let is_next = revision == self.revision.saturating_add(1);
        match () {
            () if is_next => {
                self.revision = revision;
                self.unsaid += 1;
            }
            () if revision <= self.revision => {
                self.metrics.duplicates += 1;
                // It may be that the host was not heard.
                self.unsaid = AT_ONCE;
            }
            () => {
                self.metrics.gaps += 1;
                self.ahead = self.ahead.max(revision);
            }
        }
        is_next
    }

    fn obey(&mut self, change: &Change) {
        match change {
            Change::Path {
                flow, ends, path, ..
            } => match *flow {
                FlowName::Own(id) => self.give(id, Some(path), None),
                FlowName::Pattern { job, index } => {
                    let Some(ends) = *ends else { return };
                    let unbound = self.patterns.take((job, index), ends, path);
                    self.unbind(unbound);
                    self.refresh((job, index), None);
                }
            },
            Change::Ahead {
                job,
                index,
                ends,
                path,
            } => {
                let unbound = self.patterns.foresee((*job, *index), *ends, path);
                self.unbind(unbound);
                self.refresh((*job, *index), None);
            }
            &Change::Rate {
                flow,
                bytes_per_second,
            } => self.rate(flow, bytes_per_second),
            &Change::Revoke { flow, reason } => match flow {
                FlowName::Own(id) => self.give(id, None, Some(reason)),
                FlowName::Pattern { job, index } => {
                    self.patterns.revoke((job, index), reason);
                    self.refresh((job, index), Some(Why::Revoked(reason)));
                }
            },
            &Change::JobStops { job } => self.patterns.stop(job),
            &Change::JobGoes { job } => {
                let unbound = self.patterns.go(job);
                self.unbind(unbound);
            }
            &Change::Refuse { flow, why } => self.refused(flow, why),
            &Change::RefuseJob { job, why } => {
                self.metrics.refused += 1;
                self.said.drop_job(job);
                self.jobs.remove(&job);
                self.outputs.push(Output::JobRefused { job, why });
            }
        }
    }

    /// The controller gives one of the host's flows a path, or takes it away.
    fn give(&mut self, id: u64, path: Option<&Arc<Path>>, reason: Option<Reason>) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        if flow.kind != Kind::Announced {
            return;
        }
        let is_other = flow.given.as_ref().map(|path| path.choice) != path.map(|path| path.choice);
        flow.given = path.cloned();
        flow.is_confirmed = true;
        self.renew(id, is_other, reason.map(Why::Revoked));
    }

    /// The flow that is one of a pattern uses its path.
    fn refresh(&mut self, key: (u32, u32), why: Option<Why>) {
        let entry = self.patterns.get(key);
        let Some((id, choice)) = entry.and_then(|entry| {
            let choice = entry.current().map(|path| path.choice);
            Some((entry.flow?, choice))
        }) else {
            return;
        };
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        // What it was given last is kept to tell whether the path is another.
        let path = self
            .patterns
            .get(key)
            .and_then(|entry| entry.current().cloned());
        let is_other = flow.given.as_ref().map(|path| path.choice) != choice;
        flow.given = path;
        self.renew(id, is_other, why);
    }

    fn rate(&mut self, flow: FlowName, bytes_per_second: u64) {
        let known = match flow {
            FlowName::Own(id) => self.flows.contains_key(&id).then_some(id),
            FlowName::Pattern { job, index } => {
                let entry = self.patterns.get_mut((job, index));
                entry.and_then(|entry| {
                    entry.rate = Some(bytes_per_second);
                    entry.flow
                })
            }
        };
        if let Some(flow) = known {
            self.outputs.push(Output::Rate {
                flow,
                bytes_per_second,
            });
        }
    }

    fn refused(&mut self, id: u64, why: Refusal) {
        self.metrics.refused += 1;
        self.said.end(id);
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        flow.kind = Kind::Refused(why);
        flow.given = None;
        flow.is_confirmed = true;
        let again = self.now.saturating_add(self.options.retry);
        self.timers.insert((again, id));
        self.renew(id, true, Some(Why::Refused(why)));
    }

    /// Flows of programs that were of a pattern are flows of their own.
    fn unbind(&mut self, flows: impl IntoIterator<Item = u64>) {
        for id in flows {
            self.announce(id);
            if self
                .flows
                .get(&id)
                .is_some_and(|flow| flow.kind == Kind::Announced)
            {
                self.settle(id, Some(Why::Forgotten));
            }
        }
    }

    /// Voids what the controller has not named since its welcome.
    fn synced(&mut self) {
        let is_void = |flow: &OpenFlow| {
            flow.kind == Kind::Announced && !flow.is_confirmed && flow.given.is_some()
        };
        let void = self.flows.iter().filter(|(_, flow)| is_void(flow));
        let void: Vec<u64> = void.map(|(&id, _)| id).collect();
        for id in void {
            if let Some(flow) = self.flows.get_mut(&id) {
                flow.given = None;
            }
            self.renew(id, true, Some(Why::Forgotten));
        }
        let unbound = self.patterns.drop_doubted();
        self.unbind(unbound);
    }
}
