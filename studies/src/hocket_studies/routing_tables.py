"""``hocket reproduce routing``: training jobs on a Clos anew, beside what the released code gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from hocket._checks import whole
from hocket.cli.command import Option
from hocket.cli.console import Printer
from hocket.cli.options import Watch
from hocket_studies import routing, routing_times
from hocket_studies import routing_published as published
from hocket_studies.harness import Into, Report, table, wanted
from hocket_studies.routing import Cell, Measured, SeedRange
from hocket_studies.routing_result import (
    NAMES,
    RoutingResult,
    released_cells,
    reproduce_routing,
)

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


def study(
    *,
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
    into: Into,
) -> None:
    """Compute figures 4 to 8 of Cohen et al., Routing for large ML models.

    For example: hocket reproduce routing --figure 7 --output routing
    """
    others = (released and "released", choices and "choices")
    names = wanted(NAMES, *others, figure=figure)
    whole("--seeds", seeds, 1, 1000)

    def report(watch: Watch) -> Report:
        result = reproduce_routing(names, seeds=seeds, full=full, on_case=watch)

        def show(console: Printer) -> None:
            for name in names:
                _PRINTERS[name](console, result)
            _print_notes(console, result)

        return Report(as_json(result, names), show, _pictures(result, names))

    into.write("routing", report)


def _pictures(result: RoutingResult, names: list[str]) -> dict[str, Callable[[Path], None]]:
    from hocket_studies import routing_pictures as draw

    drawers: dict[str, Callable[[RoutingResult, Path], None]] = {
        "figure 4": draw.draw_all_reduce,
        "figure 5": draw.draw_flow_completion,
        "figure 6": draw.draw_throughput,
        "figure 7": draw.draw_timings,
        "figure 8": draw.draw_failures,
    }
    return {
        f"fig{name.split()[1]}.png": partial(drawers[name], result)
        for name in names
        if name in drawers
    }


def _bracketed(spread: SeedRange | None, write: Callable[[float], str]) -> str:
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
    console.print(table(title, left, right, rows))


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
            title = f"{name}: {quantity}, {of}"
            console.print(table(title, ["ring", "method"], _JOB_COLUMNS, rows))

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
    console.print(table(title, ["flows"], [f"{n:,}" for n in routing_times.FLOWS], rows))


def _print_figure_8(console: Printer, result: RoutingResult) -> None:
    metric, quantity = _FIGURES["figure 4"]
    for failed in routing.FAILED:
        rows = _rows(result, metric, routing.FIRST, routing.RINGS[1:], failed)
        spines = "1 failed spine" if failed == 1 else f"{failed} failed spines"
        title = f"figure 8: {quantity}, job 0, BLOOM, {spines}"
        console.print(table(title, ["ring", "method"], _JOB_COLUMNS, rows))


def _print_choices(console: Printer, result: RoutingResult) -> None:
    rows = []
    for each in result.choices or []:
        pairs = [f"{each.without[m]:.2f} → {each.with_it[m]:.2f}" for m in each.without]
        rows.append([each.what, each.quantity, *pairs])
    columns = list((result.choices or [])[0].without)
    title = "what is assumed, done otherwise: job 0, BLOOM, means in s over 1, 3, 5 jobs and rings of 4, 8"
    console.print(table(title, ["done otherwise", "quantity"], columns, rows))


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


def as_json(result: RoutingResult, names: list[str]) -> dict[str, Any]:
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
