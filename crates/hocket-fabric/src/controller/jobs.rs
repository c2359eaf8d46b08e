//! Jobs whose iterations repeat, and what will happen next.
//!
//! # Source
//! Cohen et al., Routing for large ML models, section 3.4.2. When a job's communication ends follows from
//! the bytes that its flows have left and the share that they get. It begins anew when the job has computed
//! as long as the time before. Paths for what comes next are computed as if nothing else happened.

use super::Controller;
use super::event::{AnnouncedFlow, Command, JobId, Reason};
use super::failover::{self, Chosen};
use super::flows::{Key, NONE};
use crate::units::Time;

/// A job that has registered its pattern.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pattern: Vec<AnnouncedFlow>,
    /// By flow of the pattern: its path in the iteration before, and the one foreseen for the next.
    last: Vec<Option<u32>>,
    ahead: Vec<Option<u32>>,
    is_live: bool,
    stopped: Option<Time>,
    /// From the end of an iteration's communication to the beginning of the next.
    computes: Option<Time>,
}

impl Controller {
    pub(super) fn register(&mut self, id: JobId, pattern: &[AnnouncedFlow]) {
        let known = self.jobs.get(&id);
        let job = Job {
            pattern: pattern
                .iter()
                .map(|flow| AnnouncedFlow { job: id, ..*flow })
                .collect(),
            last: pattern.iter().map(|flow| flow.held).collect(),
            ahead: vec![None; pattern.len()],
            is_live: known.is_some_and(|job| job.is_live),
            stopped: known.and_then(|job| job.stopped),
            computes: known.and_then(|job| job.computes),
        };
        self.jobs.insert(id, job);
    }

