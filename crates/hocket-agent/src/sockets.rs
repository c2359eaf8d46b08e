//! Which sockets of this host there are, as the system lists them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::datagrams::{Ends, Protocol};

/// TCP's states FIN_WAIT2, TIME_WAIT and CLOSE: all has been sent, and the receiver has it.
const OVER: [&str; 3] = ["05", "06", "07"];

/// Sockets with a receiver that may still send: where they go, and the port that they send from.
pub(crate) fn connected() -> BTreeSet<(Ends, u16)> {
    let mut all = BTreeSet::new();
    for (name, protocol) in [
        ("tcp", Protocol::Tcp),
        ("tcp6", Protocol::Tcp),
        ("udp", Protocol::Udp),
        ("udp6", Protocol::Udp),
    ] {
        // Without a family of addresses there is no such file.
        if let Ok(text) = std::fs::read_to_string(format!("/proc/self/net/{name}")) {
            all.extend(
                text.lines()
                    .skip(1)
                    .filter_map(|line| socket(line, protocol)),
            );
        }
    }
    all
}

/// `   0: 0100007F:1F90 0200007F:C350 01 ...`: words of an address are as the machine has them.
fn socket(line: &str, protocol: Protocol) -> Option<(Ends, u16)> {
    let mut words = line.split_whitespace().skip(1);
    let [(src, sport), (dst, dport)] = [address(words.next()?)?, address(words.next()?)?];
    let is_over = protocol == Protocol::Tcp && OVER.contains(&words.next()?);
    let ends = Ends {
        protocol,
        src,
        dst,
        dport,
    };
    (dport != 0 && !is_over).then_some((ends, sport))
}

fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let word = u32::from_str_radix(address.get(8 * at..8 * at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    let address: IpAddr = match address.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            // Programs may speak IPv4 by a socket of IPv6.
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some((address, port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_connection_is_listed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (own, peer) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let ends = Ends {
            protocol: Protocol::Tcp,
            src: own.ip(),
            dst: peer.ip(),
            dport: peer.port(),
        };
        assert!(connected().contains(&(ends, own.port())));
        assert_eq!(socket("header without sockets", Protocol::Tcp), None);
        // Its own side has sent all and says so; the other has heard it, and waits for no more.
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let is_over = || !connected().contains(&(ends, own.port()));
        let deadline = Instant::now() + Duration::from_secs(5);
        while !is_over() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(is_over());
    }
}
