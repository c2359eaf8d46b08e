use super::steering::{Algorithm, Fields, Header, Policy, SwitchHash};
use super::*;
use crate::id::{DeviceId, LinkId, NpuId, narrow};
use crate::topology::{Topology, TopologyBuilder, build};
use crate::units::{Bandwidth, Time};

fn clos(spines: u32, tors: u32) -> Topology {
    let bandwidth = Bandwidth::from_bytes_per_second(12_500_000_000).expect("positive");
    let parameters = build::Clos {
        spines,
        tors,
        hosts_per_tor: 2,
        host_bandwidth: bandwidth,
        bandwidth,
        latency: Time::from_ns(500),
    };
    parameters.build().expect("a Clos")
}

fn fabric(spines: u32, tors: u32) -> Fabric {
    Fabric::new(&clos(spines, tors)).expect("a Clos")
}

fn given(pairs: &[(u32, u32)]) -> Vec<Flow> {
    pairs
        .iter()
        .map(|&(src, dst)| Flow::new(src, dst))
        .collect()
}

fn spines(fabric: &Fabric, flows: &[Flow], scheme: Scheme) -> Vec<u32> {
    let assignment = assign(fabric, flows, scheme, Seed(1)).expect("it can be assigned");
    assignment.choices().to_vec()
}

fn device(topology: &Topology, name: &str) -> DeviceId {
    topology.device_by_name(name).expect("it is there")
}

#[test]
fn greedy_follows_algorithm_1() {
    // The paper's figure 2: t1 -> t2, t2 -> t1, t2 -> t3, t3 -> t1.
    let flows = given(&[(0, 1), (1, 0), (1, 2), (2, 0)]);
    assert_eq!(spines(&fabric(4, 4), &flows, Scheme::Greedy), [0, 0, 1, 1]);
    // The lowest spine of those whose busier link is the least loaded, not the least in sum.
    let flows = given(&[(0, 1), (0, 2), (3, 1), (3, 2)]);
    assert_eq!(spines(&fabric(2, 4), &flows, Scheme::Greedy), [0, 1, 1, 0]);
}

#[test]
fn greedy_is_not_always_the_best_and_colouring_is() {
    let flows = given(&[(0, 1), (2, 3), (0, 2), (2, 1), (3, 1), (0, 3)]);
    let fabric = fabric(3, 4);
    let bound = load_bound::least_load(&fabric, &flows).load;
    let colored = assign(&fabric, &flows, Scheme::EdgeColoring, Seed(0)).unwrap();
    assert_eq!((bound, colored.max_link_load()), (1, 1));
}

#[test]
fn least_loaded_looks_at_its_own_uplinks_only() {
    let flows = given(&[(0, 2), (1, 2)]);
    let fabric = fabric(2, 3);
    assert_eq!(spines(&fabric, &flows, Scheme::LeastLoaded), [0, 0]);
    assert_eq!(spines(&fabric, &flows, Scheme::Greedy), [0, 1]);
}

#[test]
fn one_hash_twice_polarises() {
    let fabric = fabric(32, 64);
    let flows: Vec<Flow> = (0..2000).map(|i| Flow::new(6, 7 + i % 50)).collect();
    for hash in [Hash::Crc32, Hash::Toeplitz, Hash::Linux] {
        let used = |upstream| {
            let mut used = spines(
                &fabric,
                &flows,
                Scheme::Ecmp(Ecmp {
                    hash,
                    upstream,
                    salted: false,
                }),
            );
            used.sort_unstable();
            used.dedup();
            used.len()
        };
        assert_eq!([1, 2, 4].map(used), [32, 16, 8], "{hash:?}");
    }
}

