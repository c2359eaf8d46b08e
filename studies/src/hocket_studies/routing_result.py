"""The results of ``reproduce routing``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hocket_studies import routing
from hocket_studies.routing import Cell, OnCase, Study
from hocket_studies.routing_choices import Choice, choices
from hocket_studies.routing_published import CELLS
from hocket_studies.routing_times import Timing, figure_7

NAMES = ("released", *(f"figure {number}" for number in range(4, 9)), "choices")
"""``released``: cells that the released code was run on; ``choices``: what is assumed, done otherwise."""


@dataclass
class RoutingResult:
    """The results; a part that was not asked for is absent."""

    study: Study = field(default_factory=Study)
    timings: list[Timing] | None = None
    """Figure 7."""
    choices: list[Choice] | None = None


def reproduce_routing(
    names: Sequence[str] = NAMES,
    *,
    seeds: int = routing.SEEDS,
    full: bool = False,
    on_case: OnCase | None = None,
) -> RoutingResult:
    """Compute what the figures of Cohen et al. show.

    Parameters
    ----------
    names
        Which, of :data:`NAMES`.
    seeds
        Of each cell: 0, 1, ...
    full
        Whether to run what takes minutes in all: the ILP with two and three jobs.
    on_case
        Called after each run.
    """
    result = RoutingResult(Study(seeds))
    cells: list[Cell] = []
    if "released" in names:
        cells += released_cells()
    if {"figure 4", "figure 5", "figure 6"}.intersection(names):
        cells += routing.cells_without_failures(full=full)
    if "figure 8" in names:
        cells += routing.cells_with_failures(full=full)
    result.study.run(cells, on_case)
    if "choices" in names:
        result.choices = choices(result.study, on_case)
    if "figure 7" in names:
        result.timings = figure_7(on_case, full=full)
    return result


def released_cells() -> list[Cell]:
    """Return the cells that the released code ran, by its methods, and by greedy in order of jobs."""
    found = []
    for (failed, jobs, ring), rows in CELLS.items():
        methods = list(rows)
        methods.insert(methods.index("greedy-by-tor"), "greedy")
        found += [Cell(jobs, ring, method, failed=failed) for method in methods]
    return found
