//! How long-running work reports how far it is, and is asked to stop.

use crate::explain::Explain;

/// Observer of long-running work.
///
/// Every call that may take long takes one: [`Silent`] where nobody watches. Work reports from one thread at a
/// time, at most every few milliseconds, and does not look at a clock: a limit on time is the observer's.
///
/// # Examples
/// ```
/// use hocket_base::progress::Progress;
/// use std::time::{Duration, Instant};
///
/// /// Stops work that takes longer than a time limit.
/// struct Deadline(Instant);
///
/// impl Progress for Deadline {
///     fn report(&mut self, _stage: &'static str, _done: u64, _total: u64) -> bool {
///         Instant::now() < self.0
///     }
/// }
///
/// let mut passed = Deadline(Instant::now());
/// assert!(!passed.report("verify", 1, 2));
/// let mut ahead = Deadline(Instant::now() + Duration::from_secs(3600));
/// assert!(ahead.report("verify", 1, 2));
/// ```
pub trait Progress {
    /// Takes note that `done` of `total` units of `stage` are done. `false` asks the work to stop: it returns
    /// [`Interrupted`], or the best result so far where its documentation says so.
    fn report(&mut self, stage: &'static str, done: u64, total: u64) -> bool;

    /// Takes note that a search has ended, and what it found is proved and simulated, which takes a moment: an
    /// observer whose limit is for searches no longer stops the work.
    fn searched(&mut self) {}
}

/// An observer that ignores every report and never stops the work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn report(&mut self, _: &'static str, _: u64, _: u64) -> bool {
        true
    }
}

/// The work stopped on request and has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Explain)]
#[explain(why("stopped on request before it was done"))]
pub struct Interrupted;

/// Passes on a report only after a certain amount of work, so that reports are neither rare nor costly.
pub struct Paced<'a> {
    progress: &'a mut dyn Progress,
    stage: &'static str,
    every: u64,
    since: u64,
}

impl<'a> Paced<'a> {
    /// Reports on `stage` after every `every` units of work.
    pub fn new(progress: &'a mut dyn Progress, stage: &'static str, every: u64) -> Self {
        Self {
            progress,
            stage,
            every,
            since: 0,
        }
    }

    /// Counts `work` units of work, after which `done` of `total` are done.
    pub fn count(&mut self, work: u64, done: u64, total: u64) -> Result<(), Interrupted> {
        self.since += work;
        if self.since < self.every {
            return Ok(());
        }
        self.since = 0;
        if self.progress.report(self.stage, done, total) {
            Ok(())
        } else {
            Err(Interrupted)
        }
    }
}
