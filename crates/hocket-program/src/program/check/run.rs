//! One run of a program, each block as far as it gets: whether it ends, and in which order steps ended.
//!
//! # Source
//! What a block waits for is given by one other block and taken by no third, as the channels of a process network
//! are: Kahn, The semantics of a simple language for parallel programming, 1974. So one order decides for all.

use std::collections::{HashMap, HashSet};

use super::matching::{Matching, NONE, chunks};
use super::{Code, Faults, Place, block_name, step_name};
use crate::id::{fit, narrow};
use crate::program::{Op, Program, Span};

/// What a block waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// A step of another block.
    Step(u32),
    /// Room on the connection that it sends on.
    Room,
    /// A message on the connection that it receives on.
    Message,
    /// A signal on a line.
    Signal(u32),
    /// Other blocks at a barrier.
    Barrier(u32, u32),
    /// A semaphore.
    Semaphore(u32),
    /// A packet.
    Packet(Span),
}

/// Where a run got stuck: the blocks that have not ended, with their steps.
pub(crate) struct Stuck {
    blocks: Vec<(u32, u32, Blocked)>,
    at_barrier: Vec<u32>,
}

/// A run in progress.
struct Run<'a> {
    program: &'a Program,
    matching: &'a Matching,
    /// Chunks of one message.
    per_message: u32,
    /// Step of each block, and messages of it that are through.
    at: Vec<u32>,
    messages: Vec<u32>,
    sent: Vec<u64>,
    received: Vec<u64>,
    signals: Vec<u64>,
    waits: Vec<u64>,
    semaphores: Vec<u64>,
    /// Blocks that stand at each barrier.
    arrived: HashMap<(u32, u32), Vec<u32>>,
    passed: Vec<bool>,
    /// Packets that have been written, by chunk.
    packets: HashSet<Span>,
    /// Blocks to be looked at.
    ready: Vec<u32>,
    queued: Vec<bool>,
    on_step: HashMap<u32, Vec<u32>>,
    on_packet: HashMap<Span, Vec<u32>>,
    order: Vec<u32>,
}

/// Runs a program to its end; gives the order in which its steps ended, or where it got stuck.
pub(crate) fn run(
    program: &Program,
    matching: &Matching,
    per_message: u32,
) -> Result<Vec<u32>, Box<Stuck>> {
    let blocks = program.blocks().len();
    let mut run = Run {
        program,
        matching,
        per_message: per_message.max(1),
        at: (0..narrow(blocks))
            .map(|block| program.steps_of(block).start)
            .collect(),
        messages: vec![0; blocks],
        sent: vec![0; matching.connections.len()],
        received: vec![0; matching.connections.len()],
        signals: vec![0; program.lines().len()],
        waits: vec![0; program.lines().len()],
        semaphores: program
            .semaphores()
            .iter()
            .map(|each| u64::from(each.initial))
            .collect(),
        arrived: HashMap::new(),
        passed: vec![false; blocks],
        packets: HashSet::new(),
        ready: (0..narrow(blocks)).rev().collect(),
        queued: vec![true; blocks],
        on_step: HashMap::new(),
        on_packet: HashMap::new(),
        order: Vec::with_capacity(program.len()),
    };
    while let Some(block) = run.ready.pop() {
        run.queued[block as usize] = false;
        run.advance(block);
    }
    if run.order.len() == program.len() {
        Ok(run.order)
    } else {
        Err(Box::new(run.stuck()))
    }
}

