//! Judges with one fault each: the comparison must notice every one of them.

use hocket_core::plan::{Op, Plan};

use crate::oracle::{Fault, Faults};
use crate::pairwise::{TransferSet, is_right_if, races, waits};

/// What a faulty judge says: whether the plan is right. It may look at what the oracle found.
type Judge = fn(&Plan, Faults) -> bool;

/// The faulty judges and their faults.
pub(crate) const MUTANTS: [(&str, Judge); 11] = [
    ("a read beside a sum passes", |plan, _| {
        but(plan, |a, b| {
            a.src == b.dst && b.sums || b.src == a.dst && a.sums
        })
    }),
    ("a read beside a copy passes", |plan, _| {
        but(plan, |a, b| {
            a.src == b.dst && !b.sums || b.src == a.dst && !a.sums
        })
    }),
    ("a copy beside a sum passes", |plan, _| {
        but(plan, |a, b| a.dst == b.dst && a.sums != b.sums)
    }),
    ("a copy beside a copy passes", |plan, _| {
        but(plan, |a, b| a.dst == b.dst && !a.sums && !b.sums)
    }),
    ("two sums must be ordered", |plan, _| {
        is_right_if(plan, &|plan, before, a, b| {
            let (one, other) = (Ends::of(plan, a), Ends::of(plan, b));
            let both = one.sums && other.sums && one.dst == other.dst;
            let ordered = a == b || before[a].contains(b) || before[b].contains(a);
            races(plan, before, a, b) || both && !ordered
        })
    }),
    (
        "of the sums after a read one is checked",
        one_sum_after_a_read,
    ),
    ("waits of waits do not count", |plan, _| {
        let direct = waits(plan);
        is_right_if(plan, &|plan, _, a, b| races(plan, &direct, a, b))
    }),
    ("the transfer before counts too", |plan, _| {
        is_right_if(plan, &|plan, before, a, b| {
            let off_by_one = |a: usize, b: usize| b > 0 && before[a].contains(b - 1);
            races(plan, before, a, b) && !off_by_one(a, b) && !off_by_one(b, a)
        })
    }),
    ("only the outcome counts", |_, faults| {
        faults.right_by_outcome()
    }),
    ("a redundant copy passes", |_, faults| {
        faults.without(Fault::Redundant).right()
    }),
    (
        "what is missing at the end is not looked at",
        |_, faults| faults.without(Fault::Missing).right(),
    ),
];

/// Sender and receiver of a transfer, and whether it adds.
#[derive(PartialEq)]
struct Ends {
    src: u32,
    dst: u32,
    sums: bool,
}

impl Ends {
    fn of(plan: &Plan, t: usize) -> Self {
        Self {
            src: plan.src()[t],
            dst: plan.dst()[t],
            sums: plan.op()[t] == Op::Reduce as u8,
        }
    }
}

/// The judge by pairs who lets some of them pass.
fn but(plan: &Plan, passes: fn(&Ends, &Ends) -> bool) -> bool {
    is_right_if(plan, &|plan, before, a, b| {
        races(plan, before, a, b) && !passes(&Ends::of(plan, a), &Ends::of(plan, b))
    })
}

/// A sum that is not ordered with a read passes where another sum into the place comes after it.
fn one_sum_after_a_read(plan: &Plan, _: Faults) -> bool {
    let shadowed = |before: &[TransferSet], read: usize, sum: usize| {
        let (of_read, of_sum) = (Ends::of(plan, read), Ends::of(plan, sum));
        let another = |t: usize| {
            let other = Ends::of(plan, t);
            t != sum && other.sums && other.dst == of_sum.dst && before[t].contains(read)
        };
        of_sum.sums && of_read.src == of_sum.dst && (0..plan.len()).any(another)
    };
    is_right_if(plan, &|plan, before, a, b| {
        races(plan, before, a, b) && !shadowed(before, a, b) && !shadowed(before, b, a)
    })
}
