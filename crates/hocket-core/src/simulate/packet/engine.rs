//! Event by event: what becomes ready, which heads get a channel, which flits leave.

use super::deadlock;
use super::options::{ALLOCATION, CREDIT, EJECTION, INJECTION, PacketOptions, SWITCH, Timing};
use super::ports::{Limit, NONE, Packet, Ports, Train};
use crate::id::TransferId;
use crate::plan::{LinkOrder, Op, Plan};
use crate::progress::{Interrupted, Progress};
use crate::simulate::SimulateError;
use crate::simulate::queue::EventQueue;
use crate::simulate::ready::Ready;
use crate::simulate::run::{LinkUse, Run, Service};
use crate::units::Time;
use crate::verify::Verified;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A transfer may start.
    Start(u32),
    /// All of a transfer has arrived.
    Arrive(u32),
    /// It is summed too.
    End(u32),
    /// A head has come to the front of a requester.
    Head(u32),
    /// The last flit of a link's train has left.
    TrainEnd(u32),
    /// Heads ask for a link's channels.
    Allocate(u32),
    /// A link may be free.
    Serve(u32),
}

/// Transfers in the order in which a link takes them up, for service in plan order.
struct Due {
    lists: Vec<Vec<u32>>,
    next: Vec<usize>,
    came: Vec<bool>,
}

struct Engine<'a> {
    verified: &'a Verified,
    options: &'a PacketOptions,
    timing: Timing,
    ports: Ports,
    queue: EventQueue<Event>,
    now: u64,
    /// Links to look at in this cycle: first channels, then flits.
    allocate: Vec<u32>,
    serve: Vec<u32>,
    due: Option<Due>,
    /// Bytes of each transfer that have not arrived, and the latest arrival of its packets so far.
    left: Vec<u64>,
    arrived: Vec<u64>,
    start: Vec<Time>,
    end: Vec<Time>,
    uses: Vec<LinkUse>,
    /// When each NPU has summed what it has received so far.
    summed: Vec<u64>,
    services: Vec<Service>,
    /// By link: the position of the latest service.
    latest: Vec<u32>,
    flits: u64,
    /// Kept for its memory: a link's channels and the requesters that they offer themselves to.
    offers: Vec<(u32, u32)>,
}

/// See [`crate::simulate::simulate_packets`].
pub(in crate::simulate) fn simulate(
    verified: &Verified,
    options: &PacketOptions,
    progress: &mut dyn Progress,
) -> Result<Run, SimulateError> {
    const BETWEEN_REPORTS: u64 = 1 << 20;
    let plan: &Plan = verified.plan();
    let mut engine = Engine::new(verified, options)?;
    let mut ready = Ready::new(plan);
    ready.at_first(plan, |transfer| {
        engine.queue.push(0, Event::Start(transfer))
    });
    let (mut ended, mut reported) = (0usize, 0);
    let (mut batch, mut starts, mut arrivals) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(now) = engine.queue.pop(&mut batch) {
        if now > engine.timing.longest() {
            return Err(SimulateError::TooLong);
        }
        engine.now = now;
        for &event in &batch {
            match event {
                Event::Start(transfer) => starts.push(transfer),
                Event::Arrive(transfer) => arrivals.push(transfer),
                Event::End(transfer) => {
                    engine.end[transfer as usize] = engine.time(now);
                    ended += 1;
                    ready.end(transfer, |next| {
                        engine.queue.push(now + 1, Event::Start(next));
                    });
                }
                Event::Head(requester) => engine.head(requester),
                Event::TrainEnd(link) => engine.end_train(link),
                Event::Allocate(link) => engine.wake_allocation(link),
                Event::Serve(link) => engine.wake_service(link),
            }
        }
        arrivals.sort_unstable();
        for transfer in arrivals.drain(..) {
            engine.sum(transfer);
        }
        starts.sort_unstable();
        for transfer in starts.drain(..) {
            engine.begin(transfer);
        }
        engine.cycle();
        if engine.flits - reported > BETWEEN_REPORTS {
            reported = engine.flits;
            if !progress.report("simulate packets", ended as u64, plan.len() as u64) {
                return Err(Interrupted.into());
            }
        }
    }
    if ended < plan.len() {
        return Err(engine.stuck(plan.len() - ended));
    }
    Ok(engine.finish())
}