/// Returns the fewest chunks a message, above those with which it is stuck, with which a program ends.
pub(super) fn safe_from(program: &Program, matching: &Matching, stuck_with: u32) -> Option<u32> {
    const MOST: u32 = 256;
    if run(program, matching, MOST).is_err() {
        return None;
    }
    let (mut low, mut high) = (stuck_with, MOST);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if run(program, matching, middle).is_ok() {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

impl Run<'_> {
    fn wake(&mut self, block: u32) {
        if !self.queued[block as usize] {
            self.queued[block as usize] = true;
            self.ready.push(block);
        }
    }

    /// Takes a block as far as it gets.
    fn advance(&mut self, block: u32) {
        let end = self.program.steps_of(block).end;
        while self.at[block as usize] < end {
            let step = self.at[block as usize];
            if self.messages[block as usize] == 0
                && let Some(blocked) = self.obstacle(block, step)
            {
                self.sleep(block, blocked);
                return;
            }
            if !self.transfer(block, step) {
                return;
            }
            self.finish(block, step);
        }
    }

    /// Returns what a step waits for before it starts, besides messages.
    fn obstacle(&mut self, block: u32, step: u32) -> Option<Blocked> {
        let view = self.program.step(step);
        if let Some(target) = view.dependency
            && self.at[self.program.block_of(target) as usize] <= target
        {
            return Some(Blocked::Step(target));
        }
        match view.op {
            Op::Wait => {
                let mut lines = view.numbers();
                let open =
                    lines.find(|&line| self.signals[line as usize] <= self.waits[line as usize]);
                return open.map(Blocked::Signal);
            }
            Op::Acquire => {
                let mut semaphores = view.numbers();
                let taken = semaphores.find(|&semaphore| self.semaphores[semaphore as usize] == 0);
                return taken.map(Blocked::Semaphore);
            }
            Op::Barrier => return self.barrier(block, step),
            _ => {}
        }
        let packets = view.sources().filter(|span| span.is_packet());
        let missing = packets
            .flat_map(chunks)
            .find(|chunk| !self.packets.contains(chunk));
        missing.map(Blocked::Packet)
    }

    fn barrier(&mut self, block: u32, step: u32) -> Option<Blocked> {
        if std::mem::take(&mut self.passed[block as usize]) {
            return None;
        }
        let rank = self.program.blocks()[block as usize].rank;
        let id = self.program.step(step).numbers().next().expect("checked");
        let key = (rank, id);
        let arrived = self.arrived.entry(key).or_default();
        if !arrived.contains(&block) {
            arrived.push(block);
        }
        if arrived.len() < self.matching.barriers[&key].len() {
            return Some(Blocked::Barrier(rank, id));
        }
        for other in std::mem::take(arrived) {
            if other != block {
                self.passed[other as usize] = true;
                self.wake(other);
            }
        }
        None
    }

    fn sleep(&mut self, block: u32, blocked: Blocked) {
        match blocked {
            Blocked::Step(step) => self.on_step.entry(step).or_default().push(block),
            Blocked::Packet(chunk) => self.on_packet.entry(chunk).or_default().push(block),
            // Whoever gives these knows whom to wake.
            _ => {}
        }
    }

    /// Sends and receives as many messages of a step as it can; whether all are through.
    fn transfer(&mut self, block: u32, step: u32) -> bool {
        let view = self.program.step(step);
        let (sends, receives) = (view.op.sends(), view.op.receives());
        if !sends && !receives {
            return true;
        }
        let all = view.count().div_ceil(self.per_message);
        let left = all - self.messages[block as usize];
        let (up, down) = (
            self.matching.receives_on[block as usize],
            self.matching.sends_on[block as usize],
        );
        let mut now = u64::from(left);
        if receives {
            now = now.min(self.sent[up as usize] - self.received[up as usize]);
        }
        if sends && let Some(most) = self.program.in_flight() {
            let held = self.sent[down as usize] - self.received[down as usize];
            now = now.min(u64::from(most) - held);
        }
        if now > 0 {
            if receives {
                self.received[up as usize] += now;
                self.wake(self.matching.connections[up as usize].sender);
            }
            if sends {
                self.sent[down as usize] += now;
                self.wake(self.matching.connections[down as usize].receiver);
            }
        }
        self.messages[block as usize] += fit::<u32, _>(now);
        if now < u64::from(left) && now > 0 {
            // A step that sends on what it receives may have been held up by the other side.
            self.wake(block);
        }
        self.messages[block as usize] == all
    }

    fn finish(&mut self, block: u32, step: u32) {
        let view = self.program.step(step);
        match view.op {
            Op::Signal => {
                for line in view.numbers() {
                    self.signals[line as usize] += 1;
                    self.wake(self.matching.waiter[line as usize]);
                }
            }
            Op::Wait => view
                .numbers()
                .for_each(|line| self.waits[line as usize] += 1),
            Op::Acquire => view
                .numbers()
                .for_each(|each| self.semaphores[each as usize] -= 1),
            Op::Release => {
                for semaphore in view.numbers() {
                    self.semaphores[semaphore as usize] += 1;
                    let taker = self.matching.taker[semaphore as usize];
                    if taker != NONE {
                        self.wake(taker);
                    }
                }
            }
            _ => {
                for chunk in view
                    .targets()
                    .filter(|span| span.is_packet())
                    .flat_map(chunks)
                {
                    self.packets.insert(chunk);
                    for block in self.on_packet.remove(&chunk).unwrap_or_default() {
                        self.wake(block);
                    }
                }
            }
        }
        self.order.push(step);
        self.at[block as usize] = step + 1;
        self.messages[block as usize] = 0;
        for waiting in self.on_step.remove(&step).unwrap_or_default() {
            self.wake(waiting);
        }
    }

    /// Returns the blocks that have not ended, and what each waits for.
    fn stuck(mut self) -> Stuck {
        let mut blocks = Vec::new();
        for block in 0..narrow(self.program.blocks().len()) {
            let step = self.at[block as usize];
            if step == self.program.steps_of(block).end {
                continue;
            }
            let started = self.messages[block as usize] > 0;
            let obstacle = if started {
                None
            } else {
                self.obstacle(block, step)
            };
            let blocked = obstacle.unwrap_or_else(|| {
                let receives = self.program.step(step).op.receives();
                let up = self.matching.receives_on[block as usize] as usize;
                if receives && self.sent[up] == self.received[up] {
                    Blocked::Message
                } else {
                    Blocked::Room
                }
            });
            blocks.push((block, step, blocked));
        }
        Stuck {
            blocks,
            at_barrier: self.arrived.into_values().flatten().collect(),
        }
    }
}

impl Stuck {
    /// Returns the block that a stuck block waits for; `None` if what it waits for never comes from any.
    fn awaited(
        &self,
        program: &Program,
        matching: &Matching,
        (block, _, blocked): (u32, u32, Blocked),
    ) -> Option<u32> {
        let known = |block: u32| (block != NONE).then_some(block);
        match blocked {
            Blocked::Step(step) => Some(program.block_of(step)),
            Blocked::Room => {
                let on = matching.sends_on[block as usize];
                Some(matching.connections[on as usize].receiver)
            }
            Blocked::Message => {
                let on = matching.receives_on[block as usize];
                Some(matching.connections[on as usize].sender)
            }
            Blocked::Signal(line) => known(matching.signaller[line as usize]),
            Blocked::Barrier(rank, id) => {
                let blocks = &matching.barriers[&(rank, id)];
                blocks
                    .iter()
                    .copied()
                    .find(|block| !self.at_barrier.contains(block))
            }
            Blocked::Semaphore(semaphore) => (0..narrow(program.blocks().len())).find(|&other| {
                program.steps_of(other).any(|step| {
                    let view = program.step(step);
                    view.op == Op::Release && view.numbers().any(|number| number == semaphore)
                })
            }),
            Blocked::Packet(chunk) => matching
                .written_by
                .get(&chunk)
                .map(|&step| program.block_of(step)),
        }
    }

    /// Adds the fault: who waits for whom, round the cycle or to the one who never gives.
    pub(super) fn explain(
        &self,
        program: &Program,
        matching: &Matching,
        per_message: u32,
        safe_from: Option<u32>,
        faults: &mut Faults,
    ) {
        let of: HashMap<u32, usize> = self
            .blocks
            .iter()
            .enumerate()
            .map(|(i, stuck)| (stuck.0, i))
            .collect();
        // Follow who waits for whom from the first stuck block until one comes up again.
        let mut path = vec![0];
        let mut seen = HashMap::from([(0, 0)]);
        let mut ends_with = None;
        let cycle_start = loop {
            let last = self.blocks[*path.last().expect("never empty")];
            let next = self.awaited(program, matching, last);
            let Some(&next) = next.and_then(|block| of.get(&block)) else {
                ends_with = Some(last);
                break path.len() - 1;
            };
            if let Some(&start) = seen.get(&next) {
                break start;
            }
            seen.insert(next, path.len());
            path.push(next);
        };
        const SHOWN: usize = 6;
        let cycle = &path[cycle_start..];
        let (_, step, _) = self.blocks[cycle[0]];
        faults.add(Code::Deadlock, Place::Step(step), || {
            let mut said: Vec<String> = cycle
                .iter()
                .take(SHOWN)
                .map(|&i| waits_for(program, self.blocks[i]))
                .collect();
            if cycle.len() > SHOWN {
                said.push(format!("{} more", cycle.len() - SHOWN));
            }
            let mut text = if ends_with.is_some() {
                format!("{}, which never comes", said[0])
            } else {
                format!("{} blocks wait for each other: {}", cycle.len(), said.join("; "))
            };
            let by_room = self.blocks.iter().any(|stuck| stuck.2 == Blocked::Room);
            if let (Some(messages), true) = (program.in_flight(), by_room) {
                let plural = if per_message == 1 { "" } else { "s" };
                text += &format!(
                    " (a connection holds {messages} messages, here of {per_message} chunk{plural} each"
                );
                text += &match safe_from {
                    Some(chunks) => {
                        format!("; with {chunks} or more chunks a message, so for small sizes, it ends)")
                    }
                    None => "; it gets stuck with any number of chunks a message)".to_owned(),
                };
            }
            text
        });
    }
}

fn waits_for(program: &Program, (block, step, blocked): (u32, u32, Blocked)) -> String {
    let position = step - program.steps_of(block).start;
    let what = match blocked {
        Blocked::Step(step) => step_name(program, step),
        Blocked::Room => {
            let to = program.blocks()[block as usize].send.unwrap_or(NONE);
            format!("rank {to} to receive")
        }
        Blocked::Message => {
            let from = program.blocks()[block as usize].recv.unwrap_or(NONE);
            format!("a message of rank {from}")
        }
        Blocked::Signal(line) => {
            format!("a signal of rank {}", program.lines()[line as usize].from)
        }
        Blocked::Barrier(_, id) => format!("barrier {id}"),
        Blocked::Semaphore(semaphore) => format!("semaphore {semaphore}"),
        Blocked::Packet(chunk) => format!("a packet in {chunk}"),
    };
    format!(
        "{} waits at step {position} for {what}",
        block_name(program, block)
    )
}
