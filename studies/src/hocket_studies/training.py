"""Published training runs, predicted: by a fit to all of them, and by one that has nothing of their source.

The second says how far predictions are off for runs that nobody fitted. Each source was left out in turn,
and weighs the same; kinds of runs that the law does not describe are never fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hocket.fitting.errors import ErrorSummary, of_new_sources, rank_correlation, summary_of
from hocket.throughput.constants import ALL, KNOWN, OUTSIDE, Constants, ExpectedError
from hocket.throughput.job import Job
from hocket_studies.training_catalogue import PublishedRun, load_runs
from hocket_studies.training_fit import fit_constants, predicted_s

__all__ = [
    "PredictedRun",
    "RunCheck",
    "TrainingResult",
    "coverage",
    "fitted_constants",
    "reproduce_training",
]

OnCase = Callable[[str, int, int], None]
"""Called as ``on_case(what, done, total)`` after each fit."""

NOT_FITTED = {
    "narayanan-2021-zero3": "ZeRO-3 of 2021: what gathers of weights cost is not known",
    "jean-zay-v100-zero3": "ZeRO-3 of 2021: what gathers of weights cost is not known",
    "jean-zay-v100": "a shared network: its author gives 40 % either way",
    "torchtitan": "whether it was compiled, and how products of 8 bits are scaled, is not stated",
    "sakuraone": "micro-batches and groups of layers are not stated",
}
"""Sets that the law does not describe, by how their names begin, and why."""


@dataclass(frozen=True)
class PredictedRun:
    """A run and its prediction.

    Attributes
    ----------
    run
        What was measured.
    seconds
        What was predicted, without anything of its source.
    job
        What was trained, with what was assumed.
    fitted_s
        What the fit to all runs gives.
    kind
        Its class of runs, by what the others are.
    """

    run: PublishedRun
    seconds: float
    job: Job
    fitted_s: float
    kind: str

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.seconds / self.run.seconds - 1

    @property
    def fitted_error(self) -> float:
        """The same of the fit to all runs."""
        return self.fitted_s / self.run.seconds - 1

    @property
    def tflops(self) -> float:
        """Predicted teraflops of an NPU, recomputation not counted."""
        return self.job.flops / (self.seconds * self.run.npus) * 1e-12


@dataclass(frozen=True)
class RunCheck:
    """A set of runs at a precision.

    Attributes
    ----------
    what
        Which.
    predicted
        All of them.
    why
        Of what the law does not describe: the reason.
    """

    what: str
    predicted: tuple[PredictedRun, ...]
    why: str = ""

    @property
    def question(self) -> str:
        """Whether the law describes the runs."""
        return OUTSIDE if self.why else "source left out"

    @property
    def spread(self) -> ErrorSummary:
        """Median and 90th percentile of the errors without their source."""
        return summary_of(np.array([each.error for each in self.predicted]))

    @property
    def fitted(self) -> ErrorSummary:
        """The same of the fit to all runs."""
        return summary_of(np.array([each.fitted_error for each in self.predicted]))

    @property
    def worst(self) -> PredictedRun:
        """The run that is farthest off."""
        return max(self.predicted, key=lambda each: abs(each.error))

    @property
    def tau(self) -> float:
        """Kendall's rank correlation of predicted and measured operations a second; nan of one run."""
        measured = np.array([each.run.tflops for each in self.predicted])
        return rank_correlation(measured, np.array([each.tflops for each in self.predicted]))


@dataclass
class TrainingResult:
    """All checks, the worst first; the constants that all runs give; and what could not be predicted."""

    checks: list[RunCheck] = field(default_factory=list)
    constants: Constants = field(default_factory=Constants)
    left_out: list[str] = field(default_factory=list)

    def check(self, what: str) -> RunCheck:
        """Return one check.

        Raises
        ------
        KeyError
            If there is none.
        """
        for each in self.checks:
            if each.what == what:
                return each
        raise KeyError(what)

    @property
    def predicted(self) -> list[PredictedRun]:
        """All runs that the law describes."""
        return [each for check in self.checks if not check.why for each in check.predicted]

    def worst(self, count: int) -> list[tuple[RunCheck, PredictedRun]]:
        """Return the runs that are farthest off, the worst first."""
        found = [(check, each) for check in self.checks for each in check.predicted]
        found.sort(key=lambda pair: -abs(pair[1].error))
        return found[:count]


