//! A topology seen as a BiGraph: two sides of switches, joined across, and NPUs at all of them.

use std::collections::VecDeque;

use crate::id::{DeviceId, NpuId};
use crate::topology::Topology;

/// A whole BiGraph: as many switches on either side, as many NPUs at every one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BiGraph {
    /// NPUs by side, switch and number.
    sides: [Vec<Vec<NpuId>>; 2],
}

impl BiGraph {
    /// Sees a topology as a BiGraph by its links, whatever its devices are called, or says why it is none.
    pub(super) fn of(topology: &Topology) -> Result<Self, String> {
        let none = || {
            format!(
                "it needs a BiGraph, such as bigraph:4x4, and {:?} is not one; use halving-doubling",
                topology.name()
            )
        };
        let sides = sides(topology).ok_or_else(none)?;
        if let Some((a, b)) = gap(topology, &sides) {
            return Err(format!(
                "it needs a complete BiGraph, and in {:?} there is no link from {} to {}; use halving-doubling",
                topology.name(),
                topology.device(a).name,
                topology.device(b).name,
            ));
        }
        let mut below = vec![Vec::new(); topology.device_count() - topology.npu_count()];
        for npu in topology.npus() {
            let switch = switch_of(topology, npu).ok_or_else(none)?;
            below[switch.index() - topology.npu_count()].push(npu);
        }
        let ports = below[0].len();
        if ports == 0 || below.iter().any(|npus| npus.len() != ports) {
            return Err(none());
        }
        let npus = |switch: &DeviceId| below[switch.index() - topology.npu_count()].clone();
        Ok(Self {
            sides: sides.map(|side| side.iter().map(npus).collect()),
        })
    }

    /// Switches on a side.
    pub(super) fn switches(&self) -> usize {
        self.sides[0].len()
    }

    /// Returns the number of NPUs at each switch.
    pub(super) fn npus_per_switch(&self) -> usize {
        self.sides[0][0].len()
    }

    /// Returns an NPU by its side, the number of its switch there and its own at that.
    pub(super) fn npu(&self, side: usize, switch: usize, number: usize) -> NpuId {
        self.sides[side][switch][number]
    }
}

/// Returns the one switch that an NPU is linked to, both ways.
fn switch_of(topology: &Topology, npu: NpuId) -> Option<DeviceId> {
    let (out, into) = (
        topology.out_links(npu.device()),
        topology.in_links(npu.device()),
    );
    let switch = topology.link(*out.first()?).dst;
    let is_only = !topology.is_npu(switch)
        && !into.is_empty()
        && out.iter().all(|&link| topology.link(link).dst == switch)
        && into.iter().all(|&link| topology.link(link).src == switch);
    is_only.then_some(switch)
}

/// Returns the switches of both sides, as many on each; none where two on a side are linked, or some are apart.
fn sides(topology: &Topology) -> Option<[Vec<DeviceId>; 2]> {
    let npus = topology.npu_count();
    let count = topology.device_count() - npus;
    if count < 2 || !count.is_multiple_of(2) || !npus.is_multiple_of(count) {
        return None;
    }
    let mut side_of: Vec<Option<usize>> = vec![None; count];
    side_of[0] = Some(0);
    let mut queue = VecDeque::from([npus]);
    while let Some(switch) = queue.pop_front() {
        let side = side_of[switch - npus].expect("found");
        for &link in topology.out_links(DeviceId::from(switch)) {
            let Some(next) = topology.link(link).dst.index().checked_sub(npus) else {
                continue;
            };
            match side_of[next] {
                None => {
                    side_of[next] = Some(1 - side);
                    queue.push_back(next + npus);
                }
                Some(other) if other == side => return None,
                Some(_) => {}
            }
        }
    }
    let mut sides = [Vec::new(), Vec::new()];
    for (switch, side) in side_of.into_iter().enumerate() {
        sides[side?].push(DeviceId::from(switch + npus));
    }
    (sides[0].len() == sides[1].len()).then_some(sides)
}

/// Switches across without a link from one to the other.
fn gap(topology: &Topology, [upper, lower]: &[Vec<DeviceId>; 2]) -> Option<(DeviceId, DeviceId)> {
    upper
        .iter()
        .flat_map(|&a| lower.iter().flat_map(move |&b| [(a, b), (b, a)]))
        .find(|&(a, b)| topology.links_from_to(a, b).is_empty())
}
