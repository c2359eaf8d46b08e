"""Machines whose dumps are known: the network that they form, and the channels of NCCL's graphs on it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from hocket import _core
from hocket._checks import list_of, path_of, whole
from hocket.errors import InfeasibleError, SpecError
from hocket.files.complaint import shown_path
from hocket.nccl.constants import Generation
from hocket.nccl.gpus import generation_by_capability, gpu_named
from hocket.nccl.graphs import ID, Graph, read_graph
from hocket.nccl.rccl import Tuning
from hocket.topology.build import build_topology
from hocket.topology.dump import read_system, spec_from_systems
from hocket.topology.slow import Slow
from hocket.topology.spec import TopologySpec
from hocket.topology.text import MOST_NODES
from hocket.units import shown

Leg: TypeAlias = "tuple[list[int], int | None, int | None]"
"""NPUs of a node in order, and the devices of the NICs of the first and of the others."""
_RUN = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")
_MOST_GPUS = 9999
"""The highest number of a GPU."""


@dataclass(frozen=True)
class Node:
    """A machine: its dump, and its file of graphs where there is one."""

    system: _core.nccl.System
    file: str
    graphs: tuple[Graph, ...] = ()
    graph_file: str = ""

    def graph(self, algorithm: str) -> Graph | None:
        """Return the graph of an algorithm, or ``None`` if it has no channels."""
        found = [each for each in self.graphs if each.id == ID[algorithm]]
        return found[0] if found and found[0].channels else None


@dataclass(frozen=True)
class Machine:
    """Nodes that form one network.

    Attributes
    ----------
    nodes
        Each by its dump.
    spec, network
        The network that they form, and which device of it is whose.
    gpus
        The numbers of the GPUs of each node that take part; empty: all.
    """

    nodes: tuple[Node, ...]
    spec: TopologySpec
    network: _core.nccl.Network
    gpus: tuple[int, ...] = ()

    @cached_property
    def topology(self) -> _core.Topology:
        """The network as hocket plans on it."""
        return build_topology(self.spec)

    @property
    def arch(self) -> str | None:
        """RCCL's name of the GPUs' architecture; ``None`` for NCCL."""
        return self.nodes[0].system.gpus[0][3]

    @property
    def generation(self) -> Generation:
        """The GPUs by whose constants NCCL's model counts: of the oldest."""
        return generation_by_capability(
            min(gpu[2] for node in self.nodes for gpu in node.system.gpus)
        )

    @property
    def cpu(self) -> str | None:
        """The make of the nodes' processors, as NCCL's model distinguishes them, or ``None`` if unknown."""
        found = {node.system.processor for node in self.nodes} - {None}
        return "mixed" if len(found) > 1 else next(iter(found), None)

    @property
    def tuning(self) -> Tuning | None:
        """The machine as RCCL knows it; ``None`` where its model is not known."""
        try:
            found = None if self.arch is None else gpu_named(self.spec.gpu or "")
        except InfeasibleError:
            return None
        return found if isinstance(found, Tuning) else None

    def channels(self, algorithm: str) -> tuple[list[Graph], list[list[Leg]]]:
        """Return the graph of each node, and for each channel what it does in each node.

        As NCCL has it, there are as many channels as the node with the fewest has of rings and of trees.

        Raises
        ------
        SpecError
            With file and line, for a GPU or NIC that is not there, and a channel without some GPU.
        """
        graphs = [node.graph(algorithm) for node in self.nodes]
        known = [graph for graph in graphs if graph is not None]
        if len(known) < len(graphs):
            return known, []
        legs = [self._legs(number, graph) for number, graph in enumerate(known)]
        count = min(len(each) for each in legs)
        if algorithm != "nvls":
            count = min(count, self.count)
        if algorithm == "ring" and count % 2 == 0:
            for number, graph in enumerate(known):
                if graph.cross_nic == 2 and number % 2 == 1:
                    # Of every other node channels are exchanged in pairs, so that rings stay on rails.
                    legs[number] = [legs[number][k ^ 1] for k in range(count)]
        return known, [[each[k] for each in legs] for k in range(count)]

    @property
    def count(self) -> int:
        """The number of channels of NCCL: the fewest of all rings and trees of all nodes; 0 without any."""
        counts = [
            len(graph.channels)
            for node in self.nodes
            for graph in (node.graph("ring"), node.graph("tree"))
            if graph is not None
        ]
        return min(counts, default=0)

    def _legs(self, number: int, graph: Graph) -> list[Leg]:
        node, members = self.nodes[number], self.network.nodes[number]
        gpus = {gpu[0]: npu for gpu, npu in zip(node.system.gpus, members, strict=True)}
        devices = self.network.nics[number]
        nets = dict(zip((net[0] for net in node.system.nets), devices, strict=False))
        heads_only = graph.id == ID["nvls"]
        found: list[Leg] = []
        for ports, listed, line in graph.channels:
            at = f"{node.graph_file}, line {line}"
            order = []
            for dev, _ in listed:
                if dev not in gpus:
                    have = ", ".join(f"{each:#x}" for each in sorted(gpus))
                    why = f"a channel has GPU {dev:#x}, which {node.file} does not have"
                    raise SpecError(None, why, f"its GPUs are {have}", origin=at)
                order.append(gpus[dev])
            if not heads_only and sorted(order) != sorted(members):
                why = f"a channel has {len(set(order))} of the {len(members)} GPUs of {node.file}"
                right = "give the graphs of a communicator of all of them, each GPU once"
                raise SpecError(None, why, right, origin=at)
            nics: list[int | None] = [None, None]
            for place, port in enumerate(ports if len(self.nodes) > 1 else ()):
                if port not in nets:
                    have = ", ".join(f"{each:#x}" for each in nets)
                    why = f"a channel has NIC {port:#x}, which {node.file} does not have"
                    raise SpecError(None, why, f"its NICs are {have}", origin=at)
                nics[place] = nets[port]
            found.append((order, nics[0], nics[1] if nics[1] is not None else nics[0]))
        return found


