//! Whether the kernel of this host takes packets with segments.
//!
//! It does where both `all` and the interface by which they come say so; else it drops them.

use hocket_wire::setup::SetupError;

/// Addresses of IPv6, a line each, that ends with the interface.
const ADDRESSES: &str = "/proc/net/if_inet6";
/// Of an address that others reach, among those lines.
const GLOBAL: &str = "00";

/// Looks at the interfaces of this host.
///
/// # Errors
/// [`SetupError`] naming one that drops packets with segments.
pub(super) fn check() -> Result<(), SetupError> {
    // Without IPv6 there are no addresses, and `all` is not there either.
    let addresses = std::fs::read_to_string(ADDRESSES).unwrap_or_default();
    let takes = |name: &str| {
        let said = std::fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{name}/seg6_enabled"));
        said.is_ok_and(|said| said.trim() != "0")
    };
    match closed(&addresses, takes) {
        None => Ok(()),
        Some(name) => Err(SetupError::new(
            "[srv6]",
            "the kernel of this host takes no segments: packets of other hosts would be lost",
            format!("set net.ipv6.conf.{name}.seg6_enabled = 1, or leave the section out"),
        )),
    }
}

/// `all`, or an interface with an address that others reach, whichever is first to take no segments.
fn closed(addresses: &str, takes: impl Fn(&str) -> bool) -> Option<&str> {
    let interfaces = addresses.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let scope = words.nth(3)?;
        let name = words.nth(1)?;
        (scope == GLOBAL && name != "lo").then_some(name)
    });
    std::iter::once("all")
        .chain(interfaces)
        .find(|name| !takes(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_and_each_interface_that_others_reach_are_to_take_segments() {
        let addresses = "\
00000000000000000000000000000001 01 80 10 80       lo
fd000010000000000000000000000001 01 80 00 80       lo
fe80000000000000000000fffe000001 04 40 20 80    wlan0
fd000010000100000000000000000002 02 40 00 80     eth0
fd000010000200000000000000000002 03 40 00 80   eth1.7
";
        let closed = |open: &[&str]| closed(addresses, |name| open.contains(&name));
        assert_eq!(closed(&["eth0", "eth1.7"]), Some("all"));
        assert_eq!(closed(&["all", "eth1.7"]), Some("eth0"));
        assert_eq!(closed(&["all", "eth0"]), Some("eth1.7"));
        assert_eq!(closed(&["all", "eth0", "eth1.7"]), None);
    }
}
