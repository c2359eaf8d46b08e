//! `Fabric`, `Flows`, `Assignment`, `Sprayed`, `assign`, `spray` and `assignment_of`.

use hocket_core::id::{LinkId, NpuId};
use hocket_core::routing::{self as core, Annealing, Ecmp, Flow, Hash, Scheme, Share, Witness};
use hocket_core::units::{Bandwidth, Seed};
use numpy::PyReadonlyArray2;
use numpy::ndarray::ArrayView1;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{type_hint_identifier, type_hint_subscript, type_hint_union};

use crate::arrays::{self, Array};
use crate::choice::choose;
use crate::error::{CoreError, Parts};
use crate::pickle::{Reduced, reduced};
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

const HASHES: [(&str, Hash); 3] = [
    ("crc32", Hash::Crc32),
    ("toeplitz", Hash::Toeplitz),
    ("linux", Hash::Linux),
];

/// Flows between ToRs, as all who route take them.
#[pyclass(module = "hocket._core.routing", frozen)]
pub(crate) struct Flows {
    core: Vec<Flow>,
}

impl Flows {
    pub(crate) fn new(core: Vec<Flow>) -> Self {
        Self { core }
    }

    pub(crate) fn core(&self) -> &[Flow] {
        &self.core
    }
}

#[pymethods]
impl Flows {
    /// Make them of rows of source, destination and weight, which is 1 if it is left out.
    ///
    /// TypeError or ValueError for rows that are neither a list of tuples nor an array of int64; OverflowError
    /// for numbers below 0, ToRs above 32 bits and weights above 63 bits.
    #[new]
    fn of(rows: Rows) -> Self {
        Self { core: rows.0 }
    }

    /// List source, destination and weight of each.
    fn rows(&self) -> Vec<(u32, u32, u64)> {
        let row = |flow: &Flow| (flow.src, flow.dst, flow.weight);
        self.core.iter().map(row).collect()
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let keywords = PyDict::new(this.py());
        keywords.set_item("rows", this.get().rows())?;
        reduced(this.py(), "routing.Flows", keywords)
    }
}

/// Rows of flows: a list of tuples, for which NumPy need not be loaded, or an array.
pub(crate) struct Rows(Vec<Flow>);

impl<'a, 'py> FromPyObject<'a, 'py> for Rows {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_union!(
        type_hint_subscript!(
            type_hint_identifier!("builtins", "list"),
            type_hint_subscript!(
                type_hint_identifier!("builtins", "tuple"),
                type_hint_identifier!("typing", "Any"),
                type_hint_identifier!("builtins", "...")
            )
        ),
        type_hint_subscript!(
            type_hint_identifier!("numpy.typing", "NDArray"),
            type_hint_identifier!("numpy", "int64")
        )
    );

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Ok(list) = given.cast::<PyList>() else {
            let array: PyReadonlyArray2<'py, i64> = given.extract()?;
            let rows = array.as_array();
            let of_row = |row: ArrayView1<'_, i64>| match row.len() {
                2 => flow((row[0], row[1], 1)),
                3 => flow((row[0], row[1], row[2])),
                _ => Err(PyTypeError::new_err("a flow has two or three numbers")),
            };
            let flows = rows.rows().into_iter().map(of_row);
            return flows.collect::<PyResult<_>>().map(Self);
        };
        let of_row = |row: Bound<'py, PyAny>| {
            let row = row.cast::<PyTuple>()?;
            match row.len() {
                2 => row.extract().and_then(|(src, dst)| flow((src, dst, 1))),
                _ => row.extract().and_then(flow),
            }
        };
        list.iter().map(of_row).collect::<PyResult<_>>().map(Self)
    }
}

fn flow((src, dst, weight): (i64, i64, i64)) -> PyResult<Flow> {
    let ends = u32::try_from(src).ok().zip(u32::try_from(dst).ok());
    match ends.zip(u64::try_from(weight).ok()) {
        Some(((src, dst), weight)) => Ok(Flow { src, dst, weight }),
        None => Err(PyOverflowError::new_err(
            "a number is negative or too large",
        )),
    }
}

/// A Clos or fat tree as routing sees it; switches keep the numbers in their names.
#[pyclass(name = "Fabric", module = "hocket._core.routing", frozen, eq)]
pub(crate) struct PyFabric {
    core: core::Fabric,
    /// Of the topology.
    links: usize,
    /// `None` for what is left of a fabric while a simulation runs.
    topology: Option<Py<PyTopology>>,
}

impl PartialEq for PyFabric {
    fn eq(&self, other: &Self) -> bool {
        self.core == other.core && self.links == other.links
    }
}

