//! Stars: trees whose root sends to every end itself, over a switch that all ends are at.
//!
//! Of a demand that all ends sum and copy, every end is the root of one star. So each end sends and receives as much as any
//! other, and nothing waits for more than one way.

use std::rc::Rc;

use super::{Commodity, Hop, Packer, Packing, Tree};

/// A switch that all ends are at.
struct Hub {
    /// By end, the arcs to the switch, and those from it.
    ways: Vec<(Vec<u32>, u32)>,
    /// Of the slowest of those, in bytes per second.
    rate: f64,
}

impl Packer<'_> {
    /// Returns the packing of all demands in stars, if all are of groups behind a switch and no more than `most` ends are
    /// served.
    pub(crate) fn stars(&self, most: u64) -> Option<Packing> {
        let mut trees = Vec::new();
        let mut served = 0;
        for (number, each) in (0..).zip(self.commodities) {
            let is_both = self.is_both[number as usize];
            let roots = match each.root() {
                Some(root) => vec![root],
                None if is_both => each.holders.clone(),
                None => return None,
            };
            let ends = each.all_ends();
            let hubs = self.hubs(&ends);
            let rates: f64 = hubs.iter().map(|hub| hub.rate).sum();
            served += (hubs.len() * roots.len() * ends.len()) as u64;
            if hubs.is_empty() || served > most {
                return None;
            }
            for hub in &hubs {
                let bytes = each.bytes as f64 * hub.rate / rates / roots.len() as f64;
                let stars = roots
                    .iter()
                    .map(|&root| star(number, each, &ends, hub, root));
                trees.extend(stars.map(|star| (Rc::new(star), bytes)));
            }
        }
        let mut loads = vec![0.0; self.capacity.len()];
        for (tree, bytes) in &trees {
            self.load(&mut loads, tree, *bytes);
        }
        Some(Packing {
            seconds: self.seconds(&loads),
            trees,
        })
    }

    /// Returns the switches that all ends are at, with a link there and one back.
    fn hubs(&self, ends: &[u32]) -> Vec<Hub> {
        let network = self.network();
        let at = |npu: u32| {
            let mut found = Vec::new();
            for &up in network.arcs_out(npu) {
                let mut node = network.arcs()[up as usize].dst;
                let mut way = vec![up];
                let inside = network.arcs_out(node).first().copied();
                if let Some(inside) = inside.filter(|&arc| network.arcs()[arc as usize].internal) {
                    way.push(inside);
                    node = network.arcs()[inside as usize].dst;
                }
                let mut back = network.arcs_in(npu).iter().copied();
                let back = back.find(|&arc| network.arcs()[arc as usize].src == node);
                if let Some(back) = back.filter(|_| !network.is_npu(node)) {
                    found.push((node, way, back));
                }
            }
            found
        };
        let mut hubs = Vec::new();
        let by_end: Vec<_> = ends.iter().map(|&end| at(end)).collect();
        for (node, _, _) in by_end.first().into_iter().flatten() {
            let mut ways = Vec::with_capacity(ends.len());
            for found in &by_end {
                let here = found.iter().find(|(other, _, _)| other == node);
                ways.extend(here.map(|(_, up, back)| (up.clone(), *back)));
            }
            if ways.len() == ends.len() {
                let arcs = ways.iter().flat_map(|(up, back)| up.iter().chain([back]));
                let rate = arcs.map(|&arc| self.capacity[arc as usize]);
                let rate = rate.fold(f64::INFINITY, f64::min);
                hubs.push(Hub { ways, rate });
            }
        }
        hubs
    }
}

/// Returns the star of a root. Each serves the ends that follow its root first, so that no two serve the same at once.
fn star(number: u32, each: &Commodity, ends: &[u32], hub: &Hub, root: u32) -> Tree {
    let own = ends.binary_search(&root).expect("a root is an end");
    let others = (own + 1..ends.len()).chain(0..own);
    let hop = |end: usize, is_sum: bool| {
        let ((up, _), (_, down)) = match is_sum {
            true => (&hub.ways[end], &hub.ways[own]),
            false => (&hub.ways[own], &hub.ways[end]),
        };
        let mut arcs: Vec<u32> = up.iter().copied().chain([*down]).collect();
        if is_sum {
            arcs.reverse();
        }
        Hop {
            near: root,
            far: ends[end],
            arcs,
        }
    };
    let hops = |wanted: &[u32], is_sum: bool| -> Vec<Hop> {
        let others = others.clone();
        let others = others.filter(|&end| wanted.binary_search(&ends[end]).is_ok());
        others.map(|end| hop(end, is_sum)).collect()
    };
    let is_both = each.root().is_none();
    Tree {
        commodity: number,
        root,
        sums: match each.is_summed() && !is_both {
            true => hops(&each.holders, true),
            false => Vec::new(),
        },
        copies: hops(&each.wanted, false),
    }
}
