//! New paths for every failure that may come: of one link, or of one switch above the ToRs.
//!
//! Only flows that lose their path get another, so that nothing else moves when it happens.
//!
//! # Source
//! Cohen et al., Routing for large ML models, section 3.4.2: assignments precomputed for failures, such as
//! of each link. That flows which lose no path keep theirs is not the paper's.

use std::collections::HashMap;

use crate::id::{DeviceId, LinkId};
use crate::routing::Fabric;
use crate::topology::{DeviceKind, Topology};

/// A flow between two ToRs and its choice.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    pub(super) id: u32,
    pub(super) src: u32,
    pub(super) dst: u32,
    pub(super) choice: u32,
}

/// What may fail, and what to do then.
pub(super) struct Failover<'a> {
    topology: &'a Topology,
    fabric: &'a Fabric,
    /// Links that fail together, sorted.
    outages: Vec<Vec<LinkId>>,
}

/// By links that fail together: flows that lose their path, and another choice for each; a flow that has
/// none is left out.
pub(super) type Repairs = HashMap<Vec<LinkId>, Vec<(u32, u32)>>;

impl<'a> Failover<'a> {
    /// Every pair of links between two switches, and all links of each switch that has no NPU.
    pub(super) fn new(topology: &'a Topology, fabric: &'a Fabric) -> Self {
        let is_switch = |id: DeviceId| topology.device(id).kind != DeviceKind::Npu;
        let mut pairs: HashMap<[DeviceId; 2], Vec<LinkId>> = HashMap::new();
        let mut around: Vec<Vec<LinkId>> = vec![Vec::new(); topology.devices().len()];
        let mut has_npu = vec![false; topology.devices().len()];
        for (i, link) in topology.links().iter().enumerate() {
            let (ends, id) = ([link.src, link.dst], LinkId::from(i));
            if ends.iter().all(|&end| is_switch(end)) {
                let [a, b] = ends;
                pairs.entry([a.min(b), a.max(b)]).or_default().push(id);
            }
            for end in ends {
                around[end.index()].push(id);
                has_npu[end.index()] |= !ends.iter().all(|&end| is_switch(end));
            }
        }
        let switches = around.into_iter().zip(has_npu);
        let switches = switches.filter(|(links, has_npu)| !has_npu && !links.is_empty());
        let mut outages: Vec<Vec<LinkId>> = pairs.into_values().collect();
        outages.extend(switches.map(|(links, _)| links));
        outages.sort_unstable();
        Self {
            topology,
            fabric,
            outages,
        }
    }

    /// Repairs of all outages, for flows as they are now.
    ///
    /// Flows that lose their path take, in order, the choice whose fullest link would be least full, the
    /// lowest where several would.
    ///
    /// # Complexity
    /// O(links of all paths, and choices of each flow for each of the links and switches that it passes).
    pub(super) fn repairs(&self, flows: &[Chosen], is_dead: &[bool]) -> Repairs {
        let mut loads = vec![0u32; self.topology.links().len()];
        let mut on = vec![Vec::new(); loads.len()];
        for (i, flow) in flows.iter().enumerate() {
            self.each_link(flow, |link| {
                loads[link.index()] += 1;
                on[link.index()].push(i as u32);
            });
        }
        let mut is_dead = is_dead.to_vec();
        let mut repairs = Repairs::new();
        for outage in &self.outages {
            let mut fresh = outage.clone();
            fresh.retain(|link| !is_dead[link.index()]);
            let mut cut: Vec<u32> = fresh
                .iter()
                .flat_map(|link| &on[link.index()])
                .copied()
                .collect();
            cut.sort_unstable();
            cut.dedup();
            if cut.is_empty() {
                continue;
            }
            fresh.iter().for_each(|link| is_dead[link.index()] = true);
            let cut: Vec<Chosen> = cut.iter().map(|&i| flows[i as usize]).collect();
            let replaced = self.replaced(&cut, &mut loads, &is_dead);
            fresh.iter().for_each(|link| is_dead[link.index()] = false);
            repairs.insert(fresh, replaced);
        }
        repairs
    }

    /// Other choices for flows; loads are in the end as before.
    fn replaced(&self, cut: &[Chosen], loads: &mut [u32], is_dead: &[bool]) -> Vec<(u32, u32)> {
        for flow in cut {
            self.each_link(flow, |link| loads[link.index()] -= 1);
        }
        let mut found: Vec<Chosen> = Vec::with_capacity(cut.len());
        for flow in cut {
            if let Some(choice) = self.best(flow, loads, is_dead) {
                let flow = Chosen { choice, ..*flow };
                self.each_link(&flow, |link| loads[link.index()] += 1);
                found.push(flow);
            }
        }
        for flow in &found {
            self.each_link(flow, |link| loads[link.index()] -= 1);
        }
        for flow in cut {
            self.each_link(flow, |link| loads[link.index()] += 1);
        }
        found.iter().map(|flow| (flow.id, flow.choice)).collect()
    }

    fn best(&self, flow: &Chosen, loads: &[u32], is_dead: &[bool]) -> Option<u32> {
        let mut best = None;
        for choice in self.fabric.choices_between(flow.src, flow.dst) {
            let (mut fullest, mut is_there) = (0.0, true);
            self.each_link(&Chosen { choice, ..*flow }, |link| {
                let rate = self.topology.link(link).bandwidth.bytes_per_second();
                fullest = f64::max(fullest, f64::from(loads[link.index()] + 1) / rate as f64);
                is_there &= !is_dead[link.index()];
            });
            if is_there && best.is_none_or(|(least, _)| fullest < least) {
                best = Some((fullest, choice));
            }
        }
        best.map(|(_, choice)| choice)
    }

    fn each_link(&self, flow: &Chosen, mut each: impl FnMut(LinkId)) {
        let mut links = Vec::with_capacity(4);
        self.fabric
            .route(flow.src, flow.dst, flow.choice, &mut links);
        links.into_iter().for_each(&mut each);
    }
}
