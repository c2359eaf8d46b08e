"""One synthesized plan, with what is known of how good it is."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property

from hocket import _core
from hocket.collectives.collective import Progress
from hocket.errors import Error, InfeasibleError, SpecError
from hocket.plans.synthesis.choices import ROUNDING, SYNTHESIZERS, SynthesisOptions


@dataclass(frozen=True)
class Synthesis:
    """How a plan was synthesized.

    Attributes
    ----------
    method
        ``greedy``, ``exact`` or ``blind``.
    status
        ``optimal`` where no timetable of these chunks (of ``exact``: in these slots) is shorter, by more
        than 0.001 % (chunks whose sizes differ by a byte count as the larger), and the plan keeps to its
        own; else ``feasible``.
    time
        When the plan ends [s], simulated at link fidelity with the same latency.
    simulated
        Whether it was: the time of more than 300,000 transfers is that of their timetable, and
        :func:`hocket.simulate` gives their own.
    least
        A proven lower bound on the time of any timetable of these chunks on this network as unwound [s]; at
        most `time`, since a plan may be faster through switches than edges that share their links evenly.
    slots, least_slots
        Of ``exact``, how many slots its timetable takes, and how many any takes in such slots; copies of an
        all-reduce are counted after its sums. Else ``None``.
    slot
        How long a slot is [s]; ``None`` where there are none.
    unwind
        How switches were unwound: one entry for all, or one for each dimension.
    seed
        Of the random choices.
    seconds
        How long it took to make, without its simulation.
    """

    method: str
    status: str
    time: float
    simulated: bool
    least: float
    slots: int | None
    least_slots: int | None
    slot: float | None
    unwind: str
    seed: int
    seconds: float

    @property
    def gap(self) -> float:
        """How much longer than the least: time / least - 1, where 0 ps count as 1 ps."""
        return _core.gap(round(self.time * 1e12), round(self.least * 1e12))


_SIMULATED = 300_000
"""Transfers up to which plans are simulated, to choose among them and to say when they end."""


class _Made:
    """What one unwinding gave: a plan, made of timetables or (blind) without."""

    def __init__(
        self,
        problem: _core.Problem,
        unwinding: list[str],
        found: _core.Timetables | _core.Plan,
        latency: str,
        algorithm: str = "greedy",
    ) -> None:
        self.problem = problem
        self.unwinding = unwinding
        self._found = found
        self._latency = latency
        self._algorithm = algorithm

    @cached_property
    def plan(self) -> _core.Plan:
        """The plan."""
        if isinstance(self._found, _core.Plan):
            return self._found
        return self.problem.plan(self._algorithm, self._found)

    @property
    def end_ps(self) -> int | None:
        """When its timetable ends; ``None`` where there is none."""
        return None if isinstance(self._found, _core.Plan) else self._found.end_ps

    @property
    def is_small(self) -> bool:
        """Whether it is simulated."""
        return self.problem.transfers <= _SIMULATED or self.end_ps is None

    @cached_property
    def time_ps(self) -> int:
        """When the plan ends on the network itself, proved and simulated; else when its timetable does."""
        if not self.is_small and self.end_ps is not None:
            return self.end_ps
        _core.verify(self.plan)
        return _core.simulate(self.plan, latency=self._latency).time_ps


def _quickest(made: list[_Made]) -> _Made:
    """Give the best: through switches a plan may be slower than its timetable, so it is simulated."""
    if len(made) == 1:
        return made[0]
    if all(each.is_small for each in made):
        return min(made, key=lambda each: each.time_ps)
    return min(made, key=lambda each: each.end_ps or each.time_ps)


def spread(
    plan: _core.Plan, synthesis: Synthesis, routing: str, latency: str
) -> tuple[_core.Plan, Synthesis]:
    """Spread a synthesized plan over equal paths, and say when it ends then.

    Balanced only where it is no slower: unwinding has spread what shares links.
    """
    if routing == "single" or not plan.topology.may_have_equal_paths:
        return plan, synthesis
    made = plan.routed(routing, release=True)
    if routing == "spray":  # whose time at link fidelity nobody can tell
        return made, replace(synthesis, simulated=False, status="feasible")
    if not synthesis.simulated:
        return (plan if routing == "balanced" else made), synthesis
    _core.verify(made)
    time_ps = _core.simulate(made, latency=latency).time_ps
    planned_ps = round(synthesis.time * 1e12)
    if routing == "balanced" and time_ps > planned_ps:
        return plan, synthesis
    status = synthesis.status if time_ps == planned_ps else "feasible"
    seconds = time_ps * 1e-12
    least = min(synthesis.least, seconds)
    return made, replace(synthesis, status=status, time=seconds, least=least)


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
    options: SynthesisOptions,
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
    if algorithm not in SYNTHESIZERS or algorithm == "auto":
        raise SpecError(f"algorithm: {algorithm!r} is no synthesizer")
    started = time.perf_counter()
    deadline = Deadline(options.time_limit)
    best = _quickest(
        _unwound(collective, topology, algorithm, pieces, options, memory_limit, deadline, progress)
    )
    least_ps = best.problem.least_ps
    solved = own = None
    if algorithm == "exact":
        from hocket.plans.synthesis.exact import solve_exactly

        rest = replace(options, time_limit=deadline.left())
        solved = solve_exactly(best.problem, rest, memory_limit, progress)
        own = _Made(solved.problem, best.unwinding, solved.timetables, options.latency, "exact")
    seconds = time.perf_counter() - started
    if own is not None:
        # Slots round up and hold links during their latency: greedy, which does neither, may be faster.
        best = min(own, best, key=lambda each: each.time_ps)
    time_ps = best.time_ps
    least_ps = min(least_ps, time_ps)
    is_least = time_ps <= least_ps * (1 + ROUNDING)
    if solved is not None and best is own:
        is_least = solved.slots == solved.least
    is_plain = len(topology.device_names) == topology.npu_count == len(collective.npus)
    keeps_time = best.end_ps is not None and time_ps <= best.end_ps and (best.is_small or is_plain)
    return best.plan, Synthesis(
        method=algorithm,
        status="optimal" if is_least and keeps_time else "feasible",
        time=time_ps * 1e-12,
        simulated=best.is_small,
        least=least_ps * 1e-12,
        slots=None if solved is None else solved.slots,
        least_slots=None if solved is None else solved.least,
        slot=None if solved is None else solved.length * 1e-12,
        unwind=",".join(best.unwinding),
        seed=options.seed,
        seconds=seconds,
    )


def _unwound(
    collective: _core.Collective,
    topology: _core.Topology,
    algorithm: str,
    pieces: int,
    options: SynthesisOptions,
    memory_limit: int,
    deadline: Deadline,
    progress: Progress | None,
) -> list[_Made]:
    """Plan with each unwinding that is to be tried, for as long as there is time."""
    made: list[_Made] = []
    failure: Error | None = None
    for unwinding in options.unwindings(topology):
        if made and deadline.is_over():
            break
        problem = _core.Problem(
            topology, collective, pieces, unwinding, options.latency, memory_limit
        )
        try:
            found: _core.Plan | _core.Timetables
            if algorithm == "blind":
                found = problem.blind(options.seed)
            else:
                found = problem.greedy(
                    options.seed, options.trials, time_limit=deadline.left(), progress=progress
                )
        except Error as error:
            failure = error
            if deadline.is_over() and isinstance(error, InfeasibleError):
                failure = InfeasibleError(
                    f"{algorithm} found no plan within {options.time_limit:g} s; give more time"
                )
            continue
        made.append(_Made(problem, unwinding, found, options.latency))
    if not made:
        assert failure is not None, "there is always an unwinding to try"
        raise failure
    return made
