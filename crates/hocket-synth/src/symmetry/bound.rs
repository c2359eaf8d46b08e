//! Lower bounds that one NPU, and one of each subgroup's shifts, tell of all.

use super::cuts::cuts;
use super::group::Symmetry;
use crate::bound::{Bound, BoundOptions, Witness, bound};
use crate::collective::{Collective, CollectiveKind};
use crate::id::{DeviceId, LinkId, NpuId};
use crate::progress::{Interrupted, Progress};
use crate::topology::Topology;
use crate::units::{Bandwidth, Time};

/// Returns a lower bound for an all-gather, a reduce-scatter or an all-reduce among all NPUs, with no work for pairs of
/// NPUs.
///
/// The greatest of two: what one NPU must receive (or send), which is a gather to it (or a scatter from it); and what
/// must cross the cut round each subgroup. An all-reduce gives every NPU the sum of each subgroup's and its shifts'
/// parts: parts that are all alike send and receive twice the vector, less one part's share.
///
/// # Errors
/// [`Interrupted`].
///
/// # Complexity
/// O(links x subgroups), and a gather's bound.
pub fn lower_bound(
    topology: &Topology,
    collective: &Collective,
    symmetry: &Symmetry,
    progress: &mut dyn Progress,
) -> Result<Bound, Interrupted> {
    let kind = collective.kind();
    let turned = kind == CollectiveKind::ReduceScatter;
    let rooted = if turned {
        CollectiveKind::Scatter
    } else {
        CollectiveKind::Gather
    };
    let options = BoundOptions {
        pair_limit: 1,
        exact_cut_limit: 0,
        exact_partition_limit: 0,
        ..BoundOptions::default()
    };
    let npus = collective.npus().to_vec();
    let one = Collective::new(rooted, npus, collective.size(), None);
    let one = one.expect("its NPUs and size are those of a collective");
    let mut best = bound(topology, &one, &options, progress)?;
    best.exact_cut = false;
    best.exact_partition = false;
    let all = symmetry.len() as u128;
    let is_even = |device: DeviceId| {
        let total = |links: &[LinkId]| -> u128 {
            let links = links.iter().map(|&id| topology.link(id).bandwidth);
            links.map(|it| u128::from(it.bytes_per_second())).sum()
        };
        total(topology.in_links(device)) == total(topology.out_links(device))
    };
    // What switches sum need not enter every part.
    let sums = topology
        .devices()
        .iter()
        .any(|device| device.offload.is_some());
    for cut in cuts(topology, symmetry, turned) {
        // The parts must not overlap: an even switch has more than half of its bandwidth with one of them only.
        let switches = topology.npu_count()..topology.device_count();
        let mut inner = switches
            .filter(|&device| cut.inside[device])
            .map(DeviceId::from);
        if kind == CollectiveKind::AllReduce && (sums || !inner.all(is_even)) {
            continue;
        }
        let blocks = all - cut.npus as u128;
        let bytes = match kind {
            // All parts together: 2 (parts - 1) vectors over `parts` times the bandwidth of one.
            CollectiveKind::AllReduce => 2 * u128::from(collective.size()) * blocks / all,
            _ => u128::from(collective.size() / symmetry.len() as u64) * blocks,
        };
        let ps = bytes * 1_000_000_000_000 / cut.bandwidth.max(1);
        let time = Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX));
        if time > best.time {
            let devices = (0..topology.device_count()).filter(|&device| cut.inside[device]);
            let (npus, switches): (Vec<usize>, Vec<usize>) =
                devices.partition(|&device| device < topology.npu_count());
            let bandwidth = u64::try_from(cut.bandwidth).unwrap_or(u64::MAX);
            best.time = time;
            best.witness = Witness::Cut {
                npus: npus.into_iter().map(NpuId::from).collect(),
                switches: switches.into_iter().map(DeviceId::from).collect(),
                leaving: turned,
                bytes,
                bandwidth: Bandwidth::from_bytes_per_second(bandwidth).expect("links lead in"),
            };
        }
    }
    Ok(best)
}
