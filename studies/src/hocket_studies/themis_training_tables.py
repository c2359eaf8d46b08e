"""Figures 4 and 12 of ``hocket reproduce themis``: training, as tables, pictures and JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from hocket.cli.console import Printer
from hocket.cli.table import Table
from hocket.units import format_time_ps
from hocket_studies import themis_published as published
from hocket_studies.themis import BASELINE, IDEAL, NETWORKS
from hocket_studies.themis_training import CURRENT, ITERATIONS, SETUPS, THEMIS, TrainingFigures

NOTES = (
    "Compute is an A100's peak times the number given, one for each model: 1.0 is the peak. That of "
    "resnet152, gnmt and dlrm was",
    "chosen for the mean speed-up of Themis to agree; all else follows. At their peak, A100s would "
    "compute resnet152 21 times",
    "as long, and Themis would gain 7 %: hocket_studies.themis_training has what is known of it.",
)


def print_training(console: Printer, result: TrainingFigures) -> None:
    """Print figure 12."""
    faster = [name for name in result.algorithms if name != BASELINE]
    table = Table(title=f"figure 12: {ITERATIONS} iterations, times and speed-ups")
    table.add_column("model")
    table.add_column("network")
    for name in (BASELINE, *faster, *(f"× {name}" for name in faster)):
        table.add_column(name, justify="right")
    for workload in SETUPS:
        for network in NETWORKS:
            cells = [result.cell(workload, network, name) for name in (BASELINE, *faster)]
            ratios = [cells[0].time_ps / cell.time_ps for cell in cells[1:]]
            table.add_row(
                workload,
                network,
                *(format_time_ps(cell.time_ps) for cell in cells),
                *(f"{ratio:.2f}" for ratio in ratios),
                end_section=network == NETWORKS[-1],
            )
    console.print(table)
    table = Table(title="figure 12: speed-up over hierarchical")
    for name in ("model", "compute", "scheduler"):
        table.add_column(name)
    for name in ("mean: hocket", "mean: published", "max: hocket", "max: published"):
        table.add_column(name, justify="right")
    for workload, setup in SETUPS.items():
        for name in faster:
            theirs = _published(workload, name)
            ours = (result.mean_speedup(workload, name), result.max_speedup(workload, name))
            cells_of = [ours[0], theirs[0], ours[1], theirs[1]]
            table.add_row(
                workload if name == faster[0] else "",
                f"{setup.peaks} peaks" if name == faster[0] else "",
                name,
                *("–" if ratio is None else f"{ratio:.2f}" for ratio in cells_of),
                end_section=name == faster[-1],
            )
    console.print(table)
    for name in faster:
        theirs_cut = published.EXPOSED_REDUCTION.get(name)
        said = "" if theirs_cut is None else f"; published {theirs_cut:.2f}"
        ours_cut = result.exposed_reduction(name)
        console.print(f"exposed communication of {BASELINE} / {name}: {ours_cut:.2f}{said}")
    for line in NOTES:
        console.print(line)


def print_utilization(console: Printer, result: TrainingFigures) -> None:
    """Print figure 4."""
    table = Table(title="figure 4: bandwidth used by hierarchical while compute waits")
    table.add_column("network")
    models = [name for name, setup in SETUPS.items() if setup.in_figure_4]
    for name in models:
        table.add_column(name, justify="right")
    for network in (CURRENT, *NETWORKS):
        shares = [f"{result.utilization(name, network):.1%}" for name in models]
        table.add_row(network, *shares)
    console.print(table)
    found = utilization(result)
    theirs = published.TRAINING_UTILIZATION
    console.print(
        f"mean {found['mean']:.1%} (published {theirs['mean']:.1%}), least {found['least']:.1%} "
        f"({theirs['least']:.1%}), {CURRENT} {found['current']:.1%} ({theirs['current']:.1%})",
    )


def utilization(result: TrainingFigures) -> dict[str, float]:
    """Sum figure 4 up as section 3.2 does."""
    models = [name for name, setup in SETUPS.items() if setup.in_figure_4]
    shares = [result.utilization(name, network) for name in models for network in NETWORKS]
    today = [result.utilization(name, CURRENT) for name in models]
    return {"mean": mean(shares), "least": min(shares), "current": mean(today)}


def _published(workload: str, name: str) -> tuple[float | None, float | None]:
    if name == THEMIS:
        return published.TRAINING_SPEEDUP[workload]
    if name == IDEAL:
        most = published.IDEAL_MAX_TRAINING_SPEEDUP.get(workload)
        return published.IDEAL_TRAINING_SPEEDUP[workload], most
    return None, None


def pictures(result: TrainingFigures, wanted: list[int]) -> dict[str, Callable[[Path], None]]:
    """Draw the figures that are wanted into a folder."""
    from hocket_studies import themis_training_pictures as draw

    drawers = {4: draw.draw_runtimes, 12: draw.draw_iterations}
    return {f"fig{each}.png": partial(drawers[each], result) for each in drawers if each in wanted}


def training_json(result: TrainingFigures, wanted: list[int]) -> dict[str, Any]:
    """Return the figures as JSON values; times in picoseconds."""
    value: dict[str, Any] = {}
    if 12 in wanted:
        value["training"] = {
            "iterations": ITERATIONS,
            "compute_peaks": {name: setup.peaks for name, setup in SETUPS.items()},
            "mean_speedup": _by_workload(result.mean_speedup, result),
            "max_speedup": _by_workload(result.max_speedup, result),
            "published_mean_speedup": {
                name: {THEMIS: pair[0], IDEAL: published.IDEAL_TRAINING_SPEEDUP[name]}
                for name, pair in published.TRAINING_SPEEDUP.items()
            },
            "published_max_speedup": {
                name: {THEMIS: pair[1], IDEAL: published.IDEAL_MAX_TRAINING_SPEEDUP.get(name)}
                for name, pair in published.TRAINING_SPEEDUP.items()
            },
            "exposed_reduction": {
                name: result.exposed_reduction(name)
                for name in result.algorithms
                if name != BASELINE
            },
            "published_exposed_reduction": published.EXPOSED_REDUCTION,
            "cells": [
                {
                    "workload": each.workload,
                    "network": each.network,
                    "algorithm": each.algorithm,
                    "time_ps": each.time_ps,
                    "forward_ps": each.forward_ps,
                    "backward_ps": each.backward_ps,
                    "exposed_ps": each.exposed_ps,
                }
                for each in result.cells
            ],
            "notes": " ".join(NOTES),
        }
    if 4 in wanted:
        value["training_utilization"] = {
            **utilization(result),
            "published": published.TRAINING_UTILIZATION,
            "cells": {
                name: {n: result.utilization(name, n) for n in (CURRENT, *NETWORKS)}
                for name, setup in SETUPS.items()
                if setup.in_figure_4
            },
        }
    return value


def _by_workload(of: Any, result: TrainingFigures) -> dict[str, dict[str, float]]:
    names = [name for name in result.algorithms if name != BASELINE]
    return {workload: {name: of(workload, name) for name in names} for workload in SETUPS}
