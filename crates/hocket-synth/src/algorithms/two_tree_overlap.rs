//! Two trees on a line, rooted at its ends; chunks follow each other through them, up and down.
//!
//! Every chunk is cut into halves. On its way up one goes to the left, the other to the right, over links of
//! opposite directions. On its way down it is the other way about, so that every link is at work in both passes.
//! A pass takes H + C - 1 steps of half a chunk for C chunks and H = n - 1, where a tree from every NPU takes n
//! - 1 steps of an n-th of a chunk for each chunk.
//!
//! # Complexity
//! 4 (n - 1) transfers a chunk.
//!
//! # Source
//! Laskar et al.: Enhancing collective communication in MCM accelerators for deep learning training,
//! section V-A and figure 5.

use super::ladder::Ladder;
use super::mesh::{Mesh, is_of_all};
use super::mesh_trees::{self, Down, Edge, Tree, Trees};
use super::recipe::{About, Made, On, Recipe};
use super::{Job, Outline};
use crate::collective::CollectiveKind;
use crate::plan::PlanError;
use crate::progress::Progress;

/// Trees.
const TREES: usize = 2;

/// Half of every chunk up and down each tree.
pub(super) struct TwoTreeOverlap;

impl Recipe for TwoTreeOverlap {
    fn about(&self) -> About {
        About::rule(
            "two-tree-overlap",
            &[CollectiveKind::AllReduce],
            "halves of chunks up, then down two chains from the ends of a line, one after the other",
        )
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        let On {
            topology,
            collective,
        } = *on;
        match Mesh::line_of(topology) {
            Err(why) => Some(why),
            Ok(_) if is_of_all(collective, topology) => None,
            Ok(_) => Some(
                "all NPUs of the line must take part; leave the participants out or use greedy"
                    .to_owned(),
            ),
        }
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        mesh_trees::ladder(on, TREES, |on| {
            Mesh::line_of(on.topology).map_or(1, |line| {
                mesh_trees::best_chunks(on, TREES, line.columns - 1)
            })
        })
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.others(chunks.saturating_mul(4))
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let line = Mesh::line_of(job.topology).expect("refused otherwise");
        mesh_trees::build(job, &chains(&line), Down::AfterAll).map(Made::from)
    }
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
