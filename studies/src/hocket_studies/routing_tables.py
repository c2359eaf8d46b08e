"""``hocket reproduce routing``: training jobs on a Clos anew, beside what the released code gives."""

from __future__ import annotations

import json as json_text
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from hocket._checks import whole
from hocket.cli import options
from hocket.cli.command import Option
from hocket.cli.console import Printer
from hocket.cli.table import Table
from hocket.files.atomic import replacing
from hocket_studies import routing, routing_times
from hocket_studies import routing_published as published
from hocket_studies.routing import Cell, Measured, Spread
from hocket_studies.routing_result import (
    NAMES,
    RoutingResult,
    released_cells,
    reproduce_routing,
)
from hocket_studies.themis_tables import make_folder

_GBIT = 1e9 / 8
_LEGEND = (
    "Means over every iteration and over seeds, with the range over seeds in brackets; a seed draws "
    "models, arrivals, hosts and hashes, alike for every method. greedy-by-tor: greedy, with flows in the "
    "order of the released code. docs/routing-study.md says what explains differences, and what does not."
)
_Metric = tuple[str, Callable[[float], str]]
_FIGURES: dict[str, tuple[_Metric, str]] = {
    "figure 4": (("all-reduce", lambda value: f"{value:.2f}"), "all-reduce time in seconds"),
    "figure 5": (
        ("flow completion", lambda value: f"{value:.3f}"),
        "flow completion time in seconds",
    ),
    "figure 6": (("throughput", lambda value: f"{value / _GBIT:.1f}"), "throughput in Gbit/s"),
}
MODELS = {
    "figure 4": ("bloom",),
    "figure 5": ("bloom", "gpt3-175b"),
    "figure 6": ("bloom", "gpt3-175b"),
}
"""Whose jobs each figure shows."""


def routing_study(
    *,
    output: Annotated[
        str,
        Option("--output", "-o", help="Folder for pictures and routing.json; created if missing."),
    ] = "reproduce-routing",
    figure: Annotated[
        list[str] | None,
        Option("--figure", help="Only this figure: 4 to 8. Can be repeated."),
    ] = None,
    released: Annotated[
        bool, Option("--released", help="Only the cells that the released code ran.")
    ] = False,
    choices: Annotated[
        bool, Option("--choices", help="Only the runs with other assumptions.")
    ] = False,
    seeds: Annotated[
        int, Option("--seeds", help="Random draws of each cell, from 1 to 1000.")
    ] = routing.SEEDS,
    full: Annotated[
        bool,
        Option("--full", help="Also the ILP for two and three jobs, which needs OR-Tools."),
    ] = False,
    json: options.Json = False,
) -> None:
    """Compute figures 4 to 8 of Cohen et al., Routing for large ML models.

    For example: hocket reproduce routing --figure 7 --output routing
    """
    names = _names(figure, released, choices)
    whole("--seeds", seeds, 1, 1000)
    folder = Path(output)
    make_folder(folder)
    with options.watching() as watch:
        result = reproduce_routing(names, seeds=seeds, full=full, on_case=watch)
        watch.note("drawing")
        pictures = _draw(result, names, folder)
    value = as_json(result, names, pictures)
    with replacing(folder / "routing.json") as temporary:
        Path(temporary).write_text(json_text.dumps(value, indent=2) + "\n", encoding="utf-8")
    if json:
        options.print_result("reproduction", value)
        return
    console = options.output()
    for name in names:
        _PRINTERS[name](console, result)
    _print_notes(console, result)
    files = ", ".join([*(path.name for path in pictures), "routing.json"])
    console.print(f"files in {folder}: {files}")


def _names(figures: list[str] | None, released: bool, choices: bool) -> list[str]:
    """Return what is wanted, all if nothing is named."""
    wanted = {name for name, given in (("released", released), ("choices", choices)) if given}
    known = [name.split()[1] for name in NAMES if name.startswith("figure")]
    wanted |= {f"figure {number}" for number in options.numbers("--figure", figures, known)}
    return [name for name in NAMES if name in wanted or not wanted]


