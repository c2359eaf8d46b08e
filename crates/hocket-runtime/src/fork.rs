//! Sockets that a forked child must not hold: with them it would keep its parent's death from being noticed.
//!
//! A child that goes on without `exec`, as a worker of Python's multiprocessing, has all descriptors of its parent.
//! Here it gets empty ones under the same numbers, so that whoever owns a number still closes what is its own.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

static KEPT: Mutex<BTreeSet<RawFd>> = Mutex::new(BTreeSet::new());
static FORKS: AtomicU64 = AtomicU64::new(0);
static WATCH: Once = Once::new();

thread_local! {
    /// Held while this thread forks.
    static HELD: RefCell<Option<MutexGuard<'static, BTreeSet<RawFd>>>> = const { RefCell::new(None) };
}

/// A socket that only this process is to hold, as long as this lives. It must end before the socket does.
#[derive(Debug)]
pub(crate) struct Kept(RawFd);

/// Keeps a socket from children of this process.
pub(crate) fn keep(socket: &impl AsRawFd) -> Kept {
    // SAFETY: the functions are there as long as the program, and do what a fork lets them.
    WATCH.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    });
    let number = socket.as_raw_fd();
    lock().insert(number);
    Kept(number)
}

/// Returns how many forks led to this process: what was made under another number belongs to a parent.
pub(crate) fn generation() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

fn lock() -> MutexGuard<'static, BTreeSet<RawFd>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Kept {
    fn drop(&mut self) {
        lock().remove(&self.0);
    }
}

extern "C" fn before() {
    let _ = HELD.try_with(|held| held.replace(Some(lock())));
}

extern "C" fn in_parent() {
    let _ = HELD.try_with(|held| held.replace(None));
}

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let _ = HELD.try_with(|held| {
        let Some(mut kept) = held.replace(None) else {
            return;
        };
        let Ok(nothing) = std::fs::File::open("/dev/null") else {
            return;
        };
        let nothing = nothing.into_raw_fd();
        for &number in kept.iter() {
            // SAFETY: a number that this process has open; whoever owns it closes it.
            unsafe { libc::dup2(nothing, number) };
        }
        // SAFETY: the number that was just opened.
        unsafe { libc::close(nothing) };
        kept.clear();
    });
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    /// Forks a child that lives until it is killed.
    fn child() -> libc::pid_t {
        // SAFETY: the child only waits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            loop {
                // SAFETY: it may be called anywhere.
                unsafe { libc::pause() };
            }
        }
        child
    }

    #[test]
    fn a_child_does_not_hold_what_is_kept_from_it() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it has one");
        let mut ended = Vec::new();
        let mut hears = |keeps: bool| {
            let ours = TcpStream::connect(address).expect("it listens");
            let (mut theirs, _) = listener.accept().expect("it came");
            let kept = keeps.then(|| keep(&ours));
            let child = child();
            drop(kept);
            drop(ours);
            theirs
                .set_read_timeout(Some(Duration::from_millis(300)))
                .expect("a time");
            ended.push(theirs.read(&mut [0]).is_ok());
            // SAFETY: the child that was just made.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
        };
        hears(true);
        hears(false);
        assert_eq!(ended, [true, false]);
    }
}
