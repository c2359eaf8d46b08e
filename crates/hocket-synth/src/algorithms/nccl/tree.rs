//! NCCL's trees: in each node a chain from the NPU at the channel's port, and between nodes two binary trees that
//! complement each other; half of a channel's share goes up and down each.
//!
//! NCCL spreads what a node gets from its parent and its children over two NPUs; here all of it comes to the first.

use super::channels::{NcclChannel, channels, is_spread};
use super::{LARGEST_NODE, Roads, rooted};
use crate::algorithms::dimensional::PathOf;
use crate::algorithms::in_network::{self, Edge, Tree};
use crate::algorithms::ladder::Ladder;
use crate::algorithms::multi_ring::{self, Nodes};
use crate::algorithms::recipe::{About, Made, On, Recipe};
use crate::algorithms::{Job, Outline};
use crate::collective::CollectiveKind;
use crate::plan::PlanError;
use crate::progress::Progress;
use crate::topology::Topology;

/// Up and down all trees, piece by piece.
pub(in crate::algorithms) struct NcclTree;

impl Recipe for NcclTree {
    fn about(&self) -> About {
        About::rule(
            "nccl-tree",
            &[CollectiveKind::AllReduce],
            "NCCL's trees: a chain in each node, two binary trees between nodes, pipelined",
        )
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        super::refusal(on)
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::pipelined(count(on.topology))
    }

    // One tree in a lone node, two trees at least over several.
    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        let is_spread = outline.npus as usize > LARGEST_NODE;
        outline.others(chunks.saturating_mul(if is_spread { 4 } else { 2 }))
    }

    fn transfers(&self, on: &On<'_>, chunks: u128) -> u128 {
        let trees = count(on.topology) as u128;
        on.outline().others(chunks.saturating_mul(2 * trees))
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let (topology, size) = (job.topology, job.collective.size());
        let mut roads = Roads::new(topology, size);
        if !is_spread(topology) {
            let orders = channels(topology, size);
            let chains = orders
                .iter()
                .map(|it| rooted(roads.chain(it), it.order[0].device()));
            return in_network::along(job, chains.collect()).map(Made::from);
        }
        let mut nodes = Nodes::new(topology, size);
        let mut trees: Vec<Tree> = Vec::new();
        for (k, ring) in nodes.rings().iter().enumerate() {
            let chains = (0..ring.nodes.len()).map(|node| NcclChannel {
                order: ring.inward(node),
                paths: PathOf::new(),
            });
            let chains: Vec<NcclChannel> = chains.collect();
            for family in doubled(chains.len()) {
                let inside = chains.iter().flat_map(|chain| roads.chain(chain));
                let mut edges: Vec<Edge> = inside.collect();
                let mut root = chains[0].order[0];
                for (node, parent) in family.into_iter().enumerate() {
                    let head = chains[node].order[0];
                    let Some(parent) = parent else {
                        root = head;
                        continue;
                    };
                    let above = chains[parent].order[0];
                    let mut edge = roads.edge(head, above);
                    let ends = [(node, head), (parent, above)];
                    for (way, [from, to]) in [ends, [ends[1], ends[0]]].into_iter().enumerate() {
                        if let Some(links) = nodes.between(k, from, to) {
                            edge.ways[way] = links;
                        }
                    }
                    edges.push(edge);
                }
                trees.push(rooted(edges, root.device()));
            }
        }
        in_network::along(job, trees).map(Made::from)
    }
}

/// Returns the number of trees.
fn count(topology: &Topology) -> usize {
    match is_spread(topology) {
        true => multi_ring::lanes(topology),
        false => super::channels::count(topology),
    }
}

/// Returns the parent of each node in a binary tree and in its complement, in which inner nodes are leaves: mirrored
/// where there is an even number of nodes, shifted by one where there is an odd number.
pub(super) fn doubled(nodes: usize) -> [Vec<Option<usize>>; 2] {
    let parents: Vec<Option<usize>> = (0..nodes).map(|node| parent(node, nodes)).collect();
    let moved = |node: usize| match nodes % 2 {
        0 => nodes - 1 - node,
        _ => (node + 1) % nodes,
    };
    let mut others = vec![None; nodes];
    for (node, parent) in parents.iter().enumerate() {
        others[moved(node)] = parent.map(moved);
    }
    [parents, others]
}

/// Returns the parent in a binary tree over positions in which those with a one as the lowest bit are leaves; position
/// 0 is the root and has one child.
fn parent(node: usize, nodes: usize) -> Option<usize> {
    if node == 0 {
        return None;
    }
    let bit = 1 << node.trailing_zeros();
    let up = (node ^ bit) | (bit << 1);
    Some(if up >= nodes { node ^ bit } else { up })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_trees_each_with_the_leaves_of_the_other_inside() {
        for nodes in 1..=130usize {
            let trees = doubled(nodes);
            let mut inner = Vec::new();
            for tree in &trees {
                assert_eq!(tree.iter().filter(|it| it.is_none()).count(), 1);
                let depth = |mut node: usize| {
                    let mut depth = 0;
                    while let Some(above) = tree[node] {
                        (node, depth) = (above, depth + 1);
                    }
                    depth
                };
                let deepest = (0..nodes).map(depth).max().unwrap();
                assert!(deepest <= nodes.ilog2() + 1, "{nodes}: {deepest}");
                let children = |node: usize| tree.iter().filter(|it| **it == Some(node)).count();
                assert!((0..nodes).all(|node| children(node) <= 2));
                inner.push(
                    (0..nodes)
                        .map(|node| children(node) == 2)
                        .collect::<Vec<_>>(),
                );
            }
            // Nobody passes on to two in both.
            assert!(
                (0..nodes).all(|node| !(inner[0][node] && inner[1][node])),
                "{nodes}"
            );
        }
    }

    #[test]
    fn the_trees_of_eight_nodes_are_those_of_nccl() {
        // src/graph/trees.cc has the picture: 0 above 8 or else 4, odd numbers are leaves.
        let [tree, other] = doubled(8);
        let some = [
            None,
            Some(2),
            Some(4),
            Some(2),
            Some(0),
            Some(6),
            Some(4),
            Some(6),
        ];
        assert_eq!(tree, some);
        assert_eq!(other[7], None);
        assert_eq!(other[3], Some(7));
    }
}
