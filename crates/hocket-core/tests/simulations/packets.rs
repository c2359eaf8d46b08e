use std::collections::HashMap;
use std::sync::Arc;

use hocket_core::algorithms::{PlanOptions, plan};
use hocket_core::collective::{Collective, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{DeviceId, NpuId, TransferId, fit, narrow};
use hocket_core::plan::{Chunks, LinkOrder, Op, PlanBuilder, Transfer, Wait, WaitOn};
use hocket_core::progress::Silent;
use hocket_core::simulate::{PacketOptions, Run, SimulateError, simulate_packets};
use hocket_core::topology::{Topology, TopologyBuilder, build};
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::{Verified, verify};

fn rate() -> Bandwidth {
    Bandwidth::from_bytes_per_second(25_000_000_000).unwrap()
}

fn mesh(columns: u32, rows: u32) -> Arc<Topology> {
    Arc::new(build::mesh(&[columns, rows], rate(), Time::from_ns(21)).unwrap())
}

/// Messages of (source, destination, bytes), each after the one before where `chained`.
fn messages(topology: &Arc<Topology>, messages: &[(u32, u32, u64)], chained: bool) -> Verified {
    let demands = messages
        .iter()
        .enumerate()
        .map(|(i, &(src, dst, bytes))| Demand {
            bytes,
            reduced: false,
            holders: if chained && i > 0 {
                NpuSet::One(NpuId(messages[0].0))
            } else {
                NpuSet::One(NpuId(src))
            },
            wanted: NpuSet::One(NpuId(dst)),
        });
    let demands: Vec<Demand> = if chained {
        demands
            .take(1)
            .map(|demand| Demand {
                wanted: NpuSet::of(messages.iter().map(|&(_, dst, _)| NpuId(dst))),
                ..demand
            })
            .collect()
    } else {
        demands.collect()
    };
    let npus = topology.npus().collect();
    let collective = Collective::custom(npus, demands).unwrap();
    let chunks = Chunks::split(&collective.demands(), 1).unwrap();
    let mut builder = PlanBuilder::new("by hand", &collective, chunks);
    let mut wait = Wait::NOTHING;
    for (i, &(src, dst, _)) in messages.iter().enumerate() {
        let chunk = if chained { 0 } else { narrow(i) };
        let sent = builder.send((chunk, 1), NpuId(src), NpuId(dst), Op::Copy, wait);
        if chained {
            wait = Wait::on(sent);
        }
    }
    verify(Arc::new(builder.finish()), topology.clone(), &mut Silent).unwrap()
}

fn run(verified: &Verified, options: PacketOptions) -> Run {
    simulate_packets(verified, &options, &mut Silent).unwrap()
}

/// Ends in cycles of 1 ns.
fn ends(run: &Run) -> Vec<u64> {
    run.end.iter().map(|end| end.as_ps() / 1000).collect()
}

#[test]
fn single_messages_take_what_booksim_says() {
    // On 9 x 9: NPU 8 is at the first row's end, 20 two on in x and two in y.
    for (bytes, dst, cycles) in [
        (512, 1, 30),
        (512, 8, 198),
        (5000, 1, 218),
        (8192, 1, 344),
        (8192, 2, 368),
        (8192, 4, 416),
        (8192, 8, 512),
        (8192, 20, 416),
        (1 << 20, 1, 43_016),
    ] {
        let one = messages(&mesh(9, 9), &[(0, dst, bytes)], false);
        assert_eq!(
            ends(&run(&one, PacketOptions::default())),
            [cycles],
            "{bytes} B to {dst}"
        );
    }
}

#[test]
fn a_chain_takes_what_booksim_says() {
    let chain: Vec<_> = (0..4).map(|i| (i, i + 1, 8192)).collect();
    let chain = messages(&mesh(9, 9), &chain, true);
    assert_eq!(
        ends(&run(&chain, PacketOptions::default())),
        [344, 689, 1034, 1379]
    );
}

#[test]
fn two_messages_share_a_link_as_booksim_says() {
    let two = [(0, 2, 1 << 20), (1, 2, 1 << 20)];
    let two = messages(&mesh(9, 9), &two, false);
    assert_eq!(ends(&run(&two, PacketOptions::default())), [73_718, 86_024]);
}

/// All-reduces of `mib` MiB on a square mesh, in cycles.
fn all_reduce(name: &str, side: u32, mib: u64, order: LinkOrder) -> u64 {
    let topology = mesh(side, side);
    let is_tto = name.starts_with("tto");
    let npus = (0..side * side).filter(|&npu| !is_tto || npu != side * (side - 1));
    let npus = npus.map(NpuId).collect();
    let size = mib << 20;
    let collective = Collective::new(CollectiveKind::AllReduce, npus, size, None).unwrap();
    let chunks = if is_tto { size.div_ceil(98_304) } else { 1 };
    let options = PlanOptions {
        chunks: Some(fit(chunks)),
        ..PlanOptions::new(name.parse().unwrap())
    };
    let plan = plan(&topology, &collective, &options, &mut Silent).unwrap();
    let verified = verify(Arc::new(plan), topology, &mut Silent).unwrap();
    let options = PacketOptions {
        order: Some(order),
        ..PacketOptions::default()
    };
    run(&verified, options).time.as_ps() / 1000
}

#[test]
fn rings_and_trees_take_what_booksim_says() {
    use LinkOrder::{Plan, Ready};
    // Cycles that BookSim2 took for the same schedules, at table II.
    let within = |name, order, percent: f64, cases: &[(u32, u64, u64)]| {
        for &(side, mib, booksim) in cases {
            let ours = all_reduce(name, side, mib, order);
            let off = ours as f64 / booksim as f64 - 1.0;
            assert!(
                off.abs() * 100.0 <= percent,
                "{name} {side} x {side}, {mib} MiB: {ours} against {booksim}"
            );
        }
    };
    let ring = [
        (4, 1, 80_909),
        (5, 1, 83_135),
        (8, 1, 85_805),
        (4, 16, 1_290_509),
        (5, 16, 1_321_967),
    ];
    within("ring", Ready, 0.0, &ring);
    let even = [(4, 1, 40_592), (8, 1, 43_472), (4, 16, 645_392)];
    within("bidirectional-ring", Ready, 0.1, &even);
    let odd = [(5, 1, 43_583), (5, 16, 688_703)];
    within("ring-bi-odd", Ready, 0.1, &odd);
    let lock_step = [
        (4, 1, 43_196),
        (5, 1, 41_618),
        (8, 1, 43_812),
        (4, 16, 688_316),
        (5, 16, 661_034),
    ];
    within("multitree", Plan, 2.0, &lock_step);
    let tto = [
        (4, 1, 42_237),
        (5, 1, 47_650),
        (8, 1, 63_893),
        (4, 16, 472_317),
        (5, 16, 477_731),
    ];
    within("tto", Ready, 2.0, &tto);
    let overlapped = [
        (4, 1, 35_461),
        (5, 1, 38_173),
        (8, 1, 50_895),
        (4, 16, 471_414),
        (5, 16, 474_145),
    ];
    within("tto-overlapped", Ready, 2.0, &overlapped);
}

/// MultiTree whose transfers are listed by their step in their own tree, not by the step in which the
/// link was taken: links that serve in the order of arrival break ties by it.
fn multitree_by_tree_step(side: u32, mib: u64) -> u64 {
    let topology = mesh(side, side);
    let npus = topology.npus().collect();
    let size = mib << 20;
    let collective = Collective::new(CollectiveKind::AllReduce, npus, size, None).unwrap();
    let options = PlanOptions {
        chunks: Some(1),
        ..PlanOptions::new("multitree".parse().unwrap())
    };
    let given = plan(&topology, &collective, &options, &mut Silent).unwrap();
    let rows: Vec<_> = (0..given.len())
        .map(|i| given.transfer(TransferId::from(i)))
        .collect();
    let copies = || rows.iter().filter(|row| row.op == Op::Copy);
    let mut depth = HashMap::new();
    while depth.len() < copies().count() {
        for row in copies() {
            let above = depth.get(&(row.chunk, row.src)).copied();
            let is_root = !copies().any(|other| (other.chunk, other.dst) == (row.chunk, row.src));
            if let Some(above) = above.or(is_root.then_some(0)) {
                depth.insert((row.chunk, row.dst), above + 1);
            }
        }
    }
    let height = depth.values().copied().max().unwrap();
    let step = |i: usize| match rows[i].op {
        Op::Reduce => (0, height - depth[&(rows[i].chunk, rows[i].src)]),
        Op::Copy => (1, depth[&(rows[i].chunk, rows[i].dst)]),
    };
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&i| (step(i), rows[i].chunk));
    let mut place = vec![0; rows.len()];
    for (at, &i) in order.iter().enumerate() {
        place[i] = at;
    }
    let moved = |bits: u32| match Wait::from_bits(bits).target() {
        WaitOn::Transfer(id) => Wait::on(TransferId::from(place[id.index()])),
        _ => Wait::from_bits(bits),
    };
    let mut builder = PlanBuilder::new("by tree step", &collective, given.chunks().clone());
    let groups: Vec<Wait> = given
        .groups()
        .iter()
        .map(|members| {
            let members: Vec<Wait> = members.iter().map(|&bits| moved(bits)).collect();
            builder.all_of(&members)
        })
        .collect();
    for &i in &order {
        let wait = match rows[i].wait.target() {
            WaitOn::Group(group) => groups[group as usize],
            _ => moved(rows[i].wait.to_bits()),
        };
        builder.push(Transfer { wait, ..rows[i] });
    }
    let verified = verify(Arc::new(builder.finish()), topology, &mut Silent).unwrap();
    run(&verified, PacketOptions::default()).time.as_ps() / 1000
}

