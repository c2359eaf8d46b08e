"""One synthesized plan, with what is known of how good it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from hocket import _core
from hocket._core import synthesis as core
from hocket._results import Result, figure, picoseconds, said
from hocket.collectives.collective import Progress
from hocket.errors import InfeasibleError
from hocket.plans.synthesis.options import ROUNDING, PlanOptions


@dataclass(frozen=True)
class Synthesis(Result):
    """The result of a synthesis.

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
        How long it took to make, without its simulation; 0 of a plan from a file.
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
    seconds: float = field(compare=False, metadata=said("elapsed_ps", of=picoseconds))

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
        """The length of a slot [s]; None if there are no slots."""
        return None if self.slot_ps is None else self.slot_ps * 1e-12

    @property
    @figure()
    def gap(self) -> float:
        """The gap to the least time: time / least - 1, where 0 ps count as 1 ps."""
        return _core.gap(self.time_ps, self.least_ps)


class Deadline:
    """The rest of a time limit."""

    def __init__(self, seconds: float | None) -> None:
        self._ends = None if seconds is None else time.monotonic() + seconds

    def is_over(self) -> bool:
        """Return whether nothing is left."""
        return self._ends is not None and time.monotonic() >= self._ends

    def left(self) -> float | None:
        """Return the seconds left, a little at least; ``None`` for no limit."""
        return None if self._ends is None else max(0.001, self._ends - time.monotonic())


def solve(
    collective: _core.Collective,
    topology: _core.Topology,
    *,
    pieces: int,
    options: PlanOptions,
    progress: Progress | None = None,
    work: _core.Work | None = None,
) -> tuple[core.Candidate, Synthesis]:
    """Plan by ``exact``: a solver, which begins with what ``greedy`` finds.

    Parameters
    ----------
    collective, topology
        What and where.
    pieces
        Into how many chunks each NPU's share is cut.
    work
        What may be done, and is counted.

    Raises
    ------
    SpecError
        For input that makes no sense, or more than fits in memory, or a solver that is missing.
    InfeasibleError
        If somebody who wants a chunk cannot be reached.
    """
    from hocket.plans.synthesis.exact import solve_exactly

    started = time.perf_counter()
    deadline = Deadline(options.seconds)
    with limited("exact", options, work):
        lone = replace(options, routing="single")
        made = searched(collective, topology, "greedy", pieces, lone, progress, work)
    assert made.candidates is not None, "greedy has found one"
    best = made.candidates[0]
    rest = replace(options, time_limit=deadline.left())
    solved = solve_exactly(best.problem, rest, options.limit_bytes, progress, work)
    own = core.Candidate(
        solved.problem, solved.timetables, best.unwinding, options.latency_model, "exact"
    )
    seconds = time.perf_counter() - started
    # Slots round up and hold links during their latency: greedy, which does neither, may be faster.
    chosen = min(own, best, key=lambda each: each.time_ps)
    spread = chosen.routed(options.routing)
    synthesis = synthesis_of("exact", chosen, spread, options, seconds, best.problem.least_ps)
    if chosen is own:
        is_least = solved.slots == solved.least and _keeps_time(chosen, spread)
        synthesis = replace(synthesis, status="optimal" if is_least else "feasible")
    slots, least, length = solved.slots, solved.least, solved.length
    return spread, replace(synthesis, slots=slots, least_slots=least, slot_ps=length)


def searched(
    collective: _core.Collective,
    topology: _core.Topology,
    algorithm: str,
    chunks: int | None,
    options: PlanOptions,
    progress: Progress | None = None,
    work: _core.Work | None = None,
) -> _core.Made:
    """Plan by an algorithm of the core, with the options that it uses."""
    unwinding = options.unwindings(topology)[0] if options.names_unwinding else []
    return _core.plan(
        topology,
        collective,
        algorithm,
        chunks,
        options.limit_bytes,
        options.routing,
        latency=options.latency_model,
        seed=options.seed,
        trials=options.trials,
        unwinding=unwinding,
        relays=options.relays,
        effort=options.share,
        time_limit=options.seconds,
        work=work,
        progress=progress,
    )


def synthesis_of(
    method: str,
    found: core.Candidate,
    spread: core.Candidate,
    options: PlanOptions,
    seconds: float,
    least_ps: int,
) -> Synthesis:
    """Judge what a search found, and the same spread over equal paths."""
    time_ps = found.time_ps
    is_least = time_ps <= min(least_ps, time_ps) * (1 + ROUNDING)
    return Synthesis(
        method=method,
        status="optimal" if is_least and _keeps_time(found, spread) else "feasible",
        time_ps=spread.time_ps,
        simulated=spread.is_simulated,
        least_ps=min(least_ps, time_ps, spread.time_ps),
        slots=None,
        least_slots=None,
        slot_ps=None,
        unwind=",".join(found.unwinding),
        seed=options.seed,
        seconds=seconds,
    )


def _keeps_time(found: core.Candidate, spread: core.Candidate) -> bool:
    """Return whether a plan takes the time that its timetable says."""
    (plan, _), time_ps = found.plan_and_run, found.time_ps
    topology = plan.topology
    is_plain = len(topology.device_names) == topology.npu_count == len(plan.collective.npus)
    keeps_time = found.end_ps is not None and time_ps <= found.end_ps
    keeps_time &= (found.is_simulated or is_plain) and spread.time_ps == time_ps
    return keeps_time and (spread.is_simulated or not found.is_simulated)


@contextmanager
def limited(algorithm: str, options: PlanOptions, work: _core.Work | None) -> Iterator[None]:
    """Name the limit that has ended a search; refusals, which name an algorithm, are left."""
    deadline = Deadline(options.seconds)
    try:
        yield
    except InfeasibleError as error:
        if error.origin is None and deadline.is_over():
            why = f"{algorithm} found no plan within {options.seconds:g} s"
            raise InfeasibleError(None, why, "give more time") from error
        if error.origin is None and work is not None and not work.left:
            why = f"{algorithm} found no plan within the work of {options.effort} effort"
            raise InfeasibleError(None, why, "give more effort, or another algorithm") from error
        raise
