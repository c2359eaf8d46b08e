//! What must enter or leave the NPUs of a subgroup: bounds that need no search, since all its shifts are alike.

use super::group::Symmetry;
use crate::id::{DeviceId, NpuId};
use crate::topology::Topology;

/// Devices that data of all NPUs outside must get into.
#[derive(Clone, Debug)]
pub(super) struct SubgroupCut {
    /// Whether a device is inside, by device.
    pub inside: Vec<bool>,
    /// NPUs inside.
    pub npus: usize,
    /// Of the links that lead in, or out where trees grow against links [bytes/s].
    pub bandwidth: u128,
}

/// Generators up to which all subgroups of digits are looked at; beyond, those of the first so many, and of the last.
const MOST_GENERATORS: usize = 8;

/// Returns a cut round each subgroup of digits but the whole group.
pub(super) fn cuts(topology: &Topology, symmetry: &Symmetry, turned: bool) -> Vec<SubgroupCut> {
    let count = symmetry.orders().len();
    let subsets: Vec<u64> = if count <= MOST_GENERATORS {
        (0..(1 << count) - 1).collect()
    } else {
        let low = |digits: usize| (1u64 << digits) - 1;
        let first = (0..count).map(low);
        first
            .chain((1..count).map(|digits| low(count) & !low(digits)))
            .collect()
    };
    let of = |subset: &u64| {
        let npus = symmetry.subgroup(|digit| subset >> digit & 1 == 1);
        around(topology, &npus, turned)
    };
    subsets.iter().map(of).collect()
}

/// Returns the NPUs, with each switch that makes less bandwidth lead in.
fn around(topology: &Topology, npus: &[NpuId], turned: bool) -> SubgroupCut {
    let mut inside = vec![false; topology.device_count()];
    npus.iter().for_each(|npu| inside[npu.index()] = true);
    let ends = |link: &crate::topology::Link| match turned {
        true => (link.dst, link.src),
        false => (link.src, link.dst),
    };
    loop {
        let mut is_changed = false;
        for switch in topology.npu_count()..topology.device_count() {
            if inside[switch] {
                continue;
            }
            let device = DeviceId::from(switch);
            let (mut enters, mut saved) = (0, 0);
            let around = topology
                .out_links(device)
                .iter()
                .chain(topology.in_links(device));
            for link in around.map(|&id| topology.link(id)) {
                let bandwidth = u128::from(link.bandwidth.bytes_per_second());
                let (from, to) = ends(link);
                enters += if to == device && !inside[from.index()] {
                    bandwidth
                } else {
                    0
                };
                saved += if from == device && inside[to.index()] {
                    bandwidth
                } else {
                    0
                };
            }
            if enters < saved {
                inside[switch] = true;
                is_changed = true;
            }
        }
        if !is_changed {
            break;
        }
    }
    let links = topology.links().iter();
    let entering = links.filter(|link| {
        let (from, to) = ends(link);
        !inside[from.index()] && inside[to.index()]
    });
    let bandwidth = entering.map(|link| u128::from(link.bandwidth.bytes_per_second()));
    SubgroupCut {
        bandwidth: bandwidth.sum(),
        npus: npus.len(),
        inside,
    }
}
