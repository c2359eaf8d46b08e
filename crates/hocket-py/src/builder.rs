//! `PlanBuilder` and `even_chunks`.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use hocket_core::explain::{Explain, Parts};
use hocket_core::id::{DeviceId, NpuId};
use hocket_core::plan::{self as core, BadTransfer, Chunks, Columns, Op, SerialBuilder, Wait};
use pyo3::exceptions::PyTypeError;
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyRange, PyRangeMethods, PyString};
use pyo3::{type_hint_identifier, type_hint_subscript, type_hint_union};

use crate::arrays::{Array, Given, to_vec};
use crate::choice::{ORDERS, choose};
use crate::collective::PyCollective;
use crate::error::CoreError;
use crate::plan::PyPlan;
use crate::progress;
use crate::topology::PyTopology;

/// Makes a plan of transfers that are right one after the other.
#[pyclass(name = "PlanBuilder", module = "hocket._core", subclass)]
pub(crate) struct PyPlanBuilder {
    core: SerialBuilder,
    topology: Py<PyTopology>,
    collective: Py<PyCollective>,
    name: Option<String>,
    link_order: core::LinkOrder,
    /// Devices by name, once one is named.
    devices: OnceLock<HashMap<String, u32>>,
}

type Any<'py> = Bound<'py, PyAny>;

#[pymethods]
impl PyPlanBuilder {
    #[new]
    #[pyo3(signature = (topology, collective, *, name=None, chunks=1, link_order="ready"))]
    fn new(
        topology: Bound<'_, PyTopology>,
        collective: Bound<'_, PyCollective>,
        name: Option<String>,
        chunks: usize,
        link_order: &str,
    ) -> Result<Self, CoreError> {
        let cut = cut_evenly(collective.get().core(), chunks)?;
        let network = Arc::clone(topology.get().core());
        Ok(Self {
            core: SerialBuilder::new(network, collective.get().core(), cut),
            topology: topology.unbind(),
            collective: collective.unbind(),
            name,
            link_order: choose("link_order", link_order, ORDERS)?,
            devices: OnceLock::new(),
        })
    }

    /// The network.
    #[getter]
    fn topology(&self, py: Python<'_>) -> Py<PyTopology> {
        self.topology.clone_ref(py)
    }

    /// The collective of the plan.
    #[getter]
    fn collective(&self, py: Python<'_>) -> Py<PyCollective> {
        self.collective.clone_ref(py)
    }

    /// How many chunks there are.
    #[getter]
    fn chunks(&self) -> usize {
        self.core.chunks().len()
    }

    /// Send chunks that the receiver stores.
    ///
    /// Parameters
    /// ----------
    /// chunk
    ///     A chunk, or a ``range`` of consecutive ones that travel as one message.
    /// src, dst
    ///     Sending and receiving NPU, by number or name; or a switch that can sum or multicast (see
    ///     :func:`hocket.topology.offloaded`).
    /// after
    ///     What must have ended before it starts: one transfer or barrier, several, or ``()`` for nothing.
    ///     By default the earlier transfers that it conflicts with: those that wrote the chunks at the
    ///     sender, and those that read or wrote them at the receiver.
    /// path
    ///     The devices on its way, by number or name, from the sender to the receiver; of several links
    ///     between two devices the one with the lowest number. By default the shortest way, or one of
    ///     several equal ones.
    ///
    /// Returns
    /// -------
    /// int
    ///     Its number, for ``after=`` and as errors name it.
    ///
    /// Raises
    /// ------
    /// SpecError
    ///     Naming the transfer and the argument that is wrong.
    #[pyo3(signature = (chunk: "int | range", src: "int | str", dst: "int | str", *, after=None, path=None))]
    fn copy(
        this: &Bound<'_, Self>,
        chunk: &Any<'_>,
        src: &Any<'_>,
        dst: &Any<'_>,
        after: Option<Awaited<'_>>,
        path: Option<Devices<'_>>,
    ) -> PyResult<u32> {
        send(this, (chunk, src, dst, Op::Copy), after, path)
    }

    /// Send chunks that the receiver adds to what it has; see :meth:`copy`.
    ///
    /// Two sums into one place do not wait for each other by default: they may come in any order.
    #[pyo3(signature = (chunk: "int | range", src: "int | str", dst: "int | str", *, after=None, path=None))]
    fn reduce(
        this: &Bound<'_, Self>,
        chunk: &Any<'_>,
        src: &Any<'_>,
        dst: &Any<'_>,
        after: Option<Awaited<'_>>,
        path: Option<Devices<'_>>,
    ) -> PyResult<u32> {
        send(this, (chunk, src, dst, Op::Reduce), after, path)
    }

