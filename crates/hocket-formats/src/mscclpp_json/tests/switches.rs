//! Plans in which switches sum and multicast, as the executor would run them.

use std::sync::Arc;

use hocket_base::id::DeviceId;
use hocket_base::progress::Silent;
use hocket_base::units::{Bandwidth, Time};
use hocket_plan::collective::{Collective, CollectiveKind};
use hocket_plan::verify::{Verified, verify};
use hocket_program::program::check::CheckOptions;
use hocket_synth::algorithms::{Algorithm, PlanOptions, plan};
use hocket_topology::{Offload, Topology, build};

use super::judged;
use crate::mscclpp_json::{
    ExecutionPlan, Op, Protocol, Refused, SwitchOptions, export_switches, program, read, write,
};

const KINDS: [CollectiveKind; 3] = [
    CollectiveKind::AllReduce,
    CollectiveKind::AllGather,
    CollectiveKind::Broadcast,
];
/// An NVSwitch sums for one GPU, and multicasts for one.
const NVSWITCH: Offload = Offload {
    all_reduces: false,
    ..Offload::FULL
};

fn star(ranks: u32, offload: Offload) -> Topology {
    let rate = Bandwidth::from_bytes_per_second(1_000_000_000).expect("a bandwidth");
    let star = build::switch(ranks, rate, Time::ZERO, None).expect("a network");
    star.with_offload(DeviceId(ranks), Some(offload))
        .expect("a switch")
}

fn planned(topology: &Topology, kind: CollectiveKind, algorithm: Algorithm) -> Verified {
    let bytes = 1_000 * topology.npu_count() as u64;
    let collective = Collective::among_all(kind, topology, bytes).expect("a collective");
    let options = PlanOptions {
        chunks: Some(1),
        ..PlanOptions::new(algorithm)
    };
    let made = plan(topology, &collective, &options, &mut Silent).expect("a plan");
    verify(Arc::new(made), Arc::new(topology.clone()), &mut Silent).expect("right")
}

fn exported(verified: &Verified, options: &SwitchOptions) -> Result<ExecutionPlan, Refused> {
    let mut text = String::new();
    export_switches(verified, Protocol::Simple, options, &mut text)?;
    let plan = read(&text).expect("a plan");
    assert_eq!(write(&plan), Ok(text));
    Ok(plan)
}

/// A file, of as many ranks. Of two, what is only multicast goes from one to the other, so then three.
fn written(kind: CollectiveKind, ranks: u32, options: &SwitchOptions) -> ExecutionPlan {
    let (algorithm, ranks) = match kind {
        CollectiveKind::AllReduce => (Algorithm::Multimem, ranks),
        _ => (Algorithm::InNetwork, ranks.max(3)),
    };
    exported(&planned(&star(ranks, NVSWITCH), kind, algorithm), options).expect("written")
}

/// What is wrong with a plan, by the rules, all its orders, and runs on integers.
fn faults(plan: &ExecutionPlan) -> Vec<&'static str> {
    let mut verdict = judged(plan);
    if verdict.is_right() {
        let (program, _) = program(plan).expect("a program");
        crate::run(&program, &CheckOptions::default(), &mut verdict);
    }
    verdict.findings.iter().map(|each| each.code).collect()
}

#[test]
fn any_number_of_ranks_sums_and_multicasts() {
    for kind in KINDS {
        for (ranks, blocks) in [
            (2, 1),
            (3, 2),
            (4, 2),
            (8, 4),
            (9, 1),
            (10, 1),
            (17, 1),
            (18, 1),
        ] {
            for in_place in [false, true] {
                let options = SwitchOptions {
                    blocks,
                    in_place,
                    ..SwitchOptions::default()
                };
                let plan = written(kind, ranks, &options);
                assert_eq!(
                    faults(&plan),
                    [""; 0],
                    "{kind} {ranks} x {blocks} {in_place}"
                );
                assert_eq!(plan.inplace, in_place);
            }
        }
    }
}

/// As many as an NVLink domain has.
#[test]
fn seventy_two_ranks_have_room_in_a_block() {
    for kind in KINDS {
        let options = SwitchOptions {
            blocks: 1,
            ..SwitchOptions::default()
        };
        let plan = written(kind, 72, &options);
        assert_eq!(faults(&plan), [""; 0], "{kind}");
        let block = &plan.gpus[71].threadblocks[0];
        assert!(block.ops.len() <= 35 && block.channels[0].channel_ids.len() == 14);
    }
}

/// Removes the operation at a position of all blocks of a rank, if it says when others may go on.
fn without(plan: &ExecutionPlan, rank: usize, at: usize) -> Option<(ExecutionPlan, Op)> {
    let mut plan = plan.clone();
    let mut removed = None;
    for block in &mut plan.gpus[rank].threadblocks {
        let name = &block.ops.get(at)?.name;
        if !matches!(name.as_ref(), "nop" | "signal" | "wait") {
            return None;
        }
        removed = Some(block.ops.remove(at));
    }
    removed.map(|op| (plan, op))
}

#[test]
fn each_synchronisation_that_is_missing_is_found() {
    let mut tried = 0;
    for kind in KINDS {
        for (ranks, blocks) in [(2, 1), (4, 2), (5, 1), (18, 1)] {
            let options = SwitchOptions {
                blocks,
                in_place: false,
                ..SwitchOptions::default()
            };
            let plan = written(kind, ranks, &options);
            for rank in [0, plan.gpus.len() - 1] {
                for at in 0..64 {
                    let Some((broken, op)) = without(&plan, rank, at) else {
                        continue;
                    };
                    tried += 1;
                    assert_ne!(
                        faults(&broken),
                        [""; 0],
                        "{kind} {ranks} x {blocks}: {} at {at} of rank {rank}",
                        op.name
                    );
                }
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn what_the_executor_does_not_do_is_refused() {
    let options = SwitchOptions::default();
    let says = |verified: &Verified| match exported(verified, &options) {
        Err(refused) => refused.to_string(),
        Ok(_) => "written".to_owned(),
    };
    let nvswitch = star(8, NVSWITCH);
    let scatter = planned(
        &nvswitch,
        CollectiveKind::ReduceScatter,
        Algorithm::InNetwork,
    );
    assert!(
        says(&scatter).contains("a reduce-scatter by switches"),
        "{}",
        says(&scatter)
    );
    let whole = planned(
        &star(8, Offload::FULL),
        CollectiveKind::AllReduce,
        Algorithm::InNetwork,
    );
    assert!(says(&whole).contains("chunk 0"), "{}", says(&whole));
    let right = planned(&nvswitch, CollectiveKind::AllReduce, Algorithm::InNetwork);
    assert_eq!(says(&right), "written");
    let mut text = String::new();
    let packets = export_switches(&right, Protocol::Ll, &options, &mut text);
    assert!(matches!(packets, Err(Refused::Inexpressible(_))) && text.is_empty());
    let none = SwitchOptions {
        blocks: 0,
        ..options
    };
    assert!(matches!(exported(&right, &none), Err(Refused::Limit(_))));
}
