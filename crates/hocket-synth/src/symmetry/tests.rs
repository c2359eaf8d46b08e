use super::*;
use crate::bound::{BoundOptions, bound};
use crate::id::{NpuId, TransferId, narrow};
use crate::plan::Wait;
use crate::progress::Silent;
use crate::simulate::simulate;
use crate::topology::{Dimension, DimensionKind, TopologyBuilder, build};
use crate::units::{Bandwidth, Seed};
use CollectiveKind::{AllGather, AllReduce, ReduceScatter};

fn gb_per_s(giga: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(giga * 1_000_000_000).expect("positive")
}

fn made(topology: &Arc<Topology>, kind: CollectiveKind, bytes: u64) -> SymmetricPlan {
    let collective = Collective::among_all(kind, topology, bytes).expect("a collective");
    let made = plan(
        topology,
        &collective,
        &SymmetricOptions::default(),
        &mut Silent,
    );
    made.unwrap_or_else(|why| panic!("{}, {kind}: {why}", topology.name()))
}

/// Proves the whole plan by the full check, and simulates it transfer by transfer.
fn whole(made: &SymmetricPlan) -> Run {
    let plan = made.shifted().expand(1 << 40).expect("a plan");
    let topology = Arc::clone(made.base.topology());
    let proof = verify(Arc::new(plan), topology, &mut Silent).expect("proved");
    simulate(&proof, &SimulateOptions::default(), &mut Silent).expect("a run")
}

/// Boxes of NPUs on a switch each, every NPU with a NIC of its own to a spine.
fn boxes(count: usize, size: usize, inner: Bandwidth, outer: Bandwidth) -> Topology {
    let mut builder = TopologyBuilder::new(format!("{count} boxes of {size}"));
    builder.npus(count * size);
    let spine = builder.switch("spine", None);
    let latency = Time::from_ns(700);
    for b in 0..count {
        let switch = builder.switch(format!("b{b}"), None);
        for i in 0..size {
            let npu = DeviceId::from(b * size + i);
            let nic = builder.switch(format!("b{b}nic{i}"), None);
            builder.both_ways(npu, switch, inner, latency);
            builder.both_ways(npu, nic, outer, latency);
            builder.both_ways(nic, spine, outer, latency);
        }
    }
    builder.finish().expect("a network")
}

/// The same network, whose NPUs are numbered anyhow.
fn shuffled(topology: &Topology, seed: &mut Seed) -> Topology {
    let mut order: Vec<usize> = (0..topology.npu_count()).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, seed.below(i + 1));
    }
    let mut builder = TopologyBuilder::new(format!("{} shuffled", topology.name()));
    builder.npus(topology.npu_count());
    let place = |device: DeviceId| match topology.is_npu(device) {
        true => DeviceId::from(order[device.index()]),
        false => device,
    };
    for device in &topology.devices()[topology.npu_count()..] {
        builder.switch(device.name.clone(), device.limit);
    }
    for link in topology.links() {
        builder.link(
            place(link.src),
            place(link.dst),
            link.bandwidth,
            link.latency,
        );
    }
    builder.switching(topology.switching());
    builder.finish().expect("a network")
}

fn product(seed: &mut Seed, most: usize) -> Topology {
    use DimensionKind::{FullyConnected, Ring, Switch};
    loop {
        let dimensions = 1 + seed.below(3);
        let dimensions: Vec<Dimension> = (0..dimensions)
            .map(|_| Dimension {
                kind: [Ring, Ring, Ring, FullyConnected, Switch][seed.below(5)],
                size: 2 + narrow(seed.below(6)),
                bandwidth: gb_per_s([25, 50, 50, 75, 200][seed.below(5)]),
                latency: Time::from_ns([0, 21, 500, 700][seed.below(4)]),
                offload: false,
            })
            .collect();
        let npus: u32 = dimensions.iter().map(|dimension| dimension.size).product();
        if npus as usize <= most {
            return build::product(&dimensions).expect("a product");
        }
    }
}

/// Every fourth network is one of boxes; the others are products with so many NPUs at most.
fn drawn(case: usize, seed: &mut Seed, most: usize) -> Topology {
    match case % 4 {
        3 => boxes(
            2 + seed.below(3),
            2 + seed.below(4),
            gb_per_s(300),
            gb_per_s(25),
        ),
        _ => product(seed, most),
    }
}

