//! A Clos or fat tree as routing sees it: which switch reaches which by which links.
//!
//! ```text
//! spine s                    core c            one for each plane: aggs of one position in their pods,
//!    |                          |              and the cores that they reach
//! tor t                 agg (pod, plane)
//!                               |
//!                            edge t
//! ```
//!
//! A path is known by its highest switch. Its links stand in columns: links up from ToRs, links down
//! to them, and on three levels links up from pods to cores, links down.

use super::{Flow, RoutingError};
use crate::id::{LinkId, NpuId, narrow};
use crate::units::Bandwidth;

/// A two-level Clos or a three-level fat tree, failures included.
///
/// Switches keep the numbers in their names, so that `tor5` and `edge5` are ToR 5 whatever failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    pub(super) tors: usize,
    /// Spines, or planes on three levels.
    pub(super) columns: usize,
    pub(super) upper: Option<Upper>,
    /// By slot; `None` where there is no link.
    pub(super) links: Vec<Option<LinkId>>,
    /// What a weight of 1 loads the link of each slot with; empty where it is 1 for all.
    pub(super) scales: Vec<u64>,
    pub(super) reference: Option<Bandwidth>,
    pub(super) hosts: Vec<Host>,
    pub(super) hosts_per_tor: usize,
    pub(super) tops: Vec<u32>,
    pub(super) complete: bool,
    /// Numbers of the ToRs that are there.
    pub(super) live: Vec<usize>,
}

/// Where an NPU is joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) tor: Option<u32>,
    pub(super) up: Option<LinkId>,
    pub(super) down: Option<LinkId>,
}

/// The third level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Upper {
    pub(super) pods: usize,
    pub(super) cores: usize,
    /// Pod of each ToR.
    pub(super) pod_of: Vec<u32>,
    /// Plane of each core.
    pub(super) plane_of: Vec<u32>,
    /// Pod and plane of each agg; `None` where there is no such agg.
    pub(super) aggs: Vec<Option<[u32; 2]>>,
    /// Lowest and highest agg of each pod; the lowest above the highest where it has none.
    pub(super) aggs_of: Vec<[u32; 2]>,
}

/// Slots of the links of a path, from source to destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    at: [u32; 4],
    count: u32,
}

impl Slots {
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let Self { at, count } = *self;
        (0..count as usize).map(move |i| at[i] as usize)
    }
}

impl Fabric {
    /// One more than the highest number of a ToR.
    pub fn tor_count(&self) -> usize {
        self.tors
    }

    /// Returns how many links a ToR may have each way: one more than the highest number of a spine, or planes.
    pub fn column_count(&self) -> usize {
        self.columns
    }

    /// Levels of switches: 2 or 3.
    pub fn levels(&self) -> u32 {
        if self.upper.is_some() { 3 } else { 2 }
    }

    /// Returns whether nothing failed but whole spines, cores or ToRs, or all switches of a plane.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns the bandwidth of a link that a weight loads with just itself: the least common multiple of all between
    /// switches, which is that of each where they are alike.
    pub fn reference(&self) -> Bandwidth {
        self.reference.expect("a fabric has links between switches")
    }

    /// Returns the number of the ToR above an NPU, the lowest link's where it has several; `None` where all its links
    /// failed and for NPUs that are not there.
    pub fn tor_of(&self, npu: NpuId) -> Option<u32> {
        self.hosts.get(npu.index())?.tor
    }

    /// Returns the links from an NPU up to its ToR and down again, where they are there.
    pub fn npu_links(&self, npu: NpuId) -> [Option<LinkId>; 2] {
        let host = self.hosts.get(npu.index()).copied().unwrap_or_default();
        [host.up, host.down]
    }

    /// Pod of a ToR; `None` on two levels and for ToRs that are not there.
    pub fn pod_of(&self, tor: u32) -> Option<u32> {
        self.upper.as_ref()?.pod_of.get(tor as usize).copied()
    }

