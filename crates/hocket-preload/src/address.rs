//! Addresses as the C library writes them.

use std::ffi::c_int;
use std::mem::size_of;
use std::net::{Ipv4Addr, Ipv6Addr};

use libc::{sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

/// Returns a family as addresses have it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the C library numbers families with 16 bits"
)]
pub(crate) const fn family(number: c_int) -> sa_family_t {
    number as sa_family_t
}

/// Returns a number of bytes, of an address or an option, as calls take it.
#[expect(clippy::cast_possible_truncation, reason = "they are short")]
pub(crate) const fn size(bytes: usize) -> socklen_t {
    bytes as socklen_t
}

/// An address of IPv4 with a port, and the family of the socket that it was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: Ipv4Addr,
    pub(crate) port: u16,
    pub(crate) family: i32,
}

/// An address of the C library, large enough for both families.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Raw {
    pub(crate) four: sockaddr_in,
    pub(crate) six: sockaddr_in6,
}

impl Raw {
    pub(crate) fn empty() -> Self {
        // SAFETY: all bytes of both may be zero.
        unsafe { std::mem::zeroed() }
    }
}

impl Address {
    /// Reads an address; `None` where it is neither IPv4 nor IPv4 in IPv6.
    ///
    /// # Safety
    /// `raw` is null or points to `length` bytes.
    pub(crate) unsafe fn read(raw: *const sockaddr, length: socklen_t) -> Option<Self> {
        let length = length as usize;
        if raw.is_null() || length < size_of::<sa_family_t>() {
            return None;
        }
        // SAFETY: it has a family; it may stand anywhere.
        let family = i32::from(unsafe { raw.cast::<sa_family_t>().read_unaligned() });
        match family {
            libc::AF_INET if length >= size_of::<sockaddr_in>() => {
                // SAFETY: it is as long.
                let read = unsafe { raw.cast::<sockaddr_in>().read_unaligned() };
                Some(Self {
                    host: Ipv4Addr::from(read.sin_addr.s_addr.to_ne_bytes()),
                    port: u16::from_be(read.sin_port),
                    family,
                })
            }
            libc::AF_INET6 if length >= size_of::<sockaddr_in6>() => {
                // SAFETY: it is as long.
                let read = unsafe { raw.cast::<sockaddr_in6>().read_unaligned() };
                let six = Ipv6Addr::from(read.sin6_addr.s6_addr);
                let host = match six.is_unspecified() {
                    true => Ipv4Addr::UNSPECIFIED,
                    false => six.to_ipv4_mapped()?,
                };
                Some(Self {
                    host,
                    port: u16::from_be(read.sin6_port),
                    family,
                })
            }
            _ => None,
        }
    }

    /// Writes it for a socket of its family.
    pub(crate) fn write(self) -> (Raw, socklen_t) {
        let mut raw = Raw::empty();
        if self.family == libc::AF_INET {
            // SAFETY: all bytes may be zero.
            let mut four: sockaddr_in = unsafe { std::mem::zeroed() };
            four.sin_family = family(libc::AF_INET);
            four.sin_port = self.port.to_be();
            four.sin_addr.s_addr = u32::from_ne_bytes(self.host.octets());
            raw.four = four;
            return (raw, size(size_of::<sockaddr_in>()));
        }
        // SAFETY: all bytes may be zero.
        let mut six: sockaddr_in6 = unsafe { std::mem::zeroed() };
        six.sin6_family = family(libc::AF_INET6);
        six.sin6_port = self.port.to_be();
        if !self.host.is_unspecified() {
            six.sin6_addr.s6_addr = self.host.to_ipv6_mapped().octets();
        }
        raw.six = six;
        (raw, size(size_of::<sockaddr_in6>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for family in [libc::AF_INET, libc::AF_INET6] {
            for host in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(10, 1, 2, 3)] {
                let port = 50_123;
                let address = Address { host, port, family };
                let (raw, length) = address.write();
                // SAFETY: a whole address.
                let read = |length| unsafe { Address::read((&raw const raw).cast(), length) };
                assert_eq!(read(length), Some(address));
                assert_eq!(read(length - 1), None);
                assert_eq!(read(1), None);
            }
        }
    }

    #[test]
    fn other_addresses_are_none() {
        let mut raw = Raw::empty();
        // SAFETY: all bytes may be zero.
        let mut six: sockaddr_in6 = unsafe { std::mem::zeroed() };
        six.sin6_family = family(libc::AF_INET6);
        six.sin6_addr.s6_addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).octets();
        raw.six = six;
        let length = size(size_of::<sockaddr_in6>());
        // SAFETY: a whole address, and none.
        unsafe {
            assert_eq!(Address::read((&raw const raw).cast(), length), None);
            assert_eq!(Address::read(std::ptr::null(), length), None);
        }
    }
}
