//! `hocket._core.runtime`: plans run between processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hocket_core::collective::CollectiveKind;
use hocket_runtime::error::{Code, Failure};
use hocket_runtime::group::{Area, Group, Request};
use hocket_runtime::number::{Dtype, Reduction};
use hocket_runtime::options::{GroupOptions, needs_secret};
use hocket_runtime::pace::{Pace, Pacer};
use hocket_runtime::script::Loaded;
use hocket_runtime::store::Store;
use numpy::npyffi::flags::NPY_ARRAY_WRITEABLE;
use numpy::{PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::Array;
use crate::error::{CoreError, Parts};
use crate::hints::Address;
use crate::plan::PyPlan;

impl From<Failure> for CoreError {
    fn from(failure: Failure) -> Self {
        match failure.code {
            Code::Invalid => CoreError::Spec(Parts::new(failure.why)),
            _ => CoreError::Transport(failure),
        }
    }
}

/// The store where ranks meet, served by threads of this process until it is closed or forgotten.
///
/// Raises ``TransportError`` if the address is not of this host or in use, ``SpecError`` if it can be
/// reached from other hosts and there is no secret.
#[pyclass(name = "Store", module = "hocket._core.runtime", frozen)]
pub(crate) struct PyStore {
    store: Mutex<Option<Store>>,
    /// Host and port, the one that was free where 0 was given.
    address: String,
}

#[pymethods]
impl PyStore {
    #[new]
    fn new(py: Python<'_>, address: &str, secret: Vec<u8>) -> Result<Self, CoreError> {
        let store = py.detach(|| {
            needs_secret(address, &secret)?;
            Store::listen(address, &secret)
        })?;
        let address = store.address().to_string();
        Ok(Self {
            store: Mutex::new(Some(store)),
            address,
        })
    }

    /// Host and port, the one that was free where 0 was given.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// End it: groups that have met here lose their store.
    fn close(&self, py: Python<'_>) {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let store = store.take();
        py.detach(|| drop(store));
    }
}

/// Links that ranks of this process share.
///
/// Their rates are in bytes per second, the latency that each has besides in seconds.
#[pyclass(name = "Pacer", module = "hocket._core.runtime", frozen)]
pub(crate) struct PyPacer {
    pacer: Arc<Pacer>,
}

#[pymethods]
impl PyPacer {
    #[new]
    #[pyo3(signature = (rates, latency=0.0))]
    fn new(rates: Vec<u64>, latency: f64) -> Result<Self, CoreError> {
        if rates.contains(&0) {
            let parts = Parts::new("a link carries nothing").field("rates");
            return Err(parts.remedy("give 1 byte per second at least").into());
        }
        let latency = time("latency", latency)?;
        Ok(Self {
            pacer: Arc::new(Pacer::new(&rates, latency)),
        })
    }

    /// Return the bytes that each link has carried.
    fn carried(&self) -> Vec<u64> {
        self.pacer.carried()
    }
}

/// Pass frames between the open devices of each pair, each after a delay in seconds; drop a share.
///
/// Returns when the other end of the pipe `stop` is closed, with the numbers of frames passed and dropped.
#[cfg(target_os = "linux")]
#[pyfunction]
pub(crate) fn relay(
    py: Python<'_>,
    pairs: Vec<(i32, i32)>,
    delay: f64,
    loss: f64,
    seed: u64,
    stop: i32,
) -> Result<(u64, u64), CoreError> {
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    use hocket_runtime::delay_line::Delay;

    let own = |number: i32| -> Result<OwnedFd, CoreError> {
        let refuse = |why: String| CoreError::from(Parts::new(why).field("pairs"));
        if number < 0 {
            return Err(refuse(format!("{number} is no open file")));
        }
        // SAFETY: a number that is not open is an error of the copy, which is all that is used.
        let given = unsafe { BorrowedFd::borrow_raw(number) };
        let copy = given.try_clone_to_owned();
        copy.map_err(|error| refuse(format!("{number} is no open file: {error}")))
    };
    let files = pairs
        .into_iter()
        .map(|(one, other)| Ok((own(one)?, own(other)?)))
        .collect::<Result<Vec<_>, CoreError>>()?;
    let delay = Delay {
        time: time("delay", delay)?,
        loss: loss.clamp(0.0, 1.0),
        seed,
    };
    let stop = own(stop)?;
    Ok(py.detach(|| hocket_runtime::delay_line::relay(&files, delay, stop.as_fd())))
}

/// The program of ranks: a plan, proved first, with places instead of chunks.
///
/// Raises ``VerificationError`` for a wrong plan, ``InfeasibleError`` for one that has no program.
#[pyclass(name = "Program", module = "hocket._core.runtime", frozen)]
pub(crate) struct PyProgram {
    loaded: Loaded,
}

#[pymethods]
impl PyProgram {
    /// Lower a plan; on channels of each transfer, and in the plan's order, where that is asked for.
    ///
    /// A channel goes over the stream of its number modulo the number of streams.
    #[new]
    #[pyo3(signature = (plan, channel_of=None, *, in_plan_order=false))]
    fn new(
        py: Python<'_>,
        plan: &PyPlan,
        channel_of: Option<Vec<u32>>,
        in_plan_order: bool,
    ) -> Result<Self, CoreError> {
        let verified = plan.verified(py, None)?;
        let transfers = verified.plan().len();
        if let Some(channels) = channel_of.as_ref().filter(|each| each.len() != transfers) {
            let why = format!("has {} of {transfers} transfers", channels.len());
            return Err(Parts::new(why).field("channel_of").into());
        }
        let loaded = py.detach(|| Loaded::of_plan_over(&verified, channel_of, in_plan_order))?;
        Ok(Self { loaded })
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.loaded.program().task().kind.name()
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.loaded.program().task().ranks
    }

    #[getter]
    fn root(&self) -> u32 {
        self.loaded.program().task().root
    }

    /// Whether the whole vector is one array that is read and written.
    #[getter]
    fn in_place(&self) -> bool {
        self.loaded.is_in_place()
    }

    /// Equal for equal programs.
    #[getter]
    fn hash(&self) -> u64 {
        self.loaded.hash()
    }

    /// List the ranks that one is connected with; none for a rank that it does not have.
    fn peers(&self, rank: u32) -> Vec<u32> {
        if rank >= self.ranks() {
            return Vec::new();
        }
        let mut peers: Vec<u32> = self
            .loaded
            .channels(rank)
            .into_iter()
            .map(|to| to.0)
            .collect();
        peers.dedup();
        peers
    }
}

/// What keeps memory that all ranks see for an array of it.
#[cfg(target_os = "linux")]
#[pyclass(module = "hocket._core.runtime", frozen)]
struct PyBoard {
    board: std::sync::Arc<hocket_runtime::group::Board>,
}

/// Ranks that have come together. A call that fails ends it: all later ones raise the same.
#[pyclass(name = "Group", module = "hocket._core.runtime", frozen)]
pub(crate) struct PyGroup {
    group: Mutex<Option<Group>>,
    aborting: AtomicBool,
    #[pyo3(get)]
    rank: u32,
    #[pyo3(get)]
    size: u32,
    /// Whether all ranks share memory.
    #[pyo3(get)]
    shares: bool,
    /// Of the group in its store, which uses none twice.
    #[pyo3(get)]
    number: u64,
    /// Rank of each in the group that failed before; of a first group its own.
    #[pyo3(get)]
    old_ranks: Vec<u32>,
}

impl PyGroup {
    fn of(group: Group) -> Self {
        Self {
            rank: group.rank(),
            size: group.size(),
            shares: group.shares(),
            number: group.id(),
            old_ranks: group.old_ranks().to_vec(),
            aborting: AtomicBool::new(false),
            group: Mutex::new(Some(group)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Group>> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call with the interpreter released; now and then it looks for signals.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Group, &mut dyn FnMut() -> bool) -> Result<T, Failure> + Send,
    ) -> Result<T, CoreError> {
        const LOOK: Duration = Duration::from_millis(100);
        let mut raised = None;
        let result = py.detach(|| {
            let mut looked = Instant::now();
            let mut stop = || {
                if self.aborting.load(Ordering::Acquire) {
                    return true;
                }
                if looked.elapsed() >= LOOK {
                    looked = Instant::now();
                    raised = Python::attach(|py| py.check_signals().err());
                }
                raised.is_some()
            };
            match self.lock().as_mut() {
                Some(group) => work(group, &mut stop),
                None => Err(closed()),
            }
        });
        match raised {
            Some(error) => Err(CoreError::Python(error)),
            None => Ok(result?),
        }
    }
}

fn closed() -> Failure {
    Failure::new(Code::Invalid, "the communicator is closed")
}

/// Memory of an array; `None` stands for none.
fn area(name: &str, array: Option<&Array<'_, u8>>, written: bool) -> Result<Area, CoreError> {
    let Some(array) = array else {
        let start = std::ptr::NonNull::<u8>::dangling().as_ptr();
        return Ok(Area { start, bytes: 0 });
    };
    let refuse = |why: &str| Err(Parts::new(why).field(name).into());
    if !array.is_contiguous() {
        return refuse("its bytes are not next to each other");
    }
    if written && array.try_readwrite().is_err() {
        return refuse("cannot be written");
    }
    Ok(Area {
        start: array.data(),
        bytes: array.len(),
    })
}

fn request(dtype: &str, op: &str, elements: u64, by_memory: bool) -> Result<Request, CoreError> {
    let names = || Dtype::ALL.iter().map(|known| known.name()).collect();
    let known = dtype.parse();
    Ok(Request {
        dtype: known.map_err(|_| unknown("dtype", dtype, names()))?,
        op: reduction(op)?,
        elements,
        by_memory,
    })
}

fn reduction(op: &str) -> Result<Reduction, CoreError> {
    let names = || Reduction::ALL.iter().map(|known| known.name()).collect();
    op.parse().map_err(|_| unknown("op", op, names()))
}

fn unknown(field: &str, given: &str, known: Vec<&str>) -> CoreError {
    let parts = Parts::new(format!("{given:?} is not known")).field(field);
    let known = known.join(", ");
    parts.remedy(format!("one of {known}")).into()
}

/// Type and memory of an array of NumPy's own numbers that can be written and lie in one piece; `None` of all else.
fn plain(array: &Bound<'_, PyAny>) -> Option<(Dtype, Area)> {
    let array = array.cast::<PyUntypedArray>().ok()?;
    let descr = array.dtype();
    let dtype = match (descr.kind(), descr.itemsize()) {
        (b'f', 8) => Dtype::F64,
        (b'f', 4) => Dtype::F32,
        (b'f', 2) => Dtype::F16,
        (b'i', 1) => Dtype::I8,
        (b'i', 2) => Dtype::I16,
        (b'i', 4) => Dtype::I32,
        (b'i', 8) => Dtype::I64,
        (b'u', 1) => Dtype::U8,
        (b'u', 2) => Dtype::U16,
        (b'u', 4) => Dtype::U32,
        (b'u', 8) => Dtype::U64,
        _ => return None,
    };
    // SAFETY: the array is alive, and Python's lock is held.
    let object = unsafe { &(*array.as_array_ptr()).fields };
    let is_writable = object.flags & NPY_ARRAY_WRITEABLE != 0;
    if descr.is_native_byteorder() == Some(false) || !array.is_c_contiguous() || !is_writable {
        return None;
    }
    let area = Area {
        start: object.data.cast(),
        bytes: array.len() * dtype.bytes(),
    };
    Some((dtype, area))
}

fn seconds(name: &str, value: f64) -> Result<Duration, CoreError> {
    match Duration::try_from_secs_f64(value) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => {
            let parts = Parts::new(format!("{value} s is not a time")).field(name);
            Err(parts.remedy("give more than 0 s").into())
        }
    }
}

/// A time that may be 0.
fn time(name: &str, value: f64) -> Result<Duration, CoreError> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        let parts = Parts::new(format!("{value} s is not a time")).field(name);
        parts.remedy("give 0 s or more").into()
    })
}

