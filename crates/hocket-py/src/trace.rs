//! Execution traces: `UngroupedTrace` and `Trace`.

use std::collections::BTreeMap;
use std::sync::Mutex;

use hocket_core::trace::{self as core, Columns, File, Follow, Trace, UngroupedTrace};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrays::{self, Array, Given, to_vec};
use crate::choice::choose;
use crate::error::{CoreError, Parts};
use crate::pickle::{Reduced, attributes, reduced};

const FOLLOWS: [(&str, Follow); 2] = [("all", Follow::All), ("data", Follow::Data)];

/// A trace whose groups of ranks are not known yet: the name and contents of each rank's file.
#[pyclass(name = "Draft", module = "hocket._core.trace", frozen)]
pub(crate) struct PyDraft {
    /// Gone once it is linked.
    core: Mutex<Option<UngroupedTrace>>,
    /// Inputs of metadata nodes, with their rank.
    process_groups: Vec<(u32, String)>,
}

#[pymethods]
impl PyDraft {
    #[new]
    #[pyo3(signature = (files, follow="all"))]
    fn new(
        py: Python<'_>,
        files: Vec<(String, PyBackedBytes)>,
        follow: &str,
    ) -> Result<Self, CoreError> {
        let follow = choose("dependencies", follow, &FOLLOWS)?;
        let core = py.detach(|| {
            let files: Vec<File<'_>> = files
                .iter()
                .map(|(name, bytes)| File { name, bytes })
                .collect();
            UngroupedTrace::read(&files, follow)
        })?;
        Ok(Self {
            process_groups: core.process_groups().to_vec(),
            core: Mutex::new(Some(core)),
        })
    }

    /// Inputs of metadata nodes, with their rank.
    #[getter]
    fn process_groups(&self) -> Vec<(u32, String)> {
        self.process_groups.clone()
    }

    /// Make the trace, given ids and ranks of groups; once.
    fn link(&self, py: Python<'_>, groups: Vec<(u64, Vec<u32>)>) -> Result<PyTrace, CoreError> {
        let draft = match self.core.lock() {
            Ok(mut core) => core.take(),
            Err(_) => None,
        };
        let draft = draft.ok_or_else(|| {
            Parts::new("this draft is linked already").remedy("read the files anew")
        })?;
        let core = py.detach(|| draft.link(&groups))?;
        Ok(PyTrace { core })
    }
}

/// A trace of all ranks: columns over nodes, rank by rank, then dependencies, groups and calls.
#[pyclass(name = "Trace", module = "hocket._core.trace", frozen)]
pub(crate) struct PyTrace {
    core: Trace,
}

impl PyTrace {
    pub(crate) fn core(&self) -> &Trace {
        &self.core
    }
}

#[pymethods]
impl PyTrace {
    /// Stands for no group, no peer, no call and no partner.
    #[classattr]
    const NONE: u32 = core::NONE;

