//! How a path is expressed in what a host sends, so that switches take it.
//!
//! ```text
//! path -> Stages (each switch's hash, its ways, the one wanted) -> SourcePort, FlowLabel --+
//! path -> segments ------------------------------------------------> SegmentList ---------- +-> Mark
//! path of the pair, as routes are -----------------------------------> Static --------------+
//! ```
//!
//! A flow whose source port the receiver ignores is steered by choosing a port whose hash takes the wanted way
//! at every switch. That needs the switches' hashes: fields, seed and offset. Where two switches hash alike,
//! what the second can choose follows from what the first did, and some paths do not exist (polarisation): that
//! is found by comparing intervals or remainders, not by searching.
//!
//! # Source
//! Cohen, Yallouz, Schapira, Belkar, Mizrahi: Routing for large ML models, section 3.5.3: segment routing,
//! or header fields that switches hash. Filsfils et al., RFC 8402 (segment routing), RFC 8754 (SRv6).

#![forbid(unsafe_code)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "hashes take the low bits of wider words"
)]

mod header;
mod linear;
mod linux;
mod reason;
mod roce;
mod stage;
mod solve;

pub use header::{Fields, Header};
pub use linux::Policy;
pub use reason::Reason;
pub use roce::{ROCE_PORT, queue_pair_port};
pub use solve::{Stages, Unreachable};
pub use stage::{Algorithm, Stage, SwitchHash};

// Of the crate below: `crate::units` and so on.
use hocket_base::{explain, units};

use std::net::Ipv6Addr;
use std::ops::RangeInclusive;

use stage::Part;

/// A path as each way to express it needs it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// What hashing switches are to choose.
    pub stages: Stages<'a>,
    /// Segments of the switches that are to be crossed and of the receiver, in order.
    pub segments: &'a [Ipv6Addr],
    /// Whether it is the path that routes give the pair anyway.
    pub is_static: bool,
}

/// What a host does to the packets of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It sends them from this port.
    SourcePort(u16),
    /// It writes this flow label.
    FlowLabel(u32),
    /// It wraps them for these segments, in the order in which they are crossed.
    Segments(Vec<Ipv6Addr>),
    /// Nothing.
    Nothing,
}

/// A way to express paths.
pub trait Express {
    /// Returns what the host that sends `header` does so that its packets take a path.
    ///
    /// # Errors
    /// [`Unreachable`] where no packet of this kind takes the path, with the proof.
    fn express(&self, header: &Header, wanted: &Wanted<'_>) -> Result<Mark, Unreachable>;
}

/// Source ports of TCP or UDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePort {
    /// Ports that may be used.
    pub ports: RangeInclusive<u16>,
    /// The port that is tried first, so that flows of a pair get several.
    pub first: u16,
    /// Ports that are in use between the pair, sorted.
    pub taken: Vec<u16>,
}

impl SourcePort {
    /// The ports of RoCEv2, which are made of 14 bits.
    pub const ROCE: RangeInclusive<u16> = 0xc000..=0xffff;
    /// Ports that no other service is likely to have.
    pub const UNPRIVILEGED: RangeInclusive<u16> = 1024..=65535;

    /// Any port of a range.
    pub fn among(ports: RangeInclusive<u16>) -> Self {
        Self {
            first: *ports.start(),
            ports,
            taken: Vec::new(),
        }
    }

    /// Returns the first port, in order from `first` on and around, that leads through all stages.
    ///
    /// # Errors
    /// [`Unreachable`] if there is none.
    ///
    /// # Complexity
    /// O(product of the stages' ways) hashes expected, O(ports) at most.
    ///
    /// # Examples
    /// A ToR of Linux namespaces that spreads over 32 spines:
    /// ```
    /// use hocket_steering::{
    ///     Algorithm, Fields, Header, Policy, SourcePort, Stage, Stages, SwitchHash,
    /// };
    ///
    /// let hash = SwitchHash {
    ///     algorithm: Algorithm::Linux(Policy::Custom(Fields::FIVE)),
    ///     seed: 12345,
    ///     offset: 0,
    /// };
    /// let mut header = Header {
    ///     src: [10, 0, 0, 1].into(),
    ///     dst: [10, 0, 1, 1].into(),
    ///     protocol: 17,
    ///     sport: 0,
    ///     dport: 4791,
    ///     label: 0,
    /// };
    /// let tor = Stage { hash, ways: 32, wanted: 7 };
    /// let stages = Stages { forth: &[tor], back: &[] };
    /// header.sport = SourcePort::among(SourcePort::ROCE).find(&header, stages)?;
    /// assert_eq!(hash.way(&header, 32), 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find(&self, header: &Header, stages: Stages<'_>) -> Result<u16, Unreachable> {
        let is_taken = |port: u32| self.taken.binary_search(&(port as u16)).is_ok();
        let range = u32::from(*self.ports.start())..=u32::from(*self.ports.end());
        let first = self.first.into();
        let found = solve::solve(header, Part::SourcePort, range, first, stages, is_taken)?;
        Ok(found as u16)
    }
}

impl Express for SourcePort {
    fn express(&self, header: &Header, wanted: &Wanted<'_>) -> Result<Mark, Unreachable> {
        Ok(Mark::SourcePort(self.find(header, wanted.stages)?))
    }
}

/// Flow labels of IPv6, 1 to 2^20 - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowLabel {
    /// The label that is tried first; 0: the lowest.
    pub first: u32,
}

impl FlowLabel {
    /// Returns the first label, in order from `first` on and around, that leads through all stages.
    ///
    /// # Errors
    /// [`Unreachable`] if there is none, and for IPv4.
    ///
    /// # Complexity
    /// O(product of the stages' ways) hashes expected, O(labels) at most.
    pub fn find(&self, header: &Header, stages: Stages<'_>) -> Result<u32, Unreachable> {
        if header.src.is_ipv4() {
            let why = "IPv4 has no flow label; take source ports";
            return Err(Unreachable::NotExpressible { why });
        }
        let (range, first) = (1..=0xf_ffff, self.first.max(1));
        solve::solve(header, Part::FlowLabel, range, first, stages, |_| false)
    }
}

impl Express for FlowLabel {
    fn express(&self, header: &Header, wanted: &Wanted<'_>) -> Result<Mark, Unreachable> {
        Ok(Mark::FlowLabel(self.find(header, wanted.stages)?))
    }
}

/// A list of segments that the host writes in front of each packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentList;

impl Express for SegmentList {
    fn express(&self, _: &Header, wanted: &Wanted<'_>) -> Result<Mark, Unreachable> {
        match wanted.segments {
            [] => Err(Unreachable::NotExpressible {
                why: "no switch of the path has a segment; give the fabric's switches their addresses",
            }),
            segments => Ok(Mark::Segments(segments.to_vec())),
        }
    }
}

/// Nothing is done: each pair has the one path that routes give it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Static;

impl Express for Static {
    fn express(&self, _: &Header, wanted: &Wanted<'_>) -> Result<Mark, Unreachable> {
        match wanted.is_static {
            true => Ok(Mark::Nothing),
            false => Err(Unreachable::NotExpressible {
                why: "routes lead the pair another way; steer by source port or segments",
            }),
        }
    }
}

#[cfg(test)]
mod tests;