    /// Return something to wait for that stands for several transfers, shared by all that wait for it.
    ///
    /// Parameters
    /// ----------
    /// after
    ///     Transfers and barriers; all transfers so far by default.
    ///
    /// Returns
    /// -------
    /// int
    ///     For ``after=``.
    #[pyo3(signature = (after=None))]
    fn barrier(&mut self, after: Option<Awaited<'_>>) -> Result<u32, CoreError> {
        let wait = match after {
            None => self.core.barrier(),
            Some(given) => self.wait(given)?,
        };
        Ok(wait.to_bits())
    }

    /// Take other chunks than even ones, before the first transfer.
    ///
    /// Parameters
    /// ----------
    /// offsets
    ///     Running sum of their bytes from 0, (chunks + 1,).
    /// demand
    ///     Demand that each belongs to, (chunks,).
    fn use_chunks<'py>(
        &mut self,
        offsets: Given<'py, u64>,
        demand: Given<'py, u32>,
    ) -> Result<(), CoreError> {
        if !self.core.is_empty() {
            let why = format!("there are {} transfers already", self.core.len());
            return Err(Parts::new(why).remedy("say so before the first").into());
        }
        let chunks = Chunks::from_columns(to_vec(&offsets), to_vec(&demand))?;
        let topology = Arc::clone(self.core.topology());
        self.core = SerialBuilder::new(topology, self.core.collective(), chunks);
        Ok(())
    }

    /// Append transfers as columns, giving the number of the first and the one behind the last.
    #[pyo3(name = "_append")]
    fn append<'py>(
        &mut self,
        op: Given<'py, u8>,
        chunk: Given<'py, u32>,
        chunk_count: Given<'py, u32>,
        src: Given<'py, u32>,
        dst: Given<'py, u32>,
    ) -> Result<(usize, usize), CoreError> {
        let first = self.core.len();
        self.core.extend(&Columns {
            op: to_vec(&op),
            chunk: to_vec(&chunk),
            chunk_count: to_vec(&chunk_count),
            src: to_vec(&src),
            dst: to_vec(&dst),
            ..Columns::default()
        })?;
        Ok((first, self.core.len()))
    }

    /// The plan of the transfers so far.
    #[pyo3(name = "_plan")]
    fn plan(&self, py: Python<'_>, name: &str, routing: &str) -> Result<PyPlan, CoreError> {
        let routing = routing.parse()?;
        let name = self.name.as_deref().unwrap_or(name);
        let plan = self.core.plan(name, self.link_order)?;
        let on = Arc::clone(self.core.topology());
        let routed = progress::attended(py, move |_| plan.routed(&on, routing))?;
        Ok(PyPlan::new(routed, Arc::clone(self.core.topology())))
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.name.as_deref().unwrap_or("own");
        let what = self.core.collective().name();
        let place = PyString::new(py, self.core.topology().name()).repr()?;
        let len = self.core.len();
        Ok(format!(
            "<PlanBuilder {name} {what} on {place}: {len} transfers>"
        ))
    }
}

