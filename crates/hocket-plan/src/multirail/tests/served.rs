//! Dimension fidelity against the oracle, and what holds of any run.

use proptest::prelude::*;

use super::dimension::{Operation, Port};
use super::oracle::{Dim, Oracle};
use super::*;
use crate::id::fit;
use crate::topology::{LatencyModel, Switching};
use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
use DimensionKind::{FullyConnected, Ring, Switch};

fn dims() -> impl Strategy<Value = Vec<Dim>> {
    // Sizes and, by hand, the blocks in each step of a reduce-scatter.
    let shapes = prop_oneof![
        Just((Ring, 2, vec![1])),
        Just((Ring, 3, vec![1, 1])),
        Just((Ring, 4, vec![1, 1, 1])),
        Just((Ring, 5, vec![1, 1, 1, 1])),
        Just((Switch, 2, vec![1])),
        // Halves of two and one: two blocks come to the one, then one each way.
        Just((Switch, 3, vec![2, 1])),
        Just((Switch, 4, vec![2, 1])),
        Just((Switch, 8, vec![4, 2, 1])),
        Just((FullyConnected, 2, vec![1])),
        Just((FullyConnected, 3, vec![2])),
        Just((FullyConnected, 6, vec![5])),
    ];
    let per_byte = prop_oneof![Just(10u64), Just(20), Just(40), Just(100), Just(200)];
    let latency = prop_oneof![Just(0u64), Just(500), 0u64..100_000];
    let one = (shapes, per_byte, latency, 0..4).prop_map(|(shape, per_byte, link_ps, offload)| {
        let (kind, size, steps) = shape;
        let offload = kind == Switch && offload == 0;
        Dim {
            kind,
            size,
            per_byte,
            link_ps,
            hops: if kind == Switch { 2 } else { 1 },
            offload,
            steps: if offload { vec![size] } else { steps },
        }
    });
    proptest::collection::vec(one, 1..4)
}

/// Lanes of random sizes and orders, reduce-scatter and all-gather apart.
fn lanes(dims: &[Dim], kind: CollectiveKind, drawn: &[(u64, usize, usize)]) -> Vec<Lane> {
    let npus: u64 = dims.iter().map(|dim| dim.size).product();
    let orders = orders(fit(dims.len()));
    let order = |i: usize, is_none: bool| match is_none {
        true => Vec::new(),
        false => orders[i % orders.len()].clone(),
    };
    let lane = |&(units, sums, copies): &(u64, usize, usize)| Lane {
        bytes: 2 * npus * units,
        reduce_scatter: order(sums, kind == AllGather),
        all_gather: order(copies, kind == ReduceScatter),
    };
    drawn.iter().map(lane).collect()
}

fn kinds() -> impl Strategy<Value = CollectiveKind> {
    prop_oneof![Just(AllReduce), Just(ReduceScatter), Just(AllGather)]
}

