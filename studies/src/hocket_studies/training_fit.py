"""Fits the constants of the law of training to published runs: robustly, from priors, with intervals.

The logarithm of a constant is the sum of its owners' parts (:func:`hocket.throughput.constants.owners_of`),
each with a prior of its own width. Depth and launching have narrow ones: wide, they take up what products
and attention lack, and are wrong on the next accelerator. Sets of more runs than most count as that many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hocket.fitting.solve import solve
from hocket.throughput.constants import SOURCED, Constants, owners_of
from hocket.throughput.cost_model import CONSTANTS, iteration_s
from hocket.throughput.job import Job
from hocket_studies.training_catalogue import PublishedRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["fit_constants", "predicted_s"]

_WIDTHS = {
    "efficiency": (0.12, 0.08, 0.05),
    "attention": (0.25,),
    "passes": (0.2,),
    "scores": (0.3,),
    "launch": (0.2,),
    "exposed": (0.3,),
}
"""Standard deviations of the logarithms of parts, after the first."""
_MOST = 20
"""Runs of a set that count in full."""
_MOST_STEPS = 60
_ENOUGH = 1e-5
_STEP = 1e-4


def predicted_s(run: PublishedRun, constants: Constants) -> tuple[float, Job]:
    """Return what an iteration of a run takes [s], and its job: the fastest where it is not stated."""
    values = constants.values(run.stack, run.machine, run.job.precision)
    return _fastest(run, values)


def _fastest(run: PublishedRun, values: dict[str, float]) -> tuple[float, Job]:
    times = [(iteration_s(job, run.machine, run.stack, values), job) for job in run.jobs]
    return min(times, key=lambda each: each[0])


def fit_constants(runs: Sequence[PublishedRun], start: Constants = SOURCED) -> Constants:
    """Fit constants to runs.

    Parameters
    ----------
    runs
        What was measured.
    start
        A fit to runs that are much the same, from which to start.
    """
    keys, places = _keys(runs)
    prior = np.log([_prior(*key) for key in keys])
    width = np.array([_width(*key, keys[key]) for key in keys])
    begin = [start.fitted[key].value if key in start.fitted else _prior(*key) for key in keys]
    measured = np.log([run.seconds for run in runs])
    counts = Counter(run.set for run in runs)
    weights = np.sqrt([min(1.0, _MOST / counts[run.set]) for run in runs])

    def values_of(point: Floats) -> list[dict[str, float]]:
        given = dict(zip(keys, np.exp(point).tolist(), strict=True))
        constants = SOURCED.with_values(given)
        kinds: dict[tuple[str, str, str], dict[str, float]] = {}
        found = []
        for run in runs:
            kind = run.stack.name, run.machine.family, run.job.precision
            if kind not in kinds:
                kinds[kind] = constants.values(run.stack, run.machine, run.job.precision)
            found.append(kinds[kind])
        return found

    def off(point: Floats) -> Floats:
        values = values_of(point)
        times = [_fastest(run, each)[0] for run, each in zip(runs, values, strict=True)]
        return np.log(times) - measured

    def slopes(point: Floats) -> Floats:
        """Return how `off` changes with each part: all parts of a constant change it alike."""
        found = np.zeros((len(runs), len(keys)))
        for at, (run, values) in enumerate(zip(runs, values_of(point), strict=True)):
            time, job = _fastest(run, values)
            for name, own in places[at].items():
                more = {**values, name: values[name] * (1 + _STEP)}
                changed = iteration_s(job, run.machine, run.stack, more)
                found[at, own] = np.log(changed / time) / np.log1p(_STEP)
        return found

    found = solve(
        off,
        prior,
        width,
        steps=_MOST_STEPS,
        start=np.log(begin),
        slopes=slopes,
        weights=weights,
        enough=_ENOUGH,
    )
    fitted = SOURCED.with_fitted(dict(zip(keys, found.constants, strict=True)))
    return replace(fitted, sources={**SOURCED.sources, **_sources(runs, places, list(keys))})


def _keys(
    runs: Sequence[PublishedRun],
) -> tuple[dict[tuple[str, str], int], list[dict[str, list[int]]]]:
    """Return owner and name of each part that runs have, with its rank; and which parts each run has."""
    ranks: dict[tuple[str, str], int] = {}
    order: dict[tuple[str, str], int] = {}
    places = []
    for run in runs:
        own: dict[str, list[int]] = {}
        for name in CONSTANTS:
            if name in ("scores", "attention") and run.stack.fused != (name == "attention"):
                continue
            is_hidden = run.stack.hides_data and run.job.parallel.tp == 1
            if name == "exposed" and not (is_hidden and run.job.parallel.zero != 3):
                continue
            for rank, owner in enumerate(
                owners_of(name, run.stack, run.machine, run.job.precision)
            ):
                if SOURCED.has(owner, name) or (name == "attention" and rank == 0):
                    continue
                key = owner, name
                ranks.setdefault(key, rank)
                own.setdefault(name, []).append(order.setdefault(key, len(order)))
        places.append(own)
    return ranks, places


def _prior(owner: str, name: str) -> float:
    return CONSTANTS[name].prior if owner == "any" else 1.0


def _width(owner: str, name: str, rank: int) -> float:
    return _WIDTHS[name][rank - 1] if rank else CONSTANTS[name].width


def _sources(
    runs: Sequence[PublishedRun],
    places: Sequence[dict[str, list[int]]],
    keys: Sequence[tuple[str, str]],
) -> dict[str, str]:
    """Return by owner how many runs of which publishers tell its parts."""
    told: dict[str, list[str]] = {}
    for run, own in zip(runs, places, strict=True):
        for owner in dict.fromkeys(keys[at][0] for each in own.values() for at in each):
            told.setdefault(owner, []).append(run.publisher)
    return {
        owner: f"{len(who)} runs of {', '.join(dict.fromkeys(who))}" for owner, who in told.items()
    }
