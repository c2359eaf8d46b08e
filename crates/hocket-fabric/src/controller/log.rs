//! Events as bytes, and what the controller said to them, once more.
//!
//! ```text
//! "hocket events 2\n", then for each event: picoseconds since the one before, its kind, its numbers
//! ```
//!
//! Numbers are LEB128 (seven bits a byte, lowest first), lists begin with their length. The fabric and the
//! options are not in the log: whoever replays it gives them. Version 1, which did not say of flows whether they
//! are fixed, is read as well.

use super::Controller;
use super::event::{AnnouncedFlow, Command, Event, FlowId, JobId};
use crate::explain::Explain;
use crate::id::{LinkId, NpuId};
use crate::units::Time;

const HEADER: &[u8] = b"hocket events 2\n";
/// Of a log whose flows can all move.
const HEADER_1: &[u8] = b"hocket events 1\n";

/// What was told to a controller, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Events and their times, which do not go back.
    pub events: Vec<(Time, Event)>,
}

/// Bytes that are no log.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[explain(
    why("byte {at} of the event log: {why}"),
    remedy("take the log as the controller wrote it")
)]
pub struct BadLog {
    /// Where.
    pub at: usize,
    /// What is wrong there.
    pub why: &'static str,
}

/// Tells a controller all events of a log, and returns its answer to each.
pub fn replay(controller: &mut Controller, log: &Log) -> Vec<Vec<Command>> {
    let events = log.events.iter();
    events
        .map(|(now, event)| controller.handle(*now, event))
        .collect()
}

impl Log {
    /// Returns the log as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = HEADER.to_vec();
        let mut before = Time::ZERO;
        for (now, event) in &self.events {
            number(&mut bytes, now.saturating_sub(before).as_ps());
            before = before.max(*now);
            write(&mut bytes, event);
        }
        bytes
    }

    /// Returns the log that bytes are.
    ///
    /// # Errors
    /// [`BadLog`] for bytes that [`Log::encode`] did not make.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadLog> {
        let says_fixed = bytes.starts_with(HEADER);
        let mut reader = Reader {
            bytes,
            at: 0,
            says_fixed,
        };
        if !says_fixed && !bytes.starts_with(HEADER_1) {
            return Err(reader.bad("it does not begin with 'hocket events 2'"));
        }
        reader.at = HEADER.len();
        let mut log = Log::default();
        let mut now = 0u64;
        while reader.at < bytes.len() {
            let since = reader.number()?;
            let sum = now.checked_add(since);
            now = sum.ok_or_else(|| reader.bad("the time is above 213 days"))?;
            log.events.push((Time::from_ps(now), reader.event()?));
        }
        Ok(log)
    }
}

fn number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

fn list<T>(bytes: &mut Vec<u8>, items: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
    number(bytes, items.len() as u64);
    items.iter().for_each(|item| write(bytes, item));
}

fn announced(bytes: &mut Vec<u8>, flow: &AnnouncedFlow) {
    let held = flow.held.map_or(0, |choice| u64::from(choice) + 1);
    let ends = [flow.src, flow.dst].map(|nic| u64::from(nic.0));
    for value in [
        flow.id.0,
        flow.job.0.into(),
        ends[0],
        ends[1],
        flow.bytes,
        held,
        flow.is_fixed.into(),
    ] {
        number(bytes, value);
    }
}

