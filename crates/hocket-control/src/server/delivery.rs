//! What the policy says becomes changes for hosts: numbered, sent, and sent again until they are acknowledged.

use std::sync::Arc;
use std::time::Duration;

use hocket_base::id::NpuId;
use hocket_base::units::Time;
use hocket_fabric::controller::{Command, Event, FlowId, Reason};

use super::Server;
use super::flow_numbers;
use super::host::Sent;
use super::output::{Close, Output};
use crate::directory::HostId;
use crate::message::{AT_ONCE, Change, FlowName, MOST_CHANGES, Path, ToHost};

impl Server {
    /// Tells the policy what happened, and hosts what it says.
    pub(super) fn tell(&mut self, event: Event) {
        let nanoseconds = u64::try_from(self.now.as_nanos()).unwrap_or(u64::MAX);
        let time = Time::from_ns(nanoseconds);
        let commands = self.policy.handle(time, &event);
        if self.options.keeps_log {
            self.log.events.push((time, event));
        }
        commands.into_iter().for_each(|command| self.obey(command));
    }

    pub(super) fn obey(&mut self, command: Command) {
        match command {
            Command::Path {
                flow,
                choice,
                reason,
            } => self.path(flow, choice, reason),
            Command::Ahead { flow, choice } => {
                let (_, name) = flow_numbers::parse(flow);
                let FlowName::Pattern { job, index } = name else {
                    return;
                };
                if let Some(known) = self.jobs.get_mut(&job) {
                    known.ahead[index as usize] = Some(choice);
                }
                if let (Some(host), Some(change)) =
                    (self.sender(flow), self.ahead(job, index, choice))
                {
                    self.push(host, change);
                }
            }
            Command::Rate {
                flow,
                bytes_per_second,
            } => {
                let Some(host) = self.sender(flow) else {
                    return;
                };
                let (_, name) = flow_numbers::parse(flow);
                if let Some(rate) = self.rate_mut(host, name) {
                    *rate = bytes_per_second;
                }
                self.push(
                    host,
                    Change::Rate {
                        flow: name,
                        bytes_per_second,
                    },
                );
            }
            Command::Revoke { flow, reason } => self.revoke(flow, reason),
        }
    }

    fn path(&mut self, flow: FlowId, choice: u32, reason: Reason) {
        let Some(host) = self.sender(flow) else {
            return;
        };
        let (_, name) = flow_numbers::parse(flow);
        let Some(nics) = self.note(host, name, Some(choice)) else {
            return;
        };
        let is_held = self.is_held(host, name);
        let change = match self.stages_of(nics, choice, is_held) {
            Some(path) => Change::Path {
                flow: name,
                ends: self.ends_of(name),
                path,
                reason,
            },
            None => Change::Revoke {
                flow: name,
                reason: Reason::NoPath,
            },
        };
        self.push(host, change);
    }

    fn revoke(&mut self, flow: FlowId, reason: Reason) {
        let Some(host) = self.sender(flow) else {
            return;
        };
        let (_, name) = flow_numbers::parse(flow);
        if self.note(host, name, None).is_some() {
            self.push(host, Change::Revoke { flow: name, reason });
        }
    }

    /// Returns the path of a pattern's flow that is likely to start.
    pub(super) fn ahead(&mut self, job: u32, index: u32, choice: u32) -> Option<Change> {
        let known = self.jobs.get(&job)?;
        let (nics, ends) = (known.nics[index as usize], known.ends(index));
        Some(Change::Ahead {
            job,
            index,
            ends,
            path: self.stages_of(nics, choice, false)?,
        })
    }

    /// Returns the host that sends a flow, if both are known.
    fn sender(&self, flow: FlowId) -> Option<HostId> {
        match flow_numbers::parse(flow) {
            (Some(host), _) => ((host.index()) < self.hosts.len()).then_some(host),
            (None, FlowName::Pattern { job, index }) => {
                let flow = self.jobs.get(&job)?.pattern.get(index as usize)?;
                Some(self.directory.at(flow.src)?.0)
            }
            (None, FlowName::Own(_)) => None,
        }
    }

