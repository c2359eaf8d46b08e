use proptest::prelude::*;

use super::graph::NONE;
use super::station::{Call, Station};
use super::*;
use crate::collective::CollectiveKind;
use crate::id::{fit, narrow};
use crate::multirail::{Model, Policy, Rail, Schedule, fixed_order, themis};
use crate::progress::{Progress, Silent};
use crate::topology::{Dimension, DimensionKind, Switching, Topology, build};
use crate::units::{Bandwidth, Time};

mod slow;
mod told;

fn network(sizes: &[(DimensionKind, u32, u64, u64)]) -> Topology {
    let dimensions = sizes
        .iter()
        .map(|&(kind, size, gigabytes, nanoseconds)| Dimension {
            kind,
            size,
            bandwidth: Bandwidth::from_bytes_per_second(gigabytes * 1_000_000_000).unwrap(),
            latency: Time::from_ns(nanoseconds),
            offload: false,
        });
    build::product(&dimensions.collect::<Vec<_>>()).unwrap()
}

fn all_reduce(rails: &[Rail], bytes: u64, chunks: usize, balanced: bool) -> Schedule {
    let kind = CollectiveKind::AllReduce;
    let (lanes, policy) = match balanced {
        true => (themis(rails, kind, bytes, chunks), Policy::SmallestFirst),
        false => (fixed_order(rails, kind, bytes, chunks), Policy::Fifo),
    };
    Schedule::new(kind, rails.to_vec(), lanes, policy, Model::default())
}

fn first(rails: &[Rail]) -> Vec<u16> {
    (0..fit(rails.len())).map(|r| 2 * r).collect()
}

/// A graph of one actor, its nodes in a chain: times, or calls of a shape.
fn chain(nodes: &[Result<u64, u32>]) -> Graph {
    let mut graph = Graph {
        actors: 1,
        station: vec![0],
        ..Graph::default()
    };
    graph.deps.first.push(0);
    graph.calls.first.push(0);
    for (i, node) in nodes.iter().enumerate() {
        let dep = (i > 0).then(|| narrow(i) - 1);
        add(&mut graph, 0, *node, &dep.into_iter().collect::<Vec<_>>());
    }
    graph
}

fn add(graph: &mut Graph, actor: u32, node: Result<u64, u32>, deps: &[u32]) {
    let number = narrow(graph.nodes.actor.len());
    graph.nodes.actor.push(actor);
    graph.nodes.engine.push(0);
    graph.nodes.time_ps.push(node.unwrap_or(0));
    graph.deps.of.extend(deps);
    graph.deps.first.push(narrow(graph.deps.of.len()));
    match node {
        Ok(_) => graph.nodes.call.push(NONE),
        Err(shape) => {
            graph.nodes.call.push(narrow(graph.calls.len()));
            graph.calls.shape.push(shape);
            graph.calls.priority.push(0);
            graph.calls.starters.push(1);
            graph.calls.members.push(number);
            graph.calls.first.push(narrow(graph.calls.members.len()));
        }
    }
}

fn finish(graph: &Graph, shapes: &[Shape]) -> Outcome {
    run(graph, shapes, Order::Fifo, &mut Silent).unwrap()
}

fn kinds() -> impl Strategy<Value = DimensionKind> {
    prop_oneof![
        Just(DimensionKind::Ring),
        Just(DimensionKind::Switch),
        Just(DimensionKind::FullyConnected),
    ]
}

fn networks() -> impl Strategy<Value = Topology> {
    let dimension = (kinds(), 2u32..6, 1u64..200, 0u64..2000);
    prop::collection::vec(dimension, 1..4).prop_map(|sizes| network(&sizes))
}

