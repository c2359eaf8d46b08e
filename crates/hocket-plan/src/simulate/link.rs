//! Link fidelity: whole messages, one at a time on each link.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::queue::EventQueue;
use super::ready::Ready;
use super::run::{LinkUse, Run, Service};
use super::way::{Message, Way, switch_servers};
use super::{LatencyModel, LinkOrder, SimulateError, SimulateOptions, Switching};
use crate::graph::Counts;
use crate::id::{TransferId, narrow};
use crate::plan::Plan;
use crate::progress::{Interrupted, MESSAGE, Progress};
use crate::units::{Beta, Time};
use crate::verify::Verified;

/// A link, or a switch's own limit or rate: serves one message at a time.
struct Server {
    beta: Beta,
    latency: Time,
    free: Time,
    busy: Time,
    bytes: u64,
    messages: u64,
}

/// For service in plan order: who is due at each server.
struct Due {
    /// Transfers that pass each server, in plan order.
    offsets: Vec<usize>,
    transfers: Vec<u32>,
    next: Vec<usize>,
    /// By transfer, the server at which it waits, if any, and [`Message::at`] after that. It is at one place at a time.
    waits: Vec<(u32, u32)>,
}

/// In place of a server: a message waits nowhere, or goes to none as it has arrived.
const NOWHERE: u32 = u32::MAX;
/// In place of a transfer: a server is free.
const NOBODY: u32 = u32::MAX;

/// A message, whole or its head, is where its next server begins.
#[derive(Clone, Copy)]
struct Coming {
    server: u32,
    /// With [`Message::at`] after that server.
    message: Message,
}

impl Coming {
    #[inline]
    fn new(way: &Way<'_>, message: Message) -> Self {
        let (server, at) = way.next(message).unwrap_or((NOWHERE, 0));
        let message = Message { at, ..message };
        Self { server, message }
    }

    /// At the start of a transfer.
    fn first(way: &Way<'_>, transfer: u32) -> Self {
        Self::new(way, way.start(transfer))
    }
}

impl Due {
    fn new(way: &Way<'_>, servers: usize) -> Self {
        let mut counts = Counts::<usize>::new(servers);
        let each = |visit: &mut dyn FnMut(u32, u32)| {
            for transfer in 0..narrow(way.plan.len()) {
                let mut message = way.start(transfer);
                while let Some((server, at)) = way.next(message) {
                    visit(server, transfer);
                    message.at = at;
                }
            }
        };
        each(&mut |server, _| counts.add(server as usize));
        let mut slots = counts.into_slots();
        let mut transfers = vec![0; slots.len()];
        each(&mut |server, transfer| transfers[slots.take(server as usize)] = transfer);
        let offsets = slots.into_offsets();
        let next = offsets[..servers].to_vec();
        Self {
            offsets,
            transfers,
            next,
            waits: vec![(NOWHERE, 0); way.plan.len()],
        }
    }

    /// Notes that a message has come to a server.
    #[inline]
    fn arrive(&mut self, server: u32, transfer: u32, at: u32) {
        self.waits[transfer as usize] = (server, at);
    }

    /// Takes the message that a server serves next, if it has come.
    #[inline]
    fn take(&mut self, server: u32) -> Option<Message> {
        let slot = self.next[server as usize];
        if slot == self.offsets[server as usize + 1] {
            return None;
        }
        let transfer = self.transfers[slot];
        let (waits_at, at) = self.waits[transfer as usize];
        if waits_at != server {
            return None;
        }
        self.waits[transfer as usize].0 = NOWHERE;
        self.next[server as usize] += 1;
        Some(Message { transfer, at })
    }
}

/// For service by priority: who waits at each server that is busy.
struct Waiting {
    /// By server, transfers by the plan's order, each with [`Message::at`] after that server.
    by_server: Vec<BinaryHeap<Reverse<(u32, u32)>>>,
    /// Servers for which somebody has come, or that are free again: looked at when all has come that comes now.
    touched: Vec<u32>,
    /// By server, whether an event tells when it is free.
    is_awaited: Vec<bool>,
}

impl Waiting {
    fn new(servers: usize) -> Self {
        Self {
            by_server: vec![BinaryHeap::new(); servers],
            touched: Vec::new(),
            is_awaited: vec![false; servers],
        }
    }
}

