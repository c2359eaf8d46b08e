"""``hocket reproduce themis``: a published evaluation anew, beside the published numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from hocket.cli.command import Option
from hocket.cli.console import Printer
from hocket.cli.options import Watch
from hocket.units import format_time_ps
from hocket_studies import themis as figures_of
from hocket_studies import themis_published as published
from hocket_studies import themis_training_tables as training
from hocket_studies.harness import Into, Report, table, wanted
from hocket_studies.themis import ThemisFigures, reproduce_themis
from hocket_studies.themis_training import FIGURES as TRAINING_FIGURES
from hocket_studies.themis_training import TrainingFigures, reproduce_training

SWEEP_NOTES = (
    "The gap at 512 chunks: packet headers do not explain it (they cost 64 and 512 chunks alike),",
    "nor do latencies that occupy a dimension (4 % at 512). A guess: the paper limits the chunks "
    "under way in a dimension.",
)


def study(
    *,
    figure: Annotated[
        list[str] | None,
        Option(
            "--figure",
            "--figures",
            help="Only these figures: 4, 8, 9, 10, 11, 12; as a list (4,12) or repeated.",
        ),
    ] = None,
    no_optimal: Annotated[
        bool,
        Option(
            "--no-optimal",
            help="Leave out multirail-optimal: takes seconds instead of two minutes.",
        ),
    ] = False,
    into: Into,
) -> None:
    """Compute figures of Themis (ISCA 2022): 8 to 11 for all-reduce, 4 and 12 for training.

    For example: hocket reproduce themis --output themis
    """
    known = sorted((*figures_of.FIGURES, *TRAINING_FIGURES))
    names = wanted((f"figure {each}" for each in known), figure=figure)
    figures = [int(name.split()[1]) for name in names]

    def report(watch: Watch) -> Report:
        trains = [number for number in figures if number in TRAINING_FIGURES]
        others = [number for number in figures if number not in trains]
        optimal = not no_optimal
        result = reproduce_themis(others, optimal=optimal, on_case=watch)
        value = as_json(result, others)
        pictures = _pictures(result, others)
        trained: TrainingFigures | None = None
        if trains:
            trained = reproduce_training(trains, optimal=optimal, on_case=watch)
            value |= training.training_json(trained, trains)
            pictures |= training.pictures(trained, trains)

        def show(console: Printer) -> None:
            if trained is not None and 4 in trains:
                training.print_utilization(console, trained)
            for number in others:
                _PRINTERS[number](console, result)
            if trained is not None and 12 in trains:
                training.print_training(console, trained)

        return Report({**value, "figures": figures}, show, pictures)

    into.write("themis", report)


def _pictures(result: ThemisFigures, wanted: list[int]) -> dict[str, Callable[[Path], None]]:
    from hocket_studies import themis_pictures as draw

    drawers = {
        8: {"fig8.png": draw.draw_times},
        9: {"fig9.png": draw.draw_activities},
        10: {"fig10.png": draw.draw_sweep},
        11: {"fig11.png": draw.draw_utilizations, "overview.png": draw.draw_overview},
    }
    return {
        name: partial(drawer, result)
        for number in wanted
        for name, drawer in drawers[number].items()
    }


def _print_times(console: Printer, result: ThemisFigures) -> None:
    names = [*result.schedulers, figures_of.IDEAL]
    shown = table("figure 8: all-reduce at 64 chunks, time", ["network"], ["size", *names])
    for network in figures_of.NETWORKS:
        for size in figures_of.SIZES_MB:
            times = result.times_ps(network, size)
            cells = [format_time_ps(times[name]) for name in names]
            last = size == figures_of.SIZES_MB[-1]
            shown.add_row(network, f"{size} MB", *cells, end_section=last)
    console.print(shown)
    headings = ["mean: hocket", "mean: published", "max: hocket", "max: published"]
    shown = table("figure 8: speed-up over hierarchical", ["scheduler", "in the paper"], headings)
    for name, each in _speedups(result).items():
        ratios = [each["mean"], each["published_mean"], each["max"], each["published_max"]]
        cells = ["–" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
        shown.add_row(name, published.PAPER_NAMES[name], *cells)
    console.print(shown)


def _print_activity(console: Printer, result: ThemisFigures) -> None:
    count = result.activity[0].shares.shape[0]
    dimensions = [f"dimension {i + 1}" for i in range(count)]
    title = "figure 9: all-reduce of 1 GB on themis-3d-homo, mean activity"
    shown = table(title, ["scheduler", "in the paper"], ["time", *dimensions])
    for each in result.activity:
        periods = each.time_ps / (figures_of.ACTIVITY_PERIOD_US * 1e6)
        means = [_mean_activity(row, periods) for row in each.shares]
        shown.add_row(
            each.algorithm,
            published.PAPER_NAMES[each.algorithm],
            format_time_ps(each.time_ps),
            *(f"{share:.1%}" for share in means),
        )
    console.print(shown)


def _mean_activity(shares: Any, periods: float) -> float:
    """Mean over the run, whose last period is cut short."""
    whole = len(shares) - 1
    return float((shares[:whole].sum() + shares[whole] * (periods - whole)) / periods)


def _print_sweep(console: Printer, result: ThemisFigures) -> None:
    columns = [str(chunks) for chunks in figures_of.SWEEP_CHUNKS]
    title = (
        "figure 10: all-reduce of 100 MB, weighted utilization by number of chunks, "
        "mean of two networks"
    )
    shown = table(title, ["scheduler", "from"], columns)
    for name in figures_of.SWEEP_SCHEDULERS:
        ours = result.sweep_utilization(name)
        theirs = published.SWEEP_UTILIZATION.get(name, {})
        shown.add_row(name, "hocket", *(f"{share:.1%}" for share in ours.values()))
        if theirs:
            cells = [_percent(theirs.get(chunks)) for chunks in figures_of.SWEEP_CHUNKS]
            shown.add_row("", f"published ({published.PAPER_NAMES[name]})", *cells)
    console.print(shown)
    for line in SWEEP_NOTES:
        console.print(line)


def _print_utilization(console: Printer, result: ThemisFigures) -> None:
    columns = [*(f"{size} MB" for size in figures_of.SIZES_MB), "mean"]
    title = "figure 11: all-reduce at 64 chunks, weighted utilization"
    shown = table(title, ["network", "scheduler"], columns)
    for network in figures_of.NETWORKS:
        for name in result.schedulers:
            cases = [result.case(network, size, name) for size in figures_of.SIZES_MB]
            cells = [_percent(case.utilization) for case in cases]
            cells.append(_percent(result.mean_utilization(name, network)))
            shown.add_row(network, name, *cells, end_section=name == result.schedulers[-1])
    console.print(shown)
    title = "figure 11: mean over networks and sizes"
    shown = table(title, ["scheduler", "in the paper"], ["hocket", "published"])
    for name in result.schedulers:
        ours, theirs = result.mean_utilization(name), published.MEAN_UTILIZATION.get(name)
        shown.add_row(
            name,
            published.PAPER_NAMES[name],
            f"{ours:.2%}",
            "–" if theirs is None else f"{theirs:.2%}",
        )
    console.print(shown)


_PRINTERS = {8: _print_times, 9: _print_activity, 10: _print_sweep, 11: _print_utilization}


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _speedups(result: ThemisFigures) -> dict[str, dict[str, float | None]]:
    names = [name for name in result.schedulers if name != figures_of.BASELINE]
    return {
        name: {
            "mean": sum(ratios) / len(ratios),
            "published_mean": published.MEAN_SPEEDUP.get(name),
            "max": max(ratios),
            "published_max": published.MAX_SPEEDUP.get(name),
        }
        for name in [*names, figures_of.IDEAL]
        for ratios in [result.all_speedups(name)]
    }


def as_json(result: ThemisFigures, wanted: list[int]) -> dict[str, Any]:
    """Return the figures as JSON values; times in picoseconds, sizes in bytes."""
    value: dict[str, Any] = {
        "source": published.SOURCE,
        "figures": wanted,
        "schedulers": list(result.schedulers),
        "networks": list(figures_of.NETWORKS),
    }
    if 11 in wanted:
        value["utilization"] = {
            name: {
                "mean": result.mean_utilization(name),
                "published_mean": published.MEAN_UTILIZATION.get(name),
                "networks": {n: result.mean_utilization(name, n) for n in figures_of.NETWORKS},
            }
            for name in result.schedulers
        }
    if 8 in wanted:
        value["speedups"] = _speedups(result)
    if 9 in wanted:
        value["activity"] = {
            "network": figures_of.ACTIVITY_NETWORK,
            "size_bytes": figures_of.ACTIVITY_SIZE_MB * 10**6,
            "period_ps": figures_of.ACTIVITY_PERIOD_US * 10**6,
            "schedulers": {
                each.algorithm: {"time_ps": each.time_ps, "shares": each.shares.tolist()}
                for each in result.activity
            },
        }
    if 10 in wanted:
        value["chunk_sweep"] = {
            "networks": list(figures_of.SWEEP_NETWORKS),
            "size_bytes": figures_of.SWEEP_SIZE_MB * 10**6,
            "utilization": {
                name: result.sweep_utilization(name) for name in figures_of.SWEEP_SCHEDULERS
            },
            "published_utilization": published.SWEEP_UTILIZATION,
            "notes": " ".join(SWEEP_NOTES),
            "cases": [_case_json(case) for case in result.sweep],
        }
    if result.cases:
        value["cases"] = [_case_json(case) for case in result.cases]
    return value


def _case_json(case: figures_of.Case) -> dict[str, Any]:
    return {
        "network": case.network,
        "size_bytes": case.size_mb * 10**6,
        "algorithm": case.algorithm,
        "chunks": case.chunks,
        "time_ps": case.time_ps,
        "ideal_ps": case.ideal_ps,
        "utilization": case.utilization,
    }
