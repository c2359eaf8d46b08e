//! What must get to every other node, and how late each node can begin to send it on.
//!
//! A node is a group of NPUs, as the topology states them, with the switches that belong to it alone.

use super::degree::Side;
use super::fill::{Pipe, capacity, fill};
use super::needs::Decides;
use super::network::{Arc, ArcNetwork, FAR, Search};
use super::witness::saturating_bandwidth;
use super::{Candidate, Fidelity, Problem, WORK_BETWEEN_REPORTS, Witness};
use crate::id::{DeviceId, NpuId, narrow};
use crate::progress::{Interrupted, Paced, Progress};
use crate::units::Time;

/// The number of a node of the network (in the sense of a graph) that is in no group.
const NONE: u32 = u32::MAX;

/// Participants up to which what encloses each of them is looked at.
const MOST_NPUS: usize = 256;

/// Which devices form a node, and the arcs that lead out of it, forwards and backwards in time.
pub(super) struct Nodes {
    of: Vec<u32>,
    count: usize,
    leaving: [Vec<u32>; 2],
    before: Search,
    after: Search,
    onward: Search,
}

impl Nodes {
    /// Returns `None` where the topology states no nodes, or fewer than two, or the fidelity knows other times.
    pub(crate) fn new(problem: &Problem, groups: &[Vec<NpuId>]) -> Option<Self> {
        let is_known = matches!(
            problem.options.fidelity,
            Fidelity::Link | Fidelity::Packet { .. }
        );
        if groups.len() < 2 || !is_known {
            return None;
        }
        let (of, count) = assigned(&problem.network, groups);
        let leaving = [&problem.network, &problem.reversed].map(|network| {
            let leaves = |&arc: &u32| {
                let arc = &network.arcs()[arc as usize];
                of[arc.src as usize] != NONE && of[arc.src as usize] != of[arc.dst as usize]
            };
            let arcs = 0..narrow(network.arcs().len());
            arcs.filter(leaves).collect()
        });
        Some(Self {
            of,
            count,
            leaving,
            before: Search::default(),
            after: Search::default(),
            onward: Search::default(),
        })
    }

    /// Bounds the time by what leaves all nodes for the data of one NPU, or for the sums that it wants.
    ///
    /// Let v alone have data that members of k other nodes want, or contribute to sums that they want, and let r_j be
    /// one such member of node j. For each byte and each j there is a chain of transfers from v to r_j. One of them is
    /// the last that starts in another node than j. The next one starts in j, so it ends there, since every place that
    /// copies or sums is in some node. So what it sends over the first arc out of its own node serves one j alone, and
    /// the bytes that leave all nodes so are at least k times those that v has. Over an arc that they cannot reach
    /// before a, by way of a place in its node that copies or sums, and behind which the nearest r_j is b away, they
    /// leave within T - a - b.
    ///
    /// For sums that v wants it is the same backwards in time, with arcs into nodes.
    ///
    /// With n nodes that each send and receive at B, and a latency d between them, S bytes for all others take
    /// at least (n - 1) / n S / B + (2 - 1 / n) d, or (n - 1) S / B + d if that is less.
    ///
    /// Where k is more than one, the arcs out of the node of v bound the time by themselves: [`Nodes::first_out`].
    ///
    /// # Complexity
    /// Five searches, and the arcs out of nodes.
    pub(crate) fn offer(
        &mut self,
        problem: &Problem,
        rank: usize,
        side: Side,
        searched: &Search,
        best: &mut Candidate,
    ) {
        let npu = problem.needs.npus()[rank];
        let distances = searched.distances();
        let (amount, bytes, last) = self.served(problem, rank, side, distances);
        if amount == 0 {
            return;
        }
        let [network, opposite] = along(problem, side);
        let leaving = &self.leaving[usize::from(side == Side::Ingress)];
        let of = &self.of;
        let places = network
            .stations()
            .map(|place| (place, distances[place as usize]));
        let is_inside = |arc: &Arc| of[arc.src as usize] == of[arc.dst as usize];
        let before = self.before.onward(network, places, is_inside);
        let after = self
            .after
            .run(opposite, last.iter().copied(), |arc| arc.latency);
        // Where one other node wants them, what leaves it is of no use.
        let useless = match last[..] {
            [only] => self.of[only as usize],
            _ => NONE,
        };
        let pipe = |&number: &u32| {
            let arc = &network.arcs()[number as usize];
            if of[arc.src as usize] == useless {
                return None;
            }
            let delay = arc.delay(before[arc.src as usize], after[arc.dst as usize]);
            (delay < FAR).then_some(Pipe {
                delay,
                capacity: arc.capacity.into(),
            })
        };
        let mut pipes: Vec<Pipe> = leaving.iter().filter_map(pipe).collect();
        let time = fill(&mut pipes, amount, problem.needs.parts());
        if time < Time::MAX {
            best.offer(time, || Witness::Nodes {
                npu,
                leaving: side == Side::Egress,
                bytes: problem.needs.in_bytes(bytes),
                others: last.len(),
                bandwidth: saturating_bandwidth(capacity(&pipes)),
                latency: Time::from_ps(pipes[0].delay),
            });
        }
        if last.len() > 1 {
            let home = of[npu.index()];
            let [direct, passed_on] = self.first_out(problem, side, home, last.len() as u128);
            let bandwidth = capacity(&direct);
            let soonest = passed_on.iter().map(|pipe| pipe.delay).min();
            let mut pipes = [direct, passed_on].concat();
            let time = fill(&mut pipes, amount, problem.needs.parts());
            if time < Time::MAX {
                best.offer(time, || Witness::FirstOut {
                    npu,
                    leaving: side == Side::Egress,
                    bytes: problem.needs.in_bytes(bytes),
                    others: last.len(),
                    bandwidth: saturating_bandwidth(bandwidth),
                    latency: soonest.map_or(time, Time::from_ps),
                });
            }
        }
    }

