//! `Topology`.

use std::sync::Arc;

use hocket_core::id::{DeviceId, NpuId, narrow};
use hocket_core::topology::build::{Along, FAMILIES};
use hocket_core::topology::equal::EqualPaths;
use hocket_core::topology::{self as core, DimensionKind, TopologyBuilder};
use hocket_core::units::{Bandwidth, Time};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::arrays::{self, Array, Numbers};
use crate::choice::{SWITCHINGS, choose, name_of};
use crate::error::{CoreError, Parts};
use crate::hints::Unread;
use crate::pickle::{Reduced, attributes, reduced};
use crate::progress;

/// Kind, size, bandwidth [bytes/s], latency [ps] and offload of one dimension.
pub(crate) type DimensionTuple = (&'static str, u32, u64, u64, bool);

/// Operations, rate [bytes/s] and trees of a switch that sums or multicasts.
type OffloadTuple = (Vec<String>, Option<u64>, Option<u32>);

/// One dimension as given; without offload where that is left out.
#[derive(FromPyObject)]
pub(crate) enum GivenDimension {
    Whole((String, u32, u64, u64, bool)),
    NoOffload((String, u32, u64, u64)),
}

/// A link by the names of its ends: a pair, or text as `--failed` takes it.
#[derive(FromPyObject)]
enum LinkEnds {
    Text(String),
    Ends(Vec<String>),
}

impl LinkEnds {
    fn names(&self) -> Result<(&str, &str), CoreError> {
        let names: Vec<&str> = match self {
            Self::Text(text) => text.split(',').map(str::trim).collect(),
            Self::Ends(ends) => ends.iter().map(String::as_str).collect(),
        };
        match names[..] {
            [a, b] => Ok((a, b)),
            _ => Err(Parts::new(format!("{:?} is not a link", names.join(",")))
                .field("links")
                .remedy("give both ends, as \"a,b\" or (\"a\", \"b\")")
                .into()),
        }
    }
}

const NODES: (&str, &str) = ("nodes", "give names of devices, as [\"npu0\", \"switch1\"]");
const LINKS: (&str, &str) = ("links", "give both ends of each, as [\"npu0,npu1\"]");

/// What is listed, a single text being a list of one; `field` is its name and what would be right.
fn listed<'py, T: FromPyObjectOwned<'py>>(
    given: Option<Unread<'py, Vec<T>>>,
    field: (&str, &str),
) -> Result<Vec<T>, CoreError> {
    let read = |item: &Bound<'py, PyAny>| item.extract::<T>().ok();
    let Some(Unread(given, _)) = given else {
        return Ok(Vec::new());
    };
    let wrong = |value: &Bound<'py, PyAny>| -> CoreError {
        let (name, right) = field;
        let shown = value
            .repr()
            .map_or_else(|_| "this".to_owned(), |text| text.to_string());
        Parts::new(format!("{shown} is not one"))
            .field(name)
            .remedy(right)
            .into()
    };
    if given.is_instance_of::<PyString>() {
        return Ok(vec![read(&given).ok_or_else(|| wrong(&given))?]);
    }
    let items = given.try_iter().map_err(|_| wrong(&given))?;
    items
        .map(|item| {
            let item = item?;
            read(&item).ok_or_else(|| wrong(&item))
        })
        .collect()
}

pub(crate) fn dimension_tuple(dimension: &core::Dimension) -> DimensionTuple {
    (
        dimension.kind.name(),
        dimension.size,
        dimension.bandwidth.bytes_per_second(),
        dimension.latency.as_ps(),
        dimension.offload,
    )
}

/// A directed multigraph of NPUs and switches; NPU i is device i.
#[pyclass(name = "Topology", module = "hocket._core", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct PyTopology {
    core: Arc<core::Topology>,
}

/// What ``Topology.inspect`` finds; bandwidths in bytes/s.
///
/// Degrees are the fewest and most links of an NPU, ``unreachable`` an NPU and another that it does
/// not reach, diameters (None if not connected) the most links and the most latency [ps] on a
/// quickest way between NPUs. The bisection is the least one-way bandwidth between two halves of
/// the NPUs; if it is not the minimum, the least that was found.
#[pyclass(module = "hocket._core", frozen, get_all)]
pub(crate) struct Inspection {
    npus: usize,
    switches: usize,
    links: usize,
    out_degree: (usize, usize),
    in_degree: (usize, usize),
    connected: bool,
    unreachable: Option<(String, String)>,
    diameter_hops: Option<usize>,
    diameter_latency_ps: Option<u64>,
    total_bandwidth: u128,
    link_bandwidth: Option<(u64, u64)>,
    bisection_bandwidth: Option<u128>,
    bisection_is_minimum: bool,
}

