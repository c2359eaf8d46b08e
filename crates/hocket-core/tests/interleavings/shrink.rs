//! The smallest plan on which judges still disagree.

use std::sync::Arc;

use hocket_core::collective::{Collective, Demand, NpuSet};
use hocket_core::id::{NpuId, narrow};
use hocket_core::plan::{Columns, Lists, Plan, Wait, WaitOn};

/// The columns of a plan and its groups, and what it is to do.
#[derive(Clone)]
struct Parts {
    collective: Collective,
    columns: Columns,
    groups: Vec<Vec<u32>>,
}

/// Takes out of a plan all that can go while `fails` still holds.
pub(crate) fn shrink(plan: &Arc<Plan>, fails: &dyn Fn(&Arc<Plan>) -> bool) -> Arc<Plan> {
    let mut smallest = plan.clone();
    while let Some(less) = smaller(&smallest).into_iter().map(Arc::new).find(fails) {
        smallest = less;
    }
    smallest
}

/// The plans that are one step smaller.
fn smaller(plan: &Plan) -> Vec<Plan> {
    let parts = Parts::of(plan);
    let mut plans: Vec<Parts> = Vec::new();
    let npus = plan.collective().npus().iter();
    plans.extend(npus.filter_map(|&npu| parts.without_npu(npu)));
    for t in (0..plan.len()).rev() {
        plans.push(parts.without(t, Wait::NOTHING.to_bits()));
        plans.push(parts.without(t, plan.wait()[t]));
    }
    let unused = |g: &usize| !parts.names(Wait::group(narrow(*g)));
    plans.extend(
        (0..parts.groups.len())
            .rev()
            .find(unused)
            .map(|g| parts.without_group(g)),
    );
    for t in 0..plan.len() {
        if plan.chunk_count()[t] > 1 {
            for first in 0..2 {
                let mut less = parts.clone();
                less.columns.chunk[t] += first;
                less.columns.chunk_count[t] -= 1;
                plans.push(less);
            }
        }
        let mut simpler = vec![Wait::NOTHING.to_bits()];
        if let WaitOn::Group(g) = Wait::from_bits(plan.wait()[t]).target() {
            simpler.extend_from_slice(plan.groups().get(g as usize));
        }
        simpler.retain(|_| plan.wait()[t] != Wait::NOTHING.to_bits());
        plans.extend(simpler.into_iter().map(|bits| {
            let mut less = parts.clone();
            less.columns.wait[t] = bits;
            less
        }));
    }
    for (g, members) in parts.groups.iter().enumerate() {
        for i in 0..members.len() {
            let mut less = parts.clone();
            less.groups[g].remove(i);
            plans.push(less);
        }
    }
    plans
        .into_iter()
        .filter_map(|parts| parts.plan_like(plan))
        .collect()
}

impl Parts {
    fn of(plan: &Plan) -> Self {
        Self {
            collective: plan.collective().clone(),
            columns: plan.columns(),
            groups: plan.groups().iter().map(<[u32]>::to_vec).collect(),
        }
    }

    fn plan_like(self, plan: &Plan) -> Option<Plan> {
        let mut groups = Lists::default();
        self.groups.iter().for_each(|members| {
            groups.push(members);
        });
        let (collective, chunks) = (self.collective, plan.chunks().clone());
        let paths = plan.paths().clone();
        // Where a group would name a later one there is no plan.
        Plan::from_columns("smaller", collective, chunks, self.columns, groups, paths).ok()
    }

    fn names(&self, wait: Wait) -> bool {
        let bits = wait.to_bits();
        self.columns.wait.contains(&bits) || self.groups.iter().any(|list| list.contains(&bits))
    }

    /// Without what an NPU holds and wants, and all its transfers; `None` if nothing is left to do,
    /// or nothing would change.
    fn without_npu(&self, npu: NpuId) -> Option<Self> {
        let all = self.collective.npus();
        let less = |set: &NpuSet| {
            let members = set.members(all).iter().copied();
            NpuSet::of(members.filter(|&other| other != npu))
        };
        let demands = self.collective.demands();
        let demand = |demand: &Demand| Demand {
            bytes: demand.bytes,
            reduced: demand.reduced,
            holders: less(&demand.holders),
            wanted: less(&demand.wanted),
        };
        let fewer: Vec<Demand> = demands.iter().map(demand).collect();
        let touches = |t: &usize| self.columns.src[*t] == npu.0 || self.columns.dst[*t] == npu.0;
        let gone: Vec<usize> = (0..self.columns.src.len()).filter(touches).collect();
        let concerned = |demand: &Demand| {
            demand.holders.members(all).contains(&npu) || demand.wanted.members(all).contains(&npu)
        };
        if gone.is_empty() && !demands.iter().any(concerned) {
            return None;
        }
        let mut parts = gone.iter().rev().fold(self.clone(), |parts, &t| {
            parts.without(t, Wait::NOTHING.to_bits())
        });
        parts.collective = Collective::custom(all.to_vec(), fewer).ok()?;
        Some(parts)
    }

    /// Without a transfer; who waited for it waits for another thing, or for nothing.
    fn without(&self, t: usize, instead: u32) -> Self {
        let mut less = self.clone();
        let columns = &mut less.columns;
        for column in [
            &mut columns.chunk,
            &mut columns.chunk_count,
            &mut columns.src,
            &mut columns.dst,
            &mut columns.wait,
            &mut columns.path,
        ] {
            column.remove(t);
        }
        columns.op.remove(t);
        let gone = Wait::on(t.into()).to_bits();
        let moved = |bits: u32| match Wait::from_bits(bits).target() {
            WaitOn::Transfer(u) if u.index() > t => bits - 1,
            _ => bits,
        };
        let lists = less.groups.iter_mut().flatten();
        for bits in lists.chain(&mut columns.wait) {
            *bits = moved(if *bits == gone { instead } else { *bits });
        }
        for list in &mut less.groups {
            list.retain(|&bits| bits != Wait::NOTHING.to_bits());
        }
        less
    }

    /// Without a group that nobody names.
    fn without_group(&self, g: usize) -> Self {
        let mut less = self.clone();
        less.groups.remove(g);
        let lists = less.groups.iter_mut().flatten();
        for bits in lists.chain(&mut less.columns.wait) {
            if let WaitOn::Group(other) = Wait::from_bits(*bits).target()
                && other as usize > g
            {
                *bits -= 1;
            }
        }
        less
    }
}
