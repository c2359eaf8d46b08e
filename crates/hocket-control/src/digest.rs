//! What a host has said, as two numbers, so that it and the controller notice that they differ.
//!
//! Each flow, job and link that has failed is a number of 64 bits, mixed from what it is; the digest is their sum.
//! What may change while a flow is open, and what was added to the messages later, is not in it.
//! It guards against faults, not against malice: a host can only mislead the controller about itself.

use std::net::IpAddr;

use crate::message::{HostFlow, HostJob, PatternFlow};

/// Count of flows, and sum of all that there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// Number of flows.
    pub flows: u32,
    /// Sum over flows, jobs and failed links.
    pub sum: u64,
}

impl Digest {
    /// A flow starts.
    pub fn add_flow(&mut self, flow: &HostFlow) {
        self.flows += 1;
        self.sum = self.sum.wrapping_add(of_flow(flow));
    }

    /// A flow that was added ends.
    pub fn remove_flow(&mut self, flow: &HostFlow) {
        self.flows -= 1;
        self.sum = self.sum.wrapping_sub(of_flow(flow));
    }

    /// A job is there, with [`of_pattern`] of its flows.
    pub fn add_job(&mut self, job: u32, pattern: u64, is_live: bool) {
        self.sum = self.sum.wrapping_add(of_job(job, pattern, is_live));
    }

    /// A job that was added is gone, or no longer as it was.
    pub fn remove_job(&mut self, job: u32, pattern: u64, is_live: bool) {
        self.sum = self.sum.wrapping_sub(of_job(job, pattern, is_live));
    }

    /// A link has failed.
    pub fn add_link(&mut self, link: u32) {
        self.sum = self.sum.wrapping_add(of_link(link));
    }

    /// A link that was added works again.
    pub fn remove_link(&mut self, link: u32) {
        self.sum = self.sum.wrapping_sub(of_link(link));
    }

    /// Of all that a host has.
    pub fn of<'a>(
        flows: impl Iterator<Item = &'a HostFlow>,
        jobs: impl Iterator<Item = &'a HostJob>,
        failed: impl Iterator<Item = u32>,
    ) -> Self {
        let mut digest = Self::default();
        flows.for_each(|flow| digest.add_flow(flow));
        jobs.for_each(|job| digest.add_job(job.job, of_pattern(&job.pattern), job.is_live));
        failed.for_each(|link| digest.add_link(link));
        digest
    }
}

/// Returns what a pattern adds to its job.
pub fn of_pattern(pattern: &[PatternFlow]) -> u64 {
    pattern.iter().fold(pattern.len() as u64, |sum, flow| {
        mix(address(address(sum, flow.src), flow.dst) ^ flow.bytes)
    })
}

fn of_flow(flow: &HostFlow) -> u64 {
    let ends = address(address(1, flow.opened.src), flow.opened.dst);
    mix(mix(ends ^ u64::from(flow.opened.job)) ^ flow.id)
}

fn of_job(job: u32, pattern: u64, is_live: bool) -> u64 {
    mix(mix(2 ^ pattern) ^ (u64::from(job) << 1 | u64::from(is_live)))
}

fn of_link(link: u32) -> u64 {
    mix(mix(3) ^ u64::from(link))
}

#[expect(clippy::cast_possible_truncation, reason = "one half, then the other")]
fn address(sum: u64, address: IpAddr) -> u64 {
    let bits = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits() ^ 1 << 127,
    };
    mix(mix(sum ^ bits as u64) ^ (bits >> 64) as u64)
}

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators (OOPSLA 2014): the finisher of SplitMix64.
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
