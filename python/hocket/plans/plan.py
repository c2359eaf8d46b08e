"""Plans: made by an algorithm, read from a file, proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hocket import _core
from hocket._memory import checked_limit
from hocket.collectives.collective import Progress, check_chunks, collective_on, joined, slices_of
from hocket.collectives.outcome import Latency
from hocket.errors import SpecError
from hocket.plans.algorithms import check_name, check_options
from hocket.plans.schedule import MULTIRAIL, PREFIX, Schedule, schedule_collective
from hocket.plans.sizes import check_plan
from hocket.plans.synthesis import SYNTHESIZERS, Synthesis, SynthesisOptions, spread, synthesize
from hocket.units import parse_time, shown

if TYPE_CHECKING:
    from os import PathLike

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Transfers:
    """The transfers of a plan, as read-only NumPy columns of equal length.

    Attributes
    ----------
    chunk, chunk_count
        First chunk and number of consecutive chunks carried, shape ``(len(plan),)``, ``uint32``.
    src, dst
        Sending and receiving NPU, ``uint32``.
    op
        0 copy, 1 reduce, ``uint8``.
    wait
        What must end first, ``uint32``: ``Plan.NO_WAIT`` nothing; with the high bit set, a group (its
        position below it); otherwise a transfer.
    path
        Position of an explicit path, ``uint32``, or ``Plan.DEFAULT_ROUTE``.
    size_bytes
        Bytes carried, ``uint64`` (computed when asked for).
    """

    chunk: NDArray[np.uint32]
    chunk_count: NDArray[np.uint32]
    src: NDArray[np.uint32]
    dst: NDArray[np.uint32]
    op: NDArray[np.uint8]
    wait: NDArray[np.uint32]
    path: NDArray[np.uint32]
    _chunk_offsets: NDArray[np.uint64]

    @property
    def size_bytes(self) -> NDArray[np.uint64]:
        """Bytes that each transfer carries."""
        from hocket.plans.parquet import bytes_carried

        return bytes_carried(self._chunk_offsets, self.chunk, self.chunk_count)

    def __len__(self) -> int:
        return len(self.chunk)


class Plan:
    """The transfers that implement one collective on one topology.

    Made by :func:`hocket.plan` or :meth:`Plan.load`. Immutable.

    Attributes
    ----------
    synthesis
        How it was synthesized; ``None`` for other algorithms and for plans from files.
    """

    NO_WAIT = _core.Plan.NO_WAIT
    DEFAULT_ROUTE = _core.Plan.DEFAULT_ROUTE

    def __init__(
        self,
        core: _core.Plan,
        schedule: Schedule | None = None,
        synthesis: Synthesis | None = None,
    ) -> None:
        self.core = core
        self.own_schedule = schedule
        self.synthesis = synthesis

    @property
    def algorithm(self) -> str:
        """Name of the algorithm that made it."""
        return self.core.algorithm

    @property
    def topology(self) -> _core.Topology:
        """The network it was made for."""
        return self.core.topology

    @property
    def collective(self) -> _core.Collective:
        """What it implements."""
        return self.core.collective

    @property
    def chunks(self) -> int:
        """How many chunks the data is cut into."""
        return self.core.chunks

    @property
    def link_order(self) -> str:
        """In what order links are meant to serve its transfers: ready or plan."""
        return self.core.link_order

    @property
    def routing(self) -> str:
        """How its transfers are spread over equal paths: balanced, ecmp:SEED, spray or single.

        ``single`` says that nobody spread them: an algorithm's own paths are what it chose.
        """
        return self.core.routing

    def routed(self, routing: str) -> Plan:
        """Spread its transfers over equal paths in another way; see :func:`plan`.

        Returns
        -------
        Plan
            Another plan, not yet verified. Paths that the algorithm chose stay, but for synthesizers',
            which took any of several equal ones.
        """
        routing = checked_routing(routing)
        release = self.algorithm in SYNTHESIZERS and routing != "single"
        return Plan(self.core.routed(routing, release=release), self.own_schedule)

    @property
    def schedule(self) -> Schedule | None:
        """The schedule of dimensions that it carries out; ``None`` for other algorithms."""
        if self.own_schedule is None and self.algorithm == "hierarchical":
            lanes = self.chunks // len(self.collective.npus)
            return schedule_collective(
                self.collective, self.topology, algorithm="hierarchical", chunks=lanes
            )
        return self.own_schedule

    @property
    def nbytes(self) -> int:
        """Memory that the columns take [bytes]."""
        return self.core.nbytes

    @property
    def is_verified(self) -> bool:
        """Whether it has been proved right."""
        return self.core.is_verified

    @property
    def is_reproducible(self) -> bool | None:
        """Whether sums come out with the same bits in every timing, rounding included.

        That is so where the waits order every two sums into one value (docs/proof.md); ``None`` as
        long as the plan is not verified.
        """
        return self.core.is_reproducible

    @property
    def transfers(self) -> Transfers:
        """Every transfer, as columns; no copy is made."""
        core = self.core
        return Transfers(
            core.chunk,
            core.chunk_count,
            core.src,
            core.dst,
            core.op,
            core.wait,
            core.path,
            core.chunk_offsets,
        )

    def verify(self, *, progress: Progress | None = None) -> Plan:
        """Prove that the plan does what its collective asks, whatever the timing.

        Returns
        -------
        Plan
            This plan.

        Raises
        ------
        VerificationError
            With ``.violations``: code, transfer, chunk, NPU and what is wrong.
        """
        _core.verify(self.core, progress=progress)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan to a Parquet file, a transfer a row; whole or not at all."""
        from hocket.plans.parquet import save_plan

        save_plan(self, Path(path))

    @staticmethod
    def load(path: str | PathLike[str]) -> Plan:
        """Read a plan that :meth:`save` wrote.

        Raises
        ------
        SpecError
            If the file is missing, truncated, or no plan.
        """
        from hocket.plans.parquet import load_plan

        return load_plan(Path(path))

    def __len__(self) -> int:
        return len(self.core)

    def __repr__(self) -> str:
        return repr(self.core)


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


