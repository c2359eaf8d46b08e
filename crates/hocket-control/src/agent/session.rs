//! The session with the controller: what is said, in order, until it is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Agent;
use super::flow::Kind;
use super::output::{Output, SessionId};
use crate::digest::{Digest, of_pattern};
use crate::message::{AT_ONCE, FromHost, Hello, HostFlow, HostJob, MOST_FLOWS, VERSION};

/// Where the agent stands with the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// There is no session; the next try is then.
    Away { until: Duration },
    /// A connection is being made.
    Connecting { since: Duration },
    /// [`Hello`] has been said and not answered.
    Greeting {
        session: SessionId,
        since: Duration,
        said: Duration,
        hello: u64,
    },
    /// The controller has welcomed the host; when it was heard last, and when the last beat was.
    Up {
        session: SessionId,
        heard: Duration,
        beat: Duration,
    },
}

/// Something that the controller is to hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Start(u64),
    End(u64),
    JobComes(u32),
    JobLive(u32, bool),
    JobGoes(u32),
    Link(u32, bool),
}

/// What the controller has been told, whether it has heard it or not.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) flows: BTreeMap<u64, HostFlow>,
    /// By job: what its pattern adds to the digest, and whether it is live.
    pub(super) jobs: BTreeMap<u32, (u64, bool)>,
    pub(super) failed: BTreeSet<u32>,
    pub(super) digest: Digest,
}

/// What was said and not taken.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    sequence: u64,
    at: Duration,
    message: FromHost,
}

impl Said {
    pub(super) fn start(&mut self, flow: HostFlow) {
        self.digest.add_flow(&flow);
        self.flows.insert(flow.id, flow);
    }

    pub(super) fn end(&mut self, flow: u64) -> bool {
        let removed = self.flows.remove(&flow);
        removed
            .iter()
            .for_each(|flow| self.digest.remove_flow(flow));
        removed.is_some()
    }

    fn set_job(&mut self, job: u32, pattern: u64, is_live: bool) {
        self.drop_job(job);
        self.digest.add_job(job, pattern, is_live);
        self.jobs.insert(job, (pattern, is_live));
    }

    pub(super) fn drop_job(&mut self, job: u32) -> bool {
        let removed = self.jobs.remove(&job);
        if let Some((pattern, is_live)) = removed {
            self.digest.remove_job(job, pattern, is_live);
        }
        removed.is_some()
    }

    fn set_link(&mut self, link: u32, has_failed: bool) -> bool {
        let is_new = match has_failed {
            true => self.failed.insert(link),
            false => self.failed.remove(&link),
        };
        match has_failed {
            _ if !is_new => {}
            true => self.digest.add_link(link),
            false => self.digest.remove_link(link),
        }
        is_new
    }
}

impl Agent {
    /// Announces all that the host has, in place of all earlier announcements.
    pub(super) fn greet(&mut self, session: SessionId, since: Duration) {
        self.pending.clear();
        self.outstanding.clear();
        self.said = Said::default();
        let mut flows = Vec::new();
        let mut left = self.options.most_flows;
        let ids: Vec<u64> = self.flows.keys().copied().collect();
        for id in ids {
            let Some(flow) = self.flows.get_mut(&id) else {
                continue;
            };
            if matches!(flow.kind, Kind::Announced | Kind::Refused(_)) && left > 0 {
                flow.kind = Kind::Announced;
                left -= 1;
                flows.extend(self.host_flow(id));
            }
        }
        let jobs = self.jobs.iter().map(|(&job, local)| HostJob {
            job,
            pattern: local.pattern.clone(),
            is_live: local.is_live,
        });
        let jobs: Vec<HostJob> = jobs.collect();
        flows.iter().for_each(|flow| self.said.start(*flow));
        for job in &jobs {
            self.said
                .set_job(job.job, of_pattern(&job.pattern), job.is_live);
        }
        let failed: Vec<u32> = self.failed.iter().copied().collect();
        failed.iter().for_each(|&link| {
            self.said.set_link(link, true);
        });
        self.sequence += 1;
        let mut patterns = self.patterns.held();
        patterns.truncate(MOST_FLOWS);
        let hello = Hello {
            version: VERSION,
            epoch: self.epoch,
            sequence: self.sequence,
            flows,
            patterns,
            jobs,
            failed,
            takes_segments: self.options.takes_segments,
        };
        self.link = Link::Greeting {
            session,
            since,
            said: self.now,
            hello: self.sequence,
        };
        let message = FromHost::Hello(hello);
        self.outputs.push(Output::Send { session, message });
    }

