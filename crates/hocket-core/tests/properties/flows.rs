//! Flow fidelity is what a slow, obvious fluid model says, picosecond for picosecond.

use std::num::NonZeroU32;
use std::sync::Arc;

use hocket_core::algorithms::{Algorithm, PlanOptions, check_applicable, plan};
use hocket_core::bound::{BoundOptions, Fidelity, bound};
use hocket_core::collective::CollectiveKind;
use hocket_core::progress::Silent;
use hocket_core::simulate::{FlowOptions, Run, simulate_flows};
use hocket_core::topology::Topology;
use hocket_core::units::{Bandwidth, Seed, Time};
use hocket_core::verify::{Verified, verify};
use proptest::prelude::*;

use crate::networks::{collective_on, config, topology};
use crate::packets::messages;
use crate::{fluids, networks};

fn options(seed: &mut Seed) -> FlowOptions {
    let rates = [700_000_000, 2_000_000_000, 7_000_000_001];
    let flow_rate = (seed.below(3) == 0).then(|| rates[seed.below(3)]);
    FlowOptions {
        flow_rate: flow_rate.and_then(Bandwidth::from_bytes_per_second),
        keep_services: seed.below(2) == 0,
        rate_bits: [None, None, NonZeroU32::new(9), NonZeroU32::new(2)][seed.below(4)],
    }
}

fn compare(verified: &Verified, options: &FlowOptions) -> Run {
    let run = simulate_flows(verified, options, &mut Silent).expect("it runs");
    let expected = fluids::run(verified, options);
    let ps = |times: &[Time]| times.iter().map(|time| time.as_ps()).collect();
    let links = run.links.iter();
    let ours = fluids::Outcome {
        start: ps(&run.start),
        end: ps(&run.end),
        links: links
            .map(|link| (link.busy.as_ps(), link.bytes, link.messages))
            .collect(),
    };
    assert_eq!(ours, expected, "{options:?}");
    assert_eq!(run.end.iter().max(), Some(&run.time));
    check_links(verified.topology(), &run, options);
    run
}

/// No link carries more than it can while it is in use; stays cover just that time.
fn check_links(topology: &Topology, run: &Run, options: &FlowOptions) {
    for (number, (link, usage)) in topology.links().iter().zip(&run.links).enumerate() {
        assert!(usage.busy >= link.bandwidth.transmission(usage.bytes));
        if !options.keep_services {
            continue;
        }
        let (mut busy, mut until) = (0, Time::ZERO);
        for stay in run.services.iter().filter(|s| s.link as usize == number) {
            busy += stay.end.saturating_sub(stay.start.max(until)).as_ps();
            until = until.max(stay.end);
        }
        assert_eq!(busy, usage.busy.as_ps());
    }
    assert_eq!(run.services.is_empty(), !options.keep_services);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn messages_share_links_as_fluids_do(topology in topology(), seed in any::<u64>()) {
        let topology = Arc::new(topology);
        // Cheap, and worth several.
        for more in 0..4 {
            let mut seed = Seed(seed.wrapping_add(more));
            compare(&messages(&topology, &mut seed), &options(&mut seed));
        }
    }

    #[test]
    fn plans_share_links_as_fluids_do_and_take_no_less_than_the_bound(
        topology in networks::topology(),
        seed in any::<u64>(),
        chunks in 1usize..3,
    ) {
        let topology = Arc::new(topology);
        let mut seed = Seed(seed);
        let kind = CollectiveKind::NAMED[seed.below(CollectiveKind::NAMED.len())];
        let collective = collective_on(&topology, kind, seed.next_u64());
        let of_flows = BoundOptions { fidelity: Fidelity::Flow, ..BoundOptions::default() };
        let bound = bound(&topology, &collective, &of_flows, &mut Silent).expect("nobody stops it");
        for algorithm in Algorithm::ALL {
            if check_applicable(&topology, &collective, algorithm).is_err() {
                continue;
            }
            let planning = PlanOptions { chunks: Some(chunks), ..PlanOptions::new(algorithm) };
            let plan = plan(&topology, &collective, &planning, &mut Silent).expect("it applies");
            let short = plan.len() <= 80;
            let verified = verify(Arc::new(plan), topology.clone(), &mut Silent).expect("right");
            let options = options(&mut seed);
            let run = if short {
                compare(&verified, &options)
            } else {
                let run = simulate_flows(&verified, &options, &mut Silent).expect("it runs");
                check_links(&topology, &run, &options);
                run
            };
            prop_assert!(run.time >= bound.time, "{algorithm} {kind}: {} < {}", run.time, bound.time);
        }
    }
}
