//! Files as the executor takes them: keys that it does not read, and one call after the other.

use hocket_plan::collective::CollectiveKind;
use hocket_program::program::SizeLimits;
use hocket_synth::algorithms::Algorithm;

use super::{codes, exported, judged, verified_if_any, verified_plan};
use crate::mscclpp_json::{BufferType, ChannelType, ExecutionPlan, Op, Protocol, read};

/// The executor looks up the keys that it knows, so one more anywhere changes nothing.
#[test]
fn keys_that_the_executor_does_not_read_are_passed_over() {
    let source = include_str!("../../../../../tests/data/mscclpp/8_allreduce_nvls_zero_copy.json");
    let known = read(source).expect("a plan");
    assert_eq!(known.ignored, []);
    let objects = source.matches('{').count();
    for at in (0..objects).step_by(97).chain([0, 1, objects - 1]) {
        let (place, _) = source.match_indices('{').nth(at).expect("as many");
        let (before, after) = source.split_at(place + 1);
        let more = read(&format!("{before}\"colour\": [{{\"a\": null}}], {after}"));
        let mut more = more.expect("a plan");
        assert_eq!((more.ignored.len(), more.ignored[0].count), (1, 1));
        let note = more.ignored[0].to_string();
        assert!(
            note.starts_with("the executor does not read \"colour\" of "),
            "{note}"
        );
        more.ignored.clear();
        assert_eq!(more, known);
    }
    let often = source.replace("\"index\"", "\"rank\": 0, \"index\"");
    let often = read(&often).expect("a plan");
    let note = often.ignored[0].to_string();
    let first = "the executor does not read \"rank\" of gpus[0].threadblocks[0].ops";
    assert!(note.starts_with(first) && note.contains("] and "), "{note}");
    assert_eq!(
        often.ignored[0].count,
        source.matches("\"index\"").count() as u64
    );
    assert!(judged(&often).notes.contains(&note));
    // Many different ones, of any length, take no more room than a few.
    let long = (0..1_000).map(|i| format!("\"{i}{}\": 0, ", "x".repeat(1_000)));
    let long = source.replacen('{', &format!("{{{}", long.collect::<String>()), 1);
    let long = read(&long).expect("a plan").ignored;
    assert!(long.len() == 20 && long.iter().all(|each| each.key.len() <= 40));
}

/// What a rank multicasts comes back to itself as well: the same packet on top of itself. Another one's packet there is a fault.
#[test]
fn a_packet_that_comes_back_is_the_same() {
    let source =
        include_str!("../../../../../tests/data/mscclpp/allgather_nvls_zero_copy_pkt.json");
    let plan = read(source).expect("a plan");
    assert_eq!(codes(&plan), [""; 0]);
    let mut moved = plan.clone();
    let blocks = moved.gpus.iter_mut().flat_map(|gpu| &mut gpu.threadblocks);
    for op in blocks.flat_map(|tb| &mut tb.ops) {
        if op.name == "gstorepkt" {
            op.dst_buff[0].index = 0;
        }
    }
    assert!(codes(&moved).contains(&"shared"), "{:?}", codes(&moved));
    let mut unwritten = plan;
    for tb in unwritten
        .gpus
        .iter_mut()
        .flat_map(|gpu| &mut gpu.threadblocks)
    {
        tb.ops.retain(|op| op.name != "cpkt");
    }
    assert_eq!(
        codes(&unwritten),
        ["deadlock"],
        "it multicasts packets that it waits for"
    );
}

/// Whether an operation names the channel of a type.
fn names(op: &Op, channel: (Option<ChannelType>, u32)) -> bool {
    op.channel_type == channel.0 && op.channel_ids == [channel.1]
}

