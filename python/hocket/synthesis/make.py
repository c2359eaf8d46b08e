"""One synthesized plan, with what is known of how good it is."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hocket import _core
from hocket.collectives import Progress
from hocket.errors import Error, SpecError
from hocket.synthesis.choices import SYNTHESIZERS, SynthesisOptions


@dataclass(frozen=True)
class Synthesis:
    """How a plan was synthesized.

    Attributes
    ----------
    method
        ``greedy``, ``exact`` or ``blind``.
    status
        ``optimal`` where nothing on this time-expanded network is shorter, else ``feasible``.
    end
        When the timetable that the plan was made of ends [s]; the plan itself may be faster.
    least
        A proven lower bound on the end of any timetable of this network as unwound, with these chunks [s];
        copies of an all-reduce are counted after its sums where `method` is ``exact``.
    slots, least_slots
        The same in slots, for ``exact``; else ``None``.
    slot
        How long a slot is [s]; ``None`` where there are none.
    unwind
        How switches were unwound: one entry for all, or one for each dimension.
    seed
        Of the random choices.
    seconds
        How long it took.
    """

    method: str
    status: str
    end: float
    least: float
    slots: int | None
    least_slots: int | None
    slot: float | None
    unwind: str
    seed: int
    seconds: float

    @property
    def gap(self) -> float:
        """How much longer than the least: end / least - 1."""
        return self.end / self.least - 1 if self.least else 0.0


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
    best: tuple[int, _core.Problem, _core.Timetables, list[str]] | None = None
    failure: Error | None = None
    for unwinding in options.unwindings(topology):
        problem = _core.Problem(
            topology, collective, pieces, unwinding, options.latency, memory_limit
        )
        try:
            tables = problem.greedy(
                options.seed, options.trials, time_limit=options.time_limit, progress=progress
            )
        except Error as error:
            failure = error
            continue
        if best is None or tables.end_ps < best[0]:
            best = (tables.end_ps, problem, tables, unwinding)
    if best is None:
        assert failure is not None, "there is always an unwinding to try"
        raise failure
    _, problem, tables, unwinding = best
    end, least = tables.end_ps, problem.least_ps
    slots = least_slots = slot = None
    if algorithm == "blind":
        plan = problem.blind(options.seed)
    elif algorithm == "exact":
        from hocket.synthesis.exact import solve_exactly

        solved = solve_exactly(problem, options, memory_limit, progress)
        plan = solved.problem.plan("exact", solved.timetables)
        slots, least_slots, slot = solved.slots, solved.least, solved.length
        end, least = slots * slot, least_slots * slot
    else:
        plan = problem.plan("greedy", tables)
    return plan, Synthesis(
        method=algorithm,
        status="optimal" if end <= least and algorithm != "blind" else "feasible",
        end=end * 1e-12,
        least=least * 1e-12,
        slots=slots,
        least_slots=least_slots,
        slot=None if slot is None else slot * 1e-12,
        unwind=",".join(unwinding),
        seed=options.seed,
        seconds=time.perf_counter() - started,
    )