def _draw(result: RoutingResult, names: list[str], folder: Path) -> list[Path]:
    from hocket_studies import routing_pictures as draw

    drawers: dict[str, Callable[[RoutingResult, Path], None]] = {
        "figure 4": draw.draw_all_reduce,
        "figure 5": draw.draw_flow_completion,
        "figure 6": draw.draw_throughput,
        "figure 7": draw.draw_timings,
        "figure 8": draw.draw_failures,
    }
    pictures = []
    for name in names:
        if name in drawers:
            path = folder / f"fig{name.split()[1]}.png"
            drawers[name](result, path)
            pictures.append(path)
    return pictures


def _print_table(
    console: Printer, title: str, left: list[str], right: list[str], rows: list[list[str]]
) -> None:
    table = Table(title=title)
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _bracketed(spread: Spread | None, write: Callable[[float], str]) -> str:
    """Write a mean and, where seeds differ, their range."""
    if spread is None:
        return "–"
    middle, least, most = map(write, spread)
    return middle if least == most else f"{middle} ({least}-{most})"


def _print_released(console: Printer, result: RoutingResult) -> None:
    rows = []
    for cell in released_cells():
        key = (cell.failed, cell.jobs, cell.ring)
        theirs = published.CELLS[key].get(cell.method)
        row = [str(part) for part in (*key, cell.method)]
        for position, (metric, write) in enumerate(metric for metric, _ in _FIGURES.values()):
            released = "–" if theirs is None else write(theirs[position] * (_GBIT, 1)[position < 2])
            row += [released, _bracketed(result.study.spread(cell, metric), write)]
        rows.append(row)
    left = ["failed", "jobs", "ring", "method"]
    right = ["all-reduce, s", "hocket", "FCT, s", "hocket", "Gbit/s", "hocket"]
    title = "job 0, BLOOM: one draw of the released code (commit 0ecf8fb), and hocket"
    _print_table(console, title, left, right, rows)


def _rows(
    result: RoutingResult, metric: _Metric, model: str, rings: Iterable[int], failed: int
) -> list[list[str]]:
    name, write = metric
    rows = []
    for ring in rings:
        for method in routing.METHODS:
            cells = [Cell(jobs, ring, method, failed=failed) for jobs in routing.JOBS]
            spreads = [result.study.spread(cell, name, model) for cell in cells]
            if any(spreads):
                rows.append([str(ring), method, *(_bracketed(each, write) for each in spreads)])
    return rows


_JOB_COLUMNS = ["1 job", *(f"{jobs} jobs" for jobs in routing.JOBS[1:])]


def _figure_printer(name: str) -> Callable[[Printer, RoutingResult], None]:
    metric, quantity = _FIGURES[name]

    def printed(console: Printer, result: RoutingResult) -> None:
        for model in MODELS[name]:
            rows = _rows(result, metric, model, routing.RINGS, 0)
            of = "job 0, BLOOM" if model == routing.FIRST else f"mean over jobs of {model.upper()}"
            _print_table(
                console, f"{name}: {quantity}, {of}", ["ring", "method"], _JOB_COLUMNS, rows
            )

    return printed


def _print_figure_7(console: Printer, result: RoutingResult) -> None:
    found = {(each.scheme, each.flows): each for each in result.timings or []}
    rows = []
    for scheme in dict.fromkeys(scheme for scheme, _ in found):
        row = [scheme]
        for flows in routing_times.FLOWS:
            each = found.get((scheme, flows))
            load = "" if each is None else f" ({each.max_link_load})"
            row.append("–" if each is None else f"{each.milliseconds:,.3g}{load}")
        rows.append(row)
    bounds = [str(found["greedy", flows].bound) for flows in routing_times.FLOWS]
    rows.append(["no load is below", *(f"({bound})" for bound in bounds)])
    for scheme, theirs in published.ASSIGNMENT_MS.items():
        cells = [theirs.get(flows) for flows in routing_times.FLOWS]
        rows.append([f"released, {scheme}", *("–" if v is None else f"{v:,g}" for v in cells)])
    paper = [f"~{published.GREEDY_MS}" if 100 <= n <= 1_500 else "–" for n in routing_times.FLOWS]
    rows.append(["paper, greedy", *paper])
    title = "figure 7: CPU time of an assignment on this machine in ms, median (largest load)"
    _print_table(console, title, ["flows"], [f"{n:,}" for n in routing_times.FLOWS], rows)


