"""ASTRA-sim's analytical network files.

Their "GB/s" is 2^30 bytes per second and their nanoseconds are truncated to whole ones; bandwidth and
latency are those of each link. A Ring has links both ways; a Switch is two links.

References
----------
astra-sim/astra-network-analytical, common/NetworkFunction.h and common/NetworkParser.cc.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

from hocket import _core
from hocket._checks import did_you_mean
from hocket.errors import InfeasibleError, SpecError
from hocket.files.yaml_tree import Place
from hocket.topology.spec import DimensionSpec, TopologySpec, skipped
from hocket.units import ROUNDING, shown

_KEYS = ("topology", "npus_count", "bandwidth", "latency")
_KINDS = ("Ring", "FullyConnected", "Switch")


def is_astra(values: dict[str, Any]) -> bool:
    """Return whether the values of a file look like an ASTRA-sim network."""
    if any(key in values for key in ("builder", "dims", "links")):
        return False
    lists = [
        key for key in ("topology", "bandwidth", "latency") if isinstance(values.get(key), list)
    ]
    return "npus_count" in values or "topology" in lists or len(lists) == 2


def spec_from_astra(
    values: dict[str, Any], lines: dict[Place, int], name: str, stem: str
) -> TopologySpec:
    """Return what an ASTRA-sim network file describes.

    Raises
    ------
    SpecError
        For an unknown or missing key, lists of unequal length, or a value that makes no sense.
    """

    def wrong(place: Place, why: str, remedy: str | None = None) -> SpecError:
        origin = f"{name}, line {lines[place]}" if place in lines else name
        key = "".join(f"[{part}]" if isinstance(part, int) else part for part in place)
        return SpecError(key or None, why, remedy, origin)

    for key in values:
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS, f"keys are {', '.join(_KEYS)}")
            raise wrong((key,), "ASTRA-sim's network files have no such key", hint)
    for key in _KEYS:
        if key not in values:
            raise wrong((), f"key {key!r} is missing", "add a list with one entry a dimension")
        if not isinstance(values[key], list) or not values[key]:
            raise wrong(
                (key,), f"{shown(values[key])} is not a list", "give one entry a dimension, in []"
            )
    count = len(values["topology"])
    for key in _KEYS[1:]:
        if len(values[key]) != count:
            raise wrong(
                (key,),
                f"has {len(values[key])} entries, topology has {count}",
                "give one a dimension",
            )
    dimensions = []
    for i in range(count):
        kind, size = values["topology"][i], values["npus_count"][i]
        if kind not in _KINDS:
            known = f"use {', '.join(_KINDS)}"
            hint = did_you_mean(kind, _KINDS, known) if isinstance(kind, str) else known
            raise wrong(("topology", i), f"{shown(kind)} is not a dimension", hint)
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size < 1 << 32:
            raise wrong(
                ("npus_count", i), f"{shown(size)} is not a number of NPUs", "give 1 or more"
            )
        rate, delay = (_number(values[key][i]) for key in ("bandwidth", "latency"))
        if rate is None or round(rate * 2**30) < 1:
            raise wrong(
                ("bandwidth", i),
                f"{shown(values['bandwidth'][i])} is not a bandwidth",
                "ASTRA-sim's is a plain number of GB/s, more than 0 and less than 10^9",
            )
        if delay is None:
            raise wrong(
                ("latency", i),
                f"{shown(values['latency'][i])} is not a latency",
                "ASTRA-sim's is a plain number of ns, 0 or more and less than 10^9",
            )
        whole = round(rate * 2**30)
        if abs(whole - Fraction(rate) * 2**30) > Fraction(rate) * 2**30 * ROUNDING:
            raise wrong(
                ("bandwidth", i),
                f"{shown(values['bandwidth'][i])} is {rate * 2**30:g} bytes per second",
                "give a whole number of them, in units of 2^30",
            )
        dimensions.append(DimensionSpec(kind, size, whole, int(delay) * 1000))
    note = "ASTRA-sim's units: GB/s is 2^30 bytes per second, latency in whole ns"
    notes = (note, *skipped(dimensions))
    return TopologySpec(stem, dimensions=tuple(dimensions), notes=notes)


def astra_network(topology: _core.Topology) -> str:
    """Return the ASTRA-sim network file of a topology: a product of its three kinds of dimensions.

    Raises
    ------
    InfeasibleError
        Saying why the format cannot express it.
    """
    dimensions = [each for each in topology.dimensions if each[1] > 1] or topology.dimensions[:1]
    if not dimensions:
        dimensions = [_only_dimension(topology)]
    for kind, size, _, latency_ps, *_ in dimensions:
        if kind not in _KINDS:
            known = ", ".join(_KINDS)
            raise InfeasibleError(None, f"ASTRA-sim has no {kind} dimension, but {known}")
        if latency_ps % 1000:
            raise InfeasibleError(
                None, f"ASTRA-sim's latencies are whole ns, and a link takes {latency_ps} ps"
            )
        if size >= 1 << 31:
            raise InfeasibleError(None, f"a dimension has {size} NPUs, too many for ASTRA-sim")
    if not _is_product(topology, dimensions):
        raise InfeasibleError(
            None, "its links are not those of its dimensions, and ASTRA-sim knows no failures"
        )
    lists: dict[str, list[str | int | float]] = {
        "topology": [kind for kind, *_ in dimensions],
        "npus_count": [size for _, size, *_ in dimensions],
        "bandwidth": [rate / 2**30 for _, _, rate, *_ in dimensions],
        "latency": [float(latency_ps // 1000) for _, _, _, latency_ps, *_ in dimensions],
    }
    return "".join(f"{key}: [{', '.join(map(str, lists[key]))}]\n" for key in _KEYS)


_Dimension: TypeAlias = tuple[str, int, int, int, bool]


def _only_dimension(topology: _core.Topology) -> _Dimension:
    """Return the dimension that a network without any may be: a ring, a switch, all links."""
    rates, delays = set(topology.link_bandwidth.tolist()), set(topology.link_latency_ps.tolist())
    if len(rates) == len(delays) == 1 and topology.npu_count > 1:
        for kind in _KINDS:
            given = (kind, topology.npu_count, rates.copy().pop(), delays.copy().pop(), False)
            if _is_product(topology, [given]):
                return given
    raise InfeasibleError(
        None, f"ASTRA-sim's networks are products of {', '.join(_KINDS)}, and it is none"
    )


def _is_product(topology: _core.Topology, dimensions: list[_Dimension]) -> bool:
    """Return whether the links are those of the product of some dimensions, whatever devices are called."""
    made = _core.build_product(dimensions)
    return (
        made.npu_count == topology.npu_count
        and made.device_count == topology.device_count
        and not any(topology.switch_limits)
        and _links(made) == _links(topology)
    )


def _links(topology: _core.Topology) -> list[tuple[int, ...]]:
    columns = (
        topology.link_src,
        topology.link_dst,
        topology.link_bandwidth,
        topology.link_latency_ps,
    )
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def _number(value: object) -> float | None:
    """Return a number from 0 to 10^9."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if 0 <= value < 1e9 else None
