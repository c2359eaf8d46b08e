//! Whoever watches a long check hears of it and can stop it.

use super::*;
use crate::id::narrow;
use crate::progress::{Interrupted, Progress};

const CHUNKS: usize = 600_000;

/// Keeps what it hears, and asks to stop after a number of reports.
struct Watch {
    heard: Vec<(&'static str, u64, u64)>,
    patience: usize,
}

impl Progress for Watch {
    fn report(&mut self, stage: &'static str, done: u64, total: u64) -> bool {
        self.heard.push((stage, done, total));
        self.heard.len() < self.patience
    }
}

/// Every chunk of a broadcast from one NPU to another, each a component of its own.
fn broadcast() -> Arc<Plan> {
    let npus: Vec<NpuId> = (0..2).map(NpuId::from).collect();
    let collective = Collective::new(CollectiveKind::Broadcast, npus, 1 << 20, None).unwrap();
    let chunks = Chunks::split(&collective.demands(), CHUNKS).unwrap();
    let mut builder = PlanBuilder::new("by hand", &collective, chunks);
    for chunk in 0..narrow(CHUNKS) {
        send(&mut builder, (chunk, 1), (0, 1), Op::Copy, Wait::NOTHING);
    }
    Arc::new(builder.finish())
}

#[test]
fn a_long_check_reports_now_and_then_and_stops_when_asked() {
    let plan = broadcast();
    let verify_watched = |patience| {
        let mut watch = Watch {
            heard: Vec::new(),
            patience,
        };
        let done = verify(plan.clone(), line(2), &mut watch);
        (done.map(|_| ()), watch.heard)
    };
    let reports: Vec<_> = [1 << 18, 2 << 18]
        .map(|done| ("verify", done, CHUNKS as u64))
        .to_vec();
    assert_eq!(verify_watched(9), (Ok(()), reports.clone()));
    let (done, heard) = verify_watched(1);
    assert_eq!(done, Err(VerifyError::Interrupted(Interrupted)));
    assert_eq!(heard, reports[..1]);
}