proptest! {
    /// A collective alone takes what its schedule was found to take.
    #[test]
    fn alone_is_as_scheduled(
        topology in networks(),
        bytes in 10_000u64..100_000_000,
        chunks in 1usize..20,
        balanced: bool,
    ) {
        let rails = Rail::of(&topology);
        let schedule = all_reduce(&rails, bytes, chunks, balanced);
        let shape = Shape::of_schedule(&schedule, &first(&rails)).unwrap();
        prop_assert_eq!(shape.lone_ps(), schedule.timeline.finish);
    }

    /// What is not overlapped adds up, and nothing is faster than its parts at full speed.
    #[test]
    fn a_chain_takes_the_sum(
        topology in networks(),
        nodes in prop::collection::vec(prop::result::maybe_ok(0u64..10_000_000, 0u32..2), 1..12),
    ) {
        let rails = Rail::of(&topology);
        let shapes = [true, false].map(|balanced| {
            Shape::of_schedule(&all_reduce(&rails, 1_000_000, 4, balanced), &first(&rails)).unwrap()
        });
        let time = |node: &Result<u64, u32>| match *node {
            Ok(time) => time,
            Err(shape) => shapes[shape as usize].lone_ps(),
        };
        let outcome = finish(&chain(&nodes), &shapes);
        prop_assert_eq!(outcome.finish_ps, nodes.iter().map(time).sum::<u64>());
    }

    /// Calls at once take no less than any server is busy, no more than one after the other; and the same
    /// as if every step had been served from the beginning.
    #[test]
    fn calls_share_servers(
        topology in networks(),
        calls in prop::collection::vec((0usize..4, 0u64..3_000_000), 1..6),
        reverse: bool,
    ) {
        let rails = Rail::of(&topology);
        let size = |i: usize| 300_000 + 700_000 * i as u64;
        let shapes: Vec<Shape> = (0..4)
            .map(|i| match i {
                3 => Shape::all_to_all(&rails, size(i), 3, Model::default(), &first(&rails)).unwrap(),
                _ => Shape::of_schedule(&all_reduce(&rails, size(i), 4, i == 1), &first(&rails)).unwrap(),
            })
            .collect();
        let mut starts = calls.clone();
        starts.sort_by_key(|&(_, start)| start);
        let rank = |i: usize| if reverse { 100 - i as u128 } else { i as u128 };
        let mut lazy = Station::default();
        let mut whole = Station::default();
        let mut ends = [Vec::new(), Vec::new()];
        let mut last = [0, 0];
        for (i, &(shape, start)) in starts.iter().enumerate() {
            let call = Call { number: narrow(i), shape: narrow(shape), rank: rank(i) };
            for (k, station) in [&mut lazy, &mut whole].into_iter().enumerate() {
                while station.next_time(&shapes) < start {
                    last[k] = station.next_time(&shapes);
                    ends[k].extend(station.step(&shapes).map(|call| (call, last[k])));
                }
            }
            lazy.start(call, start, &shapes);
            whole.admit(call, start, &shapes);
        }
        for (k, station) in [&mut lazy, &mut whole].into_iter().enumerate() {
            while station.next_time(&shapes) < u64::MAX {
                last[k] = station.next_time(&shapes);
                ends[k].extend(station.step(&shapes).map(|call| (call, last[k])));
            }
        }
        prop_assert_eq!(&ends[0], &ends[1]);
        prop_assert_eq!(ends[0].len(), calls.len());
        let finish = ends[0].iter().map(|&(_, end)| end).max().unwrap();
        let mut busy = [0u64; 8];
        for &(shape, _) in &calls {
            for (server, time) in shapes[shape].busy_ps() {
                busy[usize::from(server)] += time;
            }
        }
        prop_assert!(finish >= *busy.iter().max().unwrap());
        let alone: u64 = calls.iter().map(|&(shape, _)| shapes[shape].lone_ps()).sum();
        // Not always at most `alone` after the last start: what waits less for one may wait more for another.
        prop_assert!(finish <= starts.last().unwrap().1 + 2 * alone);
    }

    /// Graphs of several actors against a slow simulation that looks at everything at every moment; and
    /// every moment of every actor is explained.
    #[test]
    fn runs_as_a_slow_simulation_does(graph in slow::graphs(), lifo: bool) {
        let shapes: Vec<Shape> =
            slow::TIMES.iter().map(|&time| Shape::timed(time, 0).unwrap()).collect();
        let order = if lifo { Order::Lifo } else { Order::Fifo };
        let outcome = run(&graph, &shapes, order, &mut Silent).unwrap();
        prop_assert_eq!(&outcome, &slow::run(&graph, order));
        let exposure = exposed(&graph, &outcome);
        for actor in 0..graph.actors {
            let mut explained = exposure.rest_ps[actor as usize];
            let mut end = 0;
            for node in 0..graph.nodes.actor.len() {
                if graph.nodes.actor[node] == actor {
                    let call = graph.nodes.call[node];
                    let sent = call != NONE && {
                        let starters = graph.calls.starters(call as usize);
                        starters.len() == 1
                            && starters[0] == narrow(node)
                            && graph.calls.members(call as usize).len() > 1
                    };
                    if !sent {
                        end = end.max(outcome.end_ps[node]);
                    }
                    explained += exposure.exposed_ps[node] + exposure.waited_ps[node];
                    if graph.nodes.call[node] == NONE && graph.nodes.engine[node] == 0 {
                        explained += graph.nodes.time_ps[node];
                    }
                }
            }
            prop_assert_eq!(explained, end);
        }
    }
}

