"""RCCL's predictions where its cost model differs from NCCL's: constants and shares of bandwidth.

RCCL knows its machines: the channels of each are listed, and what they carry together is stated or is
what the links of a GPU carry. Each machine names one of six tables of constants. Rings and trees reach a
share of that bandwidth, by protocol and number of nodes; the share of trees, and of rings over several
nodes, is corrected by size.

Source: ROCm/rccl 2.21.5, src/graph/tuning.cc, src/graph/rome_models.cc and src/graph/topo.h (the licence of
NCCL, BSD-3-Clause), read at commit 0cbce2a. Times in microseconds, bandwidths in GB/s.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from hocket.nccl.constants import PROTOCOLS, SIMPLE
from hocket.nccl.model import NcclChoice, check_kind

VERSION = "2.21.5"

_BASE = (12.0, 12.0, 17.0)
"""What starting takes, of each protocol."""
_OVERHEAD = 1.0
"""What posting to a NIC takes; three times that with Simple."""
_ROOTED_LL = 1.65
"""Factor of a ring's LL for broadcast and reduce inside a node of MI300X."""

Triple = tuple[float, float, float]
"""LL, LL128 and Simple; 0: that protocol is not used."""


@dataclass(frozen=True)
class Tuning:
    """A machine as RCCL knows it.

    Attributes
    ----------
    name
        Of its GPU.
    channels
        Listed for it.
    bandwidth
        What all channels carry together.
    inside, between
        A step inside a node and between nodes, of trees and of rings.
    few, many
        Share of the bandwidth on one or two nodes, and on more, of trees and of rings.
    trees, rings
        Tenths of that share at sizes from 64 bytes upwards by powers of two, for each protocol.
    is_linked
        Whether every GPU of a node is linked to every other (gfx94x): no trees with Simple inside one.
    links
        What the links of a GPU carry together at least and at most, as topologies state it.
    """

    name: str
    channels: int
    bandwidth: float
    inside: tuple[Triple, Triple]
    between: tuple[Triple, Triple]
    few: tuple[Triple, Triple]
    many: tuple[Triple, Triple]
    trees: tuple[tuple[int, ...], ...]
    rings: tuple[tuple[int, ...], ...]
    is_linked: bool
    links: tuple[float, float]


_NONE = (0,) * 27

MACHINES = {
    each.name: each
    for each in (
        Tuning(
            "mi250",
            32,
            161.4,
            inside=((0.8, 1.4, 2.5), (0.8, 2.2, 3.6)),
            between=((32.2, 34.4, 47.6), (35.4, 87.8, 209.2)),
            few=((0.16, 1.09, 1.61), (0.15, 0.41, 1.0)),
            many=((0.16, 1.09, 1.08), (0.15, 0.41, 1.0)),
            trees=(
                (*(1,) * 8, 10, 1, 1, 2, 4, 6, 5, *(1,) * 12),
                (*(1,) * 9, 2, 1, 1, 2, 10, 5, *(2,) * 12),
                (*(10,) * 8, 8, 4, 3, 3, 1, 1, 10, 10, 7, 5, 6, 5, 6, 6, 5, 6, 6, 6, 7),
            ),
            rings=(
                (*(1,) * 11, 2, 2, 1, 3, 1, 1, 1, 2, *(1,) * 8),
                (4, 5, 5, 4, 4, 4, 4, 2, 2, 1, 3, 10, 10, 7, 8, 5, *(10,) * 5, 9, 8, 5, 4, 3, 3),
                (*(1,) * 9, 10, 10, 8, 5, 1, 7, 2, 4, 4, 6, 7, 9, *(10,) * 6),
            ),
            is_linked=False,
            links=(
                150.0,
                400.0,
            ),  # of one die, with and without that to the other die of its package
        ),
        Tuning(
            "mi300x",
            28,
            7 * 48.0,
            inside=((0.9, 0.0, 2.3), (0.8, 0.0, 2.1)),
            between=((10.5, 0.0, 25.0), (9.5, 0.0, 320.0)),
            few=((0.06, 0.0, 0.11), (0.08, 0.0, 1.0)),
            many=((0.06, 0.0, 0.59), (0.08, 0.0, 1.0)),
            trees=(
                (*(1,) * 6, *(10,) * 5, 6, 10, 9, 10, 10, *(1,) * 11),
                _NONE,
                (*(1,) * 15, 7, *(10,) * 10, 8),
            ),
            rings=(
                (*(1,) * 11, 10, 2, 10, 4, 4, 1, 2, 2, *(1,) * 8),
                _NONE,
                (*(1,) * 23, 8, 10, 10, 10),
            ),
            is_linked=True,
            links=(7 * 45.0, 7 * 64.0),  # as RCCL counts them, and as AMD states them
        ),
    )
}
"""By name of the GPU."""


