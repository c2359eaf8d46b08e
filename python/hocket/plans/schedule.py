"""Schedules: which way each chunk of a collective goes through the dimensions of a product, and when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from hocket import _core
from hocket._checks import check_function, instance_of, one_of
from hocket._core import multirail
from hocket._memory import memory_limit
from hocket._options import seconds
from hocket._results import TableResult, figure
from hocket.collectives.collective import Progress, check_chunks, collective_on
from hocket.collectives.outcome import OnCollective
from hocket.collectives.timing import Latency, Switching
from hocket.errors import SpecError
from hocket.plans.algorithms import PREFIX
from hocket.plans.synthesis.options import SHARES, Effort
from hocket.topology.sources import TopologyLike, as_topology
from hocket.units import Quantity, parse_size, shown

if TYPE_CHECKING:
    from hocket.plans.dimension_run import DimensionRun


class Lane(NamedTuple):
    """One chunk of a schedule and the dimensions that it goes through.

    Dimensions are numbered from 0, those of one NPU left out.
    """

    bytes: int
    """Of one NPU's vector; of the whole vector for reduce-scatter and all-gather."""
    reduce_scatter: tuple[int, ...]
    """Dimensions in the order of the reduce-scatter; empty for an all-gather."""
    all_gather: tuple[int, ...]
    """Dimensions in the order of the all-gather; empty for a reduce-scatter."""


