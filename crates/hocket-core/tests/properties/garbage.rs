//! Columns from anywhere never make the core panic, and what passes `verify` simulates.

use std::sync::Arc;

use hocket_core::collective::{Collective, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{LinkId, NpuId, fit, narrow};
use hocket_core::plan::{Chunks, Columns, Lists, Plan, Wait};
use hocket_core::progress::Silent;
use hocket_core::simulate::{LinkOrder, SimulateError, SimulateOptions, simulate};
use hocket_core::topology::Topology;
use hocket_core::units::Seed;
use hocket_core::verify::verify;
use proptest::prelude::*;

use crate::networks::{collective_on, config, topology};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn garbage_is_refused_or_judged(topology in topology(), seed in any::<u64>()) {
        let topology = Arc::new(topology);
        let mut draw = Seed(seed);
        for _ in 0..20 {
            let Some(plan) = garbage(&topology, &mut draw) else {
                continue;
            };
            let Ok(verified) = verify(Arc::new(plan), topology.clone(), &mut Silent) else {
                continue;
            };
            for order in [LinkOrder::Ready, LinkOrder::Plan] {
                let options = SimulateOptions { order: Some(order), ..SimulateOptions::default() };
                let run = simulate(&verified, &options, &mut Silent);
                let deadlock = matches!(run, Err(SimulateError::Deadlock { .. }));
                let fine = run.is_ok() || (order == LinkOrder::Plan && deadlock);
                prop_assert!(fine, "{order:?}");
            }
        }
    }
}

/// Mostly plausible columns: small numbers, now and then wild ones.
fn garbage(topology: &Topology, draw: &mut Seed) -> Option<Plan> {
    let kind = CollectiveKind::NAMED[draw.below(8)];
    let collective = match draw.below(4) {
        0 => custom(topology, draw)?,
        _ => collective_on(topology, kind, draw.next_u64()),
    };
    let pieces = 1 + draw.below(3);
    let chunks = Chunks::split(&collective.demands(), pieces).ok()?;
    let len = draw.below(12);
    let npus = topology.npu_count() + draw.below(2);
    let mut columns = Columns::default();
    for _ in 0..len {
        columns.chunk.push(number(draw, chunks.len()));
        columns.chunk_count.push(number(draw, 3));
        columns.src.push(number(draw, npus));
        columns.dst.push(number(draw, npus));
        columns.op.push(fit(draw.below(2)));
        let wait = match draw.below(4) {
            0 => Wait::NOTHING.to_bits(),
            1 => 1 << 31 | number(draw, 3),
            _ => number(draw, len),
        };
        columns.wait.push(wait);
        columns.path.push(if draw.below(3) == 0 {
            number(draw, 2)
        } else {
            Plan::DEFAULT_ROUTE
        });
    }
    let mut groups = Lists::default();
    for _ in 0..draw.below(4) {
        let members: Vec<u32> = (0..draw.below(4))
            .map(|_| number(draw, len.max(1)))
            .collect();
        groups.push(&members);
    }
    let mut paths = Lists::default();
    for _ in 0..draw.below(3) {
        let links = topology.links().len();
        let path: Vec<LinkId> = (0..draw.below(4))
            .map(|_| LinkId(number(draw, links)))
            .collect();
        paths.push(&path);
    }
    Plan::from_columns("garbage", collective, chunks, columns, groups, paths).ok()
}

fn number(draw: &mut Seed, below: usize) -> u32 {
    match draw.below(40) {
        0 => (draw.next_u64() & 0xffff_ffff) as u32,
        _ => narrow(draw.below(below.max(1))),
    }
}

fn custom(topology: &Topology, draw: &mut Seed) -> Option<Collective> {
    let npus: Vec<NpuId> = topology.npus().collect();
    let demands = (0..1 + draw.below(3)).map(|_| {
        let mut some = || {
            let count = 1 + draw.below(npus.len());
            NpuSet::of((0..count).map(|_| npus[draw.below(npus.len())]))
        };
        let (holders, wanted) = (some(), some());
        Demand {
            bytes: 10 + draw.below(1000) as u64,
            reduced: draw.below(2) == 0,
            holders,
            wanted,
        }
    });
    let demands: Vec<Demand> = demands.collect();
    Collective::custom(npus, demands).ok()
}
