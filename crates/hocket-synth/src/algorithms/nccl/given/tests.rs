use std::sync::Arc;

use super::*;
use crate::collective::CollectiveKind;
use crate::progress::Silent;
use crate::simulate::{SimulateOptions, simulate};
use crate::topology::TopologyBuilder;
use crate::units::{Bandwidth, Time};
use crate::verify::verify;

fn gigabytes(count: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(count * 1_000_000_000).unwrap()
}

/// Nodes of 4 NPUs behind a switch, each with 2 NICs at a fabric: NPU 4 n + k, NICs 0 and 1 of each node.
fn boxes(nodes: usize) -> (Topology, Vec<[DeviceId; 2]>) {
    let mut builder = TopologyBuilder::new("boxes");
    let npus: Vec<DeviceId> = (0..4 * nodes)
        .map(|i| builder.npu(format!("g{i}")))
        .collect();
    let mut nics = Vec::new();
    let mut hubs = Vec::new();
    for node in 0..nodes {
        hubs.push(builder.switch(format!("hub{node}"), None));
        nics.push([0, 1].map(|k| builder.switch(format!("nic{node}.{k}"), None)));
    }
    let fabric = builder.switch("fabric", None);
    let mut both = |a, b, rate, ns| {
        builder.both_ways(a, b, gigabytes(rate), Time::from_ns(ns));
    };
    for node in 0..nodes {
        for k in 0..4 {
            both(npus[4 * node + k], hubs[node], 300, 350);
            both(npus[4 * node + k], nics[node][k / 2], 50, 350);
        }
        for nic in nics[node] {
            both(nic, fabric, 25, 1300);
        }
    }
    let groups = (0..nodes).map(|node| (0..4).map(|k| NpuId::from(4 * node + k)).collect());
    let topology = builder
        .finish()
        .unwrap()
        .with_groups(groups.collect())
        .unwrap();
    (topology, nics)
}

fn leg(first: usize, order: [usize; 4], nics: [DeviceId; 2]) -> Leg {
    Leg {
        npus: order.map(|k| NpuId::from(first + k)).to_vec(),
        nics: nics.map(Some),
    }
}

/// Two channels: one by the first NICs, one by the second ones.
fn two(nodes: usize) -> (Topology, Vec<GivenChannel>) {
    let (topology, nics) = boxes(nodes);
    let channel = |order: [usize; 4], k: usize| {
        let legs = (0..nodes).map(|node| leg(4 * node, order, [nics[node][k]; 2]));
        legs.collect::<GivenChannel>()
    };
    let channels = vec![channel([0, 2, 3, 1], 0), channel([2, 0, 1, 3], 1)];
    (topology, channels)
}

fn time_of(topology: &Topology, plan: Plan) -> Time {
    let proof = verify(Arc::new(plan), Arc::new(topology.clone()), &mut Silent).unwrap();
    let run = simulate(&proof, &SimulateOptions::default(), &mut Silent);
    run.unwrap().time
}

#[test]
fn all_plans_are_proved() {
    for nodes in 1..=5 {
        let (topology, channels) = two(nodes);
        for kind in [
            CollectiveKind::AllReduce,
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
        ] {
            let collective = Collective::among_all(kind, &topology, 1 << 24).unwrap();
            for joint in [
                Joint::Ring,
                Joint::BalancedTree,
                Joint::SplitTree,
                Joint::Tree,
            ] {
                let made = plan_channels(&topology, &collective, joint, &channels, 2, 1 << 30);
                if joint != Joint::Ring && kind != CollectiveKind::AllReduce {
                    assert!(matches!(made, Err(PlanError::NotApplicable { .. })));
                    continue;
                }
                time_of(&topology, made.unwrap());
            }
        }
    }
}

#[test]
fn rings_take_the_nics_that_are_named() {
    let (topology, channels) = two(2);
    let collective = Collective::among_all(CollectiveKind::AllReduce, &topology, 1 << 28).unwrap();
    let ring = |channels: &[GivenChannel]| {
        let made = plan_channels(&topology, &collective, Joint::Ring, channels, 4, 1 << 30);
        time_of(&topology, made.unwrap())
    };
    // Both NICs of a node at once carry twice what one does.
    let (both, first) = (ring(&channels), ring(&channels[..1]));
    let ratio = first.as_ps() as f64 / both.as_ps() as f64;
    assert!((1.9..2.1).contains(&ratio), "{ratio}");
    // Of 2 (n - 1) / n of the bytes, each of the two channels carries half over a NIC.
    let exact = (1u64 << 28) as f64 * 2.0 * 7.0 / 8.0 / 2.0 / 25e9;
    let found = both.as_ps() as f64 * 1e-12;
    assert!((exact..1.05 * exact).contains(&found), "{found} {exact}");
}

