//! Real files, and the form itself: what is written is read as it was.

mod calls;
mod pipelines;
mod switches;

use std::sync::Arc;
use std::time::Instant;

use hocket_base::progress::Silent;
use hocket_base::units::{Bandwidth, Time};
use hocket_plan::collective::{Collective, CollectiveKind};
use hocket_plan::verify::{Verified, verify};
use hocket_program::program::check::CheckOptions;
use hocket_program::program::{CompileOptions, CompiledPlan, SizeLimits};
use hocket_synth::algorithms::{Algorithm, PlanOptions, plan};
use hocket_topology::build;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use strum::VariantArray as _;

use super::{
    BlockGroup, Buffer, BufferRefs, BufferType, ChannelRefs, ChannelType, Channels, ExecutionPlan,
    Gpu, How, IterContext, MAX_BLOCKS, MAX_OPS, Op, Protocol, RankGroup, Refused, RemoteBuffer,
    Room, Semaphore, Threadblock, check, export, program, read, write,
};
use crate::Verdict;
use crate::files::files;

const ROOM: Room = Room {
    operations: MAX_OPS,
    blocks: MAX_BLOCKS,
};

#[test]
fn published_plans_are_right_and_survive_a_round() {
    for file in files("HOCKET_MSCCLPP_FILES", "mscclpp", "json") {
        let source = std::fs::read_to_string(&file).expect("readable");
        let name = file
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        let plan = read(&source).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again = read(&write(&plan).expect("written"));
        let kept = ExecutionPlan {
            ignored: Vec::new(),
            ..plan.clone()
        };
        assert_eq!(again, Ok(kept), "{name}");
        let start = Instant::now();
        let verdict = check(&plan, &CheckOptions::default(), &mut Silent).expect("not stopped");
        println!(
            "{name}: {:?} {:?}",
            start.elapsed(),
            verdict.findings.first()
        );
        if name == "allreduce_pipeline.json" {
            // It is of an older version.
            assert_eq!(codes(&plan), ["sizes", "channel"]);
            assert!(plan.ignored.iter().any(|ignored| ignored.key == "buff"));
            continue;
        }
        if name == "reduce_tbg.json" {
            // The executor cuts the bytes of both chunks of a copy between two blocks, one chunk each, and the other rank
            // reads halves of each chunk after a signal of one block alone.
            assert!(
                verdict
                    .findings
                    .iter()
                    .all(|finding| finding.code == "race")
            );
            assert!(!verdict.is_right());
            continue;
        }
        assert!(verdict.is_right(), "{name}: {:?}", verdict.findings);
    }
}

/// Its two blocks of a rank wait for those of the same number alone, though each copied what the other's peer reads. A barrier
/// between them is all that it lacks.
#[test]
fn reduce_tbg_lacks_a_barrier_of_its_blocks() {
    let source = include_str!("../../../../../tests/data/mscclpp/reduce_tbg.json");
    let mut plan = read(source).expect("a plan");
    let judged =
        |plan: &ExecutionPlan| check(plan, &CheckOptions::default(), &mut Silent).expect("judged");
    let wrong = judged(&plan);
    let details: Vec<&str> = wrong.findings.iter().map(|f| f.detail.as_str()).collect();
    let expected = "reads scratch chunk 1 of rank 1, which step 0 of block 0 of rank 1 writes";
    assert!(
        details.iter().any(|each| each.starts_with(expected)),
        "{details:?}"
    );
    for tb in plan.gpus.iter_mut().flat_map(|gpu| &mut gpu.threadblocks) {
        assert_eq!((&*tb.ops[0].name, &*tb.ops[1].name), ("copy", "nop"));
        tb.ops[1] = Op {
            name: "barrier".into(),
            barrier_id: Some(0),
            num_threadblocks: Some(2),
            ..Op::default()
        };
    }
    let right = judged(&plan);
    assert!(right.is_right(), "{:?}", right.findings);
}