impl PyFabric {
    /// A fabric of a topology with so many links.
    pub(crate) fn new(core: core::Fabric, links: usize, topology: Option<Py<PyTopology>>) -> Self {
        Self {
            core,
            links,
            topology,
        }
    }

    pub(crate) fn core(&self) -> &core::Fabric {
        &self.core
    }
}

#[pymethods]
impl PyFabric {
    #[new]
    fn of(topology: Bound<'_, PyTopology>) -> Result<Self, CoreError> {
        let of = topology.get().core();
        let (core, links) = (core::Fabric::new(of)?, of.links().len());
        Ok(Self::new(core, links, Some(topology.unbind())))
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let keywords = PyDict::new(this.py());
        keywords.set_item("topology", &this.get().topology)?;
        reduced(this.py(), "routing.Fabric", keywords)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// Levels of switches, 2 or 3.
    #[getter]
    fn levels(&self) -> u32 {
        self.core.levels()
    }

    /// Bytes per second of a link that a weight loads with just itself.
    #[getter]
    fn reference(&self) -> u64 {
        self.core.reference().bytes_per_second()
    }

    /// List the numbers of the highest switches of the paths from a ToR to another.
    fn choices_between(&self, src: u32, dst: u32) -> Vec<u32> {
        self.core.choices_between(src, dst).collect()
    }

    /// List the links of a choice; none if it is not one.
    fn route(&self, src: u32, dst: u32, choice: u32) -> Vec<u32> {
        let mut links = Vec::new();
        self.core.route(src, dst, choice, &mut links);
        links.into_iter().map(|link| link.0).collect()
    }

    /// Return the number of the ToR above an NPU.
    fn tor_of(&self, npu: u32) -> Option<u32> {
        self.core.tor_of(NpuId(npu))
    }

    /// Return the links from an NPU up to its ToR and down again.
    fn npu_links(&self, npu: u32) -> (Option<u32>, Option<u32>) {
        let [up, down] = self.core.npu_links(NpuId(npu));
        (up.map(|link| link.0), down.map(|link| link.0))
    }
}

/// A choice for each flow; up and down loads are rows of ToRs.
#[pyclass(module = "hocket._core.routing", frozen)]
pub(crate) struct Assignment {
    core: core::Assignment,
    paths: core::Paths,
    link_loads: Vec<u64>,
    #[pyo3(get)]
    shape: (usize, usize),
    asked: Asked,
}

/// What was to be routed, for a pickle to do it again.
struct Asked {
    fabric: Py<PyFabric>,
    flows: Py<Flows>,
}

impl Asked {
    fn keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let keywords = PyDict::new(py);
        keywords.set_item("fabric", &self.fabric)?;
        keywords.set_item("flows", &self.flows)?;
        Ok(keywords)
    }
}

#[pymethods]
impl Assignment {
    /// What each flow takes; loads and the bound follow from that.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let keywords = this.get().asked.keywords(this.py())?;
        keywords.set_item("choices", this.get().core.choices())?;
        reduced(this.py(), "routing.assignment_of", keywords)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// What was routed.
    #[getter]
    fn flows(&self, py: Python<'_>) -> Py<Flows> {
        self.asked.flows.clone_ref(py)
    }

    #[getter]
    fn choices<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.core.choices())
    }

    /// Links of all paths, one path after the other.
    #[getter]
    fn path_links<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.paths.links())
    }

    /// Where each path ends in `path_links`.
    #[getter]
    fn path_ends(&self) -> Vec<usize> {
        self.paths.ends().to_vec()
    }

    #[getter]
    fn link_loads<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| this.link_loads.as_slice())
    }

    #[getter]
    fn up_loads<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| this.core.up_loads())
    }

    #[getter]
    fn down_loads<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| this.core.down_loads())
    }

    #[getter]
    fn max_link_load(&self) -> u64 {
        self.core.max_link_load()
    }

    /// A load that no assignment beats, the ToR that forces it, and how.
    #[getter]
    fn bound(&self) -> (u64, Option<u32>, String) {
        bound(self.core.load_bound())
    }
}

/// Loads of links if flows are split evenly over all their choices.
#[pyclass(module = "hocket._core.routing", frozen)]
pub(crate) struct Sprayed {
    core: core::Sprayed,
    link_loads: Vec<f64>,
    #[pyo3(get)]
    shape: (usize, usize),
    asked: Asked,
}

#[pymethods]
impl Sprayed {
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let keywords = this.get().asked.keywords(this.py())?;
        reduced(this.py(), "routing.spray", keywords)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// What was routed.
    #[getter]
    fn flows(&self, py: Python<'_>) -> Py<Flows> {
        self.asked.flows.clone_ref(py)
    }

