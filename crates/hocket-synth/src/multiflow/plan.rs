//! Parts, ways and timetable as a plan.

use std::collections::HashMap;

use super::timetable::{self, Step};
use super::{Flow, Routing, Shares};
use crate::bound::network::ArcNetwork;
use crate::collective::Collective;
use crate::graph::Lists;
use crate::id::{ChunkId, LinkId, NpuId, TransferId, narrow};
use crate::plan::{Chunks, LinkOrder, Op, Plan, PlanBuilder, PlanError, Transfer, Wait};
use crate::progress::Progress;
use crate::topology::Topology;

/// The ways of parts, cut where they meet an NPU.
#[derive(Clone, Debug)]
pub(crate) struct Legs {
    /// The legs of each part, by position in `links`.
    pub of: Lists<u32>,
    /// The links of each leg: one from NPU to NPU, or several through switches.
    pub links: Vec<Vec<LinkId>>,
    /// For each leg of each part, as in `of`, what a byte costs from there on.
    pub left: Vec<u64>,
}

impl Legs {
    /// Cuts ways into legs.
    pub(crate) fn new(network: &ArcNetwork, routing: &Routing) -> Self {
        let arcs = network.arcs();
        let inside = narrow(arcs.iter().filter(|arc| arc.internal).count());
        let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut legs = Legs {
            of: Lists::default(),
            links: Vec::new(),
            left: Vec::new(),
        };
        let mut own = Vec::new();
        for way in routing.ways.iter() {
            own.clear();
            let mut left: u64 = way.iter().map(|&arc| routing.prices[arc as usize]).sum();
            for leg in way.split_inclusive(|&arc| network.is_npu(arcs[arc as usize].dst)) {
                let id = match known.get(leg) {
                    Some(&id) => id,
                    None => {
                        let id = narrow(legs.links.len());
                        let links = leg.iter().filter(|&&arc| arc >= inside);
                        legs.links
                            .push(links.map(|&arc| LinkId(arc - inside)).collect());
                        known.insert(leg.to_vec(), id);
                        id
                    }
                };
                own.push(id);
                legs.left.push(left);
                left -= leg
                    .iter()
                    .map(|&arc| routing.prices[arc as usize])
                    .sum::<u64>();
            }
            legs.of.push(&own);
        }
        legs
    }

    /// Returns the number of transfers of a plan.
    pub(crate) fn steps(&self) -> usize {
        self.of.items().len()
    }
}

/// Returns the plan in which each part takes its way.
///
/// # Errors
/// [`PlanError::TooManyChunks`] for a demand without bytes; [`PlanError::TooLong`]; [`PlanError::Interrupted`].
pub(crate) fn plan(
    name: &str,
    topology: &Topology,
    collective: &Collective,
    flows: &[Flow],
    parts: &Shares,
    legs: &Legs,
    progress: &mut dyn Progress,
) -> Result<Plan, PlanError> {
    let demands = collective.demands();
    let mut pieces = vec![1; demands.len()];
    for (f, flow) in flows.iter().enumerate() {
        pieces[flow.demand as usize] = parts.of(f).len().max(1);
    }
    let mut chunks = Chunks::with_capacity(pieces.iter().sum());
    let mut first = Vec::with_capacity(demands.len());
    let mut next = 0;
    for (d, (demand, &pieces)) in (0..).zip(demands.iter().zip(&pieces)) {
        first.push(next);
        next += narrow(pieces);
        chunks.split_one(d, demand.bytes, pieces)?;
    }
    let npus = narrow(topology.npu_count());
    let turn: Vec<u32> = (0..parts.len())
        .map(|part| {
            let f = parts.flow[part] as usize;
            let apart = (flows[f].dst.0 + npus - flows[f].src.0) % npus;
            narrow(part - parts.of(f).start) * npus + apart
        })
        .collect();
    let order = timetable::order(topology, legs, &parts.bytes, &turn, progress)?;
    let mut plan = PlanBuilder::new(name, collective, chunks);
    plan.link_order(LinkOrder::Plan);
    plan.reserve(order.len());
    let paths: Vec<u32> = legs.links.iter().map(|links| plan.path(links)).collect();
    let mut before = vec![Wait::NOTHING; parts.len()];
    for Step { part, leg } in order {
        let f = parts.flow[part as usize] as usize;
        let way = legs.of.get(part as usize)[leg as usize] as usize;
        let links = &legs.links[way];
        let chunk = first[flows[f].demand as usize] + part - narrow(parts.of(f).start);
        let id: TransferId = plan.push(Transfer {
            chunk: ChunkId(chunk),
            count: 1,
            src: NpuId(topology.link(links[0]).src.0),
            dst: NpuId(topology.link(links[links.len() - 1]).dst.0),
            op: Op::Copy,
            wait: before[part as usize],
            path: Some(paths[way]),
        });
        before[part as usize] = Wait::on(id);
    }
    Ok(plan.finish())
}
