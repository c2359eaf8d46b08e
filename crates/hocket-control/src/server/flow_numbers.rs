//! One space of flow numbers for the policy: those of hosts, by host, and those of patterns, by job.

use hocket_fabric::controller::{FlowId, JobId};

use crate::directory::HostId;
use crate::message::{FLOW_IDS, FlowName};

const PATTERN: u64 = 1 << 63;
const OWN_JOB: u32 = 1 << 31;

/// Returns the policy's number of a host's own flow.
pub(super) fn own(host: HostId, flow: u64) -> FlowId {
    FlowId(u64::from(host.0) * FLOW_IDS + flow)
}

/// Returns the policy's number of a pattern's flow.
pub(super) fn pattern(job: u32, index: u32) -> FlowId {
    FlowId(PATTERN | u64::from(job) << 32 | u64::from(index))
}

/// Returns the policy's number of the flow that a host is told of.
pub(super) fn of(host: HostId, name: FlowName) -> FlowId {
    match name {
        FlowName::Own(flow) => own(host, flow),
        FlowName::Pattern { job, index } => pattern(job, index),
    }
}

/// Returns what a number means; the host is `None` for patterns.
#[expect(
    clippy::cast_possible_truncation,
    reason = "each part is cut out of the number"
)]
pub(super) fn parse(FlowId(id): FlowId) -> (Option<HostId>, FlowName) {
    if id & PATTERN != 0 {
        let (job, index) = ((id & !PATTERN) >> 32, id as u32);
        let job = job as u32;
        return (None, FlowName::Pattern { job, index });
    }
    let host = HostId((id / FLOW_IDS) as u32);
    (Some(host), FlowName::Own(id % FLOW_IDS))
}

/// Returns the policy's job of a host's own flows: its iterations end without those of the pattern.
pub(super) fn own_job(job: u32) -> JobId {
    JobId(job | OWN_JOB)
}