impl<'a> Engine<'a> {
    fn new(verified: &'a Verified, options: &'a PacketOptions) -> Result<Self, SimulateError> {
        let (plan, topology) = (verified.plan(), verified.topology());
        let timing = Timing::new(options, topology)?;
        let ports = Ports::new(
            topology,
            &timing,
            options.virtual_channels,
            options.buffer_flits,
        );
        let links = topology.links().len();
        let order = options.order.unwrap_or(plan.link_order());
        let due = (order == LinkOrder::Plan).then(|| {
            let mut lists = vec![Vec::new(); links];
            for transfer in (0..plan.len()).map(TransferId::from) {
                let at = verified.routes().start(plan, transfer);
                let first = verified.routes().follow(plan, topology, transfer, at);
                if let Some((link, _)) = first {
                    lists[link.index()].push(transfer.0);
                }
            }
            Due {
                lists,
                next: vec![0; links],
                came: vec![false; plan.len()],
            }
        });
        Ok(Self {
            verified,
            options,
            timing,
            ports,
            queue: EventQueue::new(),
            now: 0,
            allocate: Vec::new(),
            serve: Vec::new(),
            due,
            left: vec![u64::MAX; plan.len()],
            arrived: vec![0; plan.len()],
            start: vec![Time::MAX; plan.len()],
            end: vec![Time::MAX; plan.len()],
            uses: vec![LinkUse::default(); links],
            summed: vec![0; topology.npu_count()],
            services: Vec::new(),
            latest: if options.keep_services {
                vec![NONE; links]
            } else {
                Vec::new()
            },
            flits: 0,
            offers: Vec::new(),
        })
    }

    fn time(&self, cycles: u64) -> Time {
        Time::from_ps(cycles.saturating_mul(self.timing.cycle))
    }

    fn follow(&self, transfer: u32, at: u32) -> Option<(u32, u32)> {
        let (plan, topology) = (self.verified.plan(), self.verified.topology());
        let routes = self.verified.routes();
        let next = routes.follow(plan, topology, TransferId(transfer), at);
        next.map(|(link, at)| (link.0, at))
    }

    /// Puts a transfer that may start into the queue of its first link.
    fn begin(&mut self, transfer: u32) {
        let plan = self.verified.plan();
        let at = self.verified.routes().start(plan, TransferId(transfer));
        let (link, _) = self
            .follow(transfer, at)
            .expect("a transfer goes over a link");
        let Some(due) = &mut self.due else {
            self.enqueue(transfer, link);
            return;
        };
        due.came[transfer as usize] = true;
        loop {
            let due = self.due.as_mut().expect("there is an order");
            let next = due.next[link as usize];
            let Some(&transfer) = due.lists[link as usize].get(next) else {
                return;
            };
            if !due.came[transfer as usize] {
                return;
            }
            due.next[link as usize] += 1;
            self.enqueue(transfer, link);
        }
    }

    fn enqueue(&mut self, transfer: u32, link: u32) {
        let queue = &mut self.ports.queues[link as usize];
        queue.messages.push_back(transfer);
        if queue.messages.len() == 1 {
            self.next_message(link);
            let requester = self.ports.queue_of(link);
            self.queue
                .push(self.now + INJECTION, Event::Head(requester));
        }
    }

    /// The message at a queue's front is cut into packets.
    fn next_message(&mut self, link: u32) {
        let transfer = self.ports.queues[link as usize].messages[0];
        let bytes = self.verified.plan().bytes(TransferId(transfer));
        self.left[transfer as usize] = bytes;
        self.ports.queues[link as usize].bytes_left = bytes;
        self.next_packet(link);
    }

