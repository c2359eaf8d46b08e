//! What a simulation returns.

use crate::units::Time;

/// Use of one link during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkUse {
    /// Time during which the link was occupied.
    pub busy: Time,
    /// Bytes that crossed the link; saturates at `u64::MAX`.
    pub bytes: u64,
    /// Messages that crossed the link.
    pub messages: u64,
}

/// One message's stay on one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Transfer that the message belongs to.
    pub transfer: u32,
    /// Link that was occupied.
    pub link: u32,
    /// Time at which the message began to occupy the link.
    pub start: Time,
    /// Time at which the link was free again.
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
