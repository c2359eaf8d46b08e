//! Flows as fluids: what each has left to send, at what rate, over which links.

use std::collections::{HashMap, VecDeque};

use super::network::{Network, Reach};
use super::{ClusterOptions, Paths, Port};
use crate::id::{LinkId, fit, narrow};
use crate::routing::Fabric;
use crate::simulate::flow::{Ends, Fair, PS_PER_SECOND, Pass, UNITS_PER_BYTE, units};
use crate::units::Time;

/// A transfer whose last byte has left.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) flow: u32,
    pub(super) transfer: u32,
    pub(super) bytes: u64,
    /// When it began to be sent.
    pub(super) begun: u64,
    /// What its last byte takes to arrive.
    pub(super) latency: Time,
}

/// What a flow carries at the moment.
#[derive(Clone, Copy)]
struct Load {
    transfer: u32,
    bytes: u64,
    /// Bytes that links have been credited with.
    credited: u64,
    begun: u64,
    /// What had not left at `since` [rate units x ps].
    left: u128,
}

struct Flow {
    job: u32,
    /// Of those between ToRs, in the order of jobs, groups and channels.
    number: u32,
    from: Port,
    to: Port,
    reach: Reach,
    choice: Option<u32>,
    /// Of the path: from the NIC, by the switches of every way, to the NIC.
    links: Vec<LinkId>,
    /// Over how many ways its packets are spread, each of as many links.
    ways: u32,
    latency: Time,
    waiting: VecDeque<(u32, u64)>,
    bytes_left: u64,
    load: Option<Load>,
    rate: u128,
    since: u64,
    /// Whether `fair` knows it, and by other links than it takes now.
    is_sharing: bool,
    is_moved: bool,
    is_touched: bool,
    /// Whether a link of its path has failed: it waits for another.
    is_cut: bool,
    /// No faster than this, where hosts keep to what the controller says.
    most: u128,
}

/// All flows of all jobs, and who gets how much of which link.
pub(super) struct Flows<'a> {
    network: Network<'a>,
    capacity: Vec<u128>,
    fair: Fair,
    /// Parts of a flow that weights on links are counted in.
    scale: u32,
    ends: Ends,
    host_rate: u128,
    flows: Vec<Flow>,
    /// Flows whose load or path has changed since rates were found.
    touched: Vec<u32>,
    pub(super) link_bytes: Vec<u64>,
    /// By link: whether it has failed.
    is_dead: Vec<bool>,
    /// By job: what its flows send together [rate units].
    pub(super) job_rates: Vec<u128>,
    changed: Vec<u32>,
    passes: Vec<Pass>,
    /// When which flow was given which way; `None` where they are too many, or have all ways.
    given: Option<Vec<(u64, u32, u32)>>,
    between_tors: u32,
}

/// Most ways that are kept.
const MOST_GIVEN: usize = 400_000;

impl<'a> Flows<'a> {
    pub(super) fn new(network: Network<'a>, jobs: usize, options: &ClusterOptions) -> Self {
        let capacity = network.capacities().map(units).collect::<Vec<_>>();
        Self {
            link_bytes: vec![0; capacity.len()],
            is_dead: vec![false; capacity.len()],
            fair: Fair::new(capacity.clone(), 1),
            capacity,
            scale: 1,
            network,
            ends: Ends::default(),
            host_rate: units(options.host_rate),
            flows: Vec::new(),
            touched: Vec::new(),
            job_rates: vec![0; jobs],
            changed: Vec::new(),
            passes: Vec::new(),
            given: Some(Vec::new()),
            between_tors: 0,
        }
    }

    /// Returns a connection from one port to another, without a load.
    pub(super) fn connect(&mut self, job: u32, from: Port, to: Port) -> u32 {
        let reach = self.network.reach(from, to);
        let number = self.between_tors;
        self.between_tors += u32::from(matches!(reach, Reach::Fabric { .. }));
        let mut flow = Flow {
            job,
            number,
            from,
            to,
            reach,
            choice: None,
            links: Vec::new(),
            ways: 1,
            latency: Time::ZERO,
            waiting: VecDeque::new(),
            bytes_left: 0,
            load: None,
            rate: 0,
            since: 0,
            is_sharing: false,
            is_moved: false,
            is_touched: false,
            is_cut: false,
            most: u128::MAX,
        };
        if !matches!(reach, Reach::Fabric { .. }) {
            self.network
                .links(from.nic, to.nic, reach, 0, &mut flow.links);
            flow.latency = self.network.latency(&flow.links);
        }
        self.flows.push(flow);
        narrow(self.flows.len()) - 1
    }

    pub(super) fn reach(&self, flow: u32) -> Reach {
        self.flows[flow as usize].reach
    }

