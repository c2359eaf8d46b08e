"""What is known of a network before it is built: how many NPUs it has, and its dimensions."""

from __future__ import annotations

from math import prod
from typing import NamedTuple, cast

from hocket.topology.spec import BuilderSpec, TopologySpec


class Dimension(NamedTuple):
    """Kind, NPUs, bandwidth of its links [bytes/s] and their latency [ps]."""

    kind: str
    size: int
    bandwidth: int
    latency_ps: int


class Outline(NamedTuple):
    """How many NPUs a network has before any fails, and its dimensions."""

    npus: int
    dimensions: tuple[Dimension, ...]


_ONE = {
    "line": "Line",
    "ring": "Ring",
    "fully_connected": "FullyConnected",
    "switch": "Switch",
}
_MANY = {"mesh": "Line", "torus": "Ring"}
_MAX_AXES = 64
"""Of a hypercube; one of more is never built."""


def outline_of(spec: TopologySpec) -> Outline:
    """Give what is known of a network that may be far too large to build."""
    if spec.builder is not None:
        return _of_builder(spec.builder)
    if spec.dimensions:
        sides = [
            (each.kind, each.size, each.bandwidth, each.latency_ps) for each in spec.dimensions
        ]
        return _of_sides([Dimension(*each) for each in sides])
    return Outline(len(spec.npus), ())


def _of_sides(sides: list[Dimension]) -> Outline:
    return Outline(prod(each.size for each in sides), tuple(sides))


def _of_builder(spec: BuilderSpec) -> Outline:
    family, arguments = spec.family, spec.arguments
    if family in _MANY:
        sizes = cast("list[int]", arguments[0])
        link = cast("tuple[int, int]", arguments[1:3])
        return _of_sides([Dimension(_MANY[family], size, *link) for size in sizes])
    first, *rest = cast("tuple[int, ...]", arguments)
    if family in _ONE:
        return _of_sides([Dimension(_ONE[family], first, rest[0], rest[1])])
    if family == "hypercube":
        axes = min(first, _MAX_AXES)
        return _of_sides([Dimension("FullyConnected", 2, rest[0], rest[1])] * axes)
    counts = {
        "dragonfly": lambda: first * rest[0] * (rest[5] if len(rest) > 5 else 1),
        "rail": lambda: first * rest[0],
        "box": lambda: first * rest[0],
        "planes": lambda: first,
        "clos": lambda: rest[0] * rest[1],
        "bigraph": lambda: 2 * first * rest[0],
        "fat_tree": lambda: first**3 // 4,
    }
    return Outline(counts[family](), ())
