//! `hocket._core.chakra`: execution traces as ASTRA-sim runs them.

use hocket_core::explain::Explain;
use hocket_formats::chakra::{self, Does, PlanFiles, Refused};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::CoreError;
use crate::hints::{Callback, Listener};
use crate::plan::PyPlan;
use crate::progress;

impl From<Refused> for CoreError {
    fn from(error: Refused) -> Self {
        CoreError::Infeasible(error.parts())
    }
}

/// Writes the file of a rank, node by node; `after` are ids of nodes that must end first.
#[pyclass(name = "Writer", module = "hocket._core.chakra")]
pub(crate) struct PyWriter(chakra::Writer);

#[pymethods]
impl PyWriter {
    #[new]
    fn new() -> Self {
        Self(chakra::Writer::new())
    }

    /// Add a computation.
    fn compute(&mut self, id: u64, name: &str, after: Vec<u64>, micros: u64) {
        self.0.node(id, name, &after, Does::Compute { micros });
    }

    /// Add a part in a collective, whose kind is numbered as ``hocket.traces.CALLS``.
    #[pyo3(signature = (id, name, after, kind, bytes, group=None))]
    fn call(
        &mut self,
        id: u64,
        name: &str,
        after: Vec<u64>,
        kind: u64,
        bytes: u64,
        group: Option<u64>,
    ) {
        self.0
            .node(id, name, &after, Does::Call { kind, bytes, group });
    }

    /// Add a message to another rank.
    fn send(&mut self, id: u64, name: &str, after: Vec<u64>, to: u64, bytes: u64, tag: u64) {
        self.0.node(id, name, &after, Does::Send { to, bytes, tag });
    }

    /// Add a message from another rank.
    #[pyo3(signature = (id, name, after, source, bytes, tag))]
    fn receive(&mut self, id: u64, name: &str, after: Vec<u64>, source: u64, bytes: u64, tag: u64) {
        let from = source;
        self.0
            .node(id, name, &after, Does::Receive { from, bytes, tag });
    }

    /// Return the file, and begin the next.
    fn take<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.take())
    }
}

/// The files written for a plan.
#[pyclass(name = "Exported", module = "hocket._core.chakra", frozen, get_all)]
pub(crate) struct ChakraExported {
    /// The collective as ASTRA-sim knows it.
    call: &'static str,
    ranks: usize,
    nodes: u64,
    /// NPUs of the ranks, if they are not all in order.
    group: Option<Vec<u32>>,
    notes: Vec<String>,
}

/// Pass name and contents of each file of a plan to `write`: ``plan.RANK.et``, ``workload.NPU.et``.
///
/// Raises
/// ------
/// hocket.InfeasibleError
///     If ASTRA-sim cannot run it.
#[pyfunction]
#[pyo3(signature = (plan, write, *, progress=None))]
pub(crate) fn export(
    py: Python<'_>,
    plan: &PyPlan,
    write: Callback<(&'static str, &'static [u8])>,
    progress: Option<Listener>,
) -> Result<ChakraExported, CoreError> {
    let verified = plan.verified(py, None)?;
    let topology = plan.network();
    progress::watched(py, progress, |watch| {
        let files = PlanFiles::new(verified.plan(), topology)?;
        let give = |name: String, bytes: Vec<u8>| {
            Python::attach(|py| write.call(py, (name, PyBytes::new(py, &bytes))))
        };
        let (ranks, npus) = (files.npus().len(), topology.npu_count());
        let mut writer = chakra::Writer::new();
        let mut nodes = 0;
        for rank in 0..ranks {
            if !watch.report("export", rank as u64, ranks as u64) {
                return Err(CoreError::Interrupted);
            }
            files.rank(rank, &mut writer)?;
            nodes += writer.nodes();
            give(format!("plan.{rank}.et"), writer.take())?;
        }
        for npu in 0..npus {
            files.workload(npu, &mut writer);
            give(format!("workload.{npu}.et"), writer.take())?;
        }
        Ok::<_, CoreError>(ChakraExported {
            call: files.call().name(),
            ranks,
            nodes,
            group: files.group().map(|_| files.npus().to_vec()),
            notes: files.notes(),
        })
    })
}
