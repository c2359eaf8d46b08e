//! What the NPUs of one group send in a part of a lane, told once for all groups and all lanes alike.

use crate::collective::pattern::{Pass, Pattern, Shape};
use crate::multirail::{Lane, Rail};
use crate::topology::DimensionKind;

/// Rank `src` of a group sends ranges of the lane's chunks to rank `dst`. First chunks count from the
/// first that the group works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Send {
    pub src: u32,
    pub dst: u32,
    /// First chunk and count.
    pub ranges: Vec<(u32, u32)>,
}

/// One pass along one rail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StageTemplate {
    pub pass: Pass,
    pub rail: usize,
    pub shape: Shape,
    pub steps: Vec<Vec<Send>>,
}

/// The stages of a part of a lane, and where its chunks lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    pub stages: Vec<StageTemplate>,
    /// Chunks, of one for each NPU, between those of NPUs that are neighbours along each rail.
    pub width: Vec<u32>,
}

impl Template {
    /// Returns the stages of part `part` of a lane.
    pub(crate) fn new(rails: &[Rail], lane: &Lane, part: usize) -> Self {
        Self::laid_out(rails, lane, part, &lane.layout(rails).0)
    }

    /// Returns the number of transfers in all groups.
    pub(crate) fn transfers(&self, rails: &[Rail]) -> u128 {
        let npus: u128 = rails.iter().map(|rail| u128::from(rail.size)).product();
        let of_stage = |stage: &StageTemplate| {
            let sends = stage.steps.iter().flatten();
            let ranges: usize = sends.map(|send| send.ranges.len()).sum();
            npus / u128::from(rails[stage.rail].size) * ranges as u128
        };
        self.stages.iter().map(of_stage).sum()
    }

    fn laid_out(rails: &[Rail], lane: &Lane, part: usize, layout: &[u8]) -> Self {
        let mut width = vec![0; rails.len()];
        let mut all = 1;
        for &rail in layout.iter().rev() {
            width[usize::from(rail)] = all;
            all *= rails[usize::from(rail)].size;
        }
        let ranges = |free: &[u8], rail: u8, blocks: (u32, u32)| {
            let mut ranges = vec![(0, 1)];
            for &digit in layout.iter().rev() {
                let (first, count) = match digit {
                    _ if digit == rail => blocks,
                    _ if free.contains(&digit) => (0, rails[usize::from(digit)].size),
                    _ => (0, 1),
                };
                ranges = repeated(&ranges, width[usize::from(digit)], first, count);
            }
            ranges
        };
        let sums = lane.reduce_scatter.iter().enumerate().map(|(i, &rail)| {
            let free = &lane.reduce_scatter[i + 1..];
            stage(
                &rails[usize::from(rail)],
                part,
                Pass::ReduceScatter,
                rail,
                |blocks| ranges(free, rail, blocks),
            )
        });
        let copies = lane.all_gather.iter().enumerate().map(|(i, &rail)| {
            let free = &lane.all_gather[..i];
            stage(
                &rails[usize::from(rail)],
                part,
                Pass::AllGather,
                rail,
                |blocks| ranges(free, rail, blocks),
            )
        });
        Self {
            stages: sums.chain(copies).collect(),
            width,
        }
    }
}

/// Returns the ranges of one digit's values `first`, ... `first + count - 1`, each `width` chunks on.
fn repeated(ranges: &[(u32, u32)], width: u32, first: u32, count: u32) -> Vec<(u32, u32)> {
    match ranges {
        [(0, whole)] if *whole == width => vec![(first * width, count * width)],
        _ => (first..first + count)
            .flat_map(|value| {
                ranges
                    .iter()
                    .map(move |&(start, len)| (value * width + start, len))
            })
            .collect(),
    }
}

fn stage(
    rail: &Rail,
    part: usize,
    pass: Pass,
    place: u8,
    ranges: impl Fn((u32, u32)) -> Vec<(u32, u32)>,
) -> StageTemplate {
    let pattern = pattern(rail, part);
    let n = rail.size as usize;
    let shape = pattern.shape();
    let steps = (0..shape.steps(n)).map(|step| -> Vec<Send> {
        let moves = pattern.step(pass, n, step).into_iter();
        moves
            .map(|a_move| Send {
                src: a_move.src,
                dst: a_move.dst,
                ranges: ranges((a_move.first, a_move.count)),
            })
            .collect()
    });
    // A direct exchange is one step here: all links work at once.
    let steps = match shape {
        Shape::Direct => vec![steps.flatten().collect()],
        _ => steps.collect(),
    };
    StageTemplate {
        pass,
        rail: usize::from(place),
        shape,
        steps,
    }
}

/// Returns the parts of a lane go round a ring one each way. A line is a ring out over the even NPUs and back over the
/// odd ones: two hops at most, and every link is used both ways.
fn pattern(rail: &Rail, part: usize) -> Pattern {
    let n = rail.size;
    match rail.kind {
        DimensionKind::Ring => {
            let ring = Pattern::ring((0..n).collect());
            if part == 0 { ring } else { ring.reversed() }
        }
        DimensionKind::Line => {
            let back = (0..n).rev().filter(|i| i % 2 == 1);
            Pattern::ring((0..n).step_by(2).chain(back).collect())
        }
        DimensionKind::FullyConnected => Pattern::direct(),
        DimensionKind::Switch => Pattern::halving_doubling(),
    }
}
