//! The events of a kernel: who begins and ends which part of which step when.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::link::{Link, Ordered, Sharing};
use super::{Block, Costs, Kernel, KernelError, Step};
use crate::id::fit;
use crate::units::whole;

/// Chunks of a step at most; runtimes have less than a hundred.
const MOST_CHUNKS: u32 = 1 << 16;

/// Sender, receiver and channel of a connection.
type Ends = (u32, u32, u32);

/// Which connection and link each block uses.
pub(super) struct Wires {
    /// Of each block: the connection on which it sends, and on which it receives.
    sends: Vec<Option<usize>>,
    receives: Vec<Option<usize>>,
    /// Of each connection: its blocks and its link.
    connections: Vec<Wire>,
    links: usize,
}

#[derive(Clone, Copy)]
struct Wire {
    sender: usize,
    receiver: usize,
    link: usize,
}

impl Wires {
    /// Joins blocks that send to blocks that receive, and checks that they fit together.
    pub(super) fn new(kernel: &Kernel) -> Result<Self, KernelError> {
        if kernel.instances == 0 {
            return Err(KernelError::Cost { name: "instances" });
        }
        let mut ends: BTreeMap<Ends, (Option<usize>, Option<usize>)> = BTreeMap::new();
        for (at, block) in kernel.blocks.iter().enumerate() {
            let wrong = |why: String| KernelError::Block { block: at, why };
            check(kernel, block).map_err(wrong)?;
            if let Some(to) = block.send {
                let end = ends.entry((block.npu, to, block.channel)).or_default();
                if end.0.replace(at).is_some() {
                    return Err(wrong(format!(
                        "another one sends to NPU {to} on channel {}",
                        block.channel
                    )));
                }
            }
            if let Some(from) = block.receive {
                let end = ends.entry((from, block.npu, block.channel)).or_default();
                if end.1.replace(at).is_some() {
                    return Err(wrong(format!(
                        "another one receives from NPU {from} on channel {}",
                        block.channel
                    )));
                }
            }
        }
        let mut wires = Self {
            sends: vec![None; kernel.blocks.len()],
            receives: vec![None; kernel.blocks.len()],
            connections: Vec::new(),
            links: 0,
        };
        let mut last = None;
        for ((from, to, _), (sender, receiver)) in ends {
            let (sender, receiver) = match (sender, receiver) {
                (Some(sender), Some(receiver)) => (sender, receiver),
                (Some(block), None)
                    if !moves(&kernel.blocks[block], |step| step.sends).is_empty() =>
                {
                    return Err(KernelError::Block {
                        block,
                        why: format!("no block of NPU {to} receives what it sends"),
                    });
                }
                (None, Some(block))
                    if !moves(&kernel.blocks[block], |step| step.receives).is_empty() =>
                {
                    return Err(KernelError::Block {
                        block,
                        why: format!("no block of NPU {from} sends what it receives"),
                    });
                }
                _ => continue,
            };
            let sent = moves(&kernel.blocks[sender], |step| step.sends);
            let received = moves(&kernel.blocks[receiver], |step| step.receives);
            if sent != received {
                let why = format!(
                    "does not receive, step by step, as many chunks as block {sender} sends"
                );
                return Err(KernelError::Block {
                    block: receiver,
                    why,
                });
            }
            if last != Some((from, to)) {
                last = Some((from, to));
                wires.links += 1;
            }
            wires.sends[sender] = Some(wires.connections.len());
            wires.receives[receiver] = Some(wires.connections.len());
            wires.connections.push(Wire {
                sender,
                receiver,
                link: wires.links - 1,
            });
        }
        Ok(wires)
    }
}

/// Returns the chunks of the steps that send, or that receive.
fn moves(block: &Block, does: impl Fn(&Step) -> bool) -> Vec<u32> {
    block
        .steps
        .iter()
        .filter(|step| does(step))
        .map(|step| step.chunks)
        .collect()
}

fn check(kernel: &Kernel, block: &Block) -> Result<(), String> {
    let npus = [Some(block.npu), block.send, block.receive];
    if let Some(npu) = npus.into_iter().flatten().find(|&npu| npu >= kernel.npus) {
        return Err(format!("there is no NPU {npu}; there are {}", kernel.npus));
    }
    for (at, step) in block.steps.iter().enumerate() {
        if step.sends && block.send.is_none() {
            return Err(format!("step {at} sends, but the block sends to none"));
        }
        if step.receives && block.receive.is_none() {
            return Err(format!(
                "step {at} receives, but the block receives from none"
            ));
        }
        if step.chunks == 0 && (step.sends || step.receives || step.operands > 0) {
            return Err(format!("step {at} moves no chunks"));
        }
        if step.chunks > MOST_CHUNKS {
            let chunks = step.chunks;
            return Err(format!(
                "step {at} moves {chunks} chunks, more than {MOST_CHUNKS}"
            ));
        }
        for wait in &step.waits {
            let target = kernel.blocks.get(wait.block as usize);
            if target.is_none_or(|target| wait.step as usize >= target.steps.len()) {
                return Err(format!(
                    "step {at} waits for step {} of block {}, which does not exist",
                    wait.step, wait.block
                ));
            }
        }
    }
    Ok(())
}

