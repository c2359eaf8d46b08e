"""Published training runs, predicted: by what was not fitted, how far the law is from them.

Four questions, each answered on runs that the fit has not seen:

- *five folds*: a fifth of a set's runs by constants of the other four.
- *larger*: runs on several nodes by constants of runs on one.
- *other cluster*: runs of a cluster of which nothing was fitted, by constants of its accelerator and of its
  program, each fitted elsewhere.
- *outside*: the same for kinds of runs that the law does not describe, each with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hocket.fitting.errors import ErrorSummary, rank_correlation, summary_of
from hocket.throughput.constants import (
    NONE,
    SOURCED,
    Constants,
    ExpectedError,
    elsewhere,
    outside,
    owner_of,
)
from hocket.throughput.job import USUAL, Job
from hocket_studies.training_catalogue import PublishedRun, load_runs
from hocket_studies.training_fit import FREE, fit_constants, folded, predicted_s

__all__ = ["PredictedRun", "RunCheck", "TrainingResult", "fitted_constants", "reproduce_training"]

OnCase = Callable[[str, int, int], None]
"""Called as ``on_case(what, done, total)`` after each question."""

OUTSIDE = {
    "mpt-h100-fp8": "products of 8 bits that are converted each time",
    "narayanan-2021-zero3": "ZeRO-3 of 2021: what gathers of weights cost is not known",
    "jean-zay-v100-zero3": "ZeRO-3 of 2021: what gathers of weights cost is not known",
    "jean-zay-v100": "a shared network: its author gives 40 % either way",
    "bloom-prequel": "Megatron-DeepSpeed by the constants of Megatron-LM: it launches far more",
    "torchtitan": "accelerators whose power is capped",
    "sakuraone": "micro-batches and groups of layers are not stated",
}
"""Sets that the law does not describe, by how their names begin, and why."""
_PROGRAM = ("passes", "scores", "launch")
_FOLDED = (
    (("mpt-a100",), FREE),
    (("mpt-h100",), FREE),
    (("dlperf-megatron", "dlperf-oneflow"), (*FREE, "nic")),
    (("megatron-bridge gb200",), FREE),
)
"""Sets that share accelerator or fabric, and which of their constants are fitted."""
_ALONE = (("bloom-prequel",), _PROGRAM)
"""A set whose accelerator was fitted elsewhere, and what is fitted of its program."""
_BORROWED = {"bloom-prequel": "megatron-2020"}
"""Sets that are also predicted by the constants of another program."""


@dataclass(frozen=True)
class PredictedRun:
    """A run that was predicted without having been fitted; `job` has what was assumed."""

    run: PublishedRun
    seconds: float
    job: Job

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.seconds / self.run.seconds - 1

    @property
    def tflops(self) -> float:
        """Predicted teraflops of an NPU, recomputation not counted."""
        return self.job.flops / (self.seconds * self.run.npus) * 1e-12


@dataclass(frozen=True)
class RunCheck:
    """One question for one set of runs.

    Attributes
    ----------
    question
        ``"five folds"``, ``"larger"``, ``"other cluster"`` or ``"outside"``.
    what
        Which runs.
    predicted
        All of them.
    why
        Of what is outside: the reason.
    """

    question: str
    what: str
    predicted: tuple[PredictedRun, ...]
    why: str = ""

    @property
    def spread(self) -> ErrorSummary:
        """Median and 90th percentile of the errors."""
        return summary_of(np.array([each.error for each in self.predicted]))

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
    """All checks, the constants that all runs give, and what could not be predicted."""

    checks: list[RunCheck] = field(default_factory=list)
    constants: Constants = field(default_factory=Constants)
    left_out: list[str] = field(default_factory=list)

    def check(self, question: str, what: str) -> RunCheck:
        """Return one check.

        Raises
        ------
        KeyError
            If there is none.
        """
        for each in self.checks:
            if (each.question, each.what) == (question, what):
                return each
        raise KeyError((question, what))

    def worst(self, count: int) -> list[tuple[RunCheck, PredictedRun]]:
        """Return the runs that are farthest off, outside or not, the worst first."""
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
        Called after each question.

    Raises
    ------
    SpecError
        If the folder has no table of runs, or one that cannot be read.
    """
    runs, left_out = load_runs(data)
    sets: dict[str, list[PublishedRun]] = {}
    for run in runs:
        sets.setdefault(run.set, []).append(run)
    constants = _fitted(sets)
    work: list[tuple[str, Callable[[], list[RunCheck]]]] = []
    for names, free in _FOLDED:
        if all(name in sets for name in names):
            work.append((names[0], lambda names=names, free=free: _folds(sets, names, free)))  # type: ignore[misc]
    work.append(("larger", lambda: _larger(sets)))
    work.append((_ALONE[0][0], lambda: _alone(sets, constants)))
    work.append(("other clusters", lambda: _elsewhere(sets, constants)))
    result = TrainingResult(constants=constants, left_out=left_out)
    for done, (what, run_them) in enumerate(work, 1):
        result.checks += run_them()
        if on_case is not None:
            on_case(what, done, len(work))
    order = ("five folds", "larger", "other cluster", "outside")
    result.checks.sort(key=lambda each: order.index(each.question))
    result.constants = _with_errors(result)
    return result


