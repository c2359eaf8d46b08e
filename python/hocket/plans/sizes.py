"""Refuses plans that no memory holds, as soon as the number of NPUs is known."""

from __future__ import annotations

from collections.abc import Sequence

from hocket import _core
from hocket.plans.algorithms import BUILTIN

_MAX_NPUS = 1 << 28
"""More are never built: whoever builds refuses them at once."""

Sides = Sequence[tuple[str, int, int, int] | tuple[str, int, int, int, bool]]


def check_plan(
    kind: str, npus: int, sides: Sides, algorithm: str, chunks: int | None, limit: int
) -> None:
    """Refuse a plan that is too large whatever the network.

    Parameters
    ----------
    kind, algorithm, chunks
        See :func:`hocket.plan`; of a kind or an algorithm that is not known nothing is said.
    npus
        How many take part.
    sides
        The network's dimensions, as the core's topology has them.
    limit
        Bytes that there are.

    Raises
    ------
    SpecError
        With how large it is.
    """
    if algorithm in BUILTIN and kind in BUILTIN[algorithm].kinds and npus < _MAX_NPUS:
        _core.registry.check_size(kind, npus, list(sides), algorithm, chunks, limit)


def check_timetable(kind: str, npus: int, chunks: int | None, limit: int) -> None:
    """As :func:`check_plan`, of a timetable without a plan."""
    if npus < _MAX_NPUS:
        _core.registry.check_size(kind, npus, [], None, chunks, limit)
