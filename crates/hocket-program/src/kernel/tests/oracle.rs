//! The same by steps of time, slow and plain: what the engine is checked against, on random kernels.

use proptest::prelude::*;

use super::super::engine::{Wires, ends};
use super::super::*;
use super::{block, costs, receive, send};
use crate::id::narrow;
use crate::units::whole;

/// What a block does in one part, in the oracle.
struct Part {
    step: Step,
    bytes: f64,
    index: usize,
    is_last: bool,
}

#[derive(Default)]
struct Slow {
    next: usize,
    left: Option<f64>,
    done: Vec<f64>,
}

/// The same by steps of time: who can begin begins, who works goes on by so much.
#[allow(clippy::too_many_lines)]
fn slowly(kernel: &Kernel, costs: &Costs, tile: f64, rounds: usize, tick: f64) -> f64 {
    let parts_of = |step: &Step| {
        let together = fit::<u32, _>(whole(costs.slot / tile)).max(1);
        let is_moved = step.sends || step.receives;
        if is_moved {
            step.chunks.div_ceil(together) * costs.parts
        } else {
            1
        }
    };
    let lists: Vec<Vec<Part>> = kernel
        .blocks
        .iter()
        .map(|block| {
            let mut list = Vec::new();
            for _ in 0..rounds {
                for (index, step) in block.steps.iter().enumerate() {
                    let parts = parts_of(step);
                    let bytes = f64::from(step.chunks) * tile / f64::from(parts);
                    list.extend((0..parts).map(|part| Part {
                        step: step.clone(),
                        bytes,
                        index,
                        is_last: part + 1 == parts,
                    }));
                }
            }
            list
        })
        .collect();
    let peer = |at: usize| {
        let own = &kernel.blocks[at];
        kernel.blocks.iter().position(|other| {
            own.send == Some(other.npu)
                && other.receive == Some(own.npu)
                && own.channel == other.channel
        })
    };
    let receiver: Vec<Option<usize>> = (0..kernel.blocks.len()).map(peer).collect();
    let sender: Vec<Option<usize>> = (0..kernel.blocks.len())
        .map(|at| receiver.iter().position(|&to| to == Some(at)))
        .collect();
    let mut states: Vec<Slow> = kernel.blocks.iter().map(|_| Slow::default()).collect();
    let mut began: Vec<Vec<f64>> = vec![Vec::new(); kernel.blocks.len()];
    let mut ended: Vec<Vec<f64>> = vec![Vec::new(); kernel.blocks.len()];
    let mut received = vec![0; kernel.blocks.len()];
    let mut tries = 0;
    let mut now = 0.0;
    while (0..states.len()).any(|at| states[at].next < lists[at].len()) {
        tries += 1;
        assert!(tries < 10_000_000);
        let mut changed = true;
        while changed {
            changed = false;
            for at in 0..states.len() {
                let Some(part) = lists[at].get(states[at].next) else {
                    continue;
                };
                let step = &part.step;
                if states[at].left.is_none() {
                    let steps = kernel.blocks[at].steps.len();
                    let round = states[at].done.len() / steps;
                    let is_ready = step.waits.iter().all(|wait| {
                        let other = wait.block as usize;
                        let which = round * kernel.blocks[other].steps.len() + wait.step as usize;
                        states[other]
                            .done
                            .get(which)
                            .is_some_and(|&done| done + costs.sync <= now + 1e-9)
                    });
                    let has_room = !step.sends || {
                        began[at].len() - received[receiver[at].unwrap()] < costs.in_flight as usize
                    };
                    let is_there = !step.receives || {
                        let from = sender[at].unwrap();
                        let times = if costs.streams {
                            &began[from]
                        } else {
                            &ended[from]
                        };
                        times
                            .get(received[at])
                            .is_some_and(|&time| time + costs.latency <= now + 1e-9)
                    };
                    if is_ready && has_room && is_there {
                        let own = if step.receives { costs.receive } else { 0.0 };
                        let pass = if step.sends { own.max(costs.send) } else { own };
                        let pass = pass + f64::from(step.operands) * costs.operand;
                        states[at].left = Some(part.bytes * pass);
                        if step.sends {
                            began[at].push(now);
                        }
                        changed = true;
                    }
                }
                if states[at].left.is_some_and(|left| left <= 1e-9) {
                    if step.sends && ended[at].len() < began[at].len() {
                        ended[at].push(now);
                        changed = true;
                    }
                    if step.receives {
                        let last = ended[sender[at].unwrap()].get(received[at]).copied();
                        if last.is_none_or(|last| last + costs.latency > now + 1e-9) {
                            continue;
                        }
                        received[at] += 1;
                    }
                    states[at].left = None;
                    states[at].next += 1;
                    if part.is_last {
                        states[at].done.push(now);
                    }
                    assert!(part.index < kernel.blocks[at].steps.len());
                    changed = true;
                }
            }
        }
        let sends = |at: usize| {
            let is_busy = states[at].left.is_some_and(|left| left > 1e-9);
            is_busy && lists[at][states[at].next].step.sends
        };
        let sending: Vec<bool> = (0..states.len()).map(sends).collect();
        for at in 0..states.len() {
            let own = &kernel.blocks[at];
            let on_link = (0..states.len())
                .filter(|&other| {
                    sending[other]
                        && kernel.blocks[other].npu == own.npu
                        && kernel.blocks[other].send == own.send
                })
                .count() as f64;
            let share = costs.link * costs.send / (on_link * f64::from(kernel.instances));
            let pace = if sending[at] { share.min(1.0) } else { 1.0 };
            if let Some(left) = &mut states[at].left {
                *left = (*left - tick * pace).max(0.0);
            }
        }
        now += tick;
    }
    now
}

