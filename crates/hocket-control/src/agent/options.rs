//! How the agent treats flows and its session.

use std::time::Duration;

use crate::digest::mix;
use crate::message::{MOST_FLOWS, Terms};

/// From when on a path is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worst {
    /// With so many packets lost of a million,
    pub loss_ppm: u32,
    /// or with so many percent of the least round-trip time that it had.
    pub rtt_percent: u32,
}

/// The knobs of [`super::Agent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What is kept to until a controller says otherwise.
    pub terms: Terms,
    /// A flow that has no answer for so long goes as switches hash it.
    pub patience: Duration,
    /// What the controller has not acknowledged for so long is said again.
    pub resend: Duration,
    /// Least and longest pause before the next try to connect; it doubles with each that fails, and half of it
    /// is drawn.
    pub backoff: [Duration; 2],
    /// A try to connect, and to be welcomed, that takes longer has failed.
    pub connect: Duration,
    /// Seed of what is drawn.
    pub seed: u64,
    /// Most messages that wait to be acknowledged; with more, all is said anew.
    pub most_outstanding: usize,
    /// Most flows that are announced; others go as switches hash them.
    pub most_flows: usize,
    /// From when on a path is left, as programs measure it.
    pub worst: Worst,
    /// From when on a path is left, as probes measure it.
    pub worst_probed: Worst,
    /// A path that was left is taken again after so long; twice as long each time, up to 16 times as long.
    pub hold: Duration,
    /// A flow that was refused for limits is announced again after so long.
    pub retry: Duration,
    /// Whether the kernel takes packets with segments (SRv6).
    pub takes_segments: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            terms: Terms {
                lease: Duration::from_secs(5),
                beat: Duration::from_secs(1),
                least_bytes: 1 << 20,
            },
            patience: Duration::from_millis(20),
            resend: Duration::from_secs(1),
            backoff: [Duration::from_millis(100), Duration::from_secs(5)],
            connect: Duration::from_secs(5),
            seed: 0,
            most_outstanding: 1 << 10,
            most_flows: MOST_FLOWS / 2,
            worst: Worst {
                loss_ppm: 1_000,
                rtt_percent: 400,
            },
            worst_probed: Worst {
                loss_ppm: 200_000,
                rtt_percent: 1_000,
            },
            hold: Duration::from_secs(10),
            retry: Duration::from_secs(10),
            takes_segments: false,
        }
    }
}

/// How long to wait before the next try to connect.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    tries: u32,
    state: u64,
}

impl Backoff {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            tries: 0,
            state: mix(seed),
        }
    }

    pub(super) fn reset(&mut self) {
        self.tries = 0;
    }

    pub(super) fn next(&mut self, [least, longest]: [Duration; 2]) -> Duration {
        let whole = least.saturating_mul(1 << self.tries.min(20)).min(longest);
        self.tries += 1;
        self.state = mix(self.state);
        let half = u64::try_from(whole.as_nanos() / 2).unwrap_or(u64::MAX);
        let drawn = (u128::from(self.state) * (u128::from(half) + 1)) >> 64;
        whole - Duration::from_nanos(half) + Duration::from_nanos(drawn as u64)
    }
}