#[test]
fn weights_bound_and_colouring_keeps_within_the_heaviest() {
    let flows: Vec<Flow> = [7, 1, 1, 4, 4, 4]
        .iter()
        .map(|&weight| Flow {
            weight,
            ..Flow::new(0, 1)
        })
        .collect();
    let fabric = fabric(3, 2);
    let colored = assign(&fabric, &flows, Scheme::EdgeColoring, Seed(0)).unwrap();
    // Four of 4 or more on three links: two of them share one.
    assert_eq!(colored.load_bound().load, 8);
    assert_eq!(colored.max_link_load(), 8);
}

#[test]
fn failures_keep_numbers_and_cut_flows_are_named() {
    let whole = clos(2, 4);
    let lost = whole.without(&[device(&whole, "tor1"), device(&whole, "spine0")], &[]);
    let fabric = Fabric::new(&lost.unwrap()).unwrap();
    assert_eq!(
        spines(&fabric, &given(&[(0, 3), (3, 2)]), Scheme::EdgeColoring),
        [1, 1]
    );
    let cut = assign(&fabric, &given(&[(0, 3), (1, 2)]), Scheme::Greedy, Seed(0));
    assert_eq!(
        cut.unwrap_err().to_string(),
        "no path joins the ends of flow 1 (1 -> 2); leave them out or keep switches that both ToRs \
         reach"
    );
}

#[test]
fn a_lost_link_is_a_witness() {
    let whole = clos(2, 3);
    let up = whole.links_from_to(device(&whole, "tor0"), device(&whole, "spine0"));
    let down = whole.links_from_to(device(&whole, "spine1"), device(&whole, "tor1"));
    let fabric = Fabric::new(&whole.without(&[], down).unwrap()).unwrap();
    let flows = given(&[(0, 1), (0, 1)]);
    let assignment = assign(&fabric, &flows, Scheme::EdgeColoring, Seed(0)).unwrap();
    assert_eq!(assignment.choices(), [0, 0]);
    let proof = assignment.load_bound().describe();
    assert_eq!(
        proof,
        "tor1 receives 2 flows of 2 in all over 1 downlink: one carries 2 or more"
    );
    let both = whole.without(&[], &[up[0], down[0]]).unwrap();
    let cut = assign(
        &Fabric::new(&both).unwrap(),
        &flows,
        Scheme::Greedy,
        Seed(0),
    );
    assert!(matches!(cut, Err(RoutingError::Cut { .. })));
}

#[test]
fn links_that_no_path_uses_are_no_witnesses() {
    // tor0 is still reached from three spines; two of them are reached by nobody.
    let whole = clos(3, 3);
    let between =
        |src: &str, dst: &str| whole.links_from_to(device(&whole, src), device(&whole, dst))[0];
    let gone = ["tor1", "tor2"].map(|tor| ["spine1", "spine2"].map(|spine| between(tor, spine)));
    let fabric = Fabric::new(&whole.without(&[], gone.as_flattened()).unwrap()).unwrap();
    let flows = given(&[(1, 0), (2, 0)]);
    let made = assign(&fabric, &flows, Scheme::Greedy, Seed(0)).unwrap();
    assert_eq!((made.choices(), made.max_link_load()), (&[0, 0][..], 2));
    assert_eq!(
        made.load_bound().describe(),
        "tor0 receives 2 flows of 2 in all over 1 downlink (no path uses 2 more): \
         one carries 2 or more"
    );
}

#[test]
fn a_pair_with_few_common_spines_is_a_witness() {
    let whole = clos(3, 2);
    let between =
        |src: &str, dst: &str| whole.links_from_to(device(&whole, src), device(&whole, dst))[0];
    let gone = [between("tor0", "spine2"), between("spine0", "tor1")];
    let fabric = Fabric::new(&whole.without(&[], &gone).unwrap()).unwrap();
    let made = assign(
        &fabric,
        &given(&[(0, 1), (0, 1)]),
        Scheme::EdgeColoring,
        Seed(0),
    )
    .unwrap();
    assert_eq!((made.choices(), made.max_link_load()), (&[1, 1][..], 2));
    assert_eq!(
        made.load_bound().describe(),
        "tor0 sends 2 flows of 2 in all to tor1 over 1 path: one carries 2 or more"
    );
}

