//! Ctrl-C and SIGTERM end a command in time, whatever the command is doing, and what it has so far is printed.
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

/// Added to the number of the signal, as shells count exit codes.
const BY_SIGNAL: c_int = 128;

/// Clears the line of a progress bar and shows the cursor that it hid.
const RESTORE: &[u8] = b"\r\x1b[2K\x1b[?25h";

/// How often the removal of a folder is tried.
const TRIES: u32 = 100;

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static SO_FAR: Mutex<String> = Mutex::new(String::new());
static ENDING: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    /// Ends the process at once. `exit` would run what libraries have left for the end, while their
    /// threads still work.
    ///
    /// # Source
    /// POSIX.1-2017, `_exit`; the C runtime of Windows has it too.
    safe fn _exit(status: c_int) -> !;
}

/// End the process so many seconds after one of the signals.
///
/// Returns
/// -------
/// int or None
///     The descriptor for :func:`signal.set_wakeup_fd`; ``None`` where there are none.
#[pyfunction]
#[cfg(unix)]
pub(crate) fn guard(seconds: f64, signals: Vec<u8>) -> PyResult<Option<c_int>> {
    use std::io::{BufReader, Read};
    use std::os::fd::IntoRawFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    let patience = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let (told, hears) = UnixStream::pair()?;
    told.set_nonblocking(true)?;
    let wait = move || {
        // Python writes the number of every signal that it handles.
        let mut numbers = BufReader::new(hears).bytes().map_while(Result::ok);
        if let Some(number) = numbers.find(|number| signals.contains(number)) {
            std::thread::sleep(patience);
            end(number);
        }
    };
    std::thread::Builder::new()
        .name("hocket-interrupt".to_owned())
        .spawn(wait)?;
    Ok(Some(told.into_raw_fd()))
}

/// End the process so many seconds after one of the signals.
///
/// Returns
/// -------
/// int or None
///     The descriptor for :func:`signal.set_wakeup_fd`; ``None`` where there are none.
#[pyfunction]
#[cfg(not(unix))]
pub(crate) fn guard(_seconds: f64, _signals: Vec<u8>) -> PyResult<Option<c_int>> {
    Ok(None)
}

/// Note what the command has so far, which is printed if a signal ends the process; an empty text is nothing.
#[pyfunction]
pub(crate) fn so_far(text: String) {
    *SO_FAR.lock().unwrap_or_else(PoisonError::into_inner) = text;
}

/// Remove unfinished files and folders, print what there is so far, say on standard error that the command was
/// stopped, and end with code 128 + the number of the signal.
#[pyfunction]
pub(crate) fn end(signal: u8) {
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
    if errors.is_terminal() {
        drop(errors.write_all(RESTORE));
    }
    let text = SO_FAR.lock().unwrap_or_else(PoisonError::into_inner);
    let mut output = std::io::stdout();
    drop(
        output
            .write_all(text.as_bytes())
            .and_then(|()| output.flush()),
    );
    drop(errors.write_all(b"hocket: stopped\n"));
    _exit(BY_SIGNAL + c_int::from(signal))
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
