use std::sync::Arc;

use super::*;
use crate::collective::{Collective, CollectiveKind};
use crate::id::{DeviceId, LinkId, NpuId, narrow};
use crate::plan::{Chunks, Op, PlanBuilder, Transfer, Wait};
use crate::progress::Silent;
use crate::topology::{Topology, TopologyBuilder};
use crate::units::{Bandwidth, Seed, Time};
use crate::verify::verify;

/// 1 GB/s: a byte takes 1,000 ps.
fn gigabyte() -> Bandwidth {
    Bandwidth::from_bytes_per_second(1_000_000_000).unwrap()
}

fn line(n: usize, latency: u64) -> Arc<Topology> {
    let mut builder = TopologyBuilder::new("line");
    builder.npus(n);
    for i in 1..n {
        let (a, b) = (DeviceId::from(i - 1), DeviceId::from(i));
        builder.both_ways(a, b, gigabyte(), Time::from_ps(latency));
    }
    Arc::new(builder.finish().unwrap())
}

/// A broadcast of `size` bytes in `pieces` from NPU 0 straight to every other NPU, farthest first.
fn star(n: usize, size: u64, pieces: usize) -> PlanBuilder {
    let npus = (0..n).map(NpuId::from).collect();
    let collective = Collective::new(CollectiveKind::Broadcast, npus, size, None).unwrap();
    let chunks = Chunks::split(&collective.demands(), pieces).unwrap();
    let mut b = PlanBuilder::new("by hand", &collective, chunks);
    for dst in (1..n).rev() {
        for chunk in 0..narrow(pieces) {
            b.send(
                (chunk, 1),
                NpuId(0),
                NpuId::from(dst),
                Op::Copy,
                Wait::NOTHING,
            );
        }
    }
    b
}

fn run(plan: PlanBuilder, topology: &Arc<Topology>, options: SimulateOptions) -> Run {
    let verified = verify(Arc::new(plan.finish()), topology.clone(), &mut Silent).unwrap();
    simulate(&verified, &options, &mut Silent).unwrap()
}

fn ends(run: &Run) -> Vec<u64> {
    run.end.iter().map(|end| end.as_ps()).collect()
}

#[test]
fn a_message_is_stored_and_forwarded() {
    // To NPU 2 over two links: 2 (10 + 1,000,000); to NPU 1 behind it on the first link.
    let run = run(star(3, 1000, 1), &line(3, 10), SimulateOptions::default());
    assert_eq!(ends(&run), [2_000_020, 2_000_010]);
    assert_eq!(run.start[1].as_ps(), 1_000_000);
    assert_eq!(run.time.as_ps(), 2_000_020);
    let used = |link: usize| (run.links[link].busy.as_ps(), run.links[link].bytes);
    assert_eq!(used(0), (2_000_000, 2000));
    assert_eq!(used(1), (0, 0), "nothing goes back");
}

#[test]
fn cut_through_overlaps_the_hops() {
    let options = SimulateOptions {
        switching: Some(Switching::CutThrough),
        ..SimulateOptions::default()
    };
    // The head is at NPU 1 after 10 ps; the tail follows one transmission behind.
    let run = run(star(3, 1000, 1), &line(3, 10), options);
    assert_eq!(ends(&run), [1_000_020, 2_000_010]);
}

#[test]
fn cut_through_waits_for_the_slower_link() {
    for (first, second, time) in [(1, 2, 1_000_020), (2, 1, 1_000_020), (1, 1, 1_000_020)] {
        let mut builder = TopologyBuilder::new("uneven");
        builder.npus(3);
        for (hop, rate) in [first, second].into_iter().enumerate() {
            let rate = Bandwidth::from_bytes_per_second(rate * 1_000_000_000).unwrap();
            let (a, b) = (DeviceId::from(hop), DeviceId::from(hop + 1));
            builder.both_ways(a, b, rate, Time::from_ps(10));
        }
        let topology = Arc::new(builder.finish().unwrap());
        let options = SimulateOptions {
            switching: Some(Switching::CutThrough),
            ..SimulateOptions::default()
        };
        let run = run(star(3, 1000, 1), &topology, options);
        assert_eq!(run.end[0].as_ps(), time, "{first} then {second} GB/s");
    }
}

