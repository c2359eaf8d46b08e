//! Counts by closed form, structure, and refusals that come at once.

use super::*;
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};
use crate::{Dimension, DimensionKind, Switching, Topology};

fn bw(bytes: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(bytes).expect("positive")
}

const LATENCY: Time = Time::from_ns(10);

fn counts(topology: &Topology) -> (usize, usize, usize) {
    let npus = topology.npu_count();
    (npus, topology.device_count() - npus, topology.links().len())
}

fn degrees(topology: &Topology) -> Vec<usize> {
    let out = |npu: crate::id::NpuId| topology.out_links(npu.device()).len();
    topology.npus().map(out).collect()
}

fn dimension(kind: DimensionKind, size: u32) -> Dimension {
    Dimension {
        kind,
        size,
        bandwidth: bw(100),
        latency: LATENCY,
        offload: false,
    }
}

#[test]
fn one_dimension() {
    for n in 2..9u32 {
        let m = n as usize;
        let line = line(n, bw(5), LATENCY).unwrap();
        assert_eq!(counts(&line), (m, 0, 2 * (m - 1)));
        let one = ring(n, bw(5), LATENCY, RingWays::One).unwrap();
        assert_eq!(counts(&one), (m, 0, m));
        assert!(one.dimensions().is_empty());
        let both = ring(n, bw(5), LATENCY, RingWays::Both).unwrap();
        assert_eq!(counts(&both), (m, 0, if n == 2 { 2 } else { 2 * m }));
        assert_eq!(both.dimensions()[0].kind, DimensionKind::Ring);
        let full = fully_connected(n, bw(5), LATENCY).unwrap();
        assert_eq!(counts(&full), (m, 0, m * (m - 1)));
        let star = switch(n, bw(5), LATENCY, Some(bw(7))).unwrap();
        assert_eq!(counts(&star), (m, 1, 2 * m));
        assert_eq!(star.device(DeviceId(n)).name, "sw0");
        assert_eq!(star.device(DeviceId(n)).limit, Some(bw(7)));
    }
}

#[test]
fn meshes_and_tori() {
    for (x, y, z) in [(2, 2, 2), (3, 4, 5), (1, 6, 2), (7, 3, 1)] {
        let mesh = mesh(&[x, y, z], bw(5), LATENCY).unwrap();
        let n = (x * y * z) as usize;
        let pairs = (x - 1) * y * z + x * (y - 1) * z + x * y * (z - 1);
        assert_eq!(counts(&mesh), (n, 0, 2 * pairs as usize));
        let torus = torus(&[x, y, z], bw(5), LATENCY).unwrap();
        let per_npu: usize = [x, y, z].iter().map(|&s| s.min(3) as usize - 1).sum();
        assert_eq!(counts(&torus), (n, 0, n * per_npu));
        assert!(degrees(&torus).iter().all(|&d| d == per_npu));
    }
    let small = mesh(&[3, 2], bw(5), LATENCY).unwrap();
    let ends: Vec<u32> = small
        .out_links(DeviceId(1))
        .iter()
        .map(|&l| small.link(l).dst.0)
        .collect();
    assert_eq!(ends, [0, 2, 4]);
}

#[test]
fn hypercubes_join_ids_that_differ_in_one_bit() {
    let cube = hypercube(5, bw(5), LATENCY).unwrap();
    assert_eq!(counts(&cube), (32, 0, 160));
    for link in cube.links() {
        assert_eq!((link.src.0 ^ link.dst.0).count_ones(), 1);
    }
}

#[test]
fn products_join_along_one_dimension() {
    let dimensions = [
        dimension(DimensionKind::Ring, 4),
        dimension(DimensionKind::FullyConnected, 3),
        dimension(DimensionKind::Switch, 5),
        dimension(DimensionKind::Line, 2),
        dimension(DimensionKind::Switch, 1),
    ];
    let topology = product(&dimensions).unwrap();
    assert_eq!(
        topology.name(),
        "Ring_FullyConnected_Switch_Line_Switch 4x3x5x2x1"
    );
    assert_eq!(topology.dimensions(), dimensions);
    // 120 NPUs; 24 groups of the switch dimension.
    let links = 30 * 8 + 40 * 6 + 24 * 10 + 60 * 2;
    assert_eq!(counts(&topology), (120, 24, links));
    assert!(degrees(&topology).iter().all(|&d| d == 2 + 2 + 1 + 1));
    // The first switch joins NPUs 0, 12, 24, 36, 48.
    let below: Vec<u32> = topology
        .out_links(DeviceId(120))
        .iter()
        .map(|&l| topology.link(l).dst.0)
        .collect();
    assert_eq!(below, [0, 12, 24, 36, 48]);
}

