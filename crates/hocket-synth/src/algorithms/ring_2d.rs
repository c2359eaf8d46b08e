//! Ring-2D: half of the data round rings in the rows, then in the columns; the other half the other way about.
//!
//! On a mesh the last of a row is far from the first: the ring closes over all of the row's links. With several
//! chunks some go round while others cross, which hides that; published is one.
//!
//! # Source
//! Ying et al.: Image classification at supercomputer scale, 2018; on a mesh as in Laskar et al.: Enhancing
//! collective communication in MCM accelerators for deep learning training, section II-B.

use super::follow::Follow;
use super::ladder::Ladder;
use super::mesh::is_of_all;
use super::recipe::{About, Made, On, Recipe};
use super::{Job, Outline};
use crate::collective::CollectiveKind;
use crate::id::{NpuId, narrow};
use crate::plan::{Chunks, PlanError, Wait};
use crate::progress::Progress;
use crate::topology::{Dimension, DimensionKind};

/// Both halves abreast.
pub(super) struct Ring2d;

impl Recipe for Ring2d {
    fn about(&self) -> About {
        About::rule(
            "ring-2d",
            &[CollectiveKind::AllReduce],
            "rings in the rows, then the columns of a mesh or torus, and the other way about",
        )
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        let On {
            topology,
            collective,
        } = *on;
        let name = topology.name();
        let Some((columns, rows)) = sides(topology.dimensions()) else {
            return Some(format!(
                "it needs a mesh or torus of two dimensions, and {name:?} is not one; use ring or greedy"
            ));
        };
        if columns * rows != topology.npu_count() || !is_of_all(collective, topology) {
            return Some(format!(
                "all NPUs of a whole {name:?} take part in it; use ring or greedy"
            ));
        }
        let linked = |a: usize, b: usize| {
            let (a, b) = (NpuId::from(a).device(), NpuId::from(b).device());
            !topology.links_from_to(a, b).is_empty() && !topology.links_from_to(b, a).is_empty()
        };
        let dimensions = topology.dimensions().iter().filter(|side| side.size > 1);
        let mut stride = 1;
        for side in dimensions {
            let size = side.size as usize;
            for npu in 0..columns * rows {
                let position = npu / stride % size;
                let next = npu - position * stride + (position + 1) % size * stride;
                let ends = position + 1 == size && side.kind == DimensionKind::Line;
                if !ends && !linked(npu, next) {
                    return Some(format!(
                        "it needs all links of {name:?}, and npu{npu} and npu{next} have none; use greedy"
                    ));
                }
            }
            stride *= size;
        }
        None
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::short(2 * on.blocks())
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        let (columns, rows) = sides(outline.dimensions).unwrap_or((1, 1));
        let (columns, rows) = (columns as u128, rows as u128);
        chunks.saturating_mul(4 * columns * rows * (columns + rows - 2))
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let (columns, rows) = sides(job.topology.dimensions()).expect("refused otherwise");
        let halves = [true, false].map(|rows_first| Half {
            columns,
            rows,
            rows_first,
        });
        let parts = columns * rows;
        let chunks = Chunks::split(&job.collective.demands(), 2 * parts * job.chunks)?;
        let mut plan = Follow::new(job, chunks);
        for slice in 0..job.chunks {
            for (pass, dimension) in [
                (Pass::Sum, 0),
                (Pass::Sum, 1),
                (Pass::Copy, 1),
                (Pass::Copy, 0),
            ] {
                for step in 0..columns.max(rows) - 1 {
                    for (half, first) in halves.iter().zip([2 * slice, 2 * slice + 1]) {
                        half.step(&mut plan, narrow(first * parts), (pass, dimension), step);
                    }
                }
            }
        }
        Ok(plan.finish().into())
    }
}

/// Columns and rows.
fn sides(dimensions: &[Dimension]) -> Option<(usize, usize)> {
    let sides: Vec<_> = dimensions.iter().filter(|side| side.size > 1).collect();
    let round = |kind| matches!(kind, DimensionKind::Line | DimensionKind::Ring);
    match sides[..] {
        [x, y] if round(x.kind) && round(y.kind) => Some((x.size as usize, y.size as usize)),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Sum,
    Copy,
}

/// Half of the data. What a column (a row, where columns go first) sums lies together.
struct Half {
    columns: usize,
    rows: usize,
    rows_first: bool,
}

impl Half {
    /// One step of one pass along its first (0) or second (1) dimension, in all rings at once.
    fn step(&self, plan: &mut Follow, first: u32, (pass, dimension): (Pass, usize), step: usize) {
        let (outer, inner) = match self.rows_first {
            true => (self.columns, self.rows),
            false => (self.rows, self.columns),
        };
        let (length, others) = if dimension == 0 {
            (outer, inner)
        } else {
            (inner, outer)
        };
        if step + 1 >= length {
            return;
        }
        for other in 0..others {
            for position in 0..length {
                let next = (position + 1) % length;
                let block = match pass {
                    Pass::Sum => (position + 2 * length - 1 - step) % length,
                    Pass::Copy => (position + length - step) % length,
                };
                let chunks = match dimension {
                    0 => block * inner..(block + 1) * inner,
                    _ => other * inner + block..other * inner + block + 1,
                };
                let chunks = first + narrow(chunks.start)..first + narrow(chunks.end);
                let (src, dst) = (
                    self.npu(dimension, position, other),
                    self.npu(dimension, next, other),
                );
                match pass {
                    Pass::Sum => plan.reduce(chunks, src, dst),
                    Pass::Copy => plan.copy(chunks, src, dst, Wait::NOTHING),
                }
            }
        }
    }

    /// Returns the NPU at a position of a ring along a dimension of this half.
    fn npu(&self, dimension: usize, position: usize, other: usize) -> NpuId {
        let (x, y) = match self.rows_first == (dimension == 0) {
            true => (position, other),
            false => (other, position),
        };
        NpuId::from(x + self.columns * y)
    }
}