    fn next_packet(&mut self, link: u32) {
        let transfer = self.ports.queues[link as usize].messages[0];
        let at = self
            .verified
            .routes()
            .start(self.verified.plan(), TransferId(transfer));
        let (_, at) = self.follow(transfer, at).expect("it goes over this link");
        let left = self.ports.queues[link as usize].bytes_left;
        let bytes = left.min(self.options.packet_bytes);
        self.ports.queues[link as usize].front = Some(Packet {
            transfer,
            at,
            link,
            flits: self.timing.flits(bytes),
            bytes,
            is_last: bytes == left,
        });
    }

    /// A head asks for a channel of its link.
    fn head(&mut self, requester: u32) {
        let link = self.ports.head(requester).link;
        if link == NONE {
            self.take_out(requester);
            return;
        }
        self.ports.outputs[link as usize].waiting.push(requester);
        self.ask(link);
    }

    fn wake_allocation(&mut self, link: u32) {
        if self.ports.outputs[link as usize].allocate_at == self.now {
            self.ports.outputs[link as usize].allocate_at = u64::MAX;
            self.ask(link);
        }
    }

    /// Has a link's channels given in this cycle, once.
    fn ask(&mut self, link: u32) {
        let output = &mut self.ports.outputs[link as usize];
        if output.asked != self.now {
            output.asked = self.now;
            self.allocate.push(link);
        }
    }

    fn allocate_at(&mut self, link: u32, time: u64) {
        let output = &mut self.ports.outputs[link as usize];
        if output.allocate_at > time {
            output.allocate_at = time;
            self.queue.push(time, Event::Allocate(link));
        }
    }

    fn wake_service(&mut self, link: u32) {
        if self.ports.outputs[link as usize].serve_at == self.now {
            self.ports.outputs[link as usize].serve_at = u64::MAX;
            self.serve.push(link);
        }
    }

    fn serve_at(&mut self, link: u32, time: u64) {
        let output = &mut self.ports.outputs[link as usize];
        let time = time.max(output.free);
        if output.serve_at > time {
            output.serve_at = time;
            self.queue.push(time, Event::Serve(link));
        }
    }

    /// What happens within a cycle, after everything has come: channels, then flits.
    fn cycle(&mut self) {
        let mut links = std::mem::take(&mut self.allocate);
        for &link in &links {
            self.give_channels(link);
        }
        links.clear();
        self.allocate = links;
        let mut links = std::mem::take(&mut self.serve);
        // Several links may take flits from one port, or share a device's limit.
        let outputs = &self.ports.outputs;
        links.sort_unstable_by_key(|&link| {
            let turn = self.ports.limits[outputs[link as usize].src as usize].map_or(0, |l| l.turn);
            (Ports::behind(turn, link), link)
        });
        for &link in &links {
            self.send(link);
        }
        links.clear();
        self.serve = links;
    }

    /// One round of iSLIP: each free channel offers itself to one head, each head accepts one.
    fn give_channels(&mut self, link: u32) {
        let Self { ports, now, .. } = self;
        let first = (link * ports.channels) as usize;
        let output = &mut ports.outputs[link as usize];
        output.is_short = false;
        if output.waiting.is_empty() {
            return;
        }
        let mut offers = std::mem::take(&mut self.offers);
        let (mut credit, mut is_any_free) = (u64::MAX, false);
        for number in 0..ports.channels {
            let channel = &mut ports.channel[first + number as usize];
            if channel.holder != NONE {
                continue;
            }
            is_any_free = true;
            channel.settle(*now);
            let (room, turn) = (channel.room, channel.turn);
            if let Some(&(time, _)) = channel.credits.front() {
                credit = credit.min(time);
            }
            let waiting = ports.outputs[link as usize].waiting.iter();
            let fits = waiting.filter(|&&requester| ports.head(requester).flits <= room);
            let next = fits.min_by_key(|&&requester| Ports::behind(turn, requester));
            offers.extend(next.map(|&requester| (requester, number)));
        }
        let is_granted = !offers.is_empty();
        while let Some(&(requester, _)) = offers.first() {
            let turn = self.ports.grants[requester as usize].turn;
            let mine = offers.iter().filter(|offer| offer.0 == requester);
            let accepted = mine.min_by_key(|offer| Ports::behind(turn, first as u32 + offer.1));
            let (_, number) = *accepted.expect("the first offer is one");
            offers.retain(|offer| offer.0 != requester);
            self.grant(link, requester, number);
        }
        self.offers = offers;
        if self.ports.outputs[link as usize].waiting.is_empty() || !is_any_free {
            // Where all channels are held, the next tail to leave has them given again.
            return;
        }
        if is_granted {
            self.allocate_at(link, self.now + 1);
            return;
        }
        self.ports.outputs[link as usize].is_short = true;
        if credit != u64::MAX {
            self.allocate_at(link, credit);
        }
    }