/// What is written from a program is what is written of it once it was read.
#[test]
fn exported_text_is_read_and_written_as_it_is() {
    let rate = Bandwidth::from_bytes_per_second(1_000_000_000).expect("a bandwidth");
    let topology = build::fully_connected(4, rate, Time::ZERO).expect("a network");
    for kind in [CollectiveKind::AllReduce, CollectiveKind::AllToAll] {
        let collective = Collective::among_all(kind, &topology, 4_800).expect("a collective");
        let options = PlanOptions {
            chunks: Some(3),
            ..PlanOptions::new(Algorithm::Direct)
        };
        let made = plan(&topology, &collective, &options, &mut Silent).expect("a plan");
        let verified = verify(Arc::new(made), Arc::new(topology.clone()), &mut Silent);
        let verified = verified.expect("right");
        for (protocol, is_near) in [
            (Protocol::Simple, false),
            (Protocol::Simple, true),
            (Protocol::Ll, true),
        ] {
            let options = CompileOptions {
                fuse: false,
                ..CompileOptions::default()
            };
            let compiled = CompiledPlan::of(&verified, &options).expect("lowered");
            let mut by_ranks = String::new();
            let how = How {
                protocol,
                is_near: &|_, _| is_near,
                unit: None,
            };
            let made = export(&compiled, &how, ROOM, &mut by_ranks).expect("written");
            let mut whole = String::new();
            let again = export(&compiled.program(), &how, ROOM, &mut whole).expect("written");
            assert_eq!((&by_ranks, made), (&whole, again));
            let plan = read(&by_ranks).expect("a plan");
            assert_eq!(write(&plan).as_deref(), Ok(&*by_ranks));
            assert!(
                check(&plan, &CheckOptions::default(), &mut Silent)
                    .expect("judged")
                    .is_right()
            );
        }
    }
}

fn verified_plan(kind: CollectiveKind, algorithm: Algorithm) -> Verified {
    verified_if_any(kind, algorithm).expect("a plan")
}

/// A plan among four ranks, if the algorithm has one.
fn verified_if_any(kind: CollectiveKind, algorithm: Algorithm) -> Option<Verified> {
    let rate = Bandwidth::from_bytes_per_second(1_000_000_000).expect("a bandwidth");
    let topology = build::fully_connected(4, rate, Time::ZERO).expect("a network");
    let collective = Collective::among_all(kind, &topology, 4_800).expect("a collective");
    let options = PlanOptions {
        chunks: Some(1),
        ..PlanOptions::new(algorithm)
    };
    let made = plan(&topology, &collective, &options, &mut Silent).ok()?;
    Some(verify(Arc::new(made), Arc::new(topology), &mut Silent).expect("right"))
}

fn exported(
    verified: &Verified,
    protocol: Protocol,
    limits: SizeLimits,
) -> Result<ExecutionPlan, Refused> {
    let options = CompileOptions {
        fuse: false,
        limits,
        ..CompileOptions::default()
    };
    let compiled = CompiledPlan::of(verified, &options).expect("lowered");
    let mut text = String::new();
    let how = How {
        protocol,
        is_near: &|_, _| true,
        unit: None,
    };
    export(&compiled, &how, ROOM, &mut text)?;
    Ok(read(&text).expect("a plan"))
}

/// The executor's `pws` on a memory channel puts and does not signal: seen to hang.
#[test]
fn puts_into_memory_signal_on_their_own() {
    let verified = verified_plan(CollectiveKind::AllReduce, Algorithm::Ring);
    let mut plan = exported(&verified, Protocol::Simple, SizeLimits::default()).expect("written");
    let mut puts = 0;
    for tb in plan.gpus.iter_mut().flat_map(|gpu| &mut gpu.threadblocks) {
        let names: Vec<_> = tb.ops.iter().map(|op| op.name.clone()).collect();
        for (i, _) in names.iter().enumerate().filter(|(_, name)| *name == "put") {
            assert_eq!(names[i + 1..i + 3], ["nop", "signal"]);
            tb.ops[i].name = "pws".into();
            puts += 1;
        }
    }
    assert!(puts > 0);
    let verdict = check(&plan, &CheckOptions::default(), &mut Silent).expect("judged");
    assert_eq!(verdict.findings.len(), puts);
    assert!(verdict.findings.iter().all(|each| each.code == "signal"));
}

#[test]
fn packets_are_refused_where_not_all_ranks_wait_for_all() {
    for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
        let verified = verified_plan(kind, Algorithm::Direct);
        let limits = SizeLimits::default();
        let refused = exported(&verified, Protocol::Ll, limits).expect_err("refused");
        assert!(refused.to_string().contains("protocol Simple"), "{refused}");
        exported(&verified, Protocol::Simple, limits).expect("written");
    }
}

