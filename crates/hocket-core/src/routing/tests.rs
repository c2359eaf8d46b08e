use super::*;
use crate::id::DeviceId;
use crate::topology::{Topology, build};
use crate::units::{Bandwidth, Time};

fn clos(spines: u32, tors: u32) -> Topology {
    let bandwidth = Bandwidth::from_bytes_per_second(12_500_000_000).expect("positive");
    let parameters = build::Clos {
        spines,
        tors,
        hosts_per_tor: 2,
        host_bandwidth: bandwidth,
        fabric_bandwidth: bandwidth,
        latency: Time::from_ns(500),
    };
    build::clos(&parameters).expect("a Clos")
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
    let bound = certificate::certify(&fabric, &flows).load;
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
    for hash in [Hash::Crc32, Hash::Toeplitz] {
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
    assert_eq!(colored.certificate().load, 8);
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
    let proof = assignment.certificate().describe();
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
        made.certificate().describe(),
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