    fn grant(&mut self, link: u32, requester: u32, number: u32) {
        let now = self.now;
        let flits = self.ports.head(requester).flits;
        let channel = &mut self.ports.channel[(link * self.ports.channels + number) as usize];
        channel.holder = requester;
        channel.turn = requester + 1;
        channel.room -= flits;
        let grant = &mut self.ports.grants[requester as usize];
        grant.channel = number;
        grant.from = now + ALLOCATION;
        grant.sent = 0;
        grant.turn = link * self.ports.channels + number + 1;
        let output = &mut self.ports.outputs[link as usize];
        output.waiting.retain(|&other| other != requester);
        self.break_train(link);
        self.serve_at(link, now + ALLOCATION);
    }

    /// Somebody else wants the link: the flits of its train that have not left go one by one.
    fn break_train(&mut self, link: u32) {
        let output = &mut self.ports.outputs[link as usize];
        let Some(train) = output.train.take() else {
            return;
        };
        let gone = (self.now - train.start) / output.flit + 1;
        if gone >= u64::from(train.flits) {
            // All have left; the next cycle notes it.
            output.train = Some(train);
            return;
        }
        output.free = train.start + gone * output.flit;
        let requester = self.ports.queue_of(link);
        self.ports.grants[requester as usize].sent += gone as u32;
        self.count(link, requester, gone, train.start);
    }

    /// The next flit of a link, or all of a packet.
    fn send(&mut self, link: u32) {
        let now = self.now;
        let output = &self.ports.outputs[link as usize];
        if output.train.is_some() {
            return;
        }
        if output.free > now {
            self.serve_at(link, now);
            return;
        }
        let limit = self.ports.limits[output.src as usize];
        if let Some(Limit { free, .. }) = limit
            && free > now
        {
            self.serve_at(link, free);
            return;
        }
        let channels = self.ports.channels;
        let first = (link * channels) as usize;
        let mut best: Option<(u32, u32, u32)> = None;
        let mut held = 0;
        let mut next = u64::MAX;
        for channel in &self.ports.channel[first..first + channels as usize] {
            let requester = channel.holder;
            if requester == NONE {
                continue;
            }
            held += 1;
            let Some(time) = self.ports.next_flit(requester) else {
                continue;
            };
            if time > now {
                next = next.min(time);
                continue;
            }
            let port = self.ports.port(requester);
            let turn = match self.ports.as_queue(requester) {
                Some(_) => 0,
                None => Ports::behind(self.ports.turns[port as usize], requester % channels),
            };
            let key = (Ports::behind(output.turn, port), turn, requester);
            if best.is_none_or(|best| key < best) {
                best = Some(key);
            }
        }
        let Some((_, _, requester)) = best else {
            if next != u64::MAX {
                self.serve_at(link, next);
            }
            return;
        };
        let is_alone = held == 1 && output.waiting.is_empty() && limit.is_none();
        if is_alone && self.can_go_at_once(link, requester) {
            self.send_train(link, requester);
        } else {
            self.send_flit(link, requester);
        }
    }

