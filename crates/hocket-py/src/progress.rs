//! Long calls: the interpreter released, progress told to a callable, Ctrl-C heeded.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use hocket_core::progress::{Limited, Progress};
use pyo3::prelude::*;

use crate::error::CoreError;
use crate::hints::Listener;

/// Whether nobody is there who could press Ctrl-C.
static UNATTENDED: AtomicBool = AtomicBool::new(false);

/// Make long calls of this process on the thread that asks for them; no signal is heeded meanwhile.
#[pyfunction]
pub(crate) fn unattended() {
    UNATTENDED.store(true, Ordering::Relaxed);
}

/// Work that searches may do and have done, counted: the same on every machine.
#[pyclass(name = "Work", module = "hocket._core", frozen)]
pub(crate) struct PyWork {
    most: u64,
    spent: Arc<AtomicU64>,
}

#[pymethods]
impl PyWork {
    /// Allow so much work.
    #[new]
    #[pyo3(signature = (most=u64::MAX))]
    fn new(most: u64) -> Self {
        let spent = Arc::new(AtomicU64::new(0));
        Self { most, spent }
    }

    /// How much was done so far.
    #[getter]
    fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// How much is left.
    #[getter]
    fn left(&self) -> u64 {
        self.most.saturating_sub(self.spent())
    }

    /// Count work that was done elsewhere.
    fn spend(&self, work: u64) {
        self.spent.fetch_add(work, Ordering::Relaxed);
    }
}

/// What ends a search: seconds, and counted work.
pub(crate) struct Limits {
    end: Option<Instant>,
    most: u64,
    spent: Option<Arc<AtomicU64>>,
}

impl Limits {
    /// So many seconds from now, and what is left of the work.
    pub(crate) fn new(seconds: Option<f64>, work: Option<&PyWork>) -> Self {
        Self {
            end: end_after(seconds),
            most: work.map_or(u64::MAX, PyWork::left),
            spent: work.map(|work| Arc::clone(&work.spent)),
        }
    }

    /// Counts work, and ends none.
    pub(crate) fn none(work: Option<&PyWork>) -> Self {
        Self {
            end: None,
            most: u64::MAX,
            ..Self::new(None, work)
        }
    }

    /// Runs `work` within the limits.
    fn run<T>(self, watch: &mut dyn Progress, work: impl FnOnce(&mut dyn Progress) -> T) -> T {
        let mut timed = Timed {
            watch,
            end: self.end,
            told: Instant::now(),
        };
        let mut limited = Limited::new(&mut timed, self.most);
        let done = work(&mut limited);
        if let Some(spent) = self.spent {
            spent.fetch_add(limited.spent, Ordering::Relaxed);
        }
        done
    }
}

/// Runs `work`, which keeps the best so far, within limits or to its end; else as [`watched`].
pub(crate) fn watched_until<T, E>(
    py: Python<'_>,
    progress: Option<Listener>,
    limits: Limits,
    work: impl FnOnce(&mut dyn Progress) -> Result<T, E> + Send,
) -> Result<T, CoreError>
where
    T: Send,
    E: Into<CoreError> + Send,
{
    watched(py, progress, |watch| limits.run(watch, work))
}

/// When so many seconds are over. Longer than a duration can be is no limit.
fn end_after(seconds: Option<f64>) -> Option<Instant> {
    let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    limit.and_then(|limit| Instant::now().checked_add(limit))
}

/// Stops at an end, and tells no more than some times a second.
struct Timed<'a> {
    watch: &'a mut dyn Progress,
    end: Option<Instant>,
    told: Instant,
}

impl Progress for Timed<'_> {
    fn report(&mut self, stage: &'static str, done: u64, total: u64) -> bool {
        let now = Instant::now();
        if self.end.is_some_and(|end| now >= end) {
            return false;
        }
        if now.duration_since(self.told) < Duration::from_millis(50) {
            return true;
        }
        self.told = now;
        self.watch.report(stage, done, total)
    }

    fn searched(&mut self) {
        self.end = None;
    }
}