/// In a double binary tree not all ranks receive as much. Seen to hang in the second call.
#[test]
fn halves_of_scratch_start_at_one_place() {
    let verified = verified_plan(CollectiveKind::AllReduce, Algorithm::DoubleBinaryTree);
    let limits = SizeLimits::default();
    let mut plan = exported(&verified, Protocol::Ll, limits).expect("written");
    let sizes = |plan: &ExecutionPlan| -> Vec<u32> {
        plan.gpus.iter().map(|gpu| gpu.scratch_chunks).collect()
    };
    let of_all = sizes(&plan);
    assert!(of_all.iter().all(|&size| size == of_all[0]), "{of_all:?}");
    let simple = sizes(&exported(&verified, Protocol::Simple, limits).expect("written"));
    assert!(simple.iter().any(|&size| size != simple[0]), "{simple:?}");
    plan.gpus[1].scratch_chunks += 1;
    let verdict = check(&plan, &CheckOptions::default(), &mut Silent).expect("judged");
    assert_eq!(verdict.findings.len(), 1);
    assert_eq!(verdict.findings[0].code, "sizes");
}

/// The executor keeps what it has set up under the name.
#[test]
fn plans_have_names_of_their_own() {
    let mut names = std::collections::BTreeSet::new();
    let mut count = 0;
    for kind in [CollectiveKind::AllReduce, CollectiveKind::AllGather] {
        for algorithm in [Algorithm::Ring, Algorithm::Direct] {
            let verified = verified_plan(kind, algorithm);
            for &protocol in Protocol::VARIANTS {
                for max in [1 << 20, u64::MAX] {
                    let limits = SizeLimits { min: 0, max };
                    let plan = exported(&verified, protocol, limits).expect("written");
                    let again = exported(&verified, protocol, limits).expect("written");
                    assert_eq!(plan, again);
                    let (made, _) = program(&plan).expect("a program");
                    assert!(plan.name.starts_with(made.name()) && !made.name().contains('-'));
                    names.insert(plan.name);
                    count += 1;
                }
            }
        }
    }
    assert_eq!(names.len(), count);
}

/// The executor counts bytes in 32 bits.
#[test]
fn sizes_end_where_the_executor_counts_no_further() {
    let verified = verified_plan(CollectiveKind::AllReduce, Algorithm::Ring);
    for &protocol in Protocol::VARIANTS {
        let limits = SizeLimits::default();
        let plan = exported(&verified, protocol, limits).expect("written");
        let gpu = &plan.gpus[0];
        let copies = if protocol == Protocol::Ll { 4 } else { 1 };
        let longest = u64::from(gpu.input_chunks).max(u64::from(gpu.scratch_chunks) * copies);
        let chunk = plan.max_message_size / u64::from(gpu.input_chunks);
        assert!(longest * chunk <= u64::from(u32::MAX));
        assert!(longest * (chunk + 1) > u64::from(u32::MAX));
        let above = SizeLimits {
            min: 0,
            max: plan.max_message_size + 1,
        };
        let refused = exported(&verified, protocol, above).expect_err("refused");
        assert!(refused.to_string().contains("32 bits"), "{refused}");
    }
}

fn judged(plan: &ExecutionPlan) -> Verdict {
    check(plan, &CheckOptions::default(), &mut Silent).expect("judged")
}

fn codes(plan: &ExecutionPlan) -> Vec<&'static str> {
    let mut codes: Vec<_> = judged(plan).findings.iter().map(|each| each.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes.reverse();
    codes
}

fn channel_type() -> impl Strategy<Value = ChannelType> {
    select(vec![
        ChannelType::Memory,
        ChannelType::Port,
        ChannelType::Switch,
    ])
}

fn buffer_type() -> impl Strategy<Value = BufferType> {
    select(vec![
        BufferType::Input,
        BufferType::Output,
        BufferType::Scratch,
    ])
}

fn numbers() -> impl Strategy<Value = Vec<u32>> {
    vec(any::<u32>(), 0..4)
}

fn buffer() -> impl Strategy<Value = Buffer> {
    let which = (
        option::of(buffer_type()),
        option::of(any::<u32>()),
        option::of(any::<u32>()),
    );
    (which, any::<u32>(), any::<u32>()).prop_map(|(which, index, size)| Buffer {
        r#type: which.0,
        buffer_id: which.1,
        switch_channel_id: which.2,
        index,
        size,
    })
}