#[pymethods]
impl PyGroup {
    /// Join the group of a name at a store; `patience` and `timeout` are in seconds.
    ///
    /// All ranks must have the same `table`: a hash of what they choose plans by, or 0. `ways` says
    /// where streams to ranks connect: (rank, stream, address). With a `pacer`, `routes` says which of its
    /// links each stream takes: (rank, stream, links). `local` is where others reach this rank. With
    /// `outward` the lower of two ranks opens odd streams.
    #[staticmethod]
    #[pyo3(signature = (address, *, group, rank, size, secret, patience, timeout, shares, streams, table=0, ways=None, pacer=None, routes=None, local=None, outward=false))]
    #[expect(clippy::too_many_arguments, reason = "options, named in Python")]
    fn connect(
        py: Python<'_>,
        address: String,
        group: String,
        rank: u32,
        size: u32,
        secret: Vec<u8>,
        patience: f64,
        timeout: f64,
        shares: bool,
        streams: u32,
        table: u64,
        ways: Option<Vec<(u32, u32, Address)>>,
        pacer: Option<&PyPacer>,
        routes: Option<Vec<(u32, u32, Vec<u32>)>>,
        local: Option<Address>,
        outward: bool,
    ) -> Result<Self, CoreError> {
        let ways = ways.unwrap_or_default().into_iter();
        let options = GroupOptions {
            address,
            group,
            rank,
            size,
            secret,
            patience: seconds("patience", patience)?,
            timeout: seconds("timeout", timeout)?,
            shares,
            streams,
            table,
            local: local.map(|Address(address)| address),
            outward,
            ways: ways
                .map(|(rank, stream, Address(to))| ((rank, stream), to))
                .collect(),
            pace: pacer.map(|each| Pace {
                pacer: Arc::clone(&each.pacer),
                routes: routes
                    .unwrap_or_default()
                    .into_iter()
                    .map(|(rank, stream, links)| ((rank, stream), links))
                    .collect(),
            }),
        };
        let group = py.detach(|| Group::connect(&options))?;
        Ok(Self::of(group))
    }

