//! Algorithms on networks that state their nodes: right on any, and what rings they take.

use super::*;
use crate::simulate::{SimulateOptions, simulate};
use crate::topology::build::{self, Boxes, Rail};
use crate::units::Seed;
use crate::verify::verify;

const OF_NODES: [Algorithm; 2] = [Algorithm::Hierarchical, Algorithm::MultiRing];

/// Nodes of NPUs around switches, with a NIC or more each, all at one switch or two; some links are gone.
pub(super) fn random(seed: &mut Seed, even: bool) -> Topology {
    let count = 1 + seed.below(5);
    let alike = 1 + seed.below(4);
    let sizes: Vec<usize> = (0..count)
        .map(|_| match even {
            true => alike,
            false => 1 + seed.below(4),
        })
        .collect();
    let npus: usize = sizes.iter().sum();
    let mut builder = TopologyBuilder::new("nodes");
    builder.npus(npus.max(2));
    let spines: Vec<_> = (0..1 + seed.below(2))
        .map(|i| builder.switch(format!("spine{i}"), None))
        .collect();
    let mut groups = Vec::new();
    let mut first = 0;
    for (node, &size) in sizes.iter().enumerate() {
        let inner = builder.switch(format!("inner{node}"), None);
        let members: Vec<NpuId> = (first..first + size).map(NpuId::from).collect();
        for npu in &members {
            builder.both_ways(npu.device(), inner, gigabyte(), latency());
        }
        for nic in 0..1 + seed.below(3) {
            let port = builder.switch(format!("nic{node}_{nic}"), None);
            builder.both_ways(inner, port, gigabyte(), latency());
            for (i, &spine) in spines.iter().enumerate() {
                if i == 0 && nic == 0 || seed.below(3) > 0 {
                    builder.both_ways(port, spine, gigabyte(), latency());
                }
            }
        }
        groups.push(members);
        first += size;
    }
    if npus == 1 {
        builder.both_ways(NpuId(0).device(), NpuId(1).device(), gigabyte(), latency());
        groups.push(vec![NpuId(1)]);
    }
    // The order of nodes, and within some, is not that of the numbers.
    groups.rotate_left(seed.below(count));
    groups[0].reverse();
    builder.finish().unwrap().with_groups(groups).unwrap()
}

