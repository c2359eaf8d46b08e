//! How well a run uses the dimensions of a product topology.

use super::ReportError;
use crate::collective::{Collective, CollectiveKind};
use crate::simulate::Run;
use crate::topology::{Dimension, DimensionKind, Topology};

/// Use of one dimension of a product topology.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DimensionUse {
    /// Building block.
    pub kind: DimensionKind,
    /// NPUs along it.
    pub size: u32,
    /// Bytes per second that one NPU can send over it: all its links out of the NPU along the
    /// dimension together; the mean over the NPUs where they differ, as on a line.
    pub bandwidth: f64,
    /// Bytes that all NPUs sent over it, what they pass on for others included; what a switch sends
    /// is not counted again.
    pub bytes: u128,
    /// bytes / (bandwidth x NPUs x time), 0 to 1.
    pub utilization: f64,
}

/// Use of all dimensions of a product topology.
#[derive(Clone, Debug, PartialEq)]
pub struct DimensionReport {
    /// Each dimension of more than one NPU, in the topology's order.
    pub dimensions: Vec<DimensionUse>,
    /// Mean of the dimensions' utilization, their bandwidth the weight: all their bytes / (all their
    /// bandwidth x NPUs x time), 0 to 1.
    ///
    /// # Source
    /// "Average BW Utilization" of Rashidi et al.: Themis, ISCA 2022, section 3.
    pub weighted_utilization: f64,
    /// Seconds in which every NPU could send what it must, all its links busy all the time:
    /// 2 S (1 - 1/n) / bandwidth for an all-reduce of S bytes among n, S (1 - 1/n) / bandwidth for
    /// reduce-scatter and all-gather; `None` for other kinds, or where no links are left.
    ///
    /// # Source
    /// "Ideal" of Themis, table 3. The paper writes "collective size / total BW". Here the bytes are
    /// those that an NPU must send, so that Ideal is a utilization of 100 %.
    pub ideal: Option<f64>,
}

impl DimensionReport {
    /// Returns the use that a run of `collective` makes of the dimensions of `topology`.
    ///
    /// # Errors
    /// [`ReportError::NoDimensions`].
    pub fn new(
        run: &Run,
        collective: &Collective,
        topology: &Topology,
    ) -> Result<Self, ReportError> {
        let of_link = link_dimensions(topology)?;
        let count = topology.dimensions().len();
        let (mut bytes, mut bandwidth) = (vec![0u128; count], vec![0u128; count]);
        for ((link, of), used) in topology.links().iter().zip(of_link).zip(&run.links) {
            if let Some(of) = of.filter(|_| topology.is_npu(link.src)) {
                bytes[of as usize] += u128::from(used.bytes);
                bandwidth[of as usize] += u128::from(link.bandwidth.bytes_per_second());
            }
        }
        let seconds = run.time.as_seconds();
        let used = |bytes: u128, bandwidth: u128| {
            let most = bandwidth as f64 * seconds;
            if most > 0.0 { bytes as f64 / most } else { 0.0 }
        };
        let npus = topology.npu_count() as f64;
        let dimensions = wide(topology).map(|(i, dimension)| DimensionUse {
            kind: dimension.kind,
            size: dimension.size,
            bandwidth: bandwidth[i] as f64 / npus,
            bytes: bytes[i],
            utilization: used(bytes[i], bandwidth[i]),
        });
        let total: u128 = bandwidth.iter().sum();
        Ok(Self {
            dimensions: dimensions.collect(),
            weighted_utilization: used(bytes.iter().sum(), total),
            ideal: ideal(collective, total as f64 / npus),
        })
    }
}

/// Returns the least seconds of a collective at the bytes per second of all dimensions together, latency left out;
/// `None` for all-to-all.
pub fn ideal(collective: &Collective, bandwidth: f64) -> Option<f64> {
    let kind = collective.kind();
    let balanced = matches!(
        kind,
        CollectiveKind::AllReduce | CollectiveKind::ReduceScatter | CollectiveKind::AllGather
    );
    let bytes = collective.size() as f64 * kind.bus_factor(collective.npus().len());
    (balanced && bandwidth > 0.0).then(|| bytes / bandwidth)
}

/// Returns each dimension of more than one NPU, with its position among all.
pub(super) fn wide(topology: &Topology) -> impl Iterator<Item = (usize, &Dimension)> {
    let all = topology.dimensions().iter().enumerate();
    all.filter(|(_, dimension)| dimension.size > 1)
}

/// [`Topology::link_dimensions`], or why there are none.
pub(super) fn link_dimensions(topology: &Topology) -> Result<Vec<Option<u32>>, ReportError> {
    let found = topology.link_dimensions();
    found.ok_or_else(|| ReportError::NoDimensions {
        topology: topology.name().to_owned(),
    })
}
