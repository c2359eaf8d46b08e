//! What the controller is asked, and what follows from its answers and from failures.

use super::{Alarm, Answer, Engine, State};
use crate::cluster::network::Reach;
use crate::cluster::{ClusterError, Decision, Reroute, Router};
use crate::id::narrow;
use crate::units::Time;

impl Engine<'_> {
    /// Returns whether the flows of a job need paths: a job below one ToR does not ask the controller.
    pub(super) fn asks(&self, number: u32) -> bool {
        self.controller.commodities.are_there(number)
    }

    /// Jobs have started or stopped to communicate: asks the controller.
    pub(super) fn ask(&mut self, router: &mut dyn Router) -> Result<(), ClusterError> {
        let starting = std::mem::take(&mut self.starting);
        self.has_stopped = false;
        let is_repair = std::mem::take(&mut self.has_failed);
        let is_due = match self.options.reroute {
            Reroute::Always | Reroute::Steady(_) => true,
            Reroute::AtStart => !starting.is_empty(),
            Reroute::Never | Reroute::Spray => false,
        };
        if !is_due {
            self.start(&starting);
            return Ok(());
        }
        let active = self.active();
        let is_asked = matches!(self.options.reroute, Reroute::Always | Reroute::Steady(_));
        if active.is_empty() {
            self.controller.stop_all(self.now);
            self.controller.prepare(self.now, &active, &self.flows);
            self.routed.clear();
            return self.look_ahead(router);
        }
        if is_asked && active == self.routed && !is_repair && !self.options.by_bytes {
            // Who stopped has started again: all have the paths that they would get.
            self.start(&starting);
            return Ok(());
        }
        self.routed.clone_from(&active);
        let controller = &mut self.controller;
        let (decided, foreseen) =
            controller.decide(self.now, &active, &starting, &self.flows, router)?;
        let decision = decided.decision(self.now, foreseen);
        self.outcome.decisions.push(Decision {
            is_repair,
            ..decision
        });
        let answer = Answer {
            decided,
            starting,
            decision: self.outcome.decisions.len() - 1,
        };
        let number = self.first_answer + narrow(self.answers.len());
        self.answers.push_back(answer);
        // What a switch finds by itself, nobody waits for.
        if foreseen || !is_asked || self.options.answer == Time::ZERO {
            self.answered(number, router)?;
        } else {
            let time = self.now.saturating_add(self.options.answer.as_ps());
            self.alarm(time, Alarm::Answered { answer: number });
        }
        Ok(())
    }

    /// Returns the jobs that communicate, or are about to, and need paths for it.
    fn active(&self) -> Vec<u32> {
        let mut jobs: Vec<u32> = (0..narrow(self.jobs.len())).collect();
        jobs.retain(|&job| self.asks(job) && self.jobs[job as usize].is_active());
        jobs
    }

    /// Returns those of them that have their paths: jobs that start now are given theirs after this.
    fn on_paths(&self) -> Vec<u32> {
        let mut jobs = self.active();
        if self.options.reroute != Reroute::Never {
            jobs.retain(|job| !self.starting.contains(job));
        }
        jobs
    }

    /// Links fail: flows over them take other paths, at once where that was foreseen.
    pub(super) fn failed(
        &mut self,
        number: u32,
        router: &mut dyn Router,
    ) -> Result<(), ClusterError> {
        let (links, repair) = self
            .controller
            .fail(self.now, &self.options.outages[number as usize].links);
        if links.is_empty() {
            return Ok(());
        }
        let cut = self.flows.fail(&links);
        self.check_nics()?;
        self.controller.check(&self.unended())?;
        match self.options.reroute {
            Reroute::Spray => self.flows.spray(self.controller.fabric(), self.now),
            Reroute::Always | Reroute::Steady(_) => match repair {
                // An answer under way would send flows back to what failed.
                Some(repair) if self.answers.is_empty() => self.repair(&repair, true, router)?,
                _ => self.has_failed = true,
            },
            Reroute::AtStart | Reroute::Never => {
                let jobs = self.unended();
                let repair = self
                    .controller
                    .reroute(self.now, &jobs, &cut, &self.flows, router)?;
                self.repair(&repair, false, router)?;
            }
        }
        Ok(())
    }

    pub(super) fn unended(&self) -> Vec<u32> {
        let jobs = self.jobs.iter().filter(|job| job.state != State::Ended);
        jobs.map(|job| job.iteration.job).collect()
    }

    fn check_nics(&self) -> Result<(), ClusterError> {
        for (flow, &(number, _)) in (0..).zip(&self.place) {
            let job = &self.jobs[number as usize];
            if let (true, Some(nic)) = (job.state != State::Ended, self.flows.lost_nic(flow)) {
                return Err(ClusterError::Lost {
                    job: job.job.name.clone(),
                    nic: nic.to_owned(),
                    time: Time::from_ps(self.now),
                });
            }
        }
        Ok(())
    }

    /// Flows take other paths than those that failed.
    fn repair(
        &mut self,
        repair: &[(u32, u32)],
        foreseen: bool,
        router: &mut dyn Router,
    ) -> Result<(), ClusterError> {
        if repair.is_empty() {
            return Ok(());
        }
        let mut moved = 0;
        for &(flow, choice) in repair {
            moved += u32::from(self.flows.route(flow, choice, self.now));
        }
        let active = self.on_paths();
        let mut decision = self.controller.repaired(self.now, &active, repair)?;
        (decision.flows, decision.moved) = (narrow(repair.len()), moved);
        decision.foreseen = foreseen;
        self.outcome.decisions.push(decision);
        self.paths_changed(&active, router)
    }

    /// Flows take the paths that the controller gave them; then it looks ahead.
    ///
    /// An answer that was foreseen is there before those that were asked for earlier. It has paths for
    /// whoever waits for these, so that they are of no use any more.
    pub(super) fn answered(
        &mut self,
        number: u32,
        router: &mut dyn Router,
    ) -> Result<(), ClusterError> {
        let Some(past) = number.checked_sub(self.first_answer) else {
            return Ok(());
        };
        let answers: Vec<Answer> = self.answers.drain(..=past as usize).collect();
        self.first_answer = number + 1;
        if let Some(Answer {
            decided, decision, ..
        }) = answers.last()
        {
            let mut moved = 0;
            for (flow, choice) in decided.new_paths() {
                moved += u32::from(self.flows.route(flow, choice, self.now));
            }
            self.outcome.decisions[*decision].moved = moved;
        }
        for answer in &answers {
            self.start(&answer.starting);
        }
        self.paths_changed(&self.active(), router)
    }

    /// Flows have new paths: hosts are told their shares, and the controller looks ahead.
    fn paths_changed(
        &mut self,
        active: &[u32],
        router: &mut dyn Router,
    ) -> Result<(), ClusterError> {
        self.controller.prepare(self.now, active, &self.flows);
        match self.options.rate_slack_ppm {
            Some(slack) if self.options.reroute != Reroute::Never => {
                let flows = self.flows_communicating();
                self.flows.limit(&flows, slack);
            }
            _ => {}
        }
        self.look_ahead(router)
    }

    fn look_ahead(&mut self, router: &mut dyn Router) -> Result<(), ClusterError> {
        if self.options.look_ahead == 0 || self.options.reroute != Reroute::Always {
            return Ok(());
        }
        let controller = &mut self.controller;
        controller.look_ahead(self.now, &self.jobs, &self.flows, router)
    }

    /// Returns the flows with links of all jobs that communicate.
    fn flows_communicating(&self) -> Vec<u32> {
        let is_communicating = |flow: &u32| {
            let (job, _) = self.place[*flow as usize];
            self.jobs[job as usize].state == State::Communicating
        };
        let flows = (0..narrow(self.place.len())).filter(is_communicating);
        flows
            .filter(|&flow| self.flows.reach(flow) != Reach::Host)
            .collect()
    }

    pub(super) fn decide_once(&mut self, router: &mut dyn Router) -> Result<(), ClusterError> {
        let all: Vec<u32> = (0..narrow(self.jobs.len())).collect();
        let controller = &mut self.controller;
        let (decided, foreseen) = controller.decide(0, &all, &all, &self.flows, router)?;
        self.outcome.decisions.push(decided.decision(0, foreseen));
        for (flow, choice) in decided.new_paths() {
            self.flows.route(flow, choice, 0);
        }
        Ok(())
    }
}
