//! Runs a script over connections, in one thread.
//!
//! Blocks go on as far as they can; then whatever sockets have is read, and whatever they take is written. Bytes of a
//! message go where its step wants them, summed as they arrive, if the step has come; else they are kept until it has.

mod receive;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use hocket_base::id::narrow;
use hocket_program::program::{Buffer, Op};
use rustix::event::{PollFd, PollFlags};

use crate::agreement::Agreement;
use crate::control::Control;
use crate::error::Failure;
use crate::links::{Links, Outgoing, Reading, Stream};
use crate::number::{Dtype, Reduction, combine};
#[cfg(target_os = "linux")]
use crate::pipes::Pipes;
use crate::script::{Place, Script, Step};
use crate::wire::Header;

/// How often a wait looks whether the caller wants to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Where a call's numbers are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffers {
    pub at: [*mut u8; 3],
}

/// What a call is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub agreement: Agreement,
    pub dtype: Dtype,
    pub op: Reduction,
    pub timeout: Duration,
}

/// Messages from one rank on one channel.
#[derive(Debug)]
struct Inbox {
    peer: u32,
    block: u32,
    /// Length of each message, in order, and how many have begun.
    lengths: Vec<usize>,
    begun: usize,
    /// Whole messages that came before their step, and the one that is coming.
    kept: VecDeque<Vec<u8>>,
    coming: Vec<u8>,
    /// Whether the step waits for the next message.
    wanted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Ready,
    Receiving,
    Received,
    Sending,
}

#[derive(Debug)]
struct State {
    at: u32,
    phase: Phase,
    /// Inbox that it receives from.
    inbox: Option<u32>,
    /// What a step that stores nothing sends on.
    own: Option<Vec<u8>>,
    queued: bool,
}

pub(crate) struct Execution<'a> {
    script: &'a Script,
    buffers: Buffers,
    call: Call,
    links: &'a mut Links,
    control: &'a mut Control,
    states: Vec<State>,
    inboxes: Vec<Inbox>,
    inbox_of: BTreeMap<(u32, u32), u32>,
    /// Streams from which something comes, and all that are used.
    reads: Vec<(u32, u32)>,
    uses: Vec<(u32, u32)>,
    /// Streams on which this rank only sends, and still waits to hear that the other has come for the same.
    asks: BTreeSet<(u32, u32)>,
    ready: VecDeque<u32>,
    left: usize,
    moved: Instant,
}

impl<'a> Execution<'a> {
    pub(crate) fn new(
        script: &'a Script,
        buffers: Buffers,
        call: Call,
        links: &'a mut Links,
        control: &'a mut Control,
    ) -> Self {
        let mut inboxes: Vec<Inbox> = Vec::new();
        let mut inbox_of = BTreeMap::new();
        let mut states = Vec::with_capacity(script.blocks.len());
        let (mut reads, mut uses, mut asks) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (number, block) in script.blocks.iter().enumerate() {
            let receives = block.steps.iter().filter(|step| step.op.receives());
            let lengths: Vec<usize> = receives.map(|&step| message(script, step).len).collect();
            let inbox = block.recv.filter(|_| !lengths.is_empty()).map(|from| {
                reads.insert(links.stream_of(from.0, from.1));
                inbox_of.insert(from, narrow(inboxes.len()));
                inboxes.push(Inbox {
                    peer: from.0,
                    block: narrow(number),
                    lengths,
                    begun: 0,
                    kept: VecDeque::new(),
                    coming: Vec::new(),
                    wanted: false,
                });
                narrow(inboxes.len()) - 1
            });
            if let Some((peer, channel)) = block.send {
                let key = links.stream_of(peer, channel);
                let sends = block.steps.iter().any(|step| step.op.sends());
                uses.extend(sends.then_some(key));
                asks.extend((sends && script.only_sends).then_some(key));
            }
            states.push(State {
                at: 0,
                phase: Phase::Ready,
                inbox,
                own: None,
                queued: true,
            });
        }
        uses.extend(reads.iter().copied());
        reads.extend(asks.iter().copied());
        for key in &uses {
            let stream = links.open.get_mut(key).expect("connected before");
            stream.opened = (false, false);
            stream.awaited = 0;
            if stream.reading == Reading::Parked {
                stream.reading = Reading::Header;
            }
        }
        for (&(peer, channel), &inbox) in &inbox_of {
            let key = links.stream_of(peer, channel);
            let stream = links.open.get_mut(&key).expect("connected before");
            stream.awaited += inboxes[inbox as usize].lengths.len();
            if script.givers.contains(&peer) && !std::mem::replace(&mut stream.opened.0, true) {
                stream.out.push_back(Outgoing {
                    head: opening(&call.agreement),
                    data: std::ptr::NonNull::dangling().as_ptr(),
                    len: 0,
                    sent: 0,
                    block: None,
                    _own: None,
                });
            }
        }
        for key in &asks {
            links.open.get_mut(key).expect("connected before").awaited += 1;
        }
        Self {
            ready: (0..narrow(states.len())).collect(),
            left: script
                .blocks
                .iter()
                .filter(|block| !block.steps.is_empty())
                .count(),
            script,
            buffers,
            call,
            links,
            control,
            states,
            inboxes,
            inbox_of,
            reads: reads.into_iter().collect(),
            uses: uses.into_iter().collect(),
            asks,
            moved: Instant::now(),
        }
    }

