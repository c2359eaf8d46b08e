//! Rules and routes by netlink: the kernel is asked for one thing at a time, and answers.
//!
//! # Source
//! The kernel's headers linux/netlink.h, rtnetlink.h, fib_rules.h, lwtunnel.h, seg6.h and seg6_iptunnel.h.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv6Addr;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};

use super::rules::{Kernel, Packets, There, Way};

/// Marks rules and routes of the agent among those of others, as `protocol`.
pub const PROTOCOL: u8 = 74;
/// Bytes of an answer: the kernel fills no more at once.
const ANSWER: usize = 1 << 16;
/// The kernel answers sooner.
const PATIENCE: Duration = Duration::from_secs(5);

const HEADER: usize = 16;
const IPV6: u8 = 10;
/// Kinds of messages.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const GET_ROUTE: u16 = 26;
const NEW_RULE: u16 = 32;
const DELETE_RULE: u16 = 33;
const GET_RULE: u16 = 34;
/// Flags of a message.
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const ALL: u16 = 0x300;
const REPLACE: u16 = 0x100;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;
/// A rule that names a source holds for packets whose source the kernel has yet to choose, too, if it chooses that.
const FIND_SOURCE: u32 = 0x10000;
/// A rule that leads to a table; a route to one receiver.
const TO_TABLE: u8 = 1;
const UNICAST: u8 = 1;
/// Attributes of rules; a route's receiver, and table, have the same numbers as a rule's.
const DST: u16 = 1;
const SRC: u16 = 2;
const PRIORITY: u16 = 6;
const TABLE: u16 = 15;
const RULE_PROTOCOL: u16 = 21;
const IP_PROTOCOL: u16 = 22;
const SPORTS: u16 = 23;
const DPORTS: u16 = 24;
/// Attributes of routes.
const OUT: u16 = 4;
const ENCAP_TYPE: u16 = 21;
const ENCAP: u16 = 22;
const NESTED: u16 = 0x8000;
const SEG6: u16 = 5;
const SEG6_HEADER: u16 = 1;
/// The segments are written into the packet, and no packet around it.
const INLINE: u32 = 0;
const ROUTING_TYPE: u8 = 4;
const LOOPBACK: u32 = 1;

/// The kernel of this host, for tables of an own range.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    tables: RangeInclusive<u32>,
    priority: u32,
    sequence: u32,
}

