"""ASTRA-sim's analytical network files.

Their "GB/s" is 2^30 bytes per second and their nanoseconds are truncated to whole ones; bandwidth and
latency are those of each link. A Ring has links both ways; a Switch is two links.

References
----------
astra-sim/astra-network-analytical, common/NetworkFunction.h and common/NetworkParser.cc.
"""

from __future__ import annotations

import math
from difflib import get_close_matches
from typing import Any

from hocket.errors import SpecError
from hocket.files.spec import DimensionSpec, TopologySpec
from hocket.files.yaml_tree import Place

_KEYS = ("topology", "npus_count", "bandwidth", "latency")
_KINDS = ("Ring", "FullyConnected", "Switch")


def is_astra(values: dict[str, Any]) -> bool:
    """Whether the values of a file look like an ASTRA-sim network."""
    return "npus_count" in values or isinstance(values.get("topology"), list)


def spec_from_astra(
    values: dict[str, Any], lines: dict[Place, int], name: str, stem: str
) -> TopologySpec:
    """Give what an ASTRA-sim network file describes.

    Raises
    ------
    SpecError
        For an unknown or missing key, lists of unequal length, or a value that makes no sense.
    """

    def wrong(place: Place, message: str) -> SpecError:
        line = f", line {lines[place]}" if place in lines else ""
        key = "".join(f"[{part}]" if isinstance(part, int) else part for part in place)
        return SpecError(f"{name}{line}: {key + ': ' if key else ''}{message}")

    for key in values:
        if key not in _KEYS:
            close = get_close_matches(key, _KEYS, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"keys are {', '.join(_KEYS)}"
            raise wrong((key,), f"ASTRA-sim's network files have no such key; {hint}")
    for key in _KEYS:
        if not isinstance(values.get(key), list) or not values[key]:
            raise wrong((key,) if key in values else (), f"{key!r} must be a list, one a dimension")
    count = len(values["topology"])
    for key in _KEYS[1:]:
        if len(values[key]) != count:
            raise wrong(
                (key,),
                f"has {len(values[key])} entries, topology has {count}; give one a dimension",
            )
    dimensions = []
    for i in range(count):
        kind, size, rate, delay = (values[key][i] for key in _KEYS)
        if kind not in _KINDS:
            raise wrong(("topology", i), f"{kind!r} is no dimension; use {', '.join(_KINDS)}")
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size < 1 << 32:
            raise wrong(("npus_count", i), f"{size!r} is not a number of NPUs, 1 or more")
        for key, value in (("bandwidth", rate), ("latency", delay)):
            numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not numeric or not math.isfinite(value) or value < 0 or value >= 1e9:
                raise wrong(
                    (key, i), f"{value!r} is not a number of {'GB/s' if key[0] == 'b' else 'ns'}"
                )
        if round(rate * 2**30) < 1:
            raise wrong(("bandwidth", i), f"{rate!r} is no bandwidth; give it more than 0")
        dimensions.append(DimensionSpec(kind, size, round(rate * 2**30), int(delay) * 1000))
    note = "ASTRA-sim's units: GB/s is 2^30 bytes per second, latency in whole ns"
    return TopologySpec(stem, dimensions=tuple(dimensions), notes=(note,))
