//! Dragonfly: fully connected groups, joined to each other by long links.

use super::super::{Topology, TopologyBuilder, TopologyError};
use super::nodes::runs;
use super::{Counts, check_least, check_memory, switches};
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};

family! {
    /// Fully connected groups of routers, and a link each way between every two groups.
    ///
    /// The k-th group after group g (k from 0) is reached from member `k mod group_size` of g, so that
    /// the long links are spread evenly over the members. Router `g * group_size + i` is member i of group
    /// g: an NPU itself, or a switch `router0`, ... with NPUs that follow one another, which are stated as
    /// groups.
    ///
    /// # Source
    /// Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly topology, ISCA 2008; the
    /// relative arrangement of global links.
    "dragonfly", as "4x5",
    struct Dragonfly {
        /// Groups of routers.
        groups: u32,
        /// Routers in each group.
        group_size: u32,
        /// NPUs at each router, a switch; by default NPUs are their own routers.
        npus_per_router: Option<u32>,
        /// Of each link inside a group, those of NPUs among them, one direction.
        bandwidth: Bandwidth,
        /// Of each link inside a group.
        latency: Time,
        /// Of each link between groups.
        global_bandwidth: Bandwidth = bandwidth,
        /// Of each link between groups.
        global_latency: Time = latency,
    }
}

impl Dragonfly {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let (g, a) = (u128::from(self.groups), u128::from(self.group_size));
        let (routers, each) = (g * a, self.npus_per_router.map_or(1, u128::from));
        let npus = routers * each;
        let (switches, ports) = self.npus_per_router.map_or((0, 0), |_| (routers, npus));
        let local = routers.saturating_mul(a.saturating_sub(1)) / 2;
        Counts::of(
            npus,
            switches,
            ports.saturating_add(local) + g * g.saturating_sub(1) / 2,
        )
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for no group, an empty one, or fewer than two NPUs in all;
    /// [`TopologyError::TooLarge`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let &Self {
            groups, group_size, ..
        } = self;
        check_least("groups of the dragonfly", groups, 1)?;
        check_least("group size of the dragonfly", group_size, 1)?;
        let each = self.npus_per_router.unwrap_or(1);
        check_least("NPUs at each router of the dragonfly", each, 1)?;
        let counts = self.counts();
        if counts.npus < 2 {
            return Err(TopologyError::BadParameter {
                what: "dragonfly".to_owned(),
                why: "has one NPU; give it two groups or a group of two".to_owned(),
            });
        }
        let what = || format!("a dragonfly of {groups} groups of {group_size}");
        check_memory(what, &counts)?;
        let name = match self.npus_per_router {
            None => format!("dragonfly {groups}x{group_size}"),
            Some(each) => format!("dragonfly {groups}x{group_size}x{each}"),
        };
        let mut builder = TopologyBuilder::new(name);
        builder.npus(counts.npus as usize);
        let routers = self.routers(&mut builder);
        let member = |group: u32, i: u32| routers[(group * group_size + i) as usize];
        for group in 0..groups {
            for i in 0..group_size {
                for j in i + 1..group_size {
                    builder.both_ways(
                        member(group, i),
                        member(group, j),
                        self.bandwidth,
                        self.latency,
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
                    self.global_bandwidth,
                    self.global_latency,
                );
            }
        }
        let made = builder.finish()?;
        match self.npus_per_router {
            None => Ok(made),
            Some(each) => made.with_groups(runs(groups * group_size, each)),
        }
    }

    /// Returns the routers, linked to their NPUs where they are not NPUs themselves.
    fn routers(&self, builder: &mut TopologyBuilder) -> Vec<DeviceId> {
        let count = self.groups * self.group_size;
        let Some(each) = self.npus_per_router else {
            return (0..count).map(DeviceId).collect();
        };
        let routers = switches(builder, "router", count);
        for npu in 0..count * each {
            let router = routers[(npu / each) as usize];
            builder.both_ways(DeviceId(npu), router, self.bandwidth, self.latency);
        }
        routers
    }
}
