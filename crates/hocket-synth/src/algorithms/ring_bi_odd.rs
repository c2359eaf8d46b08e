//! RingBiOdd: a ring each way on a mesh of odd sides, which has no cycle through all its NPUs.
//!
//! A corner stands apart. The others form a cycle; the corner's data enter and leave each of the two rings
//! through one of the corner's neighbours. N - 1 steps a pass, as many as a ring of N NPUs takes, each of a part of
//! D / (N - 1) bytes instead of D / N.
//!
//! # Source
//! Laskar et al.: Enhancing collective communication in MCM accelerators for deep learning training,
//! Algorithm 1 and section IV.

use super::follow::{Follow, only};
use super::ladder::Ladder;
use super::mesh::{Mesh, is_of_all};
use super::recipe::{About, Made, On, Recipe};
use super::{Job, Outline};
use crate::collective::CollectiveKind;
use crate::id::{NpuId, narrow};
use crate::plan::{Chunks, PlanError, Wait};
use crate::progress::Progress;

/// Half of the data each way round.
pub(super) struct RingBiOdd;

impl Recipe for RingBiOdd {
    fn about(&self) -> About {
        About::rule(
            "ring-bi-odd",
            &[CollectiveKind::AllReduce],
            "a ring each way on a mesh of odd sides, one corner in and out through its neighbours",
        )
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        let On {
            topology,
            collective,
        } = *on;
        let mesh = match Mesh::of(topology) {
            Ok(mesh) => mesh,
            Err(why) => return Some(why),
        };
        let Mesh { columns, rows } = mesh;
        if columns % 2 == 0 || rows % 2 == 0 {
            return Some(format!(
                "{columns} x {rows} has a cycle through all its NPUs; use bidirectional-ring"
            ));
        }
        if !is_of_all(collective, topology) {
            return Some(
                "all NPUs of the mesh take part in it; name none, or use greedy".to_owned(),
            );
        }
        None
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::short(2 * (on.npus() - 1))
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        let parts = u128::from(outline.npus) - 1;
        chunks.saturating_mul(4 * parts * parts)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let mesh = Mesh::of(job.topology).expect("refused otherwise");
        let forward = cycle(&mesh);
        let parts = forward.len();
        let backward: Vec<NpuId> = forward.iter().rev().copied().collect();
        let corner = mesh.at(mesh.columns - 1, mesh.rows - 1);
        let below = mesh.at(mesh.columns - 2, mesh.rows - 1);
        let beside = mesh.at(mesh.columns - 1, mesh.rows - 2);
        let chunks = Chunks::split(&job.collective.demands(), 2 * parts * job.chunks)?;
        let mut plan = Follow::new(job, chunks).in_order();
        let rings = [
            Ring::new(forward, corner, below),
            Ring::new(backward, corner, beside),
        ];
        for slice in 0..job.chunks {
            let lanes = || (0..).zip(&rings);
            let first = |lane: usize| narrow((2 * slice + lane) * parts);
            for step in 0..=parts - 1 {
                lanes().for_each(|(lane, ring)| ring.sum(&mut plan, first(lane), step));
            }
            for step in 0..=parts - 1 {
                lanes().for_each(|(lane, ring)| ring.copy(&mut plan, first(lane), step));
            }
        }
        Ok(plan.finish().into())
    }
}

/// Returns a cycle through all NPUs of a mesh of odd sides but the corner furthest from (0, 0): along the first row, to
/// and fro through the rows below but for two, up and down through the last two, back up the first column.
fn cycle(mesh: &Mesh) -> Vec<NpuId> {
    let (columns, rows) = (mesh.columns, mesh.rows);
    let mut cycle: Vec<NpuId> = (0..columns).map(|x| mesh.at(x, 0)).collect();
    for y in 1..rows - 2 {
        let row = (1..columns).map(|x| mesh.at(x, y));
        match y % 2 {
            1 => cycle.extend(row.rev()),
            _ => cycle.extend(row),
        }
    }
    cycle.push(mesh.at(columns - 1, rows - 2));
    for x in (1..columns - 1).rev() {
        let (upper, lower) = (mesh.at(x, rows - 2), mesh.at(x, rows - 1));
        match x % 2 {
            1 => cycle.extend([upper, lower]),
            _ => cycle.extend([lower, upper]),
        }
    }
    cycle.extend((1..rows).rev().map(|y| mesh.at(0, y)));
    cycle
}

/// One way round.
struct Ring {
    npus: Vec<NpuId>,
    corner: NpuId,
    /// Position of the corner's neighbour through which its data come and go.
    door: usize,
}

impl Ring {
    fn new(npus: Vec<NpuId>, corner: NpuId, door: NpuId) -> Self {
        let door = npus.iter().position(|&npu| npu == door);
        Self {
            door: door.expect("the corner's neighbours are on the cycle"),
            npus,
            corner,
        }
    }

    /// Part that a position sends on in a step of the ring; what is left at last is its own.
    fn part(&self, position: usize, step: usize) -> u32 {
        let parts = self.npus.len();
        narrow((position + parts - 1 - step) % parts)
    }

    /// Step 0: the corner sends the first part to the door. Then the ring's steps, and each time the part
    /// that the door sends next.
    fn sum(&self, plan: &mut Follow, first: u32, step: usize) {
        if let Some(step) = step.checked_sub(1) {
            for (position, &src) in self.npus.iter().enumerate() {
                let dst = self.npus[(position + 1) % self.npus.len()];
                plan.reduce(only(first + self.part(position, step)), src, dst);
            }
        }
        let next = first + self.part(self.door, step);
        plan.reduce(only(next), self.corner, self.npus[self.door]);
    }

    /// The ring's steps; the corner gets from the door what the door had a step before. One step is left for
    /// the last.
    fn copy(&self, plan: &mut Follow, first: u32, step: usize) {
        let parts = self.npus.len();
        let own = |position: usize| narrow((position + parts - step) % parts);
        let to_corner = first + own(self.door);
        plan.copy(
            only(to_corner),
            self.npus[self.door],
            self.corner,
            Wait::NOTHING,
        );
        if step + 1 < parts {
            for (position, &src) in self.npus.iter().enumerate() {
                let dst = self.npus[(position + 1) % parts];
                plan.copy(only(first + own(position)), src, dst, Wait::NOTHING);
            }
        }
    }
}