    /// Returns the choices of a flow from one ToR to another, lowest first: numbers of the highest switches of its
    /// paths. Those are spines on two levels; on three levels cores, and within a pod aggregation switches. There are
    /// none from a ToR to itself or for ToRs that are not there.
    pub fn choices_between(&self, src: u32, dst: u32) -> impl Iterator<Item = u32> + '_ {
        let (first, past) = match &self.upper {
            _ if src.max(dst) as usize >= self.tors => (0, 0),
            None => (0, narrow(self.columns)),
            Some(upper) if upper.pod_of[src as usize] != upper.pod_of[dst as usize] => {
                (0, narrow(upper.cores))
            }
            Some(upper) => {
                let [lowest, highest] = upper.aggs_of[upper.pod_of[src as usize] as usize];
                (lowest, highest.wrapping_add(1))
            }
        };
        (first..past).filter(move |&choice| self.slots(src, dst, choice).is_some())
    }

    /// Returns whether there is a choice.
    #[inline]
    pub(super) fn joins(&self, src: u32, dst: u32) -> bool {
        if self.complete && self.upper.is_none() {
            // Any spine that works will do.
            let there = |slot: usize| self.links[slot + self.tops[0] as usize].is_some();
            let up = src as usize * self.columns;
            return there(up) && there((self.tors + dst as usize) * self.columns);
        }
        self.choices_between(src, dst).next().is_some()
    }

    /// Appends the links of one choice, from source to destination, and says whether it is one: two
    /// links through a spine or within a pod, four through a core.
    pub fn route(&self, src: u32, dst: u32, choice: u32, links: &mut Vec<LinkId>) -> bool {
        let slots = self.slots(src, dst, choice);
        let path = slots.iter().flat_map(Slots::iter);
        links.extend(path.filter_map(|slot| self.links[slot]));
        slots.is_some()
    }

    /// Returns the slots of a choice, if all its links are there.
    #[inline]
    pub(super) fn slots(&self, src: u32, dst: u32, choice: u32) -> Option<Slots> {
        let slots = self.places(src, dst, choice)?;
        let there = slots.iter().all(|slot| self.links[slot].is_some());
        there.then_some(slots)
    }

    /// Returns the slots of a choice that is known to be one.
    #[inline]
    pub(super) fn slots_of(&self, src: u32, dst: u32, choice: u32) -> Slots {
        let slots = self.places(src, dst, choice);
        slots.expect("an assignment only uses paths that are there")
    }

    #[inline]
    fn places(&self, src: u32, dst: u32, choice: u32) -> Option<Slots> {
        if src == dst || src.max(dst) as usize >= self.tors {
            return None;
        }
        let Some(upper) = &self.upper else {
            return ((choice as usize) < self.columns).then(|| self.short(src, dst, choice));
        };
        let pods = [src, dst].map(|tor| upper.pod_of[tor as usize]);
        if pods[0] == pods[1] {
            let [pod, plane] = (*upper.aggs.get(choice as usize)?)?;
            return (pod == pods[0]).then(|| self.short(src, dst, plane));
        }
        let plane = *upper.plane_of.get(choice as usize)?;
        let [up, down] = self.short(src, dst, plane).ends();
        let start = 2 * self.tors * self.columns;
        let [above, below] = pods.map(|pod| pod as usize * upper.cores + choice as usize);
        let across = [start + above, start + upper.pods * upper.cores + below];
        Some(Slots {
            at: [up, narrow(across[0]), narrow(across[1]), down],
            count: 4,
        })
    }

    /// Up and down again by one column.
    #[inline]
    fn short(&self, src: u32, dst: u32, column: u32) -> Slots {
        let [up, down] = [src, dst].map(|tor| tor * narrow(self.columns) + column);
        Slots {
            at: [up, narrow(self.tors * self.columns) + down, 0, 0],
            count: 2,
        }
    }

    /// Returns what a weight of 1 loads a slot's link with.
    #[inline]
    pub(super) fn scale(&self, slot: usize) -> u64 {
        self.scales.get(slot).copied().unwrap_or(1)
    }

    /// Returns whether all links between switches have one bandwidth.
    pub(super) fn is_even(&self) -> bool {
        self.scales.is_empty()
    }

    /// Returns the number of NPUs below a ToR, rounded up.
    pub(super) fn hosts_per_tor(&self) -> usize {
        self.hosts_per_tor.max(1)
    }

    /// Returns the numbers of the spines or cores that have links; of aggs where no core has.
    pub(super) fn tops(&self) -> &[u32] {
        &self.tops
    }

    /// Checks that every flow joins two ToRs that are there, has a path, and that loads stay below 2^63.
    pub(super) fn check(&self, flows: &[Flow]) -> Result<(), RoutingError> {
        let count = narrow(self.tor_count());
        let scale = self.scales.iter().copied().max().unwrap_or(1);
        let mut total = 0u64;
        for (flow, &Flow { src, dst, weight }) in flows.iter().enumerate() {
            if let Some(tor) = [src, dst].into_iter().find(|&tor| tor >= count) {
                let last = count - 1;
                return Err(RoutingError::UnknownTor { flow, tor, last });
            }
            if src == dst {
                return Err(RoutingError::SameTor { flow, tor: src });
            }
            total = total.saturating_add(weight);
        }
        if total.saturating_mul(scale) >= 1 << 63 {
            return Err(RoutingError::TooHeavy { scale });
        }
        let cut: Vec<usize> = (0..flows.len())
            .filter(|&i| !self.joins(flows[i].src, flows[i].dst))
            .collect();
        if cut.is_empty() {
            return Ok(());
        }
        Err(RoutingError::Cut {
            flows: listed(&cut, flows),
        })
    }

    /// Where each block of slots starts: links up from ToRs, down to them, up from pods, down; and
    /// the end.
    pub(super) fn blocks(&self) -> [usize; 5] {
        let lower = self.tors * self.columns;
        let upper = self
            .upper
            .as_ref()
            .map_or(0, |upper| upper.pods * upper.cores);
        [0, lower, 2 * lower, 2 * lower + upper, 2 * (lower + upper)]
    }
}

impl Slots {
    /// Returns the first and the last.
    pub(super) fn ends(self) -> [u32; 2] {
        [self.at[0], self.at[self.count as usize - 1]]
    }
}

/// `flows 3 (0 -> 5), 7 (1 -> 5) and 4 more`.
fn listed(which: &[usize], flows: &[Flow]) -> String {
    const NAMED: usize = 8;
    let name = |&i: &usize| format!("{i} ({} -> {})", flows[i].src, flows[i].dst);
    let named: Vec<String> = which.iter().take(NAMED).map(name).collect();
    let kind = if which.len() == 1 { "flow" } else { "flows" };
    let more = match which.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{kind} {}{more}", named.join(", "))
}
