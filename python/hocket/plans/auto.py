"""The best plan that any method finds within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from hocket import _core
from hocket.collectives.collective import Progress
from hocket.errors import Error, InfeasibleError, SpecError
from hocket.plans.plan import Plan
from hocket.plans.synthesis.choices import SynthesisOptions
from hocket.units import format_time_ps

Planner = Callable[..., Plan]
"""Plans the collective by the ``algorithm`` that is named, with the options of :func:`hocket.plan`."""

TIME_LIMIT = 10.0
"""Seconds where none are given."""

_TRANSFERS = 100_000
_EXACT_WORK = 1_000_000
_SEEDS = 1_000


def best_plan(
    planner: Planner,
    collective: _core.Collective,
    topology: _core.Topology,
    chunks: int | None,
    options: SynthesisOptions,
    progress: Progress | None,
) -> Plan:
    """Try every method, cheapest first, and keep the plan that is simulated to be the fastest.

    Each plan is proved and simulated at link fidelity. Methods that cannot run here are passed over; what
    is begun before the limit is finished, where it cannot be stopped. Stops at the lower bound.

    Parameters
    ----------
    planner
        Makes each plan: it is handed in, since planning by name leads here too.

    Raises
    ------
    InfeasibleError
        If no method applies, with the reason of the first.
    """
    options.unwindings(topology)  # refuses what makes no sense here
    limit = options.time_limit or TIME_LIMIT
    ends = time.monotonic() + limit
    bound = _core.bound(topology, collective).time_ps
    best: tuple[int, Plan] | None = None
    failure: Error | None = None
    for make in _attempts(planner, collective, topology, chunks, options):
        left = ends - time.monotonic()
        if best is not None and (left <= 0 or best[0] <= bound):
            break
        try:
            made = make(max(left, 0.05)).verify()
        except (InfeasibleError, SpecError) as error:
            failure = failure or error
            continue
        time_ps = _core.simulate(made.core, latency=options.latency).time_ps
        if best is None or time_ps < best[0]:
            best = (time_ps, made)
        if progress is not None:
            text = (
                f"best {best[1].algorithm} {format_time_ps(best[0])}, bound {format_time_ps(bound)}"
            )
            progress(text, round(1000 * (limit - max(left, 0))), round(1000 * limit))
    if best is None:
        raise failure or InfeasibleError(None, "auto cannot run here: no method applies")
    return best[1]


def _attempts(
    planner: Planner,
    collective: _core.Collective,
    topology: _core.Topology,
    chunks: int | None,
    options: SynthesisOptions,
) -> Iterator[Callable[[float], Plan]]:
    """Give functions that make a plan, given the seconds left; cheap methods first."""

    def attempt(
        name: str, count: int | None, again: int = 0, **more: Any
    ) -> Callable[[float], Plan]:
        def make(left: float) -> Plan:
            return planner(
                algorithm=name,
                chunks=count,
                seed=(options.seed + again) % (1 << 64),
                time_limit=f"{max(1, round(left * 1000))} ms",
                **more,
            )

        return make

    given = replace(options, time_limit=None)
    told: dict[str, Any] = {
        "unwind": given.unwind,
        "latency": given.latency,
        "trials": given.trials,
        "cluster": given.cluster,
        "slot": None if given.factor is None else f"{given.factor} ps",
    }
    names = [each.name for each in _core.algorithms() if collective.kind in each.kinds]
    named = [name for name in names if name != "greedy"]
    ladder = [chunks] if chunks is not None else _greedy_ladder(topology, collective)
    for count in ladder[:3]:
        yield attempt("greedy", count, **told)
    for name in named:
        try:
            counts = [chunks] if chunks is not None else _ladder(topology, collective, name)
        except Error:
            continue
        for count in counts:
            yield attempt(name, count)
    if len(collective.npus) * topology.npu_count * len(topology.link_src) <= _EXACT_WORK:
        yield attempt("exact", chunks, **told)
    for count in ladder[3:]:
        yield attempt("greedy", count, **told)
    # What time is left goes to other random choices.
    for again in range(1, _SEEDS):
        for count in reversed(ladder):
            yield attempt("greedy", count, again=again, **told)


def _ladder(topology: _core.Topology, collective: _core.Collective, name: str) -> list[int | None]:
    """Numbers of chunks to try."""
    return list(_core.chunk_ladder(topology, collective, name))


def _greedy_ladder(topology: _core.Topology, collective: _core.Collective) -> list[int | None]:
    """Numbers of chunks to try: those of every comparison first, then finer ones that are no larger."""
    try:
        first = _core.chunk_ladder(topology, collective, "greedy")
    except Error:
        return [None]
    pieces = max(1, len(collective.npus)) ** 2
    finer = (2, 8, 12, 24, 32, 48, 64, 128)
    room = [count for count in finer if count * pieces <= _TRANSFERS and count not in first]
    return [*first, *room]
