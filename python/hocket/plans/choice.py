"""The one choice of the number of chunks: which are tried, and which of their plans is the fastest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from hocket import _core
from hocket.collectives.collective import Progress
from hocket.collectives.timing import Latency
from hocket.errors import InfeasibleError, SimulationError, SpecError
from hocket.plans.algorithms import chunk_ladder
from hocket.plans.fit import Fit, Other, faster, fit
from hocket.plans.plan import Plan
from hocket.plans.synthesis.options import PlanOptions, Relays

if TYPE_CHECKING:
    from hocket.plans.schedule import Schedule

Planner = Callable[
    [
        "_core.Collective",
        "_core.Topology",
        "str | Schedule",
        PlanOptions,
        "Progress | None",
        "_core.Work | None",
    ],
    Plan,
]
"""Plans a collective by the algorithm that is named, with the chunks that are given or else its default."""

Timer = Callable[[Plan, "int | None"], "int | None"]
"""Gives how long a proved plan of so many slices takes [ps]; ``None`` where nobody can tell."""

STEINER = "steiner"
SHORTEST = 0.05
"""Seconds that a search gets at the least."""
_FEWER = (128, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
"""Numbers of slices for a runtime, below one with too many operations: these grow with the number."""
_TIMING = 64
"""Work of the proof and the simulation of a transfer."""
_SIMULATED = 300_000
"""Transfers of a lone plan that is simulated on the way: more take longer than planning them."""


@dataclass(frozen=True)
class ChunkChoice:
    """A plan, and how it was chosen.

    Attributes
    ----------
    plan
        The plan; proved, where it was timed.
    time_ps
        How long it takes [ps]; ``None`` where it was not simulated.
    slices, tried
        Into how many slices the data is cut, and all the numbers that were asked for; ``None`` where the
        algorithm chooses.
    cut
        What cut the search short: the work of its effort, or the time limit; ``None`` for neither.
    """

    plan: Plan
    time_ps: int | None
    slices: int | None
    tried: tuple[int | None, ...]
    cut: Literal["work", "time"] | None = None

    def is_faster_than(self, other: ChunkChoice | None) -> bool:
        """Return whether it is to be preferred: it takes less time, or is the first to have any."""
        if other is None:
            return True
        if self.time_ps is None or other.time_ps is None:
            return other.time_ps is None and self.time_ps is not None
        return self.time_ps < other.time_ps


def numbers_of_chunks(
    collective: _core.Collective,
    topology: _core.Topology,
    algorithm: str | Schedule,
    options: PlanOptions,
    *,
    largest: int | None = None,
    finer: Sequence[int] = (),
) -> list[int | None]:
    """Return the numbers of slices to try: the one that is asked for, or those worth trying.

    Parameters
    ----------
    largest
        Above which none is worth trying, unless there is no other.
    finer
        What a search may try after those of every comparison.

    Raises
    ------
    InfeasibleError
        If the algorithm cannot run here.
    """
    given = options.slices(collective.size)
    if given is not None or not isinstance(algorithm, str):
        return [given]
    found = chunk_ladder(topology, collective, algorithm)
    found += [count for count in finer if count not in found]
    if largest is not None:
        found = [each for each in found if each is None or each <= largest] or found[:1]
    return found


def link_time(plan: Plan, options: PlanOptions, progress: Progress | None = None) -> int | None:
    """Return how long a proved plan takes at link fidelity [ps]; ``None`` where that comes to nothing.

    Raises
    ------
    SpecError
        For a sprayed plan, of which nobody can tell at link fidelity.
    """
    try:
        return link_run(plan, options.latency_model, progress).time_ps
    except SimulationError:
        return None


def link_run(plan: Plan, latency_model: Latency, progress: Progress | None = None) -> _core.Run:
    """Return the run of a plan at link fidelity in its own order, which the plan keeps.

    Raises
    ------
    VerificationError, SimulationError, SpecError
        As :func:`hocket.simulate`.
    """
    plan.verify(progress=progress)
    if plan.known is None or plan.known.latency_model != latency_model:
        plan.known = _core.simulate(plan.core, latency=latency_model, progress=progress)
    return plan.known


def fastest(
    planner: Planner,
    collective: _core.Collective,
    topology: _core.Topology,
    algorithm: str | Schedule,
    options: PlanOptions,
    *,
    work: _core.Work | None = None,
    progress: Progress | None = None,
    timer: Timer | None = None,
    is_timed: bool = True,
) -> ChunkChoice:
    """Plan with each number of chunks worth trying, and keep the fastest plan, the first of equals.

    Where a number is asked for, that one alone is planned. Each plan is proved and timed. Numbers grow:
    where one makes too large a plan, or none, those before it stand. A limit of time or work holds for
    all of them together. Where a runtime must execute the plan and cannot, fewer chunks are tried.

    Parameters
    ----------
    planner
        Makes each plan: it is handed in, since planning by name leads here.
    timer
        Times plans; by default link fidelity does, where there are several, or a lone one has no more than
        300,000 transfers.
    is_timed
        Whether a lone plan is proved and timed at all.

    Raises
    ------
    SpecError, InfeasibleError, SimulationError
        As planning and timing with the first number.
    VerificationError
        If a plan is wrong.
    """
    counts = numbers_of_chunks(collective, topology, algorithm, options)
    runtime = options.runtime
    if runtime is not None:
        # A runtime runs on ranks alone.
        relays: Relays = "none" if algorithm == STEINER else options.relays
        options = replace(options, runtime=None, relays=relays)
        is_timed = True
    if timer is None and options.routing == "spray" and topology.may_have_equal_paths:
        counts = counts[:1] if len(counts) == 1 else [None]
    is_lone = len(counts) == 1 and (counts[0] is not None or runtime is None)
    tries_fewer = runtime is not None and not is_lone
    fewer = [each for each in _FEWER if tries_fewer and each not in counts]
    fits, above = 0, 0
    ends = None if options.seconds is None else time.monotonic() + options.seconds
    best: ChunkChoice | None = None
    misfit: Other | None = None
    refusal: Fit | None = None
    for slices in [*counts, *fewer]:
        if slices in fewer and not fits < (slices or 0) < above:
            continue
        left = None if ends is None else ends - time.monotonic()
        if best is not None and (
            (left is not None and left <= 0) or (work is not None and not work.left)
        ):
            break
        limit = options.time_limit if best is None or left is None else max(left, SHORTEST)
        given = replace(options, chunks=slices, chunk_size=None, time_limit=limit)
        try:
            plan = planner(collective, topology, algorithm, given, progress, work)
            if is_lone and timer is None and not is_timed:
                best = ChunkChoice(plan, None, slices, (slices,))
                break
            if work is not None and plan.known is None:
                work.spend(_TIMING * len(plan))
            plan = plan.verify(progress=progress)
            if runtime is not None:
                plan.fit = fit(plan, runtime)
            if timer is not None:
                time_ps = timer(plan, slices)
            elif is_lone and len(plan) > _SIMULATED and plan.known is None:
                time_ps = None
            else:
                time_ps = link_time(plan, options)
        except (InfeasibleError, SpecError, SimulationError):
            if best is None and refusal is None:
                raise
            if runtime is None:
                break
            continue
        if plan.fit is not None and plan.fit.misfit is not None:
            if refusal is None or plan.fit.need < refusal.need:
                refusal = plan.fit
            if plan.fit.operations is not None:
                above = min(above or _FEWER[0] * 2, slices or plan.pieces or _FEWER[0] * 2)
            if time_ps is not None:
                misfit = faster(misfit, Other(plan, time_ps, slices, plan.fit.misfit))
            continue
        fits = max(fits, slices or 0)
        made = ChunkChoice(plan, time_ps, slices, tuple(counts))
        if made.is_faster_than(best):
            best = made
    if best is None and refusal is not None:
        right = "take another algorithm, such as auto" if is_lone else None
        raise InfeasibleError(None, f"no plan fits: {refusal.misfit}", right)
    assert best is not None, "there is a number to try"
    if best.plan.fit is not None:
        best.plan.fit = best.plan.fit.beside(best.time_ps, misfit)
    if ends is not None and time.monotonic() >= ends:
        return replace(best, cut="time")
    return replace(best, cut="work" if work is not None and not work.left else None)