    pub(super) fn host_flow(&self, id: u64) -> Option<HostFlow> {
        let flow = self.flows.get(&id)?;
        Some(HostFlow {
            id,
            opened: flow.opened,
            held: flow.given.as_ref().map(|path| path.choice),
        })
    }

    /// Something that the controller is to hear with the next flush; while there is no session, all is said when
    /// one begins.
    pub(super) fn note(&mut self, op: Op) {
        if matches!(self.link, Link::Greeting { .. } | Link::Up { .. }) {
            self.pending.push(op);
        }
    }

    /// Sends what was noted, in as few messages as possible.
    pub(super) fn flush(&mut self) {
        let Link::Up { session, .. } = self.link else {
            return;
        };
        if self.revision < self.ahead {
            // Once more: the controller is to send what was lost.
            self.unsaid = AT_ONCE;
        }
        if !self.pending.is_empty() || self.unsaid >= AT_ONCE {
            self.acknowledge(session);
        }
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        for op in std::mem::take(&mut self.pending) {
            if !matches!(op, Op::Start(_)) || starts.len() == MOST_FLOWS {
                self.say_starts(&mut starts);
            }
            if !matches!(op, Op::End(_)) || ends.len() == MOST_FLOWS {
                self.say_ends(&mut ends);
            }
            match op {
                Op::Start(id) => {
                    let flow = self.host_flow(id);
                    let is_new = !self.said.flows.contains_key(&id);
                    if let Some(flow) = flow.filter(|_| is_new) {
                        self.said.start(flow);
                        starts.push(flow);
                    }
                }
                Op::End(id) => {
                    if self.said.end(id) {
                        ends.push(id);
                    }
                }
                op => self.say_other(op),
            }
        }
        self.say_starts(&mut starts);
        self.say_ends(&mut ends);
        if self.outstanding.len() > self.options.most_outstanding {
            self.greet(session, self.now);
        }
    }

    /// Acknowledges up to which revision it does what the controller wants: with what it says otherwise, with a beat,
    /// or where much was heard since.
    fn acknowledge(&mut self, session: SessionId) {
        if std::mem::take(&mut self.unsaid) > 0 {
            let (epoch, revision) = (self.epoch, self.revision);
            let message = FromHost::Acknowledged { epoch, revision };
            self.outputs.push(Output::Send { session, message });
        }
    }

    fn say_starts(&mut self, starts: &mut Vec<HostFlow>) {
        if !starts.is_empty() {
            let flows = std::mem::take(starts);
            self.say(|sequence| FromHost::Starts { sequence, flows });
        }
    }

    fn say_ends(&mut self, ends: &mut Vec<u64>) {
        if !ends.is_empty() {
            let flows = std::mem::take(ends);
            self.say(|sequence| FromHost::Ends { sequence, flows });
        }
    }

    fn say_other(&mut self, op: Op) {
        match op {
            Op::Start(_) | Op::End(_) => {}
            Op::JobComes(job) => {
                if let Some(local) = self.jobs.get(&job) {
                    let pattern = local.pattern.clone();
                    self.said.set_job(job, of_pattern(&pattern), false);
                    self.say(|sequence| FromHost::JobComes {
                        sequence,
                        job,
                        pattern,
                    });
                }
            }
            Op::JobLive(job, is_live) => {
                if let Some(&(pattern, _)) = self.said.jobs.get(&job) {
                    self.said.set_job(job, pattern, is_live);
                    self.say(|sequence| match is_live {
                        true => FromHost::JobStarts { sequence, job },
                        false => FromHost::JobStops { sequence, job },
                    });
                }
            }
            Op::JobGoes(job) => {
                if self.said.drop_job(job) {
                    self.say(|sequence| FromHost::JobGoes { sequence, job });
                }
            }
            Op::Link(link, has_failed) => {
                if self.said.set_link(link, has_failed) {
                    let (mut failed, mut returned) = (Vec::new(), Vec::new());
                    match has_failed {
                        true => failed.push(link),
                        false => returned.push(link),
                    }
                    self.say(|sequence| FromHost::Links {
                        sequence,
                        failed,
                        returned,
                    });
                }
            }
        }
    }

