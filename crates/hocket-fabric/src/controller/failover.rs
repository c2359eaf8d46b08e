//! New paths for every failure that may come: of one link both ways, or of one switch above the ToRs.
//!
//! Only flows that lose their path get another, so that nothing else moves when it happens.
//!
//! # Source
//! Cohen et al., Routing for large ML models, section 3.4.2: assignments precomputed for failures, such as
//! of each link. That flows which lose no path keep theirs is not the paper's.

use std::collections::HashMap;

use super::super::Fabric;
use crate::id::{LinkId, narrow};

/// A flow between two ToRs and its choice.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// What its owner calls it.
    pub id: u32,
    /// The ToR at which it starts.
    pub src: u32,
    /// The ToR at which it ends.
    pub dst: u32,
    /// The highest switch of its path, by its number.
    pub choice: u32,
}

/// By links that fail together, sorted: flows that lose their path, and another choice for each; a flow
/// that has none is left out.
pub type Repairs = HashMap<Vec<LinkId>, Vec<(u32, u32)>>;

/// Returns the links that fail together, sorted: those between each two switches, and those of each switch above the
/// ToRs.
pub fn outages(fabric: &Fabric) -> Vec<Vec<LinkId>> {
    let [up, down, above, below, _] = fabric.blocks();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let rows = |width: usize, count: usize| (0..count * width).map(move |at| (at, at % width));
    let both = |blocks: [usize; 2], at: usize| blocks.map(|block| block + at);
    groups.extend((0..down - up).map(|at| both([up, down], at).to_vec()));
    groups.extend((0..below - above).map(|at| both([above, below], at).to_vec()));
    match &fabric.upper {
        None => {
            let mut spines = vec![Vec::new(); fabric.columns];
            for (at, column) in rows(fabric.columns, fabric.tors) {
                spines[column].extend(both([up, down], at));
            }
            groups.extend(spines);
        }
        Some(upper) => {
            let mut cores = vec![Vec::new(); upper.cores];
            let mut aggs = vec![Vec::new(); upper.pods * fabric.columns];
            for (at, plane) in rows(fabric.columns, fabric.tors) {
                let pod = upper.pod_of[at / fabric.columns] as usize;
                aggs[pod * fabric.columns + plane].extend(both([up, down], at));
            }
            for (at, core) in rows(upper.cores, upper.pods) {
                let (pod, plane) = (at / upper.cores, upper.plane_of[core] as usize);
                let slots = both([above, below], at);
                cores[core].extend(slots);
                aggs[pod * fabric.columns + plane].extend(slots);
            }
            groups.extend(cores);
            groups.extend(aggs);
        }
    }
    let link = |slot: &usize| fabric.links[*slot];
    let links = |group: Vec<usize>| {
        let mut links: Vec<LinkId> = group.iter().filter_map(link).collect();
        links.sort_unstable();
        links
    };
    let mut outages: Vec<Vec<LinkId>> = groups.into_iter().map(links).collect();
    outages.retain(|links| !links.is_empty());
    outages.sort_unstable();
    outages.dedup();
    outages
}

/// Repairs of outages, for flows as they are now; `is_dead` says of each link whether it has failed
/// already.
///
/// Flows that lose their path take, in order, the choice whose fullest link would be least full, the
/// lowest where several would.
///
/// # Complexity
/// O(links of all paths, and choices of each flow for each of the links and switches that it passes).
pub fn repairs(
    fabric: &Fabric,
    outages: &[Vec<LinkId>],
    flows: &[Chosen],
    is_dead: &[bool],
) -> Repairs {
    let mut state = State::new(fabric, flows, is_dead);
    let mut repairs = Repairs::new();
    for outage in outages {
        let mut fresh = outage.clone();
        fresh.retain(|link| !is_dead[link.index()]);
        let slots = fresh.iter().map(|link| state.slot_of[link.index()]);
        let slots: Vec<usize> = slots.map(|slot| slot as usize).collect();
        let on = slots.iter().flat_map(|&slot| &state.on[slot]);
        let mut cut: Vec<u32> = on.copied().collect();
        cut.sort_unstable();
        cut.dedup();
        if cut.is_empty() {
            continue;
        }
        slots.iter().for_each(|&slot| state.is_dead[slot] = true);
        let cut: Vec<Chosen> = cut.iter().map(|&i| flows[i as usize]).collect();
        let replaced = state.replaced(&cut);
        slots.iter().for_each(|&slot| state.is_dead[slot] = false);
        repairs.insert(fresh, replaced);
    }
    repairs
}

/// Loads and failures by slot.
struct State<'a> {
    fabric: &'a Fabric,
    slot_of: Vec<u32>,
    is_dead: Vec<bool>,
    loads: Vec<u32>,
    on: Vec<Vec<u32>>,
}

impl<'a> State<'a> {
    fn new(fabric: &'a Fabric, flows: &[Chosen], is_dead: &[bool]) -> Self {
        let count = fabric.links.len();
        let mut state = Self {
            fabric,
            slot_of: vec![0; is_dead.len()],
            is_dead: vec![false; count],
            loads: vec![0; count],
            on: vec![Vec::new(); count],
        };
        for (slot, link) in fabric.links.iter().enumerate() {
            if let Some(link) = link {
                state.slot_of[link.index()] = narrow(slot);
                state.is_dead[slot] = is_dead[link.index()];
            }
        }
        for (i, flow) in flows.iter().enumerate() {
            for slot in fabric.slots_of(flow.src, flow.dst, flow.choice).iter() {
                state.loads[slot] += 1;
                state.on[slot].push(narrow(i));
            }
        }
        state
    }

    /// Other choices for flows; loads are in the end as before.
    fn replaced(&mut self, cut: &[Chosen]) -> Vec<(u32, u32)> {
        cut.iter().for_each(|flow| self.load(flow, false));
        let mut found: Vec<Chosen> = Vec::with_capacity(cut.len());
        for flow in cut {
            if let Some(choice) = self.best(flow) {
                let flow = Chosen { choice, ..*flow };
                self.load(&flow, true);
                found.push(flow);
            }
        }
        found.iter().for_each(|flow| self.load(flow, false));
        cut.iter().for_each(|flow| self.load(flow, true));
        found.iter().map(|flow| (flow.id, flow.choice)).collect()
    }

    fn load(&mut self, flow: &Chosen, comes: bool) {
        for slot in self.fabric.slots_of(flow.src, flow.dst, flow.choice).iter() {
            let load = &mut self.loads[slot];
            *load = if comes { *load + 1 } else { *load - 1 };
        }
    }

    fn best(&self, flow: &Chosen) -> Option<u32> {
        let fullest = |choice: u32| {
            let slots = self.fabric.slots_of(flow.src, flow.dst, choice);
            let full = |slot: usize| (u64::from(self.loads[slot]) + 1) * self.fabric.scale(slot);
            let is_there = slots.iter().all(|slot| !self.is_dead[slot]);
            is_there.then(|| (slots.iter().map(full).max(), choice))
        };
        let choices = self.fabric.choices_between(flow.src, flow.dst);
        Some(choices.filter_map(fullest).min()?.1)
    }
}
