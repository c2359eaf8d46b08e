//! `Fabric`, `Assignment`, `Sprayed`, `assign`, `spray` and `assignment_of`.

use hocket_core::id::{LinkId, NpuId};
use hocket_core::routing::{self as core, Annealing, Ecmp, Flow, Hash, Scheme};
use hocket_core::units::Seed;
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays;
use crate::choice::choose;
use crate::error::CoreError;
use crate::topology::PyTopology;

const SCHEMES: [(&str, Scheme); 6] = [
    ("greedy", Scheme::Greedy),
    ("greedy-parallel", Scheme::GreedyParallel),
    (
        "ecmp",
        Scheme::Ecmp(Ecmp {
            hash: Hash::Crc32,
            upstream: 1,
            salted: false,
        }),
    ),
    ("least-loaded", Scheme::LeastLoaded),
    ("annealing", Scheme::Annealing(Annealing { steps: None })),
    ("edge-coloring", Scheme::EdgeColoring),
];

const HASHES: [(&str, Hash); 2] = [("crc32", Hash::Crc32), ("toeplitz", Hash::Toeplitz)];

type FlowTuple = (u32, u32, u64);

/// A Clos or fat tree as routing sees it.
#[pyclass(name = "Fabric", module = "hocket._core.routing", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct PyFabric {
    core: core::Fabric,
    /// Of the topology.
    links: usize,
}

impl PyFabric {
    /// A fabric of a topology with so many links.
    pub(crate) fn new(core: core::Fabric, links: usize) -> Self {
        Self { core, links }
    }

    pub(crate) fn core(&self) -> &core::Fabric {
        &self.core
    }
}

#[pymethods]
impl PyFabric {
    #[new]
    fn of(topology: &PyTopology) -> Result<Self, CoreError> {
        let core = core::Fabric::new(topology.core())?;
        Ok(Self::new(core, topology.core().links().len()))
    }

    #[getter]
    fn levels(&self) -> u32 {
        self.core.levels()
    }

    #[getter]
    fn reference(&self) -> u64 {
        self.core.reference().bytes_per_second()
    }

    fn choices_between(&self, src: u32, dst: u32) -> Vec<u32> {
        self.core.choices_between(src, dst).collect()
    }

    fn route(&self, src: u32, dst: u32, choice: u32) -> Vec<u32> {
        let mut links = Vec::new();
        self.core.route(src, dst, choice, &mut links);
        links.into_iter().map(|link| link.0).collect()
    }

    fn tor_of(&self, npu: u32) -> Option<u32> {
        self.core.tor_of(NpuId(npu))
    }

    fn npu_links(&self, npu: u32) -> (Option<u32>, Option<u32>) {
        let [up, down] = self.core.npu_links(NpuId(npu));
        (up.map(|link| link.0), down.map(|link| link.0))
    }
}

/// A choice for each flow.
#[pyclass(module = "hocket._core.routing", frozen)]
pub(crate) struct Assignment {
    core: core::Assignment,
    paths: core::Paths,
    link_loads: Vec<u64>,
    #[pyo3(get)]
    shape: (usize, usize),
}

#[pymethods]
impl Assignment {
    #[getter]
    fn choices<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.choices())
    }

    /// Links of all paths, one path after the other.
    #[getter]
    fn path_links<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.paths.links())
    }

    /// Where each path ends in `path_links`.
    #[getter]
    fn path_ends(&self) -> Vec<usize> {
        self.paths.ends().to_vec()
    }

    #[getter]
    fn link_loads<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| this.link_loads.as_slice())
    }

    #[getter]
    fn up_loads<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| this.core.up_loads())
    }

    #[getter]
    fn down_loads<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| this.core.down_loads())
    }

    #[getter]
    fn max_link_load(&self) -> u64 {
        self.core.max_link_load()
    }

    #[getter]
    fn bound(&self) -> (u64, Option<u32>, String) {
        bound(self.core.certificate())
    }
}

