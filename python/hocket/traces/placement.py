"""The places of a group's ranks on a product of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from hocket import _core
from hocket.training.parallel import Portion


def whole(topology: _core.Topology) -> tuple[Portion, ...]:
    """Return all NPUs of a product as portions of its dimensions."""
    sizes = [size for _, size, *_ in topology.dimensions]
    return tuple(Portion(place, size, 1) for place, size in enumerate(sizes) if size > 1)


def portions_of(topology: _core.Topology, npus: Sequence[int]) -> tuple[Portion, ...] | None:
    """Return portions of dimensions of which NPUs are all combinations, or None if they are not.

    Along a ring or a line they must lie equally far apart. Along a switch or a full connection every
    part is as good as any other.
    """
    left = list(npus)
    taken = []
    portions = []
    for place, (kind, size, *_) in enumerate(topology.dimensions):
        along = sorted({npu % size for npu in left})
        left = [npu // size for npu in left]
        taken.append(len(along))
        if len(along) == 1:
            continue
        stride = 1 if kind == "Switch" else _stride(along, size, is_ring=kind == "Ring")
        if stride is None or (kind == "FullyConnected" and size % stride):
            if kind != "FullyConnected":
                return None
            stride = 1
        portions.append(Portion(place, len(along), stride))
    return tuple(portions) if prod(taken) == len(npus) else None


def _stride(along: Sequence[int], size: int, *, is_ring: bool) -> int | None:
    """Return how far apart neighbours are, or None if some are farther than others."""
    gaps = [after - before for before, after in pairwise(along)]
    if is_ring:
        gaps.append(along[0] + size - along[-1])
        gaps.remove(max(gaps))  # round the other way
    return gaps[0] if len(set(gaps)) == 1 else None
