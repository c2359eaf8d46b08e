//! A slow, obvious network of routers: every flit in every buffer, cycle by cycle.
//!
//! It shares these simplifications with the simulation it judges. A crossbar never keeps a port from
//! sending flits to several links in one cycle. Taking packets out is never a bottleneck: a packet at
//! its destination is taken out when it is at its buffer's front with its tail there, one a cycle, and
//! the room of all of it is given back then.

use std::collections::{BTreeSet, VecDeque};

use hocket_core::id::{DeviceId, TransferId, fit};
use hocket_core::plan::{LinkOrder, Op, Wait, WaitOn};
use hocket_core::simulate::PacketOptions;
use hocket_core::topology::Topology;
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::Verified;

/// What becomes of a plan, in cycles.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// When the first flit of each transfer started on a link, and when it ended; `None`: never.
    pub start: Vec<Option<u64>>,
    pub end: Vec<Option<u64>>,
    /// By link: cycles held, bytes, messages.
    pub links: Vec<(u64, u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Flit {
    transfer: usize,
    /// How many links of its route it has crossed.
    crossed: usize,
    is_head: bool,
    is_tail: bool,
    is_last_packet: bool,
    packet_flits: u32,
    packet_bytes: u64,
    /// When it is there.
    arrival: u64,
}

/// What flits come out of: the buffer of an input's virtual channel, or a sender's queue for a link.
#[derive(Clone, Debug, Default)]
struct Input {
    flits: VecDeque<Flit>,
    /// The link that it ends, with the virtual channel; `None` for a queue.
    upstream: Option<(usize, usize)>,
    /// What shares a turn with it.
    port: usize,
    /// When what is at its front may ask for a virtual channel.
    asks_from: u64,
    /// The link and channel that its front packet has been given, and when it may ask for the link.
    held: Option<(usize, usize)>,
    sends_from: u64,
    /// iSLIP's accept pointer, over all channels of all links.
    accept: usize,
}

/// A link's virtual channel, as its sender sees it.
#[derive(Clone, Debug)]
struct Channel {
    holder: Option<usize>,
    /// iSLIP's grant pointer, over all inputs.
    grant: usize,
    room: u32,
}

pub(crate) struct Routers<'a> {
    verified: &'a Verified,
    options: &'a PacketOptions,
    cycle: u64,
    routes: Vec<Vec<usize>>,
    channels: Vec<Vec<Channel>>,
    inputs: Vec<Input>,
    /// By link: when it is free; the port whose turn it is.
    free: Vec<u64>,
    link_turn: Vec<usize>,
    /// By port: the channel whose turn it is.
    port_turn: Vec<usize>,
    /// By device: when its limit lets the next flit through; the link whose turn it is.
    limit_free: Vec<u64>,
    limit_turn: Vec<usize>,
    /// Room on its way back: when, to which link and channel, how much.
    credits: Vec<(u64, usize, usize, u32)>,
    /// Transfers that start, have arrived whole, and end: when, which.
    starts: Vec<(u64, usize)>,
    arrivals: Vec<(u64, usize)>,
    ends: Vec<(u64, usize)>,
    bytes_left: Vec<u64>,
    last_arrival: Vec<u64>,
    sums_until: Vec<u64>,
    has_started: Vec<bool>,
    may_start: Vec<bool>,
    outcome: Outcome,
    /// Cycles in which something may happen.
    due: BTreeSet<u64>,
}

fn turn(number: usize, turn: usize, count: usize) -> usize {
    (number + count - turn % count) % count
}

impl<'a> Routers<'a> {
    pub(crate) fn run(verified: &'a Verified, options: &'a PacketOptions) -> Outcome {
        let mut routers = Self::new(verified, options);
        routers.free_transfers(0);
        while let Some(now) = routers.due.pop_first() {
            routers.step(now);
        }
        routers.outcome
    }

