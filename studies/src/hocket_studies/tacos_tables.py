"""``hocket reproduce tacos``: tables and figures of TACOS anew, beside the published numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from hocket.cli.command import Option
from hocket.cli.console import Printer
from hocket.cli.options import Watch
from hocket.cli.table import Table
from hocket.units import format_time_ps, parse_time
from hocket_studies import tacos_published as published
from hocket_studies.harness import Into, Report, wanted
from hocket_studies.tacos import Cell, Row, TacosResult, reproduce_tacos
from hocket_studies.tacos_targets import EXPERIMENTS, SYNTHESIZED

NOTES = {
    "table 1": (
        "Baselines on the network as unwound. What the paper heads Ring is shown as direct's, and what",
        "it heads Greedy, last, as rank-ring's: so they fit, 3 to 6 % apart from 16 NPUs on. From 128 on",
        "its greedy takes 1.7 times what hocket's does, by both (docs/synthesis.md).",
    ),
    "table 2": (
        "early and cluster begin with the plan of greedy, which is proved to be the least: nothing is",
        "left to be searched.",
    ),
    "table 3": (
        "Its NPU 13 keeps one link, over which 13 chunks leave and 13 come: 26 slots one after the "
        "other, fewer",
        "where sums and copies overlap. The published ratios are as if the best took 13.",
    ),
}
_LEGEND = (
    "Times over that of the column with 1.00 (time of synthesis). rank-ring: a ring in rank order, as "
    "the paper's; ring: hocket's own. Where the paper divides by another column, its ratios are "
    "divided likewise."
)
_BELOW = (
    "Below 1.00: it copies what is summed while other sums go on; exact, as the paper, does one after "
    "the other."
)


def study(
    *,
    table: Annotated[
        list[str] | None,
        Option("--table", help="Only this table: 1 to 5. Can be repeated."),
    ] = None,
    figure: Annotated[
        list[str] | None,
        Option("--figure", help="Only this figure: 6, 19 or 21. Can be repeated."),
    ] = None,
    full: Annotated[
        bool,
        Option("--full", help="Also the exact searches that take long."),
    ] = False,
    time_limit: Annotated[
        str | None,
        Option(
            "--time-limit",
            help="Time limit of each exact search. Default: 20 s, or 10 min with --full.",
        ),
    ] = None,
    into: Into,
) -> None:
    """Compute tables I to V and figures 6, 19 and 21 of TACOS: synthesized plans and baselines.

    For example: hocket reproduce tacos --table 3 --figure 6 --output tacos
    """
    names = wanted(EXPERIMENTS, table=table, figure=figure)
    if time_limit is not None:
        parse_time(time_limit, field="--time-limit")

    def report(watch: Watch) -> Report:
        result = reproduce_tacos(names, full=full, time_limit=time_limit, on_case=watch)

        def show(console: Printer) -> None:
            for name in names:
                _print(console, result, name)
            console.print(_LEGEND)

        return Report(as_json(result), show, _pictures(result))

    into.write("tacos", report)


def _pictures(result: TacosResult) -> dict[str, Callable[[Path], None]]:
    from hocket_studies import tacos_pictures as draw

    return {
        f"fig{name.split()[1]}.png": partial(
            draw.draw_sizes if name == "figure 21" else draw.draw_bars, result, name
        )
        for name in result.rows
        if name.startswith("figure")
    }


def _print(console: Printer, result: TacosResult, name: str) -> None:

    table = Table(title=f"{name}: {EXPERIMENTS[name].title}")
    table.add_column("")
    table.add_column("from")
    methods = result.methods(name)
    for method in methods:
        table.add_column(method, justify="right")
    for row in result.rows[name]:
        ours = [_cell(row, row.cell(method)) for method in methods]
        theirs = [_published(row, method) for method in methods]
        table.add_row(row.target.name, "hocket", *ours, end_section=not row.published)
        if row.published:
            table.add_row("", "published", *theirs, end_section=True)
    console.print(table)
    for (method, over), theirs_mean in published.MEAN_SPEEDUPS.get(name, {}).items():
        mine = result.mean_speedup(name, method, over)
        text = "–" if mine is None else f"{mine:.2f}"
        what = "ring in rank order and direct" if over == "baselines" else over
        console.print(f"{method} over {what}, mean: {text}; published {theirs_mean:.2f}")
    for line in _remarks(result.rows[name]):
        console.print(line)
    for line in NOTES.get(name, ()):
        console.print(line)


def _cell(row: Row, cell: Cell | None) -> str:
    if cell is None:
        return ""
    ratio = row.ratio(cell.method)
    if ratio is None:
        return "–" if cell.time_ps is None else format_time_ps(cell.time_ps)
    star = "*" if cell.status == "feasible" and cell.method == "exact" else ""
    took = f" ({_seconds(cell.seconds)})" if cell.method in SYNTHESIZED else ""
    return f"{ratio:.2f}{star}{took}"


def _published(row: Row, method: str) -> str:
    ratio = row.published_ratio(method)
    if ratio is None:
        return "–"
    seconds = row.published[method].seconds
    return f"{ratio:.2f}" if seconds is None else f"{ratio:.2f} ({_seconds(seconds)})"


def _seconds(seconds: float) -> str:
    return format_time_ps(round(seconds * 1e6) * 10**6) if seconds < 100 else f"{seconds:,.0f} s"


def _remarks(rows: list[Row]) -> list[str]:
    """Describe what the stars mean and why cells are empty, once each."""
    lines: dict[str, None] = {}
    for row in rows:
        for cell in row.cells:
            if cell.why:
                lines[f"– {cell.method}: {cell.why}"] = None
            if cell.status == "feasible" and cell.method == "exact":
                lines["* the best when time ran out, not proved to be the least"] = None
            if row.cell("exact") and (row.ratio(cell.method) or 1) < 0.995:
                lines[_BELOW] = None
    return list(lines)


def as_json(result: TacosResult) -> dict[str, Any]:
    """Return all rows as JSON values; times of collectives in picoseconds."""
    return {
        "source": published.SOURCE,
        "experiments": {
            name: {
                "title": EXPERIMENTS[name].title,
                "rows": [_row_json(row) for row in rows],
                "mean_speedups": [
                    {
                        "method": method,
                        "over": over,
                        "mean": result.mean_speedup(name, method, over),
                        "published_mean": theirs,
                    }
                    for (method, over), theirs in published.MEAN_SPEEDUPS.get(name, {}).items()
                ],
                "notes": " ".join(NOTES.get(name, ())),
            }
            for name, rows in result.rows.items()
        },
    }


def _row_json(row: Row) -> dict[str, Any]:
    methods = {cell.method: _cell_json(row, cell) for cell in row.cells}
    for name, theirs in row.published.items():
        each = methods.setdefault(name, {"time_ps": None, "ratio": None})
        each["published_ratio"] = theirs.ratio
        each["published_seconds"] = theirs.seconds
    return {
        "name": row.target.name,
        "collective": row.target.kind,
        "reference": row.reference,
        "methods": methods,
    }


def _cell_json(row: Row, cell: Cell) -> dict[str, Any]:
    return {
        "time_ps": cell.time_ps,
        "ratio": row.ratio(cell.method),
        "seconds": cell.seconds,
        "slots": cell.slots,
        "least_slots": cell.least,
        "status": cell.status,
        "why": cell.why or None,
        "published_ratio": None,
        "published_seconds": None,
    }