    #[getter]
    fn link_loads<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, f64>> {
        arrays::column(slf, |this| this.link_loads.as_slice())
    }

    #[getter]
    fn up_loads<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, f64>> {
        arrays::column(slf, |this| this.core.up_loads())
    }

    #[getter]
    fn down_loads<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, f64>> {
        arrays::column(slf, |this| this.core.down_loads())
    }

    #[getter]
    fn max_link_load(&self) -> f64 {
        self.core.max_link_load()
    }

    /// A load that no assignment of whole flows beats, the ToR that forces it, and how.
    #[getter]
    fn bound(&self) -> (u64, Option<u32>, String) {
        bound(self.core.load_bound())
    }
}

fn bound(found: &core::LoadBound) -> (u64, Option<u32>, String) {
    let tor = found.witness.map(|witness| witness.tor);
    (found.load, tor, found.describe())
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

fn assignment(of: Bound<'_, PyFabric>, flows: Py<Flows>, core: core::Assignment) -> Assignment {
    let fabric = of.get();
    Assignment {
        paths: core.paths(&fabric.core, flows.get().core()),
        link_loads: by_link(fabric, core.link_loads(&fabric.core)),
        shape: (fabric.core.tor_count(), fabric.core.column_count()),
        core,
        asked: Asked {
            fabric: of.unbind(),
            flows,
        },
    }
}

/// ToR, whether its flows leave it, what they share and with which other ToR, flows, weight, links that
/// paths use and do not use, levels, the bandwidth for which loads are counted if links differ [bytes/s].
pub(crate) type WitnessTuple = (
    u32,
    bool,
    String,
    Option<u32>,
    usize,
    u64,
    [usize; 2],
    u32,
    Option<u64>,
);

pub(crate) fn witness_row(witness: &Witness) -> WitnessTuple {
    let (share, other) = match witness.share {
        Share::Tor => ("tor", None),
        Share::Pair(other) => ("pair", Some(other)),
        Share::Pod => ("pod", None),
    };
    let Witness {
        tor,
        outgoing,
        flows,
        weight,
        links,
        unused,
        levels,
        reference,
        ..
    } = *witness;
    let (share, links) = (share.to_owned(), [links, unused]);
    let rate = reference.map(Bandwidth::bytes_per_second);
    (
        tor, outgoing, share, other, flows, weight, links, levels, rate,
    )
}

pub(crate) fn witness_of(row: WitnessTuple) -> Result<Witness, CoreError> {
    let (tor, outgoing, share, other, flows, weight, [links, unused], levels, rate) = row;
    let share = match (share.as_str(), other) {
        ("tor", None) => Share::Tor,
        ("pair", Some(other)) => Share::Pair(other),
        ("pod", None) => Share::Pod,
        _ => return Err(Parts::new(format!("flows do not share a {share}")).into()),
    };
    Ok(Witness {
        tor,
        outgoing,
        share,
        flows,
        weight,
        links,
        unused,
        levels,
        reference: rate.and_then(Bandwidth::from_bytes_per_second),
    })
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

/// Choose paths for flows; options: hash, upstream, salted, steps.
#[pyfunction]
pub(crate) fn assign(
    py: Python<'_>,
    fabric: Bound<'_, PyFabric>,
    flows: Py<Flows>,
    scheme: &str,
    seed: u64,
    options: Options,
) -> Result<Assignment, CoreError> {
    let scheme = scheme_of(scheme, &options)?;
    let (of, given) = (fabric.get(), flows.get().core());
    let made = py.detach(|| core::assign(&of.core, given, scheme, Seed(seed)))?;
    Ok(assignment(fabric, flows, made))
}

/// Spread flows over all their choices.
#[pyfunction]
pub(crate) fn spray(fabric: Bound<'_, PyFabric>, flows: Py<Flows>) -> Result<Sprayed, CoreError> {
    let of = fabric.get();
    let core = core::spray(&of.core, flows.get().core())?;
    Ok(Sprayed {
        link_loads: by_link(of, core.link_loads(&of.core)),
        shape: (of.core.tor_count(), of.core.column_count()),
        core,
        asked: Asked {
            fabric: fabric.unbind(),
            flows,
        },
    })
}

/// Return the assignment that these choices make.
#[pyfunction]
pub(crate) fn assignment_of(
    fabric: Bound<'_, PyFabric>,
    flows: Py<Flows>,
    choices: Vec<u32>,
) -> Result<Assignment, CoreError> {
    let made = core::assignment_of(&fabric.get().core, flows.get().core(), choices)?;
    Ok(assignment(fabric, flows, made))
}
