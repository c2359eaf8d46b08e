//! Several plans as one, which does all that each does.

use super::{Chunks, Plan, PlanBuilder, PlanError, Routing, Transfer, Wait, WaitOn};
use crate::collective::Collective;
use crate::id::{ChunkId, TransferId, narrow};
use crate::topology::Topology;

impl Plan {
    /// As [`merged`](Self::merged), on the topology that the plans are of: where all are routed alike, paths are chosen
    /// anew for what all of them send together.
    ///
    /// # Errors
    /// As [`merged`](Self::merged).
    pub fn merged_on(
        topology: &Topology,
        plans: &[&Plan],
        memory_limit: u64,
    ) -> Result<Plan, PlanError> {
        let routing = plans.first().map_or(Routing::Single, |plan| plan.routing());
        if routing == Routing::Single || plans.iter().any(|plan| plan.routing() != routing) {
            return Self::merged(plans, memory_limit);
        }
        let own = |plan: &&Plan| Plan::clone(plan).routed(topology, Routing::Single);
        let own: Vec<Plan> = plans.iter().map(own).collect();
        let merged = Self::merged(&own.iter().collect::<Vec<_>>(), memory_limit)?;
        Ok(merged.routed(topology, routing))
    }

    /// One plan that carries out several at the same time, each as if the others were not there.
    ///
    /// Chunks, groups and paths follow each other, plan by plan. Transfers take turns: the first of every plan,
    /// then the second of every plan, and so on, so that where readiness ties on a link no plan is always
    /// served before another. Links serve in plan order if all plans ask for it, else by readiness. The
    /// collective has the demands of all, see [`Collective::joined`].
    ///
    /// # Errors
    /// [`PlanError::Collective`] if there is no plan, [`PlanError::TooLarge`].
    ///
    /// # Complexity
    /// O(transfers + members of groups + demands).
    pub fn merged(plans: &[&Plan], memory_limit: u64) -> Result<Plan, PlanError> {
        let transfers: u128 = plans.iter().map(|plan| plan.len() as u128).sum();
        let chunks: u128 = plans.iter().map(|plan| plan.chunks().len() as u128).sum();
        PlanBuilder::check_size(transfers.max(chunks), memory_limit)?;
        let collectives: Vec<&Collective> = plans.iter().map(|plan| plan.collective()).collect();
        let collective = Collective::joined(&collectives)?;
        let (chunks, first_chunk) = side_by_side(plans, &collectives);
        let mut names: Vec<&str> = plans.iter().map(|plan| plan.algorithm()).collect();
        names.dedup();
        let mut merged = PlanBuilder::new(names.join(" + "), &collective, chunks);
        merged.reserve(transfers as usize);
        let rows = turns(plans);
        let mut place: Vec<Vec<u32>> = plans.iter().map(|plan| vec![0; plan.len()]).collect();
        for (row, &(p, i)) in rows.iter().enumerate() {
            place[p][i] = narrow(row);
        }
        let all = plans.iter().zip(&place);
        let waits: Vec<Vec<Wait>> = all
            .map(|(plan, place)| group_waits(plan, place, &mut merged))
            .collect();
        let paths: Vec<Vec<u32>> = plans
            .iter()
            .map(|plan| plan.paths().iter().map(|path| merged.path(path)).collect())
            .collect();
        for &(p, i) in &rows {
            let transfer = plans[p].transfer(TransferId::from(i));
            merged.push(Transfer {
                chunk: ChunkId(first_chunk[p] + transfer.chunk.0),
                wait: moved(transfer.wait, &place[p], &waits[p]),
                path: transfer.path.map(|path| paths[p][path as usize]),
                ..transfer
            });
        }
        let mut orders = plans.iter().map(|plan| plan.link_order());
        let first = orders.next().unwrap_or_default();
        if orders.all(|order| order == first) {
            merged.link_order(first);
        }
        Ok(merged.finish())
    }
}

/// Returns the chunks of all plans, and the first of each plan's.
fn side_by_side(plans: &[&Plan], collectives: &[&Collective]) -> (Chunks, Vec<u32>) {
    let count = plans.iter().map(|plan| plan.chunks().len()).sum();
    let mut chunks = Chunks::with_capacity(count);
    let (mut first, mut demands) = (Vec::new(), 0);
    for (plan, collective) in plans.iter().zip(collectives) {
        first.push(narrow(chunks.len()));
        let own = plan.chunks();
        for (demand, ends) in own.demand().iter().zip(own.offsets().windows(2)) {
            chunks.push(demands + demand, ends[1] - ends[0]);
        }
        demands += narrow(collective.demands().len());
    }
    (chunks, first)
}