#[pymethods]
impl Inspection {
    /// The former name of ``bisection_is_minimum``.
    #[getter]
    fn bisection_is_exact(&self) -> bool {
        self.bisection_is_minimum
    }

    fn __repr__(&self) -> String {
        let Self {
            npus,
            switches,
            links,
            connected,
            ..
        } = self;
        format!(
            "<Inspection: {npus} NPUs, {switches} switches, {links} links, connected: {connected}>"
        )
    }
}

impl PyTopology {
    pub(crate) fn new(core: core::Topology) -> Self {
        Self {
            core: Arc::new(core),
        }
    }

    pub(crate) fn from_arc(core: Arc<core::Topology>) -> Self {
        Self { core }
    }

    pub(crate) fn core(&self) -> &Arc<core::Topology> {
        &self.core
    }
}

#[pymethods]
impl PyTopology {
    /// Make a topology of columns: devices NPUs first, a limit or None for each switch.
    ///
    /// A dimension is (kind, size, bandwidth, latency, offload), offload False where it is left
    /// out; kinds are Ring, Line, FullyConnected and Switch. The caller vouches that devices and
    /// links follow the dimensions. Switching is store-and-forward or cut-through. Groups are the NPUs
    /// of each node; none by default. What each switch can do besides forwarding is (operations, rate
    /// [bytes/s] or None, trees or None), or None; none by default.
    ///
    /// Raises
    /// ------
    /// hocket.errors.SpecError
    ///     For columns of unequal length, a bandwidth of 0, a self-loop, a name used twice, offload
    ///     of a dimension other than Switch.
    #[staticmethod]
    #[pyo3(signature = (
        name, device_names, npu_count, switch_limits,
        link_src, link_dst, link_bandwidth, link_latency_ps, dimensions=Vec::new(),
        switching="store-and-forward", groups=Vec::new(), switch_offloads=Vec::new()
    ))]
    #[expect(clippy::too_many_arguments, reason = "columns, named in Python")]
    fn from_arrays(
        name: &str,
        device_names: Vec<String>,
        npu_count: usize,
        switch_limits: Vec<Option<u64>>,
        link_src: Numbers<u32>,
        link_dst: Numbers<u32>,
        link_bandwidth: Numbers<u64>,
        link_latency_ps: Numbers<u64>,
        dimensions: Vec<GivenDimension>,
        switching: &str,
        groups: Vec<Vec<u32>>,
        switch_offloads: Vec<Option<OffloadTuple>>,
    ) -> Result<Self, CoreError> {
        let mut builder = TopologyBuilder::new(name);
        add_devices(&mut builder, &device_names, npu_count, &switch_limits)?;
        if !switch_offloads.is_empty() {
            let (given, switches) = (switch_offloads.len(), switch_limits.len());
            same_length("switch_offloads", given, "the switches", switches)?;
        }
        for (i, offload) in switch_offloads.into_iter().enumerate() {
            let id = DeviceId(narrow(npu_count + i));
            builder.offload(id, offload.map(to_offload).transpose()?);
        }
        let (Numbers(src), Numbers(dst)) = (link_src, link_dst);
        let (Numbers(bandwidth), Numbers(latency)) = (link_bandwidth, link_latency_ps);
        for (column, len) in [
            ("link_dst", dst.len()),
            ("link_bandwidth", bandwidth.len()),
            ("link_latency_ps", latency.len()),
        ] {
            same_length(column, len, "link_src", src.len())?;
        }
        for i in 0..src.len() {
            let (a, b) = (DeviceId(src[i]), DeviceId(dst[i]));
            let name = |id: DeviceId| device_names.get(id.index()).map_or("?", String::as_str);
            let what = || format!("link {i} ({:?} -> {:?})", name(a), name(b));
            let rate = positive(bandwidth[i], what)?;
            builder.link(a, b, rate, Time::from_ps(latency[i]));
        }
        builder.dimensions(whole_dimensions(&dimensions, npu_count)?);
        builder.switching(choose("switching", switching, SWITCHINGS)?);
        Ok(Self::new(builder.finish()?.with_groups(to_npus(groups))?))
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let names = [
            "name",
            "device_names",
            "npu_count",
            "switch_limits",
            "link_src",
            "link_dst",
            "link_bandwidth",
            "link_latency_ps",
            "dimensions",
            "switching",
            "groups",
            "switch_offloads",
        ];
        reduced(this.py(), "Topology.from_arrays", attributes(this, &names)?)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    #[getter]
    fn name(&self) -> &str {
        self.core.name()
    }

    /// Whether any two NPUs may have equal paths; ``False`` is certain.
    #[getter]
    fn may_have_equal_paths(&self) -> bool {
        EqualPaths::may_exist(&self.core)
    }

    #[getter]
    fn npu_count(&self) -> usize {
        self.core.npu_count()
    }

    #[getter]
    fn device_count(&self) -> usize {
        self.core.device_count()
    }

    /// How many directed links there are.
    #[getter]
    fn link_count(&self) -> usize {
        self.core.links().len()
    }

    /// Name of each device, NPUs first.
    #[getter]
    fn device_names(&self) -> Vec<&str> {
        let devices = self.core.devices().iter();
        devices.map(|device| device.name.as_str()).collect()
    }

    /// Bandwidth limit of each switch [bytes/s].
    #[getter]
    fn switch_limits(&self) -> Vec<Option<u64>> {
        let switches = self.core.devices()[self.core.npu_count()..].iter();
        switches
            .map(|switch| switch.limit.map(Bandwidth::bytes_per_second))
            .collect()
    }

    /// Operations, rate [bytes/s] and trees of each switch that sums or multicasts, else None.
    ///
    /// Empty where no switch does.
    #[getter]
    fn switch_offloads(&self) -> Vec<Option<OffloadTuple>> {
        if !self.core.has_offload() {
            return Vec::new();
        }
        let switches = self.core.devices()[self.core.npu_count()..].iter();
        let tuple = |offload: core::Offload| {
            let operations = offload.operations().map(str::to_owned).collect();
            let rate = offload.rate.map(Bandwidth::bytes_per_second);
            (operations, rate, offload.trees)
        };
        switches.map(|switch| switch.offload.map(tuple)).collect()
    }

    /// Return the same network whose switches of these device numbers can do that, or only forward.
    fn with_offload(
        &self,
        switches: Vec<u32>,
        offload: Option<OffloadTuple>,
    ) -> Result<Self, CoreError> {
        let offload = offload.map(to_offload).transpose()?;
        let mut core = core::Topology::clone(&self.core);
        for switch in switches {
            core = core.with_offload(DeviceId(switch), offload)?;
        }
        Ok(Self::new(core))
    }

    /// Device where each link starts, (link_count,).
    #[getter]
    fn link_src<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::field(slf, |this| this.core.links(), |link| &link.src)
    }

    /// Device where each link ends, (link_count,).
    #[getter]
    fn link_dst<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::field(slf, |this| this.core.links(), |link| &link.dst)
    }

    /// Bandwidth of each link [bytes/s], (link_count,).
    #[getter]
    fn link_bandwidth<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::field(slf, |this| this.core.links(), |link| &link.bandwidth)
    }

    /// Latency of each link [ps], (link_count,).
    #[getter]
    fn link_latency_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::field(slf, |this| this.core.links(), |link| &link.latency)
    }

    /// Kind, size, bandwidth [bytes/s], latency [ps] and offload of each dimension of a product.
    ///
    /// Offload: whether its switches sum and multicast.
    #[getter]
    fn dimensions(&self) -> Vec<DimensionTuple> {
        self.core.dimensions().iter().map(dimension_tuple).collect()
    }

    /// How its devices pass messages on: store-and-forward or cut-through.
    #[getter]
    fn switching(&self) -> &'static str {
        name_of(&self.core.switching(), SWITCHINGS)
    }

    /// Return the same network, whose devices pass messages on in that way.
    fn with_switching(&self, switching: &str) -> Result<Self, CoreError> {
        let switching = choose("switching", switching, SWITCHINGS)?;
        let core = core::Topology::clone(&self.core);
        Ok(Self::new(core.with_switching(switching)))
    }

    /// The NPUs of each node; empty where it is not said which NPUs form one.
    #[getter]
    fn groups(&self) -> Vec<Vec<u32>> {
        let groups = self.core.groups().iter();
        groups
            .map(|group| group.iter().map(|npu| npu.0).collect())
            .collect()
    }

    /// Return the same network whose NPUs form these nodes, every NPU in one; or no nodes.
    fn with_groups(&self, groups: Vec<Vec<u32>>) -> Result<Self, CoreError> {
        let core = core::Topology::clone(&self.core);
        Ok(Self::new(core.with_groups(to_npus(groups))?))
    }

    /// Return the same network under another name.
    fn with_name(&self, name: &str) -> Result<Self, CoreError> {
        let core = core::Topology::clone(&self.core);
        Ok(Self::new(core.with_name(name)?))
    }

    /// Return the position of the device of that name, or raise SpecError.
    fn device_index(&self, name: &str) -> Result<u32, CoreError> {
        Ok(self.core.device_by_name(name)?.0)
    }

    /// Return the network less some NPUs or switches and some links, by name.
    ///
    /// A link named by its ends, ``("a", "b")`` or ``"a,b"``, goes both ways, with all links parallel
    /// to it. The rest keeps its names, and groups what is left of them. Dimensions are kept where every
    /// NPU is.
    ///
    /// SpecError for a name or link that there is not, or if no NPU would be left.
    #[pyo3(signature = (nodes=None, links=None))]
    fn without(
        &self,
        nodes: Option<Unread<'_, Vec<String>>>,
        links: Option<Unread<'_, Vec<LinkEnds>>>,
    ) -> Result<Self, CoreError> {
        let nodes = listed(nodes, NODES)?;
        let links = listed(links, LINKS)?;
        let mut devices = Vec::with_capacity(nodes.len());
        for node in &nodes {
            devices.push(self.core.device_by_name(node)?);
        }
        let mut gone = Vec::new();
        for ends in &links {
            let (a, b) = ends.names()?;
            let (a, b) = (self.core.device_by_name(a)?, self.core.device_by_name(b)?);
            let back = self.core.links_from_to(b, a);
            match self.core.links_between(a, b) {
                Ok(found) => gone.extend(found),
                Err(error) if back.is_empty() => return Err(error.into()),
                Err(_) => {}
            }
            gone.extend_from_slice(back);
        }
        Ok(Self::new(self.core.without(&devices, &gone)?))
    }

    /// Return those of some pairs of NPUs that neither a link joins nor links through switches alone.
    fn detours(&self, pairs: Vec<(u32, u32)>) -> Result<Vec<(u32, u32)>, CoreError> {
        let npus = self.npu_count();
        let mut ends = pairs.iter().flat_map(|&(src, dst)| [src, dst]);
        if let Some(wrong) = ends.find(|&end| end as usize >= npus) {
            let wrong = Parts::new(format!("there is no NPU {wrong}"));
            return Err(wrong.remedy(format!("name some of {npus}")).into());
        }
        let pairs: Vec<_> = pairs.iter().map(|&(a, b)| (NpuId(a), NpuId(b))).collect();
        let found = self.core.detours(&pairs).into_iter();
        Ok(found.map(|(src, dst)| (src.0, dst.0)).collect())
    }

    /// Find degrees, diameter, bisection and whether it is connected.
    fn inspect(&self, py: Python<'_>) -> PyResult<Inspection> {
        let core = Arc::clone(&self.core);
        let found = progress::attended(py, move |_| core.inspect())?;
        let bisection = found.bisection;
        Ok(Inspection {
            npus: found.npus,
            switches: found.switches,
            links: found.links,
            out_degree: (found.out_degree.min, found.out_degree.max),
            in_degree: (found.in_degree.min, found.in_degree.max),
            connected: found.connected,
            unreachable: found.unreachable,
            diameter_hops: found.diameter_hops,
            diameter_latency_ps: found.diameter_latency.map(Time::as_ps),
            total_bandwidth: found.total_bandwidth,
            link_bandwidth: found
                .link_bandwidth
                .map(|range| (range.min.bytes_per_second(), range.max.bytes_per_second())),
            bisection_bandwidth: bisection.as_ref().map(|cut| cut.bytes_per_second),
            bisection_is_minimum: bisection.is_some_and(|cut| cut.is_minimum),
        })
    }

    fn __repr__(&self) -> String {
        let (npus, switches) = (self.npu_count(), self.device_count() - self.npu_count());
        let links = self.link_count();
        format!(
            "<Topology {:?}: {npus} NPUs, {switches} switches, {links} links>",
            self.name()
        )
    }
}