#[test]
fn dragonflies() {
    let parameters = Dragonfly {
        groups: 4,
        group_size: 5,
        npus_per_router: None,
        bandwidth: bw(400),
        latency: LATENCY,
        global_bandwidth: bw(100),
        global_latency: Time::from_ns(500),
    };
    let topology = parameters.build().unwrap();
    assert_eq!(counts(&topology), (20, 0, 4 * 20 + 12));
    // Three members of each group carry one long link, two carry none.
    let mut sorted = degrees(&topology);
    sorted.sort_unstable();
    assert_eq!(sorted, [vec![4; 8], vec![5; 12]].concat());
    for link in topology.links() {
        let local = link.src.0 / 5 == link.dst.0 / 5;
        assert_eq!(link.bandwidth, if local { bw(400) } else { bw(100) });
    }
    let many = Dragonfly {
        groups: 9,
        group_size: 2,
        npus_per_router: None,
        ..parameters
    };
    assert!(degrees(&many.build().unwrap()).iter().all(|&d| d == 1 + 4));
}

#[test]
fn closes_and_fat_trees() {
    let parameters = Clos {
        spines: 3,
        tors: 4,
        hosts_per_tor: 2,
        host_bandwidth: bw(10),
        bandwidth: bw(20),
        latency: LATENCY,
    };
    let topology = parameters.build().unwrap();
    assert_eq!(counts(&topology), (8, 7, 16 + 24));
    let tor1 = topology.device_by_name("tor1").unwrap();
    assert_eq!(topology.out_links(tor1).len(), 5);
    for k in [2, 4, 6] {
        let tree = fat_tree(k, bw(10), LATENCY).unwrap();
        let (k, npus) = (k as usize, (k * k * k / 4) as usize);
        assert_eq!(counts(&tree), (npus, 5 * k * k / 4, 6 * npus));
        for i in npus..tree.device_count() {
            assert_eq!(tree.out_links(DeviceId::from(i)).len(), k);
        }
    }
}

#[test]
fn bigraphs_join_all_switches_across_and_none_on_a_side() {
    for (side, npus) in [(1, 1), (1, 4), (4, 1), (2, 2), (4, 4), (3, 5)] {
        let topology = bigraph(side, npus, bw(5), LATENCY).unwrap();
        let (s, p) = (side as usize, npus as usize);
        let all = 2 * s * p;
        assert_eq!(counts(&topology), (all, 2 * s, 2 * (all + s * s)));
        let first = topology.device_by_name("upper0").unwrap().index();
        // Switches in order, the upper ones first, NPUs below them in theirs.
        let upper = |device: DeviceId| match device.index().checked_sub(first) {
            Some(switch) => switch < s,
            None => device.index() < all / 2,
        };
        for link in topology.links() {
            let ends = [link.src, link.dst];
            match ends.iter().find(|&&end| end.index() < first) {
                None => assert_ne!(upper(link.src), upper(link.dst)),
                Some(&npu) => assert!(ends.contains(&DeviceId::from(first + npu.index() / p))),
            }
        }
        let lower = topology.device_by_name("lower0").unwrap();
        assert_eq!(lower.index(), first + s);
        assert_eq!(topology.out_links(lower).len(), s + p);
    }
}

#[test]
fn sizes_that_make_no_network_are_refused() {
    let bad = |result: Result<Topology, TopologyError>| {
        let error = result.unwrap_err();
        assert!(
            matches!(error, TopologyError::BadParameter { .. }),
            "{error}"
        );
        error.to_string()
    };
    for n in [0, 1] {
        bad(line(n, bw(5), LATENCY));
        bad(ring(n, bw(5), LATENCY, RingWays::One));
        bad(fully_connected(n, bw(5), LATENCY));
        bad(switch(n, bw(5), LATENCY, None));
    }
    bad(hypercube(0, bw(5), LATENCY));
    bad(mesh(&[], bw(5), LATENCY));
    bad(torus(&[1, 1], bw(5), LATENCY));
    bad(fat_tree(3, bw(5), LATENCY));
    bad(bigraph(0, 4, bw(5), LATENCY));
    bad(bigraph(4, 0, bw(5), LATENCY));
    let message = bad(mesh(&[4, 0], bw(5), LATENCY));
    assert_eq!(
        message,
        "dimensions of \"mesh 4x0\": the size of dimension 2 is 0; give it at least 1"
    );
}