    fn new(verified: &'a Verified, options: &'a PacketOptions) -> Self {
        let (plan, topology) = (verified.plan(), verified.topology());
        let (links, transfers) = (topology.links().len(), plan.len());
        let channels = options.virtual_channels as usize;
        let routes = (0..transfers).map(|t| {
            let links = verified.routes().links(plan, topology, TransferId::from(t));
            links.iter().map(|link| link.index()).collect()
        });
        let channel = Channel {
            holder: None,
            grant: 0,
            room: options.buffer_flits,
        };
        // The buffers at the end of each link, then the queue before each.
        let mut inputs = Vec::new();
        for link in 0..links {
            inputs.extend((0..channels).map(|channel| Input {
                upstream: Some((link, channel)),
                port: link,
                ..Input::default()
            }));
        }
        inputs.extend((0..links).map(|link| Input {
            port: links + link,
            ..Input::default()
        }));
        Self {
            verified,
            options,
            cycle: options.cycle_on(topology).expect("legal options").as_ps(),
            routes: routes.collect(),
            channels: vec![vec![channel; channels]; links],
            inputs,
            free: vec![0; links],
            link_turn: vec![0; links],
            port_turn: vec![0; 2 * links],
            limit_free: vec![0; topology.device_count()],
            limit_turn: vec![0; topology.device_count()],
            credits: Vec::new(),
            starts: Vec::new(),
            arrivals: Vec::new(),
            ends: Vec::new(),
            bytes_left: (0..transfers)
                .map(|t| plan.bytes(TransferId::from(t)))
                .collect(),
            last_arrival: vec![0; transfers],
            sums_until: vec![0; topology.npu_count()],
            has_started: vec![false; transfers],
            may_start: vec![false; transfers],
            outcome: Outcome {
                start: vec![None; transfers],
                end: vec![None; transfers],
                links: vec![(0, 0, 0); links],
            },
            due: BTreeSet::new(),
        }
    }