Runs = Sequence[PublishedRun]


def reproduce_training(
    data: Path | None = None, *, on_case: OnCase | None = None
) -> TrainingResult:
    """Predict every published run that is shipped, and those of a folder.

    Parameters
    ----------
    data
        A folder with more runs.
    on_case
        Called after each fit.

    Raises
    ------
    SpecError
        If the folder has no table of runs, or one that cannot be read.
    """
    runs, left_out = load_runs(data)
    constants = fit_constants([run for run in runs if not _why(run)])
    predicted = _leave_sources_out(runs, constants, on_case)
    sets: dict[tuple[str, str], list[PredictedRun]] = {}
    for each in predicted:
        precision = each.run.job.precision
        sets.setdefault((f"{each.run.set}, {precision}", _why(each.run)), []).append(each)
    checks = [RunCheck(what, tuple(own), why) for (what, why), own in sets.items()]
    checks.sort(key=lambda check: -check.spread.median)
    constants = replace(constants, errors={each.of: each for each in _errors(predicted)})
    return TrainingResult(checks, constants, left_out)


def fitted_constants(data: Path | None = None) -> Constants:
    """Fit the constants that are shipped: every accelerator and program by all runs that tell them."""
    return reproduce_training(data).constants


def coverage(predicted: Sequence[PredictedRun]) -> tuple[int, int]:
    """Return for how many runs the stated error held, and of how many.

    What is stated for a source comes from all others' errors.
    """
    held = 0
    for who in dict.fromkeys(each.run.publisher for each in predicted):
        others = _errors([each for each in predicted if each.run.publisher != who])
        stated = Constants(errors={each.of: each for each in others})
        for each in (each for each in predicted if each.run.publisher == who):
            error = stated.of_class(each.kind)
            held += error is not None and abs(each.error) <= error.within
    return held, len(predicted)


def _why(run: PublishedRun) -> str:
    """Explain why the law does not describe a run; empty where it does."""
    return next((why for start, why in NOT_FITTED.items() if run.set.startswith(start)), "")


def _leave_sources_out(runs: Runs, full: Constants, on_case: OnCase | None) -> list[PredictedRun]:
    """Predict the runs of each source with constants fitted to all others'."""
    found = []
    sources = list(dict.fromkeys(run.publisher for run in runs))
    for done, who in enumerate(sources, 1):
        others = [run for run in runs if run.publisher != who and not _why(run)]
        constants = fit_constants(others, full)
        for run in (run for run in runs if run.publisher == who):
            kind = constants.class_of(run.stack, run.machine, run.job.precision)
            took = predicted_s(run, constants)
            found.append(PredictedRun(run, *took, predicted_s(run, full)[0], kind))
        if on_case is not None:
            on_case(f"leaving out {who}", done, len(sources))
    return found


def _errors(predicted: Sequence[PredictedRun]) -> list[ExpectedError]:
    """Return the errors to expect by class of runs; those of a shared network belong to none."""
    inside = [each for each in predicted if not _why(each.run)]
    kinds = {
        KNOWN: [each for each in inside if each.kind == KNOWN],
        ALL: inside,
        OUTSIDE: [each for each in predicted if each.kind == OUTSIDE],
    }
    return [_expected(of, own) for of, own in kinds.items() if own]


def _expected(of: str, own: Sequence[PredictedRun]) -> ExpectedError:
    names = [each.run.publisher for each in own]
    errors = np.array([each.error for each in own])
    return ExpectedError(of, len({*names}), len(own), *of_new_sources(errors, names))
