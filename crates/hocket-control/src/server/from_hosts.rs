//! What hosts and operators say, in order and once; what time brings.

use hocket_base::id::narrow;
use hocket_fabric::controller::Event;

use super::Server;
use super::host::{Presence, Session};
use super::output::{Audit, Close, SessionId};
use crate::directory::HostId;
use crate::message::{FromHost, MOST_FLOWS, MOST_LINKS, Refusal, Resync, ToHost};
use crate::store::Record;

/// Most changes of links between two ticks whose stages are kept.
const MOST_BEFORE: usize = 16;

impl Server {
    pub(super) fn connected(&mut self, host: HostId, session: SessionId) {
        if host.index() >= self.hosts.len() || self.sessions.contains_key(&session) {
            self.metrics.strays += 1;
            return;
        }
        self.close(host, Close::Replaced);
        self.metrics.sessions += 1;
        self.sessions.insert(session, host);
        self.hosts[host.index()].session = Some(Session::new(session, self.now));
    }

    pub(super) fn received(&mut self, host: HostId, message: FromHost) {
        self.metrics.received += 1;
        let Some(size) = size(&message) else {
            return self.close(host, Close::TooLarge);
        };
        let row = &mut self.hosts[host.index()];
        row.heard = self.now;
        if !row.allowance.draw(&self.options, self.now, 1 + size) {
            return self.close(host, Close::Flood);
        }
        let Some(session) = &mut row.session else {
            return;
        };
        session.heard = self.now;
        let taken = session.taken;
        match (message, taken) {
            (FromHost::Hello(hello), _) if taken.is_none_or(|taken| hello.sequence > taken) => {
                self.hello(host, hello);
            }
            (_, None) => self.resync(host, Resync::NoHello),
            (message, Some(taken)) => match message.sequence() {
                None => self.unnumbered(host, message, taken),
                Some(sequence) if sequence <= taken => {
                    self.metrics.duplicates += 1;
                    // It may be that the host was not heard.
                    self.tell_taken(host, true);
                }
                Some(sequence) if sequence == taken.saturating_add(1) => {
                    if let Some(session) = &mut self.hosts[host.index()].session {
                        session.taken = Some(sequence);
                    }
                    let is_stored = matches!(
                        message,
                        FromHost::JobComes { .. } | FromHost::JobGoes { .. }
                    );
                    self.numbered(host, message);
                    let session = &mut self.hosts[host.index()].session;
                    if let Some(session) = session.as_mut().filter(|_| is_stored) {
                        session.storing.push_back((sequence, self.records));
                    }
                }
                Some(_) => self.metrics.gaps += 1,
            },
        }
    }

    fn unnumbered(&mut self, host: HostId, message: FromHost, taken: u64) {
        match message {
            FromHost::Progress { left } => self.progress(host, &left),
            FromHost::Acknowledged { epoch, revision } => self.acknowledged(host, epoch, revision),
            FromHost::Beat {
                sequence,
                flows,
                digest,
            } => {
                let row = &self.hosts[host.index()];
                let session = row.session.as_ref();
                let first = session.and_then(|session| session.window.front());
                // What was refused is in the digest until the host has heard of it.
                let is_refusing = session
                    .zip(first)
                    .is_some_and(|(session, first)| first.revision <= session.refused);
                let is_same = (flows, digest) == (row.digest.flows, row.digest.sum);
                if sequence == taken && !is_refusing && !is_same {
                    self.resync(host, Resync::Digest);
                }
                self.tell_taken(host, true);
            }
            _ => {}
        }
    }

    fn numbered(&mut self, host: HostId, message: FromHost) {
        let leads = |server: &Self, job: u32| server.hosts[host.index()].jobs.contains(&job);
        match message {
            FromHost::Starts { flows, .. } => {
                let is_limited = !self.hosts[host.index()].allowance.is_left();
                let announced = self.starts(host, &flows, is_limited);
                if !announced.is_empty() {
                    self.tell(Event::FlowsStart(announced));
                }
            }
            FromHost::Ends { flows, .. } => self.ends(host, &flows),
            FromHost::JobComes { job, pattern, .. } => {
                let is_left = self.hosts[host.index()].allowance.is_left();
                let registered = match is_left {
                    true => self.job_comes(host, job, pattern),
                    false => Err(Refusal::TooFast),
                };
                if let Err(why) = registered {
                    if leads(self, job) {
                        self.job_goes(job);
                    }
                    self.refuse_job(host, job, why);
                }
            }
            FromHost::JobStarts { job, .. } if leads(self, job) => self.set_live(job, true),
            FromHost::JobStops { job, .. } if leads(self, job) => self.set_live(job, false),
            FromHost::JobGoes { job, .. } if leads(self, job) => self.job_goes(job),
            FromHost::Links {
                failed, returned, ..
            } => self.reported(host, &failed, &returned),
            _ => {}
        }
    }

    /// Acknowledges up to which number messages are taken, and stored if they must be.
    pub(super) fn tell_taken(&mut self, host: HostId, is_again: bool) {
        let stored = self.settled;
        let Some(session) = &mut self.hosts[host.index()].session else {
            return;
        };
        let settled = session.settled(stored);
        if let Some(sequence) = settled.filter(|_| is_again || settled != session.told) {
            session.told = settled;
            self.send(host, ToHost::Taken { sequence });
        }
    }