    fn topology(&self) -> &'a Topology {
        self.verified.topology()
    }

    fn cycles(&self, time: Time) -> u64 {
        time.as_ps().div_ceil(self.cycle)
    }

    /// Cycles that a flit holds a link, and that it flies.
    fn flit_and_flight(&self, link: usize) -> (u64, u64) {
        let link = &self.topology().links()[link];
        let flit = |rate: Bandwidth| {
            self.cycles(rate.transmission(self.options.flit_bytes))
                .max(1)
        };
        let sent = flit(link.bandwidth);
        // It comes through the switch and over the link at once, at the rate of the slower.
        let through = self.topology().device(link.src).limit.map_or(0, flit);
        (sent, sent.max(self.cycles(link.latency)).max(through))
    }

    fn step(&mut self, now: u64) {
        self.take_credits(now);
        self.end_transfers(now);
        self.start_transfers(now);
        self.take_out(now);
        self.sum(now);
        for link in 0..self.channels.len() {
            self.allocate(link, now);
        }
        for device in 0..self.topology().device_count() {
            self.switch(device, now);
        }
    }

    fn take_credits(&mut self, now: u64) {
        for &(time, link, channel, flits) in &self.credits {
            if time == now {
                self.channels[link][channel].room += flits;
            }
        }
        self.credits.retain(|credit| credit.0 > now);
    }

    fn end_transfers(&mut self, now: u64) {
        if self.ends.iter().all(|end| end.0 > now) {
            return;
        }
        for &(time, t) in &self.ends {
            if time == now {
                self.outcome.end[t] = Some(now);
            }
        }
        self.ends.retain(|end| end.0 > now);
        self.free_transfers(now + 1);
    }

    /// Has every transfer whose waits have ended start at `time`.
    fn free_transfers(&mut self, time: u64) {
        let plan = self.verified.plan();
        for t in 0..plan.len() {
            if !self.has_started[t] && self.has_ended(plan.wait()[t]) {
                self.has_started[t] = true;
                self.starts.push((time, t));
                self.due.insert(time);
            }
        }
    }

    fn has_ended(&self, wait: u32) -> bool {
        match Wait::from_bits(wait).target() {
            WaitOn::Nothing => true,
            WaitOn::Transfer(t) => self.outcome.end[t.index()].is_some(),
            WaitOn::Group(group) => {
                let members = self.verified.plan().groups().get(group as usize);
                members.iter().all(|&member| self.has_ended(member))
            }
        }
    }

    fn start_transfers(&mut self, now: u64) {
        if self.starts.iter().all(|start| start.0 != now) {
            return;
        }
        for &(time, t) in &self.starts {
            self.may_start[t] |= time == now;
        }
        let mut due: Vec<usize> = Vec::new();
        let mut is_kept_back = vec![false; self.channels.len()];
        let in_plan_order = self.options.order == Some(LinkOrder::Plan);
        for t in 0..self.routes.len() {
            let link = self.routes[t][0];
            let is_waiting =
                !self.has_started[t] || self.starts.iter().any(|&(_, other)| other == t);
            if is_waiting && self.may_start[t] && !is_kept_back[link] {
                due.push(t);
            } else if is_waiting && in_plan_order {
                is_kept_back[link] = true;
            }
        }
        self.starts.retain(|(_, t)| !due.contains(t));
        for t in due {
            self.enqueue(t, now);
        }
    }

    fn enqueue(&mut self, transfer: usize, now: u64) {
        let mut left = self.bytes_left[transfer];
        let link = self.routes[transfer][0];
        let queue = self.channels.len() * self.options.virtual_channels as usize + link;
        let queue = &mut self.inputs[queue];
        if queue.flits.is_empty() {
            queue.asks_from = now + 1;
            self.due.insert(now + 1);
        }
        while left > 0 {
            let bytes = left.min(self.options.packet_bytes);
            left -= bytes;
            let flits =
                fit::<u32, _>(bytes.div_ceil(self.options.flit_bytes)) + self.options.header_flits;
            queue.flits.extend((0..flits).map(|i| Flit {
                transfer,
                crossed: 0,
                is_head: i == 0,
                is_tail: i + 1 == flits,
                is_last_packet: left == 0,
                packet_flits: flits,
                packet_bytes: bytes,
                arrival: now,
            }));
        }
    }

    /// The link that a flit goes to next; `None` at its destination.
    fn next_link(&self, flit: &Flit) -> Option<usize> {
        self.routes[flit.transfer].get(flit.crossed).copied()
    }

    fn take_out(&mut self, now: u64) {
        for i in 0..self.inputs.len() {
            let Some(front) = self.inputs[i].flits.front().copied() else {
                continue;
            };
            if self.next_link(&front).is_some() || self.inputs[i].asks_from > now {
                continue;
            }
            let flits = front.packet_flits as usize;
            let tail = self.inputs[i].flits.get(flits - 1);
            if tail.is_none_or(|tail| tail.arrival > now) {
                continue;
            }
            self.inputs[i].flits.drain(..flits);
            self.inputs[i].asks_from = now + 1;
            let (link, channel) = self.inputs[i]
                .upstream
                .expect("a queue is not a destination");
            self.credits
                .push((now + 3, link, channel, front.packet_flits));
            self.due.extend([now + 1, now + 3]);
            // A head takes a cycle more than the flits behind it.
            let arrival = now + u64::from(flits == 1);
            let t = front.transfer;
            self.last_arrival[t] = self.last_arrival[t].max(arrival);
            self.bytes_left[t] -= front.packet_bytes;
            if self.bytes_left[t] == 0 {
                // Those of this cycle are summed next.
                self.arrivals.push((self.last_arrival[t], t));
                self.due
                    .extend((self.last_arrival[t] > now).then_some(self.last_arrival[t]));
            }
        }
    }

    /// Messages that have arrived whole are summed one after the other.
    fn sum(&mut self, now: u64) {
        let mut arrived: Vec<usize> = Vec::new();
        arrived.extend(self.arrivals.iter().filter(|a| a.0 == now).map(|a| a.1));
        self.arrivals.retain(|arrival| arrival.0 > now);
        arrived.sort_unstable();
        let plan = self.verified.plan();
        for t in arrived {
            let mut end = now + 4;
            if let Some(rate) = self.options.reduction_rate
                && plan.op()[t] == Op::Reduce as u8
            {
                let npu = plan.dst()[t] as usize;
                let sum = self.cycles(rate.transmission(plan.bytes(TransferId::from(t))));
                end = end.max(self.sums_until[npu]) + sum;
                self.sums_until[npu] = end;
            }
            self.ends.push((end, t));
            self.due.insert(end);
        }
    }

    /// One iteration of iSLIP between a link's free channels and the heads that want it.
    fn allocate(&mut self, link: usize, now: u64) {
        let count = self.inputs.len();
        let asks = |input: &Input| {
            let front = input.flits.front()?;
            let is_ready = front.is_head
                && front.arrival <= now
                && input.asks_from <= now
                && input.held.is_none()
                && self.next_link(front) == Some(link);
            is_ready.then_some(front.packet_flits)
        };
        let asking: Vec<Option<u32>> = self.inputs.iter().map(asks).collect();
        let mut offers: Vec<(usize, usize)> = Vec::new();
        for (number, channel) in self.channels[link].iter().enumerate() {
            if channel.holder.is_some() {
                continue;
            }
            let fits = (0..count).filter(|&i| asking[i].is_some_and(|flits| flits <= channel.room));
            let offer = fits.min_by_key(|&i| turn(i, channel.grant, count));
            offers.extend(offer.map(|input| (input, number)));
        }
        let channels = self.options.virtual_channels as usize;
        let all = channels * self.channels.len();
        for (input, flits) in asking.into_iter().enumerate() {
            let mine = offers.iter().filter(|offer| offer.0 == input);
            let accept = self.inputs[input].accept;
            let Some(&(_, number)) =
                mine.min_by_key(|offer| turn(link * channels + offer.1, accept, all))
            else {
                continue;
            };
            let channel = &mut self.channels[link][number];
            channel.holder = Some(input);
            channel.grant = (input + 1) % count;
            channel.room -= flits.expect("it asked");
            self.inputs[input].accept = (link * channels + number + 1) % all;
            self.inputs[input].held = Some((link, number));
            self.inputs[input].sends_from = now + 1;
            self.due.insert(now + 1);
        }
    }

    /// Each free link of a device sends a flit; a device with a limit lets one through at a time, its
    /// links in turn.
    fn switch(&mut self, device: usize, now: u64) {
        let topology = self.topology();
        let id = DeviceId::from(device);
        let links = self.channels.len();
        let mut out: Vec<usize> = topology.out_links(id).iter().map(|l| l.index()).collect();
        out.sort_by_key(|&link| turn(link, self.limit_turn[device], links));
        for link in out {
            if self.free[link] > now || self.limit_free[device] > now {
                continue;
            }
            let ready = |&input: &usize| {
                let input = &self.inputs[input];
                input.sends_from <= now && input.flits.front().is_some_and(|f| f.arrival <= now)
            };
            let holders = self.channels[link].iter().filter_map(|c| c.holder);
            let chosen = holders.filter(ready).min_by_key(|&input| {
                let Input { port, upstream, .. } = self.inputs[input];
                let channel = upstream.map_or(0, |(_, channel)| channel);
                let channels = self.options.virtual_channels as usize;
                (
                    turn(port, self.link_turn[link], 2 * links),
                    turn(channel, self.port_turn[port], channels),
                )
            });
            let Some(input) = chosen else {
                continue;
            };
            if let Some(limit) = topology.device(id).limit {
                let flit = self.cycles(limit.transmission(self.options.flit_bytes));
                self.limit_free[device] = now + flit.max(1);
                self.due.insert(self.limit_free[device]);
                self.limit_turn[device] = (link + 1) % links;
            }
            self.send(link, input, now);
        }
    }

    fn send(&mut self, link: usize, input: usize, now: u64) {
        let (flit_cycles, flight) = self.flit_and_flight(link);
        let (_, number) = self.inputs[input].held.expect("it holds a channel");
        let mut flit = self.inputs[input].flits.pop_front().expect("it is there");
        self.free[link] = now + flit_cycles;
        self.link_turn[link] = self.inputs[input].port + 1;
        self.outcome.links[link].0 += flit_cycles;
        let start = &mut self.outcome.start[flit.transfer];
        start.get_or_insert(now + 2);
        if let Some((link, channel)) = self.inputs[input].upstream {
            self.credits.push((now + 3, link, channel, 1));
            self.port_turn[link] = channel + 1;
        }
        if flit.is_tail {
            self.outcome.links[link].1 += flit.packet_bytes;
            self.outcome.links[link].2 += u64::from(flit.is_last_packet);
            self.channels[link][number].holder = None;
            self.inputs[input].held = None;
            self.inputs[input].asks_from = now + 1;
        }
        flit.crossed += 1;
        flit.arrival = now + 2 + flight;
        let there = link * self.options.virtual_channels as usize + number;
        self.inputs[there].flits.push_back(flit);
        self.due
            .extend([now + 1, now + 3, flit.arrival, now + flit_cycles]);
    }
}
