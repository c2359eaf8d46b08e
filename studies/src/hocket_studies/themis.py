"""Figures 8 to 11 of Themis: all-reduce on its six networks, at dimension fidelity.

What is compared is what the text of section 6.1 says in numbers
(:mod:`hocket_studies.themis_published`). Nothing here was fitted to them.

Where hocket differs from the published numbers
-----------------------------------------------
Themis+FIFO (figure 11) and the sweep over chunks (figure 10) are some points off; the other
means agree within one point, speed-ups within 3 %. Known of figure 10, from experiments with a
small model apart from hocket's (one server per dimension, operations served whole; mean of the
two networks):

- Headers of packets (64 bytes on each of up to 4 KiB, or 1 KiB) take as much from 64 as from 512
  chunks (1.5 or 6 points): messages become small only late in a chunk's order, where little of the
  data is sent. They do not explain a gap at 512 chunks alone.
- A dimension that is occupied for the whole latency of its steps as well (in hocket, with
  ``latency_model="occupying"``, for that of one link) comes to 4 % at 512 chunks. The paper runs several
  chunks at once.
- At most 32 chunks under way in a dimension give Themis+SCF 97 % at 64 and 92 % at 512 chunks, near
  the published; but Themis+FIFO 70 % at 512, where the paper has 88 %. At most 24: 97, 84, 65 %.
- At 4 chunks the outcome of Themis+SCF hangs on how operations share a dimension: 56 % if each is
  served whole, 65 % if so and in two parts, 50 % step by step in two parts, as hocket does.

A guess: a limit on chunks under way makes the difference at 512. The paper runs "multiple chunks
per dimension if one chunk cannot fully saturate the network BW" (section 4.4) and gives no number;
one number for all dimensions does not give what it published.

References
----------
Rashidi et al.: Themis, ISCA 2022, section 6.1, figures 8 to 11, table 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import TYPE_CHECKING

from hocket import _core, topology
from hocket._results import picoseconds
from hocket.plans.algorithms import SCHEDULERS
from hocket.plans.dimension_run import DimensionRun
from hocket.plans.schedule import schedule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NETWORKS = (
    "themis-2d",
    "themis-3d-homo",
    "themis-3d-hetero",
    "themis-3d-fc-ring-sw",
    "themis-4d-ring-sw-sw-sw",
    "themis-4d-ring-fc-ring-sw",
)
"""Table 2."""

SIZES_MB = (100, 250, 500, 750, 1000)
CHUNKS = 64
BASELINE, OPTIMAL, IDEAL = "hierarchical", "multirail-optimal", "ideal"
"""What is compared; the paper has no counterpart of the last."""

FIGURES = (8, 9, 10, 11)

SWEEP_NETWORKS = ("themis-3d-hetero", "themis-4d-ring-fc-ring-sw")
SWEEP_CHUNKS = (4, 8, 16, 32, 64, 128, 256, 512)
SWEEP_SIZE_MB = 100
SWEEP_SCHEDULERS = tuple(name for name in SCHEDULERS if name != OPTIMAL)
"""Those of figure 10: the search for the best takes seconds a number of chunks."""

ACTIVITY_NETWORK, ACTIVITY_SIZE_MB = "themis-3d-homo", 1000
ACTIVITY_PERIOD_US = 100

OnCase = Callable[[str, int, int], None]
"""Called as ``on_case(what, done, total)`` before each case."""


@dataclass(frozen=True)
class Case:
    """One all-reduce."""

    network: str
    size_mb: int
    algorithm: str
    chunks: int
    time_ps: int
    ideal_ps: int
    """Time at full use of all bandwidth."""
    utilization: float
    """Weighted by bandwidth, 0 to 1."""


@dataclass(frozen=True)
class Activity:
    """When the dimensions had something to do."""

    algorithm: str
    time_ps: int
    shares: NDArray[np.float32]
    """Of each period of 100 us (the last cut short), 0 to 1; a row for each dimension."""


@dataclass(frozen=True)
class ThemisFigures:
    """The results that figures 8 to 11 show."""

    schedulers: tuple[str, ...]
    cases: list[Case] = field(default_factory=list)
    """Figures 8 and 11: networks, then sizes, then schedulers."""
    sweep: list[Case] = field(default_factory=list)
    """Figure 10: schedulers, then networks, then chunks."""
    activity: list[Activity] = field(default_factory=list)
    """Figure 9."""

    def case(self, network: str, size_mb: int, algorithm: str) -> Case:
        """Return one of the cases of figures 8 and 11."""
        wanted = (network, size_mb, algorithm)
        return next(
            case for case in self.cases if (case.network, case.size_mb, case.algorithm) == wanted
        )

    def times_ps(self, network: str, size_mb: int) -> dict[str, int]:
        """Time of each scheduler and of Ideal [ps]."""
        found = [self.case(network, size_mb, name) for name in self.schedulers]
        return {case.algorithm: case.time_ps for case in found} | {IDEAL: found[0].ideal_ps}

    def speedups(self, network: str, size_mb: int) -> dict[str, float]:
        """Baseline's time / time of each scheduler and of Ideal, without the baseline."""
        times = self.times_ps(network, size_mb)
        return {name: times[BASELINE] / max(time, 1) for name, time in times.items()}

    def all_speedups(self, algorithm: str) -> list[float]:
        """Speed-ups of one scheduler (or Ideal) over all networks and sizes."""
        return [
            self.speedups(network, size)[algorithm] for network in NETWORKS for size in SIZES_MB
        ]

    def mean_utilization(self, algorithm: str, network: str | None = None) -> float:
        """Mean over all sizes of one network, or of all networks."""
        return mean(
            case.utilization
            for case in self.cases
            if case.algorithm == algorithm and network in (None, case.network)
        )

    def sweep_utilization(self, algorithm: str) -> dict[int, float]:
        """Mean over the two networks of figure 10, by number of chunks."""
        return {
            chunks: mean(
                case.utilization
                for case in self.sweep
                if (case.algorithm, case.chunks) == (algorithm, chunks)
            )
            for chunks in SWEEP_CHUNKS
        }


