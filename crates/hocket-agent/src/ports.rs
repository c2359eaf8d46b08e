//! Source ports that lead through the wanted switches, and are not in use.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;

use hocket_base::explain::Explain;
use hocket_control::message::Path;
use hocket_steering::{Header, SourcePort, Stages, Unreachable};
use rustix::net::{AddressFamily, SocketType, bind, socket};

use crate::datagrams::{Ends, Protocol};

/// Ports that are tried before giving up, where those that lead there are in use.
const TRIES: usize = 64;

/// Why there is no port.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
pub enum NoPort {
    /// No port leads there.
    #[explain(from)]
    Unreachable(Unreachable),
    /// Those that lead there are in use.
    #[explain(why("ports that lead there are in use"))]
    InUse,
    /// The sender's address is not this host's.
    #[explain(why("{_0} is not an address of this host"))]
    NotHere(IpAddr),
    /// The system refuses to try a port.
    #[explain(why("{_0}"))]
    System(String),
}

/// Ports that were given out.
#[derive(Debug)]
pub struct Ports {
    range: RangeInclusive<u16>,
    leased: BTreeMap<Ends, BTreeSet<u16>>,
    /// Where to begin, so that the same port does not come back at once.
    next: u16,
}

impl Ports {
    /// Ports of a range.
    pub fn new(range: RangeInclusive<u16>) -> Self {
        Self {
            next: *range.start(),
            range,
            leased: BTreeMap::new(),
        }
    }

    /// Leases a port that takes a path.
    ///
    /// # Errors
    /// [`NoPort`] if there is none.
    pub fn lease(&mut self, ends: &Ends, path: &Path) -> Result<u16, NoPort> {
        let stages = Stages {
            forth: &path.forth,
            back: &path.back,
        };
        self.lease_if(ends, stages, |port| is_free(ends, port))
    }

    /// Leases a port that matters only for the path of packets that come back.
    ///
    /// # Errors
    /// [`NoPort`] if there is none.
    pub fn lease_back(&mut self, ends: &Ends, path: &Path) -> Result<u16, NoPort> {
        let stages = Stages {
            forth: &[],
            back: &path.back,
        };
        self.lease_if(ends, stages, |port| is_free(ends, port))
    }

    fn lease_if(
        &mut self,
        ends: &Ends,
        stages: Stages<'_>,
        is_free: impl Fn(u16) -> Result<bool, NoPort>,
    ) -> Result<u16, NoPort> {
        let header = header(ends, 0);
        let leased = self.leased.entry(*ends).or_default();
        let mut asked = SourcePort::among(self.range.clone());
        asked.first = self.next;
        asked.taken = leased.iter().copied().collect();
        for _ in 0..TRIES {
            let port = match asked.find(&header, stages) {
                Ok(port) => port,
                Err(Unreachable::Exhausted { .. }) if !asked.taken.is_empty() => {
                    return Err(NoPort::InUse);
                }
                Err(error) => return Err(error.into()),
            };
            if is_free(port)? {
                self.next = port.checked_add(1).unwrap_or(*self.range.start());
                leased.insert(port);
                return Ok(port);
            }
            let at = asked.taken.partition_point(|&taken| taken < port);
            asked.taken.insert(at, port);
        }
        Err(NoPort::InUse)
    }

    /// Takes a port back.
    pub fn release(&mut self, ends: &Ends, port: u16) {
        if let Some(leased) = self.leased.get_mut(ends) {
            leased.remove(&port);
            if leased.is_empty() {
                self.leased.remove(ends);
            }
        }
    }
}

/// Returns what switches see of a flow.
pub fn header(ends: &Ends, sport: u16) -> Header {
    Header {
        src: ends.src,
        dst: ends.dst,
        protocol: ends.protocol.number(),
        sport,
        dport: ends.dport,
        label: 0,
    }
}

/// Returns whether nobody has a port, not even for another receiver: a program binds before it says where it goes. A
/// socket that waits after its end has it as well.
fn is_free(ends: &Ends, port: u16) -> Result<bool, NoPort> {
    let kind = match ends.protocol {
        Protocol::Tcp => SocketType::STREAM,
        Protocol::Udp => SocketType::DGRAM,
    };
    let family = match ends.src {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    let probe = socket(family, kind, None).map_err(|error| NoPort::System(error.to_string()))?;
    match bind(&probe, &SocketAddr::new(ends.src, port)) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::ADDRINUSE | rustix::io::Errno::ACCESS) => Ok(false),
        Err(rustix::io::Errno::ADDRNOTAVAIL) => Err(NoPort::NotHere(ends.src)),
        Err(error) => Err(NoPort::System(error.to_string())),
    }
}

/// Returns the address that the host sends from.
///
/// # Errors
/// What the system says.
pub fn source(dst: IpAddr, dport: u16) -> std::io::Result<IpAddr> {
    let any: IpAddr = match dst {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((dst, dport))?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use hocket_steering::{Algorithm, Fields, Policy, Stage, SwitchHash};

    use super::*;

    fn path(wanted: u32) -> Path {
        let hash = SwitchHash {
            algorithm: Algorithm::Linux(Policy::Custom(Fields::FIVE)),
            seed: 7,
            offset: 0,
        };
        let stage = Stage {
            hash,
            ways: 4,
            wanted,
        };
        Path {
            choice: wanted,
            links: Vec::new(),
            forth: vec![stage],
            back: Vec::new(),
            segments: Vec::new(),
        }
    }

    fn ends() -> Ends {
        Ends {
            protocol: Protocol::Tcp,
            src: [127, 0, 0, 1].into(),
            dst: [127, 0, 0, 2].into(),
            dport: 80,
        }
    }

    #[test]
    fn a_port_leads_the_wanted_way_and_is_given_once() {
        let mut ports = Ports::new(20_000..=20_999);
        let mut given = BTreeSet::new();
        for i in 0..40 {
            let path = path(i % 4);
            let stages = Stages {
                forth: &path.forth,
                back: &path.back,
            };
            let port = ports.lease_if(&ends(), stages, |_| Ok(true)).unwrap();
            let stage = path.forth[0];
            assert_eq!(stage.hash.way(&header(&ends(), port), 4), stage.wanted);
            assert!(given.insert(port));
        }
        for port in given {
            ports.release(&ends(), port);
        }
        assert!(ports.leased.is_empty());
    }

    #[test]
    fn ports_in_use_are_passed_over() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut ports = Ports::new(port..=port);
        let anywhere = Path {
            forth: Vec::new(),
            ..path(0)
        };
        assert_eq!(ports.lease(&ends(), &anywhere), Err(NoPort::InUse));
        drop(listener);
        assert_eq!(ports.lease(&ends(), &anywhere), Ok(port));
        assert_eq!(ports.lease(&ends(), &anywhere), Err(NoPort::InUse));
    }

    #[test]
    fn an_address_of_another_host_has_no_port() {
        let mut ports = Ports::new(20_000..=20_999);
        let ends = Ends {
            src: [192, 0, 2, 1].into(),
            ..ends()
        };
        assert_eq!(ports.lease(&ends, &path(0)), Err(NoPort::NotHere(ends.src)));
    }
}
