//! Pods and planes of a three-level fat tree, found by what is joined.
//!
//! Pods are the parts that ToRs and aggregation switches fall into without cores, planes those that
//! aggregation switches and cores fall into without ToRs. Failures may part one; no path that is left
//! crosses from part to part, so that the parts may as well be pods and planes of their own.

use std::collections::HashMap;

use super::fabric::Upper;
use super::sets::Sets;
use crate::id::narrow;
use crate::topology::Topology;

/// What a device is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) level: Level,
    /// In its name; 0 for NPUs.
    pub(super) number: usize,
}

/// Lowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Host,
    /// Named `tor` on two levels, `edge` on three.
    Tor,
    Spine,
    Agg,
    Core,
}

/// Returns the third level of a network of so many ToRs, aggs and cores.
pub(super) fn upper(
    topology: &Topology,
    roles: &[Role],
    [tors, aggs, cores]: [usize; 3],
) -> Result<Upper, String> {
    let mut pods = Numbered::new(tors + aggs);
    let mut planes = Numbered::new(cores + aggs);
    let mut linked = vec![false; cores];
    for link in topology.links() {
        let [mut low, mut high] = [link.src, link.dst].map(|id| roles[id.index()]);
        if low.level > high.level {
            (low, high) = (high, low);
        }
        match (low.level, high.level) {
            (Level::Tor, Level::Agg) => pods.sets.join(low.number, tors + high.number),
            (Level::Agg, Level::Core) => {
                linked[high.number] = true;
                planes.sets.join(high.number, cores + low.number);
            }
            _ => {}
        }
    }
    let pod_of = (0..tors).map(|tor| pods.of(tor)).collect();
    // A core without links is in no plane; any number does.
    let plane = |core: usize| if linked[core] { planes.of(core) } else { 0 };
    let plane_of = (0..cores).map(plane).collect();
    let mut found: Vec<Option<[u32; 2]>> = vec![None; aggs];
    for role in roles.iter().filter(|role| role.level == Level::Agg) {
        let agg = role.number;
        found[agg] = Some([pods.of(tors + agg), planes.of(cores + agg)]);
    }
    Ok(Upper {
        pods: pods.count as usize,
        cores,
        pod_of,
        plane_of,
        aggs_of: ranges(&found, pods.count as usize)?,
        aggs: found,
    })
}

/// Sets that are numbered as they are first asked for.
struct Numbered {
    sets: Sets,
    numbers: Vec<Option<u32>>,
    count: u32,
}

impl Numbered {
    fn new(members: usize) -> Self {
        Self {
            sets: Sets::new(members),
            numbers: vec![None; members],
            count: 0,
        }
    }

    fn of(&mut self, member: usize) -> u32 {
        let number = &mut self.numbers[self.sets.least(member)];
        *number.get_or_insert_with(|| {
            self.count += 1;
            self.count - 1
        })
    }
}

/// Returns the lowest and highest agg of each pod, if no two of one share a plane.
fn ranges(aggs: &[Option<[u32; 2]>], pods: usize) -> Result<Vec<[u32; 2]>, String> {
    let mut taken = HashMap::new();
    let mut ranges = vec![[u32::MAX, 0]; pods];
    for (agg, place) in aggs.iter().enumerate() {
        let Some(place) = *place else { continue };
        if let Some(other) = taken.insert(place, agg) {
            return Err(format!(
                "agg{other} and agg{agg} of one pod reach the same cores; each is to have cores of \
                 its own"
            ));
        }
        let [lowest, highest] = &mut ranges[place[0] as usize];
        *lowest = (*lowest).min(narrow(agg));
        *highest = (*highest).max(narrow(agg));
    }
    Ok(ranges)
}
