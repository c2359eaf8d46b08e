//! Plans for a collective: a named algorithm's, and one of random trees over random paths.

use std::sync::Arc;

use hocket_core::algorithms::{Algorithm, PlanOptions, check_applicable, plan};
use hocket_core::bound::{BoundOptions, bound};
use hocket_core::collective::{Collective, Demand};
use hocket_core::id::{ChunkId, DeviceId, LinkId, NpuId, fit, narrow};
use hocket_core::plan::{Chunks, Op, Plan, PlanBuilder, Transfer, Wait};
use hocket_core::progress::Silent;
use hocket_core::topology::Topology;
use hocket_core::units::{Seed, Time};
use hocket_core::verify::{Code, Verified, VerifyError, VerifyReport, verify};

use crate::tally::Tally;

/// Proved plans, none where data cannot get where it is wanted.
pub(crate) fn plans(
    topology: &Topology,
    collective: &Collective,
    seed: &mut Seed,
    tally: &mut Tally,
) -> Vec<Verified> {
    if bound(topology, collective, &BoundOptions::default(), &mut Silent)
        .expect("nobody stops it")
        .time
        == Time::MAX
    {
        tally.refuse("out of reach");
        return Vec::new();
    }
    let topology = Arc::new(topology.clone());
    let drawn = at_random(&topology, collective, seed);
    if drawn.is_none() {
        tally.refuse("drawn where there is no way");
    }
    let made = [by_algorithm(&topology, collective, seed, tally), drawn];
    let mut proved = Vec::new();
    for plan in made.into_iter().flatten() {
        tally.plan(plan.algorithm());
        match verify(Arc::new(plan), topology.clone(), &mut Silent) {
            Ok(verified) => proved.push(verified),
            // Random trees do not ask what a switch can.
            Err(VerifyError::Wrong(report)) if is_beyond_a_switch(&report) => {
                tally.refuse("beyond what a switch can");
            }
            Err(error) => tally.wrong(format!("a plan is wrong: {error}")),
        }
    }
    proved
}

fn is_beyond_a_switch(report: &VerifyReport) -> bool {
    let mut violations = report.violations().iter();
    violations.all(|violation| violation.code == Code::SwitchCannot)
}

/// Of an algorithm that applies, in a random number of slices.
fn by_algorithm(
    topology: &Topology,
    collective: &Collective,
    seed: &mut Seed,
    tally: &mut Tally,
) -> Option<Plan> {
    let applies = |it: &Algorithm| check_applicable(topology, collective, *it).is_ok();
    let able: Vec<Algorithm> = Algorithm::ALL.into_iter().filter(applies).collect();
    let algorithm = *able.get(seed.below(able.len().max(1)))?;
    let options = PlanOptions {
        chunks: Some(1 + seed.below(4)),
        effort: 2_000,
        seed: seed.next_u64(),
        ..PlanOptions::new(algorithm)
    };
    let made = plan(topology, collective, &options, &mut Silent);
    if made.is_err() {
        tally.refuse("too little to cut");
    }
    made.ok()
}

/// Trees of random messages, by random ways.
struct Draft<'a> {
    topology: &'a Topology,
    builder: PlanBuilder,
    seed: &'a mut Seed,
    /// Whether messages take ways of their own, and NPUs that take no part help, and switches that can.
    roams: bool,
    /// By NPU or switch, what it sent last, where they send one message after the other.
    turns: Option<Vec<Wait>>,
}

fn at_random(topology: &Topology, collective: &Collective, seed: &mut Seed) -> Option<Plan> {
    let demands = collective.demands();
    let mut chunks = Chunks::with_capacity(2 * demands.len());
    let pieces = [0, 1, 2, 6][seed.below(4)];
    for (number, demand) in demands.iter().enumerate() {
        let mut left = demand.bytes;
        for _ in 0..pieces {
            let piece = seed.below(fit::<usize, _>(left) + 1) as u64;
            if piece > 0 && piece < left {
                chunks.push(narrow(number), piece);
                left -= piece;
            }
        }
        if left > 0 {
            chunks.push(narrow(number), left);
        }
    }
    let of = chunks.demand().to_vec();
    let builder = PlanBuilder::new("random", collective, chunks);
    let roams = seed.below(2) == 0;
    let turns = (seed.below(2) == 0).then(|| vec![Wait::NOTHING; topology.end_count()]);
    let mut draft = Draft {
        topology,
        builder,
        seed,
        roams,
        turns,
    };
    for (chunk, &demand) in of.iter().enumerate() {
        draft.chunk(narrow(chunk), &demands[demand as usize], collective.npus())?;
    }
    Some(draft.builder.finish())
}

/// What an NPU has summed so far.
struct Heap {
    npu: NpuId,
    /// The copy that it began with, where it had nothing of its own.
    copied: Wait,
    /// All that came.
    waits: Vec<Wait>,
}

