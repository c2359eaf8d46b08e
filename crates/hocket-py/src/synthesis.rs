//! `Problem`, `Timetables`: synthesis on the network as unwound.

use std::sync::Arc;

use hocket_core::plan::Lists;
use hocket_core::synthesis::{self as core, Part, Send, Timetable, Unwinding, Wanted};
use hocket_core::topology::Topology;
use pyo3::prelude::*;

use crate::arrays::{Array, Given, to_vec};
use crate::choice::{LATENCIES, choose};
use crate::collective::PyCollective;
use crate::error::{CoreError, Parts};
use crate::hints::Listener;
use crate::progress::{self, Limits, PyWork};
use crate::topology::PyTopology;

/// A collective on a network whose switches are unwound into edges between NPUs.
///
/// What is summed is described mirrored in time: holders are where a sum must end, wanted is who adds
/// to it. Costs are listed edge by edge, size by size.
#[pyclass(name = "Problem", module = "hocket._core.synthesis", frozen)]
pub(crate) struct PyProblem {
    core: Arc<core::Problem>,
    topology: Arc<Topology>,
}

/// Who sends what when: sums, then copies.
#[pyclass(name = "Timetables", module = "hocket._core.synthesis", frozen)]
pub(crate) struct PyTimetables {
    core: core::Timetables,
}

/// Chunk of the plan, edge, start of each send.
type SendArrays<'py> = (Array<'py, u32>, Array<'py, u32>, Array<'py, u64>);
/// Chunk of the plan, position of its size, holders, who wants it (`None`: every NPU).
type ChunkTuple = (u32, u32, Vec<u32>, Option<Vec<u32>>);

/// List unwindings worth trying: each one entry for all switches, or one for each dimension.
#[pyfunction]
pub(crate) fn unwindings(topology: &PyTopology) -> Vec<Vec<String>> {
    let names = |each: Vec<Unwinding>| each.iter().map(ToString::to_string).collect();
    core::unwindings(topology.core())
        .into_iter()
        .map(names)
        .collect()
}

impl PyProblem {
    pub(crate) fn of(core: Arc<core::Problem>, topology: Arc<Topology>) -> Self {
        Self { core, topology }
    }

    pub(crate) fn core(&self) -> &Arc<core::Problem> {
        &self.core
    }

    pub(crate) fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }
}

impl PyTimetables {
    pub(crate) fn core(&self) -> &core::Timetables {
        &self.core
    }
}

#[pymethods]
impl PyProblem {
    /// Make the problem; SpecError for an unknown unwinding, or more than fits in memory.
    #[new]
    #[pyo3(signature = (topology, collective, pieces, unwinding, latency, memory_limit))]
    fn new(
        py: Python<'_>,
        topology: &PyTopology,
        collective: &PyCollective,
        pieces: usize,
        unwinding: Vec<String>,
        latency: &str,
        memory_limit: u64,
    ) -> Result<Self, CoreError> {
        let latency = choose("latency", latency, LATENCIES)?;
        let unwinding: Vec<Unwinding> = unwinding
            .iter()
            .map(|name| to_unwinding(name))
            .collect::<Result<_, _>>()?;
        let (on, collective) = (Arc::clone(topology.core()), collective.core().clone());
        let core = progress::attended(py, move |_| {
            core::Problem::new(&on, &collective, pieces, &unwinding, latency, memory_limit)
        })??;
        Ok(Self {
            core: Arc::new(core),
            topology: Arc::clone(topology.core()),
        })
    }

    /// Return the problem with every cost rounded up to whole slots.
    fn discretised(&self, factor_ps: u64) -> Result<Self, CoreError> {
        Ok(Self {
            core: Arc::new(self.core.discretised(factor_ps)?),
            topology: Arc::clone(&self.topology),
        })
    }

    /// Ends of each edge.
    #[getter]
    fn edges(&self) -> Vec<(u32, u32)> {
        let edges = self.core.network().edges().iter();
        edges.map(|edge| (edge.src.0, edge.dst.0)).collect()
    }

    #[getter]
    fn sum_chunks(&self) -> Vec<ChunkTuple> {
        chunks_of(&self.core.work().sums)
    }

    #[getter]
    fn copy_chunks(&self) -> Vec<ChunkTuple> {
        chunks_of(&self.core.work().copies)
    }

    /// From the start of a send of each size over each edge until it is there [ps].
    #[getter]
    fn sum_delays(&self) -> Vec<u64> {
        self.core
            .sum_times()
            .iter()
            .map(|timing| timing.delay)
            .collect()
    }

    /// As ``sum_delays``, of what is copied.
    #[getter]
    fn copy_delays(&self) -> Vec<u64> {
        self.core
            .copy_times()
            .iter()
            .map(|timing| timing.delay)
            .collect()
    }

    #[getter]
    fn npus(&self) -> usize {
        self.core.network().npus()
    }

    /// A lower bound on the end of any timetable [ps].
    #[getter]
    fn least_ps(&self) -> u64 {
        self.core.least()
    }

