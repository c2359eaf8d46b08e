"""``hocket reproduce themis``: a published evaluation anew, beside the published numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from hocket.cli import options
from hocket.cli.command import Option
from hocket.cli.console import Printer
from hocket.cli.table import Table
from hocket.errors import SpecError
from hocket.units import format_time_ps
from hocket_studies import themis as figures_of
from hocket_studies import themis_published as published
from hocket_studies import themis_training_tables as training
from hocket_studies.themis import ThemisFigures, reproduce_themis
from hocket_studies.themis_training import FIGURES as TRAINING_FIGURES
from hocket_studies.themis_training import TrainingFigures, reproduce_training

SWEEP_NOTES = (
    "The gap at 512 chunks: packet headers do not explain it (they cost 64 and 512 chunks alike),",
    "nor do latencies that occupy a dimension (4 % at 512). A guess: the paper limits the chunks "
    "under way in a dimension.",
)


def themis(
    *,
    output: Annotated[
        str, Option("--output", "-o", help="Folder for the pictures; created if missing.")
    ] = "reproduce-themis",
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
    json: options.Json = False,
) -> None:
    """Compute figures of Themis (ISCA 2022): 8 to 11 for all-reduce, 4 and 12 for training.

    For example: hocket reproduce themis --output themis
    """
    wanted = _figures(figure)
    trains = [number for number in wanted if number in TRAINING_FIGURES]
    wanted = [number for number in wanted if number not in trains]
    folder = Path(output)
    make_folder(folder)
    trained: TrainingFigures | None = None
    with options.watching() as watch:
        result = reproduce_themis(wanted, optimal=not no_optimal, on_case=watch)
        if trains:
            trained = reproduce_training(trains, optimal=not no_optimal, on_case=watch)
        watch.note("drawing")
        pictures = _draw(result, wanted, folder)
        if trained is not None:
            pictures += training.draw_training(trained, trains, folder)
    if json:
        value = as_json(result, wanted, pictures)
        value["figures"] = sorted(wanted + trains)
        if trained is not None:
            value |= training.training_json(trained, trains)
        options.print_result("reproduction", value)
        return
    console = options.output()
    if trained is not None and 4 in trains:
        training.print_utilization(console, trained)
    printers = {8: _print_times, 9: _print_activity, 10: _print_sweep, 11: _print_utilization}
    for number in wanted:
        printers[number](console, result)
    if trained is not None and 12 in trains:
        training.print_training(console, trained)
    names = ", ".join(path.name for path in pictures)
    console.print(f"pictures in {folder}: {names}")


def _figures(words: list[str] | None) -> list[int]:
    known = sorted((*figures_of.FIGURES, *TRAINING_FIGURES))
    named = options.numbers("--figure", words, [str(each) for each in known])
    return [int(each) for each in named] or known


def make_folder(folder: Path) -> None:
    """Make the folder for what a command writes, before the work.

    Raises
    ------
    SpecError
        If it is a file, or cannot be made or written.
    """
    if folder.exists() and not folder.is_dir():
        raise SpecError("--output", f"{str(folder)!r} is a file", "name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError("--output", f"{folder}: cannot be made: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SpecError("--output", f"{folder}: cannot be written", "choose another")


def _draw(result: ThemisFigures, wanted: list[int], folder: Path) -> list[Path]:
    from hocket_studies import themis_pictures as draw

    drawers = {
        8: [("fig8.png", draw.draw_times)],
        9: [("fig9.png", draw.draw_activities)],
        10: [("fig10.png", draw.draw_sweep)],
        11: [("fig11.png", draw.draw_utilizations), ("overview.png", draw.draw_overview)],
    }
    pictures = []
    for number in wanted:
        for name, drawer in drawers[number]:
            drawer(result, folder / name)
            pictures.append(folder / name)
    return pictures


def _table(title: str, left: list[str], right: list[str]) -> Table:
    table = Table(title=title)
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    return table


def _print_times(console: Printer, result: ThemisFigures) -> None:
    names = [*result.schedulers, figures_of.IDEAL]
    table = _table("figure 8: all-reduce at 64 chunks, time", ["network"], ["size", *names])
    for network in figures_of.NETWORKS:
        for size in figures_of.SIZES_MB:
            times = result.times_ps(network, size)
            cells = [format_time_ps(times[name]) for name in names]
            last = size == figures_of.SIZES_MB[-1]
            table.add_row(network, f"{size} MB", *cells, end_section=last)
    console.print(table)
    headings = ["mean: hocket", "mean: published", "max: hocket", "max: published"]
    table = _table("figure 8: speed-up over hierarchical", ["scheduler", "in the paper"], headings)
    for name, each in _speedups(result).items():
        ratios = [each["mean"], each["published_mean"], each["max"], each["published_max"]]
        cells = ["–" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
        table.add_row(name, published.PAPER_NAMES[name], *cells)
    console.print(table)


def _print_activity(console: Printer, result: ThemisFigures) -> None:
    count = result.activity[0].shares.shape[0]
    dimensions = [f"dimension {i + 1}" for i in range(count)]
    title = "figure 9: all-reduce of 1 GB on themis-3d-homo, mean activity"
    table = _table(title, ["scheduler", "in the paper"], ["time", *dimensions])
    for each in result.activity:
        periods = each.time_ps / (figures_of.ACTIVITY_PERIOD_US * 1e6)
        means = [_mean_activity(row, periods) for row in each.shares]
        table.add_row(
            each.algorithm,
            published.PAPER_NAMES[each.algorithm],
            format_time_ps(each.time_ps),
            *(f"{share:.1%}" for share in means),
        )
    console.print(table)


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
    table = _table(title, ["scheduler", "from"], columns)
    for name in figures_of.SWEEP_SCHEDULERS:
        ours = result.sweep_utilization(name)
        theirs = published.SWEEP_UTILIZATION.get(name, {})
        table.add_row(name, "hocket", *(f"{share:.1%}" for share in ours.values()))
        if theirs:
            cells = [_percent(theirs.get(chunks)) for chunks in figures_of.SWEEP_CHUNKS]
            table.add_row("", f"published ({published.PAPER_NAMES[name]})", *cells)
    console.print(table)
    for line in SWEEP_NOTES:
        console.print(line)


def _print_utilization(console: Printer, result: ThemisFigures) -> None:
    columns = [*(f"{size} MB" for size in figures_of.SIZES_MB), "mean"]
    title = "figure 11: all-reduce at 64 chunks, weighted utilization"
    table = _table(title, ["network", "scheduler"], columns)
    for network in figures_of.NETWORKS:
        for name in result.schedulers:
            cases = [result.case(network, size, name) for size in figures_of.SIZES_MB]
            cells = [_percent(case.utilization) for case in cases]
            cells.append(_percent(result.mean_utilization(name, network)))
            table.add_row(network, name, *cells, end_section=name == result.schedulers[-1])
    console.print(table)
    title = "figure 11: mean over networks and sizes"
    table = _table(title, ["scheduler", "in the paper"], ["hocket", "published"])
    for name in result.schedulers:
        ours, theirs = result.mean_utilization(name), published.MEAN_UTILIZATION.get(name)
        table.add_row(
            name,
            published.PAPER_NAMES[name],
            f"{ours:.2%}",
            "–" if theirs is None else f"{theirs:.2%}",
        )
    console.print(table)


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


def as_json(result: ThemisFigures, wanted: list[int], pictures: list[Path]) -> dict[str, Any]:
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
    value["pictures"] = [str(path) for path in pictures]
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