/// Takes away the first word of each connection: that the receiver has begun the call, and the wait for it.
fn without_handshakes(plan: &mut ExecutionPlan) -> usize {
    let mut count = 0;
    for tb in plan.gpus.iter_mut().flat_map(|gpu| &mut gpu.threadblocks) {
        let all = tb.ops.iter().filter(|op| op.channel_ids.len() == 1);
        let mut channels: Vec<_> = all.map(|op| (op.channel_type, op.channel_ids[0])).collect();
        channels.sort_unstable();
        channels.dedup();
        for channel in channels {
            let mut puts = tb.ops.iter().filter(|op| op.name.starts_with('p'));
            let first = if puts.any(|op| names(op, channel)) {
                "wait"
            } else {
                "signal"
            };
            let at = tb.ops.iter().position(|op| names(op, channel));
            let at = at.expect("it is used");
            assert_eq!(tb.ops[at].name, first);
            tb.ops.remove(at);
            count += 1;
        }
    }
    count
}

const KINDS: [CollectiveKind; 6] = [
    CollectiveKind::AllReduce,
    CollectiveKind::AllGather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::AllToAll,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
];

/// Each file is right call after call, and none is when a semaphore keeps one more, when halves of scratch do not take turns, or
/// when ranks into whose output is put do not say that they have begun. What is put into scratch may need no such word.
#[test]
fn files_are_right_call_after_call() {
    let limits = SizeLimits::default();
    let (mut bare, mut released, mut halves) = (0, 0, 0);
    for kind in KINDS {
        for algorithm in [
            Algorithm::Ring,
            Algorithm::Direct,
            Algorithm::DoubleBinaryTree,
        ] {
            let Some(verified) = verified_if_any(kind, algorithm) else {
                continue;
            };
            let right = exported(&verified, Protocol::Simple, limits).expect("written");
            assert_eq!(codes(&right), [""; 0], "{kind} {algorithm:?}");
            let mut plan = right.clone();
            assert!(without_handshakes(&mut plan) > 0);
            if !kind.reduces() {
                assert_eq!(codes(&plan), ["next_call"], "{kind} {algorithm:?}");
                bare += 1;
            }
            let mut plan = right;
            if let Some(gpu) = plan.gpus.iter_mut().find(|gpu| !gpu.semaphores.is_empty()) {
                gpu.threadblocks[0].ops.push(Op {
                    name: "sem_release".into(),
                    semaphore_ids: vec![0],
                    ..Op::default()
                });
                // It may also come in place of another one in the first call.
                let found = codes(&plan);
                assert!(
                    found.contains(&"next_call"),
                    "{kind} {algorithm:?}: {found:?}"
                );
                released += 1;
            }
            let Ok(mut packets) = exported(&verified, Protocol::Ll, limits) else {
                continue;
            };
            assert_eq!(codes(&packets), [""; 0], "{kind} {algorithm:?}, LL");
            packets.use_double_scratch_buffer = false;
            // With several phases, whoever writes a packet of the next call may know that the one before it was read.
            if algorithm == Algorithm::Direct && kind != CollectiveKind::AllReduce {
                assert_eq!(codes(&packets), ["next_call"], "{kind}, LL");
                halves += 1;
            }
        }
    }
    assert!(
        bare >= 4 && released >= 1 && halves >= 3,
        "{bare} {released} {halves}"
    );
}

/// The executor adds the start of the half whose turn it is to addresses of other ranks for packets alone.
#[test]
fn halves_take_turns_for_packets_alone() {
    let verified = verified_plan(CollectiveKind::AllReduce, Algorithm::Direct);
    let limits = SizeLimits::default();
    let mut plan = exported(&verified, Protocol::Simple, limits).expect("written");
    assert_eq!(codes(&plan), [""; 0]);
    plan.use_double_scratch_buffer = true;
    assert_eq!(codes(&plan), ["scratch"]);
    let source = include_str!("../../../../../tests/data/mscclpp/8_allreduce_nvls_zero_copy.json");
    let mut switched = read(source).expect("a plan");
    switched.use_double_scratch_buffer = true;
    assert_eq!(codes(&switched), [""; 0], "its switch reaches inputs");
    for gpu in &mut switched.gpus {
        gpu.scratch_chunks = gpu.input_chunks;
        for channels in &mut gpu.channels {
            channels.buffer_type = channels.buffer_type.map(|_| BufferType::Scratch);
        }
    }
    assert_eq!(codes(&switched), ["scratch"]);
}