fn to_offload((operations, rate, trees): OffloadTuple) -> Result<core::Offload, CoreError> {
    let mut offload = core::Offload {
        sums: false,
        multicasts: false,
        all_reduces: false,
        rate: rate
            .map(|rate| positive(rate, || "rate of offload".to_owned()))
            .transpose()?,
        trees,
    };
    for operation in operations {
        let can = match operation.as_str() {
            "sum" => &mut offload.sums,
            "multicast" => &mut offload.multicasts,
            "all-reduce" => &mut offload.all_reduces,
            _ => {
                return Err(Parts::new(format!("there is no operation {operation}"))
                    .field("operations")
                    .remedy("operations are sum, multicast and all-reduce")
                    .into());
            }
        };
        *can = true;
    }
    Ok(offload)
}

fn to_npus(groups: Vec<Vec<u32>>) -> Vec<Vec<NpuId>> {
    let npus = |group: Vec<u32>| group.into_iter().map(NpuId).collect();
    groups.into_iter().map(npus).collect()
}

fn add_devices(
    builder: &mut TopologyBuilder,
    names: &[String],
    npu_count: usize,
    limits: &[Option<u64>],
) -> Result<(), CoreError> {
    if npu_count > names.len() {
        let len = names.len();
        let wrong = format!("npu_count is {npu_count}, but device_names has only {len} names");
        return Err(Parts::new(wrong).remedy("name every device").into());
    }
    let (npus, switches) = names.split_at(npu_count);
    same_length(
        "switch_limits",
        limits.len(),
        "the switches",
        switches.len(),
    )?;
    for name in npus {
        builder.npu(name);
    }
    for (name, limit) in switches.iter().zip(limits) {
        let limit = limit.map(|limit| positive(limit, || format!("switch {name:?}")));
        builder.switch(name, limit.transpose()?);
    }
    Ok(())
}

