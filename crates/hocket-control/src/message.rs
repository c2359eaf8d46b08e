//! What hosts and the controller say to each other.
//!
//! ```text
//! host       -> Hello (all that it has), Starts, Ends, jobs, Links, Progress, Beat, Acknowledged
//! controller -> Welcome, Changes, Synced, Taken, Resync
//! ```
//!
//! What a host says is numbered by it ([`FromHost::sequence`]), each message one more than the one before; the
//! controller takes them in this order only, passes duplicates over, and says up to which it has them
//! ([`ToHost::Taken`]). What the controller wants is numbered by it, by host ([`ToHost::revision`]); the host
//! puts it into effect in this order only, and says how far it is ([`FromHost::Acknowledged`]). Either side
//! says again what is not acknowledged. A [`Hello`] is all that the host has: it replaces whatever was said
//! before it, and the controller answers each flow anew.
//!
//! A controller has an epoch, higher than that of any controller before it. A host that has obeyed one obeys
//! none of an older epoch.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use strum::VariantArray;

pub use hocket_steering::{Reason, Stage};

/// The version of these messages.
pub const VERSION: u32 = 1;
/// A host numbers its flows below this.
pub const FLOW_IDS: u64 = 1 << 40;
/// Jobs are numbered below this; 0 is no job.
pub const JOB_IDS: u32 = 1 << 31;
/// Most flows that a message has, those of patterns included.
pub const MOST_FLOWS: usize = 1 << 16;
/// Most changes that a message has.
pub const MOST_CHANGES: usize = 1 << 16;
/// Most jobs that a message has.
pub const MOST_JOBS: usize = 1 << 10;
/// Most links that a message names.
pub const MOST_LINKS: usize = 1 << 12;
/// Most links of a path, most stages in a direction, and most segments.
pub const MOST_STAGES: usize = 8;
/// Most messages that are said again at once; as many are acknowledged at once, and not with what is said next.
pub const AT_ONCE: usize = 64;
/// Most bytes of a host's name.
pub const MOST_NAME_BYTES: usize = 255;

/// A flow as a program opens it on the host that sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "Opened")]
pub struct NewFlow {
    /// The job that it belongs to, below [`JOB_IDS`]; 0: none.
    pub job: u32,
    /// Address of the NIC that sends: one of the host's.
    pub src: IpAddr,
    /// Address of the NIC that receives.
    pub dst: IpAddr,
    /// Bytes left to send.
    pub bytes: u64,
    /// Whether its packets cannot be made to take another path once it has one. It is told of another only where its
    /// path fails.
    pub is_fixed: bool,
}

/// A flow that a host announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostFlow {
    /// The number that its host gives it, below [`FLOW_IDS`].
    pub id: u64,
    /// What its program opened.
    pub opened: NewFlow,
    /// The choice of the path that it takes now, where it takes one that it was given.
    pub held: Option<u32>,
}

/// A flow of a job's pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternFlow {
    /// Address of the NIC that sends, of any host.
    pub src: IpAddr,
    /// Address of the NIC that receives.
    pub dst: IpAddr,
    /// Bytes of an iteration.
    pub bytes: u64,
}

/// A job whose pattern a host has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostJob {
    /// Its number, from 1 to below [`JOB_IDS`].
    pub job: u32,
    /// The flows of each of its iterations.
    pub pattern: Vec<PatternFlow>,
    /// Whether an iteration's communication is under way.
    pub is_live: bool,
}

/// A flow of a pattern that a host sends, as it was told to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldPattern {
    /// The job.
    pub job: u32,
    /// Which of its pattern's flows.
    pub index: u32,
    /// The choice of the path that it takes now.
    pub choice: u32,
}

