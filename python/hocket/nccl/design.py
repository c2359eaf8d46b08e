"""Graphs by which NCCL runs the rings and trees that hocket finds: a file for each node, hosts and ranks.

NCCL joins the last GPU of a node to the first of the next one, in the order in which ranks name nodes,
alike for all channels. What can be chosen is the order in each node, its NICs, how many channels there are,
and, by ranks, the order of nodes. Speeds are what NCCL counts, as its choice of algorithms is made by them.

References
----------
NVIDIA/nccl 2.30.7, src/graph/search.cc and connect.cc (Apache-2.0), read at commit 5067397.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

from hocket import _core
from hocket._checks import instance_of, path_of
from hocket._results import HIDDEN, Result, figure
from hocket.collectives.collective import collective_on
from hocket.errors import InfeasibleError, SpecError
from hocket.files.atomic import check_apart, check_target, write_text
from hocket.nccl.graphs import ID, JOINTS, Graph, graph_text
from hocket.nccl.machine import Leg, Machine
from hocket.nccl.report import plan_graph
from hocket.plans.synthesis import PlanOptions
from hocket.profiles.hardware import PCI_SHARE
from hocket.simulation.run import Run, simulate
from hocket.topology.build import build_topology
from hocket.units import counted

_PATTERN = {joint: number for number, joint in JOINTS.items()}
_MOST_CHANNELS = 32
_SPLIT = 25.0
"""GB/s of a channel from which on NCCL makes two of it, as ``ncclTopoDupChannels`` says."""
_LATENCIES = 1.01
"""What they may take of the rate that is found."""
_CLOSE = 0.97
"""Of speeds whose channels carry nearly as much together, the highest is taken: channels cost threads."""
_ALIKE = 0.02
"""Share by which two designs differ if splitting their channels may turn their order."""
_SIZE = 1 << 30
"""Bytes of the all-reduce by which the rate of channels is found: so many that latencies do not count."""
_MANY_GPUS = 64
"""From so many GPUs on each sends so little at a time that cutting it gains nothing."""
_MOST_GPUS = 1024
"""A ring has a step for each pair of GPUs."""
_FAST = {"nvlink", "nvswitch", "xgmi"}

EVERY_COMMUNICATOR = (
    "every communicator of a process reads NCCL_GRAPH_FILE: one of other GPUs, as of a tensor-parallel "
    "group, fails with 'dev N not found' or takes channels that are not its own; set it where all "
    "communicators have all GPUs of each node, or while one is made (hk.nccl.graph_file)"
)
"""What a user of such a file must know."""


@dataclass(frozen=True)
class DesignedNode(Result):
    """The channels of a node."""

    channels: int
    speed_bytes_per_s: float
    """What each carries, as NCCL counts."""
    type_intra: str
    type_inter: str
    orders: list[list[int]]
    """For each channel the GPUs by their numbers."""
    nics: list[list[int]]
    """For each channel the NIC in and the NIC out; none of a lone node."""


@dataclass(frozen=True)
class GraphDesign(Result):
    """Files of graphs for the nodes of a machine.

    Attributes
    ----------
    machine
        The machine, with these graphs.
    run
        An all-reduce of 1 GiB along the rings, proved and simulated.
    left_out
        The slow and far NICs that no channel takes, a sentence each.
    warnings
        What their user must know, a sentence each.
    """

    machine: Machine = field(metadata=HIDDEN)
    run: Run = field(metadata=HIDDEN)
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def graphs(self) -> tuple[tuple[Graph, ...], ...]:
        """The graphs of each node."""
        return tuple(node.graphs for node in self.machine.nodes)

    @property
    @figure()
    def nodes(self) -> list[DesignedNode]:
        """The channels of each node."""
        return [
            DesignedNode(
                len(first.channels),
                first.speed_intra * 1e9,
                first.type_intra,
                first.type_inter,
                [[dev for dev, _ in gpus] for _, gpus, _ in first.channels],
                [list(nets) for nets, *_ in first.channels],
            )
            for first, *_ in self.graphs
        ]

    @property
    @figure()
    def time_ps(self) -> int:
        """Time of an all-reduce of 1 GiB along the rings [ps]."""
        return self.run.time_ps

    @property
    @figure()
    def bound_ps(self) -> int:
        """The lower bound on any plan's [ps]."""
        return self.run.lower_bound.time_ps

    @property
    def are_alike(self) -> bool:
        """Whether one file does for all nodes."""
        texts = {graph_text(graphs) for graphs in self.graphs}
        return len(texts) == 1

    def write(self, path: str | PathLike[str], *, hosts: Sequence[str] = ()) -> tuple[Path, ...]:
        """Write the files: one, or for nodes that differ one each, as ``graph.node0.xml``.

        Parameters
        ----------
        path
            The file; names of others begin as it does.
        hosts
            Names of the nodes, in their order: then a file of hosts and one of ranks are written too, as
            ``mpirun`` takes them, so that ranks name nodes in this order.

        Returns
        -------
        tuple of Path
            What was written.

        Raises
        ------
        SpecError
            If a file cannot be written or is one of the dumps, before any is written; or there are not as
            many hosts as nodes.
        """
        file = path_of("path", path)
        files: dict[Path, str] = {}
        if self.are_alike:
            files[file] = graph_text(self.graphs[0])
        else:
            for number, graphs in enumerate(self.graphs):
                files[file.with_suffix(f".node{number}{file.suffix}")] = graph_text(graphs)
        if hosts:
            if len(hosts) != len(self.machine.nodes):
                why = f"{len(hosts)} names for {len(self.machine.nodes)} nodes"
                raise SpecError("hosts", why, "give one for each, in the order of nodes")
            if len(set(hosts)) < len(hosts) or not all(_is_host(each) for each in hosts):
                raise SpecError("hosts", "a name is given twice, or is none", "give as a,b")
            if file.suffix in (".hosts", ".ranks"):
                why = "is also the name of a file of hosts or ranks"
                raise SpecError(None, why, "name the graph .xml", origin=str(path))
            files[file.with_suffix(".hosts")] = "".join(self._hosts(hosts))
            files[file.with_suffix(".ranks")] = "".join(self._ranks(hosts))
        read = [node.file for node in self.machine.nodes]
        for each in files:
            check_target(each)
            check_apart(each, read, "a dump that is read")
        for each, text in files.items():
            write_text(each, text)
        return tuple(files)

    def _hosts(self, hosts: Sequence[str]) -> Iterator[str]:
        for host, node in zip(hosts, self.machine.nodes, strict=True):
            yield f"{host} slots={len(node.system.gpus)}\n"

    def _ranks(self, hosts: Sequence[str]) -> Iterator[str]:
        rank = 0
        for host, node in zip(hosts, self.machine.nodes, strict=True):
            for slot in range(len(node.system.gpus)):
                yield f"rank {rank}={host} slot={slot}\n"
                rank += 1


