//! What switches see of a packet.

use std::net::IpAddr;

/// The fields of a packet's header that switches may hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Address of the sender.
    pub src: IpAddr,
    /// Address of the receiver, of the same family.
    pub dst: IpAddr,
    /// Protocol: 6 for TCP, 17 for UDP.
    pub protocol: u8,
    /// Source port.
    pub sport: u16,
    /// Destination port: 4791 for RoCEv2.
    pub dport: u16,
    /// Flow label of IPv6, 20 bits.
    pub label: u32,
}

impl Header {
    /// Returns the header of the packets that come back.
    pub fn reversed(&self) -> Self {
        Self {
            src: self.dst,
            dst: self.src,
            sport: self.dport,
            dport: self.sport,
            ..*self
        }
    }
}

/// Which fields a switch hashes: bits as in Linux' `fib_multipath_hash_fields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fields(pub u8);

impl Fields {
    /// Address of the sender.
    pub const SRC: Self = Self(0x01);
    /// Address of the receiver.
    pub const DST: Self = Self(0x02);
    /// Protocol.
    pub const PROTOCOL: Self = Self(0x04);
    /// Flow label.
    pub const LABEL: Self = Self(0x08);
    /// Source port.
    pub const SPORT: Self = Self(0x10);
    /// Destination port.
    pub const DPORT: Self = Self(0x20);
    /// Addresses, ports and protocol.
    pub const FIVE: Self = Self(0x37);
    /// Addresses and ports.
    pub const FOUR: Self = Self(0x33);

    /// Returns whether all fields of `other` are among these.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These fields and others.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the fields of a header in network order: addresses, ports, protocol, label.
    pub(super) fn bytes(self, header: &Header) -> Bytes {
        let mut bytes = Bytes {
            all: [0; LONGEST],
            count: 0,
        };
        let mut address = |field: Self, address: IpAddr| match address {
            _ if !self.has(field) => {}
            IpAddr::V4(address) => bytes.extend(&address.octets()),
            IpAddr::V6(address) => bytes.extend(&address.octets()),
        };
        address(Self::SRC, header.src);
        address(Self::DST, header.dst);
        for (field, port) in [(Self::SPORT, header.sport), (Self::DPORT, header.dport)] {
            if self.has(field) {
                bytes.extend(&port.to_be_bytes());
            }
        }
        if self.has(Self::PROTOCOL) {
            bytes.extend(&[header.protocol]);
        }
        if self.has(Self::LABEL) {
            bytes.extend(&header.label.to_be_bytes()[1..]);
        }
        bytes
    }
}

/// Two addresses of IPv6, two ports, protocol and label.
const LONGEST: usize = 40;

/// What is hashed of a header.
pub(super) struct Bytes {
    all: [u8; LONGEST],
    count: usize,
}

impl Bytes {
    fn extend(&mut self, more: &[u8]) {
        self.all[self.count..][..more.len()].copy_from_slice(more);
        self.count += more.len();
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.all[..self.count]
    }
}
