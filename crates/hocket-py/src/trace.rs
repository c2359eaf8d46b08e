//! Execution traces: `UngroupedTrace` and `Trace`.

use std::collections::BTreeMap;
use std::sync::Mutex;

use hocket_core::trace::{self as core, Columns, File, Follow, Trace, UngroupedTrace};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrays::{self, to_vec};
use crate::choice::choose;
use crate::error::{CoreError, Parts};
use crate::pickle::{Reduced, attributes, reduced};

const FOLLOWS: [(&str, Follow); 2] = [("all", Follow::All), ("data", Follow::Data)];

/// A trace whose groups are not known yet.
#[pyclass(name = "Draft", module = "hocket._core.trace", frozen)]
pub(crate) struct PyDraft {
    /// Gone once it is linked.
    core: Mutex<Option<UngroupedTrace>>,
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

/// A trace of all ranks.
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
        let kinds = core::NodeKind::ALL.into_iter();
        kinds.map(|kind| (kind as u8, kind.name())).collect()
    }

    /// Names of the kinds of calls that Chakra has numbers for, by their numbers.
    #[classattr]
    #[pyo3(name = "CALLS")]
    fn calls_by_number() -> BTreeMap<u8, &'static str> {
        let calls = core::CallKind::KNOWN.into_iter();
        calls.map(|call| (call as u8, call.name())).collect()
    }

    /// A trace that was read before, as in a pickle.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "columns, named in Python")]
    fn of_columns(
        py: Python<'_>,
        rank_first: PyReadonlyArray1<'_, u32>,
        id: PyReadonlyArray1<'_, u64>,
        kind: PyReadonlyArray1<'_, u8>,
        duration_ps: PyReadonlyArray1<'_, u64>,
        operations: PyReadonlyArray1<'_, u64>,
        tensor_bytes: PyReadonlyArray1<'_, u64>,
        is_cpu: PyReadonlyArray1<'_, u8>,
        call_kind: PyReadonlyArray1<'_, u8>,
        bytes: PyReadonlyArray1<'_, u64>,
        group: PyReadonlyArray1<'_, u32>,
        peer: PyReadonlyArray1<'_, u32>,
        tag: PyReadonlyArray1<'_, u64>,
        priority: PyReadonlyArray1<'_, u32>,
        names: Vec<String>,
        name_row: PyReadonlyArray1<'_, u32>,
        dependency_first: PyReadonlyArray1<'_, u32>,
        dependencies: PyReadonlyArray1<'_, u32>,
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
        reduced(this.py(), "Trace", keywords)
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

    #[getter]
    fn unspecified(&self) -> usize {
        self.core.unspecified()
    }

    /// Each distinct name.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.core.names.iter().collect()
    }

    #[getter]
    fn rank_first<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.rank_first.as_slice())
    }

    #[getter]
    fn id<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| this.core.id.as_slice())
    }

    #[getter]
    fn kind<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u8>>> {
        arrays::column(slf, |this| this.core.kind.as_slice())
    }

    #[getter]
    fn duration_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| this.core.duration.as_slice())
    }

    #[getter]
    fn operations<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| this.core.operations.as_slice())
    }

    #[getter]
    fn tensor_bytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| this.core.tensor_bytes.as_slice())
    }

    #[getter]
    fn is_cpu<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u8>>> {
        arrays::column(slf, |this| this.core.is_cpu.as_slice())
    }

    #[getter]
    fn call_kind<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u8>>> {
        arrays::column(slf, |this| this.core.call_kind.as_slice())
    }

    #[getter]
    fn bytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| this.core.bytes.as_slice())
    }

    #[getter]
    fn group<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.group.as_slice())
    }

    #[getter]
    fn peer<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.peer.as_slice())
    }

    #[getter]
    fn tag<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| this.core.tag.as_slice())
    }

    #[getter]
    fn priority<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.priority.as_slice())
    }

    #[getter]
    fn name_row<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.names.of.as_slice())
    }

    #[getter]
    fn dependency_first<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.dependency_first.as_slice())
    }

    #[getter]
    fn dependencies<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.dependencies.as_slice())
    }

    #[getter]
    fn order<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.order.as_slice())
    }

    #[getter]
    fn group_id<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| this.core.groups.id.as_slice())
    }

    #[getter]
    fn group_first<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.groups.first.as_slice())
    }

    #[getter]
    fn group_ranks<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.groups.ranks.as_slice())
    }

    #[getter]
    fn calls_kind<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u8>>> {
        arrays::column(slf, |this| this.core.calls.kind.as_slice())
    }

    #[getter]
    fn calls_group<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.calls.group.as_slice())
    }

    #[getter]
    fn calls_size<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| this.core.calls.size.as_slice())
    }

    #[getter]
    fn calls_first<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.calls.first.as_slice())
    }

    #[getter]
    fn calls_nodes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.calls.nodes.as_slice())
    }

    #[getter]
    fn call<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.call.as_slice())
    }

    #[getter]
    fn partner<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::column(slf, |this| this.core.partner.as_slice())
    }
}
