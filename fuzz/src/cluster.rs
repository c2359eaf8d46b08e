//! Jobs on a fabric: any arrivals, patterns, options and outages.

use std::sync::Arc;

use hocket_core::algorithms::{Algorithm, PlanOptions, plan};
use hocket_core::cluster::{
    ByScheme, ClusterOptions, FlowOrder, Job, Outage, Pattern, Phase, Port, Reroute, Rounds,
    simulate,
};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::{LinkId, NpuId};
use hocket_core::progress::Silent;
use hocket_core::routing::Fabric;
use hocket_core::topology::{Topology, build};
use hocket_core::units::{Seed, Time};
use hocket_core::verify::verify;

use super::draw::{Draw, Patience};
use super::routing;
use super::runs::one_line;

/// Runs up to four jobs.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let Some(topology) = routing::topology(&mut draw) else {
        return;
    };
    let Ok(fabric) = Fabric::new(&topology) else {
        return;
    };
    let joined = |npu: &NpuId| fabric.npu_links(*npu).iter().all(Option::is_some);
    let nics: Vec<NpuId> = topology.npus().filter(joined).collect();
    let jobs: Vec<Job> = (0..draw.below(5))
        .map(|i| job(&mut draw, i, &nics))
        .collect();
    let options = options(&mut draw, &topology);
    let mut router = ByScheme {
        scheme: routing::scheme(&mut draw),
        seed: Seed(draw.byte().into()),
        order: draw.one_of(&[FlowOrder::Job, FlowOrder::Tor]),
    };
    let patience = &mut Patience(2_000);
    match simulate(&topology, &fabric, &jobs, &mut router, &options, patience) {
        Ok(outcome) => {
            let last = outcome.iterations.iter().map(|one| one.end).max();
            assert!(last.is_none_or(|last| last <= outcome.time));
            let in_order = |one: &&hocket_core::cluster::Iteration| {
                one.compute_start <= one.start && one.start <= one.end
            };
            assert_eq!(
                outcome.iterations.iter().filter(in_order).count(),
                outcome.iterations.len()
            );
        }
        Err(error) => one_line(&error.to_string()),
    }
}

fn options(draw: &mut Draw<'_>, topology: &Topology) -> ClusterOptions {
    let links = topology.links().len();
    let outage = |draw: &mut Draw<'_>| Outage {
        time: draw.latency(),
        links: (0..draw.below(4))
            .map(|_| LinkId(draw.below(links.min(256)) as u32))
            .collect(),
    };
    ClusterOptions {
        reroute: draw.one_of(&[
            Reroute::Always,
            Reroute::AtStart,
            Reroute::Never,
            Reroute::Spray,
        ]),
        host_rate: draw.rate(),
        answer: if draw.yes() {
            Time::ZERO
        } else {
            draw.latency()
        },
        look_ahead: draw.below(4) as u32,
        failover: draw.below(4) == 0,
        outages: match (links, draw.below(3)) {
            (1.., 0) => (0..draw.below(4)).map(|_| outage(draw)).collect(),
            _ => Vec::new(),
        },
        rate_slack_ppm: (draw.below(4) == 0).then(|| draw.near(200)),
        by_bytes: draw.yes(),
        keep_rates: draw.yes(),
    }
}

fn job(draw: &mut Draw<'_>, number: usize, nics: &[NpuId]) -> Job {
    let iterations = draw.below(4);
    Job {
        name: format!("job{number}"),
        arrival: draw.latency(),
        compute: (0..iterations).map(|_| draw.latency()).collect(),
        phase: (draw.below(8) > 0).then(|| phase(draw, nics)).flatten(),
    }
}

fn phase(draw: &mut Draw<'_>, nics: &[NpuId]) -> Option<Phase> {
    let pattern = pattern(draw)?;
    if nics.is_empty() {
        return None;
    }
    let port = |draw: &mut Draw<'_>| {
        let nic = draw.one_of(&nics[..nics.len().min(256)]);
        Port {
            nic,
            host: nic.0 / (1 + draw.byte() as u32 % 3),
        }
    };
    let ranks = pattern.rank_count();
    let groups = 0..draw.below(4);
    let groups = groups
        .map(|_| (0..ranks).map(|_| port(draw)).collect())
        .collect();
    Some(Phase {
        pattern: Arc::new(pattern),
        groups,
    })
}

/// A right plan among two to six ranks, all joined.
fn pattern(draw: &mut Draw<'_>) -> Option<Pattern> {
    let ranks = 2 + draw.below(5) as u32;
    let (rate, latency) = (draw.rate(), Time::ZERO);
    let topology = build::fully_connected(ranks, rate, latency).ok()?;
    let kind = draw.one_of(&CollectiveKind::NAMED);
    let collective = Collective::among_all(kind, &topology, draw.ample()).ok()?;
    let options = PlanOptions {
        chunks: Some(1 + draw.below(2)),
        effort: 100,
        ..PlanOptions::new(draw.one_of(&Algorithm::ALL))
    };
    let plan = plan(&topology, &collective, &options, &mut Silent).ok()?;
    let verified = verify(Arc::new(plan), Arc::new(topology), &mut Silent).ok()?;
    let rounds = draw.one_of(&[Rounds::Data, Rounds::LockStep]);
    Some(Pattern::new(verified.plan().clone(), rounds))
}