/// Runs `work` with the interpreter released.
///
/// At each report, `progress(stage, done, total)` is called where it is given, and Python looks for
/// signals; an exception of either stops the work and comes out in place of its result.
pub(crate) fn watched<T, E>(
    py: Python<'_>,
    progress: Option<Listener>,
    work: impl FnOnce(&mut dyn Progress) -> Result<T, E> + Send,
) -> Result<T, CoreError>
where
    T: Send,
    E: Into<CoreError> + Send,
{
    let mut watch = Watch {
        callable: progress,
        raised: None,
    };
    let result = py.detach(|| work(&mut watch));
    match watch.raised {
        Some(error) => Err(error.into()),
        None => result.map_err(Into::into),
    }
}

/// Runs `work`, which reports rarely or never, with the interpreter released, and looks for signals meanwhile.
///
/// An exception of a signal comes out at once; the work then stops, unheeded, when it next reports.
pub(crate) fn attended<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&mut dyn Progress) -> T + Send + 'static,
) -> PyResult<T> {
    attended_with(py, || Ok(()), work)
}

/// As [`attended`]; `tell` is called now and then.
fn attended_with<T: Send + 'static>(
    py: Python<'_>,
    tell: impl Fn() -> PyResult<()>,
    work: impl FnOnce(&mut dyn Progress) -> T + Send + 'static,
) -> PyResult<T> {
    let (give, mut take) = channel();
    let heeded = Arc::new(());
    let mut watch = WhileHeeded(Arc::downgrade(&heeded));
    if UNATTENDED.load(Ordering::Relaxed) {
        return Ok(py.detach(move || work(&mut watch)));
    }
    // Nobody may be left to take it.
    let worker = std::thread::spawn(move || drop(give.send(work(&mut watch))));
    loop {
        let taker = &mut take;
        let taken = py.detach(move || taker.recv_timeout(Duration::from_millis(50)));
        match taken {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals()?;
                tell()?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                let panic = worker.join().expect_err("it ended without a result");
                std::panic::resume_unwind(panic)
            }
        }
    }
}

/// As [`attended`], within limits or to its end; `progress(stage, done, total)` is called meanwhile.
pub(crate) fn attended_until<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Listener>,
    limits: Limits,
    work: impl FnOnce(&mut dyn Progress) -> T + Send + 'static,
) -> PyResult<T> {
    let latest = Arc::new(Mutex::new(None));
    let reported = Arc::clone(&latest);
    let tell = move || match (&progress, take(&latest)) {
        (Some(callable), Some(report)) => callable.call(py, report),
        _ => Ok(()),
    };
    let work = move |watch: &mut dyn Progress| {
        let mut noted = Noted { watch, reported };
        limits.run(&mut noted, work)
    };
    attended_with(py, tell, work)
}

/// A stage, what is done of it, and all of it.
type Report = (&'static str, u64, u64);

fn take(latest: &Mutex<Option<Report>>) -> Option<Report> {
    latest.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Keeps the latest report for the thread that waits.
struct Noted<'a> {
    watch: &'a mut dyn Progress,
    reported: Arc<Mutex<Option<Report>>>,
}

impl Progress for Noted<'_> {
    fn report(&mut self, stage: &'static str, done: u64, total: u64) -> bool {
        let mut latest = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = Some((stage, done, total));
        drop(latest);
        self.watch.report(stage, done, total)
    }
}

/// Stops work whose result nobody waits for any more.
struct WhileHeeded(Weak<()>);

impl Progress for WhileHeeded {
    fn report(&mut self, _: &'static str, _: u64, _: u64) -> bool {
        self.0.strong_count() > 0
    }
}

struct Watch {
    callable: Option<Listener>,
    raised: Option<PyErr>,
}

impl Watch {
    fn tell(&self, stage: &'static str, done: u64, total: u64) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            if let Some(callable) = &self.callable {
                callable.call(py, (stage, done, total))?;
            }
            Ok(())
        })
    }
}

impl Progress for Watch {
    fn report(&mut self, stage: &'static str, done: u64, total: u64) -> bool {
        match self.tell(stage, done, total) {
            Ok(()) => true,
            Err(error) => {
                self.raised = Some(error);
                false
            }
        }
    }
}