    /// Notes the choice that a flow's host is told, and gives the flow's NICs.
    fn note(&mut self, host: HostId, name: FlowName, choice: Option<u32>) -> Option<[NpuId; 2]> {
        match name {
            FlowName::Own(flow) => {
                let flow = self.hosts[host.index()].flows.get_mut(&flow)?;
                flow.told = choice;
                flow.stamp = self.stamp;
                Some(flow.nics)
            }
            FlowName::Pattern { job, index } => {
                let job = self.jobs.get_mut(&job)?;
                *job.told.get_mut(index as usize)? = choice;
                job.stamps[index as usize] = self.stamp;
                Some(job.nics[index as usize])
            }
        }
    }

    fn rate_mut(&mut self, host: HostId, name: FlowName) -> Option<&mut u64> {
        match name {
            FlowName::Own(flow) => {
                let flow = self.hosts[host.index()].flows.get_mut(&flow)?;
                Some(&mut flow.rate)
            }
            FlowName::Pattern { job, index } => {
                let job = self.jobs.get_mut(&job)?;
                job.rates.get_mut(index as usize)
            }
        }
    }

    fn ends_of(&self, name: FlowName) -> Option<[std::net::IpAddr; 2]> {
        match name {
            FlowName::Own(_) => None,
            FlowName::Pattern { job, index } => Some(self.jobs.get(&job)?.ends(index)),
        }
    }

    fn stages_of(&mut self, nics: [NpuId; 2], choice: u32, is_held: bool) -> Option<Arc<Path>> {
        let [src, dst] = nics.map(|nic| self.policy.fabric().tor_of(nic));
        let path = self.stages.path(src?, dst?, choice)?;
        Some(self.fit(path, nics[1], is_held))
    }

    /// Returns whether a host took a path of the flow when it announced it.
    fn is_held(&self, host: HostId, name: FlowName) -> bool {
        let FlowName::Own(flow) = name else {
            return false;
        };
        let flow = self.hosts[host.index()].flows.get(&flow);
        flow.is_some_and(|flow| flow.said.held.is_some())
    }

    /// Paths that lead through the same switches as before links changed, but must be asked for in another way,
    /// are told again.
    pub(super) fn restage(&mut self) {
        let mut before = std::mem::take(&mut self.before);
        if before.is_empty() {
            return;
        }
        let stamp = self.stamp;
        let mut told = Vec::new();
        let mut note = |host, flow, nics, choice: Option<u32>, at: &mut u32| {
            let age = stamp.wrapping_sub(std::mem::replace(at, stamp)) as usize;
            told.extend(
                choice
                    .filter(|_| age > 0)
                    .map(|choice| (host, flow, nics, choice, age)),
            );
        };
        for (row, host) in self.hosts.iter_mut().zip(0..) {
            for (&id, flow) in &mut row.flows {
                note(
                    HostId(host),
                    FlowName::Own(id),
                    flow.nics,
                    flow.told,
                    &mut flow.stamp,
                );
            }
        }
        for (&id, job) in &mut self.jobs {
            for (&host, flows) in &job.senders {
                for &index in flows {
                    let (flow, at) = (FlowName::Pattern { job: id, index }, index as usize);
                    note(host, flow, job.nics[at], job.told[at], &mut job.stamps[at]);
                }
            }
        }
        for (host, flow, nics, choice, age) in told {
            let [src, dst] = nics.map(|nic| self.policy.fabric().tor_of(nic));
            let (Some(src), Some(dst)) = (src, dst) else {
                continue;
            };
            let Some(path) = self.stages.path(src, dst, choice) else {
                continue;
            };
            let then = before
                .len()
                .checked_sub(age)
                .and_then(|at| before.get_mut(at));
            let known = then.and_then(|stages| stages.path(src, dst, choice));
            if known.as_ref() != Some(&path) {
                let is_held = self.is_held(host, flow);
                let change = Change::Path {
                    flow,
                    ends: self.ends_of(flow),
                    path: self.fit(path, nics[1], is_held),
                    reason: Reason::Held,
                };
                self.push(host, change);
            }
        }
    }

    /// Puts a change for a host beside others of this input.
    pub(super) fn push(&mut self, host: HostId, change: Change) {
        self.outbox.entry(host).or_default().push(change);
    }

