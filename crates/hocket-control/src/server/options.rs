//! How the service treats hosts.

use std::time::Duration;

use hocket_base::id::narrow;
use hocket_fabric::controller;

use crate::message::{MOST_FLOWS, Terms};

/// The knobs of [`super::Server`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How flows are given paths.
    pub policy: controller::Options,
    /// What hosts are told to keep to.
    pub terms: Terms,
    /// A host whose lease is lost for so long is gone, and its flows with it.
    pub grace: Duration,
    /// A controller that starts anew waits no longer for hosts to come back.
    pub recovery: Duration,
    /// What a host has not acknowledged with a beat, and for so long after it, is said again.
    pub resend: Duration,
    /// Most messages that a host may leave unacknowledged; with more its session ends.
    pub most_unacknowledged: usize,
    /// Most live flows of a host, and most flows of the patterns that it registers.
    pub most_host_flows: usize,
    /// Most jobs that a host registers.
    pub most_host_jobs: usize,
    /// Most live flows of all hosts, and of all patterns.
    pub most_flows: usize,
    /// What a host may say: a message is 1, and so is each flow in it. So many a second,
    pub rate: u32,
    /// and so many at once. A host that asks for as much again has its session ended.
    pub burst: u32,
    /// A link has failed when so many hosts' probes say so.
    pub reporters: usize,
    /// Whether events are kept for [`super::Server::take_log`].
    pub keeps_log: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            policy: controller::Options::default(),
            terms: Terms {
                lease: Duration::from_secs(5),
                beat: Duration::from_secs(1),
                least_bytes: 1 << 20,
            },
            grace: Duration::from_secs(10),
            recovery: Duration::from_secs(15),
            resend: Duration::from_secs(1),
            most_unacknowledged: 1 << 10,
            most_host_flows: MOST_FLOWS,
            most_host_jobs: 64,
            most_flows: 1 << 21,
            rate: 20_000,
            burst: 2 * narrow(MOST_FLOWS),
            reporters: 2,
            keeps_log: false,
        }
    }
}

/// How much a host may still say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// In billionths; below zero where more was said than allowed.
    left: i128,
    since: Duration,
}

const WHOLE: i128 = 1_000_000_000;

impl Allowance {
    pub(super) fn new(options: &Options, now: Duration) -> Self {
        Self {
            left: i128::from(options.burst) * WHOLE,
            since: now,
        }
    }

    fn refill(&mut self, options: &Options, now: Duration) {
        let elapsed = now.saturating_sub(self.since).as_nanos();
        let more = i128::try_from(elapsed).map_or(i128::MAX, |elapsed| {
            elapsed.saturating_mul(options.rate.into())
        });
        self.left = self
            .left
            .saturating_add(more)
            .min(i128::from(options.burst) * WHOLE);
        self.since = now;
    }

    /// Draws what is said; false if far more was said than allowed.
    pub(super) fn draw(&mut self, options: &Options, now: Duration, count: usize) -> bool {
        self.refill(options, now);
        self.left -= count as i128 * WHOLE;
        self.left >= -(i128::from(options.burst) * WHOLE)
    }

    /// Returns whether no more was said than allowed.
    pub(super) fn is_left(&self) -> bool {
        self.left >= 0
    }
}
