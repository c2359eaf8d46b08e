"""One synthesized plan, with what is known of how good it is."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from hocket import _core
from hocket._core import synthesis as core
from hocket._results import Result, figure, picoseconds, said
from hocket.collectives.collective import Progress
from hocket.errors import InfeasibleError
from hocket.plans.synthesis.options import ROUNDING, PlanOptions


@dataclass(frozen=True)
class Synthesis(Result):
    """How a plan was synthesized.

    Attributes
    ----------
    method
        ``greedy``, ``exact`` or ``blind``.
    status
        ``optimal`` where no timetable of these chunks (of ``exact``: in these slots) is shorter, by more
        than 0.001 % (chunks whose sizes differ by a byte count as the larger), and the plan keeps to its
        own; else ``feasible``.
    time_ps
        When the plan ends [ps], simulated at link fidelity with the same latency.
    simulated
        Whether it was: the time of more than 300,000 transfers is that of their timetable, and
        :func:`hocket.simulate` gives their own.
    least_ps
        A proven lower bound on the time of any timetable of these chunks on this network as unwound [ps].
        At most `time_ps`: a plan may be faster through switches than edges that share their links evenly.
    slots, least_slots
        Of ``exact``, how many slots its timetable takes, and how many any takes in such slots; copies of an
        all-reduce are counted after its sums. Else ``None``.
    slot_ps
        How long a slot is [ps]; ``None`` where there are none.
    unwind
        How switches were unwound: one entry for all, or one for each dimension.
    seed
        Of the random choices.
    seconds
        How long it took to make, without its simulation.
    """

    method: str
    status: str
    time_ps: int
    simulated: bool
    least_ps: int
    slots: int | None
    least_slots: int | None
    slot_ps: int | None
    unwind: str
    seed: int
    seconds: float = field(metadata=said("elapsed_ps", of=picoseconds))

    @property
    def time(self) -> float:
        """When the plan ends [s]."""
        return self.time_ps * 1e-12

    @property
    def least(self) -> float:
        """The lower bound on the time of any timetable of these chunks [s]."""
        return self.least_ps * 1e-12

    @property
    def slot(self) -> float | None:
        """How long a slot is [s]; None if there are none."""
        return None if self.slot_ps is None else self.slot_ps * 1e-12

    @property
    @figure()
    def gap(self) -> float:
        """How much longer than the least: time / least - 1, where 0 ps count as 1 ps."""
        return _core.gap(self.time_ps, self.least_ps)


def too_late(algorithm: str, options: PlanOptions) -> InfeasibleError:
    """Give the error of a search that had no plan when its time limit passed."""
    why = f"{algorithm} found no plan within {options.seconds:g} s"
    return InfeasibleError(None, why, "give more time")


class Deadline:
    """What is left of a time limit."""

    def __init__(self, seconds: float | None) -> None:
        self._ends = None if seconds is None else time.monotonic() + seconds

    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self._ends is not None and time.monotonic() >= self._ends

    def left(self) -> float | None:
        """Give the seconds left, a little at least; ``None`` for no limit."""
        return None if self._ends is None else max(0.001, self._ends - time.monotonic())


def synthesize(
    collective: _core.Collective,
    topology: _core.Topology,
    *,
    algorithm: str,
    pieces: int,
    options: PlanOptions,
    memory_limit: int,
    progress: Progress | None = None,
) -> tuple[_core.Plan, Synthesis]:
    """Synthesize a plan by ``greedy``, ``exact`` or ``blind``.

    Parameters
    ----------
    collective, topology
        What and where.
    pieces
        Into how many chunks each NPU's share is cut.

    Raises
    ------
    SpecError
        For input that makes no sense, or more than fits in memory, or a solver that is missing.
    InfeasibleError
        If somebody who wants a chunk cannot be reached.
    """
    started = time.perf_counter()
    deadline = Deadline(options.seconds)
    best = _quickest(
        collective, topology, algorithm, pieces, options, memory_limit, deadline, progress
    )
    least_ps = best.problem.least_ps
    solved = own = None
    if algorithm == "exact":
        from hocket.plans.synthesis.exact import solve_exactly

        rest = replace(options, time_limit=deadline.left())
        solved = solve_exactly(best.problem, rest, memory_limit, progress)
        own = core.Candidate(
            solved.problem, solved.timetables, best.unwinding, options.latency, algorithm
        )
    seconds = time.perf_counter() - started
    if own is not None:
        # Slots round up and hold links during their latency: greedy, which does neither, may be faster.
        best = min(own, best, key=lambda each: each.time_ps)
    time_ps = best.time_ps
    is_least = time_ps <= min(least_ps, time_ps) * (1 + ROUNDING)
    if solved is not None and best is own:
        is_least = solved.slots == solved.least
    is_plain = len(topology.device_names) == topology.npu_count == len(collective.npus)
    keeps_time = best.end_ps is not None and time_ps <= best.end_ps
    spread = best.routed(options.routing)
    keeps_time &= (best.is_simulated or is_plain) and spread.time_ps == time_ps
    keeps_time &= spread.is_simulated or not best.is_simulated
    return spread.plan, Synthesis(
        method=algorithm,
        status="optimal" if is_least and keeps_time else "feasible",
        time_ps=spread.time_ps,
        simulated=spread.is_simulated,
        least_ps=min(least_ps, time_ps, spread.time_ps),
        slots=None if solved is None else solved.slots,
        least_slots=None if solved is None else solved.least,
        slot_ps=None if solved is None else solved.length,
        unwind=",".join(best.unwinding),
        seed=options.seed,
        seconds=seconds,
    )


def _quickest(
    collective: _core.Collective,
    topology: _core.Topology,
    algorithm: str,
    pieces: int,
    options: PlanOptions,
    memory_limit: int,
    deadline: Deadline,
    progress: Progress | None,
) -> core.Candidate:
    """Give the quickest of the plans of all unwindings that there is time for."""
    tried = options.unwindings(topology)
    try:
        return core.synthesize(
            topology,
            collective,
            method="blind" if algorithm == "blind" else "greedy",
            pieces=pieces,
            unwinding=tried[0] if options.names_unwinding else [],
            latency=options.latency,
            seed=options.seed,
            trials=options.trials,
            memory_limit=memory_limit,
            time_limit=options.seconds,
            progress=progress,
        )
    except InfeasibleError as error:
        if not deadline.is_over():
            raise
        raise too_late(algorithm, options) from error
