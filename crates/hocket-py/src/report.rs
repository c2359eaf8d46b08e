//! `report`, `dimension_report`, `heat` and `activity`: the figures of a run.

use hocket_core::plan::Op;
use hocket_core::report::{self as core, Bins};
use hocket_core::units::Time;
use numpy::Ix2;
use pyo3::prelude::*;

use crate::arrays::Array;
use crate::collective::PyCollective;
use crate::error::{CoreError, Parts};
use crate::simulate::PyRun;

/// The figures of one run.
#[pyclass(module = "hocket._core", frozen, get_all)]
pub(crate) struct Report {
    /// Bytes moved / (bandwidth of all links x time), 0 to 1.
    utilization: f64,
    /// Ends of the link occupied longest, for what share of the time (0 to 1); None if nothing moved.
    busiest_link: Option<(String, String, f64)>,
    /// The most bytes that crossed one link.
    max_link_bytes: u64,
}

/// Sum a run up.
#[pyfunction]
pub(crate) fn report(run: &PyRun) -> Report {
    let (plan, topology) = (run.plan().core(), run.plan().network());
    let report = core::Report::new(run.core(), plan.collective(), topology);
    let name = |device| topology.device(device).name.clone();
    Report {
        utilization: report.utilization,
        busiest_link: report.busiest.map(|(link, share)| {
            let link = topology.link(link);
            (name(link.src), name(link.dst), share)
        }),
        max_link_bytes: report.max_link_bytes,
    }
}

/// Return algbw and busbw of a collective that takes so long [bytes/s]; 0 ps count as 1 ps.
#[pyfunction]
pub(crate) fn rates(collective: &PyCollective, time_ps: u64) -> (f64, f64) {
    let rates = core::Rates::new(collective.core(), Time::from_ps(time_ps));
    (rates.algbw, rates.busbw)
}

/// Return how far a time is above a lower bound: time / bound - 1, where 0 ps count as 1 ps.
#[pyfunction]
pub(crate) fn gap(time_ps: u64, bound_ps: u64) -> f64 {
    core::gap(Time::from_ps(time_ps), Time::from_ps(bound_ps))
}

/// Count the links among which equal paths differ, and those of them that carried nothing.
#[pyfunction]
pub(crate) fn equal_links(py: Python<'_>, run: &PyRun) -> Result<(usize, usize), CoreError> {
    let verified = run.verified(py)?;
    let found = core::EqualLinks::new(run.core(), &verified);
    Ok((found.links, found.idle))
}

/// How well one run uses the dimensions of a product topology.
#[pyclass(module = "hocket._core", frozen, get_all)]
pub(crate) struct DimensionReport {
    /// Kind, size, bandwidth of an NPU [bytes/s], bytes sent, utilization (0 to 1) of each.
    ///
    /// Dimensions of one NPU are left out.
    dimensions: Vec<(&'static str, u32, f64, u128, f64)>,
    /// Mean of the dimensions' utilization, their bandwidth the weight, 0 to 1.
    weighted_utilization: f64,
    /// Time at full use of all bandwidth [s]; None for collectives that have none.
    ideal: Option<f64>,
}

/// Sum the dimensions up, or SpecError where the topology is not a whole product of dimensions.
#[pyfunction]
pub(crate) fn dimension_report(run: &PyRun) -> Result<DimensionReport, CoreError> {
    let (plan, topology) = (run.plan().core(), run.plan().network());
    let report = core::DimensionReport::new(run.core(), plan.collective(), topology)?;
    Ok(DimensionReport::from_core(&report))
}

impl DimensionReport {
    pub(crate) fn from_core(report: &core::DimensionReport) -> Self {
        let row = |each: &core::DimensionUse| {
            let kind = each.kind.name();
            let core::DimensionUse {
                size,
                bandwidth,
                bytes,
                ..
            } = *each;
            (kind, size, bandwidth, bytes, each.utilization)
        };
        Self {
            dimensions: report.dimensions.iter().map(row).collect(),
            weighted_utilization: report.weighted_utilization,
            ideal: report.ideal,
        }
    }
}

/// Return the share of each time bin in which each link was occupied, (link_count, bins).
#[pyfunction]
pub(crate) fn heat<'py>(
    py: Python<'py>,
    run: &PyRun,
    bins: usize,
) -> Result<Array<'py, f32, Ix2>, CoreError> {
    let run = with_services(run)?.core();
    let shares = py.detach(|| core::heat(run, bins));
    Ok(Array::from_rows(py, shares, [run.links.len(), bins])?)
}