class Schedule(OnCollective, TableResult):
    """The order of dimensions for each chunk, and the order in which each dimension serves the chunks.

    Made by :func:`hocket.schedule` or :meth:`Schedule.load`. Immutable.
    """

    def __init__(self, core: _core.Schedule) -> None:
        self.core = core

    @property
    @figure()
    def algorithm(self) -> str:
        """The algorithm that made it."""
        return self.core.algorithm

    @property
    def topology(self) -> _core.Topology:
        """The network it was made for."""
        return self.core.topology

    @property
    def collective(self) -> _core.Collective:
        """The collective that it implements."""
        return self.core.collective

    @property
    @figure()
    def policy(self) -> str:
        """The policy by which a dimension picks a ready operation: first-come or smallest-first."""
        return self.core.policy

    @property
    @figure()
    def switching(self) -> Switching:
        """The switching for which it was made."""
        return cast(Switching, self.core.switching)

    @cached_property
    def lanes(self) -> list[Lane]:
        """The chunks."""
        rows = self.core.lanes
        return [Lane(size, tuple(first), tuple(second)) for size, first, second in rows]

    def simulate(
        self, *, switching: Switching | None = None, latency_model: Latency = "overlapped"
    ) -> DimensionRun:
        """Run it at dimension fidelity, each dimension serving in the order that was fixed.

        Parameters
        ----------
        switching
            ``"cut-through"``: a step takes one transmission; ``"store-and-forward"``: one for each
            link; by default what it was made for.
        latency_model
            ``"overlapped"``: a dimension sends for others while messages are under way;
            ``"occupying"``: each message occupies it until it is at the end of the link.

        Raises
        ------
        SpecError
            If links have failed, or a switch has a limit of its own.
        """
        from hocket.plans.dimension_run import DimensionRun

        check_rails(self.topology)
        return DimensionRun(self.core.simulate(switching=switching, latency=latency_model), self)

    def save(self, name: str | PathLike[str]) -> None:
        """Keep it under a name, or in a ``.json`` file, for :meth:`load` and ``schedule:NAME``.

        Raises
        ------
        SpecError
            For a name that is none, or a file that cannot be written.
        """
        from hocket.plans.schedule_file import save_schedule

        save_schedule(self, name)

    @staticmethod
    def load(
        name: str | PathLike[str], topology: _core.Topology, collective: _core.Collective
    ) -> Schedule:
        """Read a schedule that :meth:`save` kept, for a collective of the same kind and any size.

        Lanes get the same shares of the data as they had.

        Raises
        ------
        SpecError
            If there is none of that name, or it is for another collective or other dimensions.
        """
        from hocket.plans.schedule_file import load_schedule

        return load_schedule(name, topology, collective)

    @staticmethod
    def from_chunks(
        chunks: Iterable[Lane | tuple[Quantity, Sequence[int], Sequence[int]]],
        topology: _core.Topology,
        collective: _core.Collective,
        *,
        policy: str = "first-come",
        switching: Switching | None = None,
    ) -> Schedule:
        """Make a schedule of one's own; it is called ``schedule`` where an algorithm's name stands.

        Parameters
        ----------
        chunks
            Of each: its bytes, the dimensions in the order of the reduce-scatter, and those in the order of
            the all-gather, as in :class:`hocket.Lane`. Together they have the bytes of the collective.
        topology
            A product with dimensions.
        collective
            An all-reduce, reduce-scatter or all-gather among all NPUs.
        policy
            Which of the operations that are ready a dimension begins: ``"first-come"`` or
            ``"smallest-first"``.
        switching
            How switches pass messages on; by default as the topology has it.

        Raises
        ------
        SpecError
            Naming the chunk that makes no sense, or if they have other bytes than the collective.
        InfeasibleError
            If the topology has no dimensions.

        Examples
        --------
        >>> import hocket as hk
        >>> topo = hk.topology.torus(4, 4, bandwidth="25 GB/s", latency="1 us")
        >>> both = hk.collective_on("all-reduce", topo, "2 MB")
        >>> rows = [("1 MB", (0, 1), (1, 0)), ("1 MB", (1, 0), (0, 1))]
        >>> hk.Schedule.from_chunks(rows, topo, both)
        <Schedule schedule all-reduce on 'torus 4x4': 2 chunks>
        """
        lanes = []
        for number, row in enumerate(chunks):
            try:
                size, first, second = row
                lanes.append((parse_size(size, field="bytes"), list(first), list(second)))
            except SpecError as error:
                raise error.within(f"chunk {number}") from None
            except (TypeError, ValueError):
                right = "give its bytes and two lists of dimensions"
                raise SpecError(f"chunk {number}", f"{shown(row)} is not a chunk", right) from None
        total = sum(size for size, _, _ in lanes)
        if lanes and total != collective.size:
            why = f"they have {total} B together, and the collective {collective.size} B"
            raise SpecError("chunks", why, "make the two equal")
        made = switching or cast(Switching, topology.switching)
        try:
            core = _core.Schedule.of_lanes(topology, collective, "schedule", policy, made, lanes)
        except (TypeError, OverflowError) as error:
            raise SpecError("chunks", f"a dimension is not a number ({error})") from None
        return Schedule(core)

    def _rows(self) -> list[dict[str, Any]]:
        return [each._asdict() for each in self.lanes]

    @figure("chunks")
    def __len__(self) -> int:
        return len(self.core.lanes)

    def __repr__(self) -> str:
        kind, topology = self.collective.kind, self.topology.name
        return f"<Schedule {self.algorithm} {kind} on {topology!r}: {len(self)} chunks>"


def schedule(
    kind: str,
    topology: TopologyLike,
    *,
    size: int | str,
    algorithm: str | Schedule = "multirail-optimal",
    chunks: int | None = None,
    effort: Effort = "normal",
    time_limit: float | str | None = None,
    progress: Progress | None = None,
) -> Schedule:
    """Schedule a collective among all NPUs of a product topology, dimension by dimension.

    Parameters
    ----------
    kind
        ``all-reduce``, ``reduce-scatter`` or ``all-gather``.
    topology
        A product with dimensions.
    size
        See :func:`hocket.collective_on`.
    algorithm
        ``hierarchical``, ``themis-fifo``, ``themis`` or ``multirail-optimal``; ``schedule:NAME`` for
        one that was saved; or a :class:`Schedule`.
    chunks
        How many; 64 by default, as many for each algorithm, so that times can be compared. A schedule that
        is made has its own.
    effort
        How many trials multirail-optimal makes: ``low``, ``normal`` (about a second's worth) or ``high``.
        The result is always the same.
    time_limit
        Longest time for them, such as ``"200 ms"``: the best so far is the result.

    Raises
    ------
    SpecError
        For input that makes no sense.
    InfeasibleError
        If the topology has no dimensions, or the algorithm schedules none.

    References
    ----------
    Rashidi et al.: Themis, ISCA 2022.
    """
    check_function("progress", progress)
    if not isinstance(algorithm, Schedule):
        instance_of(str, "algorithm", algorithm, "give a name, or a Schedule")
    topology = as_topology(topology)
    collective = collective_on(kind, topology, size)
    if chunks is None and algorithm == "hierarchical":
        chunks = _core.registry.default_chunks(topology, collective, "themis")
    return schedule_collective(
        collective,
        topology,
        algorithm=algorithm,
        chunks=chunks,
        effort=effort,
        time_limit=time_limit,
        progress=progress,
    )


