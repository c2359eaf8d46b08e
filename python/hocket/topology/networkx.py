"""Topologies from networkx graphs, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hocket._checks import instance_of
from hocket._core import Topology
from hocket.errors import SpecError
from hocket.topology.build import build_topology
from hocket.topology.spec import LinkSpec, OffloadSpec, TopologySpec
from hocket.topology.text import UNWRITABLE
from hocket.units import Duration, Quantity, parse_bandwidth, parse_time, shown


def from_networkx(
    graph: Any,
    *,
    bandwidth: str = "bandwidth",
    latency: str = "latency",
    kind: str = "kind",
    default_bandwidth: Quantity | None = None,
    default_latency: Duration | None = None,
) -> Topology:
    """Return a network from a networkx graph, directed or not, with or without parallel edges.

    Parameters
    ----------
    graph
        Nodes are NPUs unless their attribute ``kind`` is ``"switch"``; edges of an undirected graph go
        both ways. A switch may have a ``limit`` of its own, and ``offload``: a mapping of ``operations``,
        ``rate`` and ``trees`` as :func:`offloaded` takes them. The graph's attribute ``switching`` says how
        devices pass messages on, and the attribute ``group`` of its NPUs, where all have one, which of
        them form a node.
    bandwidth, latency, kind
        Names of the attributes that hold these: text with a unit, or numbers in bytes per second and
        seconds.
    default_bandwidth, default_latency
        Of edges that have none, such as ``25e9`` or ``"700 ns"``; without, an edge needs its own.

    Raises
    ------
    SpecError
        For no graph at all, nodes whose names clash, or an edge without bandwidth or latency.

    Examples
    --------
    >>> import networkx as nx, hocket as hk
    >>> hk.topology.from_networkx(nx.petersen_graph(), default_bandwidth=25e9, default_latency=1e-6)
    <Topology "Petersen Graph": 10 NPUs, 0 switches, 30 links>
    """
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
        raise SpecError("graph", f"{type(graph).__name__} is not a networkx graph", "give one")
    for field, attribute in (("bandwidth", bandwidth), ("latency", latency), ("kind", kind)):
        right = f"name the attribute; default_{field}= is one for all edges"
        instance_of(str, field, attribute, right if field != "kind" else "name the attribute")
    npus, switches, names = _devices(graph, kind)
    links: list[LinkSpec] = []
    for a, b, data in graph.edges(data=True):
        edge = f"graph: edge {names[a]!r} - {names[b]!r}"
        value, field = _value(data, edge, "bandwidth", bandwidth, default_bandwidth)
        rate = parse_bandwidth(value, field=field)
        value, field = _value(data, edge, "latency", latency, default_latency)
        delay = parse_time(value, field=field)
        links.append(LinkSpec(names[a], names[b], rate, delay))
        if not graph.is_directed():
            links.append(LinkSpec(names[b], names[a], rate, delay))
    switching = graph.graph.get("switching")
    spec = TopologySpec(
        str(getattr(graph, "name", "")) or "networkx graph",
        npus=tuple(npus),
        switches=tuple(switches),
        links=tuple(links),
        switching=None if switching is None else str(switching),
        groups=_groups(graph, names, npus),
        offloads=_offloads(graph, names),
        origin="graph",
    )
    return build_topology(spec)


def to_networkx(topology: Topology) -> Any:
    """Return a network as a directed networkx graph with parallel edges.

    Nodes are the names of devices, with ``kind`` (``"npu"`` or ``"switch"``), a switch's ``limit``
    [bytes/s] and ``offload`` where it has them, and an NPU's ``group`` (the number of its node) where it
    has one. Edges are links, with ``bandwidth`` [bytes/s] and ``latency`` [s] as numbers. The graph has
    ``name`` and ``switching``. :func:`from_networkx` gives the same network back, less the dimensions of
    a product; its nodes have their NPUs in the order of their numbers.

    Returns
    -------
    networkx.MultiDiGraph
    """
    import networkx as nx

    instance_of(Topology, "topology", topology, "make one, as by hk.topology.load(...)")
    graph = nx.MultiDiGraph(name=topology.name, switching=topology.switching)
    names = topology.device_names
    for name in names[: topology.npu_count]:
        graph.add_node(name, kind="npu")
    for i, group in enumerate(topology.groups):
        for npu in group:
            graph.nodes[names[npu]]["group"] = i
    switches = zip(names[topology.npu_count :], topology.switch_limits, strict=True)
    for name, limit in switches:
        graph.add_node(name, kind="switch", **({} if limit is None else {"limit": limit}))
    for name, can in zip(names[topology.npu_count :], topology.switch_offloads, strict=False):
        if can is not None:
            operations, rate, trees = can
            given = {"operations": list(operations), "rate": rate, "trees": trees}
            graph.nodes[name]["offload"] = {k: v for k, v in given.items() if v is not None}
    columns = (
        topology.link_src,
        topology.link_dst,
        topology.link_bandwidth,
        topology.link_latency_ps,
    )
    for src, dst, rate, delay in zip(*(column.tolist() for column in columns), strict=True):
        graph.add_edge(names[src], names[dst], bandwidth=rate, latency=delay / 10**12)
    return graph


def _devices(
    graph: Any, kind: str
) -> tuple[list[str], list[tuple[str, int | None]], dict[Any, str]]:
    """Return the NPUs, the switches with their limits, and the name of each node."""
    npus: list[str] = []
    switches: list[tuple[str, int | None]] = []
    names: dict[Any, str] = {}
    taken: set[str] = set()
    for node, data in graph.nodes(data=True):
        name = str(node)
        if UNWRITABLE.search(name):
            raise SpecError("graph", f"node {name!r} is not text in UTF-8", "give it another name")
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
            limit = data.get("limit")
            field = f"graph: node {name!r}: limit"
            switches.append((name, None if limit is None else parse_bandwidth(limit, field=field)))
        else:
            raise SpecError("graph", f"node {name!r}: {kind} is {role!r}", "use 'npu' or 'switch'")
    return npus, switches, names


def _offloads(graph: Any, names: dict[Any, str]) -> tuple[OffloadSpec, ...]:
    """Return what switches can do by the attribute ``offload`` of their nodes."""
    found = []
    for node, data in graph.nodes(data=True):
        can = data.get("offload")
        if can is None:
            continue
        field = f"graph: node {names[node]!r}: offload"
        keys = ("operations", "rate", "trees")
        if not isinstance(can, Mapping) or "operations" not in can or not set(can) <= set(keys):
            right = 'give a mapping, as {"operations": ["sum"]}, with rate and trees or without'
            raise SpecError(field, f"{shown(can)} is not valid", right)
        rate = can.get("rate")
        bandwidth = None if rate is None else parse_bandwidth(rate, field=f"{field}: rate")
        given = (names[node],), tuple(can["operations"]), bandwidth, can.get("trees")
        found.append(OffloadSpec(*given))
    return tuple(found)


def _groups(graph: Any, names: dict[Any, str], npus: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return the nodes by the attribute ``group`` of the NPUs, in their order; none if no NPU has one."""
    members: dict[Any, list[str]] = {}
    lost = ""
    kinds = set(npus)
    for node, data in graph.nodes(data=True):
        if names[node] not in kinds:
            continue
        if "group" in data:
            members.setdefault(data["group"], []).append(names[node])
        else:
            lost = lost or names[node]
    if members and lost:
        raise SpecError("graph", f"node {lost!r} has no 'group'", "give every NPU one, or none")
    return tuple(tuple(group) for group in members.values())


def _value(
    data: dict[str, Any], edge: str, what: str, attribute: str, default: object
) -> tuple[object, str]:
    """Return a quantity of an edge, and what to call it in messages."""
    if attribute in data:
        return data[attribute], f"{edge}: {attribute}"
    if default is not None:
        return default, f"default_{what}"
    remedy = f"give every edge one, or default_{what}="
    if attribute[:1].isdecimal():
        remedy = f"did you mean default_{what}={attribute!r}?"
    raise SpecError(None, f"{edge} has no {attribute!r}", remedy)
