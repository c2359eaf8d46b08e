//! Rates against all cuts, one by one; trees against the network; certificates against changed ones.

use super::*;
use crate::bound::Fidelity;
use crate::id::narrow;
use crate::progress::Silent;
use crate::topology::{Topology, TopologyBuilder, build};
use crate::units::{Bandwidth, Seed, Time};

fn gb_per_s(giga: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(giga * 1_000_000_000).expect("positive")
}

fn packed(topology: &Topology, ends: &[NpuId], weights: &[(NpuId, u64)]) -> Packing {
    let network = ArcNetwork::new(topology, Fidelity::Link);
    let packing = pack(&network, ends, weights, 1..=16, &mut Silent).expect("a packing");
    assert_eq!(packing.check(topology, ends, weights), Ok(()));
    packing
}

fn all_gather(topology: &Topology) -> Packing {
    let ends: Vec<NpuId> = topology.npus().collect();
    let weights: Vec<(NpuId, u64)> = ends.iter().map(|&npu| (npu, 1)).collect();
    packed(topology, &ends, &weights)
}

/// Bytes a second of a root of weight 1.
fn rate(packing: &Packing) -> u128 {
    packing.rate.bandwidth / packing.rate.weight
}

/// The least of bandwidth into X over the weight outside X, over all sets X that hold an end.
fn by_all_cuts(topology: &Topology, ends: &[NpuId], weights: &[(NpuId, u64)]) -> (u128, u128) {
    let devices = topology.device_count();
    let mut best: Option<(u128, u128)> = None;
    for set in 1u32..1 << devices {
        let inside = |device: usize| set >> device & 1 == 1;
        let outside = weights.iter().filter(|(npu, _)| !inside(npu.index()));
        let weight: u128 = outside.map(|&(_, weight)| u128::from(weight)).sum();
        if weight == 0 || !ends.iter().any(|end| inside(end.index())) {
            continue;
        }
        let links = topology.links().iter();
        let entering = links.filter(|link| !inside(link.src.index()) && inside(link.dst.index()));
        let bandwidth = entering.map(|link| u128::from(link.bandwidth.bytes_per_second()));
        let found = (bandwidth.sum::<u128>(), weight);
        if best.is_none_or(|best| found.0 * best.1 < best.0 * found.1) {
            best = Some(found);
        }
    }
    best.expect("there are two ends")
}

/// A connected network of a few NPUs and switches; links have the same bandwidth both ways.
fn random(seed: &mut Seed) -> Topology {
    let npus = 2 + seed.below(5);
    let devices = npus + seed.below(4);
    let mut builder = TopologyBuilder::new("random");
    builder.npus(npus);
    for i in npus..devices {
        builder.switch(format!("switch{i}"), None);
    }
    let mut pairs: Vec<(usize, usize)> = (1..devices).map(|it| (it, seed.below(it))).collect();
    for _ in 0..seed.below(2 * devices) {
        let (a, b) = (seed.below(devices), seed.below(devices));
        if a != b {
            pairs.push((a, b));
        }
    }
    for (a, b) in pairs {
        let bandwidth = gb_per_s([1, 2, 3, 5, 8][seed.below(5)]);
        builder.both_ways(a.into(), b.into(), bandwidth, Time::from_ns(500));
    }
    builder.finish().expect("a network")
}

/// Weights of the roots: one root, all NPUs alike, or each its own.
fn weights(seed: &mut Seed, npus: usize) -> Vec<(NpuId, u64)> {
    match seed.below(3) {
        0 => vec![(NpuId::from(seed.below(npus)), 1)],
        1 => (0..npus).map(|npu| (NpuId::from(npu), 1)).collect(),
        _ => {
            let weight = |npu| (NpuId::from(npu), 1 + seed.below(3) as u64);
            (0..npus).map(weight).collect()
        }
    }
}

#[test]
fn rates_are_those_of_the_worst_of_all_cuts_and_trees_reach_them() {
    let mut seed = Seed(11);
    for case in 0..150 {
        let topology = random(&mut seed);
        let ends: Vec<NpuId> = topology.npus().collect();
        let weights = weights(&mut seed, ends.len());
        let network = ArcNetwork::new(&topology, Fidelity::Link);
        let best = by_all_cuts(&topology, &ends, &weights);
        let packing = match pack(&network, &ends, &weights, 1..=16, &mut Silent) {
            Ok(packing) => packing,
            Err(why) => panic!("case {case}: {why:?} of {topology:?}"),
        };
        assert_eq!(
            packing.rate.bandwidth * best.1,
            best.0 * packing.rate.weight,
            "case {case}"
        );
        assert_eq!(
            packing.check(&topology, &ends, &weights),
            Ok(()),
            "case {case}"
        );
        assert!(
            packing.reached_ppm >= 900_000,
            "case {case}: {}",
            packing.reached_ppm
        );
    }
}

