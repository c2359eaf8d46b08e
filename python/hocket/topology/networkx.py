"""Topologies from networkx graphs."""

from __future__ import annotations

from typing import Any

from hocket._core import Topology
from hocket.errors import SpecError
from hocket.topology.build import build_topology
from hocket.topology.spec import LinkSpec, TopologySpec
from hocket.topology.text import UNWRITABLE
from hocket.units import parse_bandwidth, parse_time


def from_networkx(
    graph: Any, *, bandwidth: str = "bandwidth", latency: str = "latency", kind: str = "kind"
) -> Topology:
    """Give a network from a networkx graph, directed or not, with or without parallel edges.

    Parameters
    ----------
    graph
        Nodes are NPUs unless their attribute ``kind`` is ``"switch"``; edges of an undirected graph go
        both ways.
    bandwidth, latency, kind
        Names of the attributes that hold these.
    """
    return build_topology(_spec_of(graph, bandwidth=bandwidth, latency=latency, kind=kind))


def _spec_of(graph: Any, bandwidth: str, latency: str, kind: str) -> TopologySpec:
    """Give the topology of a graph, directed or not, with or without parallel edges.

    Raises
    ------
    SpecError
        For no graph at all, nodes whose names clash, or an edge without bandwidth or latency.
    """
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
        raise SpecError("graph", f"{type(graph).__name__} is no networkx graph", "give one")
    npus: list[str] = []
    switches: list[tuple[str, int | None]] = []
    names: dict[Any, str] = {}
    taken: set[str] = set()
    for node, data in graph.nodes(data=True):
        name = str(node)
        if UNWRITABLE.search(name):
            raise SpecError("graph", f"node {name!r} is no text in UTF-8", "give it another name")
        if name in taken:
            raise SpecError(
                "graph", f"two nodes are called {name!r}", "give each a name of its own"
            )
        names[node] = name
        taken.add(name)
        role = data.get(kind, "npu")
        if role == "npu":
            npus.append(name)
        elif role == "switch":
            switches.append((name, None))
        else:
            raise SpecError("graph", f"node {name!r}: {kind} is {role!r}", "use 'npu' or 'switch'")
    links: list[LinkSpec] = []
    for a, b, data in graph.edges(data=True):
        edge = f"graph: edge {names[a]!r} - {names[b]!r}"
        for attribute in (bandwidth, latency):
            if attribute not in data:
                raise SpecError(None, f"{edge} has no {attribute!r}", "give every edge one")
        rate = parse_bandwidth(data[bandwidth], field=f"{edge}: {bandwidth}")
        delay = parse_time(data[latency], field=f"{edge}: {latency}")
        links.append(LinkSpec(names[a], names[b], rate, delay))
        if not graph.is_directed():
            links.append(LinkSpec(names[b], names[a], rate, delay))
    return TopologySpec(
        str(getattr(graph, "name", "")) or "networkx graph",
        npus=tuple(npus),
        switches=tuple(switches),
        links=tuple(links),
        origin="graph",
    )
