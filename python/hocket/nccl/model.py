"""NCCL's picks and predictions: its search for channels, idealised, and its cost model.

The search is idealised: it finds as many channels as the narrowest cut in a node and the NICs carry, of the
speed that uses them best. NCCL's own walks the topology and may find fewer.

Over several nodes it counts whose processors they have: with AMD's posting to a NIC takes twice as long,
and LL reaches what Ampere's does at most, whatever the GPUs. Where nothing says it they are Intel's.
Latencies of NICs that graphs state are not added; NVLS trees are not corrected by size; PAT and CollNet are
left out.

Source: as :mod:`hocket.nccl.constants`; of its algorithms: Hu et al., Demystifying NCCL, 2025. Older
versions: src/graph/tuning.cc of 2.21.5, 2.22.3, 2.23.4, 2.26.2, 2.27.3, 2.28.3, 2.28.7 and 2.28.9.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hocket._results import Column, Result, said
from hocket.errors import InfeasibleError, SpecError
from hocket.nccl.constants import (
    BASE,
    EFFICIENCY_FROM,
    GENERATIONS,
    LL,
    LL128,
    MOST_CHANNELS,
    NET,
    NVLINK,
    NVLS_CHANNELS,
    NVLS_MOST_HEADS,
    NVLS_PAIRS_FROM,
    NVLS_TREE_FROM,
    OLD_NVLS,
    OLD_NVLS_TREE,
    OLD_RING_LL128,
    OLD_TREE_SIMPLE,
    OLDEST,
    PCI,
    POSTING,
    PROTOCOLS,
    REVISED_FROM,
    RING_LL128,
    RING_PLATEAU,
    RING_PLATEAU_OLD,
    SHARES_FROM,
    SIMPLE,
    TREE_CORRECTED,
    TREE_CORRECTION,
    TREE_LL,
    TREE_PLAIN,
    VERSION,
    Generation,
)
from hocket.profiles.hardware import Hardware
from hocket.units import shown

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce")
USUAL_CPU = "intel"
"""Whose processors nodes have where nothing says it."""
_G = 1e9
_MOST_CHANNELS = 32
_SLOWEST = 0.49
"""Once there is a channel, slower ones are tried down to this part of its speed."""
_RECENT = ("hopper", "blackwell")
_FAST, _FEW = 45.0, 16
"""GB/s of a channel over several nodes above which channels that are fewer are doubled once more."""
_FEWEST_NVLS = 4
"""GPUs of a node up to which NCCL does not sum in switches; stated picks of 2 to 8 GPUs say so."""


@dataclass(frozen=True)
class NcclChannels:
    """The number of channels of a graph, and the bandwidth of each [GB/s].

    Attributes
    ----------
    are_alike
        Whether all pass the GPUs in one order and use one NIC: else broadcasts and reductions are counted
        by their steps.
    is_plain
        Of trees, whether one GPU of a node has all that passes between nodes, which is counted as slower.
    """

    count: int
    inside: float
    between: float
    are_alike: bool = True
    is_plain: bool = False

    def rate(self, nodes: int) -> float:
        """Return what all channels carry, as the model takes it for so many nodes."""
        return self.count * (self.inside if nodes <= 2 else self.between)


@dataclass(frozen=True)
class Host:
    """The parts of a node other than its GPUs.

    Attributes
    ----------
    cpu
        Whose processors it has: ``"intel"``, ``"amd"``, ``"other"``, or ``"mixed"`` where nodes differ.
    is_on_pci
        Whether GPUs reach each other over PCI: then steps take longer, and LL128 is not used.
    """

    cpu: str = USUAL_CPU
    is_on_pci: bool = False


def giga(count: float) -> float:
    """Return a number of billions."""
    return count * 1e9


@dataclass(frozen=True)
class NcclChoice(Result):
    """An algorithm with a protocol, and how long NCCL thinks that it takes.

    Attributes
    ----------
    algorithm, protocol
        As ``"ring"`` and ``"LL128"``.
    channels
        Of its graph.
    latency, bandwidth
        What the time consists of [us], [GB/s].
    seconds
        Latency, and bytes over bandwidth.
    """

    algorithm: str = field(metadata=said(column=Column("algorithm")))
    protocol: str = field(metadata=said(column=Column("protocol")))
    channels: int = field(metadata=said(column=Column("channels")))
    latency: float = field(metadata=said("latency_us", column=Column("latency")))
    bandwidth: float = field(
        metadata=said("bandwidth_bytes_per_s", of=giga, column=Column("bandwidth"))
    )
    seconds: float = field(metadata=said("time_s", column=Column("predicted")))


def generation_of(hardware: Hardware) -> Generation:
    """Return the architecture of GPUs by the bandwidth of their NVLinks.

    Raises
    ------
    InfeasibleError
        If no GPU of NVIDIA has such NVLinks, as where all are on PCI.
    """
    bandwidth = hardware.most or hardware.bandwidth
    for most, found in ((160, "volta"), (310, "ampere"), (460, "hopper"), (910, "blackwell")):
        if 0.9 * most * _G <= bandwidth <= most * _G:
            return GENERATIONS[found]
    raise InfeasibleError(
        "gpu",
        f"its links, {bandwidth / _G:.5g} GB/s from a GPU, do not tell which GPU that is",
        f"say which it is: {', '.join(GENERATIONS)}, one such as sm86, or for RCCL mi250 or mi300x",
    )


def search(generation: Generation, hardware: Hardware, nodes: int) -> NcclChannels:
    """Find the channels of a ring: their speed, and as many as links and NICs carry."""
    inside, nics = _carried(generation, hardware, nodes), max(hardware.nics, 1)
    each = hardware.nic_bandwidth / (12.5 * _G) * generation.net_per_100g / nics
    # NCCL stops where the channels take all that a GPU has, though rings over nodes have a little more.
    enough = (
        max(hardware.most, hardware.bandwidth) / hardware.bandwidth * _links(generation, hardware)
    )
    count, speed = 0, 0.0
    for tried in generation.speeds if nodes == 1 else generation.speeds_between:
        if count > 0 and (tried <= _SLOWEST * speed or count * speed >= enough - 1e-9):
            break
        fit = (
            _times(inside, tried)
            if nodes == 1
            else min(_times(each, tried) * nics, _times(inside, tried))
        )
        if min(fit, _MOST_CHANNELS) * tried > count * speed + 1e-9:
            count, speed = min(fit, _MOST_CHANNELS), tried
    if count == 0:
        count, speed = 1, inside if nodes == 1 else min(inside, each * nics)
    are_alike = hardware.is_switched if nodes == 1 else nics == 1
    # Fast channels are split into two; from Hopper on not those that are many and below 50 GB/s.
    is_recent = generation.name in _RECENT
    if speed >= 25.0 and not (is_recent and speed < 50.0 and count > 4):
        parts = min(2 * count, _MOST_CHANNELS)
        count, speed = parts, speed / math.ceil(parts / count)
    return NcclChannels(count, speed, speed, are_alike)


def communicator_channels(
    generation: Generation, hardware: Hardware, nodes: int, version: str = VERSION
) -> tuple[int, int]:
    """Return how many channels NCCL's log says a communicator has: ``coll channels`` and ``nvls channels``.

    Each channel that is found becomes two; over several nodes few and fast ones of Hopper and later become
    four (``ncclTopoPostset``, src/graph/connect.cc). Before 2.28.7 two GPUs of a node are too few for NVLS
    (``ncclNvlsInit``, src/transport/nvls.cc).
    """
    ring = search(generation, hardware, nodes)
    count = min(2 * ring.count, MOST_CHANNELS)
    if generation.name in _RECENT and nodes > 1 and ring.inside > _FAST and count < _FEW:
        count *= 2
    fewest = 3 if version_of(version) < NVLS_PAIRS_FROM else 2
    is_summed = hardware.sums and not hardware.is_on_pci and hardware.npus >= fewest
    if not (is_summed and generation.nvls):
        return count, 0
    return count, NVLS_CHANNELS[generation.name][nodes > 1]


def _links(generation: Generation, hardware: Hardware) -> float:
    """Return what NCCL counts of what a node's links carry [GB/s]."""
    if hardware.is_on_pci:
        return hardware.on_pci / _G
    return hardware.bandwidth / _G * generation.link / generation.nominal