#[test]
fn known_networks_have_their_known_rates() {
    let giga = 1_000_000_000;
    let latency = Time::from_ns(500);
    // Every NPU of a corner gets 63 blocks over two links.
    let mesh = build::mesh(&[8, 8], gb_per_s(25), latency).expect("a mesh");
    let packing = all_gather(&mesh);
    assert_eq!(rate(&packing), 50 * giga / 63);
    assert_eq!(packing.reached_ppm, 1_000_000);
    let torus = build::torus(&[4, 4, 4], gb_per_s(25), latency).expect("a torus");
    assert_eq!(rate(&all_gather(&torus)), 150 * giga / 63);
    // Through a switch: 7 blocks over a link of 8 GB/s.
    let star = build::switch(8, gb_per_s(8), latency, None).expect("a switch");
    let packing = all_gather(&star);
    assert_eq!(rate(&packing), 8 * giga / 7);
    assert!(packing.set.ways.iter().all(|way| way.len() == 2));
    // From one NPU of a mesh over its two links.
    let ends: Vec<NpuId> = mesh.npus().collect();
    let packing = packed(&mesh, &ends, &[(NpuId(0), 1)]);
    assert_eq!((rate(&packing), packing.set.trees.len()), (50 * giga, 2));
}

/// Each part of a certificate is looked at: whatever is changed in it is found.
#[test]
fn changed_packings_are_refused() {
    let torus = build::torus(&[3, 3], gb_per_s(25), Time::from_ns(500)).expect("a torus");
    let ends: Vec<NpuId> = torus.npus().collect();
    let weights: Vec<(NpuId, u64)> = ends.iter().map(|&npu| (npu, 1)).collect();
    let good = packed(&torus, &ends, &weights);
    let fault = |change: &dyn Fn(&mut Packing)| {
        let mut packing = good.clone();
        change(&mut packing);
        packing.check(&torus, &ends, &weights).expect_err("a fault")
    };
    let span = |packing: &mut Packing| packing.set.trees[3].arcs.truncate(7);
    assert_eq!(fault(&span), PackingFault::Span { tree: 3 });
    let twice = |packing: &mut Packing| {
        let arc = packing.set.trees[1].arcs[0];
        packing.set.trees[1].arcs.push(arc);
    };
    assert_eq!(fault(&twice), PackingFault::Span { tree: 1 });
    let way = |packing: &mut Packing| packing.set.ways.rotate_left(1);
    assert!(matches!(fault(&way), PackingFault::Way { .. }));
    let root = good.set.trees[0].root;
    assert_eq!(
        fault(&|packing| drop(packing.set.trees.remove(0))),
        PackingFault::Trees { root }
    );
    assert_eq!(
        fault(&|packing| packing.rate.bandwidth += 1),
        PackingFault::Cut
    );
    assert_eq!(
        fault(&|packing| packing.rate.cut.fill(true)),
        PackingFault::Cut
    );
    let faster = |packing: &mut Packing| packing.reached_ppm += 1;
    assert!(matches!(fault(&faster), PackingFault::Rate { .. }));
}

/// The least of bandwidth between parts, both ways, over their number less one, over all partitions of the NPUs.
fn by_all_partitions(topology: &Topology) -> (u128, u128) {
    let npus = topology.npu_count();
    let mut best: Option<(u128, u128)> = None;
    // By each NPU the number of its part: at most one more than of all before it.
    let mut left = vec![vec![0usize]];
    while let Some(part_of) = left.pop() {
        let parts = part_of.iter().max().map_or(0, |most| most + 1);
        if part_of.len() < npus {
            for part in 0..=parts {
                left.push(part_of.iter().copied().chain([part]).collect());
            }
            continue;
        }
        if parts < 2 {
            continue;
        }
        let links = topology.links().iter();
        let between = links.filter(|link| part_of[link.src.index()] != part_of[link.dst.index()]);
        let bandwidth = between.map(|link| u128::from(link.bandwidth.bytes_per_second()));
        let found = (bandwidth.sum::<u128>(), parts as u128 - 1);
        if best.is_none_or(|best| found.0 * best.1 < best.0 * found.1) {
            best = Some(found);
        }
    }
    best.expect("there are two NPUs")
}