def _dumps_of(files: object) -> tuple[Path, Path | None]:
    """Check that something names the file of a topology, and that of graphs or None."""
    if not isinstance(files, tuple | list) or len(files) != 2:
        right = "give that of a topology, and its graphs or None"
        raise SpecError("files", f"{shown(files)} is not a pair of files", right)
    topology, graphs = files
    return path_of("files", topology), None if graphs is None else path_of("files", graphs)


def _numbers(gpus: object) -> tuple[int, ...]:
    """Read numbers of GPUs: a list of them, or text such as ``"0-3,6"``."""
    if not isinstance(gpus, str):
        return _once([whole("gpus", each, 0, _MOST_GPUS) for each in list_of("gpus", gpus)])
    found: list[int] = []
    for item in gpus.split(","):
        run = _RUN.fullmatch(item.strip())
        first, last = (0, -1) if run is None else (int(run[1]), int(run[2] or run[1]))
        if first > last:
            raise SpecError("gpus", f"{shown(item)} are no GPUs", "give numbers, such as 0-3,6")
        found += range(first, last + 1)
    return _once(found)


def _once(gpus: Sequence[int]) -> tuple[int, ...]:
    twice = next((gpu for number, gpu in enumerate(gpus) if gpu in gpus[:number]), None)
    if twice is not None:
        raise SpecError("gpus", f"GPU {twice} is given twice", "give each once, such as 0-3,6")
    return tuple(gpus)


def load_machine(
    files: Sequence[tuple[Path, Path | None]],
    nodes: int = 1,
    *,
    slow: Sequence[Slow] = (),
    gpus: str | Sequence[int] = (),
) -> Machine:
    """Read the dumps of some nodes, each with its graphs or without.

    Parameters
    ----------
    files
        For each node the file of its topology and that of its graphs.
    nodes
        How many nodes are like the one that is given, where it is one.
    slow
        Devices and links that carry less than the dumps say, as :func:`hocket.topology.slow.read_slow`
        returns them.
    gpus
        The numbers of the GPUs of each node that take part, such as ``"0-3"``; all without.

    Raises
    ------
    SpecError
        With file and line, for a file that makes no sense, or of nodes of which one has no NIC; if a node
        has no such GPU.
    """
    some = _numbers(gpus)
    pairs = [_dumps_of(each) for each in list_of("files", files)]
    if not pairs:
        raise SpecError(
            "files", "there are none", "give that of a topology, and its graphs or None"
        )
    whole("nodes", nodes, 1, MOST_NODES)
    read: dict[Path, _core.nccl.System] = {}
    made = []
    for topology, graphs in pairs:
        if topology not in read:
            read[topology] = _part(read_system(topology), topology, some)
        found = () if graphs is None else read_graph(graphs)
        named = "" if graphs is None else shown_path(graphs)
        made.append(Node(read[topology], shown_path(topology), found, named))
    made *= nodes
    systems, names = [node.system for node in made], [node.file for node in made]
    spec, network = spec_from_systems(systems, pairs[0][0].stem, names)
    return Machine(tuple(made), spec.with_slow(slow), network, some)


def _part(system: _core.nccl.System, path: Path, gpus: tuple[int, ...]) -> _core.nccl.System:
    try:
        return system.only(list(gpus)) if gpus else system
    except SpecError as error:
        raise error.but(origin=shown_path(path)) from None
