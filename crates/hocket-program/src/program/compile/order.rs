//! The plan's order, as far as waits allow it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use crate::graph::Lists;
use crate::id::narrow;
use crate::plan::{Plan, Wait, WaitGraph};

/// Returns all transfers, one a level, each after those that it waits for and after those before it in the plan that go
/// from the same sender to the same receiver on the same channel; `None` if there is no such order.
pub(super) fn in_plan_order(plan: &Plan, channel_of: Option<&[u32]>) -> Option<Lists<u32>> {
    let transfers = plan.len();
    let connection = |i: u32| {
        let i = i as usize;
        let channel = channel_of.map_or(0, |channels| channels[i]);
        (plan.src()[i], plan.dst()[i], channel)
    };
    let mut due: HashMap<(u32, u32, u32), VecDeque<u32>> = HashMap::new();
    for i in 0..narrow(transfers) {
        due.entry(connection(i)).or_default().push_back(i);
    }
    let graph = WaitGraph::new(plan);
    let mut left = graph.member_counts().to_vec();
    let mut is_free = vec![false; transfers];
    let mut ready: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    let mut levels = Lists::default();
    let mut done = 0;
    let empty = (0..left.len()).filter(|&group| left[group] == 0);
    let mut ended: Vec<usize> = empty.map(|group| transfers + group).collect();
    let mut freed: Vec<u32> = (0..narrow(transfers))
        .filter(|&i| plan.wait()[i as usize] == Wait::NOTHING.to_bits())
        .collect();
    loop {
        while let Some(node) = ended.pop() {
            for &next in graph.freed_by(node) {
                match (next as usize).checked_sub(transfers) {
                    None => freed.push(next),
                    Some(group) => {
                        left[group] -= 1;
                        if left[group] == 0 {
                            ended.push(next as usize);
                        }
                    }
                }
            }
        }
        for i in freed.drain(..) {
            is_free[i as usize] = true;
            if due[&connection(i)].front() == Some(&i) {
                ready.push(Reverse(i));
            }
        }
        let Some(Reverse(i)) = ready.pop() else {
            return (done == transfers).then_some(levels);
        };
        levels.push(&[i]);
        done += 1;
        ended.push(i as usize);
        let queue = due.get_mut(&connection(i)).expect("it was put there");
        queue.pop_front();
        if let Some(&next) = queue.front().filter(|&&next| is_free[next as usize]) {
            ready.push(Reverse(next));
        }
    }
}
