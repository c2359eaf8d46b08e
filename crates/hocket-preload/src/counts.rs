//! What became of connections, and the line that a process writes of it when it exits.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of connections.
pub(crate) struct Count(AtomicU64);

impl Count {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sockets that the agent was asked about.
pub(crate) static ASKED: Count = Count::new();
/// Sockets that have the agent's port.
pub(crate) static STEERED: Count = Count::new();
/// Questions to which the agent had no port.
pub(crate) static NONE: Count = Count::new();
/// Questions that took too long.
pub(crate) static TIMEOUTS: Count = Count::new();
/// Questions that nobody was there to answer.
pub(crate) static ABSENT: Count = Count::new();
/// Ports of the agent that could not be bound.
pub(crate) static REFUSED: Count = Count::new();

/// Called by the loader when the process exits.
extern "C" fn report() {
    if ASKED.get() == 0 {
        return;
    }
    // SAFETY: text that ends in a zero byte, or null.
    let path = unsafe { libc::getenv(c"HOCKET_PRELOAD_REPORT".as_ptr()) };
    if path.is_null() {
        return;
    }
    // SAFETY: as above.
    let path = unsafe { CStr::from_ptr(path) };
    let line = format!(
        "{} asked {} steered {} none {} timeouts {} absent {} refused {}\n",
        std::process::id(),
        ASKED.get(),
        STEERED.get(),
        NONE.get(),
        TIMEOUTS.get(),
        ABSENT.get(),
        REFUSED.get(),
    );
    // SAFETY: a path, and the bytes of a line, which are appended at once.
    unsafe {
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
        let file = libc::open(path.as_ptr(), flags, 0o644);
        if file >= 0 {
            libc::write(file, line.as_ptr().cast(), line.len());
            libc::close(file);
        }
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = report;