/// A part that was sent and not yet received.
struct Message {
    started: f64,
    ended: Option<f64>,
}

#[derive(Default)]
struct Connection {
    /// From the oldest that is not received on.
    messages: VecDeque<Message>,
    /// How many of the messages have been sent completely.
    arrived: usize,
}

/// What a block does now.
#[derive(Clone, Copy, PartialEq)]
enum Now {
    Waits,
    Works,
    /// Its own work is done; what it receives is still being sent.
    Trails,
    Ended,
}

struct State {
    now: Now,
    round: usize,
    step: usize,
    part: u32,
    /// When it did its steps, of all rounds.
    done: Vec<f64>,
    /// Blocks that wait for one of its steps.
    waiters: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A block may be able to begin.
    Try(usize),
    /// A block's own work ends.
    End(usize),
    /// The next send on a link ends, if the link is at this version.
    Link(usize, u32),
}

struct Engine<'a> {
    kernel: &'a Kernel,
    wires: &'a Wires,
    costs: &'a Costs,
    tile: f64,
    rounds: usize,
    sharing: Sharing,
    blocks: Vec<State>,
    connections: Vec<Connection>,
    links: Vec<Link>,
    events: BinaryHeap<Reverse<(Ordered, Event)>>,
    ends: Vec<f64>,
}

/// Returns when each of so many rounds has ended everywhere, with tiles of so many bytes.
pub(super) fn ends(
    kernel: &Kernel,
    wires: &Wires,
    costs: &Costs,
    tile: f64,
    rounds: usize,
) -> Result<Vec<f64>, KernelError> {
    let state = || State {
        now: Now::Waits,
        round: 0,
        step: 0,
        part: 0,
        done: Vec::new(),
        waiters: Vec::new(),
    };
    let sharing = Sharing {
        own: 1.0 / costs.send,
        link: costs.link,
        instances: f64::from(kernel.instances),
    };
    let mut engine = Engine {
        kernel,
        wires,
        costs,
        tile,
        rounds,
        sharing,
        blocks: kernel.blocks.iter().map(|_| state()).collect(),
        connections: wires
            .connections
            .iter()
            .map(|_| Connection::default())
            .collect(),
        links: (0..wires.links).map(|_| Link::default()).collect(),
        events: BinaryHeap::new(),
        ends: vec![0.0; rounds],
    };
    engine.run()?;
    Ok(engine.ends)
}

