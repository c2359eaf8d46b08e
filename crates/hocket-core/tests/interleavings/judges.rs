//! What each judge says about a plan, and how often they say what.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use hocket_core::id::TransferId;
use hocket_core::plan::{Op, Plan, Wait, WaitOn};
use hocket_core::progress::Silent;
use hocket_core::topology::{Topology, TopologyBuilder};
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::{Verified, VerifyError, VerifyReport, verify};

use crate::oracle::{Fault, Verdict, judge, reproducible};
use crate::pairwise::{is_reproducible, is_right, waits};
use crate::small::{Case, Change};

/// What `verify` says: whether a right plan is reproducible where it tells, or what is wrong.
pub type Said = Result<Option<bool>, VerifyReport>;

/// All verdicts on one plan.
#[derive(Clone, Debug)]
pub struct Judged {
    pub oracle: Verdict,
    /// By pairs of accesses and one run.
    pub pairs: bool,
    pub said: Said,
    /// By expressions and by pairs of sums; of right plans only.
    pub reproducible: Option<(bool, bool)>,
}

/// NPUs around one switch.
pub fn star(npus: usize) -> Arc<Topology> {
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
pub fn said(plan: &Arc<Plan>, topology: &Arc<Topology>) -> Said {
    match verify(plan.clone(), topology.clone(), &mut Silent) {
        Ok(verified) => Ok(tells_reproducible(&verified)),
        Err(VerifyError::Wrong(report)) => Err(report),
        Err(error) => panic!("{error}"),
    }
}

/// Whether `verify` proved that the plan is reproducible; `None` as long as it does not tell.
fn tells_reproducible(_verified: &Verified) -> Option<bool> {
    None
}

impl Judged {
    pub fn of(plan: &Arc<Plan>, topology: &Arc<Topology>) -> Self {
        let oracle = judge(plan);
        let right = oracle.faults.right();
        Self {
            oracle,
            pairs: is_right(plan),
            said: said(plan, topology),
            reproducible: right.then(|| (reproducible(plan), is_reproducible(plan))),
        }
    }

    /// How the judges disagree, if they do.
    pub fn disagreement(&self) -> Option<&'static str> {
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
        let told = self.said.as_ref().ok().copied().flatten();
        (expressions != pairs || told.is_some_and(|told| told != expressions)).then_some(SAME_BITS)
    }
}

const ACCEPTS_WRONG: &str = "disagree: verify accepts a wrong plan";
const REFUSES_RIGHT: &str = "disagree: verify refuses a right plan";
const DEFINITIONS: &str = "disagree: right by overlaps or by values";
const PAIRS: &str = "disagree: right by pairs";
const SAME_BITS: &str = "disagree: reproducible";
const BLAME: &str = "disagree: verify blames neither of the two whose order is missing";
/// All of them.
pub const DISAGREEMENTS: [&str; 6] = [
    ACCEPTS_WRONG,
    REFUSES_RIGHT,
    DEFINITIONS,
    PAIRS,
    SAME_BITS,
    BLAME,
];

/// How many plans there were of which something is true.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counts: Vec<(&'static str, u64)>,
    pub states: u64,
}

