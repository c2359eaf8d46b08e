//! Plans of equal slices, written as the program of one slice in pipelines.

use std::sync::Arc;

use hocket_base::progress::Silent;
use hocket_base::units::{Bandwidth, Time};
use hocket_plan::collective::{Collective, CollectiveKind};
use hocket_plan::verify::{Verified, verify};
use hocket_program::program::check::CheckOptions;
use hocket_program::program::{CompileOptions, CompiledPlan, Mode, SizeLimits};
use hocket_synth::algorithms::{Algorithm, PlanOptions, plan};
use hocket_topology::build;

use super::{ROOM, judged};
use crate::mscclpp_json::{
    ExecutionPlan, How, Op, Protocol, Refused, export, first_slice, least, need, program, read,
    unit_of, write,
};

const SLICES: usize = 5;
const BYTES: u64 = 4_800_000;

fn planned(kind: CollectiveKind, algorithm: Algorithm) -> Option<Verified> {
    let rate = Bandwidth::from_bytes_per_second(1_000_000_000).expect("a bandwidth");
    let topology = build::fully_connected(4, rate, Time::ZERO).expect("a network");
    let collective = Collective::among_all(kind, &topology, BYTES).expect("a collective");
    let options = PlanOptions {
        chunks: Some(SLICES),
        ..PlanOptions::new(algorithm)
    };
    let made = plan(&topology, &collective, &options, &mut Silent).ok()?;
    Some(verify(Arc::new(made), Arc::new(topology), &mut Silent).expect("right"))
}

/// What the first slice is written as, in place or out of place, with ports between halves of the ranks or without.
fn written(
    verified: &Verified,
    mode: Option<Mode>,
    channels: u32,
    has_ports: bool,
    limits: SizeLimits,
) -> Result<ExecutionPlan, Refused> {
    joined(verified, mode, (channels, 1), has_ports, limits)
}

/// The same with so many messages of a level joined at most.
fn joined(
    verified: &Verified,
    mode: Option<Mode>,
    (channels, joins): (u32, u32),
    has_ports: bool,
    limits: SizeLimits,
) -> Result<ExecutionPlan, Refused> {
    // Where messages are joined, those of all slices are, so that there are many.
    let first = first_slice(verified).filter(|_| joins == 1);
    let (of, slices) = first
        .as_ref()
        .map_or((verified, 1), |(first, slices)| (first, *slices));
    let options = CompileOptions {
        fuse: false,
        max_count: 1,
        mode,
        channels,
        joins,
        limits,
        ..CompileOptions::default()
    };
    let compiled = CompiledPlan::of(of, &options).expect("lowered");
    let how = How {
        protocol: Protocol::Simple,
        is_near: &|a, b| !has_ports || a / 2 == b / 2,
        unit: Some(unit_of(of, &compiled, slices)),
    };
    let mut text = String::new();
    let made = export(&compiled, &how, ROOM, &mut text)?;
    let plan = read(&text).expect("a plan");
    assert_eq!(write(&plan), Ok(text));
    let counts = plan.gpus.iter().flat_map(|gpu| &gpu.threadblocks);
    let counts = counts.map(|tb| tb.ops.iter().map(|op| 1 + op.ops.len()).sum::<usize>());
    assert_eq!(made.operations, counts.max().expect("there are blocks"));
    Ok(plan)
}

/// What is wrong with a plan, by the rules, all its orders, and runs on integers.
fn faults(plan: &ExecutionPlan) -> Vec<String> {
    let mut verdict = judged(plan);
    if verdict.is_right() {
        let (program, _) = program(plan).expect("a program");
        crate::run(&program, &CheckOptions::default(), &mut verdict);
    }
    verdict.findings.iter().map(ToString::to_string).collect()
}

const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::Direct,
    Algorithm::Ring,
    Algorithm::Trees,
    Algorithm::DoubleBinaryTree,
    Algorithm::HalvingDoubling,
    Algorithm::MultiTree,
];
const KINDS: [CollectiveKind; 6] = [
    CollectiveKind::AllReduce,
    CollectiveKind::AllGather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
    CollectiveKind::AllToAll,
];

