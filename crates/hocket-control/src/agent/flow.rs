//! Flows of local programs, and what each uses.

use std::sync::Arc;
use std::time::Duration;

use super::options::Options;
use super::output::{Opened, Why};
use crate::message::{FlowName, Path, Refusal};

/// A flow that is open.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) opened: Opened,
    pub(super) kind: Kind,
    /// The path that the controller gave it last, and whether it has named it since its welcome.
    pub(super) given: Option<Arc<Path>>,
    pub(super) is_confirmed: bool,
    /// What it uses.
    pub(super) using: Using,
    pub(super) health: Health,
}

/// Who knows of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The host alone.
    Local,
    /// The controller, by its number.
    Announced,
    /// The controller did not take it; it may be announced again then, if at all.
    Refused(Refusal),
    /// It is one of a pattern: job and place.
    Pattern(u32, u32),
}

/// What a flow uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Using {
    /// Nothing yet.
    Waiting,
    /// A path.
    Path(Arc<Path>),
    /// What switches hash.
    Ecmp(Why),
}

/// How the path of a flow does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Health {
    /// The least round-trip time on it.
    least: Option<Duration>,
    /// Until when it is left alone, and how often it was left.
    pub(super) until: Option<Duration>,
    times: u32,
}

impl Health {
    /// Whether the path is to be left now, and until when.
    pub(super) fn measured(
        &mut self,
        options: &Options,
        now: Duration,
        loss_ppm: u32,
        rtt: Duration,
    ) -> Option<Duration> {
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        let is_slow = rtt.as_nanos() * 100
            > least.as_nanos() * u128::from(options.worst_rtt_percent.max(100));
        if loss_ppm < options.worst_loss_ppm.max(1) && !is_slow {
            return None;
        }
        let lasts = options.hold.saturating_mul(1 << self.times.min(4));
        self.times += 1;
        self.until = Some(now.saturating_add(lasts));
        self.until
    }
}

impl Flow {
    pub(super) fn name(&self, id: u64) -> FlowName {
        match self.kind {
            Kind::Pattern(job, index) => FlowName::Pattern { job, index },
            _ => FlowName::Own(id),
        }
    }

    /// What it should use, where its path is this one; `None`: it goes on waiting.
    pub(super) fn wanted(&self, path: Option<&Arc<Path>>, why: Option<Why>) -> Option<Using> {
        match path {
            Some(_) if self.health.until.is_some() => Some(Using::Ecmp(Why::Worse)),
            Some(path) => Some(Using::Path(path.clone())),
            None => match &self.using {
                Using::Waiting => why.map(Using::Ecmp),
                Using::Path(_) | Using::Ecmp(Why::Worse) => {
                    Some(Using::Ecmp(why.unwrap_or(Why::Forgotten)))
                }
                Using::Ecmp(before) => Some(Using::Ecmp(why.unwrap_or(*before))),
            },
        }
    }
}