/// A message or a local step: which connection or block, how many chunks, and whether the block waits for another.
type Move = (usize, u32, bool, usize);

/// Blocks joined in a random order of messages, in which nobody can be stuck.
fn joined(npus: u32, shifts: &[u32], moves: &[Move], instances: u32) -> Kernel {
    let mut blocks = Vec::new();
    for (channel, shift) in shifts.iter().enumerate() {
        let shift = shift % (npus - 1) + 1;
        for npu in 0..npus {
            let (to, from) = ((npu + shift) % npus, (npu + npus - shift) % npus);
            blocks.push(block(
                npu,
                Some(to),
                Some(from),
                narrow(channel),
                Vec::new(),
            ));
        }
    }
    for &(at, chunks, is_local, other) in moves {
        let (at, other) = (at % blocks.len(), other % blocks.len());
        let last = blocks[other].steps.len();
        let is_wait = other != at && blocks[other].npu == blocks[at].npu && last > 0;
        let wait = Dependency {
            block: narrow(other),
            step: narrow(last.max(1) - 1),
        };
        let waits = if is_wait { vec![wait] } else { Vec::new() };
        if is_local {
            blocks[at].steps.push(Step {
                operands: 1,
                chunks,
                waits,
                ..Step::default()
            });
            continue;
        }
        let (to, channel) = (blocks[at].send, blocks[at].channel);
        blocks[at].steps.push(Step {
            waits,
            ..send(chunks)
        });
        let receiver = blocks
            .iter()
            .position(|each| Some(each.npu) == to && each.channel == channel)
            .unwrap();
        blocks[receiver].steps.push(receive(chunks));
    }
    Kernel {
        npus,
        instances,
        blocks,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn events_and_steps_of_time_agree(
        npus in 2u32..4,
        shifts in prop::collection::vec(0u32..3, 1..3),
        moves in prop::collection::vec((0usize..6, 1u32..4, prop::bool::weighted(0.2), 0usize..6), 1..10),
        instances in 1u32..3,
        // Times are multiples of the tick, so that steps of time see every event where it is.
        (latency, sync, receive) in (0u32..4, 0u32..3, 1u32..4),
        (parts, in_flight) in (1u32..3, 1u32..4),
        streams: bool,
        link in prop::sample::select(vec![0.5, 1.0, 8.0]),
        rounds in 1usize..4,
    ) {
        let kernel = joined(npus, &shifts, &moves, instances);
        let costs = Costs {
            latency: f64::from(latency) * 0.5,
            sync: f64::from(sync) * 0.5,
            receive: f64::from(receive) * 0.5,
            in_flight,
            parts,
            streams,
            link,
            ..costs()
        };
        let wires = Wires::new(&kernel).unwrap();
        let found = ends(&kernel, &wires, &costs, 4.0, rounds).unwrap();
        prop_assert!(found.is_sorted());
        let last = found[rounds - 1];
        let tick = 1.0 / 128.0;
        let slow = slowly(&kernel, &costs, 4.0, rounds, tick);
        prop_assert!((last - slow).abs() <= 0.02 * slow + 8.0 * tick, "{last} is not {slow}");
    }
}
