//! An obvious simulation of graphs whose calls take a known time on one server.

use proptest::prelude::*;

use super::super::graph::NONE;
use super::super::{Graph, Order, Outcome};
use crate::id::narrow;

/// Of shapes 0, 1, 2. None is 0: what follows at one moment would hang on which station is looked at first.
pub(super) const TIMES: [u64; 3] = [1_000_003, 77_777, 331];

/// Random graphs of up to three actors: dependencies on earlier nodes, collectives of all actors, messages,
/// and calls of one actor alone.
pub(super) fn graphs() -> impl Strategy<Value = Graph> {
    let node = (0u8..4, 0u32..3, 1u64..2_000_000, 0u32..3, any::<[u8; 2]>());
    (1u32..4, prop::collection::vec(node, 1..25)).prop_map(|(actors, nodes)| {
        let mut graph = Graph {
            actors,
            station: (0..actors).collect(),
            ..Graph::default()
        };
        graph.deps.first.push(0);
        graph.calls.first.push(0);
        for (kind, actor, time, shape, before) in nodes {
            let actor = actor % actors;
            match kind {
                0 => _ = push(&mut graph, actor, (time % 3) as u8, time, NONE, before),
                1 => call(&mut graph, &[actor], 1, shape, before),
                2 => {
                    let all: Vec<u32> = (0..actors).collect();
                    call(&mut graph, &all, actors, shape, before);
                }
                _ => call(&mut graph, &[actor, (actor + 1) % actors], 1, shape, before),
            }
        }
        graph
    })
}

fn call(graph: &mut Graph, actors: &[u32], starters: u32, shape: u32, before: [u8; 2]) {
    let number = narrow(graph.calls.len());
    for &actor in actors {
        let node = push(graph, actor, 2, 0, number, before);
        graph.calls.members.push(node);
    }
    graph.calls.shape.push(shape);
    graph.calls.priority.push(number % 2);
    graph.calls.starters.push(starters);
    graph.calls.first.push(narrow(graph.calls.members.len()));
}

/// Adds a node that waits for up to two of its actor's earlier ones.
fn push(graph: &mut Graph, actor: u32, engine: u8, time: u64, call: u32, before: [u8; 2]) -> u32 {
    let node = narrow(graph.nodes.actor.len());
    let own: Vec<u32> = (0..node)
        .filter(|&i| graph.nodes.actor[i as usize] == actor)
        .collect();
    let mut deps: Vec<u32> = before
        .iter()
        .filter(|&&back| usize::from(back % 8) < own.len())
        .map(|&back| own[own.len() - 1 - usize::from(back % 8)])
        .collect();
    deps.sort_unstable();
    deps.dedup();
    graph.nodes.actor.push(actor);
    graph.nodes.engine.push(engine);
    graph.nodes.time_ps.push(time);
    graph.nodes.call.push(call);
    graph.deps.of.extend(deps);
    graph.deps.first.push(narrow(graph.deps.of.len()));
    node
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Waits,
    /// May begin, or is ready for its call.
    Ready,
    Runs,
    Done,
}

/// Runs a graph.
pub(super) fn run(graph: &Graph, order: Order) -> Outcome {
    let nodes = graph.nodes.actor.len();
    let calls = graph.calls.len();
    let mut out = Outcome {
        start_ps: vec![0; nodes],
        end_ps: vec![0; nodes],
        call_start_ps: vec![0; calls],
        call_end_ps: vec![0; calls],
        finish_ps: 0,
    };
    let mut state = vec![State::Waits; nodes];
    let mut call_state = vec![State::Waits; calls];
    // Of each call, stations that are to serve it.
    let mut waits: Vec<Vec<u32>> = vec![Vec::new(); calls];
    let mut serving: Vec<Option<(usize, u64)>> = vec![None; graph.actors as usize];
    let mut now = 0;
    loop {
        // Everything that can happen now, until nothing more does.
        let mut moves = true;
        while moves {
            moves = false;
            for node in 0..nodes {
                let deps = graph.deps.get(node);
                let free = deps.iter().all(|&dep| state[dep as usize] == State::Done);
                if state[node] == State::Waits && free {
                    state[node] = State::Ready;
                    out.start_ps[node] = now;
                    moves = true;
                }
            }
            for call in 0..calls {
                let starters = graph.calls.starters(call);
                let ready = starters
                    .iter()
                    .all(|&node| state[node as usize] != State::Waits);
                if call_state[call] == State::Waits && ready {
                    call_state[call] = State::Runs;
                    out.call_start_ps[call] = now;
                    let of = |&node: &u32| graph.nodes.actor[node as usize];
                    waits[call] = starters.iter().map(of).collect();
                    moves = true;
                }
                if call_state[call] == State::Done {
                    for &node in graph.calls.members(call) {
                        if state[node as usize] == State::Ready {
                            state[node as usize] = State::Done;
                            out.end_ps[node as usize] = now;
                            moves = true;
                        }
                    }
                }
            }
            for (node, state) in state.iter_mut().enumerate() {
                let ends = out.start_ps[node] + graph.nodes.time_ps[node] <= now;
                if *state == State::Runs && ends {
                    *state = State::Done;
                    out.end_ps[node] = now;
                    moves = true;
                }
            }
            if moves {
                continue;
            }
            for node in 0..nodes {
                let (actor, engine) = (graph.nodes.actor[node], graph.nodes.engine[node]);
                let same = |i: usize| {
                    let here = graph.nodes.actor[i] == actor && graph.nodes.engine[i] == engine;
                    here && graph.nodes.call[i] == NONE && state[i] == State::Runs
                };
                let is_free = engine == 2 || !(0..nodes).any(same);
                if graph.nodes.call[node] == NONE && state[node] == State::Ready && is_free {
                    state[node] = State::Runs;
                    out.start_ps[node] = now;
                    moves = true;
                }
            }
            if moves {
                continue;
            }
            for station in 0..graph.actors {
                if serving[station as usize].is_some() {
                    continue;
                }
                let here = |&call: &usize| waits[call].contains(&station);
                let began = |call: usize| (out.call_start_ps[call] as i64, call as i64);
                let turn = |call| match order {
                    Order::Fifo => began(call),
                    Order::Lifo => (-began(call).0, -began(call).1),
                };
                let first = |&call: &usize| (graph.calls.priority[call], turn(call));
                if let Some(call) = (0..calls).filter(here).min_by_key(first) {
                    waits[call].retain(|&other| other != station);
                    let time = TIMES[graph.calls.shape[call] as usize];
                    serving[station as usize] = Some((call, now + time));
                }
            }
            for station in 0..graph.actors as usize {
                if let Some((call, end)) = serving[station]
                    && end <= now
                {
                    serving[station] = None;
                    moves = true;
                    let elsewhere = serving.iter().flatten().any(|&(other, _)| other == call);
                    if waits[call].is_empty() && !elsewhere {
                        call_state[call] = State::Done;
                        out.call_end_ps[call] = now;
                    }
                }
            }
        }
        let computing = (0..nodes).filter(|&node| state[node] == State::Runs);
        let ends = computing.map(|node| out.start_ps[node] + graph.nodes.time_ps[node]);
        let served = serving.iter().flatten().map(|&(_, end)| end);
        match ends.chain(served).min() {
            Some(next) => now = next,
            None => break,
        }
    }
    assert!(state.iter().all(|&state| state == State::Done));
    out.finish_ps = out.end_ps.iter().copied().max().unwrap_or(0);
    out
}
