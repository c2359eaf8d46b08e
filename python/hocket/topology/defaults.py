"""Latencies and bandwidths for links whose source gives none, by medium.

A topology file asks for one by ``latency: default pcie``, so that a reader sees it, and the loader
notes it, so that reports show it.
"""

from __future__ import annotations

from dataclasses import dataclass

from hocket.errors import SpecError

LATENCY_PS: dict[str, tuple[int, str]] = {
    "nvlink": (700_000, "NVLink between two GPUs: TE-CCL, ndv2.py, 0.7 us"),
    "nvswitch": (350_000, "one of the two hops through an NVSwitch: TE-CCL, half of 0.7 us"),
    "xgmi": (700_000, "assumed to be as NVLink"),
    "pcie": (350_000, "one hop of PCIe: assumed to be as a hop through an NVSwitch"),
    "upi": (350_000, "between two CPU sockets: assumed to be as a hop of PCIe"),
    "ib": (1_300_000, "one hop of InfiniBand or Ethernet: TE-CCL, ndv2.py, 1.3 us"),
    "unit": (700_000, "a link of unit bandwidth: assumed to be as NVLink"),
}
"""Latency of one link [ps] by medium, and where it comes from."""

BANDWIDTH: dict[str, tuple[int, str]] = {
    "pcie": (31_504_000_000, "PCIe 4.0 x16, raw"),
    "upi": (41_600_000_000, "two Intel UPI links of 10.4 GT/s, raw: an assumption"),
}
"""Bandwidth of one link, one direction [bytes/s] by medium, and where it comes from."""


@dataclass(frozen=True)
class Default:
    """A default that a file asked for."""

    quantity: str
    medium: str
    value: int
    reason: str


def default(quantity: str, text: str, *, field: str | None) -> Default:
    """Read ``default MEDIUM``.

    Raises
    ------
    SpecError
        Naming ``field``, if there is no such default.
    """
    table = LATENCY_PS if quantity == "latency" else BANDWIDTH
    word, _, medium = text.partition(" ")
    if word != "default" or medium not in table:
        known = ", ".join(f"'default {name}'" for name in table)
        raise SpecError(field, f"{text!r} is not a default {quantity}", f"there are {known}")
    value, reason = table[medium]
    return Default(quantity, medium, value, reason)
