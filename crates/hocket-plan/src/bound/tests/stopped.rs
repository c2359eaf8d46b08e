//! A bound that is asked to stop stops, and tells its observer how far it is.

use super::*;
use crate::progress::Progress;

/// Stage, done, total.
type Report = (&'static str, u64, u64);

/// Allows so many reports, and keeps what they say.
struct Allow {
    left: usize,
    seen: Vec<Report>,
}

impl Progress for Allow {
    fn report(&mut self, stage: &'static str, done: u64, total: u64) -> bool {
        self.seen.push((stage, done, total));
        let go_on = self.left > 0;
        self.left = self.left.saturating_sub(1);
        go_on
    }
}

fn watched(left: usize) -> (Result<Bound, Interrupted>, Vec<Report>) {
    let torus = crate::topology::build::torus(&[16, 16], gb_per_s(1), Time::from_ns(1));
    let torus = torus.expect("a torus");
    let kind = CollectiveKind::AllReduce;
    let collective = Collective::among_all(kind, &torus, 1 << 20).expect("an all-reduce");
    let options = BoundOptions::default();
    let mut watch = Allow {
        left,
        seen: Vec::new(),
    };
    let result = super::super::bound(&torus, &collective, &options, &mut watch);
    (result, watch.seen)
}

#[test]
fn it_stops_at_any_report() {
    let (whole, reports) = watched(usize::MAX);
    assert!(whole.is_ok() && reports.len() > 2, "{reports:?}");
    assert!(
        reports.iter().all(|(_, done, total)| done <= total),
        "{reports:?}"
    );
    for left in [0, 1, reports.len() - 1] {
        let (stopped, seen) = watched(left);
        assert_eq!(stopped, Err(Interrupted));
        assert_eq!(seen, reports[..=left]);
    }
}