    /// Run a program on bytes; `elements` numbers are the whole vector. In place, `input` is written.
    #[pyo3(signature = (program, dtype, op, elements, input, output=None, *, by_memory=false))]
    #[expect(clippy::too_many_arguments, reason = "a call")]
    fn run(
        &self,
        py: Python<'_>,
        program: &PyProgram,
        dtype: &str,
        op: &str,
        elements: u64,
        input: Option<Array<'_, u8>>,
        output: Option<Array<'_, u8>>,
        by_memory: bool,
    ) -> Result<(), CoreError> {
        let request = request(dtype, op, elements, by_memory)?;
        let input = area("input", input.as_ref(), program.in_place())?;
        let output = area("output", output.as_ref(), true)?;
        self.call(py, |group, stop| {
            // SAFETY: the caller's references keep the arrays until the call ends.
            unsafe { group.run(&program.loaded, &request, input, output, stop) }
        })
    }

    /// Do a collective through shared memory.
    #[pyo3(signature = (kind, root, dtype, op, elements, input, output))]
    #[expect(clippy::too_many_arguments, reason = "a call")]
    fn exchange(
        &self,
        py: Python<'_>,
        kind: &str,
        root: u32,
        dtype: &str,
        op: &str,
        elements: u64,
        input: Option<Array<'_, u8>>,
        output: Option<Array<'_, u8>>,
    ) -> Result<(), CoreError> {
        let kind: CollectiveKind = kind.parse()?;
        let request = request(dtype, op, elements, true)?;
        let input = area("input", input.as_ref(), false)?;
        let output = area("output", output.as_ref(), true)?;
        self.call(py, |group, stop| {
            // SAFETY: the caller's references keep the arrays until the call ends.
            unsafe { group.exchange(kind, root, &request, input, output, stop) }
        })
    }

