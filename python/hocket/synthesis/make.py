"""One synthesized plan, with what is known of how good it is."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from hocket import _core
from hocket.collectives import Progress
from hocket.errors import Error, InfeasibleError, SpecError
from hocket.synthesis.choices import ROUNDING, SYNTHESIZERS, SynthesisOptions


@dataclass(frozen=True)
class Synthesis:
    """How a plan was synthesized.

    Attributes
    ----------
    method
        ``greedy``, ``exact`` or ``blind``.
    status
        ``optimal`` where nothing on this time-expanded network is shorter (by more than 0.001 %: chunks
        whose sizes differ by a byte count as the larger) and the plan keeps to its timetable, else
        ``feasible``.
    end
        When the timetable that the plan was made of ends [s]; the plan itself may be faster, and through
        switches slower. Of ``blind``, which has no timetable, when the plan ends.
    least
        A proven lower bound on the end of any timetable of this network as unwound, with these chunks [s];
        copies of an all-reduce are counted after its sums where `method` is ``exact``. Of ``blind``, which
        keeps to no unwinding, at most `end`.
    slots, least_slots
        The same in slots, for ``exact``; else ``None``.
    slot
        How long a slot is [s]; ``None`` where there are none.
    unwind
        How switches were unwound: one entry for all, or one for each dimension.
    time
        When the plan ends, simulated at link fidelity with the same latency [s]; ``None`` for more than
        300,000 transfers, which are left to :func:`hocket.simulate`.
    seed
        Of the random choices.
    seconds
        How long it took to make, without its simulation.
    """

    method: str
    status: str
    end: float
    least: float
    slots: int | None
    least_slots: int | None
    slot: float | None
    unwind: str
    time: float | None
    seed: int
    seconds: float

    @property
    def gap(self) -> float:
        """How much longer than the least: end / least - 1."""
        return self.end / self.least - 1 if self.least else 0.0


_SIMULATED = 300_000
"""Transfers up to which rival unwindings are simulated."""


@dataclass
class _Made:
    """What one unwinding gave: timetables, or (blind) a plan."""

    problem: _core.Problem
    tables: _core.Timetables | None
    own_plan: _core.Plan | None
    unwinding: list[str]

    def plan(self) -> _core.Plan:
        """Give the plan; it is made once."""
        if self.own_plan is None:
            assert self.tables is not None, "one or the other"
            self.own_plan = self.problem.plan("greedy", self.tables)
        return self.own_plan

    def simulated(self, latency: str) -> int:
        """Give its time on the real network [ps]."""
        return _time_of(self.plan(), latency)


def _time_of(plan: _core.Plan, latency: str) -> int:
    """Prove a plan and simulate it [ps]."""
    _core.verify(plan)
    return _core.simulate(plan, latency=latency).time_ps


def _quickest(made: list[_Made], latency: str) -> _Made:
    """Give the best: through switches a plan may be slower than its timetable, so it is simulated."""
    if len(made) == 1:
        return made[0]
    if any(each.problem.transfers > _SIMULATED for each in made):
        return min(made, key=lambda each: each.tables.end_ps if each.tables is not None else 0)
    return min(made, key=lambda each: each.simulated(latency))


def spread(
    plan: _core.Plan, synthesis: Synthesis, routing: str, latency: str
) -> tuple[_core.Plan, Synthesis]:
    """Spread a synthesized plan over equal paths, and say when it ends then.

    Balanced only where it is no slower: unwinding has spread what shares links.
    """
    if routing == "single" or not plan.topology.may_have_equal_paths:
        return plan, synthesis
    if routing == "spray":
        return plan.routed(routing, release=True), replace(synthesis, time=None)
    if synthesis.time is None:
        made = plan if routing == "balanced" else plan.routed(routing, release=True)
        return made, synthesis
    made = plan.routed(routing, release=True)
    time_ps = _time_of(made, latency)
    if routing == "balanced" and time_ps > round(synthesis.time * 1e12):
        return plan, synthesis
    return made, replace(synthesis, time=time_ps * 1e-12)


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
    unwindings = options.unwindings(topology)
    made: list[_Made] = []
    failure: Error | None = None
    for unwinding in unwindings:
        if made and deadline.is_over():
            break
        problem = _core.Problem(
            topology, collective, pieces, unwinding, options.latency, memory_limit
        )
        try:
            if algorithm == "blind":
                made.append(_Made(problem, None, problem.blind(options.seed), unwinding))
            else:
                tables = problem.greedy(
                    options.seed, options.trials, time_limit=deadline.left(), progress=progress
                )
                made.append(_Made(problem, tables, None, unwinding))
        except Error as error:
            failure = error
            if deadline.is_over() and isinstance(error, InfeasibleError):
                failure = InfeasibleError(
                    f"{algorithm} found no plan within {options.time_limit:g} s; give more time"
                )
    if not made:
        assert failure is not None, "there is always an unwinding to try"
        raise failure
    best = _quickest(made, options.latency)
    problem, least = best.problem, best.problem.least_ps
    slots = least_slots = slot = None
    if algorithm == "exact":
        from hocket.synthesis.exact import solve_exactly

        rest = replace(options, time_limit=deadline.left())
        solved = solve_exactly(problem, rest, memory_limit, progress)
        plan = solved.problem.plan("exact", solved.timetables)
        slots, least_slots, slot = solved.slots, solved.least, solved.length
        end, least = slots * slot, least_slots * slot
    else:
        plan = best.plan()
        end = best.simulated(options.latency) if best.tables is None else best.tables.end_ps
    seconds = time.perf_counter() - started
    simulated = None
    keeps_time = len(topology.device_names) == topology.npu_count == len(collective.npus)
    if len(plan) <= _SIMULATED:
        simulated = _time_of(plan, options.latency)
        keeps_time = simulated <= end
    if algorithm == "blind":
        least = min(least, end)
    is_optimal = end <= least * (1 + ROUNDING) and keeps_time and algorithm != "blind"
    return plan, Synthesis(
        method=algorithm,
        status="optimal" if is_optimal else "feasible",
        end=end * 1e-12,
        least=least * 1e-12,
        slots=slots,
        least_slots=least_slots,
        slot=None if slot is None else slot * 1e-12,
        unwind=",".join(best.unwinding),
        time=None if simulated is None else simulated * 1e-12,
        seed=options.seed,
        seconds=seconds,
    )
