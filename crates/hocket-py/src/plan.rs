//! `Plan`.

use std::sync::{Arc, OnceLock};

use hocket_core::id::{LinkId, TransferId, narrow};
use hocket_core::plan::{self as core, Chunks, Columns, Routes, SerialBuilder, Wait, lists};
use hocket_core::topology::Topology;
use hocket_core::verify::Verified;
use pyo3::prelude::*;

use crate::arrays::{self, Array, Given, to_vec};
use crate::choice::{ORDERS, choose, name_of};
use crate::collective::PyCollective;
use crate::error::{CoreError, Parts};
use crate::hints::Listener;
use crate::pickle::{Reduced, attributes, reduced};
use crate::progress;
use crate::topology::PyTopology;

/// The transfers that implement a collective on a topology, as columns.
///
/// A ``wait`` is ``NO_WAIT``, a transfer, or ``GROUP`` + a group. Groups and paths are packed lists:
/// list i is ``items[offsets[i]:offsets[i + 1]]``; group members are waits, path members links.
#[pyclass(name = "Plan", module = "hocket._core", frozen)]
pub(crate) struct PyPlan {
    core: Arc<core::Plan>,
    topology: Arc<Topology>,
    verified: OnceLock<Arc<Verified>>,
}

impl PyPlan {
    pub(crate) fn new(core: core::Plan, topology: Arc<Topology>) -> Self {
        Self {
            core: Arc::new(core),
            topology,
            verified: OnceLock::new(),
        }
    }

    /// A plan that may have been proved already.
    pub(crate) fn proved(
        core: Arc<core::Plan>,
        topology: Arc<Topology>,
        proof: Option<&Arc<Verified>>,
    ) -> Self {
        Self {
            core,
            topology,
            verified: proof.cloned().map_or_else(OnceLock::new, OnceLock::from),
        }
    }

    /// The plan of a proof.
    pub(crate) fn of_proof(proof: &Arc<Verified>) -> Self {
        let (plan, topology) = (Arc::clone(proof.plan()), Arc::clone(proof.topology()));
        Self::proved(plan, topology, Some(proof))
    }

    pub(crate) fn core(&self) -> &core::Plan {
        &self.core
    }

    pub(crate) fn network(&self) -> &Topology {
        &self.topology
    }

    /// Transfers, and links of the network.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.core.len(), self.topology.links().len())
    }

    /// The proof, made now where it was not made before.
    pub(crate) fn verified(
        &self,
        py: Python<'_>,
        progress: Option<Listener>,
    ) -> Result<Arc<Verified>, CoreError> {
        if let Some(verified) = self.verified.get() {
            return Ok(Arc::clone(verified));
        }
        let (plan, topology) = (Arc::clone(&self.core), Arc::clone(&self.topology));
        let proof = progress::watched(py, progress, move |watch| {
            hocket_core::verify::verify(plan, topology, watch)
        })?;
        Ok(Arc::clone(self.verified.get_or_init(|| Arc::new(proof))))
    }
}

#[pymethods]
impl PyPlan {
    /// `Wait` bits of a transfer that waits for nothing.
    #[classattr]
    const NO_WAIT: u32 = Wait::NOTHING.to_bits();

    /// The bit of `Wait` that says that the others are a group's number.
    #[classattr]
    const GROUP: u32 = Wait::group(0).to_bits();

    /// `path` of a transfer that takes the default route.
    #[classattr]
    const DEFAULT_ROUTE: u32 = core::Plan::DEFAULT_ROUTE;

