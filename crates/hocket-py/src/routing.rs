//! `Fabric`, `Assignment`, `assign` and `assignment_of`.

use hocket_core::id::LinkId;
use hocket_core::routing::{self as core, Ecmp, Flow, Hash, Scheme};
use hocket_core::units::Seed;
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays;
use crate::choice::choose;
use crate::error::CoreError;
use crate::topology::PyTopology;

const SCHEMES: [(&str, Scheme); 5] = [
    ("greedy", Scheme::Greedy),
    (
        "ecmp",
        Scheme::Ecmp(Ecmp {
            hash: Hash::Crc32,
            upstream: 1,
        }),
    ),
    ("least-loaded", Scheme::LeastLoaded),
    ("annealing", Scheme::Annealing),
    ("edge-coloring", Scheme::EdgeColoring),
];

const HASHES: [(&str, Hash); 2] = [("crc32", Hash::Crc32), ("toeplitz", Hash::Toeplitz)];

type FlowTuple = (u32, u32, u64);

/// A two-level Clos as routing sees it.
#[pyclass(name = "Fabric", module = "hocket._core.routing", frozen)]
pub(crate) struct PyFabric {
    core: core::Fabric,
}

impl PyFabric {
    pub(crate) fn core(&self) -> &core::Fabric {
        &self.core
    }
}

#[pymethods]
impl PyFabric {
    #[new]
    fn new(topology: &PyTopology) -> Result<Self, CoreError> {
        let core = core::Fabric::new(topology.core())?;
        Ok(Self { core })
    }

    fn spines_between(&self, src: u32, dst: u32) -> Vec<u32> {
        self.core.spines_between(src, dst).collect()
    }
}

/// A spine for each flow.
#[pyclass(module = "hocket._core.routing", frozen)]
pub(crate) struct Assignment {
    core: core::Assignment,
    paths: Vec<LinkId>,
    #[pyo3(get)]
    shape: (usize, usize),
}

#[pymethods]
impl Assignment {
    #[getter]
    fn spines<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.spines())
    }

    #[getter]
    fn paths<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.paths.as_slice())
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
        let certificate = self.core.certificate();
        let tor = certificate.witness.map(|witness| witness.tor);
        (certificate.load, tor, certificate.describe())
    }
}

fn flows_of(flows: Vec<FlowTuple>) -> Vec<Flow> {
    let flow = |(src, dst, weight)| Flow { src, dst, weight };
    flows.into_iter().map(flow).collect()
}

fn assignment(fabric: &PyFabric, flows: &[Flow], core: core::Assignment) -> Assignment {
    Assignment {
        paths: core.paths(&fabric.core, flows).into_flattened(),
        shape: (fabric.core.tor_count(), fabric.core.spine_count()),
        core,
    }
}

pub(crate) fn scheme_of(scheme: &str, hash: &str, upstream: u32) -> Result<Scheme, CoreError> {
    let hash = choose("hash", hash, &HASHES)?;
    Ok(match choose("scheme", scheme, &SCHEMES)? {
        Scheme::Ecmp(_) => Scheme::Ecmp(Ecmp { hash, upstream }),
        other => other,
    })
}

/// Give flows (source, destination, weight) spines.
#[pyfunction]
pub(crate) fn assign(
    py: Python<'_>,
    fabric: &PyFabric,
    flows: Vec<FlowTuple>,
    scheme: &str,
    seed: u64,
    hash: &str,
    upstream: u32,
) -> Result<Assignment, CoreError> {
    let scheme = scheme_of(scheme, hash, upstream)?;
    let flows = flows_of(flows);
    let made = py.detach(|| core::assign(&fabric.core, &flows, scheme, Seed(seed)))?;
    Ok(assignment(fabric, &flows, made))
}

/// Give the assignment that these spines make.
#[pyfunction]
pub(crate) fn assignment_of(
    fabric: &PyFabric,
    flows: Vec<FlowTuple>,
    spines: Vec<u32>,
) -> Result<Assignment, CoreError> {
    let flows = flows_of(flows);
    let made = core::assignment_of(&fabric.core, &flows, spines)?;
    Ok(assignment(fabric, &flows, made))
}