    /// Returns the arcs out of a node, each as a pipe to one of k other nodes, and each as a later one to the k - 1
    /// that a byte can be passed on to, for k times the bytes of its NPU. [`Nodes::offer`] has searched before and
    /// after.
    ///
    /// In the terms of [`Nodes::offer`]: let c be the least time from the start of an arc out of the node of v, by way of
    /// a place in another node that copies or sums and the arcs out of that node, to some r_j. What counts is the first arc
    /// out of the node of a transfer that starts at a place in it. If no chain of a byte leaves the node for the first time
    /// over an arc before T - c of that arc, all its k last transfers into some j start in the node of v: had one started
    /// in another, its chain would have left the node of v at the latest c before the end. So it leaves that node k times,
    /// within c - b. Every other byte leaves it for the first time by T - c of some arc, and no sooner than a. With S
    /// bytes, B and d as above and k = n - 1 others, T is at least S / B + (2 - 1 / k) d.
    fn first_out(
        &mut self,
        problem: &Problem,
        side: Side,
        home: u32,
        others: u128,
    ) -> [Vec<Pipe>; 2] {
        let [network, opposite] = along(problem, side);
        let leaving = &self.leaving[usize::from(side == Side::Ingress)];
        let arcs = network.arcs();
        let of = &self.of;
        let [own, foreign]: [Vec<&Arc>; 2] = [true, false].map(|is_own| {
            let leaving = leaving.iter().map(|&number| &arcs[number as usize]);
            leaving
                .filter(|arc| (of[arc.src as usize] == home) == is_own)
                .collect()
        });
        let after = self.after.distances();
        let exits = foreign.iter().map(|arc| {
            let rest = after[arc.dst as usize].min(FAR - 1);
            (arc.src, rest.saturating_add(arc.latency).min(FAR - 1))
        });
        let to_exit = self.onward.onward(opposite, exits, |_| true);
        let places = network
            .stations()
            .filter(|&place| of[place as usize] != home);
        let places: Vec<(u32, u64)> = places
            .map(|place| (place, to_exit[place as usize]))
            .filter(|&(_, way)| way < FAR - 1)
            .collect();
        let passed_on = self.onward.onward(opposite, places, |_| true);
        let before = self.before.distances();
        let pipes = |after: &[u64], times: u128| -> Vec<Pipe> {
            let pipe = |arc: &&Arc| Pipe {
                delay: arc.delay(before[arc.src as usize], after[arc.dst as usize]),
                capacity: u128::from(arc.capacity) * times,
            };
            let pipes = own.iter().map(pipe);
            pipes.filter(|pipe| pipe.delay < FAR).collect()
        };
        [pipes(after, 1), pipes(passed_on, others - 1)]
    }

