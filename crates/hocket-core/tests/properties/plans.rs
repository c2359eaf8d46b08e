//! Any algorithm that applies makes a plan that is proved right and that no bound contradicts.

use std::sync::Arc;

use hocket_core::algorithms::{Algorithm, PlanOptions, check_applicable, plan};

use hocket_core::bound::{BoundOptions, bound};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::{DeviceId, TransferId};
use hocket_core::progress::Silent;
use hocket_core::simulate::{LatencyModel, LinkOrder, SimulateOptions, Switching, simulate};
use hocket_core::topology::shortest::RouteTree;
use hocket_core::units::Time;
use hocket_core::verify::verify;
use proptest::prelude::*;

use crate::networks::{collective_on, config, topology};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_plan_is_right_and_above_the_bound(
        topology in topology(),
        seed in any::<u64>(),
        chunks in 1usize..5,
    ) {
        let topology = Arc::new(topology);
        for kind in CollectiveKind::NAMED {
            let collective = collective_on(&topology, kind, seed);
            let bound = bound(&topology, &collective, &BoundOptions::default(), &mut Silent).expect("nobody stops it");

            for algorithm in Algorithm::ALL {
                if check_applicable(&topology, &collective, algorithm).is_err() {
                    continue;
                }
                let options = PlanOptions { chunks: Some(chunks), ..PlanOptions::new(algorithm) };
                let plan = plan(&topology, &collective, &options, &mut Silent).expect("it applies");
                let verified = match verify(Arc::new(plan), topology.clone(), &mut Silent) {
                    Ok(verified) => verified,
                    Err(error) => panic!("{algorithm} {kind}: {error}"),
                };
                let mut times = Vec::new();
                for options in models() {
                    let run = simulate(&verified, &options, &mut Silent).expect("it runs");
                    prop_assert!(
                        run.time >= bound.time,
                        "{algorithm} {kind} {options:?}: {} < {}: {}",
                        run.time,
                        bound.time,
                        bound.witness.describe(&topology)
                    );
                    prop_assert_eq!(run.end.iter().max(), Some(&run.time));
                    times.push(run.time);
                }
                let again = simulate(&verified, &models()[0], &mut Silent).expect("it runs");
                prop_assert_eq!(again.time, times[0]);
            }
        }
    }
}

fn models() -> Vec<SimulateOptions> {
    let mut models = Vec::new();
    for order in [LinkOrder::Ready, LinkOrder::Plan] {
        for switching in [Switching::StoreAndForward, Switching::CutThrough] {
            for latency in [LatencyModel::Overlapped, LatencyModel::Occupying] {
                models.push(SimulateOptions {
                    order: Some(order),
                    switching: Some(switching),
                    latency,
                    keep_services: false,
                    ..SimulateOptions::default()
                });
            }
        }
    }
    models
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn default_routes_are_shortest_by_time(topology in topology(), size in 1u64..50_000_000) {
        let topology = Arc::new(topology);
        let npus = topology.npu_count() as u64;
        let collective =
            Collective::among_all(CollectiveKind::AllToAll, &topology, size.max(npus)).expect("some");
        let options = PlanOptions::new(Algorithm::Direct);
        let plan = plan(&topology, &collective, &options, &mut Silent).expect("it applies");
        let verified = verify(Arc::new(plan), topology.clone(), &mut Silent).expect("right");
        let plan = verified.plan();
        for t in (0..plan.len()).map(TransferId::from) {
            let (src, dst) = (DeviceId(plan.src()[t.index()]), DeviceId(plan.dst()[t.index()]));
            let bytes = plan.bytes(t);
            let mut at = src;
            let mut time = Time::ZERO;
            for link in verified.routes().links(plan, &topology, t) {
                let link = topology.link(link);
                prop_assert_eq!(link.src, at);
                at = link.dst;
                let limit = topology.device(at).limit;
                time = time + link.latency + link.bandwidth.transmission(bytes);
                time = time + limit.map_or(Time::ZERO, |limit| limit.transmission(bytes));
            }
            prop_assert_eq!(at, dst);
            prop_assert_eq!(Some(time), RouteTree::to(&topology, dst, bytes, None).time(src));
        }
    }
}
