"""``hocket reproduce moe``: published times of dispatch and combine, predicted."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from hocket._checks import one_of
from hocket.cli.command import Option
from hocket.cli.console import Printer
from hocket.cli.numbers import percent
from hocket.cli.options import Watch
from hocket.cli.table import Table
from hocket_studies.harness import Into, Report, as_csv
from hocket_studies.moe import MoeResult, Predicted, middle, published, reproduce_moe

_HEAD = ("source", "library", "machine", "sends", "phase", "npus", "tokens")
_TIMES = ("published_us", "predicted_us", "error")


def study(
    *,
    source: Annotated[
        list[str] | None,
        Option("--source", help="Only this source: deepep, uccl or fabric-lib. Can be repeated."),
    ] = None,
    into: Into,
) -> None:
    """Predict published times of MoE dispatch and combine, and state the error.

    For example: hocket reproduce moe --source deepep --output moe
    """
    known = tuple(dict.fromkeys(each.source for each in published()))
    for each in source or ():
        one_of("--source", each, known)

    def report(watch: Watch) -> Report:
        result = reproduce_moe(source, on_case=watch)
        table = as_csv((*_HEAD, *_TIMES), [_row(each) for each in result.rows])
        return Report(as_json(result), partial(_show, result), files={"moe.csv": table})

    into.write("moe", report)


def _row(row: Predicted) -> tuple[object, ...]:
    of = row.published
    times = (f"{of.measured_us:.1f}", f"{row.time_us:.1f}", f"{row.error:.3f}")
    return (*(getattr(of, name) for name in _HEAD), *times)


def as_json(result: MoeResult) -> dict[str, Any]:
    """Return rows and medians as a JSON value."""
    return {
        "source": "Published times; hocket_studies/moe_measured/README.md says whose",
        "cases": [dict(zip((*_HEAD, *_TIMES), _row(row), strict=True)) for row in result.rows],
        "checks": [
            {
                "of": " ".join(filter(None, key)),
                "times": len(rows),
                "median": middle(rows)[0],
                "median_signed": middle(rows)[1],
            }
            for key, rows in result.groups().items()
        ],
    }


def _show(result: MoeResult, console: Printer) -> None:
    table = Table(title="predicted over published time, less one")
    for name in ("source", "library", "machine", "sends", "phase"):
        table.add_column(name)
    for name, unit in (("GPUs", ""), ("tokens", ""), ("published", "us"), ("predicted", "us")):
        table.add_column(name, justify="right", unit=unit)
    table.add_column("error", justify="right", unit="%")
    for row in result.rows:
        cells = [str(cell) for cell in _row(row)[:-1]]
        table.add_row(*cells, f"{100 * row.error:+.1f}")
    console.print(table)
    short = Table(title="median of the error, without and with its sign")
    for name in ("source", "library", "sends"):
        short.add_column(name)
    short.add_column("times", justify="right")
    short.add_column("median", justify="right", unit="%")
    short.add_column("with sign", justify="right", unit="%")
    for key, rows in result.groups().items():
        size, signed = middle(rows)
        short.add_row(*key, str(len(rows)), percent(size), f"{100 * signed:+.1f}")
    console.print(short)