#[test]
fn other_networks_are_refused_in_one_line() {
    let bandwidth = Bandwidth::from_bytes_per_second(10).expect("positive");
    let ring = build::ring(4, bandwidth, Time::from_ns(1), build::RingWays::Both).unwrap();
    let mesh = build::mesh(&[3, 3], bandwidth, Time::from_ns(1)).unwrap();
    for topology in [ring, mesh] {
        let message = Fabric::new(&topology).unwrap_err().to_string();
        assert!(message.contains("make one with clos"), "{message}");
        assert!(!message.contains('\n'));
    }
}

#[test]
fn flows_that_make_no_sense_are_refused() {
    let fabric = fabric(2, 3);
    let message = |flow: Flow| {
        let refused = assign(&fabric, &[Flow::new(0, 1), flow], Scheme::Greedy, Seed(0));
        refused.unwrap_err().to_string()
    };
    assert_eq!(
        message(Flow::new(0, 3)),
        "flow 1: there is no ToR 3; ToRs are 0 to 2"
    );
    assert!(message(Flow::new(2, 2)).starts_with("flow 1 goes from ToR 2 to itself"));
    let heavy = Flow {
        weight: u64::MAX,
        ..Flow::new(0, 1)
    };
    assert!(message(heavy).starts_with("the weights"));
    let other = assignment_of(&fabric, &[Flow::new(0, 1)], vec![2]);
    assert!(matches!(other, Err(RoutingError::BadChoices { .. })));
}

fn fat_tree(k: u32) -> Topology {
    let bandwidth = Bandwidth::from_bytes_per_second(1_000).expect("positive");
    build::fat_tree(k, bandwidth, Time::from_ns(1)).expect("a fat tree")
}

#[test]
fn a_fat_tree_has_choices_by_core_and_within_a_pod_by_agg() {
    let topology = fat_tree(4);
    let fabric = Fabric::new(&topology).unwrap();
    let choices = |src, dst| fabric.choices_between(src, dst).collect::<Vec<_>>();
    assert_eq!((fabric.levels(), fabric.is_complete()), (3, true));
    assert_eq!(choices(0, 1), [0, 1]);
    assert_eq!(choices(2, 3), [2, 3]);
    assert_eq!(choices(0, 2), [0, 1, 2, 3]);
    assert_eq!((choices(3, 3), choices(0, 8)), (vec![], vec![]));
    let names = |src, dst, choice| {
        let mut links = Vec::new();
        assert!(fabric.route(src, dst, choice, &mut links));
        let end = |link: &LinkId| topology.device(topology.link(*link).dst).name.clone();
        links.iter().map(end).collect::<Vec<_>>()
    };
    assert_eq!(names(0, 7, 2), ["agg1", "core2", "agg7", "edge7"]);
    assert_eq!(names(2, 3, 3), ["agg3", "edge3"]);
    assert!(!fabric.route(2, 3, 0, &mut Vec::new()));
}

#[test]
fn npus_know_their_tors_and_links() {
    let whole = clos(2, 3);
    let gone = whole.links_from_to(DeviceId(1), device(&whole, "tor0"));
    let lost = whole.without(&[device(&whole, "tor2")], gone).unwrap();
    let fabric = Fabric::new(&lost).unwrap();
    let tors = [0, 1, 2, 3, 4, 6].map(|npu| fabric.tor_of(NpuId(npu)));
    assert_eq!(tors, [Some(0), Some(0), Some(1), Some(1), None, None]);
    let [up, down] = fabric
        .npu_links(NpuId(3))
        .map(|link| *lost.link(link.unwrap()));
    let tor1 = device(&lost, "tor1");
    assert_eq!((up.src, up.dst), (DeviceId(3), tor1));
    assert_eq!((down.src, down.dst), (tor1, DeviceId(3)));
    assert_eq!(fabric.npu_links(NpuId(1))[0], None);
    assert!(fabric.npu_links(NpuId(1))[1].is_some());
}