    /// Bounds the time by what must enter or leave a node for one NPU of it.
    ///
    /// What an NPU w wants and nobody in its node has (or a sum that w wants and somebody elsewhere contributes to) must
    /// enter the node and go on to w. A link into the node carries it within T - a - b, where a is how soon data of
    /// another node can be at the link's end, and b is the way from there to w. What leaves w is the same backwards in
    /// time. Unlike `ingress` this counts the links of the node, and unlike the other cuts the way on to w.
    ///
    /// # Errors
    /// [`Interrupted`].
    ///
    /// # Complexity
    /// Two searches for each node, and two for each participant, or for one of each node beyond [`MOST_NPUS`].
    pub(crate) fn enclose(
        &mut self,
        problem: &Problem,
        best: &mut Candidate,
        progress: &mut dyn Progress,
    ) -> Result<(), Interrupted> {
        let npus = problem.needs.npus();
        let most = if npus.len() > MOST_NPUS {
            1
        } else {
            npus.len()
        };
        let mut watch = Paced::new(progress, "bound: nodes", WORK_BETWEEN_REPORTS);
        let mut members = self.members(problem);
        let looked_at: u64 = members.iter().map(|it| it.len().min(most) as u64).sum();
        let mut done = 0;
        for (group, members) in (0..).zip(&mut members) {
            members.truncate(most);
            if members.is_empty() {
                continue;
            }
            let is_own = |npu: NpuId| self.of[npu.index()] == group;
            for (side, leaving) in [Side::Egress, Side::Ingress].into_iter().zip(&self.leaving) {
                let [network, opposite] = along(problem, side);
                let others = npus.iter().filter(|&&npu| !is_own(npu)).map(|npu| npu.0);
                let after = self.after.run(opposite, others, |arc| arc.latency);
                for &rank in members.iter() {
                    let mut bytes = 0;
                    match side {
                        Side::Egress => problem.needs.leaving(rank, |amount, others| {
                            let must = others.iter().any(|&npu| !is_own(npu));
                            bytes += u128::from(amount) * u128::from(must);
                        }),
                        Side::Ingress => problem.needs.entering(rank, |amount, decides, others| {
                            let must = match decides {
                                Decides::Nearest => others.iter().all(|&npu| !is_own(npu)),
                                Decides::Farthest => others.iter().any(|&npu| !is_own(npu)),
                            };
                            bytes += u128::from(amount) * u128::from(must);
                        }),
                    }
                    let before = self.before.run(network, [npus[rank].0], |arc| arc.latency);
                    let arcs = leaving
                        .iter()
                        .map(|&number| &network.arcs()[number as usize]);
                    let own = arcs.filter(|arc| self.of[arc.src as usize] == group);
                    let pipes = own.map(|arc| Pipe {
                        delay: arc.delay(before[arc.src as usize], after[arc.dst as usize]),
                        capacity: arc.capacity.into(),
                    });
                    let mut pipes: Vec<Pipe> = pipes.filter(|pipe| pipe.delay < FAR).collect();
                    let time = fill(&mut pipes, bytes, problem.needs.parts());
                    if time < Time::MAX {
                        best.offer(time, || Witness::Cut {
                            npus: problem.network.npus().filter(|&npu| is_own(npu)).collect(),
                            switches: switches(problem, &self.of, group),
                            leaving: side == Side::Egress,
                            bytes: problem.needs.in_bytes(bytes),
                            bandwidth: saturating_bandwidth(capacity(&pipes)),
                        });
                    }
                }
                done += members.len() as u64;
                let links = problem.network.arcs().len() as u64;
                let work = links * (members.len() as u64 + 1);
                watch.count(work, done, 2 * looked_at)?;
            }
        }
        Ok(())
    }

