"""Planning: a collective on a topology, by the algorithm that is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hocket import _core
from hocket._checks import check_function
from hocket._options import check_keywords, names_of, options_of
from hocket.collectives.collective import KEYWORDS as COLLECTIVE_KEYWORDS
from hocket.collectives.collective import Progress, collective_of, joined
from hocket.errors import SpecError
from hocket.plans.algorithms import check_name, check_options
from hocket.plans.auto import best_plan
from hocket.plans.own import own_plan
from hocket.plans.plan import Plan
from hocket.plans.registry import find
from hocket.plans.schedule import MULTIRAIL, PREFIX, Schedule, schedule_collective
from hocket.plans.sizes import check_plan
from hocket.plans.synthesis import SYNTHESIZERS, PlanOptions, synthesize
from hocket.topology.sources import TopologyLike, as_topology

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.collectives.collective import CollectiveKeywords
    from hocket.plans.synthesis.options import PlanKeywords

    class Keywords(CollectiveKeywords, PlanKeywords, total=False):
        """What a call of :func:`plan` may say besides."""


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
        How the plan is made.
    progress
        Called as ``progress(stage, done, total)`` during a search.
    keywords
        `npus`, `root` and `in_place`, see :func:`hocket.collective_on`; and any option of
        :class:`hocket.PlanOptions` by its name, in place of the one in `options`.

    Returns
    -------
    Plan
        Not yet verified.

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
    return make(collective, on, algorithm, options_of(PlanOptions, options, rest), progress)


def plan_together(
    collectives: Sequence[_core.Collective],
    topology: TopologyLike,
    *,
    algorithm: str = "greedy",
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
        ``greedy``, ``exact`` or ``blind``.
    options, progress, keywords
        See :func:`plan`.

    Returns
    -------
    Plan
        Of one custom collective that has the demands of all of them; not yet verified.

    Raises
    ------
    SpecError, InfeasibleError
        As :func:`plan`.
    """
    check_function("progress", progress)
    made = options_of(PlanOptions, options, keywords)
    return make(joined(collectives), as_topology(topology), algorithm, made, progress)


def make(
    collective: _core.Collective,
    topology: _core.Topology,
    algorithm: str | Schedule,
    options: PlanOptions,
    progress: Progress | None = None,
) -> Plan:
    """Plan a collective that is made, with options that are; see :func:`plan`."""
    if not isinstance(algorithm, (str, Schedule)):
        raise SpecError("algorithm", f"{algorithm!r} is neither a name nor a schedule")
    if isinstance(algorithm, str) and not is_scheduled(algorithm):
        check_name(algorithm)
    check_options(algorithm, options)
    chunks, limit = options.slices(collective.size), options.limit_bytes
    if isinstance(algorithm, str):
        count = len(collective.npus)
        check_plan(collective.kind, count, topology.dimensions, algorithm, chunks, limit)
    own = find(algorithm)
    if own is not None:
        return own_plan(own, collective, topology, options)
    if algorithm == "auto":
        return best_plan(make, collective, topology, options, progress)
    if isinstance(algorithm, str) and algorithm in SYNTHESIZERS:
        core, synthesis = synthesize(
            collective,
            topology,
            algorithm=algorithm,
            pieces=chunks or _core.default_chunks(topology, collective, "greedy"),
            options=options,
            memory_limit=limit,
            progress=progress,
        )
        return Plan(core, synthesis=synthesis)
    if isinstance(algorithm, str) and not is_scheduled(algorithm):
        return Plan(_core.plan(topology, collective, algorithm, chunks, limit, options.routing))
    schedule = schedule_collective(
        collective,
        topology,
        algorithm=algorithm,
        chunks=chunks,
        time_limit=options.time_limit,
        progress=progress,
    )
    core = _core.plan_of(schedule.core, limit)
    return Plan(core.routed(options.routing) if topology.may_have_equal_paths else core, schedule)


def is_scheduled(algorithm: str) -> bool:
    """Whether an algorithm's plan is made of a schedule; hierarchical has a plan of its own."""
    return algorithm.startswith(PREFIX) or algorithm in MULTIRAIL[1:]
