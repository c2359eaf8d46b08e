//! Why a group could not be made, or a call came to nothing.

use std::fmt;

use strum::{FromRepr, IntoStaticStr, VariantArray};

/// What kind of failure it is; programs tell them apart by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
#[repr(u8)]
pub enum Code {
    /// What the caller gave makes no sense.
    Invalid = 0,
    /// The group could not be made.
    Join = 1,
    /// A rank has died: its connection to the store ended, and it did not say that it leaves.
    Died = 2,
    /// A rank made no progress within the timeout.
    Stalled = 3,
    /// Ranks do different things: another plan, type, size or call.
    Mismatch = 4,
    /// A rank gave up or left, and said so.
    Aborted = 5,
    /// The store, where ranks meet, is gone.
    StoreLost = 6,
    /// The caller's program asked to stop waiting.
    Interrupted = 7,
    /// A connection between two ranks broke, and neither is known to have died.
    Lost = 8,
}

impl Code {
    /// Returns the name in programs, as `stalled`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Why a group could not be made, or a call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its kind.
    pub code: Code,
    /// The rank at fault, if one is.
    pub culprit: Option<u32>,
    /// Number of the call, counted from 1; 0 outside of calls.
    pub call: u64,
    /// What went wrong, in words.
    pub why: String,
}

impl Failure {
    /// Returns a failure that no rank is to blame for.
    pub fn new(code: Code, why: impl Into<String>) -> Self {
        let (culprit, call, why) = (None, 0, why.into());
        Self {
            code,
            culprit,
            call,
            why,
        }
    }

    /// Returns the same, with the rank at fault and the call.
    pub fn of(self, culprit: Option<u32>, call: u64) -> Self {
        Self {
            culprit,
            call,
            ..self
        }
    }

    /// Returns the failure of a wait for a rank that has left.
    pub(crate) fn left(rank: u32, call: u64) -> Self {
        let why = format!("rank {rank} has left the group");
        Self::new(Code::Aborted, why).of(Some(rank), call)
    }

    /// Returns the same; of a wait that nobody else has judged, with the rank that was waited for.
    pub(crate) fn awaiting(self, peer: u32) -> Self {
        match (self.code, self.culprit, self.call) {
            (Code::Stalled, None, 0) => self.of(Some(peer), 0),
            _ => self,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.call > 0 {
            write!(f, "call {}: ", self.call)?;
        }
        f.write_str(&self.why)
    }
}

impl std::error::Error for Failure {}
