//! What the controller has of a host.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hocket_base::id::NpuId;

use super::options::{Allowance, Options};
use super::output::SessionId;
use crate::digest::Digest;
use crate::message::{HeldPattern, HostFlow, ToHost};

/// A host.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) session: Option<Session>,
    pub(super) flows: BTreeMap<u64, LiveFlow>,
    /// Jobs that it registered, and the flows of their patterns.
    pub(super) jobs: BTreeSet<u32>,
    pub(super) pattern_flows: usize,
    /// Links that have failed as its probes say.
    pub(super) failed: BTreeSet<u32>,
    pub(super) digest: Digest,
    pub(super) allowance: Allowance,
    pub(super) presence: Presence,
    pub(super) heard: Duration,
    /// Revision of the last numbered message to it.
    pub(super) revision: u64,
    /// While the controller recovers: flows of patterns that it came back with.
    pub(super) held: Vec<HeldPattern>,
}

/// Whether a host is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It has not said anything since the controller started.
    Unknown,
    /// It has said all that it has.
    Here,
    /// Its lease and grace are over.
    Gone,
}

/// A live flow of a host.
#[derive(Clone, Debug)]
pub(super) struct LiveFlow {
    pub(super) said: HostFlow,
    pub(super) nics: [NpuId; 2],
    /// The choice and the rate that its host was told last; 0: no rate.
    pub(super) told: Option<u32>,
    pub(super) rate: u64,
    /// The links as they were then: [`super::Server::stamp`].
    pub(super) stamp: u32,
    /// The input that announced it last.
    pub(super) input: u64,
}

/// A session that is open.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) heard: Duration,
    /// Number of the last message that was taken; `None` before the first
    /// [`crate::message::Hello`]. And the number that the host was told.
    pub(super) taken: Option<u64>,
    pub(super) told: Option<u64>,
    /// Messages that are taken once a record is stored: their numbers, and the records'.
    pub(super) storing: VecDeque<(u64, u64)>,
    /// Numbered messages that were not acknowledged.
    pub(super) window: VecDeque<Sent>,
    /// The last revision that refuses something; digests differ until it is acknowledged.
    pub(super) refused: u64,
    /// When the host was told last to say all again.
    pub(super) resync: Option<Duration>,
}

/// A numbered message on its way.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) revision: u64,
    pub(super) at: Duration,
    pub(super) message: Arc<ToHost>,
    /// The policy's revision when it was made.
    pub(super) policy: u64,
}

impl Host {
    pub(super) fn new(options: &Options, now: Duration) -> Self {
        Self {
            session: None,
            flows: BTreeMap::new(),
            jobs: BTreeSet::new(),
            pattern_flows: 0,
            failed: BTreeSet::new(),
            digest: Digest::default(),
            allowance: Allowance::new(options, now),
            presence: Presence::Unknown,
            heard: now,
            revision: 0,
            held: Vec::new(),
        }
    }
}

impl Session {
    pub(super) fn new(id: SessionId, now: Duration) -> Self {
        Self {
            id,
            heard: now,
            taken: None,
            told: None,
            storing: VecDeque::new(),
            window: VecDeque::new(),
            refused: 0,
            resync: None,
        }
    }

    /// Returns the number of the last message that was taken and will be known after a restart, as far as it is to be.
    pub(super) fn settled(&mut self, stored: u64) -> Option<u64> {
        while self
            .storing
            .front()
            .is_some_and(|&(_, record)| record <= stored)
        {
            self.storing.pop_front();
        }
        match self.storing.front() {
            Some(&(sequence, _)) => Some(sequence - 1),
            None => self.taken,
        }
    }
}
