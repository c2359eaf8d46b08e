//! Asks the agent of this host for a port: one line, one answer, over a socket of its own for each question,
//! so that nothing is shared with a process that forks.

use std::ffi::CStr;
use std::fmt::Write;
use std::mem::{size_of, zeroed};
use std::net::Ipv4Addr;

use libc::{c_int, c_void, sockaddr_un, socklen_t, timeval};

use crate::address::{family, size};
use crate::counts::{ABSENT, NONE, TIMEOUTS};
use crate::real_connect;

const DEFAULT: &CStr = c"/run/hocket/agent.sock";
/// How long each step of a question may take, where nobody says otherwise [ms].
const PATIENCE: u32 = 5;

/// Returns the port that the agent gives; `None` without one.
pub(crate) fn ask(protocol: &str, src: Ipv4Addr, dst: Ipv4Addr, dport: u16) -> Option<u16> {
    let mut line = Line::default();
    let written = match src.is_unspecified() {
        true => write!(line, "port {protocol} - {dst} {dport}"),
        false => write!(line, "port {protocol} {src} {dst} {dport}"),
    };
    written.ok()?;
    let flags = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers.
    let socket = unsafe { libc::socket(libc::AF_UNIX, flags, 0) };
    if socket < 0 {
        ABSENT.add();
        return None;
    }
    let answer = exchange(socket, line.as_bytes());
    // SAFETY: it is ours.
    unsafe { libc::close(socket) };
    let port = port_of(answer?.as_bytes());
    if port.is_none() {
        NONE.add();
    }
    port
}

fn exchange(socket: c_int, line: &[u8]) -> Option<Line> {
    let patience = patience();
    // SAFETY: the option's value is a `timeval`, which outlives the calls.
    unsafe {
        let value = (&raw const patience).cast::<c_void>();
        let length = size(size_of::<timeval>());
        libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_SNDTIMEO, value, length);
        libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, value, length);
    }
    let (to, length) = place()?;
    // SAFETY: an address of that length.
    if unsafe { real_connect(socket, (&raw const to).cast(), length) } != 0 {
        count_failure(&ABSENT);
        return None;
    }
    // SAFETY: the bytes of the line. No signal is wanted where the agent has gone.
    let sent = unsafe {
        let data = line.as_ptr().cast::<c_void>();
        libc::send(socket, data, line.len(), libc::MSG_NOSIGNAL)
    };
    if sent < 0 {
        count_failure(&ABSENT);
        return None;
    }
    let mut answer = Line::default();
    // SAFETY: the buffer is as long.
    let got = unsafe {
        let data = answer.text.as_mut_ptr().cast::<c_void>();
        libc::recv(socket, data, answer.text.len(), 0)
    };
    match usize::try_from(got) {
        Ok(length) if length > 0 => answer.length = length,
        _ => {
            count_failure(&ABSENT);
            return None;
        }
    }
    Some(answer)
}

/// Counts a call that failed for want of time as such, and any other as `otherwise`.
fn count_failure(otherwise: &crate::counts::Count) {
    // SAFETY: errno of this thread.
    match unsafe { *libc::__errno_location() } {
        libc::EAGAIN | libc::EINPROGRESS => TIMEOUTS.add(),
        _ => otherwise.add(),
    }
}

/// Returns how long each step of a question may take.
fn patience() -> timeval {
    // SAFETY: text that ends in a zero byte, or null.
    let given = unsafe { libc::getenv(c"HOCKET_AGENT_PATIENCE_MS".as_ptr()) };
    let given = match given.is_null() {
        true => None,
        // SAFETY: as above.
        false => unsafe { CStr::from_ptr(given) }.to_str().ok(),
    };
    let number = given.and_then(|text| text.parse().ok());
    // A timeout of 0 would be none at all.
    let milliseconds = number.unwrap_or(PATIENCE).max(1);
    timeval {
        tv_sec: (milliseconds / 1000).into(),
        tv_usec: (milliseconds % 1000 * 1000).into(),
    }
}

/// Where the agent listens.
fn place() -> Option<(sockaddr_un, socklen_t)> {
    // SAFETY: text that ends in a zero byte, or null.
    let given = unsafe { libc::getenv(c"HOCKET_AGENT_SOCKET".as_ptr()) };
    let path = match given.is_null() {
        true => DEFAULT,
        // SAFETY: as above.
        false => unsafe { CStr::from_ptr(given) },
    };
    // SAFETY: all bytes may be zero.
    let mut to: sockaddr_un = unsafe { zeroed() };
    let bytes = path.to_bytes();
    if bytes.is_empty() || bytes.len() >= to.sun_path.len() {
        ABSENT.add();
        return None;
    }
    to.sun_family = family(libc::AF_UNIX);
    for (place, &byte) in to.sun_path.iter_mut().zip(bytes) {
        *place = byte as libc::c_char;
    }
    let before = size_of::<sockaddr_un>() - to.sun_path.len();
    Some((to, size(before + bytes.len() + 1)))
}

/// Returns the port of `port 50123`.
fn port_of(answer: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(answer).ok()?;
    let number = text.trim_end().strip_prefix("port ")?;
    number.parse().ok().filter(|&port| port > 0)
}

/// A line of text on the stack: nothing here takes memory, which a program may do in a signal handler.
struct Line {
    text: [u8; 128],
    length: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            text: [0; 128],
            length: 0,
        }
    }
}

impl Line {
    fn as_bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

impl Write for Line {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        let end = self.length + more.len();
        let place = self.text.get_mut(self.length..end).ok_or(std::fmt::Error)?;
        place.copy_from_slice(more.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        for (answer, port) in [
            ("port 50123", Some(50_123)),
            ("port 50123\n", Some(50_123)),
            ("port 0", None),
            ("port 65536", None),
            ("port", None),
            ("none no path is known", None),
            ("error what is this", None),
            ("", None),
        ] {
            assert_eq!(port_of(answer.as_bytes()), port, "{answer}");
        }
    }

    #[test]
    fn a_line_does_not_grow_beyond_its_place() {
        let mut line = Line::default();
        assert!(line.write_str(&"x".repeat(128)).is_ok());
        assert!(line.write_str("y").is_err());
        assert_eq!(line.as_bytes(), "x".repeat(128).as_bytes());
    }
}
