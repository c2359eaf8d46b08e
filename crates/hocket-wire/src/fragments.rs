//! What several messages have: addresses, paths, stages, reasons; and what may be wrong with them.

use std::net::{IpAddr, Ipv6Addr};

use hocket_base::explain::Explain;
use hocket_control::message::{
    FLOW_IDS, FlowName, JOB_IDS, MOST_STAGES, Path, PatternFlow, Reason, Refusal, Resync, Stage,
};
use hocket_steering::{Algorithm, Fields, Policy, SwitchHash};

use crate::v1;

/// Why a message is none.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum BadMessage {
    /// A message that does not say what it is, or is of a later version.
    #[explain(
        why("{what} is missing or of a kind that version 1 does not have"),
        remedy("update this end")
    )]
    UnknownKind {
        /// What it is about.
        what: &'static str,
    },
    /// Bytes that are no address.
    #[explain(why("an address of {bytes} bytes"), remedy("send 4 or 16"))]
    BadAddress {
        /// How many there are.
        bytes: usize,
    },
    /// Bytes that are no segment.
    #[explain(why("a segment of {bytes} bytes"), remedy("send 16"))]
    BadSegment {
        /// How many there are.
        bytes: usize,
    },
    /// Too much at once.
    #[explain(why("{count} {what}"), remedy("send {most} at most"))]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// A number that is not one of its kind.
    #[explain(why("{what} {value}"), remedy("send {least} to {most}"))]
    OutOfRange {
        /// What it numbers.
        what: &'static str,
        /// The number.
        value: u64,
        /// The lowest.
        least: u64,
        /// The highest.
        most: u64,
    },
}

pub(crate) fn at_most(count: usize, most: usize, what: &'static str) -> Result<(), BadMessage> {
    match count <= most {
        true => Ok(()),
        false => Err(BadMessage::TooMany { what, count, most }),
    }
}

pub(crate) fn within(
    value: u64,
    [least, most]: [u64; 2],
    what: &'static str,
) -> Result<u64, BadMessage> {
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(BadMessage::OutOfRange {
            what,
            value,
            least,
            most,
        }),
    }
}

pub(crate) fn needed<T>(value: Option<T>, what: &'static str) -> Result<T, BadMessage> {
    value.ok_or(BadMessage::UnknownKind { what })
}

pub(crate) fn job(number: u32) -> Result<u32, BadMessage> {
    within(number.into(), [1, u64::from(JOB_IDS) - 1], "job")?;
    Ok(number)
}

pub(crate) fn write_address(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

pub(crate) fn read_address(bytes: &[u8]) -> Result<IpAddr, BadMessage> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Ok(four.into());
    }
    let bad = BadMessage::BadAddress { bytes: bytes.len() };
    Ok(<[u8; 16]>::try_from(bytes).map_err(|_| bad)?.into())
}

pub(crate) fn write_ends([src, dst]: [IpAddr; 2]) -> v1::Pair {
    v1::Pair {
        src: write_address(src),
        dst: write_address(dst),
    }
}

pub(crate) fn read_ends(ends: &v1::Pair) -> Result<[IpAddr; 2], BadMessage> {
    Ok([read_address(&ends.src)?, read_address(&ends.dst)?])
}

pub(crate) fn write_pattern(flow: &PatternFlow) -> v1::PatternFlow {
    v1::PatternFlow {
        src: write_address(flow.src),
        dst: write_address(flow.dst),
        bytes: flow.bytes,
    }
}

pub(crate) fn read_pattern(flow: &v1::PatternFlow) -> Result<PatternFlow, BadMessage> {
    Ok(PatternFlow {
        src: read_address(&flow.src)?,
        dst: read_address(&flow.dst)?,
        bytes: flow.bytes,
    })
}

pub(crate) fn write_name(name: FlowName) -> v1::Name {
    match name {
        FlowName::Own(own) => v1::Name {
            own,
            job: 0,
            index: 0,
        },
        FlowName::Pattern { job, index } => v1::Name { own: 0, job, index },
    }
}

pub(crate) fn read_name(name: Option<v1::Name>) -> Result<FlowName, BadMessage> {
    match needed(name, "the name of a flow")? {
        v1::Name { own, job: 0, .. } => within(own, [0, FLOW_IDS - 1], "flow").map(FlowName::Own),
        v1::Name { job, index, .. } => Ok(FlowName::Pattern {
            job: self::job(job)?,
            index,
        }),
    }
}

pub(crate) fn write_path(path: &Path) -> v1::Path {
    v1::Path {
        choice: path.choice,
        links: path.links.clone(),
        forth: path.forth.iter().map(write_stage).collect(),
        back: path.back.iter().map(write_stage).collect(),
        segments: path
            .segments
            .iter()
            .map(|it| it.octets().to_vec())
            .collect(),
    }
}

pub(crate) fn read_path(path: Option<v1::Path>) -> Result<Path, BadMessage> {
    let path = needed(path, "a path")?;
    for stages in [path.links.len(), path.forth.len(), path.back.len()] {
        at_most(stages, MOST_STAGES, "stages of a path")?;
    }
    at_most(path.segments.len(), MOST_STAGES, "segments of a path")?;
    let read = |stages: &[v1::Stage]| stages.iter().map(read_stage).collect::<Result<_, _>>();
    Ok(Path {
        choice: path.choice,
        forth: read(&path.forth)?,
        back: read(&path.back)?,
        segments: path
            .segments
            .iter()
            .map(|it| read_segment(it))
            .collect::<Result<_, _>>()?,
        links: path.links,
    })
}