#[test]
fn multitree_by_tree_step_takes_what_booksim_says() {
    for (side, mib, booksim, percent) in [
        (4, 1, 48_423, 0.2),
        (5, 1, 44_821, 0.2),
        (4, 16, 774_182, 0.2),
        // How many messages come one after the other hangs on ties, of which BookSim's are not known: here 26
        // on 5 x 5 with 16 MiB as with 1 MiB, there 25 and 26; neighbours tried in another order give 44,470 on 8 x 8.
        (8, 1, 44_417, 3.2),
        (5, 16, 688_329, 4.1),
    ] {
        let ours = multitree_by_tree_step(side, mib);
        let off = (ours as f64 / f64::from(booksim) - 1.0) * 100.0;
        assert!(
            off.abs() <= percent,
            "{side} x {side}, {mib} MiB: {ours} against {booksim}"
        );
    }
}

#[test]
fn headers_are_flits_more() {
    let one = messages(&mesh(9, 9), &[(0, 1, 1 << 20)], false);
    let options = PacketOptions {
        header_flits: 1,
        ..PacketOptions::default()
    };
    assert_eq!(ends(&run(&one, options)), [29 + 21 * (128 * 17 - 1)]);
}

#[test]
fn sums_take_their_time_one_after_the_other() {
    let topology = mesh(2, 2);
    let npus = topology.npus().collect();
    let collective = Collective::new(CollectiveKind::Reduce, npus, 8192, None).unwrap();
    let chunks = Chunks::split(&collective.demands(), 1).unwrap();
    let mut builder = PlanBuilder::new("by hand", &collective, chunks);
    for src in 1..4 {
        builder.send((0, 1), NpuId(src), NpuId(0), Op::Reduce, Wait::NOTHING);
    }
    let verified = verify(Arc::new(builder.finish()), topology, &mut Silent).unwrap();
    let options = PacketOptions {
        // 8,192 B in 1,000 cycles.
        reduction_rate: Bandwidth::from_bytes_per_second(8_192_000_000),
        ..PacketOptions::default()
    };
    let ends = ends(&run(&verified, options));
    // Two come at once; the third, over two links, shares one of them.
    assert_eq!(ends[..2], [1344, 2344]);
    assert_eq!(ends[2], 3344);
}

