//! Flow fidelity: transfers as fluids that share links max-min fairly.
//!
//! A transfer that may start is at once a flow over every link of its route (cut through), and over
//! the limits of the switches that it crosses. Rates are max-min fair: none can rise unless one that is
//! no higher falls. They are found anew whenever a flow starts or ends. A flow of n bytes ends when n
//! bytes have drained at its rates; the transfer has arrived the sum of its links' latencies later.
//!
//! # Rounding
//! A rate is a whole number of 2^-24 bytes/s, rounded down, so that a link's flows never add up to more
//! than its bandwidth, and a full one's leave less than one such unit for each of the
//! fastest ([`FlowOptions::rate_bits`] rounds further). What has drained is
//! rate x picoseconds, exact in 128 bits: nothing is rounded where a rate changes. Only the end is, up to
//! the next picosecond, once for each flow. A link counts a flow's bytes as they are.
//!
//! # Source
//! Progressive filling: Bertsekas and Gallager, Data Networks, section 6.5.2. How a change is followed: `refill`.

mod ends;
mod engine;
mod fair;
mod refill;
mod spray;

pub use ends::Ends;
pub(super) use engine::simulate;
pub use engine::{PS_PER_SECOND, UNITS_PER_BYTE, units};
pub use fair::{Fair, Pass};

use std::num::NonZeroU32;

use crate::units::Bandwidth;

/// The knobs of a simulation at flow fidelity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowOptions {
    /// No flow is faster than this; default: as fast as its links.
    pub flow_rate: Option<Bandwidth>,
    /// Whether to keep every stay on a link, here of a flow, from its start until its last byte has
    /// left (24 bytes each); those on one link overlap. Default no.
    pub keep_services: bool,
    /// Rates keep so many leading bits, rounded down; default: all. A link then leaves up to
    /// 2^(1 - bits) of its bandwidth, and a change reaches far fewer flows: 10 bits are for 100,000
    /// flows on links that each share with many others.
    pub rate_bits: Option<NonZeroU32>,
}

#[cfg(test)]
mod tests;