impl Draft<'_> {
    /// Has one chunk summed, where it is to be, and spread.
    fn chunk(&mut self, chunk: u32, demand: &Demand, npus: &[NpuId]) -> Option<()> {
        let holders = demand.holders.members(npus);
        let takers = demand.wanted.members(npus);
        let mut have: Vec<(NpuId, Wait)> =
            holders.iter().map(|&npu| (npu, Wait::NOTHING)).collect();
        if demand.reduced && holders.len() > 1 {
            let root = takers[self.seed.below(takers.len())];
            have = self.sum(chunk, holders, root)?;
        }
        let mut lacking: Vec<NpuId> = takers.to_vec();
        lacking.retain(|npu| have.iter().all(|(other, _)| other != npu));
        while !lacking.is_empty() {
            let mut taker = lacking[self.seed.below(lacking.len())];
            if let Some(helper) = self.helper(|npu| {
                !holders.contains(&npu) && have.iter().all(|&(other, _)| other != npu)
            }) {
                taker = helper;
            }
            lacking.retain(|&npu| npu != taker);
            let (holder, wait) = have[self.seed.below(have.len())];
            let sent = self.send(chunk, holder, taker, Op::Copy, wait)?;
            have.push((taker, sent));
        }
        Some(())
    }

    /// Merges contributions, two at a time, until all are at the root; who has the whole sum then.
    fn sum(&mut self, chunk: u32, holders: &[NpuId], root: NpuId) -> Option<Vec<(NpuId, Wait)>> {
        let heap = |&npu: &NpuId| Heap {
            npu,
            copied: Wait::NOTHING,
            waits: Vec::new(),
        };
        let mut pool: Vec<Heap> = holders.iter().map(heap).collect();
        let mut fresh: Vec<NpuId> = Vec::new();
        if !holders.contains(&root) {
            fresh.push(root);
        }
        if let Some(helper) = self.helper(|npu| npu != root && !holders.contains(&npu)) {
            fresh.push(helper);
        }
        let mut whole: Vec<(NpuId, Wait)> = Vec::new();
        loop {
            if let [all] = &pool[..] {
                whole.push((all.npu, self.builder.all_of(&all.waits)));
                if all.npu == root {
                    return Some(whole);
                }
            }
            let senders: Vec<usize> = (0..pool.len()).filter(|&i| pool[i].npu != root).collect();
            let from = senders[self.seed.below(senders.len())];
            let Heap {
                npu: src,
                mut waits,
                ..
            } = pool.swap_remove(from);
            if pool.is_empty() || !fresh.is_empty() && self.seed.below(4) == 0 {
                let dst = fresh.remove(self.seed.below(fresh.len()));
                let wait = self.builder.all_of(&waits);
                let copied = self.send(chunk, src, dst, Op::Copy, wait)?;
                pool.push(Heap {
                    npu: dst,
                    copied,
                    waits: vec![copied],
                });
                continue;
            }
            let to = self.seed.below(pool.len());
            // A sum into a place that was copied to comes after the copy.
            waits.push(pool[to].copied);
            let wait = self.builder.all_of(&waits);
            let sent = self.send(chunk, src, pool[to].npu, Op::Reduce, wait)?;
            pool[to].waits.push(sent);
        }
    }

    /// Sometimes, an NPU that may help, or a switch that can.
    fn helper(&mut self, may: impl Fn(NpuId) -> bool) -> Option<NpuId> {
        let npu = NpuId::from(self.seed.below(self.topology.end_count()));
        let may = |npu: NpuId| self.topology.can_end(npu.device()) && may(npu);
        (self.roams && self.seed.below(4) == 0 && may(npu)).then_some(npu)
    }

    fn send(&mut self, chunk: u32, src: NpuId, dst: NpuId, op: Op, wait: Wait) -> Option<Wait> {
        let way = self.way(src, dst)?;
        let path = (self.roams && self.seed.below(2) == 0).then(|| self.builder.path(&way));
        let wait = match &self.turns {
            Some(last) => self.builder.all_of(&[wait, last[src.index()]]),
            None => wait,
        };
        let sent = self.builder.push(Transfer {
            chunk: ChunkId(chunk),
            count: 1,
            src,
            dst,
            op,
            wait,
            path,
        });
        if let Some(last) = &mut self.turns {
            last[src.index()] = Wait::on(sent);
        }
        Some(Wait::on(sent))
    }

    /// A random way without a device twice, by depth-first search.
    fn way(&mut self, src: NpuId, dst: NpuId) -> Option<Vec<LinkId>> {
        let mut seen = vec![false; self.topology.device_count()];
        seen[src.index()] = true;
        let mut way: Vec<LinkId> = Vec::new();
        let mut at: DeviceId = src.device();
        while at != dst.device() {
            let out = self.topology.out_links(at).iter().copied();
            let open: Vec<LinkId> = out
                .filter(|&l| !seen[self.topology.link(l).dst.index()])
                .collect();
            if open.is_empty() {
                let back = way.pop()?;
                at = self.topology.link(back).src;
                continue;
            }
            let link = open[self.seed.below(open.len())];
            at = self.topology.link(link).dst;
            seen[at.index()] = true;
            way.push(link);
        }
        Some(way)
    }
}
