//! Plans of packed trees: how many pieces, and in what order links serve, by what comes out of simulation.

use std::sync::Arc;

use super::candidate::{not_simulated, not_verified};
use crate::bound::Fidelity;
use crate::bound::network::Network;
use crate::collective::{Collective, CollectiveKind};
use crate::id::NpuId;
use crate::packing::{NoPacking, Packing, Passes, pack};
use crate::plan::{LinkOrder, Plan, PlanBuilder, PlanError};
use crate::progress::{Interrupted, Progress};
use crate::simulate::{SimulateOptions, simulate};
use crate::topology::Topology;
use crate::units::Time;
use crate::verify::verify;

/// The name of the algorithm.
pub const TREES: &str = "trees";

/// Transfers up to which more pieces are tried.
const MOST_TRANSFERS: u64 = 300_000;

/// Packs trees for a collective and makes the quickest plan of them, over numbers of pieces and orders of links.
///
/// With `pieces` given, every tree carries so many.
///
/// # Errors
/// As [`synthesize`](super::synthesize).
pub fn trees(
    topology: &Arc<Topology>,
    collective: &Collective,
    pieces: Option<usize>,
    memory_limit: u64,
    progress: &mut dyn Progress,
) -> Result<Plan, PlanError> {
    collective.check_on(topology)?;
    let passes = passes(topology, collective, progress)?;
    let trees = passes.trees_a_root(collective).max(1);
    let share = match (collective.kind(), collective.root()) {
        (_, Some(_)) => collective.size(),
        _ => collective.size() / collective.npus().len() as u64,
    };
    let arcs = passes.arcs().max(1);
    let most = (share / trees).min(MOST_TRANSFERS / arcs).max(1);
    let ladder: Vec<u64> = match pieces {
        Some(pieces) => vec![pieces as u64],
        None => (0..9)
            .map(|power| 1 << power)
            .filter(|&it| it <= most)
            .collect(),
    };
    let mut best: Option<(Time, Arc<Plan>, LinkOrder)> = None;
    for pieces in ladder {
        let transfers = u128::from(arcs) * u128::from(pieces);
        PlanBuilder::check_size(transfers, memory_limit)?;
        let plan = passes.plan(TREES, topology, collective, pieces as u32)?;
        let proof = verify(Arc::new(plan), Arc::clone(topology), progress).map_err(not_verified)?;
        let mut improved = false;
        for order in [LinkOrder::Plan, LinkOrder::Ready] {
            let options = SimulateOptions {
                order: Some(order),
                ..SimulateOptions::default()
            };
            let run = simulate(&proof, &options, progress).map_err(not_simulated)?;
            if best.as_ref().is_none_or(|(least, ..)| run.time < *least) {
                best = Some((run.time, Arc::clone(proof.plan()), order));
                improved = true;
            }
        }
        if !improved {
            break;
        }
    }
    let (_, plan, order) = best.ok_or(Interrupted)?;
    Ok(Plan::clone(&plan).with_link_order(order))
}

fn passes(
    topology: &Topology,
    collective: &Collective,
    progress: &mut dyn Progress,
) -> Result<Passes, PlanError> {
    let network = Network::new(topology, Fidelity::Link);
    let npus = collective.npus();
    let weights: Vec<(NpuId, u64)> = match collective.root() {
        Some(root) => vec![(npus[root.index()], 1)],
        None => npus.iter().map(|&npu| (npu, 1)).collect(),
    };
    let mut packed = |network: &Network| -> Result<Packing, PlanError> {
        pack(network, npus, &weights, progress).map_err(|why| match why {
            NoPacking::Interrupted => PlanError::Interrupted(Interrupted),
            NoPacking::NoRate => refused(
                "somebody cannot be reached, or bandwidths are too far apart to be counted exactly; use greedy",
            ),
            NoPacking::Stuck => refused("no trees were found that use the links of this network; use greedy"),
        })
    };
    use CollectiveKind::{AllGather, AllReduce, Broadcast, Reduce, ReduceScatter};
    let kind = collective.kind();
    let sums = matches!(kind, ReduceScatter | Reduce | AllReduce);
    let copies = matches!(kind, AllGather | Broadcast | AllReduce);
    if !sums && !copies {
        let why = format!(
            "it does all-reduce, reduce-scatter, all-gather, broadcast and reduce, not {kind}; use greedy"
        );
        return Err(refused(&why));
    }
    let passes = Passes {
        sums: sums.then(|| packed(&network.reversed())).transpose()?,
        copies: copies.then(|| packed(&network)).transpose()?,
    };
    match (&passes.sums, &passes.copies) {
        (Some(sums), Some(copies)) if sums.trees_a_weight != copies.trees_a_weight => Err(refused(
            "sums and copies need different numbers of trees here, since links differ in their two directions; \
             use greedy",
        )),
        _ => Ok(passes),
    }
}