def merge_plans(plans: Sequence[Plan], *, memory_limit: int | None = None) -> Plan:
    """Make one plan that carries out several at once, as of groups that do not know of each other.

    Each keeps its chunks and waits, and its paths unless all are routed in the same way: then equal
    paths are shared out anew among all that is sent. Transfers take turns, plan by plan, so that where
    two are ready for a link at the same time no plan is always served first. Links serve by readiness,
    unless all plans ask for plan order.

    Parameters
    ----------
    plans
        On one topology.
    memory_limit
        Bytes that the work may take; most of the machine's memory by default.

    Returns
    -------
    Plan
        Of one custom collective that has the demands of all of them; not yet verified.

    Raises
    ------
    SpecError
        If there is none, they are of different topologies, or they do not fit in memory.
    """
    for each in plans:
        if not isinstance(each, Plan):
            raise SpecError(f"plans: {each!r} is no Plan; make one by hk.plan(...)")
    cores = [each.core for each in plans]
    return Plan(_core.Plan.merged(cores, checked_limit(memory_limit)))


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
            from hocket.plans.auto import best_plan

            return best_plan(collective, topology, chunks, options, limit, routing, progress)
        pieces = chunks or _core.default_chunks(topology, collective, "greedy")
        core, synthesis = synthesize(
            collective,
            topology,
            algorithm=algorithm,
            pieces=pieces,
            options=options,
            memory_limit=limit,
            progress=progress,
        )
        core, synthesis = spread(core, synthesis, routing, latency)
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


def checked_routing(routing: object) -> str:
    """Give a routing back as it is written in files.

    Raises
    ------
    SpecError
        If it is none.
    """
    if not isinstance(routing, str):
        raise SpecError(
            f"routing: {shown(routing)} is no name; give balanced, ecmp, spray or single"
        )
    return _core.checked_routing(routing)


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