fn read_segment(bytes: &[u8]) -> Result<Ipv6Addr, BadMessage> {
    let bad = BadMessage::BadSegment { bytes: bytes.len() };
    Ok(<[u8; 16]>::try_from(bytes).map_err(|_| bad)?.into())
}

fn write_stage(stage: &Stage) -> v1::Stage {
    use v1::Algorithm as Wire;
    let none = Fields(0);
    let (algorithm, fields) = match stage.hash.algorithm {
        Algorithm::Linux(Policy::Layer3) => (Wire::LinuxLayer3, none),
        Algorithm::Linux(Policy::Layer4) => (Wire::LinuxLayer4, none),
        Algorithm::Linux(Policy::Custom(fields)) => (Wire::LinuxCustom, fields),
        Algorithm::Crc16(fields) => (Wire::Crc16, fields),
        Algorithm::Crc32(fields) => (Wire::Crc32, fields),
        Algorithm::Crc32Low(fields) => (Wire::Crc32Low, fields),
        Algorithm::Crc32High(fields) => (Wire::Crc32High, fields),
        Algorithm::CrcCcitt(fields) => (Wire::CrcCcitt, fields),
        Algorithm::Xor(fields) => (Wire::Xor, fields),
        Algorithm::CrcXor(fields) => (Wire::CrcXor, fields),
        Algorithm::Toeplitz(fields) => (Wire::Toeplitz, fields),
    };
    v1::Stage {
        algorithm: algorithm.into(),
        fields: fields.0.into(),
        seed: stage.hash.seed,
        offset: stage.hash.offset,
        ways: stage.ways,
        wanted: stage.wanted,
    }
}

fn read_stage(stage: &v1::Stage) -> Result<Stage, BadMessage> {
    use v1::Algorithm as Wire;
    let fields = Fields(
        u8::try_from(stage.fields).map_err(|_| BadMessage::OutOfRange {
            what: "hash fields",
            value: stage.fields.into(),
            least: 0,
            most: 255,
        })?,
    );
    let what = "the hash of a switch";
    let algorithm = match Wire::try_from(stage.algorithm) {
        Ok(Wire::LinuxLayer3) => Algorithm::Linux(Policy::Layer3),
        Ok(Wire::LinuxLayer4) => Algorithm::Linux(Policy::Layer4),
        Ok(Wire::LinuxCustom) => Algorithm::Linux(Policy::Custom(fields)),
        Ok(Wire::Crc16) => Algorithm::Crc16(fields),
        Ok(Wire::Crc32) => Algorithm::Crc32(fields),
        Ok(Wire::Crc32Low) => Algorithm::Crc32Low(fields),
        Ok(Wire::Crc32High) => Algorithm::Crc32High(fields),
        Ok(Wire::CrcCcitt) => Algorithm::CrcCcitt(fields),
        Ok(Wire::Xor) => Algorithm::Xor(fields),
        Ok(Wire::CrcXor) => Algorithm::CrcXor(fields),
        Ok(Wire::Toeplitz) => Algorithm::Toeplitz(fields),
        Ok(Wire::Unspecified) | Err(_) => return Err(BadMessage::UnknownKind { what }),
    };
    let hash = SwitchHash {
        algorithm,
        seed: stage.seed,
        offset: stage.offset,
    };
    let (ways, wanted) = (stage.ways, stage.wanted);
    within(ways.into(), [1, 1 << 20], "ways of a switch")?;
    within(wanted.into(), [0, u64::from(ways) - 1], "way of a switch")?;
    Ok(Stage { hash, ways, wanted })
}

/// Enumerations are numbered from 1 on the wire, in the order of their lists; 0 is none.
fn position<T: Copy + PartialEq>(all: &[T], one: T) -> i32 {
    let mut numbered = all.iter().zip(1..);
    let found = numbered.find(|(each, _)| **each == one);
    found.map_or(0, |(_, number)| number)
}

fn at<T: Copy>(all: &[T], number: i32, what: &'static str) -> Result<T, BadMessage> {
    let at = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
    needed(at.and_then(|at| all.get(at)).copied(), what)
}

pub(crate) fn write_reason(reason: Reason) -> i32 {
    position(Reason::ALL, reason)
}

pub(crate) fn read_reason(number: i32) -> Result<Reason, BadMessage> {
    at(Reason::ALL, number, "a reason")
}

pub(crate) fn write_refusal(why: Refusal) -> i32 {
    position(Refusal::ALL, why)
}

pub(crate) fn read_refusal(number: i32) -> Result<Refusal, BadMessage> {
    at(Refusal::ALL, number, "a reason to refuse")
}

pub(crate) fn write_again(why: Resync) -> i32 {
    position(Resync::ALL, why)
}

pub(crate) fn read_again(number: i32) -> Result<Resync, BadMessage> {
    at(Resync::ALL, number, "a reason to say all again")
}
