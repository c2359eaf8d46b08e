//! Ways through switches, layered by how many switches are passed.

use super::NONE;
use crate::bound::network::ArcNetwork;
use crate::graph::Lists;
use crate::id::narrow;

/// Switches by how many switches are passed on the way to them, as nodes without circles.
pub(crate) struct Layers {
    /// By node of the network, its layered node if NPUs send to it.
    pub entry: Vec<u32>,
    /// Nodes of the network that send to NPUs.
    pub exits: Vec<u32>,
    switch: Vec<u32>,
    before: Lists<(u32, u32)>,
    after: Lists<(u32, u32)>,
    arcs: u32,
}

impl Layers {
    /// Layers the switches of a network: as many layers as the furthest way with the fewest switches needs.
    pub(crate) fn new(network: &ArcNetwork, npus: usize) -> Self {
        let nodes = network.node_count();
        let is_switch = |node: u32| node as usize >= npus;
        let arcs = network.arcs();
        let (mut enters, mut leaves) = (vec![false; nodes], vec![false; nodes]);
        for arc in arcs {
            if !is_switch(arc.src) && is_switch(arc.dst) {
                enters[arc.dst as usize] = true;
            }
            if is_switch(arc.src) && !is_switch(arc.dst) {
                leaves[arc.src as usize] = true;
            }
        }
        let depth = most_switches(network, &enters, &leaves, npus);
        let mut there = vec![enters.clone()];
        let mut on = vec![leaves.clone()];
        for layer in 1..depth {
            there.push(vec![false; nodes]);
            on.push(leaves.clone());
            for arc in arcs
                .iter()
                .filter(|arc| is_switch(arc.src) && is_switch(arc.dst))
            {
                if there[layer - 1][arc.src as usize] {
                    there[layer][arc.dst as usize] = true;
                }
                if on[layer - 1][arc.dst as usize] {
                    on[layer][arc.src as usize] = true;
                }
            }
            let shorter = on[layer - 1].clone();
            on[layer]
                .iter_mut()
                .zip(shorter)
                .for_each(|(on, before)| *on |= before);
        }
        let mut number = vec![vec![NONE; nodes]; depth];
        let mut switch = Vec::new();
        for layer in 0..depth {
            for node in 0..nodes {
                if there[layer][node] && on[depth - 1 - layer][node] {
                    number[layer][node] = narrow(switch.len());
                    switch.push(narrow(node));
                }
            }
        }
        let mut steps = Vec::new();
        for layer in 1..depth {
            for (at, arc) in (0..).zip(arcs) {
                let from = number[layer - 1][arc.src as usize];
                let to = number[layer][arc.dst as usize];
                if from != NONE && to != NONE {
                    steps.push((from, to, at));
                }
            }
        }
        let count = switch.len();
        let before = steps
            .iter()
            .map(|&(from, to, arc)| (to as usize, (from, arc)));
        let after = steps
            .iter()
            .map(|&(from, to, arc)| (from as usize, (to, arc)));
        Self {
            entry: number
                .into_iter()
                .next()
                .unwrap_or_else(|| vec![NONE; nodes]),
            exits: (0..narrow(nodes))
                .filter(|&node| leaves[node as usize])
                .collect(),
            before: Lists::grouped(count, before),
            after: Lists::grouped(count, after),
            switch,
            arcs: narrow(arcs.len()),
        }
    }

    /// Returns the number of layered nodes.
    pub(crate) fn len(&self) -> usize {
        self.switch.len()
    }

    /// Returns the number of layers.
    #[cfg(test)]
    pub(crate) fn depth(&self) -> usize {
        let mut depths = vec![1; self.len()];
        for node in 0..self.len() {
            for &(from, _) in self.before.get(node) {
                depths[node] = depths[node].max(depths[from as usize] + 1);
            }
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// Returns the node of the network that a layered node is.
    pub(crate) fn switch(&self, node: u32) -> u32 {
        self.switch[node as usize]
    }

    /// Returns the layered nodes from which one is reached, and over which arcs; none in the first layer.
    pub(crate) fn before(&self, node: u32) -> &[(u32, u32)] {
        self.before.get(node as usize)
    }

    /// Returns the layered nodes that are reached from one, and over which arcs.
    pub(crate) fn after(&self, node: u32) -> &[(u32, u32)] {
        self.after.get(node as usize)
    }

    /// Returns a number for a layered node that no arc has.
    pub(crate) fn code(&self, node: u32) -> u32 {
        self.arcs + node
    }

    /// Returns the layered node of a number; `None` for an arc.
    pub(crate) fn is_node(&self, code: u32) -> Option<u32> {
        code.checked_sub(self.arcs)
    }
}

/// Returns how many switches the longest of all ways with the fewest switches passes.
fn most_switches(network: &ArcNetwork, enters: &[bool], leaves: &[bool], npus: usize) -> usize {
    let nodes = network.node_count();
    let mut most = 0;
    let mut passed = vec![0u32; nodes];
    for entry in (npus..nodes).filter(|&node| enters[node]) {
        passed.fill(0);
        passed[entry] = 1;
        let mut queue = vec![narrow(entry)];
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            if leaves[node as usize] {
                most = most.max(passed[node as usize] as usize);
            }
            for &arc in network.arcs_out(node) {
                let to = network.arcs()[arc as usize].dst;
                if to as usize >= npus && passed[to as usize] == 0 {
                    passed[to as usize] = passed[node as usize] + 1;
                    queue.push(to);
                }
            }
        }
    }
    most
}
