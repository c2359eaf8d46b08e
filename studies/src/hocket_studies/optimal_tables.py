"""``hocket reproduce optimal``: how far the best plans are from the lower bound, machine by machine."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from hocket.cli.command import Option
from hocket.cli.console import Printer
from hocket.cli.form import csv_text
from hocket.cli.options import Watch, numbers
from hocket.cli.table import Table
from hocket.units import format_size, parse_size
from hocket_studies import optimal
from hocket_studies.harness import Into, Report
from hocket_studies.optimal import Cell, OptimalResult, Outcome, reproduce_optimal

_MANY = 40
"""Cells from which on they are not printed one by one."""
_TITLE = "# How far the best plans are from the lower bound"
_LEGEND = (
    "Each cell: how much longer the fastest plan takes than the lower bound, the algorithm that makes it,",
    "and in brackets the argument that the bound is due to. `optimal.csv` has that in full, with times.",
)


def study(
    *,
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
    into: Into,
) -> None:
    """Compute how far the best plans are from the lower bound, on all shipped machines.

    For example: hocket reproduce optimal --machine dgx_a100_2box --size 1GB
    """
    machines = numbers("--machine", machine, optimal.machines()) or None
    kinds = numbers("--kind", kind, optimal.KINDS) or list(optimal.KINDS)
    given = [part.strip() for word in size or () for part in word.split(",")]
    sizes = [parse_size(each, field="--size") for each in given]
    sizes = list(dict.fromkeys(sizes)) or list(optimal.SIZES)

    def report(watch: Watch) -> Report:
        result = reproduce_optimal(
            machines, kinds=kinds, sizes=sizes, failures=failures, on_case=watch
        )

        def show(console: Printer) -> None:
            if len(result.outcomes) <= _MANY:
                _print_cells(console, result)
            else:
                _print_worst(console, result)
            for line in summary(result):
                console.print(line)

        from hocket_studies.optimal_pictures import draw_gaps

        rows = _rows(result)
        files = {"optimal.csv": csv_text(rows), "optimal.md": as_page(result)}
        pictures = {"optimal.png": partial(draw_gaps, result)}
        return Report({"cells": rows, "within": _within(result)}, show, pictures, files)

    into.write("optimal", report)


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


def _within(result: OptimalResult) -> dict[str, Any]:
    return {
        name: {"gap": gap, "cells": near, "of": count}
        for name, gap, (near, count) in (
            ("large", optimal.NARROW, result.within(is_large=True)),
            ("small", optimal.WIDE, result.within(is_large=False)),
        )
    }
