//! `hocket._core.nccl`: files of NCCL, and plans along the channels that they name.

use std::sync::Arc;

use hocket_core::algorithms::{
    Design, Joint, Leg, Nic, design_channels as core_design, plan_channels as core_channels,
    plan_heads as core_heads,
};
use hocket_core::id::{DeviceId, NpuId};
use hocket_core::topology::Topology;
use hocket_formats::nccl_graph::{Channel, GpuRef, Graph, Graphs};
use hocket_formats::nccl_topology::{self as topology, Network, Processor, System, read_smi};
use hocket_formats::nccl_tuner::{ALGORITHMS, COLLECTIVES, PROTOCOLS, Row, Table};
use pyo3::prelude::*;

use crate::choice::choose;
use crate::collective::PyCollective;
use crate::error::{CoreError, Parts};
use crate::plan::PyPlan;
use crate::progress;
use crate::topology::PyTopology;

/// A machine as a dump says it.
#[pyclass(name = "System", module = "hocket._core.nccl", frozen)]
pub(crate) struct PySystem {
    core: System,
}

/// Number in graphs, rank, compute capability, architecture, NVLinks, name.
type GpuParts = (i64, i64, i64, Option<String>, u32, String);
/// Number in graphs, name, Mb/s, name of the device.
type NetParts = (i64, String, i64, String);

#[pymethods]
impl PySystem {
    /// Read what NCCL or RCCL writes to ``NCCL_TOPO_DUMP_FILE``.
    #[staticmethod]
    fn parse(py: Python<'_>, bytes: &[u8]) -> Result<Self, CoreError> {
        let core = py.detach(|| System::parse(bytes))?;
        Ok(Self { core })
    }

    /// Read what ``nvidia-smi topo -m`` prints, and after it ``nvidia-smi nvlink -s``.
    #[staticmethod]
    fn read_smi(py: Python<'_>, bytes: &[u8]) -> Result<Self, CoreError> {
        let core = py.detach(|| read_smi(bytes))?;
        Ok(Self { core })
    }

    /// Return the machine as a communicator of some of its GPUs sees it: those of these numbers, in every host.
    fn only(&self, devs: Vec<i64>) -> Result<Self, CoreError> {
        let core = self.core.only(&devs)?;
        Ok(Self { core })
    }

    /// By rank: number in graphs, rank, compute capability, RCCL's architecture, NVLinks, name.
    #[getter]
    fn gpus(&self) -> Vec<GpuParts> {
        let name = |device: usize| self.core.devices[device].name.clone();
        let gpus = self.core.gpus.iter();
        gpus.map(|gpu| {
            let name = name(gpu.device);
            (
                gpu.id(),
                gpu.rank,
                gpu.sm,
                gpu.arch.clone(),
                gpu.links,
                name,
            )
        })
        .collect()
    }

    /// By rank: PCI bus id, or None if the file has none.
    #[getter]
    fn buses(&self) -> Vec<Option<String>> {
        self.core.gpus.iter().map(|gpu| gpu.bus.clone()).collect()
    }

    /// By number: number in graphs, name, Mb/s, name of the device.
    #[getter]
    fn nets(&self) -> Vec<NetParts> {
        let nets = self.core.nets.iter();
        nets.map(|net| {
            let device = self.core.devices[net.device].name.clone();
            (net.id(), net.name.clone(), net.mbps, device)
        })
        .collect()
    }

    /// The make of its processors, as NCCL's model distinguishes them, or ``None`` if unknown.
    #[getter]
    fn processor(&self) -> Option<&'static str> {
        self.core.processor.map(Processor::name)
    }

    /// Whether its switches sum and multicast.
    #[getter]
    fn sums(&self) -> bool {
        self.core.sums()
    }
}

