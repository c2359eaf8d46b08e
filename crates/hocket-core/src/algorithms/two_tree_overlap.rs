//! Two trees on a line, rooted at its ends; chunks follow each other through them, up and down.
//!
//! Every chunk is cut into halves. On its way up one goes to the left, the other to the right, over links of
//! opposite directions; on its way down it is the other way about, so that every link is at work in both passes.
//! A pass takes H + C - 1 steps of half a chunk for C chunks and H = n - 1, where a tree from every NPU takes
//! n - 1 steps of an n-th of a chunk for each chunk.
//!
//! # Complexity
//! 4 (n - 1) transfers a chunk.
//!
//! # Source
//! Laskar et al.: Enhancing collective communication in MCM accelerators for deep learning training,
//! section V-A and figure 5.

use super::Job;
use super::mesh::{Mesh, is_of_all};
use super::trees::{self, Down, Edge, Tree, Trees};
use crate::collective::Collective;
use crate::plan::{Plan, PlanError};
use crate::topology::Topology;

/// Trees.
pub(super) const TREES: usize = 2;

/// Half of every chunk up and down each tree.
pub(super) fn build(job: &Job<'_>) -> Result<Plan, PlanError> {
    let line = Mesh::line_of(job.topology).expect("refused otherwise");
    trees::build(job, &chains(&line), Down::AfterAll)
}

/// Chains from both ends.
fn chains(line: &Mesh) -> Trees {
    let last = line.columns - 1;
    let from_left = |x: usize| line.at(x, 0);
    let from_right = |x: usize| line.at(last - x, 0);
    let chain = |at: &dyn Fn(usize) -> _| Tree {
        root: at(0),
        edges: (1..=last)
            .map(|depth| Edge {
                parent: at(depth - 1),
                child: at(depth),
                depth,
            })
            .collect(),
    };
    Trees {
        trees: vec![chain(&from_left), chain(&from_right)],
        height: last,
        without_data: None,
    }
}

/// Transfers, exactly.
pub(super) fn transfers(participants: u128, chunks: u128) -> u128 {
    chunks.saturating_mul(4 * (participants - 1))
}

/// The number of chunks that takes least time: a pass begins when the other has ended.
pub(super) fn best_chunks(topology: &Topology, collective: &Collective) -> usize {
    Mesh::line_of(topology).map_or(1, |line| {
        trees::best_chunks(topology, collective, TREES, line.columns - 1)
    })
}

/// Why it cannot run, if it cannot.
pub(super) fn refusal(topology: &Topology, collective: &Collective) -> Option<String> {
    match Mesh::line_of(topology) {
        Err(why) => Some(why),
        Ok(_) if is_of_all(collective, topology) => None,
        Ok(_) => Some(
            "all NPUs of the line must take part; leave the participants out or use greedy"
                .to_owned(),
        ),
    }
}