#[test]
fn an_exchange_sends_what_pairs_add_up_to() {
    // 8 on a ring of 2 x 10 GB/s: 1 MB to all, n^2/8 links on the way over n; 4 steps.
    let ring = Rail::of(&network(&[(DimensionKind::Ring, 8, 10, 0)]));
    let shape = Shape::all_to_all(&ring, 8_000_000, 1, Model::default(), &[0]).unwrap();
    assert_eq!(shape.lone_ps(), 800_000_000);
    // Pairs counted one by one: the busiest link of a ring of 7 and of a line of 4.
    let ring = Rail::of(&network(&[(DimensionKind::Ring, 7, 10, 0)]));
    let shape = Shape::all_to_all(&ring, 7_000_000, 1, Model::default(), &[0]).unwrap();
    assert_eq!(shape.lone_ps(), (1 + 2 + 3) * 100_000_000);
    let line = Rail::of(&network(&[(DimensionKind::Line, 4, 10, 0)]));
    let shape = Shape::all_to_all(&line, 4_000_000, 1, Model::default(), &[0]).unwrap();
    // Each of 6 steps rounds up.
    assert!((400_000_000..400_000_006).contains(&shape.lone_ps()));
    // Through a switch: 7/8 of it, and the latency of two links.
    let switch = Rail::of(&network(&[(DimensionKind::Switch, 8, 10, 500)]));
    let shape = Shape::all_to_all(&switch, 8_000_000, 1, Model::default(), &[0]).unwrap();
    assert_eq!(shape.lone_ps(), 700_000_000 + 1_000_000);
}

#[test]
fn a_message_takes_one_link() {
    let rails = Rail::of(&network(&[
        (DimensionKind::FullyConnected, 5, 10, 100),
        (DimensionKind::Ring, 8, 20, 1000),
    ]));
    let shape = Shape::message(&rails, &[1, 3], 1_000_000, Model::default(), &[0, 2]).unwrap();
    assert_eq!(
        shape.lone_ps(),
        100_000_000 + 100_000 + 50_000_000 + 3 * 1_000_000
    );
}

#[test]
fn an_exchange_along_a_line_takes_a_step_for_each_link() {
    // Parts of 3 steps follow each other; nearly all of the time is latency.
    let line = Rail::of(&network(&[(DimensionKind::Line, 4, 10, 1_000_000)]));
    let shape = Shape::all_to_all(&line, 4_000_000, 1, Model::default(), &[0]).unwrap();
    let time = 3_000_000_000 + 4 * 66_666_667;
    assert!((time - 6..time + 6).contains(&shape.lone_ps()));
}

#[test]
fn chunks_of_an_exchange_begin_with_different_rails() {
    let switch = (DimensionKind::Switch, 2, 10, 0);
    let rails = Rail::of(&network(&[switch, switch]));
    let shape = Shape::all_to_all(&rails, 4_000_000, 2, Model::default(), &[0, 1]).unwrap();
    // Each of two rails carries half of 4 MB, at once.
    assert_eq!(shape.lone_ps(), 200_000_000);
}

#[test]
fn a_message_is_stored_at_each_link() {
    let rails = Rail::of(&network(&[(DimensionKind::Ring, 8, 20, 0)]));
    let model = Model {
        switching: Switching::StoreAndForward,
        ..Model::default()
    };
    let line = Rail::of(&network(&[(DimensionKind::Line, 8, 10, 100)]));
    let along = Shape::message(&line, &[3], 1_000_000, model, &[0]).unwrap();
    assert_eq!(along.lone_ps(), 3 * (100_000_000 + 100_000));
    let shape = Shape::message(&rails, &[3], 1_000_000, model, &[4]).unwrap();
    assert_eq!(shape.lone_ps(), 3 * 50_000_000);
    assert_eq!(shape.busy_ps(), [(4, 50_000_000)]);
}

