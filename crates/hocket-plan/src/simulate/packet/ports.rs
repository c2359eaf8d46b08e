//! The state of every link's two ends: virtual channels, buffers, and whose turn it is.
//!
//! What asks for a link is a *requester*: a buffer at the sending device (number `link * channels +
//! channel`, of the link that it ends) or the sender's own queue for the link (`links * channels +
//! link`). A *port* is what requesters share a turn by: a link's end, or a queue (`links + link`).

use std::collections::VecDeque;

use super::options::{CREDIT, Timing};
use crate::id::narrow;
use crate::topology::Topology;

/// No requester, no channel, no transfer.
pub(super) const NONE: u32 = u32::MAX;

/// A packet that is in a buffer, or coming into it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) transfer: u32,
    /// Where on its route, see [`crate::plan::Routes::follow`].
    pub(super) at: u32,
    /// The link that it goes to next; [`NONE`] if it is to be taken out.
    pub(super) link: u32,
    pub(super) flits: u32,
    pub(super) bytes: u64,
    pub(super) is_last: bool,
}

/// The buffer of a virtual channel at a link's end. What is on its way there counts as in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffer {
    pub(super) packets: VecDeque<Packet>,
    /// When each flit comes or came.
    pub(super) arrivals: VecDeque<u64>,
}

/// The sender's queue for one link: messages, cut into packets one at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    pub(super) messages: VecDeque<u32>,
    /// Bytes of the first message that are not in a packet yet, with the packet at the front.
    pub(super) bytes_left: u64,
    /// Number of the first message's next packet, where it is sprayed: counted over all queues.
    pub(super) next: u64,
    pub(super) front: Option<Packet>,
}

/// Flits that leave one after the other, because nobody else wants the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Train {
    pub(super) start: u64,
    pub(super) flits: u32,
}

/// One link, seen from its sender.
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// Cycles that a flit holds the link, and from its start to its arrival.
    pub(super) flit: u64,
    pub(super) flight: u64,
    pub(super) src: u32,
    /// When the link is free.
    pub(super) free: u64,
    /// Requesters whose head wants a channel.
    pub(super) waiting: Vec<u32>,
    /// Port whose turn it is.
    pub(super) turn: u32,
    pub(super) train: Option<Train>,
    /// When it is looked at next, or `u64::MAX`.
    pub(super) serve_at: u64,
    pub(super) allocate_at: u64,
    /// The latest cycle in which channels were asked for.
    pub(super) asked: u64,
    /// Whether a head waits only for room in the buffers at the link's end.
    pub(super) is_short: bool,
}

/// One virtual channel of a link, seen from its sender.
#[derive(Clone, Debug)]
pub(super) struct VirtualChannel {
    pub(super) holder: u32,
    /// Requester whose turn it is.
    pub(super) turn: u32,
    /// Flits for which the buffer has room.
    pub(super) room: u32,
    /// Room that is given back: when, and how much.
    pub(super) credits: VecDeque<(u64, u32)>,
}

impl VirtualChannel {
    /// Counts the room that is known at `now`. Credits come in the order in which they were given back:
    /// a packet that is taken out at once had the buffer to itself, and what follows it comes later.
    #[inline]
    pub(super) fn settle(&mut self, now: u64) {
        while let Some(&(time, flits)) = self.credits.front() {
            if time > now {
                break;
            }
            self.room += flits;
            self.credits.pop_front();
        }
    }

    #[inline]
    pub(super) fn give_back(&mut self, now: u64, flits: u32) {
        self.credits.push_back((now + CREDIT, flits));
    }
}

/// What a requester has been given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    /// The channel, or [`NONE`].
    pub(super) channel: u32,
    /// From when it may ask for the link.
    pub(super) from: u64,
    /// Flits of the front packet that have left.
    pub(super) sent: u32,
    /// Channel, of all links', whose turn it is to be accepted.
    pub(super) turn: u32,
}