#[test]
fn what_is_simulated_is_what_the_whole_plan_does() {
    let mut seed = Seed(7);
    let check = |made: &SymmetricPlan, whole: &Run, context: &str| {
        let folded = made
            .simulate(&SimulateOptions::default(), &mut Silent)
            .expect("a run");
        assert_eq!(folded, made.run, "{context}");
        assert_eq!(made.whole_run().as_ref(), Some(whole), "{context}");
    };
    for case in 0..100 {
        let topology = Arc::new(drawn(case, &mut seed, 48));
        let kind = [AllGather, ReduceScatter, AllReduce][seed.below(3)];
        let bytes = topology.npu_count() as u64 * [720_720, 12_000_000, 5_040][seed.below(3)];
        let made = made(&topology, kind, bytes);
        let context = format!("{case}: {} {kind} of {bytes}", topology.name());
        let equal = made.base.plan().collective().size() * topology.npu_count() as u64 == bytes;
        let run = whole(&made);
        if equal {
            check(&made, &run, &context);
        } else {
            assert!(run.time <= made.run.time, "{context}");
            assert_eq!(made.whole_run(), None, "{context}");
        }
        let collective = &made.collective;
        let least = bound(&topology, collective, &BoundOptions::default(), &mut Silent);
        let least = least.expect("a bound").time;
        let own = lower_bound(&topology, collective, &made.symmetry, &mut Silent);
        let own = own.expect("a bound").time;
        assert!(
            own <= run.time && least <= run.time,
            "{context}: {own} {least} {}",
            run.time
        );
        println!(
            "{context}: {} of {least}, own {own}, {:?}",
            made.run.time,
            made.symmetry.orders()
        );
    }
}

#[test]
fn numbers_do_not_matter() {
    let mut seed = Seed(3);
    for sizes in [
        vec![5, 7],
        vec![4, 4, 4],
        vec![3, 6],
        vec![9],
        vec![2, 8],
        vec![2, 2, 2, 2],
    ] {
        let torus = build::torus(&sizes, gb_per_s(25), Time::ZERO).expect("a torus");
        let shuffled = shuffled(&torus, &mut seed);
        let found = find(&shuffled).unwrap_or_else(|why| panic!("{sizes:?}: {why}"));
        assert_eq!(found.len(), torus.npu_count());
        for npu in shuffled.npus() {
            assert_eq!(found.take_npu(found.element(npu), found.npu(0)), npu);
        }
    }
}

#[test]
fn large_data_comes_near_the_bound() {
    let torus = |sizes: &[u32]| build::torus(sizes, gb_per_s(25), Time::from_ns(500));
    let networks = [
        torus(&[8, 8, 8]).expect("a torus"),
        torus(&[16, 8, 8]).expect("a torus"),
        torus(&[5, 4]).expect("a torus"),
        boxes(8, 8, gb_per_s(300), gb_per_s(25)),
        boxes(2, 8, gb_per_s(300), gb_per_s(25)),
    ];
    for network in networks {
        let network = Arc::new(network);
        for kind in [AllGather, ReduceScatter, AllReduce] {
            let bytes = 1 << 30;
            let made = made(&network, kind, bytes);
            let own = lower_bound(&network, &made.collective, &made.symmetry, &mut Silent);
            let share = own.expect("a bound").time.as_ps() as f64 / made.run.time.as_ps() as f64;
            println!(
                "{} {kind}: {share} {} pieces {}",
                network.name(),
                made.pieces,
                made.base.plan().len()
            );
            assert!(share > 0.97, "{}, {kind}: {share}", network.name());
        }
    }
}

