//! Finds a group: by the numbers of NPUs, in the network's own order, by node, or by coordinates that are read off
//! the links.

use std::collections::VecDeque;

use super::NoSymmetry;
use super::coordinates::by_links;
use super::extend::{Extender, class};
use super::group::{Shift, Symmetry, are_alike};
use crate::id::{DeviceId, NpuId, narrow};
use crate::topology::Topology;

/// Finds a group that takes every NPU to every other in one way: a product of cyclic groups, each of which counts
/// one digit of the NPUs' numbers up and round.
///
/// Nothing is taken from how the network was built. What is found has been checked against its devices and links.
///
/// # Errors
/// [`NoSymmetry`] with two NPUs that are not alike, or the first link that cannot follow.
///
/// # Complexity
/// O(links) for each way to cut a digit out of the numbers, most of which fail at the first link.
pub fn find(topology: &Topology) -> Result<Symmetry, NoSymmetry> {
    if topology.npu_count() < 2 {
        return Err(NoSymmetry::Regular);
    }
    check_alike(topology)?;
    let finder = Finder {
        topology,
        extender: Extender::new(topology),
    };
    let own: Vec<u32> = (0..narrow(topology.npu_count())).collect();
    let failure = match finder.by_digits(&own) {
        Ok(found) => return Ok(found),
        Err(failure) => failure,
    };
    let orders = [by_nodes(topology), by_links(topology)];
    for order in orders.into_iter().flatten().filter(|order| *order != own) {
        if let Ok(found) = finder.by_digits(&order) {
            return Ok(found);
        }
    }
    Err(failure)
}

/// Finds a group that takes NPUs to others in at most one way, where none takes every NPU to every other, as in a mesh: of
/// each digit of the NPUs' numbers, it counts up and round, or from the other end. `None` if there is none.
///
/// # Complexity
/// As [`find`].
pub(super) fn find_free(topology: &Topology) -> Option<Symmetry> {
    let npus = topology.npu_count();
    let finder = Finder {
        topology,
        extender: Extender::new(topology),
    };
    let own: Vec<u32> = (0..narrow(npus)).collect();
    let mut generators = Vec::new();
    let mut below = 1;
    while below < npus {
        let above = (below + 1..=npus).filter(|above| above.is_multiple_of(below));
        let mut above = above.filter(|&above| npus.is_multiple_of(above));
        let found = above.find_map(|above| {
            let up = finder.count_up(&own, below, above).ok();
            let up = up.map(|shift| (narrow(above / below), shift));
            let mirror = || Some((2, finder.mirror(&own, below, above).ok()?));
            Some((above, up.or_else(mirror)?))
        });
        let Some((above, generator)) = found else {
            break;
        };
        // What is in the middle would stay where it is.
        if (above / below).is_multiple_of(generator.0 as usize) {
            generators.push(generator);
        }
        below = above;
    }
    if generators.is_empty() {
        return None;
    }
    Symmetry::free(topology, &generators, NpuId(0)).ok()
}

/// That NPUs have as many links of each kind, in and out.
fn check_alike(topology: &Topology) -> Result<(), NoSymmetry> {
    let ends = |npu: NpuId| {
        let out = topology.out_links(npu.device()).iter();
        let into = topology.in_links(npu.device()).iter();
        let far = |device: DeviceId| topology.is_npu(device);
        let out = out
            .map(|&id| topology.link(id))
            .map(|link| (0, class(link), far(link.dst)));
        let into = into
            .map(|&id| topology.link(id))
            .map(|link| (1, class(link), far(link.src)));
        let mut all: Vec<(u8, (u64, u64), bool)> = out.chain(into).collect();
        all.sort_unstable();
        all
    };
    let first = ends(NpuId(0));
    for npu in topology.npus() {
        let devices = [NpuId(0), npu].map(|npu| topology.device(npu.device()));
        if !are_alike(devices[0], devices[1]) || ends(npu) != first {
            return Err(NoSymmetry::Npus {
                a: devices[0].name.clone(),
                a_links: topology.out_links(NpuId(0).device()).len(),
                b: devices[1].name.clone(),
                b_links: topology.out_links(npu.device()).len(),
            });
        }
    }
    Ok(())
}

