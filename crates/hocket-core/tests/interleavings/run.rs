//! Judging many plans on all threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::tally::Tally;

/// A number from the environment.
///
/// # Panics
/// If the variable is set to anything else.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}; give it a whole number")),
        Err(_) => default,
    }
}

/// Seeds from `HOCKET_ORACLE_SEED` on.
pub(crate) struct Seeds {
    pub first: u64,
    pub count: u64,
}

impl Seeds {
    /// As many as a variable says.
    pub(crate) fn by(variable: &str, default: u64) -> Self {
        Self {
            first: setting("HOCKET_ORACLE_SEED", 1),
            count: setting(variable, default),
        }
    }

    /// Judges each; `judge` counts what it finds and says whether all is well. Prints the counts, and
    /// gives them with the lowest seed for which it was not: the same on any number of threads.
    pub(crate) fn judge(
        &self,
        judge: &(dyn Fn(u64, &mut Tally) -> bool + Sync),
    ) -> (Tally, Option<u64>) {
        const BATCH: u64 = 64;
        let all = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let threads = setting("HOCKET_ORACLE_THREADS", all).max(1);
        let next = AtomicU64::new(0);
        let work = || {
            let (mut tally, mut failed) = (Tally::default(), Vec::new());
            loop {
                let start = next.fetch_add(BATCH, Ordering::Relaxed);
                if start >= self.count {
                    return (tally, failed.into_iter().min());
                }
                let end = self.count.min(start + BATCH);
                for seed in (start..end).map(|i| self.first.wrapping_add(i)) {
                    if !judge(seed, &mut tally) {
                        failed.push(seed);
                    }
                }
            }
        };
        let start = Instant::now();
        let (tally, failed) = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let mut all = (Tally::default(), None);
            for worker in workers {
                let (tally, failed) = worker.join().expect("no judge panics");
                all.0.add(&tally);
                all.1 = [all.1, failed].into_iter().flatten().min();
            }
            all
        });
        let seconds = start.elapsed().as_secs_f64();
        println!("\n{tally}{seconds:.1} s on {threads} threads");
        (tally, failed)
    }
}
