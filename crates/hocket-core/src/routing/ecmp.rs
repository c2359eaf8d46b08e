//! Equal-cost multi-path: the way up is a hash of the packet's header.

use super::steering::linear::{crc32, toeplitz};
use super::{Fabric, Flow, hops};
use crate::units::Seed;

/// What a switch hashes headers with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hash {
    /// CRC-32 of IEEE 802.3 over addresses, ports and protocol.
    #[default]
    Crc32,
    /// The Toeplitz hash of receive-side scaling over addresses and ports, with its published key.
    Toeplitz,
}

/// How ECMP spreads flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ecmp {
    /// The hash, the same in every switch.
    pub hash: Hash,
    /// Ways over which the same hash has already spread the flows before they come to their ToR,
    /// such as the ToRs that a host with several uplinks is joined to; 1: none. More than 1
    /// polarises: a ToR sees only flows whose hash has one remainder, and leaves spines unused.
    pub upstream: u32,
    /// Whether switches above the ToRs mix a number of their level into the hash. Without it, the
    /// default, they see only flows whose hash has one remainder, as with `upstream`.
    pub salted: bool,
}

impl Default for Ecmp {
    fn default() -> Self {
        Self {
            hash: Hash::Crc32,
            upstream: 1,
            salted: false,
        }
    }
}

/// At each switch on the way up the hash modulo the number of links that lead to the flow's end.
///
/// Flows are RoCEv2: UDP to port 4791 from a port drawn from 49152 to 65535, between hosts 10.t.t.1
/// of ToR t. With `upstream` above 1 the port is drawn until the earlier stage would have chosen
/// this ToR.
pub(super) fn ecmp(fabric: &Fabric, flows: &[Flow], options: Ecmp, mut seed: Seed) -> Vec<u32> {
    let upstream = options.upstream.max(1);
    let draws = 64 * u64::from(upstream);
    let flat = fabric.is_complete() && fabric.levels() == 2;
    let (mut choices, mut ways) = (Vec::new(), Vec::new());
    let choose = |flow: &Flow| {
        let mut hash = 0;
        for _ in 0..draws {
            let port = 49152 + seed.below(16384) as u16;
            hash = options.hash.of(&header(flow, port));
            if hash % upstream == flow.src % upstream {
                break;
            }
        }
        if flat {
            return fabric.tops()[hash as usize % fabric.tops().len()];
        }
        let way = |level: usize, ways: &[usize]| {
            let hash = match options.salted && level > 0 {
                true => salted(hash, level),
                false => hash,
            };
            hash as usize % ways.len()
        };
        hops::climb(fabric, flow, &mut choices, &mut ways, way)
    };
    flows.iter().map(choose).collect()
}

/// A hash with a number mixed in. A number hashed with the header would not do: both hashes are
/// linear, so that it would flip the same bits of every flow.
fn salted(hash: u32, level: usize) -> u32 {
    (Seed(u64::from(hash) | (level as u64) << 32).next_u64() >> 32) as u32
}

/// Addresses, ports and protocol in network order.
fn header(flow: &Flow, port: u16) -> [u8; 13] {
    let mut bytes = [0; 13];
    for (i, tor) in [flow.src, flow.dst].into_iter().enumerate() {
        let [_, _, high, low] = tor.to_be_bytes();
        bytes[4 * i..4 * i + 4].copy_from_slice(&[10, high, low, 1]);
    }
    bytes[8..10].copy_from_slice(&port.to_be_bytes());
    bytes[10..12].copy_from_slice(&4791u16.to_be_bytes());
    bytes[12] = 17;
    bytes
}

impl Hash {
    fn of(self, header: &[u8; 13]) -> u32 {
        match self {
            Hash::Crc32 => crc32(0, header),
            Hash::Toeplitz => toeplitz(0, &header[..12]),
        }
    }
}
