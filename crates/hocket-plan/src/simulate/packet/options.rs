//! The knobs of packet fidelity, and what they come to on a topology, in clock cycles.

use crate::id::fit;
use crate::simulate::{LinkOrder, SimulateError};
use crate::topology::{Link, Topology};
use crate::units::{Bandwidth, Time};

/// How routers send packets. The defaults are table II of Laskar et al.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketOptions {
    /// Bytes of a packet; the last one of a message may be shorter.
    pub packet_bytes: u64,
    /// Bytes of a flit; the last one of a message takes as long as any.
    pub flit_bytes: u64,
    /// Flits that each packet has before those of its bytes.
    pub header_flits: u32,
    /// Virtual channels of a link.
    pub virtual_channels: u32,
    /// Flits that the buffer of a virtual channel holds.
    pub buffer_flits: u32,
    /// A cycle of the routers' clock. `None`: 1 ns, or the longest shorter one that makes no link
    /// more than 5 % slower where the time of its flits is rounded up to whole cycles.
    pub cycle: Option<Time>,
    /// How fast an NPU adds what it has received, one message at a time. `None`: in no time.
    pub reduction_rate: Option<Bandwidth>,
    /// In what order a link takes up the messages that its sender starts; by default the plan's own.
    pub order: Option<LinkOrder>,
    /// Whether to keep every stay on a link; default no.
    pub keep_services: bool,
}

impl Default for PacketOptions {
    fn default() -> Self {
        Self {
            packet_bytes: 8192,
            flit_bytes: 512,
            header_flits: 0,
            virtual_channels: 4,
            buffer_flits: 318,
            cycle: None,
            reduction_rate: None,
            order: None,
            keep_services: false,
        }
    }
}

impl PacketOptions {
    /// Returns a cycle of the clock on a topology: the one given, or the one chosen for its links.
    ///
    /// # Errors
    /// [`SimulateError::Packets`] for options that contradict each other.
    pub fn cycle_on(&self, topology: &Topology) -> Result<Time, SimulateError> {
        Ok(Time::from_ps(Timing::new(self, topology)?.cycle))
    }
}

/// Most virtual channels of a link.
const MAX_CHANNELS: u32 = 64;
/// Cycles tried where none is given [ps], and the highest share that rounding up may cost.
const CYCLES: [u64; 10] = [1000, 500, 200, 100, 50, 20, 10, 5, 2, 1];
const ROUNDING: f64 = 0.05;

/// From a message's readiness to its first head's request for a virtual channel [cycles].
pub(super) const INJECTION: u64 = 1;
/// From a head's request for a virtual channel to its first chance of the link.
pub(super) const ALLOCATION: u64 = 1;
/// From a flit's grant of the link to its start on it.
pub(super) const SWITCH: u64 = 2;
/// From a tail's arrival at the receiving device to the message's end.
pub(super) const EJECTION: u64 = 4;
/// From a flit's leaving a buffer to its room being known at the sender.
pub(super) const CREDIT: u64 = 3;

/// [`PacketOptions`] on a topology.
#[derive(Clone, Debug)]
pub(super) struct Timing {
    /// Picoseconds of a cycle.
    pub(super) cycle: u64,
    pub(super) flit_bytes: u64,
    header_flits: u32,
}

impl Timing {
    pub(super) fn new(options: &PacketOptions, topology: &Topology) -> Result<Self, SimulateError> {
        let refuse = |why: String| Err(SimulateError::Packets { why });
        let PacketOptions {
            packet_bytes,
            flit_bytes,
            header_flits,
            virtual_channels,
            buffer_flits,
            ..
        } = *options;
        if flit_bytes == 0 || packet_bytes < flit_bytes {
            return refuse(format!(
                "a packet of {packet_bytes} B does not hold a flit of {flit_bytes} B; give a flit of 1 B to {packet_bytes} B"
            ));
        }
        let packet_flits = packet_bytes
            .div_ceil(flit_bytes)
            .saturating_add(u64::from(header_flits));
        if packet_flits > u64::from(buffer_flits) {
            let header = if header_flits > 0 {
                " and a header"
            } else {
                ""
            };
            return refuse(format!(
                "a buffer of {buffer_flits} flits does not hold a packet of {packet_flits} flits ({packet_bytes} B\
                 {header}), which cut-through asks of it; give it {packet_flits} flits or more, or shorter packets"
            ));
        }
        if !(1..=MAX_CHANNELS).contains(&virtual_channels) {
            return refuse(format!(
                "a link has 1 to {MAX_CHANNELS} virtual channels, not {virtual_channels}"
            ));
        }
        if options.cycle == Some(Time::ZERO) {
            return refuse("a clock cycle takes time; give one above 0".to_owned());
        }
        let cycle = options
            .cycle
            .map_or_else(|| best_cycle(flit_bytes, topology), Time::as_ps);
        Ok(Self {
            cycle,
            flit_bytes,
            header_flits,
        })
    }

    pub(super) fn cycles(&self, time: Time) -> u64 {
        time.as_ps().div_ceil(self.cycle)
    }

    /// Returns the last cycle that a run may reach: 213 days, or a quarter of them where a cycle is 1 ps, so that what
    /// is sent then is told without overflow.
    pub(super) fn longest(&self) -> u64 {
        ((u64::MAX - 1) / self.cycle).min(u64::MAX / 4)
    }

    /// For how long a flit holds a link; what is longer than any run is as long as just that.
    pub(super) fn flit(&self, bandwidth: Bandwidth) -> u64 {
        let cycles = self.cycles(bandwidth.transmission(self.flit_bytes));
        cycles.clamp(1, self.longest() + 1)
    }

    /// From a flit's start on a link to its arrival: the link's latency, in which it is sent, no faster
    /// than the limit of the switch behind the link lets it through.
    pub(super) fn flight(&self, link: &Link, limit: Option<Bandwidth>) -> u64 {
        let latency = self.cycles(link.latency).min(self.longest() + 1);
        let sent = self.flit(link.bandwidth);
        latency.max(limit.map_or(sent, |limit| sent.max(self.flit(limit))))
    }

    /// Flits of a packet.
    pub(super) fn flits(&self, bytes: u64) -> u32 {
        fit::<u32, _>(bytes.div_ceil(self.flit_bytes).max(1)) + self.header_flits
    }
}

fn best_cycle(flit_bytes: u64, topology: &Topology) -> u64 {
    let costs_little = |cycle: u64| {
        topology.links().iter().all(|link| {
            // Not rounded up to whole picoseconds before it is to whole cycles.
            let flit = flit_bytes as f64 / link.bandwidth.bytes_per_second() as f64 * 1e12;
            let cycle = cycle as f64;
            (flit / cycle).ceil() * cycle <= flit * (1.0 + ROUNDING)
        })
    };
    let last = CYCLES[CYCLES.len() - 1];
    let mut cycles = CYCLES.into_iter();
    cycles.find(|&cycle| costs_little(cycle)).unwrap_or(last)
}