    /// Do an all-reduce through shared memory if these are NumPy's numbers in one piece; say whether.
    fn reduce_in_place(
        &self,
        py: Python<'_>,
        op: &str,
        array: &Bound<'_, PyAny>,
    ) -> Result<bool, CoreError> {
        let Some((dtype, area)) = plain(array) else {
            return Ok(false);
        };
        let request = Request {
            dtype,
            op: reduction(op)?,
            elements: (area.bytes / dtype.bytes()) as u64,
            by_memory: true,
        };
        self.call(py, |group, stop| {
            // SAFETY: the caller's reference keeps the array until the call ends.
            unsafe { group.exchange(CollectiveKind::AllReduce, 0, &request, area, area, stop) }
        })?;
        Ok(true)
    }

    /// Return memory that all ranks see, with so many bytes each, or None if it cannot be shared.
    fn allocate<'py>(
        &self,
        py: Python<'py>,
        bytes: usize,
    ) -> Result<Option<Array<'py, u8>>, CoreError> {
        #[cfg(target_os = "linux")]
        if let Some(board) = self.call(py, |group, stop| group.allocate(bytes, stop))? {
            let owner = Bound::new(py, PyBoard { board })?;
            return Ok(Some(crate::arrays::memory_of(owner, |each| {
                (each.board.own(), each.board.bytes())
            })));
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (py, bytes);
        Ok(None)
    }

    /// End the group: calls of all ranks fail and name this rank.
    fn abort(&self, py: Python<'_>, why: &str) {
        self.aborting.store(true, Ordering::Release);
        py.detach(|| {
            if let Some(group) = self.lock().as_mut() {
                group.abort(why);
            }
        });
    }

    /// Make a group of the ranks that are left, waiting so many seconds for each that is alive.
    fn shrink(&self, py: Python<'_>, patience: f64) -> Result<Self, CoreError> {
        let patience = seconds("patience", patience)?;
        let group = py.detach(|| match self.lock().as_ref() {
            Some(group) => group.shrink(patience),
            None => Err(closed()),
        })?;
        Ok(Self::of(group))
    }

    /// Leave.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.lock().take()));
    }
}
