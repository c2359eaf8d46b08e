//! Flows of hosts: which are taken, which are refused, and which have ended.

use hocket_base::id::NpuId;
use hocket_fabric::controller::{AnnouncedFlow, Event, FlowId};

use super::Server;
use super::flow_numbers;
use super::host::LiveFlow;
use super::output::Audit;
use crate::directory::HostId;
use crate::message::{Change, FLOW_IDS, HostFlow, JOB_IDS, Refusal};

impl Server {
    /// A host announces flows. Those that it announced before, with the same ends, are told their paths again.
    pub(super) fn starts(
        &mut self,
        host: HostId,
        flows: &[HostFlow],
        is_limited: bool,
    ) -> Vec<AnnouncedFlow> {
        self.input += 1;
        let mut announced = Vec::with_capacity(flows.len());
        let mut ended = Vec::new();
        let mut refused = [0; Refusal::ALL.len()];
        for flow in flows {
            let known = self.hosts[host.index()].flows.get(&flow.id);
            if known.is_some_and(|known| known.input == self.input) {
                // Named twice; the first holds.
                continue;
            }
            let (is_known, is_same) = (
                known.is_some(),
                known.is_some_and(|known| {
                    let (said, flow) = (&known.said.opened, &flow.opened);
                    (said.job, said.src, said.dst) == (flow.job, flow.src, flow.dst)
                }),
            );
            match self.admit(host, flow, is_known, is_limited) {
                Ok(nics) => {
                    if is_known && !is_same {
                        ended.extend(self.remove(host, flow.id));
                    }
                    announced.push(self.insert(host, flow, nics));
                }
                Err(why) => {
                    refused[why as usize] += 1;
                    ended.extend(self.remove(host, flow.id));
                    self.push(host, Change::Refuse { flow: flow.id, why });
                }
            }
        }
        if !ended.is_empty() {
            self.tell(Event::FlowsEnd(ended));
        }
        for (&why, count) in Refusal::ALL.iter().zip(refused) {
            if count > 0 {
                self.metrics.refused[why as usize] += count as u64;
                self.audit(Audit::FlowsRefused(host, why, count));
            }
        }
        self.metrics.starts += announced.len() as u64;
        announced
    }

    fn admit(
        &self,
        host: HostId,
        flow: &HostFlow,
        is_known: bool,
        is_limited: bool,
    ) -> Result<[NpuId; 2], Refusal> {
        if flow.id >= FLOW_IDS || flow.opened.job >= JOB_IDS {
            return Err(Refusal::BadNumber);
        }
        if !self.directory.may(host, flow.opened.job) {
            return Err(Refusal::NotItsJob);
        }
        let Some((_, src)) = self
            .directory
            .at(flow.opened.src)
            .filter(|(of, _)| *of == host)
        else {
            return Err(Refusal::NotItsAddress);
        };
        let Some((_, dst)) = self.directory.at(flow.opened.dst) else {
            return Err(Refusal::UnknownAddress);
        };
        let count = self.hosts[host.index()].flows.len();
        match () {
            () if is_known => Ok([src, dst]),
            () if is_limited => Err(Refusal::TooFast),
            () if count >= self.options.most_host_flows => Err(Refusal::TooMany),
            () if self.flow_count >= self.options.most_flows => Err(Refusal::Full),
            () => Ok([src, dst]),
        }
    }

    fn insert(&mut self, host: HostId, flow: &HostFlow, nics: [NpuId; 2]) -> AnnouncedFlow {
        let row = &mut self.hosts[host.index()];
        let input = self.input;
        let added = LiveFlow {
            said: *flow,
            nics,
            told: None,
            rate: 0,
            stamp: 0,
            input,
        };
        match row.flows.get_mut(&flow.id) {
            Some(known) => {
                known.input = input;
                known.said.opened.is_fixed = flow.opened.is_fixed;
            }
            None => {
                row.flows.insert(flow.id, added);
                row.digest.add_flow(flow);
                self.flow_count += 1;
            }
        }
        AnnouncedFlow {
            id: flow_numbers::own(host, flow.id),
            job: flow_numbers::own_job(flow.opened.job),
            src: nics[0],
            dst: nics[1],
            bytes: flow.opened.bytes,
            held: flow.held,
            is_fixed: flow.opened.is_fixed,
        }
    }

    /// Forgets a flow, and gives its number for the policy.
    fn remove(&mut self, host: HostId, flow: u64) -> Option<FlowId> {
        let row = &mut self.hosts[host.index()];
        let removed = row.flows.remove(&flow)?;
        row.digest.remove_flow(&removed.said);
        self.flow_count -= 1;
        self.metrics.ends += 1;
        Some(flow_numbers::own(host, flow))
    }

    /// Flows of a host end; those that it does not have are passed over.
    pub(super) fn ends(&mut self, host: HostId, flows: &[u64]) {
        let ended = flows.iter().filter_map(|&flow| self.remove(host, flow));
        let ended: Vec<FlowId> = ended.collect();
        if !ended.is_empty() {
            self.tell(Event::FlowsEnd(ended));
        }
    }

    pub(super) fn progress(&mut self, host: HostId, left: &[(u64, u64)]) {
        let flows = &self.hosts[host.index()].flows;
        let known = left.iter().filter(|(flow, _)| flows.contains_key(flow));
        let left = known.map(|&(flow, left)| (flow_numbers::own(host, flow), left));
        let left: Vec<_> = left.collect();
        if !left.is_empty() {
            self.tell(Event::FlowsProgress(left));
        }
    }
}