#[test]
fn a_lost_agg_costs_its_pod_a_plane() {
    let whole = fat_tree(4);
    let lost = whole.without(&[device(&whole, "agg2")], &[]).unwrap();
    let fabric = Fabric::new(&lost).unwrap();
    let choices = |src, dst| fabric.choices_between(src, dst).collect::<Vec<_>>();
    assert!(!fabric.is_complete());
    assert_eq!((choices(2, 3), choices(0, 1)), (vec![3], vec![0, 1]));
    assert_eq!(
        (choices(0, 2), choices(0, 4)),
        (vec![2, 3], vec![0, 1, 2, 3])
    );
    let core = whole.without(&[device(&whole, "core1")], &[]).unwrap();
    let fabric = Fabric::new(&core).unwrap();
    assert!(fabric.is_complete());
    assert_eq!(fabric.choices_between(0, 7).collect::<Vec<_>>(), [0, 2, 3]);
}

#[test]
fn a_pod_is_a_witness() {
    let whole = fat_tree(4);
    let gone: Vec<DeviceId> = (1..4)
        .map(|i| device(&whole, &format!("core{i}")))
        .collect();
    let fabric = Fabric::new(&whole.without(&gone, &[]).unwrap()).unwrap();
    let flows = given(&[(0, 2), (1, 4), (1, 6)]);
    let made = assign(&fabric, &flows, Scheme::EdgeColoring, Seed(0)).unwrap();
    assert_eq!((made.max_link_load(), made.choices()), (3, &[0, 0, 0][..]));
    assert_eq!(
        made.load_bound().describe(),
        "the pod of edge0 sends 3 flows of 3 in all over 1 uplink: one carries 3 or more"
    );
}

#[test]
fn one_hash_at_two_levels_polarises_and_a_salt_does_not() {
    let fabric = Fabric::new(&fat_tree(8)).unwrap();
    let flows = vec![Flow::new(0, 20); 3000];
    for hash in [Hash::Crc32, Hash::Toeplitz] {
        let used = |salted| {
            let options = Ecmp {
                hash,
                upstream: 1,
                salted,
            };
            let mut used = spines(&fabric, &flows, Scheme::Ecmp(options));
            used.sort_unstable();
            used.dedup();
            used
        };
        // An agg of four sees one remainder modulo 4, and so one of its four cores.
        assert_eq!(used(false), [0, 5, 10, 15], "{hash:?}");
        assert_eq!(used(true).len(), 16, "{hash:?}");
    }
    // Switches of Linux have seeds of their own.
    let linux = Scheme::Ecmp(Ecmp {
        hash: Hash::Linux,
        ..Ecmp::default()
    });
    let mut used = spines(&fabric, &flows, linux);
    used.sort_unstable();
    used.dedup();
    assert_eq!(used.len(), 16);
}