def _is_host(name: str) -> bool:
    return bool(name) and name.isascii() and all(c.isalnum() or c in "-._" for c in name)


def design_graphs(machine: Machine) -> GraphDesign:
    """Find rings and trees for a machine, of which some links or NICs may be down.

    Raises
    ------
    InfeasibleError
        If it has one GPU or over 1,024, or more channels than NCCL takes are needed.
    """
    instance_of(Machine, "machine", machine, "read one with hk.nccl.load_machine")
    gpus = sum(len(node.system.gpus) for node in machine.nodes)
    if gpus < 2:
        raise InfeasibleError(None, "it has one GPU", "there are no channels")
    if gpus > _MOST_GPUS:
        why = f"rings over {gpus:,} GPUs are too long to simulate, more than {_MOST_GPUS:,}"
        raise InfeasibleError(
            None, why, "give fewer nodes: a file does for any number of nodes that are alike"
        )
    network = machine.topology
    tried: list[tuple[Run, list[list[Leg]], list[tuple[int, int, int]]]] = []
    nominal = build_topology(replace(machine.spec, slow=())) if machine.spec.slow else None
    for most, channels, left_out in _core.nccl.design_channels(network, _rails(machine), nominal):
        if any(run.busbw >= most for run, *_ in tried):
            break
        tried.append((_along_rings(_graphed(machine, channels, 1.0)), channels, left_out))
    least = min(run.time_ps for run, *_ in tried)
    made = [
        _designed(machine, channels, run, tuple(_left_out(machine, left_out)))
        for run, channels, left_out in tried
        if run.time_ps <= (1 + _ALIKE) * least
    ]
    return min(made, key=lambda design: design.time_ps)


