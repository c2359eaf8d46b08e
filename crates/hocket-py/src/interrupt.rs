//! Ctrl-C ends a command in time, whatever the command is doing.
//!
//! Python hears a signal between two of its own instructions, the core where it reports progress. A solver,
//! a drawing or the sort of a long list gives neither a chance. So a thread that needs no interpreter waits
//! for the signal as well, and ends what has not ended by itself.

use std::ffi::c_int;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

/// As shells count it: 128 + SIGINT.
const INTERRUPTED: c_int = 130;

/// Clears the line of a progress bar and shows the cursor that it hid.
const RESTORE: &[u8] = b"\r\x1b[2K\x1b[?25h";

/// How often the removal of a folder is tried.
const TRIES: u32 = 100;

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static ENDING: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    /// Ends the process at once. `exit` would run what libraries have left for the end, while their
    /// threads still work.
    ///
    /// # Source
    /// POSIX.1-2017, `_exit`; the C runtime of Windows has it too.
    safe fn _exit(status: c_int) -> !;
}

/// End the process so many seconds after SIGINT.
///
/// Returns
/// -------
/// int or None
///     The descriptor for :func:`signal.set_wakeup_fd`; ``None`` where there are none.
#[pyfunction]
#[cfg(unix)]
pub(crate) fn guard(seconds: f64) -> PyResult<Option<c_int>> {
    use std::io::{BufReader, Read};
    use std::os::fd::IntoRawFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    const SIGINT: u8 = 2;
    let patience = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let (told, hears) = UnixStream::pair()?;
    told.set_nonblocking(true)?;
    let wait = move || {
        // Python writes the number of every signal that it handles.
        let mut numbers = BufReader::new(hears).bytes().map_while(Result::ok);
        if numbers.any(|number| number == SIGINT) {
            std::thread::sleep(patience);
            end();
        }
    };
    std::thread::Builder::new()
        .name("hocket-interrupt".to_owned())
        .spawn(wait)?;
    Ok(Some(told.into_raw_fd()))
}

/// End the process so many seconds after SIGINT.
///
/// Returns
/// -------
/// int or None
///     The descriptor for :func:`signal.set_wakeup_fd`; ``None`` where there are none.
#[pyfunction]
#[cfg(not(unix))]
pub(crate) fn guard(_seconds: f64) -> PyResult<Option<c_int>> {
    Ok(None)
}

/// Remove unfinished files and folders, say on standard error that the command was stopped, end with code 130.
#[pyfunction]
pub(crate) fn end() {
    if ENDING.swap(true, Ordering::SeqCst) {
        loop {
            std::thread::park(); // another thread is at it
        }
    }
    let files = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    for file in files.iter() {
        if file.is_dir() {
            // Another thread may still write into it.
            let _is_gone = (0..TRIES).any(|_| std::fs::remove_dir_all(file).is_ok());
        } else {
            drop(std::fs::remove_file(file));
        }
    }
    let mut errors = std::io::stderr();
    let mut line = Vec::new();
    if errors.is_terminal() {
        line.extend_from_slice(RESTORE);
    }
    line.extend_from_slice(b"hocket: stopped\n");
    drop(errors.write_all(&line));
    _exit(INTERRUPTED)
}

/// Note a file or folder that is to be removed if the process is ended before it is finished.
#[pyfunction]
pub(crate) fn unfinished(file: PathBuf) {
    let mut files = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    files.push(file);
}

/// Forget a file or folder that is no longer unfinished.
#[pyfunction]
pub(crate) fn finished(file: PathBuf) {
    let mut files = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    files.retain(|each| *each != file);
}
