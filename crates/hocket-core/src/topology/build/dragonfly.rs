//! Dragonfly: fully connected groups, joined to each other by long links.

use super::super::{Topology, TopologyBuilder, TopologyError};
use super::nodes::runs;
use super::{check_least, check_memory, switches};
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};

/// Parameters of [`dragonfly`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    /// Groups.
    pub groups: u32,
    /// Routers in each group.
    pub group_size: u32,
    /// NPUs at each router, a switch; `None`: NPUs are their own routers.
    pub npus_per_router: Option<u32>,
    /// Bandwidth of each link inside a group.
    pub local_bandwidth: Bandwidth,
    /// Latency of each link inside a group.
    pub local_latency: Time,
    /// Bandwidth of each link between groups.
    pub global_bandwidth: Bandwidth,
    /// Latency of each link between groups.
    pub global_latency: Time,
}

/// Groups of fully connected routers, and one link each way between every two groups.
///
/// The k-th group after group g (k from 0) is reached from member `k mod group_size` of g, so that
/// the long links are spread evenly over the members. Router `g * group_size + i` is member i of group
/// g: an NPU itself, or a switch `router0`, ... with NPUs that follow one another, which are stated as
/// [groups](Topology::groups). Links of those NPUs are as those inside a group.
///
/// # Errors
/// [`TopologyError::BadParameter`] for no group, an empty one, or fewer than two NPUs in all;
/// [`TopologyError::TooLarge`].
///
/// # Source
/// Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly topology, ISCA 2008;
/// the relative arrangement of global links.
pub fn dragonfly(parameters: &Dragonfly) -> Result<Topology, TopologyError> {
    let &Dragonfly {
        groups, group_size, ..
    } = parameters;
    check_least("groups of the dragonfly", groups, 1)?;
    check_least("group size of the dragonfly", group_size, 1)?;
    let (g, a) = (u128::from(groups), u128::from(group_size));
    let each = parameters.npus_per_router.unwrap_or(1);
    check_least("NPUs at each router of the dragonfly", each, 1)?;
    let npus = g * a * u128::from(each);
    if npus < 2 {
        return Err(TopologyError::BadParameter {
            what: "dragonfly".to_owned(),
            why: "has one NPU; give it two groups or a group of two".to_owned(),
        });
    }
    let links = (g * a).saturating_mul(a - 1).saturating_add(g * (g - 1));
    let what = || format!("a dragonfly of {groups} groups of {group_size}");
    check_memory(what, g * a + npus, links.saturating_add(2 * npus))?;
    let name = match parameters.npus_per_router {
        None => format!("dragonfly {groups}x{group_size}"),
        Some(each) => format!("dragonfly {groups}x{group_size}x{each}"),
    };
    let mut builder = TopologyBuilder::new(name);
    builder.npus(npus as usize);
    let routers = routers(&mut builder, parameters);
    let member = |group: u32, i: u32| routers[(group * group_size + i) as usize];
    for group in 0..groups {
        for i in 0..group_size {
            for j in i + 1..group_size {
                builder.both_ways(
                    member(group, i),
                    member(group, j),
                    parameters.local_bandwidth,
                    parameters.local_latency,
                );
            }
        }
    }
    for group in 0..groups {
        for other in group + 1..groups {
            let there = other - group - 1;
            let back = groups - 2 - there;
            builder.both_ways(
                member(group, there % group_size),
                member(other, back % group_size),
                parameters.global_bandwidth,
                parameters.global_latency,
            );
        }
    }
    let made = builder.finish()?;
    match parameters.npus_per_router {
        None => Ok(made),
        Some(each) => made.with_groups(runs(groups * group_size, each)),
    }
}

/// The routers, linked to their NPUs where they are not NPUs themselves.
fn routers(builder: &mut TopologyBuilder, parameters: &Dragonfly) -> Vec<DeviceId> {
    let count = parameters.groups * parameters.group_size;
    let Some(each) = parameters.npus_per_router else {
        return (0..count).map(DeviceId).collect();
    };
    let routers = switches(builder, "router", count);
    for npu in 0..count * each {
        let router = routers[(npu / each) as usize];
        let (bandwidth, latency) = (parameters.local_bandwidth, parameters.local_latency);
        builder.both_ways(DeviceId(npu), router, bandwidth, latency);
    }
    routers
}