fn undirected(topology: &Topology) -> Undirected {
    let network = ArcNetwork::new(topology, Fidelity::Link);
    let ends: Vec<NpuId> = topology.npus().collect();
    let both = pack_undirected(&network, &ends, &mut Silent).expect("nobody stops it");
    both.expect("trees")
}

#[test]
fn trees_both_ways_reach_the_worst_of_all_partitions() {
    let mut seed = Seed(17);
    let mut cases = 0;
    while cases < 200 {
        let topology = random(&mut seed);
        if topology.device_count() > topology.npu_count() {
            continue;
        }
        cases += 1;
        let ends: Vec<NpuId> = topology.npus().collect();
        let both = undirected(&topology);
        assert_eq!(both.check(&topology, &ends), Ok(()), "case {cases}");
        let best = by_all_partitions(&topology);
        let parts = both.partition.parts.len() as u128;
        assert_eq!(
            both.partition.bandwidth * best.1,
            best.0 * (parts - 1),
            "case {cases}"
        );
        assert!(
            both.reached_ppm >= 900_000,
            "case {cases}: {}",
            both.reached_ppm
        );
    }
}

#[test]
fn changed_trees_both_ways_are_refused() {
    let mesh = build::mesh(&[3, 3], gb_per_s(25), Time::from_ns(500)).expect("a mesh");
    let ends: Vec<NpuId> = mesh.npus().collect();
    let good = undirected(&mesh);
    // Twelve edges both ways, for 2 x 8 messages.
    assert_eq!(good.partition.bandwidth, 24 * 25_000_000_000);
    assert_eq!(good.reached_ppm, 1_000_000);
    let fault = |change: &dyn Fn(&mut Undirected)| {
        let mut both = good.clone();
        change(&mut both);
        both.check(&mesh, &ends).expect_err("a fault")
    };
    assert_eq!(
        fault(&|both| both.sums.trees[1].arcs.truncate(5)),
        PackingFault::Span { tree: 1 }
    );
    let trees = good.copies.trees.len();
    assert_eq!(
        fault(&|both| drop(both.sums.trees.pop())),
        PackingFault::Span { tree: trees - 1 }
    );
    assert!(matches!(
        fault(&|both| both.copies.ways.rotate_left(1)),
        PackingFault::Way { .. }
    ));
    assert_eq!(
        fault(&|both| both.partition.bandwidth += 1),
        PackingFault::Cut
    );
    assert_eq!(
        fault(&|both| drop(both.partition.parts.pop())),
        PackingFault::Cut
    );
    assert!(matches!(
        fault(&|both| both.reached_ppm += 1),
        PackingFault::Rate { .. }
    ));
}

/// Boxes of NPUs behind a fast switch each, and a NIC of 1 unit for each NPU on one fabric.
fn boxes(count: usize, npus: usize) -> Topology {
    let mut builder = TopologyBuilder::new("boxes");
    builder.npus(count * npus);
    let fabric = builder.switch("fabric", None);
    for at in 0..count {
        let inside = builder.switch(format!("inside{at}"), None);
        for npu in at * npus..(at + 1) * npus {
            let npu = DeviceId::from(npu);
            builder.both_ways(npu, inside, gb_per_s(12), Time::from_ns(350));
            let nic = builder.switch(format!("nic{}", npu.index()), None);
            builder.both_ways(npu, nic, gb_per_s(1), Time::from_ns(350));
            builder.both_ways(nic, fabric, gb_per_s(1), Time::from_ns(1_300));
        }
    }
    builder.finish().expect("a network")
}

/// When a piece is everywhere, by latencies alone [ns].
fn last(topology: &Topology, set: &TreeSet) -> u64 {
    let of = |tree: &Tree| {
        let mut times: Vec<u64> = Vec::new();
        for arc in &tree.arcs {
            let links = set.ways[arc.way as usize].iter();
            let way: u64 = links.map(|&id| topology.link(id).latency.as_ps()).sum();
            times.push(match arc.parent {
                TreeArc::ROOT => way,
                parent => times[parent as usize] + way,
            });
        }
        times.into_iter().max().unwrap_or(0)
    };
    set.trees.iter().map(of).max().unwrap_or(0) / 1_000
}

