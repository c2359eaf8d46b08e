//! Ingress, egress, latency and traffic from their definitions, at three fidelities.

use super::*;
use crate::collective::Demand;
use crate::id::fit;

/// A link, or the inside of a switch with a limit: from, to, bytes per second, latency, sending [ps].
struct Hop {
    from: usize,
    to: usize,
    rate: u128,
    latency: u64,
    sending: u64,
}

const NEVER: u64 = u64::MAX;

fn hops(topology: &Topology, fidelity: Fidelity) -> (usize, Vec<Hop>) {
    let flit = |rate: Bandwidth| match fidelity {
        Fidelity::Packet { flit_bytes } => rate.transmission(flit_bytes).as_ps(),
        _ => 0,
    };
    let mut nodes = topology.device_count();
    let mut exit: Vec<usize> = (0..nodes).collect();
    let mut hops = Vec::new();
    for (i, device) in topology.devices().iter().enumerate() {
        if let Some(limit) = device.limit {
            exit[i] = nodes;
            nodes += 1;
            hops.push(Hop {
                from: i,
                to: exit[i],
                rate: limit.bytes_per_second().into(),
                latency: 0,
                sending: flit(limit),
            });
        }
    }
    for link in topology.links() {
        let behind = topology.device(link.src).limit.map_or(0, flit);
        let sending = flit(link.bandwidth);
        hops.push(Hop {
            from: exit[link.src.index()],
            to: link.dst.index(),
            rate: link.bandwidth.bytes_per_second().into(),
            latency: link.latency.as_ps().max(sending).max(behind),
            sending,
        });
    }
    (nodes, hops)
}

/// Distances of all pairs of nodes, by Floyd and Warshall.
fn distances(nodes: usize, hops: &[Hop], length: impl Fn(&Hop) -> u64) -> Vec<Vec<u64>> {
    let mut far = vec![vec![NEVER; nodes]; nodes];
    (0..nodes).for_each(|node| far[node][node] = 0);
    for hop in hops {
        far[hop.from][hop.to] = far[hop.from][hop.to].min(length(hop));
    }
    for via in 0..nodes {
        for from in 0..nodes {
            for to in 0..nodes {
                let both = far[from][via].saturating_add(far[via][to]);
                far[from][to] = far[from][to].min(both);
            }
        }
    }
    far
}

