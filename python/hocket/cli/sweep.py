"""``hocket sweep``: one command at many points, and what they came to."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hocket.cli import options
from hocket.cli.command import Argument, Option
from hocket.cli.form import Form
from hocket.cli.numbers import TIMES, percent, significant
from hocket.cli.table import NEVER, Cell, Table
from hocket.errors import SpecError
from hocket.units import format_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hocket.sweeps.report import SweepReport

_MOST_ROWS = 40
_MOST_ERRORS = 5


@dataclass(frozen=True)
class Where(Form):
    """The files of results, and options for the output."""

    output: Annotated[
        str | None,
        Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="The folder for the results; a sweep that was stopped goes on in the same one.",
        ),
    ] = None


def run(
    file: Annotated[
        str,
        Argument(
            metavar="SWEEP", help="A .yml file with command: and grid: or list: (docs/sweeps.md)."
        ),
    ],
    *,
    workers: Annotated[
        int | None,
        Option("--workers", "-w", help="Number of processes. Default: one per core."),
    ] = None,
    ray: Annotated[
        str | None,
        Option(
            "--ray",
            metavar="ADDRESS",
            help="Run on a Ray cluster: auto, host:6379, ray://host:10001, or local to start one here.",
        ),
    ] = None,
    count: Annotated[bool, Option("--count", help="Print only the number of points.")] = False,
    where: Where,
) -> None:
    """Run every point of a sweep, or the rest of one that was stopped.

    For example: hocket sweep sweep.yml -o results --workers 2
    """
    from hocket.sweeps.worker import early_process

    with nullcontext() if count or ray is not None else early_process():
        from hocket.sweeps.run import load_sweep, run_sweep

        made = load_sweep(file)
        if count:
            if where.prints(
                "sweep-count", lambda: _counted(made.count), lambda: [_counted(made.count)]
            ):
                return
            options.say(made.shape())
            return
        if not where.output:
            right = "name a folder for the results: -o results"
            raise SpecError("--output", "there is none", right)
        with options.watching() as watch:
            started = _Started(made.shape(), watch, where)
            found = run_sweep(made, Path(where.output), workers=workers, ray=ray, progress=started)
    if where.prints("sweep", found.to_dict, lambda: [found.to_dict()]):
        return
    console = options.output()
    table = Table(title=f"{made.command}, {made.shape()}", show_header=False)
    table.add_row("points", f"{made.count:,}")
    table.add_row("failed", f"{found.failed:,}")
    if found.resumed:
        table.add_row("there already", f"{found.resumed:,}")
    table.add_row("rows", f"{where.output}/rows")
    console.print(table)
    console.note(f"hocket sweep report {where.output} sums them up")


class _Started:
    """Says what is run once it is: what is refused before has its one line."""

    def __init__(self, shape: str, watch: options.Watch, where: Where) -> None:
        self._shape: str | None = shape
        self._watch, self._where = watch, where

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._shape is not None:
            options.starting(self._shape)
            self._shape = None
        self._watch.step(stage, done, total)
        folder = f"{self._where.output}/rows"
        there = f"{done:,} of {total:,} points are in {folder}; the same command runs the others"
        rows = [{"points": total, "done": done, "rows": folder}]
        self._watch.so_far(self._where.so_far(lambda: rows, lambda: there))


def _counted(count: int) -> dict[str, int]:
    return {"points": count}


@dataclass(frozen=True)
class Summed(Form):
    """The form in which a report is shown; the rows of CSV are its table."""

    plot: options.Plot = None
    page: options.Page = None


def report(
    folder: Annotated[
        str, Argument(metavar="FOLDER", help="Folder that `hocket sweep` wrote, finished or not.")
    ],
    *,
    by: Annotated[
        list[str] | None,
        Option(
            "--by",
            metavar="KEY",
            help="Key to group by, apart from tasks such as sizes. Can be repeated. Default: all keys "
            "that differ, except choices such as algorithm and chunks.",
        ),
    ] = None,
    form: Summed,
) -> None:
    """Summarise a sweep: the fastest of each group, the failed points, and time against cost.

    For example: hocket sweep report results --by topology --by size
    """
    from hocket.sweeps.report import report_sweep

    found = report_sweep(Path(folder), by=by or None)
    if form.page is not None:
        from hocket.explorer.study import write_study

        write_study(Path(folder), Path(form.page))
    if form.plot is not None:
        if not found.pareto_front:
            right = "give costs: in the sweep or topology files"
            raise SpecError("--plot", "nothing says what these networks cost", right)
        from hocket.plot.sweep import draw_sweep

        draw_sweep(found, Path(form.plot))
    if not form.prints("sweep-report", found.to_dict, lambda: found):
        _print(found)


def _print(found: SweepReport) -> None:
    console = options.output()
    missing = f", {found.missing:,} not run yet" if found.missing else ""
    title = f"{found.command}, {found.points:,} points{missing}"
    console.print(_table(title, found.table[:_MOST_ROWS], found))
    if len(found.table) > _MOST_ROWS:
        console.print(f"the first {_MOST_ROWS} of {len(found.table):,} groups; --csv prints all")
    if found.pareto_front:
        console.print(_table("time against cost", found.pareto_front[:_MOST_ROWS], found))
        if len(found.pareto_front) > _MOST_ROWS:
            more = f"the first {_MOST_ROWS} of {len(found.pareto_front):,} on the fronts; --json prints all"
            console.print(more)
    if found.failed:
        console.print(f"{found.failed:,} points failed:")
    for text, count in found.errors[:_MOST_ERRORS]:
        console.print(f"  {count:,}: {text}")
    if len(found.errors) > _MOST_ERRORS:
        console.note("more are in the column error")


def _table(title: str, rows: Sequence[Mapping[str, Any]], found: SweepReport) -> Table:
    table = Table(title=title)
    names = list(rows[0]) if rows else []
    drop = [name for name in names if name == "failed" and not found.failed]
    if all(row.get("planned_by") == row.get("algorithm") for row in rows):
        drop.append("planned_by")
    scale = 1e12 if found.measure == "time_s" else 1
    for name in (each for each in names if each not in drop):
        is_time = name.endswith(found.measure) or name == found.measure
        numeric = all(isinstance(row[name], int | float | None) for row in rows)
        words = name.removesuffix("_ps").removesuffix("_s") if is_time else name
        words = words.replace("least_", "min_").replace("most_", "max_").replace("_", " ")
        stays = NEVER if name in found.by or name.startswith("least") else None
        if is_time:
            table.add_column(words, units=TIMES, leaves=stays)
        elif name == "gap":
            table.add_column(words, justify="right", unit="%", leaves=stays)
        else:
            table.add_column(words, justify="right" if numeric else "left", leaves=stays)
    for row in rows:
        cells: list[Cell] = []
        for name, value in row.items():
            if name in drop:
                continue
            is_time = name.endswith(found.measure)
            if is_time:
                cells.append(None if value is None else value * scale)
            else:
                cells.append(_cell(name, value))
        table.add_row(*cells)
    return table


def _cell(name: str, value: object) -> str:
    if value is None:
        return "–"
    if name == "gap" and isinstance(value, float):
        return percent(value)
    if name == "size" and isinstance(value, int):
        return format_size(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else significant(value)
