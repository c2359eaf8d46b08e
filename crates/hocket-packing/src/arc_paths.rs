//! Ways over arcs: each known by a number, and without detours.

use std::collections::HashMap;

use super::graph::Arc;
use crate::id::narrow;

/// Ways over arcs, each known by one number.
#[derive(Debug, Default)]
pub(super) struct ArcPaths {
    pub arcs: Vec<Vec<u32>>,
    /// How long each takes.
    pub costs: Vec<u64>,
    numbers: HashMap<Vec<u32>, u32>,
}

impl ArcPaths {
    /// Returns the number of a way, given anew where it is not known.
    pub(crate) fn number(&mut self, arcs: Vec<u32>, costs: &[u64]) -> u32 {
        if let Some(&number) = self.numbers.get(&arcs) {
            return number;
        }
        let number = narrow(self.arcs.len());
        self.costs
            .push(arcs.iter().map(|&arc| costs[arc as usize]).sum());
        self.numbers.insert(arcs.clone(), number);
        self.arcs.push(arcs);
        number
    }
}

/// Returns a way without what it does between two visits of the same node.
pub(super) fn straight(arcs: &[Arc], way: Vec<u32>) -> Vec<u32> {
    let mut straight: Vec<u32> = Vec::with_capacity(way.len());
    for arc in way {
        let end = arcs[arc as usize].dst;
        let visited = straight.iter().position(|&it| arcs[it as usize].src == end);
        match visited {
            Some(first) => straight.truncate(first),
            None => straight.push(arc),
        }
    }
    straight
}
