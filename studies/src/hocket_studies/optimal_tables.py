"""``hocket reproduce optimal``: how far the best plans are from the lower bound, machine by machine."""

from __future__ import annotations

import csv
import io
import json as json_text
from pathlib import Path
from typing import Annotated, Any

from hocket.cli import options
from hocket.cli.command import Option
from hocket.cli.console import Printer
from hocket.cli.table import Table
from hocket.files.atomic import replacing
from hocket.units import format_size, parse_size
from hocket_studies import optimal
from hocket_studies.optimal import Cell, OptimalResult, Outcome, reproduce_optimal
from hocket_studies.themis_tables import make_folder

_MANY = 40
"""Cells from which on they are not printed one by one."""
_TITLE = "# How far the best plans are from the lower bound"
_LEGEND = (
    "Each cell: how much longer the quickest plan takes than the lower bound, the algorithm that makes it,",
    "and in brackets the argument that the bound is due to. `optimal.csv` has that in full, with times.",
)


def optimal_study(
    *,
    output: Annotated[
        str,
        Option("--output", "-o", help="Folder for pages, picture and data; created if missing."),
    ] = "reproduce-optimal",
    machine: Annotated[
        list[str] | None,
        Option("--machine", help="Only this machine; as a list (a,b) or repeated."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        Option("--kind", help="Only this collective; as a list (a,b) or repeated."),
    ] = None,
    size: Annotated[
        list[str] | None,
        Option(
            "--size",
            "-s",
            help="Instead of 64 kB, 1 MB, 64 MB and 1 GB; as a list (1MB,1GB) or repeated.",
        ),
    ] = None,
    failures: Annotated[
        bool,
        Option("--failures", help="Each machine without one link, one of each sort."),
    ] = False,
    json: options.Json = False,
) -> None:
    """Compute how far the best plans are from the lower bound, on all shipped machines.

    For example: hocket reproduce optimal --machine dgx_a100_2box --size 1GB
    """
    machines = options.numbers("--machine", machine, optimal.machines()) or None
    kinds = options.numbers("--kind", kind, optimal.KINDS) or list(optimal.KINDS)
    sizes = _sizes(size)
    folder = Path(output)
    make_folder(folder)
    with options.watching() as watch:
        result = reproduce_optimal(
            machines, kinds=kinds, sizes=sizes, failures=failures, on_case=watch
        )
        watch.note("drawing")
        from hocket_studies.optimal_pictures import draw_gaps

        picture = folder / "optimal.png"
        draw_gaps(result, picture)
    value = as_json(result, picture)
    _write(folder / "optimal.json", json_text.dumps(value, indent=2) + "\n")
    _write(folder / "optimal.csv", as_csv(result))
    _write(folder / "optimal.md", as_page(result))
    if json:
        options.print_result("reproduction", value)
        return
    console = options.output()
    if len(result.outcomes) <= _MANY:
        _print_cells(console, result)
    else:
        _print_worst(console, result)
    for line in summary(result):
        console.print(line)
    console.print(f"files in {folder}: optimal.png, optimal.json, optimal.csv, optimal.md")


def _sizes(words: list[str] | None) -> list[int]:
    given = [part.strip() for word in words or () for part in word.split(",")]
    sizes = [parse_size(each, field="--size") for each in given]
    return list(dict.fromkeys(sizes)) or list(optimal.SIZES)


def _write(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")


def summary(result: OptimalResult) -> list[str]:
    """Return how many cells are as near as is wanted."""
    lines = []
    for is_large, gap in ((True, optimal.NARROW), (False, optimal.WIDE)):
        near, count = result.within(is_large)
        if count:
            least = format_size(optimal.LARGE)
            which = f"of {least} and more" if is_large else f"below {least}"
            plural = "" if count == 1 else "s"
            share = near / count
            lines.append(
                f"{which}: {near} of {count} cell{plural} ({share:.1%}) within {gap:.0%} of the bound"
            )
    if result.impossible:
        lines.append(f"not counted: {result.impossible}, in which what has failed cuts an NPU off")
    return lines


def _print_cells(console: Printer, result: OptimalResult) -> None:
    _print_rows(console, sorted(result.outcomes), result, "gap to the lower bound")


def _print_worst(console: Printer, result: OptimalResult) -> None:
    for is_large in (True, False):
        worst = result.worst(is_large)
        if worst:
            what = "large" if is_large else "small"
            title = f"the farthest from the bound: {what} sizes, {min(_MANY, len(worst))} of {len(worst)}"
            _print_rows(console, worst[:_MANY], result, title)


def _print_rows(console: Printer, cells: list[Cell], result: OptimalResult, title: str) -> None:
    table = Table(title=title)
    for name in ("machine", "collective"):
        table.add_column(name)
    table.add_column("size", justify="right")
    table.add_column("algorithm")
    table.add_column("gap", justify="right")
    table.add_column("bound due to")
    for cell in cells:
        out = result.outcomes[cell]
        gap = "–" if out.gap is None else f"{out.gap:.1%}"
        words = [cell.network, cell.kind, format_size(cell.size), out.algorithm or "–", gap]
        table.add_row(*words, out.witness or out.why)
    console.print(table)


def as_page(result: OptimalResult) -> str:
    """Return a page in Markdown: one row per machine, one column per kind, one table per size."""
    kinds = [kind for kind in optimal.KINDS if any(cell.kind == kind for cell in result.outcomes)]
    lines = [_TITLE, "", *_LEGEND, "", *(f"- {line}" for line in summary(result)), ""]
    for size in sorted({cell.size for cell in result.outcomes}):
        heads = " | ".join(kinds)
        lines += [f"## {format_size(size)}", "", f"| machine | NPUs | {heads} |"]
        lines += ["| --- | ---: |" + " --- |" * len(kinds)]
        for machine, failed in result.machines:
            row = [Cell(machine, kind, size, failed) for kind in kinds]
            outs = [result.outcomes.get(cell) for cell in row]
            npus = next((str(out.npus) for out in outs if out is not None), "")
            words = " | ".join(_in_page(out) for out in outs)
            lines.append(f"| {row[0].network} | {npus} | {words} |")
        lines.append("")
    return "\n".join(lines)


def _in_page(out: Outcome | None) -> str:
    if out is None:
        return ""
    return "–" if out.gap is None else f"{out.gap:.1%} {out.algorithm} ({out.argument})"


_COLUMNS = ("machine", "failed", "npus", "kind", "size_bytes", "algorithm", "chunks")
_TIMES = ("time_ps", "bound_ps", "gap", "seconds", "witness", "why")


def _rows(result: OptimalResult) -> list[dict[str, Any]]:
    return [
        {
            "machine": cell.machine,
            "failed": cell.failed or None,
            "npus": out.npus,
            "kind": cell.kind,
            "size_bytes": cell.size,
            "algorithm": out.algorithm,
            "chunks": out.chunks,
            "time_ps": out.time_ps,
            "bound_ps": out.bound_ps,
            "gap": out.gap,
            "seconds": out.seconds,
            "witness": out.witness,
            "why": out.why or None,
        }
        for cell, out in sorted(result.outcomes.items(), key=lambda each: each[0])
    ]


def as_csv(result: OptimalResult) -> str:
    """Return one row per cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, (*_COLUMNS, *_TIMES), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_rows(result))
    return text.getvalue()


def as_json(result: OptimalResult, picture: Path) -> dict[str, Any]:
    """Return all cells as JSON values; times in picoseconds."""
    return {
        "cells": _rows(result),
        "within": {
            name: {"gap": gap, "cells": near, "of": count}
            for name, gap, (near, count) in (
                ("large", optimal.NARROW, result.within(is_large=True)),
                ("small", optimal.WIDE, result.within(is_large=False)),
            )
        },
        "pictures": [str(picture)],
    }