    /// Sends something that has a number, and keeps it until it is taken.
    fn say(&mut self, message: impl FnOnce(u64) -> FromHost) {
        let Link::Up { session, .. } = self.link else {
            return;
        };
        self.sequence += 1;
        let message = message(self.sequence);
        self.outstanding.push_back(Outstanding {
            sequence: self.sequence,
            at: self.now,
            message: message.clone(),
        });
        self.outputs.push(Output::Send { session, message });
    }

    /// The controller has taken what was said up to a number.
    pub(super) fn taken(&mut self, sequence: u64) {
        while self
            .outstanding
            .front()
            .is_some_and(|first| first.sequence <= sequence)
        {
            self.outstanding.pop_front();
        }
    }

    fn say_again(&mut self, session: SessionId) {
        let is_due = |said: &Outstanding| self.now.saturating_sub(said.at) >= self.options.resend;
        if !self.outstanding.front().is_some_and(is_due) {
            return;
        }
        for said in self.outstanding.iter_mut().take(AT_ONCE) {
            said.at = self.now;
            let message = said.message.clone();
            self.metrics.sent_again += 1;
            self.outputs.push(Output::Send { session, message });
        }
    }

    /// Does what is due for the session at a time.
    pub(super) fn tend(&mut self) {
        match self.link {
            Link::Away { until } if self.now >= until => {
                self.link = Link::Connecting { since: self.now };
                self.outputs.push(Output::Connect);
            }
            Link::Connecting { since } if self.has_passed(since, self.options.connect) => {
                self.retreat();
            }
            Link::Greeting {
                session,
                since,
                said,
                ..
            } => {
                if self.has_passed(since, self.options.connect) {
                    self.disconnect(session);
                } else if self.has_passed(said, self.options.resend) {
                    self.greet(session, since);
                }
            }
            Link::Up {
                session,
                heard,
                beat,
            } => {
                if self.has_passed(heard, self.terms.lease) {
                    return self.disconnect(session);
                }
                self.flush();
                self.say_again(session);
                let is_up = matches!(self.link, Link::Up { .. });
                if is_up && self.has_passed(beat, self.terms.beat) {
                    // It may be that what was said before was lost.
                    self.unsaid = AT_ONCE;
                    self.acknowledge(session);
                    self.link = Link::Up {
                        session,
                        heard,
                        beat: self.now,
                    };
                    let message = FromHost::Beat {
                        sequence: self.sequence,
                        flows: self.said.digest.flows,
                        digest: self.said.digest.sum,
                    };
                    self.outputs.push(Output::Send { session, message });
                    self.say_progress(session);
                }
            }
            Link::Away { .. } | Link::Connecting { .. } => {}
        }
    }

    fn say_progress(&mut self, session: SessionId) {
        let moved = std::mem::take(&mut self.moved);
        let left = moved
            .into_iter()
            .filter(|(flow, _)| self.said.flows.contains_key(flow));
        let left: Vec<(u64, u64)> = left.take(MOST_FLOWS).collect();
        if !left.is_empty() {
            let message = FromHost::Progress { left };
            self.outputs.push(Output::Send { session, message });
        }
    }

    fn has_passed(&self, since: Duration, time: Duration) -> bool {
        self.now.saturating_sub(since) >= time
    }

    pub(super) fn disconnect(&mut self, session: SessionId) {
        self.outputs.push(Output::Disconnect { session });
        self.retreat();
    }

    /// There is no session; the next try is after a pause.
    pub(super) fn retreat(&mut self) {
        self.pending.clear();
        self.outstanding.clear();
        self.unsaid = 0;
        let pause = self.backoff.next(self.options.backoff);
        self.link = Link::Away {
            until: self.now.saturating_add(pause),
        };
    }
}
