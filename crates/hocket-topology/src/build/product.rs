//! Products of dimensions.

use super::super::{
    Dimension, DimensionKind, Offload, Switching, Topology, TopologyBuilder, TopologyError,
};
use super::{Counts, check_least, check_memory};
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};

/// Returns a product of any number of dimensions, in any order. NPU ids vary fastest in the first.
///
/// Two NPUs are joined where they differ in one coordinate and that dimension joins the two values.
/// A switch dimension has one switch for each group of NPUs that share all other coordinates; the
/// switches are named `sw0`, `sw1`, ... A dimension of size 1 adds no links. Where there are
/// switches, messages cut through: from NPU to NPU is one step.
///
/// # Errors
/// [`TopologyError::BadParameter`] for no dimension, a size of 0 or fewer than two NPUs in all;
/// [`TopologyError::TooLarge`].
///
/// # Source
/// Dimensions as ASTRA-sim's analytical network names them (Ring, FullyConnected, Switch).
pub fn product(dimensions: &[Dimension]) -> Result<Topology, TopologyError> {
    let name = product_name(dimensions);
    check_product(&name, &Counts::of_dimensions(dimensions.to_vec()))?;
    build(name, dimensions, None)
}

/// Alike dimensions of these sizes.
pub(super) fn sides(
    kind: DimensionKind,
    sizes: &[u32],
    bandwidth: Bandwidth,
    latency: Time,
) -> Vec<Dimension> {
    let side = |&size| Dimension {
        kind,
        size,
        bandwidth,
        latency,
        offload: false,
    };
    sizes.iter().map(side).collect()
}

/// Returns a network of one dimension; its switch gets `limit`.
pub(super) fn one(
    what: &str,
    counts: &Counts,
    limit: Option<Bandwidth>,
) -> Result<Topology, TopologyError> {
    let size = counts.dimensions.first().map_or(0, |one| one.size);
    check_least(&format!("size of the {what}"), size, 2)?;
    let name = format!("{what} {size}");
    check_product(&name, counts)?;
    build(name, &counts.dimensions, limit)
}

/// Returns a network of any number of dimensions.
pub(super) fn grid(what: &str, counts: &Counts) -> Result<Topology, TopologyError> {
    let sizes = joined(counts.dimensions.iter().map(|one| one.size));
    let name = format!("{what} {sizes}");
    check_product(&name, counts)?;
    build(name, &counts.dimensions, None)
}

/// As `Ring_Switch 4x8`.
fn product_name(dimensions: &[Dimension]) -> String {
    let kinds = dimensions.iter().map(|dimension| dimension.kind.name());
    let kinds: Vec<&str> = kinds.collect();
    let sizes = joined(dimensions.iter().map(|dimension| dimension.size));
    format!("{} {sizes}", kinds.join("_"))
}

fn joined(sizes: impl Iterator<Item = u32>) -> String {
    let sizes: Vec<String> = sizes.map(|size| size.to_string()).collect();
    sizes.join("x")
}

/// Refuses dimensions that make no network or too large a one.
pub(super) fn check_product(name: &str, counts: &Counts) -> Result<(), TopologyError> {
    let dimensions = &counts.dimensions;
    let bad = |why: String| {
        Err(TopologyError::BadParameter {
            what: format!("dimensions of {name:?}"),
            why,
        })
    };
    if dimensions.is_empty() {
        return bad("there is none; give at least one".to_owned());
    }
    if let Some(i) = dimensions.iter().position(|d| d.size == 0) {
        return bad(format!(
            "the size of dimension {} is 0; give it at least 1",
            i + 1
        ));
    }
    if let Some(i) = dimensions
        .iter()
        .position(|d| d.offload && d.kind != DimensionKind::Switch)
    {
        return bad(format!(
            "dimension {} is to sum in the network but has no switches; only a Switch dimension can",
            i + 1
        ));
    }
    let (npus, links) = (counts.npus, counts.links);
    if npus < 2 {
        return bad("they make one NPU; make one of them 2 or more".to_owned());
    }
    check_memory(|| format!("{name} ({npus} NPUs, {links} links)"), counts)
}

/// Returns the NPUs, switches and links of a product, saturating. No size is 0.
pub fn product_counts(dimensions: &[Dimension]) -> (u128, u128, u128) {
    let npus = dimensions
        .iter()
        .fold(1u128, |all, d| all.saturating_mul(d.size.into()));
    let (mut switches, mut links) = (0u128, 0u128);
    for dimension in dimensions {
        let groups = npus / u128::from(dimension.size);
        if dimension.kind == DimensionKind::Switch && dimension.size > 1 {
            switches = switches.saturating_add(groups);
        }
        links = links.saturating_add(groups.saturating_mul(group_links(dimension)));
    }
    (npus, switches, links)
}

/// Returns the number of links of one group of NPUs along a dimension.
fn group_links(dimension: &Dimension) -> u128 {
    let n = u128::from(dimension.size);
    match dimension.kind {
        _ if n == 1 => 0,
        DimensionKind::Ring if n == 2 => 2,
        DimensionKind::Ring | DimensionKind::Switch => 2 * n,
        DimensionKind::Line => 2 * (n - 1),
        DimensionKind::FullyConnected => n * (n - 1),
    }
}

/// Builds checked dimensions; every switch gets `limit`.
pub(super) fn build(
    name: String,
    dimensions: &[Dimension],
    limit: Option<Bandwidth>,
) -> Result<Topology, TopologyError> {
    let mut builder = TopologyBuilder::new(name);
    let npus: u32 = dimensions.iter().map(|d| d.size).product();
    builder.npus(npus as usize);
    let mut switches = 0;
    let mut stride = 1;
    for dimension in dimensions {
        let size = dimension.size;
        if size > 1 {
            for group in 0..npus / size {
                let first = group / stride * stride * size + group % stride;
                let switch = (dimension.kind == DimensionKind::Switch).then(|| {
                    switches += 1;
                    let id = builder.switch(format!("sw{}", switches - 1), limit);
                    builder.offload(id, dimension.offload.then_some(Offload::FULL));
                    id
                });
                let member = |i: u32| DeviceId(first + i * stride);
                link_group(&mut builder, dimension, member, switch);
            }
        }
        stride *= size;
    }
    if switches > 0 {
        builder.switching(Switching::CutThrough);
    }
    builder.dimensions(dimensions.to_vec());
    builder.finish()
}

/// Returns the links of one group along a dimension of size 2 or more.
fn link_group(
    builder: &mut TopologyBuilder,
    dimension: &Dimension,
    member: impl Fn(u32) -> DeviceId,
    switch: Option<DeviceId>,
) {
    let size = dimension.size;
    let mut join = |a, b| builder.both_ways(a, b, dimension.bandwidth, dimension.latency);
    if let Some(switch) = switch {
        (0..size).for_each(|i| join(member(i), switch));
        return;
    }
    if dimension.kind == DimensionKind::FullyConnected {
        for i in 0..size {
            (i + 1..size).for_each(|j| join(member(i), member(j)));
        }
        return;
    }
    (1..size).for_each(|i| join(member(i - 1), member(i)));
    if dimension.kind == DimensionKind::Ring && size > 2 {
        join(member(size - 1), member(0));
    }
}