/// A network of machines: NPUs first, then switches.
#[pyclass(name = "Network", module = "hocket._core.nccl", frozen, get_all)]
pub(crate) struct PyNetwork {
    /// Of all devices.
    names: Vec<String>,
    /// How many of them are NPUs.
    npus: usize,
    /// Ends, bandwidth [bytes/s] and medium.
    links: Vec<(usize, usize, u64, &'static str)>,
    /// For each machine its NPUs, by rank.
    nodes: Vec<Vec<usize>>,
    /// For each machine the devices of its NICs, as ``System.nets``; none where it is alone.
    nics: Vec<Vec<usize>>,
    /// Switches that sum and multicast.
    sums: Vec<usize>,
    /// Notes for the reader, one sentence each.
    notes: Vec<String>,
}

impl From<Network> for PyNetwork {
    fn from(core: Network) -> Self {
        let links = core.links.iter();
        let links = links.map(|link| (link.src, link.dst, link.bandwidth, link.medium.name()));
        Self {
            links: links.collect(),
            names: core.names,
            npus: core.npus,
            nodes: core.nodes,
            nics: core.nics,
            sums: core.sums,
            notes: core.notes,
        }
    }
}

/// Join machines by one switch at which every NIC has its full rate.
#[pyfunction]
pub(crate) fn join(systems: Vec<PyRef<'_, PySystem>>) -> Result<PyNetwork, CoreError> {
    if systems.is_empty() {
        let wrong = Parts::new("there is none").field("systems");
        return Err(wrong.remedy("give one or more").into());
    }
    let systems: Vec<&System> = systems.iter().map(|it| &it.core).collect();
    Ok(topology::join(&systems)?.into())
}

/// A GPU by number and rank.
type GpuRefParts = (i64, Option<i64>);
/// NICs, GPUs, and the line of the file.
type ChannelParts = (Vec<i64>, Vec<GpuRefParts>, u64);

/// All channels of an algorithm.
#[pyclass(name = "Graph", module = "hocket._core.nccl", frozen, get_all)]
pub(crate) struct PyGraph {
    /// 0 ring, 1 tree, 2 CollNet chain, 3 sums in switches (NVLS), 4 CollNet direct.
    id: i64,
    /// 1 balanced tree, 2 split tree, 3 tree, 4 ring, 5 NVLS, 6 CollNet direct.
    pattern: i64,
    /// Whether a ring may leave a node by another NIC than it came in by.
    cross_nic: i64,
    /// Bandwidth of a channel in a node [GB/s].
    speed_intra: f64,
    /// Bandwidth of a channel between nodes [GB/s].
    speed_inter: f64,
    /// Time that the network adds to latencies [us].
    latency_inter: f64,
    /// How far apart GPUs are that follow one another.
    type_intra: String,
    /// How far apart GPUs and their NICs are.
    type_inter: String,
    /// Whether all channels have one order.
    same_channels: i64,
    /// NICs, GPUs by number and rank, and the line of the file, 0 without one.
    channels: Vec<ChannelParts>,
    /// Line of the file, 0 without one.
    line: u64,
}

impl From<&Graph> for PyGraph {
    fn from(core: &Graph) -> Self {
        let channels = core.channels.iter().map(|channel| {
            let gpus = channel.gpus.iter().map(|gpu| (gpu.dev, gpu.rank));
            (channel.nets.clone(), gpus.collect(), channel.line)
        });
        Self {
            id: core.id,
            pattern: core.pattern,
            cross_nic: core.cross_nic,
            speed_intra: core.speed_intra,
            speed_inter: core.speed_inter,
            latency_inter: core.latency_inter,
            type_intra: core.type_intra.clone(),
            type_inter: core.type_inter.clone(),
            same_channels: core.same_channels,
            channels: channels.collect(),
            line: core.line,
        }
    }
}

impl PyGraph {
    fn to_core(&self) -> Graph {
        let channels = self.channels.iter().map(|(nets, gpus, line)| {
            let gpus = gpus.iter().map(|&(dev, rank)| GpuRef { dev, rank });
            Channel {
                nets: nets.clone(),
                gpus: gpus.collect(),
                line: *line,
            }
        });
        Graph {
            id: self.id,
            pattern: self.pattern,
            cross_nic: self.cross_nic,
            speed_intra: self.speed_intra,
            speed_inter: self.speed_inter,
            latency_inter: self.latency_inter,
            type_intra: self.type_intra.clone(),
            type_inter: self.type_inter.clone(),
            same_channels: self.same_channels,
            channels: channels.collect(),
            line: self.line,
        }
    }
}

#[pymethods]
impl PyGraph {
    /// Make one of its attributes, and of each channel the NICs and the GPUs by number and rank.
    #[new]
    #[pyo3(signature = (
        id, pattern, *, cross_nic, speed_intra, speed_inter, latency_inter, type_intra, type_inter, same_channels,
        channels
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "attributes of the file, named in Python"
    )]
    fn new(
        id: i64,
        pattern: i64,
        cross_nic: i64,
        speed_intra: f64,
        speed_inter: f64,
        latency_inter: f64,
        type_intra: String,
        type_inter: String,
        same_channels: i64,
        channels: Vec<(Vec<i64>, Vec<GpuRefParts>)>,
    ) -> Self {
        let channels = channels.into_iter().map(|(nets, gpus)| (nets, gpus, 0));
        Self {
            id,
            pattern,
            cross_nic,
            speed_intra,
            speed_inter,
            latency_inter,
            type_intra,
            type_inter,
            same_channels,
            channels: channels.collect(),
            line: 0,
        }
    }
}

