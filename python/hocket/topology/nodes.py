"""Builders of clusters whose NPUs form nodes."""

from __future__ import annotations

from hocket import _core
from hocket._checks import whole
from hocket._core import Topology
from hocket.topology.families import count_of, link_of
from hocket.units import Duration, Quantity, parse_bandwidth, parse_time

__all__ = ["box", "planes", "rail"]


def rail(
    nodes: int,
    npus: int,
    spines: int = 0,
    *,
    bandwidth: Quantity,
    latency: Duration,
    node_bandwidth: Quantity | None = None,
    node_latency: Duration | None = None,
) -> Topology:
    """Give a rail-optimised pod: NPU i of every node is linked to rail switch i.

    The NPUs of a node are joined by a switch, as of NVLink. The nodes are its groups.

    Parameters
    ----------
    nodes, npus
        Nodes, and NPUs in each, which is the number of rails.
    spines
        Switches to each of which every rail switch is linked. Without any, NPUs of unlike places reach
        each other through their nodes.
    bandwidth, latency
        Of each link to a rail switch or a spine.
    node_bandwidth, node_latency
        Of each link between an NPU and its node's switch; like the others by default.

    References
    ----------
    Wang et al.: Rail-only, a low-cost high-performance network for training LLMs with trillion
    parameters, 2024.
    """
    links = _links(bandwidth, latency, node_bandwidth, node_latency)
    tops = whole("spines", spines, 0, (1 << 32) - 1)
    return _core.build_rail(count_of("nodes", nodes), count_of("npus", npus), tops, links)


def box(
    nodes: int,
    npus: int,
    nics: int | None = None,
    *,
    bandwidth: Quantity,
    latency: Duration,
    node_bandwidth: Quantity | None = None,
    node_latency: Duration | None = None,
) -> Topology:
    """Give nodes of NPUs, each with network interfaces (NICs), all of which one switch joins.

    The NPUs of a node are joined by a switch of their own. The nodes are its groups.

    Parameters
    ----------
    nodes, npus
        Nodes, and NPUs in each.
    nics
        Network interfaces of each node, one for each NPU by default; NPUs share them evenly.
    bandwidth, latency
        Of each link to and from a NIC: from NPU to NPU of another node there are four.
    node_bandwidth, node_latency
        Of each link between an NPU and its node's switch; like the others by default.
    """
    links = _links(bandwidth, latency, node_bandwidth, node_latency)
    each = count_of("npus", npus)
    ports = each if nics is None else count_of("nics", nics)
    return _core.build_boxes(count_of("nodes", nodes), each, ports, links)


def planes(npus: int, planes: int, *, bandwidth: Quantity, latency: Duration) -> Topology:
    """Give NPUs, each linked to every one of some switches, as the chips of an NVLink switch system.

    The shipped machine ``gb200_nvl72`` is 72 of them at 18 switches.
    """
    counts = (count_of("npus", npus), count_of("planes", planes))
    return _core.build_planes(*counts, *link_of(bandwidth, latency))


def _links(
    bandwidth: Quantity,
    latency: Duration,
    node_bandwidth: Quantity | None,
    node_latency: Duration | None,
) -> tuple[int, int, int, int]:
    rate, delay = link_of(bandwidth, latency)
    near, soon = rate, delay
    if node_bandwidth is not None:
        near = parse_bandwidth(node_bandwidth, field="node_bandwidth")
    if node_latency is not None:
        soon = parse_time(node_latency, field="node_latency")
    return near, soon, rate, delay