def design_along(machine: Machine, channels: Sequence[Sequence[Leg]]) -> GraphDesign:
    """Make the graphs of rings and trees along given channels: how many of each, and what NCCL is to count.

    Parameters
    ----------
    channels
        For each what it does in each node: NPUs in order, and the devices of its NICs.
    """
    channels = list(channels[:_MOST_CHANNELS])
    run = _along_rings(_graphed(machine, channels, 1.0))
    return _designed(machine, channels, run, ())


def _designed(
    machine: Machine, channels: Sequence[Sequence[Leg]], run: Run, left_out: tuple[str, ...]
) -> GraphDesign:
    """Make the graphs along channels whose rings were simulated."""
    count, speed = _split(machine, channels, run.busbw / 1e9 * _counted(machine))
    split = [channels[k % len(channels)] for k in range(count)]
    made = _graphed(machine, split, speed)
    if count != len(channels):
        run = _along_rings(made)
    return GraphDesign(made, run, left_out, (EVERY_COMMUNICATOR, *partial_nodes(machine)))


def _along_rings(machine: Machine) -> Run:
    """Simulate an all-reduce along the rings."""
    collective = collective_on("all-reduce", machine.topology, _SIZE)
    planning = PlanOptions(chunks=1) if machine.topology.npu_count >= _MANY_GPUS else None
    return simulate(plan_graph(machine, "ring", collective, None, planning))


def _left_out(machine: Machine, nics: Sequence[tuple[int, int, int]]) -> Iterator[str]:
    """Return a sentence for the NICs of one name and rate that are left out."""
    names = {
        device: (name or given, node)
        for node, (each, devices) in enumerate(
            zip(machine.nodes, machine.network.nics, strict=True)
        )
        for (_, name, _, given), device in zip(each.system.nets, devices, strict=False)
    }
    nodes: dict[tuple[str, int, int], list[int]] = {}
    for device, rate, beside in nics:
        name, node = names[device]
        nodes.setdefault((name, rate, beside), []).append(node)
    for (name, rate, beside), of in nodes.items():
        where = f"node {of[0]}" if len(of) == 1 else counted(len(of), "node")
        why = f"{rate / 1e9:.4g} GB/s beside {beside / 1e9:.4g}"
        if rate >= beside:
            why = "farther from the GPUs than the others"
        yield f"{name} of {where} left out: {why}"


def partial_nodes(machine: Machine) -> Iterator[str]:
    """Return a sentence for each dump, or for the file, that is of a communicator of some GPUs alone."""
    if machine.gpus:
        yield f"the file {OF_SOME.format(', '.join(map(str, sorted(machine.gpus))))}"
        return
    for number, node in enumerate(machine.nodes):
        have = partial_devs([gpu[0] for gpu in node.system.gpus])
        if have:
            yield f"node {number}: the dump {OF_SOME.format(have)}"


