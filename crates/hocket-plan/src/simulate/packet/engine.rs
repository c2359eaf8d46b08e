//! Event by event: what becomes ready, is cut into packets, arrives and ends.

use super::deadlock;
use super::options::{EJECTION, INJECTION, PacketOptions, SWITCH, Timing};
use super::ports::{NONE, Packet, Ports};
use super::spray;
use crate::id::{DeviceId, TransferId, narrow};
use crate::plan::{LinkOrder, Op, Plan};
use crate::progress::{Interrupted, Progress};
use crate::simulate::SimulateError;
use crate::simulate::queue::EventQueue;
use crate::simulate::ready::Ready;
use crate::simulate::run::{LinkUse, Run, Service};
use crate::units::Time;
use crate::verify::Verified;

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
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

pub(super) struct Engine<'a> {
    pub(super) verified: &'a Verified,
    options: &'a PacketOptions,
    timing: Timing,
    pub(super) ports: Ports,
    pub(super) queue: EventQueue<Event>,
    pub(super) now: u64,
    /// Links to look at in this cycle: first channels, then flits.
    pub(super) allocate: Vec<u32>,
    pub(super) serve: Vec<u32>,
    due: Option<Due>,
    has_priority: bool,
    /// Bytes of each transfer that have not arrived, and the latest arrival of its packets so far.
    left: Vec<u64>,
    arrived: Vec<u64>,
    start: Vec<Time>,
    end: Vec<Time>,
    pub(super) uses: Vec<LinkUse>,
    /// When each NPU has summed, and each switch taken in, what it has received so far.
    summed: Vec<u64>,
    services: Vec<Service>,
    /// By link: the position of the latest service.
    latest: Vec<u32>,
    flits: u64,
    /// Kept for its memory: a link's channels and the requesters that they offer themselves to.
    pub(super) offers: Vec<(u32, u32)>,
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
            for transfer in 0..narrow(plan.len()) {
                for link in spray::first_links(verified, options, transfer) {
                    lists[link as usize].push(transfer);
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
            has_priority: order == LinkOrder::Priority,
            left: vec![u64::MAX; plan.len()],
            arrived: vec![0; plan.len()],
            start: vec![Time::MAX; plan.len()],
            end: vec![Time::MAX; plan.len()],
            uses: vec![LinkUse::default(); links],
            summed: vec![0; topology.end_count()],
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

    pub(super) fn follow(&self, transfer: u32, at: u32) -> Option<(u32, u32)> {
        let (plan, topology) = (self.verified.plan(), self.verified.topology());
        let routes = self.verified.routes();
        let next = routes.follow(plan, topology, TransferId(transfer), at);
        next.map(|(link, at)| (link.0, at))
    }

    /// Puts a transfer that may start into the queue of its first link.
    fn begin(&mut self, transfer: u32) {
        self.left[transfer as usize] = self.verified.plan().bytes(TransferId(transfer));
        if let Some(due) = &mut self.due {
            due.came[transfer as usize] = true;
        }
        for link in spray::first_links(self.verified, self.options, transfer) {
            match self.due {
                Some(_) => self.enqueue_due(link),
                None => self.enqueue(transfer, link),
            }
        }
    }

    /// Puts into a link's queue what has come and is next in the plan's order.
    fn enqueue_due(&mut self, link: u32) {
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
        let behind = match self.has_priority && !queue.messages.is_empty() {
            // The first is under way.
            true => {
                let waiting = &queue.messages.make_contiguous()[1..];
                1 + waiting.partition_point(|&other| other < transfer)
            }
            false => queue.messages.len(),
        };
        queue.messages.insert(behind, transfer);
        if queue.messages.len() == 1 {
            self.next_message(link);
            let requester = self.ports.queue_of(link);
            self.queue
                .push(self.now + INJECTION, Event::Head(requester));
        }
    }

    /// The message at a queue's front is cut into packets.
    pub(super) fn next_message(&mut self, link: u32) {
        let transfer = self.ports.queues[link as usize].messages[0];
        let bytes = spray::bytes_over(self.verified, self.options, transfer, link);
        let queue = &mut self.ports.queues[link as usize];
        (queue.bytes_left, queue.next) = (bytes, 0);
        self.next_packet(link);
    }

    pub(super) fn next_packet(&mut self, link: u32) {
        let queue = &mut self.ports.queues[link as usize];
        let (transfer, left) = (queue.messages[0], queue.bytes_left);
        let (at, bytes) =
            match spray::packet(self.verified, self.options, transfer, link, queue.next) {
                Some(packet) => {
                    queue.next = packet.number + 1;
                    (packet.at, packet.bytes)
                }
                None => {
                    let plan = self.verified.plan();
                    let at = self.verified.routes().start(plan, TransferId(transfer));
                    (at, left.min(self.options.packet_bytes))
                }
            };
        let (_, at) = self.follow(transfer, at).expect("it goes over this link");
        self.ports.queues[link as usize].front = Some(Packet {
            transfer,
            at,
            link,
            flits: self.timing.flits(bytes),
            bytes,
            is_last: bytes == left,
        });
    }

    /// The last flit of a packet is at its destination at `time`.
    pub(super) fn arrive(&mut self, packet: &Packet, time: u64) {
        let transfer = packet.transfer as usize;
        self.left[transfer] -= packet.bytes;
        // One that leaves a link later may have no buffer to wait in, and come first.
        let arrived = self.arrived[transfer].max(time);
        self.arrived[transfer] = arrived;
        if self.left[transfer] == 0 {
            self.queue.push(arrived, Event::Arrive(packet.transfer));
        }
    }

    /// A transfer has arrived: an NPU sums what it receives in the order in which it comes, and so does a switch
    /// at a rate of its own take in whatever ends there.
    fn sum(&mut self, transfer: u32) {
        let plan = self.verified.plan();
        let mut end = self.now + EJECTION;
        let dst = plan.dst()[transfer as usize];
        let is_sum = plan.op()[transfer as usize] == Op::Reduce as u8;
        let rate = match self.verified.topology().offload(DeviceId(dst)) {
            Some(offload) => offload.rate,
            None => self.options.reduction_rate.filter(|_| is_sum),
        };
        if let Some(rate) = rate {
            let summed = &mut self.summed[dst as usize];
            let bytes = plan.bytes(TransferId(transfer));
            let sum = self.timing.cycles(rate.transmission(bytes));
            end = end.max(*summed).saturating_add(sum);
            *summed = end;
        }
        self.queue.push(end, Event::End(transfer));
    }

    pub(super) fn started(&mut self, transfer: u32, now: u64) {
        if self.start[transfer as usize] == Time::MAX {
            self.start[transfer as usize] = self.time(now + SWITCH);
        }
    }

    /// Counts flits of a requester that leave over a link one after the other.
    pub(super) fn count(&mut self, link: u32, requester: u32, flits: u64, start: u64) {
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
        self.latest[link as usize] = narrow(self.services.len());
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
