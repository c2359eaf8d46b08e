//! What an order costs: the busiest link, the hops' times.

use super::super::Topology;
use super::super::shortest::RouteTree;
use crate::id::{DeviceId, LinkId, NpuId};
use crate::units::Time;

/// Message size that hops are judged by: large enough for bandwidth to weigh more than latency.
pub(super) const MESSAGE: u64 = 1 << 20;

/// Whether the last NPU sends to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Ring,
    Chain,
}

/// Cost of an order; less is better, in the order of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Estimate {
    /// Time for which the busiest link or switch is busy.
    pub load: Time,
    /// Sum over the hops of the time of a lone message.
    pub time: Time,
    /// The longest hop's time.
    pub longest: Time,
    /// How often a hop passes through a participant.
    pub passes: usize,
}

impl Estimate {
    /// Returns whether nothing much is to be gained: the load is least and the hops are near their bound.
    pub(crate) fn is_close_to(&self, bound: &Estimate) -> bool {
        self.load <= bound.load
            && self.passes == 0
            && self.time.as_ps() / 3 <= bound.time.as_ps() / 2
    }
}

/// Judges orders of one set of NPUs.
pub(super) struct Estimator<'a> {
    topology: &'a Topology,
    takes_part: Vec<bool>,
    bound: Estimate,
    chain_load: Time,
    fastest: Time,
}

impl<'a> Estimator<'a> {
    pub(crate) fn new(topology: &'a Topology, npus: &[NpuId]) -> Self {
        let mut takes_part = vec![false; topology.device_count()];
        npus.iter().for_each(|npu| takes_part[npu.index()] = true);
        let fastest = topology
            .links()
            .iter()
            .map(|link| link.latency + link.bandwidth.transmission(MESSAGE))
            .min();
        let (bound, chain_load) = bounds(topology, npus);
        Self {
            topology,
            takes_part,
            bound,
            chain_load,
            fastest: fastest.unwrap_or(Time::ZERO),
        }
    }

    /// Returns what no ring can beat.
    pub(crate) fn bound(&self) -> Estimate {
        self.bound
    }

    /// Returns the load that no chain can beat.
    pub(crate) fn chain_load(&self) -> Time {
        self.chain_load
    }

    /// Returns whether every NPU has a link to the next (the last to the first) of the greatest bandwidth.
    pub(crate) fn is_perfect(&self, order: &[NpuId]) -> bool {
        let Some(widest) = self
            .topology
            .links()
            .iter()
            .map(|link| link.bandwidth)
            .max()
        else {
            return false;
        };
        hops(order, Shape::Ring).all(|(src, dst)| {
            self.topology.out_links(src).iter().any(|&id| {
                let link = self.topology.link(id);
                link.dst == dst && link.bandwidth == widest
            })
        })
    }

    /// Cost of an order on default routes; the greatest where a hop has no way.
    pub(crate) fn estimate(&self, order: &[NpuId], shape: Shape) -> Estimate {
        let topology = self.topology;
        let mut load = vec![Time::ZERO; topology.links().len()];
        let mut switch_load = vec![Time::ZERO; topology.device_count()];
        let mut estimate = Estimate {
            load: Time::ZERO,
            time: Time::ZERO,
            longest: Time::ZERO,
            passes: 0,
        };
        for (src, dst) in hops(order, shape) {
            let Some(path) = self.route(src, dst) else {
                return Estimate {
                    load: Time::MAX,
                    time: Time::MAX,
                    longest: Time::MAX,
                    passes: usize::MAX,
                };
            };
            let mut time = Time::ZERO;
            for id in path {
                let link = topology.link(id);
                let busy = link.bandwidth.transmission(MESSAGE);
                time = time + link.latency + busy;
                load[id.index()] = load[id.index()] + busy;
                estimate.load = estimate.load.max(load[id.index()]);
                if let Some(limit) = topology.device(link.dst).limit {
                    let busy = limit.transmission(MESSAGE);
                    time = time + busy;
                    let through = &mut switch_load[link.dst.index()];
                    *through = *through + busy;
                    estimate.load = estimate.load.max(*through);
                }
                estimate.passes +=
                    usize::from(link.dst != dst && self.takes_part[link.dst.index()]);
            }
            estimate.time = estimate.time + time;
            estimate.longest = estimate.longest.max(time);
        }
        estimate
    }