/// Read what NCCL writes to ``NCCL_GRAPH_DUMP_FILE``.
#[pyfunction]
pub(crate) fn parse_graphs(py: Python<'_>, bytes: &[u8]) -> Result<Vec<PyGraph>, CoreError> {
    let read = py.detach(|| Graphs::parse(bytes))?;
    Ok(read.graphs.iter().map(PyGraph::from).collect())
}

/// Write a file for ``NCCL_GRAPH_FILE``, of which NCCL's limits are checked.
#[pyfunction]
pub(crate) fn write_graphs(graphs: Vec<PyRef<'_, PyGraph>>) -> Result<String, CoreError> {
    let graphs = graphs.iter().map(|graph| graph.to_core()).collect();
    Ok(Graphs { graphs }.write()?)
}

const JOINTS: &[(&str, Joint)] = &[
    ("ring", Joint::Ring),
    ("balanced-tree", Joint::BalancedTree),
    ("split-tree", Joint::SplitTree),
    ("tree", Joint::Tree),
];

/// NPUs of a node in order, and the devices of its two NICs.
type LegParts = (Vec<u32>, Option<u32>, Option<u32>);

/// What links let all channels carry together [bytes/s], the channels, and of each slow or far NIC that is left out the
/// device, what it carries, and what the slowest carries that is taken [bytes/s].
type DesignParts = (u64, Vec<Vec<LegParts>>, Vec<(u32, u64, u64)>);

/// Find channels for a file of graphs: of every node its NICs are given by device and rail.
///
/// Where NICs or links differ there are several designs, those first that links let carry most. `nominal` is the same
/// network without slow links: its channels are designs too.
#[pyfunction]
#[pyo3(signature = (topology, nics, nominal=None))]
pub(crate) fn design_channels(
    py: Python<'_>,
    topology: &PyTopology,
    nics: Vec<Vec<(u32, u64)>>,
    nominal: Option<&PyTopology>,
) -> Result<Vec<DesignParts>, CoreError> {
    let network = topology.core().clone();
    let nominal = nominal.map(|it| it.core().clone());
    let are_alike = |other: &Arc<Topology>| {
        other.device_count() == network.device_count() && other.groups() == network.groups()
    };
    if !nominal.as_ref().is_none_or(are_alike) {
        let wrong = Parts::new("it has other devices or nodes").field("nominal");
        return Err(wrong
            .remedy("give the same network without slow links")
            .into());
    }
    let devices = network.device_count();
    let are_known = nics
        .iter()
        .flatten()
        .all(|&(nic, _)| (nic as usize) < devices);
    if !are_known || (network.groups().len() > 1 && network.groups().len() != nics.len()) {
        let wrong = Parts::new("they are not those of every node").field("nics");
        return Err(wrong.remedy("give a list of devices for each node").into());
    }
    let nic = |(device, rail)| Nic {
        device: DeviceId(device),
        rail,
    };
    let nics = nics.into_iter();
    let nics: Vec<Vec<Nic>> = nics
        .map(|node| node.into_iter().map(nic).collect())
        .collect();
    let found = progress::attended(py, move |_| {
        core_design(&network, nominal.as_deref(), &nics)
    })?;
    let leg = |leg: Leg| {
        let [into, out] = leg.nics.map(|nic| nic.map(|device| device.0));
        (leg.npus.into_iter().map(|npu| npu.0).collect(), into, out)
    };
    let design = |found: Design| {
        let channels = found.channels.into_iter();
        let channels = channels.map(|channel| channel.into_iter().map(leg).collect());
        let left_out = found.left_out.iter();
        let left_out = left_out.map(|it| (it.nic.0, it.rate, it.beside));
        (found.most, channels.collect(), left_out.collect())
    };
    Ok(found.into_iter().map(design).collect())
}