/// What links carry of flows that are spread over all their choices.
#[pyclass(module = "hocket._core.routing", frozen)]
pub(crate) struct Sprayed {
    core: core::Sprayed,
    link_loads: Vec<f64>,
    #[pyo3(get)]
    shape: (usize, usize),
}

#[pymethods]
impl Sprayed {
    #[getter]
    fn link_loads<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        arrays::column(slf, |this| this.link_loads.as_slice())
    }

    #[getter]
    fn up_loads<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        arrays::column(slf, |this| this.core.up_loads())
    }

    #[getter]
    fn down_loads<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        arrays::column(slf, |this| this.core.down_loads())
    }

    #[getter]
    fn max_link_load(&self) -> f64 {
        self.core.max_link_load()
    }

    #[getter]
    fn bound(&self) -> (u64, Option<u32>, String) {
        bound(self.core.certificate())
    }
}

fn bound(certificate: &core::Certificate) -> (u64, Option<u32>, String) {
    let tor = certificate.witness.map(|witness| witness.tor);
    (certificate.load, tor, certificate.describe())
}

fn flows_of(flows: Vec<FlowTuple>) -> Vec<Flow> {
    let flow = |(src, dst, weight)| Flow { src, dst, weight };
    flows.into_iter().map(flow).collect()
}

fn by_link<T: Copy + Default>(
    fabric: &PyFabric,
    loads: impl Iterator<Item = (LinkId, T)>,
) -> Vec<T> {
    let mut of_all = vec![T::default(); fabric.links];
    for (link, load) in loads {
        of_all[link.index()] = load;
    }
    of_all
}

fn assignment(fabric: &PyFabric, flows: &[Flow], core: core::Assignment) -> Assignment {
    Assignment {
        paths: core.paths(&fabric.core, flows),
        link_loads: by_link(fabric, core.link_loads(&fabric.core)),
        shape: (fabric.core.tor_count(), fabric.core.column_count()),
        core,
    }
}

/// How the schemes that have options go about it: hash, upstream, salted, steps.
pub(crate) type Options = (String, u32, bool, Option<u32>);

pub(crate) fn scheme_of(name: &str, options: &Options) -> Result<Scheme, CoreError> {
    let (hash, upstream, salted, steps) = options;
    let hash = choose("hash", hash, &HASHES)?;
    Ok(match choose("scheme", name, &SCHEMES)? {
        Scheme::Ecmp(_) => Scheme::Ecmp(Ecmp {
            hash,
            upstream: *upstream,
            salted: *salted,
        }),
        Scheme::Annealing(_) => Scheme::Annealing(Annealing { steps: *steps }),
        other => other,
    })
}

/// Give flows (source, destination, weight) choices.
#[pyfunction]
pub(crate) fn assign(
    py: Python<'_>,
    fabric: &PyFabric,
    flows: Vec<FlowTuple>,
    scheme: &str,
    seed: u64,
    options: Options,
) -> Result<Assignment, CoreError> {
    let scheme = scheme_of(scheme, &options)?;
    let flows = flows_of(flows);
    let made = py.detach(|| core::assign(&fabric.core, &flows, scheme, Seed(seed)))?;
    Ok(assignment(fabric, &flows, made))
}

/// Spread flows (source, destination, weight) over all their choices.
#[pyfunction]
pub(crate) fn spray(fabric: &PyFabric, flows: Vec<FlowTuple>) -> Result<Sprayed, CoreError> {
    let core = core::spray(&fabric.core, &flows_of(flows))?;
    Ok(Sprayed {
        link_loads: by_link(fabric, core.link_loads(&fabric.core)),
        shape: (fabric.core.tor_count(), fabric.core.column_count()),
        core,
    })
}

/// Give the assignment that these choices make.
#[pyfunction]
pub(crate) fn assignment_of(
    fabric: &PyFabric,
    flows: Vec<FlowTuple>,
    choices: Vec<u32>,
) -> Result<Assignment, CoreError> {
    let flows = flows_of(flows);
    let made = core::assignment_of(&fabric.core, &flows, choices)?;
    Ok(assignment(fabric, &flows, made))
}