/// The time, rounded down, in which pipes (delay, rate) carry some bytes; found by halving.
fn fill(pipes: &[(u64, u128)], bytes: u128) -> u64 {
    let needed = bytes * 1_000_000_000_000;
    let carried = |time: u64| -> u128 {
        let one = |&(delay, rate): &(u64, u128)| rate * u128::from(time.saturating_sub(delay));
        pipes.iter().map(one).sum()
    };
    let (mut low, mut high) = (0, 1 << 50);
    while low < high {
        let middle = (low + high) / 2;
        if carried(middle) >= needed {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low - u64::from(carried(low) > needed)
}

/// What must enter an NPU, or leave it: bytes, and how far they come or go.
fn amounts(
    demands: &[Demand],
    npus: &[NpuId],
    npu: NpuId,
    enters: bool,
    far: &[Vec<u64>],
) -> Vec<(u64, u64)> {
    let mut amounts = Vec::new();
    for demand in demands {
        let holders = demand.holders.members(npus);
        let wanted = demand.wanted.members(npus);
        let others = |all: &[NpuId]| -> Vec<u64> {
            let others = all.iter().filter(|&&other| other != npu);
            let way = |other: &NpuId| match enters {
                true => far[other.index()][npu.index()],
                false => far[npu.index()][other.index()],
            };
            others.map(way).collect()
        };
        let distance = match (enters, demand.reduced) {
            (true, _) if !wanted.contains(&npu) => None,
            (true, true) => others(holders).into_iter().max(),
            (true, false) if holders.contains(&npu) => None,
            (true, false) => others(holders).into_iter().min(),
            (false, _) if !holders.contains(&npu) => None,
            (false, false) if holders.len() > 1 => None,
            (false, _) => others(wanted).into_iter().max(),
        };
        if let Some(distance) = distance
            && demand.bytes > 0
        {
            amounts.push((demand.bytes, distance));
        }
    }
    amounts
}

/// What leaves an NPU, or enters it for sums, times the others that want or contribute it; and their distances.
fn served(
    demands: &[Demand],
    npus: &[NpuId],
    npu: NpuId,
    enters: bool,
    far: &[Vec<u64>],
) -> (u128, Vec<u64>) {
    let mut others: Vec<NpuId> = Vec::new();
    let mut amount = 0;
    for demand in demands.iter().filter(|demand| demand.bytes > 0) {
        let holders = demand.holders.members(npus);
        let wanted = demand.wanted.members(npus);
        let is_sum = demand.reduced && holders.len() > 1;
        let served = match enters {
            true if is_sum && wanted.contains(&npu) => holders,
            false if holders.contains(&npu) && (is_sum || holders.len() == 1) => wanted,
            _ => continue,
        };
        for other in served.iter().filter(|&&other| other != npu) {
            amount += u128::from(demand.bytes);
            if !others.contains(other) {
                others.push(*other);
            }
        }
    }
    let way = |other: &NpuId| match enters {
        true => far[other.index()][npu.index()],
        false => far[npu.index()][other.index()],
    };
    let mut ways: Vec<u64> = others.iter().map(way).collect();
    ways.sort_unstable();
    (amount, ways)
}

/// Whether each byte that leaves an NPU, or enters it for sums, is for one other at most.
fn is_one_alone(demands: &[Demand], npus: &[NpuId], npu: NpuId, enters: bool) -> bool {
    let one = std::slice::from_ref;
    let none = vec![vec![0; 64]; 64];
    demands.iter().all(|demand| {
        let (amount, _) = served(one(demand), npus, npu, enters, &none);
        amount <= u128::from(demand.bytes)
    })
}

/// The least distance from an NPU by way of another one to a participant that is yet another, or back.
fn shared(npus: &[NpuId], every: usize, npu: NpuId, enters: bool, far: &[Vec<u64>]) -> u64 {
    let way = |from: usize, to: usize| match enters {
        true => far[to][from],
        false => far[from][to],
    };
    let over = |place: usize| {
        let ends = npus.iter().filter(|end| end.index() != place);
        let rest = ends.map(|end| way(place, end.index())).min();
        way(npu.index(), place).saturating_add(rest.unwrap_or(NEVER))
    };
    let places = (0..every).filter(|&place| place != npu.index());
    places.map(over).min().unwrap_or(NEVER)
}

/// The bounds ingress, egress, latency, traffic and fan-out; nothing where something cannot be reached.
fn by_definition(
    topology: &Topology,
    collective: &Collective,
    fidelity: Fidelity,
) -> Option<[u64; 5]> {
    let (nodes, hops) = hops(topology, fidelity);
    let far = distances(nodes, &hops, |hop| hop.latency);
    let (demands, npus) = (collective.demands(), collective.npus());
    let every = 0..topology.npu_count();
    let nearest = |way: &dyn Fn(usize) -> u64| every.clone().map(way).min().unwrap();
    let useful = |hop: &Hop| {
        let before = nearest(&|npu| far[npu][hop.from]);
        let after = nearest(&|npu| far[hop.to][npu]);
        let way = before.saturating_add(hop.latency).saturating_add(after);
        (way != NEVER).then(|| way - hop.sending)
    };
    let mut found = [0; 5];
    for &npu in npus {
        for (side, enters) in [true, false].into_iter().enumerate() {
            let amounts = amounts(&demands, npus, npu, enters, &far);
            for &(_, least) in &amounts {
                if least == NEVER {
                    return None;
                }
                found[2] = found[2].max(least);
                let bytes = amounts.iter().filter(|&&(_, distance)| distance >= least);
                let bytes = bytes.map(|&(bytes, _)| u128::from(bytes)).sum();
                let own = |hop: &&Hop| [hop.from, hop.to][usize::from(enters)] == npu.index();
                let pipe = |hop: &Hop| {
                    let distance = match (enters, fidelity) {
                        (true, Fidelity::Flow) => 0,
                        _ => least.saturating_sub(hop.sending),
                    };
                    Some((distance.max(useful(hop)?), hop.rate))
                };
                let pipes: Vec<_> = hops.iter().filter(own).filter_map(pipe).collect();
                found[side] = found[side].max(fill(&pipes, bytes));
            }
            let (amount, ways) = served(&demands, npus, npu, enters, &far);
            let is_left_out = enters && fidelity == Fidelity::Flow;
            if is_left_out || is_one_alone(&demands, npus, npu, enters) {
                continue;
            }
            let shared = shared(npus, topology.npu_count(), npu, enters, &far);
            let own = |hop: &&Hop| [hop.from, hop.to][usize::from(enters)] == npu.index();
            let mut pipes = Vec::new();
            for hop in hops.iter().filter(own) {
                for (j, &way) in ways.iter().enumerate() {
                    let way = if j == 0 { way } else { way.max(shared) };
                    let way = way.saturating_sub(hop.sending);
                    pipes.extend(useful(hop).map(|least| (way.max(least), hop.rate)));
                }
            }
            found[4] = found[4].max(fill(&pipes, amount));
        }
    }
    let devices = topology.device_count();
    let is_inside = |hop: &Hop| hop.from < devices && hop.to >= devices;
    let fastest = hops.iter().map(|hop| hop.rate).max().unwrap_or(1);
    let lengths: [&dyn Fn(&Hop) -> u64; 3] = [
        &|hop| u64::from(!is_inside(hop)),
        &|hop| fit((fastest * 16 / hop.rate).min(1 << 24)),
        &|hop| u64::from(is_inside(hop)),
    ];
    for length in lengths {
        let far = distances(nodes, &hops, length);
        let work = work(&demands, npus, topology.npu_count(), &far);
        let pipe = |hop: &Hop| Some((useful(hop)?, hop.rate * u128::from(length(hop))));
        let pipes: Vec<_> = hops.iter().filter_map(pipe).collect();
        if pipes.iter().any(|&(_, rate)| rate > 0) {
            found[3] = found[3].max(fill(&pipes, work));
        }
    }
    Some(found)
}

/// Bytes times the length that they go at least.
fn work(demands: &[Demand], npus: &[NpuId], every: usize, far: &[Vec<u64>]) -> u128 {
    let near = |npu: &NpuId, enters: bool| -> u128 {
        let others = (0..every).filter(|&other| other != npu.index());
        let way = |other: usize| match enters {
            true => far[other][npu.index()],
            false => far[npu.index()][other],
        };
        let nearest = others.map(way).min().unwrap();
        if nearest == NEVER { 0 } else { nearest.into() }
    };
    let but_dearest = |set: &[NpuId], enters: bool| -> u128 {
        let ways: Vec<u128> = set.iter().map(|npu| near(npu, enters)).collect();
        ways.iter().sum::<u128>() - ways.iter().max().unwrap()
    };
    let of_one = |demand: &Demand| -> u128 {
        let holders = demand.holders.members(npus);
        let takers = demand.wanted.members(npus);
        let is_sum = demand.reduced && holders.len() > 1;
        let length: u128 = match (is_sum, takers) {
            (false, &[taker]) => {
                let ways = holders
                    .iter()
                    .map(|holder| far[holder.index()][taker.index()]);
                ways.min().unwrap().into()
            }
            (false, _) => {
                let lack = takers.iter().filter(|taker| !holders.contains(taker));
                lack.map(|taker| near(taker, true)).sum()
            }
            (true, &[taker]) => {
                let others = holders.iter().filter(|&&holder| holder != taker);
                others.map(|holder| near(holder, false)).sum()
            }
            (true, _) => but_dearest(holders, false) + but_dearest(takers, true),
        };
        u128::from(demand.bytes) * length
    };
    demands.iter().map(of_one).sum()
}

#[test]
fn components_are_what_their_definitions_say() {
    let mut seed = Seed(41);
    let (mut compared, mut apart) = (0, 0);
    for case in 0..700 {
        let topology = random(&mut seed, 5, case % 4 != 0);
        let any = random_collective(&mut seed, &topology);
        // Few bytes: some blocks of a shared collective are then empty.
        let collective = match case % 3 {
            0 => any,
            _ => {
                let (kind, npus) = (any.kind(), any.npus().to_vec());
                let size = 1 + seed.below(6) as u64;
                Collective::new(kind, npus, size, any.root()).expect("valid")
            }
        };
        for fidelity in [
            Fidelity::Link,
            Fidelity::Flow,
            Fidelity::Packet {
                flit_bytes: 1 + seed.below(3_000) as u64,
            },
        ] {
            let options = BoundOptions {
                fidelity,
                ..BoundOptions::default()
            };
            let bound = bound(&topology, &collective, &options);
            let Some(expected) = by_definition(&topology, &collective, fidelity) else {
                assert_eq!(bound.time, Time::MAX);
                apart += 1;
                continue;
            };
            let names = ["ingress", "egress", "latency", "traffic", "fan-out"];
            let found = names.map(|name| component(&bound, name).as_ps());
            assert_eq!(found, expected, "case {case}, {fidelity:?}, {collective:?}");
            compared += 1;
        }
    }
    assert!(compared > 1_000 && apart > 50, "{compared} {apart}");
}