impl Tally {
    pub fn count(&mut self, facts: impl IntoIterator<Item = (&'static str, bool)>) {
        for (i, (name, holds)) in facts.into_iter().enumerate() {
            if i == self.counts.len() {
                self.counts.push((name, 0));
            }
            self.counts[i].1 += u64::from(holds);
        }
    }

    pub fn add(&mut self, other: &Tally) {
        self.states += other.states;
        if self.counts.is_empty() {
            self.counts.clone_from(&other.counts);
            return;
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            count.1 += more.1;
        }
    }

    pub fn of(&self, name: &str) -> u64 {
        let found = self.counts.iter().find(|(other, _)| *other == name);
        found.unwrap_or_else(|| panic!("nothing counts {name:?}")).1
    }

    /// Share of all plans.
    pub fn share(&self, name: &str) -> f64 {
        self.of(name) as f64 / self.counts[0].1 as f64
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.counts.iter().map(|(name, _)| *name)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in &self.counts {
            writeln!(
                f,
                "{name:<66} {count:>9} {:>6.2} %",
                100.0 * self.share(name)
            )?;
        }
        write!(f, "{:<66} {:>9}", "states", self.states)
    }
}

/// What is true of a small plan and of what the judges say.
pub fn facts(case: &Case, judged: &Judged) -> Vec<(&'static str, bool)> {
    let faults = judged.oracle.faults;
    let (right, outcome) = (faults.right(), faults.right_by_outcome());
    let disagreement = judged.disagreement();
    let mut facts = vec![
        ("plans", true),
        ("right", right),
        ("wrong", !right),
        (
            "wrong by exactly one missing order",
            !right && case.change == Change::OneOrder,
        ),
        ("wrong: overlap", faults.has(Fault::Overlap)),
        ("wrong: values differ by timing", faults.has(Fault::Differs)),
        (
            "wrong: read where nothing is",
            faults.has(Fault::ReadNothing),
        ),
        ("wrong: bad sum", faults.has(Fault::BadSum)),
        ("wrong: redundant copy", faults.has(Fault::Redundant)),
        ("wrong: missing at the end", faults.has(Fault::Missing)),
        ("wrong: cycle of waits", faults.has(Fault::Stuck)),
        (
            "right outcome, but a race",
            outcome && faults.has(Fault::Overlap),
        ),
        (
            "right outcome, but only a redundant copy",
            outcome && faults.has(Fault::Redundant) && !faults.has(Fault::Overlap),
        ),
        (
            "reproducible",
            judged.reproducible.is_some_and(|(same, _)| same),
        ),
        (
            "right and not reproducible",
            judged.reproducible.is_some_and(|(same, _)| !same),
        ),
    ];
    facts.extend(corners(case, right));
    let blamed = misplaced_blame(case, judged);
    for name in DISAGREEMENTS {
        facts.push((name, disagreement == Some(name) || name == BLAME && blamed));
    }
    facts
}

/// Whether a plan with exactly one order missing is refused without a word of the two transfers.
fn misplaced_blame(case: &Case, judged: &Judged) -> bool {
    let (Some((t, u)), Err(report)) = (case.missing, &judged.said) else {
        return false;
    };
    let two = [Some(TransferId::from(t)), Some(TransferId::from(u))];
    let named = report
        .violations()
        .iter()
        .any(|v| two.contains(&v.transfer));
    !named
}

/// Which corners a plan reaches.
fn corners(case: &Case, right: bool) -> Vec<(&'static str, bool)> {
    let plan = &case.plan;
    let n = plan.len();
    let chunks = |t: usize| plan.chunk()[t]..plan.chunk()[t] + plan.chunk_count()[t];
    let meet =
        |t: usize, u: usize| chunks(t).start < chunks(u).end && chunks(u).start < chunks(t).end;
    let sums = |t: usize| plan.op()[t] == Op::Reduce as u8;
    let any = |holds: &dyn Fn(usize) -> bool| (0..n).any(holds);
    let any_two = |holds: &dyn Fn(usize, usize) -> bool| {
        any(&|t| any(&|u| t != u && meet(t, u) && holds(t, u)))
    };
    let (src, dst) = (plan.src(), plan.dst());
    let into = |t: usize, u: usize| dst[t] == dst[u];
    let read_and_sums = any(&|r| {
        let at = |t: usize| sums(t) && dst[t] == src[r] && meet(t, r);
        (0..n).filter(|&t| at(t)).count() > 1
    });
    let in_part =
        any_two(&|t, u| chunks(t).start < chunks(u).start && chunks(t).end < chunks(u).end);
    let waits = waits(plan);
    let forward = any(&|t| waits[t].iter().any(|u| u > t));
    let is_group = |bits: &u32| matches!(Wait::from_bits(*bits).target(), WaitOn::Group(_));
    let mut named: Vec<u32> = plan.wait().iter().copied().filter(is_group).collect();
    let groups_named = named.len();
    named.sort_unstable();
    named.dedup();
    let takes_part = |npu: u32| plan.collective().npus().iter().any(|p| p.0 == npu);
    vec![
        (
            "right, a place is read and summed into twice",
            right && read_and_sums,
        ),
        (
            "a copy over a sum",
            any_two(&|t, u| sums(t) && !sums(u) && into(t, u)),
        ),
        ("ranges overlap in part", in_part),
        ("several components", components(plan) > 1),
        (
            "an NPU that takes no part is used",
            any(&|t| !takes_part(dst[t])),
        ),
        ("a wait points forward", forward),
        ("a group is shared", named.len() < groups_named),
        (
            "a group in a group",
            plan.groups().items().iter().any(is_group),
        ),
        (
            "an empty group",
            plan.groups().iter().any(<[u32]>::is_empty),
        ),
        ("several demands", plan.collective().demands().len() > 1),
        ("no transfers", n == 0),
        ("eight or nine transfers", n >= 8),
    ]
}

/// Into how many parts the chunks fall that no transfer carries together.
fn components(plan: &Plan) -> usize {
    let starts: BTreeSet<u32> = (0..plan.chunks().len() as u32)
        .filter(|&c| {
            let across =
                |t: usize| plan.chunk()[t] < c && c < plan.chunk()[t] + plan.chunk_count()[t];
            !(0..plan.len()).any(across)
        })
        .collect();
    starts.len()
}
