//! MultiTree: a tree from every NPU, grown over links that nobody else uses in the same step.
//!
//! Trees take turns; each adds one link a turn while there is one free, and the next step begins when none can
//! add any. Blocks are summed up their owners' trees, last step first, and copied down them. Links serve in the
//! order of the steps; several chunks follow each other, and overlap where links allow. Parallel links count
//! as one, and switches as nothing, which is less than was published.
//!
//! # Source
//! Huang et al.: Communication algorithm-architecture co-design for distributed deep learning, ISCA 2021.
//! In which order neighbours are tried is not said there: lower numbers first, ascending, then higher ones,
//! descending; and the first turn goes round with the steps. On a 3 x 3 mesh that takes the 6 steps that
//! Laskar et al. count.

use super::follow::{Follow, only};
use super::ladder::Ladder;
use super::recipe::{About, Made, On, PASSES, Recipe};
use super::{Job, Outline};
use crate::collective::CollectiveKind;
use crate::id::{NpuId, narrow};
use crate::plan::{Chunks, PlanError, Wait};
use crate::progress::Progress;
use crate::topology::Topology;

/// Blocks up their trees, then down.
pub(super) struct MultiTree;

impl Recipe for MultiTree {
    fn about(&self) -> About {
        About::rule(
            "multitree",
            PASSES,
            "a tree from every NPU over direct links, no two trees on a link in a step",
        )
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        let On {
            topology,
            collective,
        } = *on;
        let npus = collective.npus();
        let neighbours = neighbours(topology, npus);
        let mut seen = vec![false; npus.len()];
        seen[0] = true;
        let mut stack = vec![0];
        while let Some(npu) = stack.pop() {
            for &next in &neighbours[npu] {
                if !std::mem::replace(&mut seen[next], true) {
                    stack.push(next);
                }
            }
        }
        let lost = seen.iter().position(|seen| !seen)?;
        Some(format!(
            "its trees are of links from NPU to NPU, both ways, and no such links join {} and {}; use greedy, \
             which goes through switches and others",
            topology.device(npus[0].device()).name,
            topology.device(npus[lost].device()).name,
        ))
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::short(on.blocks())
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.least(chunks)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let npus = job.collective.npus();
        let demands = job.collective.demands();
        let kind = job.collective.kind();
        let chunks = match kind {
            CollectiveKind::AllReduce => Chunks::split(&demands, job.chunks * npus.len()),
            _ => Chunks::split_part_major(&demands, job.chunks),
        }?;
        let steps = grow(&neighbours(job.topology, npus));
        let mut plan = Follow::new(job, chunks).in_order();
        for slice in 0..job.chunks {
            let block = |edge: &Edge| only(narrow(slice * npus.len() + edge.tree));
            if kind != CollectiveKind::AllGather {
                for edge in steps.iter().rev().flatten() {
                    plan.reduce(block(edge), npus[edge.child], npus[edge.parent]);
                }
            }
            if kind != CollectiveKind::ReduceScatter {
                for edge in steps.iter().flatten() {
                    plan.copy(
                        block(edge),
                        npus[edge.parent],
                        npus[edge.child],
                        Wait::NOTHING,
                    );
                }
            }
        }
        Ok(plan.finish().into())
    }
}

/// For each rank the ranks that it is linked with both ways, in the order in which they are tried.
fn neighbours(topology: &Topology, npus: &[NpuId]) -> Vec<Vec<usize>> {
    let mut rank = vec![None; topology.device_count()];
    for (r, npu) in npus.iter().enumerate() {
        rank[npu.device().index()] = Some(r);
    }
    let of = |(own, npu): (usize, &NpuId)| {
        let links = topology.out_links(npu.device()).iter();
        let mut found: Vec<usize> = links
            .map(|&link| topology.link(link).dst)
            .filter(|&dst| !topology.links_from_to(dst, npu.device()).is_empty())
            .filter_map(|dst| rank[dst.index()])
            .collect();
        found.sort_unstable();
        found.dedup();
        let higher = found.partition_point(|&other| other < own);
        found[higher..].reverse();
        found
    };
    npus.iter().enumerate().map(of).collect()
}

/// A link of a tree, downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    /// Rank of the root.
    tree: usize,
    parent: usize,
    child: usize,
}

/// Grows the trees: for each step the links that it adds.
///
/// # Complexity
/// O(ranks^2 x degree x steps) at worst.
fn grow(neighbours: &[Vec<usize>]) -> Vec<Vec<Edge>> {
    let ranks = neighbours.len();
    let mut trees: Vec<Growing> = (0..ranks).map(|root| Growing::new(root, ranks)).collect();
    let begin: Vec<usize> = neighbours
        .iter()
        .scan(0, |sum, list| {
            *sum += list.len();
            Some(*sum - list.len())
        })
        .collect();
    let links = neighbours.iter().map(Vec::len).sum();
    let mut steps: Vec<Vec<Edge>> = Vec::new();
    while trees.iter().any(|tree| tree.left > 0) {
        let mut used = vec![false; links];
        let mut added = Vec::new();
        let mut turns: Vec<usize> = (0..ranks).map(|i| (i + steps.len()) % ranks).collect();
        while !turns.is_empty() {
            turns.retain(|&root| {
                let found = trees[root].add(neighbours, &begin, &mut used);
                added.extend(found.map(|(parent, child)| Edge {
                    tree: root,
                    parent,
                    child,
                }));
                found.is_some()
            });
        }
        trees.iter_mut().for_each(|tree| tree.end_step(neighbours));
        steps.push(added);
    }
    steps
}