/// A message that is being written.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, flags: u16, body: &[u8]) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | REQUEST | ACKNOWLEDGE).to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(body);
        Self(bytes)
    }

    fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.extend(attribute(kind, value));
        self
    }

    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let count = u32::try_from(self.0.len()).expect("attributes are below 64 KiB each");
        self.0[..4].copy_from_slice(&count.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).expect("a path has few segments");
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Returns the value of an attribute that comes after a body.
fn find(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let [count, kind] = [half(attributes, 0)?, half(attributes, 2)?];
        let value = attributes.get(4..count.into())?;
        if kind & !NESTED == wanted {
            return Some(value);
        }
        attributes = attributes.get(usize::from(count).next_multiple_of(4)..)?;
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// What the kernel says: its kind, and what follows.
type Said = (u16, Vec<u8>);

impl Netlink {
    /// Rules of a priority, for tables of these numbers.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(tables: RangeInclusive<u32>, priority: u32) -> io::Result<Self> {
        let socket = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self {
            socket,
            tables,
            priority,
            sequence: 0,
        })
    }

    /// Tries whether the agent may set routes, and whether the kernel writes segments.
    ///
    /// # Errors
    /// What the system says.
    pub fn try_out(&mut self) -> io::Result<()> {
        // Addresses that nobody has (RFC 6666).
        let [dst, segment] = [1, 2].map(|last| Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, last));
        let way = Way {
            dst,
            segments: vec![segment],
        };
        let table = *self.tables.start();
        self.route(table, &way, LOOPBACK)?;
        self.remove_route(table, &way)
    }

    fn ask(&mut self, message: Message) -> io::Result<Vec<Said>> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = message.finish(self.sequence);
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, &bytes, SendFlags::empty(), &kernel)?;
        let mut buffer = vec![0; ANSWER];
        let mut said = Vec::new();
        loop {
            let received =
                retry_on_intr(|| recv(&self.socket, &mut buffer[..], RecvFlags::empty()));
            let (count, _) = received?;
            let mut left = &buffer[..count];
            while let Some(size) = word(left, 0).map(|size| size as usize)
                && (HEADER..=left.len()).contains(&size)
            {
                let (one, rest) = left.split_at(size);
                left = rest.get(size.next_multiple_of(4) - size..).unwrap_or(&[]);
                if word(one, 8) != Some(self.sequence) {
                    // The answer to a question that was given up.
                    continue;
                }
                let body = &one[HEADER..];
                match half(one, 4).unwrap_or(0) {
                    ERROR | DONE => {
                        let error = word(body, 0).map_or(0, u32::cast_signed);
                        return match error {
                            0.. => Ok(said),
                            error => Err(io::Error::from_raw_os_error(error.saturating_neg())),
                        };
                    }
                    kind => said.push((kind, body.to_vec())),
                }
            }
        }
    }

    /// Returns the interface by which packets leave.
    fn out(&mut self, dst: Ipv6Addr) -> io::Result<u32> {
        let body = [IPV6, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let asked = Message::new(GET_ROUTE, 0, &body).with(DST, &dst.octets());
        let said = self.ask(asked)?;
        let found = said.iter().find(|(kind, _)| *kind == NEW_ROUTE);
        let out = found.and_then(|(_, body)| word(find(body.get(body_of_route())?, OUT)?, 0));
        out.ok_or_else(|| io::Error::other(format!("no interface leads to {dst}")))
    }

    fn route(&mut self, table: u32, way: &Way, out: u32) -> io::Result<()> {
        let message = route_message(table, way, out);
        self.ask(message).map(drop)
    }

    fn rule(&mut self, kind: u16, flags: u16, table: u32, packets: &Packets) -> io::Result<()> {
        let message = rule_message([kind, flags], self.priority, table, packets);
        self.ask(message).map(drop)
    }

    /// Returns all rules, or routes, of this protocol and these tables: the table, and what the kernel says.
    fn dump(&mut self, get: u16, found: u16) -> io::Result<Vec<(u32, Vec<u8>)>> {
        let body = [IPV6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let said = self.ask(Message::new(get, ALL, &body))?;
        let own = said.into_iter().filter_map(|(kind, body)| {
            let attributes = body.get(body_of_route())?;
            let protocol = match get {
                GET_RULE => find(attributes, RULE_PROTOCOL)?.first().copied()?,
                _ => body.get(5).copied()?,
            };
            let table = word(find(attributes, TABLE)?, 0)?;
            let is_own = protocol == PROTOCOL && self.tables.contains(&table);
            (kind == found && is_own).then_some((table, body))
        });
        Ok(own.collect())
    }

    /// Removes all rules, or routes, of this protocol and these tables.
    fn clear_all(&mut self, get: u16, found: u16, delete: u16) -> io::Result<usize> {
        let own = self.dump(get, found)?;
        let count = own.len();
        for (_, body) in own {
            // The kernel takes back what it says.
            gone(self.ask(Message::new(delete, 0, &body)).map(drop))?;
        }
        Ok(count)
    }
}

fn route_message(table: u32, way: &Way, out: u32) -> Message {
    let segments = attribute(SEG6_HEADER, &header(&way.segments));
    Message::new(NEW_ROUTE, CREATE | REPLACE, &route_body(table))
        .with(DST, &way.dst.octets())
        .with(TABLE, &table.to_ne_bytes())
        .with(OUT, &out.to_ne_bytes())
        .with(ENCAP_TYPE, &SEG6.to_ne_bytes())
        .with(ENCAP | NESTED, &segments)
}

fn rule_message([kind, flags]: [u16; 2], priority: u32, table: u32, packets: &Packets) -> Message {
    let mut body = vec![IPV6, 128, 128, 0, small(table), 0, 0, TO_TABLE];
    body.extend(FIND_SOURCE.to_ne_bytes());
    let range = |port: u16| [port.to_ne_bytes(), port.to_ne_bytes()].concat();
    Message::new(kind, flags, &body)
        .with(DST, &packets.dst.octets())
        .with(SRC, &packets.src.octets())
        .with(PRIORITY, &priority.to_ne_bytes())
        .with(TABLE, &table.to_ne_bytes())
        .with(RULE_PROTOCOL, &[PROTOCOL])
        .with(IP_PROTOCOL, &[packets.protocol])
        .with(SPORTS, &range(packets.sport))
        .with(DPORTS, &range(packets.dport))
}

/// Returns which packets a rule leads.
fn read_rule(body: &[u8]) -> Option<Packets> {
    let attributes = body.get(body_of_route())?;
    let one = |kind| {
        let [first, last] = [0, 2].map(|at| half(find(attributes, kind)?, at));
        first.filter(|_| first == last)
    };
    Some(Packets {
        protocol: *find(attributes, IP_PROTOCOL)?.first()?,
        src: address(find(attributes, SRC)?)?,
        dst: address(find(attributes, DST)?)?,
        sport: one(SPORTS)?,
        dport: one(DPORTS)?,
    })
}

/// Where a route leads, and by which interface.
fn read_route(body: &[u8]) -> Option<(Way, u32)> {
    let attributes = body.get(body_of_route())?;
    let header = find(find(attributes, ENCAP)?, SEG6_HEADER)?;
    let segments = header.get(SEGMENTS..)?.chunks(16).rev().map(address);
    let way = Way {
        dst: address(find(attributes, DST)?)?,
        segments: segments.collect::<Option<_>>()?,
    };
    Some((way, word(find(attributes, OUT)?, 0)?))
}

fn address(bytes: &[u8]) -> Option<Ipv6Addr> {
    Some(<[u8; 16]>::try_from(bytes).ok()?.into())
}

/// Where attributes begin after the fixed part of a rule or route.
fn body_of_route() -> std::ops::RangeFrom<usize> {
    12..
}

/// Returns a table's number in the byte that there is for it; others are told by an attribute.
fn small(table: u32) -> u8 {
    u8::try_from(table).unwrap_or(0)
}

fn route_body(table: u32) -> [u8; 12] {
    [
        IPV6,
        128,
        0,
        0,
        small(table),
        PROTOCOL,
        0,
        UNICAST,
        0,
        0,
        0,
        0,
    ]
}

/// Where segments begin in what [`header`] makes.
const SEGMENTS: usize = 28;

/// Returns the routing header as the kernel is told it: segments backwards, with room for the receiver's address before
/// them.
fn header(segments: &[Ipv6Addr]) -> Vec<u8> {
    let last = u8::try_from(segments.len()).expect("a path has few segments");
    let mut bytes = INLINE.to_ne_bytes().to_vec();
    bytes.extend([0, 2 * (last + 1), ROUTING_TYPE, last, last, 0, 0, 0]);
    bytes.extend([0; 16]);
    segments
        .iter()
        .rev()
        .for_each(|segment| bytes.extend(segment.octets()));
    bytes
}

/// Returns what packets are sent to at first.
fn first(way: &Way) -> Ipv6Addr {
    way.segments.first().copied().unwrap_or(way.dst)
}

/// Removes what is there; nothing if it is gone already.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    const NO_ENTRY: i32 = 2;
    const NO_PROCESS: i32 = 3;
    match removed {
        Err(error) if matches!(error.raw_os_error(), Some(NO_ENTRY | NO_PROCESS)) => Ok(()),
        other => other,
    }
}

