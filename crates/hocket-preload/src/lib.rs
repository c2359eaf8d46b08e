//! Steers the connections of unmodified programs. Loaded by `LD_PRELOAD`, it stands before `connect`, `sendto`
//! and `sendmsg` of the C library, asks the agent of this host for a source port, and binds it.
//!
//! ```text
//! connect(socket, 10.1.0.1:5000)
//!    |  not bound yet, TCP or UDP, IPv4 (also as IPv6 writes it), not 127/8
//!    +-> agent: "port tcp - 10.1.0.1 5000"    at most 5 ms for each step
//!    |       "port 50123"                     -> bind(socket, 50123)
//!    |       anything else, or nobody there   -> the kernel chooses, as without this library
//!    +-> connect of the C library
//! ```
//!
//! A socket of UDP that is never connected is bound by the first packet that it sends. Whatever goes wrong, the
//! call is made as it was: no program fails for being steered. A port is bound without `SO_REUSEADDR`, so that
//! one in use is refused by `bind`, where it does no harm, and not by `connect`, where it would.
//!
//! Not seen: programs that call the kernel themselves (those in Go, static ones, `io_uring`), those with
//! more rights than their caller (the loader drops `LD_PRELOAD`), and IPv6 proper.
//!
//! `HOCKET_AGENT_SOCKET` names the agent's socket, by default `/run/hocket/agent.sock`.
//! `HOCKET_AGENT_PATIENCE_MS` is the time that each step of a question may take, by default 5 ms. With
//! `HOCKET_PRELOAD_REPORT` set to a file, each process adds a line of counts to it when it exits.

mod address;
mod counts;
mod agent;
mod steer;

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{msghdr, size_t, sockaddr, socklen_t, ssize_t};

type Connect = unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int;
type SendTo = unsafe extern "C" fn(
    c_int,
    *const c_void,
    size_t,
    c_int,
    *const sockaddr,
    socklen_t,
) -> ssize_t;
type SendMessage = unsafe extern "C" fn(c_int, *const msghdr, c_int) -> ssize_t;

/// A function of the C library that one here stands before.
struct Behind {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Behind {
    const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            found: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    fn get(&self) -> *mut c_void {
        let known = self.found.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name ends in a zero byte.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

static CONNECT: Behind = Behind::new(c"connect");
static SEND_TO: Behind = Behind::new(c"sendto");
static SEND_MESSAGE: Behind = Behind::new(c"sendmsg");

fn missing() -> c_int {
    // SAFETY: errno of this thread.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

/// Returns the C library's `connect`.
///
/// # Safety
/// As `connect(2)`.
unsafe fn real_connect(socket: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    let behind = CONNECT.get();
    if behind.is_null() {
        return missing();
    }
    // SAFETY: the C library's function of that name has this signature.
    let behind: Connect = unsafe { transmute(behind) };
    // SAFETY: the caller's promise.
    unsafe { behind(socket, to, length) }
}

/// Stands before `connect(2)`.
///
/// # Safety
/// As `connect(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(socket: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        steer::steer(socket, to, length, steer::Call::Connect);
        real_connect(socket, to, length)
    }
}

/// Stands before `sendto(2)`.
///
/// # Safety
/// As `sendto(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    socket: c_int,
    data: *const c_void,
    size: size_t,
    flags: c_int,
    to: *const sockaddr,
    length: socklen_t,
) -> ssize_t {
    let behind = SEND_TO.get();
    if behind.is_null() {
        return missing() as ssize_t;
    }
    // SAFETY: the C library's function of that name has this signature; the caller's promise.
    unsafe {
        let behind: SendTo = transmute(behind);
        steer::steer(socket, to, length, steer::Call::Send);
        behind(socket, data, size, flags, to, length)
    }
}

/// Stands before `sendmsg(2)`.
///
/// # Safety
/// As `sendmsg(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(socket: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let behind = SEND_MESSAGE.get();
    if behind.is_null() {
        return missing() as ssize_t;
    }
    // SAFETY: the C library's function of that name has this signature; the caller's promise.
    unsafe {
        let behind: SendMessage = transmute(behind);
        if let Some(header) = message.as_ref() {
            let to = header.msg_name.cast();
            steer::steer(socket, to, header.msg_namelen, steer::Call::Send);
        }
        behind(socket, message, flags)
    }
}
