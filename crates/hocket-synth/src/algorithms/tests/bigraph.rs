//! HDRM: free of contention in every step, on every BiGraph that it is for, and nowhere else.

use std::collections::HashSet;

use super::*;
use crate::id::{LinkId, TransferId};
use crate::topology::build::{self, Clos};
use crate::topology::shortest::RouteTree;

/// Powers of two, no fewer switches per side than NPUs per switch.
const SIZES: [(u32, u32); 10] = [
    (1, 1),
    (2, 1),
    (8, 1),
    (2, 2),
    (4, 2),
    (16, 2),
    (4, 4),
    (8, 4),
    (16, 4),
    (8, 8),
];

fn bigraph(switches: u32, npus: u32) -> Topology {
    build::bigraph(switches, npus, gigabyte(), latency()).unwrap()
}

/// The links that a transfer takes.
fn route(topology: &Topology, plan: &Plan, transfer: usize) -> Vec<LinkId> {
    let [src, dst] = [plan.src(), plan.dst()].map(|ends| NpuId(ends[transfer]).device());
    let bytes = plan.bytes(TransferId::from(transfer));
    let tree = RouteTree::to(topology, dst, bytes, None);
    tree.path(topology, src).unwrap()
}

/// Links that two messages of one step share, and messages that do not take three links.
fn shared(topology: &Topology, plan: &Plan, steps: &[usize]) -> (usize, usize) {
    let mut taken = HashSet::new();
    let (mut twice, mut others) = (0, 0);
    for (transfer, &step) in steps.iter().enumerate() {
        let route = route(topology, plan, transfer);
        others += usize::from(route.len() != 3);
        twice += route
            .iter()
            .filter(|&&link| !taken.insert((step, link)))
            .count();
    }
    (twice, others)
}

#[test]
fn no_two_messages_of_a_step_share_a_link() {
    for (switches, npus) in SIZES {
        let topology = bigraph(switches, npus);
        let n = topology.npu_count();
        let pass = n.ilog2() as usize;
        for (kind, passes) in [(AllReduce, 2), (ReduceScatter, 1), (AllGather, 1)] {
            let collective = among_all(kind, &topology, 16 * n as u64);
            let (plan, steps) = judged(&topology, &collective, Algorithm::Hdrm, 1);
            assert_eq!(
                steps.iter().max(),
                Some(&(passes * pass)),
                "{switches} x {npus}"
            );
            assert_eq!(plan.len(), passes * pass * n);
            assert_eq!(
                shared(&topology, &plan, &steps),
                (0, 0),
                "{switches} x {npus}"
            );
        }
    }
}

/// With as many NPUs at a switch as switches a side, every link across is at work in every step.
#[test]
fn every_link_is_at_work_in_every_step() {
    for size in [1, 2, 4, 8] {
        let topology = bigraph(size, size);
        let n = topology.npu_count();
        let collective = among_all(AllReduce, &topology, 16 * n as u64);
        let (plan, _) = judged(&topology, &collective, Algorithm::Hdrm, 1);
        let routes = (0..plan.len()).map(|transfer| route(&topology, &plan, transfer).len());
        let taken: usize = routes.sum();
        assert_eq!(taken, 2 * n.ilog2() as usize * topology.links().len());
    }
}

/// Ranks in the order of the NPUs stay on their side in all steps but one, and meet on links.
#[test]
fn without_the_mapping_messages_share_links() {
    for (switches, npus) in [(4, 2), (4, 4), (8, 4)] {
        let topology = bigraph(switches, npus);
        let collective = among_all(AllReduce, &topology, 1 << 20);
        let (plan, steps) = judged(&topology, &collective, Algorithm::HalvingDoubling, 1);
        let (twice, others) = shared(&topology, &plan, &steps);
        assert!(twice > 0 && others > 0, "{switches} x {npus}");
    }
}

