//! Flows of local programs, and what each uses.

use std::sync::Arc;
use std::time::Duration;

use super::options::Options;
use super::output::Why;
use crate::message::{FlowName, NewFlow, Path, Refusal};

/// A flow that is open.
#[derive(Clone, Debug)]
pub(super) struct OpenFlow {
    pub(super) opened: NewFlow,
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

/// Who measures a path. Their packets take different times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Program,
    Probes,
}

/// How the path of a flow does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Health {
    /// The least round-trip time on it, by who measured it.
    least: [Option<Duration>; 2],
    /// Until when it is left alone, and how often it was left.
    pub(super) until: Option<Duration>,
    times: u32,
}

impl Health {
    /// Returns whether the path is bad.
    pub(super) fn is_bad(
        &mut self,
        options: &Options,
        by: By,
        loss_ppm: u32,
        rtt: Option<Duration>,
    ) -> bool {
        let worst = match by {
            By::Program => options.worst,
            By::Probes => options.worst_probed,
        };
        let least = &mut self.least[by as usize];
        *least = least.iter().copied().chain(rtt).min();
        let is_slow = rtt.zip(*least).is_some_and(|(rtt, least)| {
            rtt.as_nanos() * 100 > least.as_nanos() * u128::from(worst.rtt_percent.max(100))
        });
        loss_ppm >= worst.loss_ppm.max(1) || is_slow
    }

    /// The path is left: says until when.
    pub(super) fn leave(&mut self, options: &Options, now: Duration) -> Duration {
        let lasts = options.hold.saturating_mul(1 << self.times.min(4));
        self.times += 1;
        *self.until.insert(now.saturating_add(lasts))
    }

    /// The path was left and is no better.
    pub(super) fn stay_away(&mut self, options: &Options, now: Duration) {
        let until = now.saturating_add(options.hold);
        self.until = self.until.max(Some(until));
    }
}

impl OpenFlow {
    pub(super) fn name(&self, id: u64) -> FlowName {
        match self.kind {
            Kind::Pattern(job, index) => FlowName::Pattern { job, index },
            _ => FlowName::Own(id),
        }
    }

    /// Returns what it should use, where its path is this one; `None`: it goes on waiting.
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