fn models() -> impl Strategy<Value = Model> {
    use LatencyModel::{Occupying, Overlapped};
    use Switching::{CutThrough, StoreAndForward};
    let switching = prop_oneof![Just(CutThrough), Just(StoreAndForward)];
    let latency = prop_oneof![Just(Overlapped), Just(Occupying)];
    (switching, latency).prop_map(|(switching, latency)| Model { switching, latency })
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn simulation_is_the_obvious_one(
        dims in dims(),
        kind in kinds(),
        drawn in proptest::collection::vec((0u64..60, 0usize..6, 0usize..6), 1..12),
        parts in 1usize..3,
        policy in prop_oneof![Just(Policy::Fifo), Just(Policy::SmallestFirst)],
        model in models(),
    ) {
        let dimensions: Vec<Dimension> = dims.iter().map(Dim::dimension).collect();
        let rails = rails(&dimensions);
        let lanes = lanes(&dims, kind, &drawn);
        let found = simulate(&rails, &lanes, parts, policy, model);
        let oracle = Oracle::new(&dims, &lanes, parts, model);
        let mut work = vec![0; oracle.servers.len()];
        for task in &oracle.tasks {
            let latency = match model.latency {
                LatencyModel::Overlapped => 0,
                LatencyModel::Occupying => {
                    oracle.servers[task.server].link_ps * task.messages.iter().sum::<u64>()
                }
            };
            work[task.server] += task.times.iter().sum::<u64>() + latency;
        }
        let stages = oracle.stages;
        let (expected, services) = oracle.run(policy);
        prop_assert_eq!(&found, &expected);

        // A lane is in one place at a time, and nothing is lost.
        for task in 0..found.start.len() {
            prop_assert!(found.start[task] <= found.end[task]);
            if !task.is_multiple_of(stages) {
                prop_assert!(found.end[task - 1] <= found.start[task]);
            }
        }
        prop_assert_eq!(found.finish, found.end.iter().copied().max().unwrap());
        // Each server does all of its work, one step at a time.
        let mut busy = vec![0; work.len()];
        let mut until = vec![0; work.len()];
        for (server, start, time) in services {
            prop_assert!(until[server] <= start);
            until[server] = start + time;
            busy[server] += time;
        }
        prop_assert_eq!(busy, work);
    }

    #[test]
    fn a_schedule_run_again_is_the_same(
        dims in dims(),
        kind in kinds(),
        drawn in proptest::collection::vec((0u64..60, 0usize..6, 0usize..6), 1..12),
        policy in prop_oneof![Just(Policy::Fifo), Just(Policy::SmallestFirst)],
        model in models(),
        other in models(),
    ) {
        let dimensions: Vec<Dimension> = dims.iter().map(Dim::dimension).collect();
        let lanes = lanes(&dims, kind, &drawn);
        let schedule = Schedule::new(kind, rails(&dimensions), lanes, policy, model);
        prop_assert_eq!(schedule.simulate(model), schedule.timeline.clone());
        // In another model the order is kept, and nobody begins before what is needed has come.
        let again = schedule.simulate(other);
        prop_assert_eq!(&again.served, &schedule.timeline.served);
        for task in 0..again.start.len() {
            if !task.is_multiple_of(schedule.stages()) {
                prop_assert!(again.end[task - 1] <= again.start[task]);
            }
        }
    }
}

/// One lane of an all-reduce, alone: its stages one after the other.
#[test]
fn a_lane_alone_takes_the_sum_of_its_steps() {
    let rails = rails(&[
        dimension(Ring, 4, 1_000_000_000, 1_000),
        dimension(Switch, 8, 1_000_000_000, 2_000),
    ]);
    let lanes = fixed_order(&rails, AllReduce, 32_000, 1);
    let run = |parts, model| simulate(&rails, &lanes, parts, Policy::Fifo, model).finish;
    // 2 (3 x (4 us + 1 ns) + 8000 B x 7/8 at 1 GB/s + 3 x 4 ns); a byte takes 500 ps on the ring.
    let once = 2 * (3 * (4_000_000 + 1_000) + 7_000_000 + 3 * 4_000);
    assert_eq!(run(1, Model::default()), once);
    let stored = Model {
        switching: Switching::StoreAndForward,
        ..Model::default()
    };
    assert_eq!(run(1, stored), once + 2 * 7_000_000);
}

/// Messages one after the other over some links that store and forward: each link by itself.
fn stored(times: &[u64], links: usize, held: u64) -> Vec<u64> {
    let mut ready = vec![0; times.len()];
    for _ in 0..links {
        let mut free = 0;
        for (ready, &time) in ready.iter_mut().zip(times) {
            *ready = free.max(*ready) + time;
            free = *ready + held;
        }
    }
    ready
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn messages_over_many_links_queue_at_each(
        times in proptest::collection::vec(1u64..1000, 1..12),
        links in 1usize..6,
        latency in 0u64..500,
        occupying in any::<bool>(),
    ) {
        let hops = links as u64;
        let row = |&time: &u64| vec![Operation { server: 0, held: 1, steps: vec![time] }];
        let rows: Vec<_> = times.iter().map(row).collect();
        let tasks = Tasks::of_operations(vec![(hops * latency, hops)], &rows);
        let model = Model {
            switching: Switching::StoreAndForward,
            latency: if occupying { LatencyModel::Occupying } else { LatencyModel::Overlapped },
        };
        let mut port = Port::default();
        let sent = |task| {
            let now = port.free;
            tasks.send(task, 0, now, model, &mut port)
        };
        let found: Vec<u64> = (0..times.len()).map(sent).collect();
        let expected = stored(&times, links, if occupying { latency } else { 0 });
        let expected: Vec<u64> = expected.iter().map(|out| out + hops * latency).collect();
        prop_assert_eq!(found, expected);
    }
}
