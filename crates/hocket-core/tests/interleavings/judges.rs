//! What each judge says about a plan, and how often they say what.

use std::sync::Arc;

use hocket_core::plan::{Op, Plan};
use hocket_core::progress::Silent;
use hocket_core::topology::{Topology, TopologyBuilder};
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::{VerifyError, VerifyReport, verify};

use crate::oracle::{Verdict, judge, reproducible};
use crate::pairwise::{closure, is_right};
use crate::random::Case;

/// What `verify` says: whether a right plan is reproducible, or what is wrong.
pub(crate) type Said = Result<bool, VerifyReport>;

/// All verdicts on one plan.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub oracle: Verdict,
    /// By pairs of accesses and one run.
    pub pairs: bool,
    pub said: Said,
    /// By expressions and by pairs of sums; of right plans only.
    pub reproducible: Option<(bool, bool)>,
}

/// NPUs around one switch.
pub(crate) fn star(npus: usize) -> Arc<Topology> {
    let mut builder = TopologyBuilder::new("star");
    builder.npus(npus);
    let centre = builder.switch("switch", None);
    let rate = Bandwidth::from_bytes_per_second(1_000_000_000).expect("positive");
    for npu in 0..npus {
        builder.both_ways(npu.into(), centre, rate, Time::from_ns(1));
    }
    Arc::new(builder.finish().expect("a network"))
}

/// What `verify` says of a plan among the NPUs of a [`star`].
pub(crate) fn said(plan: &Arc<Plan>, topology: &Arc<Topology>) -> Said {
    match verify(plan.clone(), topology.clone(), &mut Silent) {
        Ok(verified) => Ok(verified.reproducible()),
        Err(VerifyError::Wrong(report)) => Err(report),
        Err(error) => panic!("{error}"),
    }
}

impl Judged {
    pub(crate) fn of(plan: &Arc<Plan>, topology: &Arc<Topology>) -> Self {
        let oracle = judge(plan);
        let right = oracle.faults.right();
        Self {
            oracle,
            pairs: is_right(plan),
            said: said(plan, topology),
            reproducible: right.then(|| (reproducible(plan), sums_in_one_order(plan))),
        }
    }

    /// How the judges of a case disagree, if they do.
    pub(crate) fn disagreement_on(&self, case: &Case) -> Option<&'static str> {
        let blame = blames_others(case, &self.said).then_some(BLAME);
        self.disagreement().or(blame)
    }

    /// How the judges disagree, whatever the plan was made for.
    pub(crate) fn disagreement(&self) -> Option<&'static str> {
        let right = self.oracle.faults.right();
        if right != self.said.is_ok() {
            return Some(if right { REFUSES_RIGHT } else { ACCEPTS_WRONG });
        }
        if right != self.oracle.faults.right_by_values() {
            return Some(DEFINITIONS);
        }
        if right != self.pairs {
            return Some(PAIRS);
        }
        let (expressions, pairs) = self.reproducible?;
        let told = *self.said.as_ref().ok()?;
        (expressions != pairs || expressions != told).then_some(SAME_BITS)
    }
}

/// Whether each place of a right plan is added to in one order only: then every sum is the same
/// expression in every timing.
pub(crate) fn sums_in_one_order(plan: &Plan) -> bool {
    let (_, before) = closure(plan).expect("a right plan has no cycle");
    let apart = |a: usize, b: usize| {
        plan.dst()[a] != plan.dst()[b]
            || plan.chunk()[a] + plan.chunk_count()[a] <= plan.chunk()[b]
            || plan.chunk()[b] + plan.chunk_count()[b] <= plan.chunk()[a]
    };
    let sums = |&t: &usize| plan.op()[t] == Op::Reduce as u8;
    let ordered = |a: usize, b: usize| before[a].contains(b) || before[b].contains(a);
    (0..plan.len()).filter(sums).all(|a| {
        let mut others = (0..a).filter(sums);
        others.all(|b| apart(a, b) || ordered(a, b))
    })
}

/// Whether a plan in which exactly one order is missing is refused without a word of either of the
/// two transfers concerned.
fn blames_others(case: &Case, said: &Said) -> bool {
    let (Some((t, u)), Err(report)) = (case.missing, said) else {
        return false;
    };
    let two = [Some(t.into()), Some(u.into())];
    !report
        .violations()
        .iter()
        .any(|violation| two.contains(&violation.transfer))
}

pub(crate) const ACCEPTS_WRONG: &str = "disagree: verify accepts a wrong plan";
pub(crate) const REFUSES_RIGHT: &str = "disagree: verify refuses a right plan";
const DEFINITIONS: &str = "disagree: right by overlaps, by values";
const PAIRS: &str = "disagree: right by interleavings, by pairs";
pub(crate) const SAME_BITS: &str = "disagree: reproducible";
const BLAME: &str = "disagree: verify blames neither of the two unordered";

/// All ways in which judges of small plans can disagree.
pub(crate) const DISAGREEMENTS: [&str; 6] = [
    ACCEPTS_WRONG,
    REFUSES_RIGHT,
    DEFINITIONS,
    PAIRS,
    SAME_BITS,
    BLAME,
];
