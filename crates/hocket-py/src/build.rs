//! The topology builders.

use hocket_core::topology::build::{self, Clos, Dragonfly, Nodes, RingWays};
use hocket_core::units::Time;
use pyo3::prelude::*;

use crate::error::CoreError;
use crate::topology::{GivenDimension, PyTopology, positive, to_dimensions};

#[pyfunction]
pub(crate) fn build_line(n: u32, bandwidth: u64, latency_ps: u64) -> Result<PyTopology, CoreError> {
    let rate = positive(bandwidth, || "line".to_owned())?;
    Ok(PyTopology::new(build::line(
        n,
        rate,
        Time::from_ps(latency_ps),
    )?))
}

#[pyfunction]
pub(crate) fn build_ring(
    n: u32,
    bandwidth: u64,
    latency_ps: u64,
    both_ways: bool,
) -> Result<PyTopology, CoreError> {
    let rate = positive(bandwidth, || "ring".to_owned())?;
    let ways = if both_ways {
        RingWays::Both
    } else {
        RingWays::One
    };
    Ok(PyTopology::new(build::ring(
        n,
        rate,
        Time::from_ps(latency_ps),
        ways,
    )?))
}

#[pyfunction]
pub(crate) fn build_fully_connected(
    n: u32,
    bandwidth: u64,
    latency_ps: u64,
) -> Result<PyTopology, CoreError> {
    let rate = positive(bandwidth, || "fully connected".to_owned())?;
    Ok(PyTopology::new(build::fully_connected(
        n,
        rate,
        Time::from_ps(latency_ps),
    )?))
}

#[pyfunction]
pub(crate) fn build_switch(
    n: u32,
    bandwidth: u64,
    latency_ps: u64,
    limit: Option<u64>,
) -> Result<PyTopology, CoreError> {
    let rate = positive(bandwidth, || "switch".to_owned())?;
    let limit = limit.map(|limit| positive(limit, || "limit of the switch".to_owned()));
    let latency = Time::from_ps(latency_ps);
    Ok(PyTopology::new(build::switch(
        n,
        rate,
        latency,
        limit.transpose()?,
    )?))
}

#[pyfunction]
pub(crate) fn build_mesh(
    sizes: Vec<u32>,
    bandwidth: u64,
    latency_ps: u64,
) -> Result<PyTopology, CoreError> {
    let rate = positive(bandwidth, || "mesh".to_owned())?;
    Ok(PyTopology::new(build::mesh(
        &sizes,
        rate,
        Time::from_ps(latency_ps),
    )?))
}

#[pyfunction]
pub(crate) fn build_torus(
    sizes: Vec<u32>,
    bandwidth: u64,
    latency_ps: u64,
) -> Result<PyTopology, CoreError> {
    let rate = positive(bandwidth, || "torus".to_owned())?;
    Ok(PyTopology::new(build::torus(
        &sizes,
        rate,
        Time::from_ps(latency_ps),
    )?))
}

#[pyfunction]
pub(crate) fn build_hypercube(
    log2_n: u32,
    bandwidth: u64,
    latency_ps: u64,
) -> Result<PyTopology, CoreError> {
    let rate = positive(bandwidth, || "hypercube".to_owned())?;
    Ok(PyTopology::new(build::hypercube(
        log2_n,
        rate,
        Time::from_ps(latency_ps),
    )?))
}

#[pyfunction]
pub(crate) fn build_product(dimensions: Vec<GivenDimension>) -> Result<PyTopology, CoreError> {
    Ok(PyTopology::new(build::product(&to_dimensions(
        &dimensions,
    )?)?))
}

#[pyfunction]
#[pyo3(signature = (
    groups, group_size, local_bandwidth, local_latency_ps, global_bandwidth, global_latency_ps,
    npus_per_router=None
))]
pub(crate) fn build_dragonfly(
    groups: u32,
    group_size: u32,
    local_bandwidth: u64,
    local_latency_ps: u64,
    global_bandwidth: u64,
    global_latency_ps: u64,
    npus_per_router: Option<u32>,
) -> Result<PyTopology, CoreError> {
    Ok(PyTopology::new(build::dragonfly(&Dragonfly {
        groups,
        group_size,
        npus_per_router,
        local_bandwidth: positive(local_bandwidth, || "links within a group".to_owned())?,
        local_latency: Time::from_ps(local_latency_ps),
        global_bandwidth: positive(global_bandwidth, || "links between groups".to_owned())?,
        global_latency: Time::from_ps(global_latency_ps),
    })?))
}

#[pyfunction]
pub(crate) fn build_clos(
    spines: u32,
    tors: u32,
    hosts_per_tor: u32,
    host_bandwidth: u64,
    fabric_bandwidth: u64,
    latency_ps: u64,
) -> Result<PyTopology, CoreError> {
    Ok(PyTopology::new(build::clos(&Clos {
        spines,
        tors,
        hosts_per_tor,
        host_bandwidth: positive(host_bandwidth, || "host links".to_owned())?,
        fabric_bandwidth: positive(fabric_bandwidth, || "fabric links".to_owned())?,
        latency: Time::from_ps(latency_ps),
    })?))
}

#[pyfunction]
pub(crate) fn build_bigraph(
    switches_per_side: u32,
    npus_per_switch: u32,
    bandwidth: u64,
    latency_ps: u64,
) -> Result<PyTopology, CoreError> {
    let rate = positive(bandwidth, || "BiGraph".to_owned())?;
    Ok(PyTopology::new(build::bigraph(
        switches_per_side,
        npus_per_switch,
        rate,
        Time::from_ps(latency_ps),
    )?))
}

#[pyfunction]
pub(crate) fn build_fat_tree(
    k: u32,
    bandwidth: u64,
    latency_ps: u64,
) -> Result<PyTopology, CoreError> {
    let rate = positive(bandwidth, || "fat tree".to_owned())?;
    Ok(PyTopology::new(build::fat_tree(
        k,
        rate,
        Time::from_ps(latency_ps),
    )?))
}

/// Bandwidth [bytes/s] and latency [ps] of the links within nodes, then of those between them.
type NodeLinks = (u64, u64, u64, u64);

fn nodes_of(nodes: u32, npus: u32, links: NodeLinks) -> Result<Nodes, CoreError> {
    Ok(Nodes {
        nodes,
        npus,
        node_bandwidth: positive(links.0, || "links within a node".to_owned())?,
        node_latency: Time::from_ps(links.1),
        bandwidth: positive(links.2, || "links between nodes".to_owned())?,
        latency: Time::from_ps(links.3),
    })
}

#[pyfunction]
pub(crate) fn build_rail(
    nodes: u32,
    npus: u32,
    spines: u32,
    links: NodeLinks,
) -> Result<PyTopology, CoreError> {
    let parameters = nodes_of(nodes, npus, links)?;
    Ok(PyTopology::new(build::rail(&parameters, spines)?))
}

#[pyfunction]
pub(crate) fn build_boxes(
    nodes: u32,
    npus: u32,
    nics: u32,
    links: NodeLinks,
) -> Result<PyTopology, CoreError> {
    let parameters = nodes_of(nodes, npus, links)?;
    Ok(PyTopology::new(build::boxes(&parameters, nics)?))
}

#[pyfunction]
pub(crate) fn build_planes(
    npus: u32,
    planes: u32,
    bandwidth: u64,
    latency_ps: u64,
) -> Result<PyTopology, CoreError> {
    let rate = positive(bandwidth, || "planes".to_owned())?;
    let latency = Time::from_ps(latency_ps);
    Ok(PyTopology::new(build::planes(npus, planes, rate, latency)?))
}
