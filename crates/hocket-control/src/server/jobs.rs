//! Jobs that hosts registered, and the flows of their patterns.

use std::collections::BTreeMap;

use hocket_base::id::{NpuId, narrow};
use hocket_fabric::controller::{AnnouncedFlow, Event, JobId};

use super::Server;
use super::flow_numbers;
use super::host::Presence;
use super::output::{Audit, Output};
use crate::digest::of_pattern;
use crate::directory::HostId;
use crate::message::{Change, FlowName, HeldPattern, JOB_IDS, PatternFlow, Refusal};
use crate::store::Record;

/// A registered job.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) leader: HostId,
    pub(super) pattern: Vec<PatternFlow>,
    pub(super) nics: Vec<[NpuId; 2]>,
    /// Which flows of the pattern each host sends.
    pub(super) senders: BTreeMap<HostId, Vec<u32>>,
    pub(super) digest: u64,
    pub(super) is_live: bool,
    /// By flow: the choice and the rate that its host was told last (0: no rate), and the choice ahead.
    pub(super) told: Vec<Option<u32>>,
    /// By flow: the links as they were then.
    pub(super) stamps: Vec<u32>,
    pub(super) rates: Vec<u64>,
    pub(super) ahead: Vec<Option<u32>>,
}

impl Job {
    pub(super) fn ends(&self, index: u32) -> [std::net::IpAddr; 2] {
        let flow = &self.pattern[index as usize];
        [flow.src, flow.dst]
    }

    /// Returns a flow of the pattern, as the policy is told of it.
    fn announced(&self, job: u32, index: u32, held: Option<u32>) -> AnnouncedFlow {
        let [src, dst] = self.nics[index as usize];
        AnnouncedFlow {
            id: flow_numbers::pattern(job, index),
            job: JobId(job),
            src,
            dst,
            bytes: self.pattern[index as usize].bytes,
            held,
            is_fixed: false,
        }
    }
}

impl Server {
    /// A host registers a job, which is not live then.
    pub(super) fn job_comes(
        &mut self,
        host: HostId,
        id: u32,
        pattern: Vec<PatternFlow>,
    ) -> Result<(), Refusal> {
        let nics = self.admit_job(host, id, &pattern)?;
        let known = self.jobs.get(&id);
        if known.is_some_and(|job| job.leader == host && job.pattern == pattern) {
            self.set_live(id, false);
            return Ok(());
        }
        self.drop_job(id);
        let leader = self.directory.entry(host).name.clone();
        let record = Record::JobComes {
            job: id,
            leader,
            pattern: pattern.clone(),
        };
        self.record(record);
        self.audit(Audit::JobCame(host, id, pattern.len()));
        self.add_job(host, id, pattern, nics);
        Ok(())
    }

    fn admit_job(
        &self,
        host: HostId,
        id: u32,
        pattern: &[PatternFlow],
    ) -> Result<Vec<[NpuId; 2]>, Refusal> {
        if id == 0 || id >= JOB_IDS {
            return Err(Refusal::BadNumber);
        }
        let known = self.jobs.get(&id);
        let is_led = |leader: HostId| {
            leader != host && self.hosts[leader.index()].presence != Presence::Gone
        };
        if !self.directory.may(host, id) || known.is_some_and(|job| is_led(job.leader)) {
            return Err(Refusal::NotItsJob);
        }
        let own = known.filter(|job| job.leader == host);
        let before = own.map_or(0, |job| job.pattern.len());
        let row = &self.hosts[host.index()];
        let (jobs, flows) = (row.jobs.len(), row.pattern_flows - before + pattern.len());
        if own.is_none() && jobs >= self.options.most_host_jobs
            || flows > self.options.most_host_flows
        {
            return Err(Refusal::TooMany);
        }
        let before = known.map_or(0, |job| job.pattern.len());
        if self.flow_count - before + pattern.len() > self.options.most_flows {
            return Err(Refusal::Full);
        }
        let ends = |flow: &PatternFlow| {
            let at = |address| self.directory.at(address).ok_or(Refusal::UnknownAddress);
            let [(sender, src), (_, dst)] = [at(flow.src)?, at(flow.dst)?];
            match self.directory.may(sender, id) {
                true => Ok([src, dst]),
                false => Err(Refusal::NotItsJob),
            }
        };
        pattern.iter().map(ends).collect()
    }

    /// A job is known from now on.
    pub(super) fn add_job(
        &mut self,
        leader: HostId,
        id: u32,
        pattern: Vec<PatternFlow>,
        nics: Vec<[NpuId; 2]>,
    ) {
        let count = pattern.len();
        let mut senders: BTreeMap<HostId, Vec<u32>> = BTreeMap::new();
        for (flow, index) in pattern.iter().zip(0..) {
            if let Some((host, _)) = self.directory.at(flow.src) {
                senders.entry(host).or_default().push(index);
            }
        }
        let job = Job {
            leader,
            digest: of_pattern(&pattern),
            pattern,
            nics,
            senders,
            is_live: false,
            told: vec![None; count],
            stamps: vec![0; count],
            rates: vec![0; count],
            ahead: vec![None; count],
        };
        self.flow_count += count;
        let host = &mut self.hosts[leader.index()];
        host.jobs.insert(id);
        host.pattern_flows += count;
        host.digest.add_job(id, job.digest, false);
        let flows = (0..narrow(count)).map(|index| job.announced(id, index, None));
        let event = Event::JobComes(JobId(id), flows.collect());
        self.jobs.insert(id, job);
        self.tell(event);
    }

