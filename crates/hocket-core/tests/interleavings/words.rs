//! Plans in words.

use std::fmt::Write as _;

use hocket_core::collective::NpuSet;
use hocket_core::plan::{Plan, Wait, WaitOn};

/// A plan in words: its demands, its chunks, its transfers and what they wait for.
pub(crate) fn words(plan: &Plan) -> String {
    let collective = plan.collective();
    let set = |set: &NpuSet| {
        let members: Vec<u32> = set
            .members(collective.npus())
            .iter()
            .map(|npu| npu.0)
            .collect();
        ranges(&members)
    };
    let mut text = format!("{}\n", collective.kind());
    for (d, demand) in collective.demands().iter().enumerate() {
        let kind = if demand.reduced { "a sum" } else { "data" };
        let (holders, wanted) = (set(&demand.holders), set(&demand.wanted));
        let _ = writeln!(
            text,
            "  demand {d}: {kind} of NPUs {holders} for NPUs {wanted}"
        );
    }
    let _ = writeln!(
        text,
        "  demands of the chunks: {:?}",
        plan.chunks().demand()
    );
    for (t, op) in plan.op().iter().enumerate() {
        let transfer = plan.transfer(t.into());
        let first = transfer.chunk.0;
        let _ = writeln!(
            text,
            "  t{t}: {} chunks {} from NPU {} to NPU {}, waits for {}",
            if *op == 0 { "copies" } else { "adds" },
            ranges(&(first..first + transfer.count).collect::<Vec<u32>>()),
            transfer.src,
            transfer.dst,
            wait(plan, transfer.wait)
        );
    }
    text
}

/// `0-3 7`.
fn ranges(ascending: &[u32]) -> String {
    let mut numbers = ascending.to_vec();
    numbers.sort_unstable();
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let words: Vec<String> = runs
        .map(|run| match run {
            [one] => one.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        })
        .collect();
    words.join(" ")
}

/// `t3`, or `{t1 {t0 t2}}`: groups as they are nested.
fn wait(plan: &Plan, on: Wait) -> String {
    match on.target() {
        WaitOn::Nothing => "nothing".to_owned(),
        WaitOn::Transfer(t) => format!("t{t}"),
        WaitOn::Group(group) => {
            let members = plan.groups().get(group as usize).iter();
            let members: Vec<String> = members
                .map(|&bits| wait(plan, Wait::from_bits(bits)))
                .collect();
            format!("{{{}}}", members.join(" "))
        }
    }
}
