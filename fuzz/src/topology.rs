//! Builders with any sizes, links with any ends, and everything that is asked of a network.

use hocket_core::id::{DeviceId, NpuId};
use hocket_core::topology::build::{FAMILIES, MEMORY_LIMIT};
use hocket_core::topology::embedding::{chain_order, ring_order};
use hocket_core::topology::shortest::RouteTree;
use hocket_core::topology::{Topology, TopologyError};

use super::draw::Draw;
use super::network;
use super::runs::one_line;

/// Devices and links up to which a network is made; above, only what must be refused is asked for.
const MOST: u128 = 1000;

/// Makes a network and asks it everything.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let made = match draw.below(3) {
        0 => network::links(&mut draw),
        _ => match family(&mut draw) {
            Some(made) => made,
            None => return,
        },
    };
    match made {
        Ok(topology) => ask(&topology, &mut draw),
        Err(error) => one_line(&error.to_string()),
    }
}

/// One of the families, unless it would make a network that is neither small nor refused.
fn family(draw: &mut Draw<'_>) -> Option<Result<Topology, TopologyError>> {
    let family = &FAMILIES[draw.below(FAMILIES.len())];
    // Sizes are mostly small, now and then any.
    let given = network::parameters(draw, family, |draw| draw.near(9));
    let counts = family.counts(&given).expect("complete");
    let all = counts
        .npus
        .saturating_add(counts.switches)
        .saturating_add(counts.links);
    let is_tried = all <= MOST || all >= u128::from(MEMORY_LIMIT);
    is_tried.then(|| family.build(&given))
}

fn ask(topology: &Topology, draw: &mut Draw<'_>) {
    let found = topology.inspect();
    assert_eq!(found.npus, topology.npu_count());
    topology.link_dimensions();
    let devices = topology.device_count();
    let (a, b) = (DeviceId(draw.near(devices)), DeviceId(draw.near(devices)));
    if let Err(error) = topology.links_between(a, b) {
        one_line(&error.to_string());
    }
    let bytes = draw.size();
    let tree = RouteTree::to(
        topology,
        DeviceId(draw.below(devices.min(256)) as u32),
        bytes,
        None,
    );
    for device in (0..devices).map(DeviceId::from) {
        assert_eq!(
            tree.time(device).is_some(),
            tree.path(topology, device).is_some()
        );
    }
    if topology.npu_count() <= 24 {
        orders(topology, draw);
    }
    match network::without(topology, draw) {
        Ok(rest) => drop(rest.inspect()),
        Err(error) => one_line(&error.to_string()),
    }
}

/// Orders of rings and chains hold every NPU once.
fn orders(topology: &Topology, draw: &mut Draw<'_>) {
    let mut npus: Vec<NpuId> = draw
        .order(topology.npu_count())
        .into_iter()
        .map(NpuId)
        .collect();
    npus.truncate(1 + draw.below(npus.len()));
    let mut sorted = npus.clone();
    sorted.sort_unstable();
    for order in [
        ring_order(topology, &npus),
        chain_order(topology, &npus, npus[0]),
    ] {
        assert_eq!(order[0], npus[0]);
        let mut order = order;
        order.sort_unstable();
        assert_eq!(order, sorted);
    }
}
