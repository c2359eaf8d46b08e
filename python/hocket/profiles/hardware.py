"""The facts about a machine that the model of times needs, read from a topology."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hocket._core import Topology
from hocket.errors import InfeasibleError
from hocket.profiles.flows import Flows
from hocket.topology.symmetry import alike_npus

if TYPE_CHECKING:
    from numpy.typing import NDArray

PCI_SHARE = 12.0 * 65 / (16 * 64)
"""What NCCL counts of the raw bandwidth of PCI Express: 12 GB/s of 16 lanes of 3.0."""
_TIMES = 2
"""Channels of a NIC at most: NCCL's search halves the rate of a channel at most (src/graph/search.cc)."""
_NARROW = 4
"""A link to a switch with at most this part of the widest link's bandwidth is for hosts and NICs."""


@dataclass(frozen=True)
class Hardware:
    """A machine by its nominal bandwidths, one direction.

    Attributes
    ----------
    bandwidth
        What an NPU sends inside its node, and what every cut between its NPUs lets through [bytes/s].
    nic_bandwidth
        What a node sends to others over its NICs if all its channels send as much [bytes/s]; 0 for a single
        node. If NICs differ, slow ones are left out, or fast ones have several channels.
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
    on_pci
        Where some NPUs of a node reach each other over its hosts alone, as by PCI Express: `bandwidth` as
        NCCL counts it, of PCI Express its share and of links between processors all [bytes/s]; 0 elsewhere.
    slowest
        What a node sends if all its NICs send no more than the slowest [bytes/s]; 0 if all are alike.
    sums_between
        Whether switches between nodes sum (SHARP).
    by_processor
        Whether processors serve the NICs (sockets).
    without
        Protocols that are not used: ``"ll"``, ``"ll128"``.
    spread, nic_spread
        What an NPU sends to all others of its node alike at most, and a node to all others [bytes/s]; 0:
        as `bandwidth` and `nic_bandwidth`.
    """

    bandwidth: float
    nic_bandwidth: float = 0.0
    sums: bool = False
    npus: int = 8
    most: float = 0.0
    nics: int = 0
    is_switched: bool = True
    on_pci: float = 0.0
    spread: float = 0.0
    nic_spread: float = 0.0
    slowest: float = 0.0
    sums_between: bool = False
    by_processor: bool = False
    without: tuple[str, ...] = ()

    @property
    def about_nics(self) -> str | None:
        """What `nic_bandwidth` assumes if NICs differ."""
        if not self.slowest:
            return None
        return (
            f"links out of a node differ, the slowest has {self.slowest / self.nics * 1e-9:g} GB/s: a node "
            f"sends {self.nic_bandwidth * 1e-9:g} GB/s if NCCL knows the rates; if not, all channels wait "
            f"for the slowest, and it sends {self.slowest * 1e-9:g}"
        )

    @property
    def is_on_pci(self) -> bool:
        """Whether some NPUs of a node reach each other over its hosts alone."""
        return self.on_pci > 0


_RECENT: deque[tuple[bool, Topology, Hardware]] = deque(maxlen=8)
"""The last topologies that were looked at: a sweep asks about one again and again."""


def hardware_for(kind: str, topology: Topology) -> Hardware:
    """Do as :func:`hardware_of`; for an all-to-all say also what NPUs send to all others alike."""
    is_all = kind == "all-to-all"
    for known, network, hardware in _RECENT:
        if network is topology and known == is_all:
            return hardware
    found = _hardware_for(kind, topology)
    _RECENT.append((is_all, topology, found))
    return found


def _hardware_for(kind: str, topology: Topology) -> Hardware:
    found = hardware_of(topology, may_be_alone=True)
    if kind != "all-to-all":
        return found
    nodes = _Nodes(topology)
    inside = [nodes.spread(number) for number in nodes.unlike() if len(nodes.groups[number]) > 1]
    between = nodes.spread_between() if len(nodes.groups) > 1 else 0.0
    return replace(
        found,
        spread=min([found.bandwidth, *inside]),
        nic_spread=min(found.nic_bandwidth, between),
    )


