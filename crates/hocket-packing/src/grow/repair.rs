//! The last ends that trees miss, by exchanging arcs between two trees.

use hocket_base::graph::Lists;

use super::{Forest, NONE};
use crate::graph::Graph;
use crate::id::narrow;

/// Adds the missing arcs: over arcs with room, or over one that another tree can do without, since it gets to the same
/// end over an arc with room. Whether none is missing in the end.
pub(super) fn repair(graph: &Graph, ends: &[u32], forest: &mut Forest) -> bool {
    let arcs = &graph.arcs;
    let heads = arcs
        .iter()
        .zip(0u32..)
        .map(|(arc, i)| (arc.dst as usize, i));
    let into = Lists::grouped(graph.nodes(), heads.collect::<Vec<_>>().into_iter());
    let mut missing: Vec<(usize, u32)> = Vec::new();
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); arcs.len()];
    for (tree, (&root, parents)) in forest.roots.iter().zip(&forest.into).enumerate() {
        for &end in ends {
            match parents[end as usize] {
                NONE if end != root => missing.push((tree, end)),
                NONE => {}
                arc => users[arc as usize].push(narrow(tree)),
            }
        }
    }
    loop {
        let before = missing.len();
        missing.retain(|&(tree, end)| !give(graph, &into, forest, &mut users, (tree, end)));
        if missing.is_empty() || missing.len() == before {
            return missing.is_empty();
        }
    }
}

fn has(forest: &Forest, tree: usize, node: u32) -> bool {
    forest.roots[tree] == node || forest.into[tree][node as usize] != NONE
}

/// Leads a tree to an end that it misses; whether there was a way.
fn give(
    graph: &Graph,
    into: &Lists<u32>,
    forest: &mut Forest,
    users: &mut [Vec<u32>],
    (tree, end): (usize, u32),
) -> bool {
    let arcs = &graph.arcs;
    let coming = into.get(end as usize);
    let from = |arc: u32| arcs[arc as usize].src;
    let with_room = |forest: &Forest, arc: u32| forest.left[arc as usize] > 0;
    let direct = coming
        .iter()
        .find(|&&arc| with_room(forest, arc) && has(forest, tree, from(arc)));
    if let Some(&arc) = direct {
        forest.left[arc as usize] -= 1;
        forest.into[tree][end as usize] = arc;
        users[arc as usize].push(narrow(tree));
        return true;
    }
    let spare: Vec<u32> = coming
        .iter()
        .copied()
        .filter(|&arc| with_room(forest, arc))
        .collect();
    for &arc in coming.iter().filter(|&&arc| has(forest, tree, from(arc))) {
        for &other in &spare {
            let position = users[arc as usize].iter().position(|&user| {
                let user = user as usize;
                has(forest, user, from(other)) && !is_below(graph, forest, user, from(other), end)
            });
            if let Some(position) = position {
                let user = users[arc as usize].swap_remove(position);
                forest.into[user as usize][end as usize] = other;
                forest.left[other as usize] -= 1;
                users[other as usize].push(user);
                forest.into[tree][end as usize] = arc;
                users[arc as usize].push(narrow(tree));
                return true;
            }
        }
    }
    false
}

/// Returns whether a node of a tree is reached through another, or is it.
fn is_below(graph: &Graph, forest: &Forest, tree: usize, mut node: u32, other: u32) -> bool {
    loop {
        if node == other {
            return true;
        }
        match forest.into[tree][node as usize] {
            NONE => return false,
            arc => node = graph.arcs[arc as usize].src,
        }
    }
}
