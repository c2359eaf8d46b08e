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

    /// Takes note of work that was done: about one for each arc, word or entry that was looked at, and [`MESSAGE`] for
    /// each message that was simulated. The same work counts the same on every machine, however busy.
    fn spend(&mut self, _work: u64) {}
}

/// What a message that is listed, simulated or proved counts as, in looks at an arc.
pub const MESSAGE: u64 = 16;

/// Counts work, and stops it at a limit until a search has ended.
pub struct Limited<'a> {
    watch: &'a mut dyn Progress,
    most: u64,
    /// The work so far.
    pub spent: u64,
}

impl<'a> Limited<'a> {
    /// Stops after `most` units of work; `watch` hears all the same.
    pub fn new(watch: &'a mut dyn Progress, most: u64) -> Self {
        Self {
            watch,
            most,
            spent: 0,
        }
    }
}

impl Progress for Limited<'_> {
    fn report(&mut self, stage: &'static str, done: u64, total: u64) -> bool {
        self.spent < self.most && self.watch.report(stage, done, total)
    }

    fn searched(&mut self) {
        self.most = u64::MAX;
        self.watch.searched();
    }

    fn spend(&mut self, work: u64) {
        self.spent = self.spent.saturating_add(work);
        self.watch.spend(work);
    }
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
        self.progress.spend(std::mem::take(&mut self.since));
        if self.progress.report(self.stage, done, total) {
            Ok(())
        } else {
            Err(Interrupted)
        }
    }
}

impl Drop for Paced<'_> {
    fn drop(&mut self) {
        self.progress.spend(self.since);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_in_full_and_ends_at_its_limit() {
        let mut silent = Silent;
        let mut limited = Limited::new(&mut silent, 100);
        let counts = |limited: &mut Limited<'_>, works: &[u64]| -> Vec<bool> {
            let mut paced = Paced::new(limited, "work", 40);
            let each = works.iter().map(|&work| paced.count(work, 0, 1).is_ok());
            each.collect()
        };
        assert_eq!(counts(&mut limited, &[30, 20, 39]), [true; 3]);
        assert_eq!(limited.spent, 89);
        // What is below the pace is not looked at, but counted.
        assert_eq!(counts(&mut limited, &[39, 1, 5]), [true, false, true]);
        assert_eq!(limited.spent, 134);
        limited.searched();
        assert_eq!(counts(&mut limited, &[1_000]), [true]);
    }
}
