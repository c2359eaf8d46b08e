"""``hocket reproduce training``: published training runs, predicted."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from hocket.cli.command import Option
from hocket.cli.console import Printer
from hocket.cli.numbers import percent
from hocket.cli.options import Watch
from hocket.cli.table import Table
from hocket_studies.harness import Into, Report, as_csv, markdown
from hocket_studies.training import (
    PredictedRun,
    RunCheck,
    TrainingResult,
    coverage,
    reproduce_training,
)

_WORST = 12
_ORDERED = "dlperf"
"""Sets of different splits on one machine: whether their order is right is said of them."""
_HEAD = (
    "set",
    "model",
    "npus",
    "parallel",
    "batch",
    "micro_batch",
    "sequence",
    "recompute",
    "unstated",
    "measured_s",
    "fitted_s",
    "predicted_s",
    "measured_tflops",
    "predicted_tflops",
)
_LEGEND = (
    "Shares of the measured time of an iteration. *Fitted*: by constants of all runs; *source left out*:",
    "by constants that nothing of the source was fitted to.",
)
_ERRORS = ("fitted median", "fitted p90", "source left out median", "p90", "worst")


def study(
    *,
    data: Annotated[
        str | None,
        Option(
            "--data",
            metavar="DIR",
            help="Folder with more published runs, as tables. Default: the shipped ones.",
        ),
    ] = None,
    constants: Annotated[
        bool, Option("--constants", help="Also write the constants that all runs give.")
    ] = False,
    into: Into,
) -> None:
    """Predict published training runs, each without its source, and state the error.

    For example: hocket reproduce training --output training
    """

    def report(watch: Watch) -> Report:
        result = reproduce_training(None if data is None else Path(data), on_case=watch)
        files = {"training.csv": _csv(result), "training.md": as_page(result)}
        if constants:
            files["constants.yml"] = result.constants.as_yaml()
        from hocket_studies.training_pictures import draw_runs

        pictures = {"training.png": partial(draw_runs, result)}
        return Report(as_json(result), partial(_show, result), pictures, files)

    into.write("training", report)


def _show(result: TrainingResult, console: Printer) -> None:
    table = Table(title="predicted over measured time of published runs, less one")
    table.add_column("of")
    table.add_column("runs", justify="right")
    for name in _ERRORS:
        table.add_column(name, justify="right", unit="%")
    for check in result.checks:
        table.add_row(check.what, str(check.spread.rows), *_errors(check))
    console.print(table)
    for line in [*_stated(result), *_orders(result)]:
        console.print(line)
    for check in result.checks:
        if check.why:
            console.print(f"not fitted: {check.what}: {check.why}")
    for line in result.left_out:
        console.note(f"left out: {line}")


def _errors(check: RunCheck) -> list[str]:
    """Return the cells of :data:`_ERRORS`."""
    found = [check.fitted.median, check.fitted.p90, check.spread.median, check.spread.p90]
    return [*map(percent, found), f"{100 * check.worst.error:+.1f}"]


def _stated(result: TrainingResult) -> list[str]:
    """Describe which errors are to be expected, and how often those held."""
    lines = [
        f"9 of 10 within {percent(each.within)} %: {each.of} ({each.runs} runs of "
        f"{each.sources} sources, median {percent(each.median)} %)"
        for each in result.constants.errors.values()
    ]
    held, total = coverage(result.predicted)
    return [*lines, f"stated by the other sources, the error held for {held} of {total} runs"]


def _orders(result: TrainingResult) -> list[str]:
    """Describe how right the order of different splits on one machine is."""
    return [
        f"order of {check.what}'s {check.spread.rows} splits by TFLOP/s: Kendall's tau {check.tau:.2f}"
        for check in result.checks
        if check.what.startswith(_ORDERED)
    ]


def as_json(result: TrainingResult) -> dict[str, Any]:
    """Return checks and predicted runs as a JSON value."""
    return {
        "source": "Published training runs; hocket_studies/training_measured/README.md says whose",
        "checks": [_check_value(check) for check in result.checks],
        "expected": [each.to_dict() for each in result.constants.errors.values()],
        "left_out": result.left_out,
    }


def _check_value(check: RunCheck) -> dict[str, Any]:
    return {
        "of": check.what,
        "runs": check.spread.rows,
        "fitted": {"median": check.fitted.median, "p90": check.fitted.p90},
        "source_left_out": {"median": check.spread.median, "p90": check.spread.p90},
        "worst": check.worst.error,
        "kendall_tau": check.tau if check.spread.rows > 1 else None,
        "why": check.why,
    }


def _csv(result: TrainingResult) -> str:
    """Return every predicted run."""
    rows: list[list[object]] = []
    for check in result.checks:
        for each in check.predicted:
            job = each.job
            what = [check.what, each.run.name, each.run.npus, str(job.parallel)]
            what += [job.batch, job.micro_batch, job.model.sequence, job.recompute]
            times = [each.run.seconds, each.fitted_s, each.seconds, each.run.tflops, each.tflops]
            unstated = " ".join(each.run.unstated)
            rows.append([*what, unstated, *(f"{time:.6g}" for time in times)])
    return as_csv(_HEAD, rows)


def as_page(result: TrainingResult) -> str:
    """Return the tables in Markdown, the worst runs first."""
    lines = ["# Predicted and measured", "", *_LEGEND, "", "## The worst", ""]
    worst = (_row(check, each) for check, each in result.worst(_WORST))
    lines += markdown(["run", "split"], ["measured", "predicted", "error"], worst)
    lines += ["", "## All", ""]
    rows = ([check.what, str(check.spread.rows), *_errors(check)] for check in result.checks)
    lines += markdown(["of"], ["runs", *(f"{name}, %" for name in _ERRORS)], rows)
    lines += ["", *(f"- {line}." for line in [*_stated(result), *_orders(result)])]
    lines += [f"- Not fitted: {check.what}: {check.why}." for check in result.checks if check.why]
    if result.left_out:
        lines += ["", "Left out:", "", *(f"- {line}" for line in result.left_out)]
    return "\n".join(lines) + "\n"


def _row(check: RunCheck, each: PredictedRun) -> list[str]:
    job = each.job
    split = f"{job.parallel}, {job.micro_batch} x {job.model.sequence} tokens"
    cells = [f"{each.run.name} of {check.what}", split]
    return [
        *cells,
        f"{each.run.seconds:.4g} s",
        f"{each.seconds:.4g} s",
        f"{100 * each.error:+.1f} %",
    ]