#[test]
fn known_headers_take_the_ways_of_their_tors() {
    let whole = clos(4, 3);
    let spine2 = device(&whole, "spine2");
    let lost = whole.without(&[spine2], &[]).unwrap();
    let [from, to] = [device(&whole, "tor0"), device(&whole, "spine1")];
    let cut = LinkId::from(
        (whole.links().iter())
            .position(|link| (link.src, link.dst) == (from, to))
            .unwrap(),
    );
    let without_link = whole.without(&[], &[cut]).unwrap();
    let hashes = [11, 12, 13].map(|seed| SwitchHash {
        algorithm: Algorithm::Linux(Policy::Custom(Fields::FIVE)),
        seed,
        offset: 0,
    });
    let flows: Vec<Flow> = (0..300).map(|i| Flow::new(i % 3, (i + 1) % 3)).collect();
    let header = |i: u16| Header {
        src: [10, 0, 0, 1].into(),
        dst: [10, 0, 1, 1].into(),
        protocol: 6,
        sport: 2000 + i,
        dport: 80,
        label: 0,
    };
    let headers: Vec<Header> = (0..300).map(header).collect();
    let cases = [
        (&whole, [[0, 1, 2, 3]; 3].map(Vec::from)),
        (&lost, [[0, 1, 3]; 3].map(Vec::from)),
        (
            &without_link,
            [vec![0, 2, 3], vec![0, 1, 2, 3], vec![0, 1, 2, 3]],
        ),
    ];
    for (topology, ways) in cases {
        let fabric = Fabric::new(topology).unwrap();
        let choices = hashed(&fabric, &flows, &headers, &hashes).unwrap();
        for ((flow, header), choice) in flows.iter().zip(&headers).zip(choices) {
            let ways = &ways[flow.src as usize];
            let way = hashes[flow.src as usize].way(header, narrow(ways.len()));
            assert_eq!(choice, ways[way as usize]);
        }
    }
    let fabric = Fabric::new(&whole).unwrap();
    for (headers, hashes) in [(&headers[1..], &hashes[..]), (&headers[..], &hashes[1..])] {
        let refused = hashed(&fabric, &flows, headers, hashes);
        assert!(matches!(refused, Err(RoutingError::BadChoices { .. })));
    }
    let three = Fabric::new(&fat_tree(4)).unwrap();
    let refused = hashed(&three, &flows, &headers, &hashes);
    assert!(matches!(refused, Err(RoutingError::BadChoices { .. })));
}

#[test]
fn seeds_of_switches_differ_and_are_never_zero() {
    let mut seeds: Vec<u32> = (0..64)
        .flat_map(|number| [0, 1].map(|level| switch_seed(Seed(3), level, number)))
        .collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 128);
    assert!(seeds[0] > 0);
}

/// Whether colours alone meet the certificate for random flows, within pods as well or not.
fn meets_by_colours(fabric: &Fabric, count: usize, within: bool, seed: &mut Seed) -> bool {
    let tors = fabric.tor_count();
    let flow = |_| {
        let src = seed.below(tors);
        Flow::new(narrow(src), narrow((src + 1 + seed.below(tors - 1)) % tors))
    };
    let mut flows: Vec<Flow> = (0..count).map(flow).collect();
    flows.retain(|flow| within || fabric.pod_of(flow.src) != fabric.pod_of(flow.dst));
    let choices = balance::color(fabric, &flows, 0);
    let made = assignment_of(fabric, &flows, choices).unwrap();
    made.max_link_load() == made.load_bound().load
}

#[test]
fn colouring_needs_no_exchange_where_it_is_proved() {
    let mut seed = Seed(5);
    for k in [4, 6, 8, 10] {
        let whole = fat_tree(k);
        // One core is left of each plane: fewer than a pod has ToRs.
        let gone = (0..k * k / 4).filter(|core| core % (k / 2) > 0);
        let gone: Vec<DeviceId> = gone
            .map(|core| device(&whole, &format!("core{core}")))
            .collect();
        let thin = Fabric::new(&whole.without(&gone, &[]).unwrap()).unwrap();
        let whole = Fabric::new(&whole).unwrap();
        assert!(thin.is_complete() && whole.is_complete());
        for count in [10, 30, 100, 300, 1000] {
            assert!(
                meets_by_colours(&whole, count, true, &mut seed),
                "{k} {count}"
            );
            assert!(
                meets_by_colours(&thin, count, false, &mut seed),
                "{k} {count}"
            );
        }
    }
}

