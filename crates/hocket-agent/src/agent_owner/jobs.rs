//! Jobs that programs registered: each ends with the connection that registered it.

use std::collections::BTreeMap;

use hocket_control::agent::Input;
use hocket_control::message::PatternFlow;
use tokio::sync::mpsc;
use tracing::warn;

use super::{AgentOwner, State};
use crate::datagrams::Answer;

/// Who registered each job, and where it hears that the controller does not take it.
#[derive(Debug, Default)]
pub(super) struct Jobs(BTreeMap<u32, (u64, mpsc::Sender<Answer>)>);

impl Jobs {
    fn is_of(&self, connection: u64, job: u32) -> bool {
        self.0.get(&job).is_some_and(|(of, _)| *of == connection)
    }

    /// A job is not taken, and forgotten.
    pub(super) fn refused(&mut self, job: u32, why: &'static str) {
        warn!(job, why, "a job is not taken");
        if let Some((_, tell)) = self.0.remove(&job) {
            let _ = tell.try_send(Answer::Job(job, Err(why.to_owned())));
        }
    }
}

impl AgentOwner {
    /// A program registers the flows of a job's iterations, in place of those before. The controller's refusal, if there
    /// is one, is told later.
    ///
    /// # Errors
    /// Why it may not.
    pub fn register(
        &self,
        connection: u64,
        job: u32,
        pattern: Vec<PatternFlow>,
        tell: mpsc::Sender<Answer>,
    ) -> Result<(), String> {
        let mut state = self.lock();
        if state.jobs.0.contains_key(&job) && !state.jobs.is_of(connection, job) {
            return Err(format!("job {job} is another program's"));
        }
        state.jobs.0.insert(job, (connection, tell));
        self.drive(&mut state, Input::JobComes { job, pattern });
        Ok(())
    }

    /// A program says something of a job, if it is the connection's; false if it is not.
    pub fn tell_job(&self, connection: u64, job: u32, input: Input) -> bool {
        let mut state = self.lock();
        let is_of = state.jobs.is_of(connection, job);
        if is_of {
            if matches!(input, Input::JobGoes { .. }) {
                state.jobs.0.remove(&job);
            }
            self.drive(&mut state, input);
        }
        is_of
    }

    pub(super) fn forget_jobs(&self, state: &mut State, connection: u64) {
        let of = state.jobs.0.iter().filter(|(_, (of, _))| *of == connection);
        let of: Vec<u32> = of.map(|(&job, _)| job).collect();
        for job in of {
            state.jobs.0.remove(&job);
            self.drive(state, Input::JobGoes { job });
        }
    }
}