/// Plan along channels, each the NPUs of every node in order with the devices of their NICs.
#[pyfunction]
pub(crate) fn plan_channels(
    py: Python<'_>,
    topology: &PyTopology,
    collective: &PyCollective,
    joint: &str,
    channels: Vec<Vec<LegParts>>,
    chunks: usize,
    memory_limit: u64,
) -> Result<PyPlan, CoreError> {
    let joint = choose("joint", joint, JOINTS)?;
    let leg = |(npus, into, out): LegParts| Leg {
        npus: npus.into_iter().map(NpuId).collect(),
        nics: [into, out].map(|nic| nic.map(DeviceId)),
    };
    let channels = channels.into_iter();
    let channels: Vec<Vec<Leg>> = channels
        .map(|channel| channel.into_iter().map(leg).collect())
        .collect();
    let (network, collective) = (topology.core().clone(), collective.core().clone());
    let on = network.clone();
    let plan = progress::attended(py, move |_| {
        core_channels(
            &on,
            &collective,
            joint,
            &channels,
            chunks.max(1),
            memory_limit,
        )
    })?;
    Ok(PyPlan::new(plan?, network))
}

/// Plan sums in switches whose heads in each node are given.
#[pyfunction]
pub(crate) fn plan_heads(
    py: Python<'_>,
    topology: &PyTopology,
    collective: &PyCollective,
    heads: Vec<Vec<u32>>,
    chunks: usize,
    memory_limit: u64,
) -> Result<PyPlan, CoreError> {
    let heads = heads.into_iter();
    let heads: Vec<Vec<NpuId>> = heads
        .map(|each| each.into_iter().map(NpuId).collect())
        .collect();
    let (network, collective) = (topology.core().clone(), collective.core().clone());
    let on = network.clone();
    let plan = progress::attended(py, move |_| {
        core_heads(&on, &collective, &heads, chunks.max(1), memory_limit)
    })?;
    Ok(PyPlan::new(plan?, network))
}

/// Collective, sizes from and to, algorithm, protocol, channels, nodes and ranks; `None` for any.
type RowParts = (
    &'static str,
    u64,
    u64,
    &'static str,
    &'static str,
    Option<u32>,
    Option<u32>,
    Option<u32>,
);
/// The same, with names of the caller's own.
type GivenRow = (
    String,
    u64,
    u64,
    String,
    String,
    Option<u32>,
    Option<u32>,
    Option<u32>,
);

/// Read a table for tuners: collective, sizes, algorithm, protocol, channels, nodes, ranks; comments.
#[pyfunction]
pub(crate) fn parse_tuner(bytes: &[u8]) -> Result<(Vec<RowParts>, Vec<String>), CoreError> {
    let table = Table::parse(bytes)?;
    let rows = table.rows.iter().map(|row| {
        (
            COLLECTIVES[row.collective],
            row.least,
            row.most,
            ALGORITHMS[row.algorithm],
            PROTOCOLS[row.protocol],
            row.channels,
            row.nodes,
            row.ranks,
        )
    });
    Ok((rows.collect(), table.comments.clone()))
}

/// Write a table for tuners, which must answer for every size.
#[pyfunction]
pub(crate) fn write_tuner(rows: Vec<GivenRow>, comments: Vec<String>) -> Result<String, CoreError> {
    let place = |field: &str, name: &str, names: &[&str]| {
        let found = names.iter().position(|each| *each == name);
        found.ok_or_else(|| {
            let wrong = Parts::new(format!("there is no {name:?}")).field(field);
            CoreError::from(wrong.remedy(format!("known are {}", names.join(", "))))
        })
    };
    let mut table = Table {
        rows: Vec::new(),
        comments,
    };
    for (collective, least, most, algorithm, protocol, channels, nodes, ranks) in rows {
        table.rows.push(Row {
            collective: place("collective", &collective, &COLLECTIVES)?,
            least,
            most,
            algorithm: place("algorithm", &algorithm, &ALGORITHMS)?,
            protocol: place("protocol", &protocol, &PROTOCOLS)?,
            channels,
            nodes,
            ranks,
            pipe_ops: None,
            registered: None,
        });
    }
    Ok(table.write()?)
}
