"""What the law of times needs to know of a machine, and where a topology says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hocket._core import Topology
from hocket.errors import InfeasibleError

__all__ = ["Hardware", "hardware_of", "neighbour_bandwidth", "owners"]

_LARGEST_CAPACITY = (1 << 31) - 1
_NARROW = 4
"""A link to a switch with at most this part of the widest link's bandwidth is for hosts and NICs."""


@dataclass(frozen=True)
class Hardware:
    """A machine by its nominal bandwidths, one direction.

    Attributes
    ----------
    bandwidth
        What an NPU sends inside its node [bytes/s].
    nic_bandwidth
        What a node sends to others over all its NICs [bytes/s]; 0 for a single node.
    sums
        Whether switches inside the node sum and multicast (NVLink SHARP).
    npus
        Of a node.
    """

    bandwidth: float
    nic_bandwidth: float = 0.0
    sums: bool = False
    npus: int = 8


def hardware_of(topology: Topology) -> Hardware:
    """Read off a topology what the law needs.

    The bandwidth of an NPU is a maximum flow from it to the others of its node, over devices that are
    nearer to this node than to any other, and not over links to hosts and NICs: those that lead to a
    device and have at most a quarter of the bandwidth of the NPU's widest link, and all that lead to a
    device where a link leads from each NPU of the node to each other. The bandwidth of the NICs is a
    maximum flow from all NPUs of a node to all others.
    A topology that states no nodes (``groups:``) is one node.

    Raises
    ------
    InfeasibleError
        If a node has one NPU alone, or some NPU does not reach another.
    """
    groups = [list(group) for group in topology.groups] or [list(range(topology.npu_count))]
    node = groups[0]
    if len(node) < 2:
        right = "give a topology with two or more on each node, or say by groups which form one"
        raise InfeasibleError(None, "its nodes have a single NPU", right)
    owner = owners(topology, groups)
    everything = set(range(topology.device_count))
    inside = {device for device, group in enumerate(owner) if group == 0}
    first = np.isin(topology.link_src, node[:1])
    widest = int(topology.link_bandwidth[first].max(initial=0))
    if _are_joined(topology, node):
        inside = set(node)
    bandwidth = _flow(topology, inside, node[:1], node[1:], above=widest // _NARROW)
    if bandwidth == 0:
        bandwidth = _flow(topology, everything, node[:1], node[1:])
    others = [npu for group in groups[1:] for npu in group]
    nics = _flow(topology, everything, node, others) if others else 0.0
    if others and nics == 0:
        raise InfeasibleError(None, "its nodes reach no other node", "join them by links")
    _check_joined(topology)
    offloads = topology.switch_offloads
    npus = topology.npu_count
    sums = any(
        offload is not None and owner[npus + switch] == 0 and "all-reduce" in _all(offload[0])
        for switch, offload in enumerate(offloads)
    )
    return Hardware(bandwidth, nics, sums, len(node))


def _check_joined(topology: Topology) -> None:
    """Refuse a topology with two NPUs of which one does not reach the other."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count, npus = topology.device_count, topology.npu_count
    ones = np.ones(topology.link_count, np.int8)
    links = csr_array((ones, (topology.link_src, topology.link_dst)), shape=(count, count))
    _, part = connected_components(links, directed=True, connection="strong")
    apart = np.flatnonzero(part[:npus] != part[0])
    if apart.size:
        names = topology.device_names
        wrong = f"{names[0]!r} and {names[int(apart[0])]!r} do not reach each other both ways"
        raise InfeasibleError(None, wrong, "join them by links, or leave one of them out")


def _are_joined(topology: Topology, node: list[int]) -> bool:
    """Say whether a link leads from each NPU of a node to each other."""
    ends = zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True)
    members = set(node)
    joined = {(src, dst) for src, dst in ends if src in members and dst in members}
    return len(joined) == len(node) * (len(node) - 1)


def neighbour_bandwidth(topology: Topology, npus: int) -> float:
    """Give what an NPU sends within a group of so many neighbours [bytes/s], over their links and switches.

    Parameters
    ----------
    topology
        Whose first node is looked at; nodes are alike.
    npus
        Of the group, at least 2 and at most those of a node.
    """
    groups = [list(group) for group in topology.groups] or [list(range(topology.npu_count))]
    group = groups[0][:npus]
    owner = owners(topology, groups)
    switches = {
        device for device, of in enumerate(owner) if of == 0 and device >= topology.npu_count
    }
    return _flow(topology, {*group, *switches}, group[:1], group[1:])


def _all(operations: Sequence[str]) -> set[str]:
    both = {"sum", "multicast"} <= set(operations)
    return {*operations, "all-reduce"} if both else set(operations)


def owners(topology: Topology, groups: list[list[int]]) -> list[int]:
    """Give for each device the node that it is nearest to in links, or -1 where several are as near."""
    neighbours: list[set[int]] = [set() for _ in range(topology.device_count)]
    for src, dst in zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True):
        neighbours[src].add(dst)
        neighbours[dst].add(src)
    owner = [-2] * topology.device_count
    for number, group in enumerate(groups):
        for npu in group:
            owner[npu] = number
    reached = [npu for group in groups for npu in group]
    while reached:
        found: dict[int, set[int]] = {}
        for device in reached:
            for other in neighbours[device]:
                if owner[other] == -2:
                    found.setdefault(other, set()).add(owner[device])
        for device, owners in found.items():
            owner[device] = owners.pop() if len(owners) == 1 else -1
        reached = [device for device in found if owner[device] != -1]
    return owner


def _flow(
    topology: Topology, devices: set[int], sources: list[int], ends: list[int], *, above: int = 0
) -> float:
    """Give the largest flow from some NPUs to others over the links among some devices [bytes/s].

    Of links that lead to a switch or away from one, only those above some bandwidth count.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    count = topology.device_count
    links: dict[tuple[int, int], int] = {}
    columns = (topology.link_src, topology.link_dst, topology.link_bandwidth)
    for src, dst, rate in zip(*(column.tolist() for column in columns), strict=True):
        is_direct = max(src, dst) < topology.npu_count
        if src in devices and dst in devices and (is_direct or rate > above):
            links[src, dst] = links.get((src, dst), 0) + rate
    total = max(sum(links.values()), 1)
    unit = max(1, -(-total // _LARGEST_CAPACITY))
    for each in sources:
        links[count, each] = unit * _LARGEST_CAPACITY
    for each in ends:
        links[each, count + 1] = unit * _LARGEST_CAPACITY
    keys = list(links)
    units = np.array([min(rate // unit, _LARGEST_CAPACITY) for rate in links.values()], np.int32)
    ends_of = np.array(keys, np.int32).T
    capacities = csr_array((units, (ends_of[0], ends_of[1])), shape=(count + 2, count + 2))
    found = float(maximum_flow(capacities, count, count + 1).flow_value) * unit
    return float(f"{found:.6g}")  # capacities were rounded to the unit
