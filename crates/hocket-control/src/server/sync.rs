//! A host says all that it has; a host is gone; the controller knows of all that there is.

use std::collections::BTreeSet;

use hocket_base::id::{NpuId, narrow};
use hocket_fabric::controller::Event;

use super::Server;
use super::host::Presence;
use super::output::{Audit, Close, Output};
use crate::digest::Digest;
use crate::directory::HostId;
use crate::message::{
    Change, FlowName, HeldPattern, Hello, MOST_FLOWS, MOST_JOBS, MOST_LINKS, ToHost, VERSION,
};

impl Server {
    /// Puts all that a host has in place of what it said before, and answers each of its flows.
    pub(super) fn hello(&mut self, host: HostId, hello: Hello) {
        if let Err(why) = self.check(&hello) {
            return self.close(host, why);
        }
        self.welcome(host, hello.sequence);
        let row = &mut self.hosts[host.index()];
        let before = std::mem::replace(&mut row.presence, Presence::Here);
        self.missing -= usize::from(before == Presence::Unknown);
        self.hear_of_segments(host, hello.takes_segments);
        // Flows to it that come back are not led over what it reports.
        self.compare_links(host, &hello);
        if before == Presence::Gone {
            let nics = self.nics(host);
            self.tell(Event::HostsCome(nics));
        }
        if self.recovering.is_some() {
            self.hosts[host.index()].held = hello.patterns.clone();
        }
        self.compare_jobs(host, &hello);
        self.compare_flows(host, &hello);
        self.retell_rates(host);
        self.retell_patterns(host);
        if before != Presence::Here {
            self.audit(Audit::Came(host));
        }
        self.flush();
        match self.recovering {
            Some(_) => self.recover(),
            None => {
                self.settle_patterns(host, &hello.patterns);
                self.synced(host);
            }
        }
    }

    fn check(&self, hello: &Hello) -> Result<(), Close> {
        match () {
            () if hello.version != VERSION => Err(Close::Version),
            () if hello.epoch > self.epoch => Err(Close::NewerEpoch),
            () if hello.patterns.len() > MOST_FLOWS
                || hello.jobs.len() > MOST_JOBS
                || hello.failed.len() > MOST_LINKS =>
            {
                Err(Close::TooLarge)
            }
            () => Ok(()),
        }
    }

    fn welcome(&mut self, host: HostId, answers: u64) {
        let revision = self.hosts[host.index()].revision;
        if let Some(session) = &mut self.hosts[host.index()].session {
            session.taken = Some(answers);
            session.told = Some(answers);
            session.storing.clear();
            session.window.clear();
        }
        let (epoch, terms) = (self.epoch, self.options.terms);
        self.send(
            host,
            ToHost::Welcome {
                epoch,
                answers,
                revision,
                terms,
            },
        );
    }

    /// Jobs that the host has no longer are gone, others are registered and are live as it says.
    fn compare_jobs(&mut self, host: HostId, hello: &Hello) {
        let said: BTreeSet<u32> = hello.jobs.iter().map(|job| job.job).collect();
        let gone: Vec<u32> = self.hosts[host.index()]
            .jobs
            .difference(&said)
            .copied()
            .collect();
        gone.into_iter().for_each(|job| self.job_goes(job));
        for job in &hello.jobs {
            let known = self.jobs.get(&job.job);
            let is_known =
                known.is_some_and(|known| known.leader == host && known.pattern == job.pattern);
            let registered = match is_known {
                true => Ok(()),
                false => self.job_comes(host, job.job, job.pattern.clone()),
            };
            match registered {
                Ok(()) => self.set_live(job.job, job.is_live),
                Err(why) => {
                    if self.hosts[host.index()].jobs.contains(&job.job) {
                        self.job_goes(job.job);
                    }
                    self.refuse_job(host, job.job, why);
                }
            }
        }
    }

    /// Flows that the host has no longer end, all others are announced, those of patterns included.
    fn compare_flows(&mut self, host: HostId, hello: &Hello) {
        let said: BTreeSet<u64> = hello.flows.iter().map(|flow| flow.id).collect();
        let known = self.hosts[host.index()].flows.keys().copied();
        let gone: Vec<u64> = known.filter(|flow| !said.contains(flow)).collect();
        self.ends(host, &gone);
        let mut announced = self.starts(host, &hello.flows, false);
        let live = self.jobs.iter().filter(|(_, job)| job.is_live);
        let live: Vec<u32> = live.map(|(&id, _)| id).collect();
        for job in live {
            announced.extend(self.pattern_flows(host, job, &hello.patterns));
        }
        if !announced.is_empty() {
            self.tell(Event::FlowsStart(announced));
        }
    }

