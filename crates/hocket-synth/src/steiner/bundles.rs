//! Shards of neighbours that travel together, so that fewer trees do for an all-gather or a reduce-scatter.
//!
//! In an all-gather each member hands its shard, and those that came to it, to the next; the last has all of them, and a tree
//! brings them to everybody else as one message. A reduce-scatter is the same turned round. A member gets by the tree only what
//! has not passed it before.

use std::collections::{HashMap, VecDeque};

use crate::bound::network::ArcNetwork;

/// NPUs whose shards follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bundle {
    /// The tree starts at the last.
    pub members: Vec<u32>,
    /// The arcs from each member but the last to the next: no NPU is between.
    pub ways: Vec<Vec<u32>>,
}

impl Bundle {
    /// Returns which shards a tree brings to an NPU: how many it leaves out, and how many it brings.
    pub(super) fn part(&self, npu: u32) -> (u32, u32) {
        let all = crate::id::narrow(self.members.len());
        let place = self.members.iter().position(|&member| member == npu);
        match place {
            Some(place) => {
                let first = crate::id::narrow(place + 1);
                (first, all - first)
            }
            None => (0, all),
        }
    }
}

/// Returns NPUs in the order of their shards as bundles of so many, or fewer where one has no way to the next but over others.
///
/// # Complexity
/// For each NPU a search over the switches about it.
pub(crate) fn bundles(network: &ArcNetwork, npus: &[u32], most: usize) -> Vec<Bundle> {
    let mut found: Vec<Bundle> = Vec::new();
    for &npu in npus {
        if let Some(bundle) = found.last_mut()
            && bundle.members.len() < most
            && let Some(way) = bundle
                .members
                .last()
                .and_then(|&last| way(network, last, npu))
        {
            bundle.members.push(npu);
            bundle.ways.push(way);
            continue;
        }
        found.push(Bundle {
            members: vec![npu],
            ways: Vec::new(),
        });
    }
    found
}

/// Returns the arcs of a way with the fewest from one NPU to another over switches alone.
fn way(network: &ArcNetwork, near: u32, far: u32) -> Option<Vec<u32>> {
    let mut came: HashMap<u32, u32> = HashMap::new();
    let mut next = VecDeque::from([near]);
    while let Some(node) = next.pop_front() {
        for &arc in network.arcs_out(node) {
            let to = network.arcs()[arc as usize].dst;
            if to == far {
                let mut way = vec![arc];
                let mut at = node;
                while at != near {
                    way.push(came[&at]);
                    at = network.arcs()[came[&at] as usize].src;
                }
                way.reverse();
                return Some(way);
            }
            if !network.is_npu(to) && !came.contains_key(&to) {
                came.insert(to, arc);
                next.push_back(to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::bound::Fidelity;
    use crate::collective::{Collective, CollectiveKind};
    use crate::plan::LinkOrder;
    use crate::progress::Silent;
    use crate::simulate::{SimulateOptions, simulate};
    use crate::steiner::wide::tests::random;
    use crate::steiner::{Along, Jobs, Layers, Urgency, WideWish, pack_wide, twins};
    use crate::units::Seed;
    use crate::verify::verify;

    const URGENCY: Urgency = Urgency {
        tail: 1,
        is_spread: false,
        at_every_link: true,
        is_even: false,
    };

    #[test]
    fn together_shards_come_to_all_and_sums_to_whom_they_are_for() {
        let mut seed = Seed(5);
        let (mut shared, mut waited) = (0, 0);
        for case in 0..300 {
            let topology = Arc::new(random(&mut seed));
            let npus = topology.npu_count();
            let most = 1 + seed.below(5);
            let (kind, along) = match case % 2 {
                0 => (CollectiveKind::AllGather, Along::Copies),
                _ => (CollectiveKind::ReduceScatter, Along::Sums),
            };
            let forward = ArcNetwork::new(&topology, Fidelity::Link);
            let network = if along == Along::Sums {
                forward.reversed()
            } else {
                forward.clone()
            };
            let mut order: Vec<u32> = (0..crate::id::narrow(npus)).collect();
            for i in (1..npus).rev() {
                order.swap(i, seed.below(i + 1));
            }
            let ids = order.iter().map(|&npu| crate::id::NpuId(npu)).collect();
            let size = npus as u64 * 6000;
            let collective = Collective::new(kind, ids, size, None).expect("a collective");
            let all = bundles(&network, &order, most);
            assert_eq!(
                all.iter()
                    .flat_map(|each| &each.members)
                    .copied()
                    .collect::<Vec<_>>(),
                order
            );
            for bundle in &all {
                assert!(bundle.members.len() <= most);
                assert_eq!(bundle.ways.len() + 1, bundle.members.len());
                for (ends, way) in bundle.members.windows(2).zip(&bundle.ways) {
                    let arcs: Vec<_> = way
                        .iter()
                        .map(|&arc| network.arcs()[arc as usize])
                        .collect();
                    assert_eq!([arcs[0].src, arcs[arcs.len() - 1].dst], ends);
                    assert!(
                        arcs.windows(2)
                            .all(|two| two[0].dst == two[1].src && !network.is_npu(two[0].dst))
                    );
                }
                shared += usize::from(bundle.members.len() > 1);
            }
            let roots: Vec<u32> = all
                .iter()
                .map(|each| each.members[each.members.len() - 1])
                .collect();
            let wish = WideWish {
                least: 1e-9,
                low: 0.1,
                rounds: 2,
                most_work: 1_000_000,
            };
            let layers = Layers::new(&network, npus);
            let packed = pack_wide(&network, &layers, &roots, None, wish, &mut Silent);
            let packing = packed.expect("not stopped").expect("all are reached");
            let place = |npu: u32| {
                order
                    .iter()
                    .position(|&other| other == npu)
                    .expect("it is there")
            };
            let of = |tree: usize| (crate::id::narrow(place(all[tree].members[0])), 6000.0);
            let jobs = Jobs::spanning(&network, &twins(&forward), &packing.trees, of, along, &all);
            let chunks = jobs.chunks(&collective, 1).expect("bytes for all");
            let listed = jobs.list(&topology, 1, URGENCY);
            assert_eq!(listed.turns, jobs.by_priority(&topology, (1, 1), URGENCY));
            let turns = (&listed.turns[..], LinkOrder::Priority);
            let plan = jobs.plan("together", &collective, chunks, 1, turns);
            let proof = verify(Arc::new(plan), Arc::clone(&topology), &mut Silent).expect("right");
            let run = simulate(&proof, &SimulateOptions::default(), &mut Silent).expect("it runs");
            let urgency = Urgency {
                is_spread: true,
                is_even: true,
                ..URGENCY
            };
            let evenly = jobs.list(&topology, 1, urgency);
            let chunks = jobs.chunks(&collective, 1).expect("bytes for all");
            let turns = (&evenly.turns[..], evenly.order);
            let plan = jobs.plan("evenly", &collective, chunks, 1, turns);
            verify(Arc::new(plan), Arc::clone(&topology), &mut Silent).expect("right");
            let has_limits = topology
                .devices()
                .iter()
                .any(|device| device.limit.is_some());
            assert!(
                has_limits || run.time.as_ps() == listed.end,
                "{} and {}",
                run.time.as_ps(),
                listed.end
            );
            let ready = SimulateOptions {
                order: Some(LinkOrder::Ready),
                ..SimulateOptions::default()
            };
            let ready = simulate(&proof, &ready, &mut Silent).expect("it runs");
            waited += usize::from(ready.end != run.end);
        }
        assert!(shared > 100 && waited > 10, "{shared} {waited}");
    }
}