/// Appends a transfer, giving its number; what is refused names it.
#[inline]
fn send(
    this: &Bound<'_, PyPlanBuilder>,
    row: (&Any<'_>, &Any<'_>, &Any<'_>, Op),
    after: Option<Awaited<'_>>,
    path: Option<Devices<'_>>,
) -> PyResult<u32> {
    let mut builder = this.borrow_mut();
    let sent = builder.send(row, after, path);
    sent.map_err(|error| within(this.py(), error, builder.core.len()))
}

/// The same error, of a transfer.
#[cold]
fn within(py: Python<'_>, error: CoreError, transfer: usize) -> PyErr {
    let error = PyErr::from(error);
    let origin = format!("transfer {transfer}");
    match error.value(py).call_method1("within", (origin,)) {
        Ok(error) => PyErr::from_value(error),
        Err(_) => error, // not one of hocket's
    }
}

impl PyPlanBuilder {
    #[inline]
    fn send(
        &mut self,
        (chunk, src, dst, op): (&Any<'_>, &Any<'_>, &Any<'_>, Op),
        after: Option<Awaited<'_>>,
        path: Option<Devices<'_>>,
    ) -> Result<u32, CoreError> {
        let chunks = self.chunk_range(chunk)?;
        let (src, to) = (self.npu(src, "src")?, self.npu(dst, "dst")?);
        if src == to {
            let npu = dst.str()?.to_string();
            return Err(BadTransfer::ToItself { npu }.into());
        }
        let (src, dst) = (NpuId(src), NpuId(to));
        let wait = after.map(|given| self.wait(given)).transpose()?;
        let path = match path {
            None => None,
            Some(devices) => Some(self.path(&devices, (src, dst))?),
        };
        Ok(self.core.send(chunks, src, dst, op, wait, path)?.0)
    }

    /// First chunk and number of chunks.
    #[inline]
    fn chunk_range(&self, given: &Any<'_>) -> Result<(u32, u32), CoreError> {
        let count = self.core.chunks().len();
        if let Ok(range) = given.cast::<PyRange>() {
            let (start, stop, step) = (range.start(), range.stop(), range.step());
            let (start, stop) = match (start, stop, step) {
                (Ok(start), Ok(stop), Ok(1)) if start < stop => (start, stop),
                // A bound that does not fit into a word is beyond the last chunk, or before the first.
                (Err(_), _, Ok(1)) | (_, Err(_), Ok(1)) if given.is_truthy()? => {
                    return Err(no_chunk(given, count)?.into());
                }
                _ => {
                    let given = shown(given)?;
                    return Err(BadTransfer::NoRun { given }.into());
                }
            };
            return match (u32::try_from(start), u32::try_from(stop)) {
                (Ok(first), Ok(end)) if end as usize <= count => Ok((first, end - first)),
                _ => Err(no_chunk(given, count)?.into()),
            };
        }
        match given.extract::<u32>() {
            Ok(_) if given.is_instance_of::<PyBool>() => {
                let given = shown(given)?;
                Err(BadTransfer::NotAChunk { given }.into())
            }
            Ok(chunk) if (chunk as usize) < count => Ok((chunk, 1)),
            Err(error) if error.is_instance_of::<PyTypeError>(given.py()) => {
                let given = shown(given)?;
                Err(BadTransfer::NotAChunk { given }.into())
            }
            _ => Err(no_chunk(given, count)?.into()),
        }
    }

    /// The number of a sender or receiver.
    #[inline]
    fn npu(&self, given: &Any<'_>, field: &str) -> Result<u32, CoreError> {
        let number = match given.cast::<PyString>() {
            Ok(name) => self.device(name),
            Err(_) if given.is_instance_of::<PyBool>() => None,
            Err(_) => given.extract().ok(),
        };
        match number {
            Some(number) if self.core.is_end(number) => Ok(number),
            _ => {
                let py = given.py();
                let module = py.import("hocket.collectives.collective")?;
                let checked = module.call_method1("npu_number", (&self.topology, given, field))?;
                Ok(checked.extract()?)
            }
        }
    }

    fn device(&self, name: &Bound<'_, PyString>) -> Option<u32> {
        let known = self.devices.get_or_init(|| {
            let devices = (0..).zip(self.core.topology().devices());
            devices
                .map(|(number, device)| (device.name.clone(), number))
                .collect()
        });
        known.get(name.to_cow().ok()?.as_ref()).copied()
    }

    /// The wait for all that a caller names.
    fn wait(&mut self, given: Awaited<'_>) -> Result<Wait, CoreError> {
        let mut waits = Vec::with_capacity(given.0.len());
        for (number, value) in given.0 {
            let wait = number.map(Wait::from_bits);
            match wait.filter(|&wait| self.core.has(wait)) {
                Some(wait) => waits.push(wait),
                None => {
                    let given = shown(&value)?;
                    let transfers = self.core.len();
                    return Err(BadTransfer::NoTransfer { given, transfers }.into());
                }
            }
        }
        Ok(self.core.all_of(waits))
    }

    /// The position of an explicit path.
    fn path(
        &mut self,
        devices: &Devices<'_>,
        (src, dst): (NpuId, NpuId),
    ) -> Result<u32, CoreError> {
        let last = self.core.topology().device_count() - 1;
        let number = |device: &Any<'_>| -> Result<DeviceId, CoreError> {
            if let Ok(name) = device.cast::<PyString>() {
                return match self.device(name) {
                    Some(number) => Ok(DeviceId(number)),
                    None => {
                        let name = name.to_string_lossy();
                        let error = self.core.topology().device_by_name(&name);
                        Ok(error.map_err(|error| error.parts().field("path"))?)
                    }
                };
            }
            let checks = device.py().import("hocket._checks")?;
            let checked = checks.call_method1("whole", ("path", device, 0, last))?;
            Ok(DeviceId(checked.extract()?))
        };
        let numbers: Vec<DeviceId> = devices.each.iter().map(number).collect::<Result<_, _>>()?;
        match self.core.path(&numbers, src, dst) {
            Ok(path) => Ok(path),
            Err(BadTransfer::OtherEnds { .. }) => {
                let given = shown(&devices.given)?;
                Err(BadTransfer::OtherEnds { given }.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What a caller gives to wait for: each number, if it is one, and the value for messages.
///
/// It is read before the builder is held: an iterator may itself call the builder.
struct Awaited<'py>(Vec<(Option<u32>, Any<'py>)>);

impl<'a, 'py> FromPyObject<'a, 'py> for Awaited<'py> {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_union!(
        type_hint_identifier!("builtins", "int"),
        type_hint_subscript!(
            type_hint_identifier!("collections.abc", "Iterable"),
            type_hint_identifier!("builtins", "int")
        )
    );

    fn extract(after: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let number = |each: &Any<'py>| each.extract::<u32>().ok();
        let one = number(&after);
        let all = match after.try_iter() {
            Ok(all) if one.is_none() && !after.is_instance_of::<PyString>() => all
                .map(|each| each.map(|each| (number(&each), each)))
                .collect::<PyResult<_>>()?,
            _ => vec![(one, after.to_owned())],
        };
        Ok(Self(all))
    }
}

/// The devices of a path, none where it is not a list, and the path for messages.
struct Devices<'py> {
    each: Vec<Any<'py>>,
    given: Any<'py>,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Devices<'py> {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_subscript!(
        type_hint_identifier!("collections.abc", "Iterable"),
        type_hint_union!(
            type_hint_identifier!("builtins", "int"),
            type_hint_identifier!("builtins", "str")
        )
    );

    fn extract(path: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let each = match path.try_iter() {
            Ok(devices) if !path.is_instance_of::<PyString>() => {
                devices.collect::<PyResult<_>>()?
            }
            _ => Vec::new(),
        };
        let given = path.to_owned();
        Ok(Self { each, given })
    }
}

fn no_chunk(given: &Any<'_>, count: usize) -> PyResult<BadTransfer> {
    let last = count.saturating_sub(1);
    let given = shown(given)?;
    Ok(BadTransfer::NoChunk { given, last })
}

/// A wrong value as messages show it.
#[cold]
fn shown(value: &Any<'_>) -> PyResult<String> {
    let units = value.py().import("hocket.units")?;
    units.call_method1("shown", (value,))?.extract()
}

fn cut_evenly(
    collective: &hocket_core::collective::Collective,
    pieces: usize,
) -> Result<Chunks, CoreError> {
    let demands = collective.demands();
    let count = demands.len();
    if (count as u64).saturating_mul(pieces as u64) >= 1 << 31 {
        let why = format!("{pieces} for each of {count} demands are 2^31 or more");
        return Err(Parts::new(why).field("chunks").into());
    }
    if let Some(short) = demands.iter().position(|each| each.bytes < pieces as u64) {
        let bytes = demands[short].bytes;
        let why = format!("demand {short} has {bytes} B, too few for {pieces}");
        return Err(Parts::new(why).field("chunks").remedy("give fewer").into());
    }
    Ok(Chunks::split(&demands, pieces)?)
}

/// Cut every demand into pieces whose sizes differ by a byte at most.
///
/// Returns the running sum of the chunks' bytes from 0, (chunks + 1,), and the demand of each, (chunks,).
///
/// Raises
/// ------
/// hocket.SpecError
///     If a demand has fewer bytes than pieces, or there are too many chunks.
#[pyfunction]
pub(crate) fn even_chunks<'py>(
    py: Python<'py>,
    collective: &PyCollective,
    pieces: usize,
) -> Result<(Array<'py, u64>, Array<'py, u32>), CoreError> {
    let chunks = cut_evenly(collective.core(), pieces)?;
    let offsets = Array::from_slice(py, chunks.offsets());
    Ok((offsets, Array::from_slice(py, chunks.demand())))
}
