"""What the law of times needs to know of a machine, and where a topology says it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hocket._core import Topology
from hocket.errors import InfeasibleError
from hocket.profiles.flows import Flows
from hocket.topology.symmetry import alike_npus

__all__ = ["Hardware", "hardware_of", "neighbour_bandwidth", "owners"]

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
    most
        What the NPU with the most sends inside its node [bytes/s], which says what its links are where
        those of another have failed; 0: all send as much.
    nics
        Links that lead out of a node; 0 where that is not known.
    is_switched
        Whether no link leads from one NPU of a node to another.
    """

    bandwidth: float
    nic_bandwidth: float = 0.0
    sums: bool = False
    npus: int = 8
    most: float = 0.0
    nics: int = 0
    is_switched: bool = True


def hardware_of(topology: Topology) -> Hardware:
    """Read off a topology what the law needs: of the slowest NPU and the slowest node.

    The bandwidth of an NPU is a maximum flow from it to the others of its node, or from them to it where
    that is less, over devices that are nearer to this node than to any other, and not over links to hosts
    and NICs: those that lead to a device and have at most a quarter of the bandwidth of the NPU's widest
    link, and all that lead to a device where a link leads from each NPU of the node to each other (but for
    a few that are missing, less than one for two NPUs). The bandwidth of the NICs is a maximum flow from
    all NPUs of a node to all others, or back. NPUs and nodes that are alike are looked at once.
    A topology that states no nodes (``groups:``) is one node.

    Raises
    ------
    InfeasibleError
        If all nodes have one NPU alone, or some NPU does not reach another.
    """
    nodes = _Nodes(topology)
    if max(map(len, nodes.groups)) < 2:
        right = "give a topology with two or more on each node, or say by groups which form one"
        raise InfeasibleError(None, "its nodes have a single NPU", right)
    found = [nodes.inside(number, npu) for number, npu in nodes.unlike_npus()]
    bandwidth, most = min(found), max(found)
    nics = 0.0
    if len(nodes.groups) > 1:
        nics = min(nodes.between(number) for number in nodes.unlike())
        if nics == 0:
            raise InfeasibleError(None, "its nodes reach no other node", "join them by links")
    _check_joined(topology)
    npus = topology.npu_count
    summing = {
        int(nodes.owner[npus + switch])
        for switch, offload in enumerate(topology.switch_offloads)
        if offload is not None and "all-reduce" in _all(offload[0])
    }
    sums = summing.issuperset(range(len(nodes.groups)))
    size = max(map(len, nodes.groups))
    most = most if most > bandwidth else 0.0
    return Hardware(bandwidth, nics, sums, size, most, nodes.leaving(), nodes.is_switched())


class _Nodes:
    """The nodes of a topology, and what flows inside and between them."""

    def __init__(self, topology: Topology) -> None:
        everything = list(range(topology.npu_count))
        self.groups = [list(group) for group in topology.groups] or [everything]
        self.owner = np.array(owners(topology, self.groups))
        self._npus = topology.npu_count
        self._links = np.array(topology.link_src), np.array(topology.link_dst)
        self._flows = Flows(topology)
        self._alike = alike_npus(topology, self.owner)
        self._joined: dict[int, bool] = {}

    def unlike(self) -> Iterator[int]:
        """Give the first of all nodes that are alike."""
        seen = set()
        for number, group in enumerate(self.groups):
            key = np.sort(self._alike[group]).tobytes()
            if key not in seen:
                seen.add(key)
                yield number

    def unlike_npus(self) -> Iterator[tuple[int, int]]:
        """Give the first of all NPUs that are alike, each with the number of its node."""
        seen = set()
        for number, group in enumerate(self.groups):
            for npu in group if len(group) > 1 else ():
                key = (len(group), int(self._alike[npu]))
                if key not in seen:
                    seen.add(key)
                    yield number, npu

    def unlike_parts(self, npus: int) -> Iterator[tuple[int, list[int]]]:
        """Give the first of all whole groups of so many neighbours that are alike, each with its node."""
        seen = set()
        for number in self.unlike():
            group = self.groups[number]
            for first in range(0, len(group) - npus + 1, npus):
                part = group[first : first + npus]
                key = self._alike[part].tobytes() + self._flows.among(part)
                if key not in seen:
                    seen.add(key)
                    yield number, part

    def inside(self, number: int, npu: int) -> float:
        """Give what an NPU sends to the others of its node, or receives where that is less [bytes/s]."""
        group = self.groups[number]
        others = [other for other in group if other != npu]
        devices = self.owner == number
        if number not in self._joined:
            self._joined[number] = self._flows.are_joined(group)
        if self._joined[number]:
            devices[self._npus :] = False
        everything = np.ones_like(devices)
        found = []
        for is_back in (False, True):
            ends = (others, [npu]) if is_back else ([npu], others)
            above = self._flows.widest(npu, is_back=is_back) // _NARROW
            flow = self._flows.most(devices, *ends, above=above)
            found.append(flow or self._flows.most(everything, *ends))
        return min(found)

    def between(self, number: int) -> float:
        """Give what a node sends to all others, or receives where that is less [bytes/s]."""
        group = self.groups[number]
        others = [npu for other in self.groups if other is not group for npu in other]
        everything = np.ones(len(self.owner), bool)
        return min(
            self._flows.most(everything, group, others), self._flows.most(everything, others, group)
        )

    def leaving(self) -> int:
        """Count the links that lead out of the node with the fewest of them; 0 of a lone node."""
        if len(self.groups) < 2:
            return 0
        starts, ends = self.owner[self._links[0]], self.owner[self._links[1]]
        numbers = starts[(starts >= 0) & (starts != ends)]
        return int(np.bincount(numbers, minlength=len(self.groups)).min())

    def is_switched(self) -> bool:
        """Say whether no link joins two NPUs of a node."""
        starts, ends = self._links
        near = (starts < self._npus) & (ends < self._npus)
        return not bool((near & (self.owner[starts] == self.owner[ends])).any())

    def near(self, number: int, group: list[int]) -> float:
        """Give what each NPU of some neighbours sends to the others of them at least [bytes/s]."""
        devices = self.owner == number
        devices[: self._npus] = False
        devices[group] = True
        return min(
            self._flows.most(devices, [npu], [other for other in group if other != npu])
            for npu in group
        )


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


def neighbour_bandwidth(topology: Topology, npus: int) -> float:
    """Give what an NPU sends within a group of so many neighbours [bytes/s], over their links and switches.

    Parameters
    ----------
    topology
        Of each node that is unlike those before, each whole group is looked at: the slowest counts.
    npus
        Of a group, at least 2 and at most those of a node.
    """
    nodes = _Nodes(topology)
    return min(nodes.near(number, group) for number, group in nodes.unlike_parts(npus))


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
