//! Binds a socket to the port that the agent gives, where it may be bound.

use std::ffi::c_int;
use std::mem::size_of;

use libc::{sockaddr, socklen_t};

use crate::address::{Address, Raw, size};
use crate::agent::ask;
use crate::counts::{ASKED, REFUSED, STEERED};

/// How often another port is asked for where one is in use.
const TRIES: u32 = 3;

/// The call that is about to be made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// Of TCP or UDP.
    Connect,
    /// A packet of UDP to an address.
    Send,
}

/// Binds a socket that is about to send to an address, if the agent has a port; `errno` stays as it is.
///
/// # Safety
/// `to` is null or points to `length` bytes.
pub(crate) unsafe fn steer(socket: c_int, to: *const sockaddr, length: socklen_t, call: Call) {
    // SAFETY: errno of this thread.
    let before = unsafe { *libc::__errno_location() };
    // SAFETY: the caller's promise.
    if let Some(to) = unsafe { Address::read(to, length) } {
        bind_to(socket, to, call);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = before };
}

/// Returns `None` where the socket is left alone.
fn bind_to(socket: c_int, to: Address, call: Call) -> Option<()> {
    if to.host.is_loopback() || to.host.is_unspecified() || to.port == 0 {
        return None;
    }
    let protocol = match option(socket, libc::SO_PROTOCOL)? {
        libc::IPPROTO_TCP if call == Call::Connect => "tcp",
        libc::IPPROTO_UDP => "udp",
        _ => return None,
    };
    let own = own_address(socket)?;
    if own.port != 0 || own.family != to.family {
        return None;
    }
    ASKED.add();
    for _ in 0..TRIES {
        let port = ask(protocol, own.host, to.host, to.port)?;
        match bind(socket, Address { port, ..own }) {
            0 => {
                STEERED.add();
                return Some(());
            }
            libc::EADDRINUSE => REFUSED.add(),
            _ => {
                REFUSED.add();
                return None;
            }
        }
    }
    None
}

/// Returns the address that a socket is bound to; port 0 if it is not.
fn own_address(socket: c_int) -> Option<Address> {
    let mut raw = Raw::empty();
    let mut length = size(size_of::<Raw>());
    let place = (&raw mut raw).cast();
    // SAFETY: room for any address of the two families; longer ones are cut.
    let failed = unsafe { libc::getsockname(socket, place, &raw mut length) } != 0;
    // SAFETY: as many bytes are there.
    let own = unsafe { Address::read(place, length.min(size(size_of::<Raw>()))) };
    own.filter(|_| !failed)
}

/// Binds without `SO_REUSEADDR`, which the socket has again afterwards; 0 or the error.
fn bind(socket: c_int, own: Address) -> c_int {
    let reuses = option(socket, libc::SO_REUSEADDR).unwrap_or(0);
    if reuses != 0 {
        set_option(socket, libc::SO_REUSEADDR, 0);
    }
    let (raw, length) = own.write();
    // SAFETY: an address of that length.
    let result = unsafe { libc::bind(socket, (&raw const raw).cast(), length) };
    // SAFETY: errno of this thread.
    let error = unsafe { *libc::__errno_location() };
    if reuses != 0 {
        set_option(socket, libc::SO_REUSEADDR, reuses);
    }
    if result == 0 { 0 } else { error }
}

fn option(socket: c_int, name: c_int) -> Option<c_int> {
    let mut value: c_int = 0;
    let mut length = size(size_of::<c_int>());
    let place = (&raw mut value).cast();
    // SAFETY: room for a number.
    let result =
        unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, name, place, &raw mut length) };
    (result == 0).then_some(value)
}

fn set_option(socket: c_int, name: c_int, value: c_int) {
    let length = size(size_of::<c_int>());
    // SAFETY: a number.
    unsafe {
        let value = (&raw const value).cast();
        libc::setsockopt(socket, libc::SOL_SOCKET, name, value, length);
    }
}
