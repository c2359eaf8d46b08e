"""The assumptions that decide figures 4 to 8 of Cohen et al.: each one of the released code is changed.

The paper itself places jobs on random hosts and lets random spines fail.

References
----------
Cohen et al.: Routing for large ML models, section 5; its released code, commit 0ecf8fb, for averages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from hocket_studies.routing import FAILED, Cell, OnCase, Study

JOBS, RINGS = (1, 3, 5), (4, 8)
METHODS = ("ecmp", "greedy", "greedy-by-tor", "edge-coloring")


@dataclass(frozen=True)
class Choice:
    """One assumption done otherwise: job 0's means over cells and seeds, in seconds, by method."""

    what: str
    """What is done otherwise."""
    quantity: str
    without: dict[str, float]
    with_it: dict[str, float]


@dataclass(frozen=True)
class _Experiment:
    what: str
    variant: str
    metric: str = "all-reduce"
    failed: tuple[int, ...] = (0,)


_EXPERIMENTS = (
    _Experiment("hosts at random, not whole ToRs", "random-hosts"),
    _Experiment("hosts where they fit best, not at random", "best-fit"),
    _Experiment("a step waits for its inputs, not for its ring", "data-rounds"),
    _Experiment("compute of a batch, not of all training / 10^9", "batch-compute"),
    _Experiment("compute of a batch, not of all training / 10^9", "batch-compute", "iteration"),
    _Experiment("random spines failed, not the highest", "random-spines", failed=FAILED),
)


def choices(
    study: Study,
    on_case: OnCase | None = None,
    *,
    jobs: Sequence[int] = JOBS,
    rings: Sequence[int] = RINGS,
) -> list[Choice]:
    """Run every experiment on so many jobs and such rings, and average otherwise what was run."""

    def cells(failed: Sequence[int]) -> list[Cell]:
        counts = [(count, many, ring) for count in failed for many in jobs for ring in rings]
        return [Cell(many, ring, m, failed=count) for count, many, ring in counts for m in METHODS]

    of = {each: cells(each.failed) for each in _EXPERIMENTS}
    otherwise = [replace(cell, variant=each.variant) for each in of for cell in of[each]]
    study.run([*(cell for each in of.values() for cell in each), *otherwise], on_case)
    found = [_measured(study, *each) for each in of.items()]
    return found + [_averaged(study, cells((0,)), *each) for each in _AVERAGES.items()]


def _measured(study: Study, each: _Experiment, cells: Sequence[Cell]) -> Choice:
    def means(variant: str) -> dict[str, float]:
        return {
            method: mean(
                mean(study.values(replace(cell, variant=variant), each.metric))
                for cell in cells
                if cell.method == method
            )
            for method in METHODS
        }

    failures = f", {', '.join(map(str, each.failed))} spines failed" if any(each.failed) else ""
    return Choice(each.what, each.metric + failures, means(""), means(each.variant))


def _kept(times: Sequence[float], ecmp: Sequence[float], greedy: Sequence[float]) -> float | None:
    """Average the iterations in which greedy's all-reduce takes less time than ECMP's."""
    kept = [time for time, theirs, ours in zip(times, ecmp, greedy, strict=True) if ours < theirs]
    return mean(kept) if kept else None


def _middle(times: Sequence[float], *_: Sequence[float]) -> float:
    """Average an even grid from the least to the greatest value."""
    return (min(times) + max(times)) / 2


_Average = Callable[[Sequence[float], Sequence[float], Sequence[float]], float | None]
_AVERAGES: dict[str, _Average] = {
    "only iterations in which greedy beats ECMP": _kept,
    "mean of an even grid over the values, not of the values": _middle,
}


def _averaged(study: Study, cells: Sequence[Cell], what: str, average: _Average) -> Choice:
    """Average the all-reduces of the same runs in another way."""
    values: dict[str, list[float]] = {method: [] for method in METHODS}
    plain: dict[str, list[float]] = {method: [] for method in METHODS}
    for cell in cells:
        for seed in range(study.seeds):
            runs = {
                method: study.outcomes[replace(cell, method=method, seed=seed)].jobs[0]
                for method in (cell.method, "ecmp", "greedy")
            }
            own = runs[cell.method].all_reduces
            found = average(own, runs["ecmp"].all_reduces, runs["greedy"].all_reduces)
            if found is not None:
                values[cell.method].append(found)
                plain[cell.method].append(mean(own))
    return Choice(
        what,
        "all-reduce, by another average",
        {method: mean(each) for method, each in plain.items() if each},
        {method: mean(each) for method, each in values.items() if each},
    )