#[test]
fn the_last_call_goes_first_if_asked() {
    let shapes = [Shape::timed(100, 0).unwrap()];
    let mut graph = chain(&[Ok(10)]);
    for after in [0, 0, 0] {
        add(&mut graph, 0, Err(0), &[after]);
    }
    let ends = |order| run(&graph, &shapes, order, &mut Silent).unwrap().end_ps;
    assert_eq!(ends(Order::Fifo), [10, 110, 210, 310]);
    // The first is under way when the others come.
    assert_eq!(ends(Order::Lifo), [10, 310, 210, 110]);
}

#[test]
fn wrong_graphs_are_refused() {
    let shapes = [Shape::timed(100, 0).unwrap()];
    let good = chain(&[Ok(10), Err(0), Ok(5)]);
    let refused = |change: &dyn Fn(&mut Graph)| {
        let mut graph = good.clone();
        change(&mut graph);
        run(&graph, &shapes, Order::Fifo, &mut Silent).unwrap_err()
    };
    let cases: [&dyn Fn(&mut Graph); 10] = [
        &|graph| graph.nodes.actor[1] = 1,
        &|graph| graph.nodes.engine.push(0),
        &|graph| graph.calls.shape[0] = 1,
        &|graph| graph.calls.starters[0] = 0,
        &|graph| graph.calls.members[0] = 2,
        &|graph| graph.deps.of[0] = 3,
        &|graph| graph.deps.first[1] = 2,
        &|graph| graph.station[0] = 1,
        &|graph| graph.nodes.call[2] = 0,
        &|graph| {
            graph.nodes.call[2] = 0;
            graph.calls.members.push(1);
            graph.calls.first[1] = 2;
        },
    ];
    for change in cases {
        let error = refused(change);
        assert!(
            matches!(error, GraphError::Column { .. } | GraphError::Range { .. }),
            "{error}"
        );
    }
    let stuck = refused(&|graph| graph.deps.of[0] = 2);
    assert_eq!(stuck, GraphError::Stuck { node: 1, actor: 0 });
    assert_eq!(
        refused(&|graph| graph.nodes.time_ps[0] = u64::MAX),
        GraphError::TooLong
    );
}

#[test]
fn wrong_shapes_are_refused() {
    let slow = Rail::of(&network(&[(DimensionKind::Ring, 5, 1, 100)]));
    let model = Model::default();
    assert_eq!(Shape::timed(u64::MAX, 0), Err(GraphError::TooLong));
    assert_eq!(
        Shape::all_to_all(&slow, u64::MAX, 1, model, &[0]),
        Err(GraphError::TooLong)
    );
    assert_eq!(
        Shape::message(&slow, &[1], u64::MAX, model, &[0]),
        Err(GraphError::TooLong)
    );
    let column = |made| match made {
        Err(GraphError::Range { column, .. } | GraphError::Column { column, .. }) => column,
        _ => "none",
    };
    assert_eq!(column(Shape::message(&slow, &[5], 1, model, &[0])), "ways");
    assert_eq!(column(Shape::message(&[], &[], 1, model, &[])), "rails");
    assert_eq!(column(Shape::all_to_all(&[], 1, 1, model, &[])), "rails");
    // Such a ring has two servers.
    let last = Shape::all_to_all(&slow, 1, 1, model, &[65_534]).unwrap();
    assert_eq!(last.server_count(), 65_536);
    assert_eq!(
        column(Shape::all_to_all(&slow, 1, 1, model, &[65_535])),
        "first"
    );
}

#[test]
fn stops_when_asked() {
    struct No;
    impl Progress for No {
        fn report(&mut self, _: &'static str, _: u64, _: u64) -> bool {
            false
        }
    }
    let graph = chain(&vec![Ok(1); 1 << 17]);
    let stopped = run(&graph, &[], Order::Fifo, &mut No);
    assert!(matches!(stopped, Err(GraphError::Interrupted(_))));
}

#[test]
fn what_takes_no_time_takes_none() {
    let shapes = [Shape::timed(0, 0).unwrap()];
    let outcome = finish(&chain(&[Err(0), Ok(0), Err(0), Ok(7), Err(0)]), &shapes);
    assert_eq!(outcome.end_ps, [0, 0, 0, 7, 7]);
}