struct Simulation<'a> {
    options: &'a SimulateOptions,
    switching: Switching,
    way: Way<'a>,
    servers: Vec<Server>,
    /// Bytes of each transfer, at hand: the plan has them as differences.
    bytes: Vec<u64>,
    queue: EventQueue<Coming>,
    /// Cut-through only: when the tail of each transfer arrives where its head is now.
    tail: Vec<Time>,
    due: Option<Due>,
    waiting: Option<Waiting>,
    start: Vec<Time>,
    end: Vec<Time>,
    services: Vec<Service>,
}

/// See [`super::simulate`].
pub(super) fn simulate(
    way: Way<'_>,
    verified: &Verified,
    options: &SimulateOptions,
    progress: &mut dyn Progress,
) -> Result<Run, SimulateError> {
    const BETWEEN_REPORTS: usize = 1 << 18;
    let plan: &Plan = verified.plan();
    let mut open = Ready::new(plan);
    let mut simulation = Simulation::new(way, verified, options);
    let mut ready = Vec::new();
    open.at_first(plan, |transfer| {
        ready.push(Coming::first(&simulation.way, transfer))
    });
    let mut batch = Vec::new();
    let (mut ended, mut now) = (0, Time::ZERO);
    let (mut hops, mut reported) = (0, 0);
    loop {
        // Ties in readiness go by plan order. A transfer is at one place at a time.
        if !ready.is_sorted_by_key(|coming: &Coming| coming.message.transfer) {
            ready.sort_unstable_by_key(|coming| coming.message.transfer);
        }
        hops += ready.len();
        for coming in ready.drain(..) {
            simulation.come(coming, now);
        }
        simulation.serve_waiting(now);
        if hops - reported > BETWEEN_REPORTS {
            progress.spend(MESSAGE * (hops - reported) as u64);
            reported = hops;
            if !progress.report("simulate", ended as u64, plan.len() as u64) {
                return Err(Interrupted.into());
            }
        }
        let Some(time) = simulation.queue.pop(&mut batch) else {
            break;
        };
        now = Time::from_ps(time);
        for &coming in &batch {
            let transfer = coming.message.transfer;
            if transfer == NOBODY {
                simulation.set_free(coming.server);
                continue;
            }
            // At its destination a message is whole: [`Simulation::serve`] times it so.
            if coming.server != NOWHERE {
                ready.push(coming);
                continue;
            }
            simulation.end[transfer as usize] = now;
            ended += 1;
            open.end(transfer, |transfer| {
                ready.push(Coming::first(&simulation.way, transfer));
            });
        }
    }
    progress.spend(MESSAGE * (hops - reported) as u64);
    if now == Time::MAX {
        return Err(SimulateError::TooLong);
    }
    if ended < plan.len() {
        let first = simulation.end.iter().position(|&end| end == Time::MAX);
        return Err(SimulateError::Deadlock {
            waiting: plan.len() - ended,
            first: TransferId::from(first.expect("one has not ended")),
        });
    }
    Ok(simulation.finish(now))
}

impl<'a> Simulation<'a> {
    fn new(way: Way<'a>, verified: &'a Verified, options: &'a SimulateOptions) -> Self {
        let topology = verified.topology();
        let server = |beta, latency| Server {
            beta,
            latency,
            free: Time::ZERO,
            busy: Time::ZERO,
            bytes: 0,
            messages: 0,
        };
        let links = topology.links().iter();
        let links = links.map(|link| server(link.bandwidth.beta(), link.latency));
        let switches = switch_servers(topology);
        let switches = switches.map(|rate| server(rate.beta(), Time::ZERO));
        let servers: Vec<Server> = links.chain(switches).collect();
        let transfers = verified.plan().len();
        let all = (0..transfers).map(TransferId::from);
        let bytes = all
            .map(|transfer| verified.plan().bytes(transfer))
            .collect();
        let switching = options.switching.unwrap_or(topology.switching());
        let cut_through = switching == Switching::CutThrough;
        let order = options.order.unwrap_or(verified.plan().link_order());
        Self {
            options,
            switching,
            due: (order == LinkOrder::Plan).then(|| Due::new(&way, servers.len())),
            waiting: (order == LinkOrder::Priority).then(|| Waiting::new(servers.len())),
            way,
            servers,
            bytes,
            queue: EventQueue::new(),
            tail: if cut_through {
                vec![Time::ZERO; transfers]
            } else {
                Vec::new()
            },
            start: vec![Time::MAX; transfers],
            end: vec![Time::MAX; transfers],
            services: Vec::new(),
        }
    }

