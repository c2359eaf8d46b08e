//! Paths on fabrics from anywhere: named, numbered and joined in any way, less what failed.

use hocket_core::id::{DeviceId, NpuId};
use hocket_core::routing::{
    Annealing, Assignment, Ecmp, Fabric, Flow, Hash, Scheme, add_least_loaded, assign,
    assignment_of, spray,
};
use hocket_core::topology::build::{self, Clos};
use hocket_core::topology::{Topology, TopologyBuilder, TopologyError};
use hocket_core::units::Seed;

use super::draw::Draw;
use super::network;
use super::runs::one_line;

/// Reads a fabric, and gives flows on it paths by a scheme.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let Some(topology) = topology(&mut draw) else {
        return;
    };
    let fabric = match Fabric::new(&topology) {
        Ok(fabric) => fabric,
        Err(error) => return one_line(&error.to_string()),
    };
    for npu in 0..topology.npu_count() as u32 + 1 {
        let npu = NpuId(npu.min(topology.npu_count() as u32 - 1));
        fabric.tor_of(npu);
        fabric.npu_links(npu);
    }
    let fabric = match draw.below(3) {
        0 => {
            let dead = (0..topology.links().len()).map(|_| draw.below(16) == 1);
            fabric.without(&dead.collect::<Vec<bool>>())
        }
        _ => fabric,
    };
    let flows = flows(&mut draw, &fabric);
    give_paths(&fabric, &topology, &flows, &mut draw);
}

/// A Clos or a fat tree with failures, or switches of such names joined anyhow.
pub fn topology(draw: &mut Draw<'_>) -> Option<Topology> {
    let (rate, latency) = (draw.rate(), draw.latency());
    let made = match draw.below(4) {
        0 => named(draw),
        1 => build::fat_tree(draw.below(5) as u32, rate, latency),
        _ => Clos {
            spines: draw.below(6) as u32,
            tors: draw.below(6) as u32,
            hosts_per_tor: draw.below(4) as u32,
            host_bandwidth: rate,
            bandwidth: draw.rate(),
            latency,
        }
        .build(),
    };
    let whole = made.ok()?;
    match draw.below(3) {
        0 => network::without(&whole, draw).ok(),
        _ => Some(whole),
    }
}

fn named(draw: &mut Draw<'_>) -> Result<Topology, TopologyError> {
    const STEMS: [&str; 8] = ["tor", "spine", "edge", "agg", "core", "tor0", "s", ""];
    let mut builder = TopologyBuilder::new("named");
    let npus = draw.below(9);
    builder.npus(npus);
    let stems = draw.one_of(&[&STEMS[..2], &STEMS[2..5], &STEMS[..]]);
    let switches = draw.below(9);
    for _ in 0..switches {
        let number = match draw.byte() {
            255 => draw.word(),
            254 => u64::from(u16::MAX),
            byte => u64::from(byte % 5),
        };
        builder.switch(format!("{}{number}", draw.one_of(stems)), None);
    }
    let devices = npus + switches;
    for _ in 0..draw.below(48) {
        let (a, b) = (DeviceId(draw.near(devices)), DeviceId(draw.near(devices)));
        let (rate, latency) = (draw.rate(), draw.latency());
        match draw.below(4) {
            0 => builder.link(a, b, rate, latency),
            _ => builder.both_ways(a, b, rate, latency),
        }
    }
    builder.finish()
}

fn flows(draw: &mut Draw<'_>, fabric: &Fabric) -> Vec<Flow> {
    let tors = fabric.tor_count();
    let alike = draw.yes();
    let flow = |draw: &mut Draw<'_>| Flow {
        src: draw.near(tors),
        dst: draw.near(tors),
        weight: if alike { 1 } else { draw.size() },
    };
    let mut flows: Vec<Flow> = (0..draw.below(24)).map(|_| flow(draw)).collect();
    if draw.below(8) > 0 {
        let joined = |flow: &Flow| fabric.choices_between(flow.src, flow.dst).next().is_some();
        flows.retain(joined);
    }
    flows
}

/// The schemes, with options that are drawn.
pub fn scheme(draw: &mut Draw<'_>) -> Scheme {
    match draw.below(7) {
        0 => Scheme::Greedy,
        1 => Scheme::GreedyParallel,
        2 => Scheme::Ecmp(Ecmp {
            hash: draw.one_of(&[Hash::Crc32, Hash::Toeplitz, Hash::Linux]),
            upstream: draw.below(5) as u32,
            salted: draw.yes(),
        }),
        3 => Scheme::LeastLoaded,
        4 => Scheme::Annealing(Annealing {
            steps: draw.yes().then(|| draw.byte().into()),
        }),
        _ => Scheme::EdgeColoring,
    }
}

fn give_paths(fabric: &Fabric, topology: &Topology, flows: &[Flow], draw: &mut Draw<'_>) {
    if let Ok(sprayed) = spray(fabric, flows) {
        assert!(sprayed.max_link_load().is_finite());
        sprayed.link_loads(fabric).count();
    }
    let seed = Seed(draw.word());
    let made = match draw.below(8) {
        0 => {
            let choices = flows.iter().map(|_| draw.near(fabric.column_count()));
            assignment_of(fabric, flows, choices.collect())
        }
        1 => add_least_loaded(fabric, flows, &[draw.near(fabric.column_count())]),
        _ => assign(fabric, flows, scheme(draw), seed),
    };
    match made {
        Ok(assignment) => check(&assignment, fabric, topology, flows),
        Err(error) => one_line(&error.to_string()),
    }
}

/// Every path leads from its ToR to its ToR, over links that are there, and no load is below the bound.
fn check(assignment: &Assignment, fabric: &Fabric, topology: &Topology, flows: &[Flow]) {
    assert!(assignment.max_link_load() >= assignment.load_bound().load);
    assignment.load_bound().describe();
    assignment.link_loads(fabric).count();
    let paths = assignment.paths(fabric, flows);
    assert_eq!(paths.len(), flows.len());
    for (path, flow) in paths.iter().zip(flows) {
        let ends = path.iter().map(|&id| topology.link(id));
        let ends: Vec<_> = ends.map(|link| (link.src, link.dst)).collect();
        assert!(ends.windows(2).all(|pair| pair[0].1 == pair[1].0));
        let number = |device: DeviceId| {
            let name = &topology.device(device).name;
            name.trim_start_matches(char::is_alphabetic).parse().ok()
        };
        assert_eq!(number(ends[0].0), Some(flow.src));
        assert_eq!(number(ends[ends.len() - 1].1), Some(flow.dst));
    }
}