    /// Match greedily; the best of the trials so far when the time limit [s] or the work ends.
    #[pyo3(signature = (seed, trials, *, time_limit=None, work=None, progress=None))]
    fn greedy(
        &self,
        py: Python<'_>,
        seed: u64,
        trials: u64,
        time_limit: Option<f64>,
        work: Option<&PyWork>,
        progress: Option<Listener>,
    ) -> Result<PyTimetables, CoreError> {
        let limits = Limits::new(time_limit, work);
        let core = progress::watched_until(py, progress, limits, |watch| {
            self.core.greedy(seed, trials, watch)
        })?;
        Ok(PyTimetables { core })
    }

    /// Match slot by slot, check, and give slots, sends and end [ps]: no plan, little memory.
    #[pyo3(signature = (seed, *, progress=None))]
    fn compact(
        &self,
        py: Python<'_>,
        seed: u64,
        progress: Option<Listener>,
    ) -> Result<(u64, u64, u64), CoreError> {
        let made = progress::watched(py, progress, |watch| self.core.compact(seed, watch))?;
        Ok((made.table.slots(), made.table.sends(), made.end))
    }

    /// Transfers of a plan in which nobody passes on what he does not want.
    #[getter]
    fn transfers(&self) -> u64 {
        u64::try_from(self.core.work().transfers()).unwrap_or(u64::MAX)
    }

    /// Match greedily, no copy before the last sum has ended.
    fn greedy_apart(
        &self,
        py: Python<'_>,
        seed: u64,
        trials: u64,
    ) -> Result<PyTimetables, CoreError> {
        let core = progress::watched(py, None, |watch| {
            self.core.greedy_apart(seed, trials, watch)
        })?;
        Ok(PyTimetables { core })
    }

    /// Make timetables of sends; SpecError where they do not do what is asked.
    #[pyo3(signature = (*, sum_chunk, sum_edge, sum_start, copy_chunk, copy_edge, copy_start))]
    fn timetables<'py>(
        &self,
        sum_chunk: Given<'py, u32>,
        sum_edge: Given<'py, u32>,
        sum_start: Given<'py, u64>,
        copy_chunk: Given<'py, u32>,
        copy_edge: Given<'py, u32>,
        copy_start: Given<'py, u64>,
    ) -> Result<PyTimetables, CoreError> {
        let work = self.core.work();
        let sends = |part: &Part, chunk: Vec<u32>, edge: Vec<u32>, start: Vec<u64>| {
            let place: std::collections::HashMap<u32, u32> =
                part.ids.iter().copied().zip(0..).collect();
            let rows = chunk.iter().zip(edge).zip(start);
            rows.map(|((chunk, edge), start)| {
                let chunk = *place.get(chunk).ok_or_else(|| {
                    let listed = Parts::new(format!("chunk {chunk} is none of the problem's"));
                    listed.remedy("send chunks that the problem has")
                })?;
                Ok(Send { chunk, edge, start })
            })
            .collect::<Result<Vec<Send>, CoreError>>()
        };
        let sums = sends(
            &work.sums,
            to_vec(&sum_chunk),
            to_vec(&sum_edge),
            to_vec(&sum_start),
        )?;
        let copies = sends(
            &work.copies,
            to_vec(&copy_chunk),
            to_vec(&copy_edge),
            to_vec(&copy_start),
        )?;
        let core = self.core.timetables(sums, copies)?;
        Ok(PyTimetables { core })
    }

    /// Return the sends of sums, then of copies, in the order of their starts.
    fn sends<'py>(
        &self,
        py: Python<'py>,
        timetables: &PyTimetables,
    ) -> (SendArrays<'py>, SendArrays<'py>) {
        let arrays = |part: &Part, timetable: &Timetable| {
            let sends = &timetable.sends;
            let chunk: Vec<u32> = sends
                .iter()
                .map(|send| part.ids[send.chunk as usize])
                .collect();
            let edge: Vec<u32> = sends.iter().map(|send| send.edge).collect();
            let start: Vec<u64> = sends.iter().map(|send| send.start).collect();
            (
                Array::from_vec(py, chunk),
                Array::from_vec(py, edge),
                Array::from_vec(py, start),
            )
        };
        let work = self.core.work();
        (
            arrays(&work.sums, &timetables.core.sums),
            arrays(&work.copies, &timetables.core.copies),
        )
    }
}

#[pymethods]
impl PyTimetables {
    /// When all is done [ps].
    #[getter]
    fn end_ps(&self) -> u64 {
        self.core.end()
    }

    fn __len__(&self) -> usize {
        self.core.sums.sends.len() + self.core.copies.sends.len()
    }
}

fn chunks_of(part: &Part) -> Vec<ChunkTuple> {
    let spread = &part.spread;
    let mut holders: Vec<Vec<u32>> = spread.holders.iter().map(|&(npu, _)| vec![npu]).collect();
    for &(chunk, npu) in &spread.others {
        holders[chunk as usize].push(npu);
    }
    let wanted = |chunk: usize| match &spread.wanted {
        Wanted::All => None,
        Wanted::Listed(lists) => Some(Lists::get(lists, chunk).to_vec()),
    };
    let rows = holders.into_iter().enumerate();
    rows.map(|(chunk, holders)| (part.ids[chunk], spread.class[chunk], holders, wanted(chunk)))
        .collect()
}

pub(crate) fn to_unwinding(name: &str) -> Result<Unwinding, CoreError> {
    Ok(name.parse()?)
}