def _times(total: float, speed: float) -> int:
    return int(total / speed + 1e-9)


def _carried(generation: Generation, hardware: Hardware, nodes: int) -> float:
    """Return what all channels may have inside a node [GB/s].

    Where there are several nodes, of each channel one GPU sends to a NIC and to no other GPU; on PCI that
    takes the same link.
    """
    links = _links(generation, hardware)
    if nodes == 1 or hardware.npus < 2 or hardware.is_on_pci:
        return links
    return links * hardware.npus / (hardware.npus - 1)


def _tree(
    generation: Generation, hardware: Hardware, nodes: int, ring: NcclChannels
) -> NcclChannels:
    """Find the channels of trees: as many as of the ring, and faster inside nodes if links allow it."""
    inside, last = ring.inside, ring.inside
    for speed in reversed(generation.speeds_between if nodes > 1 else ()):
        if last >= 2 * ring.between or speed * ring.count > _carried(generation, hardware, nodes):
            break
        if speed > inside:
            inside = last = speed
    is_plain = nodes > 1 and generation.name in _RECENT
    return NcclChannels(ring.count, inside, ring.between, ring.are_alike, is_plain)


def choices(
    kind: str,
    size: int,
    npus: int,
    nodes: int,
    hardware: Hardware,
    generation: Generation,
    graphs: Mapping[str, NcclChannels] | None = None,
    host: Host | None = None,
    version: str = VERSION,
) -> Iterator[NcclChoice]:
    """Return every algorithm and protocol that NCCL weighs for a collective, with its prediction.

    Parameters
    ----------
    size
        As nccl-tests states it [bytes].
    graphs
        The channels of ``"ring"``, ``"tree"`` and ``"nvls"``, as a file says; by default they are
        searched for.
    host
        What the nodes are beside their GPUs; by default what is usual, and on PCI as the hardware is.
    version
        Of NCCL, such as ``"2.27.7"``: older ones count trees with Simple and NVLS otherwise. Before 2.21 as
        2.21.

    Raises
    ------
    SpecError
        If NCCL's model has no such collective, or that is no version.
    """
    check_kind(kind, "NCCL")
    given = _searched(npus, nodes, hardware, generation) if graphs is None else graphs
    on = host or Host(is_on_pci=hardware.is_on_pci)
    asked = _Asked(kind, size, npus, nodes, generation, on, version_of(version))
    for algorithm, graph in given.items():
        name = _weighed(algorithm, asked)
        for number, protocol in enumerate(PROTOCOLS):
            is_used = number == SIMPLE or not algorithm.startswith("nvls")
            if name is not None and is_used and not (asked.host.is_on_pci and number == LL128):
                yield _choice(asked, name, graph, number, protocol)


