"""A timetable without a plan, for networks of tens of thousands of NPUs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from hocket import _core
from hocket._checks import check_function, instance_of
from hocket._core import synthesis as core
from hocket._memory import checked_limit
from hocket._results import Result, picoseconds, said
from hocket.collectives.collective import Progress, check_chunks
from hocket.collectives.timing import Latency
from hocket.errors import InfeasibleError
from hocket.plans.synthesis.options import PlanOptions

NAME = "greedy"
"""The algorithm whose timetables these are."""


@dataclass(frozen=True)
class CompactTimetable(Result):
    """The result of greedy matching, checked slot by slot, without a plan.

    Attributes
    ----------
    slots, sends
        How many.
    end_ps
        When the last chunk has come [ps].
    least_ps
        A lower bound on the end of any timetable of these chunks on this network [ps].
    seconds
        How long it took.
    """

    slots: int
    sends: int
    end_ps: int
    least_ps: int
    seconds: float = field(metadata=said("elapsed_ps", of=picoseconds))

    @property
    def end(self) -> float:
        """When the last chunk has come [s]."""
        return self.end_ps * 1e-12

    @property
    def least(self) -> float:
        """The lower bound on the end of any timetable of these chunks [s]."""
        return self.least_ps * 1e-12


def timetable(
    collective: _core.Collective,
    topology: _core.Topology,
    *,
    chunks: int | None = None,
    seed: int = 0,
    latency_model: Latency = "overlapped",
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> CompactTimetable:
    """Match greedily, slot by slot, and check the timetable, without making a plan of it.

    A plan takes a hundred bytes a transfer, the timetable four. For networks without switches whose links
    are all alike, and collectives in which everybody gets everything or adds to everything but not both:
    all-gather, reduce-scatter, broadcast, reduce.

    Raises
    ------
    InfeasibleError
        If links differ in cost, or it is another collective, or somebody cannot be reached.
    SpecError
        If it does not fit in memory.
    """
    check_chunks(chunks)
    check_function("progress", progress)
    instance_of(_core.Topology, "topology", topology, "make one, as by hk.topology.load(...)")
    instance_of(_core.Collective, "collective", collective, "make one by hk.collective_on(...)")
    options = PlanOptions(seed=seed, latency_model=latency_model)
    limit = checked_limit(memory_limit)
    if len(topology.device_names) > topology.npu_count:
        raise InfeasibleError(
            None, f"no timetable without a plan for {topology.name}: it has switches", "make a plan"
        )
    _core.registry.check_size(collective.kind, len(collective.npus), [], None, chunks, limit)
    started = time.perf_counter()
    pieces = chunks or _core.registry.default_chunks(topology, collective, NAME)
    unwinding = options.unwindings(topology)[0]
    problem = core.Problem(topology, collective, pieces, unwinding, latency_model, limit)
    slots, sends, end = problem.compact(seed, progress=progress)
    return CompactTimetable(
        slots=slots,
        sends=sends,
        end_ps=end,
        least_ps=problem.least_ps,
        seconds=time.perf_counter() - started,
    )
