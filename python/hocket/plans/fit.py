"""Whether a runtime can execute a plan: its limits, and what a plan takes of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from hocket import _core
from hocket._core import formats as core
from hocket._results import Result, figure
from hocket.errors import InfeasibleError
from hocket.plans.synthesis.runtimes import OPERATIONS, TITLES, blocks_of
from hocket.units import counted, format_time_ps

if TYPE_CHECKING:
    from hocket.plans.plan import Plan


@dataclass(frozen=True)
class Fit(Result):
    """What a plan takes of a runtime.

    Attributes
    ----------
    runtime
        Its name and limits.
    channels, operations, blocks
        Channels over which the plan is spread, most operations of a thread block and most thread blocks of
        a rank. ``None`` if the runtime cannot express the plan.
    most_operations, most_blocks
        What the runtime holds.
    misfit
        Why the plan does not fit; ``None`` if it fits.
    best_of_all
        Algorithm of the fastest plan that was tried and does not fit; ``None`` if no such plan is faster.
    best_of_all_chunks, best_of_all_time_ps, best_of_all_misfit
        Into how many slices that plan cuts the data, how long it takes, and why it does not fit.
    over_best
        The share by which the plan takes longer than the best plan of all.
    """

    runtime: str
    channels: int | None
    operations: int | None
    blocks: int | None
    most_operations: int
    most_blocks: int
    misfit: str | None = None
    best_of_all: str | None = None
    best_of_all_chunks: int | None = None
    best_of_all_time_ps: int | None = None
    best_of_all_misfit: str | None = None
    over_best: float = 0.0

    @property
    @figure()
    def fits(self) -> bool:
        """Whether the runtime can execute the plan."""
        return self.misfit is None

    @property
    def need(self) -> tuple[float, float]:
        """Operations and blocks, which are infinite if it cannot be expressed."""
        return self.operations or inf, self.blocks or inf

    def beside(self, time_ps: int | None, other: Other | None) -> Fit:
        """Return it with its distance from the fastest plan that does not fit."""
        if other is None or time_ps is None or other.time_ps >= time_ps:
            return self
        return replace(
            self,
            best_of_all=other.plan.algorithm,
            best_of_all_chunks=other.slices,
            best_of_all_time_ps=other.time_ps,
            best_of_all_misfit=other.misfit,
            over_best=_core.gap(time_ps, other.time_ps),
        )

    def __str__(self) -> str:
        title = TITLES[self.runtime.partition(":")[0]]
        if self.misfit is not None:
            return f"does not fit {title}: {self.misfit}"
        blocks = counted(self.blocks or 0, "block")
        text = f"fits {title} ({self.operations} of {self.most_operations} operations, {blocks})"
        if self.best_of_all is None or self.best_of_all_time_ps is None:
            return f"{text}; no plan that was tried is faster"
        chunks = self.best_of_all_chunks
        name = self.best_of_all + ("" if chunks is None else f" with {counted(chunks, 'chunk')}")
        return (
            f"{text}; {self.over_best:.1%} above the best plan of all, {name}, "
            f"{format_time_ps(self.best_of_all_time_ps)}, which does not fit: {self.best_of_all_misfit}"
        )


@dataclass(frozen=True)
class Other:
    """A plan that does not fit.

    Attributes
    ----------
    plan, time_ps, slices
        The plan, how long it takes [ps], and into how many slices the data is cut.
    misfit
        Why it does not fit.
    """

    plan: Plan
    time_ps: int
    slices: int | None
    misfit: str


def faster(one: Other | None, other: Other | None) -> Other | None:
    """Return the faster of two, the first of equals."""
    if one is None or (other is not None and other.time_ps < one.time_ps):
        return other
    return one


def fit(plan: Plan, runtime: str) -> Fit:
    """Return what a proved plan takes of a runtime."""
    most, blocks = OPERATIONS, blocks_of(runtime)
    try:
        need = core.need_mscclpp(plan.core)
    except InfeasibleError as error:
        return Fit(runtime, None, None, None, most, blocks, str(error))
    misfit = None
    if need.operations > most:
        misfit = f"a block would have {need.operations:,} operations, and the most is {most}"
    elif need.blocks > blocks:
        runs = f"the GPU runs {blocks} at once"
        if ":" not in runtime:  # nobody has said how many
            right = f"if yours runs {need.blocks}, give {runtime}:sms={need.blocks}"
            runs = f"every GPU runs {blocks} at once; {right}"
        misfit = f"a rank would have {need.blocks} blocks, and {runs}"
    return Fit(runtime, need.channels, need.operations, need.blocks, most, blocks, misfit)