/// All that a host has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// [`VERSION`] of the host.
    pub version: u32,
    /// The highest epoch that the host has obeyed; 0: none.
    pub epoch: u64,
    /// The number of this message. It may be any above those before it.
    pub sequence: u64,
    /// Its live flows.
    pub flows: Vec<HostFlow>,
    /// Flows of patterns, registered by any host, that it sends and has paths for.
    pub patterns: Vec<HeldPattern>,
    /// The jobs that it has registered.
    pub jobs: Vec<HostJob>,
    /// Links that have failed, as its own probes say.
    pub failed: Vec<u32>,
    /// Whether its kernel takes packets with segments (SRv6); else it drops them.
    pub takes_segments: bool,
}

/// What a host says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromHost {
    /// The first message of a session, and the answer to [`ToHost::Resync`].
    Hello(Hello),
    /// Flows start.
    Starts {
        /// Its number.
        sequence: u64,
        /// The flows.
        flows: Vec<HostFlow>,
    },
    /// How many bytes flows have left. It is not numbered: a later one is as good.
    Progress {
        /// Flows of the host and their bytes left.
        left: Vec<(u64, u64)>,
    },
    /// Flows end.
    Ends {
        /// Its number.
        sequence: u64,
        /// The flows.
        flows: Vec<u64>,
    },
    /// A job registers its pattern, in place of the one before.
    JobComes {
        /// Its number.
        sequence: u64,
        /// The job.
        job: u32,
        /// The flows of each of its iterations.
        pattern: Vec<PatternFlow>,
    },
    /// An iteration's communication begins.
    JobStarts {
        /// Its number.
        sequence: u64,
        /// The job.
        job: u32,
    },
    /// An iteration's communication ends.
    JobStops {
        /// Its number.
        sequence: u64,
        /// The job.
        job: u32,
    },
    /// A job is forgotten.
    JobGoes {
        /// Its number.
        sequence: u64,
        /// The job.
        job: u32,
    },
    /// What the host's own probes say of links that changed.
    Links {
        /// Its number.
        sequence: u64,
        /// Links that have failed.
        failed: Vec<u32>,
        /// Links that work again.
        returned: Vec<u32>,
    },
    /// What the controller wants is in effect, up to a revision.
    Acknowledged {
        /// The epoch.
        epoch: u64,
        /// The highest revision in effect.
        revision: u64,
    },
    /// The host is alive.
    Beat {
        /// The number of the last numbered message before it.
        sequence: u64,
        /// Number of the host's live flows then.
        flows: u32,
        /// What they are, and what else the host has said ([`crate::digest`]).
        digest: u64,
    },
}

impl FromHost {
    /// Returns the number of a numbered message.
    pub fn sequence(&self) -> Option<u64> {
        match self {
            Self::Hello(Hello { sequence, .. })
            | Self::Starts { sequence, .. }
            | Self::Ends { sequence, .. }
            | Self::JobComes { sequence, .. }
            | Self::JobStarts { sequence, .. }
            | Self::JobStops { sequence, .. }
            | Self::JobGoes { sequence, .. }
            | Self::Links { sequence, .. } => Some(*sequence),
            Self::Progress { .. } | Self::Acknowledged { .. } | Self::Beat { .. } => None,
        }
    }
}

/// A flow as the controller names it to the host that sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowName {
    /// One that the host announced, by its number.
    Own(u64),
    /// One of a pattern.
    Pattern {
        /// The job.
        job: u32,
        /// Which of its pattern's flows.
        index: u32,
    },
}

/// A path and how packets are made to take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Number of the highest switch on it.
    pub choice: u32,
    /// Its links, by number, from the sender's ToR to the receiver's.
    pub links: Vec<u32>,
    /// What the switches that packets cross are to choose.
    pub forth: Vec<Stage>,
    /// What those are to choose that the packets coming back cross; empty: they may go any way.
    pub back: Vec<Stage>,
    /// The segments (SRv6) of switches that packets cross in this order, by which a host may lead them instead; empty:
    /// there are none.
    pub segments: Vec<Ipv6Addr>,
}