    /// Runs to the end. `look` is asked now and then whether there is a reason to stop.
    pub(crate) fn run(
        mut self,
        look: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut looked = Instant::now();
        // What was read in an earlier call may be all that is missing.
        for key in self.reads.clone() {
            self.take(key)?;
        }
        loop {
            while let Some(block) = self.ready.pop_front() {
                self.states[block as usize].queued = false;
                self.advance(block)?;
            }
            for key in self.uses.clone() {
                self.write(key)?;
            }
            if !self.ready.is_empty() {
                continue;
            }
            if self.left == 0
                && self.asks.is_empty()
                && self
                    .uses
                    .iter()
                    .all(|key| self.links.open[key].out.is_empty())
            {
                return Ok(());
            }
            self.check_ended()?;
            self.wait()?;
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                look()?;
            }
        }
    }

    /// Waits until something comes or can go, and reads.
    fn wait(&mut self) -> Result<(), Failure> {
        let idle = self.moved.elapsed();
        if idle >= self.call.timeout {
            return Err(self.stalled());
        }
        let most = (self.call.timeout - idle).min(LOOK);
        #[cfg(target_os = "linux")]
        if let Some(pipes) = self.links.memory.clone() {
            return self.wait_for_memory(&pipes, most);
        }
        self.wait_for_sockets(most)
    }

    /// Waits for ranks with which memory is shared, and reads.
    #[cfg(target_os = "linux")]
    fn wait_for_memory(&mut self, pipes: &Pipes, most: Duration) -> Result<(), Failure> {
        let rung = pipes.rung();
        let open = &self.links.open;
        let comes = self.reads.iter().any(|key| open[key].has_more());
        if !comes && !self.uses.iter().any(|key| open[key].has_room()) {
            pipes.wait(rung, most.min(crate::memory::SLEEP));
            if pipes.rung() == rung {
                if let Some(failure) = self.control.poll()? {
                    return Err(failure);
                }
                // Who has left has rung before, if it put anything into a ring.
                if let Some(peer) = self.left_too_early()
                    && pipes.rung() == rung
                {
                    return Err(Failure::left(peer, self.call.agreement.call));
                }
            }
        }
        for key in self.reads.clone() {
            if self.links.open[&key].can_come() {
                self.read(key)?;
            }
        }
        Ok(())
    }

    /// Returns a rank that has left, and from which something must still come, or to which something must go.
    #[cfg(target_os = "linux")]
    fn left_too_early(&self) -> Option<u32> {
        let keys = self.uses.iter();
        let mut left = keys.filter(|key| self.control.has_left(key.0));
        left.find(|&key| self.needs(key) || !self.links.open[key].out.is_empty())
            .map(|key| key.0)
    }

    /// Waits for sockets, and reads.
    fn wait_for_sockets(&mut self, mut most: Duration) -> Result<(), Failure> {
        let mut sockets = Vec::with_capacity(self.uses.len() + 1);
        sockets.push(PollFd::new(self.control.socket(), PollFlags::IN));
        let mut keys = Vec::with_capacity(self.uses.len());
        for &key in &self.uses {
            let stream = &self.links.open[&key];
            if stream.ended && stream.out.is_empty() {
                continue; // it would be reported again and again
            }
            keys.push(key);
            let reads = self.reads.binary_search(&key).is_ok();
            let mut flags = PollFlags::empty();
            let due = stream.due();
            if let Some(due) = due {
                most = most.min(due.saturating_duration_since(Instant::now()));
            }
            flags.set(PollFlags::OUT, due.is_none() && !stream.out.is_empty());
            flags.set(PollFlags::IN, reads && stream.can_come() && !stream.ended);
            if let Some(socket) = stream.socket() {
                sockets.push(PollFd::new(socket, flags));
            }
        }
        let used = sockets.len();
        sockets.extend(self.links.doors());
        crate::poll::wait(&mut sockets, most);
        let said = !sockets[0].revents().is_empty();
        let has = |fd: &PollFd<'_>| !fd.revents().difference(PollFlags::OUT).is_empty();
        let readable: Vec<bool> = sockets[1..used].iter().map(has).collect();
        let comes = sockets[used..].iter().any(has);
        drop(sockets);
        if comes {
            self.links.admit();
        }
        if said && let Some(failure) = self.control.poll()? {
            return Err(failure);
        }
        for (key, readable) in keys.into_iter().zip(readable) {
            if readable && self.reads.binary_search(&key).is_ok() {
                self.read(key)?;
            } else if readable && !self.links.open[&key].out.is_empty() {
                return Err(self.broken(key.0, "it was reset"));
            }
        }
        Ok(())
    }

    fn stream(&mut self, key: (u32, u32)) -> &mut Stream {
        self.links.open.get_mut(&key).expect("connected before")
    }

    fn pointer(&self, place: Place) -> *mut u8 {
        let buffer = self.buffers.at[place.buffer as usize];
        // SAFETY: the script's places lie within the buffers, whose sizes were checked.
        unsafe { buffer.add(place.offset) }
    }

    fn wake(&mut self, block: u32) {
        if !std::mem::replace(&mut self.states[block as usize].queued, true) {
            self.ready.push_back(block);
        }
    }

    /// Goes on with a block as far as it gets.
    fn advance(&mut self, block: u32) -> Result<(), Failure> {
        loop {
            let script = self.script;
            let state = &self.states[block as usize];
            let Some(&step) = script.blocks[block as usize].steps.get(state.at as usize) else {
                return Ok(());
            };
            match state.phase {
                Phase::Receiving | Phase::Sending => return Ok(()),
                Phase::Received => {
                    if step.op.sends() {
                        self.send(block, step);
                        return Ok(());
                    }
                }
                Phase::Ready => {
                    let waits = step
                        .after
                        .is_some_and(|(other, at)| self.states[other as usize].at <= at);
                    if waits {
                        return Ok(());
                    }
                    if step.op.receives() {
                        self.prepare(block, step);
                        if !self.take_kept(block) {
                            return Ok(());
                        }
                        continue;
                    }
                    if step.op.sends() {
                        self.send(block, step);
                        return Ok(());
                    }
                    self.compute(step);
                }
            }
            self.end(block);
        }
    }

    /// Ends a block's step.
    fn end(&mut self, block: u32) {
        let script = self.script;
        let state = &mut self.states[block as usize];
        state.phase = Phase::Ready;
        state.at += 1;
        if state.at as usize == script.blocks[block as usize].steps.len() {
            self.left -= 1;
        }
        for &waiting in &script.blocks[block as usize].awaited_by {
            self.wake(waiting);
        }
    }

    /// Copies and sums within the rank.
    fn compute(&mut self, step: Step) {
        let (sources, targets) = (self.script.sources(step), self.script.targets(step));
        match step.op {
            Op::Copy => {
                for (&source, &target) in sources.iter().zip(targets) {
                    self.copy(source, target);
                }
            }
            Op::Reduce => {
                let Some((&first, others)) = sources.split_first() else {
                    return;
                };
                let mut sum = vec![0u8; first.len];
                // SAFETY: a place has as many bytes as it says.
                unsafe {
                    self.pointer(first)
                        .copy_to_nonoverlapping(sum.as_mut_ptr(), first.len)
                };
                for &other in others {
                    self.sum(sum.as_mut_ptr(), self.pointer(other), first.len);
                }
                for &target in targets {
                    // SAFETY: as above.
                    unsafe { self.pointer(target).copy_from(sum.as_ptr(), first.len) };
                }
            }
            _ => {}
        }
    }

    fn copy(&self, source: Place, target: Place) {
        let len = source.len.min(target.len);
        // SAFETY: places have as many bytes as they say; they may overlap.
        unsafe { self.pointer(target).copy_from(self.pointer(source), len) };
    }

    fn sum(&self, target: *mut u8, source: *const u8, len: usize) {
        // SAFETY: whoever calls has `len` bytes in both.
        unsafe { combine(self.call.dtype, self.call.op, target, source, len) };
    }

    /// Queues a message and writes what the socket takes.
    fn send(&mut self, block: u32, step: Step) {
        let own = self.states[block as usize].own.take();
        let place = message_out(self.script, step);
        let data = own
            .as_ref()
            .map_or(self.pointer(place).cast_const(), |own| own.as_ptr());
        let (peer, channel) = self.script.blocks[block as usize].send.expect("it sends");
        let key = self.links.stream_of(peer, channel);
        let agreement = self.call.agreement;
        let stream = self.stream(key);
        let mut head = match std::mem::replace(&mut stream.opened.0, true) {
            true => Vec::with_capacity(Header::BYTES),
            false => opening(&agreement),
        };
        let header = Header {
            opens: false,
            channel,
            bytes: place.len as u64,
        };
        head.extend_from_slice(&header.encode());
        stream.out.push_back(Outgoing {
            head,
            data,
            len: place.len,
            sent: 0,
            block: Some(block),
            _own: own,
        });
        self.states[block as usize].phase = Phase::Sending;
    }

    /// Writes what a socket takes.
    fn write(&mut self, key: (u32, u32)) -> Result<(), Failure> {
        loop {
            let stream = self.stream(key);
            let Some(first) = stream.out.front() else {
                return Ok(());
            };
            let len = first.head.len() + first.len;
            match stream.write() {
                Ok(written) => {
                    self.moved = Instant::now();
                    let stream = self.stream(key);
                    let first = stream.out.front_mut().expect("just written");
                    first.sent += written;
                    if first.sent == len {
                        let block = first.block;
                        stream.out.pop_front();
                        if let Some(block) = block {
                            self.end(block);
                            self.wake(block);
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.broken(key.0, &crate::says(&error))),
            }
        }
    }

    /// Returns why a connection broke: what the store says, if it knows.
    fn broken(&mut self, peer: u32, how: &str) -> Failure {
        let how = format!("the connection to rank {peer} broke: {how}");
        self.control.lost(self.call.agreement.call, peer, &how)
    }

    /// Nothing has moved for too long: whom this rank waits for, as far as it knows.
    fn stalled(&mut self) -> Failure {
        let receiving = self
            .states
            .iter()
            .filter(|state| state.phase == Phase::Receiving);
        let from = receiving.filter_map(|state| Some(self.inboxes[state.inbox? as usize].peer));
        let sending = self
            .uses
            .iter()
            .filter(|key| !self.links.open[key].out.is_empty());
        let asked = self.asks.iter().map(|key| key.0);
        let awaited: BTreeSet<u32> = from.chain(sending.map(|key| key.0)).chain(asked).collect();
        let awaited: Vec<u32> = awaited.into_iter().collect();
        self.control.stalled(self.call.agreement.call, &awaited)
    }
}

/// Returns what stands before the first message of a call on a stream.
fn opening(agreement: &Agreement) -> Vec<u8> {
    let header = Header {
        opens: true,
        channel: 0,
        bytes: Agreement::BYTES as u64,
    };
    let mut head = Vec::with_capacity(2 * Header::BYTES + Agreement::BYTES);
    head.extend_from_slice(&header.encode());
    head.extend_from_slice(&agreement.encode());
    head
}

/// Where the bytes of a message that comes go, or how many they are.
fn message(script: &Script, step: Step) -> Place {
    let target = script.targets(step).first();
    *target
        .or_else(|| script.sources(step).first())
        .expect("a receive has a place")
}

/// Where the bytes of a message that is sent are.
fn message_out(script: &Script, step: Step) -> Place {
    match step.op {
        Op::Send | Op::RecvReduceSend => script.sources(step)[0],
        _ => script.targets(step)[0],
    }
}

/// Returns the three buffers, of which scratch is the call's own.
pub(crate) fn buffers(input: *mut u8, output: *mut u8, scratch: &mut [u8]) -> Buffers {
    let mut at = [std::ptr::null_mut(); 3];
    at[Buffer::Input as usize] = input;
    at[Buffer::Output as usize] = output;
    at[Buffer::Scratch as usize] = scratch.as_mut_ptr();
    Buffers { at }
}
