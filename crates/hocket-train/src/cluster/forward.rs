//! What will happen next, as far as the controller can know.
//!
//! A job that communicates stops when its slowest flow has sent what it has left at the rate that the
//! controller gave it: an equal share of the fullest link on its path, which is the least that it
//! gets. A job that computes starts to communicate when it has computed as long as the time before; of
//! its first time nothing is known.
//!
//! # Source
//! Cohen et al., Routing for large ML models, section 3.4.2.

use super::ClusterOptions;
use super::control::Commodities;
use super::engine::{Progressing, State};
use super::flows::Flows;
use crate::id::narrow;

/// Foretells the next `options.look_ahead` events, as if nothing else happened: the jobs that will
/// communicate after each.
pub(super) fn predict(
    now: u64,
    jobs: &[Progressing<'_>],
    commodities: &Commodities,
    flows: &Flows,
    options: &ClusterOptions,
) -> Vec<Vec<u32>> {
    let mut active: Vec<u32> = (0..narrow(jobs.len())).collect();
    active.retain(|&job| commodities.are_there(job) && jobs[job as usize].is_active());
    let sharing = flows.flows_by_link(active.iter().flat_map(|&job| commodities.of(job)));
    let mut events = Vec::new();
    let asks = |&(number, _): &(u32, _)| commodities.are_there(number);
    for (number, job) in (0..).zip(jobs).filter(asks) {
        let time = match job.state {
            State::Asking | State::Communicating => {
                let of_job = commodities.of(number).iter();
                let left = of_job.map(|&flow| flows.ps_left(flow, &sharing, now));
                Some(now.saturating_add(left.max().unwrap_or(0)))
            }
            State::Computing => job.start_expected(),
            State::Ended => None,
        };
        events.extend(time.map(|time| (time, number)));
    }
    events.sort_unstable();
    let mut sets = Vec::new();
    for (_, job) in events.into_iter().take(options.look_ahead as usize) {
        match active.iter().position(|&other| other == job) {
            Some(place) => {
                active.remove(place);
            }
            None => active.push(job),
        }
        active.sort_unstable();
        sets.push(active.clone());
    }
    sets
}