/// Something that a host is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A flow takes a path.
    Path {
        /// The flow.
        flow: FlowName,
        /// The ends of a pattern's flow; `None` for the host's own.
        ends: Option<[IpAddr; 2]>,
        /// The path.
        path: Arc<Path>,
        /// Why.
        reason: Reason,
    },
    /// A pattern's flow is to take this path if it starts before anything else is said.
    Ahead {
        /// The job.
        job: u32,
        /// Which of its pattern's flows.
        index: u32,
        /// The flow's ends.
        ends: [IpAddr; 2],
        /// The path.
        path: Arc<Path>,
    },
    /// A flow sends no faster than this.
    Rate {
        /// The flow.
        flow: FlowName,
        /// Its share and the slack [bytes/s].
        bytes_per_second: u64,
    },
    /// A flow uses no given path from now on: switches hash it as any other.
    Revoke {
        /// The flow.
        flow: FlowName,
        /// Why.
        reason: Reason,
    },
    /// An iteration of a job has ended, and with it all flows of its pattern.
    JobStops {
        /// The job.
        job: u32,
    },
    /// A job is gone, with all that was said of its pattern.
    JobGoes {
        /// The job.
        job: u32,
    },
    /// The controller does not take a flow of the host: for it there is no such flow.
    Refuse {
        /// The flow's number.
        flow: u64,
        /// Why.
        why: Refusal,
    },
    /// The controller does not take a job from the host: for it there is no such job.
    RefuseJob {
        /// The job.
        job: u32,
        /// Why.
        why: Refusal,
    },
}

/// Why a flow or a job is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, VariantArray)]
pub enum Refusal {
    /// Its number is too high, or 0 for a job.
    BadNumber,
    /// The sender's address is not one of the host's.
    NotItsAddress,
    /// An address is not in the fabric.
    UnknownAddress,
    /// The host may not speak for the job, or a sender of its pattern may not.
    NotItsJob,
    /// The host has as many live flows, or jobs, as it may.
    TooMany,
    /// The host announces faster than it may.
    TooFast,
    /// The controller has as many live flows as it may.
    Full,
}

impl Refusal {
    /// Every refusal, in order.
    pub const ALL: &[Refusal] = Self::VARIANTS;
}

/// What the controller expects of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// A host that says nothing for so long has lost its lease.
    pub lease: Duration,
    /// It says [`FromHost::Beat`] so often.
    pub beat: Duration,
    /// Flows of fewer bytes are not announced.
    pub least_bytes: u64,
}

/// Why a host is to say again what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, VariantArray)]
pub enum Resync {
    /// It has said something in this session before [`FromHost::Hello`].
    NoHello,
    /// Its digest is not that of what the controller has of it.
    Digest,
}

impl Resync {
    /// Every reason, in order.
    pub const ALL: &[Resync] = Self::VARIANTS;
}

/// What the controller says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToHost {
    /// The answer to a [`Hello`]; what the controller wants of its flows follows.
    Welcome {
        /// The controller's epoch.
        epoch: u64,
        /// Number of the message that it answers, which has been taken.
        answers: u64,
        /// What follows has the revision after this one.
        revision: u64,
        /// What the controller expects.
        terms: Terms,
    },
    /// What the host is to do, in order.
    Changes {
        /// The controller's epoch.
        epoch: u64,
        /// One more than that of the numbered message before.
        revision: u64,
        /// What is to be done.
        changes: Vec<Change>,
    },
    /// The controller knows of all that there is: paths that it has not named since its welcome are void. It is
    /// numbered as [`ToHost::Changes`] are.
    Synced {
        /// The controller's epoch.
        epoch: u64,
        /// One more than that of the numbered message before.
        revision: u64,
    },
    /// Messages of the host up to this number have been taken.
    Taken {
        /// The number.
        sequence: u64,
    },
    /// The host is to say [`Hello`] again.
    Resync {
        /// Why.
        why: Resync,
    },
}

impl ToHost {
    /// Epoch and revision of a numbered message.
    pub fn revision(&self) -> Option<(u64, u64)> {
        match *self {
            Self::Changes {
                epoch, revision, ..
            }
            | Self::Synced { epoch, revision } => Some((epoch, revision)),
            _ => None,
        }
    }
}