#[test]
fn a_message_that_is_ahead_is_across_before_its_link_is_free() {
    let ahead = |ahead, switching| SimulateOptions {
        ahead: Time::from_ps(ahead),
        switching: Some(switching),
        ..SimulateOptions::default()
    };
    // Stored, it goes on sooner at each device; the message behind it waits for the link all the same.
    let stored = run(
        star(3, 1000, 1),
        &line(3, 10),
        ahead(300, Switching::StoreAndForward),
    );
    assert_eq!(ends(&stored), [2_000_020 - 600, 2_000_010 - 300]);
    assert_eq!(stored.start[1].as_ps(), 1_000_000);
    // Cut through, only its last hop is ahead: the second link is done no sooner.
    let through = run(
        star(3, 1000, 1),
        &line(3, 10),
        ahead(300, Switching::CutThrough),
    );
    assert_eq!(ends(&through), [1_000_020 - 300, 2_000_010 - 300]);
    // No message is across before it was sent.
    let long = run(
        star(3, 1000, 1),
        &line(3, 10),
        ahead(5_000_000, Switching::StoreAndForward),
    );
    assert_eq!(ends(&long), [20, 1_000_010]);
}

#[test]
fn latency_delays_the_next_message_where_it_occupies() {
    let options = SimulateOptions {
        latency: LatencyModel::Occupying,
        ..SimulateOptions::default()
    };
    let overlapped = run(star(2, 1000, 4), &line(2, 500), SimulateOptions::default());
    let occupying = run(star(2, 1000, 4), &line(2, 500), options);
    assert_eq!(overlapped.time.as_ps(), 4 * 250_000 + 500);
    assert_eq!(occupying.time.as_ps(), 4 * (250_000 + 500));
}

#[test]
fn plan_order_waits_for_a_late_message() {
    // Transfer 1 waits for transfer 0; transfer 2 is ready at once, on the link of transfer 1.
    let npus = (0..3).map(NpuId).collect();
    let collective = Collective::new(CollectiveKind::AllGather, npus, 3000, None).unwrap();
    let late = || {
        let chunks = Chunks::split(&collective.demands(), 1).unwrap();
        let mut b = PlanBuilder::new("by hand", &collective, chunks);
        let send = |b: &mut PlanBuilder, chunk, src, dst, wait| {
            b.send((chunk, 1), NpuId(src), NpuId(dst), Op::Copy, wait)
        };
        let first = send(&mut b, 0, 0, 1, Wait::NOTHING);
        send(&mut b, 0, 1, 2, Wait::on(first));
        send(&mut b, 1, 1, 2, Wait::NOTHING);
        let back = send(&mut b, 2, 2, 1, Wait::NOTHING);
        send(&mut b, 2, 1, 0, Wait::on(back));
        send(&mut b, 1, 1, 0, Wait::NOTHING);
        b
    };
    let ready = run(late(), &line(3, 0), SimulateOptions::default());
    assert_eq!(ends(&ready)[..3], [1_000_000, 2_000_000, 1_000_000]);
    let options = SimulateOptions {
        order: Some(LinkOrder::Plan),
        ..SimulateOptions::default()
    };
    let planned = run(late(), &line(3, 0), options);
    assert_eq!(ends(&planned)[..3], [1_000_000, 2_000_000, 3_000_000]);
}

#[test]
fn plan_order_can_deadlock_and_says_so() {
    // The plan lists the forwarding before the receipt: fine by waits, not in plan order.
    let npus = (0..2).map(NpuId).collect();
    let collective = Collective::new(CollectiveKind::AllReduce, npus, 1000, None).unwrap();
    let chunks = Chunks::split(&collective.demands(), 2).unwrap();
    let mut b = PlanBuilder::new("by hand", &collective, chunks);
    let on = |t| Wait::on(TransferId(t));
    let send = |b: &mut PlanBuilder, chunk, src, dst, op, wait| {
        b.send((chunk, 1), NpuId(src), NpuId(dst), op, wait);
    };
    send(&mut b, 0, 1, 0, Op::Copy, on(2));
    send(&mut b, 1, 1, 0, Op::Reduce, Wait::NOTHING);
    send(&mut b, 0, 0, 1, Op::Reduce, on(3));
    send(&mut b, 1, 0, 1, Op::Copy, on(1));
    let verified = verify(Arc::new(b.finish()), line(2, 0), &mut Silent).unwrap();
    let options = SimulateOptions {
        order: Some(LinkOrder::Plan),
        ..SimulateOptions::default()
    };
    assert!(simulate(&verified, &SimulateOptions::default(), &mut Silent).is_ok());
    let deadlock = simulate(&verified, &options, &mut Silent);
    let expected = SimulateError::Deadlock {
        waiting: 4,
        first: TransferId(0),
    };
    assert_eq!(deadlock, Err(expected));
}