def version_of(text: object) -> tuple[int, ...]:
    """Return the numbers of a version of NCCL whose model is known, the oldest known for older ones.

    Raises
    ------
    SpecError
        If it is none.
    """
    parts = text.split(".") if isinstance(text, str) else []
    if not (2 <= len(parts) <= 3 and all(part.isdecimal() and len(part) < 5 for part in parts)):
        raise SpecError("version", f"{shown(text)} is no version of NCCL", f"give one as {VERSION}")
    return max(tuple(map(int, parts)), OLDEST)


def _searched(
    npus: int, nodes: int, hardware: Hardware, generation: Generation
) -> dict[str, NcclChannels]:
    """Find the channels of all algorithms."""
    ring = search(generation, hardware, nodes)
    found = {"ring": ring, "tree": _tree(generation, hardware, nodes, ring)}
    near = npus // nodes
    is_switched = hardware.sums and not hardware.is_on_pci
    if generation.nvls and is_switched and near > _FEWEST_NVLS:
        heads = min(near, NVLS_MOST_HEADS)
        speed = _speed_of_sums(generation, hardware, heads)
        if speed > 0:
            found["nvls"] = NcclChannels(heads, speed, ring.rate(3) / heads if nodes > 1 else 0.0)
    return found


def _weighed(algorithm: str, asked: _Asked) -> str | None:
    """Return the name under which a graph serves a collective, or ``None`` if it does not."""
    is_sum = asked.kind == "all-reduce"
    if algorithm == "tree":
        return algorithm if is_sum and asked.npus > 2 else None
    if algorithm == "nvls" and asked.nodes > 1:
        return "nvls-tree" if is_sum else None
    if algorithm == "nvls" and asked.kind in ("broadcast", "reduce"):
        return None
    return algorithm