    /// Whether what is left of a packet needs no look until its tail leaves: all of it is there, it
    /// ends where the link does, and nothing lies before it in the buffer there.
    fn can_go_at_once(&self, link: u32, requester: u32) -> bool {
        if self.ports.as_queue(requester).is_none() {
            return false;
        }
        let packet = self.ports.head(requester);
        let here = link * self.ports.channels + self.ports.grants[requester as usize].channel;
        self.follow(packet.transfer, packet.at).is_none()
            && self.ports.buffers[here as usize].packets.is_empty()
    }

    fn send_train(&mut self, link: u32, requester: u32) {
        let packet = *self.ports.head(requester);
        let sent = self.ports.grants[requester as usize].sent;
        let output = &mut self.ports.outputs[link as usize];
        let start = self.now;
        let flits = packet.flits - sent;
        let last = start.saturating_add(output.flit.saturating_mul(u64::from(flits - 1)));
        output.train = Some(Train { start, flits });
        output.turn = self.ports.links + link + 1;
        output.free = last.saturating_add(output.flit);
        self.started(packet.transfer, start);
        // Where that is too late to be told, the run ends there.
        self.queue
            .push(last.saturating_add(1), Event::TrainEnd(link));
    }

    fn end_train(&mut self, link: u32) {
        let output = &mut self.ports.outputs[link as usize];
        let Some(train) = output.train else {
            return;
        };
        let last = train.start + output.flit * u64::from(train.flits - 1);
        if last + 1 != self.now {
            return;
        }
        output.train = None;
        let requester = self.ports.queue_of(link);
        self.count(link, requester, u64::from(train.flits), train.start);
        self.leave(link, requester, last);
    }

    fn send_flit(&mut self, link: u32, requester: u32) {
        let now = self.now;
        let packet = *self.ports.head(requester);
        let port = self.ports.port(requester);
        let output = &mut self.ports.outputs[link as usize];
        output.turn = port + 1;
        output.free = now + output.flit;
        let arrival = now + SWITCH + output.flight;
        let source = output.src as usize;
        if let Some(limit) = &mut self.ports.limits[source] {
            limit.free = now + limit.flit;
            limit.turn = link + 1;
        }
        let grant = &mut self.ports.grants[requester as usize];
        grant.sent += 1;
        let (sent, number) = (grant.sent, grant.channel);
        if self.ports.as_queue(requester).is_some() {
            if sent == 1 {
                self.started(packet.transfer, now);
            }
        } else {
            self.ports.turns[port as usize] = requester % self.ports.channels + 1;
            self.ports.buffers[requester as usize].arrivals.pop_front();
            self.ports.channel[requester as usize].give_back(now, 1);
            self.note_room(port);
        }
        self.count(link, requester, 1, now);
        self.land(link, number, &packet, sent, arrival);
        if sent == packet.flits {
            self.leave(link, requester, now);
        }
        let first = (link * self.ports.channels) as usize;
        let channels = &self.ports.channel[first..first + self.ports.channels as usize];
        let holders = channels.iter().filter(|channel| channel.holder != NONE);
        let next = holders.filter_map(|channel| self.ports.next_flit(channel.holder));
        if let Some(next) = next.min() {
            self.serve_at(link, next);
        }
    }

