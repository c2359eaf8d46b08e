//! What is told of idle time, by hand.

use super::*;
use crate::id::narrow;

/// Another member of the last call, which all of its members must be ready for.
fn join(graph: &mut Graph, actor: u32, deps: &[u32]) {
    let number = narrow(graph.nodes.actor.len());
    let call = graph.calls.len() - 1;
    graph.nodes.actor.push(actor);
    graph.nodes.engine.push(0);
    graph.nodes.time_ps.push(0);
    graph.nodes.call.push(narrow(call));
    graph.deps.of.extend(deps);
    graph.deps.first.push(narrow(graph.deps.of.len()));
    graph.calls.starters[call] += 1;
    graph.calls.members.push(number);
    graph.calls.first[call + 1] += 1;
}

fn actors(count: u32) -> Graph {
    let mut graph = chain(&[]);
    graph.actors = count;
    graph.station = (0..count).collect();
    graph
}

fn told(graph: &Graph, shapes: &[Shape]) -> Exposure {
    exposed(graph, &finish(graph, shapes))
}

#[test]
fn a_call_counts_from_when_it_began() {
    let mut graph = actors(2);
    add(&mut graph, 0, Ok(10), &[]);
    add(&mut graph, 1, Ok(50), &[]);
    add(&mut graph, 0, Err(0), &[0]);
    join(&mut graph, 1, &[1]);
    add(&mut graph, 0, Ok(5), &[2]);
    let told = told(&graph, &[Shape::timed(100, 0).unwrap()]);
    assert_eq!(told.waited_ps, [0, 0, 40, 0, 0]);
    assert_eq!(told.exposed_ps, [0, 0, 100, 100, 0]);
    assert_eq!(told.rest_ps, [0, 0]);
}

#[test]
fn what_was_waited_for_before_counts_too() {
    let graph = chain(&[Ok(10), Err(0), Err(1), Ok(5)]);
    let shapes = [100, 30].map(|time| Shape::timed(time, 0).unwrap());
    let told = told(&graph, &shapes);
    assert_eq!(told.exposed_ps, [0, 100, 30, 0]);
    assert_eq!((told.waited_ps, told.rest_ps), (vec![0; 4], vec![0]));
}

#[test]
fn of_several_the_one_that_ends_next_counts() {
    let mut graph = chain(&[Ok(10)]);
    add(&mut graph, 0, Err(0), &[0]);
    add(&mut graph, 0, Err(1), &[0]);
    add(&mut graph, 0, Ok(5), &[1, 2]);
    let shapes = [(100, 0), (30, 1)].map(|(time, server)| Shape::timed(time, server).unwrap());
    assert_eq!(told(&graph, &shapes).exposed_ps, [0, 70, 30, 0]);
}

#[test]
fn computation_of_another_actor_is_waited_for() {
    let mut graph = actors(2);
    add(&mut graph, 1, Ok(50), &[]);
    add(&mut graph, 0, Ok(5), &[0]);
    let told = told(&graph, &[]);
    assert_eq!(told.waited_ps, [50, 0]);
    assert_eq!(told.rest_ps, [0, 0]);
}

#[test]
fn actors_that_share_a_station_are_served_once() {
    let mut graph = actors(2);
    graph.station = vec![0, 0];
    add(&mut graph, 0, Err(0), &[]);
    join(&mut graph, 1, &[]);
    let outcome = finish(&graph, &[Shape::timed(100, 0).unwrap()]);
    assert_eq!(outcome.end_ps, [100, 100]);
}