#[test]
fn sums_are_made_in_the_order_of_arrival() {
    // NPU 1 is 10 us away from NPU 0, NPU 2 is next to it.
    let mut builder = TopologyBuilder::new("far and near");
    builder.npus(3);
    for (npu, latency) in [(1, 10_000), (2, 0)] {
        let latency = Time::from_ns(latency);
        builder.both_ways(DeviceId(npu), DeviceId(0), rate(), latency);
    }
    let topology = Arc::new(builder.finish().unwrap());
    let npus = topology.npus().collect();
    let collective = Collective::new(CollectiveKind::Reduce, npus, 8192, None).unwrap();
    let chunks = Chunks::split(&collective.demands(), 1).unwrap();
    let mut builder = PlanBuilder::new("by hand", &collective, chunks);
    for src in 1..3 {
        builder.send((0, 1), NpuId(src), NpuId(0), Op::Reduce, Wait::NOTHING);
    }
    let verified = verify(Arc::new(builder.finish()), topology, &mut Silent).unwrap();
    let options = PacketOptions {
        reduction_rate: Bandwidth::from_bytes_per_second(8_192_000_000),
        ..PacketOptions::default()
    };
    let ends = ends(&run(&verified, options));
    assert_eq!(ends, [10_000 + 323 + 1000, 344 + 1000]);
}