    /// Asks a host, once a beat at most, for all that it has.
    fn resync(&mut self, host: HostId, why: Resync) {
        let (now, beat) = (self.now, self.options.terms.beat);
        let Some(session) = &mut self.hosts[host.index()].session else {
            return;
        };
        let asked = session.resync;
        if asked.is_none_or(|asked| now.saturating_sub(asked) >= beat) {
            session.resync = Some(now);
            self.metrics.resyncs += 1;
            self.send(host, ToHost::Resync { why });
        }
    }

    /// Handles what a host's probes report.
    pub(super) fn reported(&mut self, host: HostId, failed: &[u32], returned: &[u32]) {
        let mut said = Vec::new();
        for (links, has_failed) in [(failed, true), (returned, false)] {
            for &link in links {
                if !self.links.is_link(link) {
                    self.metrics.strays += 1;
                    continue;
                }
                let row = &mut self.hosts[host.index()];
                let is_new = match has_failed {
                    true => row.failed.insert(link),
                    false => row.failed.remove(&link),
                };
                match has_failed {
                    _ if !is_new => continue,
                    true => row.digest.add_link(link),
                    false => row.digest.remove_link(link),
                }
                self.links.report(host, link, has_failed);
                said.push(link);
            }
        }
        self.settle(&said);
    }

    /// Handles what operators report; counts links that are not there.
    pub(super) fn operated(&mut self, links: Vec<u32>, have_failed: bool) {
        let count = links.len();
        let known: Vec<u32> = links
            .into_iter()
            .filter(|&link| self.links.is_link(link))
            .collect();
        self.metrics.strays += (count - known.len()) as u64;
        self.operate(known, have_failed, true);
    }

    /// Stores what operators report, even if it is nothing new: a controller that has been deposed learns so from the
    /// store, before anybody is told that it is kept.
    pub(super) fn operate(&mut self, mut links: Vec<u32>, have_failed: bool, is_stored: bool) {
        let said = links.clone();
        links.retain(|&link| self.links.operate(link, have_failed));
        if is_stored && !said.is_empty() {
            let links = said;
            self.record(match have_failed {
                true => Record::LinksFail { links },
                false => Record::LinksReturn { links },
            });
        }
        self.settle(&links);
    }

    /// The policy hears of links that are otherwise than before.
    fn settle(&mut self, links: &[u32]) {
        let [failed, returned] = self.links.settle(links, self.options.reporters);
        if failed.is_empty() && returned.is_empty() {
            return;
        }
        if self.before.len() == MOST_BEFORE {
            self.restage();
        }
        let before = self.stages.set_failed(self.links.has_failed());
        self.before.push_back(before);
        self.stamp = self.stamp.wrapping_add(1);
        let number = |links: &[hocket_base::id::LinkId]| links.iter().map(|link| link.0).collect();
        if !failed.is_empty() {
            self.audit(Audit::LinksFailed(number(&failed)));
            self.tell(Event::LinksFail(failed));
        }
        if !returned.is_empty() {
            self.audit(Audit::LinksReturned(number(&returned)));
            self.tell(Event::LinksReturn(returned));
        }
    }

    pub(super) fn tick(&mut self) {
        let (lease, grace) = (self.options.terms.lease, self.options.grace);
        for host in 0..narrow(self.hosts.len()) {
            let host = HostId(host);
            let row = &self.hosts[host.index()];
            let silent = self.now.saturating_sub(row.heard);
            let session = row.session.as_ref().map(|session| session.heard);
            if session.is_some_and(|heard| self.now.saturating_sub(heard) >= lease) {
                self.close(host, Close::Silent);
            } else if session.is_some() {
                self.tell_taken(host, false);
                self.resend(
                    host,
                    self.options.terms.beat.saturating_add(self.options.resend),
                );
            }
            let row = &self.hosts[host.index()];
            let is_silent = silent >= lease.saturating_add(grace);
            if row.session.is_none() && row.presence == Presence::Here && is_silent {
                self.lose(host);
            }
        }
        self.restage();
        self.retell_segments();
        self.recover();
    }
}

/// Returns how many things a message says; `None` where they are too many.
fn size(message: &FromHost) -> Option<usize> {
    let (count, most) = match message {
        FromHost::Starts { flows, .. } => (flows.len(), MOST_FLOWS),
        FromHost::Ends { flows, .. } => (flows.len(), MOST_FLOWS),
        FromHost::Progress { left } => (left.len(), MOST_FLOWS),
        FromHost::JobComes { pattern, .. } => (pattern.len(), MOST_FLOWS),
        FromHost::Links {
            failed, returned, ..
        } => (failed.len().max(returned.len()), MOST_LINKS),
        FromHost::Hello(hello) => {
            let patterns = hello.jobs.iter().map(|job| job.pattern.len());
            (hello.flows.len() + patterns.sum::<usize>(), MOST_FLOWS)
        }
        _ => (0, 1),
    };
    (count <= most).then_some(count)
}