#[test]
fn every_plan_of_equal_slices_is_right_in_pipelines() {
    let (mut tried, mut together) = (0, 0);
    for kind in KINDS {
        for algorithm in ALGORITHMS {
            let Some(verified) = planned(kind, algorithm).filter(|it| first_slice(it).is_some())
            else {
                continue;
            };
            for mode in [None, Some(Mode::OutOfPlace)] {
                for (spread, has_ports) in [
                    ((1, 1), false),
                    ((2, 1), false),
                    ((1, 1), true),
                    ((1, 3), true),
                    ((2, 32), false),
                    ((1, 32), true),
                ] {
                    let limits = SizeLimits::default();
                    let plan = joined(&verified, mode, spread, has_ports, limits);
                    if matches!(&plan, Err(Refused::Operations { .. }) if spread.1 > 1) {
                        continue; // Not all of its slices have room.
                    }
                    let plan = plan.unwrap_or_else(|why| panic!("{kind} {algorithm:?}: {why}"));
                    let found = faults(&plan);
                    assert!(found.is_empty(), "{kind} {algorithm:?} {mode:?}: {found:?}");
                    let ops = plan.gpus.iter().flat_map(|gpu| &gpu.threadblocks);
                    let mut ops = ops.flat_map(|tb| &tb.ops).flat_map(|op| &op.ops);
                    together +=
                        usize::from(ops.any(|op| op.src_buff.len() > 1 && op.name == "put"));
                    tried += 1;
                }
            }
        }
    }
    assert!(tried >= 96 && together >= 60, "{tried} {together}");
}

#[test]
fn no_program_takes_less_than_its_plan_does() {
    let (mut tried, mut close) = (0, 0);
    for (kind, algorithm) in KINDS
        .into_iter()
        .flat_map(|kind| ALGORITHMS.map(|it| (kind, it)))
    {
        let Some(whole) = planned(kind, algorithm) else {
            continue;
        };
        let first = first_slice(&whole).map(|(first, _)| first);
        for (of, unit) in [(Some(&whole), None), (first.as_ref(), Some(16))] {
            for (channels, has_ports) in [(1, false), (2, false), (3, true)] {
                let Some(of) = of else { continue };
                let options = CompileOptions {
                    fuse: false,
                    channels,
                    max_count: if unit.is_some() { 1 } else { 1 << 12 },
                    ..CompileOptions::default()
                };
                let compiled = CompiledPlan::of(of, &options).expect("lowered");
                let how = How {
                    protocol: Protocol::Simple,
                    is_near: &|a, b| !has_ports || a / 2 == b / 2,
                    unit,
                };
                let found = need(&compiled, &how).expect("expressible");
                let least = least(of.plan(), &how, channels, None);
                let [most, fewest] = [found, least].map(|of| (of.operations, of.blocks));
                let why = format!("{kind} {algorithm:?} {channels} {unit:?}: {most:?} {fewest:?}");
                assert!(fewest.0 <= most.0, "{why}");
                // Copies within a rank have a block of their own.
                assert!((most.1 - 1..=most.1).contains(&fewest.1), "{why}");
                tried += 1;
                close += usize::from(4 * fewest.0 >= most.0);
            }
        }
    }
    assert!(tried >= 90 && 2 * close >= tried, "{tried} {close}");
}

#[test]
fn a_round_moves_what_a_chunk_of_the_plan_has() {
    let verified = planned(CollectiveKind::AllReduce, Algorithm::Direct).expect("a plan");
    let plan = written(&verified, None, 1, false, SizeLimits::default()).expect("written");
    // Four parts, of each five slices.
    assert_eq!(plan.gpus[0].input_chunks, 4);
    let pipelines = plan.gpus.iter().flat_map(|gpu| &gpu.threadblocks);
    let pipelines = pipelines.flat_map(|tb| &tb.ops);
    let contexts: Vec<_> = pipelines.filter_map(|op| op.iter_context).collect();
    assert!(!contexts.is_empty());
    for context in contexts {
        assert_eq!((context.unit_size, context.num_chunks), (BYTES / 20, 1));
    }
    // Rounds are counted in 16 bits.
    assert!(plan.max_message_size <= 4 * BYTES / 20 * 0xffff);
    let above = SizeLimits {
        min: 0,
        max: 4 * BYTES / 20 * 0xffff + 1,
    };
    let refused = written(&verified, None, 1, false, above).expect_err("refused");
    assert!(refused.to_string().contains("rounds in 16"), "{refused}");
}