OF_SOME = (
    "is of a communicator of some GPUs alone, those with dev {}; the file is right for that communicator "
    "and for no other"
)
"""What a user of such a file must know, after what is so."""
_HOST, _OWN = 56, 0xFFFFFFFF
"""Of the number of a GPU: by how many bits that of its host is shifted, and what is its own."""


def partial_devs(devs: Sequence[int]) -> str:
    """Return the numbers of a node's GPUs where some are left out, as text; empty where none is."""
    own = sorted(dev & _OWN for dev in devs)
    if own == list(range(len(own))) or len({dev >> _HOST for dev in devs}) > 1:
        return ""
    return ", ".join(map(str, own))


def _rails(machine: Machine) -> list[list[tuple[int, int]]]:
    """Return the NICs of each node with the numbers of their rails: NICs of one name are at one rail."""
    numbers: dict[str, int] = {}
    found = []
    for node, devices in zip(machine.nodes, machine.network.nics, strict=True):
        names = [name or device for _, name, _, device in node.system.nets]
        rails = [numbers.setdefault(name, len(numbers)) for name in names]
        found.append(list(zip(devices, rails, strict=False)))
    return found


def _counted(machine: Machine) -> float:
    """Return what NCCL counts of the nominal rate of what limits rings."""
    if len(machine.nodes) > 1:
        return 1.0
    media = {medium for *_, medium in machine.network.links}
    if media <= _FAST:
        generation = machine.generation
        return 1.0 if machine.arch is not None else generation.link / generation.nominal
    # Of links between processors the dump states what NCCL counts.
    nics = {nic for each in machine.network.nics for nic in each}
    shares = {"pcie": PCI_SHARE}
    _, share = min(
        (rate * shares.get(medium, 1.0), shares.get(medium, 1.0))
        for src, dst, rate, medium in machine.network.links
        if medium not in _FAST and not nics & {src, dst}
    )
    return share


def _split(machine: Machine, channels: Sequence[Sequence[Leg]], rate: float) -> tuple[int, float]:
    """Return how many channels there are to be, and the share of each in the total [GB/s]."""
    count = len(channels)
    if count == 1 and len(machine.nodes) == 1:
        speeds = machine.generation.speeds
        counts = [min(int(_LATENCIES * rate / speed), _MOST_CHANNELS) for speed in speeds]
        totals = [many * speed for many, speed in zip(counts, speeds, strict=True)]
        if max(totals) > 0:
            best = next(k for k, total in enumerate(totals) if total >= _CLOSE * max(totals))
            count, rate = counts[best], totals[best]
    is_new = machine.generation.name in ("hopper", "blackwell")
    is_split = rate / count >= _SPLIT and not (is_new and rate / count < 50.0 and count > 4)
    if is_split and 2 * count <= _MOST_CHANNELS:
        count *= 2
    return count, rate / count


def _graphed(machine: Machine, channels: Sequence[Sequence[Leg]], speed: float) -> Machine:
    """Return the machine with such channels as rings and as trees."""
    # NCCL rates plain trees lower, though in a lone node nothing tells one pattern from another.
    tree = "balanced-tree" if len(machine.nodes) == 1 else "tree"
    paths = _Paths(machine)
    nodes = []
    for number, node in enumerate(machine.nodes):
        legs = [channel[number] for channel in channels]
        types = _types(machine, number, legs, paths)
        graphs = tuple(
            _graph(machine, number, (ID[name], _PATTERN[joint]), legs, speed, types)
            for name, joint in (("ring", "ring"), ("tree", tree))
        )
        nodes.append(replace(node, graphs=graphs, graph_file="graph"))
    return replace(machine, nodes=tuple(nodes))