    /// Make a plan of columns (copied), or SpecError where they do not fit together.
    ///
    /// Without `wait`, transfers wait as those of a :class:`hocket.PlanBuilder` do.
    #[staticmethod]
    #[pyo3(signature = (
        topology, collective, algorithm, *, chunk_offsets, chunk_demand,
        chunk, chunk_count, src, dst, op, path, path_offsets, path_items,
        wait=None, group_offsets=None, group_items=None,
        link_order="ready", routing="single", own_paths=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "columns, named in Python")]
    fn from_columns<'py>(
        py: Python<'py>,
        topology: &PyTopology,
        collective: &PyCollective,
        algorithm: String,
        chunk_offsets: Given<'py, u64>,
        chunk_demand: Given<'py, u32>,
        chunk: Given<'py, u32>,
        chunk_count: Given<'py, u32>,
        src: Given<'py, u32>,
        dst: Given<'py, u32>,
        op: Given<'py, u8>,
        path: Given<'py, u32>,
        path_offsets: Given<'py, u32>,
        path_items: Given<'py, u32>,
        wait: Option<Given<'py, u32>>,
        group_offsets: Option<Given<'py, u32>>,
        group_items: Option<Given<'py, u32>>,
        link_order: &str,
        routing: &str,
        own_paths: Option<u32>,
    ) -> Result<Self, CoreError> {
        let link_order = choose("link_order", link_order, ORDERS)?;
        let routing = routing.parse()?;
        let chunks = Chunks::from_columns(to_vec(&chunk_offsets), to_vec(&chunk_demand))?;
        let links = to_vec(&path_items).into_iter().map(LinkId).collect();
        let paths = lists("paths", to_vec(&path_offsets), links)?;
        let given = |items: Option<Given<'py, u32>>| items.map(|items| to_vec(&items));
        let offsets = given(group_offsets).unwrap_or_else(|| vec![0]);
        let groups = lists("groups", offsets, given(group_items).unwrap_or_default())?;
        let waits = given(wait);
        let is_found = waits.is_none();
        let columns = Columns {
            chunk: to_vec(&chunk),
            chunk_count: to_vec(&chunk_count),
            src: to_vec(&src),
            dst: to_vec(&dst),
            op: to_vec(&op),
            wait: waits.unwrap_or_default(),
            path: to_vec(&path),
        };
        let collective = collective.core().clone();
        let core = py.detach(|| -> Result<_, CoreError> {
            let (mut columns, mut groups) = (columns, groups);
            if is_found {
                let on = topology.core();
                (columns.wait, groups) =
                    SerialBuilder::waits_of(on, &collective, &chunks, &columns)?;
            }
            Ok(core::Plan::from_columns(
                algorithm, collective, chunks, columns, groups, paths,
            )?)
        })?;
        let core = core.with_link_order(link_order);
        let core = core.said_routed(routing, own_paths.unwrap_or(u32::MAX));
        Ok(Self::new(core, Arc::clone(topology.core())))
    }

    /// Make one plan that carries out several at once; transfers of the plans take turns.
    #[staticmethod]
    fn merged(
        py: Python<'_>,
        plans: Vec<PyRef<'_, Self>>,
        memory_limit: u64,
    ) -> Result<Self, CoreError> {
        let Some(first) = plans.first() else {
            let wrong = Parts::new("there is none").field("plans");
            return Err(wrong.remedy("give one or more").into());
        };
        let topology = Arc::clone(&first.topology);
        if plans.iter().any(|plan| plan.topology != topology) {
            let wrong = Parts::new("they are of different topologies").field("plans");
            return Err(wrong.remedy("give plans of one").into());
        }
        let cores: Vec<Arc<core::Plan>> = plans.iter().map(|plan| Arc::clone(&plan.core)).collect();
        let on = Arc::clone(&topology);
        let core = py.detach(|| {
            let all: Vec<&core::Plan> = cores.iter().map(Arc::as_ref).collect();
            core::Plan::merged_on(&on, &all, memory_limit)
        })?;
        Ok(Self::new(core, topology))
    }

    /// Spread the same transfers over equal paths in another way.
    ///
    /// With `release` also those whose own path is one of several equal ones.
    #[pyo3(signature = (routing, *, release=false))]
    fn routed(&self, py: Python<'_>, routing: &str, release: bool) -> Result<Self, CoreError> {
        let routing = routing.parse()?;
        let (plan, topology) = (Arc::clone(&self.core), Arc::clone(&self.topology));
        let on = Arc::clone(&topology);
        let core = progress::attended(py, move |_| {
            let plan = core::Plan::clone(&plan);
            let plan = if release { plan.released(&on) } else { plan };
            plan.routed(&on, routing)
        })?;
        Ok(Self::new(core, topology))
    }

    /// The columns, without the proof.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let names = [
            "topology",
            "collective",
            "algorithm",
            "chunk_offsets",
            "chunk_demand",
            "chunk",
            "chunk_count",
            "src",
            "dst",
            "op",
            "wait",
            "path",
            "group_offsets",
            "group_items",
            "path_offsets",
            "path_items",
            "link_order",
            "routing",
            "own_paths",
        ];
        reduced(this.py(), "Plan.from_columns", attributes(this, &names)?)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// How transfers are spread over equal paths.
    #[getter]
    fn routing(&self) -> String {
        self.core.routing().to_string()
    }

    /// How many of the paths are the algorithm's own; the rest are of ``routing``.
    #[getter]
    fn own_paths(&self) -> u32 {
        self.core.own_paths()
    }

    /// In what order links are meant to serve: ``ready`` or ``plan``.
    #[getter]
    fn link_order(&self) -> &'static str {
        name_of(&self.core.link_order(), ORDERS)
    }

    #[getter]
    fn algorithm(&self) -> &str {
        self.core.algorithm()
    }

    #[getter]
    fn collective(&self) -> PyCollective {
        PyCollective::from_core(self.core.collective().clone())
    }

    #[getter]
    fn topology(&self) -> PyTopology {
        PyTopology::from_arc(Arc::clone(&self.topology))
    }

    /// How many chunks the data is cut into.
    #[getter]
    fn chunks(&self) -> usize {
        self.core.chunks().len()
    }

    /// Memory that the columns take [bytes].
    #[getter]
    fn nbytes(&self) -> usize {
        self.core.memory()
    }

    /// Whether it was proved right.
    #[getter]
    fn is_verified(&self) -> bool {
        self.verified.get().is_some()
    }

    /// Whether sums have the same bits in every timing; ``None`` before the proof.
    #[getter]
    fn is_reproducible(&self) -> Option<bool> {
        self.verified.get().map(|verified| verified.reproducible())
    }

    /// How many transfers.
    fn __len__(&self) -> usize {
        self.core.len()
    }

    fn __repr__(&self) -> String {
        let (len, algorithm) = (self.core.len(), self.core.algorithm());
        let (kind, topology) = (self.core.collective().name(), self.topology.name());
        format!("<Plan {algorithm} {kind} on {topology:?}: {len} transfers>")
    }

    /// First chunk of each transfer, (len,).
    #[getter]
    fn chunk<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.chunk())
    }

    /// How many consecutive chunks each transfer carries, (len,).
    #[getter]
    fn chunk_count<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.chunk_count())
    }

    /// Sending NPU of each transfer, (len,).
    #[getter]
    fn src<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.src())
    }

    /// Receiving NPU of each transfer, (len,).
    #[getter]
    fn dst<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.dst())
    }

    /// What the receiver does: 0 copy, 1 reduce, (len,).
    #[getter]
    fn op<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u8>> {
        arrays::column(slf, |this| this.core.op())
    }

    /// What each transfer waits for, (len,).
    #[getter]
    fn wait<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.wait())
    }

    /// Explicit path of each transfer or ``DEFAULT_ROUTE``, (len,).
    #[getter]
    fn path<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.path())
    }

    /// Bytes that each transfer carries.
    #[getter]
    fn size_bytes<'py>(&self, py: Python<'py>) -> Array<'py, u64> {
        Array::from_vec(py, self.core.sizes().collect())
    }

    /// Where each group starts, (groups + 1,).
    #[getter]
    fn group_offsets<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.groups().offsets())
    }

    /// Members of all groups: waits.
    #[getter]
    fn group_items<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.groups().items())
    }

    /// Where each path starts, (paths + 1,).
    #[getter]
    fn path_offsets<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.paths().offsets())
    }

    /// Links of all paths.
    #[getter]
    fn path_items<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.paths().items())
    }

    /// Return the links of each transfer's route: where each starts, (len + 1,), and the links of all.
    ///
    /// SpecError where a transfer has no route, or is sprayed over several.
    fn routes<'py>(
        &self,
        py: Python<'py>,
    ) -> Result<(Array<'py, u64>, Array<'py, u32>), CoreError> {
        let (plan, topology) = (&self.core, &self.topology);
        let found = py.detach(|| {
            let routes = Routes::resolve(plan, topology).map_err(|error| {
                let transfer = error.transfer.0;
                Parts::new(format!("transfer {transfer} has no way to its receiver"))
            })?;
            if routes.equal().is_some() {
                let why = "it sprays transfers over several paths at once";
                return Err(Parts::new(why).remedy("give routing single, balanced or ecmp"));
            }
            let (mut offsets, mut links) = (vec![0], Vec::new());
            for transfer in 0..narrow(plan.len()) {
                let route = routes.links(plan, topology, TransferId(transfer));
                links.extend(route.into_iter().map(|link| link.0));
                offsets.push(links.len() as u64);
            }
            Ok((offsets, links))
        });
        let (offsets, links) = found.map_err(|parts: Parts| parts.field("plan"))?;
        Ok((Array::from_vec(py, offsets), Array::from_vec(py, links)))
    }

    /// Running sum of the chunks' bytes from 0, (chunks + 1,).
    #[getter]
    fn chunk_offsets<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| this.core.chunks().offsets())
    }

    /// Demand that each chunk belongs to, (chunks,).
    #[getter]
    fn chunk_demand<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.chunks().demand())
    }
}

/// Return a routing as it is written in files, or raise SpecError.
#[pyfunction]
pub(crate) fn checked_routing(name: &str) -> Result<String, CoreError> {
    let routing: core::Routing = name.parse()?;
    Ok(routing.to_string())
}
