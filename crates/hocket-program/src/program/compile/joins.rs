//! Messages that a connection carries as one: they wait for all that one of them waits for, and end together.

use rustc_hash::FxHashMap;

use super::cells::{NONE, StepId};
use super::emit::{Draft, DraftBlock};
use crate::id::narrow;
use crate::program::Op;

/// Messages of a block made one: what they wait for, as blocks and the numbers of messages there, and their steps.
#[derive(Default)]
struct Joined {
    waits: Vec<(u32, u32)>,
    steps: Vec<Draft>,
}

/// Puts what joined messages wait for before all of them. What a block has waited for before is left out.
///
/// Positions of steps that are waited for do not count the steps that joined others from then on.
pub(super) fn gather(blocks: &mut [DraftBlock]) {
    let numbers: Vec<Vec<u32>> = blocks.iter().map(numbers).collect();
    let mut gathered: Vec<Vec<Joined>> = Vec::with_capacity(blocks.len());
    let mut places: Vec<Vec<u32>> = Vec::with_capacity(blocks.len());
    for block in &*blocks {
        let mut messages = joined(block, &numbers);
        let mut waited: FxHashMap<u32, u32> = FxHashMap::default();
        let mut next = 0;
        let of_block = messages.iter_mut().map(|message| {
            let waits = &mut message.waits;
            waits.sort_unstable_by_key(|&(block, number)| (block, std::cmp::Reverse(number)));
            waits.dedup_by_key(|wait| wait.0);
            waits.retain(|&(block, number)| {
                let is_new = waited.get(&block).is_none_or(|&last| last < number);
                is_new && waited.insert(block, number) != Some(number)
            });
            next += waits.len().max(1);
            narrow(next) - 1
        });
        places.push(of_block.collect());
        gathered.push(messages);
    }
    for (block, messages) in blocks.iter_mut().zip(gathered) {
        block.steps.clear();
        for Joined { waits, mut steps } in messages {
            let mut waits = waits.into_iter().map(|(block, number)| StepId {
                block,
                position: places[block as usize][number as usize],
            });
            let last = waits.next_back();
            block.steps.extend(waits.map(Draft::waiting));
            for step in &mut steps {
                step.after = NONE;
            }
            steps[0].after = last.unwrap_or(NONE);
            block.steps.append(&mut steps);
        }
    }
}

/// Returns the number of the message that each step of a block is part of; what it is for steps that only wait, nobody asks.
fn numbers(block: &DraftBlock) -> Vec<u32> {
    let mut count: u32 = 0;
    let of = block.steps.iter().map(|step| {
        count += u32::from(step.op != Op::Nop && !step.is_joined);
        count.saturating_sub(1)
    });
    of.collect()
}

/// Returns the messages of a block.
fn joined(block: &DraftBlock, numbers: &[Vec<u32>]) -> Vec<Joined> {
    let mut messages: Vec<Joined> = Vec::new();
    let mut waits = Vec::new();
    for &step in &block.steps {
        let after = step.after;
        if after != NONE {
            waits.push((
                after.block,
                numbers[after.block as usize][after.position as usize],
            ));
        }
        if step.op == Op::Nop {
            continue;
        }
        if !step.is_joined {
            messages.push(Joined::default());
        }
        let message = messages.last_mut().expect("the first joins none");
        message.waits.append(&mut waits);
        message.steps.push(step);
    }
    messages
}
