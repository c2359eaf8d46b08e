//! Every interleaving of the starts and ends of a plan's transfers, one after the other.
//!
//! A transfer reads its source when it starts and changes its destination when it ends. A run is an
//! order of all starts and ends in which each transfer starts after the ends of all that it waits
//! for. Chunks do not touch each other's places, so they are judged one by one; what does not carry
//! the chunk in question then only holds others up, and is made as soon as its waits allow.

use std::collections::HashMap;
use std::fmt;

use hocket_core::id::fit;
use hocket_core::plan::{Op, Plan};
use strum::VariantArray;

use crate::pairwise::waits;
use crate::states::Seen;

/// Most transfers that the oracle takes, and most NPUs.
pub(crate) const MAX_TRANSFERS: usize = 9;
/// NPUs are numbered below this.
pub(crate) const MAX_NPUS: usize = 5;

/// A value: 0 is none, what else it means is up to [`Sums`].
type Value = u16;

/// How values add up.
trait Sums {
    /// What the contribution of an NPU (or, where nothing is summed, of anyone) is by itself.
    fn contribution(&mut self, of: usize) -> Value;
    /// What is there after a value was added to another; `None` if something would count twice.
    fn sum(&mut self, there: Value, brought: Value) -> Option<Value>;
}

/// Sets of contributions: a bit each.
struct Sets;

impl Sums for Sets {
    fn contribution(&mut self, of: usize) -> Value {
        1 << of
    }

    fn sum(&mut self, there: Value, brought: Value) -> Option<Value> {
        (there & brought == 0).then_some(there | brought)
    }
}

/// Expressions of a sum that commutes and does not associate: a number for each.
#[derive(Default)]
struct Expressions(HashMap<(Value, Value), Value>);

impl Sums for Expressions {
    fn contribution(&mut self, of: usize) -> Value {
        fit::<Value, _>(of) + 1
    }

    fn sum(&mut self, there: Value, brought: Value) -> Option<Value> {
        let next = fit(MAX_NPUS + 1 + self.0.len());
        let operands = (there.min(brought), there.max(brought));
        Some(*self.0.entry(operands).or_insert(next))
    }
}

/// What went wrong in some run, each a bit of [`Faults`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub(crate) enum Fault {
    /// Two accesses of a place that conflict overlap in time: what is read may be torn, or what is
    /// written mixed.
    Overlap,
    /// A transfer reads, or a copy overwrites, another value than in another run.
    Differs,
    /// A transfer reads where nothing is.
    ReadNothing,
    /// A sum finds nothing, is of data that is not summed, or counts a contribution twice.
    BadSum,
    /// A copy brings what is there.
    Redundant,
    /// At the end an NPU does not hold what it wants.
    Missing,
    /// Transfers wait for each other.
    Stuck,
}

/// The faults of all runs together.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Faults(u8);

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = Fault::VARIANTS.iter();
        f.debug_set()
            .entries(all.filter(|&&fault| self.has(fault)))
            .finish()
    }
}

impl Faults {
    /// Whether a fault is among them.
    pub(crate) fn has(self, fault: Fault) -> bool {
        self.0 >> fault as u8 & 1 == 1
    }

    fn add(&mut self, fault: Fault) {
        self.0 |= 1 << fault as u8;
    }

    /// The others.
    pub(crate) fn without(mut self, fault: Fault) -> Self {
        self.0 &= !(1 << fault as u8);
        self
    }

    /// Whether the plan is right: no fault, whatever the timing. That values differ then follows from
    /// other faults or is of no account.
    pub(crate) fn right(self) -> bool {
        self.without(Fault::Differs) == Self::default()
    }

    /// Whether the plan is right by the definition that knows no overlaps: every transfer reads, and
    /// every copy overwrites, the same in every run, and nothing else is wrong.
    pub(crate) fn right_by_values(self) -> bool {
        self.without(Fault::Overlap) == Self::default()
    }

    /// Whether every run ends as it should and sums what it may, with values taken at one instant.
    pub(crate) fn right_by_outcome(self) -> bool {
        [Fault::Overlap, Fault::Differs, Fault::Redundant]
            .into_iter()
            .fold(self, Self::without)
            == Self::default()
    }

    /// Whether values depend on the timing.
    fn differ(self) -> bool {
        self.has(Fault::Differs)
    }

