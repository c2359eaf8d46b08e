"""Planning: a collective on a topology, by the algorithm that is named."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hocket import _core
from hocket._checks import check_function
from hocket._options import check_keywords, names_of, options_of
from hocket.collectives.collective import KEYWORDS as COLLECTIVE_KEYWORDS
from hocket.collectives.collective import Progress, collective_of, joined
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.algorithms import BUILTIN, check_name, check_options, heeded, is_scheduled
from hocket.plans.auto import best_plan
from hocket.plans.choice import STEINER, ChunkChoice, Timer, fastest
from hocket.plans.plan import Plan
from hocket.plans.registry import find
from hocket.plans.schedule import Schedule, schedule_collective
from hocket.plans.sizes import check_plan
from hocket.plans.synthesis import PlanOptions
from hocket.plans.synthesis.make import limited, searched, solve, synthesis_of
from hocket.plans.trees import trees_of
from hocket.plans.user_plans import user_plan
from hocket.topology.sources import TopologyLike, as_topology

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.collectives.collective import CollectiveKeywords
    from hocket.plans.synthesis.options import PlanKeywords

    class Keywords(CollectiveKeywords, PlanKeywords, total=False):
        """The keywords of :func:`plan`."""


WORK = 4_800_000_000
"""Work of a search by name at normal effort: minutes, after which it has the best so far, or nothing."""
_JOINT = (STEINER, "flows", "greedy")
"""What plans several collectives at once where nobody names an algorithm."""


def plan(
    kind: str | _core.Collective,
    topology: TopologyLike,
    *,
    size: int | str | None = None,
    algorithm: str | Schedule = "auto",
    options: PlanOptions | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[Keywords],
) -> Plan:
    """Plan a collective on a topology by a named algorithm.

    Parameters
    ----------
    kind, topology, size
        See :func:`hocket.collective_on`; or a collective that is already made, which has its size.
    algorithm
        One of :func:`hocket.algorithms`; ``schedule:NAME`` for a saved schedule; ``FILE.py:FUNCTION`` for a
        function that plans, see :func:`hocket.algorithm`; or a :class:`hocket.Schedule`.
    options
        How the plan is made. Without `chunks` and `chunk_size` the numbers of chunks that are worth trying
        are tried, as on the command line and in :func:`hocket.compare`: each plan is proved and simulated
        at link fidelity, and the fastest is the result. A number that is given is obeyed.
    progress
        Called as ``progress(stage, done, total)`` during a search.
    keywords
        `npus`, `root` and `in_place`, see :func:`hocket.collective_on`; and any option of
        :class:`hocket.PlanOptions` by its name, in place of the one in `options`.

    Returns
    -------
    Plan
        Verified only where several numbers of chunks were tried.

    Raises
    ------
    SpecError
        For input that makes no sense, or more than fits in memory.
    InfeasibleError
        If the algorithm cannot do this here, with the reason.
    """
    known = (*COLLECTIVE_KEYWORDS, *names_of(PlanOptions))
    check_keywords(keywords, known, ("size", "algorithm", "options", "progress"))
    check_function("progress", progress)
    on = as_topology(topology)
    collective, rest = collective_of(kind, on, size, keywords)
    made = options_of(PlanOptions, options, rest)
    return choose(collective, on, algorithm, made, progress=progress, is_timed=False).plan


def plan_together(
    collectives: Sequence[_core.Collective],
    topology: TopologyLike,
    *,
    algorithm: str | None = None,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[PlanKeywords],
) -> Plan:
    """Plan several collectives, of the same or of different NPUs, at once on one network.

    Parameters
    ----------
    collectives
        Each made by :func:`hocket.collective_on`.
    topology
        Where.
    algorithm
        ``steiner``, ``flows``, ``greedy``, ``exact``, ``blind`` or ``auto``. Default: the fastest plan of
        ``steiner``, ``flows`` and ``greedy``.
    options, progress, keywords
        See :func:`plan`.

    Returns
    -------
    Plan
        Of one custom collective that has the demands of all of them; verified as that of :func:`plan`.

    Raises
    ------
    SpecError, InfeasibleError
        As :func:`plan`.
    """
    check_function("progress", progress)
    made = options_of(PlanOptions, options, keywords)
    together, on = joined(collectives), as_topology(topology)
    if algorithm is not None:
        return choose(together, on, algorithm, made, progress=progress, is_timed=False).plan
    best, refused = None, None
    for name in _JOINT:
        try:
            found = choose(together, on, name, heeded(name, made), progress=progress)
        except InfeasibleError as error:
            refused = error
            continue
        if best is None or found.is_faster_than(best):
            best = found
    if best is None:
        raise refused or InfeasibleError(None, "no method applies")
    return best.plan


def choose(
    collective: _core.Collective,
    topology: _core.Topology,
    algorithm: str | Schedule,
    options: PlanOptions,
    *,
    progress: Progress | None = None,
    timer: Timer | None = None,
    is_timed: bool = True,
    bound: Callable[[], _core.Bound] | None = None,
) -> ChunkChoice:
    """Plan a collective that is made, with the best number of chunks where none is given.

    Everybody who plans by name comes here: :func:`plan`, comparisons and the command line.

    Parameters
    ----------
    timer, is_timed
        See :func:`hocket.plans.choice.fastest`; ``auto`` chooses at link fidelity, whatever times its plan.
    bound
        See :func:`hocket.plans.auto.best_plan`.
    """
    _check(collective, topology, algorithm, options)
    if algorithm != "auto":
        return fastest(
            make,
            collective,
            topology,
            algorithm,
            options,
            work=_core.Work(round(WORK * options.share)),
            progress=progress,
            timer=timer,
            is_timed=is_timed,
        )
    best = best_plan(make, collective, topology, options, progress, bound)
    return best if timer is None else replace(best, time_ps=timer(best.plan, best.slices))


def make(
    collective: _core.Collective,
    topology: _core.Topology,
    algorithm: str | Schedule,
    options: PlanOptions,
    progress: Progress | None = None,
    work: _core.Work | None = None,
) -> Plan:
    """Plan as :func:`plan`, with the chunks that are given or else the algorithm's default.

    A search ends with `work`, which counts it.
    """
    _check(collective, topology, algorithm, options)
    chunks = options.slices(collective.size)
    own = find(algorithm)
    if own is not None:
        return user_plan(own, collective, topology, options)
    if not isinstance(algorithm, str) or algorithm not in BUILTIN:
        return _carried_out(collective, topology, algorithm, chunks, options)
    making = BUILTIN[algorithm].making
    if making == "choice":
        return best_plan(make, collective, topology, options, progress).plan
    if making == "solver":
        pieces = chunks or _core.registry.default_chunks(topology, collective, algorithm)
        solved, synthesis = solve(
            collective, topology, pieces=pieces, options=options, progress=progress, work=work
        )
        core, run = solved.plan_and_run
        return Plan(core, synthesis=synthesis, known=run)
    began = time.perf_counter()
    with limited(algorithm, options, work):
        made = searched(collective, topology, algorithm, chunks, options, progress, work)
    seconds = time.perf_counter() - began
    if made.candidates is not None:
        found, spread = made.candidates
        last = spread or found
        least = found.problem.least_ps
        synthesis = synthesis_of(algorithm, found, last, options, seconds, least)
        core, run = last.plan_and_run
        return Plan(core, synthesis=synthesis, known=run)
    core, run = made.plan_and_run
    return Plan(
        core,
        None if made.schedule is None else Schedule(made.schedule),
        trees=None if made.trees is None else trees_of(*made.trees),
        pieces=made.pieces,
        known=run,
    )


def _carried_out(
    collective: _core.Collective,
    topology: _core.Topology,
    schedule: str | Schedule,
    chunks: int | None,
    options: PlanOptions,
) -> Plan:
    """Plan by a schedule that is made."""
    made = schedule_collective(
        collective,
        topology,
        algorithm=schedule,
        chunks=chunks,
        effort=options.effort,
        time_limit=options.time_limit,
    )
    core = _core.plan_of(made.core, options.limit_bytes)
    return Plan(core.routed(options.routing) if topology.may_have_equal_paths else core, made)


def _check(
    collective: _core.Collective,
    topology: _core.Topology,
    algorithm: str | Schedule,
    options: PlanOptions,
) -> None:
    """Refuse a name, options and sizes that make no sense, before anything is planned."""
    if not isinstance(algorithm, (str, Schedule)):
        raise SpecError("algorithm", f"{algorithm!r} is neither a name nor a schedule")
    if isinstance(algorithm, str) and not is_scheduled(algorithm):
        check_name(algorithm)
    check_options(algorithm, options)
    chunks, limit = options.slices(collective.size), options.limit_bytes
    if isinstance(algorithm, str):
        count = len(collective.npus)
        check_plan(collective.kind, count, topology.dimensions, algorithm, chunks, limit)