/// Returns the NPUs node by node, where nodes are stated and have as many each.
fn by_nodes(topology: &Topology) -> Option<Vec<u32>> {
    let groups = topology.groups();
    let size = groups.first()?.len();
    let even = groups.iter().all(|group| group.len() == size);
    even.then(|| groups.iter().flatten().map(|npu| npu.0).collect())
}

struct Finder<'a> {
    topology: &'a Topology,
    extender: Extender<'a>,
}

impl Finder<'_> {
    /// Returns the fewest digits that each can be counted up, of the positions of NPUs in an order.
    fn by_digits(&self, order: &[u32]) -> Result<Symmetry, NoSymmetry> {
        let npus = order.len();
        let steps: Vec<usize> = (1..=npus)
            .filter(|step| npus.is_multiple_of(*step))
            .collect();
        // By how many numbers are below a digit: the digit before it, and its shift.
        let mut before: Vec<Option<(usize, Option<Shift>)>> = vec![None; npus + 1];
        before[1] = Some((1, None));
        let mut queue = VecDeque::from([1]);
        let mut failure = None;
        while let Some(below) = queue.pop_front() {
            if below == npus {
                break;
            }
            for &above in steps.iter().rev().filter(|&&above| above > below) {
                if before[above].is_some() || !above.is_multiple_of(below) {
                    continue;
                }
                match self.count_up(order, below, above) {
                    Ok(shift) => {
                        before[above] = Some((below, Some(shift)));
                        queue.push_back(above);
                    }
                    Err(why) => failure = Some(failure.unwrap_or(why)),
                }
            }
        }
        let mut generators = Vec::new();
        let mut above = npus;
        while above > 1 {
            let Some((below, Some(shift))) = before[above].take() else {
                return Err(failure.unwrap_or(NoSymmetry::Regular));
            };
            generators.push((narrow(above / below), shift));
            above = below;
        }
        generators.reverse();
        Symmetry::new(self.topology, &generators, NpuId(order[0]))
    }

    /// Returns the shift that counts up the digit between two multiples.
    fn count_up(&self, order: &[u32], below: usize, above: usize) -> Result<Shift, NoSymmetry> {
        self.taken(order, |position| {
            (position + below) % above + position / above * above
        })
    }

    /// Returns the shift that counts the digit between two multiples from the other end.
    fn mirror(&self, order: &[u32], below: usize, above: usize) -> Result<Shift, NoSymmetry> {
        self.taken(order, |position| {
            let digit = position % above / below;
            position + above - below - 2 * digit * below
        })
    }

    /// Returns the shift that takes the NPU at each position to that at another.
    fn taken(&self, order: &[u32], to: impl Fn(usize) -> usize) -> Result<Shift, NoSymmetry> {
        let mut npus = vec![0; order.len()];
        for (position, &npu) in order.iter().enumerate() {
            npus[npu as usize] = order[to(position)];
        }
        self.check_some(&npus)?;
        self.extender.extend(&npus)
    }

    /// Links between NPUs at a few of them: most that is no symmetry fails here, at no cost.
    fn check_some(&self, npus: &[u32]) -> Result<(), NoSymmetry> {
        let topology = self.topology;
        let taken = |device: DeviceId| DeviceId(npus[device.index()]);
        for npu in [0, npus.len() / 2, npus.len() - 1] {
            for &id in topology.out_links(DeviceId::from(npu)) {
                let link = topology.link(id);
                if !topology.is_npu(link.dst) {
                    continue;
                }
                let ends = (taken(link.src), taken(link.dst));
                let mut there = topology.links_from_to(ends.0, ends.1).iter();
                if !there.any(|&other| class(topology.link(other)) == class(link)) {
                    return Err(NoSymmetry::link(topology, (link.src, link.dst), ends));
                }
            }
        }
        Ok(())
    }
}
