"""``hocket compare-training``: networks, parallelism and algorithms for a training, ranked."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocket.cli import options
from hocket.errors import SpecError
from hocket.units import format_time_ps

if TYPE_CHECKING:
    from hocket._core import Topology
    from hocket.training.comparison import Refused, TrainingComparison, TrainingRow
    from hocket.training.search import Search

Model = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="A shipped workload (`hocket workload list`) or a file."),
]
Topologies = Annotated[
    list[str],
    typer.Option(
        "--topology", "-t", help="As of `hocket compare`; may be repeated, to compare networks."
    ),
]
Algorithms = Annotated[
    list[str] | None,
    typer.Option(
        "--algorithm",
        "-a",
        help="Of collectives: one of `hocket algorithms`, ideal or none; may be repeated; default "
        "several that apply.",
    ),
]
Parallels = Annotated[
    list[str] | None,
    typer.Option(
        "--parallel", "-p", help="As dp=64,tp=16; may be repeated; default replicas on all NPUs."
    ),
]
SearchFor = Annotated[
    int | None,
    typer.Option(
        "--search",
        help="Instead of --parallel: so many of all splits dp x tp x pp, those that are fastest with "
        "ideal collectives.",
    ),
]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples",
        help="Of each replica in an iteration, with --search of each NPU; default 32.",
    ),
]
Batch = Annotated[
    int | None,
    typer.Option("--batch", help="Instead of --samples: of all replicas in an iteration."),
]
Iterations = Annotated[int, typer.Option("--iterations", help="How many follow each other.")]
Npu = Annotated[str, typer.Option("--npu", help="An accelerator, such as a100 or h100.")]
Efficiency = Annotated[
    float | None, typer.Option("--efficiency", help="Share of the peak that is reached, as 0.5.")
]
Precision = Annotated[
    int, typer.Option("--precision", help="Bits of weights, gradients and activations.")
]
Bucket = Annotated[
    str, typer.Option("--bucket", help='Gradients reduced together: "25 MiB", or all.')
]
Recompute = Annotated[
    bool, typer.Option("--recompute", help="The backward pass computes activations again.")
]
CallOrder = Annotated[
    str, typer.Option("--order", help="Which collective a dimension serves first: fifo or lifo.")
]
NoMemoryCheck = Annotated[
    bool, typer.Option("--no-memory-check", help="Run what does not fit the NPU's memory as well.")
]


def compare_training(
    model: Model,
    *,
    topology: Topologies,
    bandwidth: options.Bandwidth = None,
    latency: options.LatencyText = None,
    failed: options.Failed = None,
    algorithm: Algorithms = None,
    parallel: Parallels = None,
    search: SearchFor = None,
    chunks: options.Chunks = None,
    samples: Samples = None,
    batch: Batch = None,
    iterations: Iterations = 1,
    npu: Npu = "a100",
    efficiency: Efficiency = None,
    precision: Precision = 16,
    bucket: Bucket = "25 MiB",
    recompute: Recompute = False,
    order: CallOrder = "fifo",
    no_memory_check: NoMemoryCheck = False,
    plot: options.Plot = None,
    json: options.Json = False,
) -> None:
    """Simulate training on networks, spread several ways, by several algorithms, best first."""
    networks = {each: options.read_topology(each, bandwidth, latency, failed) for each in topology}
    if parallel and search is not None:
        raise SpecError("--search", "tries all splits", "leave --parallel out")
    if samples is not None and batch is not None:
        raise SpecError("--batch", "is of all replicas, --samples of each", "leave one of them out")
    if plot is not None:
        from hocket.plot.style import check_picture

        check_picture(Path(plot))
    given: dict[str, Any] = {
        "chunks": chunks,
        "iterations": iterations,
        "npu": npu,
        "efficiency": efficiency,
        "precision_bits": precision,
        "bucket": None if bucket == "all" else bucket,
        "recompute": recompute,
        "order": order,
        "fits": not no_memory_check,
    }
    if samples is not None:
        given["samples"] = samples
    if batch is not None:
        given["batch"] = batch
    compared, searches = _run(model, networks, algorithm, parallel, search, given)
    if plot is not None:
        from hocket.plot.compare_training import draw_training_comparison

        draw_training_comparison(compared, Path(plot))
    if json:
        options.print_json(as_json(compared, searches))
    else:
        _print(compared, searches)


def _run(
    model: str,
    networks: dict[str, Topology],
    algorithms: list[str] | None,
    parallels: list[str] | None,
    search: int | None,
    given: dict[str, Any],
) -> tuple[TrainingComparison, list[Search]]:
    """Compare; with a search, on each network the splits that were found best there."""
    from hocket.training.comparison import (
        check_algorithms,
        compare_training,
        merged,
    )
    from hocket.training.search import search_parallels

    with options.watching() as watch:

        def note(row: TrainingRow) -> None:
            watch.note(f"{row.network}, {row.parallel}, {row.algorithm}")

        watched: dict[str, Any] = {"on_row": note, "progress": watch}
        if search is None:
            return compare_training(
                model, networks, algorithms or None, parallels or None, **given, **watched
            ), []
        searches, compared = [], []
        check_algorithms(algorithms or None)
        for name, network in networks.items():
            found = search_parallels(model, network, network=name, most=search, **given, **watched)
            searches.append(found)
            own = {key: value for key, value in given.items() if key != "samples"}
            own["batch"] = found.rows[0].batch
            compared.append(
                compare_training(
                    model, {name: network}, algorithms or None, found.parallels, **own, **watched
                )
            )
        return merged(compared), searches


def _print(compared: TrainingComparison, searches: list[Search]) -> None:
    console = options.output()
    batches = sorted({row.batch for row in compared})
    batch = f", {batches[0]:,} samples an iteration" if len(batches) == 1 else ""
    table = options.new_table(title=f"training {compared.workload.name}{batch}")
    for name in ("topology", "parallelism", "algorithm"):
        table.add_column(name)
    for name in ("iteration", "samples/s", "speed-up", "exposed", "share"):
        table.add_column(name, justify="right")
    for row in compared:
        table.add_row(*_cells(row))
    console.print(table)
    for found in searches:
        name = found.rows[0].network
        console.print(
            f"{name}: {len(found.rows)} of {len(found.rows) + len(found.refused)} splits fit; compared: "
            f"{len(found.parallels)}, the fastest by {found.rows[0].algorithm}",
            highlight=False,
        )
    for line in _left_out(compared):
        console.print(f"left out: {line}", highlight=False)


def _cells(row: TrainingRow) -> list[str]:
    return [
        row.network,
        str(row.parallel),
        row.algorithm,
        format_time_ps(round(row.time_ps)),
        f"{row.samples_per_second:,.0f}",
        "–" if row.speedup is None else f"{row.speedup:.3f}",
        format_time_ps(round(row.exposed_ps)),
        f"{row.exposed_share:.1%}",
    ]


def _left_out(compared: TrainingComparison) -> list[str]:
    """Give a line for each reason on a network: which splits if not all, which algorithms if not all."""
    by_split: dict[tuple[str, str, str], list[str]] = {}
    for each in compared.refused:
        key = (each.network, each.reason, str(each.parallel))
        by_split.setdefault(key, []).append(each.algorithm)
    ran = {(row.network, str(row.parallel)) for row in compared}
    splits: dict[tuple[str, str, str], list[str]] = {}
    for (network, reason, split), algorithms in by_split.items():
        names = ", ".join(algorithms) if (network, split) in ran else ""
        splits.setdefault((network, names, reason), []).append(split)
    tried = ran | {(each.network, str(each.parallel)) for each in compared.refused}
    count = Counter(network for network, _ in tried)
    return [
        ", ".join(
            [network]
            + (["; ".join(found)] if len(found) < count[network] or not names else [])
            + ([names] if names else [])
        )
        + f": {reason}"
        for (network, names, reason), found in splits.items()
    ]


def as_json(compared: TrainingComparison, searches: list[Search]) -> dict[str, Any]:
    """Give a comparison as JSON values; times in picoseconds, sizes in bytes."""
    value: dict[str, Any] = {
        "workload": compared.workload.name,
        "rows": [_row_json(row) for row in compared],
        "refused": [_refused_json(each) for each in compared.refused],
    }
    if searches:
        value["searches"] = [
            {
                "topology": found.rows[0].network,
                "rows": [_row_json(row) for row in found.rows],
                "refused": [_refused_json(each) for each in found.refused],
            }
            for found in searches
        ]
    return value


def _row_json(row: TrainingRow) -> dict[str, Any]:
    where = row.breakdown
    return {
        **_of(row),
        "iteration_ps": row.time_ps,
        "batch": row.batch,
        "samples_per_second": row.samples_per_second,
        "speedup": row.speedup,
        "forward_ps": where.forward,
        "backward_ps": where.backward,
        "update_ps": where.update,
        "exposed_ps": where.exposed,
        "waiting_ps": where.waiting,
        "exposed_share": row.exposed_share,
        "memory_bytes": row.memory.total,
    }


def _refused_json(each: Refused) -> dict[str, Any]:
    return {**_of(each), "reason": each.reason}


def _of(each: TrainingRow | Refused) -> dict[str, Any]:
    return {
        "topology": each.network,
        "npus": each.topology.npu_count,
        "parallel": str(each.parallel),
        "algorithm": each.algorithm,
    }