    /// Returns the ranks of the participants in each group.
    fn members(&self, problem: &Problem) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.count];
        for (rank, npu) in problem.needs.npus().iter().enumerate() {
            members[self.of[npu.index()] as usize].push(rank);
        }
        members
    }

    /// Returns what leaves the NPU of a rank (or enters it) for other nodes: bytes times nodes, the bytes alone, and
    /// the farthest NPU of each such node.
    fn served(
        &self,
        problem: &Problem,
        rank: usize,
        side: Side,
        distances: &[u64],
    ) -> (u128, u128, Vec<u32>) {
        let npu = problem.needs.npus()[rank];
        let own = self.of[npu.index()];
        let mut farthest: Vec<Option<u32>> = vec![None; self.count];
        let (mut amount, mut total) = (0, 0);
        // One member of each node must be wanted by all demands that count: those that the same NPUs want as the first.
        let mut first: Option<Vec<NpuId>> = None;
        let mut add = |bytes: u64, others: &[NpuId]| {
            match &first {
                Some(first) if first != others => return,
                Some(_) => {}
                None => {
                    for other in others.iter().filter(|other| self.of[other.index()] != own) {
                        let far = &mut farthest[self.of[other.index()] as usize];
                        if far.is_none_or(|far| distances[far as usize] < distances[other.index()])
                        {
                            *far = Some(other.0);
                        }
                    }
                    first = Some(others.to_vec());
                }
            }
            let count = farthest.iter().flatten().count() as u128;
            amount += u128::from(bytes) * count;
            total += u128::from(bytes);
        };
        match side {
            Side::Egress => problem.needs.leaving(rank, add),
            Side::Ingress => problem.needs.entering(rank, |bytes, decides, others| {
                if decides == Decides::Farthest {
                    add(bytes, others);
                }
            }),
        }
        (amount, total, farthest.into_iter().flatten().collect())
    }
}

/// Returns the network along the way of what leaves, or of what enters backwards in time; and the same turned round.
fn along<'a>(problem: &'a Problem<'_>, side: Side) -> [&'a ArcNetwork; 2] {
    match side {
        Side::Egress => [&problem.network, &problem.reversed],
        Side::Ingress => [&problem.reversed, &problem.network],
    }
}

/// Returns the switches of a group.
fn switches(problem: &Problem, of: &[u32], group: u32) -> Vec<DeviceId> {
    let devices = 0..narrow(problem.network.device_count());
    let switches = devices.filter(|&device| !problem.network.is_npu(device));
    let own = switches.filter(|&device| of[device as usize] == group);
    own.map(DeviceId).collect()
}

/// By node of the network which group it is in, and how many groups there are. A switch belongs to a group if all its
/// neighbours that are in one are in this one. Other places that copy or sum are groups of their own; other switches
/// are in none.
pub(super) fn assigned(network: &ArcNetwork, groups: &[Vec<NpuId>]) -> (Vec<u32>, usize) {
    let mut of = vec![NONE; network.node_count()];
    for (group, npus) in (0..).zip(groups) {
        for npu in npus {
            of[npu.index()] = group;
        }
    }
    loop {
        let joined = |node: u32| {
            let out = network
                .arcs_out(node)
                .iter()
                .map(|&arc| network.arcs()[arc as usize].dst);
            let into = network
                .arcs_in(node)
                .iter()
                .map(|&arc| network.arcs()[arc as usize].src);
            let mut groups = out
                .chain(into)
                .map(|other| of[other as usize])
                .filter(|&group| group != NONE);
            let first = groups.next()?;
            groups.all(|group| group == first).then_some(first)
        };
        let open = (0..narrow(of.len())).filter(|&node| of[node as usize] == NONE);
        let found: Vec<(u32, u32)> = open
            .filter_map(|node| Some((node, joined(node)?)))
            .collect();
        if found.is_empty() {
            break;
        }
        for (node, group) in found {
            of[node as usize] = group;
        }
    }
    let mut count = narrow(groups.len());
    for (node, group) in (0..).zip(&mut of) {
        if *group == NONE && network.is_station(node) {
            *group = count;
            count += 1;
        }
    }
    (of, count as usize)
}