    /// Names of the kinds of nodes, by their numbers.
    #[classattr]
    #[pyo3(name = "KINDS")]
    fn kinds() -> BTreeMap<u8, &'static str> {
        let kinds = core::NodeKind::ALL.iter();
        kinds.map(|&kind| (kind as u8, kind.name())).collect()
    }

    /// Names of the kinds of calls that Chakra has numbers for, by their numbers.
    #[classattr]
    #[pyo3(name = "CALLS")]
    fn calls_by_number() -> BTreeMap<u8, &'static str> {
        let calls = core::CallKind::KNOWN.iter();
        calls.map(|&call| (call as u8, call.name())).collect()
    }

    /// Make a trace again of its columns, and the id and ranks of each group; all of it is checked.
    ///
    /// Raises
    /// ------
    /// SpecError
    ///     If the columns are none of a trace.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "columns, named in Python")]
    fn of_columns(
        py: Python<'_>,
        rank_first: Given<'_, u32>,
        id: Given<'_, u64>,
        kind: Given<'_, u8>,
        duration_ps: Given<'_, u64>,
        operations: Given<'_, u64>,
        tensor_bytes: Given<'_, u64>,
        is_cpu: Given<'_, u8>,
        call_kind: Given<'_, u8>,
        bytes: Given<'_, u64>,
        group: Given<'_, u32>,
        peer: Given<'_, u32>,
        tag: Given<'_, u64>,
        priority: Given<'_, u32>,
        names: Vec<String>,
        name_row: Given<'_, u32>,
        dependency_first: Given<'_, u32>,
        dependencies: Given<'_, u32>,
        groups: Vec<(u64, Vec<u32>)>,
    ) -> Result<Self, CoreError> {
        let columns = Columns {
            rank_first: to_vec(&rank_first),
            id: to_vec(&id),
            kind: to_vec(&kind),
            duration: to_vec(&duration_ps),
            operations: to_vec(&operations),
            tensor_bytes: to_vec(&tensor_bytes),
            is_cpu: to_vec(&is_cpu),
            call_kind: to_vec(&call_kind),
            bytes: to_vec(&bytes),
            group: to_vec(&group),
            peer: to_vec(&peer),
            tag: to_vec(&tag),
            priority: to_vec(&priority),
            names,
            name_row: to_vec(&name_row),
            dependency_first: to_vec(&dependency_first),
            dependencies: to_vec(&dependencies),
        };
        let core = py.detach(|| Trace::from_columns(columns, &groups))?;
        Ok(Self { core })
    }

    /// What does not follow from other columns.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let names = [
            "rank_first",
            "id",
            "kind",
            "duration_ps",
            "operations",
            "tensor_bytes",
            "is_cpu",
            "call_kind",
            "bytes",
            "group",
            "peer",
            "tag",
            "priority",
            "names",
            "name_row",
            "dependency_first",
            "dependencies",
        ];
        let keywords = attributes(this, &names)?;
        let groups = &this.get().core.groups;
        let ranks = (0u32..).map(|row| groups.ranks_of(row).to_vec());
        let groups: Vec<_> = groups.id.iter().copied().zip(ranks).collect();
        keywords.set_item("groups", groups)?;
        reduced(this.py(), "trace.Trace.of_columns", keywords)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    #[getter]
    fn ranks(&self) -> usize {
        self.core.ranks()
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    /// Collective nodes that do not say what they do.
    #[getter]
    fn unspecified(&self) -> usize {
        self.core.unspecified()
    }

    /// Each distinct name.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.core.names.iter().collect()
    }

    /// First row of each rank, and the number of rows.
    #[getter]
    fn rank_first<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.rank_first.as_slice())
    }

    /// The node's number in its file.
    #[getter]
    fn id<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| this.core.id.as_slice())
    }

    /// The kind of each node, numbered as ``hocket.traces.KINDS``.
    #[getter]
    fn kind<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u8>> {
        arrays::column(slf, |this| this.core.kind.as_slice())
    }

    /// How long it took, where the trace says so.
    #[getter]
    fn duration_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| this.core.duration.as_slice())
    }

    /// Operations of a computation.
    #[getter]
    fn operations<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| this.core.operations.as_slice())
    }

    /// Bytes that a computation or a memory node touches.
    #[getter]
    fn tensor_bytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| this.core.tensor_bytes.as_slice())
    }

    /// 1 for what a CPU does, else 0.
    #[getter]
    fn is_cpu<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u8>> {
        arrays::column(slf, |this| this.core.is_cpu.as_slice())
    }

    /// The collective of a node, numbered as ``hocket.traces.CALLS``.
    ///
    /// 254 is one that does not say it, 255 no collective.
    #[getter]
    fn call_kind<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u8>> {
        arrays::column(slf, |this| this.core.call_kind.as_slice())
    }

    /// ``comm_size`` as it stands in the file.
    #[getter]
    fn bytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| this.core.bytes.as_slice())
    }

    /// Group of a collective, a row of the groups, or ``NONE``.
    #[getter]
    fn group<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.group.as_slice())
    }

    /// Rank at the other end of a send or receive, or ``NONE``.
    #[getter]
    fn peer<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.peer.as_slice())
    }

    /// Tag of a send or receive.
    #[getter]
    fn tag<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| this.core.tag.as_slice())
    }

    /// Priority of a collective.
    #[getter]
    fn priority<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.priority.as_slice())
    }

    /// Which of ``names`` is each row's.
    #[getter]
    fn name_row<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.names.of.as_slice())
    }

    /// First of each row's dependencies, and their number.
    #[getter]
    fn dependency_first<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.dependency_first.as_slice())
    }

    /// Rows that must end before a row starts, ascending.
    #[getter]
    fn dependencies<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.dependencies.as_slice())
    }

    /// All rows, rank by rank, each after what it depends on.
    ///
    /// Of those that may come next the one with the lowest id does.
    #[getter]
    fn order<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.order.as_slice())
    }

    /// Numbers of the groups; row 0 is all ranks.
    #[getter]
    fn group_id<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| this.core.groups.id.as_slice())
    }

    /// First of each group's ranks, and their number.
    #[getter]
    fn group_first<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.groups.first.as_slice())
    }

    /// Ranks of the groups.
    #[getter]
    fn group_ranks<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.groups.ranks.as_slice())
    }

    /// The collective of each call, as ``call_kind``.
    #[getter]
    fn calls_kind<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u8>> {
        arrays::column(slf, |this| this.core.calls.kind.as_slice())
    }

    /// Among whom, a row of the groups.
    #[getter]
    fn calls_group<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.calls.group.as_slice())
    }

    /// Bytes as ``Collective.size`` counts them; 0 for a barrier.
    #[getter]
    fn calls_size<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| this.core.calls.size.as_slice())
    }

    /// First of each call's nodes, and their number.
    #[getter]
    fn calls_first<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.calls.first.as_slice())
    }

    /// Nodes of the calls, one for each rank of the group in its order.
    #[getter]
    fn calls_nodes<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.calls.nodes.as_slice())
    }

    /// Call of a collective node, or ``NONE``.
    #[getter]
    fn call<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.call.as_slice())
    }

    /// The receive of a send and the reverse, or ``NONE``.
    #[getter]
    fn partner<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.partner.as_slice())
    }
}