def check_kind(kind: object, library: str) -> None:
    """Refuse a collective that cost models do not have."""
    if not isinstance(kind, str) or kind not in KINDS:
        right = f"it has {', '.join(KINDS)}; others are sends and receives"
        raise SpecError("kind", f"{library}'s model has no {shown(kind)}", right)


def _speed_of_sums(generation: Generation, hardware: Hardware, heads: int) -> float:
    """Return the largest speed at which the links carry all channels of sums in switches; 0 if none does.

    The GPU that is the head of a channel has twice its speed, as ``ncclTopoSearchTryNvls`` counts.
    """
    links = _links(generation, hardware)
    return max((speed for speed in generation.speeds if speed * (heads + 1) <= links), default=0.0)


@dataclass(frozen=True)
class _Asked:
    kind: str
    size: int
    npus: int
    nodes: int
    generation: Generation
    host: Host
    version: tuple[int, ...]

    @property
    def steps(self) -> int:
        n = self.npus
        if self.kind == "all-reduce":
            return 2 * (n - 1)
        return n - 1 if self.kind in ("all-gather", "reduce-scatter") else n

    @property
    def is_old(self) -> bool:
        """Whether its version counts trees with Simple and rings as the oldest do."""
        return self.version < REVISED_FROM

    @property
    def at(self) -> int:
        """Position in triples of 1, 2, and 4 or more nodes."""
        return min(self.nodes, 3) - 1