def reproduce_themis(
    figures: Sequence[int] = FIGURES,
    *,
    optimal: bool = True,
    on_case: OnCase | None = None,
) -> ThemisFigures:
    """Compute what figures 8 to 11 of Themis show.

    Parameters
    ----------
    figures
        Which; 8 and 11 share their cases.
    optimal
        Whether to add ``multirail-optimal``, which takes nearly all of the time.
    on_case
        Called before each case.

    References
    ----------
    Rashidi et al.: Themis, ISCA 2022, section 6.1.
    """
    schedulers = SCHEDULERS if optimal else SWEEP_SCHEDULERS
    networks = {name: topology.load(name) for name in NETWORKS}
    result = ThemisFigures(schedulers)
    main = [(n, s, a) for n in NETWORKS for s in SIZES_MB for a in schedulers]
    sweep = [(n, a, c) for a in SWEEP_SCHEDULERS for n in SWEEP_NETWORKS for c in SWEEP_CHUNKS]
    main = main if {8, 11} & set(figures) else []
    sweep = sweep if 10 in figures else []
    total = len(main) + len(sweep) + (len(schedulers) if 9 in figures else 0)
    done = 0
    runs: dict[tuple[str, int, str, int], DimensionRun] = {}  # figures share some

    def run(name: str, size_mb: int, algorithm: str, chunks: int = CHUNKS) -> DimensionRun:
        nonlocal done
        if on_case is not None:
            on_case(f"{algorithm}, {name}", done, total)
        done += 1
        key = name, size_mb, algorithm, chunks
        if key not in runs:
            runs[key] = _run(networks[name], size_mb, algorithm, chunks)
        return runs[key]

    if 9 in figures:
        for algorithm in schedulers:
            timed = run(ACTIVITY_NETWORK, ACTIVITY_SIZE_MB, algorithm)
            shares = timed.activity(period=f"{ACTIVITY_PERIOD_US} us")
            result.activity.append(Activity(algorithm, timed.time_ps, shares))
    for name, algorithm, chunks in sweep:
        swept = run(name, SWEEP_SIZE_MB, algorithm, chunks)
        result.sweep.append(_case(name, SWEEP_SIZE_MB, chunks, swept))
    for name, size_mb, algorithm in main:
        result.cases.append(_case(name, size_mb, CHUNKS, run(name, size_mb, algorithm)))
    return result


def _run(network: _core.Topology, size_mb: int, algorithm: str, chunks: int) -> DimensionRun:
    size = size_mb * 10**6
    return schedule("all-reduce", network, size=size, algorithm=algorithm, chunks=chunks).simulate()


def _case(name: str, size_mb: int, chunks: int, run: DimensionRun) -> Case:
    ideal = run.ideal
    assert ideal is not None  # an all-reduce, and no switch of table 2 sums
    return Case(
        network=name,
        size_mb=size_mb,
        algorithm=run.schedule.algorithm,
        chunks=chunks,
        time_ps=run.time_ps,
        ideal_ps=picoseconds(ideal),
        utilization=run.weighted_utilization,
    )
