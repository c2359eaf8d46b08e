//! Builders with any sizes, links with any ends, and everything that is asked of a network.

use hocket_core::id::{DeviceId, NpuId};
use hocket_core::topology::build::{self, Clos, Dragonfly, MEMORY_LIMIT, RingWays};
use hocket_core::topology::embedding::{chain_order, ring_order};
use hocket_core::topology::shortest::RouteTree;
use hocket_core::topology::{Topology, TopologyError};

use super::draw::Draw;
use super::network;
use super::runs::one_line;

/// Devices and links up to which a network is made; above, only what must be refused is asked for.
const MAX_NPUS: u128 = 100;

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

/// A size: mostly small, now and then any.
fn size(draw: &mut Draw<'_>) -> u32 {
    draw.near(9)
}

/// One of the builders, unless it would make a network that is neither small nor refused.
fn family(draw: &mut Draw<'_>) -> Option<Result<Topology, TopologyError>> {
    let (rate, latency) = (draw.rate(), draw.latency());
    let kind = draw.below(9);
    let sizes: Vec<u32> = (0..draw.below(6)).map(|_| size(draw)).collect();
    let wide: Vec<u128> = sizes.iter().copied().map(u128::from).collect();
    let at = |i: usize| wide.get(i).copied().unwrap_or(0);
    let get = |i: usize| sizes.get(i).copied().unwrap_or(0);
    let product = wide.iter().fold(1u128, |all, &one| all.saturating_mul(one));
    let (a, b, c) = (at(0), at(1), at(2));
    // At least what is made, and within a factor that does not matter here.
    let about = match kind {
        0 | 1 => product.saturating_mul(1 + 2 * wide.len() as u128),
        2 => 1 << a.min(100),
        3 | 4 => a * a,
        5 => a * b + b * c,
        6 => a.saturating_mul(a).saturating_mul(a),
        7 => (a * b) * (a + b).min(1 << 32),
        _ => a * a + a * b,
    };
    if about > MAX_NPUS && about < u128::from(MEMORY_LIMIT) {
        return None;
    }
    Some(match kind {
        0 => build::mesh(&sizes, rate, latency),
        1 => build::torus(&sizes, rate, latency),
        2 => build::hypercube(get(0), rate, latency),
        3 => build::fully_connected(get(0), rate, latency),
        4 => match draw.below(4) {
            0 => build::line(get(0).min(40), rate, latency),
            1 => build::ring(get(0).min(40), rate, latency, RingWays::One),
            2 => build::ring(get(0).min(40), rate, latency, RingWays::Both),
            _ => build::switch(get(0).min(40), rate, latency, Some(rate)),
        },
        5 => build::clos(&Clos {
            spines: get(0),
            tors: get(1),
            hosts_per_tor: get(2),
            host_bandwidth: rate,
            fabric_bandwidth: draw.rate(),
            latency,
        }),
        6 => build::fat_tree(get(0), rate, latency),
        7 => build::dragonfly(&Dragonfly {
            groups: get(0),
            group_size: get(1),
            npus_per_router: None,
            local_bandwidth: rate,
            local_latency: latency,
            global_bandwidth: draw.rate(),
            global_latency: draw.latency(),
        }),
        _ => build::bigraph(get(0), get(1), rate, latency),
    })
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