def rccl_choices(
    kind: str, size: int, npus: int, nodes: int, machine: Tuning
) -> Iterator[NcclChoice]:
    """Return every algorithm and protocol that RCCL weighs for a collective, with its prediction.

    Parameters
    ----------
    size
        As rccl-tests states it [bytes].

    Raises
    ------
    SpecError
        If its model has no such collective.
    """
    check_kind(kind, "RCCL")
    algorithms = ("tree", "ring") if kind == "all-reduce" and npus > 2 else ("ring",)
    for algorithm in algorithms:
        for number, protocol in enumerate(PROTOCOLS):
            bandwidth = _bandwidth((kind, size, npus, nodes), algorithm, number, machine)
            if bandwidth > 0:
                latency = _latency(kind, (npus, nodes), algorithm, number, machine)
                seconds = (latency + size / (1000 * bandwidth)) * 1e-6
                yield NcclChoice(algorithm, protocol, machine.channels, latency, bandwidth, seconds)


def _bandwidth(
    asked: tuple[str, int, int, int], algorithm: str, number: int, machine: Tuning
) -> float:
    """Return what an algorithm reaches [GB/s of algbw]; 0 where it is not used."""
    kind, size, npus, nodes = asked
    is_ring = algorithm == "ring"
    is_rooted = kind in ("broadcast", "reduce")
    if machine.is_linked and nodes == 1 and not is_ring and number == SIMPLE:
        return 0.0
    bus = machine.bandwidth * (machine.few if nodes <= 2 else machine.many)[is_ring][number]
    if machine.is_linked and nodes == 1 and is_rooted and PROTOCOLS[number] == "LL":
        bus *= _ROOTED_LL
    if not is_ring or nodes > 1:
        tenths = (machine.rings if is_ring else machine.trees)[number]
        power = max((size // 64).bit_length() - 1, 0)
        bus *= tenths[min(power, len(tenths) - 1)] / 10
    return bus * (npus / _steps(kind, npus) if is_ring else 0.5)


def _steps(kind: str, npus: int) -> int:
    if kind == "all-reduce":
        return 2 * (npus - 1)
    return npus - 1 if kind in ("all-gather", "reduce-scatter") else npus


def _latency(
    kind: str, counts: tuple[int, int], algorithm: str, number: int, machine: Tuning
) -> float:
    npus, nodes = counts
    is_ring = algorithm == "ring"
    inside, between = machine.inside[is_ring][number], machine.between[is_ring][number]
    if not is_ring:
        levels = int(math.log2(nodes))
        return _BASE[number] + 2 * ((npus // nodes - 1) * inside + levels * between)
    steps = _steps(kind, npus)
    if kind in ("broadcast", "reduce"):
        # Channels differ, and pieces of Simple go on as those of trees do.
        of = number != SIMPLE
        return (
            _BASE[number] + steps * (machine.inside if nodes == 1 else machine.between)[of][number]
        )
    far = 0 if nodes == 1 else 2 * nodes if kind == "all-reduce" else nodes - 1
    overhead = 0.0 if nodes == 1 else _OVERHEAD * (3 if number == SIMPLE else 1)
    return _BASE[number] + (steps - far) * max(inside, overhead) + far * between
