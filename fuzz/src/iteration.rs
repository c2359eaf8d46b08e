//! Graphs of computation and calls, as columns from anywhere, on shapes of any kind.

use hocket_core::collective::CollectiveKind;
use hocket_core::iteration::{
    Calls, Deps, Engine, Graph, GraphError, Nodes, Order, Shape, exposed, run as run_graph,
};
use hocket_core::multirail::{Model, Policy, Rail, Schedule, themis};
use hocket_core::topology::{LatencyModel, Switching, build};

use super::draw::{Draw, Patience};
use super::network;
use super::runs::one_line;

/// Runs a graph, and says what of it kept actors from computing.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let shapes: Vec<Shape> = (0..1 + draw.below(3))
        .filter_map(|_| shape(&mut draw))
        .collect();
    let mut graph = graph(&mut draw, shapes.len());
    for _ in 0..draw.below(3) {
        change(&mut graph, &mut draw);
    }
    let order = draw.one_of(&[Order::Fifo, Order::Lifo]);
    match run_graph(&graph, &shapes, order, &mut Patience(1_000)) {
        Ok(outcome) => {
            assert_eq!(outcome.start_ps.len(), graph.nodes.actor.len());
            assert_eq!(
                outcome.end_ps.iter().max().copied().unwrap_or(0),
                outcome.finish_ps
            );
            exposed(&graph, &outcome);
        }
        Err(error) => one_line(&error.to_string()),
    }
}

/// What a call takes: a known time, an all-to-all, a message or a schedule.
fn shape(draw: &mut Draw<'_>) -> Option<Shape> {
    if draw.yes() {
        return made(Shape::timed(draw.size(), draw.near(4) as u16));
    }
    let rails = Rail::of(&build::product(&network::tried(draw)).ok()?);
    let model = Model {
        switching: draw.one_of(&[Switching::CutThrough, Switching::StoreAndForward]),
        latency: draw.one_of(&[LatencyModel::Overlapped, LatencyModel::Occupying]),
    };
    let first: Vec<u16> = rails.iter().map(|_| draw.near(8) as u16).collect();
    let bytes = draw.ample();
    match draw.below(3) {
        0 => made(Shape::all_to_all(
            &rails,
            bytes,
            draw.below(9),
            model,
            &first,
        )),
        1 => {
            let ways: Vec<u32> = rails.iter().map(|_| draw.near(4)).collect();
            made(Shape::message(&rails, &ways, bytes, model, &first))
        }
        _ => {
            let kind = draw.one_of(&[CollectiveKind::AllReduce, CollectiveKind::AllGather]);
            let lanes = themis(&rails, kind, bytes, 1 + draw.below(4));
            let policy = draw.one_of(&[Policy::Fifo, Policy::SmallestFirst]);
            let schedule = Schedule::of_lanes(kind, rails, lanes, policy, model).ok()?;
            made(Shape::of_schedule(&schedule, &first))
        }
    }
}

fn made(shape: Result<Shape, GraphError>) -> Option<Shape> {
    shape.map_err(|error| one_line(&error.to_string())).ok()
}

fn graph(draw: &mut Draw<'_>, shapes: usize) -> Graph {
    let actors = 1 + draw.below(4) as u32;
    let mut graph = Graph {
        actors,
        station: (0..actors).map(|_| draw.near(actors as usize)).collect(),
        ..Graph::default()
    };
    graph.deps.first.push(0);
    graph.calls.first.push(0);
    let calls = match shapes {
        0 => 0,
        _ => draw.below(5) as u32,
    };
    let mut members = vec![Vec::new(); calls as usize];
    for node in 0..draw.below(24) as u32 {
        let call = match draw.near(calls as usize + 2) {
            call if call < calls => call,
            _ => u32::MAX,
        };
        add_node(&mut graph.nodes, draw, actors, call);
        if call != u32::MAX {
            members[call as usize].push(node);
        }
        let before = 0..if node > 0 { draw.below(3) } else { 0 };
        graph
            .deps
            .of
            .extend(before.map(|_| draw.near(node as usize)));
        graph.deps.first.push(graph.deps.of.len() as u32);
    }
    for members in members {
        add_call(&mut graph.calls, draw, shapes, &members);
    }
    graph
}

fn add_node(nodes: &mut Nodes, draw: &mut Draw<'_>, actors: u32, call: u32) {
    const ENGINES: [Engine; 3] = [Engine::Compute, Engine::Beside, Engine::Nothing];
    nodes.actor.push(draw.near(actors as usize));
    nodes.engine.push(draw.one_of(&ENGINES) as u8);
    nodes
        .time_ps
        .push(if call == u32::MAX { draw.size() } else { 0 });
    nodes.call.push(call);
}

fn add_call(calls: &mut Calls, draw: &mut Draw<'_>, shapes: usize, members: &[u32]) {
    calls.shape.push(draw.near(shapes));
    calls.priority.push(draw.near(3));
    calls
        .starters
        .push(1 + draw.near(members.len()).min(1 << 20));
    calls.members.extend(members);
    calls.first.push(calls.members.len() as u32);
}

/// Another number somewhere.
fn change(graph: &mut Graph, draw: &mut Draw<'_>) {
    let Graph {
        station,
        nodes,
        deps: Deps { first, of },
        calls,
        ..
    } = graph;
    let column = match draw.below(9) {
        0 => station,
        1 => &mut nodes.actor,
        2 => &mut nodes.call,
        3 => first,
        4 => of,
        5 => &mut calls.shape,
        6 => &mut calls.starters,
        7 => &mut calls.first,
        _ => &mut calls.members,
    };
    let place = draw.below(32);
    match column.get_mut(place) {
        Some(value) => *value = draw.near(8),
        None => drop(column.pop()),
    }
}
