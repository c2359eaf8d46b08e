//! Which steps meet: sends and receives, signals and waits, blocks at barriers.

use std::collections::{BTreeMap, HashMap};

use super::structure::named;
use super::{Code, Faults, Place};
use crate::id::narrow;
use crate::program::{Op, Program, Span};

/// `u32::MAX`: no block, step, connection or meeting.
pub(crate) const NONE: u32 = u32::MAX;

/// A connection: its sends and receives in order.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// Block that sends.
    pub sender: u32,
    /// Block that receives.
    pub receiver: u32,
}

/// Who meets whom in a program whose ends fit.
#[derive(Debug)]
pub(crate) struct Matching {
    /// Connections, and of each block the one that it sends on and the one that it receives on.
    pub connections: Vec<Connection>,
    pub sends_on: Vec<u32>,
    pub receives_on: Vec<u32>,
    /// For each step that receives, the step that sends.
    pub sent_by: Vec<u32>,
    /// Block that signals on each line, and block that waits on it.
    pub signaller: Vec<u32>,
    pub waiter: Vec<u32>,
    /// For each semaphore the one block that takes it.
    pub taker: Vec<u32>,
    /// For each chunk of packets the step that writes it.
    pub written_by: HashMap<Span, u32>,
    /// Blocks that meet at each barrier of each rank.
    pub barriers: BTreeMap<(u32, u32), Vec<u32>>,
}

impl Matching {
    /// Matches a program's steps; `None`, and faults, where they do not fit.
    pub(crate) fn of(program: &Program, faults: &mut Faults) -> Option<Self> {
        let blocks = program.blocks().len();
        let mut matching = Self {
            connections: Vec::new(),
            sends_on: vec![NONE; blocks],
            receives_on: vec![NONE; blocks],
            sent_by: vec![NONE; program.len()],
            signaller: vec![NONE; program.lines().len()],
            waiter: vec![NONE; program.lines().len()],
            taker: vec![NONE; program.semaphores().len()],
            written_by: HashMap::new(),
            barriers: BTreeMap::new(),
        };
        matching.connect(program, faults);
        matching.pair(program, faults);
        matching.join_lines(program, faults);
        matching.gather(program, faults);
        matching.trace_packets(program, faults);
        faults.is_empty().then_some(matching)
    }

    /// Finds the connections. A block whose steps do not use the peer that it names is an end of one, too: runtimes connect what is
    /// named, and each block writes back how far it came when it ends, over what another one of the same end wrote.
    fn connect(&mut self, program: &Program, faults: &mut Faults) {
        let mut by_ends: HashMap<(u32, u32, u32), u32> = HashMap::new();
        for (number, block) in program.blocks().iter().enumerate() {
            for (peer, is_sender) in [(block.send, true), (block.recv, false)] {
                let Some(peer) = peer else { continue };
                let key = if is_sender {
                    (block.rank, peer, block.channel)
                } else {
                    (peer, block.rank, block.channel)
                };
                let connections = &mut self.connections;
                let connection = *by_ends.entry(key).or_insert_with(|| {
                    connections.push(Connection {
                        sender: NONE,
                        receiver: NONE,
                    });
                    narrow(connections.len()) - 1
                });
                let found = &mut connections[connection as usize];
                let (end, on) = if is_sender {
                    (&mut found.sender, &mut self.sends_on)
                } else {
                    (&mut found.receiver, &mut self.receives_on)
                };
                if *end == NONE {
                    *end = narrow(number);
                    on[number] = connection;
                } else {
                    let first = *end;
                    faults.add(Code::Shared, Place::Block(narrow(number)), || {
                        let both = named(program, &[first, narrow(number)]);
                        let word = if is_sender { "send to" } else { "receive from" };
                        format!(
                            "{both} both {word} rank {peer} on channel {}; give one of them another channel",
                            block.channel
                        )
                    });
                }
            }
        }
    }