    fn compare_links(&mut self, host: HostId, hello: &Hello) {
        let said: BTreeSet<u32> = hello.failed.iter().copied().collect();
        let failed = &self.hosts[host.index()].failed;
        let returned: Vec<u32> = failed.difference(&said).copied().collect();
        self.reported(host, &hello.failed, &returned);
    }

    fn retell_rates(&mut self, host: HostId) {
        let flows = self.hosts[host.index()].flows.iter();
        let rates = flows.filter(|(_, flow)| flow.rate > 0);
        let rates = rates.map(|(&id, flow)| Change::Rate {
            flow: FlowName::Own(id),
            bytes_per_second: flow.rate,
        });
        let rates: Vec<Change> = rates.collect();
        rates.into_iter().for_each(|change| self.push(host, change));
    }

    /// Ends the time of recovery if every host has come back, or it has lasted long enough.
    pub(super) fn recover(&mut self) {
        let is_over = self.recovering.is_some_and(|until| self.now >= until);
        if self.recovering.is_none() || !is_over && self.missing > 0 {
            return;
        }
        self.recovering = None;
        self.expect_no_segments();
        self.start_live_jobs();
        self.tell(Event::Recovered);
        self.audit(Audit::Synced);
        self.flush();
        for host in 0..narrow(self.hosts.len()) {
            let held = std::mem::take(&mut self.hosts[host as usize].held);
            self.settle_patterns(HostId(host), &held);
            self.synced(HostId(host));
        }
    }

    /// Tells a host whether jobs are there at all whose flows it holds, and which are not live.
    fn settle_patterns(&mut self, host: HostId, held: &[HeldPattern]) {
        let jobs: BTreeSet<u32> = held.iter().map(|held| held.job).collect();
        for job in jobs {
            match self.jobs.get(&job).map(|known| known.is_live) {
                Some(true) => {}
                Some(false) => self.push(host, Change::JobStops { job }),
                None => self.push(host, Change::JobGoes { job }),
            }
        }
        self.flush();
    }

    /// Tells a host that it has been told all.
    fn synced(&mut self, host: HostId) {
        let session = &self.hosts[host.index()].session;
        if session
            .as_ref()
            .is_some_and(|session| session.taken.is_some())
        {
            self.send_numbered(host, |epoch, revision| ToHost::Synced { epoch, revision });
        }
    }

    /// A host's lease and grace are over: its flows have ended, and its jobs have stopped.
    pub(super) fn lose(&mut self, host: HostId) {
        let row = &mut self.hosts[host.index()];
        row.presence = Presence::Gone;
        let flows: Vec<u64> = row.flows.keys().copied().collect();
        let jobs: Vec<u32> = row.jobs.iter().copied().collect();
        let failed: Vec<u32> = row.failed.iter().copied().collect();
        self.metrics.lost_hosts += 1;
        self.audit(Audit::Went(host, flows.len()));
        for job in jobs {
            self.set_live(job, false);
        }
        self.reported(host, &[], &failed);
        self.ends(host, &flows);
        let nics = self.nics(host);
        self.tell(Event::HostsGo(nics));
        for job in self.jobs.values_mut() {
            for &index in job.senders.get(&host).into_iter().flatten() {
                job.told[index as usize] = None;
            }
        }
        debug_assert_eq!(self.hosts[host.index()].digest, self.digest_of_jobs(host));
    }

    fn digest_of_jobs(&self, host: HostId) -> Digest {
        let mut digest = Digest::default();
        for id in &self.hosts[host.index()].jobs {
            let job = &self.jobs[id];
            digest.add_job(*id, job.digest, job.is_live);
        }
        digest
    }

    pub(super) fn nics(&self, host: HostId) -> Vec<NpuId> {
        let nics = self.directory.entry(host).nics.iter();
        nics.map(|&(_, nic)| nic).collect()
    }

    /// Ends the session of a host.
    pub(super) fn close(&mut self, host: HostId, why: Close) {
        if let Some(session) = self.hosts[host.index()].session.take() {
            self.sessions.remove(&session.id);
            self.metrics.closed[why as usize] += 1;
            self.outputs.push(Output::Close {
                session: session.id,
                why,
            });
            self.audit(Audit::Closed(host, why));
        }
    }
}
