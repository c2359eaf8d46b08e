"""Fits the constants of the law of training to published runs: robustly, from priors, with intervals.

A constant belongs to an accelerator, to a program on an accelerator, or to a machine's fabric, never to a
run. Least squares on logarithms, as :mod:`hocket.profiles.fit` does for sweeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hocket.fitting.solve import solve
from hocket.throughput.constants import NONE, Constants, owner_of
from hocket.throughput.cost_model import CONSTANTS, iteration_s
from hocket.throughput.job import Job
from hocket_studies.training_catalogue import PublishedRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["FREE", "fit_constants", "folded", "predicted_s"]

FREE = ("efficiency", "depth", "attention", "passes", "scores", "launch", "exposed")
"""Constants that runs are fitted by, unless a caller says otherwise."""
_MOST_STEPS = 60
_FOLDS = 5


def predicted_s(run: PublishedRun, constants: Constants) -> tuple[float, Job]:
    """Return what an iteration of a run takes [s], and its job: the fastest where it is not stated."""
    values = constants.values(run.stack, run.machine, run.job.precision)
    nic = constants.given("nic", run.stack, run.machine, run.job.precision)
    machine = run.machine if nic is None else replace(run.machine, nic=nic)
    times = [(iteration_s(job, machine, run.stack, values), job) for job in run.jobs]
    return min(times, key=lambda each: each[0])


def fit_constants(
    runs: Sequence[PublishedRun],
    *,
    free: Sequence[str] = FREE,
    fixed: Constants = NONE,
) -> Constants:
    """Fit constants to runs.

    Parameters
    ----------
    runs
        What was measured.
    free
        Which constants may change.
    fixed
        The others, and those of other owners.
    """
    keys = _keys(runs, free, fixed)
    prior = np.log([CONSTANTS[name].prior for _, name in keys])
    width = np.array([CONSTANTS[name].width for _, name in keys])
    measured = np.log([run.seconds for run in runs])

    def off(point: Floats) -> Floats:
        constants = fixed.with_values(dict(zip(keys, np.exp(point).tolist(), strict=True)))
        return np.log([predicted_s(run, constants)[0] for run in runs]) - measured

    found = solve(off, prior, width, steps=_MOST_STEPS)
    return fixed.with_fitted(dict(zip(keys, found.constants, strict=True)))


def _keys(
    runs: Sequence[PublishedRun], free: Sequence[str], fixed: Constants
) -> list[tuple[str, str]]:
    """Return owner and name of each constant that the law of these runs has and nobody has fixed."""
    found: dict[tuple[str, str], None] = {}
    for run in runs:
        for name in free:
            if name in ("scores", "attention") and run.stack.fused != (name == "attention"):
                continue
            if name == "exposed" and not (run.stack.hides_data and run.job.parallel.tp == 1):
                continue
            owner = owner_of(name, run.stack, run.machine, run.job.precision)
            if not fixed.has(owner, name):
                found[owner, name] = None
    return list(found)


def folded(
    runs: Sequence[PublishedRun],
    *,
    free: Sequence[str] = FREE,
    fixed: Constants = NONE,
    folds: int = _FOLDS,
) -> Floats:
    """Predict each run by constants of the other folds [s], (runs,): every fifth run is left out."""
    took = np.zeros(len(runs))
    for fold in range(folds):
        others = [run for at, run in enumerate(runs) if at % folds != fold]
        constants = fit_constants(others, free=free, fixed=fixed)
        for at in range(fold, len(runs), folds):
            took[at] = predicted_s(runs[at], constants)[0]
    return took
