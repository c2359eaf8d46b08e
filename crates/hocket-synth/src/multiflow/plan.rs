//! Parts, ways and timetable as a plan.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::timetable::{self, Order, Step};
use crate::bound::multiflow::{Flow, Routing, Shares};
use crate::bound::network::ArcNetwork;
use crate::collective::Collective;
use crate::graph::Lists;
use crate::id::{ChunkId, LinkId, NpuId, TransferId, fit, narrow};
use crate::plan::{Chunks, LinkOrder, Op, Plan, PlanBuilder, PlanError, Transfer, Wait};
use crate::progress::Progress;
use crate::topology::Topology;
use crate::units::{Seed, Time};

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

    /// Returns the same over links that stand for theirs.
    pub(crate) fn folded(&self, stands_for: impl Fn(LinkId) -> LinkId) -> Self {
        let mut known: HashMap<Vec<LinkId>, u32> = HashMap::new();
        let mut links = Vec::new();
        let mut name = |leg: &Vec<LinkId>| {
            let folded: Vec<LinkId> = leg.iter().map(|&link| stands_for(link)).collect();
            *known.entry(folded).or_insert_with_key(|folded| {
                links.push(folded.clone());
                narrow(links.len()) - 1
            })
        };
        let names: Vec<u32> = self.links.iter().map(&mut name).collect();
        let of = self.of.items().iter().map(|&leg| names[leg as usize]);
        Self {
            of: Lists::from_parts(self.of.offsets().to_vec(), of.collect()),
            links,
            left: self.left.clone(),
        }
    }

    /// Returns the number of transfers of a plan.
    pub(crate) fn steps(&self) -> usize {
        self.of.items().len()
    }
}

/// How links choose among the parts that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// What goes on to the link with most to do ([`Order::MostAhead`]).
    MostAhead,
    /// In proportion to the bytes of each way ([`Order::VirtualTime`]).
    VirtualTime,
}

