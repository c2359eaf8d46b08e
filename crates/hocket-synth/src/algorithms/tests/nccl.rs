//! NCCL's plans: right on networks of every kind, and as quick as closed forms say.

use super::*;
use crate::id::DeviceId;
use crate::simulate::{SimulateOptions, simulate};
use crate::topology::Offload;
use crate::topology::build::{self, Rail};
use crate::units::Seed;
use crate::verify::verify;

const OF_NPUS: [Algorithm; 2] = [Algorithm::NcclRing, Algorithm::NcclTree];

/// Every collective of a kind, from every tenth root.
fn all_of(kind: CollectiveKind, topology: &Topology) -> Vec<Collective> {
    let npus: Vec<NpuId> = topology.npus().collect();
    let roots: Vec<Option<Rank>> = match kind.is_rooted() {
        true => (0..npus.len())
            .step_by(3)
            .map(|rank| Some(rank.into()))
            .collect(),
        false => vec![None],
    };
    let collective = |root| Collective::new(kind, npus.clone(), 100_000, root).unwrap();
    roots.into_iter().map(collective).collect()
}

#[test]
fn every_kind_on_random_nodes_and_on_lone_ones() {
    let mut seed = Seed(11);
    let mut networks: Vec<Topology> = (0..16)
        .map(|round| super::nodes::random(&mut seed, round % 2 == 0))
        .collect();
    networks.extend((2..=9).map(fully_connected));
    networks.extend([star(20), line(5), one_way_ring(6)]);
    networks.push(build::torus(&[3, 4], gigabyte(), latency()).unwrap());
    for topology in &networks {
        for algorithm in OF_NPUS {
            for &kind in algorithm.kinds() {
                for collective in all_of(kind, topology) {
                    for chunks in [1, 3] {
                        judged(topology, &collective, algorithm, chunks);
                    }
                }
            }
        }
    }
}

/// What a plan takes.
fn time(topology: &Arc<Topology>, collective: &Collective, given: &PlanOptions) -> Time {
    let plan = plan(topology, collective, given, &mut Silent).unwrap();
    let expected = transfer_count(topology, collective, given.algorithm, given.chunks.unwrap());
    assert_eq!(plan.len() as u128, expected, "{}", given.algorithm);
    let proof = verify(Arc::new(plan), Arc::clone(topology), &mut Silent).unwrap();
    simulate(&proof, &SimulateOptions::default(), &mut Silent)
        .unwrap()
        .time
}

#[test]
fn rings_over_rails_take_each_nic_once() {
    let rail = Rail {
        nodes: 3,
        npus: 4,
        spines: 0,
        node_bandwidth: Bandwidth::from_bytes_per_second(100_000_000_000).unwrap(),
        node_latency: latency(),
        bandwidth: gigabyte(),
        latency: latency(),
    };
    let rail = Arc::new(rail.build().unwrap());
    let size = 48_000_000;
    for kind in [AllReduce, ReduceScatter, AllGather] {
        let collective = among_all(kind, &rail, size);
        let took = time(&rail, &collective, &options(Algorithm::NcclRing, 16));
        // What is summed and copied, less one block, over the NICs of a node [ps]: 4 GB/s.
        let passes = if kind == AllReduce { 2 } else { 1 };
        let least = passes * size * 11 / 12 / 4 * 1_000;
        assert!(took.as_ps() >= least, "{kind}: {took:?}");
        assert!(took.as_ps() < least * 103 / 100, "{kind}: {took:?} {least}");
    }
}

#[test]
fn a_ring_of_direct_links_fills_them_all() {
    // Of five NPUs, all joined, four cycles share no link: (n - 1) / n of the data over four links.
    let five = Arc::new(fully_connected(5));
    let collective = among_all(AllGather, &five, 20_000_000);
    let took = time(&five, &collective, &options(Algorithm::NcclRing, 1));
    assert_eq!(took.as_ps(), 4 * (1_000_000 * 1_000 + 10_000));
}