impl Kernel for Netlink {
    fn clear(&mut self) -> io::Result<usize> {
        let rules = self.clear_all(GET_RULE, NEW_RULE, DELETE_RULE)?;
        Ok(rules + self.clear_all(GET_ROUTE, NEW_ROUTE, DELETE_ROUTE)?)
    }

    fn list(&mut self) -> io::Result<There> {
        let rules = self.dump(GET_RULE, NEW_RULE)?.into_iter();
        let rules = rules.filter_map(|(table, body)| Some((table, read_rule(&body)?)));
        let mut there = There {
            rules: rules.collect(),
            ..There::default()
        };
        let mut outs: BTreeMap<Ipv6Addr, Option<u32>> = BTreeMap::new();
        for (table, body) in self.dump(GET_ROUTE, NEW_ROUTE)? {
            let Some((way, out)) = read_route(&body) else {
                continue;
            };
            let first = first(&way);
            let leads = match outs.get(&first) {
                Some(leads) => *leads,
                None => *outs.entry(first).or_insert(self.out(first).ok()),
            };
            if leads == Some(out) {
                there.routes.insert(table, way);
            }
        }
        Ok(there)
    }

    fn add_route(&mut self, table: u32, way: &Way) -> io::Result<()> {
        let out = self.out(first(way))?;
        self.route(table, way, out)
    }