    /// The `sent`th flit of a packet is on its way to the buffer at its link's end.
    fn land(&mut self, link: u32, number: u32, packet: &Packet, sent: u32, arrival: u64) {
        let here = link * self.ports.channels + number;
        let buffer = &mut self.ports.buffers[here as usize];
        let (plan, topology) = (self.verified.plan(), self.verified.topology());
        let transfer = TransferId(packet.transfer);
        let next = self
            .verified
            .routes()
            .follow(plan, topology, transfer, packet.at);
        // The destination takes out at once what nothing lies before.
        let is_taken_out = next.is_none()
            && !buffer.packets.back().is_some_and(|last| {
                sent == 1 || last.transfer == packet.transfer && last.link == NONE
            });
        if is_taken_out {
            return;
        }
        buffer.arrivals.push_back(arrival);
        if sent == 1 {
            let (link, at) = next.map_or((NONE, packet.at), |(link, at)| (link.0, at));
            buffer.packets.push_back(Packet {
                at,
                link,
                ..*packet
            });
            if buffer.packets.len() == 1 {
                self.queue.push(arrival, Event::Head(here));
            }
            return;
        }
        let front = buffer.packets[0].link;
        if front == NONE {
            // It is this one, if it is alone.
            if buffer.packets.len() == 1 && sent == packet.flits {
                self.queue.push(arrival, Event::Head(here));
            }
        } else if buffer.arrivals.len() == 1 && self.ports.grants[here as usize].channel != NONE {
            self.serve_at(front, arrival);
        }
    }

    /// A packet that had to wait in a buffer is whole at its destination.
    fn take_out(&mut self, requester: u32) {
        let buffer = &mut self.ports.buffers[requester as usize];
        let packet = buffer
            .packets
            .pop_front()
            .expect("a packet is at the front");
        buffer.arrivals.drain(..packet.flits as usize);
        self.ports.channel[requester as usize].give_back(self.now, packet.flits);
        self.note_room(self.ports.port(requester));
        self.arrive(&packet, self.now + u64::from(packet.flits == 1));
        self.next_in_buffer(requester, self.now + 1);
    }

    /// Room is given back to the sender of a link, who may wait for it.
    fn note_room(&mut self, link: u32) {
        if self.ports.outputs[link as usize].is_short {
            self.allocate_at(link, self.now + CREDIT);
        }
    }

    /// What lies behind a packet that has left a buffer comes to its front at `time` or later.
    fn next_in_buffer(&mut self, requester: u32, time: u64) {
        let buffer = &self.ports.buffers[requester as usize];
        let Some(packet) = buffer.packets.front() else {
            return;
        };
        // What is to be taken out comes there whole: until it is, `land` sees to it.
        let whole = (packet.flits - 1) as usize;
        let at = if packet.link == NONE { whole } else { 0 };
        if let Some(&arrival) = buffer.arrivals.get(at) {
            self.queue.push(arrival.max(time), Event::Head(requester));
        }
    }

    /// A packet's tail has left over a link at cycle `last`, now or just before.
    fn leave(&mut self, link: u32, requester: u32, last: u64) {
        let now = self.now;
        let packet = *self.ports.head(requester);
        let grant = &mut self.ports.grants[requester as usize];
        let here = (link * self.ports.channels + grant.channel) as usize;
        grant.channel = NONE;
        self.ports.channel[here].holder = NONE;
        let usage = &mut self.uses[link as usize];
        usage.bytes += packet.bytes;
        usage.messages += u64::from(packet.is_last);
        if self.ports.buffers[here]
            .packets
            .back()
            .is_none_or(|waits| (waits.transfer, waits.link) != (packet.transfer, NONE))
            && self.follow(packet.transfer, packet.at).is_none()
        {
            let tail = last + SWITCH + self.ports.outputs[link as usize].flight;
            self.ports.channel[here].give_back(tail, packet.flits);
            self.arrive(&packet, tail + u64::from(packet.flits == 1));
        }
        let heads = (last + 1).max(now);
        match self.ports.as_queue(requester) {
            Some(queue) => {
                let messages = &mut self.ports.queues[queue as usize];
                messages.bytes_left -= packet.bytes;
                messages.front = None;
                if messages.bytes_left > 0 {
                    self.next_packet(queue);
                } else {
                    messages.messages.pop_front();
                    if messages.messages.is_empty() {
                        self.reallocate(link, heads);
                        return;
                    }
                    self.next_message(queue);
                }
                self.come_to_front(requester, heads);
            }
            None => {
                self.ports.buffers[requester as usize].packets.pop_front();
                self.next_in_buffer(requester, heads);
            }
        }
        self.reallocate(link, heads);
    }