    /// Sends the changes of this input to hosts that have said what they have; others are told when they do.
    pub(super) fn flush(&mut self) {
        for (host, mut changes) in std::mem::take(&mut self.outbox) {
            while !changes.is_empty() {
                let rest = changes.split_off(changes.len().min(MOST_CHANGES));
                let some = std::mem::replace(&mut changes, rest);
                let is_refusal = |change: &Change| {
                    matches!(change, Change::Refuse { .. } | Change::RefuseJob { .. })
                };
                let has_refusal = some.iter().any(is_refusal);
                let count = some.len() as u64;
                let sent = self.send_numbered(host, |epoch, revision| ToHost::Changes {
                    epoch,
                    revision,
                    changes: some,
                });
                if !sent {
                    break;
                }
                self.metrics.changes += count;
                let row = &mut self.hosts[host.index()];
                if let Some(session) = row.session.as_mut().filter(|_| has_refusal) {
                    session.refused = row.revision;
                }
            }
            // It goes into the same batch.
            self.tell_taken(host, false);
        }
    }

    /// Sends a numbered message, which is kept until it is acknowledged; false where nobody would hear it.
    pub(super) fn send_numbered(
        &mut self,
        host: HostId,
        message: impl FnOnce(u64, u64) -> ToHost,
    ) -> bool {
        let (epoch, policy, at) = (self.epoch, self.policy.revision(), self.now);
        let row = &mut self.hosts[host.index()];
        let session = row
            .session
            .as_mut()
            .filter(|session| session.taken.is_some());
        let Some(session) = session else {
            return false;
        };
        row.revision += 1;
        let message = Arc::new(message(epoch, row.revision));
        session.window.push_back(Sent {
            revision: row.revision,
            at,
            message: message.clone(),
            policy,
        });
        let session_id = session.id;
        let is_slow = session.window.len() > self.options.most_unacknowledged;
        self.metrics.sent += 1;
        self.outputs.push(Output::Send {
            session: session_id,
            message,
        });
        if is_slow {
            self.close(host, Close::Slow);
        }
        true
    }

    /// Sends a message that has no number.
    pub(super) fn send(&mut self, host: HostId, message: ToHost) {
        if let Some(session) = &self.hosts[host.index()].session {
            let (session, message) = (session.id, Arc::new(message));
            self.metrics.sent += 1;
            self.outputs.push(Output::Send { session, message });
        }
    }

    /// A host has put revisions into effect.
    pub(super) fn acknowledged(&mut self, host: HostId, epoch: u64, revision: u64) {
        let row = &mut self.hosts[host.index()];
        if epoch != self.epoch || revision > row.revision {
            return self.close(host, Close::Nonsense);
        }
        let Some(session) = &mut row.session else {
            return;
        };
        let mut acknowledged = Vec::new();
        while session
            .window
            .front()
            .is_some_and(|sent| sent.revision <= revision)
        {
            acknowledged.extend(session.window.pop_front());
        }
        for sent in acknowledged {
            let ToHost::Changes { changes, .. } = &*sent.message else {
                continue;
            };
            let name = |change: &Change| match change {
                Change::Path { flow, .. } | Change::Revoke { flow, .. } => {
                    Some(flow_numbers::of(host, *flow))
                }
                _ => None,
            };
            let flows: Vec<FlowId> = changes.iter().filter_map(name).collect();
            if !flows.is_empty() {
                self.tell(Event::Acknowledged(sent.policy, flows));
            }
        }
        // What was sent long before and is not among it was lost.
        self.resend(host, self.options.resend);
    }

    /// Sends again to a host what it has not acknowledged for long.
    pub(super) fn resend(&mut self, host: HostId, patience: Duration) {
        let now = self.now;
        let Some(session) = &mut self.hosts[host.index()].session else {
            return;
        };
        let is_due = |sent: &Sent| now.saturating_sub(sent.at) >= patience;
        if !session.window.front().is_some_and(is_due) {
            return;
        }
        let id = session.id;
        for sent in session.window.iter_mut().take(AT_ONCE) {
            sent.at = now;
            let message = sent.message.clone();
            self.metrics.sent_again += 1;
            self.outputs.push(Output::Send {
                session: id,
                message,
            });
        }
    }
}
