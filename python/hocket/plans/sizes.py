"""The sizes of plans before they are made: transfers, what these take, and what no memory holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hocket import _core
from hocket.errors import Error
from hocket.plans.algorithms import BUILTIN, chunk_ladder
from hocket.units import format_estimate

_MAX_NPUS = 1 << 28
"""More are never built: whoever builds refuses them at once."""

LARGE = 1_000_000
"""Transfers above which a command says first what they take."""
_BYTES, _SECONDS = 250, 4e-6
"""Of memory, and of time [s], that a transfer takes until it is planned, proved and simulated."""
_SECONDS_OF_SEARCH = 12e-6
"""Of time, where the plan is searched for."""

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


def expected(
    collective: _core.Collective, topology: _core.Topology, names: Iterable[str], chunks: int | None
) -> dict[str, list[int]]:
    """Return how many transfers the plans of each algorithm have, one for each number of chunks.

    What cannot run here is left out, and so is what nobody can tell of before: ``auto``, schedules, and
    algorithms of one's own. Trees, and searches in which NPUs pass on what they do not want, may have half
    to eight times as many.
    """
    sides = topology.dimensions if len(collective.npus) == topology.npu_count else []
    found = {}
    for name in names:
        what = (collective.kind, len(collective.npus), sides, name)
        try:
            counts = chunk_ladder(topology, collective, name)  # which says whether it can run
            counts = counts if chunks is None else [chunks]
            sizes = [_core.registry.transfers(*what, count or 1) for count in counts]
        except (Error, ValueError):
            continue
        if any(sizes):
            found[name] = sizes
    return found


def seconds_of(sizes: Mapping[str, Sequence[int]]) -> float:
    """Return what plans of so many transfers take by algorithm [s]."""
    rates = {
        name: _SECONDS if BUILTIN[name].making == "rule" else _SECONDS_OF_SEARCH for name in sizes
    }
    return sum(rates[name] * sum(each) for name, each in sizes.items())


def taken(transfers: int, largest: int, seconds: float | None = None) -> str:
    """Describe what so many transfers take, of which one plan has that many at the most."""
    seconds = max(1, round(transfers * _SECONDS if seconds is None else seconds))
    memory = format_estimate(largest * _BYTES)
    return f"about {transfers:,} transfers: {memory} of memory and {seconds:,} s"


def check_timetable(kind: str, npus: int, chunks: int | None, limit: int) -> None:
    """As :func:`check_plan`, of a timetable without a plan."""
    if npus < _MAX_NPUS:
        _core.registry.check_size(kind, npus, [], None, chunks, limit)