def hardware_of(topology: Topology, *, may_be_alone: bool = False) -> Hardware:
    """Read off a topology what the law needs: of the slowest NPU and the slowest node.

    The bandwidth of an NPU is a maximum flow from it to the others of its node, or from them to it where
    that is less, over devices that are nearer to this node than to any other, and not over links to hosts
    and NICs: those that lead to a device and have at most a quarter of the bandwidth of the NPU's widest
    link or that of PCI Express, and all that lead to a device where a link leads from each NPU of the node
    to each other (but for a few that are missing, less than one for two NPUs). No more counts than the
    narrowest cut between NPUs of the node lets through; where those links do not join all NPUs, over all
    links. The bandwidth of the NICs is what the narrowest cut between nodes lets through, and no more than
    channels carry that all send as much. NPUs and nodes
    that are alike are looked at once. A topology that states no nodes (``groups:``) is one node.

    Parameters
    ----------
    topology
        The machine.
    may_be_alone
        Whether each node may have a single NPU; nothing moves inside nodes then, and `bandwidth` is that of
        the NICs.

    Raises
    ------
    InfeasibleError
        If all nodes have one NPU alone, or some NPU does not reach another.
    """
    nodes = _Nodes(topology)
    is_alone = max(map(len, nodes.groups)) < 2
    if is_alone and not (may_be_alone and len(nodes.groups) > 1):
        right = "give a topology with two or more on each node, or say by groups which form one"
        raise InfeasibleError(None, "its nodes have a single NPU", right)
    nodes.check_joined(topology)
    if is_alone:
        nics, slowest = nodes.between()
        return Hardware(nics, nics, npus=1, nics=nodes.leaving(), slowest=slowest)
    found = [nodes.inside(number, npu) for number, npu in nodes.unlike_npus()]
    cuts = [
        nodes.narrowest(number, min(found))
        for number in nodes.unlike()
        if len(nodes.groups[number]) > 1
    ]
    bandwidth, most = min(*found, *(cut for cut, _ in cuts)), max(found)
    on_pci = min((counted for _, counted in cuts if counted > 0), default=0.0)
    nics, slowest = nodes.between() if len(nodes.groups) > 1 else (0.0, 0.0)
    npus = topology.npu_count
    summing = {
        int(nodes.owner[npus + switch])
        for switch, offload in enumerate(topology.switch_offloads)
        if offload is not None and "all-reduce" in _all(offload[0])
    }
    sums = summing.issuperset(range(len(nodes.groups)))
    size = max(map(len, nodes.groups))
    most = most if most > bandwidth else 0.0
    leaving, is_switched = nodes.leaving(), nodes.is_switched()
    return Hardware(
        bandwidth, nics, sums, size, most, leaving, is_switched, on_pci, slowest=slowest
    )