fn refused(why: &str) -> PlanError {
    PlanError::NotApplicable {
        algorithm: TREES,
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::{BoundOptions, bound};
    use crate::progress::Silent;
    use crate::topology::build;
    use crate::units::Bandwidth;

    fn gb_per_s(giga: u64) -> Bandwidth {
        Bandwidth::from_bytes_per_second(giga * 1_000_000_000).expect("positive")
    }

    /// How much of the bound a plan reaches.
    fn share(topology: &Arc<Topology>, kind: CollectiveKind, bytes: u64) -> f64 {
        let collective = Collective::among_all(kind, topology, bytes).expect("a collective");
        let plan = trees(topology, &collective, None, 1 << 34, &mut Silent).expect("a plan");
        let proof = verify(Arc::new(plan), Arc::clone(topology), &mut Silent).expect("a proof");
        let run = simulate(&proof, &SimulateOptions::default(), &mut Silent).expect("a run");
        let least = bound(topology, &collective, &BoundOptions::default(), &mut Silent);
        least.expect("a bound").time.as_ps() as f64 / run.time.as_ps() as f64
    }

    #[test]
    fn large_data_comes_near_the_bound() {
        use CollectiveKind::{AllGather, AllReduce, Broadcast, Reduce, ReduceScatter};
        let latency = Time::from_ns(700);
        let torus = build::torus(&[4, 4], gb_per_s(25), latency).expect("a torus");
        let mesh = build::mesh(&[4, 4], gb_per_s(25), latency).expect("a mesh");
        let star = build::switch(8, gb_per_s(25), latency, None).expect("a switch");
        for (name, network) in [("torus", torus), ("mesh", mesh), ("star", star)] {
            let network = Arc::new(network);
            for kind in [AllGather, ReduceScatter, Broadcast, Reduce] {
                let share = share(&network, kind, 1 << 30);
                assert!(share > 0.94, "{name}, {kind}: {share}");
            }
            // Meshes need trees whose both ways are at work at once.
            if name != "mesh" {
                let share = share(&network, AllReduce, 1 << 30);
                assert!(share > 0.94, "{name}, all-reduce: {share}");
            }
        }
    }

    #[test]
    fn what_it_does_not_do_is_refused() {
        let torus = build::torus(&[3, 3], gb_per_s(25), Time::ZERO).expect("a torus");
        let torus = Arc::new(torus);
        let kind = CollectiveKind::AllToAll;
        let collective = Collective::among_all(kind, &torus, 900).expect("a collective");
        let why = trees(&torus, &collective, None, 1 << 34, &mut Silent).expect_err("refused");
        assert!(
            why.to_string().contains("not all-to-all; use greedy"),
            "{why}"
        );
        let kind = CollectiveKind::AllGather;
        let collective = Collective::among_all(kind, &torus, 900).expect("a collective");
        let why = trees(&torus, &collective, Some(200), 1 << 34, &mut Silent).expect_err("refused");
        assert!(matches!(why, PlanError::TooManyChunks { .. }), "{why}");
    }
}
