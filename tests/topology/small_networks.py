"""What the tests of networks share: a link, and networks of texts."""

from __future__ import annotations

from typing import Any

import hocket as hk
from hocket import topology as tp
from hocket.topology.build import build_topology
from hocket.topology.text import from_text

LINK = {"bandwidth": "2 GB/s", "latency": "3 ns"}
GB = 10**9


def pairs(topology: hk.Topology) -> set[tuple[str, str]]:
    names = topology.device_names
    return {(names[a], names[b]) for a, b in zip(topology.link_src, topology.link_dst, strict=True)}


def text(value: str, **options: Any) -> hk.Topology:
    given = {"bandwidth": ["2 GB/s"], "latency": ["3 ns"]} | options
    return build_topology(from_text(value, **given))


def product(kinds: Any, sizes: Any, rates: Any = None, delays: Any = None) -> hk.Topology:
    rates = ["1 GB/s"] * len(sizes) if rates is None else rates
    delays = ["1 ns"] * len(sizes) if delays is None else delays
    return tp.product(kinds, sizes, bandwidth=rates, latency=delays)
