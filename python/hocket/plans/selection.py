"""The choice of a plan by ``auto``, and its reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hocket import _core
from hocket._results import Result, figure

Ended = Literal["bound", "close", "near", "all", "stale", "work", "time"]
ENDS: dict[Ended, str] = {
    "bound": "it reaches the bound",
    "close": "it is within 0.1% of the bound",
    "near": "it is within 3% of the bound, which is enough from 448 NPUs on",
    "all": "nothing is left to try",
    "stale": "more trials found nothing faster",
    "work": "the work of this effort is done",
    "time": "the time limit passed",
}
"""Why a search ended, in words."""


@dataclass(frozen=True)
class Selection(Result):
    """The choice of ``auto``: the plans that it tried, the runner-up, and what it left out.

    ``hk.plan`` with this algorithm, these chunks and this seed makes the plan again without the search.

    Attributes
    ----------
    algorithm
        Who made the plan.
    chunks, seed
        With which number of chunks (``None``: the algorithm's own) and which random choices.
    time_ps, bound_ps
        When it ends at link fidelity, and the lower bound on any plan's end [ps].
    times_ps
        The best time of each algorithm that made a plan [ps], the fastest, which was chosen, first.
    plans
        How many plans were proved and simulated.
    left_out
        Algorithms for this kind of collective that made no plan, by name, and why.
    ended
        Why the search ended: ``bound`` (the plan reaches it), ``close`` (it is within 0.1 % of it),
        ``near`` (within 3 %, from 448 NPUs on), ``all`` (nothing was left to try), ``stale`` (more trials
        found nothing faster), ``work`` (of the effort), ``time`` (the limit, so that another run may choose
        another plan).
    cached
        Whether the choice was remembered from an earlier search; the plan was made and proved again.
    """

    algorithm: str
    chunks: int | None
    seed: int
    time_ps: int
    bound_ps: int
    times_ps: dict[str, int]
    plans: int
    left_out: dict[str, str]
    ended: Ended
    cached: bool

    @property
    def time(self) -> float:
        """When the plan ends at link fidelity [s]."""
        return self.time_ps * 1e-12

    @property
    def bound(self) -> float:
        """The lower bound on any plan's end [s]."""
        return self.bound_ps * 1e-12

    @property
    def times(self) -> dict[str, float]:
        """The best time of each algorithm that made a plan [s], the fastest first."""
        return {name: time_ps * 1e-12 for name, time_ps in self.times_ps.items()}

    @property
    @figure()
    def gap(self) -> float:
        """The gap to the bound: time / bound - 1, where 0 ps count as 1 ps."""
        return _core.gap(self.time_ps, self.bound_ps)

    @property
    @figure()
    def runner_up(self) -> str | None:
        """The algorithm that came next; ``None`` where no other made a plan."""
        return next((name for name in self.times_ps if name != self.algorithm), None)

    @property
    @figure()
    def lead(self) -> float | None:
        """The extra time of the runner-up's plan as a share of the time; ``None`` without one."""
        if self.runner_up is None:
            return None
        return _core.gap(self.times_ps[self.runner_up], self.time_ps)

    def __str__(self) -> str:
        made = len(self.times_ps)
        of = f"{self.plans:,} plan{'s'[: self.plans != 1]} by {made} algorithm{'s'[: made != 1]}"
        text = f"{self.algorithm}, the fastest of {of}"
        if self.runner_up is not None and self.lead is not None:
            lead = f"{100 * self.lead:.1f}% slower" if self.lead >= 0.0005 else "as fast"
            text += f"; next {self.runner_up}, {lead}"
        remembered = ", remembered from an earlier search" if self.cached else ""
        return f"{text}; {ENDS[self.ended]}{remembered}"