def _choice(
    asked: _Asked, algorithm: str, graph: NcclChannels, number: int, protocol: str
) -> NcclChoice:
    bandwidth = _bandwidth(asked, algorithm, graph, number)
    latency = _latency(asked, algorithm, graph, number)
    if algorithm == "tree" and asked.size < TREE_CORRECTED:
        power = max((asked.size // 64).bit_length() - 1, 0)
        bandwidth *= TREE_CORRECTION[number][min(power, len(TREE_CORRECTION[0]) - 1)]
    if (
        algorithm == "ring"
        and number == SIMPLE
        and asked.nodes > 1
        and asked.kind == "all-reduce"
        and asked.size // (min(2 * graph.count, MOST_CHANNELS) * asked.npus) >= 64
    ):
        latency *= RING_PLATEAU_OLD if asked.generation.name == "volta" else RING_PLATEAU
    seconds = (latency + asked.size / (1000 * bandwidth)) * 1e-6
    return NcclChoice(algorithm, protocol, graph.count, latency, bandwidth, seconds)


def _bandwidth(asked: _Asked, algorithm: str, graph: NcclChannels, number: int) -> float:
    """Return what an algorithm reaches [GB/s of algbw]."""
    gpu, at, count = asked.generation, asked.at, graph.count
    bus = graph.rate(asked.nodes)
    share = asked.npus / asked.steps
    # Over several nodes it is processors that LL is held to, as NCCL has it by generations of GPUs.
    row = "ampere" if asked.host.cpu in ("amd", "mixed") else "volta"
    most_ll = gpu.ll[0] if asked.nodes == 1 else GENERATIONS[row].ll[at]
    if algorithm == "ring":
        if number == LL:
            bus = min(most_ll, bus / 2)
        elif number == LL128:
            is_lone = asked.is_old and asked.npus == asked.nodes
            reached = OLD_RING_LL128 if is_lone else RING_LL128
            bus = min(reached * bus, count * gpu.ring_ll128)
        return bus * share
    if algorithm == "tree":
        bus = min(RING_LL128 * bus, count * gpu.tree[at])
        if number == LL:
            bus = min(bus / TREE_LL, most_ll)
        elif number == LL128:
            bus = min(bus * (7 / 9 if asked.nodes == 1 else 15 / 16), count * gpu.tree_ll128[at])
        if graph.is_plain:
            bus *= TREE_PLAIN
        return bus * 0.5
    if asked.version < EFFICIENCY_FROM:
        return _old_sums(asked, algorithm, graph)
    inside = graph.inside * gpu.nvls * (count - 1) / count
    near = asked.npus // asked.nodes
    inside *= 2 if asked.kind == "all-reduce" else (near - 1) / near
    if algorithm == "nvls":
        return inside * count * (share if asked.kind == "all-reduce" else 1.0)
    between = graph.between * (2 if asked.nodes <= 2 else 1)
    return min(inside, between, gpu.nvls_tree[at]) * count * share


def _old_sums(asked: _Asked, algorithm: str, graph: NcclChannels) -> float:
    """Return what sums in switches reached in versions that counted no efficiency [GB/s of algbw]."""
    near, is_sum = asked.npus // asked.nodes, asked.kind == "all-reduce"
    speed = graph.inside
    if algorithm == "nvls-tree":
        speed = min(speed, graph.between / (1 if asked.nodes <= 2 else 2))
    elif not is_sum and asked.version >= SHARES_FROM:
        speed *= (near - 1) / near
    whole = not (is_sum or asked.is_old)
    return speed * graph.count * (1.0 if whole else OLD_NVLS)


def _hop(asked: _Asked) -> Mapping[str, tuple[float, float, float]]:
    """Return what a step takes of each algorithm, where all steps are counted alike."""
    return NET if asked.nodes > 1 else PCI if asked.host.is_on_pci else NVLINK


def _latency(asked: _Asked, algorithm: str, graph: NcclChannels, number: int) -> float:
    inside = (PCI if asked.host.is_on_pci else NVLINK)[algorithm][number]
    net = NET[algorithm][number]
    near = asked.npus // asked.nodes
    if near == 1 and not asked.is_old:
        net = NET["tree"][number]
    levels = int(math.log2(asked.nodes))
    if algorithm == "ring":
        if asked.kind in ("broadcast", "reduce"):
            where = "ring" if graph.are_alike or number != SIMPLE else "tree"
            step = _hop(asked)[where][number]
            return BASE["ring"][number] + step * (1 if graph.are_alike else asked.steps)
        far = (2 if asked.kind == "all-reduce" else 1) * (asked.nodes - 1)
        if asked.is_old and asked.kind == "all-reduce" and asked.nodes > 1:
            far += 2
        posting = POSTING[asked.host.cpu] * (3 if number == SIMPLE else 1)
        overhead = 0.0 if asked.nodes == 1 else posting
        near_steps = (asked.steps - far) * max(inside, overhead)
        return BASE["ring"][number] + near_steps + far * net
    if algorithm == "tree":
        base = BASE["tree"][number]
        if number == SIMPLE and asked.is_old:
            base, inside, net = 0.0, OLD_TREE_SIMPLE, OLD_TREE_SIMPLE
        return base + 2 * ((near - 1) * inside + levels * net)
    if asked.version < NVLS_TREE_FROM:
        net = OLD_NVLS_TREE
    return inside + (2 * levels * net if algorithm == "nvls-tree" else 0.0)
