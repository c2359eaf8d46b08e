//! Moment by moment: which flows end, what starts then, and how they share what there is.

use super::{Ends, Fair, FlowOptions, Pass, spray};
use crate::id::{LinkId, TransferId, narrow};
use crate::plan::Plan;
use crate::progress::{Interrupted, Progress};
use crate::simulate::SimulateError;
use crate::simulate::ready::Ready;
use crate::simulate::run::{LinkUse, Run, Service};
use crate::simulate::way::{Way, switch_servers};
use crate::units::{Bandwidth, Time};
use crate::verify::Verified;

/// Rates are whole numbers of 2^-24 bytes/s, and 10^12 ps are a second: any number of bytes, times
/// both, fits into 128 bits.
pub const UNITS_PER_BYTE: u128 = 1 << RATE_BITS;
const RATE_BITS: u32 = 24;
/// Picoseconds in a second.
pub const PS_PER_SECOND: u128 = 1_000_000_000_000;

/// A transfer under way.
#[derive(Clone, Copy)]
struct Flow {
    transfer: u32,
    /// Whether all its bytes have left.
    is_drained: bool,
    /// What had not drained at `since` [bytes/s x ps, in rate units], and the rate since then.
    left: u128,
    rate: u128,
    since: u64,
    latency: Time,
}

/// Returns a bandwidth in rate units.
pub fn units(rate: Bandwidth) -> u128 {
    u128::from(rate.bytes_per_second()) * UNITS_PER_BYTE
}

struct Engine<'a> {
    options: &'a FlowOptions,
    plan: &'a Plan,
    way: Way<'a>,
    fair: Fair,
    /// Parts of a flow that passes are counted in.
    scale: u32,
    /// No flow gets more.
    most: u128,
    ends: Ends,
    now: u64,
    /// By slot, as in `fair` and `ends`.
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// By server: since when flows have been on it without a break.
    busy_since: Vec<u64>,
    uses: Vec<LinkUse>,
    start: Vec<Time>,
    end: Vec<Time>,
    services: Vec<Service>,
    /// Kept for their memory.
    servers: Vec<u32>,
    passes: Vec<Pass>,
    refilled: Vec<u32>,
}

/// See [`crate::simulate::simulate_flows`].
pub(in crate::simulate) fn simulate(
    verified: &Verified,
    options: &FlowOptions,
    progress: &mut dyn Progress,
) -> Result<Run, SimulateError> {
    const BETWEEN_REPORTS: usize = 1 << 18;
    let plan: &Plan = verified.plan();
    let mut engine = Engine::new(verified, options);
    let mut open = Ready::new(plan);
    let mut ready = Vec::new();
    open.at_first(plan, |transfer| ready.push(transfer));
    let (mut ended, mut work) = (0, 0);
    loop {
        work += ready.len();
        for transfer in ready.drain(..) {
            engine.begin(transfer);
        }
        work += engine.share();
        if work > BETWEEN_REPORTS {
            work = 0;
            if !progress.report("simulate flows", ended as u64, plan.len() as u64) {
                return Err(Interrupted.into());
            }
        }
        let Some(now) = engine.ends.first() else {
            break;
        };
        if now == u64::MAX {
            return Err(SimulateError::TooLong);
        }
        engine.now = now;
        while let Some(slot) = engine.ends.pop(now) {
            if let Some(transfer) = engine.advance(slot) {
                ended += 1;
                open.end(transfer, |next| ready.push(next));
            }
        }
    }
    debug_assert_eq!(ended, plan.len(), "a verified plan's waits end");
    Ok(engine.finish())
}

impl<'a> Engine<'a> {
    fn new(verified: &'a Verified, options: &'a FlowOptions) -> Self {
        let (plan, topology) = (verified.plan(), verified.topology());
        let links = topology.links().iter().map(|link| link.bandwidth);
        let capacity: Vec<u128> = links.chain(switch_servers(topology)).map(units).collect();
        let busy_since = vec![0; capacity.len()];
        let scale = spray::scale(verified);
        let mut fair = Fair::new(capacity, scale);
        if let Some(bits) = options.rate_bits {
            fair = fair.rounded(bits);
        }
        Self {
            options,
            plan,
            way: Way::new(verified),
            busy_since,
            fair,
            scale,
            most: options.flow_rate.map_or(u128::MAX, units),
            ends: Ends::default(),
            now: 0,
            flows: Vec::new(),
            free: Vec::new(),
            uses: vec![LinkUse::default(); topology.links().len()],
            start: vec![Time::MAX; plan.len()],
            end: vec![Time::MAX; plan.len()],
            services: Vec::new(),
            servers: Vec::new(),
            passes: Vec::new(),
            refilled: Vec::new(),
        }
    }