#[test]
fn switches_cut_through() {
    let ring = dimension(DimensionKind::Ring, 4);
    for (size, own) in [(1, Switching::StoreAndForward), (2, Switching::CutThrough)] {
        let switch = Dimension {
            offload: true,
            ..dimension(DimensionKind::Switch, size)
        };
        let topology = product(&[ring, switch]).unwrap();
        assert_eq!(topology.switching(), own);
        let other = topology.clone().with_switching(Switching::CutThrough);
        assert_eq!(other.switching(), Switching::CutThrough);
        assert_eq!(other == topology, own == Switching::CutThrough);
    }
    let sums = Dimension {
        offload: true,
        ..ring
    };
    let message = product(&[ring, sums]).unwrap_err().to_string();
    assert!(message.contains("dimension 2 is to sum in the network but has no switches"));
}

#[test]
fn huge_sizes_are_refused_at_once() {
    let large = |result: Result<Topology, TopologyError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, TopologyError::TooLarge { .. }), "{error}");
    };
    large(line(1_000_000_000, bw(5), LATENCY));
    large(ring(u32::MAX, bw(5), LATENCY, RingWays::One));
    large(fully_connected(1_000_000, bw(5), LATENCY));
    large(switch(1_000_000_000, bw(5), LATENCY, None));
    large(mesh(&[u32::MAX; 8], bw(5), LATENCY));
    large(torus(&[100_000, 100_000], bw(5), LATENCY));
    large(hypercube(40, bw(5), LATENCY));
    large(hypercube(u32::MAX, bw(5), LATENCY));
    large(fat_tree(u32::MAX - 1, bw(5), LATENCY));
    large(bigraph(u32::MAX, u32::MAX, bw(5), LATENCY));
    large(bigraph(1, u32::MAX, bw(5), LATENCY));
    large(bigraph(100_000, 1, bw(5), LATENCY));
    large(
        Clos {
            spines: u32::MAX,
            tors: u32::MAX,
            hosts_per_tor: u32::MAX,
            host_bandwidth: bw(1),
            bandwidth: bw(1),
            latency: LATENCY,
        }
        .build(),
    );
    large(
        Dragonfly {
            groups: u32::MAX,
            group_size: u32::MAX,
            npus_per_router: None,
            bandwidth: bw(1),
            latency: LATENCY,
            global_bandwidth: bw(1),
            global_latency: LATENCY,
        }
        .build(),
    );
}

fn rail(nodes: u32, npus: u32, spines: u32) -> Result<Topology, TopologyError> {
    Rail {
        nodes,
        npus,
        spines,
        node_bandwidth: bw(90),
        node_latency: LATENCY,
        bandwidth: bw(10),
        latency: LATENCY,
    }
    .build()
}

fn boxes(nodes: u32, npus: u32, nics: u32) -> Result<Topology, TopologyError> {
    Boxes {
        nodes,
        npus,
        nics,
        node_bandwidth: bw(90),
        node_latency: LATENCY,
        bandwidth: bw(10),
        latency: LATENCY,
    }
    .build()
}

#[test]
fn rails() {
    for (n, g, s) in [(2, 4, 0), (4, 2, 3), (3, 1, 0), (1, 4, 0), (5, 3, 1)] {
        let made = rail(n, g, s).expect("a pod");
        let (m, k, t) = (n as usize, g as usize, s as usize);
        let within = if g > 1 { m } else { 0 };
        let links = 2 * (m * k + within * k + k * t);
        assert_eq!(counts(&made), (m * k, within + k + t, links));
        assert!(degrees(&made).iter().all(|&d| d == 1 + usize::from(g > 1)));
        assert_eq!(made.groups().len(), m);
        let facts = made.inspect();
        assert!(facts.connected);
        // To the rail and back; across, through a node or a spine.
        let far = match (n, g, s) {
            (1, _, _) | (_, 1, _) => 2,
            _ => 4,
        };
        assert_eq!(facts.diameter_hops, Some(far));
    }
    // Half of the nodes to the other half, each NPU over its rail.
    let bisection = rail(4, 4, 0).expect("a pod").inspect().bisection;
    assert_eq!(bisection.map(|cut| cut.bytes_per_second), Some(2 * 4 * 10));
}