/// Nodes of NPUs around a switch that sums and multicasts, or two, NPUs of equal place joined by a rail.
fn summing(nodes: usize, npus: usize, switches: usize) -> Topology {
    let mut builder = TopologyBuilder::new("summing");
    builder.npus(nodes * npus);
    let can = Offload {
        all_reduces: false,
        ..Offload::FULL
    };
    let rails: Vec<_> = (0..npus)
        .map(|rail| builder.switch(format!("rail{rail}"), None))
        .collect();
    for node in 0..nodes {
        for switch in 0..switches {
            let hub = builder.switch(format!("hub{node}_{switch}"), None);
            builder.offload(hub, Some(can));
            for place in 0..npus {
                let npu = NpuId::from(node * npus + place).device();
                builder.both_ways(npu, hub, gigabyte(), latency());
            }
        }
        for (place, &rail) in rails.iter().enumerate() {
            let npu = NpuId::from(node * npus + place).device();
            builder.both_ways(npu, rail, gigabyte(), latency());
        }
    }
    let groups = (0..nodes).map(|node| (node * npus..(node + 1) * npus).map(NpuId::from).collect());
    let topology = builder.finish().unwrap();
    match nodes {
        1 => topology,
        _ => topology.with_groups(groups.collect()).unwrap(),
    }
}

#[test]
fn sums_of_switches_are_proved_and_send_everything_once() {
    for (nodes, npus, switches) in [(1, 4, 1), (1, 6, 4), (2, 4, 1), (3, 2, 2), (5, 3, 1)] {
        let topology = Arc::new(summing(nodes, npus, switches));
        for &kind in Algorithm::NcclNvls.kinds() {
            let collective = among_all(kind, &topology, 12_000_000);
            if nodes > 1 && kind != AllReduce {
                let refused = check_applicable(&topology, &collective, Algorithm::NcclNvls);
                let text = refused.unwrap_err().to_string();
                assert!(
                    text.contains("over several nodes it does all-reduce"),
                    "{text}"
                );
                continue;
            }
            let took = time(&topology, &collective, &options(Algorithm::NcclNvls, 200));
            if nodes == 1 && kind == AllReduce {
                let least = 12_000_000 / switches as u64 * 1_000;
                assert!(took.as_ps() >= least, "{npus} on {switches}: {took:?}");
                assert!(
                    took.as_ps() < least * 106 / 100,
                    "{npus} on {switches}: {took:?}"
                );
            }
        }
    }
}

#[test]
fn a_switch_of_several_nodes_is_refused() {
    let npus = |ids: [u32; 2]| ids.map(NpuId).to_vec();
    // The switch of two nodes, or one of two switches: all four NPUs hang on it.
    let mut of_both = TopologyBuilder::new("of both");
    of_both.npus(4);
    let hubs = [0, 1].map(|i| of_both.switch(format!("hub{i}"), None));
    for hub in hubs {
        of_both.offload(hub, Some(Offload::FULL));
        for npu in 0..4u32 {
            if hub == hubs[1] || npu < 2 {
                of_both.both_ways(NpuId(npu).device(), hub, gigabyte(), latency());
            }
        }
    }
    let of_both = of_both.finish().unwrap();
    let hub = DeviceId(8);
    let one = star(8).with_offload(hub, Some(Offload::FULL)).unwrap();
    let fours = [0, 4].map(|first| (first..first + 4).map(NpuId).collect());
    for (topology, groups) in [
        (one, fours.to_vec()),
        (of_both, vec![npus([0, 1]), npus([2, 3])]),
    ] {
        let topology = topology.with_groups(groups).unwrap();
        let all = among_all(AllReduce, &topology, 100_000);
        let text = check_applicable(&topology, &all, Algorithm::NcclNvls).unwrap_err();
        let said = "sums for nodes 0 and 1, and NCCL sums in each node by itself";
        assert!(text.to_string().contains(said), "{text}");
    }
}

#[test]
fn nodes_of_one_npu_sum_nothing() {
    let lone = summing(3, 1, 1);
    let all = among_all(AllReduce, &lone, 100_000);
    let text = check_applicable(&lone, &all, Algorithm::NcclNvls).unwrap_err();
    assert!(text.to_string().contains("a node with one NPU"), "{text}");
}

#[test]
fn without_such_switches_or_all_npus_it_says_so() {
    let plain = star(4);
    let all = among_all(AllReduce, &plain, 100);
    let text = check_applicable(&plain, &all, Algorithm::NcclNvls).unwrap_err();
    assert!(text.to_string().contains("offload"), "{text}");
    let some = Collective::new(AllReduce, vec![NpuId(0), NpuId(1)], 100, None).unwrap();
    for algorithm in OF_NPUS {
        let text = check_applicable(&plain, &some, algorithm).unwrap_err();
        assert!(text.to_string().contains("needs all NPUs"), "{text}");
    }
}