    /// A transfer may start: it is a flow from now on.
    fn begin(&mut self, transfer: u32) {
        self.start[transfer as usize] = Time::from_ps(self.now);
        let latency = match self.way.sprayed(transfer) {
            Some(paths) => self.pass_on_all(transfer, paths),
            None => self.pass_on_one(transfer),
        };
        for pass in &self.passes {
            if self.fair.crossings(pass.server) == 0 {
                self.busy_since[pass.server as usize] = self.now;
            }
        }
        let bytes = self.plan.bytes(TransferId(transfer));
        let flow = Flow {
            transfer,
            is_drained: false,
            left: u128::from(bytes) * PS_PER_SECOND * UNITS_PER_BYTE,
            rate: 0,
            since: self.now,
            latency,
        };
        let slot = self.free.pop().unwrap_or(narrow(self.flows.len()));
        if slot as usize == self.flows.len() {
            self.flows.push(flow);
        } else {
            self.flows[slot as usize] = flow;
        }
        self.fair.add(slot, &self.passes, self.most);
    }

    /// Sets `passes` to what a transfer passes whole, counts it there, and gives its latency.
    fn pass_on_one(&mut self, transfer: u32) -> Time {
        let bytes = self.plan.bytes(TransferId(transfer));
        let mut latency = Time::ZERO;
        let mut message = self.way.start(transfer);
        self.passes.clear();
        while let Some((server, at)) = self.way.next(message) {
            let weight = self.scale;
            self.passes.push(Pass { server, weight });
            message.at = at;
            if let Some(link) = self.uses.get_mut(server as usize) {
                link.bytes = link.bytes.saturating_add(bytes);
                link.messages += 1;
                latency = latency + self.way.topology.link(LinkId(server)).latency;
            }
        }
        latency
    }

    /// Returns the same for a transfer that is sprayed; it has arrived when the last of its parts has.
    fn pass_on_all(&mut self, transfer: u32, paths: usize) -> Time {
        let bytes = self.plan.bytes(TransferId(transfer));
        let mut latency = Time::ZERO;
        self.passes.clear();
        for path in 0..paths {
            let servers = self.way.servers_on(transfer, path);
            let mut along = Time::ZERO;
            for &server in &servers {
                if let Some(link) = self.uses.get_mut(server as usize) {
                    let part = spray::part(bytes, path, paths);
                    link.bytes = link.bytes.saturating_add(part);
                    along = along + self.way.topology.link(LinkId(server)).latency;
                }
            }
            latency = latency.max(along);
            let weight = self.scale.div_ceil(narrow(paths));
            let passes = servers.into_iter().map(|server| Pass { server, weight });
            self.passes.extend(passes);
        }
        spray::join(&mut self.passes, self.scale);
        for pass in &self.passes {
            if let Some(link) = self.uses.get_mut(pass.server as usize) {
                link.messages += 1;
            }
        }
        latency
    }

    /// Computes the rates of flows that changed, and returns how many passages it looked at.
    fn share(&mut self) -> usize {
        let work = self.fair.refill(&mut self.refilled);
        for &slot in &self.refilled {
            let rate = self.fair.rate(slot);
            let flow = &mut self.flows[slot as usize];
            if rate == flow.rate && rate > 0 {
                continue;
            }
            // It ends later than now, so that no more has drained than was left.
            flow.left -= flow.rate * u128::from(self.now - flow.since);
            flow.rate = rate;
            flow.since = self.now;
            let lasts = match (flow.left, rate) {
                (0, _) => 0,
                (_, 0) => u64::MAX,
                (left, rate) => u64::try_from(left.div_ceil(rate)).unwrap_or(u64::MAX),
            };
            self.ends.set(slot, self.now.saturating_add(lasts));
        }
        work
    }

    /// A flow's last byte has left, or arrived: then it gives the transfer, which has ended.
    fn advance(&mut self, slot: u32) -> Option<u32> {
        let flow = self.flows[slot as usize];
        let now = Time::from_ps(self.now);
        if flow.is_drained {
            self.end[flow.transfer as usize] = now;
            self.free.push(slot);
            return Some(flow.transfer);
        }
        self.flows[slot as usize].is_drained = true;
        self.ends.set(slot, (now + flow.latency).as_ps());
        self.servers.clear();
        self.servers.extend(self.fair.servers(slot));
        self.fair.remove(slot);
        for &server in &self.servers {
            let Some(link) = self.uses.get_mut(server as usize) else {
                continue;
            };
            // One that passes a link twice leaves it once.
            if self.fair.crossings(server) == 0 {
                let since = &mut self.busy_since[server as usize];
                link.busy = link.busy + Time::from_ps(self.now - *since);
                *since = self.now;
            }
            if self.options.keep_services {
                self.services.push(Service {
                    transfer: flow.transfer,
                    link: server,
                    start: self.start[flow.transfer as usize],
                    end: now,
                });
            }
        }
        None
    }

    fn finish(mut self) -> Run {
        self.services
            .sort_by_key(|service| (service.start, service.transfer, service.link));
        Run {
            time: Time::from_ps(self.now),
            start: self.start,
            end: self.end,
            links: self.uses,
            services: self.services,
        }
    }
}