def schedule_collective(
    collective: _core.Collective,
    topology: _core.Topology,
    *,
    algorithm: str | Schedule,
    chunks: int | None = None,
    effort: Effort = "normal",
    time_limit: float | str | None = None,
    progress: Progress | None = None,
) -> Schedule:
    """Schedule a collective that is already made; see :func:`hocket.schedule`."""
    limit = None if time_limit is None else seconds(time_limit, "time_limit")
    one_of("effort", effort, get_args(Effort))
    check_chunks(chunks)
    is_made = isinstance(algorithm, Schedule) or algorithm.startswith(PREFIX)
    if is_made and chunks is not None:
        raise SpecError("chunks", "a schedule that is made has its own", "leave them out")
    if isinstance(algorithm, Schedule):
        try:
            shapes = rail_shapes(algorithm.topology)
            check_fits(algorithm.collective.kind, shapes, topology, collective)
        except SpecError as error:
            raise error.but(field="schedule") from None
        return rebuilt(
            algorithm.algorithm,
            algorithm.policy,
            algorithm.switching,
            algorithm.lanes,
            topology,
            collective,
        )
    if algorithm.startswith(PREFIX):
        return Schedule.load(algorithm.removeprefix(PREFIX), topology, collective)
    core = _core.schedule(
        topology,
        collective,
        algorithm,
        chunks,
        memory_limit(),
        effort=SHARES[effort],
        time_limit=limit,
        progress=progress,
    )
    return Schedule(core)


def check_rails(topology: _core.Topology) -> None:
    """Refuse a product whose NPUs do not all have the same links at the same bandwidth.

    Raises
    ------
    SpecError
        If links have failed, or a switch has a limit of its own.
    """
    try:
        multirail.check_rails(topology)
    except SpecError as error:
        raise error.but(field="fidelity") from None


def check_fits(
    kind: str,
    dimensions: list[tuple[str, int]],
    topology: _core.Topology,
    collective: _core.Collective,
) -> None:
    """Refuse a schedule's kind or dimensions where they are not those of a collective's.

    Raises
    ------
    SpecError
        With both.
    """
    if kind != collective.kind:
        raise SpecError(None, f"it schedules {kind}, not {collective.kind}")
    own = rail_shapes(topology)
    if own != dimensions:
        raise SpecError(
            None,
            f"it is for {_shown(dimensions)}; topology {topology.name!r} has {_shown(own)}",
            "make one for it by `hocket plan --dimension-only`",
        )


def rail_shapes(topology: _core.Topology) -> list[tuple[str, int]]:
    """Kind and size of each dimension of more than one NPU."""
    return [(kind, size) for _, kind, size, *_ in multirail.rails(topology)]


def _shown(dimensions: list[tuple[str, int]]) -> str:
    return " x ".join(f"{kind} {size}" for kind, size in dimensions) or "no dimensions"


def rebuilt(
    algorithm: str,
    policy: str,
    switching: str,
    lanes: Sequence[tuple[int, Sequence[int], Sequence[int]]],
    topology: _core.Topology,
    collective: _core.Collective,
) -> Schedule:
    """Return the schedule of lanes, their bytes as shares of the collective's size.

    Raises
    ------
    SpecError
        If a lane makes no sense, or gets no byte.
    """
    total = sum(size for size, _, _ in lanes)
    scaled, upto, start = [], 0, 0
    for size, first, second in lanes:
        upto += size
        end = collective.size * upto // max(total, 1)
        scaled.append((end - start, list(first), list(second)))
        start = end
    core = _core.Schedule.of_lanes(topology, collective, algorithm, policy, switching, scaled)
    return Schedule(core)