#[test]
fn nodes_in_boxes() {
    for (n, g, k) in [(2, 4, 2), (3, 4, 4), (4, 8, 1), (2, 1, 1)] {
        let made = boxes(n, g, k).expect("boxes");
        let (m, p, nics) = (n as usize, g as usize, k as usize);
        let within = if g > 1 { m } else { 0 };
        let links = 2 * (m * p + within * p + m * nics);
        assert_eq!(counts(&made), (m * p, within + m * nics + 1, links));
        assert_eq!(made.inspect().diameter_hops, Some(4));
        // Half of the nodes' NICs.
        let cut = made.inspect().bisection.expect("several NPUs");
        let half = u128::from(n / 2) * u128::from(k) * 10;
        assert!(n % 2 == 1 || cut.bytes_per_second == half);
    }
    let error = boxes(2, 4, 3).expect_err("uneven").to_string();
    assert!(error.contains("3 do not divide 4 NPUs"), "{error}");
    for (n, g) in [(0, 4), (4, 0), (1, 1)] {
        assert!(boxes(n, g, 1).is_err() && rail(n, g, 0).is_err());
    }
    assert!(matches!(
        rail(u32::MAX, u32::MAX, u32::MAX),
        Err(TopologyError::TooLarge { .. })
    ));
    assert!(matches!(
        boxes(u32::MAX, u32::MAX, 1),
        Err(TopologyError::TooLarge { .. })
    ));
    assert!(matches!(
        planes(u32::MAX, u32::MAX, bw(1), LATENCY),
        Err(TopologyError::TooLarge { .. })
    ));
}

#[test]
fn planes_of_switches() {
    let rack = planes(72, 18, bw(50), LATENCY).expect("a rack");
    assert_eq!(counts(&rack), (72, 18, 2 * 72 * 18));
    assert_eq!(rack.inspect().diameter_hops, Some(2));
    let cut = rack.inspect().bisection.expect("several NPUs");
    assert_eq!(cut.bytes_per_second, 36 * 18 * 50);
}

#[test]
fn routers_of_a_dragonfly() {
    let parameters = Dragonfly {
        groups: 5,
        group_size: 4,
        npus_per_router: Some(3),
        bandwidth: bw(400),
        latency: LATENCY,
        global_bandwidth: bw(100),
        global_latency: LATENCY,
    };
    let made = parameters.build().expect("a dragonfly");
    let links = 2 * 60 + 5 * 4 * 3 + 5 * 4;
    assert_eq!(counts(&made), (60, 20, links));
    // NPU, router, router, router of another group, router, NPU.
    assert_eq!(made.inspect().diameter_hops, Some(5));
    assert_eq!(made.groups().len(), 20);
    assert_eq!(made.name(), "dragonfly 5x4x3");
}

/// Every family with every count 2, or 3, and everything else left out that may be.
#[test]
fn counts_are_of_what_is_built() {
    for family in FAMILIES {
        for count in [2u32, 3] {
            for is_whole in [true, false] {
                let given: Vec<(&str, Value)> = family
                    .parameters
                    .iter()
                    .filter(|one| is_whole || one.otherwise == Otherwise::Required)
                    .map(|one| (one.name, sample(one.unit, count)))
                    .collect();
                let counted = family.counts(&given).expect("complete");
                let Ok(built) = family.build(&given) else {
                    assert_eq!((family.name, count), ("fat_tree", 3));
                    continue;
                };
                let (npus, switches, links) = counts(&built);
                let found = [npus as u128, switches as u128, links as u128];
                assert_eq!(found, [counted.npus, counted.switches, counted.links]);
                assert_eq!(built.dimensions(), counted.dimensions);
                assert!(built.inspect().connected);
            }
        }
    }
}

fn sample(unit: Unit, count: u32) -> Value {
    match unit {
        Unit::Count => Value::Count(count),
        Unit::Counts => Value::Counts(vec![count; 3]),
        Unit::Bandwidth => Value::Bandwidth(bw(100)),
        Unit::Latency => Value::Latency(LATENCY),
        Unit::Flag => Value::Flag(false),
    }
}

#[test]
fn parameters_are_read_by_name() {
    let clos = FAMILIES
        .iter()
        .find(|family| family.name == "clos")
        .expect("listed");
    let given = |name| (name, Value::Count(2));
    let link = [
        ("bandwidth", sample(Unit::Bandwidth, 0)),
        ("latency", sample(Unit::Latency, 0)),
    ];
    let counts = [given("spines"), given("tors")];
    let made = clos.build(&[&counts[..], &link].concat()).expect("a Clos");
    assert_eq!(made.name(), "clos 2x2x1");
    let missing = clos.build(&counts).unwrap_err().to_string();
    assert_eq!(missing, "bandwidth: is missing; give it");
    let odd = [&counts[..], &link, &[("host_bandwidth", Value::Flag(true))]].concat();
    let wrong = clos.build(&odd).unwrap_err().to_string();
    assert_eq!(
        wrong,
        "host_bandwidth: is of another unit; give a bandwidth"
    );
}