    /// A message has come to its next server.
    #[inline]
    fn come(&mut self, Coming { server, message }: Coming, now: Time) {
        if let Some(waiting) = &mut self.waiting {
            waiting.by_server[server as usize].push(Reverse((message.transfer, message.at)));
            waiting.touched.push(server);
            return;
        }
        let Some(due) = &mut self.due else {
            self.serve(server, message, now);
            return;
        };
        due.arrive(server, message.transfer, message.at);
        while let Some(message) = self.due.as_mut().and_then(|due| due.take(server)) {
            self.serve(server, message, now);
        }
    }

    /// A server is free again.
    fn set_free(&mut self, server: u32) {
        if let Some(waiting) = &mut self.waiting {
            waiting.is_awaited[server as usize] = false;
            waiting.touched.push(server);
        }
    }

    /// Where somebody has come or left, whoever comes first in the plan is served.
    fn serve_waiting(&mut self, now: Time) {
        while let Some(server) = self.waiting.as_mut().and_then(|all| all.touched.pop()) {
            let at = server as usize;
            while self.servers[at].free <= now {
                let first = self
                    .waiting
                    .as_mut()
                    .and_then(|all| all.by_server[at].pop());
                let Some(Reverse((transfer, at))) = first else {
                    break;
                };
                self.serve(server, Message { transfer, at }, now);
            }
            let free = self.servers[at].free.as_ps();
            if let Some(waiting) = &mut self.waiting
                && !waiting.by_server[at].is_empty()
                && !std::mem::replace(&mut waiting.is_awaited[at], true)
            {
                let message = Message {
                    transfer: NOBODY,
                    at: 0,
                };
                self.queue.push(free, Coming { server, message });
            }
        }
    }

    /// A server takes a message on, at once or when it is free.
    #[inline]
    fn serve(&mut self, server: u32, message: Message, now: Time) {
        let i = message.transfer as usize;
        let bytes = self.bytes[i];
        let next = Coming::new(&self.way, message);
        let this = &mut self.servers[server as usize];
        let start = this.free.max(now);
        let mut sent = start + this.beta.transmission(bytes);
        if self.switching == Switching::CutThrough {
            sent = sent.max(self.tail[i]);
        }
        let whole = sent + this.latency;
        let arrival = whole.saturating_sub(self.options.ahead.min(sent.saturating_sub(start)));
        let free = match self.options.latency {
            LatencyModel::Overlapped => sent,
            LatencyModel::Occupying => whole,
        };
        this.free = free;
        this.busy = this.busy + free.saturating_sub(start);
        this.bytes = this.bytes.saturating_add(bytes);
        this.messages += 1;
        if self.start[i] == Time::MAX {
            self.start[i] = start;
        }
        let head = match self.switching {
            Switching::StoreAndForward => arrival,
            Switching::CutThrough => {
                self.tail[i] = arrival;
                if next.server == NOWHERE {
                    arrival
                } else {
                    start + this.latency
                }
            }
        };
        if self.options.keep_services && (server as usize) < self.way.topology.links().len() {
            self.services.push(Service {
                transfer: message.transfer,
                link: server,
                start,
                end: free,
            });
        }
        self.queue.push(head.as_ps(), next);
    }

    fn finish(mut self, time: Time) -> Run {
        self.services
            .sort_by_key(|service| (service.start, service.transfer, service.link));
        self.servers.truncate(self.way.topology.links().len());
        let used = |server: &Server| LinkUse {
            busy: server.busy,
            bytes: server.bytes,
            messages: server.messages,
        };
        Run {
            time,
            start: self.start,
            end: self.end,
            links: self.servers.iter().map(used).collect(),
            services: self.services,
        }
    }
}
