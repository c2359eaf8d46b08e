//! A value of a header's field that leads through every wanted switch, or a proof that there is none.

use std::ops::RangeInclusive;

use super::SwitchHash;
use super::header::Header;
use super::stage::{Algorithm, Part, Ready, Stage};
use crate::explain::Explain;
use crate::units::gcd;

/// What a path asks of hashing switches: the stages of packets that go, and of those that come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages<'a> {
    /// Switches that packets to the receiver meet.
    pub forth: &'a [Stage],
    /// Switches that packets from the receiver meet, where their way matters.
    pub back: &'a [Stage],
}

/// Why no value of a field leads where it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum Unreachable {
    /// Two switches hash alike, and no hash leads the wanted way at both (polarisation): whatever the header
    /// says, the path does not exist.
    #[explain(
        why("stages {} and {} hash alike, so that no packet takes both ways", stages[0], stages[1]),
        remedy("give their switches different seeds")
    )]
    Polarised {
        /// The two stages, counted from 0, those forth before those back.
        stages: [usize; 2],
    },
    /// Every value was tried.
    #[explain(
        why("none of {tried} values leads through all wanted switches"),
        remedy("take another path or range")
    )]
    Exhausted {
        /// How many values are allowed.
        tried: u32,
    },
    /// A way beyond those that the switch has.
    #[explain(
        why("stage {stage} has no way {wanted}"),
        remedy("it has {ways}, counted from 0")
    )]
    NoSuchWay {
        /// The stage, counted from 0, those forth before those back.
        stage: usize,
        /// The way that is wanted.
        wanted: u32,
        /// How many it has.
        ways: u32,
    },
    /// The path is not one that this way to express paths has.
    #[explain(why("{why}"))]
    NotExpressible {
        /// Why.
        why: &'static str,
    },
}

/// Finds a value of a part that is not taken, trying `first` first and the others in order, in a circle.
pub(super) fn solve(
    header: &Header,
    part: Part,
    range: RangeInclusive<u32>,
    first: u32,
    stages: Stages<'_>,
    mut is_taken: impl FnMut(u32) -> bool,
) -> Result<u32, Unreachable> {
    check(stages)?;
    let forth = stages
        .forth
        .iter()
        .map(|stage| Ready::new(header, part, stage, false));
    let back = stages
        .back
        .iter()
        .map(|stage| Ready::new(header, part, stage, true));
    let ready: Vec<Ready<'_>> = forth.chain(back).collect();
    let (low, high) = (*range.start(), *range.end());
    let first = if range.contains(&first) { first } else { low };
    let tried = (u64::from(high) + 1).saturating_sub(low.into()) as u32;
    let mut values = (first..=high).chain(low..first);
    let found =
        values.find(|&value| ready.iter().all(|ready| ready.is_met(value)) && !is_taken(value));
    found.ok_or(Unreachable::Exhausted { tried })
}

/// Whether some hash might lead the wanted way at each of the stages that hash alike.
fn check(stages: Stages<'_>) -> Result<(), Unreachable> {
    let forth = stages.forth.iter().map(|stage| (stage, false));
    let back = stages.back.iter().map(|stage| (stage, true));
    let all: Vec<(&Stage, bool)> = forth.chain(back).collect();
    for (i, (stage, _)) in all.iter().enumerate() {
        let &Stage { ways, wanted, .. } = *stage;
        if wanted >= ways {
            let stage = i;
            return Err(Unreachable::NoSuchWay {
                stage,
                wanted,
                ways,
            });
        }
    }
    for (j, (stage, is_back)) in all.iter().enumerate() {
        for (i, (before, was_back)) in all[..j].iter().enumerate() {
            let is_alike = before.hash == stage.hash;
            let same_header = is_back == was_back || stage.hash.is_symmetric();
            if is_alike && same_header && !meet(before, stage) {
                return Err(Unreachable::Polarised { stages: [i, j] });
            }
        }
    }
    Ok(())
}

/// Returns whether some hash leads the wanted way at two stages with the same hash: intervals that meet, or remainders
/// that agree.
fn meet(one: &Stage, other: &Stage) -> bool {
    match one.hash.algorithm {
        Algorithm::Linux(_) => {
            let [a, b] = [one, other].map(|stage| SwitchHash::interval(stage.wanted, stage.ways));
            a[0].max(b[0]) <= a[1].min(b[1])
        }
        _ => {
            let common = gcd(one.ways.into(), other.ways.into()) as u32;
            one.wanted % common == other.wanted % common
        }
    }
}