/// A tree so far.
struct Growing {
    has: Vec<bool>,
    /// Those that may still have neighbours outside, in the order in which they came.
    parents: Vec<usize>,
    /// Of the parents, the first that may still add in this step: what is taken stays so until its end.
    turn: usize,
    /// Those that came in this step, and are no parents in it.
    fresh: Vec<usize>,
    left: usize,
}

impl Growing {
    fn new(root: usize, ranks: usize) -> Self {
        let mut has = vec![false; ranks];
        has[root] = true;
        Self {
            has,
            parents: vec![root],
            turn: 0,
            fresh: Vec::new(),
            left: ranks - 1,
        }
    }

    /// Adds one rank over a link that is free in this step.
    fn add(
        &mut self,
        neighbours: &[Vec<usize>],
        begin: &[usize],
        used: &mut [bool],
    ) -> Option<(usize, usize)> {
        let Self { has, parents, .. } = self;
        let mut left = parents.iter().enumerate().skip(self.turn);
        let found = left.find_map(|(turn, &parent)| {
            let outside = neighbours[parent].iter().enumerate();
            let mut free = outside.filter(|&(i, &child)| !has[child] && !used[begin[parent] + i]);
            free.next()
                .map(|(i, &child)| (turn, parent, child, begin[parent] + i))
        });
        self.turn = found.map_or(parents.len(), |(turn, ..)| turn);
        let (_, parent, child, link) = found?;
        used[link] = true;
        has[child] = true;
        self.fresh.push(child);
        self.left -= 1;
        Some((parent, child))
    }

    fn end_step(&mut self, neighbours: &[Vec<usize>]) {
        let Self { has, parents, .. } = self;
        parents.append(&mut self.fresh);
        parents.retain(|&parent| neighbours[parent].iter().any(|&child| !has[child]));
        self.turn = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::build;
    use crate::units::{Bandwidth, Time};

    /// Returns the trees as the header says it: every turn looks from the first parent on.
    fn by_the_letter(neighbours: &[Vec<usize>]) -> Vec<Vec<Edge>> {
        let ranks = neighbours.len();
        let mut trees: Vec<Vec<usize>> = (0..ranks).map(|root| vec![root]).collect();
        let mut steps: Vec<Vec<Edge>> = Vec::new();
        while trees.iter().any(|tree| tree.len() < ranks) {
            let (mut used, mut added) = (Vec::new(), Vec::new());
            let old: Vec<usize> = trees.iter().map(Vec::len).collect();
            let mut turns: Vec<usize> = (0..ranks).map(|i| (i + steps.len()) % ranks).collect();
            while !turns.is_empty() {
                turns.retain(|&tree| {
                    let links = trees[tree][..old[tree]]
                        .iter()
                        .flat_map(|&parent| neighbours[parent].iter().map(move |&to| (parent, to)));
                    let mut free =
                        links.filter(|link| !trees[tree].contains(&link.1) && !used.contains(link));
                    let Some((parent, child)) = free.next() else {
                        return false;
                    };
                    used.push((parent, child));
                    added.push(Edge {
                        tree,
                        parent,
                        child,
                    });
                    trees[tree].push(child);
                    true
                });
            }
            steps.push(added);
        }
        steps
    }

    #[test]
    fn trees_are_those_of_the_header() {
        let rate = Bandwidth::from_bytes_per_second(1_000_000_000).expect("positive");
        for sizes in [&[7][..], &[4, 4], &[5, 3], &[2, 3, 3], &[6, 6]] {
            for network in [build::mesh, build::torus] {
                let network = network(sizes, rate, Time::ZERO).expect("a network");
                let npus: Vec<NpuId> = network.npus().collect();
                let neighbours = neighbours(&network, &npus);
                assert_eq!(grow(&neighbours), by_the_letter(&neighbours));
            }
        }
    }

    fn steps(sizes: &[u32]) -> usize {
        let rate = Bandwidth::from_bytes_per_second(1_000_000_000).expect("positive");
        let mesh = build::mesh(sizes, rate, Time::ZERO).expect("a mesh");
        let npus: Vec<NpuId> = mesh.npus().collect();
        let steps = grow(&neighbours(&mesh, &npus));
        for step in &steps {
            let mut links: Vec<_> = step.iter().map(|edge| (edge.parent, edge.child)).collect();
            links.sort_unstable();
            let all = links.len();
            links.dedup();
            assert_eq!(links.len(), all, "a link is used twice in a step");
        }
        steps.len()
    }

    /// 3 x 3 and the line of 4 as Laskar et al. count (figures 4 and 7); of the others, the fewest that a corner with
    /// two links can do with. Their table I is as if 8 x 8 and 9 x 9 took 34 and 44.
    #[test]
    fn steps_are_as_published() {
        assert_eq!(steps(&[3, 3]), 6);
        assert_eq!(steps(&[4]), 3);
        assert_eq!(
            [4, 5, 8, 9].map(|side| steps(&[side, side])),
            [8, 12, 32, 40]
        );
    }
}