/// The plan without the operation at a position, if it says when others may go on. A `nop` counts if data are moved directly
/// before it, or summed directly after it: the same thread waits and signals, and in these calls all wait for all, so that the
/// next call finds its memory free before it asks.
fn without(plan: &ExecutionPlan, rank: usize, at: [usize; 3]) -> Option<(ExecutionPlan, Op)> {
    let mut plan = plan.clone();
    let [block, outer, inner] = at;
    let ops = &mut plan.gpus[rank].threadblocks[block].ops;
    let (ops, at) = if ops[outer].name == "pipeline" {
        (&mut ops[outer].ops, inner)
    } else {
        (ops, outer)
    };
    let name = |at: usize| ops.get(at).map_or("", |op| op.name.as_ref());
    let counts = match name(at) {
        "nop" => ["put", "re"].contains(&name(at.wrapping_sub(1))) || name(at + 1) == "re",
        name => ["signal", "wait", "sem_acquire", "sem_release"].contains(&name),
    };
    counts.then(|| ops.remove(at)).map(|op| (plan, op))
}

#[test]
fn each_synchronisation_that_is_missing_is_found() {
    let (mut tried, mut missed) = (0, Vec::new());
    for (kind, algorithm, joins) in [
        (CollectiveKind::AllReduce, Algorithm::Direct, 1),
        (CollectiveKind::AllReduce, Algorithm::Trees, 1),
        (CollectiveKind::AllReduce, Algorithm::HalvingDoubling, 32),
        (CollectiveKind::AllGather, Algorithm::Ring, 1),
        (CollectiveKind::ReduceScatter, Algorithm::Ring, 1),
    ] {
        let verified = planned(kind, algorithm).expect("a plan");
        let plan = joined(&verified, None, (1, joins), false, SizeLimits::default());
        let plan = plan.expect("written");
        for (block, tb) in plan.gpus[1].threadblocks.iter().enumerate() {
            for (outer, op) in tb.ops.iter().enumerate() {
                for inner in 0..op.ops.len().max(1) {
                    let Some((broken, op)) = without(&plan, 1, [block, outer, inner]) else {
                        continue;
                    };
                    tried += 1;
                    if faults(&broken).is_empty() {
                        missed.push(format!(
                            "{kind} {algorithm:?} {} {block}.{outer}.{inner}",
                            op.name
                        ));
                    }
                }
            }
        }
    }
    assert!(tried > 80 && missed.is_empty(), "{tried}: {missed:?}");
}

#[test]
fn rounds_that_the_executor_gets_wrong_are_found() {
    let verified = planned(CollectiveKind::AllReduce, Algorithm::Direct).expect("a plan");
    let plan = written(&verified, None, 1, false, SizeLimits::default()).expect("written");
    let broken = |change: fn(&mut Op)| {
        let mut plan = plan.clone();
        let ops = &mut plan.gpus[1].threadblocks[0].ops;
        let mut pipelines = ops.iter_mut().filter(|op| op.name == "pipeline");
        change(pipelines.next().expect("a pipeline"));
        faults(&plan).join("; ")
    };
    let units = broken(|op| op.iter_context.as_mut().expect("it has one").unit_size -= 4);
    assert!(units.contains("no multiple of 16"), "{units}");
    let chunks = broken(|op| op.iter_context.as_mut().expect("it has one").num_chunks = 2);
    assert!(chunks.contains("other chunks than the 2"), "{chunks}");
}