#[test]
fn links_of_a_switch_with_a_limit_take_turns() {
    // Two messages to two NPUs through a switch that lets one flit through at a time.
    let topology = build::switch(4, rate(), Time::ZERO, Some(rate())).unwrap();
    let two = [(0, 2, 1 << 20), (1, 3, 1 << 20)];
    let ends = ends(&run(
        &messages(&Arc::new(topology), &two, false),
        PacketOptions::default(),
    ));
    assert!(ends[0].abs_diff(ends[1]) <= 21, "{ends:?}");
}

#[test]
fn the_first_flit_takes_its_time_through_a_limit_too() {
    // 25 GB/s and 21 ns a link; a flit of 512 B takes 2,048 cycles through 0.25 GB/s.
    let limit = Bandwidth::from_bytes_per_second(250_000_000).unwrap();
    let through = |limit| {
        let topology = build::switch(2, rate(), Time::from_ns(21), limit).unwrap();
        let message = |bytes| {
            let one = messages(&Arc::new(topology.clone()), &[(0, 1, bytes)], false);
            ends(&run(&one, PacketOptions::default()))[0]
        };
        [message(512), message(4 * 512)]
    };
    assert_eq!(through(None), [54, 116]);
    assert_eq!(
        through(Some(limit)),
        [54 - 21 + 2048, 54 - 21 + 4 * 2048 - 1]
    );
}

#[test]
fn a_circle_of_full_buffers_is_reported() {
    // Each of four round a one-way ring sends three links far: every buffer fills with packets that
    // want the next one.
    let ring = Arc::new(build::ring(4, rate(), Time::from_ns(21), build::RingWays::One).unwrap());
    let all: Vec<_> = (0..4).map(|src| (src, (src + 3) % 4, 1 << 20)).collect();
    let verified = messages(&ring, &all, false);
    let options = PacketOptions {
        virtual_channels: 1,
        buffer_flits: 16,
        ..PacketOptions::default()
    };
    let error = simulate_packets(&verified, &options, &mut Silent).unwrap_err();
    let SimulateError::Buffers { waiting, cycle } = &error else {
        panic!("{error}");
    };
    assert_eq!(*waiting, 4);
    assert_eq!(cycle.matches(" waits for ").count(), 4, "{cycle}");
    assert!(cycle.contains("npu0→npu1 waits for npu1→npu2"), "{cycle}");
}

#[test]
fn plan_order_can_deadlock_and_says_so() {
    // The plan lists the forwarding before the receipt: fine by waits, not in plan order.
    let topology = mesh(2, 1);
    let npus = topology.npus().collect();
    let collective = Collective::new(CollectiveKind::AllReduce, npus, 100_000, None).unwrap();
    let chunks = Chunks::split(&collective.demands(), 2).unwrap();
    let mut builder = PlanBuilder::new("by hand", &collective, chunks);
    let on = |t| Wait::on(TransferId(t));
    for (chunk, src, op, wait) in [
        (0, 1, Op::Copy, on(2)),
        (1, 1, Op::Reduce, Wait::NOTHING),
        (0, 0, Op::Reduce, on(3)),
        (1, 0, Op::Copy, on(1)),
    ] {
        builder.send((chunk, 1), NpuId(src), NpuId(1 - src), op, wait);
    }
    let verified = verify(Arc::new(builder.finish()), topology, &mut Silent).unwrap();
    run(&verified, PacketOptions::default());
    let options = PacketOptions {
        order: Some(LinkOrder::Plan),
        ..PacketOptions::default()
    };
    let error = simulate_packets(&verified, &options, &mut Silent).unwrap_err();
    let expected = SimulateError::Deadlock {
        waiting: 4,
        first: TransferId(0),
    };
    assert_eq!(error, expected);
}

