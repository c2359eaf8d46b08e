"""The structure of a large network: groups within groups, their numbers and kinds of links."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from hocket.units import format_bandwidth, format_time_ps

if TYPE_CHECKING:
    from hocket import _core

_MIN_NPUS = 2
"""Of a group that is drawn as one."""


@dataclass(frozen=True)
class Group:
    """Devices that belong together, such as a box, the hosts of a ToR, or a pod."""

    tiers: tuple[tuple[int, ...], ...]
    """Switches that join the groups within, a tuple for each tier, the highest first."""
    npus: tuple[int, ...]
    """NPUs that are in no group within."""
    children: tuple[Group, ...]
    """Groups within."""

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """All devices, those of the groups within among them, sorted."""
        own = [device for tier in self.tiers for device in tier]
        within = [device for child in self.children for device in child.devices]
        return tuple(sorted([*own, *self.npus, *within]))

    @cached_property
    def npu_count(self) -> int:
        """The number of NPUs, including those of the groups within."""
        return len(self.npus) + sum(child.npu_count for child in self.children)


@dataclass(frozen=True)
class LinkKind:
    """Links between two kinds of devices, of one bandwidth and latency."""

    ends: tuple[str, str]
    bandwidth: int
    """Bytes per second."""
    latency_ps: int
    count: int
    """How many directed links."""
    is_both_ways: bool
    """Whether as many lead one way as the other."""

    def __str__(self) -> str:
        src, dst = self.ends
        between = f"between {src}s" if src == dst else f"{src} – {dst}"
        if self.is_both_ways:
            plural = "s"[: self.count // 2 != 1]
            count = f"{self.count // 2:,} link{plural} each way"
        else:
            count = f"{self.count:,} directed link{'s'[: self.count != 1]}"
        rate = format_bandwidth(self.bandwidth)
        return f"{between}: {count}, {rate}, {format_time_ps(self.latency_ps)}"


def device_kinds(topology: _core.Topology) -> list[str]:
    """Return the kind of each device: what is left of its name without numbers.

    What comes before the last number but one is left out (``b0nic3`` is a ``nic``) unless kinds
    would fall together. NPUs of a network where all are of one kind are called ``NPU``.
    """
    patterns = [re.sub(r"\d+", "*", name).rstrip("*_-.") or name for name in topology.device_names]
    short = {each: each.rsplit("*", 1)[-1] for each in dict.fromkeys(patterns)}
    alone = Counter(short.values())
    kinds = [short[each] if alone[short[each]] == 1 and short[each] else each for each in patterns]
    npus = topology.npu_count
    if len(set(kinds[:npus])) == 1 and kinds[0] not in kinds[npus:]:
        kinds[:npus] = ["NPU"] * npus
    return kinds


def link_kinds(topology: _core.Topology) -> list[LinkKind]:
    """Count links by the kinds of their ends, bandwidth and latency, the most first."""
    kinds = device_kinds(topology)
    order = {kind: i for i, kind in enumerate(dict.fromkeys(kinds))}
    counts: dict[tuple[str, str, int, int], list[int]] = defaultdict(lambda: [0, 0])
    columns = (topology.link_src, topology.link_dst)
    columns += (topology.link_bandwidth, topology.link_latency_ps)  # type: ignore[assignment]
    for src, dst, rate, delay in zip(*(column.tolist() for column in columns), strict=True):
        ends = (kinds[src], kinds[dst])
        is_back = order[ends[0]] > order[ends[1]] or (ends[0] == ends[1] and src > dst)
        key = (*(ends[::-1] if is_back else ends), rate, delay)
        counts[key][is_back] += 1
    found = [
        LinkKind((a, b), rate, delay, sum(ways), ways[0] == ways[1])
        for (a, b, rate, delay), ways in counts.items()
    ]
    return sorted(found, key=lambda kind: -kind.count)


def groups_of(topology: _core.Topology) -> Group:
    """Find groups within groups: what stays together where the switches on top are taken away.

    Switches farthest from any NPU are on top, of those equally far the fewest of one kind.

    Complexity: O((devices + links) x depth).
    """
    npus = topology.npu_count
    near: list[set[int]] = [set() for _ in range(topology.device_count)]
    for src, dst in zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True):
        near[src].add(dst)
        near[dst].add(src)
    levels = _levels(near, npus)
    kinds = device_kinds(topology)

    def split(devices: list[int]) -> Group:
        tiers: dict[tuple[int, str], list[int]] = defaultdict(list)
        for device in devices:
            if device >= npus:
                tiers[levels[device], kinds[device]].append(device)
        rest, taken = set(devices), []
        for key in sorted(tiers, key=lambda key: (-key[0], len(tiers[key]))):
            rest -= set(tiers[key])
            taken.append(tuple(tiers[key]))
            parts = _components(sorted(rest), rest, near)
            has_npus = [sum(device < npus for device in part) for part in parts]
            if len(parts) > 1 and min(has_npus) >= _MIN_NPUS:
                return Group(tuple(taken), (), tuple(split(part) for part in parts))
        own = [device for device in devices if device < npus]
        return _by_switch(own, taken, near) or Group(tuple(taken), tuple(own), ())

    return split(list(range(topology.device_count)))


def _by_switch(npus: list[int], tiers: list[tuple[int, ...]], near: list[set[int]]) -> Group | None:
    """Group NPUs by the one switch that each has, if there are several switches and all have some."""
    hosts: dict[int, list[int]] = {switch: [] for tier in tiers for switch in tier}
    for npu in npus:
        if len(near[npu]) != 1 or not near[npu] <= set(hosts):
            return None
        hosts[min(near[npu])].append(npu)
    if len(hosts) < 2 or min(map(len, hosts.values())) < _MIN_NPUS:
        return None
    return Group((), (), tuple(Group(((each,),), tuple(own), ()) for each, own in hosts.items()))


def _levels(near: list[set[int]], npus: int) -> list[int]:
    """Return how far each device is from an NPU; what none reaches is on top."""
    levels = [0] * npus + [-1] * (len(near) - npus)
    front = list(range(npus))
    while front:
        new = []
        for device in front:
            for other in near[device]:
                if levels[other] < 0:
                    levels[other] = levels[device] + 1
                    new.append(other)
        front = new
    return [max(levels, default=0) + 1 if level < 0 else level for level in levels]


def _components(order: list[int], inside: Collection[int], near: list[set[int]]) -> list[list[int]]:
    seen: set[int] = set()
    found = []
    for start in order:
        if start in seen:
            continue
        seen.add(start)
        part = [start]
        for device in part:
            new = [other for other in near[device] if other in inside and other not in seen]
            seen.update(new)
            part.extend(new)
        found.append(sorted(part))
    return found


def alike(groups: Iterable[Group], kinds: Sequence[str]) -> list[list[Group]]:
    """Put groups of the same shape together: as many devices of each kind, in groups as many."""
    found: dict[object, list[Group]] = {}
    for group in groups:
        found.setdefault(_shape(group, kinds), []).append(group)
    return list(found.values())


def _shape(group: Group, kinds: Sequence[str]) -> object:
    tiers = tuple((kinds[tier[0]], len(tier)) for tier in group.tiers)
    return tiers, len(group.npus), tuple(_shape(child, kinds) for child in group.children)


def chosen(
    count: int,
    head: int,
    tail: int,
    is_marked: Callable[[int], bool] = lambda _: False,
    most: int = 3,
) -> list[int | None]:
    """Choose which of many are drawn: the first, the last and ``most`` that are marked.

    ``None`` stands for those left out between two.
    """
    marked = [i for i in range(head, count - tail) if is_marked(i)][:most]
    kept = sorted({*range(min(head, count)), *marked, *range(max(count - tail, 0), count)})
    found: list[int | None] = []
    for i, each in enumerate(kept):
        before = kept[i - 1] if i else -1
        if each - before == 2:  # one alone takes no more room than dots
            found.append(each - 1)
        elif each - before > 2:
            found.append(None)
        found.append(each)
    return found


def span(names: Sequence[str], devices: Sequence[int]) -> str:
    """Name devices: the first and the last."""
    if len(devices) < 3:
        return ", ".join(names[device] for device in devices)
    return f"{names[devices[0]]} … {names[devices[-1]]}"
