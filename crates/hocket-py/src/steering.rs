//! Hashes of switches: ways, ports that lead along paths, and hashes learned from what was observed.

use hocket_core::routing::steering::{
    self as core, Algorithm, Fields, FlowLabel, Header, Observed, Policy, SourcePort, Stage,
    Stages, SwitchHash,
};
use hocket_core::routing::{hashed as choices_of, switch_seed as seed_of};
use hocket_core::units::Seed;
use pyo3::prelude::*;

use crate::choice::choose;
use crate::error::{CoreError, Parts};
use crate::hints::{Address, Listener};
use crate::progress;
use crate::routing::{Flows, PyFabric};

/// Source, destination, protocol, source port, destination port, flow label.
type HeaderTuple = (Address, Address, u8, u16, u16, u32);
/// Algorithm, fields, seed, offset.
type HashTuple = (String, u8, u32, u32);
/// Hash, ways, the way that is wanted.
type StageTuple = (HashTuple, u32, u32);

/// An algorithm by the fields that it hashes.
type OfFields = fn(Fields) -> Algorithm;
/// Which of those tried, seed, and the next hop of each way.
type IdentifiedTuple = (usize, u32, Vec<Option<u32>>);

const ALGORITHMS: [(&str, OfFields); 11] = [
    ("linux", |fields| Algorithm::Linux(Policy::Custom(fields))),
    ("linux-layer3", |_| Algorithm::Linux(Policy::Layer3)),
    ("linux-layer4", |_| Algorithm::Linux(Policy::Layer4)),
    ("crc16", Algorithm::Crc16),
    ("crc32", Algorithm::Crc32),
    ("crc32-low", Algorithm::Crc32Low),
    ("crc32-high", Algorithm::Crc32High),
    ("crc-ccitt", Algorithm::CrcCcitt),
    ("xor", Algorithm::Xor),
    ("crc-xor", Algorithm::CrcXor),
    ("toeplitz", Algorithm::Toeplitz),
];

fn header_of(given: HeaderTuple) -> Result<Header, CoreError> {
    let (Address(src), Address(dst), protocol, sport, dport, label) = given;
    if src.is_ipv4() != dst.is_ipv4() {
        let why = format!("{src} and {dst} are addresses of two families");
        return Err(Parts::new(why).remedy("give two of one").into());
    }
    Ok(Header {
        src,
        dst,
        protocol,
        sport,
        dport,
        label,
    })
}

fn headers_of(headers: Vec<HeaderTuple>) -> Result<Vec<Header>, CoreError> {
    headers.into_iter().map(header_of).collect()
}

fn algorithm_of(name: &str, fields: u8) -> Result<Algorithm, CoreError> {
    let make = choose("algorithm", name, &ALGORITHMS)?;
    Ok(make(Fields(fields)))
}

fn hash_of((algorithm, fields, seed, offset): HashTuple) -> Result<SwitchHash, CoreError> {
    Ok(SwitchHash {
        algorithm: algorithm_of(&algorithm, fields)?,
        seed,
        offset,
    })
}

fn stages_of(stages: Vec<StageTuple>) -> Result<Vec<Stage>, CoreError> {
    let stage = |(hash, ways, wanted)| {
        Ok(Stage {
            hash: hash_of(hash)?,
            ways,
            wanted,
        })
    };
    stages.into_iter().map(stage).collect()
}

/// Return the way of each header, of so many.
#[pyfunction]
pub(crate) fn ways(
    hash: HashTuple,
    headers: Vec<HeaderTuple>,
    ways: u32,
) -> Result<Vec<u32>, CoreError> {
    let hash = hash_of(hash)?;
    if ways == 0 {
        return Err(Parts::new("0 leaves no way").field("ways").into());
    }
    let headers = headers_of(headers)?;
    Ok(headers
        .iter()
        .map(|header| hash.way(header, ways))
        .collect())
}

/// Return the first source port of a range, from one on and around, that leads through all stages.
#[pyfunction]
pub(crate) fn find_port(
    header: HeaderTuple,
    forth: Vec<StageTuple>,
    back: Vec<StageTuple>,
    ports: (u16, u16),
    first: u16,
    mut taken: Vec<u16>,
) -> Result<u16, CoreError> {
    let (forth, back) = (stages_of(forth)?, stages_of(back)?);
    taken.sort_unstable();
    let among = SourcePort {
        ports: ports.0..=ports.1,
        first,
        taken,
    };
    let stages = Stages {
        forth: &forth,
        back: &back,
    };
    Ok(among.find(&header_of(header)?, stages)?)
}

/// Return the first flow label, from one on and around, that leads through all stages.
#[pyfunction]
pub(crate) fn find_label(
    header: HeaderTuple,
    forth: Vec<StageTuple>,
    back: Vec<StageTuple>,
    first: u32,
) -> Result<u32, CoreError> {
    let (forth, back) = (stages_of(forth)?, stages_of(back)?);
    let stages = Stages {
        forth: &forth,
        back: &back,
    };
    Ok(FlowLabel { first }.find(&header_of(header)?, stages)?)
}

/// Return the hashes that explain which hop each header took: algorithm, seed, hop of each way.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // keywords in Python
pub(crate) fn identify(
    py: Python<'_>,
    headers: Vec<HeaderTuple>,
    hops: Vec<u32>,
    ways: u32,
    algorithms: Vec<(String, u8)>,
    seeds: (u64, u64),
    most: usize,
    progress: Option<Listener>,
) -> Result<Vec<IdentifiedTuple>, CoreError> {
    let headers = headers_of(headers)?;
    let observe = |(header, hop)| Observed { header, hop };
    let observed: Vec<Observed> = headers.into_iter().zip(hops).map(observe).collect();
    let tried: Result<Vec<Algorithm>, CoreError> = algorithms
        .iter()
        .map(|(name, fields)| algorithm_of(name, *fields))
        .collect();
    let tried = tried?;
    let seeds = seeds.0..seeds.1.min(1 << 32);
    let found = progress::watched(py, progress, |watch| {
        core::identify(&observed, ways, &tried, seeds, most, watch)
    })?;
    let row = |found: core::Identified| {
        let is_it = |algorithm: &Algorithm| *algorithm == found.hash.algorithm;
        let at = tried.iter().position(is_it).expect("it was tried");
        (at, found.hash.seed, found.hops)
    };
    Ok(found.into_iter().map(row).collect())
}

/// Return the choices that ToRs with these hashes, by number, make of flows with these headers.
#[pyfunction]
pub(crate) fn hashed(
    fabric: &PyFabric,
    flows: &Flows,
    headers: Vec<HeaderTuple>,
    hashes: Vec<HashTuple>,
) -> Result<Vec<u32>, CoreError> {
    let hashes: Result<Vec<SwitchHash>, CoreError> = hashes.into_iter().map(hash_of).collect();
    let headers = headers_of(headers)?;
    Ok(choices_of(fabric.core(), flows.core(), &headers, &hashes?)?)
}

/// Return the UDP source port of a queue pair of RoCEv2.
#[pyfunction]
pub(crate) fn queue_pair_port(queue_pairs: [u32; 2], label: u32) -> u16 {
    core::queue_pair_port(queue_pairs, label)
}

/// Return the seed of a switch of ecmp, drawn from that of the scheme.
#[pyfunction]
pub(crate) fn switch_seed(seed: u64, level: u32, number: u32) -> u32 {
    seed_of(Seed(seed), level, number)
}
