//! Plans that are lowered, checked, and run on arrays.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use hocket_core::algorithms::{Algorithm, PlanOptions, check_applicable, plan};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::narrow;
use hocket_core::plan::{Wait, WaitOn};
use hocket_core::program::check::{CheckOptions, check};
use hocket_core::program::interpret::{BlockOrder, InterpretOptions, interpret};
use hocket_core::program::{
    CompileError, CompileOptions, CompiledPlan, Mode, Op, Program, Ranks, compile,
};
use hocket_core::progress::Silent;
use hocket_core::topology::Topology;
use hocket_core::topology::build::{self, RingWays};
use hocket_core::units::{Bandwidth, Seed, Time};
use hocket_core::verify::{Verified, verify};

fn gigabyte() -> Bandwidth {
    Bandwidth::from_bytes_per_second(1_000_000_000).unwrap()
}

fn networks() -> Vec<Topology> {
    let latency = Time::from_ns(10);
    vec![
        build::ring(4, gigabyte(), latency, RingWays::Both).unwrap(),
        build::ring(5, gigabyte(), latency, RingWays::One).unwrap(),
        build::line(3, gigabyte(), latency).unwrap(),
        build::fully_connected(6, gigabyte(), latency).unwrap(),
        build::hypercube(3, gigabyte(), latency).unwrap(),
        build::fully_connected(2, gigabyte(), latency).unwrap(),
    ]
}

pub(crate) fn verified(
    topology: &Topology,
    kind: CollectiveKind,
    algorithm: Algorithm,
    chunks: usize,
    size: u64,
) -> Option<Verified> {
    let collective = Collective::among_all(kind, topology, size).unwrap();
    check_applicable(topology, &collective, algorithm).ok()?;
    let options = PlanOptions {
        chunks: Some(chunks),
        effort: 2_000,
        ..PlanOptions::new(algorithm)
    };
    let plan = plan(topology, &collective, &options, &mut Silent).ok()?;
    Some(verify(Arc::new(plan), Arc::new(topology.clone()), &mut Silent).expect("right"))
}

