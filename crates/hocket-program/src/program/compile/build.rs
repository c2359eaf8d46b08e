//! From blocks under construction to those of a program.

use super::cells::NONE;
use super::emit::{Draft, DraftBlock};
use crate::program::{Buffer, NewStep, ProgramBuilder, Span};

/// Adds the blocks of a rank, which follow those of lower ranks, and says how many chunks its scratch has.
pub(super) fn add(builder: &mut ProgramBuilder, rank: u32, blocks: Vec<DraftBlock>, scratch: u32) {
    let first = builder.blocks();
    let (scratch, used) = compact_scratch(&blocks, scratch);
    builder.size(rank, Buffer::Scratch, used);
    let span = |buffer: Buffer, at: u32, count: u16| {
        let at = match buffer {
            Buffer::Scratch => scratch[at as usize],
            _ => at,
        };
        Span::new(rank, buffer, at, u32::from(count))
    };
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for DraftBlock { block, steps, .. } in blocks {
        builder.block(block);
        for message in steps.chunk_by(|_, next| next.is_joined) {
            sources.clear();
            targets.clear();
            for step in message {
                let count = step.count;
                sources.extend(step.reads().then(|| span(step.src, step.src_at, count)));
                targets.extend(step.writes().then(|| span(step.dst, step.dst_at, count)));
            }
            let Draft { op, after, .. } = message[0];
            builder.step(&NewStep {
                op,
                dependency: (after != NONE).then(|| (first + after.block, after.position)),
                sources: &sources,
                targets: &targets,
                numbers: &[],
            });
        }
    }
}

/// New numbers of the scratch chunks of a rank without those that no step uses any more, and how many are left.
fn compact_scratch(blocks: &[DraftBlock], size: u32) -> (Vec<u32>, u32) {
    let mut used = vec![false; size as usize];
    for step in blocks.iter().flat_map(|block| &block.steps) {
        let ends = [
            (step.reads(), step.src, step.src_at),
            (step.writes(), step.dst, step.dst_at),
        ];
        for (is_used, buffer, at) in ends {
            if is_used && buffer == Buffer::Scratch {
                used[at as usize..][..step.count as usize].fill(true);
            }
        }
    }
    let mut next = 0;
    let mut numbers = Vec::with_capacity(used.len());
    for is_used in used {
        numbers.push(next);
        next += u32::from(is_used);
    }
    (numbers, next)
}