def _print_figure_8(console: Printer, result: RoutingResult) -> None:
    metric, quantity = _FIGURES["figure 4"]
    for failed in routing.FAILED:
        rows = _rows(result, metric, routing.FIRST, routing.RINGS[1:], failed)
        spines = "1 failed spine" if failed == 1 else f"{failed} failed spines"
        title = f"figure 8: {quantity}, job 0, BLOOM, {spines}"
        _print_table(console, title, ["ring", "method"], _JOB_COLUMNS, rows)


def _print_choices(console: Printer, result: RoutingResult) -> None:
    rows = []
    for each in result.choices or []:
        pairs = [f"{each.without[m]:.2f} → {each.with_it[m]:.2f}" for m in each.without]
        rows.append([each.what, each.quantity, *pairs])
    columns = list((result.choices or [])[0].without)
    title = "what is assumed, done otherwise: job 0, BLOOM, means in s over 1, 3, 5 jobs and rings of 4, 8"
    _print_table(console, title, ["done otherwise", "quantity"], columns, rows)


def _print_notes(console: Printer, result: RoutingResult) -> None:
    study = result.study
    if study.outcomes:
        console.print(_LEGEND)
    for (jobs, ring), draws in sorted(_draws(result).items()):
        if max(draws) > 1:
            counts = ", ".join(map(str, draws))
            text = (
                f"{jobs} jobs, rings of {ring}: models were drawn {counts} times until all fitted"
            )
            console.print(text)
    for failed, where in (((0,), "nothing failed"), (routing.FAILED, "spines failed")):
        is_there = {
            cell.method for cell in study.outcomes if cell.failed in failed and not cell.variant
        }
        if {"ecmp", "greedy"} <= is_there:
            found = routing.ratio(study, "ecmp", "greedy", failed)
            console.print(
                f"ECMP's all-reduce, over greedy's, where {where}: {found.mean:.2f}, mean over cells; "
                f"{found.least:.2f} to {found.most:.2f} over seeds",
            )
    for cell, job in routing.slower(study, "edge-coloring", "greedy"):
        console.print(f"edge-coloring is slower than greedy: job {job} of {cell}")


def _draws(result: RoutingResult) -> dict[tuple[int, int], list[int]]:
    """Return by jobs and ring how often models were drawn, for each seed."""
    cells = {replace(cell, seed=0) for cell in result.study.outcomes}
    return {
        (cell.jobs, cell.ring): [outcome.draws for outcome in result.study.of(cell)]
        for cell in cells
    }


_PRINTERS: dict[str, Callable[[Printer, RoutingResult], None]] = {
    "released": _print_released,
    **{name: _figure_printer(name) for name in _FIGURES},
    "figure 7": _print_figure_7,
    "figure 8": _print_figure_8,
    "choices": _print_choices,
}


def as_json(result: RoutingResult, names: list[str], pictures: list[Path]) -> dict[str, Any]:
    """Return all that was computed as JSON values: times in seconds, rates in bytes per second."""
    value: dict[str, Any] = {"source": published.SOURCE, "seeds": result.study.seeds}
    if "released" in names:
        value["released"] = [
            {
                "failed": failed,
                "jobs": jobs,
                "ring": ring,
                "source": published.RELEASED,
                "methods": {method: row._asdict() for method, row in rows.items()},
            }
            for (failed, jobs, ring), rows in published.CELLS.items()
        ]
    if result.timings is not None:
        value["figure_7"] = {
            "times": [each._asdict() for each in result.timings],
            "released_ms": published.ASSIGNMENT_MS,
            "paper_greedy_ms": published.GREEDY_MS,
        }
    if result.choices is not None:
        value["choices"] = [vars(each) for each in result.choices]
    value["cells"] = [
        _cell_json(result, cell)
        for cell in sorted({replace(cell, seed=0) for cell in result.study.outcomes})
    ]
    value["pictures"] = [str(path) for path in pictures]
    return value


def _cell_json(result: RoutingResult, cell: Cell) -> dict[str, Any]:
    about = {name: part for name, part in vars(cell).items() if name != "seed"}
    runs = []
    for seed, outcome in enumerate(result.study.of(cell)):
        jobs = [_job_json(each) for each in outcome.jobs]
        runs.append({"seed": seed, **outcome._asdict(), "jobs": jobs})
    return {**about, "runs": runs}


def _job_json(job: Measured) -> dict[str, Any]:
    value = job._asdict()
    del value["all_reduces"]
    return {**value, "all_reduce": job.all_reduce}
