//! How Linux spreads flows over next hops: `net.ipv4.fib_multipath_hash_policy` 0, 1 and 3, for both
//! families of addresses, with `fib_multipath_hash_seed` set.
//!
//! The kernel lays the fields out as its `flow_keys`, puts the lower address and the lower port first (as
//! machine words, and each pair by itself), hashes with SipHash-2-4 under the seed, and with policy 3
//! mixes the result once more. A seed of 0 means a random key, which nobody can predict.
//!
//! # Source
//! Aumasson, Bernstein: SipHash, INDOCRYPT 2012; Jenkins: lookup3, 2006; the order of what is hashed is that
//! of Linux (`net/core/flow_dissector.c`, `net/ipv4/route.c`), checked against `ip route get`.

use std::net::IpAddr;

use super::header::{Fields, Header};

/// Longest layout: 36 bytes, two addresses of IPv6, 4 bytes.
const WORDS: usize = 9;
/// Where ports and addresses begin, in bytes.
const PORTS: usize = 28;
const ADDRESSES: usize = 36;

/// The state of SipHash after some words.
#[derive(Clone, Copy, Debug)]
struct Sip([u64; 4]);

impl Sip {
    fn new(seed: u32) -> Self {
        let key = u64::from(seed) << 32 | u64::from(seed);
        Self([
            key ^ 0x736f_6d65_7073_6575,
            key ^ 0x646f_7261_6e64_6f6d,
            key ^ 0x6c79_6765_6e65_7261,
            key ^ 0x7465_6462_7974_6573,
        ])
    }

    #[inline(always)]
    fn round(&mut self) {
        let [a, b, c, d] = &mut self.0;
        *a = a.wrapping_add(*b);
        *c = c.wrapping_add(*d);
        *b = b.rotate_left(13) ^ *a;
        *d = d.rotate_left(16) ^ *c;
        *a = a.rotate_left(32);
        *c = c.wrapping_add(*b);
        *a = a.wrapping_add(*d);
        *b = b.rotate_left(17) ^ *c;
        *d = d.rotate_left(21) ^ *a;
        *c = c.rotate_left(32);
    }

    #[inline(always)]
    fn absorb(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.round();
        self.0[0] ^= word;
    }

    #[inline(always)]
    fn finish(mut self) -> u64 {
        self.0[2] ^= 0xff;
        for _ in 0..4 {
            self.round();
        }
        let [a, b, c, d] = self.0;
        a ^ b ^ c ^ d
    }
}

/// What is hashed.
#[derive(Clone, Copy, Debug)]
struct Layout {
    words: [u64; WORDS],
    count: usize,
}

impl Layout {
    fn new(fields: Fields, header: &Header) -> Self {
        let mut bytes = [0u8; 8 * WORDS];
        if fields.has(Fields::PROTOCOL) {
            bytes[2] = header.protocol;
        }
        if fields.has(Fields::LABEL) {
            bytes[4..8].copy_from_slice(&(header.label & 0xf_ffff).to_le_bytes());
        }
        let port = |field: Fields, port: u16| if fields.has(field) { port } else { 0 };
        let sport = port(Fields::SPORT, header.sport);
        let dport = port(Fields::DPORT, header.dport);
        bytes[PORTS..PORTS + 4].copy_from_slice(&ports(sport, dport).to_le_bytes());
        let width = match header.src {
            IpAddr::V4(_) => 4,
            IpAddr::V6(_) => 16,
        };
        let mut pair = [
            address(header.src, fields.has(Fields::SRC)),
            address(header.dst, fields.has(Fields::DST)),
        ];
        let words = pair
            .map(|address| u32::from_le_bytes([address[0], address[1], address[2], address[3]]));
        let is_swapped = if width == 4 {
            words[1] < words[0]
        } else {
            pair[1] < pair[0]
        };
        if is_swapped {
            pair.swap(0, 1);
        }
        for (i, address) in pair.iter().enumerate() {
            let start = ADDRESSES + i * width;
            bytes[start..start + width].copy_from_slice(&address[..width]);
        }
        let mut words = [0; WORDS];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = chunk
                .iter()
                .rev()
                .fold(0, |word, &byte| word << 8 | u64::from(byte));
        }
        Self {
            words,
            count: (ADDRESSES + 2 * width + 4) / 8,
        }
    }
}