#[test]
fn a_balanced_tree_joins_children_at_two_npus() {
    // Of 4 nodes the first tree has 2 below 0, and 1 and 3 below 2: 1 is its first child.
    assert!(is_first_child((1, 2), 0, 4));
    assert!(!is_first_child((3, 2), 0, 4));
    assert!(!is_first_child((2, 0), 0, 4));
    // Mirrored: 1 below 3, and 2 and 0 below 1; 2 stands where 1 stood.
    assert!(is_first_child((2, 1), 1, 4));
    assert!(!is_first_child((0, 1), 1, 4));
    // Of 3 nodes: 2 below 0 and 1 below 2; moved by one, 0 below 1 and 2 below 0.
    assert!(is_first_child((1, 2), 0, 3));
    assert!(is_first_child((2, 0), 1, 3));
    assert_eq!(seat(Joint::BalancedTree, true), 1);
    assert_eq!(seat(Joint::BalancedTree, false), 0);
    assert_eq!(seat(Joint::SplitTree, false), 1);
    assert_eq!(seat(Joint::Tree, true), 0);
}

#[test]
fn channels_that_are_none_are_refused() {
    let (topology, channels) = two(2);
    let all = Collective::among_all(CollectiveKind::AllReduce, &topology, 1 << 20).unwrap();
    let why = |channels: &[GivenChannel]| {
        let made = plan_channels(&topology, &all, Joint::Ring, channels, 1, 1 << 30);
        made.unwrap_err().to_string()
    };
    assert!(why(&[]).contains("no channels"));
    let mut twice = channels.clone();
    twice[1][0].npus[1] = twice[1][0].npus[0];
    assert!(why(&twice).contains("channel 1 passes NPU 2 twice"));
    let mut short = channels.clone();
    short[0][1].npus.pop();
    assert!(why(&short).contains("channel 0 does not pass every NPU"));
    let mut far = channels.clone();
    far[0][0].nics[0] = Some(DeviceId(99));
    assert!(why(&far).contains("no NIC"));
    let mut npu = channels;
    npu[0][0].nics[1] = Some(DeviceId(0));
    assert!(why(&npu).contains("no NIC"));
}

#[test]
fn designed_channels_are_plans_that_fill_the_nics() {
    use crate::algorithms::nccl::design::{Design, Nic, design_channels};
    for nodes in 2..=3 {
        let (topology, nics) = boxes(nodes);
        let nics: Vec<Vec<Nic>> = nics
            .iter()
            .map(|pair| {
                let nics = (0..).zip(pair);
                nics.map(|(rail, &device)| Nic { device, rail }).collect()
            })
            .collect();
        let [Design { channels, .. }] = &design_channels(&topology, None, &nics)[..] else {
            panic!("one design of NICs that are alike")
        };
        assert_eq!(channels.len(), 2);
        let size = 1u64 << 28;
        let all = Collective::among_all(CollectiveKind::AllReduce, &topology, size).unwrap();
        let made = plan_channels(&topology, &all, Joint::Ring, channels, 4, 1 << 30);
        let found = time_of(&topology, made.unwrap()).as_ps() as f64 * 1e-12;
        let n = 4.0 * nodes as f64;
        let exact = size as f64 * 2.0 * (n - 1.0) / n / (2.0 * 25e9);
        assert!(
            (exact..1.06 * exact).contains(&found),
            "{nodes}: {found} {exact}"
        );
        // NPUs 0 and 1 are at the first NIC, 2 and 3 at the second.
        let ends = |channel: &GivenChannel| (channel[1].npus[0].0 % 4, channel[1].npus[3].0 % 4);
        let ends: Vec<_> = channels.iter().map(ends).collect();
        assert_eq!(ends, [(0, 1), (2, 3)]);
    }
}
