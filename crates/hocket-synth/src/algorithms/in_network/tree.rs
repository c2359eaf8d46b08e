//! Trees over the participants, whose inner nodes are participants and switches that sum and multicast.

use std::collections::HashMap;

use crate::id::{DeviceId, LinkId};
use crate::topology::Topology;

/// An edge of a tree: a way there and a way back between two devices at which transfers end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Edge {
    pub ends: [DeviceId; 2],
    /// Links from the first end to the second, and back.
    pub ways: [Vec<LinkId>; 2],
}

/// A tree over all participants, and its share of the data.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub edges: Vec<Edge>,
    /// Where sums of an all-reduce are complete.
    pub root: DeviceId,
    pub share: f64,
    /// NPUs at one switch that are the root in turn, slice by slice: that switch sums the root's own data as the others'.
    /// None: the root is always the same, and its own data stay where they are.
    pub turns: Vec<DeviceId>,
}

/// One device of a tree, seen from a root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub device: DeviceId,
    pub parent: DeviceId,
    /// Position of the parent's own step; `None` at the root.
    pub before: Option<usize>,
    pub edge: usize,
    /// Which of the edge's ways leads to the parent.
    pub up: usize,
}

impl Tree {
    /// Returns the tree of some edges, with its root where an all-reduce is quickest: of the devices that may send a
    /// sum to several the one from which the farthest is nearest, switches before NPUs, and lower ids first.
    pub(crate) fn new(topology: &Topology, edges: Vec<Edge>) -> Self {
        let start = edges[0].ends[0];
        let mut tree = Self {
            edges,
            root: start,
            share: 0.0,
            turns: Vec::new(),
        };
        // From any device, the farthest is one of the two ends of a longest way.
        let one = tree.farthest(start);
        let other = tree.farthest(one);
        let [near, far] = [one, other].map(|end| tree.depths(end));
        let able = |id: &DeviceId| topology.offload(*id).is_none_or(|can| can.all_reduces);
        let depth = |id: DeviceId| near[&id].max(far[&id]);
        let best = near.keys().copied().filter(able);
        let best = best.min_by_key(|&id| (depth(id), topology.is_npu(id), id));
        tree.root = best.unwrap_or(start);
        tree
    }

    /// Returns every device but the root, each after its parent; at the end the root as well, below its switch, where it
    /// sums its own data.
    pub(crate) fn steps(&self, root: DeviceId) -> Vec<Step> {
        let mut around: HashMap<DeviceId, Vec<(usize, usize)>> = HashMap::new();
        for (edge, ends) in self.edges.iter().map(|edge| edge.ends).enumerate() {
            for (near, &end) in ends.iter().enumerate() {
                around.entry(end).or_default().push((edge, near));
            }
        }
        let mut steps: Vec<Step> = Vec::with_capacity(self.edges.len());
        let mut at = (root, None, None);
        loop {
            let (parent, before, over) = at;
            for &(edge, near) in &around[&parent] {
                if over != Some(edge) {
                    steps.push(Step {
                        device: self.edges[edge].ends[1 - near],
                        parent,
                        before,
                        edge,
                        up: 1 - near,
                    });
                }
            }
            assert!(
                steps.len() <= self.edges.len(),
                "a tree has no cycle, or this would never end"
            );
            let next = before.map_or(0, |before| before + 1);
            let Some(step) = steps.get(next) else {
                if !self.turns.is_empty() {
                    let first = steps[0];
                    steps.push(Step {
                        device: root,
                        parent: first.device,
                        before: Some(0),
                        edge: first.edge,
                        up: 1 - first.up,
                    });
                }
                return steps;
            };
            at = (step.device, Some(next), Some(step.edge));
        }
    }

    /// Returns how many edges each device is from one.
    fn depths(&self, from: DeviceId) -> HashMap<DeviceId, usize> {
        let mut depths = HashMap::from([(from, 0)]);
        for step in self.steps(from) {
            depths.insert(step.device, depths[&step.parent] + 1);
        }
        depths
    }

    /// Returns the device farthest from one, the highest of equals.
    fn farthest(&self, from: DeviceId) -> DeviceId {
        let depths = self.depths(from).into_iter();
        depths
            .max_by_key(|&(id, depth)| (depth, id))
            .map_or(from, |(id, _)| id)
    }
}

impl Edge {
    pub(crate) fn turned(self) -> Self {
        let ([a, b], [there, back]) = (self.ends, self.ways);
        Edge {
            ends: [b, a],
            ways: [back, there],
        }
    }

    pub(crate) fn starting_at(self, device: DeviceId) -> Self {
        if self.ends[0] == device {
            self
        } else {
            self.turned()
        }
    }

    pub(crate) fn ending_at(self, device: DeviceId) -> Self {
        if self.ends[1] == device {
            self
        } else {
            self.turned()
        }
    }

    /// Returns two edges that meet, as one.
    pub(crate) fn then(self, next: Self) -> Self {
        let ([a, _], [there, back]) = (self.ends, self.ways);
        let ([_, b], [on, home]) = (next.ends, next.ways);
        Edge {
            ends: [a, b],
            ways: [[there, on].concat(), [home, back].concat()],
        }
    }
}