#[test]
fn what_is_not_symmetric_is_refused() {
    let mesh = build::mesh(&[3, 3], gb_per_s(25), Time::ZERO).expect("a mesh");
    let why = find(&mesh).expect_err("corners differ").to_string();
    assert!(
        why.starts_with("npu0 (2 links out) and npu1 (3) do not have the same links"),
        "{why}"
    );
    let mut builder = TopologyBuilder::new("ring with a chord");
    builder.npus(4);
    for i in 0..4 {
        let bandwidth = gb_per_s(if i == 2 { 10 } else { 25 });
        builder.link(DeviceId(i), DeviceId((i + 1) % 4), bandwidth, Time::ZERO);
    }
    assert!(find(&builder.finish().expect("a ring")).is_err());
    let torus = Arc::new(build::torus(&[3, 3], gb_per_s(25), Time::ZERO).expect("a torus"));
    let broadcast = Collective::among_all(CollectiveKind::Broadcast, &torus, 900).expect("one");
    let options = SymmetricOptions::default();
    let why = plan(&torus, &broadcast, &options, &mut Silent)
        .expect_err("refused")
        .to_string();
    assert!(
        why.contains("broadcast does not ask the same of every NPU"),
        "{why}"
    );
    let some = Collective::new(AllGather, vec![NpuId(0), NpuId(1)], 900, None).expect("one");
    let why = plan(&torus, &some, &options, &mut Silent)
        .expect_err("refused")
        .to_string();
    assert!(why.contains("2 of 9 NPUs take part"), "{why}");
}

/// A plan of one block with one thing wrong, or right after all.
fn changed(plan: &Plan, topology: &Topology, seed: &mut Seed) -> Plan {
    let mut columns = plan.columns();
    let row = seed.below(plan.len());
    match seed.below(6) {
        0 => columns.wait[row] = Wait::NOTHING.to_bits(),
        1 => columns.wait[row] = Wait::on(TransferId::from(seed.below(plan.len()))).to_bits(),
        2 => columns.dst[row] = narrow(seed.below(topology.npu_count())),
        3 => columns.chunk[row] = narrow(seed.below(plan.chunks().len())),
        4 => columns.op[row] = 1 - columns.op[row],
        _ => columns.path[row] = narrow(seed.below(plan.paths().len())),
    }
    let (groups, paths) = (plan.groups().clone(), plan.paths().clone());
    let (collective, chunks) = (plan.collective().clone(), plan.chunks().clone());
    let plan = Plan::from_columns(plan.algorithm(), collective, chunks, columns, groups, paths);
    plan.expect("columns of equal length")
}

#[test]
fn the_verdict_on_one_block_is_the_verdict_on_all() {
    let mut seed = Seed(11);
    let mut wrong = 0;
    for case in 0..400 {
        let topology = Arc::new(match case % 4 {
            3 => boxes(2, 2 + seed.below(2), gb_per_s(300), gb_per_s(25)),
            _ => product(&mut seed, 16),
        });
        let kind = [AllGather, ReduceScatter, AllReduce][seed.below(3)];
        let bytes = topology.npu_count() as u64 * 5_040;
        let collective = Collective::among_all(kind, &topology, bytes).expect("a collective");
        let options = SymmetricOptions {
            pieces: Some(1 + seed.below(2)),
            ..SymmetricOptions::default()
        };
        let made = plan(&topology, &collective, &options, &mut Silent).expect("a plan");
        let base = changed(made.base.plan(), &topology, &mut seed);
        let shifted = Shifted::new(&made.symmetry, &base, &collective);
        let whole = Arc::new(shifted.expand(1 << 40).expect("a plan"));
        let all = verify(whole, Arc::clone(&topology), &mut Silent);
        let one = prove(&made.symmetry, base.clone(), &topology, &mut Silent);
        assert_eq!(
            one.is_ok(),
            all.is_ok(),
            "{case}: {kind} on {}: {one:?}",
            topology.name()
        );
        wrong += usize::from(one.is_err());
    }
    assert!((200..400).contains(&wrong), "{wrong} of 400 are wrong");
}

#[test]
fn a_group_that_is_none_is_refused() {
    let ring = build::ring(6, gb_per_s(25), Time::ZERO, build::RingWays::Both).expect("a ring");
    let extend = |npus: &[u32]| extend::Extender::new(&ring).extend(npus).expect("a shift");
    let turn = extend(&[1, 2, 3, 4, 5, 0]);
    let mirror = extend(&[0, 5, 4, 3, 2, 1]);
    let new =
        |generators: &[(u32, Shift)]| Symmetry::new(&ring, generators, NpuId(0)).map(|it| it.len());
    assert_eq!(new(&[(6, turn.clone())]), Ok(6));
    // Too few times, too often, not commuting, not everywhere.
    assert_eq!(
        new(&[(3, turn.clone())]),
        Err(NoSymmetry::Order { generator: 0 })
    );
    assert_eq!(new(&[(12, turn.clone())]), Err(NoSymmetry::Regular));
    assert_eq!(
        new(&[(6, turn.clone()), (2, mirror.clone())]),
        Err(NoSymmetry::Order { generator: 1 })
    );
    assert_eq!(new(&[(2, mirror)]), Err(NoSymmetry::Regular));
    let mut other = turn;
    other.links.swap(0, 1);
    assert!(matches!(new(&[(6, other)]), Err(NoSymmetry::Link { .. })));
}