/// A switch's bandwidth limit: a flit at a time, of whatever link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Cycles that a flit holds it, and when it is free.
    pub(super) flit: u64,
    pub(super) free: u64,
    /// Link whose turn it is.
    pub(super) turn: u32,
}

/// All links of a topology.
pub(super) struct Ports {
    pub(super) channels: u32,
    pub(super) links: u32,
    pub(super) outputs: Vec<Output>,
    /// By link and channel.
    pub(super) channel: Vec<VirtualChannel>,
    /// By link and channel: the buffers at the links' ends.
    pub(super) buffers: Vec<Buffer>,
    pub(super) queues: Vec<Queue>,
    /// By requester.
    pub(super) grants: Vec<Grant>,
    /// By link: whose turn among the channels that end there.
    pub(super) turns: Vec<u32>,
    /// By device; for switches with a limit.
    pub(super) limits: Vec<Option<Limit>>,
}

impl Ports {
    pub(super) fn new(topology: &Topology, timing: &Timing, channels: u32, room: u32) -> Self {
        let links = topology.links().len();
        let outputs = topology.links().iter().map(|link| Output {
            flit: timing.flit(link.bandwidth),
            flight: timing.flight(link, topology.device(link.src).limit),
            src: link.src.0,
            free: 0,
            waiting: Vec::new(),
            turn: 0,
            train: None,
            serve_at: u64::MAX,
            allocate_at: u64::MAX,
            asked: u64::MAX,
            is_short: false,
        });
        let channel = VirtualChannel {
            holder: NONE,
            turn: 0,
            room,
            credits: VecDeque::new(),
        };
        let grant = Grant {
            channel: NONE,
            from: 0,
            sent: 0,
            turn: 0,
        };
        let limits = topology.devices().iter();
        let limits = limits.map(|device| {
            device.limit.map(|limit| Limit {
                flit: timing.flit(limit),
                free: 0,
                turn: 0,
            })
        });
        let buffers = links * channels as usize;
        Self {
            channels,
            links: narrow(links),
            outputs: outputs.collect(),
            channel: vec![channel; buffers],
            buffers: vec![Buffer::default(); buffers],
            queues: vec![Queue::default(); links],
            grants: vec![grant; buffers + links],
            turns: vec![0; links],
            limits: limits.collect(),
        }
    }

    /// Returns the requester that a sender's queue for a link is.
    #[inline]
    pub(super) fn queue_of(&self, link: u32) -> u32 {
        self.links * self.channels + link
    }

    /// Returns the link whose queue a requester is; `None` for buffers.
    #[inline]
    pub(super) fn as_queue(&self, requester: u32) -> Option<u32> {
        requester.checked_sub(self.links * self.channels)
    }

    /// Returns the port of a requester.
    #[inline]
    pub(super) fn port(&self, requester: u32) -> u32 {
        match self.as_queue(requester) {
            Some(link) => self.links + link,
            None => requester / self.channels,
        }
    }

    /// Returns the packet at the front of a requester that has one.
    #[inline]
    pub(super) fn head(&self, requester: u32) -> &Packet {
        let front = match self.as_queue(requester) {
            Some(link) => self.queues[link as usize].front.as_ref(),
            None => self.buffers[requester as usize].packets.front(),
        };
        front.expect("a requester that asks has a packet")
    }

    /// When a requester's next flit is there; `None` if that is not known yet.
    #[inline]
    pub(super) fn next_flit(&self, requester: u32) -> Option<u64> {
        let grant = &self.grants[requester as usize];
        let came = match self.as_queue(requester) {
            Some(_) => 0,
            None => *self.buffers[requester as usize].arrivals.front()?,
        };
        Some(came.max(grant.from))
    }

    /// Returns how far `number` is behind `turn`, going round.
    #[inline]
    pub(super) fn behind(turn: u32, number: u32) -> u32 {
        number.wrapping_sub(turn)
    }
}