def _graph(
    machine: Machine,
    number: int,
    kind: tuple[int, int],
    legs: Sequence[Leg],
    speed: float,
    types: tuple[str, str],
) -> Graph:
    node, members = machine.nodes[number], machine.network.nodes[number]
    dev = dict(zip(members, (gpu[0] for gpu in node.system.gpus), strict=True))
    devices = machine.network.nics[number]
    net = dict(zip(devices, (each[0] for each in node.system.nets), strict=False))
    channels = []
    for order, into, out in legs:
        nics = (into, into if kind[0] == ID["tree"] else out)
        ports = [net[nic] for nic in nics if nic is not None]
        channels.append((ports, [(dev[npu], None) for npu in order]))
    intra, inter = types
    orders = {tuple(order) for order, *_ in legs}
    is_crossing = any(len(set(ports)) > 1 for ports, _ in channels)
    return Graph(
        *kind,
        cross_nic=2 if is_crossing else 0,
        speed_intra=speed,
        speed_inter=speed,
        latency_inter=0.0,
        type_intra=intra,
        type_inter=inter,
        same_channels=int(len(orders) == 1),
        channels=channels,
    )


def _types(machine: Machine, number: int, legs: Sequence[Leg], paths: _Paths) -> tuple[str, str]:
    """Return how far apart GPUs that follow one another are, and ends of channels and their NICs."""
    order = ("LOC", "NVL", "NVB", "PIX", "PXB", "PXN", "PHB", "SYS")
    pairs = {
        pair
        for npus, *_ in legs
        for pair in zip(
            npus, npus[1:] + (npus[:1] if len(machine.nodes) == 1 else []), strict=False
        )
    }
    intra = max((paths.between(a, b) for a, b in pairs), key=order.index, default="LOC")
    ends = {
        (npu, nic) for npus, into, out in legs for npu, nic in ((npus[0], into), (npus[-1], out))
    }
    members = machine.network.nodes[number]
    inter = max(
        (paths.to_nic(npu, nic, members) for npu, nic in ends if nic is not None),
        key=order.index,
        default="PIX",
    )
    return intra, inter


class _Paths:
    """Return the distance of devices, as NCCL names it."""

    def __init__(self, machine: Machine) -> None:
        network = machine.network
        self._names, self._npus = network.names, network.npus
        self._fast: dict[int, set[int]] = {}
        self._pci: dict[int, set[int]] = {}
        for src, dst, _, medium in network.links:
            if medium != "ib":
                side = self._fast if medium in _FAST else self._pci
                side.setdefault(src, set()).add(dst)

    def between(self, a: int, b: int) -> str:
        """Two GPUs: NVL over NVLink or its switches, NVB by another GPU, or as far as PCI is."""
        near = self._fast.get(a, set())
        if b in near or any(b in self._fast.get(via, ()) for via in near if via >= self._npus):
            return "NVL"
        if any(b in self._fast.get(via, ()) for via in near if via < self._npus):
            return "NVB"
        return self._over_pci(a, b) or "SYS"

    def to_nic(self, npu: int, nic: int, members: Sequence[int]) -> str:
        """Describe how a GPU reaches a NIC: over PCI, or by another GPU that is near (PXN)."""
        found = self._over_pci(npu, nic) or "SYS"
        if found in ("PHB", "SYS"):
            near = [other for other in members if self._over_pci(other, nic) in ("PIX", "PXB")]
            if any(self.between(npu, other) == "NVL" for other in near):
                return "PXN"
        return found

    def _over_pci(self, a: int, b: int) -> str | None:
        """Return the distance over PCI, by the processors and bridges between, or None without a path."""
        reached = {a: (0, 0)}
        queue = [a]
        for device in queue:
            cpus, hops = reached[device]
            for other in sorted(self._pci.get(device, ())):
                if other in reached or (other < self._npus and other != b):
                    continue
                is_cpu = ".cpu" in f".{self._names[other]}"
                reached[other] = (cpus + is_cpu, hops + 1)
                queue.append(other)
        if b not in reached:
            return None
        cpus, hops = reached[b]
        if cpus:
            return "PHB" if cpus == 1 else "SYS"
        return "PIX" if hops <= 2 else "PXB"
