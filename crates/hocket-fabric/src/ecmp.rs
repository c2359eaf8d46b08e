//! Equal-cost multi-path: the way up is a hash of the packet's header.

use super::steering::{Algorithm, Fields, Header, Policy, SwitchHash};
use super::{Fabric, Flow, RoutingError, hops};
use crate::id::narrow;
use crate::units::Seed;

/// What a switch hashes headers with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hash {
    /// CRC-32 of IEEE 802.3 over addresses, ports and protocol.
    #[default]
    Crc32,
    /// The Toeplitz hash of receive-side scaling over addresses and ports, with its published key.
    Toeplitz,
    /// The hash of Linux over addresses, ports and protocol (`fib_multipath_hash_policy` 3), in each
    /// switch under a seed of its own, see [`switch_seed`].
    Linux,
}

/// How ECMP spreads flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ecmp {
    /// The hash, the same in every switch.
    pub hash: Hash,
    /// Ways over which the same hash has already spread the flows before they come to their ToR,
    /// such as the ToRs that a host with several uplinks is joined to; 1: none. More than 1
    /// polarises: a ToR sees only flows whose hash leads one of these ways, and leaves spines unused.
    pub upstream: u32,
    /// Whether switches above the ToRs mix a number of their level into the hash. Without it, the
    /// default, they see only flows whose hash has one remainder, as with `upstream`. Switches of
    /// Linux need none, since their seeds differ.
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

/// Returns the seed of a switch under [`Hash::Linux`], drawn from that of the scheme: never 0, which Linux takes for a
/// random one.
///
/// `level` counts from 0 for ToRs. `number` is a ToR's number; on level 1 that of its pod times the
/// planes, and its plane.
pub fn switch_seed(seed: Seed, level: u32, number: u32) -> u32 {
    let mut drawn = Seed(seed.0 ^ u64::from(level) << 32 ^ u64::from(number));
    ((drawn.next_u64() >> 32) as u32).max(1)
}

/// At each switch on the way up the hash leads one of the links that lead to the flow's end.
///
/// Flows are RoCEv2: UDP to port 4791 from a port drawn from 49152 to 65535, between hosts 10.t.t.1
/// of ToR t. With `upstream` above 1 the port is drawn until the earlier stage would have chosen
/// this ToR.
pub(super) fn ecmp(fabric: &Fabric, flows: &[Flow], options: Ecmp, seed: Seed) -> Vec<u32> {
    let upstream = options.upstream.max(1);
    let mut ports = seed;
    let switches = Switches {
        hash: |level, number| options.hash.of(seed, level, number),
        salted: options.salted && options.hash != Hash::Linux,
    };
    let mut ways = Ways::default();
    let choose = |flow: &Flow| {
        let mut header = header(flow);
        let mut draw = || u16::try_from(49_152 + ports.below(16_384)).expect("a port");
        header.sport = draw();
        if upstream > 1 {
            let stage = (switches.hash)(0, flow.src);
            let arrives = |header: &Header| stage.way(header, upstream) == flow.src % upstream;
            for _ in 1..64 * u64::from(upstream) {
                if arrives(&header) {
                    break;
                }
                header.sport = draw();
            }
        }
        switches.choice(fabric, flow, &header, &mut ways)
    };
    flows.iter().map(choose).collect()
}

/// Returns the choices that switches make of flows whose headers are known, on two levels.
///
/// `hashes` are those of the ToRs by number; a ToR's next hops are its spines, lowest first.
///
/// # Errors
/// [`RoutingError`] for flows that [`super::assign`] refuses, for a third level, and where headers or
/// hashes are missing.
///
/// # Complexity
/// O(flows) on whole Clos fabrics, else O(flows S) for S spines.
pub fn hashed(
    fabric: &Fabric,
    flows: &[Flow],
    headers: &[Header],
    hashes: &[SwitchHash],
) -> Result<Vec<u32>, RoutingError> {
    fabric.check(flows)?;
    let wrong = |why: String| Err(RoutingError::BadChoices { why });
    if fabric.levels() > 2 {
        return wrong(
            "headers lead through two levels of switches, and the fabric has three".into(),
        );
    }
    if headers.len() != flows.len() {
        let (headers, flows) = (headers.len(), flows.len());
        return wrong(format!("there are {headers} headers for {flows} flows"));
    }
    if let Some(tor) = (flows.iter().map(|flow| flow.src)).find(|&tor| tor as usize >= hashes.len())
    {
        let hashes = hashes.len();
        return wrong(format!(
            "there are hashes of {hashes} ToRs, and none of ToR {tor}"
        ));
    }
    let switches = Switches {
        hash: |_, number: u32| hashes[number as usize],
        salted: false,
    };
    let mut ways = Ways::default();
    let choose = |(flow, header)| switches.choice(fabric, flow, header, &mut ways);
    Ok(flows.iter().zip(headers).map(choose).collect())
}

/// The switches on the way up.
struct Switches<F> {
    /// That of a switch, by level and number as for [`switch_seed`].
    hash: F,
    salted: bool,
}

/// Lists that are used again for each flow.
#[derive(Default)]
struct Ways {
    choices: Vec<u32>,
    slots: Vec<usize>,
}

impl<F: Fn(u32, u32) -> SwitchHash> Switches<F> {
    fn choice(&self, fabric: &Fabric, flow: &Flow, header: &Header, ways: &mut Ways) -> u32 {
        if fabric.is_complete() && fabric.levels() == 2 {
            let tops = fabric.tops();
            return tops[(self.hash)(0, flow.src).way(header, narrow(tops.len())) as usize];
        }
        let columns = fabric.column_count();
        let mut plane = 0;
        let way = |level: usize, slots: &[usize]| {
            let count = narrow(slots.len());
            let number = match level {
                0 => flow.src,
                _ => fabric.pod_of(flow.src).unwrap_or(0) * narrow(columns) + plane,
            };
            let hash = (self.hash)(narrow(level), number);
            let way = match self.salted && level > 0 {
                true => salted(hash.hash(header), level) % count,
                false => hash.way(header, count),
            } as usize;
            plane = narrow(slots[way] % columns);
            way
        };
        hops::climb(fabric, flow, &mut ways.choices, &mut ways.slots, way)
    }
}

/// Returns a hash with a number mixed in. A number hashed with the header would not do: both hashes are linear, so that
/// it would flip the same bits of every flow.
fn salted(hash: u32, level: usize) -> u32 {
    (Seed(u64::from(hash) | (level as u64) << 32).next_u64() >> 32) as u32
}

/// RoCEv2 between the first hosts of two ToRs, from port 0.
fn header(flow: &Flow) -> Header {
    let address = |tor: u32| {
        let [_, _, high, low] = tor.to_be_bytes();
        [10, high, low, 1].into()
    };
    Header {
        src: address(flow.src),
        dst: address(flow.dst),
        protocol: 17,
        sport: 0,
        dport: 4791,
        label: 0,
    }
}

impl Hash {
    /// Returns the hash of a switch, by level and number as for [`switch_seed`].
    fn of(self, seed: Seed, level: u32, number: u32) -> SwitchHash {
        let (algorithm, seed) = match self {
            Hash::Crc32 => (Algorithm::Crc32(Fields::FIVE), 0),
            Hash::Toeplitz => (Algorithm::Toeplitz(Fields::FOUR), 0),
            Hash::Linux => {
                let policy = Policy::Custom(Fields::FIVE);
                (Algorithm::Linux(policy), switch_seed(seed, level, number))
            }
        };
        SwitchHash {
            algorithm,
            seed,
            offset: 0,
        }
    }
}