/// Returns the plan in which each part takes its way, when `busy` says: the same legs, over links that stand for those that
/// are as busy.
///
/// # Errors
/// [`PlanError::TooManyChunks`] for a demand without bytes; [`PlanError::TooLong`]; [`PlanError::Interrupted`].
pub(crate) fn plan(
    name: &str,
    topology: &Topology,
    collective: &Collective,
    flows: &[Flow],
    (parts, legs, busy): (&Shares, &Legs, &Legs),
    service: Service,
    progress: &mut dyn Progress,
) -> Result<Plan, PlanError> {
    let (chunks, first) = chunks(collective, flows, parts)?;
    let given = match service {
        Service::MostAhead => turns(topology, flows, parts),
        Service::VirtualTime => starts(flows.len(), parts, legs),
    };
    let order = match service {
        Service::MostAhead => Order::MostAhead { turns: &given },
        Service::VirtualTime => Order::VirtualTime { starts: &given },
    };
    let order = timetable::order(topology, busy, &parts.bytes, order, progress)?;
    let mut plan = PlanBuilder::new(name, collective, chunks);
    plan.link_order(LinkOrder::Plan);
    plan.reserve(order.len());
    let paths: Vec<u32> = legs.links.iter().map(|links| plan.path(links)).collect();
    let mut before = vec![Wait::NOTHING; parts.flow.len()];
    for Step { part, leg } in order {
        let f = parts.flow[part as usize] as usize;
        let way = legs.of.get(part as usize)[leg as usize] as usize;
        let links = &legs.links[way];
        let chunk: u32 = first[flows[f].demand as usize] + part - narrow(parts.of(f).start);
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

/// Returns the plan in which each part takes its whole way in one transfer, which NPUs on it pass on as switches do. Of the
/// parts that wait for a link, the one with the dearest way goes first, by the prices of arcs given.
///
/// # Errors
/// [`PlanError::TooManyChunks`] for a demand without bytes.
pub(crate) fn whole(
    name: &str,
    topology: &Topology,
    collective: &Collective,
    flows: &[Flow],
    network: &ArcNetwork,
    (parts, ways, prices): (&Shares, &Lists<u32>, &[u64]),
) -> Result<Plan, PlanError> {
    let (chunks, first) = chunks(collective, flows, parts)?;
    let arcs = network.arcs();
    let inside = narrow(arcs.iter().filter(|arc| arc.internal).count());
    let price = |part: usize| -> u64 {
        let way = ways.get(part).iter();
        way.map(|&arc| prices[arc as usize]).sum()
    };
    let turns = turns(topology, flows, parts);
    let mut order: Vec<u32> = (0..narrow(parts.flow.len())).collect();
    order.sort_by_cached_key(|&part| (Reverse(price(part as usize)), turns[part as usize]));
    let mut plan = PlanBuilder::new(name, collective, chunks);
    plan.link_order(LinkOrder::Priority);
    plan.reserve(order.len());
    let mut links: Vec<LinkId> = Vec::new();
    for part in order {
        let way = ways.get(part as usize).iter();
        links.clear();
        links.extend(
            way.filter(|&&arc| arc >= inside)
                .map(|arc| LinkId(arc - inside)),
        );
        let f = parts.flow[part as usize] as usize;
        let path = Some(plan.path(&links));
        plan.push(Transfer {
            chunk: ChunkId(first[flows[f].demand as usize] + part - narrow(parts.of(f).start)),
            count: 1,
            src: flows[f].src,
            dst: flows[f].dst,
            op: Op::Copy,
            wait: Wait::NOTHING,
            path,
        });
    }
    Ok(plan.finish())
}

/// Returns the chunks of all demands, one for each part, and the first of each demand.
///
/// # Errors
/// [`PlanError::TooManyChunks`] for a demand without bytes.
fn chunks(
    collective: &Collective,
    flows: &[Flow],
    parts: &Shares,
) -> Result<(Chunks, Vec<u32>), PlanError> {
    let demands = collective.demands();
    let mut flow_of = vec![None; demands.len()];
    for (f, flow) in flows.iter().enumerate() {
        flow_of[flow.demand as usize] = Some(parts.of(f)).filter(|parts| !parts.is_empty());
    }
    let mut chunks = Chunks::with_capacity(demands.len() + parts.flow.len());
    let mut first = Vec::with_capacity(demands.len());
    for (d, (demand, own)) in (0..).zip(demands.iter().zip(flow_of)) {
        first.push(narrow(chunks.len()));
        match own {
            Some(own) => own.for_each(|part| chunks.push(d, parts.bytes[part])),
            None => chunks.split_one(d, demand.bytes, 1)?,
        }
    }
    Ok((chunks, first))
}

/// How many times as many transfers may have begun on a link as are under way at its mean rate, and how many more: links send in
/// bursts.
const MARGIN: usize = 4;
const AHEAD: usize = 8;

/// Returns the plan, which takes so long, so that no transfer that waits for nothing begins long before its turn; `None` if no
/// transfer waits.
///
/// Links that share their bandwidth among all that is ready else send what has far to go too late. As many may have begun on a
/// link and not ended as it begins while one is under way (Little's law: L = lambda W), with a margin.
pub(crate) fn windowed(plan: &Plan, topology: &Topology, time: Time) -> Option<Plan> {
    let all =
        || (0..plan.len()).map(|id| (TransferId::from(id), plan.transfer(TransferId::from(id))));
    let links = |transfer: &Transfer| Some(plan.paths().get(transfer.path? as usize));
    let mut begins = vec![0u64; topology.links().len()];
    for (_, transfer) in all().filter(|(_, transfer)| transfer.wait == Wait::NOTHING) {
        begins[links(&transfer)?[0].index()] += 1;
    }
    if begins.iter().sum::<u64>() == plan.len() as u64 {
        return None;
    }
    let mut made = PlanBuilder::new(plan.algorithm(), plan.collective(), plan.chunks().clone());
    made.link_order(plan.link_order());
    made.reserve(plan.len());
    let paths: Vec<u32> = plan.paths().iter().map(|path| made.path(path)).collect();
    let mut begun = vec![Vec::new(); topology.links().len()];
    for (id, mut transfer) in all() {
        if transfer.wait == Wait::NOTHING {
            let way = links(&transfer)?;
            let first = way[0].index();
            let length = length(topology, way, plan.bytes(id));
            let under_way = u128::from(begins[first]) * u128::from(length.as_ps());
            let under_way: usize = fit(under_way.div_ceil(time.as_ps().max(1).into()));
            let begun: &mut Vec<TransferId> = &mut begun[first];
            if let Some(at) = begun.len().checked_sub(AHEAD + MARGIN * under_way) {
                transfer.wait = Wait::on(begun[at]);
            }
            begun.push(id);
        }
        transfer.path = transfer.path.map(|path| paths[path as usize]);
        made.push(transfer);
    }
    Some(made.finish())
}

/// Returns how long a transfer of so many bytes is on its way where no other is.
fn length(topology: &Topology, way: &[LinkId], bytes: u64) -> Time {
    let links = way.iter().map(|&link| topology.link(link));
    links
        .map(|link| link.bandwidth.transmission(bytes) + link.latency)
        .sum()
}

/// Returns the turn of each part: sources start with different destinations, and the first part of every flow goes
/// before the second of any.
fn turns(topology: &Topology, flows: &[Flow], parts: &Shares) -> Vec<u32> {
    let npus = narrow(topology.npu_count());
    let turn = |part: usize| {
        let f = parts.flow[part] as usize;
        let apart = (flows[f].dst.0 + npus - flows[f].src.0) % npus;
        narrow(part - parts.of(f).start) * npus + apart
    };
    (0..parts.flow.len()).map(turn).collect()
}

/// Returns when each part starts, as a share of the time, of 2^32: the parts of a way at equal distances, after a
/// random one of their own.
///
/// # Source
/// Leighton, Maggs, Rao, Packet routing and job-shop scheduling in O(congestion + dilation) steps, 1994: random delays.
fn starts(flows: usize, parts: &Shares, legs: &Legs) -> Vec<u32> {
    let mut seed = Seed(0);
    let mut starts = vec![0; parts.flow.len()];
    let mut ways: HashMap<&[u32], Vec<usize>> = HashMap::new();
    for flow in 0..flows {
        for part in parts.of(flow) {
            ways.entry(legs.of.get(part)).or_default().push(part);
        }
        // In the order of their first parts, as hash tables have none.
        for part in parts.of(flow) {
            let Some(same) = ways.remove(legs.of.get(part)) else {
                continue;
            };
            let phase = seed.next_u64() >> u32::BITS;
            for (k, &part) in (0..).zip(&same) {
                let start = ((k << u32::BITS) + phase) / same.len() as u64;
                starts[part] = fit(start);
            }
        }
    }
    starts
}