    fn come_to_front(&mut self, requester: u32, time: u64) {
        if time == self.now {
            self.head(requester);
        } else {
            self.queue.push(time, Event::Head(requester));
        }
    }

    /// A channel of a link is free from `time` on.
    fn reallocate(&mut self, link: u32, time: u64) {
        if self.ports.outputs[link as usize].waiting.is_empty() {
            return;
        }
        if time == self.now {
            self.ask(link);
        } else {
            self.allocate_at(link, time);
        }
    }

    /// The last flit of a packet is at its destination at `time`.
    fn arrive(&mut self, packet: &Packet, time: u64) {
        let transfer = packet.transfer as usize;
        self.left[transfer] -= packet.bytes;
        // One that leaves a link later may have no buffer to wait in, and come first.
        let arrived = self.arrived[transfer].max(time);
        self.arrived[transfer] = arrived;
        if self.left[transfer] == 0 {
            self.queue.push(arrived, Event::Arrive(packet.transfer));
        }
    }

    /// A transfer has arrived: an NPU sums what it receives in the order in which it comes.
    fn sum(&mut self, transfer: u32) {
        let plan = self.verified.plan();
        let mut end = self.now + EJECTION;
        if let Some(rate) = self.options.reduction_rate
            && plan.op()[transfer as usize] == Op::Reduce as u8
        {
            let summed = &mut self.summed[plan.dst()[transfer as usize] as usize];
            let bytes = plan.bytes(TransferId(transfer));
            let sum = self.timing.cycles(rate.transmission(bytes));
            end = end.max(*summed).saturating_add(sum);
            *summed = end;
        }
        self.queue.push(end, Event::End(transfer));
    }

    fn started(&mut self, transfer: u32, now: u64) {
        if self.start[transfer as usize] == Time::MAX {
            self.start[transfer as usize] = self.time(now + SWITCH);
        }
    }

    /// Counts flits of a requester that leave over a link one after the other.
    fn count(&mut self, link: u32, requester: u32, flits: u64, start: u64) {
        self.flits += flits;
        let held = flits.saturating_mul(self.ports.outputs[link as usize].flit);
        let busy = self.time(held);
        let usage = &mut self.uses[link as usize];
        usage.busy = usage.busy + busy;
        if self.options.keep_services {
            let packet = self.ports.head(requester);
            let transfer = packet.transfer;
            self.note(link, transfer, start + SWITCH, held);
        }
    }

    /// Keeps a stay on a link; one that follows the same transfer's goes on with it.
    fn note(&mut self, link: u32, transfer: u32, start: u64, held: u64) {
        let (start, end) = (self.time(start), self.time(start.saturating_add(held)));
        let latest = self.latest[link as usize];
        if let Some(service) = self.services.get_mut(latest as usize)
            && (service.transfer, service.end) == (transfer, start)
        {
            service.end = end;
            return;
        }
        self.latest[link as usize] = self.services.len() as u32;
        self.services.push(Service {
            transfer,
            link,
            start,
            end,
        });
    }

    fn stuck(&self, waiting: usize) -> SimulateError {
        match deadlock::cycle(&self.ports, self.verified.topology()) {
            Some(cycle) => SimulateError::Buffers { waiting, cycle },
            None => {
                let first = self.end.iter().position(|&end| end == Time::MAX);
                SimulateError::Deadlock {
                    waiting,
                    first: TransferId::from(first.expect("one has not ended")),
                }
            }
        }
    }

    fn finish(mut self) -> Run {
        self.services
            .sort_by_key(|service| (service.start, service.transfer, service.link));
        let time = self.end.iter().copied().max().unwrap_or(Time::ZERO);
        Run {
            time,
            start: self.start,
            end: self.end,
            links: self.uses,
            services: self.services,
        }
    }
}
