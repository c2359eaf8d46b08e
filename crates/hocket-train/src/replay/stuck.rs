//! Why a graph never ends: which rank waits for which.

use super::{Place, ReplayError};
use crate::id::narrow;
use crate::iteration::Graph;
use crate::trace::{NONE, Trace, shortened};

/// Names a node that is ready for its call, and one of the call that never is: the first that is found from
/// `node` on, which never ends. `None` if there is none, as where nodes of one rank wait for each other.
pub(super) fn explain(trace: &Trace, graph: &Graph, node: u32) -> Option<ReplayError> {
    let (ended, is_ready) = untimed(graph);
    let mut node = node;
    // Dependencies of a rank are no circle: each step is one towards the start.
    while let Some(&earlier) = trace
        .dependencies_of(node)
        .iter()
        .find(|&&other| !ended[other as usize])
    {
        node = earlier;
    }
    let call = graph.nodes.call[node as usize];
    if call == NONE {
        return None;
    }
    let call = call as usize;
    let start = graph.calls.first[call] as usize;
    let starters = &graph.calls.members[start..start + graph.calls.starters[call] as usize];
    let other = *starters.iter().find(|&&other| !is_ready[other as usize])?;
    Some(ReplayError::Stuck {
        waits: Box::new(place(trace, node)),
        other: Box::new(place(trace, other)),
    })
}

fn place(trace: &Trace, row: u32) -> Place {
    Place {
        rank: trace.rank_of(row),
        id: trace.id[row as usize],
        name: shortened(trace.names.of_row(row)),
    }
}

/// Returns which nodes end, whatever time it takes, and which are ready.
fn untimed(graph: &Graph) -> (Vec<bool>, Vec<bool>) {
    let nodes = graph.nodes.actor.len();
    let mut left: Vec<u32> = graph
        .deps
        .first
        .windows(2)
        .map(|row| row[1] - row[0])
        .collect();
    let mut waiting: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    for node in 0..nodes {
        let row = graph.deps.first[node] as usize..graph.deps.first[node + 1] as usize;
        for &dep in &graph.deps.of[row] {
            waiting[dep as usize].push(narrow(node));
        }
    }
    let mut call_left = graph.calls.starters.clone();
    let (mut ended, mut is_ready) = (vec![false; nodes], vec![false; nodes]);
    let mut ready: Vec<u32> = (0..narrow(nodes))
        .filter(|&n| left[n as usize] == 0)
        .collect();
    while let Some(node) = ready.pop() {
        is_ready[node as usize] = true;
        let call = graph.nodes.call[node as usize];
        let mut ends = vec![node];
        if call != NONE {
            let call = call as usize;
            let row = graph.calls.first[call] as usize..graph.calls.first[call + 1] as usize;
            let members = &graph.calls.members[row];
            let starters = graph.calls.starters[call] as usize;
            if call_left[call] > 0 && members[..starters].contains(&node) {
                call_left[call] -= 1;
                let of = members.iter().copied();
                ends = of.filter(|&other| is_ready[other as usize]).collect();
            }
            if call_left[call] > 0 {
                continue;
            }
        }
        for node in ends {
            ended[node as usize] = true;
            for &next in &waiting[node as usize] {
                left[next as usize] -= 1;
                if left[next as usize] == 0 {
                    ready.push(next);
                }
            }
        }
    }
    (ended, is_ready)
}
