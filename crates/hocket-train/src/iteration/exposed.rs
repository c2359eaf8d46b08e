//! What kept actors from computing: the communication that they waited for.

use super::Outcome;
use super::graph::{Engine, Graph, NONE};
use crate::id::narrow;

/// Time in which an actor's compute engine idled, by the node that it waited for, in picoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exposure {
    /// Idle time while a call ran, for each node that takes part in the call.
    pub exposed_ps: Vec<u64>,
    /// Of each node: while its call had not begun, others not being ready for it; and of nodes that are no
    /// calls, while they took their time beside the compute engine.
    pub waited_ps: Vec<u64>,
    /// Of each actor: after its last computation until its last node ended, and whatever no node explains.
    pub rest_ps: Vec<u64>,
}

/// Attributes the idle time of each actor's compute engine, until the actor's last node has ended. That a
/// message has been sent is not a wait of its sender's.
///
/// While a node waits for several others, time counts for the one that ends next. The part of it in which
/// that one's call had not begun counts as waiting; and the part in which that node was not ready itself
/// counts for what it waited for in turn.
///
/// # Complexity
/// O(nodes x log nodes + dependencies).
pub fn exposed(graph: &Graph, outcome: &Outcome) -> Exposure {
    let nodes = graph.nodes.actor.len();
    let actors = graph.actors as usize;
    let mut blame = Blame {
        graph,
        outcome,
        out: Exposure {
            exposed_ps: vec![0; nodes],
            waited_ps: vec![0; nodes],
            rest_ps: vec![0; actors],
        },
        todo: Vec::new(),
    };
    let mut computing: Vec<u32> = (0..narrow(nodes))
        .filter(|&node| blame.computes(node))
        .collect();
    let key = |&node: &u32| {
        let at = node as usize;
        (
            graph.nodes.actor[at],
            outcome.start_ps[at],
            outcome.end_ps[at],
            node,
        )
    };
    computing.sort_unstable_by_key(key);
    let mut upto = vec![0u64; actors];
    for &node in &computing {
        let actor = graph.nodes.actor[node as usize] as usize;
        let start = outcome.start_ps[node as usize];
        if start > upto[actor] {
            blame.wait(
                graph.deps.get(node as usize).to_vec(),
                upto[actor],
                start,
                actor,
            );
        }
        upto[actor] = upto[actor].max(outcome.end_ps[node as usize]);
    }
    let mut last: Vec<Vec<u32>> = vec![Vec::new(); actors];
    for node in 0..nodes {
        let actor = graph.nodes.actor[node] as usize;
        if outcome.end_ps[node] > upto[actor] && !is_sent(graph, node) {
            last[actor].push(narrow(node));
        }
    }
    for (actor, waited) in last.into_iter().enumerate() {
        let end = waited
            .iter()
            .map(|&node| outcome.end_ps[node as usize])
            .max();
        blame.wait(waited, upto[actor], end.unwrap_or(upto[actor]), actor);
    }
    blame.out
}

/// Returns whether a node is one that sends a message, which another one receives.
fn is_sent(graph: &Graph, node: usize) -> bool {
    let call = graph.nodes.call[node];
    call != NONE && {
        let starters = graph.calls.starters(call as usize);
        starters.len() < graph.calls.members(call as usize).len()
            && starters.contains(&narrow(node))
    }
}

struct Blame<'a> {
    graph: &'a Graph,
    outcome: &'a Outcome,
    out: Exposure,
    /// What is still to be told: those waited for, from when, until when.
    todo: Vec<(Vec<u32>, u64, u64)>,
}

impl Blame<'_> {
    fn computes(&self, node: u32) -> bool {
        let at = node as usize;
        self.graph.nodes.call[at] == NONE && self.graph.nodes.engine[at] == Engine::Compute as u8
    }

    /// An actor idled from `low` to `high` and then went on, having waited for some nodes.
    fn wait(&mut self, nodes: Vec<u32>, low: u64, high: u64, actor: usize) {
        self.todo.push((nodes, low, high));
        while let Some((mut nodes, low, high)) = self.todo.pop() {
            nodes.retain(|&node| self.outcome.end_ps[node as usize] > low);
            nodes.sort_unstable_by_key(|&node| (self.outcome.end_ps[node as usize], node));
            let mut from = low;
            for node in nodes {
                let end = self.outcome.end_ps[node as usize].min(high);
                if end > from {
                    self.tell(node, from, end, actor);
                    from = end;
                }
            }
            self.out.rest_ps[actor] += high - from;
        }
    }

    /// The time from `low` to `high` was spent waiting for a node that was under way at the end of it.
    fn tell(&mut self, node: u32, low: u64, high: u64, actor: usize) {
        let at = node as usize;
        let ready = self.outcome.start_ps[at].clamp(low, high);
        if ready > low {
            self.todo
                .push((self.graph.deps.get(at).to_vec(), low, ready));
        }
        let call = self.graph.nodes.call[at];
        if call == NONE {
            // Of another actor's computation, or beside this one's.
            let foreign = self.graph.nodes.actor[at] as usize != actor;
            let of = if foreign || !self.computes(node) {
                high - ready
            } else {
                0
            };
            self.out.waited_ps[at] += of;
            self.out.rest_ps[actor] += high - ready - of;
            return;
        }
        let began = self.outcome.call_start_ps[call as usize].clamp(ready, high);
        self.out.waited_ps[at] += began - ready;
        self.out.exposed_ps[at] += high - began;
    }
}