def fitted_constants(data: Path | None = None) -> Constants:
    """Fit the constants that are shipped: every accelerator and program by all runs that tell them."""
    return reproduce_training(data).constants


def _fitted(sets: dict[str, list[PublishedRun]]) -> Constants:
    found = SOURCED
    for names, free in (*_FOLDED, _ALONE):
        runs = [run for name in names for run in sets.get(name, [])]
        if runs:
            before = set(found.fitted)
            found = fit_constants(runs, free=free, fixed=found)
            owners = dict.fromkeys(owner for owner, _ in found.fitted if (owner, _) not in before)
            source = f"{len(runs)} runs of {_all_of(names)}"
            found = replace(found, sources={**dict.fromkeys(owners, source), **found.sources})
    return found


def _predicted(runs: Runs, constants: Constants) -> tuple[PredictedRun, ...]:
    return tuple(PredictedRun(run, *predicted_s(run, constants)) for run in runs)


def _folds(
    sets: dict[str, list[PublishedRun]],
    names: Sequence[str],
    free: Sequence[str],
    fixed: Constants = NONE,
) -> list[RunCheck]:
    runs = [run for name in names for run in sets[name]]
    took = folded(runs, free=free, fixed=fixed)
    found = [PredictedRun(run, float(each), run.job) for run, each in zip(runs, took, strict=True)]
    return [
        RunCheck("five folds", name, tuple(each for each in found if each.run.set == name))
        for name in names
    ]


def _larger(sets: dict[str, list[PublishedRun]]) -> list[RunCheck]:
    found = []
    for name in ("mpt-a100", "mpt-h100"):
        runs = sets.get(name, [])
        one = [run for run in runs if run.npus <= run.machine.hardware.npus]
        many = [run for run in runs if run.npus > run.machine.hardware.npus]
        if one and many:
            found.append(RunCheck("larger", name, _predicted(many, fit_constants(one))))
    return found


def _alone(sets: dict[str, list[PublishedRun]], constants: Constants) -> list[RunCheck]:
    names, free = _ALONE
    if names[0] not in sets:
        return []
    own = {key: each for key, each in constants.fitted.items() if " on " not in key[0]}
    return _folds(sets, names, free, Constants(own))


def _elsewhere(sets: dict[str, list[PublishedRun]], constants: Constants) -> list[RunCheck]:
    from hocket.throughput.stack import STACKS

    folded_sets = {name for names, _ in (*_FOLDED, _ALONE) for name in names}
    found = []
    for name, runs in sets.items():
        borrowed = _BORROWED.get(name)
        if borrowed is not None:
            runs = [replace(run, stack=STACKS[borrowed]) for run in runs]
        elif name in folded_sets:
            continue
        kinds: dict[str, list[PublishedRun]] = {}
        for run in runs:
            kinds.setdefault(_why_outside(run, constants), []).append(run)
        for why, own in kinds.items():
            question = "outside" if why else "other cluster"
            found.append(RunCheck(question, name, _predicted(own, constants), why))
    return found


def _why_outside(run: PublishedRun, constants: Constants) -> str:
    """Explain why the law does not describe a run; empty where it does."""
    known = next((why for start, why in OUTSIDE.items() if run.set.startswith(start)), "")
    products = owner_of("efficiency", run.stack, run.machine, run.job.precision)
    if not known and not constants.has(products, "efficiency"):
        return f"{run.job.precision} products of {run.machine.family} were not fitted"
    return known


def _with_errors(result: TrainingResult) -> Constants:
    """Return the constants with the error to be expected of each program on an accelerator.

    Of a program whose own runs were folded that is their error; where constants are assumed, that of all
    runs that were predicted by constants of another program or accelerator, those of programs that
    differ more among them.
    """
    errors: dict[str, ExpectedError] = {}
    odd: dict[str, list[PredictedRun]] = {}
    others: list[PredictedRun] = []
    borrowed: list[PredictedRun] = []
    for check in result.checks:
        first = check.predicted[0].run
        if check.question == "five folds":
            errors[f"{first.stack.constants} on {first.machine.family}"] = _expected(
                check.predicted
            )
        elif check.question == "outside" and _is_a_kind(first):
            odd.setdefault(outside(first.stack, first.job.precision), []).extend(check.predicted)
        elif check.question == "other cluster":
            others += check.predicted
        elif check.what in _BORROWED:
            borrowed += check.predicted
    errors |= {elsewhere(each.run.stack): _expected(others + borrowed) for each in others}
    errors |= {name: _expected(found) for name, found in odd.items()}
    return replace(result.constants, errors=errors)


def _is_a_kind(run: PublishedRun) -> bool:
    """Return whether a run is outside for what it is, not where it ran: its error is that of its kind."""
    return not run.stack.hides_gathers or run.job.precision != USUAL


def _expected(predicted: Sequence[PredictedRun]) -> ExpectedError:
    spread = summary_of(np.array([each.error for each in predicted]))
    names = _all_of(list(dict.fromkeys(each.run.set for each in predicted)))
    return ExpectedError(spread.median, spread.p90, spread.rows, names)


def _all_of(names: Sequence[str]) -> str:
    """List names as a sentence does: ``"a, b and c"``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
