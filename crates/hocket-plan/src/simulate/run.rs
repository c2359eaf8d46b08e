//! What a simulation returns.

use super::SimulateError;
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

/// The columns of a run, as in a file; times of transfers and of links, and of stays on links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunColumns {
    /// When each transfer began.
    pub start: Vec<Time>,
    /// When each transfer had arrived.
    pub end: Vec<Time>,
    /// How long each link was occupied.
    pub busy: Vec<Time>,
    /// Bytes that crossed each link.
    pub bytes: Vec<u64>,
    /// Messages that crossed each link.
    pub messages: Vec<u64>,
    /// Transfer of each stay.
    pub service_transfer: Vec<u32>,
    /// Link of each stay.
    pub service_link: Vec<u32>,
    /// When each stay began.
    pub service_start: Vec<Time>,
    /// When each stay ended.
    pub service_end: Vec<Time>,
}

impl Run {
    /// Returns a run that was simulated before, of so many transfers on so many links.
    ///
    /// # Errors
    /// [`SimulateError::Malformed`] for columns of other lengths, transfers or links that are not there, and
    /// times that are not in order or after the end. That the times are those of a plan is not checked.
    pub fn from_columns(
        time: Time,
        columns: RunColumns,
        transfers: usize,
        links: usize,
    ) -> Result<Self, SimulateError> {
        columns
            .check(time, transfers, links)
            .map_err(|why| SimulateError::Malformed { why })?;
        let uses = columns.busy.iter().zip(&columns.bytes);
        let link = |((&busy, &bytes), &messages)| LinkUse {
            busy,
            bytes,
            messages,
        };
        let service = |i: usize| Service {
            transfer: columns.service_transfer[i],
            link: columns.service_link[i],
            start: columns.service_start[i],
            end: columns.service_end[i],
        };
        Ok(Self {
            time,
            links: uses.zip(&columns.messages).map(link).collect(),
            services: (0..columns.service_link.len()).map(service).collect(),
            start: columns.start,
            end: columns.end,
        })
    }
}

impl RunColumns {
    fn check(&self, time: Time, transfers: usize, links: usize) -> Result<(), String> {
        let stays = self.service_link.len();
        for (column, entries, needed) in [
            ("start", self.start.len(), transfers),
            ("end", self.end.len(), transfers),
            ("busy", self.busy.len(), links),
            ("bytes", self.bytes.len(), links),
            ("messages", self.messages.len(), links),
            ("service_transfer", self.service_transfer.len(), stays),
            ("service_start", self.service_start.len(), stays),
            ("service_end", self.service_end.len(), stays),
        ] {
            if entries != needed {
                return Err(format!("{column} has {entries} entries; {needed} are due"));
            }
        }
        let is_past = |(start, end): (&Time, &Time)| start > end || *end > time;
        if self.start.iter().zip(&self.end).any(is_past)
            || self
                .service_start
                .iter()
                .zip(&self.service_end)
                .any(is_past)
            || self.busy.iter().any(|&busy| busy > time)
        {
            return Err("times are out of order, or after the end".to_owned());
        }
        if !self.service_start.is_sorted() {
            return Err("stays on links are not in the order of their starts".to_owned());
        }
        let transfer = self
            .service_transfer
            .iter()
            .find(|&&id| id as usize >= transfers);
        let link = self.service_link.iter().find(|&&id| id as usize >= links);
        match (transfer, link) {
            (Some(id), _) => Err(format!("there is no transfer {id} of {transfers}")),
            (_, Some(id)) => Err(format!("there is no link {id} of {links}")),
            _ => Ok(()),
        }
    }
}
