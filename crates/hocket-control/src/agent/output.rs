//! What the agent is told, and what it asks for.

use std::sync::Arc;
use std::time::Duration;

use crate::message::{FromHost, Path, PatternFlow, Reason, Refusal, ToHost};

/// A session with a controller, numbered by whoever owns the connections; no number is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// How many bytes a flow has left.
    Progress {
        /// The flow.
        flow: u64,
        /// Its bytes left.
        left: u64,
    },
    /// A flow ends.
    Close {
        /// The flow.
        flow: u64,
    },
    /// A local program registers a job, which is not live then.
    JobComes {
        /// The job.
        job: u32,
        /// The flows of each of its iterations.
        pattern: Vec<PatternFlow>,
    },
    /// An iteration's communication begins.
    JobStarts {
        /// The job.
        job: u32,
    },
    /// An iteration's communication ends.
    JobStops {
        /// The job.
        job: u32,
    },
    /// A job is forgotten.
    JobGoes {
        /// The job.
        job: u32,
    },
    /// The host's probes say whether a link works.
    Probed {
        /// The link.
        link: u32,
        /// Whether it works.
        works: bool,
    },
    /// What probes measured of the path that a flow was given, whether it takes it now or not.
    PathMeasured {
        /// The flow.
        flow: u64,
        /// Probes of a million that were lost.
        loss_ppm: u32,
        /// The time from sending one to its answer, if there was any.
        rtt: Option<Duration>,
    },
    /// What was measured of a flow.
    Measured {
        /// The flow.
        flow: u64,
        /// Packets of a million that were lost.
        loss_ppm: u32,
        /// The time from sending to its acknowledgement.
        rtt: Duration,
    },
    /// Programs have said what they had to say for now: it is sent.
    Flush,
    /// A connection is there.
    Connected {
        /// Its session.
        session: SessionId,
    },
    /// No connection could be made.
    Unreachable,
    /// A message came.
    Received {
        /// By which session.
        session: SessionId,
        /// What it says.
        message: Arc<ToHost>,
    },
    /// A connection is gone.
    Lost {
        /// Its session.
        session: SessionId,
    },
    /// Time has passed; to be said a few times each beat.
    Tick,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A connection is to be made, to the controller or whichever of several answers.
    Connect,
    /// A message is to be sent.
    Send {
        /// By which session.
        session: SessionId,
        /// What it says.
        message: FromHost,
    },
    /// A connection is to be ended. It is forgotten already.
    Disconnect {
        /// Its session.
        session: SessionId,
    },
    /// This epoch is to be given to [`super::Agent::new`] after a restart; kept before anything after this is
    /// done.
    Remember {
        /// The epoch.
        epoch: u64,
    },
    /// A flow takes a path from now on.
    Steer {
        /// The flow.
        flow: u64,
        /// Its path.
        path: Arc<Path>,
    },
    /// A flow goes as switches hash it from now on.
    Ecmp {
        /// The flow.
        flow: u64,
        /// Why.
        why: Why,
    },
    /// A flow sends no faster than this.
    Rate {
        /// The flow.
        flow: u64,
        /// Its share and the slack [bytes/s].
        bytes_per_second: u64,
    },
    /// The controller does not take a job, which is forgotten.
    JobRefused {
        /// The job.
        job: u32,
        /// Why.
        why: Refusal,
    },
}

/// Why a flow goes as switches hash it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// It has too few bytes to be announced.
    Small,
    /// The host has as many flows as it announces.
    TooMany,
    /// There was no session when it opened.
    Away,
    /// The controller has not answered in time.
    NoAnswer,
    /// The controller does not take it.
    Refused(Refusal),
    /// The controller took its path away.
    Revoked(Reason),
    /// A controller that knows of all that there is said nothing of it.
    Forgotten,
    /// Its path loses packets, or is slow.
    Worse,
}

/// What the agent has counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Flows that opened.
    pub opened: u64,
    /// Times that a flow took a path.
    pub steered: u64,
    /// Times that a flow was left to the switches' hashes.
    pub unsteered: u64,
    /// Flows whose answer did not come in time.
    pub unanswered: u64,
    /// Times that a path was left as it was bad.
    pub worse: u64,
    /// Flows and jobs that the controller refused.
    pub refused: u64,
    /// Sessions that were welcomed.
    pub welcomes: u64,
    /// Controllers of an older epoch that were refused.
    pub stale: u64,
    /// Messages that had been heard before.
    pub duplicates: u64,
    /// Messages that came before one that was to come first.
    pub gaps: u64,
    /// Messages that were said again as they were not acknowledged.
    pub sent_again: u64,
    /// Times that the controller asked for all that there is.
    pub resyncs: u64,
}