#[test]
fn a_switch_with_a_limit_of_its_own_is_a_queue() {
    let topology = |limit| {
        let mut builder = TopologyBuilder::new("switch");
        builder.npus(4);
        let switch = builder.switch("switch", limit);
        for npu in 0..4 {
            builder.both_ways(DeviceId(npu), switch, gigabyte(), Time::ZERO);
        }
        Arc::new(builder.finish().unwrap())
    };
    let npus = (0..4).map(NpuId).collect();
    let collective = Collective::new(CollectiveKind::AllToAll, npus, 4000, None).unwrap();
    let shift = || {
        let chunks = Chunks::split(&collective.demands(), 1).unwrap();
        let mut b = PlanBuilder::new("by hand", &collective, chunks);
        for step in 1..4 {
            for i in 0..4 {
                let j = (i + step) % 4;
                b.send((4 * i + j, 1), NpuId(i), NpuId(j), Op::Copy, Wait::NOTHING);
            }
        }
        b
    };
    let free = run(shift(), &topology(None), SimulateOptions::default());
    assert_eq!(
        free.time.as_ps(),
        4_000_000,
        "three messages out, the last one in"
    );
    let limited = run(
        shift(),
        &topology(Some(gigabyte())),
        SimulateOptions::default(),
    );
    assert_eq!(
        limited.time.as_ps(),
        14_000_000,
        "in, twelve through the switch, out"
    );
}

#[test]
fn long_routes_are_followed_hop_by_hop() {
    // Many senders to one receiver at one size: a shared tree of next hops.
    let n = 24;
    let npus: Vec<NpuId> = (0..n).map(NpuId).collect();
    let collective = Collective::new(CollectiveKind::Gather, npus, 24_000, None).unwrap();
    let chunks = Chunks::split(&collective.demands(), 1).unwrap();
    let mut b = PlanBuilder::new("by hand", &collective, chunks);
    for src in 1..n {
        b.send((src, 1), NpuId(src), NpuId(0), Op::Copy, Wait::NOTHING);
    }
    let options = SimulateOptions {
        keep_services: true,
        ..SimulateOptions::default()
    };
    let topology = line(n as usize, 7);
    let run = run(b, &topology, options);
    // The last link carries the near ones first; the farthest comes in a steady stream behind.
    assert_eq!(run.time.as_ps(), 23 * (1_000_000 + 7));
    let hops: usize = (1..n as usize).sum();
    assert_eq!(run.services.len(), hops);
    let of_farthest = run
        .services
        .iter()
        .filter(|service| service.transfer == n - 2);
    let links: Vec<u32> = of_farthest.map(|service| service.link).collect();
    let expected: Vec<u32> = (1..n).rev().map(|at| 2 * (at - 1) + 1).collect();
    assert_eq!(links, expected, "from the far end to NPU 0");
}

#[test]
fn explicit_paths_are_taken() {
    let mut builder = TopologyBuilder::new("triangle");
    builder.npus(3);
    for (a, b) in [(0, 1), (1, 2), (0, 2)] {
        builder.both_ways(DeviceId(a), DeviceId(b), gigabyte(), Time::ZERO);
    }
    let topology = Arc::new(builder.finish().unwrap());
    let npus = vec![NpuId(0), NpuId(2)];
    let collective = Collective::new(CollectiveKind::Broadcast, npus, 1000, None).unwrap();
    let chunks = Chunks::split(&collective.demands(), 1).unwrap();
    let mut b = PlanBuilder::new("by hand", &collective, chunks);
    let path = b.path(&[LinkId(0), LinkId(2)]);
    b.push(Transfer {
        chunk: crate::id::ChunkId(0),
        count: 1,
        src: NpuId(0),
        dst: NpuId(2),
        op: Op::Copy,
        wait: Wait::NOTHING,
        path: Some(path),
    });
    let run = run(b, &topology, SimulateOptions::default());
    assert_eq!(run.time.as_ps(), 2_000_000);
}

/// A transfer's rank, the links of its way with how long each sends it, and the one that it waits for.
type Ranked = (usize, Vec<(usize, u64)>, Option<usize>);

