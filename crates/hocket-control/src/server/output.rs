//! What the service is told, what it asks for, and what it counts.

use std::sync::Arc;

use strum::VariantArray;

use crate::directory::HostId;
use crate::message::{FromHost, Refusal, ToHost};
use crate::store::Record;

/// A session, numbered by whoever owns the connections; no number is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A host that has proved its name opens a session.
    Connected {
        /// The host.
        host: HostId,
        /// The session.
        session: SessionId,
    },
    /// A message came.
    Received {
        /// By which session.
        session: SessionId,
        /// What it says.
        message: FromHost,
    },
    /// A session's connection is gone.
    Disconnected {
        /// The session.
        session: SessionId,
    },
    /// Operators say that links have failed.
    LinksFail {
        /// The links.
        links: Vec<u32>,
    },
    /// Operators say that links work again.
    LinksReturn {
        /// The links.
        links: Vec<u32>,
    },
    /// Somebody wants to know when all that was said before outlives a crash.
    Ask {
        /// The number of the question; none is used twice.
        question: u64,
    },
    /// Records up to this number are stored.
    Stored {
        /// The number.
        record: u64,
    },
    /// Records up to this number are not stored, and those who wait are to wait no longer. Storing them is tried again.
    Unstored {
        /// The number.
        record: u64,
    },
    /// There is time to compute ahead.
    Prepare,
    /// Time has passed; to be said a few times each beat.
    Tick,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A message is to be sent.
    Send {
        /// By which session.
        session: SessionId,
        /// What it says.
        message: Arc<ToHost>,
    },
    /// A session is to be ended. It is forgotten already.
    Close {
        /// The session.
        session: SessionId,
        /// Why.
        why: Close,
    },
    /// Something is to be stored, and [`Input::Stored`] or [`Input::Unstored`] to be said then.
    Record {
        /// Its number, one more than that of the record before.
        number: u64,
        /// What is to be stored.
        record: Record,
    },
    /// The answer to [`Input::Ask`].
    Answer {
        /// The number of the question.
        question: u64,
        /// Whether all that was said before it outlives a crash; else a restart would perhaps forget it.
        is_stored: bool,
    },
    /// Something that operators may want to read later.
    Audit(Audit),
}

/// Why a session is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, VariantArray)]
pub enum Close {
    /// The host opened another.
    Replaced,
    /// The host said nothing for a lease.
    Silent,
    /// The host speaks another version.
    Version,
    /// The host has obeyed a later controller: this one is to find out whether it is deposed.
    NewerEpoch,
    /// A message has more of something than a message may.
    TooLarge,
    /// The host acknowledges what was not said.
    Nonsense,
    /// The host says far more than it may.
    Flood,
    /// The host does not keep up with what it is told.
    Slow,
}

impl Close {
    /// Every reason, in order.
    pub const ALL: &[Close] = Self::VARIANTS;
}

/// Something that operators may want to read later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audit {
    /// A host said all that it has.
    Came(HostId),
    /// A host is gone, with so many flows.
    Went(HostId, usize),
    /// A session of a host was ended.
    Closed(HostId, Close),
    /// So many flows of a host were refused.
    FlowsRefused(HostId, Refusal, usize),
    /// A job of a host was refused.
    JobRefused(HostId, u32, Refusal),
    /// A host registered a job with so many flows.
    JobCame(HostId, u32, usize),
    /// A job is forgotten.
    JobWent(u32),
    /// Links have failed, whoever says so.
    LinksFailed(Vec<u32>),
    /// Links work again.
    LinksReturned(Vec<u32>),
    /// The controller knows of all that there is.
    Synced,
}

/// What the service has counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Messages that came, and that went.
    pub received: u64,
    /// Messages that went.
    pub sent: u64,
    /// Messages that were said again as they were not acknowledged.
    pub sent_again: u64,
    /// Sessions that opened.
    pub sessions: u64,
    /// Sessions that were ended, in the order of [`Close::ALL`].
    pub closed: [u64; Close::ALL.len()],
    /// Messages that had been taken before.
    pub duplicates: u64,
    /// Messages that came before one that was to come first.
    pub gaps: u64,
    /// Messages of sessions that are not there, and links that are not.
    pub strays: u64,
    /// Times that a host was told to say again what it has.
    pub resyncs: u64,
    /// Flows that started, those in [`crate::message::Hello`] included.
    pub starts: u64,
    /// Flows that ended.
    pub ends: u64,
    /// Flows and jobs that were refused, in the order of [`Refusal::ALL`].
    pub refused: [u64; Refusal::ALL.len()],
    /// Changes that hosts were told.
    pub changes: u64,
    /// Hosts whose lease and grace were over.
    pub lost_hosts: u64,
}
