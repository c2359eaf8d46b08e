//! Which transfers of a plan run together, as far as waits and senders say.

use crate::plan::{Plan, Wait, WaitOn};

/// Returns the step of each transfer, from 1 on: one after all that it waits for, and after the sender's transfer
/// before it in the plan.
///
/// Two of one step are sent by different NPUs, and neither waits for the other. Transfers of equal size
/// over equal links run at the times that their steps say; others about so. A wait that points forward
/// counts for nothing.
///
/// # Complexity
/// O(transfers + group members).
pub(super) fn steps(plan: &Plan) -> Vec<u32> {
    let mut steps = vec![0u32; plan.len()];
    let mut groups: Vec<u32> = Vec::with_capacity(plan.groups().len());
    let senders = plan.src().iter().max().map_or(0, |&last| last as usize + 1);
    let mut sent = vec![0u32; senders];
    for i in 0..plan.len() {
        let wait = Wait::from_bits(plan.wait()[i]);
        if let WaitOn::Group(last) = wait.target() {
            for group in groups.len()..=last as usize {
                let members = plan.groups().get(group).iter();
                let step = members.map(|&bits| end(Wait::from_bits(bits), &steps, &groups));
                let step = step.max().unwrap_or(0);
                groups.push(step);
            }
        }
        let last = &mut sent[plan.src()[i] as usize];
        *last = 1 + end(wait, &steps, &groups).max(*last);
        steps[i] = *last;
    }
    steps
}

fn end(wait: Wait, steps: &[u32], groups: &[u32]) -> u32 {
    match wait.target() {
        WaitOn::Nothing => 0,
        WaitOn::Transfer(id) => steps[id.index()],
        WaitOn::Group(group) => groups[group as usize],
    }
}