    /// Whether wrong however one looks at it.
    fn hopeless(self) -> bool {
        !self.right_by_outcome()
    }
}

/// What came of a plan.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verdict {
    /// All that was found before the search ended.
    pub faults: Faults,
    /// How many states were visited.
    pub states: u64,
}

/// Judges a plan of at most [`MAX_TRANSFERS`] transfers among [`MAX_NPUS`] NPUs.
pub(crate) fn judge(plan: &Plan) -> Verdict {
    judge_by(plan, true)
}

/// The same, with what does not carry a chunk interleaved with the rest in every way.
pub(crate) fn judge_in_full(plan: &Plan) -> Verdict {
    judge_by(plan, false)
}

fn judge_by(plan: &Plan, others_pass: bool) -> Verdict {
    let mut verdict = Verdict::default();
    let waits = masks(plan);
    let mut seen = Seen::default();
    for chunk in 0..plan.chunks().len() {
        let mut course = Course::of(plan, chunk, &waits, &mut Sets);
        course.others_pass = others_pass;
        course.explore(&mut Sets, &mut seen, &mut verdict, Faults::hopeless);
        if verdict.faults.hopeless() {
            break;
        }
    }
    verdict
}

/// Whether every place of a right plan holds the same expression in every run: at each read, when it
/// is overwritten and at the end. Then the bits are the same in every run, rounding or not.
pub(crate) fn reproducible(plan: &Plan) -> bool {
    let mut verdict = Verdict::default();
    let waits = masks(plan);
    let mut seen = Seen::default();
    (0..plan.chunks().len()).all(|chunk| {
        let mut sums = Expressions::default();
        let mut course = Course::of(plan, chunk, &waits, &mut sums);
        // That sums are complete was settled with sets.
        course.wanted.clear();
        course.explore(&mut sums, &mut seen, &mut verdict, Faults::differ);
        !verdict.faults.differ()
    })
}

/// Which transfers each waits for, a bit each.
fn masks(plan: &Plan) -> Vec<u16> {
    assert!(plan.len() <= MAX_TRANSFERS);
    waits(plan)
        .iter()
        .map(|set| set.iter().fold(0, |mask, t| mask | 1 << t))
        .collect()
}

/// Where a run is: what has started and ended, what places hold, what is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    started: u16,
    ended: u16,
    held: [Value; MAX_NPUS],
    sent: [Value; MAX_TRANSFERS],
}

/// The runs of a plan as one chunk sees them.
struct Course<'a> {
    plan: &'a Plan,
    waits: &'a [u16],
    /// Transfers that carry the chunk.
    carriers: u16,
    /// Whether other transfers are made as soon as may be.
    others_pass: bool,
    reduced: bool,
    before: State,
    /// Who wants what at the end.
    wanted: Vec<(usize, Value)>,
    /// What each transfer was found to read, what each was found to overwrite, what was left at the
    /// end: the first time, against which others are held.
    reads: [Option<Value>; MAX_TRANSFERS],
    overwrites: [Option<Value>; MAX_TRANSFERS],
    left: Option<[Value; MAX_NPUS]>,
}

impl<'a> Course<'a> {
    fn of(plan: &'a Plan, chunk: usize, waits: &'a [u16], sums: &mut impl Sums) -> Self {
        let demands = plan.collective().demands();
        let demand = &demands[plan.chunks().demand()[chunk] as usize];
        let all = plan.collective().npus();
        let mut before = State::default();
        let mut target = 0;
        for holder in demand.holders.members(all) {
            let of = if demand.reduced { holder.index() } else { 0 };
            before.held[holder.index()] = sums.contribution(of);
            target |= before.held[holder.index()];
        }
        let carries = |&t: &usize| {
            let first = plan.chunk()[t] as usize;
            (first..first + plan.chunk_count()[t] as usize).contains(&chunk)
        };
        let wanted = demand.wanted.members(all).iter();
        Self {
            plan,
            waits,
            carriers: (0..plan.len())
                .filter(carries)
                .fold(0, |mask, t| mask | 1 << t),
            others_pass: true,
            reduced: demand.reduced,
            before,
            wanted: wanted.map(|npu| (npu.index(), target)).collect(),
            reads: [None; MAX_TRANSFERS],
            overwrites: [None; MAX_TRANSFERS],
            left: None,
        }
    }