#[test]
fn any_order_of_ranks_and_any_number_of_slices() {
    for (switches, npus) in [(1, 1), (2, 1), (2, 2), (4, 2)] {
        let topology = bigraph(switches, npus);
        let n = topology.npu_count();
        // 7 is odd: a permutation of a power of two.
        let shuffled: Vec<NpuId> = (0..n).map(|rank| NpuId::from((7 * rank + 3) % n)).collect();
        for &kind in Algorithm::Hdrm.kinds() {
            let collective = Collective::new(kind, shuffled.clone(), 10_007, None).unwrap();
            for chunks in [1, 2, 3] {
                judged(&topology, &collective, Algorithm::Hdrm, chunks);
            }
        }
    }
}

#[test]
fn what_is_no_bigraph_is_refused_with_what_works_instead() {
    let why = |topology: &Topology, collective: &Collective| {
        let refused = check_applicable(topology, collective, Algorithm::Hdrm);
        let why = refused.unwrap_err().to_string();
        assert!(why.contains("use halving-doubling"), "{why}");
        judged(topology, collective, Algorithm::HalvingDoubling, 1);
        why
    };
    let of_all = |topology: &Topology| why(topology, &among_all(AllReduce, topology, 10_007));
    let clos = |spines, hosts_per_tor| {
        let parameters = Clos {
            spines,
            tors: 2,
            hosts_per_tor,
            host_bandwidth: gigabyte(),
            bandwidth: gigabyte(),
            latency: latency(),
        };
        parameters.build().unwrap()
    };
    let fat = build::fat_tree(4, gigabyte(), latency()).unwrap();
    let full = fully_connected(4);
    for topology in [star(4), line(4), full, clos(2, 2), clos(1, 3), fat] {
        let why = of_all(&topology);
        assert!(
            why.contains("it needs a BiGraph, such as bigraph:4x4"),
            "{why}"
        );
    }
    let why_not = of_all(&bigraph(3, 2));
    assert!(
        why_not.contains("powers of two, and they are 3 and 2"),
        "{why_not}"
    );
    let why_not = of_all(&bigraph(4, 3));
    assert!(
        why_not.contains("powers of two, and they are 4 and 3"),
        "{why_not}"
    );
    let why_not = of_all(&bigraph(2, 4));
    assert!(
        why_not.contains("4 NPUs at a switch would share its 2 links"),
        "{why_not}"
    );
    let whole = bigraph(2, 2);
    let some = Collective::new(AllReduce, whole.npus().take(4).collect(), 10_007, None).unwrap();
    let why_not = why(&whole, &some);
    assert!(why_not.contains("all NPUs of the BiGraph"), "{why_not}");
    let [upper, lower] = ["upper1", "lower0"].map(|name| whole.device_by_name(name).unwrap());
    let links = whole.links_from_to(upper, lower).to_vec();
    let why_not = of_all(&whole.without(&[], &links).unwrap());
    assert!(
        why_not.contains("no link from upper1 to lower0"),
        "{why_not}"
    );
}

/// A BiGraph by its links: switches of any names in any order, sides apart.
#[test]
fn a_bigraph_is_one_by_its_links() {
    let mut builder = TopologyBuilder::new("mine");
    builder.npus(4);
    let switches: Vec<_> = (0..4)
        .map(|i| builder.switch(format!("s{i}"), None))
        .collect();
    // s0 and s3 on one side; NPU i at switch 3 - i.
    for (i, &switch) in switches.iter().enumerate() {
        let npu = NpuId::from(3 - i).device();
        builder.both_ways(npu, switch, gigabyte(), latency());
    }
    for (a, b) in [(0, 1), (0, 2), (3, 1), (3, 2)] {
        builder.both_ways(switches[a], switches[b], gigabyte(), latency());
    }
    let topology = builder.finish().unwrap();
    let collective = among_all(AllReduce, &topology, 1000);
    let (plan, steps) = judged(&topology, &collective, Algorithm::Hdrm, 1);
    assert_eq!(shared(&topology, &plan, &steps), (0, 0));
}
