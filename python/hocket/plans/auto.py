"""The best plan that any method finds within a time limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from hocket import _core
from hocket.collectives.collective import Progress
from hocket.errors import Error, InfeasibleError, SpecError, VerificationError
from hocket.plans.algorithms import chunk_ladder, quick
from hocket.plans.choice import SHORTEST, Choice, Planner, link_time
from hocket.plans.registry import find, own_algorithms
from hocket.plans.synthesis.options import PlanOptions
from hocket.units import format_time_ps

TIME_LIMIT = 10.0
"""Seconds where none are given."""

_TRANSFERS = 100_000
_EXACT_WORK = 1_000_000
_SEEDS = 1_000


def best_plan(
    planner: Planner,
    collective: _core.Collective,
    topology: _core.Topology,
    options: PlanOptions,
    progress: Progress | None,
) -> Choice:
    """Try every method, cheapest first, and keep the plan that is simulated to be the fastest.

    Each plan is proved and simulated at link fidelity. Methods that cannot run here are passed over; what
    is begun before the limit is finished, where it cannot be stopped. Stops at the lower bound. Algorithms
    of one's own are passed over where they fail or are wrong, too; by name they say why.

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
    limit = options.seconds or TIME_LIMIT
    ends = time.monotonic() + limit
    bound = _core.bound(topology, collective).time_ps
    best: Choice | None = None
    failure: Error | None = None
    for name, given in _attempts(collective, topology, options):
        left = ends - time.monotonic()
        if best is not None and (left <= 0 or best.time_ps == bound):
            break
        timed = replace(given, time_limit=max(left, SHORTEST))
        try:
            made = planner(collective, topology, name, timed, progress).verify()
        except (InfeasibleError, SpecError, VerificationError) as error:
            if isinstance(error, VerificationError) and find(name) is None:
                raise
            failure = failure or error
            continue
        found = Choice(made, link_time(made, options), given.chunks, (None,))
        if found.is_faster_than(best):
            best = found
        if progress is not None and best is not None and best.time_ps is not None:
            took = format_time_ps(best.time_ps)
            text = f"best {best.plan.algorithm} {took}, bound {format_time_ps(bound)}"
            progress(text, round(1000 * (limit - max(left, 0))), round(1000 * limit))
    if best is None:
        raise failure or InfeasibleError(None, "no method applies", origin="auto")
    return best


def _attempts(
    collective: _core.Collective, topology: _core.Topology, options: PlanOptions
) -> Iterator[tuple[str, PlanOptions]]:
    """Give algorithms with the options to try each with; cheap ones first."""
    chunks = options.slices(collective.size)
    searched = replace(options, chunks=None, chunk_size=None, window=None, slot=None)
    plain = PlanOptions(memory_limit=options.memory_limit, routing=options.routing)
    ladder = [chunks] if chunks is not None else _greedy_ladder(topology, collective)
    able = quick(collective.kind)
    for name in ("trees", "flows"):
        if name in able:
            yield name, replace(plain, chunks=chunks, latency=options.latency)
    for count in ladder[:3]:
        yield "greedy", replace(searched, chunks=count)
    for name in able:
        if name in ("greedy", "trees", "flows"):
            continue
        try:
            counts = [chunks] if chunks is not None else chunk_ladder(topology, collective, name)
        except Error:
            continue
        for count in counts:
            yield name, replace(plain, chunks=count)
    for own in own_algorithms():
        if collective.kind in own.kinds:
            yield own.name, options
    if len(collective.npus) * topology.npu_count * len(topology.link_src) <= _EXACT_WORK:
        yield "exact", options
    for count in ladder[3:]:
        yield "greedy", replace(searched, chunks=count)
    # What time is left goes to other random choices.
    for again in range(1, _SEEDS):
        seed = (options.seed + again) % (1 << 64)
        for count in reversed(ladder):
            yield "greedy", replace(searched, chunks=count, seed=seed)


def _greedy_ladder(topology: _core.Topology, collective: _core.Collective) -> list[int | None]:
    """Numbers of chunks to try: those of every comparison first, then finer ones that are no larger."""
    try:
        first = chunk_ladder(topology, collective, "greedy")
    except Error:
        return [None]
    pieces = max(1, len(collective.npus)) ** 2
    finer = (2, 8, 12, 24, 32, 48, 64, 128)
    room = [count for count in finer if count * pieces <= _TRANSFERS and count not in first]
    return [*first, *room]