    /// Flows of a pattern take the paths foreseen, else those of the iteration before, where these are as
    /// good as any.
    pub(super) fn start_job(&mut self, now: Time, id: JobId, commands: &mut Vec<Command>) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        if !job.is_live {
            job.is_live = true;
            job.computes = job.stopped.map(|stopped| now.saturating_sub(stopped));
        }
        let foreseen = std::mem::replace(&mut job.ahead, vec![None; job.pattern.len()]);
        let wanted = foreseen.iter().zip(&job.last);
        let wanted: Vec<Option<u32>> = wanted.map(|(ahead, last)| ahead.or(*last)).collect();
        // What a pattern held before is not a path that its host has now.
        let pattern = job.pattern.iter().map(|flow| AnnouncedFlow {
            held: None,
            ..*flow
        });
        let pattern: Vec<AnnouncedFlow> = pattern.collect();
        let added = self.add(pattern.into_iter().zip(wanted), commands);
        let is_foreseen = foreseen.iter().any(Option::is_some);
        for (flow, wanted) in added {
            self.place(flow, wanted, Reason::New);
            let choice = self.flows.row(flow).choice;
            if is_foreseen && choice != NONE && wanted == Some(choice) {
                self.touch(flow, Reason::Foreseen);
            }
        }
    }

    pub(super) fn stop_job(&mut self, now: Time, id: JobId) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.is_live = false;
            job.stopped = Some(now);
            for (flow, last) in job.pattern.iter().zip(&mut job.last) {
                let row = self.flows.find(flow.id).map(|flow| self.flows.row(flow));
                let choice = row.map(|row| row.choice).filter(|&choice| choice != NONE);
                *last = choice.or(*last);
            }
        }
        self.waiting.take(Key::Of(id));
        let flows: Vec<u32> = self.flows.of(id).collect();
        flows.into_iter().for_each(|flow| self.end(flow));
    }

    pub(super) fn forget(&mut self, now: Time, id: JobId) {
        self.stop_job(now, id);
        self.jobs.remove(&id);
    }

    /// Computes ahead: paths for failures, and for the jobs that are likely to communicate next.
    pub(super) fn prepare(&mut self, now: Time, commands: &mut Vec<Command>) {
        if self.options.failover {
            let chosen = self.flows.live().filter(|(_, row)| row.choice != NONE);
            let chosen = chosen.map(|(id, row)| Chosen {
                id,
                src: row.src,
                dst: row.dst,
                choice: row.choice,
            });
            let mut chosen: Vec<Chosen> = chosen.collect();
            chosen.sort_unstable_by_key(|flow| self.flows.row(flow.id).id);
            self.repairs = failover::repairs(&self.fabric, &self.outages, &chosen, &self.is_dead);
            self.tally.computed_ahead += self.repairs.len() as u64;
        }
        let mut events = self.expected(now);
        events.truncate(self.options.look_ahead as usize);
        self.look_ahead(&events, commands);
    }

    /// When each job is expected to stop or to start, soonest first.
    fn expected(&self, now: Time) -> Vec<(Time, JobId)> {
        if self.options.look_ahead == 0 {
            return Vec::new();
        }
        let mut events = Vec::new();
        for (&id, job) in &self.jobs {
            let time = match job.is_live {
                true => Some(
                    self.flows
                        .of(id)
                        .fold(now, |time, flow| time.max(self.ends_at(now, flow))),
                ),
                false => job.stopped.zip(job.computes).map(|(stopped, lasts)| {
                    Time::from_ps(stopped.as_ps().saturating_add(lasts.as_ps()))
                }),
            };
            events.extend(time.map(|time| (time, id)));
        }
        events.sort_unstable();
        events
    }

    /// When a flow has sent what it has left, at its share.
    fn ends_at(&self, now: Time, flow: u32) -> Time {
        let left = u128::from(self.flows.row(flow).bytes) * 1_000_000_000_000;
        let lasts = left.checked_div(self.rate(flow).into());
        let lasts = lasts.map_or(u64::MAX, |ps| u64::try_from(ps).unwrap_or(u64::MAX));
        Time::from_ps(now.as_ps().saturating_add(lasts))
    }

    /// Paths for the flows of the jobs that start among these events. Nothing moves for them.
    fn look_ahead(&mut self, events: &[(Time, JobId)], commands: &mut Vec<Command>) {
        if events.iter().all(|(_, id)| self.jobs[id].is_live) {
            return;
        }
        let mut loads = self.loads.clone();
        for (_, id) in events {
            if self.jobs[id].is_live {
                for flow in self.flows.of(*id) {
                    let row = self.flows.row(flow);
                    if row.choice != NONE {
                        let slots = self.fabric.slots_of(row.src, row.dst, row.choice);
                        loads.take(slots.iter());
                        loads.expect(row.src, row.dst, false);
                    }
                }
                continue;
            }
            let job = &self.jobs[id];
            let ends: Vec<_> = job
                .pattern
                .iter()
                .map(|flow| self.ends(flow).ok())
                .collect();
            for [src, dst] in ends.iter().flatten() {
                loads.expect(*src, *dst, true);
            }
            let mut ahead = vec![None; ends.len()];
            for (i, ends) in ends.iter().enumerate() {
                let &Some([src, dst]) = ends else { continue };
                let last = job.last[i].filter(|&last| self.is_good(&loads, src, dst, last));
                let choice = last.or_else(|| Some(self.choose(&loads, src, dst)?.0));
                if let Some(choice) = choice {
                    loads.add(self.fabric.slots_of(src, dst, choice).iter());
                    ahead[i] = Some(choice);
                }
            }
            self.tally.computed_ahead += 1;
            let flows = job.pattern.iter().zip(job.ahead.iter().zip(&ahead));
            commands.extend(flows.filter_map(|(flow, (before, ahead))| {
                let choice = ahead.filter(|_| before != ahead)?;
                let flow = flow.id;
                Some(Command::Ahead { flow, choice })
            }));
            if let Some(job) = self.jobs.get_mut(id) {
                job.ahead = ahead;
            }
        }
    }
}