fn address(address: IpAddr, is_there: bool) -> [u8; 16] {
    let mut bytes = [0; 16];
    match address {
        _ if !is_there => {}
        IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes = address.octets(),
    }
    bytes
}

/// Both ports as they lie in memory, the one that is lower as a machine word first.
#[inline(always)]
fn ports(sport: u16, dport: u16) -> u32 {
    let [source, target] = [sport, dport].map(u16::swap_bytes);
    u32::from(source.max(target)) << 16 | u32::from(source.min(target))
}

/// Returns the kernel's number of a header, 31 bits.
pub(super) fn hash(policy: Policy, seed: u32, header: &Header) -> u32 {
    policy.number(keyed(policy, seed, header))
}

/// SipHash of a header's fields.
pub(super) fn keyed(policy: Policy, seed: u32, header: &Header) -> u32 {
    let layout = Layout::new(policy.fields(header), header);
    let mut sip = Sip::new(seed);
    let words = &layout.words[..layout.count];
    words.iter().for_each(|&word| sip.absorb(word));
    end(sip, layout.count)
}

#[inline(always)]
fn end(mut sip: Sip, count: usize) -> u32 {
    sip.absorb((count as u64 * 8) << 56);
    sip.finish() as u32
}

/// What Linux hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// `fib_multipath_hash_policy` 0: addresses; the flow label and protocol as well for IPv6.
    Layer3,
    /// 1: addresses, ports and protocol. Exact where packets are not hashed before, as those that the
    /// same kernel sends are.
    Layer4,
    /// 3: the fields of `fib_multipath_hash_fields`.
    Custom(Fields),
}

impl Policy {
    /// Returns the fields that it hashes.
    pub fn fields(self, header: &Header) -> Fields {
        match (self, header.src) {
            (Policy::Layer3, IpAddr::V4(_)) => Fields::SRC.and(Fields::DST),
            (Policy::Layer3, IpAddr::V6(_)) => {
                let ends = Fields::SRC.and(Fields::DST);
                ends.and(Fields::LABEL).and(Fields::PROTOCOL)
            }
            (Policy::Layer4, _) => Fields::FIVE,
            // IPv4 has no flow label.
            (Policy::Custom(fields), IpAddr::V4(_)) => Fields(fields.0 & Fields::FIVE.0),
            (Policy::Custom(fields), IpAddr::V6(_)) => fields,
        }
    }

    #[inline(always)]
    fn number(self, hash: u32) -> u32 {
        let hash = hash.max(1);
        match self {
            Policy::Custom(_) => mixed(hash) >> 1,
            _ => hash >> 1,
        }
    }
}

/// Jenkins' hash of one word and two zeros.
#[inline(always)]
fn mixed(word: u32) -> u32 {
    const START: u32 = 0xdead_beef + (2 << 2);
    let (mut a, mut b, mut c) = (word.wrapping_add(START), START, START);
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

/// A header of which only the source port varies: what comes before it is absorbed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByPort {
    policy: Policy,
    sip: Sip,
    layout: Layout,
    /// The end of the packet that is fixed.
    fixed: u16,
}

impl ByPort {
    /// Returns `None` if the port that varies is not hashed; `is_back`: it is the destination's.
    pub(super) fn new(policy: Policy, seed: u32, header: &Header, is_back: bool) -> Option<Self> {
        let fields = policy.fields(header);
        let [varies, stays] = match is_back {
            false => [Fields::SPORT, Fields::DPORT],
            true => [Fields::DPORT, Fields::SPORT],
        };
        let fixed = if is_back { header.sport } else { header.dport };
        let layout = Layout::new(fields, header);
        let mut sip = Sip::new(seed);
        layout.words[..PORTS / 8]
            .iter()
            .for_each(|&word| sip.absorb(word));
        fields.has(varies).then_some(Self {
            policy,
            sip,
            layout,
            fixed: if fields.has(stays) { fixed } else { 0 },
        })
    }

    #[inline(always)]
    pub(super) fn hash(&self, port: u16) -> u32 {
        let low = self.layout.words[PORTS / 8] & 0xffff_ffff;
        let word = u64::from(ports(port, self.fixed)) << 32 | low;
        let mut sip = self.sip;
        sip.absorb(word);
        for &word in &self.layout.words[PORTS / 8 + 1..self.layout.count] {
            sip.absorb(word);
        }
        self.policy.number(end(sip, self.layout.count))
    }
}
