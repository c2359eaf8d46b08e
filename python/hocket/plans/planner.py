"""Planning: a collective on a topology, by the algorithm that is named."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hocket import _core
from hocket._memory import checked_limit
from hocket.collectives.collective import Progress, check_chunks, collective_on, joined, slices_of
from hocket.collectives.timing import Latency
from hocket.errors import SpecError
from hocket.plans.algorithms import check_name, check_options
from hocket.plans.auto import best_plan
from hocket.plans.plan import Plan, checked_routing
from hocket.plans.schedule import MULTIRAIL, PREFIX, Schedule, schedule_collective
from hocket.plans.sizes import check_plan
from hocket.plans.synthesis import SYNTHESIZERS, SynthesisOptions, synthesize
from hocket.units import parse_time


def plan(
    kind: str,
    topology: _core.Topology,
    *,
    size: int | str,
    algorithm: str | Schedule,
    chunks: int | None = None,
    chunk_size: int | str | None = None,
    npus: Sequence[int | str] | None = None,
    root: int | str | None = None,
    in_place: bool = True,
    time_limit: str | None = None,
    seed: int = 0,
    unwind: str | None = None,
    latency: Latency = "overlapped",
    cluster: int | None = None,
    slot: str | None = None,
    trials: int | None = None,
    memory_limit: int | None = None,
    routing: str = "balanced",
    progress: Progress | None = None,
) -> Plan:
    """Plan a collective on a topology by a named algorithm.

    Parameters
    ----------
    kind, topology, size, npus, root, in_place
        See :func:`hocket.collective_on`.
    algorithm
        One of :func:`hocket.algorithms`; ``schedule:NAME`` for a saved schedule; or a
        :class:`hocket.Schedule`.
    chunks
        Into how many pipelined slices the data is cut; the algorithm's own default if left out.
    chunk_size
        Instead of `chunks`: bytes of a slice, as ``98304`` or ``"96 KiB"``.
    time_limit
        Of a search, as ``"10s"``: the best until then is the result. See :func:`hocket.schedule`.
    seed, unwind, latency, cluster, slot, trials
        For ``greedy``, ``exact``, ``blind`` and ``auto``: see :class:`hocket.SynthesisOptions`; `slot` is
        its `factor`, with a unit, as ``"2.3 us"``.
    memory_limit
        Bytes that the work may take; most of the machine's memory by default.
    routing
        How transfers are spread over equal paths: ``"balanced"`` (those that run together on different
        ones), ``"ecmp"`` or ``"ecmp:SEED"`` (by hashes of sender and receiver), ``"spray"`` (each over all;
        for flow and packet fidelity), ``"single"`` (all on the first).
    progress
        Called as ``progress(stage, done, total)`` during a search.

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
    collective = collective_on(kind, topology, size, npus=npus, root=root, in_place=in_place)
    return plan_collective(
        collective,
        topology,
        algorithm=algorithm,
        chunks=slices_of(collective.size, chunk_size, chunks),
        time_limit=time_limit,
        seed=seed,
        unwind=unwind,
        latency=latency,
        cluster=cluster,
        slot=slot,
        trials=trials,
        memory_limit=memory_limit,
        routing=routing,
        progress=progress,
    )


def plan_together(
    collectives: Sequence[_core.Collective],
    topology: _core.Topology,
    *,
    algorithm: str = "greedy",
    chunks: int | None = None,
    time_limit: str | None = None,
    seed: int = 0,
    unwind: str | None = None,
    latency: Latency = "overlapped",
    cluster: int | None = None,
    slot: str | None = None,
    trials: int | None = None,
    memory_limit: int | None = None,
    routing: str = "balanced",
    progress: Progress | None = None,
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
    chunks, time_limit, seed, unwind, latency, cluster, slot, trials, memory_limit, routing, progress
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
    return plan_collective(
        joined(collectives),
        topology,
        algorithm=algorithm,
        chunks=chunks,
        time_limit=time_limit,
        seed=seed,
        unwind=unwind,
        latency=latency,
        cluster=cluster,
        slot=slot,
        trials=trials,
        memory_limit=memory_limit,
        routing=routing,
        progress=progress,
    )


def plan_collective(
    collective: _core.Collective,
    topology: _core.Topology,
    *,
    algorithm: str | Schedule,
    chunks: int | None = None,
    time_limit: str | None = None,
    seed: int = 0,
    unwind: str | None = None,
    latency: Latency = "overlapped",
    cluster: int | None = None,
    slot: str | None = None,
    trials: int | None = None,
    memory_limit: int | None = None,
    routing: str = "balanced",
    progress: Progress | None = None,
) -> Plan:
    """Plan a collective that is already made; see :func:`plan`."""
    check_chunks(chunks)
    limit = checked_limit(memory_limit)
    routing = checked_routing(routing)
    if not isinstance(algorithm, (str, Schedule)):
        raise SpecError(f"algorithm: {algorithm!r} is neither a name nor a schedule")
    if isinstance(algorithm, str) and not is_scheduled(algorithm):
        check_name(algorithm)
    given = {"unwind": unwind, "trials": trials, "cluster": cluster, "slot": slot}
    check_options(algorithm, {**given, "seed": seed or None})
    if isinstance(algorithm, str):
        count = len(collective.npus)
        check_plan(collective.kind, count, topology.dimensions, algorithm, chunks, limit)
    if isinstance(algorithm, str) and algorithm in SYNTHESIZERS:
        options = SynthesisOptions(
            seed=seed,
            unwind=unwind,
            latency=latency,
            cluster=cluster,
            factor=None if slot is None else _slot_ps(slot),
            **({} if trials is None else {"trials": trials}),
            time_limit=None if time_limit is None else _seconds(time_limit),
        )
        if algorithm == "auto":
            planner = partial(
                plan_collective,
                collective,
                topology,
                memory_limit=limit,
                routing=routing,
                progress=progress,
            )
            return best_plan(planner, collective, topology, chunks, options, progress)
        pieces = chunks or _core.default_chunks(topology, collective, "greedy")
        core, synthesis = synthesize(
            collective,
            topology,
            algorithm=algorithm,
            pieces=pieces,
            options=options,
            memory_limit=limit,
            routing=routing,
            progress=progress,
        )
        return Plan(core, synthesis=synthesis)
    if isinstance(algorithm, str) and not is_scheduled(algorithm):
        if time_limit is not None:
            parse_time(time_limit, field="time_limit")
        return Plan(_core.plan(topology, collective, algorithm, chunks, limit, routing))
    schedule = schedule_collective(
        collective,
        topology,
        algorithm=algorithm,
        chunks=chunks,
        time_limit=time_limit,
        progress=progress,
    )
    core = _core.plan_of(schedule.core, limit)
    return Plan(core.routed(routing) if topology.may_have_equal_paths else core, schedule)


def _slot_ps(text: str) -> int:
    """Read the length of a slot."""
    length = parse_time(text, field="slot")
    if length == 0:
        raise SpecError(f"slot: {text!r} is shorter than a picosecond; give more, as '2.3 us'")
    return length


def _seconds(text: str) -> float:
    """Read a time limit."""
    return parse_time(text, field="time_limit") * 1e-12


def is_scheduled(algorithm: str) -> bool:
    """Whether an algorithm's plan is made of a schedule; hierarchical has a plan of its own."""
    return algorithm.startswith(PREFIX) or algorithm in MULTIRAIL[1:]
