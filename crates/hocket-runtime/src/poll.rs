//! Waiting for sockets.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until one of the sockets is ready, or a time is over; an interrupted wait ends early.
pub(crate) fn wait(sockets: &mut [PollFd<'_>], most: Duration) {
    let time = Timespec {
        tv_sec: most.as_secs().try_into().unwrap_or(i32::MAX.into()),
        tv_nsec: most.subsec_nanos().into(),
    };
    let _ = poll(sockets, Some(&time));
}

/// Returns whether there is something to read, or an end.
pub(crate) fn is_readable(socket: &impl AsFd) -> bool {
    let mut sockets = [PollFd::new(socket, PollFlags::IN)];
    wait(&mut sockets, Duration::ZERO);
    !sockets[0].revents().is_empty()
}

/// Waits until there is something to read, or a time is over.
pub(crate) fn wait_readable(socket: &impl AsFd, most: Duration) {
    wait(&mut [PollFd::new(socket, PollFlags::IN)], most);
}
