//! How long work tells how far it is and asks whether to stop.

/// Watches long work. Called every few milliseconds at most, never from two threads at once.
pub trait Progress {
    /// `done` of `total` units of `stage` are done. `false` asks the work to stop with
    /// [`Interrupted`].
    fn report(&mut self, stage: &'static str, done: u64, total: u64) -> bool;
}

/// Watches nothing and never stops the work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn report(&mut self, _: &'static str, _: u64, _: u64) -> bool {
        true
    }
}

/// The work was asked to stop and did; nothing came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped on request before it was done")]
pub struct Interrupted;
