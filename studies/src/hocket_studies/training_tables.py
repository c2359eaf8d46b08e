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
from hocket_studies.training import PredictedRun, RunCheck, TrainingResult, reproduce_training

_WORST = 12
_ORDERED = "dlperf"
"""Sets of different splits on one machine: whether their order is right is said of them."""
_HEAD = (
    "question",
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
    "predicted_s",
    "measured_tflops",
    "predicted_tflops",
)
_LEGEND = (
    "Shares of the measured time of an iteration. *Five folds*: a fifth of a set by constants of the other",
    "four; *larger*: several nodes by constants of one; *other cluster*: nothing of it fitted, accelerator",
    "and program each fitted elsewhere; *outside*: the same for what the law does not describe.",
)


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
    """Predict published training runs from what was not fitted, and state the error.

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
    table = Table(
        title="error of runs that were not fitted: predicted over measured time, less one"
    )
    table.add_column("question")
    table.add_column("of")
    table.add_column("runs", justify="right")
    for name in ("median", "90th percentile", "worst"):
        table.add_column(name, justify="right", unit="%")
    for check in result.checks:
        spread = check.spread
        cells = [str(spread.rows), percent(spread.median), percent(spread.p90)]
        table.add_row(check.question, check.what, *cells, f"{100 * check.worst.error:+.1f}")
    console.print(table)
    for line in _orders(result):
        console.print(line)
    for check in result.checks:
        if check.why:
            console.print(f"outside: {check.what}: {check.why}")
    for line in result.left_out:
        console.note(f"left out: {line}")


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
        "left_out": result.left_out,
    }


def _check_value(check: RunCheck) -> dict[str, Any]:
    spread = check.spread
    return {
        "question": check.question,
        "of": check.what,
        "runs": spread.rows,
        "median": spread.median,
        "p90": spread.p90,
        "worst": check.worst.error,
        "kendall_tau": check.tau if spread.rows > 1 else None,
        "why": check.why,
    }


def _csv(result: TrainingResult) -> str:
    """Return every predicted run."""
    rows: list[list[object]] = []
    for check in result.checks:
        for each in check.predicted:
            job = each.job
            what = [check.question, check.what, each.run.name, each.run.npus, str(job.parallel)]
            what += [job.batch, job.micro_batch, job.model.sequence, job.recompute]
            times = [each.run.seconds, each.seconds, each.run.tflops, each.tflops]
            unstated = " ".join(each.run.unstated)
            rows.append([*what, unstated, *(f"{time:.6g}" for time in times)])
    return as_csv(_HEAD, rows)


def as_page(result: TrainingResult) -> str:
    """Return the tables in Markdown, the worst runs first."""
    lines = ["# Predicted and measured", "", *_LEGEND, "", "## The worst", ""]
    worst = (_row(check, each) for check, each in result.worst(_WORST))
    lines += markdown(["run", "split", "question"], ["measured", "predicted", "error"], worst)
    lines += ["", "## All", ""]
    rows = (
        (
            *(check.question, check.what, str(check.spread.rows)),
            *(f"{percent(check.spread.median)} %", f"{percent(check.spread.p90)} %"),
            f"{100 * check.worst.error:+.1f} %",
        )
        for check in result.checks
    )
    lines += markdown(["question", "of"], ["runs", "median", "90th percentile", "worst"], rows)
    lines += ["", *(f"{line}." for line in _orders(result))]
    lines += [""] + [f"- {check.what}: {check.why}." for check in result.checks if check.why]
    if result.left_out:
        lines += ["", "Left out:", "", *(f"- {line}" for line in result.left_out)]
    return "\n".join(lines) + "\n"


def _row(check: RunCheck, each: PredictedRun) -> list[str]:
    job = each.job
    split = f"{job.parallel}, {job.micro_batch} x {job.model.sequence} tokens"
    cells = [f"{each.run.name} of {check.what}", split, check.question]
    return [
        *cells,
        f"{each.run.seconds:.4g} s",
        f"{each.seconds:.4g} s",
        f"{100 * each.error:+.1f} %",
    ]