class _Nodes:
    """The nodes of a topology, and what flows inside and between them."""

    def __init__(self, topology: Topology) -> None:
        everything = list(range(topology.npu_count))
        self.groups = [list(group) for group in topology.groups] or [everything]
        self.owner = np.array(owners(topology, self.groups))
        self._npus = topology.npu_count
        self._links = np.array(topology.link_src), np.array(topology.link_dst)
        self._rates = topology.link_bandwidth.astype(np.float64)
        self._flows = Flows(topology)
        self._alike = alike_npus(topology, self.owner)
        self._joined: dict[int, bool] = {}

    def unlike(self) -> Iterator[int]:
        """Return the first of all nodes that are equal."""
        seen = set()
        for number, group in enumerate(self.groups):
            key = np.sort(self._alike[group]).tobytes()
            if key not in seen:
                seen.add(key)
                yield number

    def unlike_npus(self) -> Iterator[tuple[int, int]]:
        """Return the first of all NPUs that are equal, each with the number of its node."""
        seen = set()
        for number, group in enumerate(self.groups):
            for npu in group if len(group) > 1 else ():
                key = (len(group), int(self._alike[npu]))
                if key not in seen:
                    seen.add(key)
                    yield number, npu

    def unlike_parts(self, npus: int) -> Iterator[tuple[int, list[int]]]:
        """Return the first of all whole groups of so many neighbours that are equal, each with its node."""
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
        """Return what an NPU sends to the others of its node, or receives where that is less [bytes/s]."""
        devices = self._inside(number)
        others = [other for other in self.groups[number] if other != npu]
        found = []
        for is_back in (False, True):
            ends = (others, [npu]) if is_back else ([npu], others)
            above = self._flows.widest(npu, is_back=is_back) // _NARROW
            flow = self._flows.most(devices, *ends, above=above)
            found.append(flow or self._flows.most(np.ones_like(devices), *ends))
        return min(found)

    def narrowest(self, number: int, bandwidth: float) -> tuple[float, float]:
        """Return the bandwidth of the narrowest cut in a node, also as NCCL counts it through hosts.

        Where links other than to hosts do not join all NPUs, hosts carry it if their links are those of PCI
        Express, or carry less than `bandwidth`, what each NPU sends; else the second is 0 [bytes/s].
        """
        group = self.groups[number]
        parts = [[npu] for npu in group]
        above = max(map(self._flows.widest, group)) // _NARROW
        cut = self._flows.narrowest(self._inside(number), parts, above=above)
        if cut > 0:
            return cut, 0.0
        devices = self.owner == number
        cut = self._flows.narrowest(devices, parts)
        if cut > 0 and (cut < bandwidth or self._flows.has_pcie(devices)):
            return cut, self._flows.narrowest(devices, parts, pcie=PCI_SHARE)
        return cut or self._flows.narrowest(np.ones_like(devices), parts), 0.0

    def spread(self, number: int) -> float:
        """Return what each NPU of a node sends to all others of it alike at most [bytes/s]."""
        group = self.groups[number]
        parts = [[npu] for npu in group]
        above = max(map(self._flows.widest, group)) // _NARROW
        spread = self._flows.spread
        return (
            spread(self._inside(number), parts, above=above)
            or spread(self.owner == number, parts)
            or spread(np.ones(len(self.owner), bool), parts)
        )

    def spread_between(self) -> float:
        """Return what each node sends to all others alike at most [bytes/s]."""
        return self._flows.spread(np.ones(len(self.owner), bool), self.groups)

    def _inside(self, number: int) -> NDArray[np.bool_]:
        """Return for each device whether it carries what stays in a node."""
        devices: NDArray[np.bool_] = self.owner == number
        if number not in self._joined:
            self._joined[number] = self._flows.are_joined(self.groups[number])
        if self._joined[number]:
            devices[self._npus :] = False
        return devices

    def between(self) -> tuple[float, float]:
        """Return what nodes send if all channels send as much, and if all links out of them do [bytes/s].

        The first is what the narrowest cut between nodes lets through if links out of all nodes are alike;
        then the second is 0. If not, each node gives its channels the links on which they send most: of so
        many channels the slowest sets the pace of all nodes.
        """
        cut = self._flows.narrowest(np.ones(len(self.owner), bool), self.groups)
        rates = [each for each in self._ways_out() if len(each)]
        if not rates or min(map(min, rates)) == max(map(max, rates)):
            return cut, 0.0
        count = _TIMES * min(map(len, rates))
        parts = np.arange(1, _TIMES + 1)
        paces = [np.sort((each[:, None] / parts).ravel())[::-1][:count] for each in rates]
        carried = float((np.arange(1, count + 1) * np.min(paces, axis=0)).max())
        slowest = min(float(len(each) * each.min()) for each in rates)
        return min(cut, float(f"{carried:.6g}")), min(cut, slowest)

    def _ways_out(self) -> list[NDArray[np.float64]]:
        """Return for each node what its links out carry, no more than leads to them [bytes/s]."""
        starts, ends = self._links
        inside = self.owner[starts] == self.owner[ends]
        out = ~inside & (self.owner[starts] >= 0)
        count = len(self.owner)
        to = np.bincount(ends[inside], self._rates[inside], count)
        away = np.bincount(starts[out], self._rates[out], count)
        scale = np.ones(count)
        is_switch = np.arange(count) >= self._npus
        shared = is_switch & (away > to)
        scale[shared] = to[shared] / away[shared]
        rates = self._rates * scale[starts]
        out &= rates > 0
        return [rates[out & (self.owner[starts] == node)] for node in range(len(self.groups))]

    def check_joined(self, topology: Topology) -> None:
        """Refuse a topology with two NPUs of which one does not reach the other."""
        both = self._flows.reached() & self._flows.reached(is_back=True)
        apart = np.flatnonzero(~both[: self._npus])
        if apart.size:
            names = topology.device_names
            wrong = f"{names[0]!r} and {names[int(apart[0])]!r} do not reach each other both ways"
            raise InfeasibleError(None, wrong, "join them by links, or leave one of them out")

    def leaving(self) -> int:
        """Count the links that lead out of the node with the fewest of them; 0 of a lone node."""
        if len(self.groups) < 2:
            return 0
        starts, ends = self.owner[self._links[0]], self.owner[self._links[1]]
        numbers = starts[(starts >= 0) & (starts != ends)]
        return int(np.bincount(numbers, minlength=len(self.groups)).min())

    def is_switched(self) -> bool:
        """Return whether no link joins two NPUs of a node."""
        starts, ends = self._links
        near = (starts < self._npus) & (ends < self._npus)
        return not bool((near & (self.owner[starts] == self.owner[ends])).any())

    def near(self, number: int, group: list[int]) -> float:
        """Return what every cut between some neighbours lets through [bytes/s]."""
        devices = self.owner == number
        devices[: self._npus] = False
        devices[group] = True
        return self._flows.narrowest(devices, [[npu] for npu in group])


def neighbour_bandwidth(topology: Topology, npus: int) -> float:
    """Return what every cut in a group of so many neighbours lets through [bytes/s].

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
    """Return for each device the node that it is nearest to in links, or -1 where several are as near."""
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
