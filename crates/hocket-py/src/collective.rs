//! `Collective`.

use hocket_core::collective::{self as core, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{NpuId, Rank};
use pyo3::prelude::*;

use crate::error::CoreError;
use crate::pickle::{Reduced, attributes, reduced};

/// Bytes, whether to be summed, holders and who wants them; `None` stands for all participants.
type DemandTuple = (u64, bool, Option<Vec<u32>>, Option<Vec<u32>>);

/// What has to be done: kind, participants in rank order, size, root.
#[pyclass(name = "Collective", module = "hocket._core", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct PyCollective {
    core: core::Collective,
}

impl PyCollective {
    pub(crate) fn from_core(core: core::Collective) -> Self {
        Self { core }
    }

    pub(crate) fn core(&self) -> &core::Collective {
        &self.core
    }
}

#[pymethods]
impl PyCollective {
    /// Make a collective of a named kind, such as all-reduce; root is a rank.
    #[new]
    #[pyo3(signature = (kind, npus, size, root=None, in_place=true))]
    fn new(
        kind: &str,
        npus: Vec<u32>,
        size: u64,
        root: Option<u32>,
        in_place: bool,
    ) -> Result<Self, CoreError> {
        let kind: CollectiveKind = kind.parse()?;
        let core = core::Collective::new(kind, to_npus(npus), size, root.map(Rank))?;
        Ok(Self::from_core(core.with_in_place(in_place)))
    }

    /// Make one of demands: (bytes, reduced, holders, wanted), None for all participants.
    #[staticmethod]
    #[pyo3(signature = (npus, demands, in_place=true, name=None))]
    fn custom(
        npus: Vec<u32>,
        demands: Vec<DemandTuple>,
        in_place: bool,
        name: Option<&str>,
    ) -> Result<Self, CoreError> {
        let demands = demands.into_iter().map(to_demand).collect();
        let core = core::Collective::custom(to_npus(npus), demands)?;
        let core = match name {
            None => core,
            Some(name) => core.with_name(name)?,
        };
        Ok(Self::from_core(core.with_in_place(in_place)))
    }

    /// Make one that has the demands of several, in order, or SpecError if there is none.
    #[staticmethod]
    fn joined(collectives: Vec<PyRef<'_, Self>>) -> Result<Self, CoreError> {
        let all: Vec<&core::Collective> = collectives.iter().map(|each| &each.core).collect();
        Ok(Self::from_core(core::Collective::joined(&all)?))
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let py = this.py();
        if this.get().core.kind() == CollectiveKind::Custom {
            let keywords = attributes(this, &["npus", "in_place", "name"])?;
            keywords.set_item("demands", this.get().demands())?;
            return reduced(py, "Collective.custom", keywords);
        }
        let names = ["kind", "npus", "size", "root", "in_place"];
        reduced(py, "Collective", attributes(this, &names)?)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// The pattern, such as all-reduce, or custom.
    #[getter]
    fn kind(&self) -> &'static str {
        self.core.kind().name()
    }

    /// What it is called: its kind, or the name of a custom one.
    #[getter]
    fn name(&self) -> &str {
        self.core.name()
    }

    #[getter]
    fn npus(&self) -> Vec<u32> {
        self.core.npus().iter().map(|npu| npu.0).collect()
    }

    /// Bytes, as nccl-tests counts them.
    #[getter]
    fn size(&self) -> u64 {
        self.core.size()
    }

    /// Busbw / algbw, as nccl-tests has it.
    #[getter]
    fn bus_factor(&self) -> f64 {
        self.core.kind().bus_factor(self.core.npus().len())
    }

    /// Rank of the root, for rooted kinds.
    #[getter]
    fn root(&self) -> Option<u32> {
        self.core.root().map(|rank| rank.0)
    }

    /// Whether the result overwrites the input.
    #[getter]
    fn in_place(&self) -> bool {
        self.core.in_place()
    }

    /// Return precondition and postcondition: (bytes, reduced, holders, wanted).
    fn demands(&self) -> Vec<DemandTuple> {
        self.core.demands().iter().map(from_demand).collect()
    }

    fn __repr__(&self) -> String {
        let (npus, size) = (self.core.npus().len(), self.core.size());
        format!("<Collective {}: {npus} NPUs, {size} B>", self.core.name())
    }
}

fn to_npus(npus: Vec<u32>) -> Vec<NpuId> {
    npus.into_iter().map(NpuId).collect()
}

fn to_demand((bytes, reduced, holders, wanted): DemandTuple) -> Demand {
    let set = |npus: Option<Vec<u32>>| match npus {
        None => NpuSet::All,
        Some(npus) => NpuSet::of(to_npus(npus)),
    };
    Demand {
        bytes,
        reduced,
        holders: set(holders),
        wanted: set(wanted),
    }
}

fn from_demand(demand: &Demand) -> DemandTuple {
    let list = |set: &NpuSet| match set {
        NpuSet::All => None,
        NpuSet::One(npu) => Some(vec![npu.0]),
        NpuSet::Some(npus) => Some(npus.iter().map(|npu| npu.0).collect()),
    };
    (
        demand.bytes,
        demand.reduced,
        list(&demand.holders),
        list(&demand.wanted),
    )
}