/// Rows of links, columns of bins.
type Cells<'py> = Array<'py, u8, Ix2>;

/// Return heat from 0 to 255, rounded up, and what of it were sums, 0 to 15; both (link_count, bins).
#[pyfunction]
pub(crate) fn use_and_sums<'py>(
    py: Python<'py>,
    run: &PyRun,
    bins: usize,
) -> Result<(Cells<'py>, Cells<'py>), CoreError> {
    let (op, run) = (run.plan().core().op(), with_services(run)?.core());
    let (used, sums) = py.detach(|| core::use_and_sums(run, op, bins));
    let shape = [run.links.len(), bins];
    Ok((
        Array::from_rows(py, used, shape)?,
        Array::from_rows(py, sums, shape)?,
    ))
}

/// Kind, chunks, transfers, links and roots of a structure.
type StructureTuple = (&'static str, Vec<u32>, Vec<(u32, u32)>, Vec<u32>, Vec<u32>);

/// Find rings and trees of sums, or else of copies, as :func:`hocket.simulation.structures.structures` says.
#[pyfunction]
pub(crate) fn structures(
    py: Python<'_>,
    run: &PyRun,
    sums: bool,
    chunk: Option<u32>,
) -> Result<Vec<StructureTuple>, CoreError> {
    let phase = if sums { Op::Reduce } else { Op::Copy };
    let (plan, run) = (run.plan().core(), with_services(run)?.core());
    let found = py.detach(|| core::Structure::find(run, plan, phase, chunk))?;
    let tuple = |each: core::Structure| {
        (
            each.kind,
            each.chunks,
            each.transfers,
            each.links,
            each.roots,
        )
    };
    Ok(found.into_iter().map(tuple).collect())
}

/// A run that kept its services, or what to do about it.
fn with_services(run: &PyRun) -> Result<&PyRun, CoreError> {
    if run.core().services.is_empty() && run.core().start.iter().len() > 0 {
        let wrong = Parts::new("the run kept no services");
        return Err(wrong.remedy("simulate with keep_services=True").into());
    }
    Ok(run)
}

/// Return the share of each time bin in which each dimension has activity, (dimensions, bins).
///
/// Dimensions of one NPU are left out. Either so many bins, or bins of that length. SpecError if the
/// topology is not a whole product of dimensions.
#[pyfunction]
#[pyo3(signature = (run, bins=None, period_ps=None))]
pub(crate) fn activity<'py>(
    py: Python<'py>,
    run: &PyRun,
    bins: Option<usize>,
    period_ps: Option<u64>,
) -> Result<Array<'py, f32, Ix2>, CoreError> {
    let bins = to_bins(bins, period_ps)?;
    let verified = run.verified(py)?;
    let shares = py.detach(|| core::activity(run.core(), &verified, bins))?;
    let count = bins.count(run.core().time);
    let rows = shares.len() / count;
    Ok(Array::from_rows(py, shares, [rows, count])?)
}

/// Either so many bins, or bins of that length.
pub(crate) fn to_bins(bins: Option<usize>, period_ps: Option<u64>) -> Result<Bins, CoreError> {
    match (bins, period_ps) {
        (Some(bins), None) if bins > 0 => Ok(Bins::Count(bins)),
        (None, Some(period)) if period > 0 => Ok(Bins::Period(Time::from_ps(period))),
        _ => {
            let wrong = Parts::new("there is no number of bins or period, or both, or one is 0");
            let remedy = "give either a number of bins or a period, not 0";
            Err(wrong.remedy(remedy).into())
        }
    }
}