    fn remove_route(&mut self, table: u32, way: &Way) -> io::Result<()> {
        let message = Message::new(DELETE_ROUTE, 0, &route_body(table))
            .with(DST, &way.dst.octets())
            .with(TABLE, &table.to_ne_bytes());
        gone(self.ask(message).map(drop))
    }

    fn add_rule(&mut self, table: u32, packets: &Packets) -> io::Result<()> {
        match self.rule(NEW_RULE, CREATE | EXCLUSIVE, table, packets) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    fn remove_rule(&mut self, table: u32, packets: &Packets) -> io::Result<()> {
        gone(self.rule(DELETE_RULE, 0, table, packets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_after_others() {
        let bytes = [attribute(7, &[1]), attribute(NESTED | 9, &[2, 3])].concat();
        assert_eq!(bytes.len(), 16);
        assert_eq!(find(&bytes, 9), Some(&[2, 3][..]));
        assert_eq!(find(&bytes, 8), None);
        // One that says that it is longer than what there is, or shorter than itself.
        assert_eq!(find(&[9, 0, 7, 0], 7), None);
        assert_eq!(find(&[0, 0, 0, 0], 7), None);
    }

    #[test]
    fn segments_are_written_backwards_before_room_for_the_receiver() {
        let [one, two] = ["fd00:5::1", "fd00:6::1"].map(|text| text.parse::<Ipv6Addr>().unwrap());
        let bytes = header(&[one, two]);
        // Length in words of 8 bytes after the first, two segments left, and the last is number two.
        assert_eq!(bytes[4..12], [0, 6, 4, 2, 2, 0, 0, 0]);
        assert_eq!(bytes[12..28], [0; 16]);
        assert_eq!(bytes[SEGMENTS..], [two.octets(), one.octets()].concat());
    }

    #[test]
    fn rules_and_routes_are_read_as_they_are_written() {
        let [one, two] = ["fd00:5::1", "fd00:6::1"].map(|text| text.parse::<Ipv6Addr>().unwrap());
        let way = Way {
            dst: "fd00::2".parse().unwrap(),
            segments: vec![one, two],
        };
        let route = route_message(7_400, &way, 3).finish(1);
        assert_eq!(read_route(&route[HEADER..]), Some((way, 3)));
        let packets = Packets {
            protocol: 17,
            src: one,
            dst: two,
            sport: 61_000,
            dport: 80,
        };
        let rule = rule_message([NEW_RULE, 0], 7, 7_400, &packets);
        assert_eq!(read_rule(&rule.finish(1)[HEADER..]), Some(packets));
    }
}