    /// Visits every state that some run passes through, until `enough` is known.
    fn explore(
        &mut self,
        sums: &mut impl Sums,
        seen: &mut Seen,
        verdict: &mut Verdict,
        enough: fn(Faults) -> bool,
    ) {
        seen.clear();
        let first = self.let_others_pass(self.before);
        seen.insert(first);
        let mut open = vec![first];
        while let Some(state) = open.pop() {
            verdict.states += 1;
            let faults = &mut verdict.faults;
            let mut last = true;
            for t in 0..self.plan.len() {
                let bit = 1 << t;
                let next = if self.may_start(&state, t) {
                    self.start(&state, t, faults)
                } else if state.started & !state.ended & bit != 0 {
                    self.end(&state, t, sums, faults)
                } else {
                    continue;
                };
                last = false;
                if enough(*faults) {
                    return;
                }
                let next = self.let_others_pass(next);
                if seen.insert(next) {
                    open.push(next);
                }
            }
            if last {
                self.finish(&state, faults);
                if enough(*faults) {
                    return;
                }
            }
        }
    }

    fn may_start(&self, state: &State, t: usize) -> bool {
        state.started >> t & 1 == 0 && self.waits[t] & !state.ended == 0
    }

    /// Starts and ends, as soon as may be, what does not carry the chunk.
    fn let_others_pass(&self, mut state: State) -> State {
        let other = |state: &State, t: &usize| !self.carries(*t) && self.may_start(state, *t);
        while self.others_pass
            && let Some(t) = (0..self.plan.len()).find(|t| other(&state, t))
        {
            state.started |= 1 << t;
            state.ended |= 1 << t;
        }
        state
    }

    fn start(&mut self, state: &State, t: usize, faults: &mut Faults) -> State {
        let mut next = *state;
        next.started |= 1 << t;
        if !self.carries(t) {
            return next;
        }
        let running = state.started & !state.ended & self.carriers;
        if (0..self.plan.len()).any(|u| running >> u & 1 == 1 && self.conflict(t, u)) {
            faults.add(Fault::Overlap);
        }
        let read = state.held[self.plan.src()[t] as usize];
        if read == 0 {
            faults.add(Fault::ReadNothing);
        }
        if *self.reads[t].get_or_insert(read) != read {
            faults.add(Fault::Differs);
        }
        next.sent[t] = read;
        next
    }

    fn end(&mut self, state: &State, t: usize, sums: &mut impl Sums, faults: &mut Faults) -> State {
        let mut next = *state;
        next.ended |= 1 << t;
        if !self.carries(t) {
            return next;
        }
        let brought = std::mem::take(&mut next.sent[t]);
        let there = &mut next.held[self.plan.dst()[t] as usize];
        if !self.sums(t) {
            if *there == brought {
                faults.add(Fault::Redundant);
            }
            if *self.overwrites[t].get_or_insert(*there) != *there {
                faults.add(Fault::Differs);
            }
            *there = brought;
        } else {
            match sums.sum(*there, brought) {
                Some(sum) if *there != 0 && self.reduced => *there = sum,
                _ => faults.add(Fault::BadSum),
            }
        }
        next
    }

    fn finish(&mut self, state: &State, faults: &mut Faults) {
        if state.ended.count_ones() as usize != self.plan.len() {
            faults.add(Fault::Stuck);
            return;
        }
        if *self.left.get_or_insert(state.held) != state.held {
            faults.add(Fault::Differs);
        }
        if self
            .wanted
            .iter()
            .any(|&(npu, value)| state.held[npu] != value)
        {
            faults.add(Fault::Missing);
        }
    }

    fn carries(&self, t: usize) -> bool {
        self.carriers >> t & 1 == 1
    }

    /// Whether two transfers access one place, not both to read it and not both to add to it.
    fn conflict(&self, t: usize, u: usize) -> bool {
        let (src, dst) = (self.plan.src(), self.plan.dst());
        src[t] == dst[u] || dst[t] == src[u] || dst[t] == dst[u] && !(self.sums(t) && self.sums(u))
    }

    fn sums(&self, t: usize) -> bool {
        self.plan.op()[t] == Op::Reduce as u8
    }
}