/// A product of a line of an even number and two more dimensions, whose NPUs differ.
fn open_product(seed: &mut Seed) -> Topology {
    use DimensionKind::{Line, Ring, Switch};
    let even = 2 * (1 + narrow(seed.below(2)));
    let size = [2 + narrow(seed.below(2)), even, 3];
    let kinds = [Line, [Line, Ring, Switch][seed.below(3)]];
    let kind = [kinds[1], kinds[0], kinds[seed.below(2)]];
    let dimensions = [0, 1, 2].map(|i| Dimension {
        kind: kind[i],
        size: size[i],
        bandwidth: gb_per_s([25, 50][seed.below(2)]),
        latency: Time::from_ns(500),
        offload: false,
    });
    build::product(&dimensions).expect("a product")
}

#[test]
fn a_mesh_is_its_own_mirror_image_and_what_stays_in_place_is_no_digit() {
    let of = |size: &[u32]| {
        let mesh = build::mesh(size, gb_per_s(50), Time::ZERO).expect("a mesh");
        find::find_free(&mesh).map(|found| (found.len(), found.firsts().collect::<Vec<NpuId>>()))
    };
    let corner = |npus: &[u32]| npus.iter().map(|&npu| NpuId(npu)).collect::<Vec<NpuId>>();
    assert_eq!(of(&[4, 4]), Some((4, corner(&[0, 1, 4, 5]))));
    assert_eq!(of(&[3, 4]), Some((2, corner(&[0, 1, 2, 3, 4, 5]))));
    assert_eq!(of(&[2, 3, 4]), Some((4, corner(&[0, 2, 4, 6, 8, 10]))));
    assert_eq!(of(&[3, 5]), None);
}

#[test]
fn shifts_of_an_exchange_are_an_all_to_all() {
    let mut seed = Seed(11);
    let mut passed_on = 0;
    for case in 0..75 {
        let topology = Arc::new(match case % 5 {
            4 => open_product(&mut seed),
            _ => drawn(case, &mut seed, 40),
        });
        let kind = CollectiveKind::AllToAll;
        let bytes = (topology.npu_count() * 12_000 + seed.below(2)) as u64;
        let collective = Collective::among_all(kind, &topology, bytes).expect("a collective");
        let is_direct = topology.npu_count() == topology.device_count();
        let how = (1 + seed.below(3) as u64, is_direct && case % 2 == 0);
        let made = Exchange::new("flows", &topology, &collective, how, &mut Silent).expect("made");
        let made = made.unwrap_or_else(|| panic!("{}", topology.name()));
        let (plan, told) = made.whole(1 << 30).expect("a plan");
        passed_on += usize::from(plan.link_order() == LinkOrder::Priority);
        let proof = verify(Arc::new(plan), Arc::clone(&topology), &mut Silent).expect("proved");
        let run = simulate(&proof, &SimulateOptions::default(), &mut Silent).expect("a run");
        let time = run.time.as_seconds();
        // Which counts all blocks as large as the largest, of equal pieces: up to 3 bytes of 12,000 more.
        let is_even = bytes.is_multiple_of(12 * topology.npu_count() as u64);
        let least = made.least * if is_even { 1.0 } else { 12_000.0 / 12_003.0 };
        assert!(time >= least, "{}: {time} s", topology.name());
        if is_even {
            assert_eq!(told.as_ref(), Some(&run), "{}", topology.name());
        } else {
            assert!(told.is_none_or(|told| told == run), "{}", topology.name());
        }
        let least = bound(
            &topology,
            &collective,
            &BoundOptions::default(),
            &mut Silent,
        );
        let least = least.expect("a bound").time;
        assert!(run.time >= least, "{}", topology.name());
        assert!(
            made.least <= least.as_seconds() * 1.01,
            "{}",
            topology.name()
        );
    }
    assert!(passed_on > 5, "{passed_on} plans pass blocks on");
}