#[test]
fn contradictions_are_refused() {
    let one = messages(&mesh(2, 2), &[(0, 1, 8192)], false);
    let why = |options: PacketOptions| {
        let error = simulate_packets(&one, &options, &mut Silent).unwrap_err();
        error.to_string()
    };
    let base = PacketOptions::default();
    let small = why(PacketOptions {
        buffer_flits: 15,
        ..base
    });
    assert!(
        small.contains("a buffer of 15 flits does not hold a packet of 16 flits (8192 B)"),
        "{small}"
    );
    let flit = why(PacketOptions {
        flit_bytes: 8193,
        ..base
    });
    assert!(
        flit.contains("a packet of 8192 B does not hold a flit of 8193 B"),
        "{flit}"
    );
    assert!(
        why(PacketOptions {
            flit_bytes: 0,
            ..base
        })
        .contains("0 B")
    );
    let none = why(PacketOptions {
        virtual_channels: 0,
        ..base
    });
    assert!(none.contains("1 to 64 virtual channels, not 0"), "{none}");
    let still = why(PacketOptions {
        cycle: Some(Time::ZERO),
        ..base
    });
    assert!(still.contains("clock"), "{still}");
}

#[test]
fn the_largest_numbers_are_told_or_refused() {
    let base = PacketOptions::default();
    let slow = Bandwidth::from_bytes_per_second(1).unwrap();
    let line = |rate, latency| Arc::new(build::line(3, rate, latency).unwrap());
    let try_on = |topology: &Arc<Topology>, dst, bytes, options| {
        let one = messages(topology, &[(0, dst, bytes)], false);
        let run = simulate_packets(&one, &options, &mut Silent);
        run.map(|run| run.time.as_ps())
    };
    // Packets and flits of more than 2^32 bytes.
    let large = PacketOptions {
        packet_bytes: 1 << 34,
        flit_bytes: 1 << 33,
        ..base
    };
    let fast = line(rate(), Time::ZERO);
    let flit = (1u64 << 33) * 40;
    for (dst, flits) in [(1, 3), (2, 4)] {
        let time = try_on(&fast, dst, (1 << 34) + 1, large).unwrap();
        assert!(
            time.abs_diff(flits * flit.next_multiple_of(1000)) < 100_000,
            "{time}"
        );
    }
    let all = PacketOptions {
        packet_bytes: u64::MAX,
        flit_bytes: u64::MAX,
        ..base
    };
    assert!(try_on(&fast, 2, 100, all).is_err());
    // 100 days, and 300.
    let day = 86_400;
    let time = try_on(&line(slow, Time::ZERO), 1, 100 * day, base).unwrap();
    assert_eq!(time / 1_000_000_000_000 / day, 100);
    for (bytes, options) in [
        (300 * day, base),
        (1 << 40, base),
        (1 << 62, base),
        (1, all),
    ] {
        for dst in 1..3 {
            let error = try_on(&line(slow, Time::ZERO), dst, bytes, options).unwrap_err();
            assert_eq!(error, SimulateError::TooLong);
        }
    }
    // A clock of 1 THz, of 1 Hz, and one that never ticks twice.
    for (ps, is_told) in [
        (1, true),
        (1_000_000_000_000, true),
        (u64::MAX / 3, false),
        (u64::MAX, false),
    ] {
        let options = PacketOptions {
            cycle: Some(Time::from_ps(ps)),
            keep_services: true,
            ..base
        };
        for latency in [Time::ZERO, Time::from_ns(1_000_000_000), Time::MAX] {
            let told = try_on(&line(rate(), latency), 2, 8192, options);
            let is_told = is_told && latency != Time::MAX;
            assert_eq!(told.is_ok(), is_told, "{ps} ps, {latency}: {told:?}");
        }
        let slowest = PacketOptions {
            reduction_rate: Some(slow),
            header_flits: u32::MAX - 16,
            buffer_flits: u32::MAX,
            ..options
        };
        let _ = try_on(&fast, 1, 8192, slowest);
    }
}

#[test]
fn the_clock_is_finer_for_faster_links() {
    let fast = Bandwidth::from_bytes_per_second(100_000_000_000).unwrap();
    let topology = Arc::new(build::mesh(&[2, 2], fast, Time::ZERO).unwrap());
    let one = messages(&topology, &[(0, 1, 8192)], false);
    // 5.12 ns a flit: 5.2 ns in cycles of 0.2 ns; 7 cycles for the routers.
    let time = run(&one, PacketOptions::default()).time.as_ps();
    assert_eq!(time, 16 * 5200 + 8 * 200);
}