    /// Pairs the sends of each connection with its receives.
    fn pair(&mut self, program: &Program, faults: &mut Faults) {
        for connection in &self.connections {
            let (sender, receiver) = (connection.sender, connection.receiver);
            if sender == NONE || receiver == NONE {
                let (there, verb) = if sender == NONE {
                    (receiver, "receives")
                } else {
                    (sender, "sends")
                };
                let block = program.blocks()[there as usize];
                let (peer, other) = if sender == NONE {
                    (block.recv, "sends to it")
                } else {
                    (block.send, "receives from it")
                };
                faults.add(Code::Unmatched, Place::Block(there), || {
                    format!(
                        "{verb} on channel {}, but no block of rank {} {other} there",
                        block.channel,
                        peer.expect("connected")
                    )
                });
                continue;
            }
            let filtered = |block: u32, which: fn(Op) -> bool| {
                program
                    .steps_of(block)
                    .filter(move |&step| which(program.step(step).op))
            };
            let mut sends = filtered(sender, Op::sends);
            let mut receives = filtered(receiver, Op::receives);
            loop {
                match (sends.next(), receives.next()) {
                    (None, None) => break,
                    (Some(send), Some(receive)) => {
                        let (sent, got) =
                            (program.step(send).count(), program.step(receive).count());
                        if sent != got {
                            faults.add(Code::Unmatched, Place::Step(receive), || {
                                format!(
                                    "receives {got} chunks of the {sent} that {} sends; the counts must be equal",
                                    super::step_name(program, send)
                                )
                            });
                            break;
                        }
                        self.sent_by[receive as usize] = send;
                    }
                    (Some(send), None) => {
                        faults.add(Code::Unmatched, Place::Step(send), || {
                            format!("sends what {} never receives", named(program, &[receiver]))
                        });
                        break;
                    }
                    (None, Some(receive)) => {
                        faults.add(Code::Unmatched, Place::Step(receive), || {
                            format!("receives what {} never sends", named(program, &[sender]))
                        });
                        break;
                    }
                }
            }
        }
    }

    /// Finds the blocks at the ends of lines and semaphores.
    fn join_lines(&mut self, program: &Program, faults: &mut Faults) {
        let mut signals = vec![0u64; program.lines().len()];
        let mut waits = vec![0u64; program.lines().len()];
        for block in 0..narrow(program.blocks().len()) {
            for step in program.steps_of(block) {
                let view = program.step(step);
                let ends = match view.op {
                    Op::Signal => &mut self.signaller,
                    Op::Wait => &mut self.waiter,
                    Op::Acquire => &mut self.taker,
                    _ => continue,
                };
                for number in view.numbers() {
                    let end = &mut ends[number as usize];
                    if *end == NONE {
                        *end = block;
                    } else if *end != block {
                        let first = *end;
                        faults.add(Code::Shared, Place::Step(step), || {
                            format!(
                                "{} both {} number {number}; its counter is safe for one block only",
                                named(program, &[first, block]),
                                view.op.name()
                            )
                        });
                    }
                    match view.op {
                        Op::Signal => signals[number as usize] += 1,
                        Op::Wait => waits[number as usize] += 1,
                        _ => {}
                    }
                }
            }
        }
        for (number, line) in program.lines().iter().enumerate() {
            if signals[number] != waits[number] {
                let (given, taken) = (signals[number], waits[number]);
                let place = if self.waiter[number] == NONE {
                    Place::Block(self.signaller[number])
                } else {
                    Place::Block(self.waiter[number])
                };
                faults.add(Code::Unmatched, place, || {
                    let (from, to) = (line.from, line.to);
                    format!(
                        "rank {from} signals rank {to} {given} times, and it waits {taken} times"
                    )
                });
            }
        }
    }