#[test]
fn a_thin_link_carries_less() {
    let whole = clos(2, 2);
    let mut builder = TopologyBuilder::new("thin");
    builder.npus(whole.npu_count());
    for device in &whole.devices()[whole.npu_count()..] {
        builder.switch(device.name.clone(), None);
    }
    for link in whole.links() {
        let thin = [link.src, link.dst].contains(&device(&whole, "spine0"));
        let bandwidth = Bandwidth::from_bytes_per_second(if thin { 40 } else { 100 });
        builder.link(link.src, link.dst, bandwidth.unwrap(), link.latency);
    }
    let fabric = Fabric::new(&builder.finish().unwrap()).unwrap();
    assert_eq!(fabric.reference().bytes_per_second(), 200);
    let flows = given(&[(0, 1); 7]);
    for scheme in [Scheme::Greedy, Scheme::LeastLoaded, Scheme::EdgeColoring] {
        let made = assign(&fabric, &flows, scheme, Seed(0)).unwrap();
        // Two flows of 200 / 40 against five of 200 / 100.
        assert_eq!(
            (made.max_link_load(), made.load_bound().load),
            (10, 10),
            "{scheme:?}"
        );
        assert_eq!(
            made.choices().iter().filter(|&&spine| spine == 0).count(),
            2
        );
    }
    let heavy = Flow {
        weight: 1 << 61,
        ..Flow::new(0, 1)
    };
    let refused = assign(&fabric, &[heavy], Scheme::Greedy, Seed(0))
        .unwrap_err()
        .to_string();
    assert!(
        refused.starts_with("the weights of all flows together pass 2^63 / 5"),
        "{refused}"
    );
}

#[test]
fn spraying_uses_every_path_alike() {
    let fabric = Fabric::new(&fat_tree(4)).unwrap();
    let sprayed = spray(&fabric, &given(&[(0, 2), (0, 1), (4, 2)])).unwrap();
    assert_eq!(sprayed.up_loads()[..2], [1.0, 1.0]);
    assert_eq!(sprayed.down_loads()[2..6], [0.5, 0.5, 1.0, 1.0]);
    assert_eq!(sprayed.max_link_load(), 1.0);
    let loads = sprayed
        .link_loads(&fabric)
        .filter(|&(_, load)| load == 0.5)
        .count();
    // Down to edge 1, up from edge 4, down from every core to pod 1.
    assert_eq!(loads, 2 + 2 + 4);
}

#[test]
fn flows_that_keep_their_choices_are_heeded() {
    let fabric = fabric(3, 4);
    let flows = given(&[(0, 1), (0, 2), (0, 3)]);
    let after = |fixed: &[u32]| {
        let made = add_least_loaded(&fabric, &flows, fixed).unwrap();
        (made.choices().to_vec(), made.max_link_load())
    };
    assert_eq!(after(&[]), (vec![0, 1, 2], 1));
    assert_eq!(after(&[1]), (vec![1, 0, 2], 1));
    assert_eq!(after(&[2, 2]), (vec![2, 2, 0], 2));
    for fixed in [&[3][..], &[0; 4]] {
        let wrong = add_least_loaded(&fabric, &flows, fixed);
        assert!(matches!(wrong, Err(RoutingError::BadChoices { .. })));
    }
}

#[test]
fn no_flows_need_no_plane() {
    let mut builder = TopologyBuilder::new("no ToR reaches a core");
    builder.npus(1);
    let [edge, agg, core] = ["edge0", "agg0", "core0"].map(|name| builder.switch(name, None));
    let bandwidth = Bandwidth::from_bytes_per_second(1_000).expect("positive");
    builder.both_ways(DeviceId(0), edge, bandwidth, Time::ZERO);
    builder.both_ways(agg, core, bandwidth, Time::ZERO);
    let fabric = Fabric::new(&builder.finish().expect("valid")).expect("a fat tree");
    for scheme in [Scheme::Greedy, Scheme::LeastLoaded, Scheme::EdgeColoring] {
        let made = assign(&fabric, &[], scheme, Seed(0)).expect("nothing to do");
        assert_eq!((made.choices().len(), made.max_link_load()), (0, 0));
    }
}