#[test]
fn every_kind_on_random_nodes() {
    let mut seed = Seed(7);
    for round in 0..60 {
        let topology = random(&mut seed, round % 2 == 0);
        for algorithm in OF_NODES {
            for &kind in algorithm.kinds() {
                for chunks in 1..=2 {
                    let all = among_all(kind, &topology, 100_000);
                    match check_applicable(&topology, &all, algorithm) {
                        Ok(()) => _ = judged(&topology, &all, algorithm, chunks),
                        Err(error) => {
                            let error = error.to_string();
                            assert!(algorithm == Algorithm::Hierarchical, "{error}");
                            assert!(error.contains("are unlike: the first has"), "{error}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn nodes_of_npus_that_are_linked_directly() {
    let torus = build::torus(&[3, 4], gigabyte(), latency()).unwrap();
    let runs = (0..4).map(|i| (3 * i..3 * i + 3).map(NpuId).collect());
    let grouped = torus.with_groups(runs.collect()).unwrap();
    for algorithm in OF_NODES {
        for &kind in algorithm.kinds() {
            judged(&grouped, &among_all(kind, &grouped, 10_000), algorithm, 2);
        }
    }
}

#[test]
fn a_ring_for_each_way_out_of_a_node() {
    let rail = Rail {
        nodes: 4,
        npus: 4,
        spines: 0,
        node_bandwidth: gigabyte(),
        node_latency: latency(),
        bandwidth: gigabyte(),
        latency: latency(),
    };
    let lanes = |topology: &Topology| multi_ring::lanes(topology);
    assert_eq!(lanes(&rail.build().unwrap()), 2 * 4);
    let boxes = Boxes {
        nodes: 4,
        npus: 4,
        nics: 2,
        node_bandwidth: gigabyte(),
        node_latency: latency(),
        bandwidth: gigabyte(),
        latency: latency(),
    };
    let broken = boxes.build().unwrap();
    assert_eq!(lanes(&broken), 2 * 2);
    let gone = broken.device_by_name("nic1_0").unwrap();
    assert_eq!(lanes(&broken.without(&[gone], &[]).unwrap()), 2 * 2);
    let many = Rail { npus: 40, ..rail };
    assert_eq!(lanes(&many.build().unwrap()), 2 * 16);
}

#[test]
fn without_nodes_there_is_nothing_to_run_on() {
    let plain = fully_connected(4);
    let all = among_all(AllReduce, &plain, 100);
    for algorithm in OF_NODES {
        let error = check_applicable(&plain, &all, algorithm).expect_err("no nodes");
        assert!(error.to_string().contains("say by groups"), "{error}");
    }
    let some = Collective::new(AllReduce, vec![NpuId(0), NpuId(1)], 100, None).unwrap();
    let halves = vec![vec![NpuId(0), NpuId(1)], vec![NpuId(2), NpuId(3)]];
    let grouped = plain.with_groups(halves).unwrap();
    for algorithm in OF_NODES {
        let error = check_applicable(&grouped, &some, algorithm).expect_err("not all");
        assert!(error.to_string().contains("needs all NPUs"), "{error}");
    }
}

#[test]
fn parts_over_all_nics_from_any_root_among_any_npus() {
    let mut seed = Seed(23);
    let (mut made, mut refused) = (0, 0);
    for round in 0..120 {
        let topology = random(&mut seed, round % 3 > 0);
        let mut npus: Vec<NpuId> = topology.npus().collect();
        if round % 4 == 0 {
            npus.retain(|_| seed.below(3) > 0);
        }
        let turn = round % npus.len().max(1);
        npus.rotate_left(turn);
        let Ok(broadcast) = Collective::new(Broadcast, npus, 100_000, Some(Rank(0))) else {
            continue;
        };
        let reduce = Collective::new(Reduce, broadcast.npus().to_vec(), 100_000, Some(Rank(0)));
        for collective in [broadcast, reduce.unwrap()] {
            match check_applicable(&topology, &collective, Algorithm::NodeGroups) {
                Ok(()) => {
                    made += 1;
                    for chunks in [1, 2, 5] {
                        judged(&topology, &collective, Algorithm::NodeGroups, chunks);
                    }
                }
                Err(error) => {
                    refused += 1;
                    let error = error.to_string();
                    let is_known =
                        error.contains("in one node") || error.contains("as many in each");
                    assert!(is_known, "{error}");
                }
            }
        }
    }
    assert!(made > 60 && refused > 20, "{made} {refused}");
    let plain = fully_connected(4);
    let all = Collective::new(Reduce, plain.npus().collect(), 100, Some(Rank(1))).unwrap();
    let error = check_applicable(&plain, &all, Algorithm::NodeGroups).expect_err("no nodes");
    assert!(error.to_string().contains("say by groups"), "{error}");
}

#[test]
fn a_reduce_takes_as_long_as_the_broadcast_where_links_are_alike_both_ways() {
    let rail = Rail {
        nodes: 4,
        npus: 4,
        spines: 0,
        node_bandwidth: gigabyte(),
        node_latency: latency(),
        bandwidth: gigabyte(),
        latency: latency(),
    };
    let rail = Arc::new(rail.build().unwrap());
    for chunks in [1, 4, 16] {
        let times = [Broadcast, Reduce].map(|kind| {
            let collective = among_all(kind, &rail, 1_000_000);
            let options = PlanOptions {
                chunks: Some(chunks),
                routing: Routing::Single,
                ..PlanOptions::new(Algorithm::NodeGroups)
            };
            let plan = plan(&rail, &collective, &options, &mut Silent).unwrap();
            let proof = verify(Arc::new(plan), Arc::clone(&rail), &mut Silent).unwrap();
            simulate(&proof, &SimulateOptions::default(), &mut Silent)
                .unwrap()
                .time
        });
        assert_eq!(times[0], times[1], "{chunks}");
    }
}