impl Engine<'_> {
    fn run(&mut self) -> Result<(), KernelError> {
        for block in 0..self.blocks.len() {
            self.begin(block, 0.0);
        }
        while let Some(Reverse((at, event))) = self.events.pop() {
            let now = at.value();
            match event {
                Event::Try(block) => self.begin(block, now),
                Event::End(block) => self.finish(block, now),
                Event::Link(link, version) if self.links[link].version == version => {
                    if let Some(block) = self.links[link].pop(now, &self.sharing) {
                        self.announce(link);
                        self.sent(block, now);
                        self.finish(block, now);
                    }
                }
                Event::Link(..) => {}
            }
        }
        self.stuck().map_or(Ok(()), |block| {
            let step = self.blocks[block].step;
            Err(KernelError::Stuck { block, step })
        })
    }

    /// Returns a block that cannot go on: one whose connection is full, if there is any, since that is why others wait.
    fn stuck(&self) -> Option<usize> {
        let waits = |&block: &usize| self.blocks[block].now != Now::Ended;
        let is_full = |&block: &usize| {
            let full = self.wires.sends[block].is_some_and(|to| self.is_full(to));
            full && self.step(block).sends
        };
        let mut waiting = (0..self.blocks.len()).filter(waits);
        waiting.clone().find(is_full).or_else(|| waiting.next())
    }

    fn is_full(&self, connection: usize) -> bool {
        self.connections[connection].messages.len() >= self.costs.in_flight as usize
    }

    fn step(&self, block: usize) -> &Step {
        &self.kernel.blocks[block].steps[self.blocks[block].step]
    }

    /// Returns how many parts a step that sends or receives is passed on in.
    fn parts(&self, step: &Step) -> u32 {
        if !(step.sends || step.receives) {
            return 1;
        }
        let together: u32 = fit(whole(self.costs.slot / self.tile).clamp(1, MOST_CHUNKS.into()));
        step.chunks.div_ceil(together) * self.costs.parts
    }

    /// Begins the next part of a block's step, if all is there that it needs; or steps that move nothing.
    fn begin(&mut self, block: usize, now: f64) {
        while self.blocks[block].now == Now::Waits && self.can_begin(block, now) {
            let step = self.step(block);
            let (sends, receives, operands) = (step.sends, step.receives, step.operands);
            let bytes = f64::from(step.chunks) * self.tile / f64::from(self.parts(step));
            self.blocks[block].now = Now::Works;
            let own = if receives { self.costs.receive } else { 0.0 };
            let local = f64::from(operands) * self.costs.operand;
            if sends {
                // One pass over the data: the slower of both ends, and the operands.
                let slow = (own.max(self.costs.send) + local) / self.costs.send;
                self.send(block, now, bytes * slow);
            } else if receives || operands > 0 {
                self.at(now + bytes * (own + local), Event::End(block));
            } else {
                self.advance(block, now);
            }
        }
    }

    fn send(&mut self, block: usize, now: f64, work: f64) {
        let Some(connection) = self.wires.sends[block] else {
            return;
        };
        let Wire { receiver, link, .. } = self.wires.connections[connection];
        self.connections[connection].messages.push_back(Message {
            started: now,
            ended: None,
        });
        self.links[link].add(now, block, work, &self.sharing);
        self.announce(link);
        if self.costs.streams {
            self.at(now + self.costs.latency, Event::Try(receiver));
        }
    }

    fn announce(&mut self, link: usize) {
        if let Some(next) = self.links[link].next() {
            self.at(next, Event::Link(link, self.links[link].version));
        }
    }

    /// Returns whether a block can begin its next part; if it only takes time, it is tried again by itself.
    fn can_begin(&mut self, block: usize, now: f64) -> bool {
        let state = &self.blocks[block];
        if state.round == self.rounds || self.kernel.blocks[block].steps.is_empty() {
            self.blocks[block].now = Now::Ended;
            return false;
        }
        let step = &self.kernel.blocks[block].steps[state.step];
        for wait in &step.waits {
            let other = wait.block as usize;
            let needed =
                state.round * self.kernel.blocks[other].steps.len() + wait.step as usize + 1;
            let Some(&done) = self.blocks[other].done.get(needed - 1) else {
                self.blocks[other].waiters.push(block);
                return false;
            };
            if done + self.costs.sync > now {
                self.at(done + self.costs.sync, Event::Try(block));
                return false;
            }
        }
        if step.sends && self.wires.sends[block].is_some_and(|to| self.is_full(to)) {
            return false;
        }
        if step.receives {
            let Some(from) = self.wires.receives[block] else {
                return false;
            };
            let Some(first) = self.connections[from].messages.front() else {
                return false;
            };
            let there = if self.costs.streams {
                Some(first.started)
            } else {
                first.ended
            };
            // What is not sent yet tries again when it is.
            return there.is_some_and(|there| there + self.costs.latency <= now);
        }
        true
    }

    /// Notes that all that a block sent is on its way.
    fn sent(&mut self, block: usize, now: f64) {
        let Some(to) = self.wires.sends[block] else {
            return;
        };
        let connection = &mut self.connections[to];
        let at = connection.arrived;
        connection.arrived += 1;
        connection.messages[at].ended = Some(now);
        let receiver = self.wires.connections[to].receiver;
        let there = now + self.costs.latency;
        if !self.costs.streams {
            self.at(there, Event::Try(receiver));
        } else if at == 0 && self.blocks[receiver].now == Now::Trails {
            self.at(there, Event::End(receiver));
        }
    }

    /// A block's own work on a part is done; the part is, too, unless what it receives still arrives.
    fn finish(&mut self, block: usize, now: f64) {
        let step = self.step(block);
        if step.receives
            && let Some(from) = self.wires.receives[block]
        {
            let there = self.connections[from]
                .messages
                .front()
                .and_then(|first| first.ended);
            let latest = there.map(|there| there + self.costs.latency);
            if latest.is_none_or(|latest| latest > now) {
                self.blocks[block].now = Now::Trails;
                if let Some(latest) = latest {
                    self.at(latest, Event::End(block));
                }
                return;
            }
            self.connections[from].messages.pop_front();
            self.connections[from].arrived -= 1;
            let sender = self.wires.connections[from].sender;
            self.at(now, Event::Try(sender));
        }
        self.advance(block, now);
        self.begin(block, now);
    }

    fn advance(&mut self, block: usize, now: f64) {
        let parts = self.parts(self.step(block));
        let steps = self.kernel.blocks[block].steps.len();
        let state = &mut self.blocks[block];
        state.now = Now::Waits;
        state.part += 1;
        if state.part < parts {
            return;
        }
        state.part = 0;
        state.done.push(now);
        state.step += 1;
        if state.step == steps {
            state.step = 0;
            self.ends[state.round] = self.ends[state.round].max(now);
            state.round += 1;
        }
        for waiter in std::mem::take(&mut self.blocks[block].waiters) {
            self.at(now + self.costs.sync, Event::Try(waiter));
        }
    }

    fn at(&mut self, time: f64, event: Event) {
        self.events.push(Reverse((Ordered::new(time), event)));
    }
}