/// A box that a tree has reached sends on over all its NICs at once, instead of one box after another.
#[test]
fn trees_of_one_root_pass_few_boxes_one_after_another() {
    let topology = boxes(5, 4);
    let ends: Vec<NpuId> = topology.npus().collect();
    let packing = packed(&topology, &ends, &[(NpuId(0), 1)]);
    assert_eq!(
        (packing.set.trees.len(), packing.reached_ppm),
        (4, 1_000_000)
    );
    // Out of the root's box, and to all others in two steps: three times 3.3 us, and inside of each 0.7 us.
    let last = last(&topology, &packing.set);
    assert!(last <= 3 * 3_300 + 4 * 700, "{last}");
}

fn all(topology: &Topology) -> Vec<NpuId> {
    topology.npus().collect()
}

fn rerouted(topology: &Topology, trees: u64, low: f64) -> Undirected {
    let network = ArcNetwork::new(topology, Fidelity::Link);
    let wanted = Wanted { trees, low };
    let both = reroute(&network, &all(topology), wanted, &mut Silent);
    both.expect("nobody stops it").expect("trees")
}

/// Two boxes; half of the NPUs of each only send to the other box, half only receive from it.
fn one_way_boxes() -> Topology {
    let mut builder = TopologyBuilder::new("one way");
    builder.npus(8);
    for first in [0usize, 4] {
        let inside = builder.switch(format!("inside{first}"), None);
        for npu in first..first + 4 {
            builder.both_ways(npu.into(), inside, gb_per_s(12), Time::from_ns(350));
        }
    }
    for (src, dst) in [(0usize, 4usize), (1, 5), (6, 2), (7, 3)] {
        builder.link(src.into(), dst.into(), gb_per_s(12), Time::from_ns(2_000));
    }
    builder.finish().expect("a network")
}

#[test]
fn sums_and_copies_need_not_take_the_same_ways() {
    let topology = one_way_boxes();
    let made = rerouted(&topology, 48, 0.1);
    assert_eq!(made.check(&topology, &all(&topology)), Ok(()));
    // 2 x 7 messages over (8 + 4) x 12 GB/s into single NPUs; two boxes would have 2 over 48.
    assert_eq!(made.partition.bandwidth, 144_000_000_000);
    assert_eq!(made.partition.parts.len(), 8);
    // Edges that work both ways would reach nothing: no link leads back between the boxes.
    assert!(made.reached_ppm > 750_000, "{}", made.reached_ppm);
    assert_ne!(made.sums.trees, made.copies.trees);
}

#[test]
fn what_is_summed_elsewhere_than_copied_is_refused() {
    let topology = one_way_boxes();
    let mut made = rerouted(&topology, 8, 1.0);
    made.sums.trees.rotate_left(1);
    let fault = made.check(&topology, &all(&topology));
    assert_eq!(fault, Err(PackingFault::Span { tree: 0 }));
}

#[test]
fn what_is_said_to_be_reached_is_what_links_allow() {
    let mut seed = Seed(5);
    for case in 0..20 {
        let sizes = [2, 2].map(|least| least + narrow(seed.below(3)));
        let mesh = build::mesh(&sizes, gb_per_s(25), Time::from_ns(500)).expect("a mesh");
        let low = [0.0, 0.1, 1.0][seed.below(3)];
        let trees = 1 + seed.below(40) as u64;
        let made = rerouted(&mesh, trees, low);
        assert_eq!(made.check(&mesh, &all(&mesh)), Ok(()), "case {case}");
        let mut more = made.clone();
        more.reached_ppm += 1;
        let fault = more.check(&mesh, &all(&mesh));
        assert!(
            made.reached_ppm == 1_000_000 || fault.is_err(),
            "case {case}"
        );
    }
}

#[test]
fn trees_are_low_where_that_is_asked() {
    let mesh = build::mesh(&[5, 5], gb_per_s(25), Time::from_ns(500)).expect("a mesh");
    // The first root is in the middle, four hops from the corners.
    assert_eq!(rerouted(&mesh, 1, 100.0).copies.height(), 4);
    let made = rerouted(&mesh, 48, 0.0);
    assert!(made.reached_ppm >= 950_000, "{}", made.reached_ppm);
}