/// Runs a program on random integers and floats, in several orders, and compares with plain sums.
pub(crate) fn assert_computes(program: &Program, name: &str) {
    let task = *program.task();
    let random = |rank: u32, chunk: u32, i: usize| {
        let data = task.before(rank, chunk).data;
        Seed(u64::from(rank) << 40 | u64::from(data) << 8 | i as u64).next_u64()
    };
    let real = |rank, chunk, i| (random(rank, chunk, i) >> 40) as f32 / (1 << 24) as f32 + 0.5;
    let elements = 2;
    // The chunk of each rank's input that holds each data.
    let holding: Vec<HashMap<u32, u32>> = (0..task.ranks)
        .map(|of| {
            (0..task.input(of))
                .map(|at| (task.before(of, at).data, at))
                .collect()
        })
        .collect();
    let schedules = [
        BlockOrder::First,
        BlockOrder::Last,
        BlockOrder::InTurn,
        BlockOrder::Random(1),
        BlockOrder::Random(2),
    ];
    for &mode in program.modes() {
        for (schedule, chunks_per_message) in schedules.into_iter().zip([1, 1, 2, 1, 71]) {
            let options = InterpretOptions {
                mode,
                elements,
                chunks_per_message,
                schedule,
            };
            let whole = interpret(program, &options, |rank, chunk, i| {
                random(rank, chunk, i) as i64
            });
            let whole = whole.unwrap_or_else(|error| panic!("{name}: {error}"));
            let floats = interpret(program, &options, real).expect("as before");
            for rank in 0..task.ranks {
                for chunk in 0..task.output(rank) {
                    let after = task.after(rank, chunk).expect("known");
                    let at = |of: u32| holding[of as usize][&after.data];
                    for i in 0..elements {
                        let ranks: Vec<u32> = match after.rank {
                            Some(of) => vec![of],
                            None => (0..task.ranks).collect(),
                        };
                        let terms = ranks.iter().map(|&of| random(of, at(of), i) as i64);
                        let sum = terms.fold(0i64, i64::wrapping_add);
                        let at_output = chunk as usize * elements + i;
                        assert_eq!(
                            whole[rank as usize][at_output],
                            Some(sum),
                            "{name}: rank {rank}, chunk {chunk}, {schedule:?}"
                        );
                        let exact: f64 =
                            ranks.iter().map(|&of| f64::from(real(of, at(of), i))).sum();
                        let got = floats[rank as usize][at_output].expect("written");
                        let ulp = f64::from(f32::EPSILON) * exact.log2().floor().exp2();
                        let most = ulp * f64::from(task.ranks).log2().max(1.0);
                        assert!(
                            (f64::from(got) - exact).abs() <= most,
                            "{name}: {got} and {exact}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn every_algorithm_lowers_checks_and_computes() {
    let mut compiled = 0;
    let mut refused = Vec::new();
    let kinds = CollectiveKind::NAMED;
    for topology in networks() {
        for kind in kinds {
            for algorithm in Algorithm::ALL {
                for chunks in [1, 3] {
                    let Some(verified) = verified(&topology, kind, algorithm, chunks, 1_000_003)
                    else {
                        continue;
                    };
                    let modes = if kind == CollectiveKind::AllToAll {
                        vec![Mode::OutOfPlace]
                    } else {
                        vec![Mode::InPlace, Mode::OutOfPlace]
                    };
                    for mode in modes {
                        for (channels, instances, fuse) in
                            [(1, 1, true), (1, 1, false), (3, 2, true)]
                        {
                            let options = CompileOptions {
                                mode: Some(mode),
                                channels,
                                instances,
                                fuse,
                                ..CompileOptions::default()
                            };
                            let name = format!(
                                "{} {kind} by {} in {chunks} chunks, {mode}, {channels} channels",
                                topology.name(),
                                algorithm.name()
                            );
                            let program = match compile(&verified, &options) {
                                Ok(program) => program,
                                Err(error) => {
                                    refused.push(format!("{name}: {error}"));
                                    continue;
                                }
                            };
                            let checked =
                                check(&program, &CheckOptions::default(), &mut Silent).unwrap();
                            let faults = checked.faults.kept();
                            assert!(checked.is_right(), "{name}: {:?}", faults.first());
                            assert_computes(&program, &name);
                            compiled += 1;
                        }
                    }
                }
            }
        }
    }
    println!("{compiled} programs; refused: {}", refused.len());
    refused.iter().take(20).for_each(|line| println!("{line}"));
    assert!(compiled > 1_000);
    assert!(refused.is_empty(), "{}", refused[0]);
}

/// First chunks of what each rank sends to each other one, in the order of the program and of the plan.
fn sent(program: &Program, verified: &Verified) -> [HashMap<(u32, u32), Vec<u32>>; 2] {
    let plan = verified.plan();
    let (mut of_program, mut of_plan) = (HashMap::new(), HashMap::new());
    let each = program.task().chunks / narrow(plan.chunks().len());
    for (index, block) in program.blocks().iter().enumerate() {
        let Some(to) = block.send else { continue };
        let chunks: &mut Vec<u32> = of_program.entry((block.rank, to)).or_default();
        let steps = program
            .steps_of(narrow(index))
            .map(|step| program.step(step));
        let sends = steps.filter(|step| step.op == Op::Send);
        chunks
            .extend(sends.map(|step| step.sources().next().expect("what is sent").offset() / each));
    }
    for (i, &chunk) in plan.chunk().iter().enumerate() {
        let chunks: &mut Vec<u32> = of_plan.entry((plan.src()[i], plan.dst()[i])).or_default();
        chunks.extend(chunk..chunk + plan.chunk_count()[i]);
    }
    [of_program, of_plan]
}

#[test]
fn messages_keep_the_plans_order_where_they_are_to() {
    let grid = build::mesh(&[3, 3], gigabyte(), Time::ZERO).unwrap();
    let (mut kept, mut level) = (0, 0);
    for topology in networks().into_iter().chain([grid]) {
        for algorithm in Algorithm::ALL {
            let size = 720_720;
            let all_reduce = CollectiveKind::AllReduce;
            let Some(verified) = verified(&topology, all_reduce, algorithm, 2, size) else {
                continue;
            };
            let name = format!("{} by {}", topology.name(), algorithm.name());
            let compiled = |in_plan_order, channel_of| {
                let options = CompileOptions {
                    fuse: false,
                    max_count: 1,
                    in_plan_order,
                    channel_of,
                    ..CompileOptions::default()
                };
                let program = compile(&verified, &options).expect("lowered");
                let checked = check(&program, &CheckOptions::default(), &mut Silent).unwrap();
                assert!(
                    checked.is_right(),
                    "{name}: {:?}",
                    checked.faults.kept().first()
                );
                assert_computes(&program, &name);
                program
            };
            let transfers = narrow(verified.plan().len());
            let apart = compiled(false, Some((0..transfers).collect()));
            assert_eq!(
                apart
                    .blocks()
                    .iter()
                    .filter(|block| block.send.is_some())
                    .count(),
                transfers as usize,
                "{name}"
            );
            let [in_order, plan] = sent(&compiled(true, None), &verified);
            let is_even = in_order
                .values()
                .map(Vec::len)
                .eq(in_order.keys().map(|key| plan[key].len()));
            if !is_even {
                continue; // chunks of several sizes, of which a message is several
            }
            assert_eq!(in_order, plan, "{name}");
            kept += 1;
            let [by_level, _] = sent(&compiled(false, None), &verified);
            level += usize::from(by_level != plan);
        }
    }
    assert!(kept > 20, "{kept}");
    assert!(level > 0, "levels never differ from the plan's order");
}

/// Transfers that a plan has another wait for.
fn awaited(verified: &Verified, bits: u32, found: &mut Vec<u32>) {
    match Wait::from_bits(bits).target() {
        WaitOn::Nothing => {}
        WaitOn::Transfer(transfer) => found.push(transfer.0),
        WaitOn::Group(group) => {
            for &bits in verified.plan().groups().get(group as usize) {
                awaited(verified, bits, found);
            }
        }
    }
}

/// Waits for what arrives at a sender that its send does not have, directly or through others.
fn waits_that_are_lost(program: &Program, verified: &Verified) -> usize {
    let plan = verified.plan();
    // Each transfer has a channel of its own.
    let mut blocks = HashMap::new();
    for (index, block) in program.blocks().iter().enumerate() {
        blocks.insert((block.channel, block.send.is_some()), narrow(index));
    }
    let mut lost = 0;
    for transfer in 0..narrow(plan.len()) {
        let mut before = std::collections::HashSet::new();
        let mut open = vec![program.steps_of(blocks[&(transfer, true)]).end - 1];
        while let Some(step) = open.pop() {
            if before.insert(step) {
                let first = program.steps_of(program.block_of(step)).start;
                open.extend((step > first).then(|| step - 1));
                open.extend(program.step(step).dependency);
            }
        }
        let mut waits = Vec::new();
        awaited(verified, plan.wait()[transfer as usize], &mut waits);
        for wait in waits {
            let arrives = plan.dst()[wait as usize] == plan.src()[transfer as usize];
            let last = program.steps_of(blocks[&(wait, false)]).end - 1;
            lost += usize::from(arrives && !before.contains(&last));
        }
    }
    lost
}

#[test]
fn sends_keep_the_waits_of_the_plan_where_they_are_to() {
    let torus = build::torus(&[2, 4], gigabyte(), Time::from_ns(10)).unwrap();
    let mut lost = 0;
    for topology in networks().into_iter().chain([torus]) {
        for algorithm in Algorithm::ALL {
            let all_reduce = CollectiveKind::AllReduce;
            let Some(verified) = verified(&topology, all_reduce, algorithm, 4, 720_720) else {
                continue;
            };
            let compiled = |keeps_waits| {
                let options = CompileOptions {
                    fuse: false,
                    keeps_waits,
                    channel_of: Some((0..narrow(verified.plan().len())).collect()),
                    ..CompileOptions::default()
                };
                compile(&verified, &options).expect("lowered")
            };
            let name = format!("{} by {}", topology.name(), algorithm.name());
            let kept = compiled(true);
            let checked = check(&kept, &CheckOptions::default(), &mut Silent).unwrap();
            assert!(
                checked.is_right(),
                "{name}: {:?}",
                checked.faults.kept().first()
            );
            assert_eq!(waits_that_are_lost(&kept, &verified), 0, "{name}");
            lost += waits_that_are_lost(&compiled(false), &verified);
        }
    }
    assert!(lost > 0, "no plan waits for more than its data");
}

/// What a rank's steps are, without numbers that count through all ranks.
fn steps_of(program: &Program, rank: u32) -> Vec<String> {
    let blocks = program.blocks_of(rank);
    let first = program.steps_of(blocks.start).start;
    let step = |step: u32| {
        let view = program.step(step);
        let spans: Vec<_> = view.sources().chain(view.targets()).collect();
        format!(
            "{:?} {:?} {spans:?}",
            view.op,
            view.dependency.map(|on| on - first)
        )
    };
    let block = |block: u32| {
        let steps: Vec<_> = program.steps_of(block).map(step).collect();
        format!("{:?} {steps:?}", program.blocks()[block as usize])
    };
    blocks.map(block).collect()
}

#[test]
fn rank_by_rank_it_is_the_same_program() {
    let mut ranks = 0;
    for topology in networks() {
        for (kind, algorithm) in CollectiveKind::NAMED
            .into_iter()
            .flat_map(|kind| Algorithm::ALL.into_iter().map(move |each| (kind, each)))
        {
            let Some(verified) = verified(&topology, kind, algorithm, 2, 720_720) else {
                continue;
            };
            let options = CompileOptions {
                fuse: false,
                channels: 2,
                ..CompileOptions::default()
            };
            let Ok(compiled) = CompiledPlan::of(&verified, &options) else {
                continue;
            };
            let whole = compiled.program();
            assert_eq!(compiled.frame().sizes(), whole.sizes());
            for rank in (0..whole.ranks()).filter(|&rank| !whole.blocks_of(rank).is_empty()) {
                let part = compiled.rank(rank);
                assert_eq!(part.blocks().len(), part.blocks_of(rank).len());
                assert_eq!(steps_of(&part, rank), steps_of(&whole, rank));
                ranks += 1;
            }
        }
    }
    assert!(ranks > 500, "{ranks}");
}

#[test]
fn a_ring_is_fused_and_needs_no_scratch() {
    let topology = build::ring(4, gigabyte(), Time::ZERO, RingWays::Both).unwrap();
    let all_reduce = CollectiveKind::AllReduce;
    let verified = verified(&topology, all_reduce, Algorithm::Ring, 1, 4_000).unwrap();
    let program = compile(&verified, &CompileOptions::default()).unwrap();
    // Each rank has one block: a send, 2 sums sent on, 1 kept and sent on, 2 received and sent on, 1 received.
    assert_eq!(program.blocks().len(), 4);
    let ops: Vec<Op> = program
        .steps_of(0)
        .map(|step| program.step(step).op)
        .collect();
    let sums = ops.iter().filter(|&&op| op == Op::RecvReduceSend).count();
    let kept = ops
        .iter()
        .filter(|&&op| op == Op::RecvReduceStoreSend)
        .count();
    assert_eq!((ops.len(), sums, kept), (7, 2, 1), "{ops:?}");
    assert!(program.sizes().iter().all(|sizes| sizes[2] == 0));

    let reduce_scatter = CollectiveKind::ReduceScatter;
    let verified = self::verified(&topology, reduce_scatter, Algorithm::Ring, 1, 4_000).unwrap();
    let options = CompileOptions {
        mode: Some(Mode::OutOfPlace),
        ..CompileOptions::default()
    };
    let program = compile(&verified, &options).unwrap();
    let ops = |rank| {
        let blocks = program.blocks_of(rank);
        let steps = blocks.flat_map(|block| program.steps_of(block));
        steps
            .map(|step| program.step(step).op.name())
            .collect::<Vec<_>>()
    };
    let all: Vec<_> = (0..4).map(ops).collect();
    let has_scratch = program.sizes().iter().any(|sizes| sizes[2] > 0);
    assert!(!has_scratch, "{:?} {all:?}", program.sizes());
}

#[test]
fn what_cannot_be_lowered_says_why() {
    let topology = build::fully_connected(3, gigabyte(), Time::ZERO).unwrap();
    let all_to_all = CollectiveKind::AllToAll;
    let verified = verified(&topology, all_to_all, Algorithm::Direct, 1, 3_000).unwrap();
    let refusal = |options: &CompileOptions| compile(&verified, options).expect_err("refused");
    let in_place = CompileOptions {
        mode: Some(Mode::InPlace),
        ..CompileOptions::default()
    };
    assert!(
        refusal(&in_place)
            .to_string()
            .contains("in place would overwrite")
    );
    let none = CompileOptions {
        channels: 0,
        ..CompileOptions::default()
    };
    assert_eq!(refusal(&none), CompileError::Zero { option: "channels" });
    let few = CompileOptions {
        max_chunks: 2,
        ..CompileOptions::default()
    };
    assert_eq!(refusal(&few), CompileError::Uneven { limit: 2 });
}

#[test]
#[ignore = "a measurement: a million transfers"]
fn a_million_transfers() {
    let n = 708;
    let topology = build::ring(n, gigabyte(), Time::ZERO, RingWays::One).unwrap();
    let verified = verified(
        &topology,
        CollectiveKind::AllReduce,
        Algorithm::Ring,
        1,
        1 << 30,
    )
    .unwrap();
    let start = Instant::now();
    let options = CompileOptions {
        channels: 8,
        ..CompileOptions::default()
    };
    let program = compile(&verified, &options).unwrap();
    let (plan, compiled) = (verified.plan().memory(), program.memory());
    println!(
        "{} transfers, {} steps in {:?}",
        verified.plan().len(),
        program.len(),
        start.elapsed()
    );
    println!("plan {plan} bytes, program {compiled} bytes");
    let start = Instant::now();
    assert!(
        check(&program, &CheckOptions::default(), &mut Silent)
            .unwrap()
            .is_right()
    );
    println!("checked in {:?}", start.elapsed());
}

#[test]
#[ignore = "a measurement: 64 ranks, 100,000 steps"]
fn a_hundred_thousand_steps() {
    let topology = build::fully_connected(64, gigabyte(), Time::ZERO).unwrap();
    let direct = Algorithm::Direct;
    let verified = verified(&topology, CollectiveKind::AllReduce, direct, 6, 1 << 30).unwrap();
    let program = compile(&verified, &CompileOptions::default()).unwrap();
    let start = Instant::now();
    let checked = check(&program, &CheckOptions::default(), &mut Silent).unwrap();
    assert!(checked.is_right(), "{:?}", checked.faults.kept().first());
    println!("{} steps checked in {:?}", program.len(), start.elapsed());
}
