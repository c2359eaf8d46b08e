//! Max-min fair rates, kept up to date as flows come and go.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a server has to give, while rates are found.
#[derive(Clone, Copy, Default)]
struct Pool {
    /// Capacity that no settled flow has.
    left: u128,
    /// Passages of flows that are not settled.
    open: u128,
}

#[derive(Clone, Default)]
struct Flow {
    /// What it passes, each with its place in that server's list.
    passes: Vec<(u32, u32)>,
    rate: u128,
    is_settled: bool,
}

/// Flows under way, by slot, and their rates.
///
/// Only the flows that are connected by servers to one that came or went are given rates anew: those
/// of other components do not depend on it.
pub(crate) struct Fair {
    capacity: Vec<u128>,
    /// No flow gets more.
    most: u128,
    flows: Vec<Flow>,
    /// By server: the passages over it, each a flow and which of its passes.
    crossing: Vec<Vec<(u32, u32)>>,
    /// Servers whose flows have changed since rates were found.
    changed: Vec<u32>,
    pools: Vec<Pool>,
    /// By server: whether it is in the component.
    is_found: Vec<bool>,
    /// Servers of the component.
    found: Vec<u32>,
    shares: BinaryHeap<Reverse<(u128, u32)>>,
}

impl Fair {
    /// Servers of these capacities, and the most that a flow gets, in any one unit.
    pub(crate) fn new(capacity: Vec<u128>, most: u128) -> Self {
        let servers = capacity.len();
        Self {
            capacity,
            most,
            flows: Vec::new(),
            crossing: vec![Vec::new(); servers],
            changed: Vec::new(),
            pools: vec![Pool::default(); servers],
            is_found: vec![false; servers],
            found: Vec::new(),
            shares: BinaryHeap::new(),
        }
    }

    /// A flow comes to a free slot and passes these servers; its rate is 0 until [`Self::refill`].
    pub(crate) fn add(&mut self, slot: u32, servers: &[u32]) {
        let i = slot as usize;
        if i >= self.flows.len() {
            self.flows.resize(i + 1, Flow::default());
        }
        let flow = &mut self.flows[i];
        flow.rate = 0;
        for (pass, &server) in servers.iter().enumerate() {
            let crossing = &mut self.crossing[server as usize];
            flow.passes.push((server, crossing.len() as u32));
            crossing.push((slot, pass as u32));
        }
        self.changed.extend_from_slice(servers);
    }

    /// A flow goes.
    pub(crate) fn remove(&mut self, slot: u32) {
        for pass in (0..self.flows[slot as usize].passes.len()).rev() {
            let (server, at) = self.flows[slot as usize].passes[pass];
            let crossing = &mut self.crossing[server as usize];
            crossing.swap_remove(at as usize);
            if let Some(&(flow, pass)) = crossing.get(at as usize) {
                self.flows[flow as usize].passes[pass as usize].1 = at;
            }
            self.changed.push(server);
        }
        self.flows[slot as usize].passes.clear();
    }

    /// How many passages of flows a server has.
    pub(crate) fn crossings(&self, server: u32) -> usize {
        self.crossing[server as usize].len()
    }

    /// What a flow passes.
    pub(crate) fn servers(&self, slot: u32) -> impl Iterator<Item = u32> {
        let passes = self.flows[slot as usize].passes.iter();
        passes.map(|&(server, _)| server)
    }

    pub(crate) fn rate(&self, slot: u32) -> u128 {
        self.flows[slot as usize].rate
    }

    /// Finds the rates of all flows that are connected to a change; puts these into `flows`, each once.
    ///
    /// The server with the least to give each of its open flows settles them at that, rounded down; of
    /// several the one of lowest number. What is left over is for the next.
    ///
    /// # Complexity
    /// O(passages of the component, each log of its servers).
    ///
    /// # Source
    /// Progressive filling: Bertsekas and Gallager, Data Networks, section 6.5.2.
    pub(crate) fn refill(&mut self, flows: &mut Vec<u32>) {
        flows.clear();
        self.find_component(flows);
        self.shares.clear();
        for &server in &self.found {
            let i = server as usize;
            self.is_found[i] = false;
            let open = self.crossing[i].len() as u128;
            self.pools[i] = Pool {
                left: self.capacity[i],
                open,
            };
            if let Some(share) = self.capacity[i].checked_div(open) {
                self.shares.push(Reverse((share, server)));
            }
        }
        self.found.clear();
        while let Some(Reverse((share, server))) = self.shares.pop() {
            let Pool { left, open } = self.pools[server as usize];
            if open == 0 {
                continue;
            }
            // Shares only grow: a settled flow has no more than its share of any other server.
            let now = left / open;
            if now > share {
                self.shares.push(Reverse((now, server)));
                continue;
            }
            if share >= self.most {
                break;
            }
            let crossing = std::mem::take(&mut self.crossing[server as usize]);
            for &(flow, _) in &crossing {
                self.settle(flow, share);
            }
            self.crossing[server as usize] = crossing;
        }
        for &flow in flows.iter() {
            let flow = &mut self.flows[flow as usize];
            if !std::mem::take(&mut flow.is_settled) {
                flow.rate = self.most;
            }
        }
    }

    /// Puts every flow that changed servers lead to into `flows`, and their servers into `found`.
    fn find_component(&mut self, flows: &mut Vec<u32>) {
        for server in self.changed.drain(..) {
            if !std::mem::replace(&mut self.is_found[server as usize], true) {
                self.found.push(server);
            }
        }
        let mut next = 0;
        while next < self.found.len() {
            let server = self.found[next] as usize;
            next += 1;
            for &(number, _) in &self.crossing[server] {
                let flow = &mut self.flows[number as usize];
                // Until the rates are found it says that the flow is in the list.
                if std::mem::replace(&mut flow.is_settled, true) {
                    continue;
                }
                flows.push(number);
                for &(server, _) in &flow.passes {
                    if !std::mem::replace(&mut self.is_found[server as usize], true) {
                        self.found.push(server);
                    }
                }
            }
        }
        for &flow in flows.iter() {
            self.flows[flow as usize].is_settled = false;
        }
    }

    fn settle(&mut self, flow: u32, rate: u128) {
        let flow = &mut self.flows[flow as usize];
        if std::mem::replace(&mut flow.is_settled, true) {
            return;
        }
        flow.rate = rate;
        for &(server, _) in &flow.passes {
            let pool = &mut self.pools[server as usize];
            pool.left -= rate;
            pool.open -= 1;
        }
    }
}
