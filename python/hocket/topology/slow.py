"""Slow parts of a network: a device whose links, or a link that, carry less than they should."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from hocket._core import Topology
from hocket.errors import SpecError
from hocket.units import format_bandwidth, parse_bandwidth, shown

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Slow: TypeAlias = "tuple[tuple[str, ...], int]"
"""The name of a device or of both ends of a link, and a rate [bytes/s]."""

_FORM = "give A=RATE for a device or A,B=RATE for a link, such as nic0=50Gb/s"
_RATE = "12.5GB/s"
"""A rate, where an example of one is given."""
_NAMED = 3
"""Slow parts that the name of a network has; of more, it has their number."""


def read_slow(items: Iterable[object], *, option: str = "--slow") -> tuple[Slow, ...]:
    """Read what is slow: ``A=RATE`` is a device, ``A,B=RATE`` a link.

    Raises
    ------
    SpecError
        If it is neither, or the rate is none.
    """
    found: list[Slow] = []
    for item in items:
        name, equals, rate = item.rpartition("=") if isinstance(item, str) else ("", "=", "")
        if not equals:
            name, rate = rate, ""
        ends = tuple(end.strip() for end in name.split(","))
        if not 1 <= len(ends) <= 2 or not all(ends):
            raise SpecError(option, f"{shown(item)} is no slow device or link", _FORM)
        if not rate.strip():
            right = f"say what it carries: {','.join(ends)}={_RATE}"
            raise SpecError(option, f"{shown(item)} has no rate", right)
        found.append((ends, parse_bandwidth(rate.strip(), field=option)))
    return tuple(found)


def slowed(topology: Topology, slow: Iterable[Slow]) -> Topology:
    """Return a network whose named parts carry less; it has no dimensions any more.

    A device is slow on all its links in both directions. A link is slow in both directions, with all links
    parallel to it. Links that are slower already stay as they are.

    Raises
    ------
    SpecError
        If there is no such device or link, or none of its links is faster than the rate.
    """
    import numpy as np

    rates = topology.link_bandwidth.copy()
    src, dst = topology.link_src, topology.link_dst
    said = []
    for ends, rate in slow:
        first, last = (topology.device_index(name) for name in (ends[0], ends[-1]))
        if len(ends) == 1:
            which = (src == first) | (dst == first)
        else:
            which = ((src == first) & (dst == last)) | ((src == last) & (dst == first))
        name = ",".join(ends)
        if not which.any():
            why = (
                f"no link joins {ends[0]} and {ends[-1]}"
                if len(ends) > 1
                else f"{name} has no links"
            )
            raise SpecError(None, why, "name a device, or both ends of a link")
        most = int(rates[which].max())
        if rate >= most:
            why = f"{name}={format_bandwidth(rate)} is not slow: it has {format_bandwidth(most)}"
            raise SpecError(None, why, "give less")
        rates[which] = np.minimum(rates[which], rate)
        said.append(f"{name} at {format_bandwidth(rate)}")
    what = " and ".join(said) if len(said) <= _NAMED else f"{len(said)} slow parts"
    return with_rates(topology, f"{topology.name} with {what}", rates)


def with_rates(topology: Topology, name: str, rates: npt.NDArray[np.uint64]) -> Topology:
    """Return a network with other rates of links [bytes/s], (links,); it has no dimensions any more."""
    return Topology.from_arrays(
        name,
        topology.device_names,
        topology.npu_count,
        topology.switch_limits,
        topology.link_src,
        topology.link_dst,
        rates,
        topology.link_latency_ps,
        switching=topology.switching,
        groups=topology.groups,
        switch_offloads=topology.switch_offloads,
    )
