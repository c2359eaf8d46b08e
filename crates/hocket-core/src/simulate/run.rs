//! What a simulation returns.

use crate::units::Time;

/// How much one link was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkUse {
    /// Time during which it was occupied.
    pub busy: Time,
    /// Bytes that crossed it; saturates at `u64::MAX`.
    pub bytes: u64,
    /// Messages that crossed it.
    pub messages: u64,
}

/// One message's stay on one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The transfer.
    pub transfer: u32,
    /// The link.
    pub link: u32,
    /// When it began to occupy the link.
    pub start: Time,
    /// When it ceased to.
    pub end: Time,
}

/// A simulated plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// From the start to the last transfer's end: the collective time.
    pub time: Time,
    /// When each transfer began to occupy its first link.
    pub start: Vec<Time>,
    /// When each transfer had arrived whole.
    pub end: Vec<Time>,
    /// Use of each link.
    pub links: Vec<LinkUse>,
    /// Every stay on a link, in order of start; empty unless asked for.
    pub services: Vec<Service>,
}
