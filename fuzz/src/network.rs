//! Small networks and collectives among their NPUs.

use std::sync::Arc;

use hocket_core::collective::{Collective, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{DeviceId, LinkId, NpuId, Rank};
use hocket_core::topology::build::{self, FAMILIES, Family, Otherwise, Unit, Value};
use hocket_core::topology::{
    Dimension, DimensionKind, Switching, Topology, TopologyBuilder, TopologyError,
};

use super::draw::Draw;

/// Most NPUs of a network that is run.
const MAX_NPUS: usize = 24;

/// A network of up to 24 NPUs, whole or with failures, or any links between some devices.
pub fn topology(draw: &mut Draw<'_>) -> Option<Arc<Topology>> {
    let topology = match draw.below(8) {
        0..3 => links(draw).ok()?,
        3 => build::product(&tried(draw)).ok()?,
        _ => family(draw)?,
    };
    if topology.npu_count() > MAX_NPUS {
        return None;
    }
    let topology = match draw.below(4) {
        0 => without(&topology, draw).ok()?,
        _ => topology,
    };
    Some(Arc::new(match draw.below(8) {
        0 => topology.with_switching(Switching::CutThrough),
        1 => topology.with_switching(Switching::StoreAndForward),
        _ => topology,
    }))
}

/// Up to 8 NPUs, up to 4 switches, and up to 32 links between any of them.
pub fn links(draw: &mut Draw<'_>) -> Result<Topology, TopologyError> {
    let (npus, switches) = (draw.below(9), draw.below(5));
    let mut builder = TopologyBuilder::new("links");
    builder.npus(npus);
    for i in 0..switches {
        let limit = (draw.below(3) == 0).then(|| draw.rate());
        builder.switch(format!("s{i}"), limit);
    }
    let devices = npus + switches;
    for _ in 0..draw.below(33) {
        let (a, b) = (DeviceId(draw.near(devices)), DeviceId(draw.near(devices)));
        let (rate, latency) = (draw.rate(), draw.latency());
        match draw.yes() {
            true => builder.both_ways(a, b, rate, latency),
            false => builder.link(a, b, rate, latency),
        }
    }
    builder.finish()
}

/// A network of one of the families, small.
fn family(draw: &mut Draw<'_>) -> Option<Topology> {
    let family = &FAMILIES[draw.below(FAMILIES.len())];
    let given = parameters(draw, family, |draw| draw.below(6) as u32);
    let counts = family.counts(&given).expect("complete");
    let is_small = counts.npus <= MAX_NPUS as u128;
    is_small.then(|| family.build(&given).ok())?
}

/// Parameters of a family; those that may be are left out one time in two.
pub fn parameters(
    draw: &mut Draw<'_>,
    family: &Family,
    count: impl Fn(&mut Draw<'_>) -> u32,
) -> Vec<(&'static str, Value)> {
    let mut given = Vec::new();
    for one in family.parameters {
        if one.otherwise != Otherwise::Required && draw.yes() {
            continue;
        }
        let value = match one.unit {
            Unit::Count => Value::Count(count(draw)),
            Unit::Counts => Value::Counts((0..draw.below(4)).map(|_| count(draw)).collect()),
            Unit::Bandwidth => Value::Bandwidth(draw.rate()),
            Unit::Latency => Value::Latency(draw.latency()),
            Unit::Flag => Value::Flag(draw.yes()),
        };
        given.push((one.name, value));
    }
    given
}

/// Up to three dimensions, of few NPUs or of so many that they must be refused.
pub fn tried(draw: &mut Draw<'_>) -> Vec<Dimension> {
    let mut dimensions = dimensions(draw, 3, 5);
    let npus = dimensions.iter().map(|one| u64::from(one.size));
    if (65..1 << 34).contains(&npus.fold(1, u64::saturating_mul)) {
        dimensions.truncate(1);
        dimensions.iter_mut().for_each(|one| one.size %= 65);
    }
    dimensions
}

/// Up to `most` dimensions of up to `size - 1` NPUs.
fn dimensions(draw: &mut Draw<'_>, most: usize, size: usize) -> Vec<Dimension> {
    const KINDS: [DimensionKind; 4] = [
        DimensionKind::Ring,
        DimensionKind::Line,
        DimensionKind::FullyConnected,
        DimensionKind::Switch,
    ];
    let one = |draw: &mut Draw<'_>| Dimension {
        kind: draw.one_of(&KINDS),
        size: draw.near(size),
        bandwidth: draw.rate(),
        latency: draw.latency(),
        offload: draw.below(16) == 1,
    };
    (0..draw.below(most + 1)).map(|_| one(draw)).collect()
}

/// The same less up to two devices and up to four links.
pub fn without(topology: &Topology, draw: &mut Draw<'_>) -> Result<Topology, TopologyError> {
    let (devices, links) = (topology.device_count(), topology.links().len());
    let gone: Vec<DeviceId> = (0..draw.below(3))
        .map(|_| DeviceId(draw.near(devices)))
        .collect();
    let cut: Vec<LinkId> = (0..draw.below(5))
        .map(|_| LinkId(draw.near(links)))
        .collect();
    topology.without(&gone, &cut)
}

/// A collective of any kind among some NPUs, one time in four of demands of its own.
pub fn collective(draw: &mut Draw<'_>, topology: &Topology) -> Option<Collective> {
    let order = draw.order(topology.npu_count());
    let mut npus: Vec<NpuId> = order.into_iter().map(NpuId).collect();
    npus.truncate(1 + draw.below(npus.len() + 1));
    if draw.below(4) == 0 {
        return custom(draw, npus);
    }
    let kind = draw.one_of(&CollectiveKind::NAMED);
    let size = draw.ample();
    let root = match draw.below(4) {
        0 => None,
        _ if !kind.is_rooted() => None,
        _ => Some(Rank(draw.near(npus.len()))),
    };
    Collective::new(kind, npus, size, root).ok()
}

fn custom(draw: &mut Draw<'_>, npus: Vec<NpuId>) -> Option<Collective> {
    let set = |draw: &mut Draw<'_>| match draw.below(4) {
        0 => NpuSet::All,
        _ => {
            let count = draw.below(npus.len() + 1);
            NpuSet::of((0..count).map(|_| npus[draw.below(npus.len())]))
        }
    };
    let demand = |draw: &mut Draw<'_>| Demand {
        bytes: draw.ample(),
        reduced: draw.yes(),
        holders: set(draw),
        wanted: set(draw),
    };
    let demands = (0..draw.below(5)).map(|_| demand(draw)).collect();
    Collective::custom(npus.clone(), demands).ok()
}