/// Dimensions that must make up the NPUs of a topology given by its links.
fn whole_dimensions(
    given: &[GivenDimension],
    npu_count: usize,
) -> Result<Vec<core::Dimension>, CoreError> {
    let dimensions = to_dimensions(given)?;
    let product = dimensions.iter().map(|one| u128::from(one.size));
    let product = product.fold(1u128, u128::saturating_mul);
    if !dimensions.is_empty() && product != npu_count as u128 {
        let wrong =
            format!("the dimensions multiply to {product} NPUs, the topology has {npu_count}");
        return Err(Parts::new(wrong).remedy("make them equal").into());
    }
    Ok(dimensions)
}

pub(crate) fn to_dimensions(given: &[GivenDimension]) -> Result<Vec<core::Dimension>, CoreError> {
    given
        .iter()
        .enumerate()
        .map(|(i, one)| to_dimension(one, i + 1))
        .collect()
}

fn to_dimension(given: &GivenDimension, number: usize) -> Result<core::Dimension, CoreError> {
    let (name, size, bandwidth, latency, offload) = match given {
        GivenDimension::Whole((name, size, bandwidth, latency, offload)) => {
            (name, *size, *bandwidth, *latency, *offload)
        }
        GivenDimension::NoOffload((name, size, bandwidth, latency)) => {
            (name, *size, *bandwidth, *latency, false)
        }
    };
    let known = || FAMILIES.iter().filter_map(|family| family.along);
    let Some(Along { kind, .. }) = known().find(|along| along.name == name) else {
        let known: Vec<&str> = known().map(|along| along.name).collect();
        let known = known.join(", ");
        return Err(Parts::new(format!("there is no kind {name:?}"))
            .origin(format!("dimension {number}"))
            .remedy(format!("kinds are {known}"))
            .into());
    };
    if offload && kind != DimensionKind::Switch {
        let wrong = format!("dimension {number} ({name}) has no switches that could sum");
        return Err(Parts::new(wrong).remedy("leave offload to Switch").into());
    }
    Ok(core::Dimension {
        kind,
        size,
        bandwidth: positive(bandwidth, || format!("dimension {number} ({name})"))?,
        latency: Time::from_ps(latency),
        offload,
    })
}

pub(crate) fn positive(
    bandwidth: u64,
    what: impl FnOnce() -> String,
) -> Result<Bandwidth, CoreError> {
    Bandwidth::from_bytes_per_second(bandwidth).ok_or_else(|| {
        Parts::new("bandwidth is 0")
            .origin(what())
            .remedy("remove it or give it a bandwidth")
            .into()
    })
}

fn same_length(name: &str, len: usize, other: &str, expected: usize) -> Result<(), CoreError> {
    if len == expected {
        return Ok(());
    }
    let wrong = format!("{name} has {len} entries and {other} {expected}");
    Err(Parts::new(wrong).remedy("give them as many").into())
}
