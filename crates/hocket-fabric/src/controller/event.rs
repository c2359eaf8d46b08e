//! What the controller is told, and what it says.

pub use hocket_steering::Reason;

use crate::id::{LinkId, NpuId};

/// The number that whoever announces a flow gives it; unique among live flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowId(pub u64);

/// The number of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub u32);

/// A flow that a host announces (section 3.5.4), or that a job's pattern has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "Announced")]
pub struct AnnouncedFlow {
    /// Its number.
    pub id: FlowId,
    /// The job that it belongs to.
    pub job: JobId,
    /// The NIC that sends.
    pub src: NpuId,
    /// The NIC that receives.
    pub dst: NpuId,
    /// Bytes to send.
    pub bytes: u64,
    /// The path that the flow has already, where its host comes back to a controller that does not
    /// know it: a choice of the fabric.
    pub held: Option<u32>,
    /// Whether its packets cannot be made to take another path once it has one, such as those of a connection that
    /// keeps its port. It gets another only where its path fails: it may be opened anew then.
    pub is_fixed: bool,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Flows start, each named once. One that is live already is told its path again; with other ends it
    /// is a new flow.
    FlowsStart(Vec<AnnouncedFlow>),
    /// How many bytes flows have left.
    FlowsProgress(Vec<(FlowId, u64)>),
    /// Flows end. Those that are not live are passed over.
    FlowsEnd(Vec<FlowId>),
    /// A job registers the flows of its iterations, in place of those that it registered before.
    JobComes(JobId, Vec<AnnouncedFlow>),
    /// An iteration's communication begins: all flows of the job's pattern start.
    JobStarts(JobId),
    /// An iteration's communication ends, and all flows of the job with it.
    JobStops(JobId),
    /// A job is forgotten, and all its flows end.
    JobGoes(JobId),
    /// Hosts' NICs may send and receive; all may at first. Flows to them that were announced while they were gone
    /// start. What they send themselves is announced by them, flows of patterns included.
    HostsCome(Vec<NpuId>),
    /// Hosts' NICs are gone, and all flows that they send with them.
    HostsGo(Vec<NpuId>),
    /// Links fail; a switch fails with all its links.
    LinksFail(Vec<LinkId>),
    /// Links work again.
    LinksReturn(Vec<LinkId>),
    /// A host has put what it was told into effect, up to a revision.
    Acknowledged(u64, Vec<FlowId>),
    /// The controller starts anew and hears from hosts which flows there are: until
    /// [`Event::Recovered`] nothing moves but what has lost its path.
    Recovering,
    /// Every host has said what it has.
    Recovered,
    /// There is time to compute ahead (section 3.4.2).
    Prepare,
}

/// What a host is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A flow takes a path: the choice that [`crate::Fabric::route`] takes.
    Path {
        /// The flow.
        flow: FlowId,
        /// Number of the highest switch of its path.
        choice: u32,
        /// Why.
        reason: Reason,
    },
    /// A flow is to take this path if it starts before anything else is said.
    Ahead {
        /// The flow, of a job's pattern.
        flow: FlowId,
        /// Number of the highest switch of its path.
        choice: u32,
    },
    /// A flow sends no faster than this (section 8).
    Rate {
        /// The flow.
        flow: FlowId,
        /// Its share and the slack [bytes/s].
        bytes_per_second: u64,
    },
    /// A flow uses no given path from now on: switches hash it as any other.
    Revoke {
        /// The flow.
        flow: FlowId,
        /// Why.
        reason: Reason,
    },
}