    /// A job is forgotten for good.
    pub(super) fn job_goes(&mut self, id: u32) {
        if self.jobs.contains_key(&id) {
            self.drop_job(id);
            self.record(Record::JobGoes { job: id });
            self.audit(Audit::JobWent(id));
        }
    }

    fn drop_job(&mut self, id: u32) {
        let Some(job) = self.jobs.remove(&id) else {
            return;
        };
        self.flow_count -= job.pattern.len();
        let host = &mut self.hosts[job.leader.index()];
        host.jobs.remove(&id);
        host.pattern_flows -= job.pattern.len();
        host.digest.remove_job(id, job.digest, job.is_live);
        for &host in job.senders.keys() {
            self.push(host, Change::JobGoes { job: id });
        }
        self.tell(Event::JobGoes(JobId(id)));
    }

    /// An iteration of a job begins or ends.
    pub(super) fn set_live(&mut self, id: u32, is_live: bool) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        if std::mem::replace(&mut job.is_live, is_live) == is_live {
            return;
        }
        let digest = &mut self.hosts[job.leader.index()].digest;
        digest.remove_job(id, job.digest, !is_live);
        digest.add_job(id, job.digest, is_live);
        let senders: Vec<HostId> = job.senders.keys().copied().collect();
        match is_live {
            true if self.recovering.is_some() => {
                for host in senders {
                    if self.hosts[host.index()].presence == Presence::Here {
                        let held = std::mem::take(&mut self.hosts[host.index()].held);
                        let flows = self.pattern_flows(host, id, &held);
                        self.hosts[host.index()].held = held;
                        self.tell(Event::FlowsStart(flows));
                    }
                }
            }
            true => {
                self.jobs.entry(id).and_modify(|job| job.ahead.fill(None));
                self.tell(Event::JobStarts(JobId(id)));
            }
            false => self.stop(id, &senders),
        }
    }

    fn stop(&mut self, id: u32, senders: &[HostId]) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.told.fill(None);
            job.rates.fill(0);
        }
        for &host in senders {
            self.push(host, Change::JobStops { job: id });
        }
        self.tell(Event::JobStops(JobId(id)));
    }

    /// Returns the flows of a job's pattern that a host sends, with the paths that it holds.
    pub(super) fn pattern_flows(
        &self,
        host: HostId,
        id: u32,
        held: &[HeldPattern],
    ) -> Vec<AnnouncedFlow> {
        let Some(job) = self.jobs.get(&id) else {
            return Vec::new();
        };
        let of_job = held.iter().filter(|held| held.job == id);
        let choices: BTreeMap<u32, u32> = of_job.map(|held| (held.index, held.choice)).collect();
        let sent = job.senders.get(&host).into_iter().flatten();
        let flow = |&index: &u32| job.announced(id, index, choices.get(&index).copied());
        sent.map(flow).collect()
    }

    /// Repeats to a host that came what it was told of rates and of paths ahead.
    pub(super) fn retell_patterns(&mut self, host: HostId) {
        let (mut changes, mut ahead) = (Vec::new(), Vec::new());
        for (&id, job) in &self.jobs {
            for &index in job.senders.get(&host).into_iter().flatten() {
                let at = index as usize;
                if let Some(choice) = job.ahead[at] {
                    ahead.push((id, index, choice));
                }
                if job.rates[at] > 0 {
                    changes.push(Change::Rate {
                        flow: FlowName::Pattern { job: id, index },
                        bytes_per_second: job.rates[at],
                    });
                }
            }
        }
        for (id, index, choice) in ahead {
            changes.extend(self.ahead(id, index, choice));
        }
        changes
            .into_iter()
            .for_each(|change| self.push(host, change));
    }

    /// A controller that has recovered starts the jobs that are live; their flows that hosts held are there
    /// already.
    pub(super) fn start_live_jobs(&mut self) {
        let live: Vec<u32> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.is_live)
            .map(|(&id, _)| id)
            .collect();
        for id in live {
            self.tell(Event::JobStarts(JobId(id)));
        }
    }

    pub(super) fn refuse_job(&mut self, host: HostId, job: u32, why: Refusal) {
        self.metrics.refused[why as usize] += 1;
        self.push(host, Change::RefuseJob { job, why });
        self.audit(Audit::JobRefused(host, job, why));
    }

    pub(super) fn record(&mut self, record: Record) {
        self.records += 1;
        let number = self.records;
        self.outputs.push(Output::Record { number, record });
    }
}