    /// Finds who writes each packet. A second packet in one place has the same flag as the first.
    fn trace_packets(&mut self, program: &Program, faults: &mut Faults) {
        for step in 0..narrow(program.len()) {
            let targets = program.step(step).targets();
            for chunk in targets.filter(|span| span.is_packet()).flat_map(chunks) {
                if let Some(&first) = self.written_by.get(&chunk) {
                    faults.add(Code::Shared, Place::Step(step), || {
                        let first = super::step_name(program, first);
                        format!("writes a packet into {chunk}, as {first} does; a reader cannot tell them apart")
                    });
                } else {
                    self.written_by.insert(chunk, step);
                }
            }
        }
    }

    /// Finds who meets at barriers.
    fn gather(&mut self, program: &Program, faults: &mut Faults) {
        let mut visits: BTreeMap<(u32, u32), Vec<(u32, u32)>> = BTreeMap::new();
        for (block, of) in program.blocks().iter().enumerate() {
            for step in program.steps_of(narrow(block)) {
                let view = program.step(step);
                if view.op != Op::Barrier {
                    continue;
                }
                let mut numbers = view.numbers();
                let id = numbers.next().expect("checked");
                let expected = numbers.next().expect("checked");
                let blocks = self.barriers.entry((of.rank, id)).or_default();
                if blocks.last() != Some(&narrow(block)) {
                    blocks.push(narrow(block));
                }
                visits
                    .entry((of.rank, id))
                    .or_default()
                    .push((narrow(block), expected));
            }
        }
        for (key, visits) in &visits {
            let blocks = &self.barriers[key];
            let each = visits.len() / blocks.len();
            let alike = blocks
                .iter()
                .all(|&block| visits.iter().filter(|visit| visit.0 == block).count() == each);
            let place = Place::Block(blocks[0]);
            if let Some(&(block, expected)) =
                visits.iter().find(|visit| visit.1 as usize != blocks.len())
            {
                faults.add(Code::Unmatched, Place::Block(block), || {
                    let come = blocks.len();
                    let (rank, id) = key;
                    format!("barrier {id} of rank {rank} is for {expected} blocks, and {come} come to it")
                });
            } else if !alike {
                faults.add(Code::Unmatched, place, || {
                    let (rank, id) = key;
                    format!("blocks come to barrier {id} of rank {rank} differently often")
                });
            }
        }
    }
}

/// Adds the semaphores that a call leaves with another count than it found.
pub(super) fn check_balance(program: &Program, faults: &mut Faults) {
    let mut counts = vec![(0u64, 0u64, NONE); program.semaphores().len()];
    for step in 0..narrow(program.len()) {
        let view = program.step(step);
        if !matches!(view.op, Op::Acquire | Op::Release) {
            continue;
        }
        for number in view.numbers() {
            let (acquires, releases, last) = &mut counts[number as usize];
            match view.op {
                Op::Acquire => *acquires += 1,
                _ => *releases += 1,
            }
            *last = step;
        }
    }
    for (number, (acquires, releases, last)) in (0..).zip(counts) {
        if acquires == releases {
            continue;
        }
        faults.add(Code::NextCall, Place::Step(last), || {
            let left = if releases > acquires { "more" } else { "fewer" };
            let name = semaphore_name(program, number);
            format!(
                "a call acquires {name} {acquires} times and releases it {releases} times, so that the next call finds {left} than this one; make both equal"
            )
        });
    }
}

/// "semaphore 2 of rank 1", counted in its rank.
fn semaphore_name(program: &Program, number: u32) -> String {
    let all = program.semaphores();
    let rank = all[number as usize].rank;
    let before = all[..number as usize]
        .iter()
        .filter(|each| each.rank == rank);
    format!("semaphore {} of rank {rank}", before.count())
}

/// Returns the chunks of a span, each as packets of its own.
pub(crate) fn chunks(span: Span) -> impl Iterator<Item = Span> {
    (span.offset()..span.offset() + span.count())
        .map(move |chunk| Span::new(span.rank(), span.buffer(), chunk, 1).packet())
}