/// Returns which plan's which transfer each row is.
fn turns(plans: &[&Plan]) -> Vec<(usize, usize)> {
    let longest = plans.iter().map(|plan| plan.len()).max().unwrap_or(0);
    let has = |&(p, i): &(usize, usize)| i < plans[p].len();
    (0..longest)
        .flat_map(|i| (0..plans.len()).map(move |p| (p, i)))
        .filter(has)
        .collect()
}

/// Adds the groups of a plan; gives what each has become.
fn group_waits(plan: &Plan, place: &[u32], merged: &mut PlanBuilder) -> Vec<Wait> {
    let mut waits: Vec<Wait> = Vec::with_capacity(plan.groups().len());
    for members in plan.groups().iter() {
        let members: Vec<Wait> = members
            .iter()
            .map(|&bits| moved(Wait::from_bits(bits), place, &waits))
            .collect();
        waits.push(merged.all_of(&members));
    }
    waits
}

/// Returns a wait of a plan, whose transfers and groups have become others.
fn moved(wait: Wait, place: &[u32], groups: &[Wait]) -> Wait {
    match wait.target() {
        WaitOn::Nothing => Wait::NOTHING,
        WaitOn::Transfer(transfer) => Wait::on(TransferId(place[transfer.index()])),
        WaitOn::Group(group) => groups[group as usize],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::CollectiveKind;
    use crate::id::NpuId;
    use crate::plan::LinkOrder;
    use crate::plan::Op;

    /// Returns a chain from the first NPU through the others, the second hop waiting for a group of both.
    fn chain(npus: [u32; 3], order: LinkOrder) -> Plan {
        let npus = npus.map(NpuId);
        let kind = CollectiveKind::Broadcast;
        let collective = Collective::new(kind, npus.to_vec(), 10, None).unwrap();
        let chunks = Chunks::split(&collective.demands(), 2).unwrap();
        let mut plan = PlanBuilder::new("chain", &collective, chunks);
        let first = [0, 1].map(|chunk| {
            let send = (chunk, 1);
            Wait::on(plan.send(send, npus[0], npus[1], Op::Copy, Wait::NOTHING))
        });
        let both = plan.all_of(&first);
        plan.send((0, 2), npus[1], npus[2], Op::Copy, both);
        plan.link_order(order);
        plan.finish()
    }

    #[test]
    fn transfers_take_turns_and_keep_their_waits() {
        let plans = [[0, 1, 2], [5, 4, 3]].map(|npus| chain(npus, LinkOrder::Plan));
        let merged = Plan::merged(&[&plans[0], &plans[1]], u64::MAX).unwrap();
        assert_eq!(merged.src(), [0, 5, 0, 5, 1, 4]);
        assert_eq!(merged.dst(), [1, 4, 1, 4, 2, 3]);
        assert_eq!(merged.chunk(), [0, 2, 1, 3, 0, 2]);
        assert_eq!(merged.chunks().demand(), [0, 0, 1, 1]);
        assert_eq!(merged.chunks().offsets(), [0, 5, 10, 15, 20]);
        assert_eq!(merged.groups().get(0), [0, 2]);
        assert_eq!(merged.groups().get(1), [1, 3]);
        let waits: Vec<WaitOn> = merged.wait()[4..]
            .iter()
            .map(|&bits| Wait::from_bits(bits).target())
            .collect();
        assert_eq!(waits, [WaitOn::Group(0), WaitOn::Group(1)]);
        assert_eq!(merged.link_order(), LinkOrder::Plan);
        assert_eq!(merged.algorithm(), "chain");
        assert_eq!(merged.collective().npus().len(), 6);
    }

    #[test]
    fn links_serve_by_readiness_unless_all_ask_for_plan_order() {
        let plans = [LinkOrder::Plan, LinkOrder::Ready].map(|order| chain([0, 1, 2], order));
        let merged = Plan::merged(&[&plans[0], &plans[1]], u64::MAX).unwrap();
        assert_eq!(merged.link_order(), LinkOrder::Ready);
    }

    #[test]
    fn none_and_too_many_are_refused() {
        assert!(matches!(
            Plan::merged(&[], u64::MAX),
            Err(PlanError::Collective(_))
        ));
        let plan = chain([0, 1, 2], LinkOrder::Ready);
        assert!(matches!(
            Plan::merged(&[&plan], 10),
            Err(PlanError::TooLarge { .. })
        ));
    }
}