    /// Returns the default route, without a search where a way of one link or two cannot be beaten.
    fn route(&self, src: DeviceId, dst: DeviceId) -> Option<Vec<LinkId>> {
        const FEW: usize = 64;
        let topology = self.topology;
        let (out, into) = (topology.out_links(src), topology.in_links(dst));
        let time = |id: LinkId| link_time(topology, id);
        let least = self.fastest + self.fastest;
        let direct = out.iter().filter(|&&id| topology.link(id).dst == dst);
        match direct.map(|&id| (time(id), id)).min() {
            Some((direct, id)) if direct <= least => return Some(vec![id]),
            _ => {}
        }
        if out.len() * into.len() <= FEW {
            let pairs = out.iter().flat_map(|&a| into.iter().map(move |&b| (a, b)));
            let meet = pairs.filter(|&(a, b)| topology.link(a).dst == topology.link(b).src);
            let found = meet.map(|(a, b)| (time(a) + time(b), a, b)).min();
            if let Some((_, a, b)) = found.filter(|&(time, ..)| time <= least) {
                return Some(vec![a, b]);
            }
        }
        RouteTree::to(topology, dst, MESSAGE, Some(src)).path(topology, src)
    }
}

fn hops(order: &[NpuId], shape: Shape) -> impl Iterator<Item = (DeviceId, DeviceId)> {
    let inner = order.windows(2).map(|pair| (pair[0], pair[1]));
    let close = (shape == Shape::Ring).then(|| (order[order.len() - 1], order[0]));
    inner
        .chain(close)
        .map(|(src, dst)| (src.device(), dst.device()))
}

/// Returns what no ring can beat, and the load that no chain can: each NPU sends over one of its links and receives
/// over one (in a chain the last does not send, the first does not receive).
fn bounds(topology: &Topology, npus: &[NpuId]) -> (Estimate, Time) {
    let busy = |id: &LinkId| topology.link(*id).bandwidth.transmission(MESSAGE);
    let least = |ids: &[LinkId]| ids.iter().map(busy).min().unwrap_or(Time::MAX);
    let send: Vec<Time> = npus
        .iter()
        .map(|npu| least(topology.out_links(npu.device())))
        .collect();
    let receive: Vec<Time> = npus
        .iter()
        .map(|npu| least(topology.in_links(npu.device())))
        .collect();
    let worst = |times: &[Time]| times.iter().copied().max().unwrap_or(Time::ZERO);
    let second = |times: &[Time]| {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        sorted[sorted.len() - 2]
    };
    let nearest_end = npus
        .iter()
        .map(|npu| {
            let times = topology
                .in_links(npu.device())
                .iter()
                .map(|&id| link_time(topology, id));
            times.min().unwrap_or(Time::ZERO)
        })
        .min()
        .unwrap_or(Time::ZERO);
    let time = npus
        .iter()
        .map(|npu| {
            let out = topology.out_links(npu.device()).iter();
            let way = |&id: &LinkId| {
                let to_switch = !topology.is_npu(topology.link(id).dst);
                link_time(topology, id) + if to_switch { nearest_end } else { Time::ZERO }
            };
            out.map(way).min().unwrap_or(Time::ZERO)
        })
        .sum();
    let bound = Estimate {
        load: worst(&send).max(worst(&receive)),
        time,
        longest: Time::ZERO,
        passes: 0,
    };
    (bound, second(&send).max(second(&receive)))
}

/// Returns time of a lone message over a link and, where it ends at a limited switch, through that.
fn link_time(topology: &Topology, id: LinkId) -> Time {
    let link = topology.link(id);
    let limit = topology.device(link.dst).limit;
    let through = limit.map_or(Time::ZERO, |limit| limit.transmission(MESSAGE));
    link.latency + link.bandwidth.transmission(MESSAGE) + through
}