/// An operation, whose own operations are given.
fn op(inner: impl Strategy<Value = Vec<Op>>) -> impl Strategy<Value = Op> {
    let buffers = (vec(buffer(), 0..3), vec(buffer(), 0..3));
    let channels = (numbers(), option::of(channel_type()));
    let share = option::of((any::<u32>(), any::<u32>()));
    let barrier = (option::of(any::<u32>()), option::of(any::<u32>()));
    let rest = (
        numbers(),
        option::of("[a-z]{1,5}"),
        option::of((any::<u64>(), any::<u32>())),
    );
    let all = (
        "[a-z_]{1,12}",
        buffers,
        channels,
        share,
        barrier,
        rest,
        inner,
    );
    all.prop_map(|(name, buffers, channels, share, barrier, rest, ops)| Op {
        name: name.into(),
        src_buff: buffers.0,
        dst_buff: buffers.1,
        channel_ids: channels.0,
        channel_type: channels.1,
        tbg_info: share.map(|(tb_id, tbg_size)| BlockGroup { tb_id, tbg_size }),
        barrier_id: barrier.0,
        num_threadblocks: barrier.1,
        semaphore_ids: rest.0,
        reduce_op: rest.1,
        iter_context: rest.2.map(|(unit_size, num_chunks)| IterContext {
            unit_size,
            num_chunks,
        }),
        ops,
    })
}

fn threadblock() -> impl Strategy<Value = Threadblock> {
    let ops = vec(op(vec(op(Just(Vec::new())), 0..2)), 0..4);
    let refs = vec((channel_type(), numbers()), 0..3);
    let buffers = vec((channel_type(), numbers()), 0..3);
    (any::<u32>(), ops, refs, buffers).prop_map(|(id, ops, refs, buffers)| Threadblock {
        id,
        ops,
        channels: refs
            .into_iter()
            .map(|(channel_type, channel_ids)| ChannelRefs {
                channel_type,
                channel_ids,
            })
            .collect(),
        remote_buffer_refs: buffers
            .into_iter()
            .map(|(access_channel_type, remote_buffer_ids)| BufferRefs {
                access_channel_type,
                remote_buffer_ids,
            })
            .collect(),
    })
}

fn gpu() -> impl Strategy<Value = Gpu> {
    let group = (any::<u32>(), numbers()).prop_map(|(size, ranks)| RankGroup { size, ranks });
    let channels = (
        channel_type(),
        option::of(numbers()),
        option::of(buffer_type()),
        option::of(vec(group, 0..3)),
    );
    let channels =
        channels.prop_map(
            |(channel_type, connected_to, buffer_type, groups)| Channels {
                channel_type,
                connected_to,
                buffer_type,
                rank_groups: groups,
            },
        );
    let remote = (any::<u32>(), buffer_type(), vec(channel_type(), 0..3));
    let remote = remote.prop_map(|(rank, r#type, access_channel_types)| RemoteBuffer {
        rank,
        r#type,
        access_channel_types,
    });
    let semaphore = any::<u32>().prop_map(|init_value| Semaphore { init_value });
    let all = (
        any::<[u32; 4]>(),
        vec(threadblock(), 0..3),
        vec(channels, 0..3),
        vec(remote, 0..3),
        vec(semaphore, 0..3),
    );
    all.prop_map(
        |(sizes, threadblocks, channels, remote_buffers, semaphores)| Gpu {
            id: sizes[0],
            input_chunks: sizes[1],
            output_chunks: sizes[2],
            scratch_chunks: sizes[3],
            threadblocks,
            channels,
            remote_buffers,
            semaphores,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn what_is_written_is_read_as_it_was(
        words in any::<[String; 3]>(),
        flags in any::<[bool; 3]>(),
        numbers in any::<[u32; 2]>(),
        sizes in any::<[u64; 2]>(),
        gpus in vec(gpu(), 0..3),
    ) {
        let [name, collective, protocol] = words;
        let plan = ExecutionPlan {
            name,
            collective,
            protocol,
            inplace: flags[0],
            reuse_resources: flags[1],
            gpus,
            num_threads_per_block: numbers[0],
            use_double_scratch_buffer: flags[2],
            buffer_alignment: numbers[1],
            min_message_size: sizes[0],
            max_message_size: sizes[1],
            ignored: Vec::new(),
        };
        let text = write(&plan).expect("written");
        let again = read(&text);
        prop_assert_eq!(again.as_ref(), Ok(&plan));
        prop_assert_eq!(write(&again.expect("read")).expect("written"), text);
    }
}