    pub(super) fn links(&self, flow: u32) -> &[LinkId] {
        &self.flows[flow as usize].links
    }

    /// Returns the bytes of the phase, under way or to come, that a flow has not sent; a started byte counts.
    pub(super) fn bytes_left(&self, flow: u32, now: u64) -> u64 {
        let flow = &self.flows[flow as usize];
        let Some(load) = &flow.load else {
            return flow.bytes_left;
        };
        let left = load.left - flow.rate * u128::from(now - flow.since);
        let gone = load.bytes - fit::<u64, _>(left.div_ceil(BYTE));
        flow.bytes_left - (gone - load.credited)
    }

    /// Returns how many of these flows take each link.
    pub(super) fn flows_by_link<'f>(&self, flows: impl Iterator<Item = &'f u32>) -> Vec<u32> {
        let mut sharing = vec![0; self.link_bytes.len()];
        for &flow in flows {
            for link in self.links(flow) {
                sharing[link.index()] += 1;
            }
        }
        sharing
    }

    /// Returns how long a flow takes for the bytes that it has left, at an equal share of the fullest link of its path,
    /// rounded up [ps].
    pub(super) fn ps_left(&self, flow: u32, sharing: &[u32], now: u64) -> u64 {
        let links = self.links(flow).iter().map(|&link| {
            let flows = sharing[link.index()].max(1);
            (u128::from(flows), u128::from(self.network.bandwidth(link)))
        });
        let fullest = links.max_by(|(flows, rate), (others, other)| {
            (flows * other).cmp(&(others * rate)) // flows / rate
        });
        let Some((flows, rate)) = fullest else {
            return 0;
        };
        let bytes = u128::from(self.bytes_left(flow, now));
        let time = (bytes * PS_PER_SECOND).saturating_mul(flows).div_ceil(rate);
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// Moves a flow to a path from now on; returns whether that moves bytes under way.
    pub(super) fn route(&mut self, id: u32, choice: u32, now: u64) -> bool {
        let flow = &mut self.flows[id as usize];
        if flow.choice == Some(choice) {
            return false;
        }
        let is_under_way = flow.load.is_some();
        if is_under_way {
            self.settle(id, now);
            self.credit(id);
        }
        let flow = &mut self.flows[id as usize];
        flow.choice = Some(choice);
        match &mut self.given {
            Some(given) if given.len() < MOST_GIVEN => given.push((now, id, choice)),
            given => *given = None,
        }
        let (from, to) = (flow.from.nic, flow.to.nic);
        self.network
            .links(from, to, flow.reach, choice, &mut flow.links);
        flow.latency = self.network.latency(&flow.links);
        flow.is_cut = flow.links.iter().any(|link| self.is_dead[link.index()]);
        flow.is_moved = true;
        self.touch(id);
        is_under_way
    }

    /// When which flow between ToRs was given which path.
    pub(super) fn paths(&mut self) -> Option<Paths> {
        let given = self.given.take()?;
        let mut numbers: HashMap<Vec<LinkId>, u32> = HashMap::new();
        let mut paths = Paths::default();
        for (time, id, choice) in given {
            let flow = &self.flows[id as usize];
            let mut links = Vec::new();
            let (from, to) = (flow.from.nic, flow.to.nic);
            self.network.links(from, to, flow.reach, choice, &mut links);
            let next = narrow(numbers.len());
            let path = *numbers.entry(links).or_insert(next);
            paths.given.push((Time::from_ps(time), flow.number, path));
        }
        let mut links: Vec<_> = numbers.into_iter().collect();
        links.sort_unstable_by_key(|&(_, number)| number);
        paths.links = links.into_iter().map(|(links, _)| links).collect();
        Some(paths)
    }

    /// Links fail: flows over them stop. Gives these.
    pub(super) fn fail(&mut self, links: &[LinkId]) -> Vec<u32> {
        for link in links {
            self.is_dead[link.index()] = true;
        }
        let is_dead = |link: &LinkId| links.binary_search(link).is_ok();
        let flows = 0..narrow(self.flows.len());
        let cut: Vec<u32> = flows
            .filter(|&id| self.links(id).iter().any(is_dead))
            .collect();
        for &id in &cut {
            self.flows[id as usize].is_cut = true;
            self.touch(id);
        }
        cut
    }

    /// Returns the NIC of a flow whose link failed, whether the flow has a path yet or not.
    pub(super) fn lost_nic(&self, flow: u32) -> Option<&str> {
        let Flow {
            from, to, reach, ..
        } = self.flows[flow as usize];
        if reach == Reach::Host {
            return None;
        }
        let is_dead = |link: LinkId| self.is_dead[link.index()];
        let sender = is_dead(self.network.up(from.nic)).then_some(from.nic);
        let nic = sender.or(is_dead(self.network.down(to.nic)).then_some(to.nic));
        nic.map(|nic| self.network.name(nic))
    }

    /// A phase will come in which a flow is given so many bytes.
    pub(super) fn expect(&mut self, flow: u32, bytes: u64) {
        self.flows[flow as usize].bytes_left = bytes;
    }

    /// Spreads the packets of every flow over all ways that `fabric` has, from now on.
    pub(super) fn spray(&mut self, fabric: &Fabric, now: u64) {
        self.given = None;
        let mut scale = 1u64;
        for id in 0..narrow(self.flows.len()) {
            self.set_rate(id, 0, now);
            self.flows[id as usize].is_sharing = false;
            self.spread(id, fabric);
            scale = lcm(scale, u64::from(self.flows[id as usize].ways)).min(MAX_PARTS);
        }
        self.scale = fit(scale);
        self.fair = Fair::new(self.capacity.clone(), self.scale);
    }

    /// Spreads a flow's packets over the ways that there are.
    fn spread(&mut self, id: u32, fabric: &Fabric) {
        self.touch(id);
        let Reach::Fabric { src, dst } = self.flows[id as usize].reach else {
            return;
        };
        self.credit(id);
        let flow = &mut self.flows[id as usize];
        let ends = [flow.from.nic, flow.to.nic];
        flow.ways = self
            .network
            .spread(ends, [src, dst], fabric, &mut flow.links);
        flow.latency = self.network.latency(&flow.links);
        flow.is_cut = flow.ways == 0;
        flow.ways = flow.ways.max(1);
    }

    /// Holds flows to their fair share of what they would have if all of them sent at once, and some
    /// parts per million more.
    pub(super) fn limit(&mut self, flows: &[u32], slack_ppm: u32) {
        let mut fair = Fair::new(self.capacity.clone(), self.scale);
        let mut passes = Vec::new();
        for &id in flows {
            self.passes_of(id, &mut passes);
            fair.add(id, &passes, u128::MAX);
        }
        fair.refill(&mut Vec::new());
        for &id in flows {
            let share = fair.rate(id);
            let most = share + share / 1_000_000 * u128::from(slack_ppm);
            let flow = &mut self.flows[id as usize];
            if flow.most != most {
                flow.most = most;
                flow.is_moved = true;
                self.touch(id);
            }
        }
    }

    /// What a flow takes of each link, in parts of the scale.
    fn passes_of(&self, id: u32, passes: &mut Vec<Pass>) {
        let flow = &self.flows[id as usize];
        let last = flow.links.len().saturating_sub(1);
        let part = self.scale.div_ceil(flow.ways);
        passes.clear();
        passes.extend(flow.links.iter().enumerate().map(|(i, link)| Pass {
            server: link.0,
            weight: if i == 0 || i == last {
                self.scale
            } else {
                part
            },
        }));
        if flow.ways > 1 {
            passes.sort_unstable_by_key(|pass| pass.server);
            passes.dedup_by(|pass, before| {
                let is_same = pass.server == before.server;
                before.weight += if is_same { pass.weight } else { 0 };
                is_same
            });
        }
    }

    /// Sends a transfer, after those that the flow was given before.
    pub(super) fn send(&mut self, id: u32, transfer: u32, bytes: u64, now: u64) {
        let flow = &mut self.flows[id as usize];
        flow.waiting.push_back((transfer, bytes));
        if flow.load.is_none() {
            self.begin_next(id, now);
        }
    }

    fn begin_next(&mut self, id: u32, now: u64) {
        let flow = &mut self.flows[id as usize];
        flow.since = now;
        flow.load = flow.waiting.pop_front().map(|(transfer, bytes)| Load {
            transfer,
            bytes,
            credited: 0,
            begun: now,
            left: u128::from(bytes) * BYTE,
        });
        self.touch(id);
    }

    fn touch(&mut self, id: u32) {
        let is_touched = &mut self.flows[id as usize].is_touched;
        if !std::mem::replace(is_touched, true) {
            self.touched.push(id);
        }
    }

    /// When the next transfer has left, unless what happens before changes that.
    pub(super) fn next_end(&self) -> Option<u64> {
        self.ends.first()
    }

    /// Returns a transfer that has left at `now`, if there is one; its flow goes on with the next.
    pub(super) fn pop_sent(&mut self, now: u64) -> Option<Sent> {
        let id = self.ends.pop(now)?;
        let flow = &mut self.flows[id as usize];
        let load = flow.load.as_mut()?;
        load.left = 0;
        flow.since = now;
        let Load {
            transfer,
            bytes,
            begun,
            ..
        } = *load;
        let latency = flow.latency;
        self.credit(id);
        self.begin_next(id, now);
        Some(Sent {
            flow: id,
            transfer,
            bytes,
            begun,
            latency,
        })
    }

    /// Finds rates anew where something changed, and when transfers end by them. Gives how many flows
    /// it looked at.
    pub(super) fn share(&mut self, now: u64) -> usize {
        let touched = std::mem::take(&mut self.touched);
        for &id in &touched {
            self.announce(id, now);
        }
        let mut changed = std::mem::take(&mut self.changed);
        self.fair.refill(&mut changed);
        for &id in &changed {
            let rate = self.fair.rate(id);
            self.set_rate(id, rate, now);
        }
        for &id in &touched {
            let flow = &mut self.flows[id as usize];
            flow.is_touched = false;
            // One that came back to where it was keeps its rate, and is not among those changed.
            let rate = if flow.is_sharing {
                self.fair.rate(id)
            } else {
                flow.rate
            };
            self.set_rate(id, rate, now);
        }
        let looked_at = touched.len() + changed.len();
        self.changed = changed;
        self.touched = touched;
        self.touched.clear();
        looked_at
    }

    /// Tells `fair` what a touched flow needs now.
    fn announce(&mut self, id: u32, now: u64) {
        let flow = &mut self.flows[id as usize];
        let is_sending = flow.load.is_some() && !flow.is_cut;
        if flow.reach == Reach::Host {
            let rate = if is_sending { self.host_rate } else { 0 };
            self.set_rate(id, rate, now);
            return;
        }
        if flow.is_sharing && (!is_sending || flow.is_moved) {
            flow.is_sharing = false;
            self.fair.remove(id);
            self.set_rate(id, 0, now);
        }
        let flow = &mut self.flows[id as usize];
        flow.is_moved = false;
        if is_sending && !flow.is_sharing {
            flow.is_sharing = true;
            let most = flow.most;
            let mut passes = std::mem::take(&mut self.passes);
            self.passes_of(id, &mut passes);
            self.fair.add(id, &passes, most);
            self.passes = passes;
        }
    }

    fn set_rate(&mut self, id: u32, rate: u128, now: u64) {
        self.settle(id, now);
        let flow = &mut self.flows[id as usize];
        let of_job = &mut self.job_rates[flow.job as usize];
        *of_job = *of_job + rate - flow.rate;
        flow.rate = rate;
        self.schedule(id);
    }

    /// Takes what has left since the rate was last looked at off what is left.
    fn settle(&mut self, id: u32, now: u64) {
        let flow = &mut self.flows[id as usize];
        if let Some(load) = &mut flow.load {
            // It ends later than now, so that no more has left than there was.
            load.left -= flow.rate * u128::from(now - flow.since);
        }
        flow.since = now;
    }

    fn schedule(&mut self, id: u32) {
        let flow = &self.flows[id as usize];
        let Some(load) = &flow.load else {
            return;
        };
        let lasts = match (load.left, flow.rate) {
            (0, _) => 0,
            (_, 0) => u64::MAX,
            (left, rate) => u64::try_from(left.div_ceil(rate)).unwrap_or(u64::MAX),
        };
        self.ends.set(id, flow.since.saturating_add(lasts));
    }

    /// Counts what has left, to the byte, for the links of the flow's path.
    fn credit(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Some(load) = &mut flow.load else {
            return;
        };
        let gone = load.bytes - fit::<u64, _>(load.left.div_ceil(BYTE));
        let (ways, sent) = (u128::from(flow.ways), load.credited..gone);
        let share = |bytes: u64, way: u128| fit::<u64, _>(u128::from(bytes) * way / ways);
        let hops = flow.links.len().saturating_sub(2) / flow.ways as usize;
        for (i, link) in flow.links.iter().enumerate() {
            let is_whole = hops == 0 || i == 0 || i + 1 == flow.links.len();
            let way = if is_whole {
                0
            } else {
                ((i - 1) / hops) as u128
            };
            let past = if is_whole { ways } else { way + 1 };
            let of_way = |bytes| share(bytes, past) - share(bytes, way);
            let sum = &mut self.link_bytes[link.index()];
            *sum = sum.saturating_add(of_way(sent.end) - of_way(sent.start));
        }
        flow.bytes_left -= gone - load.credited;
        load.credited = gone;
    }
}

/// Of a flow that is spread, at most; more ways are rounded up to such a part.
const MAX_PARTS: u64 = 1 << 24;

fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// A byte, in rate units x ps.
const BYTE: u128 = PS_PER_SECOND * UNITS_PER_BYTE;