fn write(bytes: &mut Vec<u8>, event: &Event) {
    let kind = match event {
        Event::FlowsStart(_) => 0,
        Event::FlowsProgress(_) => 1,
        Event::FlowsEnd(_) => 2,
        Event::JobComes(..) => 3,
        Event::JobStarts(_) => 4,
        Event::JobStops(_) => 5,
        Event::JobGoes(_) => 6,
        Event::HostsCome(_) => 7,
        Event::HostsGo(_) => 8,
        Event::LinksFail(_) => 9,
        Event::LinksReturn(_) => 10,
        Event::Acknowledged(..) => 11,
        Event::Recovering => 12,
        Event::Recovered => 13,
        Event::Prepare => 14,
    };
    bytes.push(kind);
    match event {
        Event::FlowsStart(flows) => list(bytes, flows, announced),
        Event::FlowsProgress(left) => list(bytes, left, |bytes, &(flow, left)| {
            number(bytes, flow.0);
            number(bytes, left);
        }),
        Event::FlowsEnd(flows) => list(bytes, flows, |bytes, flow| number(bytes, flow.0)),
        Event::JobComes(job, flows) => {
            number(bytes, job.0.into());
            list(bytes, flows, announced);
        }
        Event::JobStarts(job) | Event::JobStops(job) | Event::JobGoes(job) => {
            number(bytes, job.0.into());
        }
        Event::HostsCome(nics) | Event::HostsGo(nics) => {
            list(bytes, nics, |bytes, nic| number(bytes, nic.0.into()));
        }
        Event::LinksFail(links) | Event::LinksReturn(links) => {
            list(bytes, links, |bytes, link| number(bytes, link.0.into()));
        }
        Event::Acknowledged(revision, flows) => {
            number(bytes, *revision);
            list(bytes, flows, |bytes, flow| number(bytes, flow.0));
        }
        Event::Recovering | Event::Recovered | Event::Prepare => {}
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether flows say if they are fixed.
    says_fixed: bool,
}

impl Reader<'_> {
    fn bad(&self, why: &'static str) -> BadLog {
        BadLog { at: self.at, why }
    }

    fn byte(&mut self) -> Result<u8, BadLog> {
        let byte = self.bytes.get(self.at).copied();
        let byte = byte.ok_or_else(|| self.bad("it ends within an event"))?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, BadLog> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            let is_padded = byte == 0 && shift > 0;
            if is_padded || part << shift >> shift != part {
                self.at -= 1;
                return Err(self.bad("a number has more than 64 bits, or zeros in front"));
            }
            value |= part << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.bad("a number has more than 64 bits, or zeros in front"))
    }

    fn small(&mut self) -> Result<u32, BadLog> {
        let value = self.number()?;
        u32::try_from(value).map_err(|_| self.bad("a number has more than 32 bits"))
    }

    fn flag(&mut self) -> Result<bool, BadLog> {
        match self.byte()? {
            flag @ 0..=1 => Ok(flag == 1),
            _ => {
                self.at -= 1;
                Err(self.bad("a flag is neither 0 nor 1"))
            }
        }
    }

    fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, BadLog>,
    ) -> Result<Vec<T>, BadLog> {
        let count = self.number()?;
        // Each item takes a byte at least.
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(self.bad("a list is longer than the rest of the log"));
        }
        (0..count).map(|_| read(self)).collect()
    }

    fn announced(&mut self) -> Result<AnnouncedFlow, BadLog> {
        Ok(AnnouncedFlow {
            id: FlowId(self.number()?),
            job: JobId(self.small()?),
            src: NpuId(self.small()?),
            dst: NpuId(self.small()?),
            bytes: self.number()?,
            held: match self.number()? {
                0 => None,
                choice => {
                    let choice = u32::try_from(choice - 1);
                    Some(choice.map_err(|_| self.bad("a choice has more than 32 bits"))?)
                }
            },
            is_fixed: self.says_fixed && self.flag()?,
        })
    }

    fn event(&mut self) -> Result<Event, BadLog> {
        let flow = |reader: &mut Self| Ok(FlowId(reader.number()?));
        let nic = |reader: &mut Self| Ok(NpuId(reader.small()?));
        let link = |reader: &mut Self| Ok(LinkId(reader.small()?));
        Ok(match self.byte()? {
            0 => Event::FlowsStart(self.list(Self::announced)?),
            1 => Event::FlowsProgress(
                self.list(|reader| Ok((FlowId(reader.number()?), reader.number()?)))?,
            ),
            2 => Event::FlowsEnd(self.list(flow)?),
            3 => Event::JobComes(JobId(self.small()?), self.list(Self::announced)?),
            4 => Event::JobStarts(JobId(self.small()?)),
            5 => Event::JobStops(JobId(self.small()?)),
            6 => Event::JobGoes(JobId(self.small()?)),
            7 => Event::HostsCome(self.list(nic)?),
            8 => Event::HostsGo(self.list(nic)?),
            9 => Event::LinksFail(self.list(link)?),
            10 => Event::LinksReturn(self.list(link)?),
            11 => Event::Acknowledged(self.number()?, self.list(flow)?),
            12 => Event::Recovering,
            13 => Event::Recovered,
            14 => Event::Prepare,
            _ => {
                self.at -= 1;
                return Err(self.bad("no event is of this kind"));
            }
        })
    }
}