/// When each transfer ends if links serve whoever has come by rank, found by looking at everything at every moment.
fn ends_by_rank(transfers: &[Ranked], latency: u64) -> Vec<u64> {
    let mut free = [0u64; 64];
    // How many links of its way it has left, and since when it is at the next.
    let mut at: Vec<(usize, Option<u64>)> = vec![(0, None); transfers.len()];
    let mut now = 0;
    loop {
        for t in 0..transfers.len() {
            let is_let_go = transfers[t].2.is_none_or(|other| {
                at[other].0 == transfers[other].1.len() && at[other].1.is_some_and(|end| end <= now)
            });
            if at[t] == (0, None) && is_let_go {
                at[t].1 = Some(now);
            }
        }
        for (link, free) in free.iter_mut().enumerate() {
            let waits = (0..transfers.len()).filter(|&t| {
                let (done, since) = at[t];
                let next = transfers[t].1.get(done);
                next.is_some_and(|next| next.0 == link) && since.is_some_and(|since| since <= now)
            });
            if *free <= now
                && let Some(t) = waits.min_by_key(|&t| transfers[t].0)
            {
                *free = now + transfers[t].1[at[t].0].1;
                at[t] = (at[t].0 + 1, Some(*free + latency));
            }
        }
        let moments = free.iter().copied();
        let moments = moments.chain(at.iter().filter_map(|&(_, since)| since));
        match moments.filter(|&moment| moment > now).min() {
            Some(next) => now = next,
            None => return at.iter().map(|&(_, end)| end.expect("it ended")).collect(),
        }
    }
}

#[test]
fn by_priority_a_link_serves_who_comes_first_in_the_plan() {
    let mut seed = Seed(3);
    let (mut other_than_ready, options) = (0, |order| SimulateOptions {
        order: Some(order),
        ..SimulateOptions::default()
    });
    for _ in 0..200 {
        let n = 2 + seed.below(6);
        let latency = 1 + seed.below(500_000) as u64;
        let topology = line(n, latency);
        let npus = (0..n).map(NpuId::from).collect();
        let size = (n * (1 + seed.below(3000))) as u64;
        let collective = Collective::new(CollectiveKind::AllGather, npus, size, None).unwrap();
        // Each block goes to everybody in turn, from somebody who has it.
        let mut all: Vec<(u32, usize, usize, Option<usize>)> = Vec::new();
        for block in 0..n {
            let mut have = vec![(block, None)];
            for dst in (0..n).filter(|&dst| dst != block) {
                let (src, wait) = have[seed.below(have.len())];
                have.push((dst, Some(all.len())));
                all.push((narrow(block), src, dst, wait));
            }
        }
        let mut place: Vec<usize> = (0..all.len()).collect();
        for i in (1..place.len()).rev() {
            place.swap(i, seed.below(i + 1));
        }
        let mut rows = vec![0; all.len()];
        place.iter().enumerate().for_each(|(t, &row)| rows[row] = t);
        let chunks = Chunks::split(&collective.demands(), 1).unwrap();
        let plan = || {
            let mut b = PlanBuilder::new("by hand", &collective, chunks.clone());
            for &t in &rows {
                let (block, src, dst, wait) = all[t];
                let wait = wait.map_or(Wait::NOTHING, |other| {
                    Wait::on(TransferId::from(place[other]))
                });
                b.send(
                    (block, 1),
                    NpuId::from(src),
                    NpuId::from(dst),
                    Op::Copy,
                    wait,
                );
            }
            b
        };
        let way = |src: usize, dst: usize| -> Vec<usize> {
            let step = |i: usize| if dst > src { i + 1 } else { i - 1 };
            let hops = std::iter::successors(Some(src), |&i| (i != dst).then(|| step(i)));
            let stops: Vec<usize> = hops.take_while(|&i| i != dst).collect();
            let link = |i: usize| topology.links_between(i.into(), step(i).into()).unwrap()[0];
            stops.into_iter().map(|i| link(i).index()).collect()
        };
        let takes = size / n as u64 * 1000;
        let expected: Vec<_> = (0..all.len())
            .map(|t| {
                let (_, src, dst, wait) = all[t];
                let links = way(src, dst).into_iter().map(|link| (link, takes));
                (place[t], links.collect(), wait)
            })
            .collect();
        let by_priority = run(plan(), &topology, options(LinkOrder::Priority));
        let of_rows = ends_by_rank(&expected, latency);
        let of_rows: Vec<u64> = rows.iter().map(|&t| of_rows[t]).collect();
        assert_eq!(ends(&by_priority), of_rows);
        other_than_ready +=
            usize::from(by_priority.end != run(plan(), &topology, options(LinkOrder::Ready)).end);
    }
    assert!(other_than_ready > 50, "{other_than_ready}");
}
