//! Training graphs: many nodes one after the other, and collectives that share rails.

use criterion::{Criterion, criterion_group, criterion_main};
use hocket_core::collective::CollectiveKind;
use hocket_core::id::narrow;
use hocket_core::iteration::{Graph, Order, Shape, exposed, run};
use hocket_core::multirail::{Model, Policy, Rail, Schedule, themis};
use hocket_core::progress::Silent;
use hocket_core::topology::{Dimension, DimensionKind, build};
use hocket_core::units::{Bandwidth, Time};

/// 3D-SW_SW_SW_homo of Themis, table 2.
fn rails() -> Vec<Rail> {
    let dimension = |(size, ns)| Dimension {
        kind: DimensionKind::Switch,
        size,
        bandwidth: Bandwidth::from_bytes_per_second(100_000_000_000).expect("positive"),
        latency: Time::from_ns(ns),
        offload: false,
    };
    let dimensions = [(16, 350), (8, 350), (8, 850)].map(dimension);
    Rail::of(&build::product(&dimensions).expect("a product"))
}

/// An all-reduce of 25 MiB in 64 chunks by Themis.
fn all_reduce() -> Shape {
    let rails = rails();
    let kind = CollectiveKind::AllReduce;
    let lanes = themis(&rails, kind, 25 << 20, 64);
    let policy = Policy::SmallestFirst;
    let schedule = Schedule::new(kind, rails, lanes, policy, Model::default());
    Shape::of_schedule(&schedule, &[0, 2, 4]).expect("servers for three rails")
}

/// Actors whose nodes follow each other: computation, and every `each`-th a call of its own. Calls wait for
/// the computation before; if `apart`, nothing waits for them.
fn graph(actors: u32, nodes: u32, each: u32, apart: bool) -> Graph {
    let mut graph = Graph {
        actors,
        station: (0..actors).collect(),
        ..Graph::default()
    };
    graph.deps.first.push(0);
    graph.calls.first.push(0);
    for actor in 0..actors {
        let mut last = None;
        for i in 0..nodes {
            let node = narrow(graph.nodes.actor.len());
            let is_call = i % each == each - 1;
            graph.nodes.actor.push(actor);
            graph.nodes.engine.push(0);
            graph
                .nodes
                .time_ps
                .push(if is_call { 0 } else { 10_000_000 });
            graph.nodes.call.push(if is_call {
                narrow(graph.calls.len())
            } else {
                u32::MAX
            });
            graph.deps.of.extend(last);
            graph.deps.first.push(narrow(graph.deps.of.len()));
            if is_call {
                graph.calls.shape.push(0);
                graph.calls.priority.push(0);
                graph.calls.starters.push(1);
                graph.calls.members.push(node);
                graph.calls.first.push(narrow(graph.calls.members.len()));
            }
            if !(is_call && apart) {
                last = Some(node);
            }
        }
    }
    graph
}

fn iterations(c: &mut Criterion) {
    let mut group = c.benchmark_group("iteration");
    group.sample_size(10);
    let shapes = [all_reduce()];
    let alone = shapes[0].lone_ps();
    let chain = graph(8, 125_000, 10, false);
    let outcome = run(&chain, &shapes, Order::Fifo, &mut Silent).expect("it runs");
    assert_eq!(outcome.finish_ps, 112_500 * 10_000_000 + 12_500 * alone);
    group.bench_function("1,000,000 nodes, 100,000 calls alone", |b| {
        b.iter(|| run(&chain, &shapes, Order::Fifo, &mut Silent));
    });
    group.bench_function("1,000,000 nodes, what is exposed", |b| {
        b.iter(|| exposed(&chain, &outcome));
    });
    // Each call begins while those before are under way: 2 x 64 x 6 operations of 3 or 4 steps.
    let shared = graph(1, 2000, 10, true);
    group.bench_function("200 calls that share rails", |b| {
        b.iter(|| run(&shared, &shapes, Order::Fifo, &mut Silent));
    });
    group.finish();
}

criterion_group!(benches, iterations);
criterion_main!(benches);
